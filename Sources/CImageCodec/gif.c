// Checks and decodes GIF (GIF89a specification) from header to trailer. The check reads every LZW code of every frame (appendix F) but writes
// no pixel: of a string only the length counts.
#include "canvas.h"
#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODES = 1 << 12, NO_CODE = MAX_CODES };

typedef struct {
    const request_t *request;
    result_t *result;
    size_t offset;
    check_budget budget;
    /// Of the graphic control extension before an image.
    uint32_t milliseconds;
    int disposal;
    int transparent_index;
    const uint8_t *global_palette;
    uint32_t global_colors;
    uint32_t frames;
    /// Of a single frame; NULL: frames are drawn on the canvas.
    row_sink *sink;
    canvas canvas;
} gif_reader;

typedef struct {
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
    bool interlaced;
    const uint8_t *palette;
    uint32_t colors;
} gif_image;

static bool fail(gif_reader *reader, const char *what) {
    check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF with %s", what);
    return false;
}

/// The next bytes; NULL, and the call ended, if they are not there.
static const uint8_t *take(gif_reader *reader, size_t count) {
    const request_t *request = reader->request;
    if (request->count - reader->offset < count) {
        check_end(reader->result, IMAGE_CODEC_INCOMPLETE, "GIF ends inside the image");
        return NULL;
    }
    const uint8_t *bytes = request->bytes + reader->offset;
    reader->offset += count;
    return bytes;
}

/// Whether time is left after `bytes` more; ends the call if not.
static bool has_time(gif_reader *reader, size_t bytes) {
    if (check_budget_read(&reader->budget, bytes)) return true;
    check_end_slow(reader->result, &reader->budget, "GIF");
    return false;
}

/// Skips data sub-blocks and their terminator; `total` is the number of data bytes.
static bool skip_blocks(gif_reader *reader, size_t *total) {
    for (*total = 0;;) {
        const uint8_t *length = take(reader, 1);
        if (!length) return false;
        if (*length == 0) return has_time(reader, CHECK_PART_BYTES);
        if (!take(reader, *length) || !has_time(reader, 64)) return false;
        *total += *length;
    }
}

// MARK: LZW

/// Reads codes from data sub-blocks, which the structure check has found complete.
typedef struct {
    const uint8_t *next;
    uint32_t block_left;
    bool is_at_end;
    uint64_t bits;
    unsigned count;
    check_budget *budget;
    /// The time was over: the data ended early.
    bool is_late;
} code_reader;

static void refill(code_reader *reader) {
    while (reader->count <= 56) {
        if (reader->block_left >= 8) {
            uint64_t word = (uint64_t)little_endian_32(reader->next) | (uint64_t)little_endian_32(reader->next + 4) << 32;
            unsigned bytes = (64 - reader->count) / 8;
            reader->bits |= word << reader->count;
            // Bits above `count` are those of the next byte, which is read again.
            reader->count += 8 * bytes;
            if (reader->count < 64) reader->bits &= ((uint64_t)1 << reader->count) - 1;
            reader->next += bytes;
            reader->block_left -= bytes;
        } else if (reader->block_left > 0) {
            reader->bits |= (uint64_t)*reader->next++ << reader->count;
            reader->count += 8;
            reader->block_left--;
        } else if (reader->is_at_end) {
            return;
        } else {
            reader->block_left = *reader->next++;
            reader->is_late = !check_budget_read(reader->budget, reader->block_left);
            reader->is_at_end = reader->block_left == 0 || reader->is_late;
        }
    }
}

/// The next code, or `NO_CODE` at the end of the data.
static inline uint32_t read_code(code_reader *reader, unsigned width) {
    if (reader->count < width) {
        refill(reader);
        if (reader->count < width) return NO_CODE;
    }
    uint32_t code = (uint32_t)reader->bits & ((1u << width) - 1);
    reader->bits >>= width;
    reader->count -= width;
    return code;
}

/// The strings of the codes so far. `length` suffices for a check, the rest is for pixels.
typedef struct {
    uint32_t length[MAX_CODES];
    uint16_t prefix[MAX_CODES];
    uint8_t first[MAX_CODES];
    uint8_t last[MAX_CODES];
} code_table;

/// Writes a code's string, as far as there is room, from its end.
static void write_string(const code_table *table, uint32_t code, uint8_t *into, uint64_t room) {
    for (uint32_t length = table->length[code]; length > 0; length--, code = table->prefix[code])
        if (length <= room) into[length - 1] = table->last[code];
}

/// Behind the last pixel comes the end code, possibly after a clear code; some encoders leave it out.
static bool is_at_end(code_reader *codes, uint32_t clear, unsigned width) {
    uint32_t code = read_code(codes, width);
    while (code == clear) code = read_code(codes, width);
    return code == clear + 1 || code == NO_CODE;
}

