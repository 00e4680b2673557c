/* The recurrent encoder-decoder: PyTorch's numbers and losses, and the same bits at once and token by token. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "fixtures/golden_text.h"
#include "fixtures/trace_rows.h"
#include "translate/seq2seq.h"
#include "translate/seq2seq_config.h"

#define GOLDEN "tests/golden/seq2seq.txt"

/* As in make_seq2seq.py */
enum { SOURCE_WORDS = 11, WORDS = 9, EMBEDDING = 4, UNITS = 6, PAD = WORDS - 1, STEPS = 20 };
enum { N = 3, SOURCE = 10, TARGET = 11 };
static const int64_t source_offsets[] = {0, 5, 7, SOURCE}, target_offsets[] = {0, 4, 6, TARGET};

static const att_seq2seq_config base = {.size = sizeof base,
                                        .source_vocabulary = SOURCE_WORDS,
                                        .target_vocabulary = WORDS,
                                        .embedding = EMBEDDING,
                                        .units = UNITS,
                                        .layers = 1,
                                        .max_positions = 16,
                                        .pad = PAD,
                                        .start = PAD};

/* The cases of the script, and then all others. */
enum { GOLDENS = 6, CASES = GOLDENS + 32 };
static att_seq2seq_config case_of(int i)
{
    static const struct {
        bool lstm;
        att_seq2seq_attention attention;
        int layers;
        bool bidirectional;
    } golden[GOLDENS] = {{false, ATT_SEQ2SEQ_NONE, 1, false},    {false, ATT_SEQ2SEQ_ADDITIVE, 1, true},
                         {false, ATT_SEQ2SEQ_GENERAL, 2, false}, {true, ATT_SEQ2SEQ_NONE, 2, true},
                         {true, ATT_SEQ2SEQ_ADDITIVE, 2, true},  {true, ATT_SEQ2SEQ_DOT, 1, true}};
    att_seq2seq_config c = base;
    const int k = i - GOLDENS;
    c.lstm = k < 0 ? golden[i].lstm : k & 1;
    c.bidirectional = k < 0 ? golden[i].bidirectional : k & 2;
    c.layers = k < 0 ? golden[i].layers : 1 + (k >> 2 & 1);
    c.attention = k < 0 ? golden[i].attention : (att_seq2seq_attention)(k >> 3);
    c.tie = c.scale_embedding = k >= 0 && k % 3 == 0;
    return c;
}

static int32_t source[SOURCE], target[TARGET];

static att_sequence_pairs pairs(void)
{
    for (int32_t i = 0; i < SOURCE; i++)
        source[i] = (i * 7 + 3) % SOURCE_WORDS;
    for (int32_t i = 0; i < TARGET; i++)
        target[i] = (i * 5 + 2) % PAD;
    return (att_sequence_pairs){.size = sizeof(att_sequence_pairs),
                                .n = N,
                                .source = source,
                                .source_offsets = source_offsets,
                                .target = target,
                                .target_offsets = target_offsets};
}

/* With the numbers of the script. */
static att_seq2seq *model(att_ctx *c, const att_seq2seq_config *config)
{
    att_seq2seq *m;
    if (att_seq2seq_new(c, config, 1, &m))
        fail_msg("%s", att_error(c));
    for (int64_t i = 0; i < att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m))); i++) {
        const char *name;
        att_param *p = att_nn_params_at(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m)), i, &name);
        const att_tensor *value = att_param_value(p);
        check_fill(value->data, att_count(value), 100 + (uint64_t)i, 0, 0.5f);
        att_param_invalidate(p);
    }
    return m;
}

static att_tape *tape(att_ctx *c, bool record)
{
    att_tape *t;
    assert_int_equal(att_tape_new(c, ATT_OPTIONS(att_tape_config, .record = record), &t), ATT_OK);
    return t;
}

static const float *floats(att_tape *t, att_var *v, int64_t count)
{
    att_tensor x;
    if (att_var_value(t, v, &x))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_count(&x), count);
    return x.data;
}

/* ---- PyTorch */

