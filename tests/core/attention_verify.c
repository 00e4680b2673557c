/* att_verify: what agrees with its formula passes, and each function that does not is named. */
#include "fixtures/attention_trial.h"

static att_attention_spec plain(void)
{
    return (att_attention_spec){
        .size = sizeof(att_attention_spec), .heads = 2, .head_dim = 19, .align = ATT_ALIGN_BOTTOM_RIGHT};
}

static void passes(att_ctx *ctx, const att_attention_spec *s)
{
    if (att_verify(ctx, s))
        fail_msg("%s", att_error(ctx));
}

static void every_stage_agrees_with_its_own_formula(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < COUNT(scores); i++) {
        att_attention_spec s = plain();
        s.score = *scores[i];
        passes(ctx, &s);
    }
    for (int i = 1; i < COUNT(modifiers); i++) {
        att_attention_spec s = plain();
        add_modifier(&s, *modifiers[i], (*modifiers[i])->flags & ATT_STAGE_NEEDS_VALUE ? 6.5 : 0);
        passes(ctx, &s);
    }
    for (int i = 1; i < COUNT(masks); i++) {
        static const int64_t windows[][2] = {{3, 0}, {-1, 40}, {70, -1}, {0, 5}};
        const bool window = *masks[i] == att_mask_window;
        for (int w = 0; w < (window ? COUNT(windows) : 1); w++) {
            att_attention_spec s = plain();
            if (window)
                add_window(&s, windows[w][0], windows[w][1]);
            else
                add_mask(&s, *masks[i]);
            passes(ctx, &s);
        }
    }
    att_close(ctx);
}

/* ---- stages with one mistake each */

static double product(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s += (double)p->query[d] * p->key[d] * p->param[0].data[d];
    return s;
}
static void product_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += ds * p->key[d] * p->param[0].data[d];
        dk[d] += ds * p->query[d] * p->param[0].data[d];
        if (dparam[0])
            dparam[0][d] += ds * p->query[d] * p->key[d];
    }
}
static void forgets_the_last(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    product_derivative(p, ds, dq, dk, dparam);
    dk[p->dim - 1] -= ds * p->query[p->dim - 1] * p->param[0].data[p->dim - 1];
}
static void product_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++) {
            t->s[j * t->stride + i] = 0;
            for (int64_t d = 0; d < t->dim; d++)
                t->s[j * t->stride + i] +=
                    t->query[d * t->columns + i] * t->key[j * t->key_stride + d] * t->param[0].data[d];
        }
}
static void leaves_out_a_key(const att_score_tile *t)
{
    att_score_tile less = *t;
    less.keys -= t->keys > 5;
    product_tile(&less);
}
/* share [3]: what is added to the gradients of query, key and parameter, in place of 1 */
static void back(const att_score_tile *t, const float *share)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            const float ds = t->ds[j * t->stride + i], *k = t->key + j * t->key_stride;
            for (int64_t d = 0; ds != 0 && d < t->dim; d++) {
                const float q = t->query[d * t->columns + i], w = t->param[0].data[d];
                t->dquery[d * t->columns + i] += share[0] * ds * k[d] * w;
                t->dkey[j * t->dkey_stride + d] += share[1] * ds * q * w;
                if (t->param[0].grad)
                    t->param[0].grad[d] += share[2] * ds * q * k[d];
            }
        }
}
static void product_back(const att_score_tile *t) { back(t, (const float[]){1, 1, 1}); }
static void half_of_query(const att_score_tile *t) { back(t, (const float[]){0.5f, 1, 1}); }
static void nothing_of_key(const att_score_tile *t) { back(t, (const float[]){1, 0, 1}); }
static void more_of_weights(const att_score_tile *t) { back(t, (const float[]){1, 1, 1.01f}); }
static void meets_nan(const att_score_tile *t)
{
    product_back(t);
    for (int64_t d = 0; d < t->dim; d++)
        t->dquery[d * t->columns] += 0 * t->key[t->keys / 2 * t->key_stride + d];
}
/* Functions that overwrite numbers which others have added. */
static void over_query(const att_score_tile *t)
{
    for (int64_t d = 0; d < t->dim; d++)
        memset(t->dquery + d * t->columns, 0, (size_t)t->queries * sizeof *t->dquery);
    product_back(t);
}
static void over_key(const att_score_tile *t)
{
    for (int64_t j = 0; j < t->keys; j++)
        memset(t->dkey + j * t->dkey_stride, 0, (size_t)t->dim * sizeof *t->dkey);
    product_back(t);
}
static void over_weights(const att_score_tile *t)
{
    if (t->param[0].grad)
        t->param[0].grad[t->dim - 1] = 0;
    product_back(t);
}
static void over_dq(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    memset(dq, 0, (size_t)p->dim * sizeof *dq);
    product_derivative(p, ds, dq, dk, dparam);
}
static void over_dk(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    memset(dk, 0, (size_t)p->dim * sizeof *dk);
    product_derivative(p, ds, dq, dk, dparam);
}
static void over_dparam(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    if (dparam[0])
        memset(dparam[0], 0, (size_t)p->dim * sizeof *dparam[0]);
    product_derivative(p, ds, dq, dk, dparam);
}
static void adds_scores(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            for (int64_t d = 0; d < t->dim; d++)
                t->s[j * t->stride + i] +=
                    t->query[d * t->columns + i] * t->key[j * t->key_stride + d] * t->param[0].data[d];
}
static double nearer(const att_pair *p) { return product(p) / (1 + fabs((double)(p->head->position + p->q - p->k))); }
static const att_param_shape weights = {.name = "weights", .rows = ATT_EXTENT_HEAD_DIM};
#define SCORE_PARAM .param = &weights, .n_params = 1
static const att_score good_score = {.size = sizeof(att_score),
                                     .name = "good",
                                     .flags = ATT_STAGE_BILINEAR,
                                     SCORE_PARAM,
                                     .formula = product,
                                     .derivative = product_derivative,
                                     .tile = product_tile,
                                     .tile_back = product_back};
