/* Opens models in several .gguf files, as llama-gguf-split writes them: NAME-00001-of-00003.gguf and so on. Each file
 * has its number in "split.no", from 0 on, and "split.count"; the first one has all values of the model, and the number
 * of all tensors in "split.tensors.count". */
#include "io/gguf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 99999, END = sizeof "-00001-of-00003.gguf" - 1 };

/* Sets the path of part i: the path of the first one with another number. */
static att_status set_path(const att_gguf *g, int64_t i, int64_t parts, char path[ATT_MAX_PATH])
{
    const int n = snprintf(path, ATT_MAX_PATH, "%.*s-%05lld-of-%05lld.gguf", (int)strlen(g->label) - END, g->label,
                           (long long)i + 1, (long long)parts);
    return n < ATT_MAX_PATH ? ATT_OK : att_fail(g->ctx, ATT_ERR_ARGUMENT, "%s: the path is too long", g->label);
}

/* Checks that g is the first of its parts, and has the name by which the others are found. */
static void check_first(att_gguf *g, int64_t part, int64_t parts)
{
    char expected[64];
    const size_t n = strlen(g->label);
    snprintf(expected, sizeof expected, "-%05lld-of-%05lld.gguf", (long long)part + 1, (long long)parts);
    if (n <= END || strcmp(g->label + n - END, expected) != 0)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED,
                      "is part %lld of a model in %lld files (split.count), and its name should end in %s, by which "
                      "the others are found: give all of them the names that they had",
                      (long long)part + 1, (long long)parts, expected);
    else if (part > 0)
        att_gguf_fail(g, ATT_ERR_ARGUMENT,
                      "is part %lld of a model in %lld files; give the first one, which ends in -00001-of-%05lld.gguf",
                      (long long)part + 1, (long long)parts, (long long)parts);
}

/* Returns a value of a part; -1: it has none. */
static int64_t read_number(att_gguf *g, const char *key, int64_t max)
{
    return att_gguf_has(g, key) ? att_gguf_int(g, key, 0, max) : -1;
}

/* Checks a number of the file p, which should be part i. */
static void check_number(att_gguf *p, const char *key, int64_t expected, int64_t i, int64_t parts)
{
    const int64_t is = att_gguf_int(p, key, 0, MAX_PARTS);
    if (is != expected)
        att_gguf_fail(p, ATT_ERR_FORMAT, "\"%s\" is %lld, not %lld as in part %lld of a model in %lld files", key,
                      (long long)is, (long long)expected, (long long)i + 1, (long long)parts);
}

/* Opens part i, and checks that it is that one. */
static att_status open_part(att_gguf *g, int64_t i, int64_t parts)
{
    char path[ATT_MAX_PATH];
    att_status s = set_path(g, i, parts, path);
    if (!s && !att_is_file(path))
        s = att_fail(g->ctx, ATT_ERR_IO, "%s, part %lld of this model, is missing", path, (long long)i + 1);
    s = s ? s : att_gguf_open_file(g->ctx, path, &g->part[g->parts]);
    if (s)
        return s;
    att_gguf *p = g->part[g->parts++];
    check_number(p, "split.no", i, i, parts);
    check_number(p, "split.count", parts, i, parts);
    return p->status;
}

/* Adds the tensors of all other parts to those of the first. */
static void add_tensors(att_gguf *g)
{
    int64_t n = g->n_tensors;
    for (int64_t i = 0; i < g->parts; i++)
        n += g->part[i]->n_tensors;
    const int64_t expected = read_number(g, "split.tensors.count", INT32_MAX);
    if (expected >= 0 && expected != n)
        att_gguf_fail(g, ATT_ERR_FORMAT, "its %lld files have %lld tensors, but \"split.tensors.count\" is %lld",
                      (long long)g->parts + 1, (long long)n, (long long)expected);
    att_gguf_entry *all = g->status ? NULL : att_calloc(g->ctx, (size_t)n, sizeof *all);
    if (!all) {
        g->status = g->status ? g->status : ATT_ERR_MEMORY;
        return;
    }
    memcpy(all, g->tensor, (size_t)g->n_tensors * sizeof *all);
    n = g->n_tensors;
    for (int64_t i = 0; i < g->parts; n += g->part[i++]->n_tensors)
        memcpy(all + n, g->part[i]->tensor, (size_t)g->part[i]->n_tensors * sizeof *all);
    att_free(g->ctx, g->tensor);
    g->tensor = all;
    g->n_tensors = n;
    att_gguf_sort_tensors(g);
}

/* Opens the other parts of a model in `parts` files. */
static void open_others(att_gguf *g, int64_t parts)
{
    g->part = att_calloc(g->ctx, (size_t)parts - 1, sizeof *g->part);
    g->status = g->part ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 1; !g->status && i < parts; i++)
        g->status = open_part(g, i, parts);
    if (!g->status)
        add_tensors(g);
}

att_status att_gguf_open(att_ctx *ctx, const char *path, att_gguf **out)
{
    att_gguf *g;
    att_status s = att_gguf_open_file(ctx, path, &g);
    *out = NULL;
    if (s)
        return s;
    const int64_t parts = read_number(g, "split.count", MAX_PARTS), part = read_number(g, "split.no", MAX_PARTS);
    if (parts > 1)
        check_first(g, part < 0 ? 0 : part, parts);
    if (!g->status && parts > 1)
        open_others(g, parts);
    s = g->status;
    if (s)
        att_gguf_free(g);
    else
        *out = g;
    return s;
}
