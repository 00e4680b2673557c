/* Embeddings of many texts: the same bits in any company, by any thread, from texts or ids; memory, cancelling. */
// labels: threads
#include "fixtures/fail_alloc.h"
#include "fixtures/progress.h"
#include "fixtures/sentence_model.h"

#include <math.h>
#include <pthread.h>

enum { LINES = 200 };

/* Words of all lengths; some lines are empty, some are cut. */
static void make_lines(char text[LINES][40], const char *line[LINES], int shift)
{
    for (int i = 0; i < LINES; i++) {
        const int length = (i + shift) * 7 % 23;
        for (int k = 0; k < length; k++)
            text[i][k] = k % 3 == 2 ? ' ' : (char)('a' + (i + shift + k * k) % 26);
        text[i][length] = 0;
        line[i] = text[i];
    }
}

static void any_threads_and_any_company_give_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    static char text[LINES][40];
    static float expected[LINES * TINY_HIDDEN], y[LINES * TINY_HIDDEN];
    const char *line[LINES];
    make_lines(text, line, 0);
    const test_folder f = tiny_sentence();
    for (int i = 0; i < 4; i++) {
        att_ctx *c = check_open(NULL, threads[i]);
        att_sentence *m = open_sentence(c, f.path);
        encode(m, LINES, line, i ? y : expected);
        if (i)
            assert_memory_equal(y, expected, sizeof y);
        for (int64_t first = 0, n = 1; first + n <= LINES; first += n, n++) { /* companies of 1, 2, 3, ... */
            encode(m, n, line + first, y);
            assert_memory_equal(y, expected + first * TINY_HIDDEN, (size_t)n * TINY_HIDDEN * sizeof *y);
        }
        att_sentence_free(m);
        att_close(c);
    }
    folder_remove(&f);
}

static void lengths_may_be_given_and_cut_sentences_are_counted(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    float y[2][TINY_HIDDEN], expected[2][TINY_HIDDEN];
    int64_t tokens[2] = {-1, -1};
    bool truncated[2] = {true, false};
    const att_embed_options *o = ATT_OPTIONS(att_embed_options, .tokens = tokens, .truncated = truncated);
    encode(m, 2, (const char *[]){"a b", "c d e f g h i j k l"}, expected[0]); /* 10 letters fit into 12 tokens */
    assert_int_equal(
        att_sentence_embed(m, 2, (const char *[]){"a bxyz", "c d e f g h i j k l m"}, (const size_t[]){3, 21}, o, y[0]),
        ATT_OK);
    assert_memory_equal(y, expected, sizeof y);
    assert_int_equal(tokens[0], 4);
    assert_int_equal(tokens[1], 12);
    assert_false(truncated[0]);
    assert_true(truncated[1]);
    assert_int_equal(att_sentence_embed(m, 0, NULL, NULL, o, NULL), ATT_OK);
    att_sentence_free(m);
    folder_remove(&f);
}

/* ---- ids, blocks */

typedef struct id_lists {
    int32_t ids[LINES * 12];
    int64_t offsets[LINES + 1];
} id_lists;

static void tokenize_lines(const att_sentence *m, const char *const *line, id_lists *out)
{
    for (int i = 0; i < LINES; i++) {
        att_tokens tokens;
        assert_int_equal(att_tokenize(att_sentence_tokenizer(m), line[i], strlen(line[i]),
                                      ATT_OPTIONS(att_tokenize_options, .max_tokens = 12), &tokens),
                         ATT_OK);
        memcpy(out->ids + out->offsets[i], tokens.ids, (size_t)tokens.count * sizeof *tokens.ids);
        out->offsets[i + 1] = out->offsets[i] + tokens.count;
        att_tokens_free(ctx, &tokens);
    }
}

static void ids_give_the_bits_of_their_texts_and_the_same_counts(void **state)
{
    (void)state;
    static char text[LINES][40];
    static float expected[LINES * TINY_HIDDEN], y[LINES * TINY_HIDDEN];
    static id_lists given;
    const char *line[LINES];
    int64_t tokens[2][LINES];
    bool truncated[2][LINES], unknown[3], some = false;
    make_lines(text, line, 0);
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    tokenize_lines(m, line, &given);
    const att_embed_options *o = ATT_OPTIONS(att_embed_options, .tokens = tokens[0], .truncated = truncated[0]);
    assert_int_equal(att_sentence_embed(m, LINES, line, NULL, o, expected), ATT_OK);
    o = ATT_OPTIONS(att_embed_options, .ids = given.ids, .offsets = given.offsets, .tokens = tokens[1],
                    .truncated = truncated[1]);
    assert_int_equal(att_sentence_embed(m, LINES, NULL, NULL, o, y), ATT_OK);
    assert_memory_equal(y, expected, sizeof y);
    assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(tokens[0][i], given.offsets[i + 1] - given.offsets[i]);
        assert_false(truncated[1][i]);
        some |= truncated[0][i];
    }
    assert_true(some);
    o = ATT_OPTIONS(att_embed_options, .unknown = unknown, .prompt = "a ");
    assert_int_equal(
        att_sentence_embed(m, 3, (const char *const[]){"cab", "a \xE2\x98\x83", "\xE2\x98\x83 "}, NULL, o, y), ATT_OK);
    assert_false(unknown[0]);
    assert_true(unknown[1]);
    assert_true(unknown[2]);
    att_sentence_free(m);
    folder_remove(&f);
}

