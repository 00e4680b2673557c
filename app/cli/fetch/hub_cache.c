#include "hub_cache.h"
#include "cli/base/command.h"
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths */

ATT_PRINTF(2, 3) static int set_path(att_model_path *path, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(path->text, sizeof path->text, format, list);
    va_end(list);
    return n < (int)sizeof path->text ? CLI_DONE : cli_fail("%.80s...: the path is too long", path->text);
}

int hub_snapshot_find(hub_snapshot *p, const char *name, const char *commit)
{
    att_model_path cache;
    const char *slash = strchr(name, '/');
    const int owner = (int)(slash - name);
    int code = cli_status(NULL, att_hub_cache(&cache));
    if (!code)
        code = set_path(&p->root, "%s/models--%.*s--%s", cache.text, owner, name, slash + 1);
    if (!code)
        code = set_path(&p->locks, "%s/.locks/models--%.*s--%s", cache.text, owner, name, slash + 1);
    if (!code)
        code = set_path(&p->folder, "%s/snapshots/%s", p->root.text, commit);
    return code ? code : set_path(&p->lacks, "%s/.no_exist/%s", p->root.text, commit);
}

/* Returns whether the path leads to a file of this size. */
static bool has_bytes(const char *path, int64_t bytes)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == bytes;
}

bool hub_snapshot_has(const hub_snapshot *p, const hub_file *f)
{
    att_model_path path;
    return !set_path(&path, "%s/%s", p->folder.text, f->name) && has_bytes(path.text, f->bytes);
}

/* Moves `from` to the name `to`, which it replaces, or removes it if that fails. */
static int replace(const char *from, const char *to)
{
    if (rename(from, to) == 0)
        return CLI_DONE;
    const int code = cli_fail_errno(to);
    unlink(from);
    return code;
}

int hub_snapshot_link(const hub_snapshot *p, const hub_file *f)
{
    att_model_path path, target = {"../../"}, unfinished;
    if (hub_snapshot_has(p, f))
        return CLI_DONE;
    for (const char *c = f->name; (c = strchr(c, '/')); c++)
        strcat(target.text, "../"); /* a name has at most 512 folders */
    const size_t up = strlen(target.text);
    snprintf(target.text + up, sizeof target.text - up, "blobs/%s", f->hash);
    int code = set_path(&path, "%s/%s", p->folder.text, f->name);
    if (!code)
        code = set_path(&unfinished, "%s.unfinished-%ld", path.text, (long)getpid());
    if (!code)
        code = cli_make_folder_of(path.text);
    if (code)
        return code;
    unlink(unfinished.text);
    return symlink(target.text, unfinished.text) ? cli_fail_errno(unfinished.text)
                                                 : replace(unfinished.text, path.text);
}

