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

#ifdef LIBJPEG_TURBO_VERSION
#define JPEG "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define JPEG "libjpeg " TEXT(JPEG_LIB_VERSION)
#endif

const char *image_codec_libraries(void) {
    return JPEG ", libpng " PNG_LIBPNG_VER_STRING ", libdeflate " LIBDEFLATE_VERSION_STRING ", zlib " ZLIB_VERSION;
}
