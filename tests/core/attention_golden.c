/* Attention against PyTorch: outputs and gradients that tests/golden/make_attention.py computed in float64. */
#include "attend_extend.h"
#include "attend_learn.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"
#include "fixtures/stage_lists.h"

/* ---- the golden files */

static float *golden_numbers;
static char golden_places[8192] = "\n";

static int read_golden(void **state)
{
    (void)state;
    FILE *text = fopen("tests/golden/attention.txt", "r"), *file = fopen("tests/golden/attention.f32", "rb");
    assert_non_null(text);
    assert_non_null(file);
    assert_in_range(fread(golden_places + 1, 1, sizeof golden_places - 1, text), 1, sizeof golden_places - 2);
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    golden_numbers = malloc(bytes);
    assert_int_equal(fread(golden_numbers, 1, bytes, file), bytes);
    fclose(text);
    fclose(file);
    return 0;
}

static int free_golden(void **state)
{
    (void)state;
    free(golden_numbers);
    return 0;
}

/* Returns the i-th number of a tensor of any type. */
static float number_at(const att_ctx *ctx, const att_tensor *x, int64_t i)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    float y;
    if (x->dtype == ATT_F32)
        return ((const float *)x->data)[i];
    (x->dtype == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(1, (const uint16_t *)x->data + i, &y);
    return y;
}

/* Returns what storing changes at most, of a number. */
static double rounding(att_dtype dtype) { return dtype == ATT_F32 ? 0 : dtype == ATT_F16 ? 0x1p-11 : 0x1p-8; }

/* Checks that x is equal to this array of a case, which has the same shape. */
static void compare(const att_ctx *ctx, const char *name, const char *array, const att_tensor *x, double tolerance)
{
    char line[80];
    snprintf(line, sizeof line, "\n%s %s ", name, array);
    const char *at = strstr(golden_places, line);
    if (!at)
        fail_msg("tests/golden/attention.txt has no %s of %s", array, name);
    char *dims;
    const float *expected = golden_numbers + strtol(at + strlen(line), &dims, 10);
    for (int i = 0; i < x->rank; i++)
        assert_int_equal(strtol(dims, &dims, 10), x->dim[i]);
    assert_int_equal(*dims, '\n');
    for (int64_t i = 0; i < check_count(x); i++)
        check_near((double)expected[i], number_at(ctx, x, i),
                   tolerance + rounding(x->dtype) * fabs((double)expected[i]), "%s: %s: %s[%d]", att_isa(ctx), name,
                   array, (int)i);
}

/* ---- attention */

enum { BATCH = 2, TQ = 5, TK = 7, DIM = 9, HEADS = 3 };

/* What is 0 is as above; no key_dim or value_dim is DIM. */
typedef struct golden_case {
    const char *name;
    const att_score *const *score;
    float scale;
    const att_mask *const *mask;
    const att_modifier *const *modifier[3];
    double value; /* of the modifiers that have one */
    bool has_lse; /* and a gradient that reaches it */
    att_dtype dtype;
    int64_t heads, kv_heads, key_dim, value_dim, score_dim;
    int64_t param[3][3]; /* shapes of the score's parameters */
} golden_case;

static const golden_case cases[] = {
    {.name = "dot"},
    {"dot_causal", .mask = &att_mask_causal},
    {"dot_boolean", .mask = &att_mask_boolean},
    {"dot_bias", .modifier = {&att_modifier_bias}},
    {"dot_grouped", .heads = 6, .kv_heads = 2},
    {"dot_values", .value_dim = 4},
    {"dot_window", .mask = &att_mask_window},
    {"dot_float16", .heads = 6, .kv_heads = 2, .dtype = ATT_F16},
    {"dot_bfloat16", .heads = 6, .kv_heads = 2, .dtype = ATT_BF16},
    {"alibi", .has_lse = true, .modifier = {&att_modifier_alibi}},
    {"softcap", .has_lse = true, .modifier = {&att_modifier_softcap}, .value = 0.75},
    {"sink", .has_lse = true, .modifier = {&att_modifier_sink}},
    {"stacked", .has_lse = true, .mask = &att_mask_window,
     .modifier = {&att_modifier_alibi, &att_modifier_softcap, &att_modifier_sink}, .value = 0.75},
    {"plain_dot", .scale = 1},
    {"cosine", .score = &att_score_cosine},
    {"general", .score = &att_score_general, .key_dim = 8, .param = {{3, 9, 8}}},
    {"general_one", .score = &att_score_general, .key_dim = 8, .param = {{1, 9, 8}}},
    {"additive", .score = &att_score_additive, .param = {{3, 9}}},
    {"additive_one", .score = &att_score_additive, .param = {{1, 9}}},
    {"additive_projected", .score = &att_score_additive, .key_dim = 8, .score_dim = 6,
     .param = {{3, 6}, {3, 6, 9}, {3, 6, 8}}},
    {"additive_projected_one", .score = &att_score_additive, .key_dim = 8, .score_dim = 6,
     .param = {{1, 6}, {1, 6, 9}, {1, 6, 8}}},
};

