#include "image/image_files.h"
#include "image/image.h"
#include "io/cancelled.h"
#include "io/file.h"
#include "util/util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

/* ---- which files are images */

/* Returns whether a name ends as backups of other programs do; exiftool's is ".jpg_original". They would be images a
 * second time. */
static bool is_backup(const char *name)
{
    static const char *const ends[] = {"_original", ".bak", "~"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n >= strlen(ends[i]) && !strcasecmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

/* Returns whether a file is an image: by its name, or otherwise by its first bytes, as of a JPEG file named .HEIC. */
static bool is_image(const char *path)
{
    struct stat is;
    uint8_t first[ATT_IMAGE_MAGIC];
    if (att_image_has_name(path) || is_backup(path))
        return !is_backup(path);
    const int fd = att_open_file(path, &is);
    if (fd < 0)
        return false;
    const ssize_t n = S_ISREG(is.st_mode) ? read(fd, first, sizeof first) : 0;
    close(fd);
    return n > 0 && att_image_begins_as_one(first, (size_t)n);
}

/* ---- what is passed over */

/* Writes the end of a name, from its last dot on, in lower case. Returns false if it is not a short word. */
static bool end_of(const char *name, char end[ATT_FILE_KIND_BYTES])
{
    const char *dot = strrchr(name, '.');
    const size_t n = dot ? strlen(dot) : 0;
    if (n < 2 || n >= ATT_FILE_KIND_BYTES)
        return false;
    for (size_t i = 0; i <= n; i++) {
        const unsigned char c = (unsigned char)dot[i];
        if (i > 0 && i < n && !isalnum(c))
            return false;
        end[i] = (char)tolower(c);
    }
    return true;
}

void att_image_walk_pass_over(att_image_walk *w, const char *name)
{
    att_file_kinds *k = &w->passed_over;
    char end[ATT_FILE_KIND_BYTES];
    k->n++;
    if (!end_of(name, end))
        return;
    int i = 0;
    while (i < k->kinds && strcmp(k->kind[i].name, end) != 0)
        i++;
    if (i == ATT_FILE_KINDS)
        return;
    if (i == k->kinds)
        strcpy(k->kind[k->kinds++].name, end);
    k->kind[i].n++;
}

void att_file_kinds_text(const att_file_kinds *k, char text[ATT_PASSED_OVER_BYTES])
{
    enum { SHOWN = 8 };
    bool shown[ATT_FILE_KINDS] = {false};
    int64_t rest = k->n;
    size_t n = 0;
    *text = '\0';
    for (int count = 0; count < SHOWN && count < k->kinds; count++) {
        int best = -1;
        for (int i = 0; i < k->kinds; i++)
            if (!shown[i] && (best < 0 || k->kind[i].n > k->kind[best].n))
                best = i;
        shown[best] = true;
        rest -= k->kind[best].n;
        n += (size_t)snprintf(text + n, ATT_PASSED_OVER_BYTES - n, "%s%lld %s", n ? ", " : "",
                              (long long)k->kind[best].n, k->kind[best].name);
    }
    if (rest > 0)
        snprintf(text + n, ATT_PASSED_OVER_BYTES - n, "%s%lld other%s", n ? ", " : "", (long long)rest,
                 rest == 1 ? "" : "s");
}

/* ---- the entries of a folder */

bool att_is_folder(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static int compare(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
static int is_visible(const struct dirent *e) { return e->d_name[0] != '.'; }

att_status att_folder_entries_open(att_folder_entries *l, att_ctx *ctx, const char *path)
{
    l->n = scandir(path, &l->entry, is_visible, compare);
    if (l->n >= 0)
        return ATT_OK;
    *l = (att_folder_entries){0};
    return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

void att_folder_entries_free(att_folder_entries *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->entry[i]);
    free(l->entry);
    *l = (att_folder_entries){0};
}

/* ---- the walk */

/* A folder that the walk has entered. Folders may be links to others. Each counts once, because links to links would be
 * exponentially many, and a link to a folder above it would never end. */
typedef struct folder {
    dev_t device;
    ino_t inode;
    bool left; /* the walk has left it; otherwise it is in it */
} folder;

static int compare_folders(const void *a, const void *b)
{
    const folder *x = a, *y = b;
    return x->device != y->device ? (x->device > y->device) - (x->device < y->device)
                                  : (x->inode > y->inode) - (x->inode < y->inode);
}

/* Enters a folder. *entered is NULL if the walk was in it before. */
static att_status enter(att_image_walk *w, const char *path, folder **entered)
{
    att_ctx *ctx = w->ctx;
    struct stat is;
    *entered = NULL;
    if (stat(path, &is))
        return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
    folder *f = malloc(sizeof *f);
    if (!f)
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", path);
    *f = (folder){.device = is.st_dev, .inode = is.st_ino};
    folder *const *found = tsearch(f, &w->entered, compare_folders);
    if (found && *found == f) {
        *entered = f;
        return ATT_OK;
    }
    free(f);
    if (!found)
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", path);
    return (*found)->left ? ATT_OK : att_fail(ctx, ATT_ERR_FORMAT, "%s is a link to a folder above it", path);
}

static att_status add_images(att_image_walk *w, const char *path, int depth)
{
    att_folder_entries l = {0};
    folder *entered;
    if (depth > MAX_DEPTH)
        return att_fail(w->ctx, ATT_ERR_FORMAT, "%s is inside %d folders, the limit is %d", path, depth, MAX_DEPTH);
    att_status e = enter(w, path, &entered);
    if (e || !entered)
        return e;
    e = att_folder_entries_open(&l, w->ctx, path);
    for (int i = 0; !e && i < l.n; i++) {
        char inner[ATT_MAX_PATH];
        e = att_check_cancelled(w->ctx, path);
        e = e ? e : att_join_path(w->ctx, path, l.entry[i]->d_name, inner);
        if (!e && att_is_folder(inner))
            e = add_images(w, inner, depth + 1);
        else if (!e && is_image(inner))
            e = att_names_add(w->paths, inner);
        else if (!e)
            att_image_walk_pass_over(w, l.entry[i]->d_name);
    }
    att_folder_entries_free(&l);
    entered->left = true;
    return e;
}

att_status att_image_walk_folder(att_image_walk *w, const char *path, const char *above)
{
    char without[ATT_MAX_PATH]; /* the "/" at its end */
    folder *entered;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof without)
        return att_fail(w->ctx, ATT_ERR_IO, "the path %.80s... is longer than %zu bytes", path, sizeof without - 1);
    snprintf(without, sizeof without, "%.*s", (int)n, path);
    att_status e = above ? enter(w, above, &entered) : ATT_OK;
    e = e ? e : add_images(w, without, 0);
    tdestroy(w->entered, free);
    w->entered = NULL;
    return e;
}

/* ---- the interface */

struct att_image_files {
    att_ctx *ctx;
    att_names paths;
    char kinds[ATT_PASSED_OVER_BYTES];
};

att_status att_image_files_open(att_ctx *ctx, const char *path, att_image_files **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_image_files *f = att_calloc(ctx, 1, sizeof *f);
    if (!f)
        return ATT_ERR_MEMORY;
    f->ctx = f->paths.text.ctx = ctx;
    att_image_walk w = {.ctx = ctx, .paths = &f->paths};
    const att_status e = att_image_walk_folder(&w, path, NULL);
    att_file_kinds_text(&w.passed_over, f->kinds);
    if (e)
        att_image_files_free(f);
    else
        *out = f;
    return e;
}

void att_image_files_free(att_image_files *f)
{
    if (!f)
        return;
    att_names_free(&f->paths);
    att_free(f->ctx, f);
}

int64_t att_image_files_count(const att_image_files *f) { return f ? (int64_t)f->paths.n : 0; }

const char *att_image_files_path(const att_image_files *f, int64_t i)
{
    return i >= 0 && i < att_image_files_count(f) ? att_names_at(&f->paths, i) : NULL;
}

const char *att_image_files_passed_over(const att_image_files *f) { return f ? f->kinds : NULL; }
