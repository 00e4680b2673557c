#include "train/training_folder.h"
#include "io/install.h"
#include "io/atomic_write.h"
#include "io/safetensors.h"
#include "util/shape.h"
#include "attend_util.h"
#include "util/util.h"

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

struct att_run {
    att_ctx *ctx;
    int lock; /* descriptor */
    bool locked;
    int64_t keep;
    char folder[ATT_MAX_PATH];
    size_t existing; /* length of the part of `folder` that att_run_open found; the folders after it are new */
};

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

/* False: not the name of a checkpoint. */
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

/* Sorts by step; of two with the same step the pause is older. */
static int ascending(const void *a, const void *b)
{
    const saved *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step) : y->pause - x->pause;
}

/* All checkpoints, ascending; to be freed on ATT_OK. */
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

/* A pause is ignored if there is a newer checkpoint. */
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

att_status att_run_path(const att_run *run, int64_t step, char path[ATT_MAX_PATH])
{
    char pause[ATT_MAX_PATH];
    struct stat is;
    att_status s = att_join_path(run->ctx, run->folder, name_of((saved){step, false}).text, path);
    s = s ? s : att_join_path(run->ctx, run->folder, name_of((saved){step, true}).text, pause);
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

/* ---- the lock */

static att_status lock_taken(const att_run *run)
{
    char process[24] = "";
    const ssize_t n = pread(run->lock, process, sizeof process - 1, 0);
    process[n > 0 ? strspn(process, "0123456789") : 0] = 0;
    return att_fail(run->ctx, ATT_ERR_IO, "%s: another training runs there%s%s", run->folder,
                    *process ? ", process " : "", process);
}

/* The lock file is truncated below, so it must be one that a training has made: a regular file with at most a process
 * id in it. */
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

/* Length of the longest part of a path, up to a slash or its end, that exists. */
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

/* The lock is removed while it is held; a process that has opened it before then notices (lock_file). */
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

/* ---- fields, which are stored as texts */

att_field *att_fields_add(att_fields *l, const char *name, att_field_kind kind, void *value)
{
    l->field[l->n] = (att_field){.name = name, .kind = kind, .value = value};
    return &l->field[l->n++];
}

att_field *att_fields_int(att_fields *l, const char *name, int64_t value)
{
    l->whole[l->n] = value;
    att_field *f = att_fields_add(l, name, ATT_FIELD_INT, &l->whole[l->n]);
    f->setting = true;
    return f;
}

att_field *att_fields_double(att_fields *l, const char *name, double value)
{
    l->number[l->n] = value;
    att_field *f = att_fields_add(l, name, ATT_FIELD_DOUBLE, &l->number[l->n]);
    f->setting = true;
    return f;
}

void att_fields_text(att_fields *l, const char *name, const char *value)
{
    att_fields_add(l, name, ATT_FIELD_TEXT, (char *)(uintptr_t)value)->setting = true; /* only read */
}

enum { FIELD_BYTES = 24 }; /* of a number as text */

static const char *fact_text(const att_field *f, char text[FIELD_BYTES])
{
    uint64_t bits;
    if (f->kind == ATT_FIELD_TEXT)
        return f->value;
    memcpy(&bits, f->value, sizeof bits);
    if (f->kind == ATT_FIELD_INT)
        snprintf(text, FIELD_BYTES, "%" PRId64, (int64_t)bits);
    else
        snprintf(text, FIELD_BYTES, "0x%016" PRIx64, bits);
    return text;
}

/* Parses the text of a number to its bits; false: invalid. */
static bool read_bits(const att_field *f, const char *text, uint64_t *bits)
{
    char *end, again[FIELD_BYTES];
    *bits = f->kind == ATT_FIELD_INT ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 16);
    const att_field is = {.kind = f->kind, .value = bits};
    return *text && !*end && !strcmp(text, fact_text(&is, again));
}

/* The value in readable form, for messages. */
static const char *show_field(const att_field *f, const char *text, char shown[64])
{
    uint64_t bits;
    double x;
    if (f->kind == ATT_FIELD_DOUBLE && read_bits(f, text, &bits)) {
        memcpy(&x, &bits, sizeof x);
        snprintf(shown, 64, "%.17g", x);
    } else {
        snprintf(shown, 64, f->kind == ATT_FIELD_TEXT ? "\"%.60s\"" : "%.60s", text);
    }
    return shown;
}

static att_status check_field(const att_run *run, const char *path, const att_safetensors *file, const att_field *f)
{
    char number[FIELD_BYTES], is[64], here[64];
    uint64_t bits;
    const char *text = att_safetensors_metadata(file, f->name);
    if (!text && f->optional)
        return ATT_OK;
    if (!text)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: there is no \"%s\"", path, f->name);
    const bool differs = f->setting && strcmp(text, fact_text(f, number)) != 0;
    if (differs && f->sum_of)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: is of a training with other %s", path, f->sum_of);
    if (differs)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" is %s but here it is %s", path, f->name,
                        show_field(f, text, is), show_field(f, fact_text(f, number), here));
    if (f->kind == ATT_FIELD_TEXT && !f->setting && strlen(text) >= f->room)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" has %zu bytes but here is room for %zu", path, f->name,
                        strlen(text), f->room - 1);
    if (f->kind != ATT_FIELD_TEXT && !read_bits(f, text, &bits))
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" is \"%.60s\", which is no number", path, f->name, text);
    return ATT_OK;
}

