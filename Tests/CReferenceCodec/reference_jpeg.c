#include "reference_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
// After stdio.h, which jpeglib.h needs.
#include <jerror.h>
#include <jpeglib.h>

struct errors {
    struct jpeg_error_mgr manager;
    jmp_buf escape;
    bool damaged;
};

static void on_error(j_common_ptr library) { longjmp(((struct errors *)library->err)->escape, 1); }

static void on_message(j_common_ptr library, int level) {
    int code = library->err->msg_code;
    bool has_scan = library->is_decompressor && ((j_decompress_ptr)library)->input_scan_number > 0;
    if (level < 0 && (code != JWRN_EXTRANEOUS_DATA || has_scan) && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
        code != JWRN_BOGUS_ICC && code != JWRN_NOT_SEQUENTIAL)
        ((struct errors *)library->err)->damaged = true;
}

bool reference_jpeg_is_whole(const uint8_t *bytes, size_t count) {
    struct jpeg_decompress_struct library;
    struct errors errors;
    library.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = on_error;
    errors.manager.emit_message = on_message;
    errors.damaged = false;
    if (setjmp(errors.escape)) {
        jpeg_destroy_decompress(&library);
        return false;
    }
    jpeg_create_decompress(&library);
    jpeg_mem_src(&library, bytes, (unsigned long)count);
    jpeg_read_header(&library, TRUE);
    // Refused as a kind: its decoder does not notice damage.
    if (library.arith_code) library.err->error_exit((j_common_ptr)&library);
    jpeg_start_decompress(&library);
    JSAMPARRAY row = library.mem->alloc_sarray((j_common_ptr)&library, JPOOL_IMAGE,
                                               library.output_width * (JDIMENSION)library.output_components, 1);
    while (library.output_scanline < library.output_height) jpeg_read_scanlines(&library, row, 1);
    jpeg_finish_decompress(&library);
    jpeg_destroy_decompress(&library);
    return !errors.damaged;
}