static void ids_that_no_tokenizer_gives_are_refused(void **state)
{
    (void)state;
    static const int32_t good[] = {2, 5, 3, 2, 6, 3}, bad[] = {2, 5, 3, 2, 99, 3}, many[14] = {2};
    static const int64_t offsets[] = {0, 3, 6}, late[] = {1, 3, 6}, back[] = {0, 3, 2}, empty[] = {0, 3, 3},
                         too_long[] = {0, 1, 14};
    static const struct {
        const char *text;
        const int32_t *ids;
        const int64_t *offsets;
        const char *error;
    } wrong[] = {
        {"a", good, offsets, "att_sentence_embed: texts and options.ids are given, not one of them"},
        {NULL, good, NULL, "att_sentence_embed: options.offsets is NULL, but should be 3 offsets"},
        {NULL, NULL, offsets, "att_sentence_embed: options.ids is NULL"},
        {NULL, good, late, "att_sentence_embed: options.offsets[0] is 1, not 0"},
        {NULL, good, back, "att_sentence_embed: options.offsets[2] is 2, less than 3 before it"},
        {NULL, good, empty, "att_sentence_embed: options.offsets: text 1 has 0 tokens, not 1 to 12"},
        {NULL, many, too_long, "att_sentence_embed: options.offsets: text 1 has 13 tokens, not 1 to 12"},
        {NULL, bad, offsets, "att_sentence_embed: options.ids[4] is 99, not in [0, 40)"},
    };
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    float y[2 * TINY_HIDDEN];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const att_embed_options *o = ATT_OPTIONS(att_embed_options, .ids = wrong[i].ids, .offsets = wrong[i].offsets);
        const char *texts[] = {wrong[i].text, wrong[i].text};
        assert_int_equal(att_sentence_embed(m, 2, wrong[i].text ? texts : NULL, NULL, o, y), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].error);
    }
    att_sentence_free(m);
    folder_remove(&f);
}

/* Measures the largest memory for n lines, without that of the model. Checks that each vector is the same as without
 * the other lines. */
static long peak_of(const char *folder, int64_t n, const char *const *line, const float *expected)
{
    fail_alloc a = {0};
    att_ctx *c = fail_open(&a);
    att_sentence *m = open_sentence(c, folder);
    float *y = malloc((size_t)n * TINY_HIDDEN * sizeof *y);
    assert_non_null(y);
    const long before = a.bytes;
    if (att_sentence_embed(m, n, line, NULL, NULL, y))
        fail_msg("%s", att_error(c));
    for (int64_t i = 0; i < n; i++)
        assert_memory_equal(y + i * TINY_HIDDEN, expected + i % LINES * TINY_HIDDEN, TINY_HIDDEN * sizeof *y);
    free(y);
    const long peak = a.peak - before;
    att_sentence_free(m);
    att_close(c);
    return peak;
}

static void memory_does_not_grow_with_the_number_of_texts(void **state)
{
    (void)state;
    enum { BLOCK = 2048, MANY = 20000 };
    static char text[LINES][40];
    static float expected[LINES * TINY_HIDDEN];
    static const char *line[MANY];
    make_lines(text, line, 0);
    for (int i = LINES; i < MANY; i++)
        line[i] = line[i % LINES];
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    encode(m, LINES, line, expected);
    att_sentence_free(m);
    const long few = peak_of(f.path, 2000, line, expected), many = peak_of(f.path, MANY, line, expected);
    /* What is held of each text is that of 2048 at a time, not 2000. A tape appends a block as large as all others
     * where the tensors of a batch do not fit into them, so it may have twice as much. */
    assert_in_range(many, few, few * BLOCK / 2000 * 2);
    folder_remove(&f);
}

