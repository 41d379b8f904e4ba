// Walks the chunks of a PNG (PNG specification, third edition, section 5) and checks their CRC.
#include "png_chunks.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

const uint8_t png_signature[SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

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

bool png_has_crc(const uint8_t *chunk) {
    size_t length = big_endian_32(chunk);
    // zlib's own uses tables on x86 and takes fourteen times the instructions (zlib 1.2.13, libdeflate 1.14, by callgrind).
    return libdeflate_crc32(0, chunk + 4, length + 4) == big_endian_32(chunk + 8 + length);
}

/// Whether the CRC over name and data is that in the four bytes after them. Ends the check if not, except in an ancillary chunk without
/// pixels: that is passed over with a warning, as libpng does.
static bool has_crc(const uint8_t *chunk, result_t *result) {
    if (png_has_crc(chunk)) return true;
    uint32_t name = big_endian_32(chunk + 4);
    static const char words[] = "PNG chunk %.4s: CRC error";
    // Section 5.4: bit 5 of the first byte is set in the names of ancillary chunks.
    bool is_ancillary = chunk[4] & 0x20;
    if (is_ancillary && name != acTL && name != fcTL && name != fdAT)
        check_keep_warning(result, words, (const char *)chunk + 4);
    else
        check_end(result, IMAGE_CODEC_DAMAGED, words, (const char *)chunk + 4);
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

static int header_color(uint8_t color_type) {
    switch (color_type) {
    case 0:
    case 4: return IMAGE_CODEC_COLOR_GRAY;
    case 3: return IMAGE_CODEC_COLOR_INDEXED;
    default: return IMAGE_CODEC_COLOR_RGB;
    }
}

void png_header(const request_t *request, result_t *result) {
    const uint8_t *bytes = request->bytes;
    size_t count = request->count;
    if (memcmp(bytes, png_signature, count < SIGNATURE ? count : SIGNATURE) != 0)
        return check_end(result, IMAGE_CODEC_DAMAGED, "no PNG signature");
    if (count < HEADER_END) return incomplete(result);
    const uint8_t *chunk = bytes + SIGNATURE;
    if (big_endian_32(chunk) != 13 || big_endian_32(chunk + 4) != IHDR)
        return check_end(result, IMAGE_CODEC_DAMAGED, "PNG does not start with IHDR");
    if (!has_crc(chunk, result)) return;
    const uint8_t *header = chunk + 8;
    if (!check_size(result, &request->limits, big_endian_32(header), big_endian_32(header + 4))) return;
    if (!has_valid_depth(header[8], header[9]) || header[10] != 0 || header[11] != 0 || header[12] > 1)
        return check_end(result, IMAGE_CODEC_DAMAGED, "PNG with an invalid IHDR");
    result->color = header_color(header[9]);
    result->has_alpha = header[9] & 4;
}

/// Checks the chunks of an animation (PNG, third edition, section 11.3.6).
typedef struct {
    /// acTL was there before the image data; without it the other chunks mean nothing.
    bool is_animation;
    uint32_t announced;
    uint32_t frames;
    uint32_t next_sequence;
    /// The last frame has no data yet.
    bool lacks_data;
    bool saw_image;
    uint64_t pixels;
} animation;

static bool fail(image_codec_result *result, const char *what) {
    check_end(result, IMAGE_CODEC_DAMAGED, "PNG with %s", what);
    return false;
}

static bool read_animation(animation *state, const uint8_t *data, uint32_t length, const image_codec_limits *limits,
                           image_codec_result *result) {
    if (state->is_animation) return fail(result, "two acTL chunks");
    if (length != 8) return fail(result, "an acTL chunk of invalid length");
    state->is_animation = true;
    state->announced = big_endian_32(data);
    result->loop_count = big_endian_32(data + 4);
    if (state->announced == 0) return fail(result, "an animation of 0 frames");
    return check_frames(result, limits, state->announced, "PNG");
}

static bool read_frame_control(animation *state, const uint8_t *data, uint32_t length, image_codec_result *result) {
    if (length != 26) return fail(result, "an fcTL chunk of invalid length");
    if (state->lacks_data) return fail(result, "a frame without data");
    if (big_endian_32(data) != state->next_sequence++) return fail(result, "frames out of order");
    uint64_t width = big_endian_32(data + 4), height = big_endian_32(data + 8);
    uint64_t x = big_endian_32(data + 12), y = big_endian_32(data + 16);
    if (width == 0 || height == 0 || x + width > result->width || y + height > result->height)
        return fail(result, "a frame outside of the image");
    bool is_image = !state->saw_image;
    if (is_image && (state->frames > 0 || width != result->width || height != result->height))
        return fail(result, "a first frame of another size");
    if (data[24] > 2 || data[25] > 1) return fail(result, "an unknown way to draw a frame");
    state->frames++;
    state->lacks_data = true;
    return true;
}

static bool read_animation_chunk(animation *state, uint32_t name, const uint8_t *data, uint32_t length,
                                 const image_codec_limits *limits, image_codec_result *result) {
    if (name == IDAT) {
        state->saw_image = true;
        state->lacks_data = false;
        return true;
    }
    if (name == acTL && !state->saw_image) return read_animation(state, data, length, limits, result);
    if (!state->is_animation) return true;
    if (name == fcTL) return read_frame_control(state, data, length, result);
    if (name != fdAT) return true;
    if (!state->saw_image || state->frames == 0 || length < 4) return fail(result, "frame data without a frame");
    if (big_endian_32(data) != state->next_sequence++) return fail(result, "frames out of order");
    state->lacks_data = false;
    return true;
}

static bool is_complete(const animation *state, image_codec_result *result) {
    if (!state->is_animation) return true;
    result->frame_count = state->announced;
    if (state->lacks_data) return fail(result, "a frame without data");
    return state->frames == state->announced || fail(result, "fewer or more frames than announced");
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

/// What the check by libdeflate allocates: one inflated image and, if it is in parts, its compressed data.
static uint64_t inflate_memory(const uint8_t *header, uint32_t width, uint32_t height, uint64_t data) {
    enum { DECOMPRESSOR = 64 << 10 };
    png_layout layout = {width, height, header[8], header[9], header[12]};
    uint64_t raw = png_raw_bytes(&layout);
    return raw <= PNG_MAX_RAW_BYTES ? DECOMPRESSOR + raw + data : 0;
}

void png_structure(const request_t *request, result_t *result) {
    const uint8_t *bytes = request->bytes;
    size_t count = request->count;
    png_header(request, result);
    if (result->status != IMAGE_CODEC_WHOLE) return;
    bool indexed = bytes[SIGNATURE + 8 + 9] == 3, saw_palette = false, saw_data = false, in_data = false;
    size_t offset = HEADER_END;
    uint32_t longest = 0, profile = 0;
    uint64_t data = 0;
    animation animation = {0};
    check_budget budget;
    check_budget_start(&budget, request);
    for (;;) {
        if (count - offset < 12) return incomplete(result);
        const uint8_t *chunk = bytes + offset;
        uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
        if (!check_budget_read(&budget, CHECK_PART_BYTES + (uint64_t)length / 16))
            return check_end_slow(result, &budget, "PNG");
        if (length > INT32_MAX || !has_letters(chunk + 4))
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG chunk header damaged at byte %zu", offset);
        if (count - offset - 12 < length) return incomplete(result);
        bool is_good = has_crc(chunk, result);
        if (result->status != IMAGE_CODEC_WHOLE) return;
        bool is_data = name == IDAT;
        if (is_data && saw_data && !in_data)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG with IDAT chunks apart from each other");
        if (is_data && indexed && !saw_palette)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG without the PLTE chunk it needs");
        in_data = is_data;
        saw_data |= is_data;
        saw_palette |= name == PLTE;
        if (name == iCCP && length > profile) profile = length;
        if (!is_data && name != fdAT && length > longest) longest = length;
        if (is_data || name == fdAT) data += length;
        if (name == tRNS && is_good) result->has_alpha = true;
        if (name == eXIf && is_good) result->orientation = image_codec_exif_orientation(chunk + 8, length);
        if (name == IEND) {
            if (!saw_data) return check_end(result, IMAGE_CODEC_DAMAGED, "PNG without IDAT");
            if (!is_complete(&animation, result)) return;
            result->proof_memory = inflate_memory(bytes + SIGNATURE + 8, result->width, result->height, data);
            result->memory = decode_memory(bytes + SIGNATURE + 8, result->width, longest, profile) + result->proof_memory;
            return;
        }
        if (!read_animation_chunk(&animation, name, chunk + 8, length, &request->limits, result)) return;
        // Section 5.4: bit 5 of the first byte clear means critical: "must stop" if unknown.
        if (!(chunk[4] & 0x20) && name != PLTE && name != IDAT)
            return check_end(result, IMAGE_CODEC_DAMAGED, "PNG with an unexpected chunk %.4s", (const char *)chunk + 4);
        offset += (size_t)length + 12;
    }
}
