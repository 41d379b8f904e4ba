// Decodes a JPEG, to pixels or, as a check, at an eighth of its size. Bytes that end before EOI never get here unless they are to be decoded as far
// as they go: jpeg_structure.c rejects them.
//
// The check: most images are proved to be whole without libjpeg (jpeg_walk.c, jpeg_progressive.c), which decides on the others. It reports all problems with the
// data while it reads markers and Huffman codes, which it reads completely at any scale. Skipped are only the inverse DCT, upsampling and
// colour conversion, which cannot fail. Of the modes with the verdict of a full decode this is the cheapest (CodecVerdictTests compares
// them with damage at every byte): 46 % of the time of full RGB, and 9 % less than an eighth in colour. Three traps:
// - for grey output libjpeg drops the chroma components after their Huffman codes, without checking their sampling factors (jdsample.c);
//   `has_whole_sampling` does so.
// - DC differences that overflow an int are only detected in output components (jdhuff.c, dc_needed). With differences of at most 32,767
//   that takes more than 65,536 blocks; `may_overflow` keeps such images in colour.
// - a component missing from all scans is silently painted grey; `has_every_component` detects that.
#include "jpeg_walk.h"
#include "codecs.h"
#include "rows.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
// After stdio.h, which jpeglib.h needs.
#include <jerror.h>
#include <jpeglib.h>

typedef struct {
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    check_budget budget;
    const image_codec_limits *limits;
    image_codec_result *result;
    /// Damage does not end the decoding; `row_of_damage` is the first row that may lack data.
    bool partial;
    bool is_damaged;
    uint32_t row_of_damage;
    row_sink sink;
} jpeg_decoder;

static jpeg_decoder *decoder_of(j_common_ptr library) { return library->client_data; }

/// Ends the check with the library's message.
static void escape(j_common_ptr library, int status) {
    jpeg_decoder *decoder = decoder_of(library);
    char text[JMSG_LENGTH_MAX];
    library->err->format_message(library, text);
    const char *help = library->err->msg_code == JERR_IMAGE_TOO_BIG      ? CHECK_UNDECODED
                       : library->err->msg_code == JERR_NO_BACKING_STORE ? CHECK_MAX_MEMORY
                                                                          : "";
    check_end(decoder->result, status, "%s%s", text, help);
    longjmp(decoder->escape, 1);
}

static void on_error(j_common_ptr library) {
    int status = IMAGE_CODEC_DAMAGED;
    switch (library->err->msg_code) {
    case JERR_OUT_OF_MEMORY: status = IMAGE_CODEC_NO_MEMORY; break;
    // libjpeg takes sides of 65,500, the format can say 65,535.
    case JERR_IMAGE_TOO_BIG: status = IMAGE_CODEC_OVER_DECODING; break;
    // jmemnobs.c's error if `max_memory_to_use` is exceeded.
    case JERR_NO_BACKING_STORE: status = IMAGE_CODEC_OVER_MEMORY; break;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED: status = IMAGE_CODEC_UNSUPPORTED; break;
    default: break;
    }
    escape(library, status);
}

/// Replaces the method that counts and prints. A warning about missing or damaged image data ends the check.
static void on_message(j_common_ptr library, int level) {
    if (level >= 0) return;
    jpeg_decoder *decoder = decoder_of(library);
    if (decoder->partial) {
        if (!decoder->is_damaged) decoder->row_of_damage = decoder->library.output_scanline;
        decoder->is_damaged = true;
        return;
    }
    switch (library->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
        // Before the first scan they are stray bytes. After it they are misplaced image data: some is missing or wrong, with made-up
        // pixels.
        if (decoder->library.input_scan_number > 0) escape(library, IMAGE_CODEC_DAMAGED);
        // fallthrough
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_ICC:
    // "There are some baseline files out there with all zeroes in these bytes" (jdhuff.c): they decode correctly.
    case JWRN_NOT_SEQUENTIAL: {
        char text[JMSG_LENGTH_MAX];
        library->err->format_message(library, text);
        check_keep_warning(decoder->result, "%s", text);
        return;
    }
    default: escape(library, IMAGE_CODEC_DAMAGED);
    }
}

/// Called for each row of blocks read and each row of output.
static void on_progress(j_common_ptr library) {
    jpeg_decoder *decoder = decoder_of(library);
    if ((unsigned)decoder->library.input_scan_number > decoder->limits->max_scans) {
        check_end(decoder->result, IMAGE_CODEC_OVER_LIMIT, "JPEG with more than %u scans" CHECK_UNCHECKED,
                  decoder->limits->max_scans);
        longjmp(decoder->escape, 1);
    }
    if (!check_budget_spend(&decoder->budget, (uint64_t)decoder->library.image_width * DCTSIZE)) {
        check_end_late(decoder->result, &decoder->budget, "JPEG");
        longjmp(decoder->escape, 1);
    }
}

