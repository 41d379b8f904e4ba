// Finds the lossy image of a WebP that has neither an alpha channel nor an animation, and proves it whole (vp8_walk.c). The container is read as by libwebp's
// webp_dec.c: what that would refuse, and whatever is unusual, is a doubt. The structure has been checked before (WebPStructure.swift).
#include "codecs.h"
#include "vp8_walk.h"

#include <string.h>

enum { RIFF_HEADER = 12, CHUNK_HEADER = 8, VP8X_BYTES = 10, HAS_ALPHA = 0x10, IS_ANIMATED = 0x02 };

typedef struct {
    const uint8_t *bytes;
    size_t count;
    uint32_t width, height;
} lossy_image;

static bool is_named(const uint8_t *chunk, const char *name) { return memcmp(chunk, name, 4) == 0; }

/// False: there is none, or a doubt.
static bool find(const uint8_t *bytes, size_t count, lossy_image *image) {
    if (count < RIFF_HEADER || !is_named(bytes, "RIFF") || !is_named(bytes + 8, "WEBP")) return false;
    size_t length = (size_t)little_endian_32(bytes + 4) + CHUNK_HEADER;
    if (length > count) return false;
    const uint8_t *next = bytes + RIFF_HEADER, *end = bytes + length;
    uint32_t width = 0, height = 0;
    while (end - next >= CHUNK_HEADER) {
        size_t size = little_endian_32(next + 4), left = (size_t)(end - next) - CHUNK_HEADER;
        if (size > left) return false;
        const uint8_t *data = next + CHUNK_HEADER;
        bool is_first = next == bytes + RIFF_HEADER;
        if (is_named(next, "VP8 ")) {
            *image = (lossy_image){.bytes = data, .count = size};
            if (!vp8_read_size(data, size, &image->width, &image->height)) return false;
            // Behind VP8X the padding of a chunk counts, also of the last one.
            return is_first || (width == image->width && height == image->height && left - size >= (size & 1));
        }
        if (is_first) {
            if (!is_named(next, "VP8X") || size != VP8X_BYTES || data[0] & (HAS_ALPHA | IS_ANIMATED)) return false;
            width = little_endian_24(data + 4) + 1;
            height = little_endian_24(data + 7) + 1;
        } else if (is_named(next, "VP8L") || is_named(next, "VP8X") || is_named(next, "ALPH") || is_named(next, "ANIM") || is_named(next, "ANMF")) {
            return false;
        }
        if (left - size < (size & 1)) return false;
        next = data + size + (size & 1);
    }
    return false;
}

bool webp_is_proved(const request_t *request, result_t *result) {
    lossy_image image;
    check_budget budget;
    if (!find(request->bytes, request->count, &image)) return false;
    if (!check_size(result, &request->limits, image.width, image.height)) return true;
    check_budget_start(&budget, request);
    check_budget_grant(&budget, (uint64_t)image.width * image.height);
    return vp8_walk(image.bytes, image.count, &budget);
}

void webp_prove(const request_t *request, result_t *result) {
    if (!webp_is_proved(request, result)) result->status = IMAGE_CODEC_UNDECIDED;
}