/// Decodes the codes of an image; `indices` is NULL for a check.
static inline bool decode_codes(gif_reader *reader, code_reader *codes, code_table *table, unsigned code_size,
                                const gif_image *image, uint8_t *indices) {
    const uint32_t clear = 1u << code_size, end = clear + 1;
    const uint64_t pixels = (uint64_t)image->width * image->height;
    // Without a color table any index is one.
    const uint32_t colors = image->colors > 0 ? image->colors : clear;
    uint32_t next = end + 1, previous = NO_CODE;
    unsigned width = code_size + 1;
    for (uint32_t i = 0; i < clear; i++) {
        table->length[i] = 1;
        if (indices) table->first[i] = table->last[i] = (uint8_t)i;
    }
    uint64_t left = pixels;
    bool lacks_color = false, has_more = false;
    while (left > 0) {
        uint32_t code = read_code(codes, width);
        if (code == clear) {
            next = end + 1;
            width = code_size + 1;
            previous = NO_CODE;
            continue;
        }
        if (codes->is_late) {
            check_end_late(reader->result, &reader->budget, "GIF");
            return false;
        }
        if (code == NO_CODE || code == end) {
            check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF with an image that lacks %" PRIu64 " of its pixels",
                      left);
            return false;
        }
        // Every string begins with an index, and its other ones have been such codes.
        lacks_color |= code < clear && code >= colors && (int)code != reader->transparent_index;
        if (previous == NO_CODE) {
            if (code > end) return fail(reader, "an LZW code without a string");
        } else {
            if (code > next || (code == next && next == MAX_CODES)) return fail(reader, "an LZW code without a string");
            if (next < MAX_CODES) {
                table->length[next] = table->length[previous] + 1;
                if (indices) {
                    table->prefix[next] = (uint16_t)previous;
                    table->first[next] = table->first[previous];
                    table->last[next] = table->first[code == next ? previous : code];
                }
                next++;
            }
        }
        // Codes of less than three bits are at once as long as that. Nobody means them, but giflib and browsers read them so.
        if (next >= 1u << width && width < 12) width++;
        uint64_t length = table->length[code];
        if (indices) write_string(table, code, indices + (pixels - left), left);
        has_more = length > left;
        left -= has_more ? left : length;
        previous = code;
    }
    // No pixel is missing: giflib, Pillow and browsers take both without a word.
    if (has_more || !is_at_end(codes, clear, width)) check_keep_warning(reader->result, "GIF with more pixels than its size");
    if (lacks_color) check_keep_warning(reader->result, "GIF with an index without a color");
    return true;
}

// MARK: Pixels

