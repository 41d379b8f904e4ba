#include "reference_codec.h"

#include <zlib.h>

size_t reference_compress(const uint8_t *bytes, size_t count, uint8_t *into, size_t capacity) {
    uLongf length = capacity;
    return compress2(into, &length, bytes, count, Z_BEST_COMPRESSION) == Z_OK ? length : 0;
}

uint32_t reference_crc32(const uint8_t *bytes, size_t count) { return (uint32_t)crc32_z(0, bytes, count); }
