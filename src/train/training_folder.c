/* The folder of a training: its lock, and the checkpoints that it has. */
#include "train/training_folder.h"
#include "io/install.h"
#include "io/atomic_write.h"
#include "attend_util.h"
#include "util/util.h"
#include "util/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files of the folder */

typedef struct file_name {
    char text[64];
} file_name;

/* A checkpoint in the folder. */
typedef struct saved {
    int64_t step;
    bool pause;
} saved;

static file_name name_of(saved c)
{
    file_name name;
    snprintf(name.text, sizeof name.text, "checkpoint-%010" PRId64 "%s.safetensors", c.step, c.pause ? "-pause" : "");
    return name;
}

/* Reads the name of a checkpoint; false: it is not one. */
static bool read_name(const char *name, saved *c)
{
    long long step;
    if (sscanf(name, "checkpoint-%18lld", &step) != 1 || step < 0)
        return false;
    for (int pause = 0; pause < 2; pause++) {
        *c = (saved){step, pause};
        if (!strcmp(name, name_of(*c).text))
            return true;
    }
    return false;
}

static att_status refused(const att_run *run, const char *what)
{
    return att_fail(run->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s: %s", run->folder, what,
                    strerror(errno));
}

/* Calls each(user, run, name) for all files. */
static att_status for_each_file(const att_run *run,
                                att_status (*each)(void *user, const att_run *run, const char *name), void *user)
{
    att_status s = ATT_OK;
    DIR *folder = opendir(run->folder);
    if (!folder)
        return refused(run, "cannot be listed");
    for (struct dirent *e; !s && (errno = 0, e = readdir(folder));)
        s = each(user, run, e->d_name);
    if (!s && errno)
        s = refused(run, "cannot be listed");
    closedir(folder);
    return s;
}

static att_status remove_file(const att_run *run, const char *name)
{
    char path[ATT_MAX_PATH];
    const att_status s = att_join_path(run->ctx, run->folder, name, path);
    return s ? s : unlink(path) && errno != ENOENT ? refused(run, name) : ATT_OK;
}

/* Removes a temporary file of a killed process: a name with ATT_UNFINISHED and digits at its end. */
static att_status remove_unfinished(void *user, const att_run *run, const char *name)
{
    (void)user;
    char path[ATT_MAX_PATH];
    const char *number = strstr(name, ATT_UNFINISHED);
    number = number ? number + strlen(ATT_UNFINISHED) : "";
    if (!*number || number[strspn(number, "0123456789")])
        return ATT_OK;
    const att_status s = att_join_path(run->ctx, run->folder, name, path);
    if (!s)
        att_remove_unfinished(path);
    return s;
}

typedef struct saved_list {
    saved *c;
    int64_t n;
    size_t room;
} saved_list;

static att_status add_saved(void *user, const att_run *run, const char *name)
{
    saved_list *l = user;
    saved c;
    if (!read_name(name, &c))
        return ATT_OK;
    const att_status s = att_grow(run->ctx, &l->c, sizeof c, (size_t)l->n, 1, &l->room);
    if (!s)
        l->c[l->n++] = c;
    return s;
}

/* Sorts by step; a pause comes before a checkpoint of the same step. */
static int ascending(const void *a, const void *b)
{
    const saved *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step) : y->pause - x->pause;
}

/* Lists all checkpoints, ascending; the caller frees the list after ATT_OK. */
static att_status list_saved(const att_run *run, saved_list *l)
{
    *l = (saved_list){0};
    const att_status s = for_each_file(run, add_saved, l);
    if (s)
        att_free(run->ctx, l->c);
    else if (l->n > 0)
        qsort(l->c, (size_t)l->n, sizeof *l->c, ascending);
    return s;
}

/* Returns whether checkpoint i counts: a pause is ignored if there is a newer checkpoint. */
static bool is_usable(const saved_list *l, int64_t i) { return !l->c[i].pause || i == l->n - 1; }

