// Reads an AVIF (AV1 Image File Format; ISO/IEC 14496-12 and 23008-12) before libavif does: the size for the header, which libavif is not asked for,
// and bounds on what it would spend. libavif looks for an item among all others at each mention of one, takes half a kilobyte for each property
// of eight bytes, and decodes all frames of a sample in one call.
#include "avif_items.h"

#include <inttypes.h>

enum {
    MAX_ITEMS = 256,
    MAX_PROPERTIES = 64,
    /// Of the data of all items, and of references between them. A grid has 256 tiles at most.
    MAX_EXTENTS = 1024,
    MAX_META_BYTES = 1 << 20,
    /// 10,000 frames with alpha need 500 KB.
    MAX_MOVIE_BYTES = 4 << 20,
    MAX_TRACKS = 16,
    /// As many as AV1 has spatial layers: of a still image, they are its progressive steps.
    MAX_ITEM_FRAMES = 4,
    /// Beside the one that is shown, those that later samples refer to.
    MAX_SAMPLE_FRAMES = 16,
    /// Headers of AV1 data of a file: at a nanosecond or two each they are not felt.
    MAX_OBUS = 1 << 20,
};

typedef struct {
    const request_t *request;
    result_t *result;
    /// Over all boxes that describe items.
    uint64_t located, named, associated, properties, uses, extents, references;
    uint32_t tracks;
    uint32_t obus;
    /// Bytes of items in several pieces, of which libavif makes a copy each.
    uint64_t copied;
} survey;

static bool damaged(survey *survey, const char *what) {
    check_end(survey->result, IMAGE_CODEC_DAMAGED, "AVIF with %s", what);
    return false;
}

static bool over(survey *survey, uint64_t count, uint64_t limit, const char *what) {
    if (count <= limit) return false;
    check_end(survey->result, IMAGE_CODEC_OVER_LIMIT, "AVIF with more than %" PRIu64 " %s" CHECK_UNCHECKED, limit, what);
    return true;
}

static bool incomplete(survey *survey) {
    check_end(survey->result, IMAGE_CODEC_INCOMPLETE, "AVIF ends inside the image");
    return false;
}

// MARK: Items

static bool count_locations(survey *survey, avif_span box) {
    location_reader reader;
    location item;
    if (!open_locations(box, &reader)) return damaged(survey, "a damaged box");
    survey->located += reader.left;
    if (over(survey, survey->located, MAX_ITEMS, "items")) return false;
    while (next_location(&reader, &item)) survey->extents += item.count;
    if (reader.left > 0) return damaged(survey, "a damaged box");
    return !over(survey, survey->extents, MAX_EXTENTS, "parts of items");
}

static bool count_names(survey *survey, avif_span box) {
    uint32_t announced = 0;
    avif_span inside = names(box, &announced);
    if (!inside.bytes) return damaged(survey, "a damaged box");
    uint64_t there = avif_count(inside);
    survey->named += there > announced ? there : announced;
    return !over(survey, survey->named, MAX_ITEMS, "items");
}

static bool count_properties(survey *survey, avif_span boxes) {
    avif_box box;
    while (avif_next(&boxes, &box)) {
        if (avif_is(box.name, "ipco")) survey->properties += avif_count(box.inside);
        if (!avif_is(box.name, "ipma")) continue;
        association_reader reader = associations(box.inside);
        association found;
        survey->associated += reader.left;
        if (over(survey, survey->associated, MAX_ITEMS, "items")) return false;
        while (next_association(&reader, &found)) survey->uses += found.count;
        if (reader.left > 0) return damaged(survey, "a damaged box");
    }
    return !over(survey, survey->properties, MAX_PROPERTIES, "properties") &&
           !over(survey, survey->uses, MAX_EXTENTS, "properties of items");
}

static bool count_references(survey *survey, avif_span box) {
    size_t width;
    reference found;
    avif_span rest = references(box, &width);
    while (next_reference(&rest, width, &found)) survey->references += 1 + found.count;
    return !over(survey, survey->references, MAX_EXTENTS, "references between items");
}

static bool count_meta(survey *survey, avif_span meta) {
    if (over(survey, meta.count, MAX_META_BYTES, "bytes that describe it")) return false;
    avif_span rest = avif_behind(meta, 4);
    avif_box box;
    while (avif_next(&rest, &box)) {
        bool fits = true;
        if (avif_is(box.name, "iloc")) fits = count_locations(survey, box.inside);
        if (avif_is(box.name, "iinf")) fits = count_names(survey, box.inside);
        if (avif_is(box.name, "iprp")) fits = count_properties(survey, box.inside);
        if (avif_is(box.name, "iref")) fits = count_references(survey, box.inside);
        if (!fits) return false;
    }
    return rest.count == 0 || damaged(survey, "a damaged box");
}

