/* The hook of a tape: its arguments and its rights, and the changes that before_attend may make. */
#include "fixtures/tape.h"

enum { TOKENS = 7, HEADS = 3, DIM = 4, WIDTH = HEADS * DIM, SEQUENCES = 2 };
static const int64_t offsets[SEQUENCES + 1] = {0, 3, TOKENS};
#define ROWS ATT_DIMS(TOKENS, HEADS, DIM)

/* Numbers of queries, keys, values and of a matrix, and a plan */
typedef struct numbers {
    att_ctx *ctx;
    float *q, *k, *v, *w;
    att_param *p;
    att_plan *plan;
} numbers;

static numbers numbers_open(void)
{
    numbers n = {.ctx = check_open(NULL, 1),
                 .q = check_numbers(TOKENS * WIDTH, 1),
                 .k = check_numbers(TOKENS * WIDTH, 2),
                 .v = check_numbers(TOKENS * WIDTH, 3),
                 .w = check_numbers(WIDTH * WIDTH, 4)};
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = HEADS,
                                     .head_dim = DIM,
                                     ATT_STAGES({.modifier = att_modifier_alibi}),
                                     .align = ATT_ALIGN_BOTTOM_RIGHT};
    n.p = param(n.ctx, n.w, ATT_F32, ATT_DIMS(WIDTH, WIDTH));
    assert_int_equal(att_plan_new(n.ctx, &spec, &n.plan), ATT_OK);
    return n;
}

static void numbers_close(numbers *n)
{
    att_plan_free(n->plan);
    att_param_free(n->p);
    free(n->q), free(n->k), free(n->v), free(n->w);
    att_close(n->ctx);
}

static float slope[HEADS] = {0.5f, 0.25f, 0.125f};
static att_attention_args args_with(const att_tensor *slopes)
{
    return (att_attention_args){.size = sizeof(att_attention_args),
                                .n_sequences = SEQUENCES,
                                .q_offsets = offsets,
                                .param = slopes,
                                .n_params = 1};
}

/* Attention in a scope of its own, by args whose arrays are gone after it. */
static att_var *attention(att_tape *t, const numbers *n, const att_attend_params *params)
{
    int64_t from[SEQUENCES + 1];
    att_tensor slopes = params ? (att_tensor){0} : view(slope, ATT_F32, ATT_DIMS(HEADS));
    memcpy(from, offsets, sizeof from);
    att_attention_args args = args_with(&slopes);
    args.q_offsets = from;
    att_scope s = att_scope_begin(t, "attention");
    att_var *q = input(t, n->q, ROWS), *k = input(t, n->k, ROWS), *v = input(t, n->v, ROWS);
    att_var *y = att_scope_end(t, s, att_merge_heads(t, att_attend(t, n->plan, q, k, v, &args, params)));
    memset(from, 0, sizeof from);
    slopes = (att_tensor){0};
    return y;
}

static att_var *product(att_tape *t, const numbers *n, att_var *x)
{
    return att_linear(t, x, n->p, NULL, ATT_ACTIVATION_IDENTITY, NULL);
}

/* ---- the hook */

typedef struct heard {
    char text[512];
    float kept[TOKENS * WIDTH]; /* the last event's */
} heard;

static void note(void *user, const att_tape_event *e)
{
    heard *l = user;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s %s%s", e->op, e->scope, *e->scope ? ", " : "(none), ");
    assert_true(!strcmp(e->op, "attend") ? e->plan && e->args : !e->plan && !e->args);
    memcpy(l->kept, e->output->data, sizeof l->kept);
}

