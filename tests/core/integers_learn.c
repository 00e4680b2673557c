/* Integers of the calls of attend_learn.h: operations, optimizers, schedules. */
#include "fixtures/integers.h"

/* ---- operations */

static att_status embedding_id(fixture *f, int64_t n)
{
    return read_out(f, att_embedding(f->t, f->w, (const int32_t[]){0, as_int(n)}, 2));
}
static att_status embedding_count(fixture *f, int64_t n)
{
    return read_out(f, att_embedding(f->t, f->w, (const int32_t[]){0}, n));
}
static att_status gather_id(fixture *f, int64_t n)
{
    return read_out(f, att_gather(f->t, input_of(f), (const int32_t[]){0, as_int(n)}, 2));
}
static att_status gather_count(fixture *f, int64_t n)
{
    return read_out(f, att_gather(f->t, input_of(f), (const int32_t[]){0}, n));
}
static att_status linear_activation(fixture *f, int64_t n)
{
    return read_out(f, att_linear(f->t, input_of(f), f->w, NULL, (att_activation)as_int(n), NULL));
}
static att_status activation(fixture *f, int64_t n)
{
    return read_out(f, att_activate(f->t, input_of(f), (att_activation)as_int(n)));
}
static att_status concat_n(fixture *f, int64_t n)
{
    return read_out(f, att_concat(f->t, as_int(n), (att_var *[]){input_of(f)}, 0));
}
static att_status concat_dim(fixture *f, int64_t n)
{
    att_var *x = input_of(f);
    return read_out(f, att_concat(f->t, 2, (att_var *[]){x, x}, as_int(n)));
}
static att_status slice_dim(fixture *f, int64_t n)
{
    return read_out(f, att_slice(f->t, input_of(f), as_int(n), 0, 1));
}
static att_status slice_first(fixture *f, int64_t n) { return read_out(f, att_slice(f->t, input_of(f), 0, n, 1)); }
static att_status slice_count(fixture *f, int64_t n) { return read_out(f, att_slice(f->t, input_of(f), 0, 1, n)); }
static att_status sum_dim(fixture *f, int64_t n) { return read_out(f, att_sum(f->t, input_of(f), as_int(n))); }
static att_status mean_dim(fixture *f, int64_t n) { return read_out(f, att_mean(f->t, input_of(f), as_int(n))); }
static att_status transpose_dim0(fixture *f, int64_t n)
{
    return read_out(f, att_transpose(f->t, input_of(f), as_int(n), 0));
}
static att_status transpose_dim1(fixture *f, int64_t n)
{
    return read_out(f, att_transpose(f->t, input_of(f), 1, as_int(n)));
}
static att_status reshape_rank(fixture *f, int64_t n)
{
    static const int64_t dim[] = {ROWS * COLUMNS, 1, 1, 1, 1, 1};
    return read_out(f, att_reshape(f->t, input_of(f), as_int(n), dim));
}
static att_status reshape_dim(fixture *f, int64_t n)
{
    return read_out(f, att_reshape(f->t, input_of(f), ATT_DIMS(n, ROWS * COLUMNS)));
}
static att_status reshape_dims(fixture *f, int64_t n)
{
    return read_out(f, att_reshape(f->t, input_of(f), ATT_DIMS(n, n, n, n, -1)));
}
static att_status split_heads(fixture *f, int64_t n) { return read_out(f, att_split_heads(f->t, input_of(f), n)); }