// MARK: AV1 data

/// AV1 data, in pieces.
typedef struct {
    avif_span piece;
    /// The pieces behind it, of an item; `count` is that of those left.
    location item;
    avif_span whole;
} data_reader;

static avif_span part_of(avif_span whole, uint64_t offset, uint64_t count) {
    if (offset > whole.count) return (avif_span){NULL, 0};
    uint64_t left = whole.count - offset;
    return (avif_span){whole.bytes + offset, (size_t)(count < left ? count : left)};
}

static avif_span next_piece(location *item, avif_span whole) {
    size_t index = item->widths[3], offset = item->widths[0], length = item->widths[1];
    const uint8_t *extent = item->extents + index;
    uint64_t start = avif_number(extent, offset);
    avif_span piece = {NULL, 0};
    if (start <= UINT64_MAX - item->base) piece = part_of(whole, start + item->base, avif_number(extent + offset, length));
    item->extents += index + offset + length;
    item->count--;
    return piece;
}

/// Moves on by some bytes; false if there are fewer.
static bool skip(data_reader *reader, uint64_t count) {
    while (count > reader->piece.count) {
        if (reader->item.count == 0) return false;
        count -= reader->piece.count;
        reader->piece = next_piece(&reader->item, reader->whole);
    }
    reader->piece = avif_behind(reader->piece, (size_t)count);
    return true;
}

static int next_byte(data_reader *reader) {
    while (reader->piece.count == 0) {
        if (reader->item.count == 0) return -1;
        reader->piece = next_piece(&reader->item, reader->whole);
    }
    int byte = reader->piece.bytes[0];
    reader->piece = avif_behind(reader->piece, 1);
    return byte;
}

/// The size that no frame exceeds, by the header of a sequence that is next.
static avif_extent largest_frame(data_reader reader) {
    uint8_t header[64];
    size_t count = 0;
    for (int byte; count < sizeof header && (byte = next_byte(&reader)) >= 0;) header[count++] = (uint8_t)byte;
    return avif_largest_frame(header, count);
}

/// Whether AV1 data of a size decode to no more than an item of another has, up to the blocks of 64 pixels that encoders code.
static bool is_within(avif_extent frame, avif_extent item) {
    enum { BLOCK = 64 };
    uint64_t across = ((uint64_t)item.width + BLOCK - 1) / BLOCK, down = ((uint64_t)item.height + BLOCK - 1) / BLOCK;
    return frame.width <= across * BLOCK && frame.height <= down * BLOCK;
}

/// Counts the frames (AV1 specification, 5.3): the OBUs with a frame's header. What is behind damage is not read by a decoder either.
/// * `size`: of the item, beyond which its frames do not go; NULL: of any size.
static bool count_frames(survey *survey, data_reader *reader, const avif_extent *size, uint64_t *frames) {
    enum { SEQUENCE_HEADER = 1, FRAME_HEADER = 3, FRAME = 6, REDUNDANT_FRAME_HEADER = 7, EXTENSION = 4, HAS_SIZE = 2 };
    for (;;) {
        int header = next_byte(reader);
        if (header < 0) return true;
        survey->obus++;
        if (over(survey, survey->obus, MAX_OBUS, "parts of AV1 data")) return false;
        int type = header >> 3 & 15;
        if (type == FRAME_HEADER || type == FRAME || type == REDUNDANT_FRAME_HEADER) ++*frames;
        if (header & EXTENSION && next_byte(reader) < 0) return true;
        if (!(header & HAS_SIZE)) {
            if (type != SEQUENCE_HEADER || !size || is_within(largest_frame(*reader), *size)) return true;
            return damaged(survey, "data of a larger image than it says");
        }
        uint64_t count = 0;
        for (int i = 0;; i++) {
            int byte = next_byte(reader);
            if (byte < 0 || i == 8) return true;
            count |= (uint64_t)(byte & 0x7F) << 7 * i;
            if (byte < 0x80) break;
        }
        if (type == SEQUENCE_HEADER && size && !is_within(largest_frame(*reader), *size))
            return damaged(survey, "data of a larger image than it says");
        if (!skip(reader, count)) return true;
    }
}

