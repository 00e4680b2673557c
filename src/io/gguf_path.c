/* Finds a model's .gguf file. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "io/file_source.h"
#include "io/gguf.h"

/* Returns whether the name ends as in -00001-of-00002.gguf. */
static bool is_part(const char *name)
{
    static const char end[] = "-#####-of-#####.gguf";
    const size_t n = strlen(name), m = sizeof end - 1;
    bool is = n >= m;
    for (size_t i = 0; is && i < m; i++) {
        const char c = name[n - m + i];
        is = end[i] == '#' ? c >= '0' && c <= '9' : c == end[i];
    }
    return is;
}

/* Finds the only .gguf file of a folder -> file; "" if there is none. */
static att_status find_only(att_ctx *ctx, const char *folder, char file[ATT_MAX_PATH])
{
    char first[sizeof(((struct dirent *)NULL)->d_name)] = "";
    att_status s = ATT_OK;
    DIR *d = opendir(folder); /* NULL: opening the model reports why */
    for (const struct dirent *e; d && !s && (e = readdir(d));) {
        if (!att_is_gguf_name(e->d_name))
            continue;
        if (*first && is_part(first) && is_part(e->d_name))
            s = att_fail(ctx, ATT_ERR_UNSUPPORTED,
                         "%s: has a model in several files, as %s and %s; join them with llama.cpp: llama-gguf-split "
                         "--merge FIRST-PART OUTPUT.gguf",
                         folder, first, e->d_name);
        else if (*first)
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: has several .gguf files, as %s and %s; give the path of one",
                         folder, first, e->d_name);
        else
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
