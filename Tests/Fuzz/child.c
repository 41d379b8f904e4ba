// The child's side of what a program and a child say to each other, where the program is the attacker: scripts/fuzz child. An input is a call as far
// as it goes, and what the call is about. Nothing is promised to somebody who has taken over a worker but that the child stays within its memory.
//
// Names of its own: the suite that replays inputs is linked with the child, too.
#define codec_child_run fuzz_child_run
#define codec_child_answer fuzz_child_answer
#define codec_child_confine fuzz_child_confine
#include "../../Sources/CCodecChild/serve.c"
#include "fuzz_child.h"

#include <stddef.h>

_Static_assert(sizeof(codec_call) == 296 && offsetof(codec_call, request.partial) == 176 && offsetof(codec_call, known_width) == 192,
               "the inputs of corpus/child.txt are calls in this layout: convert them");

void fuzz_child_confine(codec_hello *hello) { hello->layers = 0; }

/// A file in memory with these bytes.
static int file_of(const uint8_t *bytes, size_t count, size_t length) {
    int file = memfd_create("fuzz", 0);
    if (file < 0 || ftruncate(file, (off_t)length) != 0 || (count > 0 && write(file, bytes, count) != (ssize_t)count)) abort();
    return file;
}

int fuzz_child(const uint8_t *bytes, size_t count) {
    enum { ROOM = 1 << 22, HEAD = 4 };
    static int ends[2] = {-1, -1};
    if (ends[0] < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) abort();
    if (count < HEAD) return 0;
    codec_call call;
    memset(&call, 0, sizeof call);
    size_t said = count - HEAD < sizeof call ? count - HEAD : sizeof call;
    memcpy(&call, bytes + HEAD, said);
    // The two truth values: the sanitizer stops at the load of another byte, before anything could come of it.
    *(uint8_t *)&call.request.partial &= 1, *(uint8_t *)&call.resample.is_fast &= 1;
    const uint8_t *rest = bytes + HEAD + said;
    size_t left = count - HEAD - said;
    // Most calls are ones that can be answered; sizes are those of this machine's memory, which is the child's limit and not its reader's.
    if (bytes[0] & 1) call.version = CODEC_VERSION;
    if (bytes[0] & 2) call.count = left;
    if (bytes[0] & 4) call.operation = 1 + bytes[1] % 3;
    if (bytes[0] & 8) call.request.format = 1 + bytes[2] % 5;
    if (bytes[0] & 16) call.request.task = bytes[3] % 5;
    if (bytes[0] & 32) call.resample.channels = call.channels = 3 + bytes[1] / 128;
    if (bytes[0] & 64) {
        call.resample.to_width &= 63, call.resample.to_height &= 63;
        call.room = (uint64_t)call.resample.to_width * call.resample.to_height * (uint32_t)call.resample.channels;
    }
    if (call.room > ROOM) call.room = ROOM;
    call.has_body = call.has_body & 1;
    // A length beyond its file ends a child when it reads there: the program has made the file.
    if (call.has_body && call.count > left) call.count = left;
    call.request.limits = (image_codec_limits){.max_dimension = 65535, .max_pixels = 1 << 20, .max_whole_pixels = 1 << 20,
                                               .max_scans = 100, .max_frames = 100, .max_memory = 32 << 20,
                                               .cpu_nanoseconds = 1000000000, .cpu_nanoseconds_per_pixel = 20};
    if (call.request.frames > 4) call.request.frames = 4;
    // Time goes with the product of both sizes; a worker ends a child that takes too much.
    call.request.to_width &= 1023, call.request.to_height &= 1023;
    // Of a part, too, that is inside of most images.
    if (bytes[1] & 64)
        call.request.left = bytes[2] / 64.0, call.request.top = bytes[3] / 64.0, call.request.right = 8, call.request.bottom = 9;
    if (call.operation == CODEC_RESAMPLE && (uint64_t)call.resample.width * call.resample.height > 1 << 20) return 0;
    if (call.operation < CODEC_RUN || call.operation > CODEC_RESAMPLE) return 0;
    // A window that ends where the bytes do: what is read behind it is found.
    uint8_t *window = malloc(left ? left : 1);
    memcpy(window, rest, left);
    int files[2] = {NO_FILE, NO_FILE}, place = 0;
    if (call.has_body) files[place++] = file_of(rest, left, left);
    if (call.room > 0) files[place] = file_of(NULL, 0, call.room);
    if ((call.has_body || call.count <= left) && answer(ends[0], NULL, &call, window, files)) {
        codec_answer got;
        if (recv(ends[1], &got, sizeof got, MSG_DONTWAIT) != (ssize_t)sizeof got) abort();
        if (got.version != CODEC_VERSION || got.number != call.number) abort();
        if (got.pixels + got.durations + got.exif + got.icc > call.room) abort();
    }
    for (int i = 0; i < 2; i++)
        if (files[i] >= 0) close(files[i]);
    free(window);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) { return fuzz_child(bytes, count); }
