#include "io/install.h"
#include "io/atomic_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 4 };
static const char weights[] = "model.safetensors";

typedef struct install {
    att_ctx *ctx;
    const char *to;           /* the model's folder */
    char from[ATT_MAX_PATH];  /* the folder of the new model */
    char found[ATT_MAX_PATH]; /* the weights in the new model; "": it has none */
    bool changes;             /* other files than the weights change */
    bool quiet;               /* an earlier error stays */
} install;

/* ---- all files of the new model */

typedef att_status visit(install *i, const char *name, bool is_folder);

static att_status refused(const install *i, const char *name)
{
    if (i->quiet)
        return ATT_ERR_IO;
    return att_fail(i->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s/%s cannot be written: %s", i->to, name,
                    strerror(errno));
}

static bool is_folder(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

/* Calls each(i, name) for the files and folders in a folder of the new model and in those below; `within` is its name
 * there. A folder comes before what it has (before), or after it. */
static att_status walk(install *i, const char *within, int depth, bool before, visit *each)
{
    char path[ATT_MAX_PATH], name[ATT_MAX_PATH];
    att_status e = att_join_path(i->ctx, i->from, within, path);
    DIR *d = e ? NULL : opendir(path);
    if (!e && !d)
        return refused(i, within);
    for (const struct dirent *x; !e && (errno = 0, x = readdir(d));) {
        if (!strcmp(x->d_name, ".") || !strcmp(x->d_name, ".."))
            continue;
        e = *within ? att_join_path(i->ctx, within, x->d_name, name) : ATT_OK;
        if (!*within)
            snprintf(name, sizeof name, "%s", x->d_name);
        e = e ? e : att_join_path(i->ctx, i->from, name, path);
        const bool folder = !e && is_folder(path) && depth < MAX_DEPTH;
        if (!e && before)
            e = each(i, name, folder);
        if (!e && folder)
            e = walk(i, name, depth + 1, before, each);
        if (!e && !before)
            e = each(i, name, folder);
    }
    if (d)
        closedir(d);
    return e;
}

static att_status paths_of(const install *i, const char *name, char from[ATT_MAX_PATH], char to[ATT_MAX_PATH])
{
    const att_status e = att_join_path(i->ctx, i->from, name, from);
    return e ? e : att_join_path(i->ctx, i->to, name, to);
}

/* ---- steps */

/* Returns whether both files have the same content. */
static bool are_same(const char *x, const char *y)
{
    static const size_t step = 1 << 16;
    struct stat is;
    FILE *f[2] = {fopen(x, "rbe"), lstat(y, &is) == 0 && S_ISREG(is.st_mode) ? fopen(y, "rbe") : NULL};
    char *block = malloc(2 * step);
    bool same = f[0] && f[1] && block;
    for (size_t n = step; same && n == step;) {
        n = fread(block, 1, step, f[0]);
        same = fread(block + step, 1, step, f[1]) == n && memcmp(block, block + step, n) == 0 && !ferror(f[0]) &&
               !ferror(f[1]);
    }
    free(block);
    for (int k = 0; k < 2; k++)
        if (f[k])
            fclose(f[k]);
    return same;
}

/* Removes a file that the model already has. */
static att_status compare(install *i, const char *name, bool folder)
{
    char from[ATT_MAX_PATH], to[ATT_MAX_PATH];
    const size_t n = strlen(name), end = sizeof weights - 1;
    const att_status e = paths_of(i, name, from, to);
    if (e || folder)
        return e;
    if (n >= end && !strcmp(name + n - end, weights))
        memcpy(i->found, name, n + 1);
    else if (are_same(from, to))
        unlink(from);
    else
        i->changes = true;
    return ATT_OK;
}

/* Syncs the folder, because a change of names is durable only then. */
static att_status flush(const install *i, const char *name, const char *path)
{
    char folder[ATT_MAX_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int failed = fd >= 0 ? fsync(fd) : errno != EACCES;
    const att_status e = failed && errno != EINVAL ? refused(i, name) : ATT_OK;
    if (fd >= 0)
        close(fd);
    return e;
}

/* Moves a file, with the permissions of the old one, or makes a folder. */
static att_status move(install *i, const char *name, bool folder)
{
    char from[ATT_MAX_PATH], to[ATT_MAX_PATH];
    struct stat old;
    const att_status e = paths_of(i, name, from, to);
    if (e)
        return e;
    if (folder)
        return mkdir(to, 0777) && errno != EEXIST ? refused(i, name) : ATT_OK;
    if (lstat(to, &old) == 0 && S_ISREG(old.st_mode) && chmod(from, old.st_mode & 0777))
        return refused(i, name);
    return rename(from, to) ? refused(i, name) : flush(i, name, to);
}

static att_status move_others(install *i, const char *name, bool folder)
{
    return strcmp(name, i->found) != 0 ? move(i, name, folder) : ATT_OK;
}

/* Removes the weights of the old model. */
static att_status forget(const install *i)
{
    char from[ATT_MAX_PATH], to[ATT_MAX_PATH];
    const att_status e = paths_of(i, i->found, from, to);
    if (e)
        return e;
    if (unlink(to) == 0)
        return flush(i, i->found, to);
    return errno == ENOENT ? ATT_OK : refused(i, i->found);
}

static att_status remove_one(install *i, const char *name, bool folder)
{
    char path[ATT_MAX_PATH];
    (void)folder;
    if (!att_join_path(i->ctx, i->from, name, path))
        remove(path);
    return ATT_OK;
}

static void remove_all(install *i)
{
    i->quiet = true;
    if (is_folder(i->from))
        walk(i, "", 0, false, remove_one);
    remove(i->from); /* a link, too */
}

/* ---- the interface */

static bool begin(install *i, att_ctx *ctx, const char *folder)
{
    *i = (install){.ctx = ctx, .to = folder};
    return snprintf(i->from, sizeof i->from, "%s/" ATT_INSTALL_FOLDER, folder) < (int)sizeof i->from;
}

att_status att_install_begin(att_ctx *ctx, const char *folder, char path[ATT_MAX_PATH], int *file)
{
    *file = -1;
    att_install_discard(folder);
    att_status e = att_join_path(ctx, folder, ATT_INSTALL_FOLDER, path);
    e = e ? e : att_make_folder(ctx, path);
    if (e)
        return e;
    *file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*file >= 0)
        flock(*file, LOCK_EX | LOCK_NB);
    return *file >= 0 ? ATT_OK : att_fail(ctx, ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

static att_status move_all(install *i)
{
    att_status e = walk(i, "", 0, true, compare);
    if (!e && i->changes && *i->found)
        e = forget(i);
    e = e ? e : walk(i, "", 0, true, move_others);
    return !e && *i->found ? move(i, i->found, false) : e;
}

att_status att_install_end(att_ctx *ctx, const char *folder, int file, att_status e)
{
    install i;
    const bool named = begin(&i, ctx, folder);
    if (!named)
        e = e ? e : att_fail(ctx, ATT_ERR_IO, "the path %.80s... is too long", folder);
    e = e ? e : move_all(&i);
    if (named)
        remove_all(&i);
    if (file >= 0)
        close(file);
    return e;
}

void att_install_discard(const char *folder)
{
    install i;
    if (begin(&i, NULL, folder))
        remove_all(&i);
}

att_status att_install_forget(att_ctx *ctx, const char *folder)
{
    install i;
    begin(&i, ctx, folder);
    memcpy(i.found, weights, sizeof weights);
    return forget(&i);
}
