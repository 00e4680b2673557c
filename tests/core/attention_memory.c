/* Memory is linear in the lengths, with every score, modifier, mask and type, forward and backward: what a call takes
 * beyond its tensors, counted where the library asks for it, and beside what the plan said beforehand. */
#include "fixtures/attention_trial.h"
#include "fixtures/fail_alloc.h"

/* ---- a long call of one head, whose own tensors are linear in its length */

enum { DIM = 8, PARAMS = 32, LONGEST = 1 << 14 };

/* The requested properties; zero is the default of the others. */
typedef struct kind {
    const char *name;
    const att_score *score;
    const att_modifier *modifier;
    const att_mask *mask;
    att_dtype dtype;
    int64_t heads; /* 0: 1 */
    int64_t score_dim;
    float dropout;
    bool full; /* all pairs; else those of a window */
} kind;

typedef struct call {
    att_attention_spec spec;
    att_attention_args args;
    att_attention_grads grads;
    void *memory[32];
    int n;
} call;

/* Numbers of any type, in [-1, 1) or, short ones, a small number. */
static void make_numbers(call *c, att_tensor *t, att_dtype dtype, int rank, const int64_t *dim)
{
    assert_int_equal(att_wrap(t, NULL, dtype, rank, dim, NULL), ATT_OK);
    const int64_t n = check_count(t);
    assert_true(c->n < COUNT(c->memory));
    if (dtype == ATT_F32) {
        t->data = check_numbers(n, (uint64_t)c->n);
    } else {
        uint8_t *bytes = t->data = malloc((size_t)n * att_dtype_size(dtype));
        memset(bytes, dtype == ATT_BOOL ? 1 : dtype == ATT_I32 ? 0 : 0x2f, (size_t)n * att_dtype_size(dtype));
    }
    c->memory[c->n++] = t->data;
}

static void make_stage_param(call *c, const att_param_shape *param, int64_t length)
{
    const int64_t size[] = {[ATT_EXTENT_NONE] = 1,
                            [ATT_EXTENT_ANY] = PARAMS,
                            [ATT_EXTENT_HEAD_DIM] = DIM,
                            [ATT_EXTENT_KEY_DIM] = DIM,
                            [ATT_EXTENT_SCORE_DIM] = c->spec.score_dim ? c->spec.score_dim : DIM};
    const int64_t dim[] = {1, size[param->rows], size[param->columns]}, over_pairs[] = {1, 1, 1, length};
    const bool projection = param->rows == ATT_EXTENT_SCORE_DIM && param->columns != ATT_EXTENT_NONE;
    const bool pairs = param->kind == ATT_PARAM_PER_PAIR;
    if (projection && !c->spec.score_dim)
        return;
    const int rank = pairs ? 4 : param->rows == ATT_EXTENT_NONE ? 1 : param->columns == ATT_EXTENT_NONE ? 2 : 3;
    const int n = c->args.n_params;
    make_numbers(c, param_at(&c->args, n), ATT_F32, rank, pairs ? over_pairs : dim);
    make_numbers(c, dparam_at(&c->grads, n), ATT_F32, rank, c->args.param[n].dim);
}

static void make_masks(call *c, const kind *k, int64_t length)
{
    if (k->mask && k->mask != att_mask_window)
        add_mask(&c->spec, k->mask);
    if (!k->full)
        add_window(&c->spec, 12, 3);
    if (k->mask == att_mask_boolean)
        make_numbers(c, param_at(&c->args, c->args.n_params), ATT_BOOL, ATT_DIMS(1, 1, 1, length));
    if (k->mask != att_mask_document)
        return;
    att_tensor *ids = param_at(&c->args, c->args.n_params);
    make_numbers(c, ids, ATT_I32, ATT_DIMS(1, length));
    for (int64_t i = 0; i < length; i++)
        ((int32_t *)ids->data)[i] = (int32_t)(i / 100);
}

