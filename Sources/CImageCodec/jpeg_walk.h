#pragma once
#include "check.h"

/// A Huffman table (T.81, B.2.4.2): how many codes there are of each length from 1 to 16, and their symbols.
typedef struct {
    bool is_there;
    uint8_t counts[17];
    uint8_t symbols[256];
} jpeg_codes;

enum { JPEG_TABLES = 4, JPEG_COMPONENTS = 4 };

typedef struct {
    uint8_t id, across, down;
    /// Numbers of its tables.
    uint8_t quantization, dc, ac;
    uint32_t columns, rows;
} jpeg_component;

/// What the segments before the image data of a sequential JPEG of one scan say (jpeg_segments.c).
typedef struct {
    uint32_t width, height;
    unsigned count;
    jpeg_component components[JPEG_COMPONENTS];
    /// The largest sampling factors.
    unsigned across, down;
    unsigned restart_interval;
    bool quantization[JPEG_TABLES];
    jpeg_codes dc[JPEG_TABLES], ac[JPEG_TABLES];
    const uint8_t *data;
    size_t data_count;
} jpeg_plan;

/// Reads the segments up to the image data. True: libjpeg would read the same without a warning, and the image is sequential, of 8 bits a
/// sample, with all components in one scan. False: there is a doubt, and libjpeg has to decide.
bool jpeg_read_plan(const uint8_t *bytes, size_t count, jpeg_plan *plan);
/// Reads the Huffman codes of the image data, without computing anything from them. True: libjpeg would decode it without a warning. False:
/// there is a doubt, and libjpeg has to decide.
bool jpeg_walk(const jpeg_plan *plan, check_budget *budget);
