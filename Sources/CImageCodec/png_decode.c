// Checks a PNG, and decodes it to pixels.
//
// The check: libdeflate (png_inflate.c) proves that image data is good; what it cannot prove, libpng decides, row by row into its own row
// buffer, in the file's pixel format: this detects every inflate error, invalid filter byte and missing row; expanding to RGBA would only
// cost time. The frames of an animation are images of their own, which libpng does not know: it gets each as a file.
#include "canvas.h"
#include "png_chunks.h"
#include "rows.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Maximum compressed data after the last row. Encoders with an extra row need a few hundred bytes; inflated it is at most 67 MB, 0.1 s.
enum { MAX_SURPLUS_BYTES = 1 << 16 };
// Pixels of work per byte read, for the time budget: the clock is read every 4 KiB, which inflate to at most 4 MiB.
enum { PIXELS_PER_BYTE_READ = 64 };

// Chunks irrelevant to the pixels, skipped in any number: libpng would copy and inflate up to 8 MB of each.
static const png_byte passed_over[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf";

typedef struct {
    png_structp library;
    png_infop info;
    jmp_buf escape;
    const uint8_t *next;
    size_t left;
    /// Remaining image data allowed after the last row; counted while `is_inflating`.
    size_t *surplus_left;
    /// Rows are being read, and the compressed data has not ended.
    bool is_inflating;
    /// Bytes currently allocated by libpng.
    uint64_t allocated;
    check_budget *budget;
    const image_codec_limits *limits;
    image_codec_result *result;
    bool is_over_memory;
    bool out_of_memory;
    /// Reads the chunks before the image data only.
    bool info_only;
    /// Where the pixels go, as a whole or row by row; both NULL for a check.
    uint8_t *pixels;
    row_sink *sink;
    uint32_t rows_read;
    /// Errors in the image data end the decoding, not the image.
    bool partial;
} png_decoder;

/// Precedes each block allocated by libpng.
typedef union {
    size_t count;
    max_align_t alignment;
} block_head;

static void on_error(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    if (decoder->is_over_memory)
        check_end(decoder->result, IMAGE_CODEC_OVER_MEMORY, "PNG takes more than %" PRIu64 " bytes to decode" CHECK_MAX_MEMORY,
                  decoder->limits->max_memory);
    else
        check_end(decoder->result, decoder->out_of_memory ? IMAGE_CODEC_NO_MEMORY : IMAGE_CODEC_DAMAGED, "%s", text);
    longjmp(decoder->escape, 1);
}

/// libpng prefixes the text with the chunk's name. For IDAT only excess bytes are tolerable. Out of memory in an ancillary chunk is a
/// warning for libpng; here it ends the check, so that the verdict does not depend on the rest of the process.
static void on_warning(png_structp library, png_const_charp text) {
    png_decoder *decoder = png_get_error_ptr(library);
    bool lacks_memory = decoder->is_over_memory || decoder->out_of_memory;
    // Data after the end of the compressed stream is only skipped.
    bool is_extra = strncmp(text, "IDAT", 4) == 0 && strstr(text, "Extra compressed data");
    if (is_extra) decoder->is_inflating = false;
    // The structure check has said so.
    if (strncmp(text, "IDAT", 4) != 0 && strstr(text, "CRC error") && !lacks_memory) return;
    if ((is_extra || strncmp(text, "IDAT", 4) != 0 || strstr(text, "Too much image data")) && !lacks_memory)
        check_keep_warning(decoder->result, "%s", text);
    else
        on_error(library, text);
}

static void end_late(png_decoder *decoder) {
    check_end_late(decoder->result, decoder->budget, "PNG");
    longjmp(decoder->escape, 1);
}

/// libpng counts a row, or the last pass, as read before it looks for the end of the data, which inflates everything left.
static bool is_behind_last_row(const png_decoder *decoder) {
    return png_get_current_row_number(decoder->library) >= decoder->result->height ||
           png_get_current_pass_number(decoder->library) >= PNG_INTERLACE_ADAM7_PASSES;
}

static void on_read(png_structp library, png_bytep into, size_t count) {
    png_decoder *decoder = png_get_io_ptr(library);
    if (count > decoder->left) png_error(library, "PNG ends before its IEND chunk");
    if (!check_budget_spend(decoder->budget, (uint64_t)count * PIXELS_PER_BYTE_READ))
        end_late(decoder);
    if (decoder->is_inflating && is_behind_last_row(decoder)) {
        if (count > *decoder->surplus_left) {
            check_end(decoder->result, IMAGE_CODEC_OVER_DECODING,
                      "PNG with image data that goes on behind the last row" CHECK_UNDECODED);
            longjmp(decoder->escape, 1);
        }
        *decoder->surplus_left -= count;
    }
    memcpy(into, decoder->next, count);
    decoder->next += count;
    decoder->left -= count;
}

static png_voidp on_allocate(png_structp library, png_alloc_size_t count) {
    png_decoder *decoder = png_get_mem_ptr(library);
    if (count > decoder->limits->max_memory - decoder->allocated) {
        decoder->is_over_memory = true;
        return NULL;
    }
    block_head *head = malloc(sizeof *head + count);
    if (!head) {
        decoder->out_of_memory = true;
        return NULL;
    }
    head->count = count;
    decoder->allocated += count;
    return head + 1;
}

static void on_free(png_structp library, png_voidp memory) {
    if (!memory) return;
    png_decoder *decoder = png_get_mem_ptr(library);
    block_head *head = (block_head *)memory - 1;
    decoder->allocated -= head->count;
    free(head);
}

/// libpng as it is told to read; false if there is no memory.
static bool start(png_decoder *decoder) {
    decoder->library = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoder, on_error, on_warning, decoder,
                                                on_allocate, on_free);
    if (decoder->library) decoder->info = png_create_info_struct(decoder->library);
    if (!decoder->info) {
        check_end(decoder->result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a PNG");
        return false;
    }
    png_structp library = decoder->library;
    png_set_read_fn(library, decoder, on_read);
    png_set_user_limits(library, decoder->limits->max_dimension, decoder->limits->max_dimension);
    png_set_chunk_malloc_max(library, PNG_MAX_CHUNK_BYTES);
    png_set_keep_unknown_chunks(library, PNG_HANDLE_CHUNK_NEVER, passed_over, sizeof passed_over / 5);
    // The structure check has compared the CRC of every chunk, and warned of those that libpng passes over.
    if (!decoder->partial) png_set_crc_action(library, PNG_CRC_QUIET_USE, PNG_CRC_DEFAULT);
    png_read_info(library, decoder->info);
    return true;
}

/// 8-bit RGB or RGBA. 16-bit samples lose their low byte.
static void convert(png_decoder *decoder, uint32_t channels) {
    png_structp library = decoder->library;
    png_set_strip_16(library);
    png_set_expand(library);
    png_set_gray_to_rgb(library);
    if (channels == 4) png_set_add_alpha(library, 0xFF, PNG_FILLER_AFTER);
}

/// The only frame to which longjmp returns; the state it changes is in its caller's frame.
static void run(png_decoder *decoder, const png_layout *layout) {
    if (setjmp(decoder->escape)) return;
    if (!start(decoder) || decoder->info_only) return;
    png_structp library = decoder->library;
    if (decoder->pixels || decoder->sink) convert(decoder, decoder->result->channels);
    int passes = png_set_interlace_handling(library);
    png_start_read_image(library);
    size_t stride = (size_t)layout->width * decoder->result->channels;
    decoder->is_inflating = true;
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t row = 0; row < layout->height; row++) {
            uint8_t *into = decoder->sink ? decoder->sink->row : decoder->pixels;
            png_read_row(library, decoder->pixels ? into + stride * row : into, NULL);
            if (decoder->sink) rows_put(decoder->sink);
            if (into && pass == passes - 1) decoder->rows_read = row + 1;
            if (!check_budget_spend(decoder->budget, layout->width))
                return check_end_late(decoder->result, decoder->budget, "PNG");
        }
    }
    decoder->is_inflating = false;
    // All pixels are read; libpng may still report misplaced chunks.
    if (!decoder->partial) png_read_end(library, NULL);
}

