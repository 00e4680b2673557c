/* Makes sets of captioned images from a file of captions, a folder of images and a list of names. */
#include "caption/caption_file.h"
#include "image/image_files.h"
#include "vision/image_set.h"
#include "io/cancelled.h"
#include "io/line_reader.h"
#include "util/util.h"
#include "caption/plain_words.h"
#include "attend_caption.h"

#include <stdio.h>
#include <string.h>

struct att_caption_set {
    att_ctx *ctx;
    att_caption_set_info info;
    att_names paths;      /* of images */
    att_names captions;   /* of all images, one image after another */
    int64_t *offsets;     /* [images + 1]: the first caption of each image */
    att_names info_texts; /* texts of info */
    uint8_t background[3];
    bool has_background;
};

enum { SEVERAL = -1 };

/* A set under construction. */
typedef struct building {
    att_caption_set *set;
    att_caption_set_options options;
    const char *path; /* of the captions */
    att_caption_file file;
    int64_t *words;       /* [captions of the file]: of each; 0: empty */
    int64_t *first;       /* [images of the file + 1]: the index in `order` of each image's first caption */
    int32_t *order;       /* [captions of the file]: captions by image; those of an image in the order of the file */
    int32_t *chosen;      /* [images of the file]: the images of the set, in its order; the first `images` are used */
    int64_t images;       /* of the set */
    att_names found;      /* paths of the images of the folder and of its folders */
    int64_t *file_at;     /* [images of the file]: the one in `found` that has its name, from 1; 0: none; SEVERAL */
    att_bytes normalized; /* scratch */
} building;

/* ---- captions by image */

static att_status count_words(building *b)
{
    const int64_t n = (int64_t)b->file.captions.n;
    for (int64_t i = 0; i < n; i++) {
        const att_status e = att_check_cancelled(b->set->ctx, b->path);
        if (e)
            return e;
        const char *caption = att_names_at(&b->file.captions, i);
        b->normalized.count = 0;
        b->words[i] = att_plain_words((att_byte_view){caption, strlen(caption)}, &b->normalized);
        b->set->info.empty += b->words[i] == 0;
    }
    return b->normalized.status;
}

/* Sorts captions that have words by image: a counting sort. */
static void sort_by_image(building *b)
{
    const int64_t n = (int64_t)b->file.captions.n, images = att_ids_count(&b->file.images);
    for (int64_t i = 0; i < n; i++)
        b->first[b->file.image[i] + 1] += b->words[i] > 0;
    for (int64_t i = 0; i < images; i++)
        b->first[i + 1] += b->first[i];
    for (int64_t i = n; i-- > 0;) /* from the end: first[image + 1] moves down to the image's first caption */
        if (b->words[i] > 0)
            b->order[--b->first[b->file.image[i] + 1]] = (int32_t)i;
    for (int64_t i = 0; i < images; i++)
        b->first[i] = b->first[i + 1];
    b->first[images] = n - b->set->info.empty;
}

static int64_t captions_of(const building *b, int64_t image) { return b->first[image + 1] - b->first[image]; }

/* ---- which images */

/* Writes the path of an image, and sets *found: whether it exists or need not exist. It is in the folder, or otherwise
 * in one of its folders. */
static att_status find_image(const building *b, int64_t image, char path[ATT_MAX_PATH], bool *found)
{
    att_ctx *ctx = b->set->ctx;
    const char *name = att_ids_at(&b->file.images, image);
    *found = true;
    if (!b->options.images) {
        snprintf(path, ATT_MAX_PATH, "%s", name);
        return ATT_OK;
    }
    const att_status e = att_join_path(ctx, b->options.images, name, path);
    const int64_t file_at = b->file_at[image];
    if (e || att_is_file(path))
        return e;
    if (file_at == SEVERAL)
        return att_fail(ctx, ATT_ERR_FORMAT,
                        "several files in folders of %s have the name \"%s\", so that captions of it "
                        "may be of any of them",
                        b->options.images, name);
    *found = file_at > 0;
    if (*found)
        snprintf(path, ATT_MAX_PATH, "%s", att_names_at(&b->found, file_at - 1));
    return ATT_OK;
}

