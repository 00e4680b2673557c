/* gpt-nano-sort, a published model of minGPT that sorts six digits, as a folder of GPT-2: every intermediate result
 * that is stored with it, and all inputs. */
#include "fixtures/converted_model.h"
#include "fixtures/real_files.h"

#include "attend_learn.h"

#include <jansson.h>
#include <math.h>

enum { DIGITS = 6, POSITIONS = 11, BATCH = 3, HEADS = 3, HEAD_DIM = 16, WIDTH = 48, INNER = 192, TOKENS = 3 };

/* ---- the JSON files: "shape" and "data", base64 of f32 */

static json_t *read_json(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "models/gpt-nano-sort/%s", name);
    const char *found = data_file(path);
    if (!found) {
        print_message("skipped: ../shared/data/%s does not exist\n", path);
        skip();
    }
    json_error_t error;
    json_t *root = json_load_file(found, 0, &error);
    if (!root)
        fail_msg("%s: %s", found, error.text);
    return root;
}

static unsigned digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    return c && at ? (unsigned)(at - digits) : 0;
}

/* Returns the numbers [n] of an entry. */
static float *numbers(const json_t *root, const char *name, int64_t n)
{
    const char *text = json_string_value(json_object_get(json_object_get(root, name), "data"));
    assert_non_null(text);
    assert_int_equal(strlen(text), (n * 4 + 2) / 3 * 4);
    unsigned char *bytes = malloc(strlen(text) / 4 * 3);
    for (size_t i = 0; text[4 * i]; i++) {
        unsigned word = 0;
        for (size_t k = 0; k < 4; k++)
            word = word << 6 | digit_of(text[4 * i + k]);
        for (size_t k = 0; k < 3; k++)
            bytes[3 * i + k] = (unsigned char)(word >> (16 - 8 * k));
    }
    return (float *)(void *)bytes;
}

/* ---- the model: matrices of the class Linear become those of Conv1D, their transposes */

static void add(converted *c, const json_t *root, const char *name, int64_t out, int64_t in, bool linear)
{
    float *x = numbers(root, name, (out ? out : 1) * in);
    if (linear) {
        float *y = malloc((size_t)(out * in) * sizeof *y);
        for (int64_t i = 0; i < out * in; i++)
            y[i % in * out + i / in] = x[i];
        free(x);
        converted_add(c, name, y, in, out);
    } else
        converted_add(c, name, x, out, in);
}

/* In a new folder */
static att_language_model *open_model(test_folder *folder)
{
    static const struct {
        const char *name;
        int out, in;
        bool linear;
    } layer[] = {{"ln_1.weight", 0, WIDTH, false},
                 {"ln_1.bias", 0, WIDTH, false},
                 {"attn.c_attn.weight", 3 * WIDTH, WIDTH, true},
                 {"attn.c_attn.bias", 0, 3 * WIDTH, false},
                 {"attn.c_proj.weight", WIDTH, WIDTH, true},
                 {"attn.c_proj.bias", 0, WIDTH, false},
                 {"ln_2.weight", 0, WIDTH, false},
                 {"ln_2.bias", 0, WIDTH, false},
                 {"mlp.c_fc.weight", INNER, WIDTH, true},
                 {"mlp.c_fc.bias", 0, INNER, false},
                 {"mlp.c_proj.weight", WIDTH, INNER, true},
                 {"mlp.c_proj.bias", 0, WIDTH, false}};
    json_t *root = read_json("gpt-nano-sort-model.json");
    *folder = folder_new();
    converted *c = calloc(1, sizeof *c);
    char name[64];
    add(c, root, "transformer.wte.weight", TOKENS, WIDTH, false);
    add(c, root, "transformer.wpe.weight", POSITIONS, WIDTH, false);
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof layer / sizeof layer[0]; k++) {
            snprintf(name, sizeof name, "transformer.h.%d.%s", i, layer[k].name);
            add(c, root, name, layer[k].out, layer[k].in, layer[k].linear);
        }
    add(c, root, "transformer.ln_f.weight", 0, WIDTH, false);
    add(c, root, "transformer.ln_f.bias", 0, WIDTH, false);
    add(c, root, "lm_head.weight", TOKENS, WIDTH, false);
    att_language_model *m =
        converted_open(c, folder,
                       "{\"model_type\": \"gpt2\", \"vocab_size\": 3, \"n_embd\": 48, \"n_layer\": 3, \"n_head\": 3, "
                       "\"n_positions\": 11, \"tie_word_embeddings\": false}");
    for (int64_t i = 0; i < c->n; i++)
        free(c->tensor[i].data);
    free(c);
    json_decref(root);
    return m;
}

/* ---- the intermediate results of one batch */

