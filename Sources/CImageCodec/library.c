#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

bool library_load(const char *file, const library_symbol *symbols, size_t count, char problem[IMAGE_CODEC_TEXT]) {
    problem[0] = 0;
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(problem, IMAGE_CODEC_TEXT, "%s is not installed", file);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        *symbols[i].address = dlsym(library, symbols[i].name);
        if (*symbols[i].address) continue;
        snprintf(problem, IMAGE_CODEC_TEXT, "%s has no function %s", file, symbols[i].name);
        dlclose(library);
        return false;
    }
    return true;
}
