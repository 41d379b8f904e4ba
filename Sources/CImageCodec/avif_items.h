// Boxes that describe the items of a file (ISO/IEC 14496-12, 8.11; 23008-12, 9.3), as the AVIF codec reads them.
#pragma once
#include "avif_boxes.h"

/// Where the data of an item are.
typedef struct {
    uint32_t id;
    /// 0: in the file, 1: in the box `idat`.
    uint32_t method;
    uint64_t base;
    size_t widths[4];
    const uint8_t *extents;
    uint32_t count;
} location;

/// The locations that are left of a box `iloc`.
typedef struct {
    avif_span rest;
    uint8_t version;
    size_t widths[4];
    uint32_t left;
} location_reader;

static inline bool open_locations(avif_span box, location_reader *reader) {
    if (box.count < 8 || box.bytes[0] > 2) return false;
    const uint8_t *bytes = box.bytes;
    *reader = (location_reader){.version = bytes[0],
                                .widths = {bytes[4] >> 4, bytes[4] & 15, bytes[5] >> 4, bytes[0] == 0 ? 0 : bytes[5] & 15}};
    for (int i = 0; i < 4; i++)
        if (reader->widths[i] != 0 && reader->widths[i] != 4 && reader->widths[i] != 8) return false;
    size_t head = bytes[0] < 2 ? 8 : 10;
    if (box.count < head) return false;
    reader->left = bytes[0] < 2 ? big_endian_16(bytes + 6) : big_endian_32(bytes + 6);
    reader->rest = avif_behind(box, head);
    return true;
}

/// The next location; false at the end, or where one is not there as a whole: then some are left.
static inline bool next_location(location_reader *reader, location *item) {
    if (reader->left == 0) return false;
    size_t id = reader->version < 2 ? 2 : 4, method = reader->version == 0 ? 0 : 2, base = reader->widths[2];
    size_t head = id + method + 2 + base + 2;
    const uint8_t *bytes = reader->rest.bytes;
    if (reader->rest.count < head) return false;
    item->id = id == 2 ? big_endian_16(bytes) : big_endian_32(bytes);
    item->method = method == 0 ? 0 : bytes[id + 1] & 15;
    item->base = avif_number(bytes + id + method + 2, base);
    item->count = big_endian_16(bytes + head - 2);
    item->extents = bytes + head;
    memcpy(item->widths, reader->widths, sizeof item->widths);
    size_t length = item->count * (item->widths[3] + item->widths[0] + item->widths[1]);
    if (reader->rest.count - head < length) return false;
    reader->rest = avif_behind(reader->rest, head + length);
    reader->left--;
    return true;
}

/// The boxes in `iinf`, and how many it announces.
static inline avif_span names(avif_span box, uint32_t *announced) {
    bool is_short = box.count > 0 && box.bytes[0] == 0;
    avif_span inside = avif_behind(box, is_short ? 6 : 8);
    if (inside.bytes) *announced = is_short ? big_endian_16(box.bytes + 4) : big_endian_32(box.bytes + 4);
    return inside;
}

/// The associations that are left of a box `ipma`: of an item with properties, by their indices.
typedef struct {
    avif_span rest;
    size_t id_width, width;
    uint32_t left;
} association_reader;

typedef struct {
    uint32_t item;
    const uint8_t *indices;
    size_t count;
} association;

static inline association_reader associations(avif_span box) {
    if (box.count < 8) return (association_reader){{NULL, 0}, 2, 1, 1};
    return (association_reader){avif_behind(box, 8), box.bytes[0] == 0 ? 2 : 4, box.bytes[3] & 1 ? 2 : 1,
                                big_endian_32(box.bytes + 4)};
}

/// The next association; false at the end, or where one is not there as a whole: then some are left.
static inline bool next_association(association_reader *reader, association *found) {
    size_t id = reader->id_width;
    const uint8_t *bytes = reader->rest.bytes;
    if (reader->left == 0 || reader->rest.count < id + 1) return false;
    *found = (association){id == 2 ? big_endian_16(bytes) : big_endian_32(bytes), bytes + id + 1, bytes[id]};
    if (reader->rest.count - id - 1 < found->count * reader->width) return false;
    reader->rest = avif_behind(reader->rest, id + 1 + found->count * reader->width);
    reader->left--;
    return true;
}

/// The next reference of a box `iref`: its kind, the item that refers, and to how many.
typedef struct {
    const uint8_t *kind;
    uint32_t from;
    const uint8_t *to;
    uint32_t count;
    size_t width;
} reference;

static inline bool next_reference(avif_span *rest, size_t width, reference *found) {
    avif_box box;
    if (!avif_next(rest, &box) || box.inside.count < width + 2) return false;
    const uint8_t *bytes = box.inside.bytes;
    uint32_t count = big_endian_16(bytes + width);
    if ((box.inside.count - width - 2) / width < count) return false;
    *found = (reference){box.name, width == 2 ? big_endian_16(bytes) : big_endian_32(bytes), bytes + width + 2, count, width};
    return true;
}

static inline avif_span references(avif_span box, size_t *width) {
    *width = box.count > 0 && box.bytes[0] > 0 ? 4 : 2;
    return avif_behind(box, 4);
}