static void the_end_of_a_scope_that_keeps_a_variable_is_an_event(void **state)
{
    (void)state;
    numbers n = numbers_open();
    for (int record = 0; record < 2; record++) {
        heard l = {0};
        att_tape *t;
        const att_tape_config c = {.size = sizeof c, .hook = note, .hook_user = &l, .record = record};
        assert_int_equal(att_tape_new(n.ctx, &c, &t), ATT_OK);
        att_scope model = att_scope_begin(t, "model");
        att_scope layer = att_scope_begin(t, "layer.0");
        att_var *y = att_scope_end(t, layer, product(t, &n, attention(t, &n, NULL)));
        assert_string_equal(l.text, "attend model/layer.0/attention, merge_heads model/layer.0/attention, "
                                    "scope model/layer.0/attention, linear model/layer.0, scope model/layer.0, ");
        l.text[0] = 0;
        att_scope_end(t, att_scope_begin(t, "unused"), NULL); /* keeps nothing */
        layer = att_scope_begin(t, "layer.1");
        y = att_scope_reset(t, layer, product(t, &n, y)); /* does not end */
        att_scope_begin(t, "open");                       /* ends with the scope around it */
        y = att_scope_end(t, layer, y);
        y = att_scope_end(t, model, y);
        assert_string_equal(l.text, "linear model/layer.1, scope model/layer.1, scope model, ");
        assert_memory_equal(l.kept, read_floats(t, y), TOKENS * WIDTH * sizeof(float));
        att_scope_end(t, att_scope_begin(t, "failed"), att_tape_fail(t, ATT_ERR_ARGUMENT, "a reason"));
        assert_string_equal(l.text, "linear model/layer.1, scope model/layer.1, scope model, ");
        att_tape_free(t);
    }
    numbers_close(&n);
}

/* Sets numbers of head 1 of the result of an operation to 0. */
static void without_head(void *user, const att_tape_event *e)
{
    const char *op = user;
    float *y = e->output->data;
    for (int i = 0; !strcmp(e->op, op) && i < TOKENS; i++)
        memset(y + i * WIDTH + DIM, 0, DIM * sizeof *y);
}

static void a_hook_may_write_results_and_what_follows_is_computed_with_them(void **state)
{
    (void)state;
    static char of_attend[] = "attend", of_view[] = "merge_heads", of_scope[] = "scope", of_nothing[] = "exp";
    char *const op[] = {of_attend, of_view, of_scope, of_nothing};
    numbers n = numbers_open();
    float attended[TOKENS * WIDTH], whole[TOKENS * WIDTH], less[TOKENS * WIDTH];
    att_tape *t = new_tape(n.ctx);
    att_var *x = attention(t, &n, NULL);
    memcpy(attended, read_floats(t, x), sizeof attended);
    memcpy(whole, read_floats(t, product(t, &n, x)), sizeof whole);
    for (int i = 0; i < TOKENS; i++)
        memset(attended + i * WIDTH + DIM, 0, DIM * sizeof *attended);
    memcpy(less, read_floats(t, product(t, &n, input(t, attended, ATT_DIMS(TOKENS, WIDTH)))), sizeof less);
    att_tape_free(t);
    assert_memory_not_equal(whole, less, sizeof less);
    for (size_t i = 0; i < sizeof op / sizeof op[0]; i++) {
        assert_int_equal(
            att_tape_new(n.ctx, ATT_OPTIONS(att_tape_config, .hook = without_head, .hook_user = op[i]), &t), ATT_OK);
        const float *y = read_floats(t, product(t, &n, attention(t, &n, NULL)));
        assert_memory_equal(y, op[i] == of_nothing ? whole : less, sizeof less);
        att_tape_free(t);
    }
    numbers_close(&n);
}

typedef struct kept {
    const att_plan *plan;
    const att_attention_args *args;
    float weights[SEQUENCES][4 * 4];
} kept;

static void weigh(const kept *k, float weights[SEQUENCES][4 * 4])
{
    for (int b = 0; b < SEQUENCES; b++)
        assert_int_equal(att_weights(k->plan, k->args, b, 2, 0, offsets[b + 1] - offsets[b], weights[b]), ATT_OK);
}

static void keep_args(void *user, const att_tape_event *e)
{
    kept *k = user;
    if (!e->plan)
        return;
    k->plan = e->plan;
    k->args = e->args;
    weigh(k, k->weights);
}

