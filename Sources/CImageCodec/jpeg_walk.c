// Proves that the image data of a sequential JPEG, of one scan or of several, are whole: every Huffman code is in its table, every block ends at
// coefficient 63 or by an end of block, the blocks are as many as the size needs, restart markers stand where they have to, and no data are left before EOI.
// A verdict of libjpeg takes nearly twice as long at its cheapest, because it computes coefficients and pixels. Whatever is unusual is left to
// it: codes of values that 8 bits a sample never have, DNL, bytes between data and a marker. Progressive ones are for jpeg_progressive.c. So the proof
// can be stricter than libjpeg, but never accepts what libjpeg warns of (CodecVerdictTests).
#include "jpeg_bits.h"

#include "codecs.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LOOKUP_BITS = 10,
    WINDOWS = 1 << LOOKUP_BITS,
    /// Most significant bits of differences of DC values, and of AC coefficients, of 8-bit samples (T.81, F.1.2).
    MAX_DC_BITS = 11,
    MAX_AC_BITS = 10,
    /// Most bits that a step takes.
    MAX_STEP_BITS = 28,
    /// Of a block.
    COEFFICIENTS = 64,
    /// Steps between two looks at the end of the data and at the time.
    STEPS_AT_ONCE = 512,
    /// With differences of at most 2,047 no sum of so many leaves an int.
    MAX_BLOCKS = 1 << 20,
    /// Of an MCU (T.81, B.2.3).
    MAX_MCU_BLOCKS = 10,
    BLOCK_SIDE = 8,
};

static_assert(2 * MAX_STEP_BITS <= JPEG_KNOWN_BITS, "a refill has too few bits for two steps");
static_assert(STEPS_AT_ONCE * MAX_STEP_BITS / 8 + sizeof(uint64_t) <= JPEG_PADDING, "what follows the data is too short");

enum { RST0 = 0xD0 };

/// Codes of one block with their values: how many bits they have (bits 0 to 5), whether the last one is a run of 16 zeros, with which no block ends, how
/// many coefficients they move on (from `ADVANCE` on), and whether the last one is an end of block.
typedef uint32_t step;

enum { STEP_BITS = 63, IS_RUN = 1 << 6, ADVANCE = 24 };
static const step ADVANCES = (step)127 << ADVANCE, ENDS_BLOCK = (step)1 << 31;
/// Beyond all coefficients: there is no such code.
static const step NONE = (step)COEFFICIENTS << ADVANCE;

static inline unsigned bits_of(step taken) { return taken & STEP_BITS; }

typedef struct {
    uint16_t code;
    /// Of the code without its value.
    uint8_t length;
    step step;
} code;

/// The codes of a table, in order of their lengths. Those that 8 bits a sample never have get no step.
typedef struct {
    unsigned count;
    code codes[256];
    /// Of the codes of each length: the first and the last one, and the place of the first one among all.
    int32_t first[17], last[17], place[17];
} table;

/// The first code of each window, which is the next `LOOKUP_BITS` bits of the data, and the bits of that code without its value.
typedef struct {
    step single[WINDOWS];
    uint8_t own[WINDOWS];
} lookup;

static step dc_step(unsigned length, unsigned symbol) {
    return symbol <= MAX_DC_BITS ? (step)(length + symbol) | (step)1 << ADVANCE : NONE;
}

static step ac_step(unsigned length, unsigned symbol) {
    unsigned bits = symbol & 15;
    unsigned run = symbol >> 4;
    if (bits > MAX_AC_BITS) return NONE;
    if (bits > 0) return (step)(length + bits) | (step)(run + 1) << ADVANCE;
    if (run == 0) return (step)length | ENDS_BLOCK;
    return run == 15 ? (step)length | IS_RUN | (step)16 << ADVANCE : NONE;
}

/// False if libjpeg would reject the table (jdhuff.c, jpeg_make_d_derived_tbl).
static bool build(table *table, const jpeg_codes *huffman, bool is_dc) {
    uint32_t next = 0;
    table->count = 0;
    for (unsigned length = 1; length <= 16; length++, next <<= 1) {
        unsigned codes = huffman->counts[length];
        if (table->count + codes > 256) return false;
        table->first[length] = (int32_t)next;
        table->last[length] = (int32_t)(next + codes) - 1;
        table->place[length] = (int32_t)table->count;
        for (unsigned i = 0; i < codes; i++, next++) {
            unsigned symbol = huffman->symbols[table->count];
            if (is_dc && symbol > 15) return false;
            if (length <= LOOKUP_BITS && next >= 1u << length) return false;
            step found = is_dc ? dc_step(length, symbol) : ac_step(length, symbol);
            table->codes[table->count++] = (code){(uint16_t)next, (uint8_t)length, found};
        }
        // No code has ones only.
        if (codes > 0 && next >= 1u << length) return false;
    }
    return true;
}

