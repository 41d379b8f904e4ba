// Fuzz targets of our own readers of strangers' bytes, for libFuzzer: scripts/fuzz NAME [SECONDS]. FUZZ is the target that is built. What has to
// hold beside memory safety is asserted: a verdict of one task that another contradicts, text without an end, steps that are not linear.
#include <stdlib.h>
#include <string.h>

#include "codec_protocol.h"

enum {
    jpeg = IMAGE_CODEC_JPEG, png = IMAGE_CODEC_PNG, gif = IMAGE_CODEC_GIF, avif = IMAGE_CODEC_AVIF,
    vp8l = 100, exif, answer, progressive, vp8,
};

static void claim(bool holds) {
    if (!holds) abort();
}

static image_codec_limits limits(void) {
    return (image_codec_limits){.max_dimension = 65535, .max_pixels = 1 << 22, .max_whole_pixels = 1 << 22, .max_scans = 100,
                                .max_frames = 10000, .max_memory = 64 << 20, .cpu_nanoseconds = 2000000000,
                                .cpu_nanoseconds_per_pixel = 20};
}

static void check_texts(const image_codec_result *result) {
    claim(memchr(result->message, 0, IMAGE_CODEC_TEXT) != NULL);
    claim((result->message[0] == 0) == (result->status == IMAGE_CODEC_WHOLE || result->status == IMAGE_CODEC_UNDECIDED));
    claim(result->warning_count >= 0 && result->warning_count <= IMAGE_CODEC_WARNINGS);
    claim((uint32_t)result->warning_count <= result->warnings_seen);
    for (int i = 0; i < result->warning_count; i++) claim(memchr(result->warnings[i], 0, IMAGE_CODEC_TEXT) != NULL);
}

static int run(int format, int task, const uint8_t *bytes, size_t count, image_codec_result *result) {
    image_codec_request request = {.format = format, .task = task, .bytes = bytes, .count = count, .limits = limits(), .frames = 4};
    memset(result, 0xAA, sizeof *result);
    image_codec_run(&request, result);
    check_texts(result);
    int status = result->status;
    image_codec_release_result(result);
    return status;
}

/// What a worker asks of its own readers, in the order in which it does.
static void read_image(int format, const uint8_t *bytes, size_t count) {
    image_codec_result result;
    int header = run(format, IMAGE_CODEC_HEADER, bytes, count, &result);
    if (format == IMAGE_CODEC_AVIF) return;
    int structure = run(format, IMAGE_CODEC_STRUCTURE, bytes, count, &result);
    if (structure != IMAGE_CODEC_WHOLE) return;
    claim(header == IMAGE_CODEC_WHOLE && result.width > 0 && result.height > 0 && result.frame_count > 0);
    run(format, IMAGE_CODEC_PROVE, bytes, count, &result);
    // Of a part of the bytes nobody says that they are whole, but those behind the image.
    for (size_t cut = count; cut > 0; cut /= 2) run(format, IMAGE_CODEC_HEADER, bytes, cut, &result);
}

/// What is proved without the library of its format, that library takes, and has nothing to say of it.
static void agree(int format, const uint8_t *bytes, size_t count) {
    image_codec_request request = {.format = format, .task = IMAGE_CODEC_PROVE, .bytes = bytes, .count = count, .limits = limits()};
    // A few bytes may be said to be many pixels, which take the library long.
    request.limits.max_pixels = request.limits.max_whole_pixels = 1 << 18;
    image_codec_result result;
    image_codec_run(&request, &result);
    check_texts(&result);
    if (result.status != IMAGE_CODEC_WHOLE) return;
    request.task = IMAGE_CODEC_CHECK;
    request.proof = IMAGE_CODEC_PROOF_FAILED;
    image_codec_run(&request, &result);
    claim(result.status == IMAGE_CODEC_WHOLE && result.warnings_seen == 0);
}

/// A frame of VP8 in the container that it needs.
static void read_vp8(const uint8_t *bytes, size_t count) {
    enum { HEAD = 20 };
    uint8_t *file = calloc(1, HEAD + count + 1);
    size_t length = HEAD + count + (count & 1), riff = length - 8;
    memcpy(file, "RIFF....WEBPVP8 ", 16);
    for (int i = 0; i < 4; i++) {
        file[4 + i] = (uint8_t)(riff >> 8 * i);
        file[16 + i] = (uint8_t)(count >> 8 * i);
    }
    memcpy(file + HEAD, bytes, count);
    agree(IMAGE_CODEC_WEBP, file, length);
    free(file);
}

static void read_tables(const uint8_t *bytes, size_t count) {
    if (count < 4) return;
    uint32_t width = 1 + (bytes[0] | (bytes[1] & 63u) << 8), height = 1 + (bytes[2] | (bytes[3] & 63u) << 8);
    uint64_t steps = 0;
    image_codec_vp8l_tables(bytes + 4, count - 4, width, height, &steps);
    claim(steps < 500000 + 40 * (uint64_t)count);
}

