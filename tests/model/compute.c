/* Models whose products are of bf16: what they compute, alone and in a batch, and the memory of their packed copies. */
#include "fixtures/check.h"
#include "fixtures/model_cases.h"

#include <math.h>

static att_compute chosen; /* by ATT_COMPUTE_AUTO */
static bool multiplies;    /* the set has products of bf16 */

static int choose(void **state)
{
    att_compute is;
    open_context(state);
    assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_AUTO, &chosen), ATT_OK);
    multiplies = att_compute_choose(ctx, ATT_COMPUTE_BF16, &is) == ATT_OK;
    assert_true(multiplies || chosen == ATT_COMPUTE_F32);
    return 0;
}

static att_any_model *open_case(const model_case *k, const char *path, att_compute compute)
{
    att_any_model *m;
    if (att_any_model_open(ctx, path, ATT_SUBJECT_NONE,
                           ATT_OPTIONS(att_model_options, .compute = compute, .prepare = true), &m))
        fail_msg("%s: %s", k->name, att_error(ctx));
    return m;
}

static att_model_weights weights_of(const att_any_model *m)
{
    att_model_weights w = {.size = sizeof w};
    captioner_need(att_any_model_weights(m, &w));
    return w;
}

/* The language model computes what the tape does. */
static att_status logits(att_ctx *c, const void *g, const int32_t *ids, int64_t n, att_language_state *state,
                         att_compute compute, float *out)
{
    att_tape *t;
    att_tensor v;
    att_status s = att_tape_new(c, ATT_OPTIONS(att_tape_config, .compute = compute), &t);
    if (s)
        return s;
    const int64_t offsets[] = {0, n};
    s = att_var_value(t, att_language_model_apply(t, att_text_generator_model(g), ids, offsets, 1, state, NULL), &v);
    if (!s)
        memcpy(out, v.data, (size_t)(v.dim[0] * v.dim[1]) * sizeof *out);
    att_tape_free(t);
    return s;
}

static void refuse(const model_case *k, const char *path)
{
    char words[256];
    att_any_model *m;
    att_compute is;
    assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_BF16, &is), ATT_ERR_UNSUPPORTED);
    snprintf(words, sizeof words, "%s", att_error(ctx));
    if (att_any_model_open(ctx, path, ATT_SUBJECT_NONE, ATT_OPTIONS(att_model_options, .compute = ATT_COMPUTE_BF16),
                           &m) != ATT_ERR_UNSUPPORTED ||
        m || strcmp(att_error(ctx), words) != 0)
        fail_msg("%s: %s, not: %s", k->name, att_error(ctx), words);
}

/* The root of the mean square of the difference of floats, as a share of that of the exact ones. A product rounds both
 * factors, each by up to 2^-9 of it. The rounding of one number is independent of another's, so that of a sum is no
 * larger; the smallest models have two layers of four products, the largest six: 2^-9 sqrt(2 * 6 * 4) = 0.014. Twice
 * that is allowed for softmax and norms, which enlarge differences. */
static void expect_near(const model_case *k, const case_result *r, const case_result *exact)
{
    double error = 0, size = 0;
    float x, y;
    for (size_t i = 0; i + sizeof x <= r->n; i += sizeof x) {
        memcpy(&x, r->bytes + i, sizeof x);
        memcpy(&y, exact->bytes + i, sizeof y);
        error += pow((double)x - (double)y, 2);
        size += pow((double)y, 2);
    }
    if (!(sqrt(error / size) <= 0.028))
        fail_msg("%s: %g of the root of the mean square", k->name, sqrt(error / size));
}

