#include "reference_codec.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<webp/encode.h>) && __has_include(<webp/demux.h>)

#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>

/// libwebp is no dependency of the programs, nor of their tests.
static void *symbol(const char *name) {
    static void *library;
    if (!library) library = dlopen("libwebp.so.7", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static void *demuxer_symbol(const char *name) {
    static void *library;
    if (!library) library = dlopen("libwebpdemux.so.2", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

bool reference_webp_can_be_shown(void) { return demuxer_symbol("WebPAnimDecoderNewInternal") != NULL; }

bool reference_webp_is_shown(const uint8_t *bytes, size_t count) {
    __typeof__(&WebPAnimDecoderNewInternal) make = demuxer_symbol("WebPAnimDecoderNewInternal");
    __typeof__(&WebPAnimDecoderHasMoreFrames) has_more = demuxer_symbol("WebPAnimDecoderHasMoreFrames");
    __typeof__(&WebPAnimDecoderGetNext) next = demuxer_symbol("WebPAnimDecoderGetNext");
    __typeof__(&WebPAnimDecoderDelete) release = demuxer_symbol("WebPAnimDecoderDelete");
    if (!make || !has_more || !next || !release) return false;
    WebPData data = {bytes, count};
    WebPAnimDecoder *decoder = make(&data, NULL, WEBP_DEMUX_ABI_VERSION);
    if (!decoder) return false;
    bool is_shown = has_more(decoder);
    while (is_shown && has_more(decoder)) {
        uint8_t *pixels;
        int time;
        is_shown = next(decoder, &pixels, &time);
    }
    release(decoder);
    return is_shown;
}

bool reference_webp_is_whole(const uint8_t *bytes, size_t count) {
    __typeof__(&WebPDecodeRGBA) decode = symbol("WebPDecodeRGBA");
    __typeof__(&WebPFree) release = symbol("WebPFree");
    if (!decode || !release) return false;
    int width, height;
    uint8_t *pixels = decode(bytes, count, &width, &height);
    release(pixels);
    return pixels != NULL;
}

size_t reference_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height, const reference_webp_options *options, uint8_t *into,
                             size_t capacity) {
    __typeof__(&WebPConfigInitInternal) init_config = symbol("WebPConfigInitInternal");
    __typeof__(&WebPPictureInitInternal) init_picture = symbol("WebPPictureInitInternal");
    __typeof__(&WebPPictureImportRGB) import = symbol("WebPPictureImportRGB");
    __typeof__(&WebPEncode) encode = symbol("WebPEncode");
    __typeof__(&WebPMemoryWrite) write = symbol("WebPMemoryWrite");
    __typeof__(&WebPPictureFree) release = symbol("WebPPictureFree");
    __typeof__(&WebPMemoryWriterClear) clear = symbol("WebPMemoryWriterClear");
    if (!init_config || !init_picture || !import || !encode || !write || !release || !clear) return 0;
    WebPConfig config;
    WebPPicture picture;
    if (!init_config(&config, WEBP_PRESET_DEFAULT, (float)options->quality, WEBP_ENCODER_ABI_VERSION)) return 0;
    if (!init_picture(&picture, WEBP_ENCODER_ABI_VERSION)) return 0;
    config.method = options->method;
    config.segments = options->segments;
    config.partitions = options->partitions;
    config.sns_strength = options->noise_shaping;
    config.filter_strength = options->filter;
    config.filter_sharpness = options->sharpness;
    config.filter_type = options->has_simple_filter ? 0 : 1;
    WebPMemoryWriter writer = {NULL, 0, 0, {0}};
    picture.width = (int)width;
    picture.height = (int)height;
    picture.writer = write;
    picture.custom_ptr = &writer;
    bool is_made = import(&picture, pixels, (int)width * 3) && encode(&config, &picture);
    size_t length = is_made && writer.size <= capacity ? writer.size : 0;
    if (length > 0) memcpy(into, writer.mem, length);
    release(&picture);
    clear(&writer);
    return length;
}

#else

bool reference_webp_can_be_shown(void) { return false; }

bool reference_webp_is_shown(const uint8_t *bytes, size_t count) {
    (void)bytes, (void)count;
    return false;
}

bool reference_webp_is_whole(const uint8_t *bytes, size_t count) {
    (void)bytes, (void)count;
    return false;
}

size_t reference_encode_webp(const uint8_t *pixels, uint32_t width, uint32_t height, const reference_webp_options *options, uint8_t *into,
                             size_t capacity) {
    (void)pixels, (void)width, (void)height, (void)options, (void)into, (void)capacity;
    return 0;
}

#endif
