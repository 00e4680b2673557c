/* Reads the binary batches of CIFAR-10 (Krizhevsky 2009): each image is its label, then 32 x 32 values of red, of green
 * and of blue. */
#include "vision/image_set.h"
#include "util/array.h"

#include <string.h>

enum { CLASSES = 10, SIDE = 32, CHANNELS = 3, PLANE = SIDE * SIDE, RECORD = 1 + CHANNELS * PLANE };

static bool found(const char *folder)
{
    return att_has_file(folder, "data_batch_1.bin") || att_has_file(folder, "test_batch.bin");
}

static att_status read_record(att_image_set *s, att_data_file *f, int64_t i)
{
    uint8_t record[RECORD];
    const att_status e = att_data_file_read(f, record, sizeof record);
    if (e)
        return e;
    if (record[0] >= CLASSES)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "%s has the label %d, expected 0 to %d", f->path, record[0],
                        CLASSES - 1);
    uint8_t *pixel = s->pixels + i * CHANNELS * PLANE;
    for (int p = 0; p < PLANE; p++)
        for (int c = 0; c < CHANNELS; c++)
            *pixel++ = record[1 + c * PLANE + p];
    s->classes[i] = record[0];
    return ATT_OK;
}

/* Appends the images of a batch. */
static att_status read_batch(att_image_set *s, att_data_file *f, size_t room[2])
{
    const int64_t n = f->bytes / RECORD, before = s->info.images;
    if (n < 1 || f->bytes % RECORD)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "%s has %lld bytes, expected %d for each image", f->path,
                        (long long)f->bytes, RECORD);
    att_status e = att_grow(s->ctx, &s->pixels, (size_t)CHANNELS * PLANE, (size_t)before, (size_t)n, &room[0]);
    e = e ? e : att_grow(s->ctx, &s->classes, sizeof *s->classes, (size_t)before, (size_t)n, &room[1]);
    for (int64_t i = 0; !e && i < n; i++)
        e = read_record(s, f, before + i);
    s->info.images += e ? 0 : n;
    return e;
}

/* Reads the names: a line for each class, and empty lines. */
static att_status read_names(att_image_set *s, const char *folder)
{
    att_text_file f;
    att_status e = att_text_file_read(&f, s->ctx, folder, "batches.meta.txt", false);
    if (e || !f.text)
        return e;
    char *rest = f.text;
    for (char *line; !e && (line = strtok_r(rest, "\r\n", &rest));)
        e = att_names_add(&s->labels, line);
    if (!e && s->labels.n != CLASSES)
        e = att_fail(s->ctx, ATT_ERR_FORMAT, "%s has %zu names of classes, expected %d", f.path, s->labels.n, CLASSES);
    att_text_file_free(&f);
    return e;
}

static att_status open_cifar10(att_image_set *s, const char *folder, att_image_split split)
{
    static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", NULL},
                             *const test[] = {"test_batch.bin", NULL};
    size_t room[2] = {0};
    s->info.height = s->info.width = SIDE;
    s->info.channels = CHANNELS;
    att_status e = read_names(s, folder);
    for (const char *const *name = split == ATT_IMAGE_SPLIT_TRAIN ? train : test; !e && *name; name++) {
        att_data_file f;
        e = att_data_file_open(&f, s->ctx, folder, *name);
        e = e ? e : read_batch(s, &f, room);
        att_data_file_close(&f);
    }
    return e;
}

const att_image_format att_format_cifar10 = {"cifar-10", found, open_cifar10};
