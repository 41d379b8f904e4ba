#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/// Reports a symbolic link like openat2(2), where open(2) has another error or opens it.
static int refuse_link(int dirfd, const char *name, int error) {
    struct stat status;
    bool is_link = fstatat(dirfd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : error;
    return -1;
}

/// Opens one component of a path unless it is a symbolic link.
static int open_component(int dirfd, const char *name, int flags, mode_t mode) {
    int fd;
    do fd = openat(dirfd, name, flags | O_NOFOLLOW, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return errno == ENOTDIR ? refuse_link(dirfd, name, ENOTDIR) : -1;
    struct stat status;
    // With O_PATH, O_NOFOLLOW opens the link itself.
    if (!(flags & O_PATH) || fstat(fd, &status) != 0 || !S_ISLNK(status.st_mode)) return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

int clinux_open_by_steps(int dirfd, const char *path, int flags, mode_t mode) {
    if (*path == '/') {
        errno = EXDEV;
        return -1;
    }
    int folder = dirfd;
    for (;;) {
        char name[NAME_MAX + 1];
        size_t length = strcspn(path, "/");
        if (length == 0 || length > NAME_MAX) {
            errno = length == 0 ? ENOENT : ENAMETOOLONG;
            break;
        }
        memcpy(name, path, length);
        name[length] = 0;
        if (strcmp(name, "..") == 0) {
            errno = EXDEV;
            break;
        }
        path += length;
        bool ends = *path == 0;
        while (*path == '/') path++;
        // A trailing slash requires a folder.
        bool is_last = *path == 0;
        int how = is_last ? flags | (ends ? 0 : O_DIRECTORY) : O_PATH | O_DIRECTORY | O_CLOEXEC;
        int next = open_component(folder, name, how, mode);
        int error = errno;
        if (folder != dirfd) close(folder);
        errno = error;
        if (next < 0 || is_last) return next;
        folder = next;
    }
    int error = errno;
    if (folder != dirfd) close(folder);
    errno = error;
    return -1;
}

int clinux_open_beneath(int dirfd, const char *path, int flags, mode_t mode) {
    static atomic_bool is_refused;
    if (atomic_load_explicit(&is_refused, memory_order_relaxed)) return clinux_open_by_steps(dirfd, path, flags, mode);
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (uint64_t)(unsigned)flags;
    // Otherwise EINVAL. O_TMPFILE includes the bit of O_DIRECTORY.
    how.mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
        if (fd >= 0) return (int)fd;
        // A seccomp filter cannot inspect flags behind a pointer and rejects the whole call: ENOSYS with systemd's RestrictSUIDSGID= and
        // gVisor, EPERM with container engines before 2020. If EPERM is the file's own, open(2) repeats it.
        if (errno == ENOSYS) atomic_store_explicit(&is_refused, true, memory_order_relaxed);
        if (errno == ENOSYS || errno == EPERM) return clinux_open_by_steps(dirfd, path, flags, mode);
        // EAGAIN: a rename raced with the resolution (openat2(2)), independently of the path.
        if (errno != EINTR && !(errno == EAGAIN && tries < 100)) return -1;
    }
}

int clinux_open(const char *path, int flags, mode_t mode) {
    for (;;) {
        int fd = open(path, flags, mode);
        if (fd >= 0 || errno != EINTR) return fd;
    }
}

int clinux_tmpfile_flags(void) { return O_TMPFILE | O_RDWR | O_CLOEXEC; }

int clinux_directory_flags(void) { return O_PATH | O_DIRECTORY | O_CLOEXEC; }

int clinux_link_fd(int fd, int dirfd, const char *name) {
    // By the descriptor itself: half the cost of /proc. Needs CAP_DAC_READ_SEARCH before Linux 6.10.
    if (linkat(fd, "", dirfd, name, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT) return -1;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW);
}

static int ofd_lock(int fd, int64_t offset, short type) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = 1;
    for (;;) {
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return 0;
        if (errno != EINTR) return -1;
    }
}

int clinux_ofd_try_lock(int fd, int64_t offset) { return ofd_lock(fd, offset, F_WRLCK); }
int clinux_ofd_unlock(int fd, int64_t offset) { return ofd_lock(fd, offset, F_UNLCK); }

int clinux_ofd_is_locked(int fd, int64_t offset) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = 1;
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return -1;
    return lock.l_type != F_UNLCK;
}

