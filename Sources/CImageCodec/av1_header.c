// Reads the header of an AV1 sequence (AV1 specification, 5.5), as far as the size of its frames.
#include "avif_boxes.h"

/// The bits of a header, the highest one first; 0 behind its end.
typedef struct {
    const uint8_t *bytes;
    size_t count, next;
} bit_reader;

static uint32_t bits(bit_reader *reader, unsigned count) {
    uint32_t value = 0;
    for (; count > 0; count--, reader->next++) {
        size_t byte = reader->next / 8;
        value = value << 1 | (byte < reader->count ? reader->bytes[byte] >> (7 - reader->next % 8) & 1 : 0);
    }
    return value;
}

avif_extent avif_largest_frame(const uint8_t *bytes, size_t count) {
    bit_reader header = {.bytes = bytes, .count = count};
    unsigned delay_bits = 0;
    bits(&header, 4);
    bool is_reduced = bits(&header, 1), has_model = false, has_delay = false;
    if (is_reduced) {
        bits(&header, 5);
    } else {
        if (bits(&header, 1)) {
            bits(&header, 32);
            bits(&header, 32);
            unsigned zeros = 0;
            // A number of a variable length.
            if (bits(&header, 1)) {
                while (zeros < 32 && !bits(&header, 1)) zeros++;
                bits(&header, zeros < 32 ? zeros : 0);
            }
            has_model = bits(&header, 1);
            if (has_model) {
                delay_bits = bits(&header, 5) + 1;
                bits(&header, 32);
                bits(&header, 10);
            }
        }
        has_delay = bits(&header, 1);
        for (uint32_t points = bits(&header, 5) + 1; points > 0; points--) {
            bits(&header, 12);
            if (bits(&header, 5) > 7) bits(&header, 1);
            if (has_model && bits(&header, 1)) {
                bits(&header, delay_bits);
                bits(&header, delay_bits + 1);
            }
            if (has_delay && bits(&header, 1)) bits(&header, 4);
        }
    }
    unsigned width_bits = bits(&header, 4) + 1, height_bits = bits(&header, 4) + 1;
    uint32_t width = bits(&header, width_bits) + 1, height = bits(&header, height_bits) + 1;
    return (avif_extent){width, height};
}
