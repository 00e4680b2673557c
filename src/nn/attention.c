/* Multi-head attention: self-attention, cross-attention, and incremental decoding. */
#include "nn/nn.h"

#include <string.h>

enum { MAX_PARAMS = 16 }; /* maximum parameters of a plan */

/* ---- making one */

static bool check_sizes(att_nn_params *p, const char *name, const att_nn_attention_config *c)
{
    if ((unsigned)c->qk_norm > ATT_NN_QK_NORM_ROW)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": qk_norm is %d, which is not an att_nn_qk_norm", name,
                           (int)c->qk_norm);
    return att_nn_check_size(p, name, "width", c->width) &&
           (!c->source_width || att_nn_check_size(p, name, "source_width", c->source_width)) &&
           (!c->head_dim || att_nn_check_size(p, name, "head_dim", c->head_dim)) &&
           (!c->window || att_nn_check_size(p, name, "window", c->window)) &&
           (c->plan || att_nn_check_size(p, name, "heads", c->heads));
}

/* Checks the width of the result: without W^O it is that of all heads together. */
static bool check_result(att_nn_params *p, const char *name, const att_nn_attention_config *c,
                         const att_plan_info *info)
{
    const int64_t features = info->heads * info->value_dim;
    return !c->no_output || features == c->width ||
           att_nn_fail(p, ATT_ERR_ARGUMENT,
                       "\"%s\": no_output, but heads have %lld features together and width is %lld", name,
                       (long long)features, (long long)c->width);
}

/* Chooses heads and dimensions: those of the plan, or those of the config with a plan for them. */
static bool choose_plan(att_nn_params *p, const char *name, const att_nn_attention_config *c, att_nn_attention *l,
                        att_plan_info *info)
{
    if (c->plan) {
        l->plan = c->plan;
        l->training_plan = c->training_plan ? c->training_plan : c->plan;
    } else {
        const int64_t heads = c->heads;
        if (heads < 1 || (c->head_dim == 0 && c->width % heads))
            return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": heads is %lld, expected a divisor of width, %lld", name,
                               (long long)heads, (long long)c->width);
        att_nn_plan_sizes sizes = {.heads = heads,
                                   .kv_heads = c->kv_heads ? c->kv_heads : heads,
                                   .head_dim = c->head_dim ? c->head_dim : c->width / heads,
                                   .causal = c->causal,
                                   .window = c->window,
                                   .scale = c->scale};
        l->plan = att_nn_plan(p, &sizes);
        sizes.dropout = c->dropout;
        l->training_plan = l->plan ? att_nn_plan(p, &sizes) : NULL;
    }
    *info = (att_plan_info){.size = sizeof *info};
    const att_status s = l->training_plan ? att_plan_describe(l->plan, NULL, info) : att_nn_params_status(p);
    if (s)
        att_nn_fail(p, s, "%s", att_error(NULL));
    l->heads = info->heads;
    l->kv_heads = info->kv_heads;
    l->head_dim = info->head_dim;
    return !s;
}

/* Makes the projections. PyTorch has one matrix for queries, keys and values, so the number of outputs for
 * initialization is that of all three. */
static void make_projections(att_nn_params *p, const char *name, const att_nn_attention_config *c, att_nn_attention *l,
                             const att_plan_info *info)
{
    const att_init zeros = {.size = sizeof zeros};
    const int64_t source = c->source_width ? c->source_width : c->width, queries = info->heads * info->head_dim,
                  keys = info->kv_heads * info->key_dim, values = info->kv_heads * info->value_dim,
                  all = source == c->width ? queries + keys + values : 0;
    const att_init in = {.size = sizeof in, .kind = ATT_INIT_XAVIER_UNIFORM, .fan_out = all};
    const att_init out = {.size = sizeof out, .kind = ATT_INIT_FAN_IN_UNIFORM};
    const struct {
        const att_nn_linear **layer;
        const char *name;
        int64_t in, out;
        const att_init *init;
        bool no_bias;
    } part[] = {{&l->query, "query", c->width, queries, &in, c->no_query_bias},
                {&l->key, "key", source, keys, &in, c->no_key_bias},
                {&l->value, "value", source, values, &in, c->no_value_bias},
                {&l->output, "output", info->heads * info->value_dim, c->width, &out, c->no_output_bias}};
    for (size_t i = 0; i < sizeof part / sizeof *part - c->no_output; i++)
        *part[i].layer = att_nn_linear_init(p, att_nn_join(name, part[i].name).text, part[i].in, part[i].out,
                                            part[i].init, part[i].no_bias ? NULL : &zeros);
}

