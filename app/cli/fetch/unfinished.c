#include "unfinished.h"
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
    (void)s, (void)type, (void)f;
    return remove(path);
}

static int remove_inner(const char *path, const struct stat *s, int type, struct FTW *f)
{
    return f->level > 0 ? remove_one(path, s, type, f) : 0;
}

static int remove_tree(const char *path, bool itself)
{
    enum { DESCRIPTORS = 16 };
    return nftw(path, itself ? remove_one : remove_inner, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

int cli_unfinished_open(cli_unfinished *u, const char *parent, const char *name)
{
    u->fd = -1;
    int code = cli_make_folders(parent);
    const int n = snprintf(u->path.text, sizeof u->path.text, "%s/.%s.unfinished", parent, name);
    if (!code && (size_t)n >= sizeof u->path.text)
        code = cli_fail("%s: the path is too long", parent);
    while (!code) {
        if (mkdir(u->path.text, 0777) && errno != EEXIST)
            return cli_fail_errno(u->path.text);
        u->fd = open(u->path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (u->fd < 0 && errno != ENOENT)
            return cli_fail_errno(u->path.text);
        if (u->fd >= 0)
            code = cli_lock(u->fd, u->path.text, name);
        if (!code && u->fd >= 0 && cli_lock_is_at(u->fd, u->path.text))
            return remove_tree(u->path.text, false) ? cli_fail_errno(u->path.text) : CLI_DONE;
        if (u->fd >= 0)
            close(u->fd);
        u->fd = -1;
    }
    return code;
}

int cli_unfinished_move(const cli_unfinished *u, const char *part, const char *target)
{
    att_model_path from;
    snprintf(from.text, sizeof from.text, "%s", u->path.text);
    const size_t n = strlen(from.text);
    if ((size_t)snprintf(from.text + n, sizeof from.text - n, "/%s", part) >= sizeof from.text - n)
        return cli_fail("%s: the path is too long", u->path.text);
    if (syncfs(u->fd)) /* the files are on the disk before they have their final name */
        return cli_fail_errno(u->path.text);
    return rename(from.text, target) ? cli_fail_errno(target) : CLI_DONE;
}

void cli_unfinished_close(cli_unfinished *u)
{
    if (u->fd < 0)
        return;
    remove_tree(u->path.text, true);
    close(u->fd);
    u->fd = -1;
}
