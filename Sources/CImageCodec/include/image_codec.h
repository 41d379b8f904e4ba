// Checks, decodes and encodes images: JPEG (libjpeg-turbo), PNG and APNG (libpng, libdeflate), GIF (own), WebP (libwebp) and AVIF (libavif).
//
// A call is one request in and one flat result out: no callback, no pointer kept, no state between calls, so that a call could as well be
// made in another process. libjpeg and libpng report errors by longjmp, which never leaves this module. libwebp and libavif are loaded at the
// first image of their format. All functions are thread-safe.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image_resample.h"

enum image_codec_format {
    IMAGE_CODEC_JPEG = 1,
    IMAGE_CODEC_PNG = 2,
    IMAGE_CODEC_GIF = 3,
    IMAGE_CODEC_WEBP = 4,
    IMAGE_CODEC_AVIF = 5,
};

enum image_codec_task {
    /// Signature and size; only the first bytes are read, which may be all there are. Not for WebP.
    IMAGE_CODEC_HEADER = 0,
    /// To the last byte, without decompression. Bytes after the image are allowed. Not for WebP.
    IMAGE_CODEC_STRUCTURE = 1,
    /// Decodes every frame, at the lowest cost that finds every damage. The structure must have been checked.
    IMAGE_CODEC_CHECK = 2,
    /// Decodes to pixels. The structure must have been checked, unless `partial`.
    IMAGE_CODEC_PIXELS = 3,
    /// The part of `IMAGE_CODEC_CHECK` that needs no library of a format: own readers, libdeflate. They prove that image data is good, or leave it
    /// `IMAGE_CODEC_UNDECIDED`. The structure must have been checked.
    IMAGE_CODEC_PROVE = 4,
};

/// What own readers have said of the image data.
enum image_codec_proof {
    /// They were not asked.
    IMAGE_CODEC_PROOF_OPEN = 0,
    /// They have proved nothing.
    IMAGE_CODEC_PROOF_FAILED = 1,
    /// All image data is good; the library decides on what is before it.
    IMAGE_CODEC_PROOF_DATA = 2,
};

enum image_codec_status {
    IMAGE_CODEC_WHOLE = 0,
    /// The bytes end inside the image.
    IMAGE_CODEC_INCOMPLETE = 1,
    /// An error, or a warning about missing or damaged image data.
    IMAGE_CODEC_DAMAGED = 2,
    /// A kind that the library does not support (JPEG: lossless, 12 bits, arithmetic), or a format without its library.
    IMAGE_CODEC_UNSUPPORTED = 3,
    /// More than a limit, or than what a library or this module takes, without proof of damage. Nothing raises this one.
    IMAGE_CODEC_OVER_LIMIT = 4,
    /// malloc failed: not the image's fault.
    IMAGE_CODEC_NO_MEMORY = 5,
    /// More than `max_pixels`.
    IMAGE_CODEC_OVER_PIXELS = 6,
    /// More than `max_memory`.
    IMAGE_CODEC_OVER_MEMORY = 7,
    /// More than a check may take that decodes.
    IMAGE_CODEC_OVER_DECODING = 8,
    /// A side is too long to be resized.
    IMAGE_CODEC_OVER_SIDE = 9,
    /// Of `IMAGE_CODEC_PROVE`: the library has to decide.
    IMAGE_CODEC_UNDECIDED = 10,
};

/// Whether libjpeg decodes a JPEG row by row, or keeps the coefficients of the whole image.
enum image_codec_whole {
    IMAGE_CODEC_ROWS = 0,
    IMAGE_CODEC_PROGRESSIVE = 1,
    /// A sequential one of several scans.
    IMAGE_CODEC_SCANS = 2,
};

enum image_codec_color {
    IMAGE_CODEC_COLOR_UNKNOWN = 0,
    IMAGE_CODEC_COLOR_GRAY = 1,
    IMAGE_CODEC_COLOR_RGB = 2,
    IMAGE_CODEC_COLOR_INDEXED = 3,
    IMAGE_CODEC_COLOR_CMYK = 4,
    IMAGE_CODEC_COLOR_YCCK = 5,
};

