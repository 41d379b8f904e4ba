// Our check of images beside the decoder of each format's library, on one core: pixels ROUNDS FILE…
//
// Prints a line per file: format, nanoseconds of CPU of our check and of the library, the medians of the rounds, in turn. Ours is what
// `--validate decode` does: structure, then every frame. Theirs is a full decode to RGB or RGBA; of
// AVIF by each AV1 decoder that our check uses, dav1d and libaom.
#include "../../../Sources/CImageCodec/include/image_codec.h"
#include "decoders.h"

#include <avif/avif.h>
#include <gif_lib.h>
#include <string.h>
#include <time.h>
#include <webp/demux.h>

typedef struct {
    const uint8_t *bytes;
    size_t count;
    int format;
} image;

static void fail(const char *path, const char *why) {
    fprintf(stderr, "pixels: %s: %s\n", path, why);
    exit(1);
}

static uint64_t cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Ours

static bool ours(const image *image) {
    static const image_codec_limits limits = {
        .max_dimension = 65535, .max_pixels = 1u << 28, .max_whole_pixels = 1u << 28, .max_scans = 1000, .max_frames = 10000,
        .max_memory = 1ull << 32, .cpu_nanoseconds = 60000000000u, .cpu_nanoseconds_per_pixel = 1000};
    for (int task = image->format == IMAGE_CODEC_WEBP ? IMAGE_CODEC_CHECK : IMAGE_CODEC_STRUCTURE; task <= IMAGE_CODEC_CHECK; task++) {
        image_codec_request request = {.format = image->format, .task = task, .bytes = image->bytes, .count = image->count, .limits = limits};
        image_codec_result result;
        image_codec_run(&request, &result);
        bool whole = result.status == IMAGE_CODEC_WHOLE;
        if (!whole) fprintf(stderr, "%s\n", result.message);
        image_codec_release_result(&result);
        if (!whole) return false;
    }
    return true;
}

// Theirs

static int gif_take(GifFileType *file, GifByteType *into, int count) {
    image *rest = file->UserData;
    if ((size_t)count > rest->count) count = (int)rest->count;
    memcpy(into, rest->bytes, (size_t)count);
    rest->bytes += count;
    rest->count -= (size_t)count;
    return count;
}

static bool gif(const image *given) {
    image rest = *given;
    int error;
    GifFileType *file = DGifOpen(&rest, gif_take, &error);
    if (!file) return false;
    bool done = DGifSlurp(file) == GIF_OK;
    DGifCloseFile(file, &error);
    return done;
}

static bool webp(const image *image) {
    WebPData data = {image->bytes, image->count};
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, NULL);
    WebPAnimInfo info;
    if (!decoder || !WebPAnimDecoderGetInfo(decoder, &info)) return false;
    if (info.frame_count == 1) {
        WebPAnimDecoderDelete(decoder);
        return webp_decodes(image->bytes, image->count, false);
    }
    uint8_t *pixels;
    int time;
    bool done = true;
    while (done && WebPAnimDecoderHasMoreFrames(decoder)) done = WebPAnimDecoderGetNext(decoder, &pixels, &time);
    WebPAnimDecoderDelete(decoder);
    return done;
}

static bool avif_by(const image *image, avifCodecChoice codec) {
    avifDecoder *decoder = avifDecoderCreate();
    decoder->maxThreads = 1;
    decoder->codecChoice = codec;
    bool done = avifDecoderSetIOMemory(decoder, image->bytes, image->count) == AVIF_RESULT_OK && avifDecoderParse(decoder) == AVIF_RESULT_OK;
    for (int frame = 0; done && frame < decoder->imageCount; frame++) {
        avifRGBImage rgb;
        done = avifDecoderNextImage(decoder) == AVIF_RESULT_OK;
        if (!done) break;
        avifRGBImageSetDefaults(&rgb, decoder->image);
        rgb.depth = 8;
        avifRGBImageAllocatePixels(&rgb);
        done = avifImageYUVToRGB(decoder->image, &rgb) == AVIF_RESULT_OK;
        avifRGBImageFreePixels(&rgb);
    }
    avifDecoderDestroy(decoder);
    return done;
}

static bool avif(const image *image) {
    bool both = avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE);
    return avif_by(image, AVIF_CODEC_CHOICE_AUTO) && (!both || avif_by(image, AVIF_CODEC_CHOICE_AOM));
}

static bool theirs(const image *image) {
    switch (image->format) {
    case IMAGE_CODEC_JPEG: return jpeg_decodes(image->bytes, image->count, false);
    case IMAGE_CODEC_PNG: return png_is_whole(image->bytes, image->count);
    case IMAGE_CODEC_GIF: return gif(image);
    case IMAGE_CODEC_WEBP: return webp(image);
    default: return avif(image);
    }
}

static int format_of(const uint8_t *bytes, size_t count) {
    if (count > 12 && memcmp(bytes, "\xFF\xD8", 2) == 0) return IMAGE_CODEC_JPEG;
    if (count > 12 && memcmp(bytes, "\x89PNG", 4) == 0) return IMAGE_CODEC_PNG;
    if (count > 12 && memcmp(bytes, "GIF8", 4) == 0) return IMAGE_CODEC_GIF;
    if (count > 12 && memcmp(bytes + 8, "WEBP", 4) == 0) return IMAGE_CODEC_WEBP;
    return IMAGE_CODEC_AVIF;
}

static int by_value(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

int main(int count, char **words) {
    if (count < 3) return 64;
    size_t rounds = (size_t)atoi(words[1]);
    if (rounds < 1 || rounds > 1000) return 64;
    static uint64_t times[2][1000];
    for (int index = 2; index < count; index++) {
        FILE *file = fopen(words[index], "rb");
        if (!file || fseek(file, 0, SEEK_END) != 0) fail(words[index], "cannot be read");
        size_t size = (size_t)ftell(file);
        rewind(file);
        uint8_t *bytes = malloc(size);
        if (!bytes || fread(bytes, 1, size, file) != size) fail(words[index], "cannot be read");
        fclose(file);
        image image = {bytes, size, format_of(bytes, size)};
        for (size_t round = 0; round < rounds + 1; round++) {
            uint64_t began = cpu_now();
            if (!ours(&image)) fail(words[index], "our check rejects it");
            uint64_t middle = cpu_now();
            if (!theirs(&image)) fail(words[index], "its library rejects it");
            // The first loads libraries and tables.
            if (round == 0) continue;
            times[0][round - 1] = middle - began;
            times[1][round - 1] = cpu_now() - middle;
        }
        for (int who = 0; who < 2; who++) qsort(times[who], rounds, sizeof times[who][0], by_value);
        printf("%s\t%llu\t%llu\n", words[index], (unsigned long long)times[0][rounds / 2], (unsigned long long)times[1][rounds / 2]);
        free(bytes);
    }
    return 0;
}
