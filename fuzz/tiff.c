/* The input is a TIFF file, or what libtiff makes of it. */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return fuzz_image(data, size); }
