/* The input is a JPEG file, or what libjpeg makes of it. */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return fuzz_image(data, size); }