static att_status choose_listed(building *b, const att_where *where, att_byte_view name, bool *listed)
{
    const int64_t image = att_ids_find(&b->file.images, name);
    const int shown = (int)att_min((int64_t)name.bytes, 255);
    bool found;
    if (image < 0 || !captions_of(b, image))
        return att_fail_at(where, ATT_ERR_FORMAT, "the image \"%.*s\" has no caption in %s", shown, name.data, b->path);
    if (listed[image])
        return att_fail_at(where, ATT_ERR_FORMAT, "the image \"%.*s\" occurs a second time", shown, name.data);
    char path[ATT_MAX_PATH];
    const att_status e = find_image(b, image, path, &found);
    if (!e && !found)
        return att_fail_at(where, ATT_ERR_FORMAT, "the image \"%.*s\" is not in the folder %s", shown, name.data,
                           b->options.images);
    listed[image] = true;
    b->chosen[b->images++] = (int32_t)image;
    return e;
}

/* Selects the images of the list, in its order. */
static att_status read_list(building *b, bool *listed)
{
    att_text_lines lines = {0};
    att_text_line line;
    att_status e = att_text_lines_open(&lines, b->set->ctx, b->options.list);
    for (int64_t before = -1; !e && before < lines.lines;) {
        before = lines.lines;
        e = att_text_lines_fill(&lines);
        while (!e && att_text_lines_next(&lines, &line)) {
            const att_where where = {.ctx = lines.ctx, .path = lines.path, .number = lines.lines};
            const att_byte_view name = att_trim((att_byte_view){line.text, line.bytes});
            e = name.bytes ? choose_listed(b, &where, name, listed) : ATT_OK;
        }
    }
    att_text_lines_close(&lines);
    if (!e && !b->images)
        e = att_fail(b->set->ctx, ATT_ERR_FORMAT, "%s names no image; expected one on each line", b->options.list);
    return e;
}

static att_status choose_all(building *b)
{
    int64_t captioned = 0, missing = -1;
    for (int64_t i = 0; i < att_ids_count(&b->file.images); i++) {
        char path[ATT_MAX_PATH];
        bool found;
        if (!captions_of(b, i))
            continue;
        att_status e = att_check_cancelled(b->set->ctx, b->path);
        e = e ? e : find_image(b, i, path, &found);
        if (e)
            return e;
        captioned++;
        if (found)
            b->chosen[b->images++] = (int32_t)i;
        else if (missing < 0)
            missing = i;
    }
    b->set->info.missing = captioned - b->images;
    if (captioned == 0)
        return att_fail(b->set->ctx, ATT_ERR_FORMAT, "%s has no caption with a word", b->path);
    if (b->images == 0)
        return att_fail(b->set->ctx, ATT_ERR_FORMAT,
                        "none of the %lld images that have captions in %s is in the folder %s; one is \"%s\"",
                        (long long)captioned, b->path, b->options.images, att_ids_at(&b->file.images, missing));
    return ATT_OK;
}

static att_status choose_images(building *b)
{
    if (!b->options.list)
        return choose_all(b);
    bool *listed = att_calloc(b->set->ctx, (size_t)att_ids_count(&b->file.images), sizeof *listed);
    const att_status e = listed ? read_list(b, listed) : ATT_ERR_MEMORY;
    att_free(b->set->ctx, listed);
    return e;
}