static void a_cancelled_call_stops_before_its_texts_are_tokenized(void **state)
{
    (void)state;
    volatile int flag = 0;
    const test_folder f = tiny_sentence();
    att_ctx *c;
    assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .cancel = &flag)), ATT_OK);
    att_sentence *m = open_sentence(c, f.path);
    float y[TINY_HIDDEN];
    flag = 1;
    assert_int_equal(att_sentence_embed(m, 1, (const char *[]){"a"}, NULL, NULL, y), ATT_ERR_CANCELLED);
    assert_string_equal(att_error(c), "att_tokenize_batch was cancelled");
    att_sentence_free(m);
    att_close(c);
    folder_remove(&f);
}

static void progress_ascends_to_one_and_can_stop_the_call(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static char text[LINES][40];
    static float y[MANY * TINY_HIDDEN];
    static const char *line[MANY];
    make_lines(text, line, 0);
    for (int i = LINES; i < MANY; i++)
        line[i] = line[i % LINES];
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    progress_seen all = {.thread = pthread_self()}, none = all;
    const att_embed_options *o = ATT_OPTIONS(att_embed_options, .progress = progress_see, .user = &all);
    assert_int_equal(att_sentence_embed(m, MANY, line, NULL, o, y), ATT_OK);
    assert_true(all.share == 1 && all.calls >= 3); /* blocks */
    const int stops[] = {1, 2, all.calls};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        progress_seen s = {.thread = pthread_self(), .stop = stops[i]};
        o = ATT_OPTIONS(att_embed_options, .progress = progress_see, .user = &s);
        const att_status status = att_sentence_embed(m, MANY, line, NULL, o, y);
        if (s.calls < s.stop) /* this time there were fewer */
            continue;
        assert_int_equal(status, ATT_ERR_CANCELLED);
        assert_string_equal(att_error(ctx), "att_sentence_embed: options.progress returned false");
        assert_int_equal(s.calls, s.stop);
    }
    o = ATT_OPTIONS(att_embed_options, .progress = progress_see, .user = &none);
    assert_int_equal(att_sentence_embed(m, 0, NULL, NULL, o, NULL), ATT_OK);
    assert_true(none.share == 1 && none.calls == 1);
    att_sentence_free(m);
    folder_remove(&f);
}

/* ---- vectors of tokens */

static const char *const token_texts[] = {"a b c", "", "wxyz Abc", "c d e f g h i j k l m n o p"};
enum { TOKEN_TEXTS = 4 };

static void vectors_of_tokens_are_those_of_sentence_transformers(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    att_token_embeddings e;
    int64_t tokens[TOKEN_TEXTS];
    bool truncated[TOKEN_TEXTS];
    const att_embed_options *o = ATT_OPTIONS(att_embed_options, .tokens = tokens, .truncated = truncated);
    assert_int_equal(att_sentence_embed_tokens(m, TOKEN_TEXTS, token_texts, NULL, o, &e), ATT_OK);
    FILE *golden = fopen("tests/golden/token_embeddings.txt", "r");
    assert_non_null(golden);
    for (int i = 0; i < TOKEN_TEXTS; i++) {
        int rows;
        assert_int_equal(fscanf(golden, "%d", &rows), 1);
        assert_int_equal(e.offsets[i + 1] - e.offsets[i], rows);
        assert_int_equal(tokens[i], rows);
        assert_true(e.ids[e.offsets[i]] == 2 && e.ids[e.offsets[i + 1] - 1] == 3); /* [CLS], [SEP] */
        assert_int_equal(truncated[i], i == 3);
        for (int64_t k = e.offsets[i] * TINY_HIDDEN; k < e.offsets[i + 1] * TINY_HIDDEN; k++) {
            double expected;
            assert_int_equal(fscanf(golden, "%lf", &expected), 1);
            /* of order 1, both in f32; a norm divides by deviations of about 1 after each of four halves */
            check_near(e.vectors[k], expected, 4e-6, "text %d: [%d]", i, (int)k);
        }
    }
    fclose(golden);
    att_token_embeddings_free(ctx, &e);
    att_sentence_free(m);
    folder_remove(&f);
}

