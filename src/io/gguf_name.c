/* Recognizes names of .gguf files. */
#include "io/gguf.h"

#include <string.h>
#include <strings.h>

bool att_is_gguf_name(const char *name)
{
    static const char end[] = ".gguf";
    const size_t n = strlen(name), m = sizeof end - 1;
    return n > m && strcasecmp(name + n - m, end) == 0;
}
