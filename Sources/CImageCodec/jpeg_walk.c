// Proves that the image data of a sequential JPEG are whole: every Huffman code is in its table, every block ends at coefficient 63 or by an
// end of block, the blocks are as many as the size needs, restart markers stand where they have to, and nothing is left before EOI.
// A verdict of libjpeg takes nearly twice as long at its cheapest, because it computes coefficients and pixels. Whatever is unusual is left to
// it: other processes than sequential, several scans, codes of values that 8 bits a sample never have, fill bytes, DNL, bytes between data
// and EOI. So the proof can be stricter than libjpeg, but never accepts what libjpeg warns of (CodecVerdictTests).
#include "jpeg_walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOKUP_BITS = 11,
    /// Most significant bits of differences of DC values, and of AC coefficients, of 8-bit samples (T.81, F.1.2).
    MAX_DC_BITS = 11,
    MAX_AC_BITS = 10,
    /// Most bits of two codes that are read as one: with those of a DC value, 27, they are less than a refill has.
    MAX_PAIR_BITS = 28,
    /// An end of block moves beyond all coefficients, further than any run can.
    END_OF_BLOCK = 128,
    /// More bytes than an MCU of zeros can take: of ten blocks, each with 64 codes of 16 bits with values of 11, and a word.
    PADDING = 10 * 64 * 27 / 8 + 8,
    /// With differences of at most 2,047 no sum of so many leaves an int.
    MAX_BLOCKS = 1 << 20,
};

/// What one or two codes with their values do, 0 if there is no such code: how many bits they have (6 bits), how many coefficients they move on
/// (9 bits), and whether the last one is a run of 16 zeros, with which no block ends.
typedef uint32_t step;

static inline step make_step(unsigned bits, unsigned advance, bool is_run) {
    return (step)(bits | advance << 6 | (unsigned)is_run << 15);
}
static inline unsigned bits_of(step taken) { return taken & 63; }
static inline unsigned advance_of(step taken) { return taken >> 6 & 511; }
static inline bool is_run(step taken) { return taken >> 15 & 1; }

typedef struct {
    /// The first code of a window, and above it (16 bits) the first two of them where both are in the lookup.
    step lookup[1 << LOOKUP_BITS];
    /// The bits of the first code itself, without its value.
    uint8_t own[1 << LOOKUP_BITS];
    /// Of the codes of each length: the first and the last one, and the place of the first one among all.
    int32_t first[17], last[17], place[17];
    step steps[256];
} table;

static step dc_step(unsigned length, unsigned symbol) {
    return symbol <= MAX_DC_BITS ? make_step(length + symbol, 1, false) : 0;
}

static step ac_step(unsigned length, unsigned symbol) {
    unsigned bits = symbol & 15;
    unsigned run = symbol >> 4;
    if (bits > MAX_AC_BITS) return 0;
    if (bits > 0) return make_step(length + bits, run + 1, false);
    if (run == 0) return make_step(length, END_OF_BLOCK, false);
    return run == 15 ? make_step(length, 16, true) : 0;
}

/// False if libjpeg would reject the table (jdhuff.c, jpeg_make_d_derived_tbl).
static bool build(table *table, const JHUFF_TBL *huffman, bool is_dc) {
    memset(table->lookup, 0, sizeof table->lookup);
    uint32_t code = 0;
    unsigned count = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        unsigned codes = huffman->bits[length];
        if (count + codes > 256) return false;
        table->first[length] = (int32_t)code;
        table->last[length] = (int32_t)(code + codes) - 1;
        table->place[length] = (int32_t)count;
        for (unsigned i = 0; i < codes; i++, code++, count++) {
            unsigned symbol = huffman->huffval[count];
            if (is_dc && symbol > 15) return false;
            step found = is_dc ? dc_step(length, symbol) : ac_step(length, symbol);
            table->steps[count] = found;
            if (length > LOOKUP_BITS) continue;
            if (code >= 1u << length) return false;
            unsigned unused = LOOKUP_BITS - length;
            for (unsigned j = 0; j < 1u << unused; j++) {
                table->lookup[(code << unused) + j] = found;
                table->own[(code << unused) + j] = (uint8_t)length;
            }
        }
        // No code has ones only.
        if (codes > 0 && code >= 1u << length) return false;
    }
    return true;
}