static void make_norms(att_nn_params *p, const char *name, const att_nn_attention_config *c, att_nn_attention *l,
                       const att_plan_info *info)
{
    const bool row = c->qk_norm == ATT_NN_QK_NORM_ROW;
    if (c->qk_norm == ATT_NN_QK_NORM_NONE)
        return;
    l->qk_norm = c->qk_norm;
    l->query_norm = att_nn_norm_new(p, att_nn_join(name, "query_norm").text, c->qk_norm_kind,
                                    info->head_dim * (row ? info->heads : 1), c->qk_norm_eps);
    l->key_norm = att_nn_norm_new(p, att_nn_join(name, "key_norm").text, c->qk_norm_kind,
                                  info->key_dim * (row ? info->kv_heads : 1), c->qk_norm_eps);
}

/* Makes parameter i of the plan's stages, if it is per head and has a known shape; otherwise returns NULL. Matrices
 * begin with Xavier's initialization, vectors with a uniform one, single numbers with 0. */
static att_param *make_stage_param(att_nn_params *p, const char *name, const att_plan *plan, int i)
{
    static const att_init_kind kind[] = {
        [1] = ATT_INIT_CONSTANT, [2] = ATT_INIT_FAN_IN_UNIFORM, [3] = ATT_INIT_XAVIER_UNIFORM};
    att_plan_parameter_info info = {.size = sizeof info};
    const att_status s = att_plan_parameter(plan, i, &info);
    if (s)
        return att_nn_fail(p, s, "%s", att_error(NULL));
    bool known = info.rank > 0 && !info.of_mask && !info.optional;
    for (int d = 0; d < info.rank; d++)
        known = known && info.dim[d] > 0;
    const att_init init = {.size = sizeof init,
                           .kind = kind[known ? info.rank : 1],
                           .fan_in = known ? info.dim[info.rank - 1] : 0,
                           .fan_out = known && info.rank == 3 ? info.dim[1] : 0};
    return known ? att_nn_params_request(p, name, info.name, info.rank, info.dim, &init) : NULL;
}

/* Makes the n parameters of the plan's stages. */
static void make_stage_params(att_nn_params *p, const char *name, const att_nn_attention_config *c, att_nn_attention *l,
                              int n)
{
    if (c->n_shared < 0 || c->n_shared > n || (c->n_shared > 0 && !c->shared)) {
        att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": n_shared is %d, expected a pointer and 0..%d, as the plan has", name,
                    c->n_shared, n);
        return;
    }
    att_param **param = n > 0 ? att_nn_params_alloc(p, (size_t)n * sizeof *param) : NULL;
    for (int i = 0; param && i < n; i++)
        param[i] = i < c->n_shared && c->shared[i] ? c->shared[i] : make_stage_param(p, name, l->plan, i);
    l->param = param;
    l->n_params = n;
}

static const att_rotary_options *copy_rotary(att_nn_params *p, const att_rotary_options *options)
{
    att_rotary_options *copy = options ? att_nn_params_alloc(p, sizeof *copy) : NULL;
    return copy && att_nn_options_read(p, "", copy, sizeof *copy, options, "att_rotary_options") ? copy : NULL;
}

/* Returns the last part of a name: "attention" of "layer.3.attention". */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

const att_nn_attention *att_nn_attention_new(att_nn_params *p, const char *name, const att_nn_attention_config *config)
{
    att_nn_attention_config c;
    att_plan_info info;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_attention_config") || !check_sizes(p, name, &c))
        return NULL;
    att_nn_attention *l = att_nn_params_alloc(p, sizeof *l);
    if (!l || !choose_plan(p, name, &c, l, &info) || !check_result(p, name, &c, &info))
        return NULL;
    l->name = att_nn_text(p, last_part(name));
    l->dropout_id = att_nn_dropout_id(name, "output");
    l->weights_dropout_id = att_nn_dropout_id(name, "weights");
    make_projections(p, name, &c, l, &info);
    make_norms(p, name, &c, l, &info);
    make_stage_params(p, name, &c, l, info.n_params);
    l->rotary = copy_rotary(p, c.rotary);
    return att_nn_params_status(p) ? NULL : l;
}

