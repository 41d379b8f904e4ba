#include "image_codec.h"
typedef int image_codec_unit;
