// Reads a lossless WebP image (RFC 9649, section 3) up to its prefix codes, without libwebp, which allocates tables for each group of them: a
// group takes 2.5 bytes of the file and 12 kB of memory. How many there are is known only when the entropy image has been read.
#include "image_codec.h"

enum { MAX_BITS = 15, COLORS = 256, LENGTHS = 24, DISTANCES = 40, MAX_SYMBOLS = COLORS + LENGTHS + (1 << 11) };

typedef struct {
    const uint8_t *bytes;
    size_t count;
    uint64_t bits;
    unsigned held;
    /// The data ended, or are none: what is read is 0.
    bool is_damaged;
    /// What it has cost: bits and symbols.
    uint64_t steps;
} bit_reader;

static uint32_t read_bits(bit_reader *reader, unsigned width) {
    reader->steps++;
    while (reader->held < width) {
        if (reader->count == 0) {
            reader->is_damaged = true;
            return 0;
        }
        reader->bits |= (uint64_t)*reader->bytes++ << reader->held;
        reader->count--;
        reader->held += 8;
    }
    uint32_t value = (uint32_t)(reader->bits & (((uint64_t)1 << width) - 1));
    reader->bits >>= width;
    reader->held -= width;
    return value;
}

/// A canonical prefix code (section 3.7.2).
typedef struct {
    /// Symbols of each length.
    uint16_t counts[MAX_BITS + 1];
    /// By length, then by value.
    uint16_t symbols[MAX_SYMBOLS];
    uint32_t used;
} prefix_code;

static void build(prefix_code *code, const uint8_t *lengths, uint32_t count, bit_reader *reader) {
    uint32_t starts[MAX_BITS + 2] = {0};
    int32_t free = 1;
    reader->steps += count;
    for (int i = 0; i <= MAX_BITS; i++) code->counts[i] = 0;
    for (uint32_t i = 0; i < count; i++) code->counts[lengths[i]]++;
    code->counts[0] = 0;
    for (int i = 1; i <= MAX_BITS; i++) {
        starts[i + 1] = starts[i] + code->counts[i];
        free = 2 * free - code->counts[i];
        if (free < 0) reader->is_damaged = true;
    }
    code->used = starts[MAX_BITS + 1];
    if (code->used == 0) reader->is_damaged = true;
    for (uint32_t i = 0; i < count; i++)
        if (lengths[i] > 0) code->symbols[starts[lengths[i]]++] = (uint16_t)i;
}

