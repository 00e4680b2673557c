/* Describes how one attention weight comes about, by the definition. */
#include "attn/reference.h"
#include "base/math.h"

#include <math.h>
#include <string.h>

typedef struct pair_job {
    const att_plan *plan;
    att_head_view at;
    int64_t q, k;
    float *query, *keys; /* [head_dim] and [tk, key_dim] scratch memory; keys NULL: they are f32 and not in a cache */
    att_pair_info *d;
} pair_job;

/* Makes the view one of f32 rows: this query's, and the keys' one after the other. */
static void read_rows(pair_job *j)
{
    const att_kernels *kernels = j->plan->kernels;
    const int64_t dim = j->plan->spec.key_dim, tk = j->at.head.tk;
    j->at.q_row =
        (att_rows){.at = (void *)att_rows_read(kernels, &j->at.q_row, j->q, 1, j->plan->spec.head_dim, j->query).at,
                   .dtype = ATT_F32};
    for (int64_t first = 0; j->keys && first < tk; first += ATT_KEY_BLOCK) {
        float *y = j->keys + first * dim;
        const int64_t rows = tk - first < ATT_KEY_BLOCK ? tk - first : ATT_KEY_BLOCK;
        const att_floats x = att_rows_read(kernels, &j->at.k_row, first, rows, dim, y);
        for (int64_t i = 0; x.at != y && i < rows; i++)
            memcpy(y + i * dim, x.at + i * x.stride, (size_t)dim * sizeof *y);
    }
    if (j->keys)
        j->at.k_row = (att_rows){.at = j->keys, .stride = dim, .dtype = ATT_F32};
}

/* Computes the score after each stage, those of the plan's list of modifiers and of its list of masks in the spec's
 * order. */
static void describe_stages(const pair_job *j)
{
    const att_plan *plan = j->plan;
    att_pair_info *d = j->d;
    double s[ATT_MAX_STAGES + 1];
    const int mask = att_ref_masked_by(plan, &j->at, j->q, j->k);
    att_ref_scores(plan, &j->at, j->q, j->k, s);
    d->score = s[0];
    d->n_stages = plan->spec.n_stages;
    d->masked_by = mask < 0 ? -1 : plan->masks.list[mask].index;
    for (int i = 0; i < plan->masks.n; i++)
        d->stage[plan->masks.list[i].index] = plan->masks.list[i].stage.name;
    for (int m = 0; m < plan->modifiers.n; m++)
        d->stage[plan->modifiers.list[m].index] = plan->modifiers.list[m].stage.name;
    for (int i = 0, m = 0; i < d->n_stages; i++) {
        m += m < plan->modifiers.n && plan->modifiers.list[m].index == i;
        d->after[i] = mask >= 0 && i >= d->masked_by ? -INFINITY : s[m];
    }
}

static void describe(void *arg, int task)
{
    pair_job *j = arg;
    att_pair_info *d = j->d;
    (void)task;
    read_rows(j);
    describe_stages(j);
    const double last = d->n_stages ? d->after[d->n_stages - 1] : d->score;
    d->log_sum_exp = att_ref_attention_row(j->plan, &j->at, j->q, NULL, NULL);
    d->weight = d->masked_by < 0 ? att_f64_exp(last - d->log_sum_exp) : 0;
}

static att_status check_index(att_ctx *ctx, const char *name, int64_t i, int64_t n, const char *what)
{
    return i >= 0 && i < n ? ATT_OK
                           : att_fail(ctx, ATT_ERR_ARGUMENT, "%s is %lld, but the sequence has %lld %s", name,
                                      (long long)i, (long long)n, what);
}

att_status att_pair_describe(const att_plan *plan, const att_attention_args *args, int64_t sequence, int64_t head,
                             int64_t q, int64_t k, att_pair_info *info)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = plan->ctx;
    att_call call;
    att_pair_info d = {0};
    pair_job j = {.plan = plan, .q = q, .k = k, .d = &d};
    att_status e = att_call_check(plan, args, false, &call);
    e = e ? e : att_call_find_head(&call, sequence, head, &j.at);
    e = e ? e : check_index(ctx, "q", q, j.at.head.tq, "queries");
    e = e ? e : check_index(ctx, "k", k, j.at.head.tk, "keys");
    if (e)
        return e;
    const att_rows *keys = &j.at.k_row;
    const bool copy = keys->dtype != ATT_F32 || keys->page || keys->panel;
    const size_t head_dim = (size_t)plan->spec.head_dim,
                 copied = copy ? att_size_mul((size_t)j.at.head.tk, (size_t)plan->spec.key_dim) : 0;
    j.query = att_alloc(ctx, copied < SIZE_MAX - head_dim ? head_dim + copied : SIZE_MAX, sizeof *j.query);
    if (!j.query)
        return ATT_ERR_MEMORY;
    j.keys = copy ? j.query + head_dim : NULL;
    att_parallel_for(ctx, 1, describe, &j); /* as in att_weights: the host's floating-point settings do not matter */
    att_free(ctx, j.query);
    return att_info_write(info, &d, sizeof d, "att_pair_info");
}
