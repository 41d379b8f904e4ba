// Antialiased resampling of 8-bit pixels: Lanczos with three lobes, widened by the reduction. Pixels with alpha are weighted by it.
// Thread-safe; no state but that of a resampler.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A resampling. Pixels are RGB or RGBA (not premultiplied), rows without padding.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// 3 or 4; the 4th is alpha.
    int channels;
    /// The part of the image that fills the result, in pixels from its top left corner; fractions are allowed. Pixels around it contribute
    /// to the result's edge.
    double left;
    double top;
    double right;
    double bottom;
    uint32_t to_width;
    uint32_t to_height;
    /// Whether to use the instructions of this processor beyond those of its architecture; the result is the same.
    bool is_fast;
} image_resample_request;

/// Result of a resampling.
enum image_resample_status {
    IMAGE_RESAMPLE_DONE = 0,
    /// A size of 0 or over 65,535, a part outside of the image, or another number of channels.
    IMAGE_RESAMPLE_INVALID = 1,
    IMAGE_RESAMPLE_NO_MEMORY = 2,
};

/// Bytes that a resampling allocates, besides its result; 0 for an invalid request.
size_t image_resample_memory(const image_resample_request *request);
/// Resamples the bitmap `pixels`; writes `to_width * to_height` pixels.
int image_resample(const image_resample_request *request, const uint8_t *pixels, uint8_t *result);

/// Takes the rows of an image one by one, so that only those under the filter are in memory.
typedef struct image_resampler image_resampler;
/// An `image_resample_status`; the rows of `result` are written as soon as their sources are there.
int image_resampler_open(const image_resample_request *request, uint8_t *result, image_resampler **resampler);
/// Room for the next row, until that is put; a row that was written there is not copied.
uint8_t *image_resampler_row(const image_resampler *resampler);
/// Takes the next row, from the top; there are `height` of them.
void image_resampler_put(image_resampler *resampler, const uint8_t *row);
void image_resampler_close(image_resampler *resampler);