static void fill_singles(lookup *lookup, const table *table) {
    for (unsigned i = 0; i < WINDOWS; i++) lookup->single[i] = NONE;
    for (unsigned i = 0; i < table->count && table->codes[i].length <= LOOKUP_BITS; i++) {
        const code *code = &table->codes[i];
        unsigned unused = LOOKUP_BITS - code->length;
        for (unsigned j = 0; j < 1u << unused; j++) {
            lookup->single[((unsigned)code->code << unused) + j] = code->step;
            lookup->own[((unsigned)code->code << unused) + j] = code->length;
        }
    }
}

/// A code, and those of AC behind it that begin with the topmost bits of `window`, of which only `known` are there.
static step gather(step first, const lookup *ac, unsigned window, unsigned known) {
    step all = first;
    while (known > 0 && !(all & ENDS_BLOCK)) {
        step next = ac->single[window];
        // Its own bits have to be there, but not those of its value; and all have to be within one block.
        if (next == NONE || ac->own[window] > known || bits_of(all) + bits_of(next) > MAX_STEP_BITS) break;
        if ((all & ADVANCES) + (next & ADVANCES) >= NONE) break;
        all = (all & ~(step)IS_RUN) + next;
        if (bits_of(next) >= known) break;
        known -= bits_of(next);
        window = window << bits_of(next) & (WINDOWS - 1);
    }
    return all;
}

/// Fills in as many codes of one block as each window has: the first one is of `table`, those behind it are of `ac`.
static void fill_all(step *all, const table *table, const lookup *ac) {
    for (unsigned i = 0; i < WINDOWS; i++) all[i] = NONE;
    for (unsigned i = 0; i < table->count && table->codes[i].length <= LOOKUP_BITS; i++) {
        const code *code = &table->codes[i];
        if (code->step == NONE) continue;
        unsigned bits = bits_of(code->step), unused = LOOKUP_BITS - code->length;
        step *begin = &all[(unsigned)code->code << unused];
        // What follows is the same for each value.
        unsigned known = bits < LOOKUP_BITS ? LOOKUP_BITS - bits : 0, rests = 1u << known;
        for (unsigned rest = 0; rest < rests; rest++) begin[rest] = gather(code->step, ac, rest << bits & (WINDOWS - 1), known);
        for (unsigned j = rests; j < 1u << unused; j++) begin[j] = begin[j - rests];
    }
}

/// The step of a code that is longer than the lookup's, or of none.
static step long_step(const table *table, uint64_t window) {
    for (unsigned length = LOOKUP_BITS + 1; length <= 16; length++) {
        int32_t code = (int32_t)(window >> (64 - length));
        if (code >= table->first[length] && code <= table->last[length])
            return table->codes[table->place[length] + (code - table->first[length])].step;
    }
    return NONE;
}

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

/// The place of a block in an MCU.
typedef struct block {
    /// The steps for a window in front of its DC value, and of its AC codes.
    const step *dc, *ac;
    /// In bytes: from the latter to those in front of the next block's DC value, and to the next block.
    int64_t to_dc, to_next;
    const table *dc_table, *ac_table;
    const lookup *ac_lookup;
} block;

typedef struct scan {
    block blocks[MAX_MCU_BLOCKS];
    unsigned blocks_in_mcu;
    uint64_t mcus;
} scan;

/// Where a walk is.
typedef struct place {
    jpeg_reader reader;
    const block *block;
    const step *steps;
    /// Coefficients of the block so far, as in a step.
    step sum;
    uint64_t blocks_left;
} place;

static inline const void *moved(const void *pointer, int64_t bytes) { return (const char *)pointer + bytes; }