static const att_score wrong_derivative = {
    .size = sizeof(att_score), .name = "1", SCORE_PARAM, .formula = product, .derivative = forgets_the_last};
static const att_score wrong_tile = {
    .size = sizeof(att_score), .name = "2", SCORE_PARAM, .formula = product, .tile = leaves_out_a_key};
static const att_score wrong_query = {.size = sizeof(att_score),
                                      .name = "3",
                                      SCORE_PARAM,
                                      .formula = product,
                                      .derivative = product_derivative,
                                      .tile_back = half_of_query};
static const att_score wrong_key = {.size = sizeof(att_score),
                                    .name = "4",
                                    SCORE_PARAM,
                                    .formula = product,
                                    .derivative = product_derivative,
                                    .tile_back = nothing_of_key};
static const att_score wrong_param = {.size = sizeof(att_score),
                                      .name = "5",
                                      SCORE_PARAM,
                                      .formula = product,
                                      .derivative = product_derivative,
                                      .tile_back = more_of_weights};
static const att_score wrong_nan = {.size = sizeof(att_score),
                                    .name = "6",
                                    SCORE_PARAM,
                                    .formula = product,
                                    .derivative = product_derivative,
                                    .tile_back = meets_nan};
#define OVER(number, ...)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(att_score), .name = number, SCORE_PARAM, .formula = product, __VA_ARGS__                        \
    }
static const att_score over_scores[] = {OVER("8", .derivative = product_derivative, .tile_back = over_query),
                                        OVER("9", .derivative = product_derivative, .tile_back = over_key),
                                        OVER("10", .derivative = product_derivative, .tile_back = over_weights),
                                        OVER("11", .derivative = over_dq),
                                        OVER("12", .derivative = over_dk),
                                        OVER("13", .derivative = over_dparam),
                                        OVER("14", .tile = adds_scores)};
#undef OVER
static const att_score hidden_positions = {.size = sizeof(att_score), .name = "15", SCORE_PARAM, .formula = nearer};
static const att_score not_bilinear = {.size = sizeof(att_score),
                                       .name = "7",
                                       .flags = ATT_STAGE_BILINEAR,
                                       .param = &gains,
                                       .n_params = 1,
                                       .formula = bell,
                                       .tile = product_tile};

static double cube(const att_pair *p, double s) { return s * s * s * p->value[0]; }
static double square(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)ds, (void)dparam;
    return 3 * s * s * p->value[0];
}
static double twice(const att_pair *p, double s, double ds, double *const *dparam)
{
    return 2 * square(p, s, ds, dparam);
}
static void cube_tile(const att_modifier_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            float *s = &t->s[j * t->stride + i];
            *s = *s * *s * *s * (float)t->value[0];
        }
}
static void square_tile(const att_modifier_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++)
            t->ds[j * t->stride + i] *= 3 * t->s[j * t->stride + i] * t->s[j * t->stride + i] * (float)t->value[0];
}
static void cube_without_value(const att_modifier_tile *t)
{
    att_modifier_tile one = *t;
    one.value = (const double[2]){1};
    cube_tile(&one);
}
static void only_one_query(const att_modifier_tile *t)
{
    att_modifier_tile one = *t;
    one.queries = 1;
    square_tile(&one);
}
static const att_modifier good_modifier = {.size = sizeof(att_modifier),
                                           .name = "good",
                                           .flags = ATT_STAGE_NEEDS_VALUE,
                                           .formula = cube,
                                           .derivative = square,
                                           .tile = cube_tile,
                                           .tile_back = square_tile};