/// * `size`: of the item; NULL: it says none.
static bool count_item_frames(survey *survey, avif_span meta, uint32_t id, const avif_extent *size) {
    location_reader locations;
    location item;
    if (!open_locations(avif_find(meta, "iloc"), &locations)) return true;
    while (next_location(&locations, &item)) {
        if (item.id != id || item.method > 1) continue;
        avif_span file = {survey->request->bytes, survey->request->count};
        avif_span whole = item.method == 0 ? file : avif_find(meta, "idat");
        if (item.count > 1) {
            location pieces = item;
            while (pieces.count > 0) survey->copied += next_piece(&pieces, whole).count;
            if (over(survey, survey->copied, survey->request->count, "bytes in parts of items")) return false;
        }
        data_reader reader = {{NULL, 0}, item, whole};
        uint64_t frames = 0;
        if (!count_frames(survey, &reader, size, &frames)) return false;
        if (frames > MAX_ITEM_FRAMES) return damaged(survey, "several images in the data of one");
    }
    return true;
}

/// The number and the type of an item, from a box `infe`.
static const uint8_t *item_type(avif_span box, uint32_t *id) {
    bool is_short = box.count > 0 && box.bytes[0] < 3;
    if (box.count < (is_short ? 12 : 14) || box.bytes[0] < 2) return NULL;
    *id = is_short ? big_endian_16(box.bytes + 4) : big_endian_32(box.bytes + 4);
    return box.bytes + (is_short ? 8 : 10);
}

// MARK: Sequences

typedef struct {
    avif_span sizes, runs, offsets;
    size_t offset_width;
} sample_table;

/// A table of entries behind its count; without bytes if it is not there as a whole.
static avif_span entries(avif_span box, size_t head, size_t width, uint32_t *count) {
    avif_span inside = avif_behind(box, head);
    *count = inside.bytes ? big_endian_32(inside.bytes - 4) : 0;
    return inside.count / width < *count ? (avif_span){NULL, 0} : inside;
}

/// Counts the frames of each sample of a track, found as libavif finds them.
static bool count_samples(survey *survey, avif_span table) {
    avif_span file = {survey->request->bytes, survey->request->count};
    avif_span large = avif_find(table, "co64"), size_box = avif_find(table, "stsz");
    size_t width = large.bytes ? 8 : 4;
    uint32_t chunks, runs, samples;
    avif_span offsets = entries(large.bytes ? large : avif_find(table, "stco"), 8, width, &chunks);
    avif_span run = entries(avif_find(table, "stsc"), 8, 12, &runs);
    uint32_t usual = size_box.count >= 12 ? big_endian_32(size_box.bytes + 4) : 0;
    avif_span sizes = entries(size_box, 12, usual > 0 ? SIZE_MAX : 4, &samples);
    if (usual > 0) samples = big_endian_32(size_box.bytes + 8);
    if (!offsets.bytes || !run.bytes || (usual == 0 && !sizes.bytes)) return true;
    uint64_t sample = 0, frames = 0;
    uint32_t in_chunk = 0;
    for (uint32_t chunk = 0, next = 0; chunk < chunks; chunk++) {
        while (next < runs && big_endian_32(run.bytes + 12 * (size_t)next) <= chunk + 1)
            in_chunk = big_endian_32(run.bytes + 12 * (size_t)next++ + 4);
        uint64_t offset = avif_number(offsets.bytes + width * chunk, width);
        for (uint32_t i = 0; i < in_chunk && (usual > 0 || sample < samples); i++, sample++) {
            if (over(survey, sample + 1, survey->request->limits.max_frames, "frames")) return false;
            uint32_t size = usual > 0 ? usual : big_endian_32(sizes.bytes + 4 * (size_t)sample);
            data_reader reader = {.piece = part_of(file, offset, size)};
            uint64_t own = 0;
            if (!count_frames(survey, &reader, NULL, &own)) return false;
            if (own > MAX_SAMPLE_FRAMES) return damaged(survey, "several images in the data of one");
            frames += own;
            offset = offset > UINT64_MAX - size ? UINT64_MAX : offset + size;
        }
    }
    // Each frame is coded once, and may be shown by a header of its own.
    return frames <= 2 * sample + MAX_SAMPLE_FRAMES || damaged(survey, "several images in the data of one");
}

