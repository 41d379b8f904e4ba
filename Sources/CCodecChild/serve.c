// Answers calls.
#define _GNU_SOURCE
#include "codec_child.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    ENDED = 0,
    BROKEN = 2,
    /// Seconds after which a child without work gives freed memory back, and after which it ends.
    REST = 1,
    IDLE = 60,
    NO_FILE = -1,
    /// Pixels of a side of what is encoded or resized.
    MOST_SIDE = 1 << 24,
};

/// Takes a record and the descriptors that come with it; its length, 0 at the end, -1 with errno.
static ssize_t take(int socket, void *record, size_t length, int files[2]) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = record, .iov_len = length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    files[0] = files[1] = NO_FILE;
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received <= 0) return received;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len >= CMSG_LEN(0)) {
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(files, CMSG_DATA(head), (count < 2 ? count : 2) * sizeof(int));
    }
    return received;
}

static bool send_record(int socket, const void *record, size_t length) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)record, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length;
}

bool codec_child_answer(int socket, codec_answer *answer) { return send_record(socket, answer, sizeof *answer); }

/// What is put into the descriptor of a call.
typedef struct {
    int file;
    uint64_t room;
    uint8_t *start;
} output;

/// Copies parts into the descriptor, one after the other; false if there is no memory, or no room.
static bool put(const output *into, const image_codec_buffer *parts, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) total += parts[i].count;
    if (total == 0) return true;
    if (into->file < 0 || total > into->room) return false;
    uint8_t *start = mmap(NULL, (size_t)total, PROT_READ | PROT_WRITE, MAP_SHARED, into->file, 0);
    if (start == MAP_FAILED) return false;
    size_t done = 0;
    for (size_t i = 0; i < count; done += parts[i++].count)
        if (parts[i].count > 0) memcpy(start + done, parts[i].bytes, parts[i].count);
    munmap(start, (size_t)total);
    return true;
}

static void end(codec_answer *answer, int status, const char *text) {
    answer->status = (uint32_t)status;
    strncpy(answer->message, text, sizeof answer->message - 1);
}

/// What decodes JPEG, PNG and GIF reads lengths and places that the walk over the structure has checked. The program has done so before it asks; the
/// walk costs a hundredth of the decode, and then the child does not depend on that.
static bool is_walked(const image_codec_request *request, image_codec_result *result) {
    if (request->format > IMAGE_CODEC_GIF || request->task < IMAGE_CODEC_CHECK) return true;
    // Of image data that is proved only what is before it is here, and of a part of an image as much as there is: the library reads it as it comes.
    bool is_part = request->task == IMAGE_CODEC_CHECK ? request->proof == IMAGE_CODEC_PROOF_DATA
                                                      : request->task == IMAGE_CODEC_PIXELS && request->partial;
    image_codec_request walk = *request;
    walk.task = is_part && request->format != IMAGE_CODEC_GIF ? IMAGE_CODEC_HEADER : IMAGE_CODEC_STRUCTURE;
    image_codec_run(&walk, result);
    return result->status == IMAGE_CODEC_WHOLE;
}

static void run(const codec_call *call, const uint8_t *bytes, const output *into, codec_answer *answer) {
    image_codec_request request = call->request;
    image_codec_result result;
    request.bytes = bytes;
    request.count = (size_t)call->count;
    if (is_walked(&request, &result)) image_codec_run(&request, &result);
    answer->status = (uint32_t)result.status;
    answer->memory = result.memory;
    answer->width = result.width;
    answer->height = result.height;
    answer->orientation = result.orientation;
    answer->frame_count = result.frame_count;
    answer->loop_count = result.loop_count;
    answer->has_alpha = result.has_alpha;
    answer->color = (uint32_t)result.color;
    answer->warning_count = (uint32_t)result.warning_count;
    memcpy(answer->message, result.message, sizeof answer->message);
    for (int i = 0; i < result.warning_count; i++) strcpy(answer->warnings[i], result.warnings[i]);
    image_codec_buffer parts[] = {result.pixels, result.durations, result.exif, result.icc};
    if (result.status == IMAGE_CODEC_WHOLE && result.pixel_frames > 0) {
        answer->pixel_width = result.pixel_width;
        answer->pixel_height = result.pixel_height;
        answer->channels = result.channels;
        answer->pixel_frames = result.pixel_frames;
        answer->rows = result.rows;
        answer->pixels = parts[0].count;
        answer->durations = parts[1].count;
        answer->exif = parts[2].count;
        answer->icc = parts[3].count;
        if (!put(into, parts, sizeof parts / sizeof *parts)) {
            memset(answer, 0, sizeof *answer);
            end(answer, IMAGE_CODEC_NO_MEMORY, "no memory for the pixels");
        }
    }
    image_codec_release_result(&result);
}

