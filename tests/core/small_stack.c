/* Calls on threads with stacks that are smaller than those that attend.h says suffice: attention, forward and backward,
 * decoding, caches, layers and the checks of stages. One that takes more faults. */
// labels: threads native
#include "fixtures/attention_trial.h"
#include "fixtures/tape.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KIB = 1024, SMALL = 64, LARGE = 192, TQ = 70, TK = 600, MOST = 2 * 4 * TK * 64 };

static bool as_compiled_for_use(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
    return false; /* their frames are larger */
#elif defined(__has_feature)
    return !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
    return true;
#endif
}

/* ---- what a thread does */

typedef struct task {
    att_ctx *ctx;
    att_attention_spec spec;
    att_dtype dtype;
    bool backward;
    bool failed;
} task;

static void keep_sentence(task *j, att_status s)
{
    j->failed = j->failed || s;
    if (s)
        print_error("%s\n", att_error(j->ctx));
}

/* Memory is not the stack's. */
static float *some(int64_t count) { return check_numbers(count, 1); }

static void set_params(const att_attention_spec *s, att_attention_args *a, float *x)
{
    const int64_t d = s->head_dim;
    if (s->score == att_score_general)
        add_param(a, view(x, ATT_F32, ATT_DIMS(s->heads, d, d)));
    if (s->score == att_score_additive)
        add_param(a, view(x, ATT_F32, ATT_DIMS(s->heads, d)));
    const att_modifier *m = s->n_stages ? s->stage[0].modifier : NULL;
    if (!m || !m->n_params)
        return;
    if (m->param->kind == ATT_PARAM_PER_PAIR)
        add_param(a, view(x, ATT_F32, ATT_DIMS(1, 1, 1, 1)));
    else if (m->param->rows)
        add_param(a, view(x, ATT_F32, ATT_DIMS(s->heads, 32)));
    else
        add_param(a, view(x, ATT_F32, ATT_DIMS(s->heads)));
}

static void attend(task *j, int64_t tq)
{
    const att_attention_spec *s = &j->spec;
    const int64_t d = s->head_dim, h = s->heads;
    float *x[9];
    for (int i = 0; i < 9; i++)
        x[i] = some(MOST);
    att_attention_args a = {.size = sizeof a, .dropout_seed = 1, .sequence_ids = (const uint32_t[]){1, 2}};
    a.q = view(x[0], j->dtype, ATT_DIMS(2, h, tq, d)), a.out = view(x[3], j->dtype, ATT_DIMS(2, h, tq, d));
    a.k = view(x[1], j->dtype, ATT_DIMS(2, s->kv_heads, TK, d)),
    a.v = view(x[2], j->dtype, ATT_DIMS(2, s->kv_heads, TK, d));
    a.lse = view(x[4], ATT_F32, ATT_DIMS(2, h, tq));
    set_params(s, &a, x[5]);
    att_attention_grads g = {.size = sizeof g, .dout = a.out, .dq = a.q, .dk = a.k, .dv = a.v};
    g.dq.data = x[6], g.dk.data = x[7], g.dv.data = x[8];
    att_plan *plan = NULL;
    att_cache *cache = NULL;
    keep_sentence(j, att_plan_new(j->ctx, s, &plan));
    keep_sentence(j, att_forward(plan, &a));
    if (j->backward)
        keep_sentence(j, att_backward(plan, &a, &g));
    if (s->score != att_score_cosine && s->score != att_score_additive) {
        keep_sentence(j, att_cache_new(plan, 2, &cache));
        keep_sentence(j, att_cache_append(cache, ATT_ALL_SEQUENCES, &a.k, &a.v));
        a.k = a.v = (att_tensor){0};
        a.cache = cache;
        keep_sentence(j, att_forward(plan, &a));
    }
    att_cache_free(cache);
    att_plan_free(plan);
    for (int i = 0; i < 9; i++)
        free(x[i]);
}

static void *attend_all(void *arg)
{
    attend(arg, 2);
    attend(arg, TQ);
    return NULL;
}

static void *verify(void *arg)
{
    task *j = arg;
    keep_sentence(j, att_verify(j->ctx, &j->spec));
    return NULL;
}

