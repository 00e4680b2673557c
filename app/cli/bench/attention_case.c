/* attend bench attention: the operands, the plan, and one pass of it. */
#include "attention.h"
#include "attend_util.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tensors ------------------------------------------------------------------ */

/* [batch, heads, time, dim] in the case's layout and type. */
static int operand(attention_case *c, att_tensor *out, int64_t heads, int64_t time, int64_t dim)
{
    const int64_t batch = c->set.batch, dims[] = {batch, heads, time, dim};
    int code = attention_tensor(c, out, c->spec.dtype, 4, dims);
    if (!code && c->set.layout == LAYOUT_BTHD) {
        const int64_t stride[] = {time * heads * dim, dim, heads * dim, 1};
        att_wrap(out, out->data, c->spec.dtype, 4, dims, stride);
    }
    return code;
}

static int make_tensors(attention_case *c)
{
    const attention_settings *s = &c->set;
    att_attention_args *a = &c->args;
    att_attention_grads *g = &c->grads;
    struct {
        att_tensor *tensor;
        int64_t heads, time, dim;
        bool backward;
    } list[] = {
        {&a->q, s->heads, s->q_len, s->dim, false},          {&a->k, s->kv_heads, s->k_len, s->key_dim, false},
        {&a->v, s->kv_heads, s->k_len, s->value_dim, false}, {&a->out, s->heads, s->q_len, s->value_dim, false},
        {&g->dout, s->heads, s->q_len, s->value_dim, true},  {&g->dq, s->heads, s->q_len, s->dim, true},
        {&g->dk, s->kv_heads, s->k_len, s->key_dim, true},   {&g->dv, s->kv_heads, s->k_len, s->value_dim, true},
    };
    int code = CLI_DONE;
    for (size_t i = 0; !code && i < sizeof list / sizeof *list; i++)
        if (!list[i].backward || s->pass == PASS_BACKWARD)
            code = operand(c, list[i].tensor, list[i].heads, list[i].time, list[i].dim);
    if (!code && s->pass == PASS_BACKWARD)
        code = attention_tensor(c, &a->lse, ATT_F32, 3, (const int64_t[]){s->batch, s->heads, s->q_len});
    g->dparam = c->dparam;
    g->n_dparams = attention_score_params(c);
    for (int i = 0; !code && i < g->n_dparams && s->pass == PASS_BACKWARD; i++)
        code = attention_tensor(c, &c->dparam[i], ATT_F32, c->param[i].rank, c->param[i].dim);
    return code;
}

/* ---- The cache ---------------------------------------------------------------- */

/* Reduces dimension `dim` of t, which is over keys, to `keys`. */
static void shorten(const attention_case *c, att_tensor *t, int dim, int64_t keys)
{
    if (t->rank > dim && t->dim[dim] == c->set.k_len)
        t->dim[dim] = keys;
}

/* Puts the keys and values of each sequence into a cache, which the call then has instead. */
static int fill_cache(attention_case *c)
{
    att_attention_args *a = &c->call;
    int64_t longest = 0;
    int code = attention_status(c, att_cache_new(c->plan, c->set.batch, &c->cache));
    for (int64_t b = 0; !code && b < c->set.batch; b++) {
        att_tensor view[2];
        const att_tensor *from[] = {&c->args.k, &c->args.v};
        const int64_t n = attention_key_count(c, b);
        for (int i = 0; i < 2; i++) {
            const att_tensor *t = from[i];
            att_wrap(&view[i], (char *)t->data + b * t->stride[0] * (int64_t)att_dtype_size(t->dtype), t->dtype, 3,
                     (const int64_t[]){t->dim[1], n, t->dim[3]}, t->stride + 1);
        }
        longest = n > longest ? n : longest;
        code = attention_status(c, att_cache_append(c->cache, b, &view[0], &view[1]));
    }
    a->k = a->v = (att_tensor){0};
    a->k_lengths = NULL;
    a->cache = c->cache;
    memcpy(c->call_param, c->param, sizeof c->call_param);
    a->param = c->call_param;
    for (int i = 0; i < a->n_params; i++) {
        att_tensor *t = &c->call_param[i];
        if (t->rank == 4)
            shorten(c, t, 3, longest);
        else if (t->dtype == ATT_I32 && t->data == c->k_documents)
            shorten(c, t, 1, longest);
    }
    return code;
}

/* ---- The case ----------------------------------------------------------------- */

int attention_once(void *arg)
{
    const attention_case *c = arg;
    return attention_status(c, c->set.pass == PASS_BACKWARD ? att_backward(c->plan, &c->call, &c->grads)
                                                            : att_forward(c->plan, &c->call));
}

