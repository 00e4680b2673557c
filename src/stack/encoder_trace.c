/* Traces text encoders. */
#include "stack/encoder.h"
#include "util/shape.h"

typedef struct traced {
    const att_encoder *m;
    const int32_t *ids;
    int64_t n;
} traced;

/* Counts the numbers of the parameters of a layer's attention: a table of relative positions. */
static int64_t count_params(const att_nn_attention *l)
{
    int64_t sum = 0;
    for (int i = 0; i < l->n_params; i++)
        sum += l->param[i] ? att_elements(att_param_value(l->param[i])) : 0;
    return sum;
}

att_trace_part att_encoder_trace_part(const att_encoder *m, int64_t n)
{
    const att_nn_attention *a = m->layer[0]->attention;
    return (att_trace_part){.side = ATT_TRACE_SIDE_ENCODER,
                            .layers = m->info.layers,
                            .heads = a->heads,
                            .kv_heads = a->kv_heads,
                            .head_dim = a->head_dim,
                            .queries = n,
                            .keys = n,
                            .windows = m->window,
                            .hidden = m->info.hidden,
                            .params = count_params(a)};
}

static att_var *apply(const void *self, att_tape *t)
{
    const traced *x = self;
    return att_encoder_apply(t, x->m, x->ids, (const int64_t[]){0, x->n}, 1, NULL);
}

static att_var *output(const void *self, att_tape *t, att_var *x)
{
    return att_encoder_output(t, ((const traced *)self)->m, x);
}

static att_status check(const att_encoder *m, int64_t n, const att_trace_options *options)
{
    att_trace_options o;
    const att_status s = att_options_read(&o, sizeof o, options, "att_trace_options");
    if (s)
        return s;
    if (o.ids || o.n_ids)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "att_encoder_trace: ids and options.ids are both given");
    return n < 1 || n > m->info.max_positions
               ? att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "att_encoder_trace: n is %lld, not in [1, %lld]",
                          (long long)n, (long long)m->info.max_positions)
               : ATT_OK;
}

att_status att_encoder_trace(const att_encoder *m, const int32_t *ids, int64_t n, const att_trace_options *options,
                             att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"ids", ids}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = check(m, n, options);
    if (s)
        return s;
    const traced self = {m, ids, n};
    const att_trace_pass pass = {.ctx = m->model.ctx,
                                 .compute = m->model.options.compute,
                                 .caller = __func__,
                                 .part = {att_encoder_trace_part(m, n)},
                                 .parts = 1,
                                 .info = {.source = n,
                                          .source_ids = ids,
                                          .output_rows = m->norm ? n : 0,
                                          .outputs = m->norm ? m->info.hidden : 0},
                                 .apply = apply,
                                 .output = m->norm ? output : NULL,
                                 .output_side = ATT_TRACE_SIDE_ENCODER};
    return att_trace_make(&pass, &self, sizeof self, options, out);
}