/* Copies for products of bf16 replace those for products of f32, and are made when the model is opened. */
static void models_compute_what_they_were_opened_for(void **state)
{
    (void)state;
    static case_result exact, r, automatic;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        att_any_model *m = open_case(k, path.text, ATT_COMPUTE_F32);
        const att_model_weights f32 = weights_of(m);
        assert_int_equal(f32.compute, ATT_COMPUTE_F32);
        case_run(k, ctx, m, &exact);
        att_any_model_free(m);
        if (!multiplies) {
            refuse(k, path.text);
            folder_remove(&f);
            continue;
        }
        m = open_case(k, path.text, ATT_COMPUTE_BF16);
        const att_model_weights bf16 = weights_of(m);
        assert_int_equal(bf16.compute, ATT_COMPUTE_BF16);
        const bool shorter = f32.used[ATT_F16] + f32.used[ATT_BF16] == 0; /* whose copies have 16 bits a number, too */
        if (bf16.packed > f32.packed || (shorter && bf16.packed == f32.packed))
            fail_msg("%s: %lld bytes are packed, in f32 %lld", k->name, (long long)bf16.packed, (long long)f32.packed);
        case_run(k, ctx, m, &r);
        if (k->run != case_language) { /* whose tape is the caller's */
            assert_int_equal(weights_of(m).packed, bf16.packed);
            if (r.n == exact.n && !memcmp(r.bytes, exact.bytes, r.n))
                fail_msg("%s: the results are those of f32", k->name);
            if (k->run != case_translate && k->run != case_caption) /* texts */
                expect_near(k, &r, &exact);
        }
        att_any_model_free(m);
        m = open_case(k, path.text, ATT_COMPUTE_AUTO);
        assert_int_equal(weights_of(m).compute, chosen);
        case_run(k, ctx, m, &automatic);
        case_expect_same(k, &automatic, chosen == ATT_COMPUTE_BF16 ? &r : &exact);
        att_any_model_free(m);
        folder_remove(&f);
    }
}

static void a_text_has_the_same_bits_alone_and_in_a_batch(void **state)
{
    (void)state;
    enum { TEXTS = 3 };
    static const char *const texts[TEXTS] = {"a b c d", "e", "a hat of words"};
    float all[TEXTS * TINY_HIDDEN], one[TINY_HIDDEN];
    att_sentence *m;
    if (!multiplies)
        return;
    const test_folder f = tiny_sentence();
    captioner_need(att_sentence_open(ctx, f.path, ATT_OPTIONS(att_model_options, .compute = ATT_COMPUTE_BF16), &m));
    captioner_need(att_sentence_embed(m, TEXTS, texts, NULL, NULL, all));
    for (int i = 0; i < TEXTS; i++) {
        captioner_need(att_sentence_embed(m, 1, &texts[i], NULL, NULL, one));
        assert_memory_equal(one, all + i * TINY_HIDDEN, sizeof one);
    }
    att_sentence_free(m);
    folder_remove(&f);
}

/* With keys and values of f32 */
static void decoding_has_the_bits_of_the_whole_text(void **state)
{
    (void)state;
    enum { TOKENS = 5, VOCABULARY = 64 };
    static const int32_t ids[TOKENS] = {1, 0, 1, 1, 0};
    static float whole[TOKENS * VOCABULARY], exact[TOKENS * VOCABULARY], one[VOCABULARY];
    for (int i = 0; i < MODEL_CASES && multiplies; i++) {
        const model_case *k = &model_cases[i];
        if (k->run != case_language)
            continue;
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        att_text_generator *g;
        att_language_state *s;
        att_language_model_info info = {.size = sizeof info};
        captioner_need(att_text_generator_open(ctx, path.text, NULL, &g));
        captioner_need(att_language_model_describe(att_text_generator_model(g), &info));
        assert_true(info.vocabulary <= VOCABULARY);
        captioner_need(logits(ctx, g, ids, TOKENS, NULL, ATT_COMPUTE_F32, exact));
        captioner_need(logits(ctx, g, ids, TOKENS, NULL, ATT_COMPUTE_BF16, whole));
        assert_memory_not_equal(whole, exact, TOKENS * (size_t)info.vocabulary * sizeof *whole);
        captioner_need(att_language_state_new(att_text_generator_model(g), 1, ATT_F32, &s));
        for (int t = 0; t < TOKENS; t++) {
            captioner_need(logits(ctx, g, ids + t, 1, s, ATT_COMPUTE_BF16, one));
            assert_memory_equal(one, whole + t * info.vocabulary, (size_t)info.vocabulary * sizeof *one);
        }
        att_language_state_free(s);
        att_text_generator_free(g);
        folder_remove(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_compute_what_they_were_opened_for),
        cmocka_unit_test(a_text_has_the_same_bits_alone_and_in_a_batch),
        cmocka_unit_test(decoding_has_the_bits_of_the_whole_text),
    };
    return cmocka_run_group_tests(tests, choose, close_context);
}