static void read_field(const att_safetensors *file, const att_field *f)
{
    uint64_t bits;
    const char *text = att_safetensors_metadata(file, f->name);
    if (f->setting || !text)
        return;
    if (f->kind == ATT_FIELD_TEXT)
        memcpy(f->value, text, strlen(text) + 1);
    else if (read_bits(f, text, &bits))
        memcpy(f->value, &bits, sizeof bits);
}

/* ---- saving */

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

static att_status check_newest(const att_run *run, int64_t step)
{
    int64_t newest;
    const att_status s = att_run_newest(run, &newest);
    if (s || (step >= 0 && step >= newest))
        return s;
    return att_fail(run->ctx, ATT_ERR_ARGUMENT,
                    "%s: a checkpoint of step %" PRId64 " would not be the newest: there is one of step %" PRId64,
                    run->folder, step, att_max(newest, 0));
}

static att_status write_file(const att_run *run, const char *path, const att_run_state *state, const char **metadata,
                             char (*numbers)[FIELD_BYTES])
{
    for (int64_t i = 0; i < state->n_fields; i++) {
        metadata[2 * i] = state->fields[i].name;
        metadata[2 * i + 1] = fact_text(&state->fields[i], numbers[i]);
    }
    return att_safetensors_write_in_folder(
        run->ctx, path, state->n, state->names, state->tensors,
        ATT_OPTIONS(att_safetensors_options, .metadata = metadata, .n_metadata = state->n_fields));
}

att_status att_run_save(const att_run *run, int64_t step, bool pause, const att_run_state *state)
{
    char path[ATT_MAX_PATH];
    const char **metadata = att_alloc(run->ctx, 2 * (size_t)state->n_fields, sizeof *metadata);
    char(*numbers)[FIELD_BYTES] = att_alloc(run->ctx, (size_t)state->n_fields, sizeof *numbers);
    att_status s = metadata && numbers ? ATT_OK : ATT_ERR_MEMORY;
    s = s ? s : check_newest(run, step);
    s = s ? s : att_run_remove_old(run); /* those that a killed process has left */
    s = s ? s : att_join_path(run->ctx, run->folder, name_of((saved){step, pause}).text, path);
    s = s ? s : write_file(run, path, state, metadata, numbers);
    s = s ? s : att_run_remove_old(run);
    att_free(run->ctx, numbers);
    att_free(run->ctx, metadata);
    return s;
}

/* ---- loading */

static att_status check_tensor(const att_run *run, const char *path, const att_safetensors *file, const char *name,
                               const att_tensor *here)
{
    att_tensor is;
    const att_status s = att_safetensors_get(file, name, &is);
    if (s)
        return s;
    if (is.dtype == here->dtype && is.rank == here->rank &&
        memcmp(is.dim, here->dim, (size_t)is.rank * sizeof *is.dim) == 0)
        return ATT_OK;
    return att_fail(run->ctx, ATT_ERR_SHAPE, "%s: tensor \"%.80s\" is %s %s but here it is %s %s", path, name,
                    att_dtype_name(is.dtype), att_shape_of(&is).text, att_dtype_name(here->dtype),
                    att_shape_of(here).text);
}

/* The file has no other tensors: all names are distinct, so counting suffices. */
static att_status check_all(const att_run *run, const char *path, const att_safetensors *file,
                            const att_run_state *state)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < state->n_fields; i++)
        s = check_field(run, path, file, &state->fields[i]);
    for (int64_t i = 0; !s && i < state->n; i++)
        s = check_tensor(run, path, file, state->names[i], &state->tensors[i]);
    if (!s && att_safetensors_count(file) != state->n)
        s = att_fail(run->ctx, ATT_ERR_FORMAT, "%s: has %" PRId64 " tensors but here are %" PRId64, path,
                     att_safetensors_count(file), state->n);
    return s;
}

static att_status copy_all(const att_run *run, const att_safetensors *file, const att_run_state *state)
{
    att_tensor from;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < state->n; i++) {
        s = att_safetensors_get(file, state->names[i], &from);
        s = s ? s : att_tensor_convert(run->ctx, &from, &state->tensors[i]);
    }
    for (int64_t i = 0; !s && i < state->n_fields; i++)
        read_field(file, &state->fields[i]);
    return s;
}

att_status att_run_load(const att_run *run, int64_t step, const att_run_state *state, int64_t *loaded)
{
    char path[ATT_MAX_PATH];
    att_safetensors *file = NULL;
    att_status s = step == ATT_RUN_NEWEST ? att_run_newest(run, &step) : ATT_OK;
    if (!s && step == ATT_NO_CHECKPOINT)
        s = att_fail(run->ctx, ATT_ERR_IO, "%s: there is no checkpoint", run->folder);
    s = s ? s : att_run_path(run, step, path);
    s = s ? s : att_run_checkpoint(run, step, &file);
    s = s ? s : check_all(run, path, file, state);
    s = s ? s : copy_all(run, file, state);
    att_safetensors_free(file);
    if (!s && loaded)
        *loaded = step;
    return s;
}
