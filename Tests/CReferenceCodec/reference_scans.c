#include "reference_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After stdio.h, which jpeglib.h needs.
#include <jpeglib.h>

struct errors {
    struct jpeg_error_mgr manager;
    jmp_buf escape;
};

static void on_error(j_common_ptr library) { longjmp(((struct errors *)library->err)->escape, 1); }
static void say_nothing(j_common_ptr library) { (void)library; }

static struct jpeg_error_mgr *quiet(struct errors *errors) {
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = on_error;
    errors->manager.output_message = say_nothing;
    return &errors->manager;
}

long reference_jpeg_warnings(const uint8_t *bytes, size_t count) {
    struct jpeg_decompress_struct library;
    struct errors errors;
    library.err = quiet(&errors);
    if (setjmp(errors.escape)) {
        jpeg_destroy_decompress(&library);
        return -1;
    }
    jpeg_create_decompress(&library);
    jpeg_mem_src(&library, bytes, (unsigned long)count);
    jpeg_read_header(&library, TRUE);
    if (library.arith_code) on_error((j_common_ptr)&library);
    jpeg_start_decompress(&library);
    JSAMPARRAY row = library.mem->alloc_sarray((j_common_ptr)&library, JPOOL_IMAGE,
                                               library.output_width * (JDIMENSION)library.output_components, 1);
    while (library.output_scanline < library.output_height) jpeg_read_scanlines(&library, row, 1);
    // A component that no scan has brought is painted grey, without a word.
    for (int i = 0; i < library.num_components; i++)
        if (!library.comp_info[i].quant_table) on_error((j_common_ptr)&library);
    jpeg_finish_decompress(&library);
    long warnings = errors.manager.num_warnings;
    jpeg_destroy_decompress(&library);
    return warnings;
}

/// Scans of three components, and of one, that encoders use, and some that they do not: without the last bits, with several refinements.
static const jpeg_scan_info sequential[] = {{1, {0}, 0, 63, 0, 0}, {2, {1, 2}, 0, 63, 0, 0}};
static const jpeg_scan_info separate[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
static const jpeg_scan_info spectral[] = {
    {3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 8, 0, 0}, {1, {1}, 1, 63, 0, 0}, {1, {2}, 1, 63, 0, 0}, {1, {0}, 9, 63, 0, 0}};
static const jpeg_scan_info refined[] = {{1, {0}, 0, 0, 0, 1}, {2, {1, 2}, 0, 0, 0, 2}, {1, {0}, 1, 5, 0, 3}, {1, {0}, 6, 63, 0, 3},
                                         {1, {0}, 1, 63, 3, 2}, {1, {1}, 1, 63, 0, 2}, {2, {1, 2}, 0, 0, 2, 1}, {1, {0}, 1, 63, 2, 1},
                                         {1, {1}, 1, 63, 2, 1}, {1, {0}, 1, 63, 1, 0}, {3, {0, 1, 2}, 0, 0, 1, 0}, {1, {2}, 1, 63, 0, 0}};
static const jpeg_scan_info partial[] = {{3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 1}};
static const jpeg_scan_info grey[] = {{1, {0}, 0, 0, 0, 1}, {1, {0}, 1, 9, 0, 2}, {1, {0}, 10, 63, 0, 1},
                                      {1, {0}, 1, 9, 2, 1}, {1, {0}, 1, 63, 1, 0}, {1, {0}, 0, 0, 1, 0}};

static void set_scans(struct jpeg_compress_struct *library, const reference_jpeg_options *options) {
    static const struct {
        const jpeg_scan_info *scans;
        int count;
    } scripts[] = {{sequential, 2}, {separate, 3}, {spectral, 5}, {refined, 12}, {partial, 2}};
    if (options->script == 0) return jpeg_simple_progression(library);
    if (library->num_components == 4) return;
    library->scan_info = library->num_components == 1 ? grey : scripts[(options->script - 1) % 5].scans;
    library->num_scans = library->num_components == 1 ? 6 : scripts[(options->script - 1) % 5].count;
}

size_t reference_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height, const reference_jpeg_options *options, uint8_t *into,
                             size_t capacity) {
    static const int across[] = {2, 1, 2, 1, 4}, down[] = {2, 1, 1, 2, 1};
    struct jpeg_compress_struct library;
    struct errors errors;
    unsigned char *made = NULL;
    unsigned long length = 0;
    library.err = quiet(&errors);
    if (setjmp(errors.escape)) {
        jpeg_destroy_compress(&library);
        free(made);
        return 0;
    }
    jpeg_create_compress(&library);
    jpeg_mem_dest(&library, &made, &length);
    library.image_width = width;
    library.image_height = height;
    library.input_components = options->components;
    library.in_color_space = options->components == 1 ? JCS_GRAYSCALE : options->components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&library);
    jpeg_set_quality(&library, options->quality, TRUE);
    library.restart_interval = options->restart_interval;
    library.optimize_coding = TRUE;
    if (options->components == 3) {
        library.comp_info[0].h_samp_factor = across[options->sampling % 5];
        library.comp_info[0].v_samp_factor = down[options->sampling % 5];
    }
    set_scans(&library, options);
    jpeg_start_compress(&library, TRUE);
    while (library.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)library.next_scanline * width * (unsigned)options->components);
        jpeg_write_scanlines(&library, &row, 1);
    }
    jpeg_finish_compress(&library);
    jpeg_destroy_compress(&library);
    if (length > capacity) length = 0;
    memcpy(into, made, length);
    free(made);
    return length;
}
