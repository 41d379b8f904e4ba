// Reads entropy-coded data of a JPEG by bits (jpeg_walk.c, jpeg_progressive.c).
#pragma once
#include <string.h>

#include "jpeg_walk.h"

enum {
    /// More bytes than an MCU of zeros can take: of ten blocks, each with 64 codes of 16 bits with values of 11, and a word.
    JPEG_PADDING = 10 * 64 * 27 / 8 + 8,
    /// What a refill has at least.
    JPEG_KNOWN_BITS = 56,
};

typedef struct {
    const uint8_t *data, *next;
    /// The next bits, from the most significant one on, and how many of them are known.
    uint64_t window;
    unsigned known;
} jpeg_reader;

static inline void jpeg_refill(jpeg_reader *reader) {
    uint64_t word;
    memcpy(&word, reader->next, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    reader->window |= word >> reader->known;
    reader->next += (63 - reader->known) >> 3;
    reader->known |= JPEG_KNOWN_BITS;
}

static inline void jpeg_take(jpeg_reader *reader, unsigned bits) {
    reader->window <<= bits;
    reader->known -= bits;
}

static inline size_t jpeg_position(const jpeg_reader *reader) {
    return 8 * (size_t)(reader->next - reader->data) - reader->known;
}

/// Copies image data up to the next marker, without the zeros behind bytes of ones, and `JPEG_PADDING` zeros behind them; returns the marker, or NULL.
const uint8_t *jpeg_unstuff(const uint8_t *bytes, const uint8_t *end, uint8_t *data, size_t *count);
