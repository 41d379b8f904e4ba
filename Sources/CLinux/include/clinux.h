// What Swift's Glibc module lacks: variadic functions, macros with arguments, and system calls without a wrapper. Every function returns -1
// and sets errno on failure, like the call it wraps; see that call's manual page.
#pragma once
#include <stddef.h>
#include <stdint.h>
// epoll(7) and eventfd(2): missing in Swift's Glibc module, but callable directly.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <time.h>
// fgetxattr(2), fsetxattr(2): missing in the Glibc module.
#include <sys/xattr.h>

/// openat2(2) below `dirfd` with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS. EINTR and EAGAIN are retried. Falls back to
/// ``clinux_open_by_steps`` if the kernel or a filter rejects the call.
int clinux_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/// The same by openat(2), component by component, without following links. `..` is always EXDEV, even if it would stay below.
int clinux_open_by_steps(int dirfd, const char *path, int flags, mode_t mode);
/// open(2): variadic, so not callable from Swift.
int clinux_open(const char *path, int flags, mode_t mode);
/// O_TMPFILE | O_RDWR | O_CLOEXEC: a macro Swift does not import.
int clinux_tmpfile_flags(void);
/// O_PATH | O_DIRECTORY | O_CLOEXEC: O_PATH is declared only with _GNU_SOURCE.
int clinux_directory_flags(void);
/// linkat(2) of an open, unnamed file through /proc/self/fd, which needs no privilege (open(2), O_TMPFILE).
int clinux_link_fd(int fd, int dirfd, const char *name);
/// F_OFD_SETLK with F_WRLCK on one byte. Never blocks: EAGAIN or EACCES if another open file description holds it.
int clinux_ofd_try_lock(int fd, int64_t offset);
int clinux_ofd_unlock(int fd, int64_t offset);
/// F_OFD_GETLK: 1 if another open file description holds the byte, 0 if none does, -1 with errno.
int clinux_ofd_is_locked(int fd, int64_t offset);
/// copy_file_range(2) from an offset to the position of `out`: shares blocks if possible. Declared only with _GNU_SOURCE.
ssize_t clinux_copy_range(int in, int64_t offset, int out, size_t count);
/// syncfs(2): declared only with _GNU_SOURCE.
int clinux_syncfs(int fd);
/// mallopt(3): allocates buffers up to 4 MiB on the heap, and keeps up to 32 MiB of freed memory. Image bodies come by the thousand: by
/// default each of their pages would be returned to the kernel and faulted in again.
void clinux_keep_freed_memory(void);
/// setrlimit(2): raises the soft limit of open files to the hard one, at most 65,536.
int clinux_raise_file_limit(void);
/// mmap(2), MAP_SHARED, for reading and writing: MAP_FAILED is a macro Swift does not import. NULL on failure. If the file is truncated,
/// missing parts read as zeros from then on and writes to them are lost, without a signal: a SIGBUS handler ensures that, and forwards
/// faults of other memory to the previous handler. At most 1,024 at a time (ENOMEM).
void *clinux_map_shared(int fd, size_t length);
void clinux_unmap_shared(void *memory, size_t length);
/// Atomic operations on an 8-byte aligned word, across threads and processes: add, load, and compare-exchange (1 if it was `expected`).
void clinux_shared_add(void *word, int64_t value);
int64_t clinux_shared_load(const void *word);
int clinux_shared_exchange(void *word, int64_t expected, int64_t desired);
/// statx(2), STATX_BTIME: time of creation, without following a link. ENOTSUP if the file system lacks it.
int clinux_birth_time(int dirfd, const char *name, struct timespec *time);
/// fstat(2), and a number for this file that no copy of it has: of its inode and its time of birth, which no call can set; if the file system
/// lacks that, of its handle (name_to_handle_at(2)), which has the inode's generation; if it lacks both, of its inode alone. It stays the same
/// when the file gets other names, dates, attributes or permissions, and is never 0. `status` is a struct stat, which belongs to the Glibc module.
int clinux_stat_file(int fd, void *status, uint32_t *identity);
/// renameat2(2) with RENAME_NOREPLACE.
int clinux_rename_noreplace(int olddirfd, const char *oldpath, int newdirfd, const char *newpath);
/// ioctl(2), TIOCGWINSZ: columns and rows of a terminal. Swift's Glibc module has struct winsize only on some systems.
int clinux_terminal_size(int fd, int *columns, int *rows);
/// fcntl(2), F_SETFD: FD_CLOEXEC on or off.
int clinux_set_cloexec(int fd, int on);
/// fcntl(2), F_SETFL: O_NONBLOCK on or off.
int clinux_set_nonblock(int fd, int on);
/// memfd_create(2) with FD_CLOEXEC: an unnamed file in memory; -1 with errno on failure.
int clinux_memory_file(void);
/// fcntl(2), F_ADD_SEALS: makes a file of clinux_memory_file immutable.
int clinux_seal(int fd);
/// accept4(2) with SOCK_NONBLOCK | SOCK_CLOEXEC: declared only with _GNU_SOURCE. EINTR is retried.
int clinux_accept(int fd);
/// Bytes that a program has taken out of a TCP socket: those received (TCP_INFO) without those in its queue (SIOCINQ). Their declaration and
/// that of the socket functions exclude each other in the Glibc module. -1 if it is none.
int64_t clinux_tcp_taken(int fd);
/// The shortest round trip of a TCP connection in microseconds (TCP_INFO): at first that of its handshake. -1 if there is none yet.
int64_t clinux_tcp_nearest(int fd);
/// f_type of statfs(2), the magic number of the file system.
int64_t clinux_fs_magic(int fd);