static att_status sinusoidal(fixture *f, const att_positions *at, int64_t append)
{
    return read_out(f, att_sinusoidal(f->t, input_of(f), at, ATT_OPTIONS(att_sinusoidal_options, .append = append)));
}
static att_status position(fixture *f, int64_t n)
{
    return sinusoidal(f, ATT_OPTIONS(att_positions, .position_ids = (const int64_t[]){0, n, 1, n}), 0);
}
static att_status learned_position(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .position_ids = (const int64_t[]){0, n, 1, n}};
    return read_out(f, att_learned_positions(f->t, input_of(f), f->w, &at));
}
static att_status positions_start(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .offsets = (const int64_t[]){0, ROWS}, .n = 1, .starts = &n};
    return sinusoidal(f, &at, 0);
}
static att_status positions_offset(fixture *f, int64_t n)
{
    return sinusoidal(f, ATT_OPTIONS(att_positions, .offsets = (const int64_t[]){0, n, ROWS}, .n = 2), 0);
}
static att_status positions_n(fixture *f, int64_t n)
{
    return sinusoidal(f, ATT_OPTIONS(att_positions, .offsets = (const int64_t[]){0, ROWS}, .n = n), 0);
}
static att_status sinusoids_append(fixture *f, int64_t n)
{
    return sinusoidal(f, ATT_OPTIONS(att_positions, .position_ids = (const int64_t[]){0, 1, 2, 3}), n);
}
static att_status dropout_start(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .offsets = (const int64_t[]){0, ROWS}, .n = 1, .starts = &n};
    return read_out(f, att_dropout(f->t, input_of(f), NULL, 0.5f, 1, &at, (const uint32_t[]){1}));
}
static att_status rotary_dims(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .position_ids = (const int64_t[]){0, 1}};
    return read_out(f, att_rotary(f->t, cube_of(f), &at, ATT_OPTIONS(att_rotary_options, .dims = n)));
}
static att_status pool_n(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, ROWS}, n, ATT_POOLING_MEAN, 0));
}
static att_status pool_kind(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, ROWS}, 1, (att_pooling)as_int(n), 0));
}
static att_status pool_offset(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, n, ROWS}, 2, ATT_POOLING_MAX, 0));
}
static att_status pool_skip(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, ROWS}, 1, ATT_POOLING_LAST, n));
}
static att_status gru(fixture *f, const int64_t *offsets, int64_t n)
{
    const att_recurrent r = {.size = sizeof r, .weight_ih = f->gru_ih, .weight_hh = f->gru_hh};
    return read_out(f, att_gru(f->t, input_of(f), offsets, n, &r, NULL));
}
static att_status gru_n(fixture *f, int64_t n) { return gru(f, (const int64_t[]){0, ROWS}, n); }
static att_status gru_offset(fixture *f, int64_t n) { return gru(f, (const int64_t[]){0, n, ROWS}, 2); }
static att_status entropy(fixture *f, int32_t target, int64_t classes)
{
    const int32_t targets[ROWS] = {0, target, -1, target};
    return read_out(
        f, att_cross_entropy(f->t, input_of(f), targets, ATT_OPTIONS(att_cross_entropy_options, .classes = classes)));
}
static att_status linear_entropy(fixture *f, int32_t target, int64_t classes)
{
    const int32_t targets[ROWS] = {0, target, -1, target};
    return read_out(f, att_linear_cross_entropy(f->t, input_of(f), f->w, NULL, targets,
                                                ATT_OPTIONS(att_cross_entropy_options, .classes = classes)));
}
static att_status linear_entropy_target(fixture *f, int64_t n) { return linear_entropy(f, as_int(n), 0); }
static att_status linear_entropy_classes(fixture *f, int64_t n) { return linear_entropy(f, 0, n); }
static att_status entropy_target(fixture *f, int64_t n) { return entropy(f, as_int(n), 0); }
static att_status entropy_classes(fixture *f, int64_t n) { return entropy(f, 0, n); }
static att_var *twice(const void *user, att_tape *t, att_var *const *x)
{
    (void)user;
    return att_add(t, x[0], x[0]);
}
static att_status recompute_n(fixture *f, int64_t n)
{
    return read_out(f, att_recompute(f->t, twice, NULL, 0, (att_var *[]){input_of(f)}, as_int(n)));
}

static att_status argmax_except(fixture *f, int64_t n)
{
    const int32_t column[] = {as_int(n)};
    att_top_column out[ROWS];
    return att_linear_argmax(f->t, input_of(f), f->w, NULL, ATT_OPTIONS(att_excluded_columns, .column = column, .n = 1),
                             out);
}
static att_status except_n(fixture *f, int64_t n)
{
    att_top_column out[ROWS];
    return att_linear_argmax(f->t, input_of(f), f->w, NULL,
                             ATT_OPTIONS(att_excluded_columns, .column = (const int32_t[]){1}, .n = n), out);
}
static att_status top_n(fixture *f, int64_t n)
{
    att_top_column out[ROWS * ROWS];
    double sum[ROWS];
    return att_linear_topk(f->t, input_of(f), f->w, NULL, NULL, n, out, sum);
}

