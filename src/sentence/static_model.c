#include "sentence/static_model.h"
#include "text/tokenizer.h"
#include "util/shape.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TOKENS = 512 }; /* of model2vec, where config.json has no "max_length" */

/* ---- config.json of model2vec */

bool att_static_is_model2vec(const att_settings *config)
{
    static const char *const keys[] = {"embedding_dtype", "apply_pca", "apply_zipf", "sif_coefficient"};
    const json_t *type = att_settings_get(config, "model_type");
    bool found = json_is_string(type) && !strcmp(json_string_value(type), "model2vec");
    for (size_t i = 0; !type && i < sizeof keys / sizeof keys[0]; i++) /* its older versions wrote no type */
        found |= att_settings_has_key(config, keys[i]);
    return config->root && found;
}

att_status att_static_find(att_ctx *ctx, const char *folder, bool *model2vec)
{
    att_settings config;
    att_settings_read(&config, ctx, folder, "config.json", false);
    *model2vec = att_static_is_model2vec(&config);
    att_settings_close(&config);
    return config.status;
}

static void configure(att_model *base, att_settings *s)
{
    att_static_model *m = (att_static_model *)base;
    m->model2vec = att_static_is_model2vec(s);
    if (!m->model2vec)
        return;
    m->normalized = att_settings_bool(s, "normalize", false);
    if (!att_settings_has_key(s, "max_length"))
        m->max_tokens = MAX_TOKENS;
    else if (att_settings_has(s, "max_length")) /* null: any number */
        m->max_tokens = att_settings_int(s, "max_length", 1, INT64_MAX);
}

/* ---- tensors */

static const att_checkpoint_name names[] = {
    {"embedding.weight", "embedding.weight"}, {"embedding.weight", "embeddings"}, {0}};

/* Returns the index of the tensor with a name in the file; -1: there is none. */
static int64_t find(const att_checkpoint *c, const char *name)
{
    for (int64_t i = 0; i < c->count; i++)
        if (!strcmp(c->entry[i].name, name))
            return i;
    return -1;
}

/* Loads the table of an int8 model as it is, which att_checkpoint_load refuses. */
static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    att_checkpoint *c = ((att_static_model *)model)->model.checkpoint;
    const int64_t i = find(c, "embeddings");
    if (i < 0 || att_checkpoint_get(c, i, out) || out->dtype != ATT_I8)
        return att_checkpoint_load(c, name, rank, dim, out);
    c->used[i] = true;
    return ATT_OK;
}

/* Reads the shape of the table. */
static att_status read_shape(att_static_model *m)
{
    att_tensor table;
    const att_checkpoint *c = m->model.checkpoint;
    int64_t i = find(c, names[0].theirs);
    i = i < 0 ? find(c, names[1].theirs) : i;
    if (i < 0)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: there is neither a tensor \"%s\" nor \"%s\"", c->path,
                        names[0].theirs, names[1].theirs);
    const att_status s = att_checkpoint_get(c, i, &table);
    if (s)
        return s;
    if (table.rank != 2 || table.dim[0] < 1 || table.dim[1] < 1 || table.dim[0] > INT32_MAX)
        return att_fail(m->model.ctx, ATT_ERR_SHAPE, "%s: tensor \"%s\" is %s, not [tokens, features]", c->path,
                        c->entry[i].name, att_shape_of(&table).text);
    m->embeddings = !strcmp(c->entry[i].name, names[1].theirs);
    m->rows = m->tokens = table.dim[0];
    m->dim = table.dim[1];
    return ATT_OK;
}

/* Returns row i of "mapping", of i32 or i64. */
static int64_t row_at(const att_tensor *mapping, int64_t i)
{
    return mapping->dtype == ATT_I32 ? ((const int32_t *)mapping->data)[i] : ((const int64_t *)mapping->data)[i];
}

