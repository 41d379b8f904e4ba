// Shared by the parts of the PNG codec.
#pragma once
#include "codecs.h"

enum {
    IHDR = 0x49484452,
    PLTE = 0x504C5445,
    IDAT = 0x49444154,
    IEND = 0x49454E44,
    tRNS = 0x74524E53,
    eXIf = 0x65584966,
    iCCP = 0x69434350,
    acTL = 0x6163544C,
    fcTL = 0x6663544C,
    fdAT = 0x66644154
};
enum { SIGNATURE = 8, HEADER_END = SIGNATURE + 4 + 4 + 13 + 4 };

extern const uint8_t png_signature[SIGNATURE];

/// The fields of IHDR.
typedef struct {
    uint32_t width;
    uint32_t height;
    uint8_t depth;
    uint8_t color_type;
    uint8_t interlaced;
} png_layout;

/// An image inside a file: that of the IDAT chunks, or a frame of an animation.
typedef struct {
    png_layout layout;
    /// Entries of the palette.
    uint32_t palette;
    /// Where PLTE and tRNS of the file start; 0: it has none.
    size_t colors[2];
    /// Where its first data chunk starts; the others follow up to a chunk that ends it.
    size_t offset;
    /// `IDAT` or `fdAT`.
    uint32_t name;
} png_source;

/// Whether the CRC of a chunk, which is there as a whole, is that of its name and data.
bool png_has_crc(const uint8_t *chunk);

/// Larger images are decoded row by row.
enum { PNG_MAX_RAW_BYTES = 32 << 20 };

/// Bytes of the filtered rows of all passes.
uint64_t png_raw_bytes(const png_layout *layout);
/// Whether libdeflate finds the data complete and correct beyond doubt; false: libpng decides.
bool png_inflates(const request_t *request, const png_source *image);

/// A frame of an animation.
typedef struct {
    png_source image;
    uint32_t x;
    uint32_t y;
    uint32_t milliseconds;
    uint8_t dispose;
    uint8_t blend;
} png_frame;

/// The next frame from `offset` on, which it moves behind it; false at the end. The structure must have been checked.
/// * `file`: the image of the file, of whose kind all frames are.
bool png_next_frame(const request_t *request, const png_source *file, size_t *offset, png_frame *frame);
/// A file with only this frame as its image; empty if there is no memory.
void png_extract(const request_t *request, const png_source *image, image_codec_buffer *file);