ssize_t clinux_copy_range(int in, int64_t offset, int out, size_t count) {
    off64_t at = offset;
    return copy_file_range(in, &at, out, NULL, count, 0);
}

int clinux_syncfs(int fd) { return syncfs(fd); }

// Guards mapped files against truncation by others. A page beyond the end of a file raises SIGBUS, and checking the size first does not
// help: it may change before the next instruction.
enum { MOST_GUARDED = 1024 };
static struct guarded {
    _Atomic(uintptr_t) start;
    _Atomic(size_t) length;
} guarded[MOST_GUARDED];
static struct sigaction before_guard;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;
static int guard_error;
static uintptr_t page_size;

// Replaces the missing page by zeros and resumes the instruction. Reads then return zeros and writes are lost, which the code that mapped
// the file detects. mmap(2) is a plain system call in every libc for Linux.
static void mend_page(int signal, siginfo_t *info, void *context) {
    int code = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    for (size_t i = 0; i < MOST_GUARDED; i++) {
        uintptr_t start = atomic_load(&guarded[i].start);
        if (start == 0 || at < start || at - start >= atomic_load(&guarded[i].length)) continue;
        void *page = (void *)(at & ~(page_size - 1));
        if (mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
        errno = code;
        return;
    }
    // Not a guarded mapping: behave as without this handler. Without a previous one, the instruction faults again and ends the process.
    errno = code;
    if (before_guard.sa_flags & SA_SIGINFO) {
        before_guard.sa_sigaction(signal, info, context);
    } else if (before_guard.sa_handler != SIG_DFL && before_guard.sa_handler != SIG_IGN) {
        before_guard.sa_handler(signal);
    } else {
        sigaction(SIGBUS, &before_guard, NULL);
    }
}

static void install_guard(void) {
    struct sigaction action;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = mend_page;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &before_guard) < 0 || sigaction(SIGBUS, &action, NULL) < 0) guard_error = errno;
}

void *clinux_map_shared(int fd, size_t length) {
    pthread_once(&guard_once, install_guard);
    if (guard_error != 0) {
        errno = guard_error;
        return NULL;
    }
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return NULL;
    for (size_t i = 0; i < MOST_GUARDED; i++) {
        size_t unused = 0;
        if (!atomic_compare_exchange_strong(&guarded[i].length, &unused, length)) continue;
        atomic_store(&guarded[i].start, (uintptr_t)memory);
        return memory;
    }
    munmap(memory, length);
    errno = ENOMEM;
    return NULL;
}

void clinux_unmap_shared(void *memory, size_t length) {
    for (size_t i = 0; i < MOST_GUARDED; i++) {
        if (atomic_load(&guarded[i].start) != (uintptr_t)memory) continue;
        atomic_store(&guarded[i].start, 0);
        atomic_store(&guarded[i].length, 0);
        break;
    }
    munmap(memory, length);
}

void clinux_shared_add(void *word, int64_t value) { __atomic_fetch_add((int64_t *)word, value, __ATOMIC_RELAXED); }

int64_t clinux_shared_load(const void *word) { return __atomic_load_n((const int64_t *)word, __ATOMIC_ACQUIRE); }

int clinux_shared_exchange(void *word, int64_t expected, int64_t desired) {
    return __atomic_compare_exchange_n((int64_t *)word, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int clinux_birth_time(int dirfd, const char *name, struct timespec *time) {
    struct statx facts;
    if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &facts) != 0) return -1;
    if (!(facts.stx_mask & STATX_BTIME)) {
        errno = ENOTSUP;
        return -1;
    }
    time->tv_sec = facts.stx_btime.tv_sec;
    time->tv_nsec = facts.stx_btime.tv_nsec;
    return 0;
}