/// jdsample.c: "Fractional sampling not implemented yet", for the components dropped by grey output.
static bool has_whole_sampling(const struct jpeg_decompress_struct *library) {
    for (int i = 0; i < library->num_components; i++) {
        const jpeg_component_info *component = &library->comp_info[i];
        if (library->max_h_samp_factor % component->h_samp_factor != 0 ||
            library->max_v_samp_factor % component->v_samp_factor != 0)
            return false;
    }
    return true;
}

/// Half of the required blocks, because blocks that only complete the last MCUs are not counted here.
static bool may_overflow(const struct jpeg_decompress_struct *library) {
    for (int i = 1; i < library->num_components; i++) {
        const jpeg_component_info *component = &library->comp_info[i];
        if ((uint64_t)component->width_in_blocks * component->height_in_blocks > 1 << 15) return true;
    }
    return false;
}

/// The quantisation table is latched when a component's first scan starts (jdinput.c).
static bool has_every_component(const struct jpeg_decompress_struct *library) {
    for (int i = 0; i < library->num_components; i++)
        if (!library->comp_info[i].quant_table) return false;
    return true;
}

/// Reads the header; false if the image is not to be decoded.
static bool start(jpeg_decoder *decoder, const request_t *request) {
    struct jpeg_decompress_struct *library = &decoder->library;
    jpeg_create_decompress(library);
    library->client_data = decoder;
    library->progress = &decoder->progress;
    library->mem->max_memory_to_use = (long)decoder->limits->max_memory;
    jpeg_mem_src(library, request->bytes, (unsigned long)request->count);
    if (request->task == IMAGE_CODEC_PIXELS) {
        jpeg_save_markers(library, JPEG_APP0 + 1, 0xFFFF);
        jpeg_save_markers(library, JPEG_APP0 + 2, 0xFFFF);
    }
    jpeg_read_header(library, TRUE);
    if (!check_size(decoder->result, decoder->limits, library->image_width, library->image_height)) return false;
    // An arithmetic decoder produces pixels from any bytes with hardly any warnings; some builds and all browsers lack it anyway.
    if (library->arith_code) {
        check_end(decoder->result, IMAGE_CODEC_UNSUPPORTED, "JPEG with arithmetic coding cannot be verified");
        return false;
    }
    if (jpeg_has_multiple_scans(library) &&
        !check_whole_size(decoder->result, decoder->limits, library->progressive_mode ? "progressive JPEG" : "JPEG of several scans"))
        return false;
    check_budget_start(&decoder->budget, request);
    check_budget_grant(&decoder->budget, (uint64_t)library->image_width * library->image_height);
    if (has_whole_sampling(library)) return true;
    library->err->msg_code = JERR_FRACT_SAMPLE_NOTIMPL;
    escape((j_common_ptr)library, IMAGE_CODEC_DAMAGED);
    return false;
}

static void finish(jpeg_decoder *decoder) {
    struct jpeg_decompress_struct *library = &decoder->library;
    bool complete = has_every_component(library);
    jpeg_finish_decompress(library);
    if (!complete) check_end(decoder->result, IMAGE_CODEC_DAMAGED, "JPEG with a component that no scan brings");
}

static void check(jpeg_decoder *decoder, const request_t *request) {
    struct jpeg_decompress_struct *library = &decoder->library;
    if (!start(decoder, request)) return;
    library->scale_num = 1;
    library->scale_denom = DCTSIZE;
    library->do_fancy_upsampling = FALSE;
    library->do_block_smoothing = FALSE;
    if (library->jpeg_color_space == JCS_YCbCr)
        library->out_color_space = may_overflow(library) ? JCS_YCbCr : JCS_GRAYSCALE;
    jpeg_start_decompress(library);
    JSAMPARRAY rows = library->mem->alloc_sarray((j_common_ptr)library, JPOOL_IMAGE,
                                                 library->output_width * (JDIMENSION)library->output_components,
                                                 (JDIMENSION)library->rec_outbuf_height);
    while (library->output_scanline < library->output_height)
        jpeg_read_scanlines(library, rows, (JDIMENSION)library->rec_outbuf_height);
    finish(decoder);
}

/// The denominator of the smallest scale at which the image is at least as large as asked for. libjpeg-turbo has SIMD code for these only.
static unsigned scale_denominator(const request_t *request, uint32_t width, uint32_t height) {
    if (request->min_width == 0 || request->min_height == 0) return 1;
    unsigned denominator = 8;
    while (denominator > 1 && (width / denominator < request->min_width || height / denominator < request->min_height))
        denominator /= 2;
    return denominator;
}

static uint8_t product(uint8_t a, uint8_t b) {
    unsigned scaled = (unsigned)a * b + 128;
    return (uint8_t)((scaled + (scaled >> 8)) >> 8);
}

/// Naive conversion, without a profile: a colour is what its ink and the black leave. Adobe's files have inverted values.
static void convert_cmyk(const uint8_t *cmyk, uint8_t *rgb, uint32_t width, bool is_inverted) {
    for (uint32_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        uint8_t light = is_inverted ? cmyk[3] : 255 - cmyk[3];
        for (int i = 0; i < 3; i++) rgb[i] = product(is_inverted ? cmyk[i] : 255 - cmyk[i], light);
    }
}

