/* Files of drawings: SVG, or a PNG of it where the name ends in .png. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "cli/base/output.h"

/* What the help of an option for such a file states. */
#define PICTURE_FORMATS "SVG; or PNG, drawn by rsvg-convert with the fonts here, if its name ends in .png"

typedef struct picture {
    FILE *svg; /* write the SVG here */
    cli_output out;
} picture;

/* Does the name end in .svg or .png? */
bool picture_has_name(const char *path);
/* path NULL or "-": standard output. */
int picture_open(picture *p, const char *path);
/* code 0: the file is put in place; else removed. Returns code, or CLI_FAILED. */
int picture_close(picture *p, int code);

#endif