/// Starts a child process that the kernel kills with `death_signal` when the *thread* that called this ends (prctl(2), PR_SET_PDEATHSIG):
/// call it only from a thread that lives as long as the process should. `fds[i]` becomes descriptor i of the child (-1: /dev/null). Of the
/// others, which have FD_CLOEXEC, only `keep_fds` (-1: none) are inherited, with their numbers. `work_dir` (-1: the caller's) becomes its
/// working directory, with umask 077. `own_group` puts the child into its own process group, so that Ctrl-C in a terminal reaches only the
/// parent. `envp` NULL: the caller's environment. Returns the pid; -1 with errno if fork or exec failed.
pid_t clinux_spawn(const char *path, char *const argv[], char *const envp[], const int fds[3],
                   const int keep_fds[2], int work_dir, int death_signal, int own_group);

/// The environment without variables of these names (the list ends with NULL): an array for the caller to free(3), whose strings are those of the
/// environment. NULL without memory.
char **clinux_environment_without(const char *const names[]);

/// memmem(3), in linear time: where `part` is first in `bytes`, or -1.
int64_t clinux_find(const void *bytes, size_t count, const void *part, size_t part_count);

/// Macros of wait(2).
int clinux_wexited(int status);
int clinux_wexitstatus(int status);
int clinux_wtermsig(int status);

extern char **environ;

/// prctl(2), PR_SET_NAME: names the calling thread; truncated to 15 bytes.
void clinux_set_thread_name(const char *name);

/// Handles signals by writing their numbers as bytes into a pipe; returns its read end. Once per process (EBUSY). Ignored signals stay
/// ignored: nohup(1) and background jobs of shells rely on that.
int clinux_signal_pipe(const int *signals, int count);

/// Saves the settings of `fd` (tcgetattr(3)); a fatal signal (SIGSEGV, SIGILL, SIGTRAP, SIGABRT …, and SIGQUIT) first writes `text`, which
/// must stay valid, to it and restores them. -1 for `fd` disables this.
int clinux_restore_on_crash(int fd, const char *text);
/// Stops the process like an unhandled SIGTSTP; returns when it is resumed. Does nothing if no shell could resume it.
int clinux_stop_self(void);
