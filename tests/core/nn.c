/* Layers against PyTorch's and transformers': results and all gradients, on sequences of different lengths. Weights are
 * loaded under the names that they have there. */
#include "attend_nn.h"
#include "attend_util.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/golden_text.h"

#define GOLDEN "tests/golden/nn.txt"

/* As in make_nn.py */
enum { WIDTH = 8, HEADS = 2, INNER = 12, TOKENS = 8, SOURCES = 6, SEQUENCES = 3, MOST = 512, MOST_TENSORS = 40 };
static const int64_t offsets[] = {0, 4, 5, TOKENS}, source_offsets[] = {0, 2, 5, SOURCES};

/* ---- a state dict: PyTorch's tensors by name, made when they are asked for */

typedef struct naming {
    const char *ours, *theirs;
    int third;
} naming;
/* A first row that is a prefix of our name counts. */
#define ATTENTION(ours, theirs)                                                                                        \
    {ours "query.", theirs "in_proj_", 0}, {ours "key.", theirs "in_proj_", 1}, {ours "value.", theirs "in_proj_", 2}, \
    {                                                                                                                  \
        ours "output.", theirs "out_proj.", -1                                                                         \
    }
static const naming of_attention[] = {ATTENTION("l.", ""), {0}};
#define LAYER(prefix)                                                                                                  \
    ATTENTION("l.attention.", prefix "self_attn."), {"l.attention_norm.", prefix "norm1.", -1},                        \
        {"l.feed_forward.inner.", prefix "linear1.", -1},                                                              \
    {                                                                                                                  \
        "l.feed_forward.outer.", prefix "linear2.", -1                                                                 \
    }
static const naming of_encoder[] = {LAYER(""), {"l.feed_forward_norm.", "norm2.", -1}, {0}};
static const naming of_layer_scale[] = {LAYER("layer."),
                                        {"l.feed_forward_norm.", "layer.norm2.", -1},
                                        {"l.attention_scale", "scale1", -1},
                                        {"l.feed_forward_scale", "scale2", -1},
                                        {0}};
static const naming of_decoder[] = {LAYER(""),
                                    ATTENTION("l.cross.", "multihead_attn."),
                                    {"l.cross_norm.", "norm2.", -1},
                                    {"l.feed_forward_norm.", "norm3.", -1},
                                    {0}};
static const naming of_qwen3[] = {
    {"l.attention.query.", "self_attn.q_proj.", -1},      {"l.attention.key.", "self_attn.k_proj.", -1},
    {"l.attention.value.", "self_attn.v_proj.", -1},      {"l.attention.output.", "self_attn.o_proj.", -1},
    {"l.attention.query_norm.", "self_attn.q_norm.", -1}, {"l.attention.key_norm.", "self_attn.k_norm.", -1},
    {"l.attention_norm.", "input_layernorm.", -1},        {"l.feed_forward_norm.", "post_attention_layernorm.", -1},
    {"l.feed_forward.gate.", "mlp.gate_proj.", -1},       {"l.feed_forward.inner.", "mlp.up_proj.", -1},
    {"l.feed_forward.outer.", "mlp.down_proj.", -1},      {0}};

typedef struct state_dict {
    const naming *names;
    float *memory[MOST_TENSORS];
    int n;
} state_dict;

/* Their name of a parameter, and which third of it ours is */
static int theirs_of(const naming *names, const char *ours, char theirs[96])
{
    for (; names->ours; names++)
        if (!strncmp(ours, names->ours, strlen(names->ours))) {
            snprintf(theirs, 96, "%s%s", names->theirs, ours + strlen(names->ours));
            return names->third;
        }
    fail_msg("%s has no name in PyTorch", ours);
    return -1;
}

static att_status load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    state_dict *s = user;
    char theirs[96];
    const int third = theirs_of(s->names, name, theirs);
    const int64_t count = rank == 2 ? dim[0] * dim[1] : dim[0], thirds = third < 0 ? 1 : 3;
    const size_t length = strlen(theirs);
    const bool norm = strstr(theirs, "norm") && !strcmp(theirs + length - 6, "weight");
    uint64_t seed = 0;
    for (size_t i = 0; i < length; i++)
        seed += (uint64_t)theirs[i] * (i + 1);
    assert_true(s->n < MOST_TENSORS);
    float *x = s->memory[s->n++] = malloc((size_t)(thirds * count) * sizeof *x);
    check_fill(x, thirds * count, seed, norm ? 1 : 0, norm ? 1.0f / 8 : 0.5f);
    return att_wrap(value, x + (third > 0 ? third * count : 0), ATT_F32, rank, dim, NULL);
}