/// Where in the data of an interlaced image a row is (appendix E).
static uint32_t stored_row(uint32_t y, uint32_t height) {
    static const uint32_t start[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    uint32_t before = 0;
    for (int pass = 0; pass < 4; pass++) {
        if (y % step[pass] == start[pass]) return before + y / step[pass];
        if (height > start[pass]) before += (height - start[pass] + step[pass] - 1) / step[pass];
    }
    return before;
}

/// RGBA of a row of indices.
static void paint(const gif_reader *reader, const gif_image *image, const uint8_t *indices, uint32_t columns, uint8_t *into) {
    for (uint32_t x = 0; x < columns; x++, into += 4) {
        memset(into, 0, 4);
        if (indices[x] == reader->transparent_index) continue;
        if (indices[x] < image->colors) memcpy(into, image->palette + 3 * indices[x], 3);
        into[3] = 255;
    }
}

static uint32_t clipped(uint32_t start, uint32_t length, uint32_t limit) {
    uint32_t left = start >= limit ? 0 : limit - start;
    return length < left ? length : left;
}

/// Puts the rows of a single image, on a transparent screen, into the sink.
static void put_rows(gif_reader *reader, const gif_image *image, const uint8_t *indices) {
    const result_t *result = reader->result;
    row_sink *sink = reader->sink;
    uint32_t columns = clipped(image->x, image->width, result->width);
    for (uint32_t y = 0; y < result->height; y++) {
        memset(sink->row, 0, sink->stride);
        if (columns > 0 && y >= image->y && y - image->y < image->height) {
            uint32_t n = image->interlaced ? stored_row(y - image->y, image->height) : y - image->y;
            paint(reader, image, indices + (size_t)n * image->width, columns, sink->row + 4 * (size_t)image->x);
        }
        rows_put(sink);
        // A screen may be a million times as large as its image.
        if (!check_budget_spend(&reader->budget, result->width)) return check_end_late(reader->result, &reader->budget, "GIF");
    }
}

/// Draws an image on the canvas; false after the last frame asked for.
static bool draw(gif_reader *reader, const gif_image *image, const uint8_t *indices) {
    result_t *result = reader->result;
    uint32_t columns = clipped(image->x, image->width, result->pixel_width);
    uint32_t rows = clipped(image->y, image->height, result->pixel_height);
    for (uint32_t y = 0; y < rows; y++) {
        uint32_t n = image->interlaced ? stored_row(y, image->height) : y;
        paint(reader, image, indices + (size_t)n * image->width, columns,
              reader->canvas.part + 4 * (size_t)y * columns);
    }
    canvas_frame frame = {image->x, image->y, columns, rows, reader->disposal, true, reader->milliseconds};
    return canvas_draw(&reader->canvas, result, &frame);
}

// MARK: Blocks

static bool read_extension(gif_reader *reader) {
    const uint8_t *label = take(reader, 1);
    if (!label) return false;
    size_t start = reader->offset, total;
    if (!skip_blocks(reader, &total)) return false;
    const uint8_t *block = reader->request->bytes + start;
    if (*label == 0xF9 && block[0] >= 4) {
        int disposal = block[1] >> 2 & 7;
        reader->disposal = disposal == 2 ? CANVAS_CLEAR : disposal == 3 ? CANVAS_PREVIOUS : CANVAS_KEEP;
        reader->transparent_index = block[1] & 1 ? block[4] : -1;
        reader->milliseconds = 10 * little_endian_16(block + 2);
        if (block[1] & 1) reader->result->has_alpha = true;
    }
    // Browsers and Pillow read four bytes in any case, and then find no image.
    if (*label == 0xF9 && block[0] > 0 && block[0] < 4) return fail(reader, "a graphic control extension that is too short");
    if (*label == 0xFF && block[0] == 11 && memcmp(block + 1, "NETSCAPE2.0", 11) == 0 && block[12] >= 3 && block[13] == 1)
        reader->result->loop_count = little_endian_16(block + 14);
    return true;
}

/// The canvas is what the screen and the first image cover, as browsers and Pillow have it: some writers leave the screen empty, or smaller.
static bool extend_screen(gif_reader *reader, const gif_image *image) {
    result_t *result = reader->result;
    uint32_t right = image->x + image->width, bottom = image->y + image->height;
    return check_size(result, &reader->request->limits, right > result->width ? right : result->width,
                      bottom > result->height ? bottom : result->height);
}

static bool count_frame(gif_reader *reader, gif_image *image) {
    result_t *result = reader->result;
    uint32_t width = result->width, height = result->height;
    bool fits = check_size(result, &reader->request->limits, image->width, image->height);
    result->width = width;
    result->height = height;
    if (!fits || (reader->frames == 0 && !extend_screen(reader, image))) return false;
    width = result->width;
    height = result->height;
    reader->frames++;
    result->frame_count = reader->frames;
    if (reader->frames == 1 && (image->x > 0 || image->y > 0 || image->width < width || image->height < height))
        result->has_alpha = true;
    return reader->request->task == IMAGE_CODEC_HEADER ||
           check_frames(result, &reader->request->limits, reader->frames, "GIF");
}

/// Decodes an image whose sub-blocks start at `data`; false if it is damaged, or was the last one asked for.
static bool decode_image(gif_reader *reader, const gif_image *image, const uint8_t *data, unsigned code_size) {
    uint64_t pixels = (uint64_t)image->width * image->height;
    // A check costs as much as there is data, however many pixels that is.
    check_budget_grant(&reader->budget, pixels);
    bool draws = reader->request->task == IMAGE_CODEC_PIXELS;
    code_table table;
    code_reader codes = {.next = data, .budget = &reader->budget};
    if (!check_budget_look(&reader->budget)) {
        check_end_late(reader->result, &reader->budget, "GIF");
        return false;
    }
    if (!draws) {
        return decode_codes(reader, &codes, &table, code_size, image, NULL);
    }
    uint8_t *indices = malloc((size_t)pixels);
    if (!indices) {
        check_end(reader->result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a GIF");
        return false;
    }
    bool goes_on = decode_codes(reader, &codes, &table, code_size, image, indices);
    if (goes_on && reader->sink) {
        put_rows(reader, image, indices);
        goes_on = false;
    }
    goes_on = goes_on && draw(reader, image, indices);
    free(indices);
    return goes_on;
}

static bool read_image(gif_reader *reader) {
    const uint8_t *descriptor = take(reader, 9);
    if (!descriptor) return false;
    gif_image image = {little_endian_16(descriptor),
                       little_endian_16(descriptor + 2),
                       little_endian_16(descriptor + 4),
                       little_endian_16(descriptor + 6),
                       descriptor[8] & 0x40,
                       reader->global_palette,
                       reader->global_colors};
    if (!count_frame(reader, &image) || reader->request->task == IMAGE_CODEC_HEADER) return false;
    if (descriptor[8] & 0x80) {
        image.colors = 2u << (descriptor[8] & 7);
        image.palette = take(reader, 3 * (size_t)image.colors);
        if (!image.palette) return false;
    }
    const uint8_t *code_size = take(reader, 1);
    if (!code_size) return false;
    if (*code_size > 8) {
        check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF with an LZW code size of %d", *code_size);
        return false;
    }
    size_t start = reader->offset, total;
    if (!skip_blocks(reader, &total)) return false;
    if (total == 0) return fail(reader, "an image without data");
    bool goes_on = reader->request->task < IMAGE_CODEC_CHECK ||
                   decode_image(reader, &image, reader->request->bytes + start, *code_size);
    reader->transparent_index = -1;
    reader->disposal = CANVAS_KEEP;
    reader->milliseconds = 0;
    return goes_on;
}

static bool read_screen(gif_reader *reader) {
    const uint8_t *screen = take(reader, 10);
    if (!screen) return false;
    result_t *result = reader->result;
    result->color = IMAGE_CODEC_COLOR_INDEXED;
    uint32_t width = little_endian_16(screen + 6), height = little_endian_16(screen + 8);
    if (width > 0 && height > 0 && !check_size(result, &reader->request->limits, width, height)) return false;
    result->width = width;
    result->height = height;
    const uint8_t *rest = take(reader, 3);
    if (!rest) return false;
    if (rest[0] & 0x80) {
        reader->global_colors = 2u << (rest[0] & 7);
        reader->global_palette = take(reader, 3 * (size_t)reader->global_colors);
        if (!reader->global_palette) return false;
    }
    check_budget_start(&reader->budget, reader->request);
    return true;
}

/// Zeros in place of a block, which some writers leave before the trailer: nothing is missing.
static bool skip_zeros(gif_reader *reader) {
    size_t start = reader->offset - 1;
    const uint8_t *byte;
    do byte = take(reader, 1);
    while (byte && *byte == 0);
    if (!byte) return false;
    reader->offset--;
    if (*byte != 0x3B) {
        check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF block 0x0 at byte %zu", start);
        return false;
    }
    check_keep_warning(reader->result, "GIF with %zu zero bytes before its trailer", reader->offset - start);
    return true;
}

static void read_blocks(gif_reader *reader) {
    for (;;) {
        const uint8_t *introducer = take(reader, 1);
        if (!introducer) return;
        switch (*introducer) {
        case 0:
            if (!skip_zeros(reader)) return;
            break;
        case 0x21:
            if (!read_extension(reader)) return;
            break;
        case 0x2C:
            if (!read_image(reader)) return;
            break;
        case 0x3B:
            if (reader->frames == 0) check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF without an image");
            return;
        default:
            check_end(reader->result, IMAGE_CODEC_DAMAGED, "GIF block 0x%x at byte %zu", *introducer,
                      reader->offset - 1);
            return;
        }
    }
}

static void read_gif(const request_t *request, result_t *result) {
    gif_reader reader = {.request = request, .result = result, .transparent_index = -1};
    if (read_screen(&reader)) read_blocks(&reader);
    result->memory = result->proof_memory = sizeof(code_table);
}

void gif_header(const request_t *request, result_t *result) { read_gif(request, result); }
void gif_structure(const request_t *request, result_t *result) { read_gif(request, result); }
void gif_check(const request_t *request, result_t *result) { read_gif(request, result); }

/// The structure again, for the number of frames and transparency.
static bool survey(const request_t *request, result_t *result) {
    request_t structure = *request;
    structure.task = IMAGE_CODEC_STRUCTURE;
    read_gif(&structure, result);
    return result->status == IMAGE_CODEC_WHOLE;
}

void gif_pixels(const request_t *request, result_t *result) {
    if (!survey(request, result)) return;
    uint32_t frames = result->frame_count < request->frames ? result->frame_count : request->frames;
    bool has_alpha = result->has_alpha;
    uint32_t frame_count = result->frame_count;
    result->channels = 4;
    gif_reader reader = {.request = request, .result = result, .transparent_index = -1};
    row_sink sink;
    if (frames == 1) {
        if (!rows_open(&sink, request, result, result->width, result->height, result->width, result->height)) return;
        reader.sink = &sink;
    } else {
        result->pixel_width = result->width;
        result->pixel_height = result->rows = result->height;
        if (!check_allocate_pixels(result, &request->limits, frames) || !canvas_open(&reader.canvas, result)) return;
    }
    if (read_screen(&reader)) read_blocks(&reader);
    if (reader.sink)
        rows_close(&sink);
    else
        canvas_close(&reader.canvas);
    result->has_alpha = has_alpha;
    result->frame_count = frame_count;
    if (frames == 1 && !has_alpha && result->status == IMAGE_CODEC_WHOLE) canvas_drop_alpha(result);
}
