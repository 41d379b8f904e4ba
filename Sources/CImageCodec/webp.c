// Checks and decodes WebP by libwebp. The structure, of which this file relies on nothing but the lengths of the chunks, is checked before
// (WebPStructure.swift). An ANMF chunk's own chunks are what libwebp accepts as an image without a RIFF header (webp/decode.h).
//
// The check: a lossy image without an alpha channel is proved whole without libwebp (webp_prove.c), which decides on the others. They are decoded to YUV without
// the loop filter, which cannot fail: a truncated or damaged partition is found while its symbols are read.
#include "canvas.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<webp/decode.h>) && __has_include(<webp/encode.h>)

#include <pthread.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "library.h"

static struct {
    bool is_loaded;
    char problem[IMAGE_CODEC_TEXT];
    __typeof__(&WebPGetDecoderVersion) version;
    __typeof__(&WebPInitDecoderConfigInternal) init_config;
    __typeof__(&WebPGetFeaturesInternal) get_features;
    __typeof__(&WebPDecode) decode;
    __typeof__(&WebPFreeDecBuffer) free_buffer;
    __typeof__(&WebPEncodeRGB) encode_rgb;
    __typeof__(&WebPEncodeRGBA) encode_rgba;
    __typeof__(&WebPFree) free;
} library;

static void load(void) {
    const library_symbol symbols[] = {
        {"WebPGetDecoderVersion", (void **)&library.version},
        {"WebPInitDecoderConfigInternal", (void **)&library.init_config},
        {"WebPGetFeaturesInternal", (void **)&library.get_features},
        {"WebPDecode", (void **)&library.decode},
        {"WebPFreeDecBuffer", (void **)&library.free_buffer},
        {"WebPEncodeRGB", (void **)&library.encode_rgb},
        {"WebPEncodeRGBA", (void **)&library.encode_rgba},
        {"WebPFree", (void **)&library.free},
    };
    library.is_loaded = library_load("libwebp.so.7", symbols, sizeof symbols / sizeof *symbols, library.problem);
}

bool webp_is_loaded(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return library.is_loaded;
}

