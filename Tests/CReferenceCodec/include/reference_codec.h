// The verdict of a plain full-size decode, written as in the libraries' own examples: what CImageCodec's cheaper ways must agree with.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Full RGB (CMYK where it is CMYK), default settings; any warning but one on ancillary data is a failure.
bool reference_jpeg_is_whole(const uint8_t *bytes, size_t count);
/// Warnings of a full decode at default settings, on whatever they are; -1: an error, or a component without a scan.
long reference_jpeg_warnings(const uint8_t *bytes, size_t count);

typedef struct {
    /// 1, 3 (RGB) or 4.
    int components;
    int quality;
    /// 0: libjpeg's own progression. Others are scans of two kinds of sequential JPEG and of three of progressive ones; CMYK has one scan then.
    unsigned script;
    /// Of colours, from 0 on: 2 x 2, none, 2 x 1, 1 x 2, 4 x 1.
    unsigned sampling;
    unsigned restart_interval;
} reference_jpeg_options;

/// Encodes with libjpeg's compressor. Returns the length, 0 where it cannot or `capacity` does not suffice.
size_t reference_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height, const reference_jpeg_options *options, uint8_t *into,
                             size_t capacity);

/// Full RGBA with its filter, by libwebp if it is installed.
bool reference_webp_is_whole(const uint8_t *bytes, size_t count);
/// Whether libwebp's demuxer is installed, by which browsers and Pillow read a WebP.
bool reference_webp_can_be_shown(void);
/// Whether it takes the container, and libwebp every frame.
bool reference_webp_is_shown(const uint8_t *bytes, size_t count);

/// What webp/encode.h says of them; `partitions` are given by their logarithm.
typedef struct {
    int quality, method, segments, partitions, noise_shaping, filter, sharpness;
    bool has_simple_filter;
} reference_webp_options;

/// Encodes RGB with loss. Returns the length, 0 without libwebp, or where `capacity` does not suffice.
size_t reference_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height, const reference_webp_options *options, uint8_t *into,
                             size_t capacity);
/// Expanded to 8-bit RGBA, the CRC of every chunk compared by libpng itself.
bool reference_png_is_whole(const uint8_t *bytes, size_t count);
/// Compresses with zlib, as well as it can. Returns the length, 0 where `capacity` does not suffice.
size_t reference_compress(const uint8_t *bytes, size_t count, uint8_t *into, size_t capacity);
/// The CRC of a PNG chunk's name and data.
uint32_t reference_crc32(const uint8_t *bytes, size_t count);
