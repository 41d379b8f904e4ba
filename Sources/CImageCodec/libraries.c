#include "include/image_codec.h"

#include <png.h>
#include <stddef.h>
#include <stdio.h>
// After stdio.h, which it needs.
#include <jpeglib.h>
#include <libdeflate.h>
#include <zlib.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *image_codec_libraries(void) {
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION) ", libpng " PNG_LIBPNG_VER_STRING ", libdeflate " LIBDEFLATE_VERSION_STRING
           ", zlib " ZLIB_VERSION;
#else
    return "libjpeg " TEXT(JPEG_LIB_VERSION) ", libpng " PNG_LIBPNG_VER_STRING ", libdeflate " LIBDEFLATE_VERSION_STRING
           ", zlib " ZLIB_VERSION;
#endif
}
