// Decodes a PNG row by row into libpng's own row buffer, in the file's pixel format: this detects every inflate error, invalid filter byte
// and missing row; expanding to RGBA would only cost time.
#include "check.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Maximum compressed data after the last row. Encoders with an extra row need a few hundred bytes; inflated it is at most 67 MB, 0.1 s.
enum { MAX_SURPLUS_BYTES = 1 << 16 };
// Pixels of work per byte read, for the time budget: the clock is read every 4 KiB, which inflate to at most 4 MiB.
enum { PIXELS_PER_BYTE_READ = 64 };

// Chunks irrelevant to the pixels, skipped in any number: libpng would copy and inflate up to 8 MB of each.
static const png_byte passed_over[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf";

typedef struct {
    png_structp library;
    png_infop info;
    jmp_buf escape;
    const uint8_t *next;
    size_t left;
    /// Remaining image data allowed after the last row; counted while `is_inflating`.
    size_t surplus_left;
    /// Rows are being read, and the compressed data has not ended.
    bool is_inflating;
    /// Bytes currently allocated by libpng.
    uint64_t allocated;
    check_budget budget;
    const image_codec_limits *limits;
    image_codec_result *result;
    bool is_over_memory;
    bool out_of_memory;
} png_decoder;

/// Precedes each block allocated by libpng.
typedef union {
    size_t count;
    max_align_t alignment;
} block_head;

static void on_error(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    if (decoder->is_over_memory)
        check_end(decoder->result, IMAGE_CODEC_OVER_LIMIT, "PNG takes more than %" PRIu64 " bytes to decode",
                  decoder->limits->max_memory);
    else
        check_end(decoder->result, decoder->out_of_memory ? IMAGE_CODEC_NO_MEMORY : IMAGE_CODEC_DAMAGED, "%s", text);
    longjmp(decoder->escape, 1);
}

/// libpng prefixes the text with the chunk's name. For IDAT only excess bytes are tolerable. Out of memory in an ancillary chunk is a
/// warning for libpng; here it ends the check, so that the verdict does not depend on the rest of the process.
static void on_warning(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    bool lacks_memory = decoder->is_over_memory || decoder->out_of_memory;
    // Data after the end of the compressed stream is only skipped.
    bool is_extra = strncmp(text, "IDAT", 4) == 0 && strstr(text, "Extra compressed data");
    if (is_extra) decoder->is_inflating = false;
    if ((is_extra || strncmp(text, "IDAT", 4) != 0 || strstr(text, "Too much image data")) && !lacks_memory)
        check_keep_warning(decoder->result, text);
    else
        on_error(library, text);
}

static void end_over_limit(png_decoder *decoder, const char *text) {
    check_end(decoder->result, IMAGE_CODEC_OVER_LIMIT, "%s", text);
    longjmp(decoder->escape, 1);
}

/// libpng counts a row, or the last pass, as read before it looks for the end of the data, which inflates everything left.
static bool is_behind_last_row(const png_decoder *decoder) {
    return png_get_current_row_number(decoder->library) >= decoder->result->height ||
           png_get_current_pass_number(decoder->library) >= PNG_INTERLACE_ADAM7_PASSES;
}

static void on_read(png_structp library, png_bytep into, size_t count) {
    png_decoder *decoder = png_get_io_ptr(library);
    if (count > decoder->left) png_error(library, "PNG ends before its IEND chunk");
    if (!check_budget_spend(&decoder->budget, (uint64_t)count * PIXELS_PER_BYTE_READ))
        end_over_limit(decoder, "PNG takes too long to decode");
    if (decoder->is_inflating && is_behind_last_row(decoder)) {
        if (count > decoder->surplus_left)
            end_over_limit(decoder, "PNG with image data that goes on behind the last row");
        decoder->surplus_left -= count;
    }
    memcpy(into, decoder->next, count);
    decoder->next += count;
    decoder->left -= count;
}

static png_voidp on_allocate(png_structp library, png_alloc_size_t count) {
    png_decoder *decoder = png_get_mem_ptr(library);
    if (count > decoder->limits->max_memory - decoder->allocated) {
        decoder->is_over_memory = true;
        return NULL;
    }
    block_head *head = malloc(sizeof *head + count);
    if (!head) {
        decoder->out_of_memory = true;
        return NULL;
    }
    head->count = count;
    decoder->allocated += count;
    return head + 1;
}

static void on_free(png_structp library, png_voidp memory) {
    if (!memory) return;
    png_decoder *decoder = png_get_mem_ptr(library);
    block_head *head = (block_head *)memory - 1;
    decoder->allocated -= head->count;
    free(head);
}

/// The only frame to which longjmp returns; the state it changes is in its caller's frame.
static void run(png_decoder *decoder) {
    if (setjmp(decoder->escape)) return;
    decoder->library = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoder, on_error, on_warning, decoder,
                                                on_allocate, on_free);
    if (decoder->library) decoder->info = png_create_info_struct(decoder->library);
    if (!decoder->info) return check_end(decoder->result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a PNG");
    png_structp library = decoder->library;
    png_set_read_fn(library, decoder, on_read);
    png_set_user_limits(library, decoder->limits->max_dimension, decoder->limits->max_dimension);
    png_set_chunk_malloc_max(library, PNG_MAX_CHUNK_BYTES);
    png_set_keep_unknown_chunks(library, PNG_HANDLE_CHUNK_NEVER, passed_over, sizeof passed_over / 5);
    // The structure check has compared the CRC of every chunk.
    png_set_crc_action(library, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_read_info(library, decoder->info);
    int passes = png_set_interlace_handling(library);
    png_start_read_image(library);
    uint32_t width = decoder->result->width, height = decoder->result->height;
    decoder->is_inflating = true;
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t row = 0; row < height; row++) {
            png_read_row(library, NULL, NULL);
            if (!check_budget_spend(&decoder->budget, width))
                return check_end(decoder->result, IMAGE_CODEC_OVER_LIMIT, "PNG takes too long to decode");
        }
    }
    decoder->is_inflating = false;
    // All pixels are read; libpng may still report misplaced chunks.
    png_read_end(library, NULL);
}

void image_codec_png_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result) {
    png_decoder decoder;
    memset(&decoder, 0, sizeof decoder);
    decoder.next = bytes;
    decoder.left = count;
    decoder.surplus_left = MAX_SURPLUS_BYTES;
    decoder.limits = limits;
    decoder.result = result;
    check_budget_start(&decoder.budget, limits, result->width, result->height);
    run(&decoder);
    png_destroy_read_struct(&decoder.library, &decoder.info, NULL);
}
