/* Pairs of lines of two files: what files give, the order of epochs, and their batches. */
// labels: threads
#include "translate/parallel_corpus.h"
#include "fixtures/toy_corpus.h"

/* Line `pair` of a file gives ids [offsets[0], offsets[1]). */
static void check_side(att_ctx *ctx, const att_tokenizer *t, int side, uint32_t pair, const int32_t *ids,
                       const int64_t *offsets)
{
    static const char *const names[] = {"train.de", "train.en"};
    char path[256], line[256];
    FILE *f = fopen(path_of(names[side], path), "r");
    assert_non_null(f);
    for (uint32_t i = 0; i <= pair; i++)
        assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    att_tokens x;
    assert_int_equal(
        att_tokenize(t, line, strcspn(line, "\n"), ATT_OPTIONS(att_tokenize_options, .target = side == 1), &x), ATT_OK);
    assert_int_equal(offsets[1] - offsets[0], x.count);
    assert_memory_equal(ids + offsets[0], x.ids, (size_t)x.count * sizeof *ids);
    att_tokens_free(ctx, &x);
}

static void an_epoch_has_each_pair_once_in_batches_that_follow_from_the_seed(void **state)
{
    (void)state;
    char path[256], source[256], target[256];
    att_ctx *ctx = check_open(NULL, 2);
    att_tokenizer *tokenizer;
    att_parallel_corpus s;
    att_epoch e[3];
    assert_int_equal(att_tokenizer_open(ctx, path_of("", path), &tokenizer), ATT_OK);
    assert_int_equal(
        att_parallel_corpus_read(ctx, tokenizer, path_of("train.de", source), path_of("train.en", target), 100, 0, &s),
        ATT_OK);
    assert_int_equal(s.n, LINES);
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_epoch_make(&s, 5, i / 2, 60, &e[i]), ATT_OK); /* twice the same, and another */
    bool seen[LINES] = {false};
    for (int64_t b = 0; b < e[0].n; b++) {
        att_batch batch;
        assert_int_equal(att_batch_read(&s, &e[0], b, &batch), ATT_OK);
        assert_true(batch.pairs.n == 1 || batch.pairs.target_offsets[batch.pairs.n] <= 60);
        for (int64_t i = 0; i < batch.pairs.n; i++) {
            const uint32_t pair = batch.ids[i];
            assert_false(seen[pair]);
            seen[pair] = true;
            check_side(ctx, tokenizer, 0, pair, batch.pairs.source, batch.pairs.source_offsets + i);
            check_side(ctx, tokenizer, 1, pair, batch.pairs.target, batch.pairs.target_offsets + i);
        }
        att_batch_free(ctx, &batch);
    }
    for (int i = 0; i < LINES; i++)
        assert_true(seen[i]);
    assert_memory_equal(e[0].order, e[1].order, LINES * sizeof *e[0].order);
    assert_memory_equal(e[0].group, e[1].group, (size_t)e[0].n * sizeof *e[0].group);
    assert_memory_not_equal(e[0].group, e[2].group, (size_t)e[0].n * sizeof *e[0].group);
    for (int i = 0; i < 3; i++)
        att_epoch_free(&e[i]);
    att_parallel_corpus_free(&s);
    att_tokenizer_free(tokenizer);
    att_close(ctx);
}

/* Hashes all numbers of the batches of two epochs: FNV-1a (Fowler, Noll, Vo) by words. */
static uint64_t hash_epochs(const att_parallel_corpus *s, int64_t batch_tokens)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int64_t number = 0; number < 2; number++) {
        att_epoch e;
        att_batch b;
        assert_int_equal(att_epoch_make(s, 5, number, batch_tokens, &e), ATT_OK);
        for (int64_t i = 0; i < e.n; i++) {
            assert_int_equal(att_batch_read(s, &e, i, &b), ATT_OK);
            const att_sequence_pairs *p = &b.pairs;
            h = (h ^ (uint64_t)p->n) * UINT64_C(0x100000001b3);
            for (int64_t k = 0; k < p->n; k++)
                h = (h ^ b.ids[k]) * UINT64_C(0x100000001b3);
            for (int64_t k = 0; k < p->source_offsets[p->n]; k++)
                h = (h ^ (uint32_t)p->source[k]) * UINT64_C(0x100000001b3);
            for (int64_t k = 0; k < p->target_offsets[p->n]; k++)
                h = (h ^ (uint32_t)p->target[k]) * UINT64_C(0x100000001b3);
            att_batch_free(s->ctx, &b);
        }
        att_epoch_free(&e);
    }
    return h;
}