void webp_describe(char text[IMAGE_CODEC_TEXT]) {
    if (!webp_is_loaded()) {
        snprintf(text, IMAGE_CODEC_TEXT, "%s", library.problem);
        return;
    }
    int version = library.version();
    snprintf(text, IMAGE_CODEC_TEXT, "libwebp %d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
}

enum { VP8X = 0x58385056, ANIM = 0x4D494E41, ANMF = 0x464D4E41, ICCP = 0x50434349, EXIF = 0x46495845 };
enum { VP8 = 0x20385056, VP8L = 0x4C385056, ALPH = 0x48504C41, HAS_ALPHA = 0x10 };
enum { RIFF_HEADER = 12, CHUNK_HEADER = 8, FRAME_HEADER = 16 };

/// The chunk at `offset`, which moves behind it; false at the end.
static bool next_chunk(const request_t *request, size_t *offset, uint32_t *name, const uint8_t **data, size_t *count) {
    if (*offset > request->count || request->count - *offset < CHUNK_HEADER) return false;
    const uint8_t *chunk = request->bytes + *offset;
    *name = little_endian_32(chunk);
    *count = little_endian_32(chunk + 4);
    *data = chunk + CHUNK_HEADER;
    if (request->count - *offset - CHUNK_HEADER < *count) return false;
    *offset += CHUNK_HEADER + *count + (*count & 1);
    return true;
}

/// An image of a file: the chunks that libwebp takes for one without a RIFF header, and nothing behind them, which its data might go on in.
typedef struct {
    const uint8_t *bytes;
    size_t count;
    /// Of the ANMF chunk before it; NULL: a still one.
    const uint8_t *fields;
} image_part;

/// Whether the file is one of VP8X: of others nothing counts behind the image.
static bool is_extended(const request_t *inside) {
    return inside->count > RIFF_HEADER + CHUNK_HEADER && little_endian_32(inside->bytes + RIFF_HEADER) == VP8X;
}

/// The image whose chunks begin at `offset`, which moves behind them; false if there is none.
static bool read_image(const request_t *inside, size_t *offset, image_part *image) {
    size_t start = *offset, end = start, next = start, length;
    uint32_t name;
    const uint8_t *data;
    bool has_alpha = false, has_image = false;
    bool keeps_alpha = image->fields || (is_extended(inside) && inside->bytes[RIFF_HEADER + CHUNK_HEADER] & HAS_ALPHA);
    while (next_chunk(inside, &next, &name, &data, &length)) {
        bool *is_there = name == ALPH ? &has_alpha : name == VP8 || name == VP8L ? &has_image : NULL;
        if (!is_there || *is_there) break;
        *is_there = true;
        // What VP8X does not announce is none.
        if (name != ALPH && !keeps_alpha) start = (size_t)(data - inside->bytes) - CHUNK_HEADER;
        end = next < inside->count ? next : inside->count;
    }
    image->bytes = inside->bytes + start;
    image->count = end - start;
    *offset = end;
    return has_image;
}

/// The next image from `offset` on, which moves behind it. As to libwebp's demuxer, that of a frame is what is behind ANMF's own fields, whatever length
/// ANMF gives. False at the end.
static bool next_image(const request_t *inside, size_t *offset, image_part *image) {
    size_t start = *offset, length;
    uint32_t name;
    const uint8_t *data;
    for (; next_chunk(inside, offset, &name, &data, &length); start = *offset) {
        image->fields = name == ANMF && length >= FRAME_HEADER ? data : NULL;
        if (image->fields)
            *offset = (size_t)(data - inside->bytes) + FRAME_HEADER;
        else if (name == ALPH || name == VP8 || name == VP8L)
            *offset = start;
        else
            continue;
        if (read_image(inside, offset, image)) return true;
    }
    return false;
}

/// The data up to the end that the RIFF header gives.
static request_t container(const request_t *request) {
    request_t inside = *request;
    if (request->count < RIFF_HEADER) return inside;
    size_t length = (size_t)little_endian_32(request->bytes + 4) + 8;
    if (length < inside.count) inside.count = length;
    return inside;
}

static bool fail(result_t *result, VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OK: return true;
    case VP8_STATUS_OUT_OF_MEMORY:
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a WebP");
        return false;
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        check_end(result, IMAGE_CODEC_DAMAGED, "WebP with a feature that does not exist");
        return false;
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: check_end(result, IMAGE_CODEC_DAMAGED, "WebP with image data that ends early"); return false;
    default: check_end(result, IMAGE_CODEC_DAMAGED, "WebP with damaged image data"); return false;
    }
}

typedef struct {
    uint32_t width;
    uint32_t height;
} size_of_image;

/// Decodes an image of a size to a size; `pixels` is NULL for a check.
static bool decode(result_t *result, const image_part *image, uint8_t *pixels, size_of_image from, size_of_image to, uint32_t channels) {
    WebPDecoderConfig config;
    if (!library.init_config(&config, WEBP_DECODER_ABI_VERSION)) {
        check_end(result, IMAGE_CODEC_UNSUPPORTED, "another version of libwebp than at build time");
        return false;
    }
    if (!fail(result, library.get_features(image->bytes, image->count, &config.input, WEBP_DECODER_ABI_VERSION))) return false;
    bool is_lossy = config.input.format == 1;
    if (pixels) {
        if ((uint32_t)config.input.width != from.width || (uint32_t)config.input.height != from.height) {
            check_end(result, IMAGE_CODEC_DAMAGED, "WebP of another size than announced");
            return false;
        }
        config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA.rgba = pixels;
        config.output.u.RGBA.stride = (int)(to.width * channels);
        config.output.u.RGBA.size = (size_t)to.width * channels * to.height;
        config.options.use_scaling = to.width != from.width || to.height != from.height;
        config.options.scaled_width = (int)to.width;
        config.options.scaled_height = (int)to.height;
    } else {
        // Lossless data is RGB; to make YUV of it would cost time.
        config.output.colorspace = !is_lossy ? MODE_BGRA : config.input.has_alpha ? MODE_YUVA : MODE_YUV;
        config.options.bypass_filtering = 1;
        config.options.no_fancy_upsampling = 1;
    }
    VP8StatusCode code = library.decode(image->bytes, image->count, &config);
    if (!pixels) library.free_buffer(&config.output);
    return fail(result, code);
}