static void *learn(void *arg)
{
    task *j = arg;
    enum { ROWS = 50, IN = 64, OUT = 900 };
    float *x = some(ROWS * IN), *w = some(OUT * IN);
    static int32_t targets[ROWS];
    att_top_column best[ROWS], top[ROWS * 2];
    double sums[ROWS];
    att_param *p = NULL;
    att_optimizer *o = NULL;
    att_tape *t = NULL;
    const att_tensor xs = view(x, ATT_F32, ATT_DIMS(ROWS, IN)), ws = view(w, ATT_F32, ATT_DIMS(OUT, IN));
    keep_sentence(j, att_param_new(j->ctx, &ws, &p));
    keep_sentence(j, att_optimizer_new(j->ctx, NULL, &o));
    keep_sentence(j, att_optimizer_add(o, p, NULL));
    keep_sentence(j, att_tape_new(j->ctx, ATT_OPTIONS(att_tape_config, .record = true), &t));
    att_var *in = att_activate(t, att_input(t, &xs), ATT_ACTIVATION_GELU_ERF);
    att_var *loss = att_cross_entropy(t, att_linear(t, in, p, NULL, ATT_ACTIVATION_IDENTITY, NULL), targets, NULL);
    keep_sentence(j, att_tape_backward(t, loss, NULL));
    keep_sentence(j, att_linear_argmax(t, in, p, NULL, NULL, best));
    keep_sentence(j, att_linear_topk(t, in, p, NULL, NULL, 2, top, sums));
    keep_sentence(j, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.1), NULL));
    keep_sentence(j, att_average(j->ctx, &ws, 1, &ws));
    att_tape_free(t);
    att_optimizer_free(o);
    att_param_free(p);
    free(x), free(w);
    return NULL;
}

/* Or on the smallest that the system has, where that is larger. */
static void on_stack(int kib, void *(*run)(void *), task *j)
{
    const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), wanted = (size_t)kib * KIB;
    pthread_t thread;
    pthread_attr_t a;
    assert_int_equal(pthread_attr_init(&a), 0);
    assert_int_equal(pthread_attr_setstacksize(&a, wanted < least ? least : wanted), 0);
    assert_int_equal(pthread_create(&thread, &a, run, j), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&a);
    assert_false(j->failed);
}

/* ---- what is done */

static att_attention_spec spec(const att_score *score)
{
    return (att_attention_spec){.size = sizeof(att_attention_spec),
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 64,
                                .score = score,
                                .align = ATT_ALIGN_BOTTOM_RIGHT};
}

static void attention_on(att_ctx *ctx)
{
    const att_score *const small[] = {att_score_dot, att_score_general, att_score_cosine};
    for (int i = 0; i < COUNT(small); i++)
        on_stack(SMALL, attend_all, &(task){.ctx = ctx, .spec = spec(small[i]), .backward = true});
    for (int i = 1; i < COUNT(modifiers); i++) {
        const att_modifier *m = *modifiers[i];
        task j = {.ctx = ctx, .spec = spec(NULL), .backward = m->derivative || (m->flags & ATT_STAGE_SINK)};
        add_modifier(&j.spec, m, !(m->flags & ATT_STAGE_NEEDS_VALUE) ? 0 : m == att_modifier_softcap ? 2 : 128);
        add_mask(&j.spec, att_mask_causal);
        add_window(&j.spec, 300, 0);
        j.spec.dropout = 0.1f;
        on_stack(SMALL, attend_all, &j);
    }
    on_stack(LARGE, attend_all, &(task){.ctx = ctx, .spec = spec(att_score_additive), .backward = true});
    for (int i = ATT_F16; i <= ATT_BF16; i++) {
        task j = {.ctx = ctx, .spec = spec(NULL), .dtype = (att_dtype)i, .backward = true};
        j.spec.dtype = j.dtype;
        on_stack(i == ATT_F16 ? SMALL : LARGE, attend_all, &j);
    }
}

static void calls_need_the_stacks_that_the_header_says(void **state)
{
    (void)state;
    if (!as_compiled_for_use())
        skip();
    for (int threads = 1; threads <= 2; threads++)
        for (att_ctx *ctx = NULL; check_next_context(&ctx, threads);) {
            attention_on(ctx);
            on_stack(SMALL, learn, &(task){.ctx = ctx});
        }
    att_ctx *ctx = check_open(NULL, 2);
    task j = {.ctx = ctx, .spec = spec(NULL)};
    add_mask(&j.spec, att_mask_causal);
    add_modifier(&j.spec, att_modifier_alibi, 0);
    on_stack(SMALL, verify, &j);
    att_close(ctx);
}

/* The process's limit is what its threads get for a stack. */
static void a_small_limit_is_not_that_of_its_own_threads(void **state)
{
    (void)state;
    struct rlimit before, less;
    if (!as_compiled_for_use())
        skip();
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    less = before;
    less.rlim_cur = SMALL * KIB;
    assert_int_equal(setrlimit(RLIMIT_STACK, &less), 0);
    att_ctx *ctx = check_open(NULL, 3);
    on_stack(LARGE, attend_all, &(task){.ctx = ctx, .spec = spec(att_score_additive), .backward = true});
    att_close(ctx);
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_need_the_stacks_that_the_header_says),
        cmocka_unit_test(a_small_limit_is_not_that_of_its_own_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
