/* Reads a set of images that has a folder for each class. */
#include "vision/image_set.h"
#include "io/cancelled.h"
#include "util/array.h"

#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 8 };

static const char expected[] = "expected a folder for each class, with images (.jpg, .jpeg, .png, .webp) in it";

static bool is_folder(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

/* ---- the entries of a folder */

typedef struct listing {
    struct dirent **entry;
    int n;
} listing;

static int compare(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* Returns whether a file is visible. Hidden files belong to other programs, such as a file manager's thumbnails. */
static int is_visible(const struct dirent *e) { return e->d_name[0] != '.'; }

static att_status list_folder(att_ctx *ctx, const char *path, listing *out)
{
    out->n = scandir(path, &out->entry, is_visible, compare);
    if (out->n >= 0)
        return ATT_OK;
    *out = (listing){0};
    return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

static void free_listing(listing *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->entry[i]);
    free(l->entry);
}

/* ---- images of a class */

typedef struct walk {
    att_image_set *set;
    int32_t class;
    size_t room;   /* of set->classes */
    void *entered; /* the folders of the class so far, and the folder of all classes, as a tree of `folder` */
} walk;

/* A folder that the walk has entered. Folders may be links to others. Each counts once in a class, because links to
 * links would be exponentially many, and a link to a folder above it would never end. */
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
static att_status enter(walk *w, const char *path, folder **entered)
{
    att_ctx *ctx = w->set->ctx;
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

static void forget_folders(walk *w)
{
    tdestroy(w->entered, free);
    w->entered = NULL;
}

static att_status add_image(walk *w, const char *path)
{
    att_image_set *s = w->set;
    att_status e = att_grow(s->ctx, &s->classes, sizeof *s->classes, (size_t)s->info.images, 1, &w->room);
    e = e ? e : att_names_add(&s->paths, path);
    if (e)
        return e;
    s->classes[s->info.images++] = w->class;
    return ATT_OK;
}

/* Adds the images of a folder and of those in it. */
static att_status add_images(walk *w, const char *path, int depth)
{
    att_image_set *s = w->set;
    listing l = {0};
    struct folder *entered;
    if (depth > MAX_DEPTH)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "%s is %d folders below its class, the limit is %d", path, depth,
                        MAX_DEPTH);
    att_status e = enter(w, path, &entered);
    if (e || !entered)
        return e;
    e = list_folder(s->ctx, path, &l);
    for (int i = 0; !e && i < l.n; i++) {
        char inner[ATT_MAX_PATH];
        e = att_check_cancelled(s->ctx, path);
        e = e ? e : att_join_path(s->ctx, path, l.entry[i]->d_name, inner);
        if (!e && is_folder(inner))
            e = add_images(w, inner, depth + 1);
        else if (!e && att_image_has_name(inner))
            e = add_image(w, inner);
        else if (!e)
            s->info.ignored++;
    }
    free_listing(&l);
    entered->left = true;
    return e;
}

/* Adds a class. part: the folder of all classes. */
static att_status add_class(walk *w, const char *part, const char *path, const char *name)
{
    att_image_set *s = w->set;
    struct folder *above;
    const int64_t before = s->info.images;
    w->class = (int32_t)s->labels.n;
    att_status e = att_names_add(&s->labels, name);
    e = e ? e : enter(w, part, &above);
    e = e ? e : add_images(w, path, 0);
    forget_folders(w);
    if (!e && s->info.images == before)
        e = att_fail(s->ctx, ATT_ERR_FORMAT, "%s has no images; %s", path, expected);
    return e;
}

/* ---- parts */

/* Sets *has: whether the folder has folders. */
static att_status has_folders(att_ctx *ctx, const char *folder, bool *has)
{
    listing l;
    att_status e = list_folder(ctx, folder, &l);
    *has = false;
    for (int i = 0; !e && !*has && i < l.n; i++) {
        char path[ATT_MAX_PATH];
        e = att_join_path(ctx, folder, l.entry[i]->d_name, path);
        *has = !e && is_folder(path);
    }
    free_listing(&l);
    return e;
}

/* The names of parts. All except the first have the images to test with. */
static const char *const parts[] = {"train", "test", "val", "valid", "validation"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static bool is_part(const char *name)
{
    int i = 0;
    while (i < PARTS && strcmp(parts[i], name) != 0)
        i++;
    return i < PARTS;
}

/* Sets *has: whether the folder has parts. It does if `train` has folders, which are those of the classes, or if each
 * folder is a part and has folders. A part without folders is a class of this name. */
static att_status has_parts(att_ctx *ctx, const char *folder, bool *has)
{
    char path[ATT_MAX_PATH];
    listing l = {0};
    bool all = true, any = false, train = false;
    att_status e = list_folder(ctx, folder, &l);
    for (int i = 0; !e && i < l.n; i++) {
        const char *name = l.entry[i]->d_name;
        bool part = false;
        e = att_join_path(ctx, folder, name, path);
        if (e || !is_folder(path))
            continue;
        if (is_part(name))
            e = has_folders(ctx, path, &part);
        all &= part;
        any |= part;
        train |= part && !strcmp(name, parts[0]);
    }
    free_listing(&l);
    *has = train || (any && all);
    return e;
}

/* Finds the folder of a split, which is a part of this one if it has parts. */
static att_status find_part(att_ctx *ctx, const char *folder, att_image_split split, char path[ATT_MAX_PATH])
{
    const bool test = split == ATT_IMAGE_SPLIT_TEST;
    bool has = false;
    att_status e = att_join_path(ctx, folder, parts[0], path);
    e = e ? e : has_parts(ctx, folder, &has);
    if (!e && !has)
        strcpy(path, folder); /* shorter than FOLDER/train */
    if (e || !has || (!test && is_folder(path)))
        return e;
    for (int i = 1; test && i < PARTS; i++) {
        e = att_join_path(ctx, folder, parts[i], path);
        if (e || is_folder(path))
            return e;
    }
    return test ? att_fail(ctx, ATT_ERR_FORMAT, "%s has a part train, but none to test: test, val, valid or validation",
                           folder)
                : att_fail(ctx, ATT_ERR_FORMAT, "%s has a part to test, but none to learn from: train", folder);
}

static bool found(const char *folder)
{
    (void)folder;
    return true;
}

static att_status open_folders(att_image_set *s, const char *folder, att_image_split split)
{
    char part[ATT_MAX_PATH];
    walk w = {.set = s};
    listing l = {0};
    att_status e = find_part(s->ctx, folder, split, part);
    e = e ? e : list_folder(s->ctx, part, &l);
    for (int i = 0; !e && i < l.n; i++) {
        char path[ATT_MAX_PATH];
        e = att_join_path(s->ctx, part, l.entry[i]->d_name, path);
        if (!e && is_folder(path))
            e = add_class(&w, part, path, l.entry[i]->d_name);
        else if (!e)
            s->info.ignored++;
    }
    free_listing(&l);
    if (!e && !s->labels.n)
        e = att_fail(s->ctx, ATT_ERR_FORMAT, "%s has no folders; %s", part, expected);
    return e;
}

const att_image_format att_format_folders = {"folders", found, open_folders};