static uint32_t read_symbol(const prefix_code *code, bit_reader *reader) {
    // The only symbol of a code takes no bit.
    if (code->used == 1) return code->symbols[0];
    uint32_t value = 0, first = 0, index = 0;
    for (int length = 1; length <= MAX_BITS && !reader->is_damaged; length++) {
        uint32_t count = code->counts[length];
        value |= read_bits(reader, 1);
        if (value - first < count) return code->symbols[index + value - first];
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    reader->is_damaged = true;
    return 0;
}

static void read_lengths(bit_reader *reader, uint8_t *lengths, uint32_t count, prefix_code *code) {
    static const uint8_t order[19] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint8_t own[19] = {0};
    uint32_t given = 4 + read_bits(reader, 4);
    if (given > 19) reader->is_damaged = true;
    for (uint32_t i = 0; i < given && i < 19; i++) own[order[i]] = (uint8_t)read_bits(reader, 3);
    uint32_t left = count;
    if (read_bits(reader, 1)) {
        unsigned width = 2 + 2 * read_bits(reader, 3);
        left = 2 + read_bits(reader, width);
        if (left > count) reader->is_damaged = true;
    }
    build(code, own, 19, reader);
    uint8_t previous = 8;
    for (uint32_t i = 0; i < count && left > 0 && !reader->is_damaged; left--) {
        uint32_t symbol = read_symbol(code, reader), times = 1;
        uint8_t length = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? previous : 0;
        if (symbol < 16 && symbol > 0) previous = length;
        if (symbol == 16) times = 3 + read_bits(reader, 2);
        if (symbol == 17) times = 3 + read_bits(reader, 3);
        if (symbol == 18) times = 11 + read_bits(reader, 7);
        if (times > count - i) reader->is_damaged = true;
        while (times > 0 && i < count) {
            lengths[i++] = length;
            times--;
        }
    }
}

static void read_code(bit_reader *reader, uint32_t count, prefix_code *code) {
    uint8_t lengths[MAX_SYMBOLS] = {0};
    if (read_bits(reader, 1)) {
        bool are_two = read_bits(reader, 1);
        unsigned width = read_bits(reader, 1) ? 8 : 1;
        lengths[read_bits(reader, width)] = 1;
        if (are_two) lengths[read_bits(reader, 8)] = 1;
    } else {
        read_lengths(reader, lengths, count, code);
    }
    build(code, lengths, count, reader);
}

/// Section 3.6.2.1: a length or a distance, of which the symbol is a part.
static uint64_t read_prefixed(bit_reader *reader, uint32_t symbol) {
    if (symbol < 4) return symbol + 1;
    unsigned extra = (symbol - 2) >> 1;
    return ((uint64_t)(2 + (symbol & 1)) << extra) + read_bits(reader, extra) + 1;
}

static uint32_t read_cache(bit_reader *reader) {
    uint32_t bits = read_bits(reader, 1) ? read_bits(reader, 4) : 0;
    if (bits > 11) reader->is_damaged = true;
    return reader->is_damaged || bits == 0 ? 0 : 1u << bits;
}

/// Reads an image inside the image. Returns its highest value of red and green, which only a pixel that is given as such can bring.
static uint32_t read_image(bit_reader *reader, uint64_t pixels) {
    static const uint32_t alphabets[5] = {COLORS + LENGTHS, COLORS, COLORS, COLORS, DISTANCES};
    prefix_code codes[5];
    uint32_t cache = read_cache(reader), highest = 0;
    for (int i = 0; i < 5 && !reader->is_damaged; i++) read_code(reader, alphabets[i] + (i == 0 ? cache : 0), &codes[i]);
    for (size_t count = SIZE_MAX; pixels > 0 && !reader->is_damaged;) {
        // Codes of one symbol take no bits: what one pixel has brought all that follow bring.
        size_t left = 8 * reader->count + reader->held;
        if (left == count) break;
        count = left;
        uint32_t symbol = read_symbol(&codes[0], reader);
        reader->steps++;
        if (symbol >= COLORS && symbol < COLORS + LENGTHS) {
            uint64_t length = read_prefixed(reader, symbol - COLORS);
            read_prefixed(reader, read_symbol(&codes[4], reader));
            pixels -= length < pixels ? length : pixels;
            continue;
        }
        if (symbol < COLORS) {
            uint32_t value = read_symbol(&codes[1], reader) << 8 | symbol;
            read_symbol(&codes[2], reader);
            read_symbol(&codes[3], reader);
            if (value > highest) highest = value;
        }
        pixels--;
    }
    return highest;
}

static uint64_t blocks(uint32_t width, uint32_t height, unsigned bits) {
    uint64_t side = (uint64_t)1 << bits;
    return (width + side - 1) / side * ((height + side - 1) / side);
}

/// Section 4: what the image is transformed by. Some take its width down.
static void read_transforms(bit_reader *reader, uint32_t *width, uint32_t height) {
    enum { SUBTRACT_GREEN = 2, COLOR_INDEXING = 3 };
    unsigned seen = 0;
    while (read_bits(reader, 1) && !reader->is_damaged) {
        uint32_t kind = read_bits(reader, 2);
        if (seen >> kind & 1) reader->is_damaged = true;
        seen |= 1u << kind;
        if (kind == SUBTRACT_GREEN) continue;
        if (kind == COLOR_INDEXING) {
            uint32_t colors = 1 + read_bits(reader, 8);
            read_image(reader, colors);
            unsigned bits = colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3;
            *width = (uint32_t)blocks(*width, 1, bits);
        } else {
            unsigned bits = 2 + read_bits(reader, 3);
            read_image(reader, blocks(*width, height, bits));
        }
    }
}

uint64_t image_codec_vp8l_tables(const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, uint64_t *steps) {
    // libwebp 1.2: the tables of red, blue, alpha and distances, and that of green, which grows with the cache; four bytes an entry. And what
    // leads to them, with a table of common symbols.
    enum { ENTRIES = 3 * 630 + 410 + 656, BYTES_PER_ENTRY = 4, BYTES_PER_GROUP = 576 };
    bit_reader reader = {bytes, count, 0, 0, false, 0};
    read_transforms(&reader, &width, height);
    uint64_t cache = read_cache(&reader), groups = 1;
    if (read_bits(&reader, 1)) {
        unsigned bits = 2 + read_bits(&reader, 3);
        uint64_t most = blocks(width, height, bits);
        groups = 1 + (uint64_t)read_image(&reader, most);
        // Numbers that no block has take no table.
        if (groups > most) groups = most;
    }
    *steps += reader.steps;
    // libwebp refuses damage before it allocates a table.
    return reader.is_damaged ? 0 : groups * (BYTES_PER_ENTRY * (ENTRIES + cache) + BYTES_PER_GROUP);
}
