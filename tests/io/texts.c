/* Texts to learn from, of any size: they stay in their files, and what is kept of a line is counted here; files that
 * change meanwhile are named. */
#include "fixtures/fail_alloc.h"
#include "fixtures/toy_corpus.h"
#include "translate/parallel_corpus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char source[256], target[256];

static int set_up_texts(void **state)
{
    const int failed = set_up(state);
    path_of("a.de", source);
    path_of("a.en", target);
    return failed;
}

/* The pairs of both files, as they are. */
typedef struct opened {
    att_ctx *ctx;
    att_tokenizer *tokenizer;
    att_parallel_corpus set;
} opened;

static att_status open_pairs(opened *o, att_ctx *ctx)
{
    *o = (opened){.ctx = ctx};
    if (att_tokenizer_open(ctx, folder.path, &o->tokenizer))
        fail_msg("%s", att_error(ctx));
    return att_parallel_corpus_read(ctx, o->tokenizer, source, target, 100, INT64_MAX, &o->set);
}

static void close_pairs(opened *o)
{
    att_parallel_corpus_free(&o->set);
    att_tokenizer_free(o->tokenizer);
    att_close(o->ctx);
}

/* ---- memory */

/* Returns the maximum of allocated bytes in two epochs of n pairs, reading some batches. */
static long peak_of(int lines, int64_t batch_tokens)
{
    fail_alloc f = {0};
    att_ctx *ctx;
    opened o;
    att_epoch e = {0};
    toy_write(&folder, "a.de", "a.en", 1, lines);
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&f))), ATT_OK);
    assert_int_equal(open_pairs(&o, ctx), ATT_OK);
    assert_int_equal(o.set.n, lines);
    f.peak = f.bytes; /* reading has blocks of a fixed size, which are gone now */
    for (int64_t number = 0; number < 2; number++) {
        att_epoch_free(&e);
        assert_int_equal(att_epoch_make(&o.set, 1, number, batch_tokens, &e), ATT_OK);
        for (int64_t i = 0; i < e.n; i += e.n / 7 + 1) {
            att_batch b;
            assert_int_equal(att_batch_read(&o.set, &e, i, &b), ATT_OK);
            att_batch_free(ctx, &b);
        }
    }
    att_epoch_free(&e);
    close_pairs(&o);
    assert_int_equal(f.live, 0);
    return f.peak;
}

/* 20 bytes a pair, and an epoch's 12 where each pair is a batch: 16 for each of its two lines. */
static void a_line_takes_sixteen_bytes_at_most(void **state)
{
    (void)state;
    static const int64_t batch_tokens[] = {1, 500};
    enum { FEW = 4 * ATT_PAIRS_PER_BLOCK / 4, MANY = 4 * ATT_PAIRS_PER_BLOCK };
    const int few = FEW, many = check_step(3) > 1 ? 2 * FEW : MANY;
    for (int i = 0; i < 2; i++) {
        const long least = peak_of(few, batch_tokens[i]), most = peak_of(many, batch_tokens[i]);
        const double per_line = (double)(most - least) / (2.0 * (many - few));
        print_message("%.2f bytes a line\n", per_line);
        assert_true(per_line <= 16.1); /* pointers to blocks */
    }
}

/* ---- lines as they come */

