#include "training_images.h"
#include "cli/base/command.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/model/checkpoints.h"

#include <attend_util.h>
#include <attend_vision.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4300 };

/* ---- one file */

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)((uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec);
}

static bool describe(const struct stat *s, cli_image_file *f)
{
    f->bytes = s->st_size;
    f->changed = nanoseconds(s->st_mtim);
    f->status = nanoseconds(s->st_ctim);
    return S_ISREG(s->st_mode);
}

/* Reads the properties of a file. Many threads may call it at the same time. Returns false if it cannot be read. */
static bool read_file(const char *path, cli_image_file *f)
{
    unsigned char block[1 << 14];
    struct stat s;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &s) == 0 && describe(&s, f);
    ssize_t n = 0;
    f->checksum = 0;
    while (ok && (n = read(fd, block, sizeof block)) != 0) {
        ok = n > 0 || errno == EINTR;
        if (n > 0)
            f->checksum = cli_training_checksum(f->checksum, block, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Returns whether the file has the known content. With unchanged size and times it is not read. */
static bool is_same(const char *path, const cli_image_file *known)
{
    cli_image_file is;
    struct stat s;
    if (stat(path, &s) == 0 && describe(&s, &is) && is.bytes == known->bytes && is.changed == known->changed &&
        is.status == known->status)
        return true;
    return read_file(path, &is) && is.bytes == known->bytes && is.checksum == known->checksum;
}

/* Returns the last part of a path, as a field of a line; NULL: out of memory. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *p = slash ? slash + 1 : path;
    char *name = malloc(3 * strlen(p) + 1), *to = name;
    for (; name && *p; p++)
        if ((unsigned char)*p < 0x20 || *p == '%')
            to += sprintf(to, "%%%02x", (unsigned)(unsigned char)*p);
        else
            *to++ = *p;
    if (name)
        *to = 0;
    return name;
}

/* ---- the list in the folder */

static int path_of_list(const cli_training_images *t, char path[PATH])
{
    return snprintf(path, PATH, "%s/images.tsv", t->folder) < PATH
               ? CLI_DONE
               : cli_fail("%.80s...: the path is too long", t->folder);
}

static void *grown(void *array, int64_t n, int64_t more, size_t size)
{
    return realloc(array, (size_t)(n + more) * size);
}

static int parse_line(cli_training_images *t, const char *path, char *line)
{
    cli_image_file f = {0};
    unsigned long long sum;
    long long bytes, changed, status;
    int broken, at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%16llx\t%lld\t%lld\t%lld\t%1d\t%n", &sum, &bytes, &changed, &status, &broken, &at) != 5 || !at)
        return cli_fail("%s: line %lld is not one that a training has written", path, (long long)t->n_known + 1);
    f = (cli_image_file){sum, bytes, changed, status, broken != 0, strdup(line + at), NULL, 0};
    if (t->n_known % 1024 == 0) {
        cli_image_file *all = grown(t->known, t->n_known, 1024, sizeof *all);
        if (!all) {
            free(f.name);
            return cli_fail_memory();
        }
        t->known = all;
    }
    t->known[t->n_known++] = f;
    return f.name ? CLI_DONE : cli_fail_memory();
}

/* Reads the list of images. Trainings of older versions have none. */
static int read_list(cli_training_images *t)
{
    char path[PATH], *line = NULL;
    size_t room = 0;
    int code = path_of_list(t, path);
    const int fd = code ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!code && fd < 0)
        return errno == ENOENT ? CLI_DONE : cli_fail_errno(path);
    FILE *f = code ? NULL : fdopen(fd, "rb");
    if (!code && !f) {
        close(fd);
        return cli_fail_errno(path);
    }
    while (!code && getline(&line, &room, f) > 0)
        code = parse_line(t, path, line);
    if (!code && ferror(f))
        code = cli_fail_errno(path);
    free(line);
    if (f)
        fclose(f);
    return code;
}

int cli_training_images_write(const cli_training_images *t, bool *made)
{
    char path[PATH];
    struct stat s;
    cli_output out = {0};
    *made = false;
    if (!t || t->resume || !t->n)
        return CLI_DONE;
    int code = path_of_list(t, path);
    *made = !code && lstat(path, &s) != 0;
    if (!code && !*made && !S_ISREG(s.st_mode))
        return cli_fail("%s: is %s, not a file", path, S_ISLNK(s.st_mode) ? "a symbolic link" : "something else");
    if (!code)
        code = cli_output_open(&out, path);
    if (code)
        return code;
    for (int64_t i = 0; i < t->n; i++) {
        const cli_image_file *f = &t->file[i];
        fprintf(out.file, "%016llx\t%lld\t%lld\t%lld\t%d\t%s\n", (unsigned long long)f->checksum, (long long)f->bytes,
                (long long)f->changed, (long long)f->status, f->broken, f->name);
    }
    return cli_output_close(&out, code);
}

void cli_training_images_discard(const cli_training_images *t)
{
    char path[PATH];
    if (t && snprintf(path, sizeof path, "%s/images.tsv", t->folder) < PATH)
        unlink(path);
}

void cli_training_images_free(cli_training_images *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        free(t->file[i].name);
        free(t->file[i].path);
    }
    for (int64_t i = 0; i < t->n_known; i++)
        free(t->known[i].name);
    free(t->file);
    free(t->known);
}

/* ---- checking many */

enum { BLOCK = 256 }; /* images between two reports of progress */

