// Checks and decodes AVIF by libavif, whose structures differ from version to version: the library that is loaded has to be that of the
// headers at build time.
#include "avif_boxes.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<avif/avif.h>)

#include <avif/avif.h>
#include <pthread.h>

#include "library.h"

#if AVIF_VERSION_MAJOR >= 1
#define AVIF_FILE "libavif.so.16"
#define MIRROR_AXIS(image) (image)->imir.axis
#else
#define AVIF_FILE "libavif.so.15"
#define MIRROR_AXIS(image) (image)->imir.mode
#endif

static struct {
    bool is_loaded;
    char problem[IMAGE_CODEC_TEXT];
    __typeof__(&avifVersion) version;
    __typeof__(&avifCodecName) codec_name;
    __typeof__(&avifDecoderCreate) create;
    __typeof__(&avifDecoderDestroy) destroy;
    __typeof__(&avifDecoderSetIOMemory) set_memory;
    __typeof__(&avifDecoderParse) parse;
    __typeof__(&avifDecoderNextImage) next_image;
    __typeof__(&avifDecoderNthImageMaxExtent) extent;
    __typeof__(&avifResultToString) text;
    __typeof__(&avifRGBImageSetDefaults) set_defaults;
    __typeof__(&avifImageYUVToRGB) convert;
} library;

static void load(void) {
    const library_symbol symbols[] = {
        {"avifVersion", (void **)&library.version},
        {"avifCodecName", (void **)&library.codec_name},
        {"avifDecoderCreate", (void **)&library.create},
        {"avifDecoderDestroy", (void **)&library.destroy},
        {"avifDecoderSetIOMemory", (void **)&library.set_memory},
        {"avifDecoderParse", (void **)&library.parse},
        {"avifDecoderNextImage", (void **)&library.next_image},
        {"avifDecoderNthImageMaxExtent", (void **)&library.extent},
        {"avifResultToString", (void **)&library.text},
        {"avifRGBImageSetDefaults", (void **)&library.set_defaults},
        {"avifImageYUVToRGB", (void **)&library.convert},
    };
    library.is_loaded = library_load(AVIF_FILE, symbols, sizeof symbols / sizeof *symbols, library.problem);
    if (!library.is_loaded) return;
    char built[16];
    int length = snprintf(built, sizeof built, "%d.%d.", AVIF_VERSION_MAJOR, AVIF_VERSION_MINOR);
    if (strncmp(library.version(), built, (size_t)length) == 0) return;
    library.is_loaded = false;
    snprintf(library.problem, sizeof library.problem, "libavif %s is installed, and %d.%d was at build time",
             library.version(), AVIF_VERSION_MAJOR, AVIF_VERSION_MINOR);
}

bool avif_is_loaded(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return library.is_loaded;
}

void avif_describe(char text[IMAGE_CODEC_TEXT]) {
    if (avif_is_loaded())
        snprintf(text, IMAGE_CODEC_TEXT, "libavif %s", library.version());
    else
        snprintf(text, IMAGE_CODEC_TEXT, "%s", library.problem);
}

static bool fail(result_t *result, avifResult end) {
    switch (end) {
    case AVIF_RESULT_OK: return true;
    case AVIF_RESULT_TRUNCATED_DATA:
    case AVIF_RESULT_NO_CONTENT:
    case AVIF_RESULT_WAITING_ON_IO:
        check_end(result, IMAGE_CODEC_INCOMPLETE, "AVIF ends inside the image");
        return false;
    case AVIF_RESULT_OUT_OF_MEMORY:
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode an AVIF");
        return false;
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
    case AVIF_RESULT_NOT_IMPLEMENTED:
        check_end(result, IMAGE_CODEC_UNSUPPORTED, "AVIF: %s", library.text(end));
        return false;
    default: check_end(result, IMAGE_CODEC_DAMAGED, "AVIF: %s", library.text(end)); return false;
    }
}

static uint32_t orientation(const avifImage *image) {
    return avif_orientation(image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle : 0,
                            image->transformFlags & AVIF_TRANSFORM_IMIR, MIRROR_AXIS(image));
}

static uint32_t clamp(uint64_t value, uint32_t limit) { return value < limit ? (uint32_t)value : limit; }

/// Whether a brand of the file is that of sequences.
static bool is_sequence(const request_t *request) {
    size_t end = request->count < 12 ? 0 : big_endian_32(request->bytes);
    if (end > request->count) end = request->count;
    for (size_t offset = 8; offset + 4 <= end; offset += 4)
        if (memcmp(request->bytes + offset, "avis", 4) == 0) return true;
    return false;
}