/* Lines on both sides of what is read at a time, where one side has much longer ones, and so waits for the other. */
static void lines_are_the_same_wherever_a_block_ends(void **state)
{
    (void)state;
    enum { PAIRS = 700, FIRST = 30000 };
    FILE *f[2] = {folder_open(&folder, "a.de"), folder_open(&folder, "a.en")};
    for (int i = 0; i < PAIRS; i++) {
        fprintf(f[0], "%s%*s\n", toy_words[0][i % TOY_WORDS], i % 3 ? 1 + i * 37 % FIRST : 0, "");
        fprintf(f[1], "%s%s", toy_words[1][i / 2 % TOY_WORDS], i % 5 ? "\n" : i % 2 ? "\r\n" : "  \n");
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(fclose(f[i]), 0);
    opened o;
    att_epoch e;
    att_batch b;
    assert_int_equal(open_pairs(&o, check_open(NULL, 2)), ATT_OK);
    assert_int_equal(o.set.n, PAIRS);
    assert_int_equal(att_epoch_make(&o.set, 1, 0, INT64_MAX, &e), ATT_OK);
    assert_int_equal(att_batch_read(&o.set, &e, 0, &b), ATT_OK);
    assert_int_equal(b.pairs.n, PAIRS);
    for (int k = 0; k < PAIRS; k++) {
        const int i = (int)b.ids[k];
        att_tokens x[2];
        for (int side = 0; side < 2; side++) {
            const char *word = toy_words[side][(side ? i / 2 : i) % TOY_WORDS];
            assert_int_equal(att_tokenize(o.tokenizer, word, strlen(word),
                                          ATT_OPTIONS(att_tokenize_options, .target = side == 1), &x[side]),
                             ATT_OK);
        }
        assert_int_equal(b.pairs.source_offsets[k + 1] - b.pairs.source_offsets[k], x[0].count);
        assert_int_equal(b.pairs.target_offsets[k + 1] - b.pairs.target_offsets[k], x[1].count);
        assert_memory_equal(b.pairs.source + b.pairs.source_offsets[k], x[0].ids, (size_t)x[0].count * sizeof(int32_t));
        assert_memory_equal(b.pairs.target + b.pairs.target_offsets[k], x[1].ids, (size_t)x[1].count * sizeof(int32_t));
        for (int side = 0; side < 2; side++)
            att_tokens_free(o.ctx, &x[side]);
    }
    att_batch_free(o.ctx, &b);
    att_epoch_free(&e);
    close_pairs(&o);
}

/* As many as a line may have, and one more. */
static void a_line_that_is_too_long_is_named(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        FILE *f[2] = {folder_open(&folder, "a.de"), folder_open(&folder, "a.en")};
        fprintf(f[0], "eins\n%*s\nzwei\n", ATT_MAX_LINE + more, "drei");
        fprintf(f[1], "one\nthree\ntwo\n");
        for (int i = 0; i < 2; i++)
            assert_int_equal(fclose(f[i]), 0);
        opened o;
        const att_status e = open_pairs(&o, check_open(NULL, 1));
        assert_int_equal(e, more ? ATT_ERR_UNSUPPORTED : ATT_OK);
        if (!more)
            assert_int_equal(o.set.n, 3);
        else if (!strstr(att_error(o.ctx), "a.de: line 2 has more than 1048576 bytes"))
            fail_msg("%s", att_error(o.ctx));
        close_pairs(&o);
    }
}

/* ---- files that change */

typedef enum change { NONE, CUT, EMPTIED, GROWN, WRITTEN, WRITTEN_IN_SECRET, REPLACED } change;

/* What is done to a file that has "one\ntwo\nthree\n". */
static void make_change(change c, const char *path)
{
    struct stat was;
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0 && fstat(file, &was) == 0);
    const struct timespec later[] = {was.st_atim, {was.st_mtim.tv_sec + 1, 0}}, same[] = {was.st_atim, was.st_mtim};
    if (c == CUT || c == EMPTIED)
        assert_int_equal(ftruncate(file, c == CUT ? 5 : 0), 0);
    if (c == GROWN)
        assert_int_equal(pwrite(file, "four\n", 5, 14), 5);
    if (c == WRITTEN || c == WRITTEN_IN_SECRET) /* other lines; the first has two words now */
        assert_int_equal(pwrite(file, "a b\n1 2\n", 8, 0), 8);
    if (c == REPLACED) { /* by another file of its name */
        assert_int_equal(unlink(path), 0);
        folder_write(&folder, "a.en", "nothing\n");
    }
    if (c != NONE && c != REPLACED)
        assert_int_equal(futimens(file, c == WRITTEN ? later : same), 0);
    close(file);
}

static void a_file_that_changes_is_named_and_gives_no_other_batch(void **state)
{
    (void)state;
    for (change c = NONE; c <= REPLACED; c++) {
        folder_write(&folder, "a.de", "eins\nzwei\ndrei\n");
        folder_write(&folder, "a.en", "one\ntwo\nthree\n");
        opened o;
        att_epoch e;
        att_batch b;
        assert_int_equal(open_pairs(&o, check_open(NULL, 1)), ATT_OK);
        assert_int_equal(att_epoch_make(&o.set, 1, 0, 100, &e), ATT_OK);
        make_change(c, target);
        const att_status s = att_batch_read(&o.set, &e, 0, &b);
        if (c == NONE || c == REPLACED) {
            assert_int_equal(s, ATT_OK);
            assert_int_equal(b.pairs.n, 3);
            att_batch_free(o.ctx, &b);
        } else {
            assert_int_equal(s, ATT_ERR_IO);
            if (!strstr(att_error(o.ctx), "a.en was changed while it was trained on"))
                fail_msg("%s", att_error(o.ctx));
            assert_null(b.memory);
        }
        att_epoch_free(&e);
        close_pairs(&o);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    folder_write(&folder, "a.de", "eins\n");
    unlink(target);
    opened o;
    assert_int_equal(mkfifo(target, 0600), 0);
    assert_int_equal(open_pairs(&o, check_open(NULL, 1)), ATT_ERR_IO);
    if (!strstr(att_error(o.ctx), "a.en is not a file"))
        fail_msg("%s", att_error(o.ctx));
    close_pairs(&o);
    unlink(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_takes_sixteen_bytes_at_most),
        cmocka_unit_test(lines_are_the_same_wherever_a_block_ends),
        cmocka_unit_test(a_line_that_is_too_long_is_named),
        cmocka_unit_test(a_file_that_changes_is_named_and_gives_no_other_batch),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up_texts, tear_down);
}