/* Of many texts, and of their ids: the mean of a text's vectors, normalized, is its embedding. */
static void vectors_of_tokens_are_what_embeddings_are_made_of(void **state)
{
    (void)state;
    static char text[LINES][40];
    static float y[LINES * TINY_HIDDEN];
    const char *line[LINES];
    att_token_embeddings e, of_ids, none;
    make_lines(text, line, 5);
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    encode(m, LINES, line, y);
    assert_int_equal(att_sentence_embed_tokens(m, LINES, line, NULL, NULL, &e), ATT_OK);
    for (int i = 0; i < LINES; i++) {
        double mean[TINY_HIDDEN] = {0}, norm = 0;
        for (int64_t k = e.offsets[i] * TINY_HIDDEN; k < e.offsets[i + 1] * TINY_HIDDEN; k++)
            mean[k % TINY_HIDDEN] += (double)e.vectors[k];
        for (int d = 0; d < TINY_HIDDEN; d++)
            norm += mean[d] * mean[d];
        for (int d = 0; d < TINY_HIDDEN; d++) /* sums of twelve numbers of order 1, in f32 there */
            check_near(y[i * TINY_HIDDEN + d], mean[d] / sqrt(norm), 2e-6, "text %d: [%d]", i, d);
    }
    const att_embed_options *o = ATT_OPTIONS(att_embed_options, .ids = e.ids, .offsets = e.offsets);
    assert_int_equal(att_sentence_embed_tokens(m, LINES, NULL, NULL, o, &of_ids), ATT_OK);
    assert_memory_equal(of_ids.offsets, e.offsets, sizeof(int64_t) * (LINES + 1));
    assert_memory_equal(of_ids.ids, e.ids, sizeof(int32_t) * (size_t)e.offsets[LINES]);
    assert_memory_equal(of_ids.vectors, e.vectors, sizeof(float) * (size_t)e.offsets[LINES] * TINY_HIDDEN);
    assert_int_equal(att_sentence_embed_tokens(m, 0, NULL, NULL, NULL, &none), ATT_OK);
    assert_int_equal(none.offsets[0], 0);
    att_token_embeddings_free(ctx, &e);
    att_token_embeddings_free(ctx, &of_ids);
    att_token_embeddings_free(ctx, &none);
    att_sentence_free(m);
    folder_remove(&f);
}

static void a_failing_allocation_of_vectors_of_tokens_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    fail_alloc a = {0};
    att_ctx *c = fail_open(&a);
    att_sentence *m = open_sentence(c, f.path);
    att_status s = ATT_ERR_MEMORY;
    att_token_embeddings e;
    assert_int_equal(att_sentence_embed_tokens(m, TOKEN_TEXTS, token_texts, NULL, NULL, &e), ATT_OK);
    att_token_embeddings_free(c, &e);
    const long live = a.live; /* with a tape, and packed weights */
    for (long at = 1; s; at++) {
        a.fail_at = a.calls + at;
        s = att_sentence_embed_tokens(m, TOKEN_TEXTS, token_texts, NULL, NULL, &e);
        a.fail_at = 0;
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && at > 10));
        att_token_embeddings_free(c, &e);
        assert_int_equal(a.live, live);
    }
    att_sentence_free(m);
    att_close(c);
    folder_remove(&f);
}

typedef struct caller {
    const att_sentence *m;
    const char *const *line;
    const float *expected;
    bool same;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    static _Thread_local float y[LINES * TINY_HIDDEN];
    c->same = true;
    for (int i = 0; i < 5; i++)
        c->same &=
            att_sentence_embed(c->m, LINES, c->line, NULL, NULL, y) == ATT_OK && memcmp(y, c->expected, sizeof y) == 0;
    return NULL;
}

static void many_threads_may_encode_with_one_model(void **state)
{
    (void)state;
    enum { CALLERS = 5 };
    static char text[LINES][40];
    static float expected[LINES * TINY_HIDDEN];
    const char *line[LINES];
    make_lines(text, line, 3);
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    encode(m, LINES, line, expected);
    att_sentence_free(m);
    m = open_sentence(ctx, f.path); /* nothing packed yet */
    pthread_t thread[CALLERS];
    caller c[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (caller){.m = m, .line = line, .expected = expected};
        assert_int_equal(pthread_create(&thread[i], NULL, call, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(c[i].same);
    }
    att_sentence_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_threads_and_any_company_give_the_same_bits),
        cmocka_unit_test(lengths_may_be_given_and_cut_sentences_are_counted),
        cmocka_unit_test(ids_give_the_bits_of_their_texts_and_the_same_counts),
        cmocka_unit_test(ids_that_no_tokenizer_gives_are_refused),
        cmocka_unit_test(memory_does_not_grow_with_the_number_of_texts),
        cmocka_unit_test(a_cancelled_call_stops_before_its_texts_are_tokenized),
        cmocka_unit_test(progress_ascends_to_one_and_can_stop_the_call),
        cmocka_unit_test(vectors_of_tokens_are_those_of_sentence_transformers),
        cmocka_unit_test(vectors_of_tokens_are_what_embeddings_are_made_of),
        cmocka_unit_test(a_failing_allocation_of_vectors_of_tokens_is_an_error_and_leaks_nothing),
        cmocka_unit_test(many_threads_may_encode_with_one_model),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
