/* A host's parallel_for is asked for as many bodies at once as the configuration says, by all that has work for them.
 */
// labels: threads native
#include "fixtures/cache.h"
#include "fixtures/tape.h"

enum { FEATURES = 8, THREADS = 128, HEADS = 256, KEYS = 1024, DIM = 16, SIDE = 1024, WORDS = SIDE * SIDE / FEATURES };

/* Notes the most bodies that it was asked for. */
static void host_for(void *user, int n, void (*body)(void *, int), void *arg)
{
    int *most = user;
    *most = n > *most ? n : *most;
    for (int i = 0; i < n; i++)
        body(arg, i);
}

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float *x, *y;              /* [SIDE, SIDE] */
    att_tensor xs, ys;         /* of them */
    att_param *w, *vocabulary; /* of y; [WORDS, FEATURES] */
    operands many, few;
    att_plan *plan;
    att_cache *cache;
} fixture;

static void matmul(fixture *f)
{
    float *out = check_numbers((int64_t)SIDE * SIDE, 3);
    const att_tensor o = view(out, ATT_F32, ATT_DIMS(SIDE, SIDE));
    check_ok(f->ctx,
             att_tensor_matmul(f->ctx, &f->xs, &f->ys, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &o));
    free(out);
}

static void softmax(fixture *f)
{
    const att_tensor x = view(f->x, ATT_F32, ATT_DIMS(4 * SIDE, SIDE / 4)),
                     y = view(f->y, ATT_F32, ATT_DIMS(4 * SIDE, SIDE / 4));
    check_ok(f->ctx, att_tensor_softmax(f->ctx, &x, -1, &y));
}

static void forward(fixture *f) { check_ok(f->ctx, att_forward(f->plan, &f->many.args)); }

static void backward(fixture *f)
{
    operands g = make(f->many.n);
    att_attention_grads grads = {
        .size = sizeof grads, .dout = f->many.args.out, .dq = g.args.q, .dk = g.args.k, .dv = g.args.v};
    check_ok(f->ctx, att_forward(f->plan, &f->many.args));
    check_ok(f->ctx, att_backward(f->plan, &f->many.args, &grads));
    operands_free(&g);
}

static void decode(fixture *f) { check_ok(f->ctx, att_forward(f->plan, &f->few.args)); }
static void cache_append(fixture *f) { append(f->ctx, f->cache, &f->many.args, 0, KEYS); }

static void linear(fixture *f) { read_floats(f->t, att_linear(f->t, att_input(f->t, &f->xs), f->w, NULL, 0, NULL)); }

/* The largest of few rows: what is dealt is the vocabulary. */
static void argmax(fixture *f)
{
    att_top_column best;
    check_ok(f->ctx,
             att_linear_argmax(f->t, input(f->t, f->x, ATT_DIMS(1, FEATURES)), f->vocabulary, NULL, NULL, &best));
}

static void top(fixture *f)
{
    att_top_column best[2];
    double sum;
    check_ok(f->ctx,
             att_linear_topk(f->t, input(f->t, f->x, ATT_DIMS(1, FEATURES)), f->vocabulary, NULL, NULL, 2, best, &sum));
}

static const struct {
    const char *name;
    void (*run)(fixture *f);
} computations[] = {
    {"att_tensor_matmul", matmul}, {"att_tensor_softmax", softmax},        {"att_forward of many queries", forward},
    {"att_backward", backward},    {"att_forward of few queries", decode}, {"att_cache_append", cache_append},
    {"att_linear", linear},        {"att_linear_argmax", argmax},          {"att_linear_topk", top}};

static void each_computation_asks_for_all_threads(void **state)
{
    (void)state;
    int most = 0;
    fixture f;
    const shape many = {1, HEADS, HEADS, KEYS / 16, KEYS, DIM, DIM}, few = {1, HEADS, HEADS, 1, KEYS, DIM, DIM};
    const att_attention_spec s = spec_of(many);
    assert_int_equal(att_open(&f.ctx, ATT_OPTIONS(att_config, .n_threads = THREADS, .parallel_for = host_for,
                                                  .parallel_user = &most)),
                     ATT_OK);
    f.x = check_numbers((int64_t)SIDE * SIDE, 1), f.y = check_numbers((int64_t)SIDE * SIDE, 2);
    f.xs = view(f.x, ATT_F32, ATT_DIMS(SIDE, SIDE)), f.ys = view(f.y, ATT_F32, ATT_DIMS(SIDE, SIDE));
    f.w = param(f.ctx, f.y, ATT_F32, ATT_DIMS(SIDE, SIDE));
    f.vocabulary = param(f.ctx, f.y, ATT_F32, ATT_DIMS(WORDS, FEATURES));
    f.t = new_tape(f.ctx);
    f.many = make(many), f.few = make(few);
    f.plan = plan_of(f.ctx, &s);
    f.cache = cache_of(f.ctx, f.plan, 1);
    for (size_t i = 0; i < sizeof computations / sizeof *computations; i++) {
        most = 0;
        computations[i].run(&f);
        if (most != THREADS)
            fail_msg("%s asks the host for %d threads, not for %d", computations[i].name, most, THREADS);
    }
    att_cache_free(f.cache);
    att_plan_free(f.plan);
    operands_free(&f.many), operands_free(&f.few);
    att_tape_free(f.t);
    att_param_free(f.w);
    att_param_free(f.vocabulary);
    free(f.x), free(f.y);
    att_close(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_computation_asks_for_all_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
