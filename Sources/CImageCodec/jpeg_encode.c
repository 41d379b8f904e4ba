#include "image_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After stdio.h, which jpeglib.h needs.
#include <jpeglib.h>

typedef struct {
    struct jpeg_compress_struct library;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    unsigned char *bytes;
    unsigned long count;
} jpeg_encoder;

static void on_error(j_common_ptr library) { longjmp(((jpeg_encoder *)library->client_data)->escape, 1); }

static void on_message(j_common_ptr library, int level) {
    (void)library;
    (void)level;
}

static J_COLOR_SPACE color_space(int components) {
    switch (components) {
    case 1: return JCS_GRAYSCALE;
    case 3: return JCS_RGB;
    case 4: return JCS_CMYK;
    default: return JCS_UNKNOWN;
    }
}

/// EXIF that does not fit its one segment is left out.
static void write_metadata(struct jpeg_compress_struct *library, const image_codec_metadata *metadata) {
    enum { MAX_SEGMENT = 65533, PREFIX = 6 };
    if (metadata->exif_count > 0 && metadata->exif_count <= MAX_SEGMENT - PREFIX) {
        jpeg_write_m_header(library, JPEG_APP0 + 1, (unsigned)(PREFIX + metadata->exif_count));
        for (int i = 0; i < PREFIX; i++) jpeg_write_m_byte(library, "Exif\0"[i]);
        for (size_t i = 0; i < metadata->exif_count; i++) jpeg_write_m_byte(library, metadata->exif[i]);
    }
    if (metadata->icc_count > 0) jpeg_write_icc_profile(library, metadata->icc, (unsigned)metadata->icc_count);
}

/// The only frame to which longjmp returns; the state it changes is in its caller's frame.
static bool run(jpeg_encoder *encoder, const uint8_t *pixels, uint32_t width, uint32_t height,
                const image_codec_jpeg_options *options) {
    struct jpeg_compress_struct *library = &encoder->library;
    if (setjmp(encoder->escape)) return false;
    jpeg_create_compress(library);
    library->client_data = encoder;
    jpeg_mem_dest(library, &encoder->bytes, &encoder->count);
    library->image_width = width;
    library->image_height = height;
    library->input_components = options->components;
    library->in_color_space = color_space(options->components);
    jpeg_set_defaults(library);
    jpeg_set_quality(library, options->quality, TRUE);
    library->restart_interval = options->restart_interval;
    if (options->progressive) jpeg_simple_progression(library);
    jpeg_start_compress(library, TRUE);
    write_metadata(library, &options->metadata);
    size_t stride = (size_t)width * (size_t)options->components;
    while (library->next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + stride * library->next_scanline);
        jpeg_write_scanlines(library, &row, 1);
    }
    jpeg_finish_compress(library);
    return true;
}

bool image_codec_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_jpeg_options *options, image_codec_buffer *buffer) {
    jpeg_encoder encoder;
    memset(&encoder, 0, sizeof encoder);
    encoder.library.err = jpeg_std_error(&encoder.errors);
    encoder.library.client_data = &encoder;
    encoder.errors.error_exit = on_error;
    encoder.errors.emit_message = on_message;
    bool done = run(&encoder, pixels, width, height, options);
    jpeg_destroy_compress(&encoder.library);
    if (!done) {
        free(encoder.bytes);
        encoder.bytes = NULL;
        encoder.count = 0;
    }
    buffer->bytes = encoder.bytes;
    buffer->count = encoder.count;
    return done;
}
