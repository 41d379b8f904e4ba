// Reads the segments of a JPEG that its image data need (ITU-T T.81, annex B), by the rules of libjpeg's jdmarker.c and jdinput.c. What libjpeg would
// reject or warn of, and whatever is unusual, is a doubt: libjpeg decides then. So no verdict depends on this file alone (CodecVerdictTests).
#include "jpeg_walk.h"

#include <string.h>

enum {
    TEM = 0x01, SOF0 = 0xC0, SOF1 = 0xC1, SOF2 = 0xC2, DHT = 0xC4, RST0 = 0xD0, RST7 = 0xD7, SOI = 0xD8, EOI = 0xD9, SOS = 0xDA, DQT = 0xDB, DRI = 0xDD,
    APP0 = 0xE0, APP14 = 0xEE, APP15 = 0xEF, COM = 0xFE,
    BLOCK = 8,
    COEFFICIENTS = JPEG_COEFFICIENTS,
    /// libjpeg's highest bit (jdphuff.c).
    MAX_LOW = 13,
    /// libjpeg's longest side.
    MAX_SIDE = 65500,
};

/// The data of a segment, without its length.
typedef struct {
    const uint8_t *bytes;
    size_t count;
} segment;

static bool read_quantization(segment data, jpeg_plan *plan) {
    while (data.count > 0) {
        unsigned number = data.bytes[0] & 15, precision = data.bytes[0] >> 4;
        size_t length = 1 + COEFFICIENTS * (precision ? 2 : 1);
        if (number >= JPEG_TABLES || precision > 1 || data.count < length) return false;
        plan->quantization[number] = true;
        data.bytes += length;
        data.count -= length;
    }
    return true;
}

static bool read_codes(segment data, jpeg_plan *plan) {
    enum { HEAD = 17 };
    while (data.count > 0) {
        if (data.count < HEAD) return false;
        unsigned number = data.bytes[0] & 15, kind = data.bytes[0] >> 4, symbols = 0;
        if (number >= JPEG_TABLES || kind > 1) return false;
        jpeg_codes *codes = kind == 0 ? &plan->dc[number] : &plan->ac[number];
        memset(codes, 0, sizeof *codes);
        for (unsigned length = 1; length <= 16; length++) symbols += codes->counts[length] = data.bytes[length];
        if (symbols > sizeof codes->symbols || data.count < HEAD + symbols) return false;
        memcpy(codes->symbols, data.bytes + HEAD, symbols);
        codes->is_there = true;
        data.bytes += HEAD + symbols;
        data.count -= HEAD + symbols;
    }
    return true;
}

static bool is_whole_part(unsigned part, unsigned of) { return part >= 1 && part <= 4 && of % part == 0; }

static bool read_frame(segment data, jpeg_plan *plan) {
    enum { HEAD = 6 };
    if (plan->count > 0 || data.count < HEAD || data.bytes[0] != 8) return false;
    plan->height = big_endian_16(data.bytes + 1);
    plan->width = big_endian_16(data.bytes + 3);
    plan->count = data.bytes[5];
    if (plan->width == 0 || plan->height == 0 || plan->width > MAX_SIDE || plan->height > MAX_SIDE) return false;
    if (plan->count < 1 || plan->count > JPEG_COMPONENTS || data.count != HEAD + 3 * (size_t)plan->count) return false;
    for (unsigned i = 0; i < plan->count; i++) {
        const uint8_t *said = data.bytes + HEAD + 3 * i;
        jpeg_component *component = &plan->components[i];
        component->id = said[0];
        component->across = said[1] >> 4;
        component->down = said[1] & 15;
        component->quantization = said[2];
        memset(component->lowest, -1, sizeof component->lowest);
        for (unsigned j = 0; j < i; j++)
            if (plan->components[j].id == component->id) return false;
        if (component->quantization >= JPEG_TABLES) return false;
        if (component->across > plan->across) plan->across = component->across;
        if (component->down > plan->down) plan->down = component->down;
    }
    for (unsigned i = 0; i < plan->count; i++) {
        jpeg_component *component = &plan->components[i];
        // libjpeg has no upsampling by a fraction.
        if (!is_whole_part(component->across, plan->across) || !is_whole_part(component->down, plan->down)) return false;
        uint32_t across = plan->across * BLOCK, down = plan->down * BLOCK;
        component->columns = (plan->width * component->across + across - 1) / across;
        component->rows = (plan->height * component->down + down - 1) / down;
    }
    return true;
}

/// Whether the scan fits what earlier ones have brought (jdphuff.c, start_pass_phuff_decoder): DC values come first, and of each coefficient each
/// bit once.
static bool goes_on(const jpeg_scan *scan, jpeg_component *component) {
    if (scan->first > 0 && component->lowest[0] < 0) return false;
    for (unsigned i = scan->first; i <= scan->last; i++) {
        if (scan->high == 0 ? component->lowest[i] >= 0 : component->lowest[i] != (int)scan->high) return false;
        component->lowest[i] = (int8_t)scan->low;
    }
    return true;
}

