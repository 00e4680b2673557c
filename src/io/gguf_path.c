/* Finds a model's .gguf file. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "io/file_source.h"
#include "io/gguf.h"

/* Finds the only .gguf file of a folder, or the first part of the only model -> file; "" if there is none. */
static att_status find_only(att_ctx *ctx, const char *folder, char file[ATT_MAX_PATH])
{
    char first[sizeof(((struct dirent *)NULL)->d_name)] = "";
    att_status s = ATT_OK;
    DIR *d = opendir(folder); /* NULL: opening the model reports why */
    for (const struct dirent *e; d && !s && (e = readdir(d));) {
        if (!att_is_gguf_name(e->d_name))
            continue;
        if (*first && !att_gguf_is_part_of_same(first, e->d_name))
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: has several .gguf files, as %s and %s; give the path of one",
                         folder, first, e->d_name);
        else if (!*first || strcmp(e->d_name, first) < 0)
            snprintf(first, sizeof first, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    return s || !*first ? s : att_join_path(ctx, folder, first, file);
}

att_status att_gguf_path(att_ctx *ctx, const char *path, const char *instead, char file[ATT_MAX_PATH])
{
    file[0] = 0;
    if (att_is_file(path)) {
        if (att_is_gguf_name(path) && (size_t)snprintf(file, ATT_MAX_PATH, "%s", path) >= ATT_MAX_PATH)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "the path has more than %d bytes", ATT_MAX_PATH - 1);
        return ATT_OK;
    }
    const att_status s = att_join_path(ctx, path, instead, file);
    const bool other = !s && att_is_file(file);
    file[0] = 0;
    /* A model in memory has only files that are requested by name. */
    return s || other || att_file_source_given() ? s : find_only(ctx, path, file);
}