/// What all images of a file have together.
typedef struct {
    check_budget budget;
    size_t surplus_left;
} png_allowance;

static void allow(png_allowance *allowance, const request_t *request, const png_layout *layout) {
    check_budget_start(&allowance->budget, request);
    check_budget_grant(&allowance->budget, (uint64_t)layout->width * layout->height);
    allowance->surplus_left = MAX_SURPLUS_BYTES;
}

/// Reads a file by libpng; `pixels` and `sink` are NULL for a check.
static void read_file(const request_t *request, png_allowance *allowance, const uint8_t *bytes, size_t count,
                      const png_layout *layout, bool info_only, uint8_t *pixels, row_sink *sink, result_t *result) {
    png_decoder decoder;
    memset(&decoder, 0, sizeof decoder);
    decoder.next = bytes;
    decoder.left = count;
    decoder.surplus_left = &allowance->surplus_left;
    decoder.budget = &allowance->budget;
    decoder.limits = &request->limits;
    decoder.result = result;
    decoder.info_only = info_only;
    decoder.pixels = pixels;
    decoder.sink = sink;
    decoder.partial = request->partial && pixels;
    run(&decoder, layout);
    if (decoder.partial) result->rows = decoder.rows_read;
    if ((pixels || sink) && decoder.info) {
        png_charp name;
        int method;
        png_bytep profile;
        png_uint_32 length;
        if (png_get_iCCP(decoder.library, decoder.info, &name, &method, &profile, &length))
            check_copy(&result->icc, profile, length);
    }
    png_destroy_read_struct(&decoder.library, &decoder.info, NULL);
    if (decoder.partial && result->status == IMAGE_CODEC_DAMAGED) result->status = IMAGE_CODEC_WHOLE;
}