/// Whether the box that describes the images is there as a whole. A sequence needs the whole file: libavif calls it damaged if its samples
/// are not there.
static bool has_description(const request_t *request) {
    size_t offset = 0;
    bool needs_all = is_sequence(request), has_track = false, has_data = false;
    while (request->count - offset >= 16) {
        const uint8_t *box = request->bytes + offset;
        uint64_t size = big_endian_32(box);
        if (size == 1) size = (uint64_t)big_endian_32(box + 8) << 32 | big_endian_32(box + 12);
        // 0: to the end of the file, wherever that will be.
        if (size < 8 || size > request->count - offset) return false;
        has_track = has_track || memcmp(box + 4, "moov", 4) == 0;
        has_data = has_data || memcmp(box + 4, "mdat", 4) == 0;
        if (!needs_all && (has_track || memcmp(box + 4, "meta", 4) == 0)) return true;
        offset += (size_t)size;
    }
    return has_track && has_data && offset == request->count;
}

/// Pixels that AV1 data may have beyond those of the image.
enum { MAX_OVERHANG = 1 << 18 };

/// A decoder that has read the boxes; NULL, and the call ended, if they are not good.
static avifDecoder *open_with(const request_t *request, avifCodecChoice codec, result_t *result) {
    if (!avif_is_loaded()) {
        check_end(result, IMAGE_CODEC_UNSUPPORTED, "AVIF cannot be decoded: %s", library.problem);
        return NULL;
    }
    avif_facts facts;
    if (!avif_survey(request, false, &facts, result) || !avif_check_size(request, &facts, result)) return NULL;
    avifDecoder *decoder = library.create();
    if (!decoder) {
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode an AVIF");
        return NULL;
    }
    const image_codec_limits *limits = &request->limits;
    decoder->maxThreads = 1;
    // Where libavif would end at its own limit with a message that says nothing, the checks below say what the limit is.
    decoder->imageSizeLimit = AVIF_DEFAULT_IMAGE_SIZE_LIMIT;
    decoder->imageDimensionLimit = AVIF_DEFAULT_IMAGE_DIMENSION_LIMIT;
    decoder->imageCountLimit = clamp((uint64_t)limits->max_frames + 1, AVIF_DEFAULT_IMAGE_COUNT_LIMIT);
    // Files of older encoders have no pixi, and clap matters to nobody who shows the whole image.
    decoder->strictFlags = AVIF_STRICT_ENABLED & ~(avifStrictFlags)(AVIF_STRICT_PIXI_REQUIRED | AVIF_STRICT_CLAP_VALID);
    bool is_open = fail(result, library.set_memory(decoder, request->bytes, request->count));
    // libavif calls a file damaged if an item is longer than all of it. Here the rest may still arrive, or be cut off: `avif_structure` looks.
    if (is_open) decoder->io->sizeHint = UINT64_MAX;
    is_open = is_open && fail(result, library.parse(decoder));
    if (result->status == IMAGE_CODEC_DAMAGED && !has_description(request)) fail(result, AVIF_RESULT_TRUNCATED_DATA);
    is_open = is_open && check_size(result, limits, decoder->image->width, decoder->image->height) &&
              check_whole_size(result, limits, "AVIF");
    if (is_open && request->task >= IMAGE_CODEC_CHECK) {
        // The AV1 data may tell another size than the boxes. Tiles of a grid may reach beyond its edges.
        uint64_t pixels = (uint64_t)decoder->image->width * decoder->image->height + MAX_OVERHANG;
        decoder->imageSizeLimit = clamp(pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT);
        decoder->codecChoice = codec;
        is_open = fail(result, library.parse(decoder));
    }
    const avifImage *image = decoder->image;
    uint64_t frames = is_open ? (uint64_t)decoder->imageCount : 0;
    if (!is_open || !check_frames(result, limits, frames, "AVIF")) {
        library.destroy(decoder);
        return NULL;
    }
    result->frame_count = (uint32_t)frames;
    result->orientation = orientation(image);
    result->has_alpha = decoder->alphaPresent;
    result->color = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? IMAGE_CODEC_COLOR_GRAY : IMAGE_CODEC_COLOR_RGB;
    result->loop_count = 0;
#if AVIF_VERSION_MAJOR >= 1
    if (decoder->repetitionCount >= 0) result->loop_count = (uint32_t)decoder->repetitionCount + 1;
#endif
    return decoder;
}

static avifDecoder *open(const request_t *request, result_t *result) {
    return open_with(request, AVIF_CODEC_CHOICE_AUTO, result);
}

