/* s + table[bucket(key position - query position)]: relative positions of T5 (Raffel et al. 2020).
 *
 * Half of the buckets are for single distances, half for ranges that grow logarithmically. From a maximum distance on,
 * all distances share the last bucket.
 *
 * Each kind includes this file after it has defined RELATIVE, the stage, and BOTH. If BOTH, half of all buckets are for
 * keys after the query; otherwise these are all in bucket 0, with the query's own position. */
#include "attn/stage/modifier/distance.h"
#include "base/math.h"

/* Returns the bucket of a distance, computed in f32 as T5's own code does, because rounding can decide. */
static int bucket_of(int64_t buckets, float greatest, int64_t distance)
{
    const int64_t n = BOTH ? buckets / 2 : buckets, exact = n / 2, ahead = BOTH && distance > 0 ? n : 0;
    const int64_t far = distance < 0 ? -distance : BOTH ? distance : 0;
    if (far < exact)
        return (int)(ahead + far);
    const float range = (float)att_f64_log((double)((float)far / (float)exact)), last = (float)(n - exact - 1);
    const float share = range / (float)att_f64_log((double)greatest / (double)exact) * (float)(n - exact);
    return (int)(ahead + exact + (int64_t)(share < last ? share : last));
}

/* Fills in buckets between two known ones: if these are equal, so are all between, because buckets ascend with the
 * distance. */
static void buckets_between(const att_modifier_tile *t, int first, int last, int *bucket)
{
    if (last - first < 2)
        return;
    const int middle = (first + last) / 2;
    if (bucket[first] == bucket[last]) {
        for (int n = first + 1; n < last; n++)
            bucket[n] = bucket[first];
        return;
    }
    bucket[middle] = bucket_of(t->param->count, (float)t->value[0], first_distance(t) - middle);
    buckets_between(t, first, middle, bucket);
    buckets_between(t, middle, last, bucket);
}

/* Computes bucket [all_diagonals]. */
static void all_buckets(const att_modifier_tile *t, int *bucket)
{
    const int last = all_diagonals(t) - 1;
    bucket[0] = bucket_of(t->param->count, (float)t->value[0], first_distance(t));
    bucket[last] = bucket_of(t->param->count, (float)t->value[0], first_distance(t) - last);
    buckets_between(t, 0, last, bucket);
}

static double formula(const att_pair *p, double s)
{
    return s + (double)p->param->data[bucket_of(p->param->count, (float)p->value[0], distance_of_pair(p))];
}

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)s;
    if (dparam[0])
        dparam[0][bucket_of(p->param->count, (float)p->value[0], distance_of_pair(p))] += ds;
    return 1;
}

static void tile(const att_modifier_tile *t)
{
    int bucket[MAX_DIAGONALS];
    float x[MAX_DIAGONALS];
    all_buckets(t, bucket);
    for (int n = 0; n < all_diagonals(t); n++)
        x[n] = t->param->data[bucket[n]];
    add_diagonals(t, x);
}

static void tile_back(const att_modifier_tile *t)
{
    int bucket[MAX_DIAGONALS];
    float y[MAX_DIAGONALS];
    if (!t->param->grad)
        return;
    all_buckets(t, bucket);
    sum_diagonals(t, y);
    for (int n = 0; n < used_diagonals(t); n++)
        t->param->grad[bucket[n]] += y[n];
}

static att_status check(att_ctx *ctx, const double *value, const att_tensor *table)
{
    const float greatest = (float)value[0];
    const int64_t buckets = table->dim[1], min_buckets = BOTH ? 4 : 2, exact = BOTH ? buckets / 4 : buckets / 2;
    if (buckets < min_buckets || buckets > INT32_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "the table of relative positions has %lld buckets, expected %lld or more",
                        (long long)buckets, (long long)min_buckets);
    if (!((double)greatest > (double)exact))
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "the greatest distance, value[0], is %g, but %lld buckets have distances up to %lld "
                        "for themselves",
                        (double)greatest, (long long)buckets, (long long)exact);
    return ATT_OK;
}

static const att_param_shape table = {.name = "table", .rows = ATT_EXTENT_ANY};

extern const att_modifier ATTEND_ISA(RELATIVE);
const att_modifier ATTEND_ISA(RELATIVE) = {.size = sizeof(att_modifier),
                                           .name = RELATIVE_NAME,
                                           .flags = ATT_STAGE_ADDITIVE | ATT_STAGE_NEEDS_ALIGN | ATT_STAGE_NEEDS_VALUE,
                                           .param = &table,
                                           .n_params = 1,
                                           .check = check,
                                           .formula = formula,
                                           .derivative = derivative,
                                           .tile = tile,
                                           .tile_back = tile_back};
