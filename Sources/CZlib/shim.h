// Lists that come compressed. zlib is in the process already: libpng brings it.
#pragma once
#include <zlib.h>
