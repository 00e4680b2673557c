/* Walks through folders for image files: all rules on which files of a folder are images are here. */
#ifndef ATT_IMAGE_IMAGE_FILES_H
#define ATT_IMAGE_IMAGE_FILES_H

#include "attend_vision.h"
#include "io/string_list.h"

/* Files that are passed over, counted by the ends of their names. */
enum { ATT_FILE_KINDS = 24, ATT_FILE_KIND_BYTES = 16, ATT_PASSED_OVER_BYTES = 256 };
typedef struct att_file_kinds {
    struct {
        char name[ATT_FILE_KIND_BYTES]; /* ".heic", in lower case */
        int64_t n;
    } kind[ATT_FILE_KINDS];
    int kinds;
    int64_t n; /* of all kinds, and of others */
} att_file_kinds;
/* Writes "6 .heic, 2 .txt, 1 other", the most frequent kinds first; "" if there are none. */
void att_file_kinds_text(const att_file_kinds *k, char text[ATT_PASSED_OVER_BYTES]);

typedef struct att_image_walk {
    att_ctx *ctx;
    att_names *paths; /* the paths of images are added to it */
    att_file_kinds passed_over;
    void *entered; /* private: the folders so far, as a tree */
} att_image_walk;

/* Adds the images of a folder and of the folders in it, in the byte order of names. A folder to which several links
 * lead counts once. above: a folder to which a link may not lead, or NULL. Errors: a link to a folder above it; more
 * than 32 folders in one another. */
att_status att_image_walk_folder(att_image_walk *w, const char *path, const char *above);
/* Counts a file that is passed over. */
void att_image_walk_pass_over(att_image_walk *w, const char *name);

/* The visible entries of a folder, in the byte order of their names. Hidden ones belong to other programs, such as a
 * file manager's thumbnails. */
typedef struct att_folder_entries {
    struct dirent **entry; /* [n] */
    int n;
} att_folder_entries;
att_status att_folder_entries_open(att_folder_entries *l, att_ctx *ctx, const char *path);
void att_folder_entries_free(att_folder_entries *l);
bool att_is_folder(const char *path);

#endif