/* Some ten sums of up to 12 numbers below 1, one after the other, through up to 10 steps: (12 + 8) roundings each. */
static void logits_are_those_of_pytorch(void **state)
{
    (void)state;
    const att_sequence_pairs p = pairs();
    for (att_ctx *c = NULL; check_next_context(&c, 2);)
        for (int i = 0; i < GOLDENS; i++) {
            const att_seq2seq_config config = case_of(i);
            char name[32];
            double expected[TARGET * WORDS];
            att_seq2seq *m = model(c, &config);
            att_tape *t = tape(c, false);
            snprintf(name, sizeof name, "logits_%d", i);
            assert_int_equal(golden_line(GOLDEN, name, expected, TARGET * WORDS), TARGET * WORDS);
            const float *y =
                floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, NULL), TARGET * WORDS);
            for (int j = 0; j < TARGET * WORDS; j++)
                check_near(expected[j], y[j], 10 * 20 * FLT_EPSILON / 2, "%s %s [%d]", att_isa(c), name, j);
            att_tape_free(t);
            att_seq2seq_free(m);
        }
}

/* Of each sentence alone, whose last token no decoder is given. */
static void attention_weights_are_those_of_pytorch(void **state)
{
    (void)state;
    static const char *const scores[] = {
        [ATT_SEQ2SEQ_ADDITIVE] = "additive", [ATT_SEQ2SEQ_DOT] = "dot", [ATT_SEQ2SEQ_GENERAL] = "general"};
    for (att_ctx *c = NULL; check_next_context(&c, 2);) {
        att_tokenizer *tokenizer; /* which is not used */
        assert_int_equal(att_tokenizer_open(c, "tests/golden/unigram.spm", &tokenizer), ATT_OK);
        for (int i = 0; i < GOLDENS; i++) {
            const att_seq2seq_config config = case_of(i);
            const att_sequence_pairs p = pairs();
            double weights[TARGET * 5], logits[TARGET * WORDS];
            char name[32];
            att_translator *translator;
            if (config.attention == ATT_SEQ2SEQ_NONE)
                continue;
            att_seq2seq *m = model(c, &config);
            assert_int_equal(att_translator_new(att_seq2seq_as_encoder_decoder(m), tokenizer, &translator), ATT_OK);
            snprintf(name, sizeof name, "weights_%d", i);
            assert_int_equal(golden_line(GOLDEN, name, weights, TARGET * 5), 4 * 5 + 2 * 2 + 5 * 3);
            snprintf(name, sizeof name, "logits_%d", i);
            golden_line(GOLDEN, name, logits, TARGET * WORDS);
            for (int64_t b = 0, at = 0; b < N; b++) {
                const int64_t from = source_offsets[b], to = target_offsets[b], n = target_offsets[b + 1] - to;
                const att_trace_options o = {
                    .size = sizeof o, .ids = p.source + from, .n_ids = source_offsets[b + 1] - from};
                att_trace *t;
                if (att_translator_trace(translator, NULL, 0, p.target + to, n - 1, &o, &t))
                    fail_msg("%s", att_error(c));
                assert_string_equal(trace_attention(t, ATT_TRACE_SIDE_CROSS, 0).score, scores[config.attention]);
                float *w = trace_weights(t, ATT_TRACE_SIDE_CROSS, 0, 0), *y = trace_output(t, -1);
                for (int64_t k = 0; k < n * o.n_ids; k++)
                    check_near(weights[at + k], w[k], 10 * 20 * FLT_EPSILON / 2, "%s weights_%d", att_isa(c), i);
                for (int64_t k = 0; k < n * WORDS; k++)
                    check_near(logits[to * WORDS + k], y[k], 10 * 20 * FLT_EPSILON / 2, "%s %s", att_isa(c), name);
                at += n * o.n_ids;
                free(w), free(y);
                att_trace_free(t);
            }
            att_translator_free(translator);
            att_seq2seq_free(m);
        }
        att_tokenizer_free(tokenizer);
    }
}