/// The decoded planes, those that other frames refer to, and what the decoder keeps beside them: libaom 13 bytes a pixel of color, and of
/// alpha (measured with 12 million pixels).
static uint64_t decode_memory(const avifDecoder *decoder, avifCodecChoice codec) {
    enum { FIXED = 8 << 20, STILL = 2, SEQUENCE = 10, AOM = 14 };
    const avifImage *image = decoder->image;
    uint64_t pixels = (uint64_t)image->width * image->height;
    // Samples of two pixels, of luma, chroma and alpha.
    unsigned samples = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV444   ? 6
                       : image->yuvFormat == AVIF_PIXEL_FORMAT_YUV422 ? 4
                                                                      : 3;
    if (decoder->alphaPresent) samples += 2;
    uint64_t bytes = (pixels + 1) / 2 * samples * (image->depth > 8 ? 2 : 1) * (decoder->imageCount > 1 ? SEQUENCE : STILL);
    if (codec == AVIF_CODEC_CHOICE_AOM) bytes += pixels * AOM * (decoder->alphaPresent ? 2 : 1);
    return FIXED + bytes;
}

/// AV1 data has no checksum, but the symbols of a tile end where its data ends, up to padding of a known form (AV1 specification, 8.2.4), which
/// damaged symbols rarely meet. libaom compares it; dav1d, two to three times as fast, does not. dav1d still goes first, as it has a limit on
/// the size of a frame, and alone if libaom would exceed the memory of an image.
static bool is_checked_by_both(const request_t *request, const avifDecoder *decoder) {
    const char *first = library.codec_name(AVIF_CODEC_CHOICE_AUTO, AVIF_CODEC_FLAG_CAN_DECODE);
    return library.codec_name(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE) && first &&
           strcmp(first, "dav1d") == 0 && decode_memory(decoder, AVIF_CODEC_CHOICE_AOM) <= request->limits.max_memory;
}

void avif_structure(const request_t *request, result_t *result) {
    avifDecoder *decoder = open(request, result);
    if (!decoder) return;
    bool both = is_checked_by_both(request, decoder);
    result->memory = decode_memory(decoder, both ? AVIF_CODEC_CHOICE_AOM : AVIF_CODEC_CHOICE_AUTO);
    bool is_whole = true;
    for (uint32_t i = 0; is_whole && i < result->frame_count; i++) {
        avifExtent extent;
        if (!fail(result, library.extent(decoder, i, &extent))) break;
        is_whole = extent.offset <= request->count && extent.size <= request->count - extent.offset;
    }
    int status = is_whole ? avif_box_status(request) : IMAGE_CODEC_INCOMPLETE;
    if (result->status == IMAGE_CODEC_WHOLE && status == IMAGE_CODEC_DAMAGED)
        check_end(result, status, "AVIF with a damaged box");
    else if (result->status == IMAGE_CODEC_WHOLE && status == IMAGE_CODEC_INCOMPLETE)
        check_end(result, status, "AVIF ends inside the image");
    library.destroy(decoder);
}

/// Whether the pixels can be converted to RGB, by the pixels of a corner: some values of the color information have no formula.
static bool is_convertible(const avifImage *image, result_t *result) {
    enum { SIDE = 2 };
    uint8_t pixels[SIDE * SIDE * 4];
    avifImage corner = *image;
    corner.width = corner.width < SIDE ? corner.width : SIDE;
    corner.height = corner.height < SIDE ? corner.height : SIDE;
    avifRGBImage rgb;
    library.set_defaults(&rgb, &corner);
    rgb.depth = 8;
    rgb.format = AVIF_RGB_FORMAT_RGBA;
    rgb.pixels = pixels;
    rgb.rowBytes = SIDE * 4;
    return fail(result, library.convert(&corner, &rgb));
}

/// Decodes every frame.
static void check_by(const request_t *request, avifDecoder *decoder, result_t *result) {
    check_budget budget;
    uint64_t pixels = (uint64_t)result->width * result->height;
    check_budget_start(&budget, request);
    check_budget_grant(&budget, result->frame_count * pixels);
    avifPixelFormat format = decoder->image->yuvFormat;
    uint32_t depth = decoder->image->depth;
    for (uint32_t i = 0; i < result->frame_count; i++) {
        if (!fail(result, library.next_image(decoder)) || !is_convertible(decoder->image, result)) break;
        if (decoder->image->yuvFormat != format || decoder->image->depth != depth) {
            check_end(result, IMAGE_CODEC_DAMAGED, "AVIF of another pixel format than announced");
            break;
        }
        if (check_budget_spend(&budget, pixels)) continue;
        check_end_late(result, &budget, "AVIF");
        break;
    }
}

void avif_check(const request_t *request, result_t *result) {
    avifDecoder *decoder = open(request, result);
    if (!decoder) return;
    bool both = is_checked_by_both(request, decoder);
    check_by(request, decoder, result);
    library.destroy(decoder);
    if (!both || result->status != IMAGE_CODEC_WHOLE) return;
    decoder = open_with(request, AVIF_CODEC_CHOICE_AOM, result);
    if (!decoder) return;
    check_by(request, decoder, result);
    library.destroy(decoder);
}

