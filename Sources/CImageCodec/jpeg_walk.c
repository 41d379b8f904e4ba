// Proves that the image data of a sequential JPEG, of one scan or of several, are whole: every Huffman code is in its table, every block ends at
// coefficient 63 or by an end of block, the blocks are as many as the size needs, restart markers stand where they have to, and no data are left before EOI.
// A verdict of libjpeg takes nearly twice as long at its cheapest, because it computes coefficients and pixels. Whatever is unusual is left to
// it: codes of values that 8 bits a sample never have, DNL, bytes between data and a marker. Progressive ones are for jpeg_progressive.c. So the proof
// can be stricter than libjpeg, but never accepts what libjpeg warns of (CodecVerdictTests).
#include "jpeg_bits.h"

#include "codecs.h"

#include <stdlib.h>

enum {
    LOOKUP_BITS = 11,
    /// Most significant bits of differences of DC values, and of AC coefficients, of 8-bit samples (T.81, F.1.2).
    MAX_DC_BITS = 11,
    MAX_AC_BITS = 10,
    /// Most bits of two codes that are read as one: with those of a DC value, 27, they are less than a refill has.
    MAX_PAIR_BITS = 28,
    /// An end of block moves beyond all coefficients, further than any run can.
    END_OF_BLOCK = 128,
    /// With differences of at most 2,047 no sum of so many leaves an int.
    MAX_BLOCKS = 1 << 20,
    /// Of an MCU (T.81, B.2.3).
    MAX_MCU_BLOCKS = 10,
    BLOCK_SIDE = 8,
};