static bool unavailable(result_t *result) {
    if (webp_is_loaded()) return false;
    check_end(result, IMAGE_CODEC_UNSUPPORTED, "WebP cannot be decoded: %s", library.problem);
    return true;
}

static bool get_size(result_t *result, const image_part *image, size_of_image *size) {
    WebPBitstreamFeatures features;
    if (!fail(result, library.get_features(image->bytes, image->count, &features, WEBP_DECODER_ABI_VERSION))) return false;
    *size = (size_of_image){(uint32_t)features.width, (uint32_t)features.height};
    return true;
}

void webp_check(const request_t *request, result_t *result) {
    if (request->proof == IMAGE_CODEC_PROOF_OPEN && webp_is_proved(request, result)) return;
    if (unavailable(result)) return;
    request_t inside = container(request);
    size_t offset = RIFF_HEADER;
    image_part image = {NULL, 0, NULL};
    bool has_image = false;
    check_budget budget;
    check_budget_start(&budget, &inside);
    while (next_image(&inside, &offset, &image)) {
        size_of_image size;
        if (!get_size(result, &image, &size)) return;
        has_image = true;
        if (!image.fields) {
            result->width = size.width;
            result->height = size.height;
            // Of images that are kept as a whole.
            if (!check_whole_size(result, &inside.limits, "WebP")) return;
        }
        uint64_t pixels = (uint64_t)size.width * size.height;
        check_budget_grant(&budget, pixels);
        if (!decode(result, &image, NULL, size, size, 0)) return;
        if (!image.fields) return;
        if (!check_budget_spend(&budget, pixels)) return check_end_late(result, &budget, "WebP");
    }
    if (!has_image) check_end(result, IMAGE_CODEC_DAMAGED, "WebP without an image");
}

/// Draws the frames of an animation (RFC 9649, section 2.7.1.1).
static void compose(const request_t *inside, result_t *result) {
    canvas canvas;
    if (!canvas_open(&canvas, result)) return;
    size_t offset = RIFF_HEADER;
    image_part image = {NULL, 0, NULL};
    while (next_image(inside, &offset, &image)) {
        size_of_image size;
        const uint8_t *data = image.fields;
        if (!data) continue;
        if (!get_size(result, &image, &size)) break;
        canvas_frame frame = {2 * little_endian_24(data),
                              2 * little_endian_24(data + 3),
                              size.width,
                              size.height,
                              data[15] & 1 ? CANVAS_CLEAR : CANVAS_KEEP,
                              !(data[15] & 2),
                              little_endian_24(data + 12)};
        if ((uint64_t)frame.width * frame.height * 4 > canvas.bytes) {
            check_end(result, IMAGE_CODEC_DAMAGED, "WebP with a frame outside of the image");
            break;
        }
        if (!decode(result, &image, canvas.part, size, size, 4)) break;
        if (!canvas_draw(&canvas, result, &frame)) break;
    }
    canvas_close(&canvas);
}

