// Boxes of ISO/IEC 14496-12, as the AVIF codec reads them.
#pragma once
#include "codecs.h"

#include <string.h>

typedef struct {
    const uint8_t *bytes;
    size_t count;
} avif_span;

typedef struct {
    const uint8_t *name;
    avif_span inside;
} avif_box;

/// A number of 0, 4 or 8 bytes.
static inline uint64_t avif_number(const uint8_t *bytes, size_t width) {
    if (width == 8) return (uint64_t)big_endian_32(bytes) << 32 | big_endian_32(bytes + 4);
    return width == 4 ? big_endian_32(bytes) : 0;
}

static inline bool avif_is(const uint8_t *name, const char *other) { return memcmp(name, other, 4) == 0; }

/// The next box of a box, from which it is taken; false at the end, and where no whole box is left: then `rest` has bytes.
static inline bool avif_next(avif_span *rest, avif_box *box) {
    enum { HEADER = 8, LARGE_HEADER = 16 };
    if (rest->count < HEADER) return false;
    size_t header = HEADER;
    uint64_t size = big_endian_32(rest->bytes);
    if (size == 1 && rest->count >= LARGE_HEADER) {
        header = LARGE_HEADER;
        size = avif_number(rest->bytes + HEADER, 8);
    }
    // 0, up to the end of the file, is for boxes that are in no other.
    if (size < header || size > rest->count) return false;
    *box = (avif_box){rest->bytes + 4, {rest->bytes + header, (size_t)size - header}};
    rest->bytes += size;
    rest->count -= (size_t)size;
    return true;
}

static inline uint64_t avif_count(avif_span boxes) {
    avif_box box;
    uint64_t count = 0;
    while (avif_next(&boxes, &box)) count++;
    return count;
}

/// The content of the first box of a name; without bytes if there is none.
static inline avif_span avif_find(avif_span boxes, const char *name) {
    avif_box box;
    while (avif_next(&boxes, &box))
        if (avif_is(box.name, name)) return box.inside;
    return (avif_span){NULL, 0};
}

/// The content of a box behind its first bytes; none if it is shorter.
static inline avif_span avif_behind(avif_span box, size_t count) {
    return box.count < count ? (avif_span){NULL, 0} : (avif_span){box.bytes + count, box.count - count};
}

/// What the boxes that describe the images say.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// As in EXIF.
    uint32_t orientation;
    bool has_alpha;
    bool is_gray;
} avif_facts;

/// Reads the boxes that describe the images, and the headers of their AV1 data unless `facts_only`, before libavif sees a byte. Ends the call if
/// they are damaged, cut off, or more than libavif can read at a cost that is proportional to them.
bool avif_survey(const request_t *request, bool facts_only, avif_facts *facts, result_t *result);
typedef struct {
    uint32_t width;
    uint32_t height;
} avif_extent;

/// The size that no frame exceeds, by the header of an AV1 sequence.
avif_extent avif_largest_frame(const uint8_t *bytes, size_t count);
/// Whether the size is within the limits; ends the call if not.
bool avif_check_size(const request_t *request, const avif_facts *facts, result_t *result);
/// EXIF's value for a rotation, in quarter turns against the clock, and a mirroring after it (ISO/IEC 23008-12, 6.5.10 and 6.5.12).
uint32_t avif_orientation(unsigned angle, bool is_mirrored, unsigned axis);
