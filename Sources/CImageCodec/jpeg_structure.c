// Walks the markers of a JPEG (ITU-T T.81, annex B) by the rules of libjpeg's jdmarker.c, so that it never rejects what a decode would
// accept. Entropy-coded data, in which every hundredth byte is an FF, is skipped to the next marker by vector instructions.
#include "codecs.h"

#include <inttypes.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TEM = 0x01, SOF0 = 0xC0, DHT = 0xC4, JPG = 0xC8, DAC = 0xCC, SOF15 = 0xCF, RST0 = 0xD0, RST7 = 0xD7 };
enum { SOI = 0xD8, EOI = 0xD9, SOS = 0xDA, DNL = 0xDC, DRI = 0xDD, DHP = 0xDE, APP0 = 0xE0, APP1 = 0xE1, APP14 = 0xEE, APP15 = 0xEF, COM = 0xFE };

typedef struct {
    const uint8_t *next;
    const uint8_t *end;
    /// Bytes skipped before the last marker.
    size_t skipped;
} marker_reader;

#if defined(__x86_64__)
/// The first FF from `next` on that no 00 follows, or a place shortly before the end.
__attribute__((target("avx2"))) static const uint8_t *skip_data_avx2(const uint8_t *next, const uint8_t *end) {
    const __m256i escape = _mm256_set1_epi8((char)0xFF), zero = _mm256_setzero_si256();
    for (; end - next > 64; next += 64) {
        __m256i hits[2];
        for (int i = 0; i < 2; i++) {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(next + 32 * i));
            const __m256i behind = _mm256_loadu_si256((const __m256i *)(const void *)(next + 32 * i + 1));
            hits[i] = _mm256_andnot_si256(_mm256_cmpeq_epi8(behind, zero), _mm256_cmpeq_epi8(bytes, escape));
        }
        if (_mm256_movemask_epi8(_mm256_or_si256(hits[0], hits[1])) == 0) continue;
        const unsigned low = (unsigned)_mm256_movemask_epi8(hits[0]), high = (unsigned)_mm256_movemask_epi8(hits[1]);
        return next + (low ? __builtin_ctz(low) : 32 + __builtin_ctz(high));
    }
    return next;
}
#endif

/// Skips entropy-coded data up to a marker, or less.
static const uint8_t *skip_data(const uint8_t *next, const uint8_t *end) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return skip_data_avx2(next, end);
#endif
    (void)end;
    return next;
}

/// The next marker's code, or -1 at the end: B.1.1.2, preceded by any number of fill bytes FF; FF 00 is data.
static int next_marker(marker_reader *reader) {
    reader->skipped = 0;
    for (;;) {
        const uint8_t *found = memchr(reader->next, 0xFF, (size_t)(reader->end - reader->next));
        if (!found) return -1;
        reader->skipped += (size_t)(found - reader->next);
        while (found < reader->end && *found == 0xFF) found++;
        if (found == reader->end) return -1;
        reader->next = found + 1;
        if (*found != 0) return *found;
        reader->skipped += 2;
    }
}

static bool is_frame(int marker) {
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

static bool has_segment(int marker) {
    return (marker >= SOF0 && marker <= SOF15 && marker != JPG) || (marker >= SOS && marker < DHP) ||
           (marker >= APP0 && marker <= APP15) || marker == COM;
}

/// What of an image is allocated by whom.
typedef struct {
    uint64_t by_library, by_walk;
} needed_memory;

/// Maximum bytes allocated by libjpeg to decode an eighth of the size: rows of samples and, with several scans, the coefficients of all
/// blocks (jdcoefct.c), 128 bytes per block; each component has as many blocks as fill whole MCUs. And before by jpeg_walk.c: its tables, a copy of
/// the image data, of a file that is not too long for it, and of a progressive one a word for each block.
static needed_memory decode_memory(const uint8_t *frame, uint32_t width, uint32_t height, int whole, size_t file_bytes) {
    enum { FIXED = 128 << 10, ROW_BYTES_PER_COLUMN = 4, BLOCK = 128, WORD = 8 };
    const uint8_t *components = frame + 8;
    uint32_t count = frame[7], widest = 1, highest = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t across = components[3 * i + 1] >> 4, down = components[3 * i + 1] & 15;
        if (across > widest) widest = across;
        if (down > highest) highest = down;
    }
    uint64_t columns = (width + 8 * widest - 1) / (8 * widest), rows = (height + 8 * highest - 1) / (8 * highest);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < count; i++)
        blocks += columns * (components[3 * i + 1] >> 4) * rows * (components[3 * i + 1] & 15);
    needed_memory needed = {.by_library = FIXED + (uint64_t)count * ROW_BYTES_PER_COLUMN * width, .by_walk = FIXED};
    if (whole != IMAGE_CODEC_ROWS) needed.by_library += blocks * BLOCK;
    if (file_bytes > JPEG_MAX_WALKED_BYTES) return needed;
    needed.by_walk += file_bytes + (whole == IMAGE_CODEC_PROGRESSIVE ? blocks * WORD : 0);
    return needed;
}

/// Reads the size from a frame header (B.2.2). For a height of 0 the size would follow in DNL, which libjpeg does not read.
static bool read_frame(const uint8_t *segment, uint32_t length, const image_codec_limits *limits, image_codec_result *result) {
    if (length < 8 || length != 8 + 3 * (uint32_t)segment[7]) {
        check_end(result, IMAGE_CODEC_DAMAGED, "JPEG frame header of %" PRIu32 " bytes", length);
        return false;
    }
    return check_size(result, limits, big_endian_16(segment + 5), big_endian_16(segment + 3));
}