/* Lists the images of the folder and of its folders, and counts those without a caption. */
static att_status list_folder(building *b)
{
    att_image_walk w = {.ctx = b->set->ctx, .paths = &b->found};
    if (!b->options.images)
        return ATT_OK;
    const att_status e = att_image_walk_folder(&w, b->options.images, NULL);
    for (int64_t i = 0; !e && i < (int64_t)b->found.n; i++) {
        const char *path = att_names_at(&b->found, i), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        const int64_t image = att_ids_find(&b->file.images, (att_byte_view){name, strlen(name)});
        if (image < 0 || !captions_of(b, image))
            b->set->info.uncaptioned++;
        else
            b->file_at[image] = b->file_at[image] ? SEVERAL : i + 1;
    }
    return e;
}

/* ---- the set */

static att_status add_path(building *b, int32_t image)
{
    char path[ATT_MAX_PATH];
    bool found;
    const att_status e = find_image(b, image, path, &found);
    return e ? e : att_names_add(&b->set->paths, path);
}

static att_status add_caption(building *b, int32_t i)
{
    const char *typed = att_names_at(&b->file.captions, i);
    b->set->info.max_words = att_max(b->set->info.max_words, b->words[i]);
    if (b->options.keep_text)
        return att_names_add(&b->set->captions, typed);
    b->normalized.count = 0;
    att_plain_words((att_byte_view){typed, strlen(typed)}, &b->normalized);
    return b->normalized.status ? b->normalized.status
                                : att_names_add_bytes(&b->set->captions, b->normalized.data, b->normalized.count);
}

static att_status add_images(building *b)
{
    att_caption_set *s = b->set;
    s->offsets = att_calloc(s->ctx, (size_t)b->images + 1, sizeof *s->offsets);
    att_status e = s->offsets ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < b->images; i++) {
        const int32_t image = b->chosen[i];
        e = att_check_cancelled(s->ctx, b->path);
        e = e ? e : add_path(b, image);
        for (int64_t k = b->first[image]; !e && k < b->first[image + 1]; k++)
            e = add_caption(b, b->order[k]);
        s->info.max_captions = att_max(s->info.max_captions, captions_of(b, image));
        s->offsets[i + 1] = (int64_t)s->captions.n;
    }
    s->has_background = b->options.background;
    if (s->has_background)
        memcpy(s->background, b->options.background, sizeof s->background);
    s->info.format = b->file.format;
    s->info.images = b->images;
    s->info.skipped = b->file.skipped;
    if (!e && b->file.skipped) {
        e = att_names_add(&s->info_texts, att_names_at(&b->file.bad, 0));
        s->info.bad = e ? NULL : att_names_at(&s->info_texts, 0);
    }
    s->info.captions = (int64_t)s->captions.n;
    return e;
}

static att_status build(building *b)
{
    att_ctx *ctx = b->set->ctx;
    att_status e = att_caption_file_read(&b->file, ctx, b->path, &b->options);
    if (e)
        return e;
    const size_t captions = b->file.captions.n, images = (size_t)att_ids_count(&b->file.images);
    b->words = att_alloc(ctx, captions, sizeof *b->words);
    b->order = att_alloc(ctx, captions, sizeof *b->order);
    b->first = att_calloc(ctx, images + 1, sizeof *b->first);
    b->chosen = att_alloc(ctx, images, sizeof *b->chosen);
    b->file_at = att_calloc(ctx, images + 1, sizeof *b->file_at);
    if (!b->words || !b->order || !b->first || !b->chosen || !b->file_at)
        return ATT_ERR_MEMORY;
    e = count_words(b);
    if (e)
        return e;
    sort_by_image(b);
    e = list_folder(b);
    e = e ? e : choose_images(b);
    return e ? e : add_images(b);
}

