/* Attention against PyTorch: outputs and gradients that tests/golden/make_attention.py computed in float64. */
#include "attend_learn.h"
#include "check.h"

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

/* x is that array of a case, which has the same shape. */
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
        check_near((double)expected[i], ((const float *)x->data)[i], tolerance, "%s: %s: %s[%d]", att_isa(ctx), name,
                   array, (int)i);
}

/* ---- attention */

enum { BATCH = 2, TQ = 5, TK = 7, DIM = 9, HEADS = 3 };

/* What is 0 is as above; no key_dim or value_dim is DIM. */
typedef struct golden_case {
    const char *name;
    const att_score *score;
    float scale;
    const att_mask *mask;
    const att_modifier *modifier;
    int64_t heads, kv_heads, key_dim, value_dim, score_dim;
    int64_t param[ATT_MAX_PARAMS][3]; /* shapes of the score's parameters */
} golden_case;

static const golden_case cases[] = {
    {.name = "dot"},
    {"dot_causal", .mask = &att_mask_causal},
    {"dot_boolean", .mask = &att_mask_boolean},
    {"dot_bias", .modifier = &att_modifier_bias},
    {"dot_grouped", .heads = 6, .kv_heads = 2},
    {"dot_values", .value_dim = 4},
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
                              .score = c->score,
                              .scale = c->scale,
                              .mask = {c->mask},
                              .modifier = {c->modifier},
                              .align = ATT_ALIGN_TOP_LEFT};
}

enum { GARBAGE = 99 }; /* the seed of what is written */

static void make_call(const golden_case *c, call *x)
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
    if (c->mask == &att_mask_boolean) {
        for (uint64_t i = 0; i < sizeof x->mask; i++)
            x->mask[i] = check_uniform(7, i) > -0.4f;
        att_wrap(&a->mask, x->mask, ATT_BOOL, ATT_DIMS(BATCH, 1, TQ, TK), NULL);
    }
    if (c->modifier) {
        a->modifier_param[0] = numbers(6, ATT_DIMS(1, s->heads, TQ, TK));
        g->dmodifier_param[0] = numbers(GARBAGE, ATT_DIMS(1, s->heads, TQ, TK));
    }
    for (int i = 0; i < ATT_MAX_PARAMS && c->param[i][0]; i++) {
        a->score_param[i] = numbers(21 + (uint64_t)i, c->param[i][2] ? 3 : 2, c->param[i]);
        g->dscore_param[i] = numbers(GARBAGE, c->param[i][2] ? 3 : 2, c->param[i]);
    }
}

static void drop_call(call *x)
{
    const att_attention_args *a = &x->args;
    const att_attention_grads *g = &x->grads;
    free(a->q.data), free(a->k.data), free(a->v.data), free(a->out.data), free(a->lse.data);
    free(g->dout.data), free(g->dq.data), free(g->dk.data), free(g->dv.data);
    free(a->modifier_param[0].data), free(g->dmodifier_param[0].data);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        free(a->score_param[i].data), free(g->dscore_param[i].data);
}

/* Rounding, of at most 2^-24 of numbers up to 1. A score of up to sqrt(DIM) is the sum of DIM terms, some of them of as
 * many again, and off by 2 sqrt(DIM) + 2 such units of its size; a weight is off by twice that of itself, and so are
 * the gradients of scores. All of them then enter sums with weights that sum to one for the output, with up to as many
 * as `rows` queries or pairs for the gradients of what these share. */
static double tolerance(double rows)
{
    const double score = (2 * sqrt(DIM) + 2) * sqrt(DIM);
    return 0x1p-24 * (2 * score + 2 * DIM + 2 * sqrt(TK)) * (1 + sqrt(rows));
}

static void check_case(att_ctx *ctx, const golden_case *c)
{
    static const char *const names[ATT_MAX_PARAMS] = {"dparam0", "dparam1", "dparam2"};
    call x;
    att_plan *plan;
    make_call(c, &x);
    if (att_plan_new(ctx, &x.spec, &plan) || att_forward(plan, &x.args) || att_backward(plan, &x.args, &x.grads))
        fail_msg("%s: %s", c->name, att_error(ctx));
    const double group = (double)(x.spec.heads / x.spec.kv_heads);
    compare(ctx, c->name, "out", &x.args.out, tolerance(1));
    compare(ctx, c->name, "dq", &x.grads.dq, tolerance(1));
    compare(ctx, c->name, "dk", &x.grads.dk, tolerance(TQ * group));
    compare(ctx, c->name, "dv", &x.grads.dv, tolerance(TQ * group));
    if (c->modifier)
        compare(ctx, c->name, "dbias", &x.grads.dmodifier_param[0], tolerance(BATCH));
    for (int i = 0; i < ATT_MAX_PARAMS && c->param[i][0]; i++)
        compare(ctx, c->name, names[i], &x.grads.dscore_param[i], tolerance(BATCH * HEADS * TQ * TK));
    att_plan_free(plan);
    drop_call(&x);
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
            att_var *projected = att_linear(t, att_input(t, i ? &memory : &x), weight[i], bias[i], ATT_IDENTITY, NULL);
            heads[i] = att_split_heads(t, projected, HEADS);
        }
        att_var *joined = att_merge_heads(t, att_attend(t, plan, heads[0], heads[1], heads[2], &args, NULL));
        if (att_read(t, att_linear(t, joined, weight[3], bias[3], ATT_IDENTITY, NULL), &y))
            fail_msg("%s", att_error(ctx));
        att_tensor batched;
        att_wrap(&batched, y.data, ATT_F32, ATT_DIMS(BATCH, TQ, FEATURES), NULL);
        /* projections of FEATURES terms, so of up to 4: scores have up to 16 / 2, outputs up to 16 */
        compare(ctx, "layer", "out", &batched, 16 * tolerance(FEATURES));
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