int hub_snapshot_lack(const hub_snapshot *p, const char *name)
{
    att_model_path path;
    int code = set_path(&path, "%s/%s", p->lacks.text, name);
    if (!code)
        code = cli_make_folder_of(path.text);
    if (code)
        return code;
    const int fd = open(path.text, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail_errno(path.text);
    close(fd);
    return CLI_DONE;
}

int hub_snapshot_refer(const hub_snapshot *p, const char *revision, const char *commit)
{
    att_model_path path, unfinished;
    if (!strcmp(revision, commit))
        return CLI_DONE;
    int code = set_path(&path, "%s/refs/%s", p->root.text, revision);
    if (!code)
        code = set_path(&unfinished, "%s.unfinished-%ld", path.text, (long)getpid());
    if (!code)
        code = cli_make_folder_of(path.text);
    if (code)
        return code;
    FILE *file = fopen(unfinished.text, "we");
    if (!file)
        return cli_fail_errno(unfinished.text);
    const bool written = fputs(commit, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (fclose(file) || !written) {
        code = cli_fail_errno(unfinished.text);
        unlink(unfinished.text);
    }
    return code ? code : replace(unfinished.text, path.text);
}

/* ---- hashes */

static void begin_hash(hub_blob *b)
{
    char head[64];
    const bool is_git = strlen(b->file->hash) == HASH_SHA1_DIGITS;
    hash_begin(&b->hash, is_git ? HASH_SHA1 : HASH_SHA256);
    if (is_git) {
        const int n = snprintf(head, sizeof head, "blob %lld", (long long)b->file->bytes); /* which git hashes, too */
        hash_add(&b->hash, head, (size_t)n + 1);
    }
}

/* ---- blobs */

/* Opens and locks the file of the lock, whichever process has made it. */
static int open_lock(hub_blob *b, const hub_snapshot *p)
{
    att_model_path path;
    int code = set_path(&path, "%s/%s.lock", p->locks.text, b->file->hash);
    if (!code)
        code = cli_make_folder_of(path.text);
    while (!code) {
        b->lock = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664);
        if (b->lock < 0)
            return cli_fail_errno(path.text);
        code = cli_lock(b->lock, path.text, b->file->name);
        if (!code && cli_lock_is_at(b->lock, path.text))
            return CLI_DONE;
        close(b->lock);
        b->lock = -1;
    }
    return code;
}

/* Hashes what an earlier process has left of the blob, and continues behind it. */
static int continue_file(hub_blob *b)
{
    enum { BLOCK = 1 << 16 };
    static char block[BLOCK];
    ssize_t n = 0;
    while (!cli_signal && b->at <= b->file->bytes && (n = read(b->fd, block, sizeof block)) > 0) {
        hash_add(&b->hash, block, (size_t)n);
        b->at += n;
    }
    if (cli_signal)
        return CLI_INTERRUPTED;
    if (n < 0)
        return cli_fail_errno(b->unfinished.text);
    b->resumed = b->at > 0;
    return b->at > b->file->bytes ? hub_blob_restart(b) : CLI_DONE;
}

int hub_blob_open(hub_blob *b, const hub_snapshot *p, const hub_file *f)
{
    *b = (hub_blob){.file = f, .lock = -1, .fd = -1};
    int code = set_path(&b->path, "%s/blobs/%s", p->root.text, f->hash);
    if (!code)
        code = set_path(&b->unfinished, "%s.incomplete", b->path.text);
    if (!code)
        code = cli_make_folder_of(b->path.text);
    if (!code)
        code = open_lock(b, p);
    if (code || has_bytes(b->path.text, f->bytes))
        return code;
    b->fd = open(b->unfinished.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (b->fd < 0)
        return cli_fail_errno(b->unfinished.text);
    begin_hash(b);
    return continue_file(b);
}

int hub_blob_put(hub_blob *b, const void *data, size_t bytes)
{
    hash_add(&b->hash, data, bytes);
    for (const char *from = data; bytes > 0;) {
        const ssize_t n = write(b->fd, from, bytes);
        if (n < 0 && errno != EINTR)
            return cli_fail_errno(b->unfinished.text);
        if (n < 0)
            continue;
        from += n;
        bytes -= (size_t)n;
        b->at += n;
    }
    return CLI_DONE;
}

int hub_blob_restart(hub_blob *b)
{
    b->at = 0;
    b->resumed = false;
    begin_hash(b);
    return ftruncate(b->fd, 0) || lseek(b->fd, 0, SEEK_SET) < 0 ? cli_fail_errno(b->unfinished.text) : CLI_DONE;
}

int hub_blob_finish(hub_blob *b, bool *good, char found[HUB_HASH])
{
    hash_end(&b->hash, found);
    *good = b->at == b->file->bytes && !strcmp(found, b->file->hash);
    if (!*good)
        return hub_blob_restart(b);
    if (fsync(b->fd))
        return cli_fail_errno(b->unfinished.text);
    return rename(b->unfinished.text, b->path.text) ? cli_fail_errno(b->path.text) : CLI_DONE;
}

void hub_blob_close(hub_blob *b)
{
    if (b->fd >= 0 && b->at == 0 && access(b->path.text, F_OK))
        unlink(b->unfinished.text); /* nothing is in it */
    if (b->fd >= 0)
        close(b->fd);
    if (b->lock >= 0)
        close(b->lock);
    b->fd = b->lock = -1;
}
