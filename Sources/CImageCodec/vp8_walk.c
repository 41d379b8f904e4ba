// Proves that a lossy WebP is whole: every symbol of its key frame (RFC 6386) is read, of the modes and of all coefficients, and no partition ends before
// its last one. Nothing else can be wrong with such a frame: each sequence of bits means something. So a verdict of libwebp costs the
// prediction, the transform and the filter of pixels that nobody looks at; this costs the symbols.
//
// libwebp takes partitions that are longer than the file, as long as no symbol of them is missing: those it decides on.
#include "vp8_walk.h"

#include <string.h>

#include "vp8_tables.h"

#define INLINE inline __attribute__((always_inline))

enum {
    HEADER = 10,
    BLOCKS = 16,
    /// Columns and rows of pixels of a macroblock.
    SIDE = 16,
    HALF = 128,
    SEGMENTS = 4,
    MAX_VERSION = 3,
};

/// The arithmetic decoder of section 7.
typedef struct reader {
    const uint8_t *next, *end;
    /// The next bits, from the most significant one on, and how many of them are known.
    uint64_t value;
    uint32_t known;
    /// Of those, how many are behind the end: zeros.
    uint32_t missing;
    /// From 1 to 255: it is brought above 127, and the bits that this takes are moved out of `value`, before the next symbol.
    uint32_t range;
} reader;

enum {
    /// Bits that a symbol takes, at most, and that have to be known for it beside.
    SYMBOL = 7,
    AHEAD = 8,
    /// Symbols of which a refill has the bits.
    SYMBOLS = 6,
};

/// The last bytes one by one, and zeros behind them. Takes a copy: a reader whose address is known is not kept in registers.
static __attribute__((noinline)) reader refill_slowly(const reader *before) {
    reader after = *before;
    for (; after.known <= 56; after.known += 8) {
        if (after.next < after.end) after.value |= (uint64_t)*after.next++ << (56 - after.known);
        else after.missing += 8;
    }
    return after;
}

