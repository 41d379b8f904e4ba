// The verdict of a plain full-size decode, written as in the libraries' own examples: what CImageCodec's cheaper ways must agree with.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Full RGB (CMYK where it is CMYK), default settings; any warning but one on ancillary data is a failure.
bool reference_jpeg_is_whole(const uint8_t *bytes, size_t count);
/// Expanded to 8-bit RGBA, the CRC of every chunk compared by libpng itself.
bool reference_png_is_whole(const uint8_t *bytes, size_t count);
