// The program's own malloc goes before that of libc, for the shared libraries too. It only counts: libc's does the work.
#include "allocations.h"

#include <malloc.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

static _Thread_local bool is_counting;
static _Thread_local ptrdiff_t in_use;
static _Thread_local counted_allocations counted;

void allocations_start(void) {
    in_use = 0;
    counted = (counted_allocations){0, 0};
    is_counting = true;
}

counted_allocations allocations_stop(void) {
    is_counting = false;
    return counted;
}

#ifdef HAS_OWN_MALLOC
bool allocations_can_be_counted(void) { return false; }
#else
bool allocations_can_be_counted(void) { return true; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void *count(void *memory) {
    if (!is_counting || !memory) return memory;
    size_t size = malloc_usable_size(memory);
    counted.total += size;
    in_use += (ptrdiff_t)size;
    if (in_use > (ptrdiff_t)counted.peak) counted.peak = (size_t)in_use;
    return memory;
}

static void uncount(void *memory) {
    if (is_counting && memory) in_use -= (ptrdiff_t)malloc_usable_size(memory);
}

void *malloc(size_t size) { return count(__libc_malloc(size)); }
void *calloc(size_t number, size_t size) { return count(__libc_calloc(number, size)); }
void *memalign(size_t alignment, size_t size) { return count(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return count(__libc_memalign(alignment, size)); }

void *realloc(void *memory, size_t size) {
    // Both blocks may exist for a moment.
    size_t before = is_counting && memory ? malloc_usable_size(memory) : 0;
    void *moved = __libc_realloc(memory, size);
    if (moved || size == 0) in_use -= (ptrdiff_t)before;
    return count(moved);
}

void free(void *memory) {
    uncount(memory);
    __libc_free(memory);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *found = __libc_memalign(alignment, size);
    if (!found) return 12;
    *memory = count(found);
    return 0;
}
#endif