/* ---- rows: queries, keys and values */

/* Returns [tokens, heads, dim], normalized and rotated; norm or NULL. */
static att_var *rows(att_tape *t, const att_nn_attention *l, att_var *x, int64_t heads, const att_nn_norm *norm,
                     const att_positions *at)
{
    if (norm && l->qk_norm == ATT_NN_QK_NORM_ROW)
        x = att_nn_norm_apply(t, norm, x);
    x = att_split_heads(t, x, heads);
    if (norm && l->qk_norm == ATT_NN_QK_NORM_HEAD)
        x = att_nn_norm_apply(t, norm, x);
    return l->rotary ? att_rotary(t, x, at, l->rotary) : x;
}

static att_var *queries(att_tape *t, const att_nn_attention *l, att_var *x, const att_positions *at)
{
    return rows(t, l, att_nn_linear_apply(t, l->query, x, ATT_ACTIVATION_IDENTITY, NULL), l->heads, l->query_norm, at);
}

static att_var *keys(att_tape *t, const att_nn_attention *l, att_var *source, const att_positions *at)
{
    return rows(t, l, att_nn_linear_apply(t, l->key, source, ATT_ACTIVATION_IDENTITY, NULL), l->kv_heads, l->key_norm,
                at);
}

static att_var *values(att_tape *t, const att_nn_attention *l, att_var *source)
{
    return att_split_heads(t, att_nn_linear_apply(t, l->value, source, ATT_ACTIVATION_IDENTITY, NULL), l->kv_heads);
}

/* ---- the call */

/* The arguments of one application, with defaults filled in. */
typedef struct application {
    att_nn_attention_call call;
    const att_plan *plan;
    att_attention_args args;
    int64_t whole[2], whole_source[2];     /* offsets of one sequence */
    int64_t rows;                          /* rows of x */
    att_nn_positions positions, of_source; /* of the rows of x and of the source, if they are rotated */
    att_tensor param[MAX_PARAMS];
    att_var *variable[MAX_PARAMS];
} application;

static bool fill_in_args(att_tape *t, const att_nn_attention *l, att_var *x, application *a)
{
    const att_nn_attention_call *c = &a->call;
    att_tensor value, source = {0};
    if (att_var_value(t, x, &value) || (c->source && att_var_value(t, c->source, &source)) ||
        !att_tape_options_read(t, "attention", &a->args, sizeof a->args, c->args, "att_attention_args"))
        return false;
    a->rows = value.dim[0];
    if (!c->args && !c->cache) {
        a->whole[1] = a->rows;
        a->args.n_sequences = 1;
        a->args.q_offsets = a->whole;
        a->whole_source[1] = source.dim[0];
        a->args.k_offsets = c->source && !c->same_rows ? a->whole_source : NULL;
    }
    const att_plan *training_plan = c->plan && !c->cache ? c->plan : l->training_plan;
    a->plan = c->dropout ? training_plan : l->plan;
    if (a->plan != l->plan) { /* dropout of attention weights */
        a->args.dropout_seed = c->dropout->seed ^ l->weights_dropout_id;
        a->args.sequence_ids = c->dropout->sequence_ids;
    }
    return true;
}

/* Fills in parameters of stages: the layer's as variables, otherwise those of the args. */
static bool fill_in_params(att_tape *t, const att_nn_attention *l, application *a)
{
    if (a->args.n_params > 0 && !a->args.param)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: args.param is NULL", l->name);
    if (l->n_params > MAX_PARAMS || a->args.n_params > MAX_PARAMS)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: more than %d parameters", l->name, MAX_PARAMS);
    for (int i = 0; i < a->args.n_params; i++)
        a->param[i] = a->args.param[i];
    for (int i = 0; i < l->n_params; i++) {
        if (!l->param[i])
            continue;
        a->variable[i] = att_parameter(t, l->param[i]);
        if (a->call.cache && att_var_value(t, a->variable[i], &a->param[i]))
            return false;
    }
    if (l->n_params) {
        a->args.param = a->param;
        a->args.n_params = l->n_params;
    }
    return true;
}