static att_status convolve(fixture *f, att_conv_options o)
{
    o.size = sizeof o;
    return read_out(f, att_conv2d(f->t, image_of(f), f->filters, NULL, &o));
}
static att_status conv_stride(fixture *f, int64_t n) { return convolve(f, (att_conv_options){.stride = {n, n}}); }
static att_status conv_padding(fixture *f, int64_t n) { return convolve(f, (att_conv_options){.padding = {n, n}}); }
static att_status pool2d(fixture *f, att_pool_options o)
{
    o.size = sizeof o;
    return read_out(f, att_pool2d(f->t, image_of(f), ATT_POOLING_MAX, &o));
}
static att_status pool2d_kernel(fixture *f, int64_t n) { return pool2d(f, (att_pool_options){.kernel = {n, n}}); }
static att_status pool2d_padding(fixture *f, int64_t n)
{
    return pool2d(f, (att_pool_options){.kernel = {2, 2}, .padding = {n, n}});
}
static att_status pool2d_stride(fixture *f, int64_t n)
{
    return pool2d(f, (att_pool_options){.kernel = {2, 2}, .stride = {n, n}});
}
static att_status pool2d_all(fixture *f, int64_t n)
{
    const int64_t less = n > INT64_MIN ? n - 1 : n;
    return pool2d(f, (att_pool_options){.kernel = {n, n}, .stride = {n, n}, .padding = {less, less}});
}

static att_status resize(fixture *f, att_resize_options o)
{
    o.size = sizeof o;
    return read_out(f, att_resize(f->t, image_of(f), &o));
}
static att_status resize_out(fixture *f, int64_t n)
{
    return resize(f, (att_resize_options){.mode = ATT_RESIZE_BICUBIC, .antialias = true, .out = {2, n}});
}
static att_status resize_factor(fixture *f, int64_t n)
{
    return resize(f, (att_resize_options){.antialias = true, .factor = {(double)n, (double)n}});
}
static att_status resize_mode(fixture *f, int64_t n)
{
    return resize(f, (att_resize_options){.mode = (att_resize_mode)as_int(n), .out = {2, 2}});
}

static att_status zeros(const void *user, const att_tensor *x, const att_tensor *y)
{
    (void)user, (void)x;
    memset(y->data, 0, (size_t)check_count(y) * sizeof(float));
    return ATT_OK;
}
static att_status no_gradient(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                              const att_tensor *dx)
{
    (void)user, (void)x, (void)y, (void)dy, (void)dx;
    return ATT_OK;
}
static const att_function nothing = {sizeof nothing, "nothing", zeros, no_gradient};
static const int64_t ones[ATT_MAX_RANK] = {1, 1, 1, 1, 1, 1};

static att_status apply_n(fixture *f, int64_t n)
{
    return read_out(f, att_apply(f->t, &nothing, NULL, 0, (att_var *[]){input_of(f)}, as_int(n), 1, ones));
}
static att_status apply_rank(fixture *f, int64_t n)
{
    return read_out(f, att_apply(f->t, &nothing, NULL, 0, (att_var *[]){input_of(f)}, 1, as_int(n), ones));
}
static att_status apply_dim(fixture *f, int64_t n)
{
    return read_out(f, att_apply(f->t, &nothing, NULL, 0, (att_var *[]){input_of(f)}, 1, 1, &n));
}
static att_status verify_n(fixture *f, int64_t n)
{
    return att_verify_function(f->ctx, &nothing, NULL, &f->xs, as_int(n), 1, ones);
}
static att_status verify_rank(fixture *f, int64_t n)
{
    return att_verify_function(f->ctx, &nothing, NULL, &f->xs, 1, as_int(n), ones);
}

/* ---- optimizers */

