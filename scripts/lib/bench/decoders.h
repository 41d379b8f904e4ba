// Decodes of JPEG, PNG and WebP by their libraries: true where all of it is there, and the library has nothing to say against it.
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
// After stdio.h, which it needs.
#include <jpeglib.h>
#include <webp/decode.h>

static jmp_buf jpeg_leave;
static void jpeg_fatal(j_common_ptr common) { (void)common, longjmp(jpeg_leave, 1); }
static void jpeg_silent(j_common_ptr common) { (void)common; }

// `cheaply`: every bit is read still, and pixels are made in grey at an eighth of the size, as nothing cheaper can be had of libjpeg.
static bool jpeg_decodes(const unsigned char *bytes, size_t count, bool cheaply) {
    static JSAMPLE *volatile rows;
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    decoder.err = jpeg_std_error(&errors);
    errors.error_exit = jpeg_fatal;
    errors.output_message = jpeg_silent;
    if (setjmp(jpeg_leave)) {
        jpeg_destroy_decompress(&decoder);
        return false;
    }
    jpeg_create_decompress(&decoder);
    jpeg_mem_src(&decoder, bytes, count);
    jpeg_read_header(&decoder, TRUE);
    if (decoder.jpeg_color_space != JCS_CMYK && decoder.jpeg_color_space != JCS_YCCK) decoder.out_color_space = cheaply ? JCS_GRAYSCALE : JCS_RGB;
    if (cheaply) decoder.scale_num = 1, decoder.scale_denom = 8;
    jpeg_start_decompress(&decoder);
    size_t row = (size_t)decoder.output_width * (size_t)decoder.output_components;
    rows = realloc(rows, 4 * row);
    if (!rows) abort();
    JSAMPROW four[4] = {rows, rows + row, rows + 2 * row, rows + 3 * row};
    while (decoder.output_scanline < decoder.output_height) jpeg_read_scanlines(&decoder, four, 4);
    jpeg_finish_decompress(&decoder);
    // libjpeg fills what is missing with grey and only warns.
    bool whole = errors.num_warnings == 0;
    jpeg_destroy_decompress(&decoder);
    return whole;
}

static bool png_is_whole(const unsigned char *bytes, size_t count) {
    png_image decoder = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&decoder, bytes, count)) return false;
    decoder.format = PNG_FORMAT_RGBA;
    void *pixels = malloc(PNG_IMAGE_SIZE(decoder));
    bool done = pixels && png_image_finish_read(&decoder, NULL, pixels, 0, NULL) && decoder.warning_or_error == 0;
    free(pixels);
    return done;
}

// `cheaply`: without filters of edges and of colours.
static inline bool webp_decodes(const unsigned char *bytes, size_t count, bool cheaply) {
    WebPDecoderConfig decoder;
    if (!WebPInitDecoderConfig(&decoder)) return false;
    decoder.output.colorspace = cheaply ? MODE_YUV : MODE_RGBA;
    decoder.options.bypass_filtering = decoder.options.no_fancy_upsampling = cheaply;
    bool done = WebPDecode(bytes, count, &decoder) == VP8_STATUS_OK;
    WebPFreeDecBuffer(&decoder.output);
    return done;
}