static void encode(const codec_call *call, const uint8_t *bytes, const output *into, codec_answer *answer) {
    // Three factors of 32 bits, and three lengths, may be more than 64 bits can say.
    if ((call->channels != 3 && call->channels != 4) || call->width > MOST_SIDE || call->height > MOST_SIDE || call->exif > call->count ||
        call->icc > call->count)
        return end(answer, IMAGE_CODEC_DAMAGED, "no image that is encoded here");
    uint64_t pixels = (uint64_t)call->width * call->height * call->channels;
    image_codec_metadata metadata = {bytes + pixels, (size_t)call->exif, bytes + pixels + call->exif, (size_t)call->icc};
    image_codec_buffer buffer = {NULL, 0};
    bool is_done = false;
    int channels = (int)call->channels, quality = (int)call->quality;
    if (pixels == 0 || pixels + call->exif + call->icc != call->count)
        return end(answer, IMAGE_CODEC_DAMAGED, "another size than announced");
    if (call->request.format == IMAGE_CODEC_JPEG) {
        image_codec_jpeg_options options = {.components = channels, .quality = quality, .metadata = metadata};
        is_done = image_codec_encode_jpeg(bytes, call->width, call->height, &options, &buffer);
    } else if (call->request.format == IMAGE_CODEC_WEBP) {
        image_codec_webp_options options = {.components = channels, .quality = quality, .metadata = metadata};
        is_done = image_codec_encode_webp(bytes, call->width, call->height, &options, &buffer);
    } else if (call->request.format == IMAGE_CODEC_PNG) {
        image_codec_png_options options = {.color_type = channels == 4 ? 6 : 2, .bit_depth = 8, .metadata = metadata};
        is_done = image_codec_encode_png(bytes, call->width, call->height, &options, &buffer);
    }
    answer->pixels = buffer.count;
    if (!is_done || !put(into, &buffer, 1)) {
        answer->pixels = 0;
        end(answer, IMAGE_CODEC_NO_MEMORY, "no memory to write an image");
    }
    image_codec_release(&buffer);
}

static void resample(const codec_call *call, const uint8_t *bytes, const output *into, codec_answer *answer) {
    const image_resample_request *request = &call->resample;
    if ((request->channels != 3 && request->channels != 4) || request->width > MOST_SIDE || request->height > MOST_SIDE ||
        request->to_width > MOST_SIDE || request->to_height > MOST_SIDE ||
        call->count != (uint64_t)request->width * request->height * (uint64_t)request->channels ||
        call->room != (uint64_t)request->to_width * request->to_height * (uint64_t)request->channels)
        return end(answer, IMAGE_CODEC_DAMAGED, "another size than announced");
    image_codec_buffer made = {malloc((size_t)call->room), (size_t)call->room};
    int status = made.bytes ? image_resample(request, bytes, made.bytes) : IMAGE_RESAMPLE_NO_MEMORY;
    answer->pixels = made.count;
    if (status != IMAGE_RESAMPLE_DONE || !put(into, &made, 1)) {
        answer->pixels = 0;
        if (status == IMAGE_RESAMPLE_INVALID) end(answer, IMAGE_CODEC_OVER_SIDE, "a side that is too long to be resized");
        else end(answer, IMAGE_CODEC_NO_MEMORY, "no memory to resize an image");
    }
    image_codec_release(&made);
}

/// Carries out a call; false if there is no answer to it.
static bool answer(int socket, codec_hook *hook, const codec_call *call, const uint8_t *window, const int files[2]) {
    int body = call->has_body ? files[0] : NO_FILE;
    const output into = {.file = call->room > 0 ? files[call->has_body ? 1 : 0] : NO_FILE, .room = call->room};
    const uint8_t *bytes = window;
    if (call->version != CODEC_VERSION || (!call->has_body && call->count > CODEC_WINDOW)) return false;
    codec_answer answer;
    memset(&answer, 0, sizeof answer);
    if (call->has_body) bytes = mmap(NULL, (size_t)call->count, PROT_READ, MAP_PRIVATE, body, 0);
    if (bytes == MAP_FAILED) {
        end(&answer, IMAGE_CODEC_NO_MEMORY, "no memory for the file");
    } else if (hook && hook(socket, call, bytes, body, into.file)) {
        return true;
    } else {
        switch (call->operation) {
        case CODEC_RUN: run(call, bytes, &into, &answer); break;
        case CODEC_ENCODE: encode(call, bytes, &into, &answer); break;
        case CODEC_RESAMPLE: resample(call, bytes, &into, &answer); break;
        default: return false;
        }
        if (call->has_body) munmap((void *)(uintptr_t)bytes, (size_t)call->count);
    }
    if (answer.orientation == 0) answer.orientation = 1;
    answer.version = CODEC_VERSION;
    answer.number = call->number;
    return codec_child_answer(socket, &answer);
}

int codec_child_run(int socket, codec_hook *hook) {
    // Whatever else this process has been given.
    if (close_range((unsigned)socket + 1 > 3 ? (unsigned)socket + 1 : 3, ~0u, 0) != 0)
        for (int file = 3; file < 1024; file++)
            if (file != socket) close(file);
    // As the programs do: images come by the thousand, and their pages would be returned to the kernel each time.
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
    mallopt(M_ARENA_MAX, 1);
    image_codec_can_decode(IMAGE_CODEC_WEBP);
    image_codec_can_decode(IMAGE_CODEC_AVIF);
    const struct timeval rest = {.tv_sec = REST};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &rest, sizeof rest);
    uint32_t version = 0;
    int files[2];
    if (take(socket, &version, sizeof version, files) != sizeof version || version != CODEC_VERSION) return BROKEN;
    const uint8_t *window = mmap(NULL, CODEC_WINDOW, PROT_READ, MAP_SHARED, files[0], 0);
    if (window == MAP_FAILED) return BROKEN;
    close(files[0]);
    codec_hello hello;
    memset(&hello, 0, sizeof hello);
    hello.version = CODEC_VERSION;
    codec_child_confine(&hello);
    if (!send_record(socket, &hello, sizeof hello)) return BROKEN;
    for (int idle = 0;;) {
        codec_call call;
        ssize_t count = take(socket, &call, sizeof call, files);
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (idle++ == 0) malloc_trim(0);
            if (idle < IDLE) continue;
            return ENDED;
        }
        if (count == 0) return ENDED;
        if (count != sizeof call || !answer(socket, hook, &call, window, files)) return BROKEN;
        for (int i = 0; i < 2; i++)
            if (files[i] >= 0) close(files[i]);
        idle = 0;
    }
}
