// Checks and writes JPEG (libjpeg-turbo) and PNG (libpng). Both libraries report errors by longjmp, which never leaves this module. Inputs
// are flat bytes and limits, the output is a plain struct; there are no callbacks and no state between calls. All functions are
// thread-safe.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Result of a check.
enum image_codec_status {
    IMAGE_CODEC_WHOLE = 0,
    /// The bytes end inside the image.
    IMAGE_CODEC_INCOMPLETE = 1,
    /// An error, or a warning about missing or damaged image data.
    IMAGE_CODEC_DAMAGED = 2,
    /// A kind of JPEG that the library does not support (lossless, 12 bits, arithmetic).
    IMAGE_CODEC_UNSUPPORTED = 3,
    IMAGE_CODEC_OVER_LIMIT = 4,
    /// malloc failed: not the image's fault.
    IMAGE_CODEC_NO_MEMORY = 5,
};

/// Resource limits of a check.
typedef struct {
    uint32_t max_dimension;
    uint64_t max_pixels;
    uint32_t max_scans;
    uint32_t max_frames;
    uint64_t max_frame_pixels;
    uint64_t max_memory;
    /// CPU time of the calling thread: `cpu_nanoseconds` plus `cpu_nanoseconds_per_pixel` for each pixel.
    uint64_t cpu_nanoseconds;
    uint64_t cpu_nanoseconds_per_pixel;
} image_codec_limits;

enum { IMAGE_CODEC_TEXT = 120, IMAGE_CODEC_WARNINGS = 8 };

typedef struct {
    int status;
    uint32_t width;
    uint32_t height;
    /// Maximum bytes allocated by a decode; set by the structure checks of complete images.
    uint64_t memory;
    /// Recorded warnings about ancillary data, at most IMAGE_CODEC_WARNINGS.
    int warning_count;
    /// The reason, unless the status is IMAGE_CODEC_WHOLE.
    char message[IMAGE_CODEC_TEXT];
    char warnings[IMAGE_CODEC_WARNINGS][IMAGE_CODEC_TEXT];
} image_codec_result;

/// A C string with the lifetime of the result.
static inline const char *image_codec_message(const image_codec_result *result) { return result->message; }
/// A C string with the lifetime of the result.
static inline const char *image_codec_warning(const image_codec_result *result, int index) {
    return result->warnings[index];
}

/// Checks signature and size; reads only up to the frame header (JPEG) or IHDR (PNG).
void image_codec_jpeg_header(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                             image_codec_result *result);
void image_codec_png_header(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result);
/// Checks to the last byte, without decompression: JPEG markers to EOI; PNG chunks with their CRC to IEND. Trailing bytes are allowed.
void image_codec_jpeg_structure(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                                image_codec_result *result);
void image_codec_png_structure(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                               image_codec_result *result);
/// Decodes an image without ever holding a whole bitmap. Its structure must have been checked; `result` is that of the structure check.
void image_codec_jpeg_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                             image_codec_result *result);
void image_codec_png_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result);

/// Output of an encoder; `bytes` is malloc'd.
typedef struct {
    uint8_t *bytes;
    size_t count;
} image_codec_buffer;

typedef struct {
    /// 1 grey, 3 RGB (stored as YCbCr 4:2:0), 4 CMYK; one byte each.
    int components;
    /// 1 to 100.
    int quality;
    bool progressive;
    /// MCUs between restart markers; 0: none.
    unsigned restart_interval;
} image_codec_jpeg_options;

typedef struct {
    /// As in IHDR: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha.
    int color_type;
    /// 8 or 16 (big-endian samples).
    int bit_depth;
    bool interlaced;
    /// RGB triples, for `color_type` 3.
    const uint8_t *palette;
    int palette_count;
} image_codec_png_options;

/// Encodes rows without padding. Returns false and an empty buffer for invalid arguments or out of memory.
bool image_codec_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_jpeg_options *options, image_codec_buffer *buffer);
bool image_codec_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                            const image_codec_png_options *options, image_codec_buffer *buffer);
/// The libraries and the versions at build time, such as `libjpeg-turbo 2.1.5, libpng 1.6.39, libdeflate 1.14, zlib 1.2.13`.
const char *image_codec_libraries(void);
void image_codec_release(image_codec_buffer *buffer);
