// Proves that the image data of a progressive JPEG are whole, as jpeg_walk.c does that of sequential ones: every code of every scan is in its table,
// every coefficient is inside of its band, runs of empty blocks end with the image or before, and no bit is left. Codes of a scan that refines
// coefficients are followed by a bit for each coefficient that is not zero, so one bit of each is kept: a word for each block.
//
// Stricter than libjpeg, which says nothing of runs beyond the end of a band or of the image: it decides on those.
#include "codecs.h"
#include "jpeg_bits.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    LOOKUP_BITS = 10,
    MAX_DC_BITS = 11,
    MAX_AC_BITS = 10,
    /// Of a coefficient and its point transform together: libjpeg keeps 16 bits of it, of which some have to be left, or it would be zero to it.
    MAX_SHIFTED_BITS = 14,
    MAX_MCU_BLOCKS = 10,
    BLOCK_SIDE = 8,
    RST0 = 0xD0,
    MAX_RUN = 15,
    /// Coefficients that a lookup has room for.
    MASK_BITS = 32,
};

/// A code: its bits (8 bits), and above them its symbol. 0: there is none, or a longer one.
typedef uint16_t code;

/// Codes with their values that begin in a window: how many bits they have (8 bits), how many coefficients they move on (7 bits), whether the last one
/// ends the block, which counts as a coefficient; and from bit 32 on which of the coefficients are not zero. 0: the first one has to be looked up alone.
typedef uint64_t steps;

static inline unsigned bits_of(steps taken) { return taken & 0xFF; }
static inline unsigned advance_of(steps taken) { return taken >> 8 & 0x7F; }
static inline bool ends(steps taken) { return taken >> 15 & 1; }

typedef struct {
    code codes[1 << LOOKUP_BITS];
    steps many[1 << LOOKUP_BITS];
    int32_t first[17], last[17], place[17];
    uint8_t symbols[256];
} table;

/// False if libjpeg would reject the table (jdhuff.c, jpeg_make_d_derived_tbl).
static bool build(table *table, const jpeg_codes *huffman, bool is_dc) {
    memset(table->codes, 0, sizeof table->codes);
    memcpy(table->symbols, huffman->symbols, sizeof table->symbols);
    uint32_t next = 0;
    unsigned count = 0;
    for (unsigned length = 1; length <= 16; length++, next <<= 1) {
        unsigned codes = huffman->counts[length];
        if (count + codes > 256) return false;
        table->first[length] = (int32_t)next;
        table->last[length] = (int32_t)(next + codes) - 1;
        table->place[length] = (int32_t)count;
        for (unsigned i = 0; i < codes; i++, next++, count++) {
            unsigned symbol = huffman->symbols[count];
            if (is_dc && symbol > 15) return false;
            if (length > LOOKUP_BITS) continue;
            if (next >= 1u << length) return false;
            unsigned unused = LOOKUP_BITS - length;
            for (unsigned j = 0; j < 1u << unused; j++)
                table->codes[(next << unused) + j] = (code)(length | symbol << 8);
        }
        // No code has ones only.
        if (codes > 0 && next >= 1u << length) return false;
    }
    return true;
}

/// Puts the codes together that begin in a window, of which the last one's value may lie behind it.
static void gather(table *table, unsigned max_bits) {
    for (unsigned window = 0; window < 1 << LOOKUP_BITS; window++) {
        unsigned bits = 0, advance = 0, mask = 0, is_end = 0;
        while (bits < LOOKUP_BITS) {
            code found = table->codes[window << bits & ((1 << LOOKUP_BITS) - 1)];
            unsigned length = found & 0xFF, size = found >> 8 & 15, run = found >> 12;
            if (found == 0 || bits + length > LOOKUP_BITS) break;
            if (found >> 8 == 0) {
                bits += length;
                advance++;
                is_end = 1;
                break;
            }
            if (size == 0 || size > max_bits || advance + run >= MASK_BITS) break;
            bits += length + size;
            mask |= 1u << (advance + run);
            advance += run + 1;
        }
        table->many[window] = bits | advance << 8 | is_end << 15 | (uint64_t)mask << 32;
    }
}