static avif_span sample_table_of(avif_span track) {
    return avif_find(avif_find(avif_find(track, "mdia"), "minf"), "stbl");
}

static bool count_movie(survey *survey, avif_span movie, bool counts_frames) {
    if (over(survey, movie.count, MAX_MOVIE_BYTES, "bytes that describe its frames")) return false;
    avif_box box;
    while (avif_next(&movie, &box)) {
        if (!avif_is(box.name, "trak")) continue;
        if (over(survey, ++survey->tracks, MAX_TRACKS, "tracks")) return false;
        avif_span meta = avif_find(box.inside, "meta");
        if (meta.bytes && !count_meta(survey, meta)) return false;
        if (counts_frames && !count_samples(survey, sample_table_of(box.inside))) return false;
    }
    return movie.count == 0 || damaged(survey, "a damaged box");
}

// MARK: Facts

/// The boxes of a still image that its properties are found by.
typedef struct {
    avif_span meta, associations;
    avif_box properties[MAX_PROPERTIES];
    uint32_t count;
} item_boxes;

static void open_items(avif_span meta, item_boxes *boxes) {
    boxes->meta = meta;
    boxes->associations = avif_find(meta, "iprp");
    boxes->count = 0;
    avif_span container = avif_find(boxes->associations, "ipco");
    while (boxes->count < MAX_PROPERTIES && avif_next(&container, &boxes->properties[boxes->count])) boxes->count++;
}

/// The property of a name that an item has; without bytes if it has none.
static avif_span property_of(const item_boxes *boxes, uint32_t item, const char *name) {
    avif_span rest = boxes->associations;
    avif_box box;
    association found;
    while (avif_next(&rest, &box)) {
        if (!avif_is(box.name, "ipma")) continue;
        association_reader reader = associations(box.inside);
        while (next_association(&reader, &found))
            for (size_t i = 0; found.item == item && i < found.count; i++) {
                // The highest bit tells whether a reader has to know the property; 0 is none.
                uint32_t index = reader.width == 2 ? big_endian_16(found.indices + 2 * i) & 0x7FFF : found.indices[i] & 0x7F;
                if (index == 0 || index > boxes->count) continue;
                const avif_box *property = &boxes->properties[index - 1];
                if (avif_is(property->name, name)) return property->inside;
            }
    }
    return (avif_span){NULL, 0};
}

/// Of each item, so also of each tile of a grid: libavif has one limit for all of them, the size of the whole image.
static bool count_still_frames(survey *survey, avif_span meta) {
    uint32_t announced, id;
    avif_box box;
    item_boxes boxes;
    open_items(meta, &boxes);
    avif_span rest = names(avif_find(meta, "iinf"), &announced);
    while (avif_next(&rest, &box)) {
        const uint8_t *type = item_type(box.inside, &id);
        if (!type || !avif_is(type, "av01")) continue;
        avif_span said = property_of(&boxes, id, "ispe");
        avif_extent size = {0, 0};
        if (said.count >= 12) size = (avif_extent){big_endian_32(said.bytes + 4), big_endian_32(said.bytes + 8)};
        if (!count_item_frames(survey, meta, id, said.count >= 12 ? &size : NULL)) return false;
    }
    return true;
}

static bool is_alpha(const item_boxes *boxes, uint32_t item) {
    static const char *const kinds[] = {"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"};
    avif_span kind = avif_behind(property_of(boxes, item, "auxC"), 4);
    for (size_t i = 0; kind.bytes && i < 2; i++)
        if (kind.count > strlen(kinds[i]) && memcmp(kind.bytes, kinds[i], strlen(kinds[i]) + 1) == 0) return true;
    return false;
}

static bool has_alpha(const item_boxes *boxes, uint32_t item) {
    size_t width;
    reference found;
    avif_span rest = references(avif_find(boxes->meta, "iref"), &width);
    while (next_reference(&rest, width, &found))
        for (uint32_t i = 0; avif_is(found.kind, "auxl") && i < found.count; i++) {
            const uint8_t *to = found.to + width * i;
            if ((width == 2 ? big_endian_16(to) : big_endian_32(to)) == item && is_alpha(boxes, found.from)) return true;
        }
    return false;
}