/* Computes c tanh s + erf s - e^(-s^2), with the same result on every machine, in its vectors. */
static double waves(const att_pair *p, double s) { return p->value[0] * tanh(s) + erf(s) - exp(-s * s); }
static double waves_slope(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)ds, (void)dparam;
    return p->value[0] * (1 - tanh(s) * tanh(s)) + (2 / sqrt(acos(-1)) + 2 * s) * exp(-s * s);
}
enum { MOST_COLUMNS = 64 };
static void bell_of(const att_modifier_tile *t, const float *s, float *y)
{
    assert_true(t->columns <= MOST_COLUMNS);
    t->vectors->mul(t->columns, s, s, y);
    t->vectors->scale(t->columns, -1, y, y);
    t->vectors->exp(t->columns, y, y);
}
static void waves_tile(const att_modifier_tile *t)
{
    float bell[MOST_COLUMNS], wave[MOST_COLUMNS];
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride;
        bell_of(t, s, bell);
        t->vectors->tanh(t->columns, s, wave);
        t->vectors->scale(t->columns, (float)t->value[0], wave, wave);
        t->vectors->erf(t->columns, s, s);
        t->vectors->add(t->columns, s, wave, s);
        t->vectors->sub(t->columns, s, bell, s);
    }
}
static void waves_back(const att_modifier_tile *t)
{
    float bell[MOST_COLUMNS], wave[MOST_COLUMNS], by_bell[MOST_COLUMNS];
    for (int j = 0; j < t->keys; j++) {
        const float *s = t->s + j * t->stride;
        float *ds = t->ds + j * t->stride;
        bell_of(t, s, bell);
        t->vectors->mul(t->columns, bell, ds, bell);
        t->vectors->mul(t->columns, bell, s, by_bell);
        t->vectors->add(t->columns, by_bell, by_bell, by_bell);
        t->vectors->scale(t->columns, (float)(2 / sqrt(acos(-1))), bell, bell);
        t->vectors->tanh_back(t->columns, s, ds, wave);
        t->vectors->scale(t->columns, (float)t->value[0], wave, wave);
        t->vectors->add(t->columns, bell, by_bell, bell);
        t->vectors->add(t->columns, wave, bell, ds);
    }
}
static const att_modifier in_vectors = {.size = sizeof(att_modifier),
                                        .name = "in vectors",
                                        .flags = ATT_STAGE_NEEDS_VALUE,
                                        .formula = waves,
                                        .derivative = waves_slope,
                                        .tile = waves_tile,
                                        .tile_back = waves_back};
static const att_modifier wrong_slope = {
    .size = sizeof(att_modifier), .name = "a", .flags = ATT_STAGE_NEEDS_VALUE, .formula = cube, .derivative = twice};
static const att_modifier wrong_formula = {.size = sizeof(att_modifier),
                                           .name = "b",
                                           .flags = ATT_STAGE_NEEDS_VALUE,
                                           .formula = cube,
                                           .tile = cube_without_value};
static const att_modifier wrong_back = {.size = sizeof(att_modifier),
                                        .name = "c",
                                        .flags = ATT_STAGE_NEEDS_VALUE,
                                        .formula = cube,
                                        .derivative = square,
                                        .tile_back = only_one_query};
static const att_modifier not_additive = {.size = sizeof(att_modifier),
                                          .name = "d",
                                          .flags = ATT_STAGE_ADDITIVE | ATT_STAGE_NEEDS_VALUE,
                                          .formula = cube,
                                          .derivative = square};

