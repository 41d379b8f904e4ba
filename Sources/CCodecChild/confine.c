// What a child may still do once it sees strangers' bytes: compute, take memory, and talk on the socket that it has.
#define _GNU_SOURCE
#include "codec_child.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW_WORD = 0 };
#else
enum { LOW_WORD = 4 };
#endif

// MARK: System calls

#ifdef ARCHITECTURE
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/// Memory, unless it is to hold code.
#define ALLOW_DATA(name)                                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(offsetof(struct seccomp_data, args[2]) + LOW_WORD),    \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS),                       \
        RETURN(SECCOMP_RET_ALLOW)
/// A call that a library makes, and does without.
#define REFUSE(name, code) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(SECCOMP_RET_ERRNO | (code))

static int filter_calls(void) {
    static struct sock_filter rules[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(offsetof(struct seccomp_data, nr)),
        ALLOW(recvmsg),
        ALLOW(sendmsg),
        ALLOW(munmap),
        ALLOW_DATA(mmap),
        LOAD(offsetof(struct seccomp_data, nr)),
        ALLOW(brk),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW_DATA(mprotect),
        LOAD(offsetof(struct seccomp_data, nr)),
        ALLOW(close),
        ALLOW(futex),
        ALLOW(clock_gettime),
        ALLOW(getrandom),
        ALLOW(rt_sigreturn),
        ALLOW(restart_syscall),
        ALLOW(exit_group),
        // How sysconf(3) counts processors; no decoder asks here, since each is told to take one thread, but versions differ.
        REFUSE(sched_getaffinity, EPERM),
        REFUSE(openat, EPERM),
        RETURN(SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
}
#else
static int filter_calls(void) { return ENOSYS; }
#endif

// MARK: Files

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/// Forbids what this kernel knows of files, TCP, abstract sockets and signals; no rule allows any of it.
static int forbid_files(void) {
    struct {
        uint64_t files, network, scopes;
    } rules = {0, 0, 0};
    enum { ASK_VERSION = 1 };
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    if (version < 1) return errno;
    // By version of the interface: 13 rights, then those to link across folders, to truncate, and to control devices.
    rules.files = (1ull << (version == 1 ? 13 : version == 2 ? 14 : version < 5 ? 15 : 16)) - 1;
    if (version >= 4) rules.network = 3;
    if (version >= 6) rules.scopes = 3;
    size_t length = version >= 6 ? sizeof rules : version >= 4 ? offsetof(__typeof__(rules), scopes) : sizeof rules.files;
    long ruleset = syscall(SYS_landlock_create_ruleset, &rules, length, 0);
    if (ruleset < 0) return errno;
    int error = syscall(SYS_landlock_restrict_self, (int)ruleset, 0) == 0 ? 0 : errno;
    close((int)ruleset);
    return error;
}

// MARK: Limits

static int set_limits(void) {
    // Seconds of processor time of a child's whole life: a net for the day on which the program does not count.
    enum { LIFE = 3600 };
    // The socket, two places for messages of libraries, and what comes with a call.
    static const struct {
        int resource;
        rlim_t most;
    } limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 0}, {RLIMIT_NOFILE, 8}, {RLIMIT_MEMLOCK, 0}, {RLIMIT_CPU, LIFE}};
    int error = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit = {limits[i].most, limits[i].most};
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) != 0 && error == 0) error = errno;
    }
    return error;
}

/// Reads how much is mapped: in all, and private and writable.
static void measure(codec_hello *hello) {
    unsigned long all = 0, data = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu %*u %*u %*u %*u %lu", &all, &data) != 2) all = data = 0;
        fclose(file);
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    // Without /proc: more than the libraries take.
    hello->address_bytes = all > 0 ? all * page : 1ull << 30;
    hello->data_bytes = all > 0 ? data * page : 64ull << 20;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

void codec_child_confine(codec_hello *hello) {
    measure(hello);
#ifdef IS_SANITIZED
    // A sanitizer maps terabytes, and calls what no decoder does.
    hello->seccomp_error = hello->landlock_error = hello->limits_error = ENOSYS;
    return;
#endif
    hello->limits_error = set_limits();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        hello->seccomp_error = hello->landlock_error = errno;
    } else {
        hello->landlock_error = forbid_files();
        hello->seccomp_error = filter_calls();
    }
    if (hello->limits_error == 0) hello->layers |= CODEC_LIMITS;
    if (hello->landlock_error == 0) hello->layers |= CODEC_LANDLOCK;
    if (hello->seccomp_error == 0) hello->layers |= CODEC_SECCOMP;
}