/* Operations of a pass in their order; those of further layers follow at a distance of LAYER. */
enum { TOKEN, POSITION, SUM, NORM_1, QUERY, KEY = 6, VALUE = 8, MERGED = 11, ATTENDED, NORM_2, GELU, BLOCK };
enum { LAYER = BLOCK + 1 - NORM_1, NORM_F = BLOCK + 2 * LAYER + 1, LOGITS, N_OPERATIONS };
enum { ROWS = BATCH * POSITIONS, SQUARE = POSITIONS * POSITIONS };

static struct {
    int n;
    float *output[N_OPERATIONS + 1];
    float weights[BATCH * HEADS][SQUARE]; /* of attention in the first layer */
} pass;

static void keep(void *user, const att_tape_event *e)
{
    (void)user;
    int64_t n = 1;
    for (int i = 0; i < e->output->rank; i++)
        n *= e->output->dim[i];
    if (!strcmp(e->op, "scope")) { /* a layer's result is that of its last operation */
        assert_true(pass.n > 0);
        assert_memory_equal(e->output->data, pass.output[pass.n - 1], (size_t)n * sizeof(float));
        return;
    }
    assert_true(pass.n < N_OPERATIONS);
    float *copy = pass.output[pass.n++] = malloc((size_t)n * sizeof *copy);
    memcpy(copy, e->output->data, (size_t)n * sizeof *copy);
    for (int i = 0; e->plan && !strcmp(e->scope, "decoder/layer.0/attention") && i < BATCH * HEADS; i++)
        assert_int_equal(att_weights(e->plan, e->args, i / HEADS, i % HEADS, 0, POSITIONS, pass.weights[i]), ATT_OK);
}

static void expect_near(const char *name, double is, double want)
{
    if (!(fabs(is - want) <= 1e-4 * fmax(1, fabs(want))))
        fail_msg("%s: %.9g, but %.9g is stored", name, is, want);
}

/* Stored [rows, width] is an operation's result, from its column `first` on, less another's, or none: -1 */
static void expect_rows(const json_t *root, const char *name, int operation, int less, int64_t rows, int64_t width,
                        int64_t first, int64_t columns)
{
    float *want = numbers(root, name, rows * columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k++) {
            const int64_t at = i * width + k;
            expect_near(name, pass.output[operation][at] - (less < 0 ? 0 : pass.output[less][at]),
                        want[i * columns + first + k]);
        }
    free(want);
}

static void expect_result(const json_t *root, const char *name, int operation, int64_t width)
{
    expect_rows(root, name, operation, -1, ROWS, width, 0, width);
}

/* Stored [batch, heads, positions, head_dim] is rows of a projection. */
static void expect_heads(const json_t *root, const char *name, int operation)
{
    float *want = numbers(root, name, ROWS * WIDTH);
    for (int64_t b = 0, i = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t p = 0; p < POSITIONS; p++)
                for (int64_t k = 0; k < HEAD_DIM; k++)
                    expect_near(name, pass.output[operation][(b * POSITIONS + p) * WIDTH + h * HEAD_DIM + k],
                                want[i++]);
    free(want);
}

/* Scores, by the queries and keys of the pass, and weights */
static void expect_attention(const json_t *root)
{
    float *scores = numbers(root, "att", BATCH * HEADS * SQUARE),
          *weights = numbers(root, "attSm", BATCH * HEADS * SQUARE);
    for (int64_t i = 0; i < BATCH * HEADS * SQUARE; i++) {
        const int64_t b = i / SQUARE / HEADS, h = i / SQUARE % HEADS, q = i / POSITIONS % POSITIONS, k = i % POSITIONS;
        const float *query = pass.output[QUERY] + (b * POSITIONS + q) * WIDTH + h * HEAD_DIM,
                    *key = pass.output[KEY] + (b * POSITIONS + k) * WIDTH + h * HEAD_DIM;
        double dot = 0;
        for (int d = 0; d < HEAD_DIM; d++)
            dot += (double)query[d] * key[d];
        if (k <= q)
            expect_near("att", dot / sqrt(HEAD_DIM), scores[i]);
        expect_near("attSm", pass.weights[i / SQUARE][i % SQUARE], weights[i]);
    }
    free(scores);
    free(weights);
}

/* What the pass computes in one operation with what follows: the first matrix of the feed-forward network before its
 * activation; and the softmax after the pass */
static void expect_inner_and_probabilities(const json_t *root)
{
    json_t *model = read_json("gpt-nano-sort-model.json");
    float *w = numbers(model, "transformer.h.0.mlp.c_fc.weight", INNER * WIDTH),
          *bias = numbers(model, "transformer.h.0.mlp.c_fc.bias", INNER), *inner = numbers(root, "fc", ROWS * INNER),
          *probability = numbers(root, "probs", ROWS * TOKENS);
    for (int64_t i = 0; i < ROWS * INNER; i++) {
        double sum = bias[i % INNER];
        for (int64_t k = 0; k < WIDTH; k++)
            sum += (double)pass.output[NORM_2][i / INNER * WIDTH + k] * w[i % INNER * WIDTH + k];
        expect_near("fc", sum, inner[i]);
    }
    for (int64_t i = 0; i < ROWS * TOKENS; i++) {
        const float *logits = pass.output[LOGITS] + i / TOKENS * TOKENS;
        double sum = 0;
        for (int k = 0; k < TOKENS; k++)
            sum += exp(logits[k] - logits[i % TOKENS]);
        expect_near("probs", 1 / sum, probability[i]);
    }
    free(w);
    free(bias);
    free(inner);
    free(probability);
    json_decref(model);
}

