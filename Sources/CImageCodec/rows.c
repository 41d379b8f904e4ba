#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool rows_are_resampled(const request_t *request, uint32_t width, uint32_t height) {
    if (request->to_width == 0 || request->to_height == 0) return false;
    return request->to_width != width || request->to_height != height || request->left > 0 || request->top > 0 ||
           request->right < width || request->bottom < height;
}

/// A place in the image, in the rows of it that end at `end`.
static double place(double at, uint32_t side, double end) {
    double there = at * end / side;
    return there > end ? end : there;
}

static bool open_resampler(row_sink *sink, const request_t *request, uint32_t width, uint32_t height, double right,
                           double bottom) {
    result_t *result = sink->result;
    image_resample_request resampling = {.width = width,
                                         .height = height,
                                         .channels = (int)result->channels,
                                         .left = place(request->left, result->width, right),
                                         .top = place(request->top, result->height, bottom),
                                         .right = place(request->right, result->width, right),
                                         .bottom = place(request->bottom, result->height, bottom),
                                         .to_width = request->to_width,
                                         .to_height = request->to_height,
                                         .is_fast = true};
    int status = image_resampler_open(&resampling, result->pixels.bytes, &sink->resampler);
    if (status == IMAGE_RESAMPLE_DONE) {
        sink->row = image_resampler_row(sink->resampler);
        return true;
    }
    if (status == IMAGE_RESAMPLE_INVALID)
        check_end(result, IMAGE_CODEC_OVER_SIDE, "%" PRIu32 " x %" PRIu32 " pixels cannot be resized: a side has over 65535", width, height);
    else
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to resize an image");
    return false;
}

/// Whether whole pixels are cut off, and no other than these change.
static bool is_cut(const request_t *request, const result_t *result, double right, double bottom) {
    double left = request->left, top = request->top;
    return right == result->width && bottom == result->height && left >= 0 && top >= 0 && request->right <= right &&
           request->bottom <= bottom && request->right == left + request->to_width && request->bottom == top + request->to_height &&
           left == (uint32_t)left && top == (uint32_t)top;
}

static bool open_cut(row_sink *sink, const request_t *request) {
    result_t *result = sink->result;
    sink->is_cut = true;
    sink->above = (uint32_t)request->top;
    sink->before = (uint32_t)request->left * (size_t)result->channels;
    sink->next = result->pixels.bytes;
    sink->row = calloc(1, sink->stride);
    if (!sink->row) check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to cut an image");
    return sink->row;
}

bool rows_open(row_sink *sink, const request_t *request, result_t *result, uint32_t width, uint32_t height, double right,
               double bottom) {
    memset(sink, 0, sizeof *sink);
    sink->result = result;
    sink->stride = (size_t)width * result->channels;
    bool is_resampled = rows_are_resampled(request, result->width, result->height);
    result->pixel_width = is_resampled ? request->to_width : width;
    result->pixel_height = result->rows = is_resampled ? request->to_height : height;
    if (!check_allocate_pixels(result, &request->limits, 1)) return false;
    if (is_resampled && is_cut(request, result, right, bottom)) return open_cut(sink, request);
    if (is_resampled) return open_resampler(sink, request, width, height, right, bottom);
    sink->row = result->pixels.bytes;
    return true;
}

static void put_cut(row_sink *sink) {
    const result_t *result = sink->result;
    size_t length = (size_t)result->pixel_width * result->channels;
    if (sink->above > 0) {
        sink->above--;
    } else if (sink->next < result->pixels.bytes + result->pixels.count) {
        memcpy(sink->next, sink->row + sink->before, length);
        sink->next += length;
    }
}

void rows_put(row_sink *sink) {
    if (sink->resampler) {
        image_resampler_put(sink->resampler, sink->row);
        sink->row = image_resampler_row(sink->resampler);
    } else if (sink->is_cut) {
        put_cut(sink);
    } else {
        sink->row += sink->stride;
    }
}

void rows_close(row_sink *sink) {
    if (sink->is_cut) free(sink->row);
    if (sink->resampler) image_resampler_close(sink->resampler);
    memset(sink, 0, sizeof *sink);
}

void rows_resample(const request_t *request, result_t *result) {
    uint32_t width = result->pixel_width, height = result->pixel_height;
    if (result->status != IMAGE_CODEC_WHOLE || !rows_are_resampled(request, result->width, result->height)) return;
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