enum { RST0 = 0xD0 };

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
static bool build(table *table, const jpeg_codes *huffman, bool is_dc) {
    memset(table->lookup, 0, sizeof table->lookup);
    uint32_t code = 0;
    unsigned count = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        unsigned codes = huffman->counts[length];
        if (count + codes > 256) return false;
        table->first[length] = (int32_t)code;
        table->last[length] = (int32_t)(code + codes) - 1;
        table->place[length] = (int32_t)count;
        for (unsigned i = 0; i < codes; i++, code++, count++) {
            unsigned symbol = huffman->symbols[count];
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

/// Whether the next block is certainly whole. The 56 bits of a refill last for the DC value and the step behind it.
static inline bool walk_block(jpeg_reader *reader, const table *dc, const table *ac) {
    jpeg_refill(reader);
    step next = dc->lookup[reader->window >> (64 - LOOKUP_BITS)] & 0xFFFF;
    if (__builtin_expect(next == 0, 0) && (next = long_step(dc, reader->window)) == 0) return false;
    jpeg_take(reader, bits_of(next));
    unsigned coefficient = 1;
    for (;;) {
        step found = ac->lookup[reader->window >> (64 - LOOKUP_BITS)];
        next = found >> 16;
        if (__builtin_expect(coefficient + advance_of(found) >= 64 || found == 0, 0)) {
            // The first one ends the block, or is longer.
            next = found & 0xFFFF;
            if (next == 0 && (next = long_step(ac, reader->window)) == 0) return false;
        }
        jpeg_take(reader, bits_of(next));
        coefficient += advance_of(next);
        if (coefficient >= 64) break;
        jpeg_refill(reader);
    }
    return coefficient == 64 ? !is_run(next) : coefficient > END_OF_BLOCK;
}

typedef struct {
    const table *dc, *ac;
} block;

typedef struct scan {
    block blocks[MAX_MCU_BLOCKS];
    unsigned blocks_in_mcu;
    uint64_t mcus, mcus_in_row;
} scan;

const uint8_t *jpeg_unstuff(const uint8_t *bytes, const uint8_t *end, uint8_t *data, size_t *count) {
    uint8_t *out = data;
    for (;;) {
        const uint8_t *ones = memchr(bytes, 0xFF, (size_t)(end - bytes));
        if (!ones || end - ones < 2) return NULL;
        size_t length = (size_t)(ones - bytes);
        memcpy(out, bytes, length);
        out += length;
        bytes = ones;
        // Cameras fill up to an even length in front of EOI.
        while (bytes[1] == 0xFF && end - bytes > 2) bytes++;
        if (bytes[1] != 0) break;
        // libjpeg takes fill bytes and a zero for one byte of data.
        if (bytes != ones) return NULL;
        *out++ = 0xFF;
        bytes += 2;
    }
    *count = (size_t)(out - data);
    memset(out, 0, JPEG_PADDING);
    return bytes;
}

/// Whether so many MCUs are all that the data have.
static bool walk_mcus(const scan *scan, uint64_t mcus, const uint8_t *data, size_t count, uint32_t width,
                      check_budget *budget) {
    jpeg_reader reader = {.data = data, .next = data};
    size_t bits = 8 * count;
    uint64_t until_check = scan->mcus_in_row;
    for (uint64_t mcu = 0; mcu < mcus; mcu++) {
        for (unsigned i = 0; i < scan->blocks_in_mcu; i++)
            if (!walk_block(&reader, scan->blocks[i].dc, scan->blocks[i].ac)) return false;
        if (jpeg_position(&reader) > bits) return false;
        if (--until_check > 0) continue;
        until_check = scan->mcus_in_row;
        if (!check_budget_spend(budget, (uint64_t)width * BLOCK_SIDE)) return false;
    }
    return bits - jpeg_position(&reader) < 8;
}

/// The marker behind the image data of the scan; NULL if there is a doubt.
static const uint8_t *walk_scan(const jpeg_plan *plan, const scan *scan, uint8_t *data, check_budget *budget) {
    const uint8_t *bytes = plan->data;
    const uint8_t *end = bytes + plan->data_count;
    uint64_t left = scan->mcus;
    for (unsigned restart = 0;; restart++) {
        uint64_t interval = plan->restart_interval;
        uint64_t mcus = interval > 0 && interval < left ? interval : left;
        size_t count = 0;
        const uint8_t *marker = jpeg_unstuff(bytes, end, data, &count);
        if (!marker || !walk_mcus(scan, mcus, data, count, plan->width, budget)) return NULL;
        left -= mcus;
        if (left == 0) return marker;
        if (marker[1] != RST0 + (restart & 7)) return NULL;
        bytes = marker + 2;
    }
}

/// Fills in `tables`, of DC and of AC codes by number; false if libjpeg would not take one, or the image is too large to be walked.
static bool prepare(const jpeg_plan *plan, table *tables, scan *scan) {
    bool is_built[2 * JPEG_TABLES] = {false};
    *scan = (struct scan){.blocks_in_mcu = 0};
    for (unsigned i = 0; i < plan->scan.count; i++) {
        const jpeg_component *component = &plan->components[plan->scan.components[i]];
        if ((uint64_t)component->columns * component->rows > MAX_BLOCKS) return false;
        for (unsigned kind = 0; kind < 2; kind++) {
            const jpeg_codes *codes = kind == 0 ? &plan->dc[component->dc] : &plan->ac[component->ac];
            unsigned at = kind == 0 ? component->dc : JPEG_TABLES + component->ac;
            if (is_built[at]) continue;
            if (!build(&tables[at], codes, kind == 0)) return false;
            if (kind == 1) pair(&tables[at]);
            is_built[at] = true;
        }
        unsigned blocks = plan->scan.count == 1 ? 1 : (unsigned)component->across * component->down;
        if (scan->blocks_in_mcu + blocks > MAX_MCU_BLOCKS) return false;
        for (unsigned j = 0; j < blocks; j++)
            scan->blocks[scan->blocks_in_mcu++] =
                (block){.dc = &tables[component->dc], .ac = &tables[JPEG_TABLES + component->ac]};
    }
    if (plan->scan.count == 1) {
        const jpeg_component *component = &plan->components[plan->scan.components[0]];
        scan->mcus_in_row = component->columns;
        scan->mcus = scan->mcus_in_row * component->rows;
    } else {
        uint64_t width = (uint64_t)plan->across * BLOCK_SIDE, height = (uint64_t)plan->down * BLOCK_SIDE;
        scan->mcus_in_row = (plan->width + width - 1) / width;
        scan->mcus = scan->mcus_in_row * ((plan->height + height - 1) / height);
    }
    return scan->mcus > 0;
}

/// All scans, of which a sequential JPEG has one, or one for each component, or what is between.
static bool walk_scans(jpeg_plan *plan, table *tables, uint8_t *data, check_budget *budget) {
    for (;;) {
        scan scan;
        if (!prepare(plan, tables, &scan)) return false;
        const uint8_t *marker = walk_scan(plan, &scan, data, budget);
        if (!marker || !jpeg_read_on(marker, plan)) return false;
        if (plan->is_over) return true;
    }
}

uint64_t jpeg_walk_memory(const jpeg_plan *plan) {
    enum { TABLES = 256 << 10 };
    if (plan->data_count > JPEG_MAX_WALKED_BYTES) return UINT64_MAX;
    uint64_t blocks = 0;
    for (unsigned i = 0; plan->is_progressive && i < plan->count; i++)
        blocks += (uint64_t)plan->components[i].columns * plan->components[i].rows;
    return TABLES + plan->data_count + blocks * sizeof(uint64_t);
}

bool jpeg_walk(jpeg_plan *plan, check_budget *budget) {
    if (plan->data_count > JPEG_MAX_WALKED_BYTES) return false;
    if (plan->is_progressive) return jpeg_walk_progressive(plan, budget);
    table *tables = malloc(2 * JPEG_TABLES * sizeof *tables);
    uint8_t *data = malloc(plan->data_count + JPEG_PADDING);
    bool is_whole = tables && data && walk_scans(plan, tables, data, budget);
    free(data);
    free(tables);
    return is_whole;
}