/* Reads "mapping" [tokens], the row of each token, if several share one (vocabulary quantization). */
static att_status read_mapping(att_static_model *m)
{
    att_ctx *ctx = m->model.ctx;
    att_checkpoint *c = m->model.checkpoint;
    att_tensor x;
    const int64_t at = find(c, "mapping");
    if (at < 0)
        return ATT_OK;
    const att_status s = att_checkpoint_get(c, at, &x);
    if (s)
        return s;
    if (x.rank != 1 || x.dim[0] < 1 || x.dim[0] > INT32_MAX || (x.dtype != ATT_I32 && x.dtype != ATT_I64))
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: tensor \"mapping\" is %s of %s, not [tokens] of i32 or i64", c->path,
                        att_shape_of(&x).text, att_dtype_name(x.dtype));
    c->used[at] = true;
    m->tokens = x.dim[0];
    m->row = att_nn_params_alloc(m->model.params, (size_t)m->tokens * sizeof *m->row);
    for (int64_t i = 0; m->row && i < m->tokens; i++) {
        const int64_t row = row_at(&x, i);
        if (row < 0 || row >= m->rows)
            return att_fail(ctx, ATT_ERR_FORMAT, "%s: mapping[%lld] is %lld, but the table has %lld rows", c->path,
                            (long long)i, (long long)row, (long long)m->rows);
        m->row[i] = (int32_t)row;
    }
    return m->row ? ATT_OK : ATT_ERR_MEMORY;
}

/* Converts "weights" -> to [tokens]; model2vec computes them in f64. */
static att_status convert_weights(const att_static_model *m, const att_safetensors_data *x, float *to)
{
    const double *doubles = x->bytes;
    const att_checkpoint *c = m->model.checkpoint;
    att_tensor from, y;
    for (int64_t i = 0; !strcmp(x->type, "F64") && i < m->tokens; i++)
        to[i] = (float)doubles[i];
    if (!strcmp(x->type, "F64"))
        return ATT_OK;
    att_status s = att_checkpoint_get(c, find(c, "weights"), &from);
    from.dim[0] = m->tokens;
    s = s ? s : att_wrap(&y, to, ATT_F32, 1, &m->tokens, NULL);
    return s ? s : att_tensor_convert(m->model.ctx, &from, &y);
}

/* Makes the parameter of factors, which does not learn and is not one of the model's. */
static att_status make_weight(att_static_model *m, const att_safetensors_data *x)
{
    att_tensor value;
    float *to = att_nn_params_alloc(m->model.params, (size_t)m->tokens * sizeof *to);
    att_status s = to ? convert_weights(m, x, to) : ATT_ERR_MEMORY;
    s = s ? s : att_wrap(&value, to, ATT_F32, ATT_DIMS(m->tokens, 1), NULL);
    s = s ? s : att_param_new(m->model.ctx, &value, &m->weight);
    att_param_set_frozen(m->weight, true);
    return s;
}

/* Reads "weights" [tokens], the factor of each token's row. */
static att_status read_weights(att_static_model *m)
{
    att_checkpoint *c = m->model.checkpoint;
    att_safetensors_data x = {.size = sizeof x};
    const int64_t at = find(c, "weights");
    if (at < 0)
        return ATT_OK;
    att_status s = att_safetensors_get_data(c->entry[at].file->data, "weights", &x);
    if (s)
        return s;
    if (x.rank != 1 || x.dim[0] < 1)
        return att_fail(m->model.ctx, ATT_ERR_SHAPE, "%s: tensor \"weights\" is %s, not [tokens]", c->path,
                        att_shape_show(x.rank, x.dim).text);
    c->used[at] = true;
    m->tokens = x.dim[0] < m->tokens ? x.dim[0] : m->tokens;
    return make_weight(m, &x);
}

static att_status build(att_model *base)
{
    att_static_model *m = (att_static_model *)base;
    att_status s = read_shape(m);
    s = s ? s : read_mapping(m);
    s = s ? s : read_weights(m);
    if (s)
        return s;
    m->table = att_nn_params_request(base->params, "embedding", "weight", 2, (const int64_t[]){m->rows, m->dim}, NULL);
    return ATT_OK;
}