/* Finds the positions of queries and keys for rotation: the caller's, or counted by offsets after the cached tokens.
 * Queries that attend to the unchanged cache of a source may have any positions. */
static bool fill_in_positions(att_tape *t, const att_nn_attention *l, application *a)
{
    const att_nn_attention_call *c = &a->call;
    const att_attention_args *args = &a->args;
    const int64_t *of_keys = args->k_offsets ? args->k_offsets : args->q_offsets;
    const bool has_keys = !c->cache || !c->keep_cache; /* keys that are not in the cache */
    if (!l->rotary)
        return true;
    if (!has_keys && !c->positions)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: positions is NULL, but queries are rotated", l->name);
    if (c->positions ? !att_tape_options_read(t, "attention", &a->positions.at, sizeof a->positions.at, c->positions,
                                              "att_positions")
                     : !att_nn_positions_begin(t, &a->positions, args->q_offsets, args->n_sequences, a->rows, c->cache))
        return false;
    a->of_source.at = a->positions.at;
    return !has_keys || !c->source || c->same_rows ||
           att_nn_positions_begin(t, &a->of_source, of_keys, args->n_sequences, a->rows, c->cache);
}

static att_var *attend(att_tape *t, const att_nn_attention *l, att_var *x, const application *a)
{
    const att_nn_attention_call *c = &a->call;
    att_var *source = c->source ? c->source : x, *q = queries(t, l, x, &a->positions.at), *k = NULL, *v = NULL;
    if (!c->cache || !c->keep_cache) {
        k = keys(t, l, source, &a->of_source.at);
        v = values(t, l, source);
    }
    if (c->cache)
        return att_attend_cached(t, c->plan ? c->plan : l->plan, q, k, v, c->cache,
                                 c->args || l->n_params ? &a->args : NULL);
    return att_attend(t, a->plan, q, k, v, &a->args,
                      l->n_params ? ATT_OPTIONS(att_attend_params, .param = a->variable, .n_params = l->n_params)
                                  : NULL);
}

/* Computes y W^O + b^O, applies dropout and adds the residual; y: [tokens, heads * value_dim]. */
static att_var *result(att_tape *t, const att_nn_attention *l, att_var *y, const att_nn_attention_call *c)
{
    if (l->output)
        return att_nn_linear_dropout(t, l->output, y, c->residual, c->dropout, l->dropout_id);
    return c->residual ? att_add(t, y, c->residual) : y;
}

att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, const att_nn_attention_call *call)
{
    application a = {.call = {.size = sizeof a.call}};
    if (!att_nn_given(t, __func__, l) || !x ||
        !att_tape_options_read(t, "attention", &a.call, sizeof a.call, call, "att_nn_attention_call"))
        return NULL;
    att_scope s = att_scope_begin(t, l->name);
    att_var *y = NULL;
    if (fill_in_args(t, l, x, &a) && fill_in_params(t, l, &a) && fill_in_positions(t, l, &a))
        y = att_merge_heads(t, attend(t, l, x, &a));
    y = result(t, l, y, &a.call);
    att_nn_positions_end(t, &a.positions);
    att_nn_positions_end(t, &a.of_source);
    return att_scope_end(t, s, y);
}

/* ---- a source whose keys and values are cached */

att_status att_nn_attention_cache_source(att_tape *t, const att_nn_attention *l, att_var *source,
                                         const int64_t *offsets, att_cache *cache)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"l", l}, {"offsets", offsets}, {"cache", cache})))
        return ATT_ERR_ARGUMENT;
    att_nn_positions positions;
    att_tensor key, value;
    if (!att_nn_positions_begin(t, &positions, offsets, 0, 0, cache))
        return att_var_value(t, NULL, &key);
    att_status e = att_var_value(t, keys(t, l, source, &positions.at), &key);
    e = e ? e : att_var_value(t, values(t, l, source), &value);
    att_nn_positions_end(t, &positions);
    return e ? e : att_cache_append_ragged(cache, offsets, &key, &value);
}
