/* The parts of SASRec and BERT4Rec, and the functions that apply either. */
#include "recommend/counting.h"

#include <pthread.h>

/* ---- building */

void att_recommender_build_items(att_recommender *m, const att_init *init)
{
    static const att_init zeros = {.size = sizeof zeros};
    const att_recommender_info *i = &m->config.info;
    const int64_t rows = att_recommender_rows(m);
    att_nn_params *p = m->model.params;
    m->item = att_nn_params_request(p, "item", "weight", 2, (const int64_t[]){rows, i->hidden},
                                    i->content_width ? &zeros : init);
    m->position =
        att_nn_params_request(p, "position", "weight", 2, (const int64_t[]){i->max_positions, i->hidden}, init);
    att_param_set_weight_decay(m->position, false);
    if (!i->content_width)
        return;
    m->content = att_nn_params_request(p, "content", "vectors", 2, (const int64_t[]){rows, i->content_width}, &zeros);
    m->projection = att_nn_linear_new(p, "content.projection", i->content_width, i->hidden,
                                      ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
}

void att_recommender_build_layers(att_recommender *m, bool causal)
{
    static const att_nn_order orders[] = {[ATT_RECOMMENDER_BLOCK_PRE_NORM] = ATT_NN_ORDER_PRE_NORM,
                                          [ATT_RECOMMENDER_BLOCK_POST_NORM] = ATT_NN_ORDER_POST_NORM,
                                          [ATT_RECOMMENDER_BLOCK_SASREC] = ATT_NN_ORDER_QUERY_NORM};
    const att_recommender_info *i = &m->config.info;
    const bool own = i->block == ATT_RECOMMENDER_BLOCK_SASREC;
    const att_nn_attention_config attention = {
        .size = sizeof attention, .width = i->hidden, .heads = i->heads, .causal = causal, .no_output = own};
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = i->hidden,
                                       .intermediate = i->intermediate,
                                       .activation = m->config.activation,
                                       .order = orders[i->block],
                                       .norm = ATT_NN_NORM_LAYER,
                                       .eps = (float)m->config.eps,
                                       .attention = &attention,
                                       .inner_dropout = own};
    m->layer = att_nn_params_alloc(m->model.params, (size_t)i->layers * sizeof *m->layer);
    for (int64_t k = 0; m->layer && k < i->layers; k++)
        m->layer[k] = att_nn_encoder_layer_new(m->model.params, att_nn_number("layer", k).text, &layer);
}

/* ---- plans with dropout */

typedef struct dropout_plan {
    struct dropout_plan *before;
    float p;
    att_plan *plan;
} dropout_plan;

struct att_dropout_plans {
    att_ctx *ctx;
    pthread_mutex_t lock; /* protects the list, to which any thread may add */
    dropout_plan *last;
};

static att_status add_plan(const att_recommender *m, float p)
{
    const att_stage causal = {.mask = att_mask_causal};
    const att_recommender_info *i = &m->config.info;
    const bool is_causal = !m->architecture->mask;
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = i->heads,
                                     .kv_heads = i->heads,
                                     .head_dim = i->hidden / i->heads,
                                     .stage = &causal,
                                     .n_stages = is_causal,
                                     .align = is_causal ? ATT_ALIGN_BOTTOM_RIGHT : ATT_ALIGN_UNSET,
                                     .dropout = p};
    dropout_plan *new = att_alloc(m->model.ctx, 1, sizeof *new);
    if (!new)
        return ATT_ERR_MEMORY;
    *new = (dropout_plan){.before = m->plans->last, .p = p};
    const att_status e = att_plan_new(m->model.ctx, &spec, &new->plan);
    if (e)
        att_free(m->model.ctx, new);
    else
        m->plans->last = new;
    return e;
}

/* Finds the plan of the layers with dropout of attention weights. */
static att_status plan_with(const att_recommender *m, float p, const att_plan **found)
{
    att_status e = ATT_OK;
    *found = NULL;
    pthread_mutex_lock(&m->plans->lock);
    while (!e && !*found) {
        for (const dropout_plan *d = m->plans->last; d && !*found; d = d->before)
            *found = !(d->p < p) && !(d->p > p) ? d->plan : NULL;
        e = *found ? ATT_OK : add_plan(m, p);
    }
    pthread_mutex_unlock(&m->plans->lock);
    return e;
}

att_status att_dropout_plans_new(att_ctx *ctx, att_dropout_plans **out)
{
    att_dropout_plans *p = *out = att_alloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    *p = (att_dropout_plans){.ctx = ctx};
    pthread_mutex_init(&p->lock, NULL);
    return ATT_OK;
}

void att_dropout_plans_free(att_dropout_plans *p)
{
    if (!p)
        return;
    for (dropout_plan *d = p->last, *before; d; d = before) {
        before = d->before;
        att_plan_free(d->plan);
        att_free(p->ctx, d);
    }
    pthread_mutex_destroy(&p->lock);
    att_free(p->ctx, p);
}

