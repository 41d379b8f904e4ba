// For compressed lists. libzstd is already loaded by libcurl.
#pragma once
#include <zstd.h>
