/* One block of queries by one block of keys: what masks leave of it, and its scores. */
#include "attn/attn.h"

static att_cover cover(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int keys)
{
    att_cover all = ATT_FULL;
    for (int m = 0; m < plan->n_masks; m++) {
        const att_cover c = plan->spec.mask[m]->cover(at, q0, queries, k0, keys);
        if (c == ATT_EMPTY)
            return ATT_EMPTY;
        if (c == ATT_PARTIAL)
            all = ATT_PARTIAL;
    }
    return all;
}

static uint64_t bits(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k)
{
    uint64_t b = ~UINT64_C(0);
    for (int m = 0; m < plan->n_masks; m++)
        b &= plan->spec.mask[m]->bits(at, q0, queries, k);
    return b;
}

/* Appends keys, to the last run where they follow it. */
static void add_run(att_cut *cut, int64_t first, int64_t last)
{
    if (cut->n_runs && cut->run[cut->n_runs - 1].last == first)
        cut->run[cut->n_runs - 1].last = last;
    else
        cut->run[cut->n_runs++] = (att_run){first, last};
}

void att_cut_block(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int keys,
                   att_cut *cut)
{
    cut->n_runs = 0;
    cut->partial = false;
    const att_cover whole = cover(plan, at, q0, queries, k0, keys);
    if (whole == ATT_FULL)
        add_run(cut, 0, keys);
    for (int first = 0; whole == ATT_PARTIAL && first < keys; first += ATT_SUB_TILE) {
        const int n = keys - first < ATT_SUB_TILE ? keys - first : ATT_SUB_TILE;
        const att_cover c = cover(plan, at, q0, queries, k0 + first, n);
        if (c == ATT_EMPTY)
            continue;
        add_run(cut, first, first + n);
        cut->partial = cut->partial || c == ATT_PARTIAL;
        for (int k = first; k < first + n; k++)
            cut->bits[k] = c == ATT_FULL ? ~UINT64_C(0) : bits(plan, at, q0, queries, k0 + k);
    }
}

void att_score_block(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, const att_cut *cut,
                     const float *q, float *s, int64_t s_stride)
{
    for (int r = 0; r < cut->n_runs; r++) {
        const int64_t first = cut->run[r].first, keys = cut->run[r].last - first;
        const att_block b = {.site = at,
                             .head_dim = plan->spec.head_dim,
                             .q0 = q0,
                             .k0 = k0 + first,
                             .queries = queries,
                             .keys = (int)keys,
                             .q = q,
                             .s = s + first * s_stride,
                             .s_stride = s_stride};
        plan->score->tile(&b);
        for (int m = 0; m < plan->n_modifiers; m++)
            plan->modifier[m]->tile(&b);
        if (cut->partial)
            plan->kernels->forbid(keys, cut->bits + first, b.s, s_stride);
    }
}

void att_cut_clean(const att_plan *plan, const att_cut *cut, int queries, const float *x, int64_t stride, int64_t dim,
                   att_clean *clean)
{
    const uint64_t all = queries < 64 ? (UINT64_C(1) << queries) - 1 : ~UINT64_C(0);
    clean->n_runs = clean->n_unclean = 0;
    for (int r = 0; r < cut->n_runs; r++) {
        clean->run[clean->n_runs++] = cut->run[r];
        for (int64_t key = cut->run[r].first; cut->partial && key < cut->run[r].last; key++) {
            if (!(~cut->bits[key] & all) || plan->kernels->all_finite(dim, x + key * stride))
                continue;
            clean->unclean[clean->n_unclean++] = key;
            clean->run[clean->n_runs - 1].last = key;
            clean->run[clean->n_runs++] = (att_run){key + 1, cut->run[r].last};
        }
    }
}

void att_add_unclean(const att_plan *plan, const att_cut *cut, const att_clean *clean, int queries, const float *x,
                     int64_t stride, int64_t dim, const float *w, int64_t w_stride, float *o)
{
    for (int n = 0; n < clean->n_unclean; n++) {
        const int64_t key = clean->unclean[n];
        for (int i = 0; i < queries; i++)
            for (int64_t d = 0; (cut->bits[key] >> i & 1) && d < dim; d++)
                o[d * plan->kernels->panel + i] += w[key * w_stride + i] * x[key * stride + d];
    }
}
