/* A call that is cancelled while weights are packed, at their first use, stops there, and leaves no half of a copy. */
#include "fixtures/cache.h"
#include "fixtures/tape.h"

enum { ROWS = 5, IN = 40, OUT = 300 };

/* A host that cancels the call when it is asked for threads for the n-th time. */
typedef struct host {
    volatile int flag;
    int asked, cancels_at; /* 0: never */
} host;

static void host_for(void *user, int n, void (*body)(void *, int), void *arg)
{
    host *h = user;
    h->flag = ++h->asked == h->cancels_at;
    for (int i = 0; i < n; i++)
        body(arg, i);
}

typedef struct fixture {
    att_ctx *ctx;
    att_param *w;
    float *x; /* [ROWS, IN] */
} fixture;

static att_var *linear(const fixture *f, att_tape *t)
{
    return att_linear(t, input(t, f->x, ATT_DIMS(ROWS, IN)), f->w, NULL, ATT_ACTIVATION_IDENTITY, NULL);
}

static att_status product(const fixture *f, att_tensor *y, att_tape *t) { return att_var_value(t, linear(f, t), y); }

static att_status best(const fixture *f, att_tensor *y, att_tape *t)
{
    static att_top_column top[ROWS];
    *y = view(top, ATT_I32, ATT_DIMS(sizeof top / 4));
    return att_linear_argmax(t, input(t, f->x, ATT_DIMS(ROWS, IN)), f->w, NULL, NULL, top);
}

static const struct {
    const char *name;
    att_dtype dtype;
    att_status (*run)(const fixture *f, att_tensor *y, att_tape *t);
} uses[] = {{"packed floats", ATT_F32, product},
            {"packed codes", ATT_F16, product},
            {"packed codes", ATT_BF16, product},
            {"bytes", ATT_F32, best}};

static void check_use(size_t u)
{
    host h = {0};
    fixture f;
    att_tensor y;
    assert_int_equal(
        att_open(&f.ctx, ATT_OPTIONS(att_config, .n_threads = 3, .parallel_for = host_for, .parallel_user = &h)),
        ATT_OK);
    f.x = check_numbers(ROWS * IN, 1);
    float *weights = check_numbers(OUT * IN, 2);
    void *data = check_numbers(OUT * IN, 3);
    const att_tensor from = view(weights, ATT_F32, ATT_DIMS(OUT, IN)),
                     to = view(data, uses[u].dtype, ATT_DIMS(OUT, IN));
    check_ok(f.ctx, att_tensor_convert(f.ctx, &from, &to));
    f.w = param(f.ctx, data, uses[u].dtype, ATT_DIMS(OUT, IN));
    att_tape *t = new_tape(f.ctx);
    att_cancel_by(&h.flag);
    h.asked = 0, h.cancels_at = 1;
    if (uses[u].run(&f, &y, t) != ATT_ERR_CANCELLED || h.asked != 1 || !strstr(att_error(f.ctx), "cancelled"))
        fail_msg("%s: after %d parallel calls, \"%s\"", uses[u].name, h.asked, att_error(f.ctx));
    att_tape_reset(t);
    h.flag = h.cancels_at = 0;
    check_ok(f.ctx, uses[u].run(&f, &y, t));
    const size_t bytes = (size_t)att_dtype_bytes(y.dtype, att_count(&y));
    void *got = memcpy(malloc(bytes), y.data, bytes);
    att_cancel_by(NULL);
    att_tape_reset(t);
    att_param_free(f.w);
    f.w = param(f.ctx, data, uses[u].dtype, ATT_DIMS(OUT, IN)); /* and one that was not cancelled */
    check_ok(f.ctx, uses[u].run(&f, &y, t));
    assert_memory_equal(got, y.data, bytes);
    free(got);
    att_tape_free(t);
    att_param_free(f.w);
    free(f.x), free(weights), free(data);
    att_close(f.ctx);
}

static void a_cancelled_call_stops_while_it_packs_and_a_later_one_has_the_same_bits(void **state)
{
    (void)state;
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++)
        check_use(u);
}

/* Parameters that are converted, not packed: they have no parallel call of their own. */
static void converting_a_parameter_is_cancelled(void **state)
{
    (void)state;
    volatile int flag = 0;
    att_ctx *ctx = check_open(NULL, 1);
    uint16_t codes[OUT * 2] = {0};
    att_param *p = param(ctx, codes, ATT_F16, ATT_DIMS(OUT, 2));
    att_tape *t = recording_tape(ctx);
    att_cancel_by(&flag);
    flag = 1;
    assert_null(att_param_floats(p));
    assert_string_equal(att_error(ctx), "cancelled");
    flag = 0;
    assert_non_null(att_parameter(t, p));
    att_cancel_by(NULL);
    att_tape_free(t);
    att_param_free(p);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_call_stops_while_it_packs_and_a_later_one_has_the_same_bits),
        cmocka_unit_test(converting_a_parameter_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