/// The first code alone, because it ends the block with its last coefficient, or is longer than the lookup's; false if there is none, or it leads beyond
/// the block.
static __attribute__((noinline)) bool go_on_alone(place *place) {
    const block *block = place->block;
    uint64_t window = place->reader.window;
    step taken = NONE;
    if (place->sum == 0) taken = long_step(block->dc_table, window);
    else if ((taken = block->ac_lookup->single[window >> (64 - LOOKUP_BITS)]) == NONE) taken = long_step(block->ac_table, window);
    jpeg_take(&place->reader, bits_of(taken));
    place->sum += taken & ADVANCES;
    place->steps = block->ac;
    if (place->sum < NONE && !(taken & ENDS_BLOCK)) return true;
    if (taken == NONE || place->sum > NONE || (place->sum == NONE && taken & IS_RUN)) return false;
    place->sum = 0;
    place->steps = moved(block->ac, block->to_dc);
    place->block = moved(block, block->to_next);
    place->blocks_left--;
    return true;
}

/// As many codes of the block as are in the lookup. Nothing predicts where a block ends, so there is no branch for it: `ended` has all bits or none.
static inline __attribute__((always_inline)) bool go_on_by_lookup(place *place) {
    const step taken = place->steps[place->reader.window >> (64 - LOOKUP_BITS)];
    const step sum = place->sum + (taken & ADVANCES);
    if (__builtin_expect(sum & NONE, 0)) {
        // A copy, so that the other one stays in registers.
        struct place copy = *place;
        bool goes_on = go_on_alone(&copy);
        *place = copy;
        return goes_on;
    }
    const int64_t ended = (int64_t)(int32_t)taken >> 63;
    const block *block = place->block;
    jpeg_take(&place->reader, bits_of(taken));
    place->sum = sum & (step)~ended;
    place->steps = moved(block->ac, block->to_dc & ended);
    place->block = moved(block, block->to_next & ended);
    place->blocks_left += (uint64_t)ended;
    return true;
}

static inline __attribute__((always_inline)) bool go_on(place *given, uint64_t pairs) {
    place place = *given;
    for (; pairs > 0; pairs--) {
        jpeg_refill(&place.reader);
        if (!go_on_by_lookup(&place) || !go_on_by_lookup(&place)) return false;
    }
    *given = place;
    return true;
}

static bool go_on_plain(place *place, uint64_t pairs) { return go_on(place, pairs); }

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) static bool go_on_bmi2(place *place, uint64_t pairs) { return go_on(place, pairs); }
#endif

/// Goes so many pairs of steps on; false if a code is none, or leads beyond its block. A step ends one block at most.
static bool walk_on(place *place, uint64_t pairs) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2")) return go_on_bmi2(place, pairs);
#endif
    return go_on_plain(place, pairs);
}

/// Whether so many MCUs are all that the data have.
static bool walk_mcus(const scan *scan, uint64_t mcus, const uint8_t *data, size_t count, check_budget *budget) {
    place place = {{.data = data, .next = data}, scan->blocks, scan->blocks[0].dc, 0, mcus * scan->blocks_in_mcu};
    size_t bits = 8 * count;
    while (place.blocks_left > 1) {
        uint64_t left = place.blocks_left;
        if (!walk_on(&place, left < STEPS_AT_ONCE ? left / 2 : STEPS_AT_ONCE / 2)) return false;
        if (jpeg_position(&place.reader) > bits) return false;
        if (!check_budget_spend(budget, (left - place.blocks_left) * BLOCK_SIDE * BLOCK_SIDE)) return false;
    }
    while (place.blocks_left > 0) {
        jpeg_refill(&place.reader);
        if (!go_on_by_lookup(&place)) return false;
    }
    size_t end = jpeg_position(&place.reader);
    return end <= bits && bits - end < 8;
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
        if (!marker || !walk_mcus(scan, mcus, data, count, budget)) return NULL;
        left -= mcus;
        if (left == 0) return marker;
        if (marker[1] != RST0 + (restart & 7)) return NULL;
        bytes = marker + 2;
    }
}

/// What is made of the tables of a scan.
typedef struct {
    /// By number.
    table dc[JPEG_TABLES], ac[JPEG_TABLES];
    lookup ac_lookups[JPEG_TABLES];
    /// As many codes as a window has: by AC table, and behind those by component, for windows in front of DC values.
    step steps[JPEG_TABLES + JPEG_COMPONENTS][WINDOWS];
} tables;

