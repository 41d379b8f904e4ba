// Checks what a child has answered.
#include "codec_protocol.h"

#include <string.h>

/// Ends a text inside its array, and replaces what is not printable ASCII: the libraries write nothing else.
static void tidy(char *text) {
    text[IMAGE_CODEC_TEXT - 1] = 0;
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7E) *text = '?';
}

static uint32_t scaled(uint32_t side, unsigned denominator) { return (uint32_t)(((uint64_t)side + denominator - 1) / denominator); }

/// Whether a bitmap may have this size: that of the image, the one asked for, or one to which libjpeg reduces.
static bool is_possible_size(const codec_call *call, const codec_answer *answer) {
    const image_codec_request *request = &call->request;
    if (request->to_width > 0 && answer->pixel_width == request->to_width && answer->pixel_height == request->to_height)
        return true;
    for (unsigned denominator = 1; denominator <= (request->format == IMAGE_CODEC_JPEG ? 8 : 1); denominator *= 2)
        if (answer->pixel_width == scaled(answer->width, denominator) &&
            answer->pixel_height == scaled(answer->height, denominator))
            return true;
    return false;
}

static bool has_pixels(const codec_call *call, const codec_answer *answer) {
    const image_codec_request *request = &call->request;
    if (answer->pixel_frames < 1 || answer->pixel_frames > request->frames) return false;
    if (answer->channels != 3 && answer->channels != 4) return false;
    if (answer->pixel_width == 0 || answer->pixel_height == 0 || answer->rows > answer->pixel_height) return false;
    if (!is_possible_size(call, answer)) return false;
    // Each factor is below 2^32, 2^32, 2^3; the room bounds what is left.
    uint64_t pixels = (uint64_t)answer->pixel_width * answer->pixel_height;
    if (pixels > call->room || pixels * answer->channels > call->room) return false;
    uint64_t bitmap = pixels * answer->channels;
    if (answer->pixels % answer->pixel_frames != 0 || answer->pixels / answer->pixel_frames != bitmap) return false;
    return answer->durations == 4 * (uint64_t)answer->pixel_frames;
}

static bool is_empty(const codec_answer *answer) {
    return answer->pixel_frames == 0 && answer->pixels == 0 && answer->durations == 0 && answer->exif == 0 &&
           answer->icc == 0;
}

/// Whether the parts fit the room, one after the other.
static bool fits(const codec_call *call, const codec_answer *answer) {
    uint64_t parts[] = {answer->pixels, answer->durations, answer->exif, answer->icc}, left = call->room;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i] > left) return false;
        left -= parts[i];
    }
    return answer->exif <= CODEC_METADATA && answer->icc <= CODEC_METADATA;
}

/// Whether the facts about an image are such that there can be one.
static bool has_facts(const codec_call *call, const codec_answer *answer) {
    const image_codec_limits *limits = &call->request.limits;
    if (answer->width == 0 || answer->height == 0 || answer->width > limits->max_dimension ||
        answer->height > limits->max_dimension || (uint64_t)answer->width * answer->height > limits->max_pixels)
        return false;
    if (call->known_width > 0 && (answer->width != call->known_width || answer->height != call->known_height)) return false;
    return answer->frame_count >= 1 && answer->frame_count <= limits->max_frames;
}

bool codec_answer_is_possible(const codec_call *call, codec_answer *answer) {
    tidy(answer->message);
    for (int i = 0; i < IMAGE_CODEC_WARNINGS; i++) tidy(answer->warnings[i]);
    if (answer->version != CODEC_VERSION || answer->number != call->number) return false;
    if (answer->status > IMAGE_CODEC_OVER_SIDE || answer->warning_count > IMAGE_CODEC_WARNINGS) return false;
    if (answer->orientation < 1 || answer->orientation > 8) return false;
    if (answer->has_alpha > 1 || answer->color > IMAGE_CODEC_COLOR_YCCK) return false;
    if (!fits(call, answer)) return false;
    // One that failed has a reason, and nothing else.
    if (answer->status != IMAGE_CODEC_WHOLE) return is_empty(answer) && answer->message[0];
    switch (call->operation) {
    case CODEC_RUN:
        if (call->request.task == IMAGE_CODEC_PIXELS) return has_facts(call, answer) && has_pixels(call, answer);
        return is_empty(answer) && (call->request.task == IMAGE_CODEC_CHECK || has_facts(call, answer));
    case CODEC_ENCODE: return answer->pixels > 0 && answer->durations == 0 && answer->exif == 0 && answer->icc == 0;
    case CODEC_RESAMPLE: return answer->pixels == call->room && answer->durations == 0 && answer->exif == 0 && answer->icc == 0;
    default: return false;
    }
}
