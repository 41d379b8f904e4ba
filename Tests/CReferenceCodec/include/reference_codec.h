// The verdict of a plain full-size decode, written as in the libraries' own examples: what CImageCodec's cheaper ways must agree with.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Full RGB (CMYK where it is CMYK), default settings; any warning but one on ancillary data is a failure.
bool reference_jpeg_is_whole(const uint8_t *bytes, size_t count);
/// Expanded to 8-bit RGBA, the CRC of every chunk compared by libpng itself.
bool reference_png_is_whole(const uint8_t *bytes, size_t count);
/// Compresses with zlib, as well as it can. Returns the length, 0 where `capacity` does not suffice.
size_t reference_compress(const uint8_t *bytes, size_t count, uint8_t *into, size_t capacity);
/// The CRC of a PNG chunk's name and data.
uint32_t reference_crc32(const uint8_t *bytes, size_t count);
