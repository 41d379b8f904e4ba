// The program's side of a child that decodes for it: memory, calls, and how long it waits.
#define _GNU_SOURCE
#include "codec_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
    /// Milliseconds in which a child starts and loads its libraries.
    START = 60000,
    /// Milliseconds between two looks at a child that takes long.
    LOOK = 2000,
    /// Milliseconds that it may sleep, with less than a hundredth of them used.
    SILENCE = 10000,
    /// Milliseconds from the end of its socket to that of a child that dies.
    DEATH = 2000,
    FROZEN = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW,
};

static int memory_file(uint64_t size) {
    int file = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && ftruncate(file, (off_t)size) == 0) return file;
    int error = errno;
    if (file >= 0) close(file);
    errno = error;
    return -1;
}

static int failed(int file) {
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

int codec_output(uint64_t room) {
    int file = memory_file(room);
    return file < 0 || fcntl(file, F_ADD_SEALS, FROZEN) == 0 ? file : failed(file);
}

int codec_input(const uint8_t *bytes, uint64_t count) {
    int file = memory_file(count);
    if (file < 0) return -1;
    for (uint64_t done = 0; done < count;) {
        ssize_t written = pwrite(file, bytes + done, count - done, (off_t)done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return failed(file);
        done += (uint64_t)written;
    }
    return fcntl(file, F_ADD_SEALS, FROZEN | F_SEAL_WRITE) == 0 ? file : failed(file);
}

bool codec_link_make(codec_link *link) {
    memset(link, 0, sizeof *link);
    int ends[2];
    link->socket = link->child_socket = -1;
    link->window_file = memory_file(CODEC_WINDOW);
    if (link->window_file < 0) return false;
    link->window = mmap(NULL, CODEC_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, link->window_file, 0);
    if (link->window == MAP_FAILED) link->window = NULL;
    // From now on, nobody else can map it to write.
    if (link->window && fcntl(link->window_file, F_ADD_SEALS, FROZEN | F_SEAL_FUTURE_WRITE) == 0 &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        link->socket = ends[0];
        link->child_socket = ends[1];
        return true;
    }
    int error = errno;
    codec_link_close(link);
    errno = error;
    return false;
}

void codec_link_close(codec_link *link) {
    int files[] = {link->socket, link->child_socket, link->window_file};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0) close(files[i]);
    if (link->window) munmap(link->window, CODEC_WINDOW);
    link->socket = link->child_socket = link->window_file = -1;
    link->window = NULL;
}

/// Sends a record with descriptors; 0, or -1 with errno.
static int send_record(int socket, const void *record, size_t length, const int *files, size_t count) {
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {.iov_base = (void *)(uintptr_t)record, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(control, 0, sizeof control);
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), files, count * sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length ? 0 : -1;
}

/// Takes a record of this length; a `codec_end`. Descriptors that come with it are closed by the kernel, since there is no room for them.
static int take_record(int socket, void *record, size_t length) {
    // A longer one is cut, and says so.
    struct iovec part = {.iov_base = record, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    if (received == 0 || (received < 0 && errno == ECONNRESET)) return CODEC_GONE;
    if (received < 0) return CODEC_FAILED;
    return received == (ssize_t)length && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? CODEC_ANSWERED : CODEC_WRONG;
}

static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool codec_processor_time(pid_t pid, uint64_t *nanoseconds) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return false;
    *nanoseconds = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return true;
}

int codec_link_open(codec_link *link) {
    close(link->child_socket);
    link->child_socket = -1;
    uint32_t version = CODEC_VERSION;
    int sent = send_record(link->socket, &version, sizeof version, &link->window_file, 1);
    close(link->window_file);
    link->window_file = -1;
    if (sent < 0) return errno == EPIPE || errno == ECONNRESET ? CODEC_GONE : CODEC_FAILED;
    struct pollfd wait = {.fd = link->socket, .events = POLLIN};
    for (uint64_t end = monotonic() + START * 1000000ull;;) {
        uint64_t now = monotonic();
        if (now >= end) return CODEC_SILENT;
        int ready = poll(&wait, 1, (int)((end - now) / 1000000) + 1);
        if (ready < 0 && errno != EINTR) return CODEC_FAILED;
        if (ready > 0) break;
    }
    int end = take_record(link->socket, &link->hello, sizeof link->hello);
    if (end == CODEC_ANSWERED && link->hello.version != CODEC_VERSION) return CODEC_WRONG;
    return end;
}

/// Whether a process waits for something: neither does it compute, nor does it wait for a processor, a disk, or whoever has stopped it.
static bool is_asleep(pid_t pid) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return true;
    text[count] = 0;
    // The name before it may have brackets.
    const char *name_end = strrchr(text, ')');
    return !name_end || name_end[1] != ' ' || name_end[2] == 'S';
}

