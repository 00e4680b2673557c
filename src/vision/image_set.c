/* Opens sets of labeled images in any format, numbers their labels, and reads images. */
#include "vision/image_set.h"
#include "io/cancelled.h"
#include "io/gzip_reader.h"
#include "util/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The formats. The last one is tried if no other is found. */
static const att_image_format *const formats[] = {&att_format_idx, &att_format_cifar10, &att_format_folders};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* ---- files */

bool att_has_file(const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && att_is_file(path);
}

static att_status refused(const att_data_file *f)
{
    return att_fail(f->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
}

att_status att_data_file_open(att_data_file *f, att_ctx *ctx, const char *folder, const char *name)
{
    struct stat is;
    *f = (att_data_file){.ctx = ctx, .file = -1};
    att_status s = folder ? att_join_path(ctx, folder, name, f->path) : ATT_OK;
    if (!folder && snprintf(f->path, sizeof f->path, "%s", name) >= (int)sizeof f->path)
        s = att_fail(ctx, ATT_ERR_IO, "the path %.80s... is longer than %zu bytes", name, sizeof f->path - 1);
    if (s)
        return s;
    f->file = att_open_file(f->path, &is);
    if (f->file < 0)
        return refused(f);
    if (!S_ISREG(is.st_mode)) {
        att_data_file_close(f);
        return att_fail(ctx, ATT_ERR_IO, "%s is not a file", f->path);
    }
    s = att_unpack_text(f->path, &f->file);
    if (!s && fstat(f->file, &is))
        s = refused(f);
    f->bytes = s ? 0 : is.st_size;
    if (s)
        att_data_file_close(f);
    return s;
}

att_status att_data_file_read(att_data_file *f, void *data, size_t n)
{
    enum { PART = 1 << 20 };
    for (size_t done = 0; done < n;) {
        const att_status e = att_check_cancelled(f->ctx, f->path);
        if (e)
            return e;
        const ssize_t got = read(f->file, (char *)data + done, n - done < PART ? n - done : PART);
        if (got < 0 && errno != EINTR)
            return refused(f);
        if (got == 0)
            return att_fail(f->ctx, ATT_ERR_FORMAT, "%s ended while it was read: it has become shorter", f->path);
        done += got > 0 ? (size_t)got : 0;
    }
    return ATT_OK;
}

void att_data_file_close(att_data_file *f)
{
    if (f->file >= 0)
        close(f->file);
    f->file = -1;
}

/* ---- labels */

/* Gives the classes the names 0, 1, 2 ..., as many as are used. */
static att_status number_classes(att_image_set *s)
{
    int32_t last = 0;
    att_status e = ATT_OK;
    for (int64_t i = 0; i < s->info.images; i++)
        last = (int32_t)att_max(last, s->classes[i]);
    for (int32_t c = 0; !e && c <= last; c++) {
        char name[16];
        snprintf(name, sizeof name, "%d", (int)c);
        e = att_names_add(&s->labels, name);
    }
    return e;
}

/* Returns the index of a name in labels [n], or n. */
static int64_t find_label(const char *name, const char *const *labels, int64_t n)
{
    int64_t i = 0;
    while (i < n && strcmp(labels[i], name) != 0)
        i++;
    return i;
}

/* Numbers the classes, which have names, in the order of the caller's labels [n]. */
static att_status reorder(att_image_set *s, const char *path, const char *const *labels, int64_t n)
{
    int32_t *number = att_alloc(s->ctx, s->labels.n, sizeof *number);
    att_status e = number ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t c = 0; !e && c < (int64_t)s->labels.n; c++) {
        number[c] = (int32_t)find_label(att_names_at(&s->labels, c), labels, n);
        if (number[c] == n)
            e = att_fail(s->ctx, ATT_ERR_ARGUMENT,
                         "%s has the class \"%s\", which is not one of the %lld labels: \"%s\"%s", path,
                         att_names_at(&s->labels, c), (long long)n, labels[0], n > 1 ? ", ..." : "");
    }
    for (int64_t i = 0; !e && i < s->info.images; i++)
        s->classes[i] = number[s->classes[i]];
    att_free(s->ctx, number);
    return e;
}

/* Uses the caller's labels [n] instead of the set's own names, if it has some. */
static att_status relabel(att_image_set *s, const char *path, const char *const *labels, int64_t n)
{
    att_status e = s->labels.n ? reorder(s, path, labels, n) : ATT_OK;
    for (int64_t i = 0; !e && i < s->info.images; i++)
        if (s->classes[i] >= n)
            e = att_fail(s->ctx, ATT_ERR_ARGUMENT, "%s: image %lld is of class %d, but there are %lld labels, from 0",
                         path, (long long)i, (int)s->classes[i], (long long)n);
    att_names_free(&s->labels);
    s->labels = (att_names){.text.ctx = s->ctx};
    for (int64_t i = 0; !e && i < n; i++)
        e = att_names_add(&s->labels, labels[i]);
    return e;
}

