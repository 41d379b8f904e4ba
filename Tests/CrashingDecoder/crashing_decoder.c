// Preloaded: functions of libraries that crash. CRASHING=image: libjpeg's, once it has read a header with a width of 777; CRASHING=hang: that
// never returns instead; CRASHING=transfer: the start of any transfer of libcurl.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static void crash(void) {
    // A handler would print for seconds.
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static int crashes(const char *where) {
    const char *text = getenv("CRASHING");
#ifdef CRASHING
    // A process of the sandbox has no variables.
    if (!text) text = CRASHING;
#endif
    return text && strcmp(text, where) == 0;
}

int jpeg_read_header(j_decompress_ptr library, boolean require_image) {
    int (*real)(j_decompress_ptr, boolean) = (int (*)(j_decompress_ptr, boolean))dlsym(RTLD_NEXT, "jpeg_read_header");
    int result = real(library, require_image);
    if (library->image_width == 777 && crashes("image")) crash();
    if (library->image_width == 777 && crashes("hang")) for (volatile int n = 0;; n++) {}
    return result;
}

int curl_multi_add_handle(void *multi, void *easy) {
    int (*real)(void *, void *) = (int (*)(void *, void *))dlsym(RTLD_NEXT, "curl_multi_add_handle");
    if (crashes("transfer")) crash();
    return real(multi, easy);
}