/// The next code; 0 if there is none.
static inline code next_code(const table *table, uint64_t window) {
    code found = table->codes[window >> (64 - LOOKUP_BITS)];
    if (__builtin_expect(found != 0, 1)) return found;
    for (unsigned length = LOOKUP_BITS + 1; length <= 16; length++) {
        int32_t next = (int32_t)(window >> (64 - length));
        if (next >= table->first[length] && next <= table->last[length])
            return (code)(length | (unsigned)table->symbols[table->place[length] + (next - table->first[length])] << 8);
    }
    return 0;
}

/// The image data of a scan, or of what is between two restart markers.
typedef struct {
    jpeg_reader reader;
    size_t bits;
    /// Pixels of a row of blocks.
    uint64_t row_pixels;
    uint64_t blocks_in_row, until_check;
    check_budget *budget;
} interval;

/// Whether no more bits are read than there are, and time is left. Once for each block or MCU.
static inline bool may_go_on(interval *interval) {
    if (__builtin_expect((size_t)(interval->reader.next - interval->reader.data) > interval->bits / 8 + 8, 0)) return false;
    if (__builtin_expect(--interval->until_check > 0, 1)) return true;
    interval->until_check = interval->blocks_in_row;
    return check_budget_spend(interval->budget, interval->row_pixels);
}

/// Goes to a place among the bits; false if it is none.
static bool seek(interval *interval, size_t place) {
    if (place > interval->bits) return false;
    interval->reader.next = interval->reader.data + place / 8;
    interval->reader.window = 0;
    interval->reader.known = 0;
    jpeg_refill(&interval->reader);
    jpeg_take(&interval->reader, place % 8);
    return true;
}

/// Moves over bits of which nothing depends.
static inline bool skip(interval *interval, uint64_t bits) {
    if (__builtin_expect(bits > interval->reader.known, 0)) return seek(interval, jpeg_position(&interval->reader) + bits);
    jpeg_take(&interval->reader, (unsigned)bits);
    return true;
}

/// How many blocks an end of block is for, this one included, whose further bits are taken.
static inline uint64_t take_run(jpeg_reader *reader, unsigned run) {
    uint64_t blocks = (uint64_t)1 << run;
    if (run > 0) blocks += reader->window >> (64 - run);
    jpeg_take(reader, run);
    return blocks;
}

// MARK: DC values

typedef struct {
    const table *tables[MAX_MCU_BLOCKS];
    unsigned count;
} mcu;

static bool read_dc(interval *interval, const mcu *mcu, uint64_t mcus) {
    jpeg_reader *reader = &interval->reader;
    // What the sum of all differences is less than: libjpeg refuses one that leaves an int.
    uint64_t sum = 0;
    for (uint64_t i = 0; i < mcus; i++) {
        for (unsigned j = 0; j < mcu->count; j++) {
            jpeg_refill(reader);
            code found = next_code(mcu->tables[j], reader->window);
            unsigned size = found >> 8;
            if (found == 0 || size > MAX_DC_BITS) return false;
            jpeg_take(reader, (found & 0xFF) + size);
            sum += (1u << size) - 1;
        }
        if (!may_go_on(interval)) return false;
    }
    return sum <= INT32_MAX;
}

// MARK: Coefficients

typedef struct {
    const table *table;
    unsigned first, last, max_bits;
} band;

/// Brings coefficients: of those that are not zero the bit is set in the word of their block.
static bool read_ac(interval *interval, const band *band, uint64_t *blocks, uint64_t count) {
    const table *table = band->table;
    const unsigned end = band->last + 1;
    jpeg_reader *reader = &interval->reader;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t known = blocks[i], empty = 0;
        unsigned next = band->first;
        do {
            jpeg_refill(reader);
            steps taken = table->many[reader->window >> (64 - LOOKUP_BITS)];
            if (__builtin_expect(bits_of(taken) > 0 && next + advance_of(taken) <= end, 1)) {
                known |= taken >> 32 << next;
                next += advance_of(taken);
                jpeg_take(reader, bits_of(taken));
                if (ends(taken)) break;
                continue;
            }
            code found = next_code(table, reader->window);
            unsigned length = found & 0xFF, size = found >> 8 & 15, run = found >> 12;
            if (found == 0) return false;
            if (size > 0) {
                next += run + 1;
                if (next > end || size > band->max_bits) return false;
                known |= (uint64_t)1 << (next - 1);
                jpeg_take(reader, length + size);
            } else {
                jpeg_take(reader, length);
                if (run < MAX_RUN) {
                    empty = take_run(reader, run) - 1;
                    break;
                }
                next += MAX_RUN + 1;
                if (next >= end) return false;
            }
        } while (next < end);
        blocks[i] = known;
        if (empty >= count - i || !may_go_on(interval)) return false;
        i += empty;
    }
    return true;
}

