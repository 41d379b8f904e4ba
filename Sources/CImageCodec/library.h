// Libraries that are loaded at the first image of their format, so that a worker that meets none pays nothing for them.
#pragma once
#include "check.h"

/// A function to find: its name, and where its address goes.
typedef struct {
    const char *name;
    void **address;
} library_symbol;

/// Loads a library; false, with the reason in `problem`, if it or a function is not there. `problem` is empty afterwards if it is.
bool library_load(const char *file, const library_symbol *symbols, size_t count, char problem[IMAGE_CODEC_TEXT]);
