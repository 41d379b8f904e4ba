// A PNG decoded row by row into libpng's own row buffer, in the file's own pixel form: every inflate error, filter byte and missing
// row is found; expanding to RGBA would only cost.
#include "check.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CACHED_CHUNKS = 128, MAX_CHUNK_BYTES = 8000000 };

typedef struct {
    png_structp library;
    png_infop info;
    jmp_buf escape;
    const uint8_t *next;
    size_t left;
    check_budget budget;
    const image_codec_limits *limits;
    image_codec_result *result;
    bool out_of_memory;
} png_decoder;

static void on_error(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    check_end(decoder->result, decoder->out_of_memory ? IMAGE_CODEC_NO_MEMORY : IMAGE_CODEC_DAMAGED, "%s", text);
    longjmp(decoder->escape, 1);
}

/// libpng puts the chunk's name before the text. On IDAT only bytes too many leave the image whole.
static void on_warning(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    if (strncmp(text, "IDAT", 4) != 0 || strstr(text, "Extra compressed data") || strstr(text, "Too much image data"))
        check_keep_warning(decoder->result, text);
    else
        on_error(library, text);
}

static void on_read(png_structp library, png_bytep into, size_t count) {
    png_decoder *decoder = png_get_io_ptr(library);
    if (count > decoder->left) png_error(library, "PNG ends before its IEND chunk");
    memcpy(into, decoder->next, count);
    decoder->next += count;
    decoder->left -= count;
}

static png_voidp on_allocate(png_structp library, png_alloc_size_t count) {
    png_decoder *decoder = png_get_mem_ptr(library);
    void *memory = malloc(count);
    if (!memory) decoder->out_of_memory = true;
    return memory;
}

static void on_free(png_structp library, png_voidp memory) {
    (void)library;
    free(memory);
}

/// The only frame a longjmp returns to; what it changes lives in its caller's frame.
static void run(png_decoder *decoder) {
    if (setjmp(decoder->escape)) return;
    decoder->library = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoder, on_error, on_warning, decoder,
                                                on_allocate, on_free);
    if (decoder->library) decoder->info = png_create_info_struct(decoder->library);
    if (!decoder->info) return check_end(decoder->result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a PNG");
    png_structp library = decoder->library;
    png_set_read_fn(library, decoder, on_read);
    png_set_user_limits(library, decoder->limits->max_dimension, decoder->limits->max_dimension);
    png_set_chunk_cache_max(library, MAX_CACHED_CHUNKS);
    png_set_chunk_malloc_max(library, MAX_CHUNK_BYTES);
    // The walk before this has compared the CRC of every chunk.
    png_set_crc_action(library, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_read_info(library, decoder->info);
    int passes = png_set_interlace_handling(library);
    png_start_read_image(library);
    uint32_t width = decoder->result->width, height = decoder->result->height;
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t row = 0; row < height; row++) {
            png_read_row(library, NULL, NULL);
            if (!check_budget_spend(&decoder->budget, width))
                return check_end(decoder->result, IMAGE_CODEC_OVER_LIMIT, "PNG takes too long to decode");
        }
    }
    png_read_end(library, NULL);
}

void image_codec_png_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result) {
    image_codec_png_structure(bytes, count, limits, result);
    if (result->status != IMAGE_CODEC_WHOLE) return;
    png_decoder decoder;
    memset(&decoder, 0, sizeof decoder);
    decoder.next = bytes;
    decoder.left = count;
    decoder.limits = limits;
    decoder.result = result;
    check_budget_start(&decoder.budget, limits, result->width, result->height);
    run(&decoder);
    png_destroy_read_struct(&decoder.library, &decoder.info, NULL);
}