/// Size, frames and metadata, from the chunks.
static void survey(const request_t *inside, result_t *result) {
    size_t offset = RIFF_HEADER, count;
    uint32_t name, frames = 0;
    const uint8_t *data;
    image_part image = {NULL, 0, NULL};
    while (is_extended(inside) && next_image(inside, &offset, &image)) frames += image.fields != NULL;
    offset = RIFF_HEADER;
    while (is_extended(inside) && next_chunk(inside, &offset, &name, &data, &count)) {
        if (name == ANIM && count >= 6) result->loop_count = little_endian_16(data + 4);
        if (name == ICCP) check_copy(&result->icc, data, count);
        // Some writers put JPEG's prefix before it.
        size_t prefix = count > 6 && memcmp(data, "Exif\0", 6) == 0 ? 6 : 0;
        if (name == EXIF && !result->exif.bytes) {
            check_copy(&result->exif, data + prefix, count - prefix);
            result->orientation = image_codec_exif_orientation(data + prefix, count - prefix);
        }
        if (name == VP8X && count >= 10) {
            result->width = little_endian_24(data + 4) + 1;
            result->height = little_endian_24(data + 7) + 1;
            result->has_alpha = data[0] & 0x10;
        }
    }
    result->frame_count = frames > 0 ? frames : 1;
    WebPBitstreamFeatures features;
    if (frames > 0 || !fail(result, library.get_features(inside->bytes, inside->count, &features, WEBP_DECODER_ABI_VERSION)))
        return;
    result->width = (uint32_t)features.width;
    result->height = (uint32_t)features.height;
    result->has_alpha = features.has_alpha;
}

/// A side of the image that libwebp reduces by averages while it decodes: half as large again as the result, so that the filter hides their softness.
/// * `part`: what of it becomes the result.
static uint32_t intermediate(uint32_t to, double part, uint32_t from) {
    double side = 1.5 * to / part * from + 1;
    return side >= 1 && side < from ? (uint32_t)side : from;
}

void webp_pixels(const request_t *request, result_t *result) {
    if (unavailable(result)) return;
    if (request->count < RIFF_HEADER) return check_end(result, IMAGE_CODEC_INCOMPLETE, "WebP ends inside the image");
    request_t inside = container(request);
    survey(&inside, result);
    result->color = IMAGE_CODEC_COLOR_RGB;
    if (result->status != IMAGE_CODEC_WHOLE) return;
    if (!check_size(result, &request->limits, result->width, result->height) ||
        !check_whole_size(result, &request->limits, "WebP"))
        return;
    bool is_animation = result->frame_count > 1;
    uint32_t frames = result->frame_count < request->frames ? result->frame_count : request->frames;
    size_t offset = RIFF_HEADER;
    image_part image = {NULL, 0, NULL};
    if (!next_image(&inside, &offset, &image)) return check_end(result, IMAGE_CODEC_DAMAGED, "WebP without an image");
    bool has_canvas = image.fields;
    result->channels = has_canvas || is_animation || result->has_alpha ? 4 : 3;
    size_of_image size = {result->width, result->height}, scaled = size;
    // libwebp's scaling mixes in the colors of transparent pixels.
    if (frames == 1 && result->channels == 3 && rows_are_resampled(request, size.width, size.height))
        scaled = (size_of_image){intermediate(request->to_width, request->right - request->left, size.width),
                                 intermediate(request->to_height, request->bottom - request->top, size.height)};
    if (has_canvas) scaled = size;
    result->pixel_width = scaled.width;
    result->pixel_height = result->rows = scaled.height;
    if (!check_allocate_pixels(result, &request->limits, frames)) return;
    if (has_canvas)
        compose(&inside, result);
    else
        decode(result, &image, result->pixels.bytes, size, scaled, result->channels);
    if (has_canvas && frames == 1 && !result->has_alpha && result->status == IMAGE_CODEC_WHOLE) canvas_drop_alpha(result);
    if (frames == 1) rows_resample(request, result);
}

// MARK: Encoding

static uint8_t *put_chunk(uint8_t *into, const char *name, const uint8_t *data, size_t count) {
    memcpy(into, name, 4);
    for (int i = 0; i < 4; i++) into[4 + i] = (uint8_t)(count >> 8 * i);
    memcpy(into + 8, data, count);
    if (count & 1) into[8 + count] = 0;
    return into + 8 + count + (count & 1);
}

static size_t chunk_size(size_t count) { return count == 0 ? 0 : 8 + count + (count & 1); }

