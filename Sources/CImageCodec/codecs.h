// The tasks of each format; `codec.c` chooses among them. Each fills `result`, whose counts and status are 0 at the start.
#pragma once
#include "check.h"

typedef image_codec_request request_t;
typedef image_codec_result result_t;

/// Of longer ones libjpeg decides alone: what proves them whole without it would copy them.
enum { JPEG_MAX_WALKED_BYTES = 64 << 20 };

void jpeg_header(const request_t *request, result_t *result);
void jpeg_structure(const request_t *request, result_t *result);
void jpeg_check(const request_t *request, result_t *result);
void jpeg_pixels(const request_t *request, result_t *result);
void jpeg_prove(const request_t *request, result_t *result);

void png_header(const request_t *request, result_t *result);
void png_structure(const request_t *request, result_t *result);
void png_check(const request_t *request, result_t *result);
void png_pixels(const request_t *request, result_t *result);
void png_prove(const request_t *request, result_t *result);

void gif_header(const request_t *request, result_t *result);
void gif_structure(const request_t *request, result_t *result);
void gif_check(const request_t *request, result_t *result);
void gif_pixels(const request_t *request, result_t *result);

void webp_check(const request_t *request, result_t *result);
void webp_pixels(const request_t *request, result_t *result);
void webp_prove(const request_t *request, result_t *result);
/// Whether the image is proved whole without libwebp, or over a limit, which ends the check.
bool webp_is_proved(const request_t *request, result_t *result);
bool webp_is_loaded(void);
void webp_describe(char text[IMAGE_CODEC_TEXT]);

void avif_header(const request_t *request, result_t *result);
void avif_structure(const request_t *request, result_t *result);
void avif_check(const request_t *request, result_t *result);
void avif_pixels(const request_t *request, result_t *result);
/// An `image_codec_status`: of the boxes that describe the images, beyond what libavif looks at.
int avif_box_status(const request_t *request);
bool avif_is_loaded(void);
void avif_describe(char text[IMAGE_CODEC_TEXT]);