/// The lowest bit of a mask that has so many below it; 0 if there is none.
static inline uint64_t bit_behind(uint64_t mask, unsigned below) {
    while (below-- > 0) mask &= mask - 1;
    return mask & -mask;
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static inline uint64_t bit_behind_bmi2(uint64_t mask, unsigned below) {
    return _pdep_u64((uint64_t)1 << below, mask);
}
#endif

/// Brings the next bit of coefficients, and those that are not zero by it.
static inline __attribute__((always_inline)) bool refine_by(interval *interval, const band *band, uint64_t *blocks,
                                                            uint64_t count, bool has_bmi2) {
    const table *table = band->table;
    const uint64_t all = (~(uint64_t)0 >> (63 - band->last)) & (~(uint64_t)0 << band->first);
    jpeg_reader *reader = &interval->reader;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t known = blocks[i];
        uint64_t left = all, new = 0, empty = 0;
        do {
            jpeg_refill(reader);
            code found = next_code(table, reader->window);
            unsigned length = found & 0xFF, size = found >> 8 & 15, run = found >> 12;
            if (found == 0 || size > 1) return false;
            if (size == 0 && run < MAX_RUN) {
                jpeg_take(reader, length);
                empty = take_run(reader, run);
                break;
            }
            uint64_t zeros = left & ~known, bit;
#if defined(__x86_64__)
            if (has_bmi2) bit = bit_behind_bmi2(zeros, run);
            else
#endif
                bit = bit_behind(zeros, run);
            if (bit == 0) return false;
            if (!skip(interval, length + size + (unsigned)__builtin_popcountll(known & left & (bit - 1)))) return false;
            if (size > 0) new |= bit;
            left &= ~(bit | (bit - 1));
        } while (left != 0);
        blocks[i] = known | new;
        if (!may_go_on(interval)) return false;
        if (empty == 0) continue;
        if (empty > count - i) return false;
        // Of the coefficients that were zero before this scan no bit follows.
        uint64_t bits = (unsigned)__builtin_popcountll(known & left);
        for (uint64_t last = i + empty - 1; i < last;) bits += (unsigned)__builtin_popcountll(blocks[++i] & all);
        if (!skip(interval, bits) || !check_budget_spend(interval->budget, empty * BLOCK_SIDE)) return false;
    }
    return true;
}

static bool refine_plain(interval *interval, const band *band, uint64_t *blocks, uint64_t count) {
    return refine_by(interval, band, blocks, count, false);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,popcnt,lzcnt"))) static bool refine_bmi2(interval *interval, const band *band,
                                                                         uint64_t *blocks, uint64_t count) {
    return refine_by(interval, band, blocks, count, true);
}
#endif

static bool refine_ac(interval *interval, const band *band, uint64_t *blocks, uint64_t count) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) return refine_bmi2(interval, band, blocks, count);
#endif
    return refine_plain(interval, band, blocks, count);
}

// MARK: Scans

typedef struct {
    table tables[JPEG_TABLES];
    uint8_t *data;
    /// Of each component: for each block the coefficients that are not zero.
    uint64_t *blocks[JPEG_COMPONENTS];
} walk;

/// What a scan is about, and how many blocks or MCUs it has.
typedef struct {
    mcu mcu;
    band band;
    uint64_t *blocks;
    uint64_t count, count_in_row, row_pixels;
} scan;