typedef struct {
    uint32_t max_dimension;
    uint64_t max_pixels;
    /// Of images that a library keeps as a whole: AVIF, and WebP and JPEG of several scans that are not proved without it. `max_pixels` holds for
    /// them too.
    uint64_t max_whole_pixels;
    uint32_t max_scans;
    uint32_t max_frames;
    uint64_t max_memory;
    /// CPU time of the calling thread: `cpu_nanoseconds` plus `cpu_nanoseconds_per_pixel` for each pixel that is decoded, over all frames,
    /// but for at least one and at most 1,000 pixels a byte of the file.
    uint64_t cpu_nanoseconds;
    uint64_t cpu_nanoseconds_per_pixel;
} image_codec_limits;

typedef struct {
    /// An `image_codec_format`.
    int format;
    /// An `image_codec_task`.
    int task;
    const uint8_t *bytes;
    size_t count;
    image_codec_limits limits;
    /// For `IMAGE_CODEC_PIXELS`: the number of frames to decode from the first on, at least 1.
    uint32_t frames;
    /// For `IMAGE_CODEC_PIXELS` of a JPEG: decodes at the smallest of 1/8, 1/4, 1/2 and 1 of its size that is at least this; 0: at full size.
    uint32_t min_width;
    uint32_t min_height;
    /// For `IMAGE_CODEC_PIXELS` of one frame: the size to which a part of the image is resampled while it is decoded; 0: not. Not `partial`.
    uint32_t to_width;
    uint32_t to_height;
    /// That part, in pixels of the image, from its top left corner; fractions are allowed.
    double left;
    double top;
    double right;
    double bottom;
    /// For `IMAGE_CODEC_PIXELS` of JPEG and PNG: decodes as far as the bytes go, of an animation the first image.
    bool partial;
    /// For `IMAGE_CODEC_CHECK`: an `image_codec_proof`, of what need not be tried again.
    int proof;
    /// Nanoseconds of CPU time that earlier calls for the same file took: a file has one budget.
    uint64_t spent;
} image_codec_request;

/// Memory from malloc.
typedef struct {
    uint8_t *bytes;
    size_t count;
} image_codec_buffer;

enum { IMAGE_CODEC_TEXT = 120, IMAGE_CODEC_WARNINGS = 8 };

typedef struct {
    int status;
    uint32_t width;
    uint32_t height;
    /// Maximum bytes allocated by `IMAGE_CODEC_CHECK` of what is not proved, and by `IMAGE_CODEC_PROVE`; set by `IMAGE_CODEC_STRUCTURE`.
    uint64_t memory, proof_memory;
    /// An `image_codec_whole`; set by `IMAGE_CODEC_STRUCTURE`.
    int whole;
    /// 1 to 8, as in EXIF; 1 if the file has none.
    uint32_t orientation;
    /// Frames of the file; 1 for a still image.
    uint32_t frame_count;
    /// How often an animation plays; 0: for ever.
    uint32_t loop_count;
    bool has_alpha;
    /// An `image_codec_color`.
    int color;
    /// Recorded warnings about ancillary data, at most IMAGE_CODEC_WARNINGS, and how many there were.
    int warning_count;
    uint32_t warnings_seen;
    /// Nanoseconds of CPU time that the call took.
    uint64_t spent;
    /// The reason, unless the status is IMAGE_CODEC_WHOLE.
    char message[IMAGE_CODEC_TEXT];
    char warnings[IMAGE_CODEC_WARNINGS][IMAGE_CODEC_TEXT];

    /// Of `IMAGE_CODEC_PROVE` if the status is IMAGE_CODEC_UNDECIDED: an `image_codec_proof`, and of how many bytes, from the first on, the
    /// library has to decide.
    int proof;
    size_t undecided;

    // Of IMAGE_CODEC_PIXELS; freed by `image_codec_release_result`.

    /// `pixel_frames` bitmaps one after the other, rows without padding, 3 or 4 (RGBA, not premultiplied) bytes a pixel.
    image_codec_buffer pixels;
    uint32_t pixel_width;
    uint32_t pixel_height;
    uint32_t channels;
    uint32_t pixel_frames;
    /// Rows that were decoded, of `pixel_height`; fewer only if `partial`.
    uint32_t rows;
    /// Milliseconds of each frame, as 32-bit integers.
    image_codec_buffer durations;
    image_codec_buffer exif;
    image_codec_buffer icc;
} image_codec_result;

