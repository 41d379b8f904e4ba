// Checks the boxes of an AVIF (ISO/IEC 14496-12, 23008-12) beyond what libavif reads: boxes fill the boxes they are in, counts fit, and values
// are some that exist. libavif skips what it does not need, and by that damage.
#include "avif_boxes.h"

/// Bytes of a box before the boxes in it; -1 if there are none.
static int children_offset(const uint8_t *name, const uint8_t *bytes, size_t count) {
    static const struct {
        char name[5];
        int offset;
    } containers[] = {{"meta", 4}, {"iprp", 0}, {"ipco", 0}, {"moov", 0}, {"trak", 0}, {"edts", 0}, {"mdia", 0},
                      {"minf", 0}, {"dinf", 0}, {"dref", 8}, {"stbl", 0}, {"stsd", 8}, {"av01", 78}};
    if (avif_is(name, "iinf")) return count > 0 && bytes[0] > 0 ? 8 : 6;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        if (memcmp(name, containers[i].name, 4) == 0) return containers[i].offset;
    return -1;
}

/// Colour information: of a known type, and without bits that are reserved.
static bool is_good_color(const uint8_t *bytes, size_t count) {
    static const char types[] = "nclxnclcrICCprof";
    if (count < 4) return false;
    if (memcmp(bytes, types, 4) == 0) return count >= 11 && (bytes[10] & 0x7F) == 0;
    for (size_t i = 4; i + 4 < sizeof types; i += 4)
        if (memcmp(bytes, types + i, 4) == 0) return true;
    return false;
}

/// Channels of one depth.
static bool is_good_depth(const uint8_t *bytes, size_t count) {
    if (count < 6 || bytes[4] == 0 || count < 5u + bytes[4]) return false;
    for (size_t i = 1; i < bytes[4]; i++)
        if (bytes[5 + i] != bytes[5]) return false;
    return true;
}

/// References between items, which count from 1.
static bool is_good_reference(const uint8_t *bytes, size_t count) {
    if (count < 4) return false;
    size_t width = bytes[0] == 0 ? 2 : 4, offset = 4;
    while (count - offset >= 8 + width + 2) {
        const uint8_t *ids = bytes + offset + 8;
        uint64_t size = big_endian_32(bytes + offset), references = big_endian_16(ids + width);
        if (size != 8 + width + 2 + references * width || size > count - offset || references == 0) return false;
        for (size_t i = 0; i <= references; i++) {
            const uint8_t *id = ids + i * width + (i > 0 ? 2 : 0);
            if ((width == 2 ? big_endian_16(id) : big_endian_32(id)) == 0) return false;
        }
        offset += (size_t)size;
    }
    return offset == count;
}

/// Properties of items, none of them twice.
static bool is_good_association(const uint8_t *bytes, size_t count) {
    if (count < 8) return false;
    size_t id = bytes[0] == 0 ? 2 : 4, width = bytes[3] & 1 ? 2 : 1, offset = 8;
    for (uint64_t left = big_endian_32(bytes + 4); left > 0; left--) {
        if (count - offset < id + 1) return false;
        const uint8_t *properties = bytes + offset + id + 1;
        size_t number = properties[-1];
        offset += id + 1;
        if (count - offset < number * width) return false;
        offset += number * width;
        bool is_seen[1 << 7] = {false};
        for (size_t i = 0; i < number; i++) {
            // The highest bit tells whether a reader has to know the property; 0 is none.
            uint32_t property = width == 2 ? big_endian_16(properties + 2 * i) & 0x7FFF : properties[i] & 0x7F;
            if (property == 0 && properties[i * width] & 0x80) return false;
            if (property == 0 || property >= sizeof is_seen) continue;
            if (is_seen[property]) return false;
            is_seen[property] = true;
        }
    }
    return offset == count;
}