/// What the chunks around the image data ask for.
typedef struct {
    png_source image;
    bool is_animation;
    uint32_t loop_count;
    /// libpng has an opinion on chunks before, or after, the image data.
    bool has_other_before;
    bool has_other_after;
    /// Where eXIf is; 0 without.
    size_t exif;
} png_survey;

static png_layout layout_of(const request_t *request) {
    const uint8_t *header = request->bytes + SIGNATURE + 8;
    return (png_layout){big_endian_32(header), big_endian_32(header + 4), header[8], header[9], header[12]};
}

static bool is_passed_over(const uint8_t *name) {
    for (size_t i = 0; i < sizeof passed_over; i += 5)
        if (memcmp(passed_over + i, name, 4) == 0) return true;
    return false;
}

/// Bytes may be missing at the end.
static void survey(const request_t *request, png_survey *found) {
    memset(found, 0, sizeof *found);
    found->image.layout = layout_of(request);
    found->image.name = IDAT;
    size_t offset = HEADER_END;
    while (request->count - offset >= 12) {
        const uint8_t *chunk = request->bytes + offset;
        uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
        if (request->count - offset - 12 < length || name == IEND) return;
        bool is_behind = found->image.offset > 0;
        if (!is_behind && (name == PLTE || name == tRNS)) found->image.colors[name == tRNS] = offset;
        if (name == IDAT) {
            if (!is_behind) found->image.offset = offset;
        } else if (name == acTL && !is_behind && length == 8) {
            found->is_animation = true;
            found->loop_count = big_endian_32(chunk + 12);
        } else if (name == eXIf) {
            if (png_has_crc(chunk)) found->exif = offset;
        } else if (name == PLTE && !is_behind && length % 3 == 0 && length <= 768 && found->image.palette == 0 &&
                   found->image.layout.color_type == 3) {
            found->image.palette = length / 3;
        } else if (name != acTL && name != fcTL && name != fdAT && !is_passed_over(chunk + 4)) {
            *(is_behind ? &found->has_other_after : &found->has_other_before) = true;
        }
        offset += (size_t)length + 12;
    }
}