static call make_call(const kind *k, int64_t queries, int64_t keys)
{
    static const uint32_t id = 1;
    const int64_t heads = k->heads ? k->heads : 1;
    const att_score *score = k->score ? k->score : att_score_dot;
    call c = {.spec = {.size = sizeof c.spec,
                       .heads = heads,
                       .head_dim = DIM,
                       .score = score,
                       .score_dim = k->score_dim,
                       .align = ATT_ALIGN_TOP_LEFT,
                       .dtype = k->dtype,
                       .dropout = k->dropout},
              .args = {.size = sizeof c.args, .sequence_ids = &id},
              .grads = {.size = sizeof c.grads}};
    att_tensor *const of_queries[] = {&c.args.q, &c.args.out, &c.grads.dout, &c.grads.dq};
    att_tensor *const of_keys[] = {&c.args.k, &c.args.v, &c.grads.dk, &c.grads.dv};
    for (int i = 0; i < 4; i++) {
        make_numbers(&c, of_queries[i], k->dtype, ATT_DIMS(1, heads, queries, DIM));
        make_numbers(&c, of_keys[i], k->dtype, ATT_DIMS(1, heads, keys, DIM));
    }
    make_numbers(&c, &c.args.lse, ATT_F32, ATT_DIMS(1, heads, queries));
    for (int i = 0; i < score->n_params; i++)
        make_stage_param(&c, &score->param[i], keys);
    if (k->modifier) {
        add_modifier(&c.spec, k->modifier, k->modifier->flags & ATT_STAGE_NEEDS_VALUE ? 40 : 0);
        for (int i = 0; i < k->modifier->n_params; i++)
            make_stage_param(&c, &k->modifier->param[i], keys);
    }
    make_masks(&c, k, keys);
    return c;
}

static void call_free(call *c)
{
    while (c->n)
        free(c->memory[--c->n]);
}

/* ---- what it takes */

static att_ctx *open_counting(fail_alloc *f)
{
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(f))), ATT_OK);
    return ctx;
}

static void succeeds(const char *name, att_ctx *ctx, att_status e)
{
    if (e)
        fail_msg("%s: %s", name, att_error(ctx));
}

/* Returns the most bytes that a context with its plan and both passes has had at once. */
static long peak_of(const kind *k, int64_t length)
{
    fail_alloc f = {0};
    att_ctx *ctx = open_counting(&f);
    att_plan *plan = NULL;
    call c = make_call(k, length, length);
    succeeds(k->name, ctx, att_plan_new(ctx, &c.spec, &plan));
    succeeds(k->name, ctx, att_forward(plan, &c.args));
    succeeds(k->name, ctx, att_backward(plan, &c.args, &c.grads));
    att_plan_free(plan);
    att_close(ctx);
    call_free(&c);
    assert_int_equal(f.live, 0);
    return f.peak;
}

/* What may grow with a row of queries and of keys, in bytes. Backward there is a row of dQ, and where the score
 * prepares rows one of q and of k, each a second time as floats if they are not, a gradient of each, filled up to a
 * panel of at most 64 queries, and two more to add them up: rows have DIM numbers, prepared ones too. 256 keys make a
 * task of less than 256 bytes, which has a part of the parameters' gradients, up to PARAMS numbers.
 *
 * What may not: each of two threads has tiles of 256 keys by four panels of 64 queries, 256 KB each, weights, slopes
 * and what a modifier was given; those of the forward are an eighth of that; rows of a block are less than 100 KB. */
enum {
    A_ROW = 4 * (DIM + 2 * DIM + 2 * DIM + 2 * ATT_MAX_Q_TILE + 2 * DIM) + (256 + 4 * PARAMS) / ATT_KEY_BLOCK + 1,
    FIXED = 2 * (3 * (256 << 10) + (32 << 10) + 3 * (100 << 10))
};

static void check_growth(const kind *k)
{
    const int64_t length = LONGEST / 2 / check_step(8);
    const long once = peak_of(k, length), twice = peak_of(k, 2 * length);
    if (twice - once > A_ROW * length)
        fail_msg("%s: %ld bytes for %d queries and keys, %ld for twice as many: more than %d a row", k->name, once,
                 (int)length, twice, A_ROW);
    if (twice > FIXED + A_ROW * 2 * length)
        fail_msg("%s: %ld bytes for %d queries and keys", k->name, twice, (int)(2 * length));
}