/// Adds metadata to a simple file, which becomes one with VP8X (RFC 9649, section 2.7).
static bool add_metadata(const uint8_t *file, size_t count, uint32_t width, uint32_t height, bool has_alpha,
                         const image_codec_metadata *metadata, image_codec_buffer *buffer) {
    uint8_t flags[10] = {(uint8_t)((metadata->icc_count ? 0x20 : 0) | (metadata->exif_count ? 0x08 : 0) |
                                   (has_alpha ? 0x10 : 0))};
    const uint8_t *image = file + RIFF_HEADER;
    size_t image_count = count - RIFF_HEADER;
    if (little_endian_32(image) == VP8X) {
        size_t skipped = chunk_size(little_endian_32(image + 4));
        image += skipped;
        image_count -= skipped;
    }
    for (int i = 0; i < 3; i++) {
        flags[4 + i] = (uint8_t)((width - 1) >> 8 * i);
        flags[7 + i] = (uint8_t)((height - 1) >> 8 * i);
    }
    buffer->count = RIFF_HEADER + chunk_size(sizeof flags) + chunk_size(metadata->icc_count) + image_count +
                    chunk_size(metadata->exif_count);
    buffer->bytes = malloc(buffer->count);
    if (!buffer->bytes) return false;
    uint8_t *end = buffer->bytes;
    memcpy(end, "RIFF", 4);
    for (int i = 0; i < 4; i++) end[4 + i] = (uint8_t)((buffer->count - 8) >> 8 * i);
    memcpy(end + 8, "WEBP", 4);
    end = put_chunk(end + RIFF_HEADER, "VP8X", flags, sizeof flags);
    if (metadata->icc_count) end = put_chunk(end, "ICCP", metadata->icc, metadata->icc_count);
    memcpy(end, image, image_count);
    if (metadata->exif_count) put_chunk(end + image_count, "EXIF", metadata->exif, metadata->exif_count);
    return true;
}

bool image_codec_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_webp_options *options, image_codec_buffer *buffer) {
    *buffer = (image_codec_buffer){NULL, 0};
    if (!webp_is_loaded()) return false;
    uint8_t *file = NULL;
    int stride = (int)width * options->components;
    float quality = (float)options->quality;
    size_t count = options->components == 4
                       ? library.encode_rgba(pixels, (int)width, (int)height, stride, quality, &file)
                       : library.encode_rgb(pixels, (int)width, (int)height, stride, quality, &file);
    if (count < RIFF_HEADER + CHUNK_HEADER) return false;
    const image_codec_metadata *metadata = &options->metadata;
    bool done;
    if (metadata->exif_count + metadata->icc_count > 0) {
        done = add_metadata(file, count, width, height, options->components == 4, metadata, buffer);
    } else {
        buffer->bytes = malloc(count);
        done = buffer->bytes != NULL;
        if (done) memcpy(buffer->bytes, file, count);
        buffer->count = done ? count : 0;
    }
    library.free(file);
    if (!done) image_codec_release(buffer);
    return done;
}

#else

static void unsupported(result_t *result) {
    check_end(result, IMAGE_CODEC_UNSUPPORTED, "WebP cannot be decoded: this program was built without libwebp");
}

bool webp_is_loaded(void) { return false; }
void webp_describe(char text[IMAGE_CODEC_TEXT]) { snprintf(text, IMAGE_CODEC_TEXT, "built without libwebp"); }

void webp_check(const request_t *request, result_t *result) {
    if (request->proof != IMAGE_CODEC_PROOF_OPEN || !webp_is_proved(request, result)) unsupported(result);
}

void webp_pixels(const request_t *request, result_t *result) {
    (void)request;
    unsupported(result);
}

bool image_codec_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height,
                             const image_codec_webp_options *options, image_codec_buffer *buffer) {
    (void)pixels, (void)width, (void)height, (void)options;
    *buffer = (image_codec_buffer){NULL, 0};
    return false;
}

#endif
