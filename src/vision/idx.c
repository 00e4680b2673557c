/* Reads IDX files, the format of MNIST (LeCun, Cortes, Burges 1998): two zero bytes, the type of the elements, the
 * number of dimensions, the dimensions as 32 bits with the highest byte first, then the elements. */
#include "vision/image_set.h"

#include <stdio.h>
#include <string.h>

enum { UNSIGNED_BYTE = 8, MAX_DIMENSIONS = 3, MAX_SIDE = 1 << 15 };

static const char *const prefixes[] = {[ATT_IMAGE_SPLIT_TRAIN] = "train", [ATT_IMAGE_SPLIT_TEST] = "t10k"};

/* Finds the name of a file of the folder: the compressed file if only that exists. */
static void file_name(const char *folder, att_image_split split, const char *rest, char name[64])
{
    const int plain = snprintf(name, 64, "%s-%s", prefixes[split], rest);
    if (att_has_file(folder, name))
        return;
    strcpy(name + plain, ".gz");
    if (!att_has_file(folder, name))
        name[plain] = 0;
}

static bool found(const char *folder)
{
    char name[64];
    bool any = false;
    for (int split = ATT_IMAGE_SPLIT_TRAIN; split <= ATT_IMAGE_SPLIT_TEST; split++) {
        file_name(folder, (att_image_split)split, "images-idx3-ubyte", name);
        any |= att_has_file(folder, name);
    }
    return any;
}

static int64_t read_big_endian(const unsigned char x[4])
{
    return (int64_t)x[0] << 24 | (int64_t)x[1] << 16 | (int64_t)x[2] << 8 | x[3];
}

/* Reads the header of a file with `rank` dimensions, and checks that it has exactly their elements. */
static att_status read_header(att_data_file *f, int rank, int64_t dim[MAX_DIMENSIONS])
{
    const int64_t header = 4 + 4 * rank;
    unsigned char bytes[4 + 4 * MAX_DIMENSIONS];
    if (f->bytes < header)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s has %lld bytes, fewer than the %lld of an IDX header", f->path,
                        (long long)f->bytes, (long long)header);
    att_status s = att_data_file_read(f, bytes, (size_t)header);
    if (s)
        return s;
    if (bytes[0] || bytes[1] || bytes[2] != UNSIGNED_BYTE || bytes[3] != rank)
        return att_fail(f->ctx, ATT_ERR_FORMAT,
                        "%s begins with the bytes %02x %02x %02x %02x, expected 00 00 08 %02x: IDX, bytes in %d "
                        "dimension%s",
                        f->path, bytes[0], bytes[1], bytes[2], bytes[3], rank, rank, rank > 1 ? "s" : "");
    int64_t elements = 1; /* <= 2^32 * 2^15 * 2^15 */
    for (int i = 0; i < rank; i++) {
        dim[i] = read_big_endian(bytes + 4 + 4 * i);
        if (dim[i] < 1 || (i > 0 && dim[i] > MAX_SIDE))
            return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: dimension %d is %lld, expected 1 to %lld", f->path, i,
                            (long long)dim[i], i > 0 ? (long long)MAX_SIDE : (long long)UINT32_MAX);
        elements *= dim[i];
    }
    if (f->bytes - header != elements)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s has %lld bytes after its header, which states %lld", f->path,
                        (long long)(f->bytes - header), (long long)elements);
    return ATT_OK;
}

static att_status read_images(att_image_set *s, att_data_file *f)
{
    int64_t dim[MAX_DIMENSIONS];
    att_status e = read_header(f, 3, dim);
    if (e)
        return e;
    s->info.images = dim[0];
    s->info.height = dim[1];
    s->info.width = dim[2];
    s->info.channels = 1;
    const size_t bytes = (size_t)(dim[0] * dim[1] * dim[2]);
    s->pixels = att_alloc(s->ctx, bytes, 1);
    return s->pixels ? att_data_file_read(f, s->pixels, bytes) : ATT_ERR_MEMORY;
}

static att_status read_labels(att_image_set *s, att_data_file *f)
{
    int64_t dim[MAX_DIMENSIONS];
    att_status e = read_header(f, 1, dim);
    if (e)
        return e;
    const int64_t n = dim[0];
    if (n != s->info.images)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "%s has %lld labels, but there are %lld images", f->path, (long long)n,
                        (long long)s->info.images);
    uint8_t *labels = att_alloc(s->ctx, (size_t)n, 1);
    s->classes = att_alloc(s->ctx, (size_t)n, sizeof *s->classes);
    e = labels && s->classes ? att_data_file_read(f, labels, (size_t)n) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++)
        s->classes[i] = labels[i];
    att_free(s->ctx, labels);
    return e;
}

static att_status read_file(att_image_set *s, const char *folder, att_image_split split, const char *rest,
                            att_status read(att_image_set *s, att_data_file *f))
{
    char name[64];
    att_data_file f;
    file_name(folder, split, rest, name);
    att_status e = att_data_file_open(&f, s->ctx, folder, name);
    e = e ? e : read(s, &f);
    att_data_file_close(&f);
    return e;
}

static att_status open_idx(att_image_set *s, const char *folder, att_image_split split)
{
    const att_status e = read_file(s, folder, split, "images-idx3-ubyte", read_images);
    return e ? e : read_file(s, folder, split, "labels-idx1-ubyte", read_labels);
}

const att_image_format att_format_idx = {"idx", found, open_idx};