/// Where items are. `is_inside` becomes false if one is not in a file of `file` bytes.
static bool is_good_location(const uint8_t *bytes, size_t count, size_t file, bool *is_inside) {
    if (count < 8 || bytes[0] > 2) return false;
    size_t widths[4] = {bytes[4] >> 4, bytes[4] & 15, bytes[5] >> 4, bytes[0] == 0 ? 0 : bytes[5] & 15};
    for (int i = 0; i < 4; i++)
        if (widths[i] != 0 && widths[i] != 4 && widths[i] != 8) return false;
    size_t id = bytes[0] < 2 ? 2 : 4, offset = 6 + id, method = bytes[0] == 0 ? 0 : 2;
    if (count < offset) return false;
    size_t head = id + method + 2 + widths[2] + 2, part = widths[3] + widths[0] + widths[1];
    for (uint64_t left = id == 2 ? big_endian_16(bytes + 6) : big_endian_32(bytes + 6); left > 0; left--) {
        if (count - offset < head) return false;
        const uint8_t *item = bytes + offset;
        bool is_in_file = method == 0 || (item[id + 1] & 15) == 0;
        uint64_t base = avif_number(item + id + method + 2, widths[2]);
        size_t extents = big_endian_16(item + head - 2);
        offset += head;
        if (count - offset < extents * part) return false;
        for (size_t i = 0; i < extents; i++, offset += part) {
            const uint8_t *extent = bytes + offset + widths[3];
            uint64_t start = avif_number(extent, widths[0]), length = avif_number(extent + widths[0], widths[1]);
            if (start > UINT64_MAX - base) return false;
            if (is_in_file && (start + base > file || length > file - start - base)) *is_inside = false;
        }
    }
    return offset == count;
}

/// The content of the first box of a name; NULL if there is none.
static const uint8_t *find(const char *name, const uint8_t *bytes, size_t count, size_t *length) {
    while (count >= 8) {
        uint32_t size = big_endian_32(bytes);
        if (size < 8 || size > count) return NULL;
        *length = size - 8;
        if (memcmp(bytes + 4, name, 4) == 0) return bytes + 8;
        bytes += size;
        count -= size;
    }
    return NULL;
}

static bool has(const char *names, const uint8_t *bytes, size_t count) {
    size_t length;
    for (; *names; names += 4)
        if (!find(names, bytes, count, &length)) return false;
    return true;
}

/// A track that is repeated has a duration to repeat.
static bool is_good_track(const uint8_t *bytes, size_t count) {
    size_t length = 0;
    const uint8_t *header = find("tkhd", bytes, count, &length), *edit;
    if (!header || length < 32 || !has("mdia", bytes, count)) return false;
    bool has_duration = header[0] == 1 ? big_endian_32(header + 24) || big_endian_32(header + 28)
                                       : big_endian_32(header + 20);
    edit = find("edts", bytes, count, &length);
    if (edit) edit = find("elst", edit, length, &length);
    if (!edit || length < 16 || !(edit[3] & 1)) return true;
    return has_duration && (big_endian_32(edit + 8) || (edit[0] == 1 && big_endian_32(edit + 12)));
}

/// Whether a box of `count` bytes, without its header, can be read.
static bool is_good(const uint8_t *name, const uint8_t *bytes, size_t count, size_t file, bool *is_inside) {
    if (avif_is(name, "colr")) return is_good_color(bytes, count);
    if (avif_is(name, "pixi")) return is_good_depth(bytes, count);
    if (avif_is(name, "iloc")) return is_good_location(bytes, count, file, is_inside);
    if (avif_is(name, "ipma")) return is_good_association(bytes, count);
    if (avif_is(name, "iref")) return is_good_reference(bytes, count);
    if (avif_is(name, "trak")) return is_good_track(bytes, count);
    if (avif_is(name, "mdia")) return has("mdhdhdlrminf", bytes, count);
    if (avif_is(name, "edts")) return has("elst", bytes, count);
    if (avif_is(name, "elst"))
        return count >= 8 && (uint64_t)big_endian_32(bytes + 4) * (bytes[0] == 1 ? 20 : 12) == count - 8;
    // The name of an item is a C string.
    if (avif_is(name, "infe")) return count > 12 && memchr(bytes + 12, 0, count - 12);
    // Version, what is predefined, and a name.
    if (avif_is(name, "hdlr"))
        return count > 24 && bytes[0] == 0 && big_endian_32(bytes + 4) == 0 && memchr(bytes + 24, 0, count - 24);
    if (avif_is(name, "mdhd")) {
        size_t scale = count > 0 && bytes[0] == 1 ? 20 : 12;
        return count >= scale + 4 && big_endian_32(bytes + scale) > 0;
    }
    return true;
}