/* Unchanged since the first version: a training begun by an older version continues with the same bits. Batches of a
 * pair each, several windows; one batch of all, in one window, also where products of its size would overflow. */
static void batches_are_the_same_as_ever(void **state)
{
    (void)state;
    static const struct {
        int64_t batch_tokens;
        uint64_t hash;
    } cases[] = {{1, 0x2dbfef46d9befa17},
                 {9, 0xe26a5eb6de98e251},
                 {60, 0xa130d6f6d469cb93},
                 {100000, 0xa36250658cf98bad},
                 {650000000000000000, 0xa36250658cf98bad},
                 {INT64_MAX / 3, 0xa36250658cf98bad},
                 {INT64_MAX, 0xa36250658cf98bad}};
    char path[256], source[256], target[256];
    att_ctx *ctx = check_open(NULL, 2);
    att_tokenizer *tokenizer;
    att_parallel_corpus s;
    assert_int_equal(att_tokenizer_open(ctx, path_of("", path), &tokenizer), ATT_OK);
    assert_int_equal(
        att_parallel_corpus_read(ctx, tokenizer, path_of("train.de", source), path_of("train.en", target), 100, 0, &s),
        ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hash_epochs(&s, cases[i].batch_tokens), cases[i].hash);
    att_parallel_corpus_free(&s);
    att_tokenizer_free(tokenizer);
    att_close(ctx);
}

static void files_that_are_no_pairs_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *source, *target, *says;
    } cases[] = {{"a\nb\nc\n", "a\nb\n", "has 3 lines but"},
                 {"\n \n", "a\nb\n", "none of 2 pairs can be used (2 are empty, 0 not UTF-8, 0 longer than 3 tokens)"},
                 {"eins zwei drei vier rot blau\n", "one\n", "(0 are empty, 0 not UTF-8, 1 longer than 3 tokens)"},
                 {"eins\xfc\n", "one\n", "(0 are empty, 1 not UTF-8, 0 longer than 3 tokens)"}};
    char path[256], source[256], target[256];
    att_ctx *ctx = check_open(NULL, 1);
    att_tokenizer *tokenizer;
    att_parallel_corpus s;
    assert_int_equal(att_tokenizer_open(ctx, path_of("", path), &tokenizer), ATT_OK);
    for (int i = 0; i < 4; i++) {
        folder_write(&folder, "odd.de", cases[i].source);
        folder_write(&folder, "odd.en", cases[i].target);
        assert_int_equal(
            att_parallel_corpus_read(ctx, tokenizer, path_of("odd.de", source), path_of("odd.en", target), 3, 1, &s),
            ATT_ERR_FORMAT);
        assert_non_null(strstr(att_error(ctx), source));
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s", att_error(ctx));
    }
    /* an end of Windows, a line that is empty, one that is not a text, one without an end */
    folder_write(&folder, "odd.de", "eins\r\n\n\xc3\nzwei");
    folder_write(&folder, "odd.en", "one\n\nthree\ntwo\n");
    assert_int_equal(
        att_parallel_corpus_read(ctx, tokenizer, path_of("odd.de", source), path_of("odd.en", target), 9, 1, &s),
        ATT_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.empty, 1);
    assert_int_equal(s.invalid, 1);
    assert_int_equal(att_pair_at(&s, 1)->low[0], 9); /* where the fourth lines begin */
    assert_int_equal(att_pair_at(&s, 1)->low[1], 11);
    att_parallel_corpus_free(&s);
    assert_int_equal(
        att_parallel_corpus_read(ctx, tokenizer, path_of("odd.de", source), path_of("odd.en", target), 9, 0, &s),
        ATT_ERR_FORMAT);
    assert_non_null(strstr(att_error(ctx), "odd.de: line 3: is not UTF-8"));
    att_tokenizer_free(tokenizer);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_has_each_pair_once_in_batches_that_follow_from_the_seed),
        cmocka_unit_test(batches_are_the_same_as_ever),
        cmocka_unit_test(files_that_are_no_pairs_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
