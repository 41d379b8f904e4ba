#include "canvas.h"

#include <stdlib.h>
#include <string.h>

/// Porter and Duff's "over", on pixels that are not premultiplied.
static void blend(uint8_t *below, const uint8_t *source) {
    if (source[3] == 0) return;
    if (source[3] == 255 || below[3] == 0) {
        memcpy(below, source, 4);
        return;
    }
    unsigned front = source[3] * 255u, back = below[3] * (255u - source[3]), alpha = front + back;
    for (int i = 0; i < 3; i++) below[i] = (uint8_t)((source[i] * front + below[i] * back + alpha / 2) / alpha);
    below[3] = (uint8_t)((alpha + 127) / 255);
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

bool canvas_open(canvas *canvas, image_codec_result *result) {
    memset(canvas, 0, sizeof *canvas);
    canvas->bytes = (size_t)result->pixel_width * result->pixel_height * 4;
    canvas->part = malloc(canvas->bytes);
    canvas->previous = calloc(1, canvas->bytes);
    if (canvas->part && canvas->previous) return true;
    check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to draw an animation");
    canvas_close(canvas);
    return false;
}

bool canvas_draw(canvas *canvas, image_codec_result *result, const canvas_frame *frame) {
    uint32_t width = result->pixel_width, height = result->pixel_height;
    uint8_t *bitmap = result->pixels.bytes + canvas->bytes * canvas->frames;
    const canvas_frame *last = &canvas->last;
    if (canvas->frames > 0)
        memcpy(bitmap, last->disposal == CANVAS_PREVIOUS ? canvas->previous : bitmap - canvas->bytes, canvas->bytes);
    if (canvas->frames > 0 && last->disposal == CANVAS_CLEAR && last->x < width)
        for (uint32_t y = last->y; y < smaller(last->y + last->height, height); y++)
            memset(bitmap + 4 * ((size_t)y * width + last->x), 0, 4 * (size_t)smaller(last->width, width - last->x));
    memcpy(canvas->previous, bitmap, canvas->bytes);
    for (uint32_t y = 0; y < frame->height && frame->y + y < height; y++) {
        const uint8_t *source = canvas->part + 4 * (size_t)y * frame->width;
        uint8_t *into = bitmap + 4 * ((size_t)(frame->y + y) * width + frame->x);
        if (frame->x >= width) break;
        uint32_t columns = smaller(frame->width, width - frame->x);
        if (!frame->blends) memcpy(into, source, 4 * (size_t)columns);
        for (uint32_t x = 0; frame->blends && x < columns; x++) blend(into + 4 * (size_t)x, source + 4 * (size_t)x);
    }
    memcpy(result->durations.bytes + 4 * (size_t)canvas->frames, &frame->milliseconds, 4);
    canvas->last = *frame;
    canvas->frames++;
    return canvas->frames < result->pixel_frames;
}

void canvas_close(canvas *canvas) {
    free(canvas->part);
    free(canvas->previous);
    canvas->part = canvas->previous = NULL;
}

void canvas_drop_alpha(image_codec_result *result) {
    size_t pixels = (size_t)result->pixel_width * result->pixel_height;
    uint8_t *bytes = result->pixels.bytes;
    for (size_t i = 0; i < pixels; i++) memmove(bytes + 3 * i, bytes + 4 * i, 3);
    result->pixels.count = 3 * pixels;
    result->channels = 3;
}