static void memory_grows_with_the_length_and_not_with_its_square(void **state)
{
    (void)state;
    /* one bit for each pair would be more: T^2 / 8 bytes, at 2 T four times as many */
    assert_true(3 * (LONGEST / 2) / 8 > A_ROW);
    for (int i = 0; i < COUNT(scores); i++)
        check_growth(&(kind){.name = (*scores[i])->name, .score = *scores[i]});
    for (int i = 1; i < COUNT(modifiers); i++)
        check_growth(&(kind){.name = (*modifiers[i])->name, .modifier = *modifiers[i]});
    for (int i = 1; i < COUNT(masks); i++)
        check_growth(&(kind){.name = (*masks[i])->name, .mask = *masks[i]});
    const kind others[] = {
        {.name = "all pairs", .full = true},
        {.name = "projected additive", .score = att_score_additive, .score_dim = DIM},
        {.name = "f16", .dtype = ATT_F16},
        {.name = "bf16", .dtype = ATT_BF16},
        {.name = "general, f16", .score = att_score_general, .dtype = ATT_F16},
        {.name = "dropout", .dropout = 0.1f},
    };
    for (int i = 0; i < COUNT(others); i++)
        check_growth(&others[i]);
}

/* Looking at some rows costs a row of scores to work in, tiles, and rows of that head alone where the score prepares
 * them: those of q and k, and the same before as floats. */
static void weights_of_some_rows_take_no_memory_for_the_others(void **state)
{
    (void)state;
    enum { ROWS = 3, HEADS = 10 };
    const kind kinds[] = {{.name = "dot", .heads = HEADS},
                          {.name = "general", .heads = HEADS, .score = att_score_general, .dtype = ATT_F16},
                          {.name = "cosine", .heads = HEADS, .score = att_score_cosine}};
    float *weights = check_numbers(ROWS * LONGEST, 1);
    for (int i = 0; i < COUNT(kinds); i++) {
        fail_alloc f = {0};
        att_ctx *ctx = open_counting(&f);
        att_plan *plan = NULL;
        call c = make_call(&kinds[i], LONGEST, LONGEST);
        succeeds("weights", ctx, att_plan_new(ctx, &c.spec, &plan));
        const long before = f.bytes;
        f.peak = before;
        succeeds("weights", ctx, att_weights(plan, &c.args, 0, HEADS - 2, LONGEST - ROWS, ROWS, weights));
        assert_true(f.peak - before <= FIXED + 4 * LONGEST * (1 + (i > 0 ? 4 * DIM : 0)));
        att_plan_free(plan);
        att_close(ctx);
        call_free(&c);
    }
    free(weights);
}

/* ---- and what was said */

/* In addition there are the sequences' positions in the queue, one or two numbers for each. */
enum { LITTLE = 256 };

static long taken_by(att_ctx *ctx, fail_alloc *f, const att_plan *plan, const call *c, bool backward)
{
    const long before = f->bytes;
    f->peak = before;
    succeeds("said", ctx, backward ? att_backward(plan, &c->args, &c->grads) : att_forward(plan, &c->args));
    return f->peak - before;
}

