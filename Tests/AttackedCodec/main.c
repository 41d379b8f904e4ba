// The child that decodes, with an attacker in it: what it is told by its first argument is done in place of the call, as code would that has taken over
// a decoder. What the kernel lets happen is told in the message of the answer.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codec_child.h"

static const char *attack, *target;
static pid_t program;
static volatile int everlasting;

/// Answers that the image is damaged, with what has come of an attempt.
static bool tell(int socket, const codec_call *call, long result) {
    codec_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.version = CODEC_VERSION;
    answer.number = call->number;
    answer.orientation = 1;
    answer.status = IMAGE_CODEC_DAMAGED;
    snprintf(answer.message, sizeof answer.message, "attempt %s %ld errno %d", attack, result, result < 0 ? errno : 0);
    return codec_child_answer(socket, &answer);
}

static bool is(const char *name) { return strcmp(attack, name) == 0; }

static long connect_to(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, sizeof address);
}

static long run_code(void) {
    // The instruction that returns.
    static const unsigned char code[] = {0xC3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
    memcpy(page, code, sizeof code);
    return 0;
}

/// Makes a page writable, and changes a byte of the body.
static long write_bytes(const uint8_t *bytes) {
    void *page = (void *)((uintptr_t)bytes & ~(uintptr_t)4095);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) return -1;
    *(uint8_t *)(uintptr_t)bytes ^= 0xFF;
    return 0;
}

static long map_to_write(int body) {
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, body, 0);
    if (page == MAP_FAILED) return -1;
    page[0] ^= 0xFF;
    return 0;
}

static long exhaust(void) {
    for (;;) {
        char *memory = malloc(16 << 20);
        if (!memory) return -1;
        memset(memory, 1, 16 << 20);
    }
}

/// Answers with one field wrong.
static bool lie(int socket, const codec_call *call, const char *field) {
    codec_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.version = CODEC_VERSION;
    answer.number = call->number;
    answer.orientation = answer.frame_count = 1;
    answer.width = call->known_width ? call->known_width : 4;
    answer.height = call->known_height ? call->known_height : 4;
    if (call->room > 0) {
        answer.pixel_width = answer.width;
        answer.pixel_height = answer.rows = answer.height;
        answer.channels = 3;
        answer.pixel_frames = 1;
        answer.pixels = 3ull * answer.width * answer.height;
        answer.durations = 4;
    }
    static const struct {
        const char *name;
        size_t offset, length;
        uint64_t value;
    } lies[] = {
#define FIELD(name, value) {#name, offsetof(codec_answer, name), sizeof(((codec_answer *)0)->name), value}
        FIELD(version, 99), FIELD(status, 77), FIELD(number, 4711), FIELD(width, 0xFFFFFFFF), FIELD(height, 0),
        FIELD(orientation, 9), FIELD(frame_count, 0), FIELD(has_alpha, 2), FIELD(color, 66),
        FIELD(warning_count, 9), FIELD(pixel_width, 0xFFFFFFFF), FIELD(pixel_height, 0x80000000), FIELD(channels, 5),
        FIELD(pixel_frames, 1000), FIELD(rows, 0xFFFFFFFF), FIELD(pixels, UINT64_MAX), FIELD(durations, 4096),
        FIELD(exif, UINT64_MAX - 8), FIELD(icc, 1ull << 40),
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        if (strcmp(field, lies[i].name) == 0) memcpy((char *)&answer + lies[i].offset, &lies[i].value, lies[i].length);
    if (strcmp(field, "message") == 0) answer.status = IMAGE_CODEC_DAMAGED;
    if (strcmp(field, "text") == 0) {
        answer.status = IMAGE_CODEC_DAMAGED;
        memset(answer.message, 0x1B, sizeof answer.message);
        return codec_child_answer(socket, &answer);
    }
    struct iovec part = {.iov_base = &answer, .iov_len = strcmp(field, "length") == 0 ? 17 : sizeof answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(socket, &message, MSG_NOSIGNAL) > 0;
}

/// Says yes, and hands over a descriptor with it.
static bool hand_over(int socket, const codec_call *call) {
    codec_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.version = CODEC_VERSION;
    answer.number = call->number;
    answer.orientation = answer.frame_count = 1;
    char control[CMSG_SPACE(sizeof(int))];
    memset(control, 0, sizeof control);
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &socket, sizeof socket);
    return sendmsg(socket, &message, MSG_NOSIGNAL) > 0;
}

static bool strike(int socket, const codec_call *call, const uint8_t *bytes, int body, int output) {
    (void)output;
    char *const words[] = {(char *)(uintptr_t)"/bin/true", NULL};
    // Only in images of this width, where there is one.
    if (target && is("crash") && call->known_width != (uint32_t)atoi(target)) return false;
    if (is("crash")) *(volatile int *)(uintptr_t)8 = 1;
    if (is("spin")) while (!everlasting) {}
    if (is("sleep")) syscall(SYS_futex, &everlasting, 0, 0, NULL, NULL, 0);
    if (is("exit")) _exit(0);
    if (is("exhaust")) {
        codec_answer answer;
        exhaust();
        memset(&answer, 0, sizeof answer);
        answer.version = CODEC_VERSION;
        answer.number = call->number;
        answer.orientation = 1;
        answer.status = IMAGE_CODEC_NO_MEMORY;
        strcpy(answer.message, "no memory");
        return codec_child_answer(socket, &answer);
    }
    if (is("descriptor")) return hand_over(socket, call);
    if (is("lie")) return lie(socket, call, target);
    if (is("open")) return tell(socket, call, open(target, O_RDONLY));
    if (is("create")) return tell(socket, call, open(target, O_WRONLY | O_CREAT, 0600));
    if (is("proc")) return tell(socket, call, open("/proc/self/mem", O_RDWR));
    if (is("memfd")) return tell(socket, call, memfd_create("x", 0));
    if (is("connect")) return tell(socket, call, connect_to(target));
    if (is("kill")) return tell(socket, call, kill(program, SIGKILL));
    if (is("fork")) return tell(socket, call, fork());
    if (is("exec")) return tell(socket, call, execv(words[0], words));
    if (is("code")) return tell(socket, call, run_code());
    if (is("limits")) return tell(socket, call, setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}));
    if (is("ptrace")) return tell(socket, call, syscall(SYS_ptrace, 16, program, 0, 0));
    if (is("bytes")) return tell(socket, call, write_bytes(bytes));
    if (is("map")) return tell(socket, call, map_to_write(body));
    if (is("write")) return tell(socket, call, write(body, "x", 1));
    if (is("truncate")) return tell(socket, call, ftruncate(body, 0));
    return false;
}

int main(int count, char **words) {
    attack = count > 1 ? words[1] : "none";
    target = count > 2 ? words[2] : NULL;
    program = getppid();
    return codec_child_run(STDIN_FILENO, strike);
}