static void twenty_steps_have_the_losses_of_pytorch(void **state)
{
    (void)state;
    const att_sequence_pairs p = pairs();
    for (int i = 0; i < GOLDENS; i++) {
        const att_seq2seq_config config = case_of(i);
        char name[32];
        double expected[STEPS];
        att_seq2seq *m = model(ctx, &config);
        att_tape *t = tape(ctx, true);
        att_optimizer *o;
        snprintf(name, sizeof name, "losses_%d", i);
        assert_int_equal(golden_line(GOLDEN, name, expected, STEPS), STEPS);
        assert_int_equal(
            att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.01),
                              &o),
            ATT_OK);
        for (int64_t k = 0; k < att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m))); k++)
            assert_int_equal(
                att_optimizer_add(o,
                                  att_nn_params_at(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m)), k,
                                                   &(const char *){NULL}),
                                  NULL),
                ATT_OK);
        for (int step = 0; step < STEPS; step++) {
            att_var *loss = att_encoder_decoder_loss(t, att_seq2seq_as_encoder_decoder(m), &p,
                                                     ATT_OPTIONS(att_loss_options, .label_smoothing = 0.1f));
            /* logits are off by 1.2e-5 at most, as above; Adam's steps follow the direction of gradients, whatever
             * their size, so that weights drift apart by some such errors: ten of them are allowed */
            check_near(expected[step], *floats(t, loss, 1), 1.2e-4, "%s [%d]", name, step);
            assert_int_equal(att_tape_backward(t, loss, NULL), ATT_OK);
            att_tape_reset(t);
            assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.01), NULL), ATT_OK);
        }
        att_optimizer_free(o);
        att_tape_free(t);
        att_seq2seq_free(m);
    }
}

/* ---- the same bits */

/* Logits of what follows ids [rows]. */
static att_var *next_logits(const att_generator *g, att_tape *t, const int32_t *ids)
{
    return att_nn_linear_apply(t, g->output, g->step(g->user, t, ids), ATT_ACTIVATION_IDENTITY, NULL);
}

/* Logits of the target's tokens one by one, of all sentences that still have some: `each` row is a sentence. */
static void check_steps(att_seq2seq *m, const float *at_once)
{
    const att_sequence_pairs p = pairs();
    att_generator s;
    att_tape *t = tape(ctx, false);
    int64_t each[N] = {0, 1, 2}, from[N], rows = N;
    int32_t ids[N] = {PAD, PAD, PAD};
    if (att_seq2seq_architecture.start(att_seq2seq_as_encoder_decoder(m), p.source, p.source_offsets, N, &s))
        fail_msg("%s", att_error(ctx));
    for (int64_t i = 0; rows > 0; i++) {
        att_tape_reset(t);
        const float *y = floats(t, next_logits(&s, t, ids), rows * WORDS);
        int64_t left = 0;
        for (int64_t b = 0; b < rows; b++) {
            const int64_t token = p.target_offsets[each[b]] + i;
            assert_memory_equal(y + b * WORDS, at_once + token * WORDS, WORDS * sizeof *y);
            if (token + 1 == p.target_offsets[each[b] + 1])
                continue;
            ids[left] = p.target[token];
            from[left] = b;
            each[left++] = each[b];
        }
        assert_int_equal(s.select(s.user, left, from), ATT_OK);
        rows = left;
    }
    s.free(s.user);
    att_tape_free(t);
}

static void check_alone(att_seq2seq *m, const float *together)
{
    const att_sequence_pairs all = pairs();
    for (int64_t i = 0; i < N; i++) {
        const int64_t first = target_offsets[i], n = target_offsets[i + 1] - first;
        const int64_t sources[] = {0, source_offsets[i + 1] - source_offsets[i]}, targets[] = {0, n};
        const att_sequence_pairs one = {.size = sizeof one,
                                        .n = 1,
                                        .source = all.source + source_offsets[i],
                                        .source_offsets = sources,
                                        .target = all.target + first,
                                        .target_offsets = targets};
        att_tape *t = tape(ctx, true);
        assert_memory_equal(
            floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &one, NULL), n * WORDS),
            together + first * WORDS, (size_t)(n * WORDS) * sizeof(float));
        att_tape_free(t);
    }
}

