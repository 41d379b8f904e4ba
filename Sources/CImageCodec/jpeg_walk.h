#pragma once
#include "check.h"

/// A Huffman table (T.81, B.2.4.2): how many codes there are of each length from 1 to 16, and their symbols.
typedef struct {
    bool is_there;
    uint8_t counts[17];
    uint8_t symbols[256];
} jpeg_codes;

enum { JPEG_TABLES = 4, JPEG_COMPONENTS = 4, JPEG_COEFFICIENTS = 64 };

typedef struct {
    uint8_t id, across, down;
    /// Numbers of its tables.
    uint8_t quantization, dc, ac;
    uint32_t columns, rows;
    /// Of each coefficient, in zigzag order, the lowest bit that scans have brought so far; -1: none.
    int8_t lowest[JPEG_COEFFICIENTS];
} jpeg_component;

/// What a scan brings: components by their numbers, coefficients from `first` to `last`, and of those the bits from `high` (0: all) down to `low`.
typedef struct {
    unsigned count;
    uint8_t components[JPEG_COMPONENTS];
    unsigned first, last, high, low;
} jpeg_scan;

/// What the segments up to the image data of a scan say (jpeg_segments.c).
typedef struct {
    bool is_progressive;
    uint32_t width, height;
    unsigned count;
    jpeg_component components[JPEG_COMPONENTS];
    /// The largest sampling factors.
    unsigned across, down;
    unsigned restart_interval;
    bool quantization[JPEG_TABLES];
    jpeg_codes dc[JPEG_TABLES], ac[JPEG_TABLES];
    /// The colour transform of an Adobe segment; -1 without one.
    int transform;
    jpeg_scan scan;
    /// The image data of the scan, and all that is behind them.
    const uint8_t *data;
    size_t data_count;
    /// Whether there is no further scan.
    bool is_over;
} jpeg_plan;

/// Reads the segments up to the image data of the first scan. True: libjpeg would read the same without a warning, and the image is sequential or
/// progressive, in Huffman codes, of 8 bits a sample. False: there is a doubt, and libjpeg has to decide.
bool jpeg_read_plan(const uint8_t *bytes, size_t count, jpeg_plan *plan);
/// Reads on at the marker behind the image data of a scan, up to those of the next one or to the end of the image. The same holds for its answer.
bool jpeg_read_on(const uint8_t *marker, jpeg_plan *plan);
/// Bytes that the walk allocates; UINT64_MAX: more than it would.
uint64_t jpeg_walk_memory(const jpeg_plan *plan);
/// Reads the Huffman codes of the image data of all scans, without computing anything from them. True: libjpeg would decode it without a warning.
/// False: there is a doubt, and libjpeg has to decide.
bool jpeg_walk(jpeg_plan *plan, check_budget *budget);
/// The same of a progressive one (jpeg_progressive.c).
bool jpeg_walk_progressive(jpeg_plan *plan, check_budget *budget);
