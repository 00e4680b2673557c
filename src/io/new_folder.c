#include "io/new_folder.h"

#include "io/atomic_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const att_new_folder_copied[] = {"generation_config.json",
                                             "tokenizer.json",
                                             "tokenizer_config.json",
                                             "chat_template.jinja",
                                             "chat_template.json",
                                             "special_tokens_map.json",
                                             "added_tokens.json",
                                             "vocab.json",
                                             "vocab.txt",
                                             "merges.txt",
                                             "tokenizer.model",
                                             NULL};

/* Returns whether a name is that of a file that a conversion writes, or of a temporary file of att_replace. */
static bool is_written(const char *name)
{
    static const char *const others[] = {"config.json", "model.safetensors", "preprocessor_config.json",
                                         "probe.json",  "probe.safetensors", NULL};
    const char *const *const lists[] = {others, att_new_folder_copied};
    const size_t m = strlen(ATT_UNFINISHED);
    for (int i = 0; i < 2; i++)
        for (const char *const *l = lists[i]; *l; l++) {
            const size_t n = strlen(*l);
            const bool begins = strncmp(name, *l, n) == 0;
            if (begins && (!name[n] || (!strncmp(name + n, ATT_UNFINISHED, m) &&
                                        !name[n + m + strspn(name + n + m, "0123456789")])))
                return true;
        }
    return false;
}

static bool is_folder_itself(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

static DIR *open_list(int fd)
{
    const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (copy >= 0 && !d)
        close(copy);
    return d;
}

/* Removes the files of a conversion; others, which are the user's, stay. */
static void remove_files(int fd)
{
    DIR *d = open_list(fd);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_written(e->d_name))
            unlinkat(fd, e->d_name, 0);
    if (d)
        closedir(d);
}

/* Checks that all files of f->path are those of a conversion. */
static att_status check_unfinished(const att_new_folder *f, bool marked)
{
    DIR *d = open_list(f->fd);
    att_status s = d ? ATT_OK : att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    for (const struct dirent *e; !s && (e = readdir(d));)
        if (!is_folder_itself(e->d_name) && (!marked || !is_written(e->d_name)))
            s = att_fail(f->ctx, ATT_ERR_ARGUMENT,
                         "%s, where %s is written first, has \"%s\", which is not a file of an unfinished conversion; "
                         "remove it, or give another folder",
                         f->path, f->target, e->d_name);
    if (d)
        closedir(d);
    return s;
}

/* Checks that the target is missing, or is a folder without files. A folder cannot replace a symbolic link. */
static att_status check_target(const att_new_folder *f)
{
    struct stat is;
    if (!lstat(f->target, &is) && S_ISLNK(is.st_mode))
        return att_fail(f->ctx, ATT_ERR_ARGUMENT,
                        "%s is a symbolic link, which no folder can replace; give the folder it leads to, or another",
                        f->target);
    errno = 0;
    DIR *d = opendir(f->target);
    if (!d && errno == ENOENT)
        return ATT_OK;
    if (!d)
        return att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->target, strerror(errno));
    bool empty = true;
    for (const struct dirent *e; empty && (e = readdir(d));)
        empty = is_folder_itself(e->d_name);
    closedir(d);
    return empty ? ATT_OK
                 : att_fail(f->ctx, ATT_ERR_ARGUMENT, "%s is not empty; remove it first, or give another folder",
                            f->target);
}

/* Makes the folders above f->path. */
static att_status make_parent(const att_new_folder *f)
{
    char parent[ATT_MAX_PATH];
    memcpy(parent, f->path, sizeof parent);
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return ATT_OK;
    *slash = 0;
    return att_make_folder(f->ctx, parent);
}

/* Makes the mark before the folder. *marked: it existed before. */
static att_status make_mark(const att_new_folder *f, bool *marked)
{
    int fd = open(f->mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *marked = fd < 0 && errno == EEXIST;
    if (fd < 0 && !*marked)
        return att_fail(f->ctx, ATT_ERR_IO, "%s cannot be made: %s", f->mark, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ATT_OK;
}

/* Undoes a failed beginning: removes a mark and an empty folder that this call has made. */
static att_status abandon(att_new_folder *f, bool marked, bool made, att_status s)
{
    if (made)
        rmdir(f->path);
    if (!marked)
        unlink(f->mark);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    return s;
}

att_status att_new_folder_begin(att_new_folder *f, att_ctx *ctx, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    *f = (att_new_folder){.ctx = ctx, .fd = -1};
    if (n == 0 || (size_t)snprintf(f->target, sizeof f->target, "%.*s", (int)n, folder) >= sizeof f->target ||
        (size_t)snprintf(f->path, sizeof f->path, "%.*s.unfinished", (int)n, folder) >= sizeof f->path ||
        (size_t)snprintf(f->mark, sizeof f->mark, "%.*s.unfinished.mark", (int)n, folder) >= sizeof f->mark)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the folder's path is empty, or has more than %d bytes", ATT_MAX_PATH);
    struct stat is;
    bool marked;
    const bool made = lstat(f->path, &is) != 0; /* from here on this call has made the folder */
    if (made)
        unlink(f->mark); /* left by a process that was killed when its folder had its final name */
    att_status s = check_target(f);
    s = s ? s : make_parent(f);
    s = s ? s : make_mark(f, &marked);
    if (s)
        return s;
    s = att_make_folder(ctx, f->path);
    if (s)
        return abandon(f, marked, made, s);
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return abandon(f, marked, made, att_fail(ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno)));
    const bool busy = flock(f->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (busy || !att_file_has_name(f->fd, f->path)) /* or another process has completed it since it was opened */
        return abandon(f, true, false, att_fail(ctx, ATT_ERR_IO, "%s is being written by another process", f->target));
    s = check_unfinished(f, marked);
    if (s)
        return abandon(f, marked, made, s);
    remove_files(f->fd);
    return ATT_OK;
}

/* After an error nothing of the conversion is left. */
att_status att_new_folder_end(att_new_folder *f, att_status s)
{
    if (f->fd < 0)
        return s;
    if (!s && (syncfs(f->fd) || rename(f->path, f->target)))
        s = att_fail(f->ctx, ATT_ERR_IO, "%s cannot be written: %s", f->target, strerror(errno));
    if (s) {
        remove_files(f->fd);
        rmdir(f->path);
    }
    unlink(f->mark);
    close(f->fd);
    return s;
}