int clinux_rename_noreplace(int olddirfd, const char *oldpath, int newdirfd, const char *newpath) {
    return renameat2(olddirfd, oldpath, newdirfd, newpath, RENAME_NOREPLACE);
}

int clinux_set_cloexec(int fd, int on) { return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0); }

int clinux_set_nonblock(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return -1;
    return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int clinux_memory_file(void) { return memfd_create("prefetch", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int clinux_seal(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

int clinux_accept(int fd) {
    for (;;) {
        int connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection >= 0 || errno != EINTR) return connection;
    }
}

int64_t clinux_tcp_taken(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    int queued;
    // In this order: what arrives in between makes the result smaller, never larger.
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0 || ioctl(fd, SIOCINQ, &queued) < 0) return -1;
    if (length < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) {
        errno = ENOTSUP;
        return -1;
    }
    return (int64_t)info.tcpi_bytes_received - queued;
}

int64_t clinux_tcp_nearest(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return -1;
    if (length < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt) {
        errno = ENOTSUP;
        return -1;
    }
    // TCP_ESTABLISHED of netinet/tcp.h, which excludes linux/tcp.h.
    if (info.tcpi_state != 1 || info.tcpi_min_rtt == UINT32_MAX) {
        errno = EAGAIN;
        return -1;
    }
    return info.tcpi_min_rtt;
}

int64_t clinux_fs_magic(int fd) {
    struct statfs fs;
    return fstatfs(fd, &fs) < 0 ? -1 : (int64_t)fs.f_type;
}

// Runs in the child between vfork and exec: only async-signal-safe calls (signal-safety(7)).
static void child(const char *path, char *const argv[], char *const envp[], const int fds[3], const int keep_fds[2],
                  int work_dir, int death_signal, int own_group, pid_t parent, int report) {
    int saved[3];
    for (int i = 0; i < 3; i++) {
        // Move them above 2 first, so that no dup2 below overwrites a descriptor still needed.
        int fd = fds[i] >= 0 ? fds[i] : open("/dev/null", O_RDWR | O_CLOEXEC);
        saved[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (saved[i] < 0) goto fail;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(saved[i], i) < 0) goto fail;
    for (int i = 0; i < 2; i++)
        if (keep_fds[i] >= 0 && fcntl(keep_fds[i], F_SETFD, 0) < 0) goto fail;
    if (work_dir >= 0) {
        if (fchdir(work_dir) < 0) goto fail;
        umask(077);
    }
    if (own_group && setpgid(0, 0) < 0) goto fail;
    // Handlers first: with signals unblocked, a handler of the parent would run here on its behalf.
    for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (death_signal && prctl(PR_SET_PDEATHSIG, death_signal) < 0) goto fail;
    // If the parent died before the prctl, the signal would never be sent.
    if (death_signal && getppid() != parent) _exit(127);
    execve(path, argv, envp ? envp : environ);
fail:;
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

static int has_name(const char *variable, const char *const names[]) {
    for (; *names; names++) {
        size_t length = strlen(*names);
        if (strncmp(variable, *names, length) == 0 && variable[length] == '=') return 1;
    }
    return 0;
}

char **clinux_environment_without(const char *const names[]) {
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **out = malloc((count + 1) * sizeof *out);
    if (!out) return NULL;
    for (size_t i = 0; i < count; i++)
        if (!has_name(environ[i], names)) out[kept++] = environ[i];
    out[kept] = NULL;
    return out;
}

pid_t clinux_spawn(const char *path, char *const argv[], char *const envp[], const int fds[3],
                   const int keep_fds[2], int work_dir, int death_signal, int own_group) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0) return -1;
    pid_t parent = getpid();
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    // Saves the copy of the page tables, about 1 ms. Until exec the child runs in the parent's memory, and changes nothing that it uses.
    pid_t pid = vfork();
    if (pid == 0) child(path, argv, envp, fds, keep_fds, work_dir, death_signal, own_group, parent, report[1]);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        errno = saved;
        return -1;
    }
    int error = 0;
    ssize_t n;
    do n = read(report[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof error) {
        waitpid(pid, NULL, 0);
        errno = error;
        return -1;
    }
    return pid;
}

int clinux_wexited(int status) { return WIFEXITED(status); }
int clinux_wexitstatus(int status) { return WEXITSTATUS(status); }
int clinux_wtermsig(int status) { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

void clinux_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static int signal_writer = -1;

static void write_signal(int signal) {
    int saved = errno;
    unsigned char byte = (unsigned char)signal;
    // A full pipe loses the signal, but has unread signals.
    ssize_t ignored = write(signal_writer, &byte, 1);
    (void)ignored;
    errno = saved;
}

int clinux_signal_pipe(const int *signals, int count) {
    if (signal_writer >= 0) {
        errno = EBUSY;
        return -1;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    if (clinux_set_nonblock(ends[1], 1) < 0) return -1;
    signal_writer = ends[1];
    for (int i = 0; i < count; i++) {
        struct sigaction old, action;
        if (sigaction(signals[i], NULL, &old) < 0) return -1;
        if (old.sa_handler == SIG_IGN) continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = write_signal;
        action.sa_flags = SA_RESTART;
        sigfillset(&action.sa_mask);
        if (sigaction(signals[i], &action, NULL) < 0) return -1;
    }
    return ends[0];
}

static const char *crash_text;
static size_t crash_length;
static int crash_fd = -1;
static struct termios crash_settings;

// Only async-signal-safe calls (signal-safety(7)); the handler is removed on its first signal, so the fault itself then ends the process.
static void restore_terminal(int signal) {
    (void)signal;
    if (crash_fd < 0) return;
    ssize_t ignored = write(crash_fd, crash_text, crash_length);
    (void)ignored;
    tcsetattr(crash_fd, TCSANOW, &crash_settings);
}

static void restore_and_end(int number) {
    restore_terminal(number);
    raise(number);
}

int clinux_restore_on_crash(int fd, const char *text) {
    if (fd < 0) {
        crash_fd = -1;
        return 0;
    }
    if (tcgetattr(fd, &crash_settings) < 0) return -1;
    crash_text = text;
    crash_length = strlen(text);
    crash_fd = fd;
    // After these, so that a truncated mapped file is not a crash.
    pthread_once(&guard_once, install_guard);
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT, SIGSYS, SIGQUIT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = restore_and_end;
        action.sa_flags = SA_RESETHAND;
        if (crashes[i] == SIGBUS && guard_error == 0) {
            before_guard = action;
            continue;
        }
        if (sigaction(crashes[i], &action, NULL) < 0) return -1;
    }
    return 0;
}

int clinux_stop_self(void) {
    struct sigaction old, action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    if (sigaction(SIGTSTP, &action, &old) < 0) return -1;
    // To this thread, which may have blocked it (libdispatch's threads do), so that the process stops before the next line. Ignored if no
    // shell could resume it (orphaned process group).
    sigset_t stop, mask;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, &mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return sigaction(SIGTSTP, &old, NULL);
}

void clinux_keep_freed_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

int clinux_raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    if (limit.rlim_cur >= limit.rlim_max || limit.rlim_cur >= 65536) return 0;
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int clinux_terminal_size(int fd, int *columns, int *rows) {
    struct winsize size = {0};
    if (ioctl(fd, TIOCGWINSZ, &size) != 0) { return -1; }
    *columns = size.ws_col;
    *rows = size.ws_row;
    return 0;
}

int64_t clinux_find(const void *bytes, size_t count, const void *part, size_t part_count) {
    const char *found = memmem(bytes, count, part, part_count);
    return found ? found - (const char *)bytes : -1;
}