/// Knows the bits of so many symbols, at most SYMBOLS.
static INLINE void expect(reader *reader, unsigned symbols) {
    if (__builtin_expect(reader->known >= SYMBOL * symbols + AHEAD, 1)) return;
    if (__builtin_expect(reader->end - reader->next < 8, 0)) {
        const struct reader before = *reader;
        *reader = refill_slowly(&before);
        return;
    }
    uint64_t word;
    memcpy(&word, reader->next, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    reader->value |= word >> reader->known;
    reader->next += (63 - reader->known) >> 3;
    reader->known |= 56;
}

/// False of what no encoder writes: a value that is not below the range. Decoders differ in what they make of its symbols.
static bool start(reader *reader, const uint8_t *bytes, size_t count) {
    *reader = (struct reader){.next = bytes, .end = bytes + count, .range = 255};
    expect(reader, SYMBOLS);
    return reader->value >> 56 < reader->range;
}

/// Whether a symbol has been read of whose eight bits one is behind the end, which is where libwebp gives up.
static bool is_over(const reader *reader) { return reader->known < reader->missing + AHEAD; }

/// One less than the part of the range that is of zeros. The product is formed at once, and shifted as the range is: one behind the other would
/// take half as long again, and each symbol waits for the one before.
static INLINE uint32_t divide(reader *reader, uint32_t probability) {
    unsigned shift = (unsigned)__builtin_clz(reader->range) - 24;
    uint32_t product = reader->range * probability;
    reader->value <<= shift;
    reader->known -= shift;
    reader->range <<= shift;
    return ((product << shift) - probability) >> 8;
}

/// A symbol that is zero with a probability, in 256ths. Its bits are known.
static INLINE bool take(reader *reader, uint32_t probability) {
    uint32_t zeros = divide(reader, probability);
    if (reader->value >> 56 > zeros) {
        reader->value -= (uint64_t)(zeros + 1) << 56;
        reader->range -= zeros + 1;
        return true;
    }
    reader->range = zeros + 1;
    return false;
}

/// The same where nothing depends on the symbol, and nobody could guess it.
static INLINE void pass(reader *reader, uint32_t probability) {
    uint32_t zeros = divide(reader, probability) + 1;
    uint64_t border = (uint64_t)zeros << 56, one = -(uint64_t)(reader->value >= border);
    reader->value -= border & one;
    reader->range = zeros + ((uint32_t)one & (reader->range - 2 * zeros));
}

static INLINE bool get(reader *reader, uint32_t probability) {
    expect(reader, 1);
    return take(reader, probability);
}

static uint32_t get_number(reader *reader, unsigned bits) {
    uint32_t number = 0;
    while (bits-- > 0) number = number << 1 | get(reader, HALF);
    return number;
}

/// A number, and its sign, that may be there.
static void pass_optional(reader *reader, unsigned bits) {
    if (get(reader, HALF)) get_number(reader, bits + 1);
}

// MARK: Header

typedef struct {
    reader modes;
    reader partitions[VP8_PARTITIONS];
    unsigned partition_count;
    uint32_t columns, rows;
    bool has_segments, has_skips;
    uint8_t segments[3], skips;
    /// By the place of a coefficient, with one behind the last. The first index is of what a block has: of luminance all but its first coefficient, or those,
    /// colours, or all of luminance.
    uint8_t tokens[VP8_PLANES][BLOCKS + 1][VP8_CONTEXTS][VP8_TOKENS];
} frame;

bool vp8_read_size(const uint8_t *bytes, size_t count, uint32_t *width, uint32_t *height) {
    if (count < HEADER) return false;
    uint32_t tag = little_endian_24(bytes);
    bool is_key_frame = !(tag & 1), is_shown = tag >> 4 & 1;
    if (!is_key_frame || !is_shown || (tag >> 1 & 7) > MAX_VERSION) return false;
    if (bytes[3] != 0x9D || bytes[4] != 0x01 || bytes[5] != 0x2A) return false;
    *width = little_endian_16(bytes + 6) & 0x3FFF;
    *height = little_endian_16(bytes + 8) & 0x3FFF;
    return *width > 0 && *height > 0;
}

/// Section 9.3.
static void read_segments(frame *frame) {
    reader *reader = &frame->modes;
    memset(frame->segments, 255, sizeof frame->segments);
    if (!get(reader, HALF)) return;
    frame->has_segments = get(reader, HALF);
    if (get(reader, HALF)) {
        get(reader, HALF);
        for (int i = 0; i < SEGMENTS; i++) pass_optional(reader, 7);
        for (int i = 0; i < SEGMENTS; i++) pass_optional(reader, 6);
    }
    if (!frame->has_segments) return;
    for (int i = 0; i < 3; i++)
        if (get(reader, HALF)) frame->segments[i] = (uint8_t)get_number(reader, 8);
}

/// Section 9.6: of the loop filter.
static void read_filter(reader *reader) {
    get_number(reader, 10);
    if (!get(reader, HALF) || !get(reader, HALF)) return;
    for (int i = 0; i < 8; i++) pass_optional(reader, 6);
}

/// Section 9.5; false if a partition is not there.
static bool read_partitions(frame *frame, const uint8_t *bytes, size_t count) {
    frame->partition_count = 1u << get_number(&frame->modes, 2);
    size_t lengths = 3 * (size_t)(frame->partition_count - 1);
    if (count < lengths) return false;
    const uint8_t *next = bytes + lengths;
    size_t left = count - lengths;
    for (unsigned i = 0; i + 1 < frame->partition_count; i++) {
        size_t length = little_endian_24(bytes + 3 * i);
        if (length > left) return false;
        if (!start(&frame->partitions[i], next, length)) return false;
        next += length;
        left -= length;
    }
    return left > 0 && start(&frame->partitions[frame->partition_count - 1], next, left);
}

/// Section 13.4.
static void read_tokens(frame *frame) {
    static const uint8_t bands[BLOCKS + 1] = {0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0};
    uint8_t tokens[VP8_PLANES][VP8_BANDS][VP8_CONTEXTS][VP8_TOKENS];
    uint8_t *read = &tokens[0][0][0][0];
    for (size_t i = 0; i < sizeof tokens; i++)
        read[i] = get(&frame->modes, vp8_token_updates[i]) ? (uint8_t)get_number(&frame->modes, 8) : vp8_default_tokens[i];
    for (unsigned plane = 0; plane < VP8_PLANES; plane++)
        for (unsigned i = 0; i <= BLOCKS; i++) memcpy(frame->tokens[plane][i], tokens[plane][bands[i]], sizeof tokens[0][0]);
}

/// Section 9.2 and those behind it.
static bool read_header(frame *frame, const uint8_t *bytes, size_t count) {
    uint32_t width, height;
    memset(frame, 0, sizeof *frame);
    if (!vp8_read_size(bytes, count, &width, &height)) return false;
    frame->columns = (width + SIDE - 1) / SIDE;
    frame->rows = (height + SIDE - 1) / SIDE;
    size_t length = little_endian_24(bytes) >> 5;
    if (length > count - HEADER) return false;
    reader *reader = &frame->modes;
    if (!start(reader, bytes + HEADER, length)) return false;
    // Colour space, and whether values need clamping.
    get_number(reader, 2);
    read_segments(frame);
    read_filter(reader);
    if (!read_partitions(frame, bytes + HEADER + length, count - HEADER - length)) return false;
    // Quantizers.
    get_number(reader, 7);
    for (int i = 0; i < 5; i++) pass_optional(reader, 4);
    // Whether probabilities last for the next frame.
    get(reader, HALF);
    read_tokens(frame);
    frame->has_skips = get(reader, HALF);
    if (frame->has_skips) frame->skips = (uint8_t)get_number(reader, 8);
    return !is_over(reader);
}

// MARK: Modes

enum { DC = 0, TM = 1, VE = 2, HE = 3, RD = 4, VR = 5, LD = 6, VL = 7, HD = 8, HU = 9 };

/// Section 11.2.
static INLINE unsigned read_block_mode(reader *reader, const uint8_t *of) {
    if (!get(reader, of[0])) return DC;
    if (!get(reader, of[1])) return TM;
    if (!get(reader, of[2])) return VE;
    if (!get(reader, of[3])) {
        if (!get(reader, of[4])) return HE;
        return get(reader, of[5]) ? VR : RD;
    }
    if (!get(reader, of[6])) return LD;
    if (!get(reader, of[7])) return VL;
    return get(reader, of[8]) ? HU : HD;
}

/// What the coefficients of a macroblock depend on.
typedef struct {
    bool is_skipped, is_split;
} macroblock;

/// * `above`, `left`: the modes of the four blocks there, which become those of this macroblock.
static INLINE macroblock read_modes(frame *frame, uint8_t above[4], uint8_t left[4]) {
    reader *reader = &frame->modes;
    macroblock read = {false, false};
    if (frame->has_segments) get(reader, get(reader, frame->segments[0]) ? frame->segments[2] : frame->segments[1]);
    if (frame->has_skips) read.is_skipped = get(reader, frame->skips);
    read.is_split = !get(reader, 145);
    if (read.is_split) {
        for (int row = 0; row < 4; row++) {
            unsigned mode = left[row];
            for (int column = 0; column < 4; column++)
                above[column] = (uint8_t)(mode = read_block_mode(reader, vp8_block_modes[above[column]][mode]));
            left[row] = (uint8_t)mode;
        }
    } else {
        bool is_second = get(reader, 156);
        int mode = is_second ? get(reader, HALF) ? TM : HE : get(reader, 163) ? VE : DC;
        memset(above, mode, 4);
        memset(left, mode, 4);
    }
    // Of the colours.
    if (get(reader, 142) && get(reader, 114)) get(reader, 183);
    return read;
}

// MARK: Coefficients

/// Section 13.2: what is behind a coefficient that is more than one.
static INLINE void pass_value(reader *reader, const uint8_t *of) {
    static const uint8_t bits[4][12] = {{173, 148, 140},
                                        {176, 155, 140, 135},
                                        {180, 157, 141, 134, 130},
                                        {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}};
    expect(reader, SYMBOLS);
    if (!take(reader, of[3])) {
        if (take(reader, of[4])) pass(reader, of[5]);
        return;
    }
    if (!take(reader, of[6])) {
        if (!take(reader, of[7])) {
            pass(reader, 159);
        } else {
            pass(reader, 165);
            pass(reader, 145);
        }
        return;
    }
    unsigned high = take(reader, of[8]), category = 2 * high + take(reader, of[9 + high]);
    for (const uint8_t *bit = bits[category]; *bit; bit++) {
        expect(reader, 1);
        pass(reader, *bit);
    }
}

/// The coefficients of a block from the `place`th on; whether there are any. Inlined, so that its state stays in registers.
static INLINE bool read_block(reader *reader, const uint8_t tokens[][VP8_CONTEXTS][VP8_TOKENS], unsigned context, unsigned place) {
    const unsigned first = place;
    const uint8_t *of = tokens[place][context];
    for (;;) {
        // Whether there are more, whether they are zero, or more than one, and a sign.
        expect(reader, 4);
        if (!take(reader, of[0])) return place > first;
        while (!take(reader, of[1])) {
            if (++place == BLOCKS) return true;
            of = tokens[place][0];
            expect(reader, 3);
        }
        place++;
        if (!take(reader, of[2])) {
            of = tokens[place][1];
        } else {
            pass_value(reader, of);
            expect(reader, 1);
            of = tokens[place][2];
        }
        pass(reader, HALF);
        if (place == BLOCKS) return true;
    }
}

/// Whether blocks have coefficients, a bit each: four of luminance, two and two of colours, and one of what luminance has beside.
typedef uint32_t edge;

enum { BLUE = 4, RED = 6, SECOND = 8 };

typedef struct {
    edge above, left;
} edges;

static INLINE void read_plane(reader *reader, const uint8_t tokens[][VP8_CONTEXTS][VP8_TOKENS],
                                                             unsigned first, unsigned at, unsigned side, edges *edges) {
    for (unsigned row = at; row < at + side; row++) {
        uint32_t left = edges->left >> row & 1;
        for (unsigned column = at; column < at + side; column++) {
            left = read_block(reader, tokens, left + (edges->above >> column & 1), first);
            edges->above = (edges->above & ~(1u << column)) | left << column;
        }
        edges->left = (edges->left & ~(1u << row)) | left << row;
    }
}

/// Section 13.3.
static INLINE void read_coefficients(reader *from, const frame *frame, macroblock macroblock, edges *edges) {
    const edge second = 1u << SECOND;
    if (macroblock.is_skipped) {
        edge kept = macroblock.is_split ? second : 0;
        edges->above &= kept;
        edges->left &= kept;
        return;
    }
    reader reader = *from;
    unsigned first = 0;
    if (!macroblock.is_split) {
        read_plane(&reader, frame->tokens[1], 0, SECOND, 1, edges);
        first = 1;
    }
    read_plane(&reader, frame->tokens[first ? 0 : 3], first, 0, 4, edges);
    for (unsigned at = BLUE; at <= RED; at += 2) read_plane(&reader, frame->tokens[2], 0, at, 2, edges);
    *from = reader;
}

static INLINE bool walk_by(frame *frame, check_budget *budget) {
    uint8_t modes[VP8_COLUMNS][4] = {{DC}};
    edge above[VP8_COLUMNS] = {0};
    macroblock macroblocks[VP8_COLUMNS];
    for (uint32_t row = 0; row < frame->rows; row++) {
        reader *coefficients = &frame->partitions[row & (frame->partition_count - 1)];
        uint8_t left[4] = {DC, DC, DC, DC};
        edges edges = {0, 0};
        for (uint32_t column = 0; column < frame->columns; column++)
            macroblocks[column] = read_modes(frame, modes[column], left);
        for (uint32_t column = 0; column < frame->columns; column++) {
            edges.above = above[column];
            read_coefficients(coefficients, frame, macroblocks[column], &edges);
            above[column] = edges.above;
        }
        if (is_over(&frame->modes) || is_over(coefficients)) return false;
        if (!check_budget_spend(budget, (uint64_t)frame->columns * SIDE * SIDE)) return false;
    }
    return true;
}

static bool walk_plain(frame *frame, check_budget *budget) { return walk_by(frame, budget); }

#if defined(__x86_64__)
/// Shifts by any number take one instruction instead of three.
__attribute__((target("bmi,bmi2,lzcnt"))) static bool walk_bmi2(frame *frame, check_budget *budget) { return walk_by(frame, budget); }
#endif

bool vp8_walk(const uint8_t *bytes, size_t count, check_budget *budget) {
    frame frame;
    if (!read_header(&frame, bytes, count)) return false;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt")) return walk_bmi2(&frame, budget);
#endif
    return walk_plain(&frame, budget);
}
