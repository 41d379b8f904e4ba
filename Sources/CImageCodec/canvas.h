// Draws the frames of an animation, each onto what the one before left. GIF, APNG and WebP agree on how.
#pragma once
#include "check.h"

enum canvas_disposal { CANVAS_KEEP = 0, CANVAS_CLEAR = 1, CANVAS_PREVIOUS = 2 };

typedef struct {
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
    /// A `canvas_disposal`: what happens to it before the next frame.
    int disposal;
    /// Drawn over what is there, instead of replacing it.
    bool blends;
    uint32_t milliseconds;
} canvas_frame;

typedef struct {
    /// Room for the pixels of a frame: RGBA, at most as large as the canvas.
    uint8_t *part;
    /// The canvas before the last frame was drawn.
    uint8_t *previous;
    size_t bytes;
    uint32_t frames;
    canvas_frame last;
} canvas;

/// For the pixels of `result`, which are allocated; false, and the call ended, if there is no memory.
bool canvas_open(canvas *canvas, image_codec_result *result);
/// Draws `part` as the next frame; what lies outside of the canvas is cut off. False after the last frame of `result`.
bool canvas_draw(canvas *canvas, image_codec_result *result, const canvas_frame *frame);
void canvas_close(canvas *canvas);
/// Makes RGB of a single opaque RGBA bitmap.
void canvas_drop_alpha(image_codec_result *result);
