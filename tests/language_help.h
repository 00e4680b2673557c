/* Tests of tiny language models: logits and greedy tokens of tests/golden/tiny_language.py, and decoding. */
#ifndef LANGUAGE_HELP_H
#define LANGUAGE_HELP_H

#include "attend_language.h"
#include "check.h"
#include "context.h"
#include "folder.h"

#include <math.h>

enum { VOCABULARY = 20, TOKENS = 22, N = 3, PROMPT = 5, GREEDY = 50 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3, 5, 2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 3};
static const int64_t offsets[] = {0, 5, 6, TOKENS};

static inline att_language_model *open_model(const test_folder *folder)
{
    att_language_model *m;
    if (att_language_model_open(ctx, folder->path, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static inline att_language_state *new_state(const att_language_model *m, int64_t n, att_dtype dtype)
{
    att_language_state *s;
    if (att_language_state_new(m, n, dtype, &s))
        fail_msg("%s", att_error(ctx));
    return s;
}

/* Logits of all sequences, or of the next tokens, to out [n or offsets[n], VOCABULARY] */
static inline void apply(const att_language_model *m, const int32_t *id, const int64_t *offset, int64_t n,
                         att_language_state *state, bool last_only, float *out)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *y = att_language_model_apply(t, m, id, offset, n, state, last_only);
    att_tensor v;
    if (att_var_value(t, y, &v))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(v.dim[0], last_only ? n : offset[n]);
    assert_int_equal(v.dim[1], VOCABULARY);
    memcpy(out, v.data, (size_t)(v.dim[0] * VOCABULARY) * sizeof *out);
    att_tape_free(t);
}

/* ---- against transformers */

typedef struct language_golden {
    double logits[TOKENS * VOCABULARY];
    int32_t greedy[PROMPT + GREEDY];
    double margin; /* of the largest logit */
} language_golden;

static inline language_golden read_golden(const char *path, const char *name)
{
    language_golden g;
    char line[2000];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    do
        assert_non_null(fgets(line, sizeof line, f));
    while (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != '\n');
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        assert_int_equal(fscanf(f, "%lf", &g.logits[i]), 1);
    for (int i = 0; i < PROMPT + GREEDY; i++)
        assert_int_equal(fscanf(f, "%d", &g.greedy[i]), 1);
    assert_int_equal(fscanf(f, "%lf", &g.margin), 1);
    fclose(f);
    return g;
}

/* Of the largest logit */
static inline double largest_difference(const float *logits, const language_golden *g)
{
    double error = 0, largest = 0;
    for (int k = 0; k < TOKENS * VOCABULARY; k++) {
        error = fmax(error, fabs(logits[k] - g->logits[k]));
        largest = fmax(largest, fabs(g->logits[k]));
    }
    return error / largest;
}

static inline void expect_logits(const att_language_model *m, const char *name, const language_golden *g,
                                 double tolerance)
{
    static float is[TOKENS * VOCABULARY];
    apply(m, ids, offsets, N, NULL, false, is);
    const double error = largest_difference(is, g);
    if (!(error <= tolerance))
        fail_msg("%s: the logits differ by %g of the largest", name, error);
    print_message("%s: logits %.1e of the largest away\n", name, error);
}

/* The tokens after the golden's prompt, decoded one by one, are the golden's. */
static inline void expect_greedy(const att_language_model *m, const char *name, const language_golden *g)
{
    att_language_state *s = new_state(m, 1, 0);
    float logits[VOCABULARY];
    for (int i = 0; i < GREEDY; i++) {
        const int64_t n[] = {0, i ? 1 : PROMPT};
        int best = 0;
        apply(m, i ? &g->greedy[PROMPT + i - 1] : g->greedy, n, 1, s, true, logits);
        for (int k = 1; k < VOCABULARY; k++)
            best = logits[k] > logits[best] ? k : best;
        if (best != g->greedy[PROMPT + i])
            fail_msg("%s: token %d is %d, not %d", name, i, best, g->greedy[PROMPT + i]);
    }
    att_language_state_free(s);
    print_message("%s: %d greedy tokens; margin %g\n", name, GREEDY, g->margin);
}

/* ---- decoding */

/* Cached decoding has the bits of a full pass. */
static inline void expect_bits_of_a_full_pass(const att_language_model *m)
{
    static float full[TOKENS * VOCABULARY], part[TOKENS * VOCABULARY];
    att_language_state *s = new_state(m, N, 0);
    apply(m, ids, offsets, N, NULL, false, full);
    /* Ragged prompts without their last token, then that token of each: sequence 1 had an empty prompt. */
    const int32_t prompt[] = {1, 7, 9, 11, 2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6}, last[] = {3, 5, 3};
    const int64_t prompts[] = {0, 4, 4, 19}, lasts[] = {0, 1, 2, 3};
    apply(m, prompt, prompts, N, s, false, part);
    assert_memory_equal(part, full, 4 * VOCABULARY * sizeof *full);
    assert_memory_equal(part + 4 * VOCABULARY, full + 6 * VOCABULARY, 15 * VOCABULARY * sizeof *full);
    apply(m, last, lasts, N, s, true, part);
    for (int b = 0; b < N; b++)
        assert_memory_equal(part + b * VOCABULARY, full + (offsets[b + 1] - 1) * VOCABULARY, VOCABULARY * sizeof *full);
    assert_int_equal(att_language_state_length(s, 2), 16);
    /* The third alone, its last tokens once more. */
    const int64_t from[] = {2}, three[] = {0, 3};
    assert_int_equal(att_language_state_select(s, 1, from), ATT_OK);
    assert_int_equal(att_language_state_truncate(s, 0, 13), ATT_OK);
    apply(m, ids + 19, three, 1, s, false, part);
    assert_memory_equal(part, full + 19 * VOCABULARY, 3 * VOCABULARY * sizeof *full);
    att_language_state_free(s);
}

/* ---- what is refused */

static inline void expect_failure(const test_folder *folder, att_status status, const char *words)
{
    att_language_model *m;
    assert_int_equal(att_language_model_open(ctx, folder->path, &m), status);
    assert_null(m);
    check_says(ctx, words);
}

#endif
