#include "codecs.h"

#include <stdlib.h>
#include <string.h>

typedef void task_function(const request_t *request, result_t *result);

/// There is no own reader of the image data.
static void undecided(const request_t *request, result_t *result) {
    (void)request;
    result->status = IMAGE_CODEC_UNDECIDED;
}

static task_function *const tasks[][5] = {
    [IMAGE_CODEC_JPEG] = {jpeg_header, jpeg_structure, jpeg_check, jpeg_pixels, jpeg_prove},
    [IMAGE_CODEC_PNG] = {png_header, png_structure, png_check, png_pixels, png_prove},
    [IMAGE_CODEC_GIF] = {gif_header, gif_structure, gif_check, gif_pixels, gif_check},
    [IMAGE_CODEC_WEBP] = {NULL, NULL, webp_check, webp_pixels, webp_prove},
    [IMAGE_CODEC_AVIF] = {avif_header, avif_structure, avif_check, avif_pixels, undecided},
};

bool image_codec_has_task(const image_codec_request *request) {
    if (request->format < IMAGE_CODEC_JPEG || request->format > IMAGE_CODEC_AVIF) return false;
    return request->task >= IMAGE_CODEC_HEADER && request->task <= IMAGE_CODEC_PROVE && tasks[request->format][request->task];
}

void image_codec_run(const image_codec_request *request, image_codec_result *result) {
    result->status = IMAGE_CODEC_WHOLE;
    result->width = result->height = 0;
    result->memory = result->proof_memory = 0;
    result->whole = IMAGE_CODEC_ROWS;
    result->proof = IMAGE_CODEC_PROOF_FAILED;
    result->undecided = request->count;
    result->orientation = 1;
    result->frame_count = 1;
    result->loop_count = 1;
    result->has_alpha = false;
    result->color = IMAGE_CODEC_COLOR_UNKNOWN;
    result->warning_count = 0;
    result->warnings_seen = 0;
    result->spent = 0;
    result->message[0] = 0;
    image_codec_buffer none = {NULL, 0};
    result->pixels = result->durations = result->exif = result->icc = none;
    result->pixel_width = result->pixel_height = result->channels = result->pixel_frames = result->rows = 0;
    if (!image_codec_has_task(request) || (request->task == IMAGE_CODEC_PIXELS && request->frames == 0)) {
        check_end(result, IMAGE_CODEC_UNSUPPORTED, "there is no such task");
        return;
    }
    uint64_t start = check_nanoseconds();
    tasks[request->format][request->task](request, result);
    result->spent = check_nanoseconds() - start;
    if (result->status != IMAGE_CODEC_WHOLE) image_codec_release_result(result);
}

void image_codec_release_result(image_codec_result *result) {
    image_codec_release(&result->pixels);
    image_codec_release(&result->durations);
    image_codec_release(&result->exif);
    image_codec_release(&result->icc);
}

bool image_codec_can_decode(int format) {
    switch (format) {
    case IMAGE_CODEC_WEBP: return webp_is_loaded();
    case IMAGE_CODEC_AVIF: return avif_is_loaded();
    default: return format >= IMAGE_CODEC_JPEG && format <= IMAGE_CODEC_GIF;
    }
}

void image_codec_describe(int format, char text[IMAGE_CODEC_TEXT]) {
    text[0] = 0;
    if (format == IMAGE_CODEC_WEBP) webp_describe(text);
    if (format == IMAGE_CODEC_AVIF) avif_describe(text);
}