static bool prepare(const jpeg_plan *plan, walk *walk, scan *scan) {
    const jpeg_scan *said = &plan->scan;
    const jpeg_component *component = &plan->components[said->components[0]];
    memset(scan, 0, sizeof *scan);
    scan->count_in_row = component->columns;
    scan->count = (uint64_t)component->columns * component->rows;
    if (said->count > 1) {
        uint64_t width = (uint64_t)plan->across * BLOCK_SIDE, height = (uint64_t)plan->down * BLOCK_SIDE;
        scan->count_in_row = (plan->width + width - 1) / width;
        scan->count = scan->count_in_row * ((plan->height + height - 1) / height);
    }
    scan->row_pixels = (uint64_t)plan->width * BLOCK_SIDE;
    if (said->first > 0) {
        table *table = &walk->tables[0];
        unsigned max_bits = MAX_SHIFTED_BITS - said->low < MAX_AC_BITS ? MAX_SHIFTED_BITS - said->low : MAX_AC_BITS;
        scan->band = (band){.table = table, .first = said->first, .last = said->last, .max_bits = max_bits};
        scan->blocks = walk->blocks[said->components[0]];
        if (!build(table, &plan->ac[component->ac], false)) return false;
        if (said->high == 0) gather(table, max_bits);
        return true;
    }
    bool is_built[JPEG_TABLES] = {false};
    for (unsigned i = 0; i < said->count; i++) {
        component = &plan->components[said->components[i]];
        unsigned blocks = said->count == 1 ? 1 : (unsigned)component->across * component->down;
        if (scan->mcu.count + blocks > MAX_MCU_BLOCKS) return false;
        for (unsigned j = 0; j < blocks; j++) scan->mcu.tables[scan->mcu.count++] = &walk->tables[component->dc];
        if (said->high > 0 || is_built[component->dc]) continue;
        if (!build(&walk->tables[component->dc], &plan->dc[component->dc], true)) return false;
        is_built[component->dc] = true;
    }
    return true;
}

static bool walk_interval(const jpeg_scan *said, const scan *scan, interval *interval, uint64_t done, uint64_t count) {
    if (said->first == 0) {
        // Of a DC value that is refined there is one bit.
        if (said->high > 0) return skip(interval, count * scan->mcu.count);
        return read_dc(interval, &scan->mcu, count);
    }
    uint64_t *blocks = scan->blocks + done;
    return said->high == 0 ? read_ac(interval, &scan->band, blocks, count) : refine_ac(interval, &scan->band, blocks, count);
}

/// The marker behind the image data of the scan; NULL if there is a doubt.
static const uint8_t *walk_scan(const jpeg_plan *plan, const scan *scan, uint8_t *data, check_budget *budget) {
    const uint8_t *bytes = plan->data, *end = bytes + plan->data_count;
    uint64_t done = 0;
    for (unsigned restart = 0;; restart++) {
        uint64_t left = scan->count - done, every = plan->restart_interval, count = every > 0 && every < left ? every : left;
        size_t length = 0;
        const uint8_t *marker = jpeg_unstuff(bytes, end, data, &length);
        if (!marker) return NULL;
        interval interval = {.reader = {.data = data, .next = data},
                             .bits = 8 * length,
                             .row_pixels = scan->row_pixels,
                             .blocks_in_row = scan->count_in_row,
                             .until_check = scan->count_in_row,
                             .budget = budget};
        if (!walk_interval(&plan->scan, scan, &interval, done, count)) return NULL;
        size_t place = jpeg_position(&interval.reader);
        if (place > interval.bits || interval.bits - place >= 8) return NULL;
        if (!check_budget_read(budget, length + CHECK_PART_BYTES / 16)) return NULL;
        done += count;
        if (done == scan->count) return marker;
        if (marker[1] != RST0 + (restart & 7)) return NULL;
        bytes = marker + 2;
    }
}

static bool walk_scans(jpeg_plan *plan, walk *walk, check_budget *budget) {
    for (uint32_t scans = 0; !plan->is_over;) {
        scan scan;
        if (++scans > budget->request->limits.max_scans || !prepare(plan, walk, &scan)) return false;
        const uint8_t *marker = walk_scan(plan, &scan, walk->data, budget);
        if (!marker || !jpeg_read_on(marker, plan)) return false;
    }
    return true;
}

bool jpeg_walk_progressive(jpeg_plan *plan, check_budget *budget) {
    if (jpeg_walk_memory(plan) > budget->request->limits.max_memory) return false;
    walk *walk = calloc(1, sizeof *walk);
    if (!walk) return false;
    bool has_memory = (walk->data = malloc(plan->data_count + JPEG_PADDING)) != NULL;
    for (unsigned i = 0; i < plan->count && has_memory; i++) {
        const jpeg_component *component = &plan->components[i];
        walk->blocks[i] = calloc((size_t)component->columns * component->rows, sizeof(uint64_t));
        has_memory = walk->blocks[i] != NULL;
    }
    bool is_whole = has_memory && walk_scans(plan, walk, budget);
    for (unsigned i = 0; i < plan->count; i++) free(walk->blocks[i]);
    free(walk->data);
    free(walk);
    return is_whole;
}