/// Whether there is such a format and task.
bool image_codec_has_task(const image_codec_request *request);
/// Carries out a request.
void image_codec_run(const image_codec_request *request, image_codec_result *result);
void image_codec_release_result(image_codec_result *result);

/// A C string with the lifetime of the result.
static inline const char *image_codec_message(const image_codec_result *result) { return result->message; }
/// A C string with the lifetime of the result.
static inline const char *image_codec_warning(const image_codec_result *result, int index) {
    return result->warnings[index];
}

/// The orientation in EXIF data, 1 to 8; 1 if there is none.
uint32_t image_codec_exif_orientation(const uint8_t *exif, size_t count);
/// Changes the orientation in EXIF data that has one.
void image_codec_exif_set_orientation(uint8_t *exif, size_t count, uint32_t orientation);

/// Bytes that libwebp allocates for the tables of a lossless WebP image, whose data follow its header of size; 0 if they are damaged.
/// * `steps`: symbols and bits that were read for it are added, at most a few thousand and 16 for each byte.
uint64_t image_codec_vp8l_tables(const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, uint64_t *steps);

/// Nanoseconds of CPU time that a file of `bytes` may take to decode to `pixels`, over all its frames: a pixel without data takes none, and data
/// of more than a byte a pixel (PNG of a photograph) take as long as so many pixels.
uint64_t image_codec_cpu_limit(const image_codec_limits *limits, uint64_t bytes, uint64_t pixels);

/// Whether the library of a format is there; loads it.
bool image_codec_can_decode(int format);
/// The libraries and the versions at build time, such as `libjpeg-turbo 2.1.5, libpng 1.6.39, libdeflate 1.14, zlib 1.2.13`.
const char *image_codec_libraries(void);
/// The state of the library of a format that is loaded at run time, such as `libwebp 1.2.4` or `libavif.so.15 is not installed`.
void image_codec_describe(int format, char text[IMAGE_CODEC_TEXT]);

// Encoders

/// EXIF and ICC data to write; counts of 0: none.
typedef struct {
    const uint8_t *exif;
    size_t exif_count;
    const uint8_t *icc;
    size_t icc_count;
} image_codec_metadata;

typedef struct {
    /// 1 grey, 3 RGB (stored as YCbCr 4:2:0), 4 CMYK; one byte each.
    int components;
    /// 1 to 100.
    int quality;
    bool progressive;
    /// MCUs between restart markers; 0: none.
    unsigned restart_interval;
    image_codec_metadata metadata;
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
    image_codec_metadata metadata;
} image_codec_png_options;

typedef struct {
    /// 3 RGB, 4 RGBA.
    int components;
    /// 1 to 100.
    int quality;
    image_codec_metadata metadata;
} image_codec_webp_options;

/// Encodes rows without padding. Returns false and an empty buffer for invalid arguments, out of memory or a missing library.
bool image_codec_encode_jpeg(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_jpeg_options *options, image_codec_buffer *buffer);
bool image_codec_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                            const image_codec_png_options *options, image_codec_buffer *buffer);
bool image_codec_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_webp_options *options, image_codec_buffer *buffer);
void image_codec_release(image_codec_buffer *buffer);
