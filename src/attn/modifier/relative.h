/* s + table[bucket(key position - query position)]: relative positions of T5 (Raffel et al. 2020).
 *
 * Half of the buckets are for single distances, half for ranges that grow logarithmically up to a greatest distance,
 * from which on all share the last one. `both`: half of all buckets are for keys ahead of the query; otherwise those
 * are all in bucket 0, with the query's own position. */
#ifndef ATT_ATTN_MODIFIER_RELATIVE_H
#define ATT_ATTN_MODIFIER_RELATIVE_H

#include "attn/modifier/distance.h"

#include <math.h>

/* As T5's own code computes it, in f32, where that decides. */
static inline int relative_bucket(bool both, int64_t buckets, float greatest, int64_t distance)
{
    const int64_t n = both ? buckets / 2 : buckets, exact = n / 2, ahead = both && distance > 0 ? n : 0;
    const int64_t far = distance < 0 ? -distance : both ? distance : 0;
    if (far < exact)
        return (int)(ahead + far);
    const float range = (float)log((double)((float)far / (float)exact));
    const float share = range / (float)log((double)greatest / (double)exact) * (float)(n - exact);
    return (int)(ahead + exact + (int64_t)fminf(share, (float)(n - exact - 1)));
}

/* Buckets between two that are known: all the same where those are, because buckets ascend with the distance. */
static inline void relative_between(const att_tile *t, bool both, int first, int last, int *bucket)
{
    if (last - first < 2)
        return;
    const int middle = (first + last) / 2;
    if (bucket[first] == bucket[last]) {
        for (int n = first + 1; n < last; n++)
            bucket[n] = bucket[first];
        return;
    }
    bucket[middle] = relative_bucket(both, t->param->count, t->value, first_distance(t) - middle);
    relative_between(t, both, first, middle, bucket);
    relative_between(t, both, middle, last, bucket);
}

/* bucket [all_diagonals] */
static inline void relative_buckets(const att_tile *t, bool both, int *bucket)
{
    const int last = all_diagonals(t) - 1;
    bucket[0] = relative_bucket(both, t->param->count, t->value, first_distance(t));
    bucket[last] = relative_bucket(both, t->param->count, t->value, first_distance(t) - last);
    relative_between(t, both, 0, last, bucket);
}

static inline double relative_formula(const att_pair *p, double s, bool both)
{
    return s + (double)p->param->data[relative_bucket(both, p->param->count, p->value, distance_of_pair(p))];
}

static inline double relative_derivative(const att_pair *p, double ds, double *dparam, bool both)
{
    if (dparam)
        dparam[relative_bucket(both, p->param->count, p->value, distance_of_pair(p))] += ds;
    return 1;
}

static inline void relative_tile(const att_tile *t, bool both)
{
    int bucket[MOST_DIAGONALS];
    float x[MOST_DIAGONALS];
    relative_buckets(t, both, bucket);
    for (int n = 0; n < all_diagonals(t); n++)
        x[n] = t->param->data[bucket[n]];
    add_diagonals(t, x);
}

static inline void relative_tile_back(const att_tile *t, bool both)
{
    int bucket[MOST_DIAGONALS];
    float y[MOST_DIAGONALS];
    if (!t->param->grad)
        return;
    relative_buckets(t, both, bucket);
    sum_diagonals(t, y);
    for (int n = 0; n < used_diagonals(t); n++)
        t->param->grad[bucket[n]] += y[n];
}

static inline att_status relative_check(att_ctx *ctx, float greatest, const att_tensor *table, bool both)
{
    const int64_t buckets = table->dim[1], least = both ? 4 : 2, exact = both ? buckets / 4 : buckets / 2;
    if (buckets < least || buckets > INT32_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "the table of relative positions has %lld buckets, expected %lld or more",
                        (long long)buckets, (long long)least);
    if (!((double)greatest > (double)exact))
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "the greatest distance, spec.modifier_value, is %g, but %lld buckets have distances up to %lld "
                        "for themselves",
                        (double)greatest, (long long)buckets, (long long)exact);
    return ATT_OK;
}

#endif
