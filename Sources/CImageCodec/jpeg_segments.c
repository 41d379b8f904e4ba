// Reads the segments of a JPEG that its image data need (ITU-T T.81, annex B), by the rules of libjpeg's jdmarker.c and jdinput.c. What libjpeg would
// reject or warn of, and whatever is unusual, is a doubt: libjpeg decides then. So no verdict depends on this file alone (CodecVerdictTests).
#include "jpeg_walk.h"

#include <string.h>

enum {
    SOF0 = 0xC0, SOF1 = 0xC1, DHT = 0xC4, SOI = 0xD8, SOS = 0xDA, DQT = 0xDB, DRI = 0xDD,
    APP0 = 0xE0, APP14 = 0xEE, APP15 = 0xEF, COM = 0xFE,
    BLOCK = 8,
    COEFFICIENTS = 64,
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

/// Of the one scan, with all components in their order and all coefficients.
static bool read_scan(segment data, jpeg_plan *plan) {
    if (plan->count == 0 || data.count != 4 + 2 * (size_t)plan->count || data.bytes[0] != plan->count) return false;
    for (unsigned i = 0; i < plan->count; i++) {
        const uint8_t *said = data.bytes + 1 + 2 * i;
        jpeg_component *component = &plan->components[i];
        component->dc = said[1] >> 4;
        component->ac = said[1] & 15;
        if (said[0] != component->id || component->dc >= JPEG_TABLES || component->ac >= JPEG_TABLES) return false;
        if (!plan->quantization[component->quantization]) return false;
        if (!plan->dc[component->dc].is_there || !plan->ac[component->ac].is_there) return false;
    }
    const uint8_t *spectrum = data.bytes + 1 + 2 * plan->count;
    return spectrum[0] == 0 && spectrum[1] == COEFFICIENTS - 1 && spectrum[2] == 0;
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

bool jpeg_read_plan(const uint8_t *bytes, size_t count, jpeg_plan *plan) {
    memset(plan, 0, sizeof *plan);
    if (count < 2 || bytes[0] != 0xFF || bytes[1] != SOI) return false;
    int transform = -1;
    for (size_t offset = 2; count - offset >= 4;) {
        const uint8_t *head = bytes + offset;
        // Fill bytes, and bytes that belong to nothing, are for libjpeg.
        if (head[0] != 0xFF) return false;
        int marker = head[1];
        size_t length = big_endian_16(head + 2);
        if (length < 2 || count - offset - 2 < length) return false;
        segment data = {head + 4, length - 2};
        bool is_good;
        switch (marker) {
        case DQT: is_good = read_quantization(data, plan); break;
        case DHT: is_good = read_codes(data, plan); break;
        case SOF0:
        case SOF1: is_good = read_frame(data, plan); break;
        case DRI:
            is_good = data.count == 2;
            if (is_good) plan->restart_interval = big_endian_16(data.bytes);
            break;
        case SOS:
            plan->data = head + 2 + length;
            plan->data_count = count - offset - 2 - length;
            return read_scan(data, plan) && fits(transform, plan->count);
        default:
            is_good = (marker == COM || (marker >= APP0 && marker <= APP15)) && is_usual(marker, data);
            if (marker == APP14 && data.count >= 12 && memcmp(data.bytes, "Adobe", 5) == 0) transform = data.bytes[11];
        }
        if (!is_good) return false;
        offset += 2 + length;
    }
    return false;
}
