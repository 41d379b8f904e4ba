#pragma once
#include "codecs.h"

#include <stdio.h>
// After stdio.h, which it needs.
#include <jpeglib.h>

/// Reads the Huffman codes of a sequential JPEG with one scan, whose header libjpeg has read, without computing anything from them.
/// True: libjpeg would decode it without a warning. False: there is a doubt, and libjpeg has to decide.
bool jpeg_walk(const struct jpeg_decompress_struct *library, check_budget *budget);