/* ---- vectors of items */

/* Returns the first n rows of content, as a variable without a gradient. */
static att_var *content(att_tape *t, const att_recommender *m, int64_t n)
{
    att_tensor rows = m->content_value;
    rows.dim[0] = n;
    return att_constant(t, &rows);
}

att_var *att_recommender_embedding(att_tape *t, const att_recommender *m, const int32_t *ids, int64_t count)
{
    att_var *x = att_embedding(t, m->item, ids, count);
    if (!m->content)
        return x;
    att_var *c = att_gather(t, content(t, m, att_recommender_rows(m)), ids, count);
    return att_nn_linear_apply(t, m->projection, c, ATT_ACTIVATION_IDENTITY, x);
}

att_var *att_recommender_table(att_tape *t, const att_recommender *m)
{
    if (!att_tape_require(t, __func__, ATT_NAMED({"m", m})))
        return NULL;
    const int64_t items = m->config.info.items;
    if (att_counting_refuse(m, __func__, "vectors of items"))
        return att_tape_fail(t, ATT_ERR_UNSUPPORTED, "%s", att_error(m->model.ctx));
    att_var *x = att_parameter(t, m->item);
    x = m->architecture->mask ? att_slice(t, x, 0, 0, items) : x;
    return m->content ? att_nn_linear_apply(t, m->projection, content(t, m, items), ATT_ACTIVATION_IDENTITY, x) : x;
}

/* ---- applying */

att_var *att_recommender_layers(att_tape *t, const att_recommender *m, att_var *x, const att_recommender_input *in)
{
    for (int64_t i = 0; i < m->config.info.layers; i++) {
        att_scope s = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, s, att_nn_encoder_layer_apply(t, m->layer[i], x, &in->layer));
        x = att_scope_reset(t, in->scope, x);
    }
    return x;
}

static bool check(att_tape *t, const att_recommender *m, const int32_t *items, const int64_t *offsets, int64_t n)
{
    if (!att_sequences_fit(t, m->config.info.type, items, offsets, n, m->config.info.max_positions))
        return false;
    for (int64_t b = 0; b < n; b++)
        if (offsets[b] == offsets[b + 1])
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: history %lld has no item", m->config.info.type,
                                 (long long)b);
    return true;
}

static bool can_apply(att_tape *t, const att_recommender *m)
{
    return !att_counting_refuse(m, "att_recommender_apply", "states of items") ||
           att_tape_fail(t, ATT_ERR_UNSUPPORTED, "%s", att_error(m->model.ctx));
}

static att_var *apply(att_tape *t, const att_recommender *m, att_recommender_input *in,
                      const att_recommender_options *o)
{
    const att_attention_args args = {.size = sizeof args, .n_sequences = in->at.n, .q_offsets = in->at.offsets};
    const att_nn_dropout dropout = {sizeof dropout, o->dropout, o->seed, &in->at, o->sequence_ids};
    in->layer = (att_nn_layer_call){.size = sizeof in->layer, .args = &args};
    if (o->dropout != 0) {
        in->layer.dropout = &dropout;
        const att_status e = plan_with(m, o->dropout, &in->layer.plan);
        if (e)
            return att_tape_fail(t, e, "%s: %s", m->config.info.type, att_error(m->model.ctx));
    }
    att_scope s = in->scope = att_scope_begin(t, m->architecture->mask ? "encoder" : "decoder");
    return att_scope_end(t, s, m->architecture->result(t, m, m->architecture->apply(t, m, in)));
}

att_var *att_recommender_apply(att_tape *t, const att_recommender *m, const int32_t *items, const int64_t *offsets,
                               int64_t n, const att_recommender_options *options)
{
    att_recommender_options o;
    if (!att_tape_require(t, __func__, ATT_NAMED({"m", m}, {"items", items}, {"offsets", offsets})) ||
        !can_apply(t, m) || !check(t, m, items, offsets, n))
        return NULL;
    if (!att_tape_options_read(t, "recommender", &o, sizeof o, options, "att_recommender_options"))
        return NULL;
    if (o.dropout != 0 && !m->model.trainable)
        return att_tape_fail(t, ATT_ERR_ARGUMENT,
                             "%s: dropout is %g, but the model is not trainable: it comes from att_recommender_open",
                             m->config.info.type, (double)o.dropout);
    int64_t *starts = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *starts);
    if (!starts)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t b = 0; b < n; b++)
        starts[b] = m->config.info.max_positions - (offsets[b + 1] - offsets[b]);
    att_recommender_input in = {.items = items,
                                .at = {.size = sizeof in.at, .offsets = offsets, .n = n, .starts = starts}};
    att_var *x = apply(t, m, &in, &o);
    att_free(m->model.ctx, starts);
    return x;
}