/* The caller's arrays are gone, and variables of the scope that nothing reads again have been used again. */
static void on_a_tape_that_records_the_args_of_an_event_stay_until_the_reset(void **state)
{
    (void)state;
    numbers n = numbers_open();
    kept k = {0};
    float after[SEQUENCES][4 * 4] = {{0}};
    att_tape *t;
    const att_tape_config c = {.size = sizeof c, .hook = keep_args, .hook_user = &k, .record = true};
    assert_int_equal(att_tape_new(n.ctx, &c, &t), ATT_OK);
    att_var *y = attention(t, &n, NULL);
    for (int i = 0; i < 8; i++)
        y = product(t, &n, y);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    weigh(&k, after);
    assert_memory_equal(after, k.weights, sizeof after);
    att_tape_free(t);
    numbers_close(&n);
}

/* ---- before_attend */

/* One mask more: nothing attends to the first token of a sequence but itself. */
typedef struct change {
    att_plan *plan;
    bool allowed[4][4];
    att_tensor param[2];
    int calls;
    enum { GOOD, SILENT, TELLS, NO_PLAN, OTHER_QUERIES, OTHER_PARAMETER } how;
    att_ctx *ctx;
} change;

static change change_of(const numbers *n)
{
    change c = {.ctx = n->ctx};
    const att_stage stage = {.mask = att_mask_boolean};
    assert_int_equal(att_plan_with(n->plan, &stage, 1, &c.plan), ATT_OK);
    for (int q = 0; q < 4; q++)
        for (int k = 0; k < 4; k++)
            c.allowed[q][k] = k > 0 || q == 0;
    return c;
}

static att_status hide_first(void *user, const char *scope, const att_plan **plan, att_attention_args *args)
{
    change *c = user;
    c->calls++;
    assert_string_equal(scope, "attention");
    assert_true(args->n_params == 1 && args->param[0].dim[0] == HEADS && args->q.dim[0] == TOKENS);
    assert_null(args->out.data);
    if (c->how == SILENT)
        return ATT_ERR_UNSUPPORTED;
    if (c->how == TELLS)
        return att_fail(c->ctx, ATT_ERR_IO, "no mask today");
    c->param[0] = args->param[0];
    if (c->how == OTHER_PARAMETER)
        c->param[0].data = c->allowed;
    c->param[1] = view(c->allowed, ATT_BOOL, ATT_DIMS(1, 1, 4, 4));
    args->param = c->param;
    args->n_params = 2;
    if (c->how == OTHER_QUERIES)
        args->q = args->k;
    *plan = c->how == NO_PLAN ? NULL : c->plan;
    return ATT_OK;
}

static att_tape *changed_tape(const numbers *n, change *c, bool record)
{
    att_tape *t;
    const att_tape_config config = {
        .size = sizeof config, .before_attend = hide_first, .hook_user = c, .record = record};
    assert_int_equal(att_tape_new(n->ctx, &config, &t), ATT_OK);
    return t;
}

static void before_attend_replaces_plan_and_args(void **state)
{
    (void)state;
    numbers n = numbers_open();
    change c = change_of(&n);
    float out[TOKENS * WIDTH], dq[TOKENS * WIDTH], lse[TOKENS * HEADS], ones[TOKENS * WIDTH];
    const att_tensor slopes = view(slope, ATT_F32, ATT_DIMS(HEADS));
    const att_tensor param[] = {slopes, view(c.allowed, ATT_BOOL, ATT_DIMS(1, 1, 4, 4))};
    att_attention_args args = args_with(param);
    args.n_params = 2;
    args.q = view(n.q, ATT_F32, ROWS), args.k = view(n.k, ATT_F32, ROWS), args.v = view(n.v, ATT_F32, ROWS);
    args.out = view(out, ATT_F32, ROWS), args.lse = view(lse, ATT_F32, ATT_DIMS(TOKENS, HEADS));
    for (int i = 0; i < TOKENS * WIDTH; i++)
        ones[i] = 1;
    const att_attention_grads g = {.size = sizeof g, .dout = view(ones, ATT_F32, ROWS), .dq = view(dq, ATT_F32, ROWS)};
    assert_int_equal(att_forward(c.plan, &args), ATT_OK);
    assert_int_equal(att_backward(c.plan, &args, &g), ATT_OK);

    att_tape *t = changed_tape(&n, &c, false);
    assert_memory_equal(read_floats(t, attention(t, &n, NULL)), out, sizeof out);
    att_tape_free(t);
    t = changed_tape(&n, &c, true);
    att_var *q = input(t, n.q, ROWS), *k = input(t, n.k, ROWS), *v = input(t, n.v, ROWS);
    const att_attention_args given = args_with(&slopes);
    att_scope s = att_scope_begin(t, "attention");
    att_var *y = att_scope_end(t, s, att_attend(t, n.plan, q, k, v, &given, NULL));
    memset(c.param, 0, sizeof c.param); /* the array has been saved */
    assert_memory_equal(read_floats(t, y), out, sizeof out);
    att_tensor grad;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, q, &grad), ATT_OK);
    assert_memory_equal(grad.data, dq, sizeof dq);
    att_tape_free(t);
    assert_int_equal(c.calls, 2);
    att_plan_free(c.plan);
    numbers_close(&n);
}