static void a_sentence_alone_and_token_by_token_has_the_same_bits(void **state)
{
    (void)state;
    const att_sequence_pairs p = pairs();
    for (int i = 0; i < CASES; i++) {
        const att_seq2seq_config config = case_of(i);
        att_seq2seq *m = model(ctx, &config);
        att_tape *t = tape(ctx, false);
        const float *y =
            floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, NULL), TARGET * WORDS);
        check_steps(m, y);
        check_alone(m, y);
        att_tape_free(t);
        att_seq2seq_free(m);
    }
}

/* Two rows of one sentence, one of them as another went on, are as sentences of their own. */
static void rows_may_be_copied_and_change_places(void **state)
{
    (void)state;
    for (int i = GOLDENS; i < CASES; i++) {
        const att_seq2seq_config config = case_of(i);
        const att_sequence_pairs p = pairs();
        att_seq2seq *m = model(ctx, &config);
        att_tape *t = tape(ctx, false), *u = tape(ctx, false);
        att_generator s, r;
        assert_int_equal(
            att_seq2seq_architecture.start(att_seq2seq_as_encoder_decoder(m), p.source, p.source_offsets, N, &s),
            ATT_OK);
        assert_int_equal(
            att_seq2seq_architecture.start(att_seq2seq_as_encoder_decoder(m), p.source, p.source_offsets, N, &r),
            ATT_OK);
        floats(t, next_logits(&s, t, (const int32_t[]){PAD, PAD, PAD}), N * WORDS);
        floats(u, next_logits(&r, u, (const int32_t[]){PAD, PAD, PAD}), N * WORDS);
        assert_int_equal(s.select(s.user, 4, (const int64_t[]){0, 0, 2, 2}), ATT_OK);
        const float *y = floats(t, next_logits(&s, t, (const int32_t[]){3, 4, 5, 6}), 4 * WORDS);
        const float *x = floats(u, next_logits(&r, u, (const int32_t[]){4, 1, 5}), N * WORDS);
        assert_memory_equal(y + WORDS, x, WORDS * sizeof *y);
        assert_memory_equal(y + 2 * WORDS, x + 2 * WORDS, WORDS * sizeof *y);
        assert_true(memcmp(y, x, WORDS * sizeof *y) && memcmp(y + 3 * WORDS, x + 2 * WORDS, WORDS * sizeof *y));
        assert_int_equal(s.select(s.user, 2, (const int64_t[]){1, 2}), ATT_OK);
        assert_int_equal(r.select(r.user, 2, (const int64_t[]){0, 2}), ATT_OK);
        y = floats(t, next_logits(&s, t, (const int32_t[]){0, 7}), 2 * WORDS);
        x = floats(u, next_logits(&r, u, (const int32_t[]){0, 7}), 2 * WORDS);
        assert_memory_equal(y, x, 2 * WORDS * sizeof *y);
        s.free(s.user);
        r.free(r.user);
        att_tape_free(t);
        att_tape_free(u);
        att_seq2seq_free(m);
    }
}

static void dropout_follows_from_seed_and_sequence(void **state)
{
    (void)state;
    static const uint32_t ids[] = {4, 2, 9};
    const att_sequence_pairs p = pairs();
    for (int i = 0; i < GOLDENS; i++) {
        const att_seq2seq_config config = case_of(i);
        att_seq2seq *m = model(ctx, &config);
        att_tape *t = tape(ctx, true);
        att_loss_options l = {.size = sizeof l, .dropout = 0.3f, .seed = 5, .sequence_ids = ids};
        const float *y =
            floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, &l), TARGET * WORDS);
        assert_memory_equal(
            floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, &l), TARGET * WORDS), y,
            TARGET * WORDS * sizeof *y);
        l.seed = 6;
        assert_true(
            memcmp(floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, &l), TARGET * WORDS),
                   y, TARGET * WORDS * sizeof *y));
        att_tape_free(t);
        att_seq2seq_free(m);
    }
}