/* New numbers; seed as in make_attention.py, any for what is written. */
static att_tensor numbers(uint64_t seed, int rank, const int64_t *dim)
{
    att_tensor x;
    assert_int_equal(att_wrap(&x, NULL, ATT_F32, rank, dim, NULL), ATT_OK);
    x.data = check_numbers(check_count(&x), seed);
    return x;
}

/* A call forward and backward. */
typedef struct call {
    att_attention_spec spec;
    att_attention_args args;
    att_attention_grads grads;
    uint8_t mask[BATCH * TQ * TK];
} call;

static void make_spec(const golden_case *c, att_attention_spec *s)
{
    *s = (att_attention_spec){.size = sizeof *s,
                              .heads = c->heads ? c->heads : HEADS,
                              .kv_heads = c->kv_heads ? c->kv_heads : HEADS,
                              .head_dim = DIM,
                              .key_dim = c->key_dim ? c->key_dim : DIM,
                              .value_dim = c->value_dim ? c->value_dim : DIM,
                              .score_dim = c->score_dim,
                              .score = c->score ? *c->score : NULL,
                              .scale = c->scale,
                              .dtype = c->dtype,
                              .align = ATT_ALIGN_TOP_LEFT};
    for (int i = 0; i < 3 && c->modifier[i]; i++)
        add_modifier(s, *c->modifier[i], (*c->modifier[i])->flags & ATT_STAGE_NEEDS_VALUE ? c->value : 0);
    if (c->mask && *c->mask == att_mask_window)
        add_window(s, 2, 1);
    else if (c->mask)
        add_mask(s, *c->mask);
}

/* The same numbers, rounded to the type. */
static void store_as(const att_ctx *ctx, att_dtype dtype, att_tensor *x)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    float *numbers = x->data;
    if (dtype == ATT_F32)
        return;
    x->dtype = dtype;
    x->data = malloc((size_t)check_count(x) * sizeof(uint16_t));
    (dtype == ATT_F16 ? k->vector.to_f16 : k->vector.to_bf16)(check_count(x), numbers, x->data);
    free(numbers);
}

enum { GARBAGE = 99 }; /* the seed of what is written */

static void make_params(const golden_case *c, call *x)
{
    const int64_t heads[] = {x->spec.heads};
    int64_t pairs[] = {1, x->spec.heads, TQ, TK};
    uint64_t seed = 6;
    for (int i = 0; i < 3 && c->param[i][0]; i++) {
        *param_at(&x->args, i) = numbers(21 + (uint64_t)i, c->param[i][2] ? 3 : 2, c->param[i]);
        *dparam_at(&x->grads, i) = numbers(GARBAGE, c->param[i][2] ? 3 : 2, c->param[i]);
    }
    for (int i = 0; i < 3 && c->modifier[i]; i++) {
        const att_modifier *m = *c->modifier[i];
        if (!m->n_params)
            continue;
        const bool over_pairs = m->param->kind == ATT_PARAM_PER_PAIR;
        const int n = x->args.n_params;
        *param_at(&x->args, n) = numbers(seed++, over_pairs ? 4 : 1, over_pairs ? pairs : heads);
        *dparam_at(&x->grads, n) = numbers(GARBAGE, over_pairs ? 4 : 1, over_pairs ? pairs : heads);
    }
    if (c->mask && *c->mask == att_mask_boolean) {
        for (uint64_t i = 0; i < sizeof x->mask; i++)
            x->mask[i] = check_uniform(7, i) > -0.4f;
        att_wrap(param_at(&x->args, x->args.n_params), x->mask, ATT_BOOL, ATT_DIMS(BATCH, 1, TQ, TK), NULL);
    }
}