/// Whether time is left after an image; ends the call if not.
static bool has_time(check_budget *budget, result_t *result) {
    if (check_budget_look(budget)) return true;
    check_end_late(result, budget, "PNG");
    return false;
}

/// Checks one image; `file` is a file with that image and no other.
static void check_by_library(const request_t *request, png_allowance *allowance, const png_source *image,
                             image_codec_buffer *file, result_t *result) {
    if (file->bytes)
        read_file(request, allowance, file->bytes, file->count, &image->layout, false, NULL, NULL, result);
    else
        check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a PNG");
    image_codec_release(file);
}

/// What png_inflates proves of a file.
typedef struct {
    png_survey found;
    /// The data of the image, and those of all frames.
    bool has_good_image;
    bool has_good_frames;
} png_proof;

/// Whether time is left after the data of all images, or of those up to the first one that is not proved.
static bool prove(const request_t *request, check_budget *budget, png_proof *proof, result_t *result) {
    const png_survey *found = &proof->found;
    const png_layout *layout = &found->image.layout;
    result->width = layout->width;
    result->height = layout->height;
    proof->has_good_image = !found->has_other_after && png_inflates(request, &found->image);
    proof->has_good_frames = proof->has_good_image;
    if (!has_time(budget, result)) return false;
    png_frame frame;
    for (size_t offset = HEADER_END; found->is_animation && proof->has_good_frames;) {
        if (!png_next_frame(request, &found->image, &offset, &frame)) break;
        check_budget_grant(budget, (uint64_t)frame.image.layout.width * frame.image.layout.height);
        if (!has_time(budget, result)) return false;
        proof->has_good_frames = frame.image.name == IDAT || png_inflates(request, &frame.image);
    }
    return true;
}

void png_prove(const request_t *request, result_t *result) {
    png_proof proof;
    png_allowance allowance;
    survey(request, &proof.found);
    allow(&allowance, request, &proof.found.image.layout);
    if (!prove(request, &allowance.budget, &proof, result)) return;
    if (proof.has_good_frames && !proof.found.has_other_before) return;
    result->status = IMAGE_CODEC_UNDECIDED;
    if (!proof.has_good_frames) return;
    result->proof = IMAGE_CODEC_PROOF_DATA;
    // With the head of the chunk behind them, where libpng stops.
    result->undecided = proof.found.image.offset + 12;
}

void png_check(const request_t *request, result_t *result) {
    png_proof proof = {.has_good_image = false};
    survey(request, &proof.found);
    const png_survey *found = &proof.found;
    const png_layout *layout = &found->image.layout;
    result->width = layout->width;
    result->height = layout->height;
    png_allowance allowance;
    allow(&allowance, request, layout);
    if (request->proof == IMAGE_CODEC_PROOF_DATA)
        proof.has_good_image = proof.has_good_frames = true;
    else if (request->proof == IMAGE_CODEC_PROOF_OPEN && !prove(request, &allowance.budget, &proof, result))
        return;
    if (!proof.has_good_image || found->has_other_before)
        read_file(request, &allowance, request->bytes, request->count, layout, proof.has_good_image, NULL, NULL, result);
    if (!found->is_animation || proof.has_good_frames) return;
    png_frame frame;
    for (size_t offset = HEADER_END; result->status == IMAGE_CODEC_WHOLE;) {
        if (!png_next_frame(request, &found->image, &offset, &frame)) return;
        check_budget_grant(&allowance.budget, (uint64_t)frame.image.layout.width * frame.image.layout.height);
        if (!has_time(&allowance.budget, result)) return;
        if (frame.image.name == IDAT || png_inflates(request, &frame.image)) continue;
        image_codec_buffer file = {NULL, 0};
        png_extract(request, &frame.image, &file);
        check_by_library(request, &allowance, &frame.image, &file, result);
    }
}

