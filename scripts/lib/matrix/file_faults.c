// Faults of the files below one folder, for one program: LD_PRELOAD=file_faults.so FAULT_ROOT=FOLDER.
// FAULT_LOG=FILE: a line "call kind-of-file" for each call. FAULT_CALL, FAULT_KIND (all without it), FAULT_NAME (the end of its path) and FAULT_FROM choose calls:
// from that number on, all of them while the file FAULT_WHILE is there, or FAULT_COUNT of them. FAULT_DO: an errno's number, or "before" or "after": the process is killed.
// FAULT_HIT is a file made at the first hit. Calls are counted over all threads, which strace(1) cannot.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long (*kernel)(long, ...);
static const char *root, *call_wanted, *kind_wanted, *name_wanted, *flag, *hit;
static size_t root_size;
static int log_file = -1, error_wanted;
static long from = 1, most;
static char moment;
static atomic_long seen;

__attribute__((constructor)) static void begin(void) {
    *(void **)&kernel = dlsym(RTLD_NEXT, "syscall");
    const char *name = getenv("FAULT_LOG"), *text;
    if (name) log_file = (int)kernel(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    call_wanted = getenv("FAULT_CALL");
    kind_wanted = getenv("FAULT_KIND");
    name_wanted = getenv("FAULT_NAME");
    flag = getenv("FAULT_WHILE");
    hit = getenv("FAULT_HIT");
    if ((text = getenv("FAULT_FROM"))) from = atol(text);
    if ((text = getenv("FAULT_COUNT"))) most = atol(text);
    if ((text = getenv("FAULT_DO"))) {
        error_wanted = atoi(text);
        moment = error_wanted ? 0 : text[0];
    }
    root = getenv("FAULT_ROOT");
    root_size = root ? strlen(root) : 0;
}

static int ends_with(const char *text, const char *end) {
    size_t size = strlen(text), part = strlen(end);
    return size >= part && strcmp(text + size - part, end) == 0;
}

static int is_hex(const char *text, size_t n) { return strspn(text, "0123456789abcdef") >= n; }

// What a path below the root is: names that differ between two runs become a word.
static int shape(const char *path, char *out, size_t room) {
    if (!root || strncmp(path, root, root_size) != 0 || (path[root_size] != '/' && path[root_size] != 0)) return 0;
    size_t at = 0;
    out[0] = 0;
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path + root_size);
    char *rest = NULL, *before = "";
    for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        const char *word = part;
        size_t n = strcspn(part, " ");
        if (part[0] == '#') word = "unnamed";
        else if (strncmp(part, ".t-", 3) == 0) word = "temporary";
        else if (n == 1 && is_hex(part, 1)) word = "x";
        else if (n >= 62 && is_hex(part, 62)) word = part[n - 1] == 'm' ? "record" : "image";
        else if (strcmp(before, "busy") == 0) word = "file";
        else if (strcmp(before, "bad") == 0) word = "file";
        before = part;
        at += (size_t)snprintf(out + at, at < room ? room - at : 0, "%s%s", at ? "/" : "", word);
        if (at >= room) return 0;
    }
    if (!at) snprintf(out, room, ".");
    return 1;
}

static int of_fd(int fd, char *path) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = kernel(SYS_readlinkat, AT_FDCWD, link, path, (long)PATH_MAX - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return path[0] == '/';
}

static int of_at(int dirfd, const char *name, char *path) {
    if (!name) name = "";
    if (name[0] == '/') return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    if (dirfd == AT_FDCWD || !of_fd(dirfd, path)) return 0;
    size_t n = strlen(path);
    while (strncmp(name, "./", 2) == 0) name += 2;
    if (name[0] && strcmp(name, ".") != 0) snprintf(path + n, PATH_MAX - n, "/%s", name);
    return 1;
}

// 0: goes on; 1: fails with errno; 2: is killed afterwards.
static int meet(const char *call, const char *path) {
    char kind[256];
    if (!shape(path, kind, sizeof kind)) return 0;
    if (log_file >= 0) {
        char line[320];
        int n = snprintf(line, sizeof line, "%s %s\n", call, kind);
        kernel(SYS_write, log_file, line, n);
    }
    if (!call_wanted || strcmp(call, call_wanted) != 0 || (kind_wanted && strcmp(kind, kind_wanted) != 0)) return 0;
    if (name_wanted && !ends_with(path, name_wanted)) return 0;
    long number = ++seen;
    if (number < from || (most && number >= from + most)) return 0;
    if (flag && kernel(SYS_faccessat, AT_FDCWD, flag, F_OK) != 0) return 0;
    if (hit) {
        long fd = kernel(SYS_openat, AT_FDCWD, hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0) kernel(SYS_close, fd);
    }
    if (moment == 'b') kernel(SYS_kill, getpid(), SIGKILL);
    if (moment == 'a') return 2;
    errno = error_wanted;
    return 1;
}