/* ---- open */

static void free_model(att_model *base) { att_param_free(((att_static_model *)base)->weight); }

static const char *const unused[] = {NULL};
static const att_model_kind kind = {.bytes = sizeof(att_static_model),
                                    .settings_optional = true,
                                    .configure = configure,
                                    .build = build,
                                    .load_parameter = load,
                                    .names = names,
                                    .prefix = "",
                                    .unused = unused,
                                    .free = free_model};

/* Sets the limits of a text, and checks that the table has all tokens. */
static att_status check_tokenizer(att_static_model *m, const char *folder, int64_t truncation)
{
    if (att_tokenizer_size(m->tokenizer) > m->tokens)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT,
                        "%s: tokenizer.json has %lld tokens but model.safetensors has %lld", folder,
                        (long long)att_tokenizer_size(m->tokenizer), (long long)m->tokens);
    if (m->model2vec)
        return att_static_limit_characters(m);
    m->max_tokens = truncation;
    m->max_characters = -1;
    return ATT_OK;
}

att_status att_static_open(const att_model *outer, const char *folder, const att_model_extension *extension,
                           att_tokenizer **tokenizer, att_static_model **out)
{
    int64_t truncation = 0;
    att_status s = att_model_open_inside(outer, &kind, folder, extension, out);
    s = s ? s : att_bare_tokenizer_open(outer->ctx, folder, &truncation, tokenizer);
    if (s)
        return s;
    (*out)->tokenizer = *tokenizer;
    return check_tokenizer(*out, folder, truncation);
}

/* ---- apply */

/* Checks that ids [count] are tokens, as att_embedding does for rows. */
static bool check_ids(att_tape *t, const att_static_model *m, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= m->tokens)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "static embeddings: ids[%lld] is %d, but the model has %lld tokens", (long long)i,
                                 (int)ids[i], (long long)m->tokens) != NULL;
    return true;
}

/* Reads the rows of tokens that "mapping" states -> [count, dim]. */
static att_var *mapped_rows(att_tape *t, const att_static_model *m, const int32_t *ids, int64_t count)
{
    int32_t *row = att_alloc(m->model.ctx, (size_t)count + 1, sizeof *row);
    if (!row)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t i = 0; i < count; i++)
        row[i] = m->row[ids[i]];
    att_var *x = att_embedding(t, m->table, row, count);
    att_free(m->model.ctx, row);
    return x;
}

att_var *att_static_apply(att_tape *t, const att_static_model *m, const int32_t *ids, int64_t count)
{
    if (!check_ids(t, m, ids, count))
        return NULL;
    att_var *x = m->row ? mapped_rows(t, m, ids, count) : att_embedding(t, m->table, ids, count);
    return m->weight ? att_mul(t, x, att_embedding(t, m->weight, ids, count)) : x;
}

/* ---- write */

static void name_of_model2vec(const void *user, const char *ours, att_file_tensor *out)
{
    (void)user, (void)ours;
    snprintf(out->name, sizeof out->name, "%s", names[1].theirs);
}

att_status att_static_write_weights(const att_static_model *m, const char *folder, att_dtype dtype)
{
    const char *name[2];
    att_tensor beside[2];
    int64_t n = 0;
    att_status s = ATT_OK;
    if (m->row) {
        s = att_wrap(&beside[n], m->row, ATT_I32, 1, &m->tokens, NULL);
        name[n++] = "mapping";
    }
    if (!s && m->weight) {
        s = att_wrap(&beside[n], att_param_value(m->weight)->data, ATT_F32, 1, &m->tokens, NULL);
        name[n++] = "weights";
    }
    const att_parameter_naming naming = m->embeddings ? name_of_model2vec : NULL;
    return s ? s : att_model_write(&m->model, folder, dtype, naming, NULL, n, name, beside);
}