/// Of a sequential one all coefficients, of a progressive one DC values alone or coefficients of one component, and of these all or the next bit.
static bool is_legal(const jpeg_scan *scan, bool is_progressive) {
    if (!is_progressive) return scan->first == 0 && scan->last == COEFFICIENTS - 1 && scan->high == 0 && scan->low == 0;
    if (scan->first == 0 ? scan->last != 0 : scan->count != 1 || scan->last < scan->first || scan->last >= COEFFICIENTS) return false;
    return scan->low <= MAX_LOW && (scan->high == 0 || scan->low + 1 == scan->high);
}

/// Components have the order of the frame.
static bool read_scan(segment data, jpeg_plan *plan) {
    jpeg_scan *scan = &plan->scan;
    if (plan->count == 0 || data.count < 1 || data.bytes[0] < 1 || data.bytes[0] > plan->count) return false;
    scan->count = data.bytes[0];
    if (data.count != 4 + 2 * (size_t)scan->count) return false;
    const uint8_t *spectrum = data.bytes + 1 + 2 * scan->count;
    scan->first = spectrum[0];
    scan->last = spectrum[1];
    scan->high = spectrum[2] >> 4;
    scan->low = spectrum[2] & 15;
    if (!is_legal(scan, plan->is_progressive)) return false;
    bool has_dc = scan->first == 0 && scan->high == 0, has_ac = scan->last > 0;
    for (unsigned i = 0, number = 0; i < scan->count; i++, number++) {
        const uint8_t *said = data.bytes + 1 + 2 * i;
        while (number < plan->count && plan->components[number].id != said[0]) number++;
        if (number == plan->count) return false;
        jpeg_component *component = &plan->components[number];
        scan->components[i] = (uint8_t)number;
        component->dc = said[1] >> 4;
        component->ac = said[1] & 15;
        if (component->dc >= JPEG_TABLES || component->ac >= JPEG_TABLES) return false;
        if (!plan->quantization[component->quantization]) return false;
        if ((has_dc && !plan->dc[component->dc].is_there) || (has_ac && !plan->ac[component->ac].is_there)) return false;
        if (!goes_on(scan, component)) return false;
    }
    return true;
}

/// Whether libjpeg has no warning about it: another version of JFIF, a colour transform of Adobe's that does not exist.
static bool is_usual(int marker, segment data) {
    if (marker == APP0 && data.count >= 14 && memcmp(data.bytes, "JFIF", 5) == 0) return data.bytes[5] == 1;
    if (marker != APP14 || data.count < 12 || memcmp(data.bytes, "Adobe", 5) != 0) return true;
    return data.bytes[11] <= 2;
}

/// Whether the colour transform of an Adobe segment is one for so many components.
static bool fits(int transform, unsigned components) {
    if (transform < 0) return true;
    return components == 3 ? transform != 2 : components == 4 ? transform != 1 : true;
}

static bool is_complete(const jpeg_plan *plan) {
    for (unsigned i = 0; i < plan->count; i++)
        if (plan->components[i].lowest[0] < 0) return false;
    return true;
}

/// Reads segments up to image data, or to the end of the image.
static bool read_segments(const uint8_t *next, const uint8_t *end, jpeg_plan *plan) {
    while (end - next >= 2) {
        // Bytes that belong to nothing are for libjpeg.
        if (next[0] != 0xFF) return false;
        int marker = next[1];
        // A fill byte, and markers without a segment: cameras write a restart behind the last interval, too.
        if (marker == 0xFF || marker == TEM || (marker >= RST0 && marker <= RST7)) {
            next += marker == 0xFF ? 1 : 2;
            continue;
        }
        if (marker == EOI) {
            plan->is_over = true;
            return is_complete(plan);
        }
        if (end - next < 4) return false;
        size_t length = big_endian_16(next + 2);
        if (length < 2 || (size_t)(end - next) - 2 < length) return false;
        segment data = {next + 4, length - 2};
        next += 2 + length;
        bool is_good;
        switch (marker) {
        case DQT: is_good = read_quantization(data, plan); break;
        case DHT: is_good = read_codes(data, plan); break;
        case SOF0:
        case SOF1:
        case SOF2:
            plan->is_progressive = marker == SOF2;
            is_good = read_frame(data, plan);
            break;
        case DRI:
            is_good = data.count == 2;
            if (is_good) plan->restart_interval = big_endian_16(data.bytes);
            break;
        case SOS:
            plan->data = next;
            plan->data_count = (size_t)(end - next);
            return read_scan(data, plan);
        default:
            is_good = (marker == COM || (marker >= APP0 && marker <= APP15)) && is_usual(marker, data);
            if (marker == APP14 && data.count >= 12 && memcmp(data.bytes, "Adobe", 5) == 0) plan->transform = data.bytes[11];
        }
        if (!is_good) return false;
    }
    return false;
}

bool jpeg_read_plan(const uint8_t *bytes, size_t count, jpeg_plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->transform = -1;
    if (count < 2 || bytes[0] != 0xFF || bytes[1] != SOI) return false;
    return read_segments(bytes + 2, bytes + count, plan) && !plan->is_over && fits(plan->transform, plan->count);
}

bool jpeg_read_on(const uint8_t *marker, jpeg_plan *plan) {
    return read_segments(marker, plan->data + plan->data_count, plan);
}
