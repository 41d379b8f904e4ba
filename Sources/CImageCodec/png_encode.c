#include "image_codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    png_structp library;
    png_infop info;
    jmp_buf escape;
    image_codec_buffer *buffer;
    size_t capacity;
} png_encoder;

static void on_error(png_structp library, png_const_charp text) {
    (void)text;
    longjmp(((png_encoder *)png_get_error_ptr(library))->escape, 1);
}

static void on_warning(png_structp library, png_const_charp text) {
    (void)library;
    (void)text;
}

static void on_write(png_structp library, png_bytep bytes, size_t count) {
    png_encoder *encoder = png_get_io_ptr(library);
    image_codec_buffer *buffer = encoder->buffer;
    if (encoder->capacity - buffer->count < count) {
        size_t capacity = (encoder->capacity + count) * 2;
        uint8_t *larger = realloc(buffer->bytes, capacity);
        if (!larger) png_error(library, "no memory");
        buffer->bytes = larger;
        encoder->capacity = capacity;
    }
    memcpy(buffer->bytes + buffer->count, bytes, count);
    buffer->count += count;
}

static void on_flush(png_structp library) { (void)library; }

static void write_metadata(png_structp library, png_infop info, const image_codec_metadata *metadata) {
    // A profile that libpng does not like, such as one of CMYK, is left out.
    png_set_benign_errors(library, 1);
    if (metadata->icc_count > 0)
        png_set_iCCP(library, info, "ICC profile", PNG_COMPRESSION_TYPE_BASE, metadata->icc,
                     (png_uint_32)metadata->icc_count);
    if (metadata->exif_count > 0)
        png_set_eXIf_1(library, info, (png_uint_32)metadata->exif_count, (png_bytep)(uintptr_t)metadata->exif);
}

/// The only frame to which longjmp returns; the state it changes is in its caller's frame.
static bool run(png_encoder *encoder, const uint8_t *pixels, uint32_t width, uint32_t height,
                const image_codec_png_options *options) {
    if (setjmp(encoder->escape)) return false;
    encoder->library = png_create_write_struct(PNG_LIBPNG_VER_STRING, encoder, on_error, on_warning);
    if (encoder->library) encoder->info = png_create_info_struct(encoder->library);
    if (!encoder->info) return false;
    png_structp library = encoder->library;
    png_set_write_fn(library, encoder, on_write, on_flush);
    png_set_IHDR(library, encoder->info, width, height, options->bit_depth, options->color_type,
                 options->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    // zlib's default level takes several times as long and hardly compresses noise better.
    png_set_compression_level(library, 3);
    if (options->color_type == PNG_COLOR_TYPE_PALETTE) {
        png_color colors[256];
        int count = options->palette_count > 256 ? 256 : options->palette_count;
        for (int i = 0; i < count; i++) memcpy(&colors[i], options->palette + 3 * i, 3);
        png_set_PLTE(library, encoder->info, colors, count);
    }
    write_metadata(library, encoder->info, &options->metadata);
    png_write_info(library, encoder->info);
    size_t stride = png_get_rowbytes(library, encoder->info);
    int passes = png_set_interlace_handling(library);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t row = 0; row < height; row++) png_write_row(library, pixels + stride * row);
    png_write_end(library, NULL);
    return true;
}

bool image_codec_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                            const image_codec_png_options *options, image_codec_buffer *buffer) {
    png_encoder encoder;
    memset(&encoder, 0, sizeof encoder);
    buffer->bytes = NULL;
    buffer->count = 0;
    encoder.buffer = buffer;
    bool done = run(&encoder, pixels, width, height, options);
    png_destroy_write_struct(&encoder.library, &encoder.info);
    if (!done) image_codec_release(buffer);
    return done;
}
