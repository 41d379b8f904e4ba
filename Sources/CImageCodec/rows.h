// Where a decoder puts the rows of a still image, from top to bottom: into the bitmap of the result, or, where another size is asked for, through
// a resampler, so that the whole image is never in memory.
#pragma once
#include "codecs.h"

typedef struct {
    result_t *result;
    /// NULL: pixels are stored as they are.
    image_resampler *resampler;
    /// Of an image that is only cut: rows before the first that is seen, and bytes before its first pixel.
    bool is_cut;
    uint32_t above;
    size_t before;
    /// Where the next row of it is stored.
    uint8_t *next;
    /// The row that the decoder fills.
    uint8_t *row;
    size_t stride;
} row_sink;

/// Whether an image of `width` x `height` gets another size, or is cut, while it is decoded.
bool rows_are_resampled(const request_t *request, uint32_t width, uint32_t height);
/// Allocates the pixels of the result, whose `channels` are set, for rows of an image of `width` x `height`. False, and the call ended, if it
/// is over the limit or there is no memory.
/// * `right`, `bottom`: where the image ends in these rows; less than their size for a JPEG decoded at a smaller scale.
bool rows_open(row_sink *sink, const request_t *request, result_t *result, uint32_t width, uint32_t height, double right,
               double bottom);
/// The row in `row` is complete; the next one goes to the new `row`.
void rows_put(row_sink *sink);
void rows_close(row_sink *sink);

/// Resamples the bitmap of a result as the request asks, where the decoder could not do it row by row.
void rows_resample(const request_t *request, result_t *result);
