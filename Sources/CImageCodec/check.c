// clock_gettime is POSIX, not C17.
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHECK_STEP = 1 << 18, CHECK_BYTES = 1 << 16, MAX_PIXELS_PER_BYTE = 1000 };

void check_end(image_codec_result *result, int status, const char *format, ...) {
    result->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->message, sizeof result->message, format, arguments);
    va_end(arguments);
}

void check_keep_warning(image_codec_result *result, const char *format, ...) {
    if (result->warnings_seen < UINT32_MAX) result->warnings_seen++;
    if (result->warning_count >= IMAGE_CODEC_WARNINGS) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->warnings[result->warning_count++], IMAGE_CODEC_TEXT, format, arguments);
    va_end(arguments);
}

bool check_size(image_codec_result *result, const image_codec_limits *limits, uint32_t width, uint32_t height) {
    result->width = width;
    result->height = height;
    if (width == 0 || height == 0) {
        check_end(result, IMAGE_CODEC_DAMAGED, "%" PRIu32 " x %" PRIu32 " pixels", width, height);
        return false;
    }
    if (width > limits->max_dimension || height > limits->max_dimension) {
        check_end(result, IMAGE_CODEC_OVER_LIMIT, "%" PRIu32 " x %" PRIu32 " pixels, the limit is %" PRIu32 " a side" CHECK_UNCHECKED,
                  width, height, limits->max_dimension);
        return false;
    }
    if ((uint64_t)width * height > limits->max_pixels) {
        check_end(result, IMAGE_CODEC_OVER_PIXELS, "%" PRIu32 " x %" PRIu32 " pixels, the limit is %" PRIu64 " in all" CHECK_MAX_PIXELS,
                  width, height, limits->max_pixels);
        return false;
    }
    return true;
}

bool check_whole_size(image_codec_result *result, const image_codec_limits *limits, const char *kind) {
    if ((uint64_t)result->width * result->height <= limits->max_whole_pixels) return true;
    check_end(result, IMAGE_CODEC_OVER_LIMIT,
              "%" PRIu32 " x %" PRIu32 " pixels, the limit of a %s is %" PRIu64 CHECK_UNCHECKED, result->width,
              result->height, kind, limits->max_whole_pixels);
    return false;
}

uint64_t check_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t image_codec_cpu_limit(const image_codec_limits *limits, uint64_t bytes, uint64_t pixels) {
    uint64_t most = bytes * MAX_PIXELS_PER_BYTE, counted = pixels < most ? pixels : most;
    return limits->cpu_nanoseconds + limits->cpu_nanoseconds_per_pixel * (counted > bytes ? counted : bytes);
}

void check_budget_start(check_budget *budget, const image_codec_request *request) {
    budget->request = request;
    uint64_t now = check_nanoseconds();
    // Threads are younger than what children have spent for the same file.
    budget->start = now - request->spent;
    budget->granted_pixels = budget->pixels = budget->bytes = 0;
    check_budget_grant(budget, 0);
}

void check_budget_grant(check_budget *budget, uint64_t pixels) {
    budget->granted_pixels += pixels;
    budget->granted = image_codec_cpu_limit(&budget->request->limits, budget->request->count, budget->granted_pixels);
}

bool check_budget_spend(check_budget *budget, uint64_t pixels) {
    budget->pixels += pixels;
    return budget->pixels < CHECK_STEP || check_budget_look(budget);
}

bool check_budget_look(check_budget *budget) {
    budget->pixels = budget->bytes = 0;
    return check_nanoseconds() - budget->start <= budget->granted;
}

bool check_budget_read(check_budget *budget, uint64_t bytes) {
    budget->bytes += bytes;
    return budget->bytes < CHECK_BYTES || check_budget_look(budget);
}

void check_end_slow(image_codec_result *result, const check_budget *budget, const char *format) {
    check_end(result, IMAGE_CODEC_OVER_DECODING, "%s takes too long to read, more than %.1f s" CHECK_UNCHECKED, format,
              (double)budget->granted / 1e9);
}

void check_end_late(image_codec_result *result, const check_budget *budget, const char *format) {
    check_end(result, IMAGE_CODEC_OVER_DECODING, "%s takes too long to decode, more than %.1f s" CHECK_UNDECODED, format,
              (double)budget->granted / 1e9);
}

bool check_frames(image_codec_result *result, const image_codec_limits *limits, uint64_t frames, const char *format) {
    if (frames <= limits->max_frames) return true;
    check_end(result, IMAGE_CODEC_OVER_LIMIT, "%s with more than %" PRIu32 " frames" CHECK_UNCHECKED, format,
              limits->max_frames);
    return false;
}

bool check_allocate_pixels(image_codec_result *result, const image_codec_limits *limits, uint32_t frames) {
    uint64_t bytes = (uint64_t)result->pixel_width * result->pixel_height * result->channels * frames;
    if (bytes > limits->max_memory) {
        check_end(result, IMAGE_CODEC_OVER_MEMORY, "%" PRIu64 " bytes of pixels, the limit is %" PRIu64 CHECK_MAX_MEMORY, bytes,
                  limits->max_memory);
        return false;
    }
    result->pixels.bytes = calloc(1, (size_t)bytes);
    result->durations.bytes = calloc(frames, sizeof(uint32_t));
    if (!result->pixels.bytes || !result->durations.bytes) {
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory for %" PRIu64 " bytes of pixels", bytes);
        return false;
    }
    result->pixels.count = (size_t)bytes;
    result->durations.count = frames * sizeof(uint32_t);
    result->pixel_frames = frames;
    return true;
}

void check_copy(image_codec_buffer *buffer, const uint8_t *bytes, size_t count) {
    if (buffer->bytes || count == 0 || count > MAX_METADATA_BYTES) return;
    buffer->bytes = malloc(count);
    if (!buffer->bytes) return;
    memcpy(buffer->bytes, bytes, count);
    buffer->count = count;
}

void image_codec_release(image_codec_buffer *buffer) {
    free(buffer->bytes);
    buffer->bytes = NULL;
    buffer->count = 0;
}
