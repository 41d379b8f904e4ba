// The target `child` for the suite that replays its inputs.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// Has a child carry out the call that an input describes, in this process. Ends it if the answer is not one.
int fuzz_child(const uint8_t *bytes, size_t count);
