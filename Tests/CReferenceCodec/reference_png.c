#include "reference_codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const uint8_t *next;
    size_t left;
    bool damaged;
    png_bytep rows;
};

static void on_error(png_structp library, png_const_charp text) {
    (void)text;
    longjmp(png_jmpbuf(library), 1);
}

static void on_warning(png_structp library, png_const_charp text) {
    struct source *source = png_get_error_ptr(library);
    if (strncmp(text, "IDAT", 4) == 0 && !strstr(text, "Extra compressed data") && !strstr(text, "Too much image data"))
        source->damaged = true;
}

static void on_read(png_structp library, png_bytep into, size_t count) {
    struct source *source = png_get_io_ptr(library);
    if (count > source->left) png_error(library, "ends early");
    memcpy(into, source->next, count);
    source->next += count;
    source->left -= count;
}

bool reference_png_is_whole(const uint8_t *bytes, size_t count) {
    struct source source = {bytes, count, false, NULL};
    png_structp library = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
    png_infop info = png_create_info_struct(library);
    if (setjmp(png_jmpbuf(library))) {
        free(source.rows);
        png_destroy_read_struct(&library, &info, NULL);
        return false;
    }
    png_set_read_fn(library, &source, on_read);
    png_set_crc_action(library, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(library, info);
    png_set_expand(library);
    png_set_scale_16(library);
    png_set_gray_to_rgb(library);
    png_set_add_alpha(library, 0xFF, PNG_FILLER_AFTER);
    int passes = png_set_interlace_handling(library);
    png_read_update_info(library, info);
    size_t stride = png_get_rowbytes(library, info), height = png_get_image_height(library, info);
    // Not on the stack: 'rows' outlives the jump only there.
    source.rows = malloc(stride * height);
    if (!source.rows) png_error(library, "no memory");
    for (int pass = 0; pass < passes; pass++)
        for (size_t row = 0; row < height; row++) png_read_row(library, source.rows + stride * row, NULL);
    png_read_end(library, info);
    free(source.rows);
    png_destroy_read_struct(&library, &info, NULL);
    return !source.damaged;
}