static int by_fd(const char *call, int fd) {
    int saved = errno;
    char path[PATH_MAX];
    int found = root && fd >= 0 && of_fd(fd, path) ? meet(call, path) : 0;
    if (found != 1) errno = saved;
    return found;
}

static int by_at(const char *call, int dirfd, const char *name) {
    int saved = errno;
    char path[PATH_MAX];
    int found = root && of_at(dirfd, name, path) ? meet(call, path) : 0;
    if (found != 1) errno = saved;
    return found;
}

static void end(int found) {
    if (found == 2) kernel(SYS_kill, getpid(), SIGKILL);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

#define WRAP(type, name, parameters, arguments, failed, call, look) \
    type name parameters { \
        REAL(name); \
        int found = look; \
        (void)call; \
        if (found == 1) return failed; \
        type result = real arguments; \
        end(found); \
        return result; \
    }
#define FD(type, name, call, parameters, arguments) WRAP(type, name, parameters, arguments, -1, call, by_fd(call, fd))
#define AT(type, name, call, parameters, arguments) WRAP(type, name, parameters, arguments, -1, call, by_at(call, at, path))
// Of those that have two names the second is for large files, whose types are the same here, but for the name of a structure.
#define LONG(kind, type, name, call, parameters, arguments) kind(type, name, call, parameters, arguments) kind(type, name##64, call, parameters, arguments)
#define STAT(kind, name, call, type, first, arguments) \
    kind(int, name, call, (first, struct type *s), arguments) kind(int, name##64, call, (first, struct type##64 *s), arguments)

FD(ssize_t, read, "read", (int fd, void *b, size_t n), (fd, b, n))
FD(ssize_t, write, "write", (int fd, const void *b, size_t n), (fd, b, n))
LONG(FD, ssize_t, pread, "pread64", (int fd, void *b, size_t n, off_t o), (fd, b, n, o))
LONG(FD, ssize_t, pwrite, "pwrite64", (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
FD(ssize_t, writev, "writev", (int fd, const struct iovec *v, int n), (fd, v, n))
FD(ssize_t, readv, "readv", (int fd, const struct iovec *v, int n), (fd, v, n))
LONG(FD, int, ftruncate, "ftruncate", (int fd, off_t n), (fd, n))
LONG(FD, int, fallocate, "fallocate", (int fd, int m, off_t o, off_t n), (fd, m, o, n))
FD(int, fsync, "fsync", (int fd), (fd))
FD(int, fdatasync, "fdatasync", (int fd), (fd))
FD(int, syncfs, "syncfs", (int fd), (fd))
STAT(FD, fstat, "fstat", stat, int fd, (fd, s))
STAT(FD, fstatfs, "fstatfs", statfs, int fd, (fd, s))
STAT(FD, fstatvfs, "fstatfs", statvfs, int fd, (fd, s))
FD(int, fchmod, "fchmod", (int fd, mode_t m), (fd, m))
FD(int, fchown, "fchown", (int fd, uid_t u, gid_t g), (fd, u, g))
FD(int, futimens, "utimensat", (int fd, const struct timespec t[2]), (fd, t))
FD(int, flock, "flock", (int fd, int o), (fd, o))
FD(ssize_t, fgetxattr, "fgetxattr", (int fd, const char *k, void *v, size_t n), (fd, k, v, n))
FD(int, fsetxattr, "fsetxattr", (int fd, const char *k, const void *v, size_t n, int f), (fd, k, v, n, f))
FD(int, fremovexattr, "fremovexattr", (int fd, const char *k), (fd, k))
WRAP(DIR *, fdopendir, (int fd), (fd), NULL, "getdents64", by_fd("getdents64", fd))
WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o), MAP_FAILED, "mmap", by_fd("mmap", fd))
WRAP(void *, mmap64, (void *a, size_t n, int p, int f, int fd, off64_t o), (a, n, p, f, fd, o), MAP_FAILED, "mmap", by_fd("mmap", fd))
WRAP(ssize_t, copy_file_range, (int i, off64_t *a, int fd, off64_t *b, size_t n, unsigned f), (i, a, fd, b, n, f), -1, "copy_file_range", by_fd("copy_file_range", fd))

AT(int, mkdirat, "mkdirat", (int at, const char *path, mode_t m), (at, path, m))
AT(int, unlinkat, "unlinkat", (int at, const char *path, int f), (at, path, f))
AT(int, fstatat, "newfstatat", (int at, const char *path, struct stat *s, int f), (at, path, s, f))
AT(int, fstatat64, "newfstatat", (int at, const char *path, struct stat64 *s, int f), (at, path, s, f))
AT(int, statx, "statx", (int at, const char *path, int f, unsigned m, struct statx *s), (at, path, f, m, s))
AT(int, faccessat, "faccessat2", (int at, const char *path, int m, int f), (at, path, m, f))
AT(int, utimensat, "utimensat", (int at, const char *path, const struct timespec t[2], int f), (at, path, t, f))
AT(ssize_t, readlinkat, "readlinkat", (int at, const char *path, char *b, size_t n), (at, path, b, n))
WRAP(int, linkat, (int o, const char *p, int at, const char *path, int f), (o, p, at, path, f), -1, "linkat", by_at("linkat", at, path))
WRAP(int, renameat, (int o, const char *p, int at, const char *path), (o, p, at, path), -1, "renameat", by_at("renameat", at, path))
WRAP(int, renameat2, (int o, const char *p, int at, const char *path, unsigned f), (o, p, at, path, f), -1, "renameat2", by_at("renameat2", at, path))

#define NAME(type, name, call, parameters, arguments) WRAP(type, name, parameters, arguments, -1, call, by_at(call, AT_FDCWD, path))
NAME(int, mkdir, "mkdir", (const char *path, mode_t m), (path, m))
NAME(int, rmdir, "rmdir", (const char *path), (path))
NAME(int, unlink, "unlink", (const char *path), (path))
STAT(NAME, stat, "stat", stat, const char *path, (path, s))
STAT(NAME, lstat, "lstat", stat, const char *path, (path, s))
NAME(int, access, "access", (const char *path, int m), (path, m))
STAT(NAME, statfs, "statfs", statfs, const char *path, (path, s))
NAME(int, chmod, "chmod", (const char *path, mode_t m), (path, m))
WRAP(char *, realpath, (const char *path, char *b), (path, b), NULL, "readlink", by_at("readlink", AT_FDCWD, path))
WRAP(int, rename, (const char *p, const char *path), (p, path), -1, "rename", by_at("rename", AT_FDCWD, path))

// Of these the last parameter is there or not.
#define OPEN(name, call, at, head, arguments) \
    int name head { \
        REAL(name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | __O_TMPFILE)) { \
            va_list list; \
            va_start(list, flags); \
            mode = va_arg(list, mode_t); \
            va_end(list); \
        } \
        int found = by_at(call, at, path); \
        if (found == 1) return -1; \
        int result = real arguments; \
        end(found); \
        return result; \
    }
OPEN(open, "openat", AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, "openat", AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, "openat", at, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, "openat", at, (int at, const char *path, int flags, ...), (at, path, flags, mode))

#define VARIADIC(name, call, second) \
    int name(int fd, second what, ...) { \
        REAL(name); \
        va_list list; \
        va_start(list, what); \
        void *more = va_arg(list, void *); \
        va_end(list); \
        int found = by_fd(call, fd); \
        if (found == 1) return -1; \
        int result = real(fd, what, more); \
        end(found); \
        return result; \
    }
VARIADIC(fcntl, "fcntl", int)
VARIADIC(fcntl64, "fcntl", int)
VARIADIC(ioctl, "ioctl", unsigned long)

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (!kernel) *(void **)&kernel = dlsym(RTLD_NEXT, "syscall");
    int found = 0;
    if (number == SYS_openat2) found = by_at("openat2", (int)a[0], (const char *)a[1]);
    else if (number == SYS_renameat2) found = by_at("renameat2", (int)a[2], (const char *)a[3]);
    else if (number == SYS_syncfs) found = by_fd("syncfs", (int)a[0]);
    if (found == 1) return -1;
    long result = kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    end(found);
    return result;
}