/// Adds to each code of a lookup the one behind it, if the lookup has that, too, and the first one is no end of block.
static void pair(table *table) {
    for (unsigned window = 0; window < 1 << LOOKUP_BITS; window++) {
        step one = table->lookup[window] & 0xFFFF;
        unsigned bits = bits_of(one);
        step both = one;
        if (one != 0 && bits < LOOKUP_BITS && advance_of(one) < END_OF_BLOCK) {
            step other = table->lookup[window << bits & ((1 << LOOKUP_BITS) - 1)] & 0xFFFF;
            // Of the second code its own bits have to be in the window, but not those of its value.
            unsigned own = other == 0 ? LOOKUP_BITS : table->own[window << bits & ((1 << LOOKUP_BITS) - 1)];
            if (bits + own <= LOOKUP_BITS && bits + bits_of(other) <= MAX_PAIR_BITS)
                both = make_step(bits + bits_of(other), advance_of(one) + advance_of(other), is_run(other));
        }
        table->lookup[window] = one | both << 16;
    }
}

/// The step of a code that is longer than the lookup's, or of none.
static step long_step(const table *table, uint64_t window) {
    for (unsigned length = LOOKUP_BITS + 1; length <= 16; length++) {
        int32_t code = (int32_t)(window >> (64 - length));
        if (code >= table->first[length] && code <= table->last[length])
            return table->steps[table->place[length] + (code - table->first[length])];
    }
    return 0;
}

/// Image data, read by bits.
typedef struct {
    const uint8_t *data, *next;
    /// The next bits, from the most significant one on, and how many of them are known.
    uint64_t window;
    unsigned known;
} reader;

