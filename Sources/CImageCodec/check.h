// Shared by all formats.
#pragma once
#include "image_codec.h"

/// Ends a check with status and reason, in printf format.
__attribute__((format(printf, 3, 4))) void check_end(image_codec_result *result, int status, const char *format, ...);
/// Records a warning about ancillary data, in printf format; excess ones are counted, not formatted.
__attribute__((format(printf, 2, 3))) void check_keep_warning(image_codec_result *result, const char *format, ...);
/// Behind the message of a limit, the option of the programs that raises it, or does without what it bounds.
#define CHECK_MAX_PIXELS " (--max-pixels raises it)"
#define CHECK_MAX_MEMORY " (--max-decode-memory raises it)"
#define CHECK_UNDECODED " (--validate structure takes it undecoded)"
#define CHECK_UNCHECKED " (--validate none takes it unchecked)"

/// Whether a size is within the limits; ends the check if not.
bool check_size(image_codec_result *result, const image_codec_limits *limits, uint32_t width, uint32_t height);
/// Whether the size of the result is within the limit of images that are not checked row by row; ends the check if not.
/// * `kind`: of image, such as `WebP`.
bool check_whole_size(image_codec_result *result, const image_codec_limits *limits, const char *kind);

/// Allocates the pixels of a result: `frames` bitmaps of its pixel size and channels, zeroed. Ends the call if there is no memory, or the
/// limit is lower.
bool check_allocate_pixels(image_codec_result *result, const image_codec_limits *limits, uint32_t frames);
/// Whether an animation of this many frames is within the limits; ends the check if not.
bool check_frames(image_codec_result *result, const image_codec_limits *limits, uint64_t frames, const char *format);
/// Copies metadata; what does not fit, or cannot be allocated, is dropped.
void check_copy(image_codec_buffer *buffer, const uint8_t *bytes, size_t count);
/// libpng's own default for the size of an ancillary chunk, raw or inflated.
enum { PNG_MAX_CHUNK_BYTES = 8000000 };

/// CPU time of one call, and of those before it for the same file. Reading the clock takes a system call of 0.2 microseconds, so it is done once
/// per `CHECK_STEP` pixels and once per `CHECK_BYTES` of bytes.
typedef struct {
    const image_codec_request *request;
    uint64_t start;
    /// In nanoseconds, and the pixels that it is for.
    uint64_t granted;
    uint64_t granted_pixels;
    uint64_t pixels;
    uint64_t bytes;
} check_budget;

/// A chunk, marker, box or block costs as much as this many bytes, besides its own.
enum { CHECK_PART_BYTES = 1024 };

/// CPU time of this thread.
uint64_t check_nanoseconds(void);
/// Grants the time of an image without pixels.
void check_budget_start(check_budget *budget, const image_codec_request *request);
/// Grants the time of `pixels` more.
void check_budget_grant(check_budget *budget, uint64_t pixels);
/// Whether time is left after `pixels` more of work.
bool check_budget_spend(check_budget *budget, uint64_t pixels);
/// Whether time is left after `bytes` more that were read without making pixels of them.
bool check_budget_read(check_budget *budget, uint64_t bytes);
/// Whether time is left now.
bool check_budget_look(check_budget *budget);
/// Ends a check whose time is spent on the structure alone.
void check_end_slow(image_codec_result *result, const check_budget *budget, const char *format);
/// Ends a check whose time is spent.
void check_end_late(image_codec_result *result, const check_budget *budget, const char *format);

/// Maximum length of EXIF data or a colour profile to copy.
enum { MAX_METADATA_BYTES = 8 << 20 };

static inline uint32_t little_endian_16(const uint8_t *bytes) { return (uint32_t)bytes[1] << 8 | bytes[0]; }
static inline uint32_t little_endian_24(const uint8_t *bytes) {
    return (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}
static inline uint32_t little_endian_32(const uint8_t *bytes) {
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}
static inline uint32_t big_endian_16(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }
static inline uint32_t big_endian_32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}
