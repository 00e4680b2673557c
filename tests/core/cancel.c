/* att_cancel_by: a flag for the calls of one thread, on whatever threads their bodies run. */
// labels: threads
#include "fixtures/attention.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, OFTEN = 30 };
static const shape n = {2, 4, 2, 40, 90, 16, 16};

/* ---- what bodies see */

typedef struct seen {
    att_ctx *ctx;
    pthread_barrier_t all;
    atomic_int cancelled, bodies;
} seen;

static void ask(void *arg, int i)
{
    seen *s = arg;
    (void)i;
    pthread_barrier_wait(&s->all); /* so that each thread has one */
    s->cancelled += att_cancelled(s->ctx);
    s->bodies++;
}

/* Returns how many of THREADS bodies on as many threads see that they are cancelled. */
static int cancelled_bodies(att_ctx *ctx)
{
    seen s = {.ctx = ctx};
    pthread_barrier_init(&s.all, NULL, THREADS);
    att_parallel_for(ctx, THREADS, ask, &s);
    pthread_barrier_destroy(&s.all);
    assert_int_equal(s.bodies, THREADS);
    return s.cancelled;
}

static void the_flag_of_a_call_is_seen_by_its_bodies_on_all_threads_and_by_no_later_call(void **state)
{
    (void)state;
    volatile int flag = 1;
    att_ctx *ctx = check_open(NULL, THREADS);
    assert_null(att_cancel_by(&flag));
    assert_int_equal(cancelled_bodies(ctx), THREADS);
    flag = 0;
    assert_int_equal(cancelled_bodies(ctx), 0);
    flag = 1;
    assert_ptr_equal(att_cancel_by(NULL), &flag);
    assert_int_equal(cancelled_bodies(ctx), 0);
    att_close(ctx);
}

typedef struct host_body {
    void (*body)(void *, int);
    void *arg;
    int i;
    bool was_without_flag, is_without_flag;
} host_body;

static void *host_thread(void *arg)
{
    host_body *b = arg;
    b->was_without_flag = !att_cancel_by(NULL);
    b->body(b->arg, b->i);
    b->is_without_flag = !att_cancel_by(NULL);
    return NULL;
}

/* A host that has a thread for each body. */
static void host_for(void *user, int count, void (*body)(void *, int), void *arg)
{
    int *leaks = user;
    pthread_t thread[THREADS];
    host_body b[THREADS];
    for (int i = 0; i < count; i++) {
        b[i] = (host_body){body, arg, i, false, false};
        assert_int_equal(pthread_create(&thread[i], NULL, host_thread, &b[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        *leaks += !b[i].was_without_flag || !b[i].is_without_flag;
    }
}

static void a_hosts_threads_see_it_while_they_run_a_body(void **state)
{
    (void)state;
    int leaks = 0;
    volatile int flag = 1;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = THREADS, .parallel_for = host_for,
                                                .parallel_user = &leaks)),
                     ATT_OK);
    att_cancel_by(&flag);
    assert_int_equal(cancelled_bodies(ctx), THREADS);
    att_cancel_by(NULL);
    assert_int_equal(cancelled_bodies(ctx), 0);
    assert_int_equal(leaks, 0);
    att_close(ctx);
}

/* ---- nested */

typedef struct nested {
    att_ctx *other;
    volatile int flag;
    atomic_int wrong;
} nested;

/* A call of another context inside a body, with a flag of its own. */
static void call_inside(void *arg, int i)
{
    nested *x = arg;
    (void)i;
    float numbers[4] = {1, 2, 3, 4}, product[4];
    att_tensor a, c;
    att_wrap(&a, numbers, ATT_F32, ATT_DIMS(2, 2), NULL);
    att_wrap(&c, product, ATT_F32, ATT_DIMS(2, 2), NULL);
    x->wrong += att_tensor_matmul(x->other, &a, &a, false, &c) != ATT_ERR_CANCELLED; /* by that of the call outside */
    const volatile int *outer = att_cancel_by(&x->flag);
    x->wrong += !outer || att_cancelled(x->other);
    x->wrong += att_tensor_matmul(x->other, &a, &a, false, &c) != ATT_OK;
    x->wrong += att_cancel_by(outer) != &x->flag;
    x->wrong += !att_cancelled(x->other);
}

static void a_call_inside_another_has_its_flag_or_one_of_its_own(void **state)
{
    (void)state;
    volatile int flag = 1;
    att_ctx *ctx = check_open(NULL, THREADS);
    nested x = {.other = check_open(NULL, THREADS)};
    att_cancel_by(&flag);
    att_parallel_for(ctx, 50, call_inside, &x);
    assert_ptr_equal(att_cancel_by(NULL), &flag);
    assert_int_equal(x.wrong, 0);
    att_close(x.other);
    att_close(ctx);
}

/* ---- calls of several threads in one context */

typedef struct request {
    att_ctx *ctx;
    const att_plan *plan;
    volatile int flag;
    att_status status[OFTEN];
    float out[OFTEN][2 * 4 * 40 * 16];
    pthread_barrier_t *all;
} request;

static void *compute(void *arg)
{
    request *r = arg;
    operands o = make(n);
    att_cancel_by(&r->flag);
    pthread_barrier_wait(r->all);
    for (int i = 0; i < OFTEN; i++) {
        o.args.out.data = r->out[i];
        r->status[i] = att_forward(r->plan, &o.args);
    }
    operands_free(&o);
    return NULL;
}

static void of_two_threads_in_one_context_one_is_cancelled_and_the_other_has_the_same_bits(void **state)
{
    (void)state;
    static request r[2];
    static float expected[2 * 4 * 40 * 16];
    att_ctx *ctx = check_open(NULL, THREADS);
    const att_attention_spec s = spec_of(n);
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    operands o = make(n);
    o.args.out.data = expected;
    assert_int_equal(att_forward(plan, &o.args), ATT_OK);
    operands_free(&o);
    pthread_t thread[2];
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, 2);
    for (int i = 0; i < 2; i++) {
        r[i].ctx = ctx, r[i].plan = plan, r[i].flag = i, r[i].all = &all;
        assert_int_equal(pthread_create(&thread[i], NULL, compute, &r[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&all);
    for (int i = 0; i < OFTEN; i++) {
        assert_int_equal(r[0].status[i], ATT_OK);
        assert_memory_equal(r[0].out[i], expected, sizeof expected);
        assert_int_equal(r[1].status[i], ATT_ERR_CANCELLED);
    }
    assert_false(att_cancelled(ctx));
    att_plan_free(plan);
    att_close(ctx);
}

static void the_flag_of_the_context_stays_beside_it(void **state)
{
    (void)state;
    volatile int of_context = 0, of_thread = 0;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .cancel = &of_context)), ATT_OK);
    att_cancel_by(&of_thread);
    for (int i = 0; i < 4; i++) {
        of_context = i & 1, of_thread = i & 2;
        assert_int_equal(att_cancelled(ctx), i > 0);
    }
    att_cancel_by(NULL);
    assert_true(att_cancelled(ctx));
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flag_of_a_call_is_seen_by_its_bodies_on_all_threads_and_by_no_later_call),
        cmocka_unit_test(a_hosts_threads_see_it_while_they_run_a_body),
        cmocka_unit_test(a_call_inside_another_has_its_flag_or_one_of_its_own),
        cmocka_unit_test(of_two_threads_in_one_context_one_is_cancelled_and_the_other_has_the_same_bits),
        cmocka_unit_test(the_flag_of_the_context_stays_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
