/* Files of drawings: SVG, or PNG if the name ends in .png. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "cli/base/output.h"

/* The text for such a file in the help of an option. */
#define PICTURE_FORMATS "SVG; or PNG, drawn by rsvg-convert with the fonts here, if its name ends in .png"

typedef struct picture {
    FILE *svg; /* write the SVG here */
    cli_output out;
} picture;

/* Returns whether the name ends in .svg or .png. */
bool picture_has_name(const char *path);
/* path NULL or "-": standard output. */
int picture_open(picture *p, const char *path);
/* Closes the picture. If code is 0, puts the file in place; otherwise removes it. Returns code, or CLI_FAILED. */
int picture_close(picture *p, int code);

#endif
