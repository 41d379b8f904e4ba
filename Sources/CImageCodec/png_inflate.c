// Checks the image data of a PNG by libdeflate, in one call into a buffer of the known size. It proves only that data is good: Adler-32,
// length, filter types, palette indices. What is not, or is unusual, is left to libpng, so no verdict depends on this file: CodecVerdictTests
// compares damaged images with a plain decode by libpng.
#include "png_chunks.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t pass_x[7] = {0, 4, 0, 2, 0, 1, 0}, pass_y[7] = {0, 0, 4, 0, 2, 0, 1};
static const uint8_t pass_dx[7] = {8, 8, 4, 4, 2, 2, 1}, pass_dy[7] = {8, 8, 8, 4, 4, 2, 2};

static uint64_t row_bytes(const png_layout *layout, uint32_t width) {
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    return 1 + ((uint64_t)width * layout->depth * channels[layout->color_type] + 7) / 8;
}

/// Size of a pass; of the image, as pass 0, if it is not interlaced.
static void pass_size(const png_layout *layout, int pass, uint32_t *width, uint32_t *height) {
    if (!layout->interlaced) {
        *width = layout->width;
        *height = layout->height;
        return;
    }
    *width = (layout->width + pass_dx[pass] - 1 - pass_x[pass]) / pass_dx[pass];
    *height = (layout->height + pass_dy[pass] - 1 - pass_y[pass]) / pass_dy[pass];
    if (layout->width <= pass_x[pass] || layout->height <= pass_y[pass]) *width = *height = 0;
}

uint64_t png_raw_bytes(const png_layout *layout) {
    uint64_t total = 0;
    for (int pass = 0; pass < (layout->interlaced ? 7 : 1); pass++) {
        uint32_t width, height;
        pass_size(layout, pass, &width, &height);
        if (width > 0) total += height * row_bytes(layout, width);
    }
    return total;
}

/// Indices can only be compared where a byte is an index and no filter changes it.
static bool has_valid_indices(const png_source *image, const uint8_t *row, uint64_t count) {
    const png_layout *layout = &image->layout;
    if (layout->color_type != 3 || image->palette >= 1u << layout->depth) return true;
    if (layout->depth != 8 || row[0] != 0) return false;
    uint8_t highest = 0;
    for (uint64_t i = 1; i < count; i++) highest = row[i] > highest ? row[i] : highest;
    return highest < image->palette;
}

static bool has_valid_rows(const png_source *image, const uint8_t *raw) {
    const png_layout *layout = &image->layout;
    for (int pass = 0; pass < (layout->interlaced ? 7 : 1); pass++) {
        uint32_t width, height;
        pass_size(layout, pass, &width, &height);
        if (width == 0) continue;
        uint64_t stride = row_bytes(layout, width);
        for (uint32_t y = 0; y < height; y++, raw += stride)
            if (raw[0] > 4 || !has_valid_indices(image, raw, stride)) return false;
    }
    return true;
}

/// The data chunks of an image in one piece: in the file if there is one chunk, otherwise in `copy`.
static const uint8_t *gather(const request_t *request, const png_source *image, image_codec_buffer *copy, size_t *count) {
    size_t skipped = image->name == fdAT ? 4 : 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t total = 0, chunks = 0, offset = image->offset;
        const uint8_t *first = NULL;
        for (;;) {
            const uint8_t *chunk = request->bytes + offset;
            uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
            if (name == image->name) {
                if (!first) first = chunk + 8 + skipped;
                if (pass == 1) memcpy(copy->bytes + total, chunk + 8 + skipped, length - skipped);
                total += length - skipped;
                chunks++;
            } else if (name == IEND || name == fcTL || image->name == IDAT) {
                break;
            }
            offset += (size_t)length + 12;
        }
        *count = total;
        if (pass == 1) return copy->bytes;
        if (chunks == 1) return first;
        copy->bytes = malloc(total);
        copy->count = total;
        if (!copy->bytes) return NULL;
    }
    return NULL;
}

/// zlib rejects distances beyond the window that the stream announces, libdeflate ignores it.
static bool has_enough_window(const uint8_t *data, size_t count, uint64_t raw) {
    return count >= 2 && (uint64_t)1 << ((data[0] >> 4) + 8) >= (raw < 32768 ? raw : 32768);
}

