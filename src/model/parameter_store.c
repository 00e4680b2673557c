#include "model/parameter_store.h"
#include "io/safetensors.h"
#include "io/text_file.h"
#include "io/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- random numbers */

/* Uniform in (0, 1): number i of a stream. */
static double uniform(uint64_t seed, uint64_t stream, int64_t i)
{
    uint32_t words[4];
    att_random(seed, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)},
               words);
    return ((double)words[0] + 0.5) / 4294967296.0;
}

static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), m = strlen(with);
    return n >= m && !strcmp(name + n - m, with);
}

static void initialize(const att_parameter_store *s, const char *name, const att_tensor *value)
{
    float *x = value->data;
    int64_t count = 1;
    for (int i = 0; i < value->rank; i++)
        count *= value->dim[i];
    const int last = value->rank - 1;
    const double limit = last > 0 ? sqrt(6.0 / (double)(value->dim[last - 1] + value->dim[last])) : 0;
    const uint64_t stream = att_nn_dropout_id(name, "");
    for (int64_t i = 0; i < count; i++)
        x[i] = ends(name, ".gamma") ? 1 : limit > 0 ? (float)(limit * (2 * uniform(s->seed, stream, i) - 1)) : 0;
}

/* Standard normal (Box, Muller 1958): number i of a stream */
static double normal(uint64_t seed, uint64_t stream, int64_t i)
{
    const double radius = sqrt(-2 * log(uniform(seed, stream, 2 * i)));
    return radius * cos(2 * 3.14159265358979323846 * uniform(seed, stream, 2 * i + 1));
}

void att_parameter_store_init_embedding(att_parameter_store *s, att_param *table, int64_t pad)
{
    for (int64_t p = 0; s && !s->from && p < s->count; p++) {
        const att_stored_parameter *it = &s->stored[p];
        if (it->param != table)
            continue;
        float *x = it->value.data;
        const int64_t rows = it->value.dim[0], features = it->value.dim[1];
        const uint64_t stream = att_nn_dropout_id(it->name, "normal");
        const double deviation = 1 / sqrt((double)features);
        for (int64_t i = 0; i < rows * features; i++)
            x[i] = i / features == pad ? 0 : (float)(deviation * normal(s->seed, stream, i));
        att_param_invalidate(table);
    }
}

/* ---- the loader */

static att_stored_parameter *find(const att_parameter_store *s, const char *name)
{
    for (int64_t i = 0; i < s->count; i++)
        if (!strcmp(s->stored[i].name, name))
            return &s->stored[i];
    return NULL;
}

static att_status get(att_nn_loader *loader, const char *name, int rank, const int64_t *dim, att_param **out)
{
    att_parameter_store *s = (att_parameter_store *)loader;
    const att_stored_parameter *known = find(s, name);
    if (known) {
        *out = known->param;
        return ATT_OK;
    }
    att_param *given = NULL;
    att_status e = s->from ? s->from->loader.get(&s->from->loader, name, rank, dim, &given) : ATT_OK;
    e = e ? e : att_grow(s->ctx, &s->stored, sizeof *s->stored, (size_t)s->count, 1, &s->room);
    if (e)
        return e;
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dim[i];
    att_stored_parameter *it = &s->stored[s->count];
    float *numbers = att_alloc(s->ctx, count, sizeof *numbers);
    if (!numbers)
        return ATT_ERR_MEMORY;
    snprintf(it->name, sizeof it->name, "%s", name);
    e = att_wrap(&it->value, numbers, ATT_F32, rank, dim, NULL);
    if (!e && given)
        e = att_average(s->ctx, att_param_value(given), 1, &it->value);
    else if (!e)
        initialize(s, name, &it->value);
    e = e ? e : att_param_new(s->ctx, &it->value, &it->param);
    if (e) {
        att_free(s->ctx, numbers);
        return e;
    }
    s->count++;
    *out = it->param;
    return ATT_OK;
}

att_status att_parameter_store_new(att_ctx *ctx, uint64_t seed, att_checkpoint *from, att_parameter_store **out)
{
    *out = NULL;
    att_parameter_store *s = att_calloc(ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (att_parameter_store){.loader = {.get = get}, .ctx = ctx, .from = from, .seed = seed};
    *out = s;
    return ATT_OK;
}

int64_t att_parameter_store_count(const att_parameter_store *s) { return s ? s->count : 0; }

att_param *att_parameter_store_get(const att_parameter_store *s, int64_t i, const char **name)
{
    const bool there = i >= 0 && i < att_parameter_store_count(s);
    if (name)
        *name = there ? s->stored[i].name : NULL;
    return there ? s->stored[i].param : NULL;
}

/* ---- write */

typedef struct file_name {
    char text[ATT_CHECKPOINT_NAME];
} file_name;

att_status att_parameter_store_write(const att_parameter_store *s, const char *folder, att_dtype dtype,
                                     att_parameter_naming naming, int64_t n, const char *const *names,
                                     const att_tensor *tensors)
{
    static const char *const metadata[] = {"format", "pt"};
    const size_t all = (size_t)(s->count + n);
    char path[ATT_MAX_PATH];
    file_name *theirs = att_alloc(s->ctx, (size_t)s->count, sizeof *theirs);
    const char **name = att_alloc(s->ctx, all, sizeof *name);
    att_tensor *tensor = att_alloc(s->ctx, all, sizeof *tensor);
    att_status e = theirs && name && tensor ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < s->count; i++) {
        name[i] = naming ? theirs[i].text : s->stored[i].name;
        tensor[i] = s->stored[i].value;
        if (naming)
            naming(&s->stored[i], theirs[i].text, &tensor[i]);
    }
    for (int64_t i = 0; !e && i < n; i++) {
        name[s->count + i] = names[i];
        tensor[s->count + i] = tensors[i];
    }
    e = e ? e : att_join_path(s->ctx, folder, "model.safetensors", path);
    e = e ? e
          : att_safetensors_write_in_folder(
                s->ctx, path, (int64_t)all, name, tensor,
                ATT_OPTIONS(att_safetensors_options, .dtype = dtype, .metadata = metadata, .n_metadata = 1));
    att_free(s->ctx, tensor);
    att_free(s->ctx, name);
    att_free(s->ctx, theirs);
    return e;
}

void att_parameter_store_close_checkpoint(att_parameter_store *s)
{
    att_checkpoint_close(s->from);
    s->from = NULL;
}

void att_parameter_store_free(att_parameter_store *s)
{
    if (!s)
        return;
    att_parameter_store_close_checkpoint(s);
    for (int64_t i = 0; i < s->count; i++) {
        att_param_free(s->stored[i].param);
        att_free(s->ctx, s->stored[i].value.data);
    }
    att_free(s->ctx, s->stored);
    att_free(s->ctx, s);
}