static void read_exif(const uint8_t *bytes, size_t count) {
    uint32_t orientation = image_codec_exif_orientation(bytes, count);
    claim(orientation >= 1 && orientation <= 8);
    uint8_t *copy = malloc(count + 1);
    memcpy(copy, bytes, count);
    image_codec_exif_set_orientation(copy, count, 1);
    claim(image_codec_exif_orientation(copy, count) == 1);
    free(copy);
}

/// A call that a worker makes, and what a child that has been taken over answers.
static void read_answer(const uint8_t *bytes, size_t count) {
    codec_call call = {.operation = CODEC_RUN, .number = 1, .room = 1 << 20};
    codec_answer said;
    memset(&said, 0, sizeof said);
    if (count < 16) return;
    call.operation = bytes[0] % 4;
    call.request = (image_codec_request){.format = 1 + bytes[1] % 5, .task = bytes[2] % 5, .limits = limits(), .frames = bytes[3]};
    call.request.to_width = bytes[4];
    call.request.to_height = bytes[5];
    call.known_width = bytes[6];
    call.known_height = bytes[7];
    call.room = (uint64_t)bytes[8] << (bytes[9] % 56);
    memcpy(&said, bytes + 16, count - 16 < sizeof said ? count - 16 : sizeof said);
    // Most answers that can be one have these right.
    if (bytes[10] & 1) said.version = CODEC_VERSION;
    if (bytes[10] & 2) said.number = call.number;
    if (!codec_answer_is_possible(&call, &said)) return;
    // All that the program takes out of its answer is there.
    claim(said.pixels <= call.room && said.durations <= call.room && said.exif <= call.room && said.icc <= call.room);
    claim(said.pixels + said.durations + said.exif + said.icc <= call.room);
    claim(said.orientation >= 1 && said.orientation <= 8 && said.warning_count <= IMAGE_CODEC_WARNINGS);
    claim(memchr(said.message, 0, IMAGE_CODEC_TEXT) != NULL);
    if (call.operation == CODEC_RUN && said.pixel_frames > 0) {
        claim((uint64_t)said.pixel_width * said.pixel_height * said.channels * said.pixel_frames == said.pixels);
        claim(said.durations == 4 * (uint64_t)said.pixel_frames && said.rows <= said.pixel_height);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    // A copy of its own: what is read behind it is found.
    uint8_t *copy = malloc(count ? count : 1);
    memcpy(copy, bytes, count);
    switch (FUZZ) {
    case vp8l: read_tables(copy, count); break;
    case exif: read_exif(copy, count); break;
    case answer: read_answer(copy, count); break;
    case progressive: agree(IMAGE_CODEC_JPEG, copy, count); break;
    case vp8: read_vp8(copy, count); break;
    default: read_image(FUZZ, copy, count);
    }
    free(copy);
    return 0;
}

// MARK: What mutations would hide

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t most);

static uint32_t number(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t crc(const uint8_t *bytes, size_t count) {
    uint32_t sum = ~0u;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
    return ~sum;
}

/// Lengths that lead out of the file are cut, and each chunk has its CRC.
static void mend_png(uint8_t *bytes, size_t count) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    if (count >= sizeof signature) memcpy(bytes, signature, sizeof signature);
    for (size_t offset = 8; count >= offset + 12;) {
        size_t length = number(bytes + offset), left = count - offset - 12;
        if (length > left) put(bytes + offset, (uint32_t)(length = left));
        put(bytes + offset + 8 + length, crc(bytes + offset + 4, length + 4));
        offset += length + 12;
    }
}

/// Sizes of boxes that lead out of the box around them are cut.
static void mend_boxes(uint8_t *bytes, size_t count, int depth) {
    for (size_t offset = 0; count >= offset + 8;) {
        size_t size = number(bytes + offset), left = count - offset;
        if (size < 8 || size > left) put(bytes + offset, (uint32_t)(size = left));
        const char *name = (const char *)bytes + offset + 4;
        bool is_full = memcmp(name, "meta", 4) == 0;
        if (depth < 4 && (is_full || memcmp(name, "iprp", 4) == 0 || memcmp(name, "ipco", 4) == 0)) {
            size_t head = is_full ? 12 : 8;
            if (size > head) mend_boxes(bytes + offset + head, size - head, depth + 1);
        }
        offset += size;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t count, size_t most, unsigned seed) {
    size_t made = LLVMFuzzerMutate(bytes, count, most);
    // Some stay as they are: damage is what readers are for.
    if (seed % 8 == 0) return made;
    if (FUZZ == png) mend_png(bytes, made);
    if (FUZZ == avif) mend_boxes(bytes, made, 0);
    return made;
}
