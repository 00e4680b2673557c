/* Traces recommenders. */
#include "model/trace.h"
#include "recommend/counting.h"
#include "recommend/histories.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* The items of a history. They must be valid until the model has been applied. */
typedef struct history {
    const att_recommender *m;
    const int32_t *items; /* [n], including the mask of BERT4Rec */
    int64_t n;
} history;

static att_var *apply(const void *self, att_tape *t)
{
    const history *h = self;
    return att_recommender_apply(t, h->m, h->items, (const int64_t[]){0, h->n}, 1, NULL);
}

/* Computes the scores of all items. Items without any information have -inf, as in rankings. */
static att_var *output(const void *self, att_tape *t, att_var *x)
{
    const att_recommender *m = ((const history *)self)->m;
    att_item_table table;
    att_tensor v;
    const att_status e = att_item_table_open(m, &table);
    if (e)
        return att_tape_fail(t, e, "%s", att_error(m->model.ctx));
    att_var *y = att_linear(t, m->architecture->result(t, m, x), table.param, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    if (y && !att_var_value(t, y, &v))
        for (int64_t i = 0; i < v.dim[0]; i++)
            for (int64_t k = 0; k < table.without.n; k++)
                ((float *)v.data)[i * v.dim[1] + table.without.items[k]] = -INFINITY;
    att_item_table_close(m, &table);
    return y;
}

static void describe(const att_recommender *m, const int32_t *items, int64_t n, att_trace_pass *pass)
{
    const att_recommender_info *i = &m->config.info;
    const bool encoder = m->architecture->mask;
    pass->output_side = encoder ? ATT_TRACE_SIDE_ENCODER : ATT_TRACE_SIDE_DECODER;
    pass->info = (att_trace_info){.output_rows = n, .outputs = i->items};
    *(encoder ? &pass->info.source : &pass->info.target) = n;
    *(encoder ? &pass->info.source_ids : &pass->info.target_ids) = items;
    pass->parts = 1;
    pass->part[0] = (att_trace_part){.side = pass->output_side,
                                     .layers = i->layers,
                                     .heads = i->heads,
                                     .head_dim = i->hidden / i->heads,
                                     .queries = n,
                                     .keys = n,
                                     .causal = !encoder,
                                     .hidden = i->hidden};
}

static att_status check(const att_recommender *m, int64_t n, const int32_t *items, const att_trace_options *o)
{
    att_ctx *ctx = m->model.ctx;
    if (o->ids || o->n_ids != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_recommender_trace: options.ids are given, but the tokens are the items of the history");
    if (n < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the history has no item");
    return att_histories_check(ctx, "the model", m->config.info.items, 1, items, (const int64_t[]){0, n});
}

att_status att_recommender_trace(const att_recommender *m, int64_t n, const int32_t *items,
                                 const att_trace_options *options, att_trace **out)
{
    att_trace_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"items", items}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&o, sizeof o, options, "att_trace_options");
    e = e ? e : att_counting_refuse(m, __func__, "attention");
    e = e ? e : check(m, n, items, &o);
    if (e)
        return e;
    const bool mask = m->architecture->mask;
    const int64_t used = att_min(n, m->config.info.max_positions - mask);
    int32_t *tokens = att_alloc(m->model.ctx, (size_t)(used + mask), sizeof *tokens);
    if (!tokens)
        return ATT_ERR_MEMORY;
    memcpy(tokens, items + n - used, (size_t)used * sizeof *tokens);
    if (mask)
        tokens[used] = (int32_t)m->config.info.items;
    const history self = {m, tokens, used + mask};
    att_trace_pass pass = {
        .ctx = m->model.ctx, .compute = m->model.options.compute, .caller = __func__, .apply = apply, .output = output};
    describe(m, tokens, used + mask, &pass);
    pass.info.truncated = used < n;
    e = att_trace_make(&pass, &self, sizeof self, &o, out);
    att_free(m->model.ctx, tokens);
    return e;
}
