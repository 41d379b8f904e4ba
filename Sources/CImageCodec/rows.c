#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool rows_are_reduced(const request_t *request, uint32_t width, uint32_t height) {
    return request->to_width > 0 && request->to_height > 0 && (request->to_width != width || request->to_height != height);
}

static bool open_resampler(row_sink *sink, const request_t *request, uint32_t width, uint32_t height, double right,
                           double bottom) {
    result_t *result = sink->result;
    image_resample_request resampling = {.width = width,
                                         .height = height,
                                         .channels = (int)result->channels,
                                         .right = right,
                                         .bottom = bottom,
                                         .to_width = request->to_width,
                                         .to_height = request->to_height,
                                         .is_fast = true};
    int status = image_resampler_open(&resampling, result->pixels.bytes, &sink->resampler);
    if (status == IMAGE_RESAMPLE_DONE) sink->row = calloc(1, sink->stride);
    if (sink->row) return true;
    if (status == IMAGE_RESAMPLE_INVALID)
        check_end(result, IMAGE_CODEC_OVER_SIDE, "%" PRIu32 " x %" PRIu32 " pixels cannot be resized: a side has over 65535", width, height);
    else
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to resize an image");
    rows_close(sink);
    return false;
}

bool rows_open(row_sink *sink, const request_t *request, result_t *result, uint32_t width, uint32_t height, double right,
               double bottom) {
    memset(sink, 0, sizeof *sink);
    sink->result = result;
    sink->stride = (size_t)width * result->channels;
    bool is_reduced = rows_are_reduced(request, width, height);
    result->pixel_width = is_reduced ? request->to_width : width;
    result->pixel_height = result->rows = is_reduced ? request->to_height : height;
    if (!check_allocate_pixels(result, &request->limits, 1)) return false;
    if (is_reduced) return open_resampler(sink, request, width, height, right, bottom);
    sink->row = result->pixels.bytes;
    return true;
}

void rows_put(row_sink *sink) {
    if (sink->resampler)
        image_resampler_put(sink->resampler, sink->row);
    else
        sink->row += sink->stride;
}

void rows_close(row_sink *sink) {
    if (!sink->resampler) return;
    image_resampler_close(sink->resampler);
    free(sink->row);
    sink->resampler = NULL;
    sink->row = NULL;
}

void rows_reduce(const request_t *request, result_t *result) {
    uint32_t width = result->pixel_width, height = result->pixel_height;
    if (result->status != IMAGE_CODEC_WHOLE || !rows_are_reduced(request, width, height)) return;
    image_codec_buffer whole = result->pixels;
    result->pixels = (image_codec_buffer){NULL, 0};
    image_codec_release(&result->durations);
    row_sink sink;
    if (rows_open(&sink, request, result, width, height, width, height)) {
        for (uint32_t y = 0; y < height; y++) {
            memcpy(sink.row, whole.bytes + sink.stride * y, sink.stride);
            rows_put(&sink);
        }
        rows_close(&sink);
    }
    image_codec_release(&whole);
}