bool png_inflates(const request_t *request, const png_source *image) {
    uint64_t size = png_raw_bytes(&image->layout);
    if (size > PNG_MAX_RAW_BYTES) return false;
    image_codec_buffer copy = {NULL, 0};
    size_t count = 0, consumed = 0, produced = 0;
    const uint8_t *data = gather(request, image, &copy, &count);
    uint8_t *raw = NULL;
    struct libdeflate_decompressor *decompressor = NULL;
    bool is_good = false;
    bool fits = size + copy.count <= request->limits.max_memory;
    if (data && fits && has_enough_window(data, count, size)) {
        raw = malloc((size_t)size);
        decompressor = libdeflate_alloc_decompressor();
    }
    if (raw && decompressor) {
        enum libdeflate_result end = libdeflate_zlib_decompress_ex(decompressor, data, count, raw, (size_t)size,
                                                                   &consumed, &produced);
        is_good = end == LIBDEFLATE_SUCCESS && produced == size && consumed == count && has_valid_rows(image, raw);
    }
    libdeflate_free_decompressor(decompressor);
    free(raw);
    image_codec_release(&copy);
    return is_good;
}

bool png_next_frame(const request_t *request, const png_source *file, size_t *offset, png_frame *frame) {
    bool found = false;
    for (;;) {
        const uint8_t *chunk = request->bytes + *offset, *data = chunk + 8;
        uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
        if (name == IEND) return false;
        if (name == fcTL) {
            found = true;
            frame->image = *file;
            frame->image.layout.width = big_endian_32(data + 4);
            frame->image.layout.height = big_endian_32(data + 8);
            frame->x = big_endian_32(data + 12);
            frame->y = big_endian_32(data + 16);
            uint32_t parts = big_endian_16(data + 22);
            frame->milliseconds = big_endian_16(data + 20) * 1000 / (parts ? parts : 100);
            frame->dispose = data[24];
            frame->blend = data[25];
        }
        if (found && (name == IDAT || name == fdAT)) {
            frame->image.name = name;
            frame->image.offset = *offset;
            *offset += (size_t)length + 12;
            return true;
        }
        *offset += (size_t)length + 12;
    }
}

static uint8_t *put(uint8_t *into, uint32_t number) {
    for (int i = 0; i < 4; i++) into[i] = (uint8_t)(number >> (24 - 8 * i));
    return into + 4;
}

static uint8_t *put_chunk(uint8_t *into, uint32_t name, const uint8_t *data, size_t length) {
    uint8_t *named = put(into, (uint32_t)length), *end = put(named, name);
    memcpy(end, data, length);
    return put(end + length, libdeflate_crc32(0, named, length + 4));
}

void png_extract(const request_t *request, const png_source *image, image_codec_buffer *file) {
    image_codec_buffer copy = {NULL, 0};
    size_t count = 0;
    const uint8_t *data = gather(request, image, &copy, &count);
    const size_t *colors = image->colors;
    size_t bytes = SIGNATURE + 25 + 12 + count + 12;
    for (int i = 0; i < 2; i++)
        if (colors[i] > 0) bytes += (size_t)big_endian_32(request->bytes + colors[i]) + 12;
    file->bytes = data ? malloc(bytes) : NULL;
    if (file->bytes) {
        uint8_t header[13], *end = file->bytes;
        put(put(header, image->layout.width), image->layout.height);
        header[8] = image->layout.depth;
        header[9] = image->layout.color_type;
        header[10] = header[11] = 0;
        header[12] = image->layout.interlaced;
        memcpy(end, png_signature, SIGNATURE);
        end = put_chunk(end + SIGNATURE, IHDR, header, sizeof header);
        for (int i = 0; i < 2; i++) {
            if (colors[i] == 0) continue;
            size_t length = (size_t)big_endian_32(request->bytes + colors[i]) + 12;
            memcpy(end, request->bytes + colors[i], length);
            end += length;
        }
        end = put_chunk(end, IDAT, data, count);
        end = put_chunk(end, IEND, data, 0);
        file->count = (size_t)(end - file->bytes);
    }
    image_codec_release(&copy);
}