typedef struct checking {
    cli_training_images *t;
    const char *(*path)(const void *set, int64_t i);
    const void *set;
    int64_t first, n; /* images of the block */
    bool compares;    /* compare with those of the training that continues */
    cli_image_file file[BLOCK];
    bool wrong[BLOCK];
    bool failed[BLOCK]; /* not because of the image: memory is lacking, or the work was cancelled */
    char why[BLOCK][400];
} checking;

/* Returns the checksum of an image's size and pixels. */
static uint64_t sum_pixels(const att_image *i)
{
    const int64_t size[] = {i->height, i->width, i->channels};
    return cli_training_checksum(cli_training_checksum(0, size, sizeof size), i->pixels,
                                 (size_t)(i->height * i->width * i->channels));
}

/* Errors of the library belong to the thread. */
static void check_one(void *arg, int i)
{
    checking *c = arg;
    cli_image_file *f = &c->file[i];
    const char *path = c->path(c->set, c->first + i);
    if (c->compares) {
        f->broken = c->t->known[c->t->n + i].broken;
        c->wrong[i] = !f->broken && !is_same(path, &c->t->known[c->t->n + i]);
        snprintf(c->why[i], sizeof c->why[i], "%s has another content than when the training in %s began", path,
                 c->t->folder);
        return;
    }
    att_image image;
    const att_status s = att_image_open(c->t->ctx, path, NULL, &image);
    if (!s)
        f->pixels = sum_pixels(&image);
    att_image_free(c->t->ctx, &image);
    c->wrong[i] = s != ATT_OK || !read_file(path, f);
    f->broken = c->wrong[i];
    c->failed[i] = s == ATT_ERR_MEMORY || s == ATT_ERR_CANCELLED;
    snprintf(c->why[i], sizeof c->why[i], "%s", s != ATT_OK ? att_error(c->t->ctx) : path);
}

/* Returns whether the next known files have the names of the set. If not, the training reports that its images have
 * changed.
 */
static bool is_known(const checking *c, int64_t n)
{
    const cli_training_images *t = c->t;
    bool same = t->n + n <= t->n_known;
    for (int64_t i = 0; same && i < n; i++) {
        char *name = name_of(c->path(c->set, i));
        same = name && !strcmp(name, t->known[t->n + i].name);
        free(name);
    }
    return same;
}

/* Adds the files of the block to those that were checked. */
static int add_block(checking *c, bool *broken, int64_t *wrong)
{
    for (int64_t i = 0; i < c->n; i++) {
        cli_image_file *f = &c->t->file[c->t->n];
        if (c->failed[i])
            return cli_signal ? CLI_INTERRUPTED : cli_fail("%s", c->why[i]);
        *f = c->file[i];
        f->name = name_of(c->path(c->set, c->first + i));
        f->path = strdup(c->path(c->set, c->first + i));
        c->t->n++;
        if (!f->name || !f->path)
            return cli_fail_memory();
        broken[c->first + i] = f->broken;
        if (c->wrong[i])
            cli_note("%s", c->why[i]);
        *wrong += c->wrong[i];
    }
    return CLI_DONE;
}

static int check_blocks(checking *c, int64_t n, bool *broken, int64_t *wrong)
{
    cli_progress line;
    int code = CLI_DONE;
    cli_image_file *all = grown(c->t->file, c->t->n, n, sizeof *all);
    if (!all)
        return cli_fail_memory();
    c->t->file = all;
    cli_progress_begin(&line);
    for (c->first = 0; !code && c->first < n; c->first += BLOCK) {
        c->n = n - c->first < BLOCK ? n - c->first : BLOCK;
        memset(c->file, 0, sizeof c->file);
        cli_progress_show(&line, c->first, "images checked", (double)c->first / (double)n);
        att_parallel_for(c->t->ctx, (int)c->n, check_one, c);
        code = add_block(c, broken, wrong);
    }
    cli_progress_end(&line);
    return code;
}

/* Reports the number of broken or changed images, and returns the code that follows from it. */
static int conclude(const checking *c, int64_t n, int64_t wrong)
{
    if (wrong && c->compares)
        return cli_fail("%lld of %lld images have changed: begin a new training, or put them back", (long long)wrong,
                        (long long)n);
    if (wrong == n)
        return cli_fail("none of the %lld image%s can be read", (long long)n, n == 1 ? "" : "s");
    if (wrong && !c->t->skip_broken)
        return cli_fail("%lld of %lld images cannot be read; --skip-broken leaves them out", (long long)wrong,
                        (long long)n);
    if (wrong)
        cli_note("%lld of %lld images cannot be read, and %s left out", (long long)wrong, (long long)n,
                 wrong == 1 ? "is" : "are");
    return CLI_DONE;
}

int cli_training_images_check(cli_training_images *t, int64_t n, const char *(*path)(const void *set, int64_t i),
                              att_status (*leave_out)(void *set, const bool *broken), void *set)
{
    int64_t wrong = 0;
    int code = t->resume && !t->known ? read_list(t) : CLI_DONE;
    if (code)
        return code;
    checking *c = calloc(1, sizeof *c);
    bool *broken = calloc((size_t)n, sizeof *broken);
    if (!c || !broken) {
        code = cli_fail_memory();
    } else {
        *c = (checking){.t = t, .path = path, .set = set, .compares = t->resume};
        if (!t->resume || is_known(c, n)) {
            code = check_blocks(c, n, broken, &wrong);
            code = code ? code : conclude(c, n, wrong);
        }
        if (!code)
            code = cli_status(t->ctx, leave_out(set, broken));
    }
    free(broken);
    free(c);
    return code;
}