/// Makes the tables of one component of a scan; false if libjpeg would not take one.
/// * `begin`: where the steps in front of its DC values are.
static bool build_tables(const jpeg_plan *plan, tables *tables, unsigned index, unsigned *begin) {
    const jpeg_component *component = &plan->components[plan->scan.components[index]];
    bool has_dc = false, has_ac = false;
    for (unsigned i = 0; i < index; i++) {
        const jpeg_component *other = &plan->components[plan->scan.components[i]];
        has_dc |= other->dc == component->dc;
        has_ac |= other->ac == component->ac;
        if (other->dc != component->dc || other->ac != component->ac) continue;
        *begin = JPEG_TABLES + i;
        return true;
    }
    table *dc = &tables->dc[component->dc], *ac = &tables->ac[component->ac];
    lookup *lookup = &tables->ac_lookups[component->ac];
    if (!has_dc && !build(dc, &plan->dc[component->dc], true)) return false;
    if (!has_ac) {
        if (!build(ac, &plan->ac[component->ac], false)) return false;
        fill_singles(lookup, ac);
        fill_all(tables->steps[component->ac], ac, lookup);
    }
    *begin = JPEG_TABLES + index;
    fill_all(tables->steps[*begin], dc, lookup);
    return true;
}

/// False if libjpeg would not take a table, or the image is too large to be walked.
static bool prepare(const jpeg_plan *plan, tables *tables, scan *scan) {
    *scan = (struct scan){.blocks_in_mcu = 0};
    for (unsigned i = 0; i < plan->scan.count; i++) {
        const jpeg_component *component = &plan->components[plan->scan.components[i]];
        if ((uint64_t)component->columns * component->rows > MAX_BLOCKS) return false;
        unsigned blocks = plan->scan.count == 1 ? 1 : (unsigned)component->across * component->down, begin = 0;
        if (scan->blocks_in_mcu + blocks > MAX_MCU_BLOCKS || !build_tables(plan, tables, i, &begin)) return false;
        for (unsigned j = 0; j < blocks; j++) {
            block *block = &scan->blocks[scan->blocks_in_mcu++];
            block->dc = tables->steps[begin];
            block->ac = tables->steps[component->ac];
            block->dc_table = &tables->dc[component->dc];
            block->ac_table = &tables->ac[component->ac];
            block->ac_lookup = &tables->ac_lookups[component->ac];
        }
    }
    for (unsigned i = 0; i < scan->blocks_in_mcu; i++) {
        block *block = &scan->blocks[i], *next = &scan->blocks[(i + 1) % scan->blocks_in_mcu];
        block->to_dc = (const char *)next->dc - (const char *)block->ac;
        block->to_next = (const char *)next - (const char *)block;
    }
    if (plan->scan.count == 1) {
        const jpeg_component *component = &plan->components[plan->scan.components[0]];
        scan->mcus = (uint64_t)component->columns * component->rows;
    } else {
        uint64_t width = (uint64_t)plan->across * BLOCK_SIDE, height = (uint64_t)plan->down * BLOCK_SIDE;
        scan->mcus = ((plan->width + width - 1) / width) * ((plan->height + height - 1) / height);
    }
    return scan->mcus > 0;
}

/// All scans, of which a sequential JPEG has one, or one for each component, or what is between.
static bool walk_scans(jpeg_plan *plan, tables *tables, uint8_t *data, check_budget *budget) {
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
    static_assert(sizeof(tables) <= TABLES, "the tables need more memory than is said");
    if (plan->data_count > JPEG_MAX_WALKED_BYTES) return UINT64_MAX;
    uint64_t blocks = 0;
    for (unsigned i = 0; plan->is_progressive && i < plan->count; i++)
        blocks += (uint64_t)plan->components[i].columns * plan->components[i].rows;
    return TABLES + plan->data_count + blocks * sizeof(uint64_t);
}

bool jpeg_walk(jpeg_plan *plan, check_budget *budget) {
    if (plan->data_count > JPEG_MAX_WALKED_BYTES) return false;
    if (plan->is_progressive) return jpeg_walk_progressive(plan, budget);
    tables *tables = malloc(sizeof *tables);
    uint8_t *data = malloc(plan->data_count + JPEG_PADDING);
    bool is_whole = tables && data && walk_scans(plan, tables, data, budget);
    free(data);
    free(tables);
    return is_whole;
}
