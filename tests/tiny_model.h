/* A tiny model's files, written for a test, with any part left out or wrong. The weights are those of
 * tests/golden/tiny_weights.py. */
#ifndef TINY_MODEL_H
#define TINY_MODEL_H

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void tiny_delete(const test_folder *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    assert_int_equal(remove(path), 0);
}

/* ---- weights */

typedef struct tiny_weights {
    const char *prefix;  /* before all names, NULL: "" */
    const char *without; /* this tensor is left out */
    const char *extra;   /* this one, of one number, is there too */
    const char *wider;   /* this one has a column more */
    bool gamma;          /* LayerNorm.gamma and beta for weight and bias */
    bool coarse;         /* the upper 16 bits of each number only */
    bool bf16;           /* stored so */
    const char *like[2]; /* like[0] has the numbers of like[1] */
    const void *model;   /* what the model's own function wants to know */
} tiny_weights;

typedef struct tiny_file {
    const tiny_weights *how;
    char header[1 << 15];
    size_t header_bytes, data_bytes;
    unsigned char *data;
} tiny_file;

static inline float tiny_factor(const char *name)
{
    static const struct {
        const char *part;
        float factor;
    } factors[] = {{"shared", 3},        {"embed_tokens", 3}, {"wte", 3},
                   {"lm_head", 3},       {"attn.", 0.5f},     {"fc1.weight", 2},
                   {"fc2.weight", 2},    {".fc", 0.5f},       {"layer_norm.bias", 0.5f},
                   {"logits_bias", 0.5f}};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (strstr(name, factors[i].part))
            return factors[i].factor;
    return 1;
}

/* Number i of a tensor */
static inline float tiny_number(const char *name, uint64_t i)
{
    uint64_t seed = 0;
    for (size_t c = 0; name[c]; c++)
        seed += (uint64_t)(unsigned char)name[c] * (c + 1);
    uint32_t h = (uint32_t)(i * 0x9E3779B9u + seed * 0x85EBCA77u);
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    h ^= h >> 16;
    const float x = ((float)(h >> 8) / 16777216.0f - 0.5f) * tiny_factor(name);
    const char *const norms[] = {"LayerNorm.weight", "norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"};
    for (size_t n = 0; n < sizeof norms / sizeof norms[0]; n++)
        if (strstr(name, norms[n]))
            return x + 1;
    return x;
}

/* A tensor of any shape, dim [rank] */
static inline void tiny_put_shape(tiny_file *f, const char *name, int rank, const int64_t *dim)
{
    const tiny_weights *how = f->how;
    char theirs[128], shape[64] = "";
    uint64_t count = 1;
    if (how->without && !strcmp(how->without, name))
        return;
    snprintf(theirs, sizeof theirs, "%s%s", how->prefix ? how->prefix : "", name);
    char *norm = strstr(theirs, "LayerNorm.");
    if (how->gamma && norm)
        strcpy(norm + 10, strcmp(norm + 10, "weight") == 0 ? "gamma" : "beta");
    for (int d = 0; d < rank; d++) {
        const int64_t size = dim[d] + (d == rank - 1 && how->wider && !strcmp(how->wider, name));
        const size_t at = strlen(shape);
        snprintf(shape + at, sizeof shape - at, "%s%lld", d ? "," : "", (long long)size);
        count *= (uint64_t)size;
    }
    const size_t bytes = count * (how->bf16 ? 2 : 4);
    f->header_bytes += (size_t)snprintf(f->header + f->header_bytes, sizeof f->header - f->header_bytes,
                                        "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                        f->header_bytes > 1 ? "," : "", theirs, how->bf16 ? "BF16" : "F32", shape,
                                        f->data_bytes, f->data_bytes + bytes);
    f->data = realloc(f->data, f->data_bytes + bytes);
    for (uint64_t i = 0; i < count; i++) {
        const float x = tiny_number(how->like[0] && !strcmp(how->like[0], name) ? how->like[1] : name, i);
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        if (how->coarse)
            u &= 0xffff0000u;
        const uint16_t half = (uint16_t)(u >> 16);
        memcpy(f->data + f->data_bytes + i * (how->bf16 ? 2 : 4), how->bf16 ? (void *)&half : (void *)&u,
               how->bf16 ? 2 : 4);
    }
    f->data_bytes += bytes;
}

/* A matrix; rows 0: a vector */
static inline void tiny_put(tiny_file *f, const char *name, int64_t rows, int64_t columns)
{
    const int64_t dim[] = {rows, columns};
    tiny_put_shape(f, name, rows ? 2 : 1, rows ? dim : dim + 1);
}

/* Tensors of one layer: rows 0 is a vector. */
typedef struct tiny_tensor {
    const char *name;
    int64_t rows, columns;
} tiny_tensor;

static inline void tiny_put_all(tiny_file *f, const char *prefix, const tiny_tensor *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i].name);
        tiny_put(f, name, tensors[i].rows, tensors[i].columns);
    }
}

/* model.safetensors of what `put` puts; how NULL: as it should be */
static inline void tiny_write_tensors(const test_folder *folder, const tiny_weights *how, void (*put)(tiny_file *f))
{
    tiny_file *f = calloc(1, sizeof *f);
    f->how = how ? how : &(const tiny_weights){0};
    f->header[f->header_bytes++] = '{';
    put(f);
    if (f->how->extra)
        tiny_put(f, f->how->extra, 0, 1);
    f->header[f->header_bytes++] = '}';
    while (f->header_bytes % 8)
        f->header[f->header_bytes++] = ' ';
    FILE *file = folder_open(folder, "model.safetensors");
    const uint64_t n = f->header_bytes;
    fwrite(&n, 1, sizeof n, file);
    fwrite(f->header, 1, f->header_bytes, file);
    fwrite(f->data, 1, f->data_bytes, file);
    assert_int_equal(fclose(file), 0);
    free(f->data);
    free(f);
}

/* ---- settings */

/* A file of settings [n]; the setting `key` is `value` (JSON), or is left out where that is NULL. key NULL: as they are
 * given. */
static inline void tiny_write_settings(const test_folder *folder, const char *name, const char *const (*settings)[2],
                                       size_t n, const char *key, const char *value)
{
    FILE *file = folder_open(folder, name);
    fprintf(file, "{\"transformers_version\": \"5\"");
    for (size_t i = 0; i < n; i++)
        if (!key || strcmp(key, settings[i][0]) != 0)
            fprintf(file, ", \"%s\": %s", settings[i][0], settings[i][1]);
    if (key && value)
        fprintf(file, ", \"%s\": %s", key, value);
    fprintf(file, "}\n");
    assert_int_equal(fclose(file), 0);
}

#endif