static att_status check_labels(att_ctx *ctx, const char *const *labels, int64_t n)
{
    if (labels && (n < 1 || n > INT32_MAX))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n_labels is %lld, expected 1 or more", (long long)n);
    for (int64_t i = 0; labels && i < n; i++)
        if (!labels[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "labels[%lld] is NULL", (long long)i);
    return ATT_OK;
}

/* ---- the interface */

static att_status open_folder(att_image_set *s, const char *path, att_image_split split, const char *const *labels,
                              int64_t n_labels)
{
    struct stat is;
    if (stat(path, &is))
        return att_fail(s->ctx, ATT_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(is.st_mode))
        return att_fail(s->ctx, ATT_ERR_IO,
                        "%s is not a folder; expected one with a folder of images for each class, or with IDX files, "
                        "or with CIFAR-10's batches",
                        path);
    int i = 0;
    while (i < FORMATS - 1 && !formats[i]->found(path))
        i++;
    s->info.format = formats[i]->name;
    att_status e = formats[i]->open(s, path, split);
    if (!e && labels)
        e = relabel(s, path, labels, n_labels);
    else if (!e && !s->labels.n)
        e = number_classes(s);
    s->info.classes = (int64_t)s->labels.n;
    return e;
}

att_status att_image_set_open(att_ctx *ctx, const char *path, att_image_split split, const char *const *labels,
                              int64_t n_labels, att_image_set **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if ((unsigned)split > ATT_IMAGE_SPLIT_TEST)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "split is %d, which is not an att_image_split", (int)split);
    att_status e = check_labels(ctx, labels, n_labels);
    if (e)
        return e;
    att_image_set *s = att_calloc(ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    s->ctx = s->labels.text.ctx = s->paths.text.ctx = s->groups.text.ctx = ctx;
    e = open_folder(s, path, split, labels, n_labels);
    if (e)
        att_image_set_free(s);
    else
        *out = s;
    return e;
}

void att_image_set_free(att_image_set *s)
{
    if (!s)
        return;
    att_names_free(&s->labels);
    att_names_free(&s->paths);
    att_names_free(&s->groups);
    att_free(s->ctx, s->pixels);
    att_free(s->ctx, s->classes);
    att_free(s->ctx, s);
}

att_status att_image_set_describe(const att_image_set *s, att_image_set_info *info)
{
    if (att_require(__func__, ATT_NAMED({"s", s}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_image_set_info all = s->info;
    all.passed_over = s->passed_over;
    return att_info_write(info, &all, sizeof all, "att_image_set_info");
}

const char *att_image_set_label(const att_image_set *s, int64_t i)
{
    return s && i >= 0 && i < s->info.classes ? att_names_at(&s->labels, i) : NULL;
}

int32_t att_image_set_class(const att_image_set *s, int64_t i)
{
    return s && i >= 0 && i < s->info.images ? s->classes[i] : -1;
}

const char *att_image_set_path(const att_image_set *s, int64_t i)
{
    return s && i >= 0 && i < (int64_t)s->paths.n ? att_names_at(&s->paths, i) : NULL;
}

att_status att_image_set_background(att_image_set *s, const uint8_t *background)
{
    if (att_require(__func__, ATT_NAMED({"s", s})))
        return ATT_ERR_ARGUMENT;
    s->has_background = background;
    if (background)
        memcpy(s->background, background, sizeof s->background);
    return ATT_OK;
}

/* Copies image i from memory. */
static att_status copy_image(const att_image_set *s, int64_t i, att_image *out)
{
    const att_image_set_info *x = &s->info;
    const size_t bytes = (size_t)(x->height * x->width * x->channels);
    uint8_t *pixels = att_alloc(s->ctx, bytes, 1);
    if (!pixels)
        return ATT_ERR_MEMORY;
    memcpy(pixels, s->pixels + (size_t)i * bytes, bytes);
    *out = (att_image){.height = x->height, .width = x->width, .channels = x->channels, .pixels = pixels};
    return ATT_OK;
}

att_status att_image_set_read(const att_image_set *s, int64_t i, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (i < 0 || i >= s->info.images)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "i is %lld, but there are %lld images", (long long)i,
                        (long long)s->info.images);
    const att_image_options o = {.size = sizeof o, .background = s->has_background ? s->background : NULL};
    return s->pixels ? copy_image(s, i, out) : att_image_open(s->ctx, att_names_at(&s->paths, i), &o, out);
}