att_status att_caption_set_open(att_ctx *ctx, const char *captions, const att_caption_set_options *options,
                                att_caption_set **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"captions", captions}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    building b = {.path = captions, .normalized.ctx = ctx, .found.text.ctx = ctx, .file.ctx = ctx};
    att_status e = att_options_read(&b.options, sizeof b.options, options, "att_caption_set_options");
    if (e)
        return e;
    b.set = att_calloc(ctx, 1, sizeof *b.set);
    if (!b.set)
        return ATT_ERR_MEMORY;
    b.set->ctx = b.set->paths.text.ctx = b.set->captions.text.ctx = b.set->info_texts.text.ctx = ctx;
    e = build(&b);
    att_caption_file_free(&b.file);
    att_free(ctx, b.words);
    att_free(ctx, b.order);
    att_free(ctx, b.first);
    att_free(ctx, b.chosen);
    att_free(ctx, b.file_at);
    att_names_free(&b.found);
    att_bytes_free(&b.normalized);
    if (e)
        att_caption_set_free(b.set);
    else
        *out = b.set;
    return e;
}

/* Appends image i of s with its captions to `to`, which has room for it. */
static att_status append(const att_caption_set *s, int64_t i, att_caption_set *to)
{
    att_status e = att_names_add(&to->paths, att_names_at(&s->paths, i));
    for (int64_t k = s->offsets[i]; !e && k < s->offsets[i + 1]; k++)
        e = att_names_add(&to->captions, att_names_at(&s->captions, k));
    to->offsets[++to->info.images] = (int64_t)to->captions.n;
    to->info.max_captions = att_max(to->info.max_captions, s->offsets[i + 1] - s->offsets[i]);
    return e;
}

att_status att_caption_set_leave_out(att_caption_set *s, const bool *out)
{
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    int64_t n;
    att_status e = att_count_left(s->ctx, out, s->info.images, &n);
    if (e || n == s->info.images)
        return e;
    att_caption_set rest = {.ctx = s->ctx,
                            .info = s->info,
                            .paths.text.ctx = s->ctx,
                            .captions.text.ctx = s->ctx,
                            .info_texts = s->info_texts,
                            .has_background = s->has_background};
    memcpy(rest.background, s->background, sizeof rest.background);
    rest.info.images = rest.info.max_captions = 0; /* max_words is kept, as an upper bound */
    rest.offsets = att_calloc(s->ctx, (size_t)n + 1, sizeof *rest.offsets);
    e = rest.offsets ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < s->info.images; i++)
        e = out[i] ? ATT_OK : append(s, i, &rest);
    rest.info.captions = (int64_t)rest.captions.n;
    const att_caption_set was = *s;
    *s = e ? was : rest;
    rest = e ? rest : was;
    att_names_free(&rest.paths);
    att_names_free(&rest.captions);
    att_free(s->ctx, rest.offsets);
    return e;
}

void att_caption_set_free(att_caption_set *s)
{
    if (!s)
        return;
    att_names_free(&s->paths);
    att_names_free(&s->captions);
    att_names_free(&s->info_texts);
    att_free(s->ctx, s->offsets);
    att_free(s->ctx, s);
}

att_status att_caption_set_describe(const att_caption_set *s, att_caption_set_info *info)
{
    if (att_require(__func__, ATT_NAMED({"s", s}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &s->info, sizeof s->info, "att_caption_set_info");
}

att_status att_caption_set_read(const att_caption_set *s, int64_t i, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (i < 0 || i >= s->info.images)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "i is %lld, but there are %lld images", (long long)i,
                        (long long)s->info.images);
    const att_image_options o = {.size = sizeof o, .background = s->has_background ? s->background : NULL};
    return att_image_open(s->ctx, att_names_at(&s->paths, i), &o, out);
}

const char *att_caption_set_path(const att_caption_set *s, int64_t i)
{
    return s && i >= 0 && i < s->info.images ? att_names_at(&s->paths, i) : NULL;
}

int64_t att_caption_set_count(const att_caption_set *s, int64_t i)
{
    return s && i >= 0 && i < s->info.images ? s->offsets[i + 1] - s->offsets[i] : 0;
}

const char *att_caption_set_caption(const att_caption_set *s, int64_t i, int64_t k)
{
    return k >= 0 && k < att_caption_set_count(s, i) ? att_names_at(&s->captions, s->offsets[i] + k) : NULL;
}