/* ---- random numbers, and settings */

static void a_seed_makes_the_same_model_again(void **state)
{
    (void)state;
    const att_seq2seq_config config = case_of(4);
    att_seq2seq *m[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_seq2seq_new(ctx, &config, i < 2 ? 7 : 8, &m[i]), ATT_OK);
    int64_t same = 0, other = 0;
    for (int64_t k = 0; k < att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m[0])));
         k++) {
        const char *name;
        const att_tensor *x[3];
        for (int i = 0; i < 3; i++)
            x[i] = att_param_value(
                att_nn_params_at(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m[i])), k, &name));
        const size_t bytes = (size_t)att_count(x[0]) * sizeof(float);
        same += !memcmp(x[0]->data, x[1]->data, bytes);
        other += memcmp(x[0]->data, x[2]->data, bytes) != 0;
    }
    assert_int_equal(same, att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m[0]))));
    assert_true(other > same / 3); /* biases begin at 0 */
    assert_null(att_nn_params_at(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m[0])), same,
                                 &(const char *){NULL}));
    for (int i = 0; i < 3; i++)
        att_seq2seq_free(m[i]);
}

static void a_folder_gives_the_model_that_was_written(void **state)
{
    (void)state;
    const att_sequence_pairs p = pairs();
    const test_folder f = folder_new();
    for (int i = 0; i < CASES; i++) {
        att_seq2seq_config config = case_of(i), read = {.size = sizeof read};
        att_seq2seq *m = model(ctx, &config), *again[2];
        assert_int_equal(att_encoder_decoder_write(att_seq2seq_as_encoder_decoder(m), f.path, NULL), ATT_OK);
        if (att_seq2seq_open(ctx, f.path, NULL, &again[0]) ||
            att_seq2seq_open_for_training(ctx, f.path, NULL, &again[1]))
            fail_msg("%s", att_error(ctx));
        for (int k = 0; k < 2; k++) {
            const att_nn_params *params = att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(again[k]));
            assert_int_equal(att_nn_params_trainable(params), k);
            assert_int_equal(att_nn_params_count(params),
                             att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m))));
        }
        assert_int_equal(att_seq2seq_describe(again[0], &read), ATT_OK);
        assert_true(read.lstm == config.lstm && read.bidirectional == config.bidirectional);
        assert_true(read.attention == config.attention && read.layers == config.layers && read.start == PAD);
        assert_true(read.tie == config.tie && read.scale_embedding == config.scale_embedding && !read.share);
        att_tape *t = tape(ctx, false);
        const float *y =
            floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, NULL), TARGET * WORDS);
        for (int k = 0; k < 2; k++) {
            assert_memory_equal(
                floats(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(again[k]), &p, NULL),
                       TARGET * WORDS),
                y, TARGET * WORDS * sizeof *y);
            att_seq2seq_free(again[k]);
        }
        att_tape_free(t);
        att_seq2seq_free(m);
    }
    folder_remove(&f);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    att_seq2seq *m;
#define REFUSED(sentence, ...)                                                                                         \
    do {                                                                                                               \
        att_seq2seq_config c = base;                                                                                   \
        __VA_ARGS__;                                                                                                   \
        assert_true(att_seq2seq_new(ctx, &c, 1, &m) != ATT_OK);                                                        \
        assert_null(m);                                                                                                \
        assert_string_equal(att_error(ctx), sentence);                                                                 \
    } while (0)
    REFUSED("seq2seq: \"vocab_size\" is 0, not in [1, 134217728]", c.source_vocabulary = 0);
    REFUSED("seq2seq: \"num_layers\" is 17, not in [1, 16]", c.layers = 17);
    REFUSED("seq2seq: \"num_layers\" is 9, at most 8 in two directions", c.layers = 9, c.bidirectional = true);
    REFUSED("seq2seq: \"hidden_size\" is 5, which two directions cannot share", c.units = 5, c.bidirectional = true);
    REFUSED("seq2seq: \"eos_token_id\" is 9, but \"decoder_vocab_size\" is 9", c.eos = 9);
    REFUSED("seq2seq: \"share_encoder_decoder_embeddings\" is true, but \"vocab_size\" is 11 and "
            "\"decoder_vocab_size\" 9",
            c.share = true);
    REFUSED("seq2seq: 4 is not an attention", c.attention = (att_seq2seq_attention)4);