static double shift(const att_pair *p, double s) { return s + (double)p->param->data[0]; }
static double one(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)p, (void)s;
    if (dparam[0])
        *dparam[0] += ds;
    return 1;
}
static double over_one(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)p, (void)s;
    if (dparam[0])
        *dparam[0] = ds;
    return 1;
}
static void sum_of_slopes(const att_modifier_tile *t)
{
    for (int j = 0; t->param->grad && j < t->keys; j++)
        for (int i = 0; i < t->queries; i++)
            t->param->grad[0] += t->ds[j * t->stride + i];
}
static void over_sum(const att_modifier_tile *t)
{
    if (t->param->grad)
        t->param->grad[0] = 0;
    sum_of_slopes(t);
}
static double by_distance(const att_pair *p, double s) { return s - (double)llabs(p->head->position + p->q - p->k); }
static const att_param_shape shift_param = {.name = "shift"};
#define SHIFT .param = &shift_param, .n_params = 1, .formula = shift, .flags = ATT_STAGE_ADDITIVE
static const att_modifier good_shift = {
    .size = sizeof(att_modifier), .name = "good", SHIFT, .derivative = one, .tile_back = sum_of_slopes};
static const att_modifier over_derivative = {.size = sizeof(att_modifier), .name = "e", SHIFT, .derivative = over_one};
static const att_modifier over_back = {
    .size = sizeof(att_modifier), .name = "f", SHIFT, .derivative = one, .tile_back = over_sum};
static const att_modifier hidden_distance = {.size = sizeof(att_modifier), .name = "g", .formula = by_distance};

static bool diagonal(const att_mask_block *b) { return b->k == b->q + b->head->position; }
static att_cover is_reported_empty(const att_mask_block *b)
{
    return b->k > b->q + b->head->position ? ATT_COVER_EMPTY : ATT_COVER_PARTIAL;
}
static void one_late(const att_mask_block *b, uint64_t *bits)
{
    for (int64_t j = 0; j < b->keys; j++) {
        const int64_t i = b->k + j - b->q - b->head->position + 1;
        bits[j] = i >= 0 && i < 64 ? UINT64_C(1) << i : 0;
    }
}
static void too_short(const att_mask_block *b, int64_t *first, int64_t *last)
{
    *first = b->q + b->head->position;
    *last = b->q + b->head->position + b->queries - 1;
}
/* Makes a table and numbers of keys; ids that ascend let cover look at the ends of a block alone. */
static bool tabled(const att_mask_block *b)
{
    return b->param[0].boolean[b->q * b->param[0].stride[0] + b->k * b->param[0].stride[1]] &&
           b->param[1].i32[b->k * b->param[1].stride[1]] > 1;
}
static bool all_above(const att_mask_block *b)
{
    for (int64_t k = 0; k < b->keys; k++)
        if (b->param[1].i32[(b->k + k) * b->param[1].stride[1]] < 0)
            return false;
    return true;
}
static att_cover trusts_inspect(const att_mask_block *b)
{
    return b->inspected && b->param[1].i32[b->k * b->param[1].stride[1]] <= 1 ? ATT_COVER_EMPTY : ATT_COVER_PARTIAL;
}
static const att_param_shape table_and_ids[] = {{.name = "table", .kind = ATT_PARAM_PER_PAIR, .dtype = ATT_BOOL},
                                                {.name = "ids", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_I32}};
static const att_mask wrong_inspect = {.size = sizeof(att_mask),
                                       .name = "w",
                                       .param = table_and_ids,
                                       .n_params = 2,
                                       .keep = tabled,
                                       .cover = trusts_inspect,
                                       .inspect = all_above};
static const att_mask wrong_cover = {.size = sizeof(att_mask),
                                     .name = "x",
                                     .flags = ATT_STAGE_NEEDS_ALIGN,
                                     .keep = diagonal,
                                     .cover = is_reported_empty};
static const att_mask wrong_bits = {
    .size = sizeof(att_mask), .name = "y", .flags = ATT_STAGE_NEEDS_ALIGN, .keep = diagonal, .bits = one_late};
static const att_mask wrong_span = {
    .size = sizeof(att_mask), .name = "z", .flags = ATT_STAGE_NEEDS_ALIGN, .keep = diagonal, .span = too_short};
static const att_mask hidden_diagonal = {.size = sizeof(att_mask), .name = "u", .keep = diagonal};

