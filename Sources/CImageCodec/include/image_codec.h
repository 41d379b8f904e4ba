// Checks and writes JPEG (libjpeg-turbo) and PNG (libpng). Both libraries report errors by longjmp: setjmp lives and dies in this
// module. Flat bytes and limits in, one plain struct out; no callback leaves it, nothing is kept between calls, and every function
// may be called from any thread at the same time.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// How a check ended.
enum image_codec_status {
    IMAGE_CODEC_WHOLE = 0,
    /// The bytes end inside the image.
    IMAGE_CODEC_INCOMPLETE = 1,
    /// An error, or a warning that image data is missing or damaged.
    IMAGE_CODEC_DAMAGED = 2,
    /// A kind of JPEG the library was built without (lossless, 12 bits, arithmetic).
    IMAGE_CODEC_UNSUPPORTED = 3,
    /// Over one of the limits.
    IMAGE_CODEC_OVER_LIMIT = 4,
    /// malloc failed: not the image's fault.
    IMAGE_CODEC_NO_MEMORY = 5,
};

/// What a check may cost.
typedef struct {
    uint32_t max_dimension;
    uint64_t max_pixels;
    uint32_t max_scans;
    uint32_t max_frames;
    uint64_t max_frame_pixels;
    uint64_t max_memory;
    /// Processor time of the calling thread: `cpu_nanoseconds` and for each pixel `cpu_nanoseconds_per_pixel`.
    uint64_t cpu_nanoseconds;
    uint64_t cpu_nanoseconds_per_pixel;
} image_codec_limits;

enum { IMAGE_CODEC_TEXT = 120, IMAGE_CODEC_WARNINGS = 8 };

/// What a check found.
typedef struct {
    int status;
    uint32_t width;
    uint32_t height;
    /// Bytes a decode allocates at most; set by the structure checks of whole images.
    uint64_t memory;
    /// Warnings on ancillary data that were kept, at most IMAGE_CODEC_WARNINGS.
    int warning_count;
    /// The reason where the status is not IMAGE_CODEC_WHOLE.
    char message[IMAGE_CODEC_TEXT];
    char warnings[IMAGE_CODEC_WARNINGS][IMAGE_CODEC_TEXT];
} image_codec_result;

/// The reason, as a C string that lives as long as the result.
static inline const char *image_codec_message(const image_codec_result *result) { return result->message; }
/// A kept warning, as a C string that lives as long as the result.
static inline const char *image_codec_warning(const image_codec_result *result, int index) {
    return result->warnings[index];
}

/// Signature and size: reads no further than the frame header (JPEG) or IHDR (PNG).
void image_codec_jpeg_header(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                             image_codec_result *result);
void image_codec_png_header(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result);
/// To the last byte, without decompression: JPEG markers to EOI; PNG chunks with their CRC to IEND. Bytes after the end are allowed.
void image_codec_jpeg_structure(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                                image_codec_result *result);
void image_codec_png_structure(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                               image_codec_result *result);
/// Everything the library's decoder can find out about an image whose structure is whole, for which `result` is the one of that check;
/// never a whole bitmap in memory.
void image_codec_jpeg_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                             image_codec_result *result);
void image_codec_png_decode(const uint8_t *bytes, size_t count, const image_codec_limits *limits,
                            image_codec_result *result);

/// What an encoder wrote; `bytes` is malloc'd.
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

/// Compresses rows without gaps. Returns false, and an empty buffer, on bad arguments or without memory.
bool image_codec_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_jpeg_options *options, image_codec_buffer *buffer);
bool image_codec_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                            const image_codec_png_options *options, image_codec_buffer *buffer);
/// The libraries with the versions this was built against, as `libjpeg-turbo 2.1.5, libpng 1.6.39, libdeflate 1.14, zlib 1.2.13`.
const char *image_codec_libraries(void);
/// Releases what an encoder wrote.
void image_codec_release(image_codec_buffer *buffer);