/// Converts an image, or a part of one, to rows without padding.
static bool convert(const avifImage *image, uint8_t *pixels, uint32_t channels, result_t *result) {
    avifRGBImage rgb;
    library.set_defaults(&rgb, image);
    rgb.depth = 8;
    rgb.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = pixels;
    rgb.rowBytes = image->width * channels;
    return fail(result, library.convert(image, &rgb));
}

static bool next_image(avifDecoder *decoder, result_t *result) {
    if (!fail(result, library.next_image(decoder))) return false;
    if (decoder->image->width == result->width && decoder->image->height == result->height) return true;
    check_end(result, IMAGE_CODEC_DAMAGED, "AVIF of another size than announced");
    return false;
}

/// Rows of an image, from an even one on, as an image that shares its planes.
static avifImage part_of(const avifImage *image, uint32_t first, uint32_t rows) {
    avifImage part = *image;
    uint32_t chroma = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV420 ? first / 2 : first;
    part.height = rows;
    for (int plane = 0; plane < 3; plane++)
        if (part.yuvPlanes[plane]) part.yuvPlanes[plane] += (size_t)part.yuvRowBytes[plane] * (plane == 0 ? first : chroma);
    if (part.alphaPlane) part.alphaPlane += (size_t)part.alphaRowBytes * first;
    return part;
}

/// Converts the image in strips, which overlap because the color of a row depends on that of the rows beside it.
static void put_rows(const avifImage *image, row_sink *sink, result_t *result) {
    enum { ROWS = 64, OVERLAP = 2 };
    uint8_t *strip = malloc(sink->stride * (ROWS + 2 * OVERLAP));
    if (!strip) return check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode an AVIF");
    for (uint32_t y = 0; y < image->height; y += ROWS) {
        uint32_t first = y < OVERLAP ? 0 : y - OVERLAP;
        uint32_t end = image->height - y < ROWS + OVERLAP ? image->height : y + ROWS + OVERLAP;
        avifImage part = part_of(image, first, end - first);
        if (!convert(&part, strip, result->channels, result)) break;
        for (uint32_t row = y; row < y + ROWS && row < image->height; row++) {
            memcpy(sink->row, strip + sink->stride * (row - first), sink->stride);
            rows_put(sink);
        }
    }
    free(strip);
}

static void reduce(const request_t *request, avifDecoder *decoder, result_t *result) {
    row_sink sink;
    if (!rows_open(&sink, request, result, result->width, result->height, result->width, result->height)) return;
    if (next_image(decoder, result)) put_rows(decoder->image, &sink, result);
    rows_close(&sink);
}

static void convert_frames(const request_t *request, avifDecoder *decoder, uint32_t frames, result_t *result) {
    result->pixel_width = result->width;
    result->pixel_height = result->rows = result->height;
    if (!check_allocate_pixels(result, &request->limits, frames)) return;
    size_t canvas = (size_t)result->width * result->height * result->channels;
    for (uint32_t i = 0; i < frames; i++) {
        if (!next_image(decoder, result)) return;
        if (!convert(decoder->image, result->pixels.bytes + canvas * i, result->channels, result)) return;
        uint32_t milliseconds = frames > 1 ? (uint32_t)(decoder->imageTiming.duration * 1000) : 0;
        memcpy(result->durations.bytes + 4 * (size_t)i, &milliseconds, 4);
    }
}

void avif_pixels(const request_t *request, result_t *result) {
    avifDecoder *decoder = open(request, result);
    if (!decoder) return;
    uint32_t frames = result->frame_count < request->frames ? result->frame_count : request->frames;
    result->channels = result->has_alpha || frames > 1 ? 4 : 3;
    check_copy(&result->icc, decoder->image->icc.data, decoder->image->icc.size);
    check_copy(&result->exif, decoder->image->exif.data, decoder->image->exif.size);
    if (frames == 1 && rows_are_resampled(request, result->width, result->height))
        reduce(request, decoder, result);
    else
        convert_frames(request, decoder, frames, result);
    library.destroy(decoder);
}

#else

bool avif_is_loaded(void) { return false; }
void avif_describe(char text[IMAGE_CODEC_TEXT]) { snprintf(text, IMAGE_CODEC_TEXT, "built without libavif"); }

static void unsupported(result_t *result) {
    check_end(result, IMAGE_CODEC_UNSUPPORTED, "AVIF cannot be decoded: this program was built without libavif");
}

void avif_structure(const request_t *request, result_t *result) {
    (void)request;
    unsupported(result);
}

void avif_check(const request_t *request, result_t *result) { avif_structure(request, result); }
void avif_pixels(const request_t *request, result_t *result) { avif_structure(request, result); }

#endif