static void each_function_that_disagrees_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *sentence;
        const att_score *score;
        const att_modifier *modifier;
        const att_mask *mask;
    } wrongs[] = {
        {NULL, &good_score, &good_modifier, NULL},
        {NULL, NULL, &in_vectors, NULL},
        {"\"1\" (scalar)|derivative gives 0 for|by key[18], but differences of formula", &wrong_derivative, NULL, NULL},
        {"\"2\" (scalar)|tile gives|key 77, but formula", &wrong_tile, NULL, NULL},
        {"\"3\" (scalar)|tile_back gives|dquery[0], but derivatives", &wrong_query, NULL, NULL},
        {"\"4\" (scalar)|tile_back gives 0 for dkey[0]", &wrong_key, NULL, NULL},
        {"\"5\" (scalar)|tile_back gives|weights[", &wrong_param, NULL, NULL},
        {"\"6\" (scalar)|tile_back gives nan for dquery[0]", &wrong_nan, NULL, NULL},
        {NULL, NULL, &good_shift, NULL},
        {"\"8\" (scalar)|tile_back, which overwrites, but should add|dquery[0]", &over_scores[0], NULL, NULL},
        {"\"9\" (scalar)|tile_back, which overwrites, but should add|dkey[0]", &over_scores[1], NULL, NULL},
        {"\"10\" (scalar)|tile_back, which overwrites, but should add|weights[18]", &over_scores[2], NULL, NULL},
        {"\"11\" (scalar)|derivative, which overwrites, but should add|by query[0]", &over_scores[3], NULL, NULL},
        {"\"12\" (scalar)|derivative, which overwrites, but should add|by key[0]", &over_scores[4], NULL, NULL},
        {"\"13\" (scalar)|derivative, which overwrites, but should add|by weights[0]", &over_scores[5], NULL, NULL},
        {"\"14\" (scalar)|tile gives nan", &over_scores[6], NULL, NULL},
        {"\"15\" (scalar)|17, without ATT_STAGE_NEEDS_ALIGN|but at position 0", &hidden_positions, NULL, NULL},
        {"\"e\" (scalar)|derivative, which overwrites, but should add|by shift[0]", NULL, &over_derivative, NULL},
        {"\"f\" (scalar)|tile_back, which overwrites, but should add|shift[0]", NULL, &over_back, NULL},
        {"\"g\" (scalar)|17, without ATT_STAGE_NEEDS_ALIGN|but at position 0", NULL, &hidden_distance, NULL},
        {"\"u\": without ATT_STAGE_NEEDS_ALIGN, at position 0 instead of 17 keep", NULL, NULL, &hidden_diagonal},
        {"\"7\" (scalar)|which is bilinear, but formula, scaled", &not_bilinear, NULL, NULL},
        {"\"a\" (scalar)|derivative gives|but differences of formula", NULL, &wrong_slope, NULL},
        {"\"b\" (scalar)|tile gives|but formula", NULL, &wrong_formula, NULL},
        {"\"c\" (scalar)|tile_back gives|but derivative", NULL, &wrong_back, NULL},
        {"\"d\" (scalar)|but ATT_STAGE_ADDITIVE implies 1", NULL, &not_additive, NULL},
        {"\"x\": cover of 31 queries from 0 by|ATT_COVER_EMPTY, but keep returns true", NULL, NULL, &wrong_cover},
        {"\"y\": bit|of bits from query|but keep returns", NULL, NULL, &wrong_bits},
        {"\"w\": cover of|ATT_COVER_EMPTY, but keep returns true", NULL, NULL, &wrong_inspect},
        {"\"z\": span of 1 queries from 0 is|but keep returns true for query 0", NULL, NULL, &wrong_span},
    };
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < COUNT(wrongs); i++) {
        att_attention_spec s = plain();
        s.score = wrongs[i].score;
        if (wrongs[i].modifier)
            add_modifier(&s, wrongs[i].modifier, wrongs[i].modifier->flags & ATT_STAGE_NEEDS_VALUE ? 1.7 : 0);
        if (wrongs[i].mask)
            add_mask(&s, wrongs[i].mask);
        if (!wrongs[i].sentence) {
            passes(ctx, &s);
            continue;
        }
        assert_int_equal(att_verify(ctx, &s), ATT_ERR_ARGUMENT);
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%s", wrongs[i].sentence);
        for (char *part = strtok(sentence, "|"); part; part = strtok(NULL, "|"))
            check_message(ctx, part);
    }
    att_close(ctx);
}

static void what_is_no_plan_is_not_verified(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_attention_spec s = plain();
    add_modifier(&s, att_modifier_relative, 0.5);
    assert_int_equal(att_verify(ctx, &s), ATT_ERR_ARGUMENT);
    check_message(ctx, "the greatest distance");
    s = plain();
    s.heads = 0;
    assert_int_equal(att_verify(ctx, &s), ATT_ERR_ARGUMENT);
    check_message(ctx, "spec.heads is 0");
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_agrees_with_its_own_formula),
        cmocka_unit_test(each_function_that_disagrees_is_named),
        cmocka_unit_test(what_is_no_plan_is_not_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