static void make_call(const att_ctx *ctx, const golden_case *c, call *x)
{
    att_attention_spec *s = &x->spec;
    att_attention_args *a = &x->args;
    att_attention_grads *g = &x->grads;
    *x = (call){.args.size = sizeof *a, .grads.size = sizeof *g};
    make_spec(c, s);
    a->q = numbers(1, ATT_DIMS(BATCH, s->heads, TQ, s->head_dim));
    a->k = numbers(2, ATT_DIMS(BATCH, s->kv_heads, TK, s->key_dim));
    a->v = numbers(3, ATT_DIMS(BATCH, s->kv_heads, TK, s->value_dim));
    a->out = numbers(GARBAGE, ATT_DIMS(BATCH, s->heads, TQ, s->value_dim));
    a->lse = numbers(GARBAGE, ATT_DIMS(BATCH, s->heads, TQ));
    g->dout = numbers(11, a->out.rank, a->out.dim);
    g->dq = numbers(GARBAGE, a->q.rank, a->q.dim);
    g->dk = numbers(GARBAGE, a->k.rank, a->k.dim);
    g->dv = numbers(GARBAGE, a->v.rank, a->v.dim);
    if (c->has_lse)
        g->dlse = numbers(12, a->lse.rank, a->lse.dim);
    make_params(c, x);
    att_tensor *const stored[] = {&a->q, &a->k, &a->v, &a->out, &g->dout, &g->dq, &g->dk, &g->dv};
    for (int i = 0; i < 8; i++)
        store_as(ctx, c->dtype, stored[i]);
}

static void call_free(call *x)
{
    const att_attention_args *a = &x->args;
    const att_attention_grads *g = &x->grads;
    free(a->q.data), free(a->k.data), free(a->v.data), free(a->out.data), free(a->lse.data);
    free(g->dout.data), free(g->dlse.data), free(g->dq.data), free(g->dk.data), free(g->dv.data);
    for (int i = 0; i < g->n_dparams; i++)
        free(a->param[i].data), free(g->dparam[i].data);
}

/* Rounding, of at most 2^-24 of numbers up to 1. A score of up to sqrt(DIM) is the sum of DIM terms, some of them of as
 * many again, and off by 2 sqrt(DIM) + 2 such units of its size; modifiers (a tanh is off by 24) add up to 32;
 * a weight is off by twice that of itself, and so are the gradients of scores. All of them then enter sums with weights
 * that sum to one for the output, with up to as many as `rows` queries or pairs for the gradients of what these share.
 */
static double tolerance(const golden_case *c, double rows)
{
    const double score = (2 * sqrt(DIM) + 2) * sqrt(DIM) + (c->modifier[0] ? 32 : 0);
    return 0x1p-24 * (2 * score + 2 * DIM + 2 * sqrt(TK)) * (1 + sqrt(rows));
}

/* Where bf16 is multiplied in pairs, weights are rounded to it: the output is off by as much of the largest value. */
static double paired(const att_ctx *ctx, const golden_case *c)
{
    return c->dtype == ATT_BF16 && att_kernels_of(ctx->isa)->bf16.scores ? rounding(ATT_BF16) : 0;
}

/* An output that is off by so much, and by being stored, changes delta = dout . out by DIM times as much, and gradients
 * of scores by that times their weight; a scale of 1 / sqrt(DIM) makes it sqrt(DIM) in dq and dk. */
static double stored(const att_ctx *ctx, const golden_case *c, double rows)
{
    return (rounding(c->dtype) + paired(ctx, c)) * sqrt(DIM) * (1 + sqrt(rows));
}

static void check_params(const att_ctx *ctx, const golden_case *c, const call *x)
{
    char name[24];
    int of_score = 0;
    for (; of_score < 3 && c->param[of_score][0]; of_score++) {
        snprintf(name, sizeof name, "dparam%d", of_score);
        compare(ctx, c->name, name, dparam_of(&x->grads, of_score), tolerance(c, BATCH * HEADS * TQ * TK));
    }
    for (int i = of_score; i < x->grads.n_dparams; i++) {
        const att_tensor *d = dparam_of(&x->grads, i);
        snprintf(name, sizeof name, "dmodifier%d", i - of_score);
        compare(ctx, c->name, name, d, tolerance(c, BATCH * (d->rank > 1 ? 1 : TQ * TK)));
    }
}

