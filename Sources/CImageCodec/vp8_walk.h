#pragma once
#include "check.h"

/// The most partitions of a frame, and the most columns of macroblocks of 16 x 16 pixels, of 14 bits of width (RFC 6386, sections 9.1 and 9.5).
enum { VP8_PARTITIONS = 8, VP8_COLUMNS = 1024 };

/// Whether the bytes begin as a key frame of VP8 does that WebP shows, and its size (RFC 6386, section 9.1).
bool vp8_read_size(const uint8_t *bytes, size_t count, uint32_t *width, uint32_t *height);
/// Reads all symbols of a frame, without computing anything from them. True: libwebp would decode it. False: there is a doubt, and libwebp has to
/// decide.
bool vp8_walk(const uint8_t *bytes, size_t count, check_budget *budget);