static void before_attend_fails_the_tape_and_may_not_replace_variables(void **state)
{
    (void)state;
    static const struct {
        int how;
        att_status status;
        const char *sentence;
    } cases[] = {
        {SILENT, ATT_ERR_UNSUPPORTED, "attention: attend: before_attend: this setting is not supported"},
        {TELLS, ATT_ERR_IO, "attention: attend: before_attend: no mask today"},
        {NO_PLAN, ATT_ERR_ARGUMENT, "attention: attend: before_attend has made the plan NULL"},
        {OTHER_QUERIES, ATT_ERR_ARGUMENT, "attention: attend: before_attend has replaced args.q, a variable's values"},
        {OTHER_PARAMETER, ATT_ERR_ARGUMENT,
         "attention: attend: before_attend has replaced args.param[0], a variable's values"}};
    numbers n = numbers_open();
    change c = change_of(&n);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        c.how = cases[i].how;
        att_tape *t = changed_tape(&n, &c, i % 2);
        att_var *const slopes[] = {input(t, slope, ATT_DIMS(HEADS))};
        assert_error(t, attention(t, &n, ATT_OPTIONS(att_attend_params, .param = slopes, .n_params = 1)),
                     cases[i].status, cases[i].sentence);
        att_tape_free(t);
    }
    att_plan_free(c.plan);
    numbers_close(&n);
}

static att_var *recomputed(const void *user, att_tape *t, att_var *const *x)
{
    const numbers *n = user;
    const att_tensor slopes = view(slope, ATT_F32, ATT_DIMS(HEADS));
    const att_attention_args args = args_with(&slopes);
    att_scope s = att_scope_begin(t, "attention");
    return att_scope_end(t, s, att_attend(t, n->plan, x[0], x[0], x[0], &args, NULL));
}

static void before_attend_is_called_again_where_backward_computes_again(void **state)
{
    (void)state;
    numbers n = numbers_open();
    change c = change_of(&n);
    float grads[2][TOKENS * WIDTH];
    for (int i = 0; i < 2; i++) {
        att_tensor grad;
        att_tape *t = changed_tape(&n, &c, true);
        att_var *x = input(t, n.q, ROWS);
        att_var *y = i ? att_recompute(t, recomputed, &n, sizeof n, &x, 1) : recomputed(&n, t, &x);
        c.calls = 0;
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        assert_int_equal(c.calls, i);
        assert_int_equal(att_var_grad(t, x, &grad), ATT_OK);
        memcpy(grads[i], grad.data, sizeof grads[i]);
        att_tape_free(t);
    }
    assert_memory_equal(grads[0], grads[1], sizeof grads[0]);
    att_plan_free(c.plan);
    numbers_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_scope_that_keeps_a_variable_is_an_event),
        cmocka_unit_test(a_hook_may_write_results_and_what_follows_is_computed_with_them),
        cmocka_unit_test(on_a_tape_that_records_the_args_of_an_event_stay_until_the_reset),
        cmocka_unit_test(before_attend_replaces_plan_and_args),
        cmocka_unit_test(before_attend_fails_the_tape_and_may_not_replace_variables),
        cmocka_unit_test(before_attend_is_called_again_where_backward_computes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
