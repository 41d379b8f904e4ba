// Regular expressions over bytes whose work is counted: those who write patterns and those who write URLs need not trust each other.
#pragma once
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/// A compiled pattern, which never changes: a number that any thread may use, as a descriptor is. 0: none.
typedef uintptr_t cpcre2_pattern;

/// Why a pattern is none, and at which of its bytes.
typedef struct {
    char message[256];
    size_t place;
} cpcre2_objection;

/// What a search may cost. Steps are counted over all places at which a match may begin, and over all matches of a search: at each item
/// of the pattern that is tried, and one for each 16 bytes that the item before it has taken.
enum {
    CPCRE2_STEPS = 1000000,
    /// PCRE2's own count, from one place at which a match may begin.
    CPCRE2_MATCH_LIMIT = 100000,
    /// Of memory for backtracking.
    CPCRE2_HEAP_KIB = 8192,
    /// Of a pattern.
    CPCRE2_PATTERN_BYTES = 4096,
};

/// Only the callouts that this door asks for by itself may be in a pattern.
static int cpcre2_is_foreign(pcre2_callout_enumerate_block *block, void *context) {
    (void)context;
    return block->callout_number != 255 || block->callout_string != NULL;
}

/// Compiles a pattern; returns 0 with an objection.
static inline cpcre2_pattern cpcre2_compile(const uint8_t *pattern, size_t length, cpcre2_objection *objection) {
    int code = 0;
    objection->message[0] = 0;
    objection->place = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return 0;
    pcre2_set_max_pattern_length(context, CPCRE2_PATTERN_BYTES);
    pcre2_code *compiled = pcre2_compile(
        pattern ? pattern : (const uint8_t *)"", length,
        PCRE2_AUTO_CALLOUT | PCRE2_DOLLAR_ENDONLY | PCRE2_DOTALL | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP, &code,
        &objection->place, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)objection->message, sizeof objection->message);
        return 0;
    }
    if (pcre2_callout_enumerate(compiled, cpcre2_is_foreign, NULL) != 0) {
        static const char words[] = "callouts are not supported";
        for (size_t index = 0; index < sizeof words; index++) objection->message[index] = words[index];
        pcre2_code_free(compiled);
        return 0;
    }
    return (cpcre2_pattern)compiled;
}

/// The version and the day of its release.
static inline void cpcre2_version(char text[64]) { pcre2_config(PCRE2_CONFIG_VERSION, text); }

static inline void cpcre2_free(cpcre2_pattern pattern) { pcre2_code_free((pcre2_code *)pattern); }

/// The number of its groups.
static inline uint32_t cpcre2_groups(cpcre2_pattern pattern) {
    uint32_t count = 0;
    pcre2_pattern_info((const pcre2_code *)pattern, PCRE2_INFO_CAPTURECOUNT, &count);
    return count;
}

/// The number of a named group; negative: there is none, or several.
static inline int cpcre2_group(cpcre2_pattern pattern, const char *name) {
    return pcre2_substring_number_from_name((const pcre2_code *)pattern, (PCRE2_SPTR)name);
}

/// The matches of a pattern in one subject, one after the other.
typedef struct {
    pcre2_match_data *data;
    pcre2_match_context *context;
    /// What is left.
    uint64_t steps;
    size_t place;
} cpcre2_search;

/// One step of the pattern, of all that the search may take.
static int cpcre2_step(pcre2_callout_block *block, void *context) {
    cpcre2_search *search = (cpcre2_search *)context;
    size_t place = block->current_position;
    size_t moved = place > search->place ? place - search->place : search->place - place;
    search->place = place;
    uint64_t cost = 1 + moved / 16;
    if (search->steps < cost) return PCRE2_ERROR_MATCHLIMIT;
    search->steps -= cost;
    return 0;
}

/// Begins a search that stays where it is until it is ended; returns false without memory.
static inline bool cpcre2_begin(cpcre2_search *search, cpcre2_pattern pattern) {
    search->steps = CPCRE2_STEPS;
    search->place = 0;
    search->data = pcre2_match_data_create_from_pattern((const pcre2_code *)pattern, NULL);
    search->context = pcre2_match_context_create(NULL);
    if (!search->data || !search->context) return false;
    pcre2_set_match_limit(search->context, CPCRE2_MATCH_LIMIT);
    pcre2_set_heap_limit(search->context, CPCRE2_HEAP_KIB);
    pcre2_set_callout(search->context, cpcre2_step, search);
    return true;
}

static inline void cpcre2_end(cpcre2_search *search) {
    pcre2_match_context_free(search->context);
    pcre2_match_data_free(search->data);
}

typedef enum { CPCRE2_FOUND, CPCRE2_NONE, CPCRE2_OVER_LIMIT } cpcre2_result;

/// Finds the next match from a place on. Every failure but "no match" counts as over a limit.
/// * `options`: PCRE2_ANCHORED and PCRE2_NOTEMPTY_ATSTART after an empty match.
static inline cpcre2_result cpcre2_next(cpcre2_search *search, cpcre2_pattern pattern, const uint8_t *subject,
                                        size_t length, size_t from, uint32_t options) {
    int code = pcre2_match((const pcre2_code *)pattern, subject ? subject : (const uint8_t *)"", length, from, options,
                           search->data, search->context);
    if (code == PCRE2_ERROR_NOMATCH) return CPCRE2_NONE;
    return code < 0 ? CPCRE2_OVER_LIMIT : CPCRE2_FOUND;
}

/// Where a group of the match begins and ends; both SIZE_MAX: it took no part. Group 0 is the match.
static inline size_t cpcre2_lower(const cpcre2_search *search, uint32_t group) {
    return pcre2_get_ovector_pointer(search->data)[2 * group];
}
static inline size_t cpcre2_upper(const cpcre2_search *search, uint32_t group) {
    return pcre2_get_ovector_pointer(search->data)[2 * group + 1];
}