static att_status add_frozen(fixture *f, const int64_t *rows, int64_t n)
{
    att_optimizer *o;
    check_ok(f->ctx, att_optimizer_new(f->ctx, NULL, &o));
    const att_status s =
        att_optimizer_add(o, f->w, ATT_OPTIONS(att_param_options, .frozen_rows = rows, .n_frozen_rows = n));
    att_optimizer_free(o);
    return s;
}
static att_status frozen_row(fixture *f, int64_t n) { return add_frozen(f, (const int64_t[]){n}, 1); }
static att_status n_frozen_rows(fixture *f, int64_t n) { return add_frozen(f, (const int64_t[]){1}, n); }
static att_status moment_param(fixture *f, int64_t n)
{
    assert_true(!att_optimizer_moment(f->optimizer, n, 0) == (n != 0));
    return ATT_OK;
}
static att_status moment_k(fixture *f, int64_t n)
{
    assert_true(!att_optimizer_moment(f->optimizer, 0, as_int(n)) == (n < 0 || n > 1));
    return ATT_OK;
}
static att_status method(fixture *f, int64_t n)
{
    att_optimizer *o;
    const att_status s =
        att_optimizer_new(f->ctx, ATT_OPTIONS(att_optimizer_config, .method = (att_optimizer_method)as_int(n)), &o);
    if (!s)
        att_optimizer_free(o);
    return s;
}
static att_status schedule(att_schedule s, int64_t step)
{
    double rate;
    s.size = sizeof s, s.max_rate = 1;
    const att_status e = att_schedule_rate(&s, step, &rate);
    assert_true(e || (rate >= 0 && rate <= 1));
    return e;
}
static att_status schedule_all(fixture *f, int64_t n, att_status (*of)(att_schedule_kind kind, int64_t n))
{
    att_status e = ATT_OK;
    (void)f;
    for (int kind = ATT_SCHEDULE_CONSTANT; kind <= ATT_SCHEDULE_LINEAR; kind++) {
        const att_status s = of((att_schedule_kind)kind, n);
        e = e ? e : s;
    }
    return e;
}
static att_status step_of(att_schedule_kind kind, int64_t n)
{
    return schedule((att_schedule){.kind = kind, .warmup = 3, .steps = INT64_MAX}, n);
}
static att_status warmup_of(att_schedule_kind kind, int64_t n)
{
    return schedule((att_schedule){.kind = kind, .warmup = n, .steps = INT64_MAX}, 5);
}
static att_status steps_of(att_schedule_kind kind, int64_t n)
{
    return schedule((att_schedule){.kind = kind, .steps = n}, INT64_MAX);
}
static att_status schedule_step(fixture *f, int64_t n) { return schedule_all(f, n, step_of); }
static att_status schedule_warmup(fixture *f, int64_t n) { return schedule_all(f, n, warmup_of); }
static att_status schedule_steps(fixture *f, int64_t n) { return schedule_all(f, n, steps_of); }
static att_status schedule_kind(fixture *f, int64_t n)
{
    (void)f;
    return schedule((att_schedule){.kind = (att_schedule_kind)as_int(n), .steps = 9}, 5);
}
static att_status average_n(fixture *f, int64_t n) { return att_average(f->ctx, &f->xs, n, &f->ys); }