/// Waits until there is something to read, or the time is up. The processor time that is left is what is left at least of all time, so nobody
/// looks before that is over, or only now and then.
static int await_answer(int socket, pid_t pid, uint64_t start, uint64_t nanoseconds, uint64_t *spent) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    uint64_t looked = 0, quiet = 0;
    for (;;) {
        uint64_t left = (nanoseconds - *spent) / 1000000 + 1;
        int ready = poll(&wait, 1, left < LOOK ? (int)left : LOOK);
        if (ready < 0 && errno != EINTR) return CODEC_FAILED;
        if (ready > 0) return CODEC_ANSWERED;
        uint64_t now;
        if (!codec_processor_time(pid, &now)) return CODEC_GONE;
        *spent = now - start;
        if (*spent > nanoseconds) return CODEC_LATE;
        uint64_t at = monotonic();
        if (quiet == 0 || *spent - looked > (at - quiet) / 100 || !is_asleep(pid)) {
            quiet = at;
            looked = *spent;
        } else if (at - quiet > SILENCE * 1000000ull) {
            return CODEC_SILENT;
        }
    }
}

/// Puts the input where the child can read it, and not change it. A descriptor to send; -1: it is in the window; -2 with errno: there is none.
static int place_input(codec_link *link, const uint8_t *bytes, uint64_t count, int body) {
    if (count <= CODEC_WINDOW) {
        memcpy(link->window, bytes, count);
        return -1;
    }
    if (body >= 0) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", body);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) return file;
    }
    int file = codec_input(bytes, count);
    return file < 0 ? -2 : file;
}

/// Limits the memory of a child to what a call may take: that of the codecs, and that of the bitmap they make.
static bool limit(codec_link *link, pid_t pid, const codec_call *call) {
    enum { SLACK = 64 << 20 };
    uint64_t most = call->request.limits.max_memory;
    if (most > 1ull << 46) most = 1ull << 46;
    uint64_t data = link->hello.data_bytes + most + (call->room > 0 ? most : 0) + SLACK;
    uint64_t address = link->hello.address_bytes + data + call->count + call->room + SLACK;
    if (data == link->data_limit && address <= link->address_limit && address + (1ull << 30) > link->address_limit) return true;
    struct rlimit data_limit = {data, RLIM_INFINITY}, address_limit = {address + (1 << 29), RLIM_INFINITY};
    if (prlimit(pid, RLIMIT_DATA, &data_limit, NULL) != 0 || prlimit(pid, RLIMIT_AS, &address_limit, NULL) != 0) return false;
    link->data_limit = data;
    link->address_limit = address_limit.rlim_cur;
    return true;
}

int codec_link_call(codec_link *link, pid_t pid, codec_call *call, const uint8_t *bytes, int body, int output,
                    uint64_t nanoseconds, codec_answer *answer, uint64_t *spent) {
    *spent = 0;
    uint64_t start;
    if (!codec_processor_time(pid, &start)) return CODEC_GONE;
    if (!limit(link, pid, call)) return errno == ESRCH ? CODEC_GONE : CODEC_FAILED;
    int files[2], count = 0, input = place_input(link, bytes, call->count, body);
    if (input == -2) return CODEC_FAILED;
    // An address of this process is nobody else's business.
    call->request.bytes = NULL;
    call->version = CODEC_VERSION;
    call->number = ++link->number;
    call->has_body = input >= 0;
    if (input >= 0) files[count++] = input;
    if (output >= 0) files[count++] = output;
    int sent = send_record(link->socket, call, sizeof *call, files, (size_t)count);
    int error = errno;
    if (input >= 0) close(input);
    errno = error;
    if (sent < 0) return errno == EPIPE || errno == ECONNRESET ? CODEC_GONE : CODEC_FAILED;
    int end = await_answer(link->socket, pid, start, nanoseconds, spent);
    if (end != CODEC_ANSWERED) return end;
    memset(answer, 0, sizeof *answer);
    end = take_record(link->socket, answer, sizeof *answer);
    uint64_t now;
    if (codec_processor_time(pid, &now)) *spent = now - start;
    if (end != CODEC_ANSWERED) return end;
    return codec_answer_is_possible(call, answer) ? CODEC_ANSWERED : CODEC_WRONG;
}

bool codec_reap(pid_t pid, int *status) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0), ready = 0;
    if (process >= 0) {
        struct pollfd wait = {.fd = process, .events = POLLIN};
        do ready = poll(&wait, 1, DEATH);
        while (ready < 0 && errno == EINTR);
        close(process);
    }
    if (ready <= 0) kill(pid, SIGKILL);
    *status = 0;
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {}
    return ready > 0 || process < 0;
}
