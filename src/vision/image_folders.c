/* Reads a set of images that has a folder for each class. */
#include "vision/image_set.h"
#include "util/array.h"

#include <dirent.h>
#include <string.h>

static const char expected[] = "expected a folder for each class, with images (.jpg, .jpeg, .png, .webp, .tif) in it";

/* ---- classes */

/* Adds the class that the walk's new images have. */
static att_status add_classes(att_image_set *s, size_t *room)
{
    const size_t n = s->paths.n - (size_t)s->info.images;
    const att_status e = att_grow(s->ctx, &s->classes, sizeof *s->classes, (size_t)s->info.images, n, room);
    for (size_t i = 0; !e && i < n; i++)
        s->classes[s->info.images++] = (int32_t)s->labels.n - 1;
    return e;
}

/* Adds a class. part: the folder of all classes; room: of s->classes. */
static att_status add_class(att_image_set *s, att_image_walk *w, const char *part, const char *path, const char *name,
                            size_t *room)
{
    const size_t before = s->paths.n;
    att_status e = att_names_add(&s->labels, name);
    e = e ? e : att_image_walk_folder(w, path, part);
    if (!e && s->paths.n == before) {
        char rest[ATT_PASSED_OVER_BYTES];
        att_file_kinds_text(&w->passed_over, rest);
        return att_fail(s->ctx, ATT_ERR_FORMAT, "%s has no images%s%s%s; %s", path, *rest ? " (passed over: " : "",
                        rest, *rest ? ")" : "", expected);
    }
    return e ? e : add_classes(s, room);
}

/* ---- parts */

/* Sets *has: whether the folder has folders. */
static att_status has_folders(att_ctx *ctx, const char *folder, bool *has)
{
    att_folder_entries l;
    att_status e = att_folder_entries_open(&l, ctx, folder);
    *has = false;
    for (int i = 0; !e && !*has && i < l.n; i++) {
        char path[ATT_MAX_PATH];
        e = att_join_path(ctx, folder, l.entry[i]->d_name, path);
        *has = !e && att_is_folder(path);
    }
    att_folder_entries_free(&l);
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
    att_folder_entries l = {0};
    bool all = true, any = false, train = false;
    att_status e = att_folder_entries_open(&l, ctx, folder);
    for (int i = 0; !e && i < l.n; i++) {
        const char *name = l.entry[i]->d_name;
        bool part = false;
        e = att_join_path(ctx, folder, name, path);
        if (e || !att_is_folder(path))
            continue;
        if (is_part(name))
            e = has_folders(ctx, path, &part);
        all &= part;
        any |= part;
        train |= part && !strcmp(name, parts[0]);
    }
    att_folder_entries_free(&l);
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
    if (e || !has || (!test && att_is_folder(path)))
        return e;
    for (int i = 1; test && i < PARTS; i++) {
        e = att_join_path(ctx, folder, parts[i], path);
        if (e || att_is_folder(path))
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
    att_image_walk w = {.ctx = s->ctx, .paths = &s->paths};
    att_folder_entries l = {0};
    size_t room = 0;
    att_status e = find_part(s->ctx, folder, split, part);
    s->above_classes = e ? 0 : strlen(part) + 1;
    e = e ? e : att_folder_entries_open(&l, s->ctx, part);
    for (int i = 0; !e && i < l.n; i++) {
        char path[ATT_MAX_PATH];
        e = att_join_path(s->ctx, part, l.entry[i]->d_name, path);
        if (!e && att_is_folder(path))
            e = add_class(s, &w, part, path, l.entry[i]->d_name, &room);
        else if (!e)
            att_image_walk_pass_over(&w, l.entry[i]->d_name);
    }
    att_folder_entries_free(&l);
    s->info.ignored = w.passed_over.n;
    att_file_kinds_text(&w.passed_over, s->passed_over);
    if (!e && !s->labels.n)
        e = att_fail(s->ctx, ATT_ERR_FORMAT, "%s has no folders; %s", part, expected);
    return e;
}

const att_image_format att_format_folders = {"folders", found, open_folders};