static inline void refill(reader *reader) {
    uint64_t word;
    memcpy(&word, reader->next, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    reader->window |= word >> reader->known;
    reader->next += (63 - reader->known) >> 3;
    reader->known |= 56;
}

static inline void take(reader *reader, step taken) {
    reader->window <<= bits_of(taken);
    reader->known -= bits_of(taken);
}

static inline size_t position(const reader *reader) {
    return 8 * (size_t)(reader->next - reader->data) - reader->known;
}

/// Whether the next block is certainly whole. The 56 bits of a refill last for the DC value and the step behind it.
static inline bool walk_block(reader *reader, const table *dc, const table *ac) {
    refill(reader);
    step next = dc->lookup[reader->window >> (64 - LOOKUP_BITS)] & 0xFFFF;
    if (__builtin_expect(next == 0, 0) && (next = long_step(dc, reader->window)) == 0) return false;
    take(reader, next);
    unsigned coefficient = 1;
    for (;;) {
        step found = ac->lookup[reader->window >> (64 - LOOKUP_BITS)];
        next = found >> 16;
        if (__builtin_expect(coefficient + advance_of(found) >= 64 || found == 0, 0)) {
            // The first one ends the block, or is longer.
            next = found & 0xFFFF;
            if (next == 0 && (next = long_step(ac, reader->window)) == 0) return false;
        }
        take(reader, next);
        coefficient += advance_of(next);
        if (coefficient >= 64) break;
        refill(reader);
    }
    return coefficient == 64 ? !is_run(next) : coefficient > END_OF_BLOCK;
}

typedef struct {
    const table *dc, *ac;
} block;

typedef struct {
    block blocks[D_MAX_BLOCKS_IN_MCU];
    unsigned blocks_in_mcu;
    uint64_t mcus, mcus_in_row;
} scan;

/// Copies image data up to the next marker, without the zeros behind bytes of ones; returns the marker, or NULL.
static const uint8_t *unstuff(const uint8_t *bytes, const uint8_t *end, uint8_t *data, size_t *count) {
    uint8_t *out = data;
    for (;;) {
        const uint8_t *ones = memchr(bytes, 0xFF, (size_t)(end - bytes));
        if (!ones || end - ones < 2) return NULL;
        size_t length = (size_t)(ones - bytes);
        memcpy(out, bytes, length);
        out += length;
        bytes = ones;
        if (ones[1] != 0) break;
        *out++ = 0xFF;
        bytes += 2;
    }
    *count = (size_t)(out - data);
    memset(out, 0, PADDING);
    return bytes;
}

/// Whether so many MCUs are all that the data have.
static bool walk_mcus(const scan *scan, uint64_t mcus, const uint8_t *data, size_t count, uint32_t width,
                      check_budget *budget) {
    reader reader = {.data = data, .next = data};
    size_t bits = 8 * count;
    uint64_t until_check = scan->mcus_in_row;
    for (uint64_t mcu = 0; mcu < mcus; mcu++) {
        for (unsigned i = 0; i < scan->blocks_in_mcu; i++)
            if (!walk_block(&reader, scan->blocks[i].dc, scan->blocks[i].ac)) return false;
        if (position(&reader) > bits) return false;
        if (--until_check > 0) continue;
        until_check = scan->mcus_in_row;
        if (!check_budget_spend(budget, (uint64_t)width * DCTSIZE)) return false;
    }
    return bits - position(&reader) < 8;
}

static bool walk_scan(const struct jpeg_decompress_struct *library, const scan *scan, uint8_t *data,
                      check_budget *budget) {
    const uint8_t *bytes = library->src->next_input_byte;
    const uint8_t *end = bytes + library->src->bytes_in_buffer;
    uint64_t left = scan->mcus;
    for (unsigned restart = 0;; restart++) {
        uint64_t interval = library->restart_interval;
        uint64_t mcus = interval > 0 && interval < left ? interval : left;
        size_t count = 0;
        const uint8_t *marker = unstuff(bytes, end, data, &count);
        if (!marker || !walk_mcus(scan, mcus, data, count, library->image_width, budget)) return false;
        left -= mcus;
        if (left == 0) return marker[1] == JPEG_EOI;
        if (marker[1] != JPEG_RST0 + (restart & 7)) return false;
        bytes = marker + 2;
    }
}

/// Whether it is a sequential image of 8 bits a sample with one scan.
static bool is_usual(const struct jpeg_decompress_struct *library) {
    bool has_usual_scan = library->Ss == 0 && library->Se == DCTSIZE2 - 1 && library->Ah == 0 && library->Al == 0;
    return !library->progressive_mode && !library->arith_code && library->data_precision == 8 && has_usual_scan &&
           library->comps_in_scan == library->num_components;
}

/// Whether its tables are there; fills in `tables`, of DC and of AC codes by number.
static bool prepare(const struct jpeg_decompress_struct *library, table *tables, scan *scan) {
    bool is_built[2 * NUM_HUFF_TBLS] = {false};
    for (int i = 0; i < library->comps_in_scan; i++) {
        const jpeg_component_info *component = library->cur_comp_info[i];
        unsigned numbers[2] = {(unsigned)component->dc_tbl_no, (unsigned)component->ac_tbl_no};
        unsigned quantization = (unsigned)component->quant_tbl_no;
        if (quantization >= NUM_QUANT_TBLS || !library->quant_tbl_ptrs[quantization]) return false;
        if ((uint64_t)component->width_in_blocks * component->height_in_blocks > MAX_BLOCKS) return false;
        for (unsigned kind = 0; kind < 2; kind++) {
            if (numbers[kind] >= NUM_HUFF_TBLS) return false;
            const JHUFF_TBL *huffman =
                kind == 0 ? library->dc_huff_tbl_ptrs[numbers[kind]] : library->ac_huff_tbl_ptrs[numbers[kind]];
            unsigned at = kind * NUM_HUFF_TBLS + numbers[kind];
            if (!huffman) return false;
            if (is_built[at]) continue;
            if (!build(&tables[at], huffman, kind == 0)) return false;
            if (kind == 1) pair(&tables[at]);
            is_built[at] = true;
        }
        unsigned blocks =
            library->comps_in_scan == 1 ? 1 : (unsigned)(component->h_samp_factor * component->v_samp_factor);
        if (scan->blocks_in_mcu + blocks > D_MAX_BLOCKS_IN_MCU) return false;
        for (unsigned j = 0; j < blocks; j++)
            scan->blocks[scan->blocks_in_mcu++] =
                (block){.dc = &tables[numbers[0]], .ac = &tables[NUM_HUFF_TBLS + numbers[1]]};
    }
    if (library->comps_in_scan == 1) {
        const jpeg_component_info *component = library->cur_comp_info[0];
        scan->mcus_in_row = component->width_in_blocks;
        scan->mcus = scan->mcus_in_row * component->height_in_blocks;
    } else {
        uint64_t width = (uint64_t)library->max_h_samp_factor * DCTSIZE;
        uint64_t height = (uint64_t)library->max_v_samp_factor * DCTSIZE;
        scan->mcus_in_row = (library->image_width + width - 1) / width;
        scan->mcus = scan->mcus_in_row * ((library->image_height + height - 1) / height);
    }
    return scan->mcus > 0;
}

bool jpeg_walk(const struct jpeg_decompress_struct *library, check_budget *budget) {
    if (!is_usual(library) || library->src->bytes_in_buffer > JPEG_MAX_WALKED_BYTES) return false;
    scan scan = {.blocks_in_mcu = 0};
    table *tables = malloc(2 * NUM_HUFF_TBLS * sizeof *tables);
    uint8_t *data = malloc(library->src->bytes_in_buffer + PADDING);
    bool is_whole = tables && data && prepare(library, tables, &scan) && walk_scan(library, &scan, data, budget);
    free(data);
    free(tables);
    return is_whole;
}