/// What the segments of a file say about its image.
typedef struct {
    bool has_exif;
    /// APP14: the colour transform; -1 without the segment.
    int adobe_transform;
} segment_facts;

static void read_segment(int marker, const uint8_t *data, uint32_t length, segment_facts *facts,
                         image_codec_result *result) {
    static const uint8_t exif[6] = "Exif\0";
    if (marker == APP1 && !facts->has_exif && length > sizeof exif && memcmp(data, exif, sizeof exif) == 0) {
        facts->has_exif = true;
        result->orientation = image_codec_exif_orientation(data + sizeof exif, length - sizeof exif);
    }
    if (marker == APP14 && length >= 12 && memcmp(data, "Adobe", 5) == 0) facts->adobe_transform = data[11];
}

static int frame_color(uint32_t components, const segment_facts *facts) {
    switch (components) {
    case 1: return IMAGE_CODEC_COLOR_GRAY;
    case 3: return IMAGE_CODEC_COLOR_RGB;
    case 4: return facts->adobe_transform == 2 ? IMAGE_CODEC_COLOR_YCCK : IMAGE_CODEC_COLOR_CMYK;
    default: return IMAGE_CODEC_COLOR_UNKNOWN;
    }
}

static void incomplete(image_codec_result *result) {
    check_end(result, IMAGE_CODEC_INCOMPLETE, "JPEG ends before its end marker");
}

static void walk(const request_t *request, bool header_only, image_codec_result *result) {
    const uint8_t *bytes = request->bytes;
    size_t count = request->count;
    const image_codec_limits *limits = &request->limits;
    segment_facts facts = {false, -1};
    if (count < 2) return incomplete(result);
    if (bytes[0] != 0xFF || bytes[1] != SOI) return check_end(result, IMAGE_CODEC_DAMAGED, "no JPEG signature");
    marker_reader reader = {bytes + 2, bytes + count, 0};
    const uint8_t *frame = NULL;
    bool in_data = false;
    uint32_t scans = 0;
    check_budget budget;
    check_budget_start(&budget, request);
    for (;;) {
        const uint8_t *from = reader.next;
        if (in_data) reader.next = skip_data(reader.next, reader.end);
        int marker = next_marker(&reader);
        if (marker < 0) return incomplete(result);
        // Restart markers come every few bytes of good data, too.
        if (!check_budget_read(&budget, (uint64_t)(reader.next - from) / 16 + CHECK_PART_BYTES / 16))
            return check_end_slow(result, &budget, "JPEG");
        if (reader.skipped && !in_data && scans > 0)
            return check_end(result, IMAGE_CODEC_DAMAGED, "JPEG with %zu extraneous bytes before marker 0x%02x",
                             reader.skipped, marker);
        if (reader.skipped && !in_data) {
            check_keep_warning(result, "%zu extraneous bytes before marker 0x%02x", reader.skipped, marker);
        }
        if (marker == TEM || (marker >= RST0 && marker <= RST7)) continue;
        in_data = false;
        if (marker == EOI) {
            if (scans == 0) return check_end(result, IMAGE_CODEC_DAMAGED, "JPEG without image data");
            result->color = frame_color(frame[7], &facts);
            needed_memory needed = decode_memory(frame, result->width, result->height, result->whole, request->count);
            result->memory = needed.by_library;
            result->proof_memory = needed.by_walk;
            return;
        }
        if (!has_segment(marker))
            return check_end(result, IMAGE_CODEC_DAMAGED, "unexpected JPEG marker 0x%02x at byte %zu", marker,
                             (size_t)(reader.next - bytes) - 2);
        size_t left = (size_t)(reader.end - reader.next);
        if (left < 2) return incomplete(result);
        uint32_t length = big_endian_16(reader.next);
        if (length < 2) {
            // libjpeg treats an APPn, COM or DNL of length 0 or 1 as empty, and stops at any other.
            if (marker < APP0 && marker != DNL)
                return check_end(result, IMAGE_CODEC_DAMAGED, "JPEG marker 0x%02x with length %" PRIu32, marker, length);
            length = 2;
        }
        if (left < length) return incomplete(result);
        if (is_frame(marker)) {
            if (frame) return check_end(result, IMAGE_CODEC_DAMAGED, "JPEG with two frame headers");
            if ((marker & 3) == 2) result->whole = IMAGE_CODEC_PROGRESSIVE;
            if (!read_frame(reader.next, length, limits, result)) return;
            frame = reader.next;
            result->color = frame_color(frame[7], &facts);
            if (header_only) return;
        } else if (marker == SOS) {
            if (!frame) return check_end(result, IMAGE_CODEC_DAMAGED, "JPEG scan before its frame header");
            if (++scans > limits->max_scans)
                return check_end(result, IMAGE_CODEC_OVER_LIMIT, "JPEG with more than %" PRIu32 " scans" CHECK_UNCHECKED,
                                 limits->max_scans);
            // The first scan decides (jdinput.c): if it lacks components, others must follow.
            if (scans == 1 && length > 2 && reader.next[2] < frame[7] && result->whole == IMAGE_CODEC_ROWS)
                result->whole = IMAGE_CODEC_SCANS;
            in_data = true;
        } else {
            read_segment(marker, reader.next + 2, length - 2, &facts, result);
        }
        reader.next += length;
    }
}

void jpeg_header(const request_t *request, result_t *result) { walk(request, true, result); }

void jpeg_structure(const request_t *request, result_t *result) { walk(request, false, result); }