static void a_plan_says_beforehand_what_a_call_takes(void **state)
{
    (void)state;
    const kind kinds[] = {
        {.name = "dot", .full = true},
        {.name = "dot in f16", .dtype = ATT_F16},
        {.name = "window"},
        {.name = "general", .score = att_score_general},
        {.name = "general in bf16", .score = att_score_general, .dtype = ATT_BF16},
        {.name = "cosine", .score = att_score_cosine},
        {.name = "additive", .score = att_score_additive},
        {.name = "projected", .score = att_score_additive, .score_dim = 3 * DIM},
        {.name = "projected from f16", .score = att_score_additive, .score_dim = 3 * DIM, .dtype = ATT_F16},
        {.name = "softcap", .modifier = att_modifier_softcap},
        {.name = "of the caller's", .score = own_score},
    };
    for (int i = 0; i < 2 * COUNT(kinds); i++) { /* many queries, and few */
        const kind *k = &kinds[i / 2];
        fail_alloc f = {0};
        att_ctx *ctx = open_counting(&f);
        att_plan *plan = NULL;
        call c = make_call(k, i % 2 ? 4 : 700, 1500);
        att_plan_info info = {.size = sizeof info};
        c.grads.n_dparams = 0; /* what is said is for q, k and v */
        succeeds(k->name, ctx, att_plan_new(ctx, &c.spec, &plan));
        succeeds(k->name, ctx, att_plan_describe(plan, &c.args, &info));
        const long forward = taken_by(ctx, &f, plan, &c, false);
        att_plan_free(plan); /* it has kept what forward has worked in */
        succeeds(k->name, ctx, att_plan_new(ctx, &c.spec, &plan));
        const long backward = taken_by(ctx, &f, plan, &c, true);
        if (forward < (long)info.forward.workspace || forward > (long)info.forward.workspace + LITTLE)
            fail_msg("%s, %d queries: forward takes %ld bytes, the plan said %zu", k->name, i % 2 ? 4 : 700, forward,
                     info.forward.workspace);
        if (backward < (long)info.backward.workspace || backward > (long)info.backward.workspace + LITTLE)
            fail_msg("%s, %d queries: backward takes %ld bytes, the plan said %zu", k->name, i % 2 ? 4 : 700, backward,
                     info.backward.workspace);
        att_plan_free(plan);
        att_close(ctx);
        call_free(&c);
    }
}

/* A second call finds the memory that the first one worked in. What it still asks for are lists of sequences and of
 * tasks, some 100 bytes each. */
static void a_second_call_asks_for_no_memory_to_work_in(void **state)
{
    (void)state;
    enum { LISTS = 16 * LITTLE };
    const kind kinds[] = {{.name = "dot", .full = true},
                          {.name = "dot in f16", .dtype = ATT_F16},
                          {.name = "additive", .score = att_score_additive},
                          {.name = "softcap", .modifier = att_modifier_softcap}};
    for (int i = 0; i < 2 * COUNT(kinds); i++) { /* many queries, and few */
        const kind *k = &kinds[i / 2];
        fail_alloc f = {0};
        att_ctx *ctx = open_counting(&f);
        att_plan *plan = NULL;
        call c = make_call(k, i % 2 ? 4 : 300, 700);
        succeeds(k->name, ctx, att_plan_new(ctx, &c.spec, &plan));
        for (int backward = 0; backward < 2; backward++) {
            assert_true(taken_by(ctx, &f, plan, &c, backward) > LISTS);
            for (int again = 0; again < 2; again++)
                assert_true(taken_by(ctx, &f, plan, &c, backward) <= LISTS);
        }
        assert_true(taken_by(ctx, &f, plan, &c, false) <= LISTS); /* and each finds its own, or a larger one */
        att_plan_free(plan);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        call_free(&c);
    }
}

static void trimming_frees_what_a_plan_keeps_and_changes_no_result(void **state)
{
    (void)state;
    const kind k = {.name = "dot", .full = true};
    fail_alloc f = {0};
    att_ctx *ctx = open_counting(&f);
    att_plan *plan = NULL;
    call c = make_call(&k, 300, 700);
    const int64_t n = check_count(&c.args.out);
    succeeds(k.name, ctx, att_plan_new(ctx, &c.spec, &plan));
    const long before = f.bytes;
    succeeds(k.name, ctx, att_forward(plan, &c.args));
    assert_true(f.bytes > before);
    float *out = memcpy(check_numbers(n, 1), c.args.out.data, (size_t)n * sizeof *out);
    att_plan_trim(plan);
    assert_int_equal(f.bytes, before);
    att_plan_trim(plan);
    succeeds(k.name, ctx, att_forward(plan, &c.args));
    assert_same_bits(out, c.args.out.data, n);
    free(out);
    att_plan_free(plan);
    att_close(ctx);
    call_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trimming_frees_what_a_plan_keeps_and_changes_no_result),
        cmocka_unit_test(a_second_call_asks_for_no_memory_to_work_in),
        cmocka_unit_test(memory_grows_with_the_length_and_not_with_its_square),
        cmocka_unit_test(weights_of_some_rows_take_no_memory_for_the_others),
        cmocka_unit_test(a_plan_says_beforehand_what_a_call_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