static int apply_settings(attention_case *c, const attention_settings *set)
{
    attention_settings *s = &c->set;
    *s = *set;
    s->mask = s->mask && *s->mask ? s->mask : NULL;
    s->modifier = s->modifier && *s->modifier ? s->modifier : NULL;
    s->kv_heads = s->kv_heads ? s->kv_heads : s->heads;
    s->k_len = s->k_len ? s->k_len : s->q_len;
    s->key_dim = s->key_dim ? s->key_dim : s->dim;
    s->value_dim = s->value_dim ? s->value_dim : s->dim;
    s->score = s->score ? s->score : "scaled-dot";
    if (s->heads % s->kv_heads)
        return cli_misuse("%skv-heads: %lld does not divide the %lld heads", c->where, (long long)s->kv_heads,
                          (long long)s->heads);
    if (s->causal && s->align && s->causal != s->align)
        return cli_misuse("%scausal: align contradicts it; one of them is enough", c->where);
    s->align = s->causal ? s->causal : s->align;
    if (!s->align && s->q_len == s->k_len)
        s->align = ATT_ALIGN_TOP_LEFT; /* the same as bottom-right */
    c->spec = (att_attention_spec){
        .size = sizeof c->spec,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->dim,
        .key_dim = s->key_dim,
        .value_dim = s->value_dim,
        .score_dim = s->score_dim,
        .dtype = (att_dtype)s->dtype,
        .align = (att_align)s->align,
        .dropout = (float)s->dropout,
    };
    c->args.size = sizeof c->args;
    c->grads.size = sizeof c->grads;
    c->info.size = sizeof c->info;
    c->k_lengths = calloc((size_t)s->batch, sizeof *c->k_lengths);
    c->ids = calloc((size_t)s->batch, sizeof *c->ids);
    if (!c->k_lengths || !c->ids)
        return cli_fail_memory();
    for (int64_t b = 0; b < s->batch; b++)
        c->ids[b] = (uint32_t)b;
    c->args.dropout_seed = 6;
    c->args.sequence_ids = c->ids;
    return CLI_DONE;
}

int attention_open(attention_case *c, const attention_settings *set, const char *line)
{
    *c = (attention_case){.line = line, .where = *line ? line : "--"};
    int code = cli_open(&c->ctx, set->threads);
    if (!code)
        code = apply_settings(c, set);
    if (!code)
        code = attention_set_stages(c);
    if (!code)
        code = attention_status(c, att_plan_new(c->ctx, &c->spec, &c->plan));
    if (!code)
        code = make_tensors(c);
    c->call = c->args;
    if (!code && set->cache)
        code = fill_cache(c);
    if (!code)
        code = attention_status(c, att_plan_describe(c->plan, &c->call, &c->info));
    if (!code && set->pass == PASS_BACKWARD)
        code = attention_status(c, att_forward(c->plan, &c->call));
    return code;
}

void attention_close(attention_case *c)
{
    for (int i = 0; i < c->n_memory; i++)
        att_free(c->ctx, c->memory[i]);
    free(c->k_lengths);
    free(c->ids);
    att_cache_free(c->cache);
    att_plan_free(c->plan);
    att_close(c->ctx);
}

double attention_flops(const attention_case *c)
{
    const attention_settings *s = &c->set;
    double pairs = 0, d = (double)s->dim, dv = (double)s->value_dim;
    if (s->q_len == s->k_len && (s->causal ? !s->mask : s->mask && strcmp(s->mask, "causal") == 0))
        pairs = 0.5 * (double)s->batch * (double)s->q_len * (double)s->k_len;
    else
        for (int64_t b = 0; b < s->batch; b++)
            for (int64_t i = 0; i < s->q_len; i++) {
                int64_t first, last, n = 0;
                attention_keys(c, b, i, &first, &last);
                if (!c->allowed)
                    n = last - first;
                for (int64_t j = first; c->allowed && j < last; j++)
                    n += attention_allows(c, i, j);
                pairs += (double)n;
            }
    return 2 * (double)s->heads * pairs * (s->pass == PASS_BACKWARD ? 3 * d + 2 * dv : d + dv);
}

double attention_reads(const attention_case *c)
{
    const attention_settings *s = &c->set;
    const bool dot = strcmp(s->score, "dot") == 0 || strcmp(s->score, "scaled-dot") == 0;
    if (s->q_len != 1 || s->pass == PASS_BACKWARD || !dot || s->mask)
        return 0;
    return (double)(s->batch * s->kv_heads * s->k_len * (s->dim + s->value_dim)) *
           (double)att_dtype_size(c->spec.dtype);
}