static void copy_metadata(struct jpeg_decompress_struct *library, image_codec_result *result) {
    for (jpeg_saved_marker_ptr marker = library->marker_list; marker; marker = marker->next)
        if (marker->marker == JPEG_APP0 + 1 && marker->data_length > 6 && memcmp(marker->data, "Exif\0", 6) == 0) {
            result->orientation = image_codec_exif_orientation(marker->data + 6, marker->data_length - 6);
            check_copy(&result->exif, marker->data + 6, marker->data_length - 6);
            break;
        }
    JOCTET *profile = NULL;
    unsigned length = 0;
    if (jpeg_read_icc_profile(library, &profile, &length)) {
        result->icc.bytes = profile;
        result->icc.count = length;
    }
}

static void pixels(jpeg_decoder *decoder, const request_t *request) {
    struct jpeg_decompress_struct *library = &decoder->library;
    image_codec_result *result = decoder->result;
    if (!start(decoder, request)) return;
    copy_metadata(library, result);
    bool is_cmyk = library->num_components == 4;
    result->color = is_cmyk ? library->jpeg_color_space == JCS_YCCK ? IMAGE_CODEC_COLOR_YCCK : IMAGE_CODEC_COLOR_CMYK
                    : library->num_components == 1 ? IMAGE_CODEC_COLOR_GRAY
                                                   : IMAGE_CODEC_COLOR_RGB;
    library->scale_num = 1;
    unsigned denominator = scale_denominator(request, library->image_width, library->image_height);
    library->scale_denom = denominator;
    library->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(library);
    result->channels = 3;
    // The last column and row of a smaller scale are there in part only.
    double scale = 1.0 / denominator;
    if (!rows_open(&decoder->sink, request, result, library->output_width, library->output_height,
                   library->image_width * scale, library->image_height * scale))
        return;
    JSAMPARRAY inks =
        library->mem->alloc_sarray((j_common_ptr)library, JPOOL_IMAGE, is_cmyk ? 4 * library->output_width : 1, 1);
    while (library->output_scanline < library->output_height) {
        JSAMPROW row = decoder->sink.row;
        if (!is_cmyk) {
            jpeg_read_scanlines(library, &row, 1);
        } else if (jpeg_read_scanlines(library, inks, 1) == 1) {
            convert_cmyk(inks[0], row, library->output_width, library->saw_Adobe_marker);
        }
        rows_put(&decoder->sink);
    }
    // A progressive image is there as a whole from its first scan on.
    bool lacks_rows = decoder->is_damaged && !library->progressive_mode;
    result->rows = lacks_rows ? decoder->row_of_damage : result->pixel_height;
    if (decoder->partial) return;
    finish(decoder);
}

/// The only frame to which longjmp returns; the state it changes is in its caller's frame.
static void run(jpeg_decoder *decoder, const request_t *request) {
    if (setjmp(decoder->escape)) {
        image_codec_result *result = decoder->result;
        if (!decoder->partial || !result->pixels.bytes || result->status != IMAGE_CODEC_DAMAGED) return;
        result->status = IMAGE_CODEC_WHOLE;
        result->rows = decoder->is_damaged ? decoder->row_of_damage : decoder->library.output_scanline;
        return;
    }
    if (request->task == IMAGE_CODEC_PIXELS)
        pixels(decoder, request);
    else
        check(decoder, request);
}

/// Whether the image is proved whole without libjpeg.
static bool is_proved(const request_t *request, result_t *result) {
    jpeg_plan plan;
    check_budget budget;
    if (!jpeg_read_plan(request->bytes, request->count, &plan)) return false;
    if (!check_size(result, &request->limits, plan.width, plan.height)) return true;
    check_budget_start(&budget, request);
    check_budget_grant(&budget, (uint64_t)plan.width * plan.height);
    return jpeg_walk(&plan, &budget);
}

void jpeg_prove(const request_t *request, result_t *result) {
    if (!is_proved(request, result)) result->status = IMAGE_CODEC_UNDECIDED;
}

static void decode(const request_t *request, result_t *result) {
    jpeg_decoder decoder;
    memset(&decoder, 0, sizeof decoder);
    decoder.limits = &request->limits;
    decoder.result = result;
    decoder.partial = request->task == IMAGE_CODEC_PIXELS && request->partial;
    decoder.library.err = jpeg_std_error(&decoder.errors);
    decoder.library.client_data = &decoder;
    decoder.errors.error_exit = on_error;
    decoder.errors.emit_message = on_message;
    decoder.progress.progress_monitor = on_progress;
    run(&decoder, request);
    rows_close(&decoder.sink);
    jpeg_destroy_decompress(&decoder.library);
}

void jpeg_check(const request_t *request, result_t *result) {
    if (request->proof != IMAGE_CODEC_PROOF_OPEN || !is_proved(request, result)) decode(request, result);
}

void jpeg_pixels(const request_t *request, result_t *result) { decode(request, result); }