#undef REFUSED
    const test_folder f = folder_new();
    folder_write(&f, "config.json", "{\"model_type\": \"marian\"}");
    assert_int_equal(att_seq2seq_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "config.json: \"model_type\" is \"marian\"");
    folder_remove(&f);
}

static void wrong_pairs_are_named(void **state)
{
    (void)state;
    static const int64_t empty[] = {0, 4, 4, TARGET};
    att_seq2seq *m = model(ctx, &base);
    att_tape *t = tape(ctx, false);
    att_tensor x;
    att_sequence_pairs p = pairs();
#define REFUSED(sentence)                                                                                              \
    do {                                                                                                               \
        att_tape_reset(t);                                                                                             \
        assert_int_equal(                                                                                              \
            att_var_value(t, att_encoder_decoder_logits(t, att_seq2seq_as_encoder_decoder(m), &p, NULL), &x),          \
            ATT_ERR_ARGUMENT);                                                                                         \
        assert_string_equal(att_error(ctx), sentence);                                                                 \
        p = pairs();                                                                                                   \
    } while (0)
    p.n = -1;
    REFUSED("encoder_decoder: pairs.n is -1, less than 0");
    p.n = 0;
    REFUSED("target: there is no sequence");
    p.target = NULL;
    REFUSED("encoder_decoder: pairs.target is NULL");
    p.target_offsets = empty;
    REFUSED("target: sequence 1 has no tokens");
    source[6] = SOURCE_WORDS;
    REFUSED("encoder/embeddings: embedding: ids[6] = 11 but the table has 11 rows");
#undef REFUSED
    att_tape_free(t);
    att_seq2seq_free(m);
}

/* A model, its loss and a backward, and a step of a translation: all or nothing. */
static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const att_seq2seq_config config = case_of(4);
    const att_sequence_pairs p = pairs();
    att_status e = ATT_ERR_MEMORY;
    for (long at = 1; e; at++) {
        fail_alloc f = {0};
        att_ctx *c = fail_open(&f);
        att_tape *t = tape(c, true);
        att_tensor x;
        att_seq2seq *m = NULL;
        att_generator s = {0};
        f.fail_at = f.calls + at;
        e = att_seq2seq_new(c, &config, 1, &m);
        att_var *loss = e ? NULL : att_encoder_decoder_loss(t, att_seq2seq_as_encoder_decoder(m), &p, NULL);
        e = e ? e : att_var_value(t, loss, &x);
        e = e ? e : att_tape_backward(t, loss, NULL);
        e = e ? e
              : att_seq2seq_architecture.start(att_seq2seq_as_encoder_decoder(m), p.source, p.source_offsets, N, &s);
        e = e ? e : s.select(s.user, 2, (const int64_t[]){1, 1});
        if (!e)
            e = att_var_value(t, next_logits(&s, t, (const int32_t[]){1, 2}), &x);
        assert_true(e == ATT_OK || e == ATT_ERR_MEMORY);
        if (s.free)
            s.free(s.user);
        att_tape_free(t);
        att_seq2seq_free(m);
        att_close(c);
        assert_int_equal(f.live, 0);
        assert_true(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_pytorch),
        cmocka_unit_test(attention_weights_are_those_of_pytorch),
        cmocka_unit_test(twenty_steps_have_the_losses_of_pytorch),
        cmocka_unit_test(a_sentence_alone_and_token_by_token_has_the_same_bits),
        cmocka_unit_test(rows_may_be_copied_and_change_places),
        cmocka_unit_test(dropout_follows_from_seed_and_sequence),
        cmocka_unit_test(a_seed_makes_the_same_model_again),
        cmocka_unit_test(a_folder_gives_the_model_that_was_written),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(wrong_pairs_are_named),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
