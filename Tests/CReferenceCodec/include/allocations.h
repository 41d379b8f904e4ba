// Counts what one thread allocates, in this process' own malloc. Nothing is counted where a sanitizer has its own.
#pragma once
#include <stdbool.h>
#include <stddef.h>

/// What was counted between start and stop, in bytes.
typedef struct {
    /// The most that was in use at a time, beside what was in use before.
    size_t peak;
    /// All of it added up, freed or not.
    size_t total;
} counted_allocations;

/// Whether allocations can be counted in this build.
bool allocations_can_be_counted(void);
/// From here on the calling thread's allocations are counted.
void allocations_start(void);
/// Ends that, and tells what was counted.
counted_allocations allocations_stop(void);