static void check_case(att_ctx *ctx, const golden_case *c)
{
    call x;
    att_plan *plan;
    make_call(ctx, c, &x);
    if (att_plan_new(ctx, &x.spec, &plan) || att_forward(plan, &x.args) || att_backward(plan, &x.args, &x.grads))
        fail_msg("%s: %s", c->name, att_error(ctx));
    const double rows = TQ * (double)(x.spec.heads / x.spec.kv_heads);
    compare(ctx, c->name, "out", &x.args.out, tolerance(c, 1) + paired(ctx, c));
    if (c->has_lse)
        compare(ctx, c->name, "lse", &x.args.lse, tolerance(c, 1));
    compare(ctx, c->name, "dq", &x.grads.dq, tolerance(c, 1) + stored(ctx, c, 1));
    compare(ctx, c->name, "dk", &x.grads.dk, tolerance(c, rows) + stored(ctx, c, rows));
    compare(ctx, c->name, "dv", &x.grads.dv, tolerance(c, rows));
    check_params(ctx, c, &x);
    att_plan_free(plan);
    call_free(&x);
}

static void outputs_and_gradients_are_those_of_pytorch(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_case(ctx, &cases[i]);
}

/* ---- the layer with its projections */

enum { FEATURES = 12 };

/* Rows [first, first + count) of a parameter that begins with these numbers: [count, FEATURES], or [count]. */
static att_param *rows_of(att_ctx *ctx, const float *x, int64_t first, int64_t count, bool matrix)
{
    att_tensor view;
    att_param *p;
    att_wrap(&view, (float *)x + first * (matrix ? FEATURES : 1), ATT_F32, matrix ? 2 : 1,
             (const int64_t[]){count, FEATURES}, NULL);
    assert_int_equal(att_param_new(ctx, &view, &p), ATT_OK);
    return p;
}

/* Query, key and value projections lie one behind the other, as PyTorch has them. */
static void the_layer_with_projections_is_multihead_attention_of_pytorch(void **state)
{
    (void)state;
    float *in_weight = check_numbers(3 * FEATURES * FEATURES, 31), *in_bias = check_numbers(3 * FEATURES, 32);
    float *out_weight = check_numbers(FEATURES * FEATURES, 33), *out_bias = check_numbers(FEATURES, 34);
    att_tensor x = numbers(35, ATT_DIMS(BATCH * TQ, FEATURES)), memory = numbers(36, ATT_DIMS(BATCH * TK, FEATURES)), y;
    const att_attention_args args = {.size = sizeof args,
                                     .n_sequences = BATCH,
                                     .q_offsets = (const int64_t[]){0, TQ, 2 * TQ},
                                     .k_offsets = (const int64_t[]){0, TK, 2 * TK}};
    const att_attention_spec spec = {.size = sizeof spec, .heads = HEADS, .head_dim = FEATURES / HEADS};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        att_plan *plan;
        att_tape *t;
        att_param *weight[4], *bias[4];
        att_var *heads[3];
        assert_int_equal(att_plan_new(ctx, &spec, &plan), ATT_OK);
        assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
        for (int i = 0; i < 4; i++) {
            weight[i] = rows_of(ctx, i < 3 ? in_weight : out_weight, i % 3 * FEATURES, FEATURES, true);
            bias[i] = rows_of(ctx, i < 3 ? in_bias : out_bias, i % 3 * FEATURES, FEATURES, false);
        }
        for (int i = 0; i < 3; i++) {
            att_var *projected =
                att_linear(t, att_input(t, i ? &memory : &x), weight[i], bias[i], ATT_ACTIVATION_IDENTITY, NULL);
            heads[i] = att_split_heads(t, projected, HEADS);
        }
        att_var *joined = att_merge_heads(t, att_attend(t, plan, heads[0], heads[1], heads[2], &args, NULL));
        if (att_var_value(t, att_linear(t, joined, weight[3], bias[3], ATT_ACTIVATION_IDENTITY, NULL), &y))
            fail_msg("%s", att_error(ctx));
        att_tensor batched;
        att_wrap(&batched, y.data, ATT_F32, ATT_DIMS(BATCH, TQ, FEATURES), NULL);
        /* projections of FEATURES terms, so of up to 4: scores have up to 16 / 2, outputs up to 16 */
        compare(ctx, "layer", "out", &batched, 16 * tolerance(&cases[0], FEATURES));
        att_tape_free(t);
        att_plan_free(plan);
        for (int i = 0; i < 4; i++)
            att_param_free(weight[i]), att_param_free(bias[i]);
    }
    free(in_weight), free(in_bias), free(out_weight), free(out_bias), free(x.data), free(memory.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_and_gradients_are_those_of_pytorch),
        cmocka_unit_test(the_layer_with_projections_is_multihead_attention_of_pytorch),
    };
    return cmocka_run_group_tests(tests, read_golden, free_golden);
}
