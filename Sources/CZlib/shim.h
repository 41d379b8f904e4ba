// For compressed lists. zlib is already loaded by libpng.
#pragma once
#include <zlib.h>