att_status att_run_steps(const att_run *run, int64_t **steps, int64_t *n)
{
    saved_list l;
    *steps = NULL;
    *n = 0;
    const att_status s = list_saved(run, &l);
    if (s)
        return s;
    *steps = att_alloc(run->ctx, (size_t)l.n + 1, sizeof **steps);
    for (int64_t i = 0; *steps && i < l.n; i++)
        if (is_usable(&l, i))
            (*steps)[(*n)++] = l.c[i].step;
    att_free(run->ctx, l.c);
    return *steps ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_run_newest(const att_run *run, int64_t *step)
{
    int64_t *steps, n;
    const att_status s = att_run_steps(run, &steps, &n);
    *step = !s && n > 0 ? steps[n - 1] : ATT_NO_CHECKPOINT;
    att_free(run->ctx, steps);
    return s;
}

att_status att_run_new_path(const att_run *run, int64_t step, bool pause, char path[ATT_MAX_PATH])
{
    return att_join_path(run->ctx, run->folder, name_of((saved){step, pause}).text, path);
}

att_status att_run_path(const att_run *run, int64_t step, char path[ATT_MAX_PATH])
{
    char pause[ATT_MAX_PATH];
    struct stat is;
    att_status s = att_run_new_path(run, step, false, path);
    s = s ? s : att_run_new_path(run, step, true, pause);
    if (!s && lstat(path, &is) && !lstat(pause, &is))
        memcpy(path, pause, sizeof pause);
    return s;
}

att_status att_run_checkpoint(const att_run *run, int64_t step, att_safetensors **out)
{
    char path[ATT_MAX_PATH];
    struct stat is;
    *out = NULL;
    const att_status s = att_run_path(run, step, path);
    if (s)
        return s;
    if (lstat(path, &is) == 0 && !S_ISREG(is.st_mode))
        return att_fail(run->ctx, ATT_ERR_IO, "%s: is not a file but %s", path,
                        S_ISLNK(is.st_mode) ? "a symbolic link" : "something else");
    return att_safetensors_open(run->ctx, path, out);
}

att_status att_run_remove_old(const att_run *run) { return att_run_keep(run, run->keep); }

att_status att_run_keep(const att_run *run, int64_t keep)
{
    saved_list l;
    int64_t stay = 0;
    att_status s = list_saved(run, &l);
    if (s)
        return s;
    for (int64_t i = l.n - 1; !s && i >= 0; i--)
        if (!is_usable(&l, i) || stay++ >= keep)
            s = remove_file(run, name_of(l.c[i]).text);
    att_free(run->ctx, l.c);
    return s;
}

/* ---- the lock */

static att_status lock_taken(const att_run *run)
{
    char process[24] = "";
    const ssize_t n = pread(run->lock, process, sizeof process - 1, 0);
    process[n > 0 ? strspn(process, "0123456789") : 0] = 0;
    return att_fail(run->ctx, ATT_ERR_IO, "%s: another training runs there%s%s", run->folder,
                    *process ? ", process " : "", process);
}

/* Returns whether the lock file is one that a training has made, because it will be truncated: a regular file with at
 * most a process id in it. */
static bool is_lock(const att_run *run)
{
    struct stat is;
    char text[24];
    if (fstat(run->lock, &is) || !S_ISREG(is.st_mode) || is.st_nlink > 1 || is.st_size >= (off_t)sizeof text)
        return false;
    const ssize_t n = pread(run->lock, text, sizeof text - 1, 0);
    if (n < 0)
        return false;
    text[n] = 0;
    const char *end = text + strspn(text, "0123456789");
    return end + (*end == '\n') == text + n;
}

/* Opens and locks the file. *again: another process has removed it in between, at the end of its training. */
static att_status lock_file(att_run *run, const char *path, bool *again)
{
    *again = false;
    run->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (run->lock < 0 && errno != ELOOP)
        return refused(run, "lock");
    if (run->lock < 0 || !is_lock(run))
        return att_fail(run->ctx, ATT_ERR_IO, "%s: lock is %s, not a file that a training has made", run->folder,
                        run->lock < 0 ? "a symbolic link" : "something else");
    if (flock(run->lock, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK ? lock_taken(run) : refused(run, "lock");
    *again = !att_file_has_name(run->lock, path);
    return ATT_OK;
}

static att_status acquire_lock(att_run *run)
{
    char path[ATT_MAX_PATH];
    att_status s = att_join_path(run->ctx, run->folder, "lock", path);
    bool again = true;
    while (!s && again) {
        s = lock_file(run, path, &again);
        if (again)
            close(run->lock);
    }
    if (s)
        return s;
    run->locked = true;
    /* Other processes name this one in their error messages. */
    if (ftruncate(run->lock, 0) || dprintf(run->lock, "%ld\n", (long)getpid()) < 0)
        return refused(run, "lock");
    return ATT_OK;
}

/* Returns the length of the longest part of a path, up to a slash or its end, that exists. */
static size_t existing_part(const char *path)
{
    char part[ATT_MAX_PATH];
    struct stat is;
    size_t n = strlen(path);
    while (n > 0) {
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (stat(part, &is) == 0)
            break;
        while (n > 0 && path[n - 1] == '/')
            n--;
        while (n > 0 && path[n - 1] != '/')
            n--;
    }
    return n;
}

att_status att_run_open(att_ctx *ctx, const char *folder, int64_t keep, att_run **out)
{
    *out = NULL;
    if (keep < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_run_open: keep is %" PRId64 ", expected 1 or more", keep);
    att_run *run = att_alloc(ctx, 1, sizeof *run);
    if (!run)
        return ATT_ERR_MEMORY;
    *run = (att_run){.ctx = ctx, .lock = -1, .keep = keep, .existing = SIZE_MAX};
    if (snprintf(run->folder, sizeof run->folder, "%s", folder) < (int)sizeof run->folder)
        run->existing = existing_part(folder);
    att_status s = att_make_folder(ctx, folder);
    s = s ? s : acquire_lock(run);
    s = s ? s : for_each_file(run, remove_unfinished, NULL);
    if (!s)
        att_install_discard(folder);
    if (s)
        att_run_discard(run, NULL);
    else
        *out = run;
    return s;
}

/* Removes the lock while it is held; a process that has opened it before notices that (lock_file). */
static void release_lock(att_run *run)
{
    char path[ATT_MAX_PATH];
    if (run->locked && !att_join_path(run->ctx, run->folder, "lock", path))
        unlink(path);
    if (run->lock >= 0)
        close(run->lock);
    run->locked = false;
    run->lock = -1;
}

void att_run_close(att_run *run)
{
    if (!run)
        return;
    release_lock(run);
    att_free(run->ctx, run);
}

/* Removes the file if it exists; the caller reports an earlier error. */
static void discard_file(const att_run *run, const char *name)
{
    char path[ATT_MAX_PATH];
    if (snprintf(path, sizeof path, "%s/%s", run->folder, name) < (int)sizeof path)
        remove(path);
}

void att_run_discard(att_run *run, const char *const *names)
{
    if (!run)
        return;
    for (; run->locked && run->existing < strlen(run->folder) && names && *names; names++)
        discard_file(run, *names);
    release_lock(run);
    while (strlen(run->folder) > run->existing) {
        if (rmdir(run->folder) && errno != ENOENT) /* it is not empty */
            break;
        char *end = strrchr(run->folder, '/');
        *(end ? end : run->folder) = 0;
    }
    att_free(run->ctx, run);
}
