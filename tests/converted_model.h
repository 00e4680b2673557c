/* Models of other programs, written for a test as a folder in Hugging Face's format. */
#ifndef CONVERTED_MODEL_H
#define CONVERTED_MODEL_H

#include "attend_language.h"
#include "check.h"
#include "context.h"
#include "folder.h"

enum { MAX_CONVERTED = 128 };

typedef struct converted {
    int64_t n;
    char name[MAX_CONVERTED][64];
    att_tensor tensor[MAX_CONVERTED];
} converted;

/* A tensor [rows, columns], or [columns] if rows is 0, of this memory, which it keeps. */
static inline void converted_add(converted *c, const char *name, float *data, int64_t rows, int64_t columns)
{
    assert_true(c->n < MAX_CONVERTED);
    snprintf(c->name[c->n], sizeof c->name[0], "%s", name);
    const int64_t dim[] = {rows ? rows : columns, columns};
    assert_int_equal(att_wrap(&c->tensor[c->n++], data, ATT_F32, rows ? 2 : 1, dim, NULL), ATT_OK);
}

/* The folder with this config.json, opened */
static inline att_language_model *converted_open(const converted *c, const test_folder *folder, const char *config)
{
    const char *names[MAX_CONVERTED];
    char path[256];
    att_language_model *m = NULL;
    for (int64_t i = 0; i < c->n; i++)
        names[i] = c->name[i];
    snprintf(path, sizeof path, "%s/model.safetensors", folder->path);
    folder_write(folder, "config.json", config);
    if (att_safetensors_write(ctx, path, c->n, names, c->tensor, NULL) ||
        att_language_model_open(ctx, folder->path, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* The most probable token of logits [n] */
static inline int32_t most_probable(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        best = logits[k] > logits[best] ? k : best;
    return best;
}

#endif