static bool read_item(survey *survey, avif_span file_meta, avif_facts *facts) {
    avif_span meta = avif_behind(file_meta, 4), primary = avif_find(meta, "pitm");
    if (primary.count < 6 || (primary.bytes[0] > 0 && primary.count < 8)) return damaged(survey, "no image to show");
    uint32_t item = primary.bytes[0] == 0 ? big_endian_16(primary.bytes + 4) : big_endian_32(primary.bytes + 4);
    item_boxes boxes;
    open_items(meta, &boxes);
    avif_span extent = property_of(&boxes, item, "ispe"), turn = property_of(&boxes, item, "irot");
    avif_span mirror = property_of(&boxes, item, "imir"), codec = property_of(&boxes, item, "av1C");
    if (extent.count < 12) return damaged(survey, "an image without a size");
    facts->width = big_endian_32(extent.bytes + 4);
    facts->height = big_endian_32(extent.bytes + 8);
    facts->orientation = avif_orientation(turn.count > 0 ? turn.bytes[0] & 3 : 0, mirror.count > 0,
                                          mirror.count > 0 ? mirror.bytes[0] & 1 : 0);
    facts->is_gray = codec.count > 2 && codec.bytes[2] & 0x10;
    facts->has_alpha = has_alpha(&boxes, item);
    return true;
}

static bool read_movie(survey *survey, avif_span movie, avif_facts *facts) {
    avif_box box;
    bool found = false;
    while (avif_next(&movie, &box)) {
        if (!avif_is(box.name, "trak")) continue;
        avif_span header = avif_find(box.inside, "tkhd");
        avif_span entry = avif_find(avif_behind(avif_find(sample_table_of(box.inside), "stsd"), 8), "av01");
        if (!entry.bytes) continue;
        if (avif_find(avif_find(box.inside, "tref"), "auxl").bytes) {
            facts->has_alpha = true;
            continue;
        }
        size_t size = header.count > 0 && header.bytes[0] == 1 ? 88 : 76;
        if (found || header.count < size + 8) continue;
        found = true;
        // Fixed point, 16 bits each side.
        facts->width = big_endian_16(header.bytes + size);
        facts->height = big_endian_16(header.bytes + size + 4);
        facts->orientation = 1;
        avif_span codec = avif_find(avif_behind(entry, 78), "av1C");
        facts->is_gray = codec.count > 2 && codec.bytes[2] & 0x10;
    }
    return found || damaged(survey, "no track to show");
}

/// Whether the frames of a sequence are shown, as libavif chooses: by the major brand, and without a known one where there are any.
static bool shows_sequence(const request_t *request, bool has_movie) {
    const uint8_t *brand = request->bytes + 8;
    if (request->count < 12) return false;
    return avif_is(brand, "avis") || (has_movie && !avif_is(brand, "avif"));
}

bool avif_survey(const request_t *request, bool facts_only, avif_facts *facts, result_t *result) {
    enum { HEADER = 8, LARGE_HEADER = 16 };
    survey survey = {.request = request, .result = result};
    avif_span meta = {NULL, 0}, movie = {NULL, 0};
    size_t offset = 0;
    while (request->count - offset >= HEADER) {
        const uint8_t *box = request->bytes + offset;
        size_t left = request->count - offset, header = HEADER;
        uint64_t size = big_endian_32(box);
        if (size == 1 && left < LARGE_HEADER) break;
        if (size == 1) {
            header = LARGE_HEADER;
            size = avif_number(box + HEADER, 8);
        }
        if (size == 0) size = left;
        // Behind the image there may be anything.
        if (size < header) break;
        bool is_meta = avif_is(box + 4, "meta"), is_movie = avif_is(box + 4, "moov");
        uint64_t limit = is_meta ? MAX_META_BYTES : MAX_MOVIE_BYTES;
        if ((is_meta || is_movie) && over(&survey, size - header, limit, "bytes that describe it")) return false;
        if (size > left) break;
        avif_span inside = {box + header, (size_t)size - header};
        if (is_meta && !count_meta(&survey, inside)) return false;
        if (is_movie && !count_movie(&survey, inside, !facts_only)) return false;
        if (is_meta && !facts_only && !count_still_frames(&survey, avif_behind(inside, 4))) return false;
        if (is_meta && !meta.bytes) meta = inside;
        if (is_movie && !movie.bytes) movie = inside;
        offset += (size_t)size;
    }
    bool is_sequence = shows_sequence(request, movie.bytes != NULL);
    if (is_sequence ? !movie.bytes : !meta.bytes) return incomplete(&survey);
    *facts = (avif_facts){0};
    return is_sequence ? read_movie(&survey, movie, facts) : read_item(&survey, meta, facts);
}