static void expect_all(const json_t *root)
{
    expect_result(root, "tok_emb", TOKEN, WIDTH);
    expect_rows(root, "pos_emb", POSITION, -1, POSITIONS, WIDTH, 0, WIDTH);
    expect_result(root, "x", SUM, WIDTH);
    expect_result(root, "ln1", NORM_1, WIDTH);
    expect_heads(root, "q", QUERY);
    expect_heads(root, "k", KEY);
    expect_heads(root, "v", VALUE);
    for (int i = 0; i < 3; i++)
        expect_rows(root, "qkv", QUERY + 2 * i, -1, ROWS, WIDTH, i * WIDTH, 3 * WIDTH);
    expect_attention(root);
    expect_result(root, "y", MERGED, WIDTH);
    expect_rows(root, "yProj", ATTENDED, SUM, ROWS, WIDTH, 0, WIDTH);
    expect_result(root, "attnResid", ATTENDED, WIDTH);
    expect_result(root, "ln2", NORM_2, WIDTH);
    expect_result(root, "gelu", GELU, INNER);
    expect_rows(root, "mlp", BLOCK, ATTENDED, ROWS, WIDTH, 0, WIDTH);
    expect_result(root, "mlpResid", BLOCK, WIDTH);
    expect_result(root, "block0", BLOCK, WIDTH);
    expect_result(root, "block1", BLOCK + LAYER, WIDTH);
    expect_result(root, "block2", BLOCK + 2 * LAYER, WIDTH);
    expect_result(root, "ln_f", NORM_F, WIDTH);
    expect_result(root, "lm_head", LOGITS, TOKENS);
    expect_inner_and_probabilities(root);
}

static void intermediate_results_are_those_that_are_stored(void **state)
{
    (void)state;
    json_t *root = read_json("gpt-nano-sort-t0-partials.json");
    test_folder folder;
    att_language_model *m = open_model(&folder);
    float *stored = numbers(root, "idx", ROWS);
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        ids[i] = (int32_t)stored[i];
    free(stored);
    const int64_t offsets[] = {0, POSITIONS, 2 * POSITIONS, 3 * POSITIONS};
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = keep), &t), ATT_OK);
    assert_non_null(att_language_model_apply(t, m, ids, offsets, BATCH, NULL, NULL));
    assert_int_equal(pass.n, N_OPERATIONS);
    expect_all(root);
    while (pass.n > 0)
        free(pass.output[--pass.n]);
    json_decref(root);
    att_tape_free(t);
    att_language_model_free(m);
    folder_remove(&folder);
}

/* ---- sorting */

static int compare(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static void all_inputs_are_sorted(void **state)
{
    (void)state;
    enum { ALL = 729 };
    static int32_t input[ALL][DIGITS], next[ALL];
    static int64_t offsets[ALL + 1];
    test_folder folder;
    att_language_model *m = open_model(&folder);
    att_language_state *s;
    att_tape *t;
    assert_int_equal(att_language_state_new(m, ALL, ATT_F32, &s), ATT_OK);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (int i = 0; i < ALL; i++)
        for (int k = 0, n = i; k < DIGITS; k++, n /= 3)
            input[i][k] = n % 3;
    for (int k = 0; k < DIGITS; k++) { /* all together: the digits, then token by token */
        att_tensor logits;
        for (int i = 0; i <= ALL; i++)
            offsets[i] = k ? i : i * DIGITS;
        if (att_var_value(t,
                          att_language_model_apply(t, m, k ? next : input[0], offsets, ALL, s,
                                                   ATT_OPTIONS(att_language_model_options, .last_only = true)),
                          &logits))
            fail_msg("%s", att_error(ctx));
        for (int i = 0; i < ALL; i++) {
            if (k == 0)
                qsort(input[i], DIGITS, sizeof(int32_t), compare);
            next[i] = most_probable((const float *)logits.data + i * TOKENS, TOKENS);
            if (next[i] != input[i][k])
                fail_msg("input %d: digit %d is %d, not %d", i, k, next[i], input[i][k]);
        }
        att_tape_reset(t);
    }
    att_tape_free(t);
    att_language_state_free(s);
    att_language_model_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intermediate_results_are_those_that_are_stored),
        cmocka_unit_test(all_inputs_are_sorted),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
