// What Swift's Glibc module lacks: variadic functions, macros with arguments, and system calls without a wrapper.
// Every function returns -1 and sets errno on failure, as the call it stands for; see that call's manual page.
#pragma once
#include <stddef.h>
#include <stdint.h>
// epoll(7) and eventfd(2): not in Swift's Glibc module, but callable as they are.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <time.h>
// fgetxattr(2), fsetxattr(2): not in the Glibc module.
#include <sys/xattr.h>

/// openat2(2) below `dirfd` with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS. EINTR and EAGAIN are retried.
/// Where the kernel or a filter refuses the call, by ``clinux_open_by_steps``.
int clinux_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/// The same by openat(2), name by name, without following a link. `..` is EXDEV also where it would lead nowhere else.
int clinux_open_by_steps(int dirfd, const char *path, int flags, mode_t mode);
/// open(2): variadic, so not callable from Swift.
int clinux_open(const char *path, int flags, mode_t mode);
/// O_TMPFILE | O_RDWR | O_CLOEXEC: a macro Swift does not import.
int clinux_tmpfile_flags(void);
/// O_PATH | O_DIRECTORY | O_CLOEXEC: O_PATH is declared only with _GNU_SOURCE.
int clinux_directory_flags(void);
/// linkat(2) of an open, unnamed file: by /proc/self/fd, which needs no privilege (open(2), O_TMPFILE).
int clinux_link_fd(int fd, int dirfd, const char *name);
/// One byte of a lock file: F_OFD_SETLK with F_WRLCK. Never blocks: EAGAIN or EACCES where another open file description has it.
int clinux_ofd_try_lock(int fd, int64_t offset);
int clinux_ofd_unlock(int fd, int64_t offset);
/// F_OFD_GETLK: 1 where another open file description has the byte, 0 where none has, -1 with errno.
int clinux_ofd_is_locked(int fd, int64_t offset);
/// copy_file_range(2) from an offset to where `out` stands: shares the blocks where the file system can. Declared only with
/// _GNU_SOURCE.
ssize_t clinux_copy_range(int in, int64_t offset, int out, size_t count);
/// syncfs(2): declared only with _GNU_SOURCE.
int clinux_syncfs(int fd);
/// mallopt(3): buffers up to 4 MiB come from the heap, and up to 32 MiB that was freed stays with it. Bodies of images come and go by
/// the thousand: by default each of their pages would be given back and faulted in anew.
void clinux_keep_freed_memory(void);
/// setrlimit(2): the soft limit of open files up to the hard one, 65,536 at most.
int clinux_raise_file_limit(void);
/// mmap(2), MAP_SHARED, for reading and writing: MAP_FAILED is a macro Swift does not import. NULL on failure. Where somebody cuts the file
/// short, what is missing of it reads as zeros from then on and what is written there is lost, without a signal: a handler of SIGBUS, which
/// leaves all other memory to the handler before it, sees to that. At most 1,024 at a time (ENOMEM).
void *clinux_map_shared(int fd, size_t length);
/// munmap(2) of such a mapping.
void clinux_unmap_shared(void *memory, size_t length);
/// One step for every thread and process that maps the word, aligned to 8 bytes: add; read; and exchange, 1 where it was `expected`.
void clinux_shared_add(void *word, int64_t value);
int64_t clinux_shared_load(const void *word);
int clinux_shared_exchange(void *word, int64_t expected, int64_t desired);
/// statx(2), STATX_BTIME: when the file was made, not following a link. ENOTSUP where the file system does not know.
int clinux_birth_time(int dirfd, const char *name, struct timespec *time);
/// renameat2(2) with RENAME_NOREPLACE.
int clinux_rename_noreplace(int olddirfd, const char *oldpath, int newdirfd, const char *newpath);
/// ioctl(2), TIOCGWINSZ: columns and rows of a terminal. struct winsize is in Swift's Glibc module on some systems and not on others.
int clinux_terminal_size(int fd, int *columns, int *rows);
/// fcntl(2), F_SETFD: FD_CLOEXEC on or off.
int clinux_set_cloexec(int fd, int on);
/// fcntl(2), F_SETFL: O_NONBLOCK on or off.
int clinux_set_nonblock(int fd, int on);
/// memfd_create(2) with FD_CLOEXEC: a file in memory that has no name; -1 and errno on failure.
int clinux_memory_file(void);
/// fcntl(2), F_ADD_SEALS: nobody changes a file of clinux_memory_file any more.
int clinux_seal(int fd);
/// accept4(2) with SOCK_NONBLOCK | SOCK_CLOEXEC: declared only with _GNU_SOURCE. EINTR is retried.
int clinux_accept(int fd);
/// FS type of statfs(2), the f_type magic number.
int64_t clinux_fs_magic(int fd);

/// Starts a program as a child that the kernel ends with `death_signal` when the *thread* that called this ends
/// (prctl(2), PR_SET_PDEATHSIG): call it only from a thread that lives as long as the process should.
/// `fds[i]` becomes descriptor i of the child (-1: /dev/null), everything else is closed on exec by its own flag except
/// `keep_fd` (-1: none), which is inherited under its own number. `work_dir` (-1: the caller's) becomes its working directory, and
/// then its files are for this user alone (umask 077). `own_group` puts the child into a process group of its own,
/// so that a terminal's Ctrl-C reaches only the parent. `envp` NULL is the caller's own environment. Returns the pid; -1 with errno where fork or exec failed.
pid_t clinux_spawn(const char *path, char *const argv[], char *const envp[], const int fds[3], int keep_fd,
                   int work_dir, int death_signal, int own_group);

/// wait status macros.
int clinux_wexited(int status);
int clinux_wexitstatus(int status);
int clinux_wtermsig(int status);

extern char **environ;

/// prctl(2), PR_SET_NAME: the calling thread's name, cut to 15 bytes.
void clinux_set_thread_name(const char *name);

/// Handles signals by writing each one's number, a byte, into a pipe; returns the end to read from. Once per process (EBUSY). A
/// signal that is ignored already stays ignored: nohup(1), and a shell's background jobs, count on that.
int clinux_signal_pipe(const int *signals, int count);

/// Keeps what tcgetattr(3) says of `fd` now; a signal that ends the process as a crash does (SIGSEGV, SIGILL, SIGTRAP, SIGABRT …, and
/// SIGQUIT) first writes `text`, which must stay, to it and puts those settings back. -1 for `fd`: no more.
int clinux_restore_on_crash(int fd, const char *text);
/// Stops the process as SIGTSTP does where nobody handles it; returns when it goes on. Nothing happens where nobody could wake it.
int clinux_stop_self(void);