/// The whole of the boxes in some bytes; false if one is damaged.
static bool are_good(const uint8_t *bytes, size_t count, int depth, size_t file, bool *is_inside) {
    enum { MAX_DEPTH = 12, HEADER = 8, LARGE_HEADER = 16 };
    if (depth == MAX_DEPTH) return false;
    while (count > 0) {
        if (count < HEADER) return false;
        size_t header = HEADER;
        uint64_t size = big_endian_32(bytes);
        if (size == 1 && count >= LARGE_HEADER) {
            header = LARGE_HEADER;
            size = avif_number(bytes + 8, 8);
        }
        // 0, up to the end of the file, is for boxes that are in no other.
        if (size < header || size > count) return false;
        const uint8_t *name = bytes + 4, *inside = bytes + header;
        size_t length = (size_t)size - header;
        int offset = children_offset(name, inside, length);
        if (offset >= 0 && length < (size_t)offset) return false;
        if (offset >= 0 && !are_good(inside + offset, length - (size_t)offset, depth + 1, file, is_inside)) return false;
        if (!is_good(name, inside, length, file, is_inside)) return false;
        bytes += size;
        count -= (size_t)size;
    }
    return true;
}

int avif_box_status(const request_t *request) {
    size_t offset = 0;
    bool is_inside = true;
    // Behind the image there may be anything.
    while (request->count - offset >= 16) {
        const uint8_t *box = request->bytes + offset;
        uint64_t size = big_endian_32(box);
        if (size == 1) size = avif_number(box + 8, 8);
        if (size == 0) size = request->count - offset;
        if (size < 8 || size > request->count - offset) break;
        bool is_description = memcmp(box + 4, "meta", 4) == 0 || memcmp(box + 4, "moov", 4) == 0;
        if (is_description && !are_good(box, (size_t)size, 0, request->count, &is_inside)) return IMAGE_CODEC_DAMAGED;
        offset += (size_t)size;
    }
    return is_inside ? IMAGE_CODEC_WHOLE : IMAGE_CODEC_INCOMPLETE;
}

uint32_t avif_orientation(unsigned angle, bool is_mirrored, unsigned axis) {
    static const uint32_t turned[4] = {1, 8, 3, 6}, top_to_bottom[4] = {4, 5, 2, 7}, left_to_right[4] = {2, 7, 4, 5};
    if (!is_mirrored) return turned[angle & 3];
    return axis == 0 ? top_to_bottom[angle & 3] : left_to_right[angle & 3];
}

bool avif_check_size(const request_t *request, const avif_facts *facts, result_t *result) {
    // libavif's own limit (AVIF_DEFAULT_IMAGE_DIMENSION_LIMIT), beyond which it would call the image damaged.
    enum { MAX_SIDE = 32768 };
    image_codec_limits limits = request->limits;
    if (limits.max_dimension > MAX_SIDE) limits.max_dimension = MAX_SIDE;
    return check_size(result, &limits, facts->width, facts->height) && check_whole_size(result, &limits, "AVIF");
}

void avif_header(const request_t *request, result_t *result) {
    avif_facts facts;
    if (!avif_survey(request, true, &facts, result)) return;
    if (!avif_check_size(request, &facts, result)) return;
    result->orientation = facts.orientation;
    result->has_alpha = facts.has_alpha;
    result->color = facts.is_gray ? IMAGE_CODEC_COLOR_GRAY : IMAGE_CODEC_COLOR_RGB;
}