// MARK: Pixels

/// Draws the frames of an animation.
static void compose(const request_t *request, png_allowance *allowance, const png_source *image, result_t *result) {
    canvas canvas;
    if (!canvas_open(&canvas, result)) return;
    size_t offset = HEADER_END;
    png_frame frame;
    while (result->status == IMAGE_CODEC_WHOLE && png_next_frame(request, image, &offset, &frame)) {
        const png_layout *part = &frame.image.layout;
        check_budget_grant(&allowance->budget, (uint64_t)part->width * part->height);
        if (!has_time(&allowance->budget, result)) break;
        image_codec_buffer file = {NULL, 0};
        png_extract(request, &frame.image, &file);
        if (file.bytes)
            read_file(request, allowance, file.bytes, file.count, part, false, canvas.part, NULL, result);
        else
            check_end(result, IMAGE_CODEC_NO_MEMORY, "no memory to decode a PNG");
        image_codec_release(&file);
        canvas_frame drawn = {frame.x, frame.y, part->width, part->height, frame.dispose, frame.blend,
                              frame.milliseconds};
        if (result->status == IMAGE_CODEC_WHOLE && !canvas_draw(&canvas, result, &drawn)) break;
    }
    canvas_close(&canvas);
}

/// Of the chunks before the end of the bytes.
static bool has_transparency(const request_t *request) {
    for (size_t offset = HEADER_END; request->count - offset >= 12;) {
        const uint8_t *chunk = request->bytes + offset;
        uint32_t length = big_endian_32(chunk), name = big_endian_32(chunk + 4);
        if (name == IDAT || request->count - offset - 12 < length) return false;
        if (name == tRNS && png_has_crc(chunk)) return true;
        offset += (size_t)length + 12;
    }
    return false;
}

void png_pixels(const request_t *request, result_t *result) {
    png_header(request, result);
    if (result->status != IMAGE_CODEC_WHOLE) return;
    png_survey found;
    survey(request, &found);
    const png_layout *layout = &found.image.layout;
    if (found.is_animation) result->loop_count = found.loop_count;
    result->has_alpha = (layout->color_type & 4) != 0 || has_transparency(request);
    // Frames are found by chunks that have been checked; a partial decode has the first image alone.
    bool is_animation = found.is_animation && request->frames > 1 && !request->partial;
    uint32_t frames = 1;
    if (is_animation) {
        png_frame frame;
        size_t offset = HEADER_END;
        for (frames = 0; frames < request->frames && png_next_frame(request, &found.image, &offset, &frame);) frames++;
    }
    result->channels = result->has_alpha || is_animation ? 4 : 3;
    png_allowance allowance;
    allow(&allowance, request, layout);
    if (found.exif > 0) {
        const uint8_t *chunk = request->bytes + found.exif;
        check_copy(&result->exif, chunk + 8, big_endian_32(chunk));
        result->orientation = image_codec_exif_orientation(chunk + 8, big_endian_32(chunk));
    }
    // No row of an interlaced image is there before its last pass.
    if (!is_animation && !layout->interlaced && rows_are_resampled(request, layout->width, layout->height)) {
        row_sink sink;
        if (!rows_open(&sink, request, result, layout->width, layout->height, layout->width, layout->height)) return;
        read_file(request, &allowance, request->bytes, request->count, layout, false, NULL, &sink, result);
        rows_close(&sink);
        return;
    }
    result->pixel_width = layout->width;
    result->pixel_height = result->rows = layout->height;
    if (!check_allocate_pixels(result, &request->limits, frames)) return;
    if (is_animation) return compose(request, &allowance, &found.image, result);
    // The first frame of an animation that starts behind its image is not this one.
    read_file(request, &allowance, request->bytes, request->count, layout, false, result->pixels.bytes, NULL, result);
    rows_resample(request, result);
}