static const number numbers[] = {
    NUMBER(embedding_id, 0, ROWS - 1, 0),
    NUMBER(embedding_count, 0, 1, ARRAY),
    NUMBER(gather_id, 0, ROWS - 1, 0),
    NUMBER(gather_count, 0, 1, ARRAY),
    NUMBER(linear_activation, ATT_ACTIVATION_IDENTITY, ATT_ACTIVATION_QUICK_GELU, 0),
    NUMBER(activation, ATT_ACTIVATION_IDENTITY, ATT_ACTIVATION_QUICK_GELU, 0),
    NUMBER(concat_n, 1, 1, ARRAY),
    NUMBER(concat_dim, -2, 1, 0),
    NUMBER(slice_dim, -2, 1, 0),
    NUMBER(slice_first, 0, ROWS - 1, 0),
    NUMBER(slice_count, 0, ROWS - 1, 0),
    NUMBER(sum_dim, -2, 1, 0),
    NUMBER(mean_dim, -2, 1, 0),
    NUMBER(transpose_dim0, -2, 1, 0),
    NUMBER(transpose_dim1, -2, 1, 0),
    NUMBER(reshape_rank, 1, ATT_MAX_RANK, 0),
    NUMBER(reshape_dim, -1, 1, 0),
    NUMBER(reshape_dims, 1, 1, 0),
    NUMBER(split_heads, 1, COLUMNS, 0),
    NUMBER(position, 0, INT64_MAX, 0),
    NUMBER(learned_position, 0, ROWS - 1, 0),
    NUMBER(positions_start, 0, INT64_MAX - ROWS, 0),
    NUMBER(positions_offset, 0, ROWS, 0),
    NUMBER(positions_n, 1, 1, ARRAY),
    NUMBER(sinusoids_append, 0, 1 << 16, 0),
    NUMBER(dropout_start, 0, INT64_MAX - ROWS, 0),
    NUMBER(rotary_dims, 0, COLUMNS, 0),
    NUMBER(pool_n, 1, 1, ARRAY),
    NUMBER(pool_kind, ATT_POOLING_MEAN, ATT_POOLING_LAST, 0),
    NUMBER(pool_offset, 0, ROWS, 0),
    NUMBER(pool_skip, 0, INT64_MAX, 0),
    NUMBER(gru_n, 1, 1, ARRAY),
    NUMBER(gru_offset, 0, ROWS, 0),
    NUMBER(entropy_target, INT64_MIN, COLUMNS - 1, 0),
    NUMBER(entropy_classes, 0, COLUMNS, 0),
    NUMBER(linear_entropy_target, INT64_MIN, ROWS - 1, 0),
    NUMBER(linear_entropy_classes, 0, ROWS, 0),
    NUMBER(recompute_n, 1, 1, ARRAY),
    NUMBER(argmax_except, 0, ROWS - 1, 0),
    NUMBER(except_n, 0, 1, ARRAY),
    NUMBER(top_n, 1, ROWS, ARRAY),
    NUMBER(conv_stride, 0, INT64_MAX, 0),
    NUMBER(conv_padding, 0, 1, 0),
    NUMBER(pool2d_kernel, 1, 3, 0),
    NUMBER(pool2d_padding, 0, 1, 0),
    NUMBER(pool2d_stride, 0, INT64_MAX, 0),
    NUMBER(pool2d_all, 1, INT32_MAX, 0),
    NUMBER(resize_out, 1, INT32_MAX, 0),
    NUMBER(resize_factor, 1, INT32_MAX / 4, 0),
    NUMBER(resize_mode, ATT_RESIZE_BILINEAR, ATT_RESIZE_BICUBIC, 0),
    NUMBER(apply_n, 1, 1, ARRAY),
    NUMBER(apply_rank, 1, ATT_MAX_RANK, 0),
    NUMBER(apply_dim, 0, INT64_MAX, 0),
    NUMBER(verify_n, 1, 1, ARRAY),
    NUMBER(verify_rank, 1, ATT_MAX_RANK, 0),
    NUMBER(frozen_row, 0, ROWS - 1, 0),
    NUMBER(n_frozen_rows, 0, 1, ARRAY),
    NUMBER(moment_param, 0, 0, ANY),
    NUMBER(moment_k, 0, 0, ANY),
    NUMBER(method, ATT_OPTIMIZER_ADAMW, ATT_OPTIMIZER_SGD, 0),
    NUMBER(schedule_step, 0, INT64_MAX, 0),
    NUMBER(schedule_warmup, 0, INT64_MAX - 1, 0),
    NUMBER(schedule_steps, 1, INT64_MAX, 0),
    NUMBER(schedule_kind, ATT_SCHEDULE_CONSTANT, ATT_SCHEDULE_LINEAR, 0),
    NUMBER(average_n, 1, 1, ARRAY),
};

static void integers_that_cannot_be_are_errors(void **state)
{
    (void)state;
    check_integers(numbers, sizeof numbers / sizeof *numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_that_cannot_be_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
