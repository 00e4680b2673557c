/* Lists of paths of images. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include <stddef.h>
#include <stdint.h>

typedef struct cli_paths {
    char **path; /* [n], malloc'd each */
    int64_t n;
    size_t room;
} cli_paths;

/* Lists the paths given [n]. Replaces a folder by the images in it and in its folders (att_image_files), and reports
 * the files that it passes over. Fails if a folder has no image. */
int cli_paths_of_images(cli_paths *p, int n, char *const *given);
void cli_paths_free(cli_paths *p);

/* Fails if one of the arguments [n] of a command that reads text is the file of an image. */
int cli_paths_refuse_images(int n, char *const *given);

#endif
