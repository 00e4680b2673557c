/* Reads COCO's captions: a JSON text of up to some hundred megabytes. Images and captions are parsed one at a time. */
#include "caption/caption_file.h"
#include "io/cancelled.h"
#include "io/settings.h"
#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ENTRY = 1 << 20 }; /* bytes of an image or a caption */

typedef struct coco_image {
    int64_t id;
    int32_t image;
} coco_image;

typedef struct coco {
    att_caption_file *file;
    coco_image *image; /* [images] */
    size_t images, room;
} coco;

static int by_id(const void *x, const void *y)
{
    const int64_t a = ((const coco_image *)x)->id, b = ((const coco_image *)y)->id;
    return (a > b) - (a < b);
}

/* Reads the integer at `key`. */
static att_status read_id(const att_where *where, const json_t *entry, const char *key, int64_t *id)
{
    const json_t *value = json_object_get(entry, key);
    *id = json_integer_value(value);
    return json_is_integer(value)
               ? ATT_OK
               : att_fail_at(where, ATT_ERR_FORMAT, "\"%s\" is %s, not a whole number", key, att_json_show(value).text);
}

static att_status read_text(const att_where *where, const json_t *entry, const char *key, att_byte_view *text)
{
    const json_t *value = json_object_get(entry, key);
    if (!json_is_string(value))
        return att_fail_at(where, ATT_ERR_FORMAT, "\"%s\" is %s, not a text; COCO's captions are in captions_*.json",
                           key, att_json_show(value).text);
    *text = (att_byte_view){json_string_value(value), json_string_length(value)};
    return ATT_OK;
}

static att_status add_image(coco *c, const att_where *where, const json_t *entry)
{
    att_byte_view name;
    coco_image x;
    att_caption_file *f = c->file;
    att_status e = att_grow(f->ctx, &c->image, sizeof *c->image, c->images, 1, &c->room);
    e = e ? e : read_id(where, entry, "id", &x.id);
    e = e ? e : read_text(where, entry, "file_name", &name);
    e = e ? e : att_caption_file_add_image(f, where, name, &x.image);
    if (!e && x.image < (int32_t)c->images)
        e = att_fail_at(where, ATT_ERR_FORMAT, "the image \"%s\" occurs a second time",
                        att_ids_at(&f->images, x.image));
    if (!e)
        c->image[c->images++] = x;
    return e;
}

static att_status add_caption(coco *c, const att_where *where, const json_t *entry)
{
    att_byte_view caption;
    coco_image x = {0};
    att_status e = read_id(where, entry, "image_id", &x.id);
    e = e ? e : read_text(where, entry, "caption", &caption);
    const coco_image *found = e || !c->images ? NULL : bsearch(&x, c->image, c->images, sizeof x, by_id);
    if (!e && !found)
        e = att_fail_at(where, ATT_ERR_FORMAT, "\"image_id\" is %lld, which no image has as its \"id\"",
                        (long long)x.id);
    return e ? e : att_caption_file_add(c->file, where, found->image, caption);
}

/* Parses the next item of a list, which must be an object, into *entry. The caller frees it with json_decref. */
static att_status parse_entry(const att_where *where, att_json_scan *scan, json_t **entry)
{
    json_error_t why;
    att_json_skip_space(scan);
    const char *begin = scan->at;
    if (!att_json_skip_value(scan))
        return att_fail_at(where, ATT_ERR_FORMAT, "the file ends in it");
    const size_t bytes = (size_t)(scan->at - begin);
    if (bytes > MAX_ENTRY)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "%zu bytes, the maximum is %d", bytes, MAX_ENTRY);
    *entry = json_loadb(begin, bytes, JSON_REJECT_DUPLICATES, &why);
    if (*entry)
        return ATT_OK;
    return json_error_code(&why) == json_error_out_of_memory ? att_fail_at(where, ATT_ERR_MEMORY, "out of memory")
                                                             : att_fail_at(where, ATT_ERR_FORMAT, "%s", why.text);
}

/* Calls add for each item of the list `key`; `what` is an item's name in errors. */
static att_status each(coco *c, const char *path, att_json_scan scan, const char *key, const char *what,
                       att_status (*add)(coco *c, const att_where *where, const json_t *entry))
{
    char of[ATT_MAX_PATH + 32];
    att_where where = {.ctx = c->file->ctx, .of = of, .number = 1};
    snprintf(of, sizeof of, "%s: %s", path, what);
    if (!att_json_find_key(&scan, key) || !att_json_accept(&scan, '['))
        return att_fail(c->file->ctx, ATT_ERR_FORMAT,
                        "%s has no list \"%s\"; COCO's captions have \"images\" and \"annotations\"", path, key);
    if (att_json_accept(&scan, ']'))
        return ATT_OK;
    do {
        json_t *entry = NULL;
        att_status e = att_check_cancelled(c->file->ctx, path);
        e = e ? e : parse_entry(&where, &scan, &entry);
        e = e ? e : add(c, &where, entry);
        json_decref(entry);
        if (e)
            return e;
        where.number++;
    } while (att_json_accept(&scan, ','));
    return att_json_accept(&scan, ']')
               ? ATT_OK
               : att_fail(c->file->ctx, ATT_ERR_FORMAT, "%s: the list \"%s\" is not closed", path, key);
}

att_status att_caption_file_read_coco(att_caption_file *f, const char *path, att_json_scan text)
{
    coco c = {.file = f};
    f->format = "COCO";
    att_status e = each(&c, path, text, "images", "image", add_image);
    if (!e && c.images)
        qsort(c.image, c.images, sizeof *c.image, by_id);
    for (size_t i = 1; !e && i < c.images; i++)
        if (c.image[i - 1].id == c.image[i].id)
            e = att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the images \"%s\" and \"%s\" both have the \"id\" %lld", path,
                         att_ids_at(&f->images, c.image[i - 1].image), att_ids_at(&f->images, c.image[i].image),
                         (long long)c.image[i].id);
    e = e ? e : each(&c, path, text, "annotations", "annotation", add_caption);
    att_free(f->ctx, c.image);
    return e;
}