/* ---- cases */

typedef struct call {
    att_tape *t;
    att_var *x, *source;
    att_attention_args self, cross;
} call;

static const att_nn_attention_config attention_config = {
    .size = sizeof attention_config, .width = WIDTH, .heads = HEADS, .causal = true};
static const att_nn_attention_config cross_config = {.size = sizeof cross_config, .width = WIDTH, .heads = HEADS};

static att_var *attention(att_nn_params *p, call *c)
{
    return att_nn_attention_apply(c->t, att_nn_attention_new(p, "l", &attention_config), c->x,
                                  ATT_OPTIONS(att_nn_attention_call, .args = &c->self));
}

static att_var *cross(att_nn_params *p, call *c)
{
    return att_nn_attention_apply(c->t, att_nn_attention_new(p, "l", &cross_config), c->x,
                                  ATT_OPTIONS(att_nn_attention_call, .args = &c->cross, .source = c->source));
}

#define LAYER_CONFIG .size = sizeof(att_nn_layer_config), .width = WIDTH, .heads = HEADS, .intermediate = INNER
static const att_nn_layer_config post = {LAYER_CONFIG},
                                 pre = {LAYER_CONFIG, .order = ATT_NN_ORDER_PRE_NORM,
                                        .activation = ATT_ACTIVATION_GELU_ERF},
                                 sasrec = {LAYER_CONFIG, .order = ATT_NN_ORDER_QUERY_NORM, .causal = true},
                                 layer_scale = {LAYER_CONFIG, .order = ATT_NN_ORDER_PRE_NORM, .layer_scale = 1};

static const att_rotary_options rotary = {.size = sizeof rotary};
static const att_nn_attention_config qwen3_attention = {.size = sizeof qwen3_attention,
                                                        .width = WIDTH,
                                                        .heads = 4,
                                                        .kv_heads = 2,
                                                        .head_dim = 4,
                                                        .causal = true,
                                                        .no_query_bias = true,
                                                        .no_key_bias = true,
                                                        .no_value_bias = true,
                                                        .no_output_bias = true,
                                                        .qk_norm = ATT_NN_QK_NORM_HEAD,
                                                        .qk_norm_kind = ATT_NN_NORM_RMS,
                                                        .qk_norm_eps = 1e-6f,
                                                        .rotary = &rotary};
static const att_nn_layer_config qwen3 = {LAYER_CONFIG,    .activation = ATT_ACTIVATION_SILU, .gated = true,
                                          .no_bias = true, .order = ATT_NN_ORDER_PRE_NORM,    .norm = ATT_NN_NORM_RMS,
                                          .eps = 1e-6f,    .attention = &qwen3_attention};

static att_var *encode(att_nn_params *p, call *c, const att_nn_layer_config *config)
{
    return att_nn_encoder_layer_apply(c->t, att_nn_encoder_layer_new(p, "l", config), c->x,
                                      ATT_OPTIONS(att_nn_layer_call, .args = &c->self));
}
static att_var *decode(att_nn_params *p, call *c, const att_nn_layer_config *config)
{
    return att_nn_decoder_layer_apply(
        c->t, att_nn_decoder_layer_new(p, "l", config), c->x,
        ATT_OPTIONS(att_nn_layer_call, .args = &c->self, .source = c->source, .cross = &c->cross));
}
static att_var *encoder_post(att_nn_params *p, call *c) { return encode(p, c, &post); }
static att_var *encoder_pre(att_nn_params *p, call *c) { return encode(p, c, &pre); }
static att_var *encoder_sasrec(att_nn_params *p, call *c) { return encode(p, c, &sasrec); }
static att_var *encoder_layer_scale(att_nn_params *p, call *c) { return encode(p, c, &layer_scale); }
static att_var *encoder_qwen3(att_nn_params *p, call *c) { return encode(p, c, &qwen3); }
static att_var *decoder_post(att_nn_params *p, call *c) { return decode(p, c, &post); }
static att_var *decoder_pre(att_nn_params *p, call *c) { return decode(p, c, &pre); }

/* ---- the comparison */

static double furthest; /* over all that is compared, by the largest number */

/* Within 1e-6 of the largest number, which is some ten roundings of 6e-8. The largest is at least 1, that of the
 * results' gradient: terms that cancel in a small gradient are of that order. */
static void check_numbers_of(const char *name, int third, const att_tensor *x)
{
    static double expected[MOST];
    const int64_t count = att_count(x), n = golden_line(GOLDEN, name, expected, MOST);
    const double *of = expected + (third > 0 ? third * count : 0);
    assert_int_equal(n, third < 0 ? count : 3 * count);
    double largest = 1;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < count; i++) {
        const float got = ((const float *)x->data)[i];
        check_near(of[i], got, 1e-6 * largest, "%s [%d]", name, (int)i);
        furthest = fmax(furthest, fabs((double)got - of[i]) / largest);
    }
}

