#include "check.h"

enum { ORIENTATION = 0x0112, SHORT = 3, ENTRY = 12 };

/// Where the value is in a TIFF header with its first directory (EXIF 2.32, 4.6.2); 0 if there is none.
static size_t orientation_offset(const uint8_t *bytes, size_t count, bool *is_big_endian) {
    if (count < 10) return 0;
    bool big = bytes[0] == 'M' && bytes[1] == 'M';
    if (!big && (bytes[0] != 'I' || bytes[1] != 'I')) return 0;
    *is_big_endian = big;
    uint32_t (*number_16)(const uint8_t *) = big ? big_endian_16 : little_endian_16;
    uint32_t directory = big ? big_endian_32(bytes + 4) : little_endian_32(bytes + 4);
    if (directory > count - 2) return 0;
    uint32_t entries = number_16(bytes + directory);
    for (size_t at = (size_t)directory + 2; entries > 0 && at + ENTRY <= count; entries--, at += ENTRY)
        if (number_16(bytes + at) == ORIENTATION && number_16(bytes + at + 2) == SHORT) return at + 8;
    return 0;
}

uint32_t image_codec_exif_orientation(const uint8_t *exif, size_t count) {
    bool is_big_endian = false;
    size_t offset = orientation_offset(exif, count, &is_big_endian);
    if (offset == 0) return 1;
    uint32_t value = is_big_endian ? big_endian_16(exif + offset) : little_endian_16(exif + offset);
    return value >= 1 && value <= 8 ? value : 1;
}

void image_codec_exif_set_orientation(uint8_t *exif, size_t count, uint32_t orientation) {
    bool is_big_endian = false;
    size_t offset = orientation_offset(exif, count, &is_big_endian);
    if (offset == 0) return;
    exif[offset] = is_big_endian ? 0 : (uint8_t)orientation;
    exif[offset + 1] = is_big_endian ? (uint8_t)orientation : 0;
}
