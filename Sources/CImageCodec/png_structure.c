// Walks the chunks of a PNG (PNG specification, third edition, section 5) and checks their CRC.
#include "check.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

enum { IHDR = 0x49484452, PLTE = 0x504C5445, IDAT = 0x49444154, IEND = 0x49454E44, acTL = 0x6163544C, iCCP = 0x69434350 };
enum { SIGNATURE = 8, HEADER_END = SIGNATURE + 4 + 4 + 13 + 4 };

static const uint8_t signature[SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

static bool has_letters(const uint8_t *name) {
    for (int i = 0; i < 4; i++) {
        uint8_t upper = name[i] & 0xDF;
        if (upper < 'A' || upper > 'Z') return false;
    }
    return true;
}

static void incomplete(image_codec_result *result) {
    check_end(result, IMAGE_CODEC_INCOMPLETE, "PNG ends before its IEND chunk");
}

/// Ends the check if the CRC over name and data differs from the four bytes after them.
static bool has_crc(const uint8_t *chunk, uint32_t length, image_codec_result *result) {
    // zlib's own uses tables on x86 and takes fourteen times the instructions (zlib 1.2.13, libdeflate 1.14, by callgrind).
    uint32_t crc = libdeflate_crc32(0, chunk + 4, (size_t)length + 4);
    if (crc == big_endian_32(chunk + 8 + length)) return true;
    check_end(result, IMAGE_CODEC_DAMAGED, "PNG chunk %.4s: CRC error", (const char *)chunk + 4);
    return false;
}

/// Table 12: the allowed bit depths of each colour type, one bit each.
static bool has_valid_depth(uint8_t depth, uint8_t color_type) {
    static const uint32_t allowed[7] = {[0] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
                                        [2] = 1 << 8 | 1 << 16,
                                        [3] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
                                        [4] = 1 << 8 | 1 << 16,
                                        [6] = 1 << 8 | 1 << 16};
    return color_type < 7 && depth <= 16 && (allowed[color_type] >> depth & 1);
}

void image_codec_png_header(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result) {
    result->status = IMAGE_CODEC_WHOLE;
    result->warning_count = 0;
    if (memcmp(bytes, signature, count < SIGNATURE ? count : SIGNATURE) != 0)
        return check_end(result, IMAGE_CODEC_DAMAGED, "no PNG signature");
    if (count < HEADER_END) return incomplete(result);
    const uint8_t *chunk = bytes + SIGNATURE;
    if (big_endian_32(chunk) != 13 || big_endian_32(chunk + 4) != IHDR)
        return check_end(result, IMAGE_CODEC_DAMAGED, "PNG does not start with IHDR");
    if (!has_crc(chunk, 13, result)) return;
    const uint8_t *header = chunk + 8;
    if (!check_size(result, limits, big_endian_32(header), big_endian_32(header + 4))) return;
    if (!has_valid_depth(header[8], header[9]) || header[10] != 0 || header[11] != 0 || header[12] > 1)
        check_end(result, IMAGE_CODEC_DAMAGED, "PNG with an invalid IHDR");
}

/// Frames of an animation (acTL): their number, and the pixels that a player paints.
static bool check_frames(const uint8_t *data, uint32_t length, const image_codec_limits *limits,
                         image_codec_result *result) {
    if (length != 8) {
        check_end(result, IMAGE_CODEC_DAMAGED, "PNG chunk acTL: invalid length");
        return false;
    }
    uint32_t frames = big_endian_32(data);
    if (frames <= limits->max_frames && (uint64_t)frames * result->width * result->height <= limits->max_frame_pixels)
        return true;
    check_end(result, IMAGE_CODEC_OVER_LIMIT, "PNG with %" PRIu32 " frames of %" PRIu32 " x %" PRIu32, frames,
              result->width, result->height);
    return false;
}

static uint64_t at_most(uint64_t count, uint64_t limit) { return count < limit ? count : limit; }

/// Maximum bytes allocated by libpng: itself and zlib, three rows, the longest ancillary chunk and a copy of it, and a colour profile,
/// which deflate compresses by at most 1,032.
static uint64_t decode_memory(const uint8_t *header, uint32_t width, uint32_t longest, uint32_t profile) {
    enum { FIXED = 256 << 10, MAX_SAMPLES = 4, BYTES_PER_SAMPLE = 2, MAX_INFLATION = 1032 };
    uint32_t bytes_per_pixel = header[9] == 3 ? 1 : header[8] == 16 ? MAX_SAMPLES * BYTES_PER_SAMPLE : MAX_SAMPLES;
    return FIXED + 3 * (uint64_t)width * bytes_per_pixel + 2 * at_most(longest, PNG_MAX_CHUNK_BYTES) +
           at_most((uint64_t)profile * MAX_INFLATION, PNG_MAX_CHUNK_BYTES);
}

void image_codec_png_structure(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                               image_codec_result *result) {
    image_codec_png_header(bytes, count, limits, result);
    if (result->status != IMAGE_CODEC_WHOLE) return;
    bool indexed = bytes[SIGNATURE + 8 + 9] == 3, saw_palette = false, saw_data = false, in_data = false;
    size_t offset = HEADER_END;
    uint32_t longest = 0, profile = 0;
    for (;;) {
        if (count - offset < 12) return incomplete(result);
        const uint8_t *chunk = bytes + offset;
        uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
        if (length > INT32_MAX || !has_letters(chunk + 4))
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG chunk header damaged at byte %zu", offset);
        if (count - offset - 12 < length) return incomplete(result);
        if (!has_crc(chunk, length, result)) return;
        bool is_data = name == IDAT;
        if (is_data && saw_data && !in_data)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG with IDAT chunks apart from each other");
        if (is_data && indexed && !saw_palette)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG without the PLTE chunk it needs");
        in_data = is_data;
        saw_data |= is_data;
        saw_palette |= name == PLTE;
        if (name == iCCP && length > profile) profile = length;
        if (!is_data && length > longest) longest = length;
        if (name == IEND) {
            if (!saw_data) return check_end(result, IMAGE_CODEC_DAMAGED, "PNG without IDAT");
            result->memory = decode_memory(bytes + SIGNATURE + 8, result->width, longest, profile);
            return;
        }
        if (name == acTL && !check_frames(chunk + 8, length, limits, result)) return;
        // Section 5.4: bit 5 of the first byte clear means critical: "must stop" if unknown.
        if (!(chunk[4] & 0x20) && name != PLTE && name != IDAT)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG with an unexpected chunk %.4s", (const char *)chunk + 4);
        offset += (size_t)length + 12;
    }
}