static att_var *input(att_tape *t, float *x, int64_t rows)
{
    att_tensor v;
    assert_int_equal(att_wrap(&v, x, ATT_F32, ATT_DIMS(rows, WIDTH), NULL), ATT_OK);
    return att_input(t, &v);
}

static void check_grads(const char *name, const att_nn_params *p, const naming *names)
{
    for (int64_t i = 0; i < att_nn_params_count(p); i++) {
        const char *ours;
        const att_param *param = att_nn_params_at(p, i, &ours);
        char theirs[96], line[160];
        const int third = theirs_of(names, ours, theirs);
        snprintf(line, sizeof line, "%s.%s", name, theirs);
        check_numbers_of(line, third, att_param_grad(param));
    }
}

static void check_case(const char *name, const naming *names, att_var *(*apply)(att_nn_params *p, call *c))
{
    state_dict s = {.names = names};
    att_nn_params *p;
    att_tensor y = {0}, dy, grad;
    char line[160];
    float *x = check_numbers(TOKENS * WIDTH, 1), *source = check_numbers(SOURCES * WIDTH, 2);
    call c = {
        .self = {.size = sizeof c.self, .n_sequences = SEQUENCES, .q_offsets = offsets},
        .cross = {.size = sizeof c.cross, .n_sequences = SEQUENCES, .q_offsets = offsets, .k_offsets = source_offsets}};
    assert_int_equal(
        att_nn_params_new(ctx, ATT_OPTIONS(att_nn_params_config, .load = load, .user = &s, .trainable = true), &p),
        ATT_OK);
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &c.t), ATT_OK);
    c.x = input(c.t, x, TOKENS);
    c.source = input(c.t, source, SOURCES);
    att_var *out = apply(p, &c);
    if (att_nn_params_status(p) || att_var_value(c.t, out, &y))
        fail_msg("%s: %s", name, att_error(ctx));
    snprintf(line, sizeof line, "%s.y", name);
    check_numbers_of(line, -1, &y);
    dy = y;
    dy.data = check_numbers(TOKENS * WIDTH, 3);
    assert_int_equal(att_tape_backward(c.t, out, &dy), ATT_OK);
    for (int i = 0; i < 2; i++)
        if (!att_var_grad(c.t, i ? c.source : c.x, &grad)) {
            snprintf(line, sizeof line, "%s.%s", name, i ? "source" : "x");
            check_numbers_of(line, -1, &grad);
        }
    check_grads(name, p, names);
    free(dy.data);
    att_tape_free(c.t);
    att_nn_params_free(p);
    for (int i = 0; i < s.n; i++)
        free(s.memory[i]);
    free(x), free(source);
}

static void attention_is_that_of_pytorch(void **state)
{
    (void)state;
    check_case("attention", of_attention, attention);
    check_case("cross", of_attention, cross);
}

static void an_encoder_layer_is_that_of_pytorch(void **state)
{
    (void)state;
    check_case("encoder_post", of_encoder, encoder_post);
    check_case("encoder_pre", of_encoder, encoder_pre);
}

static void a_decoder_layer_is_that_of_pytorch(void **state)
{
    (void)state;
    check_case("decoder_post", of_decoder, decoder_post);
    check_case("decoder_pre", of_decoder, decoder_pre);
}

static void a_layer_with_normalized_queries_is_that_of_sasrec(void **state)
{
    (void)state;
    check_case("sasrec", of_encoder, encoder_sasrec);
}

static void layer_scale_is_a_factor_of_each_feature(void **state)
{
    (void)state;
    check_case("layer_scale", of_layer_scale, encoder_layer_scale);
}

static void a_layer_of_a_language_model_is_that_of_transformers(void **state)
{
    (void)state;
    check_case("qwen3", of_qwen3, encoder_qwen3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_that_of_pytorch),
        cmocka_unit_test(an_encoder_layer_is_that_of_pytorch),
        cmocka_unit_test(a_decoder_layer_is_that_of_pytorch),
        cmocka_unit_test(a_layer_with_normalized_queries_is_that_of_sasrec),
        cmocka_unit_test(layer_scale_is_a_factor_of_each_feature),
        cmocka_unit_test(a_layer_of_a_language_model_is_that_of_transformers),
    };
    const int failed = cmocka_run_group_tests(tests, open_context, close_context);
    print_message("layers: at most %.1e of the largest number away\n", furthest);
    return failed;
}
