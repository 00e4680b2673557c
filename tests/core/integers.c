/* Every number of the public calls of libattend that may be any integer: those that cannot be are errors, with a
 * sentence, and none is undefined behaviour (which the sanitizers see) or takes memory that nobody has. */
#include "cache_help.h"
#include "fail_alloc.h"
#include "tape_help.h"

#include <limits.h>

enum { ROWS = 4, COLUMNS = 6, HEADS = 2, DIM = 3, KEYS = 5 };
enum { MOST_MEMORY = 64 << 20 };

static void *little_memory(void *user, size_t bytes, size_t alignment)
{
    return bytes > MOST_MEMORY ? NULL : fail_alloc_take(user, bytes, alignment);
}

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS], weights[ROWS * COLUMNS * 4], kernel[64];
    att_tensor xs, ys;                    /* [ROWS, COLUMNS] */
    att_param *w;                         /* [ROWS, COLUMNS] */
    att_param *gru_ih, *gru_hh, *filters; /* [3, COLUMNS] [3, 1] [1, 2, 2, 2] */
    att_plan *plan;
    operands o;
    att_cache *cache; /* of KEYS tokens */
    att_optimizer *optimizer;
} fixture;

static att_var *input_of(fixture *f) { return att_input(f->t, &f->xs); }
static att_var *cube_of(fixture *f) { return input(f->t, f->x, ATT_DIMS(2, HEADS, COLUMNS)); }
static att_var *image_of(fixture *f) { return input(f->t, f->x, ATT_DIMS(1, 3, 4, 2)); }

/* What is an int: those that do not fit are those that are next to them. */
static int as_int(int64_t n) { return n < INT_MIN ? INT_MIN : n > INT_MAX ? INT_MAX : (int)n; }

static att_status read_out(fixture *f, const att_var *v)
{
    att_tensor out;
    return att_read(f->t, v, &out);
}

/* ---- context and tensors */

static att_status n_threads(fixture *f, int64_t n)
{
    (void)f;
    att_ctx *ctx;
    const att_status s = n == 1024 ? ATT_OK : att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = as_int(n)));
    if (!s && n != 1024)
        att_close(ctx);
    return s;
}
static att_status parallel_for_n(fixture *f, int64_t n);
static att_status wrap_rank(fixture *f, int64_t n)
{
    static const int64_t dim[ATT_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    att_tensor t;
    return att_wrap(&t, f->x, ATT_F32, as_int(n), dim, NULL);
}
static att_status wrap_dtype(fixture *f, int64_t n)
{
    att_tensor t;
    assert_true(!att_dtype_size((att_dtype)as_int(n)) == (n < ATT_F32 || n > ATT_BOOL));
    assert_non_null(att_dtype_name((att_dtype)as_int(n)));
    return att_wrap(&t, f->x, (att_dtype)as_int(n), ATT_DIMS(1), NULL);
}
static att_status wrap_dim(fixture *f, int64_t n)
{
    att_tensor t;
    return att_wrap(&t, f->x, ATT_F32, ATT_DIMS(n, 2), NULL);
}
static att_status wrap_stride(fixture *f, int64_t n)
{
    att_tensor t;
    return att_wrap(&t, f->x, ATT_F32, 2, (const int64_t[]){1, 3}, (const int64_t[]){n, n});
}
static att_status status_name(fixture *f, int64_t n)
{
    (void)f;
    assert_non_null(att_status_name((att_status)as_int(n)));
    assert_non_null(att_status_text((att_status)as_int(n)));
    return ATT_OK;
}
static att_status tensor_rank(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.rank = as_int(n);
    return att_matmul(f->ctx, &x, &f->xs, true, &f->ys);
}
static att_status tensor_dim(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.dim[0] = n;
    return att_convert(f->ctx, &x, &f->ys);
}
static att_status tensor_stride(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.stride[0] = n;
    x.stride[1] = n;
    return att_convert(f->ctx, &f->ys, &x);
}
static att_status tensor_device(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.device = (att_device)as_int(n);
    return att_convert(f->ctx, &x, &f->ys);
}
static att_status matmul_of_other_dims(fixture *f, int64_t n)
{
    att_tensor a = f->xs, b = f->ys, out = f->ys;
    a.dim[0] = a.dim[1] = b.dim[0] = b.dim[1] = out.dim[0] = out.dim[1] = n;
    const att_status s = att_matmul(f->ctx, &a, &b, false, &out);
    return s ? s : att_cosine(f->ctx, &a, &b, &out);
}
static att_status softmax_dim(fixture *f, int64_t n) { return att_softmax(f->ctx, &f->xs, as_int(n), &f->ys); }

/* ---- attention */

static att_status plan_with(fixture *f, size_t at, int64_t n)
{
    att_attention_spec s = {.size = sizeof s, .heads = HEADS, .head_dim = DIM};
    att_plan *plan;
    *(int64_t *)((char *)&s + at) = n;
    if (at >= offsetof(att_attention_spec, window_left)) {
        s.mask[0] = &att_mask_window;
        s.align = ATT_ALIGN_TOP_LEFT;
    }
    if (at == offsetof(att_attention_spec, score_dim))
        s.score = &att_score_additive;
    const att_status e = att_plan_new(f->ctx, &s, &plan);
    if (!e)
        att_plan_free(plan);
    return e;
}
static att_status spec_heads(fixture *f, int64_t n) { return plan_with(f, offsetof(att_attention_spec, heads), n); }
static att_status spec_kv_heads(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, kv_heads), n);
}
static att_status spec_head_dim(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, head_dim), n);
}
static att_status spec_key_dim(fixture *f, int64_t n) { return plan_with(f, offsetof(att_attention_spec, key_dim), n); }
static att_status spec_value_dim(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, value_dim), n);
}
static att_status spec_score_dim(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, score_dim), n);
}
static att_status spec_window_left(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, window_left), n);
}
static att_status spec_window_right(fixture *f, int64_t n)
{
    return plan_with(f, offsetof(att_attention_spec, window_right), n);
}

static att_status spec_enum(fixture *f, att_attention_spec s)
{
    att_plan *plan;
    s.size = sizeof s, s.heads = HEADS, s.head_dim = DIM;
    const att_status e = att_plan_new(f->ctx, &s, &plan);
    if (!e)
        att_plan_free(plan);
    return e;
}
static att_status spec_align(fixture *f, int64_t n)
{
    return spec_enum(f, (att_attention_spec){.align = (att_align)as_int(n)});
}
static att_status spec_dtype(fixture *f, int64_t n)
{
    return spec_enum(f, (att_attention_spec){.dtype = (att_dtype)as_int(n)});
}

static att_status q_length(fixture *f, int64_t n)
{
    att_attention_args a = f->o.args;
    a.q_lengths = &n;
    return att_forward(f->plan, &a);
}
static att_status k_length(fixture *f, int64_t n)
{
    att_attention_args a = f->o.args;
    a.k_lengths = &n;
    return att_forward(f->plan, &a);
}

/* Forward, ragged, of the same numbers. */
static att_status ragged(fixture *f, const int64_t *offsets, int64_t n, bool of_keys)
{
    static const int64_t all[] = {0, ROWS / 2, ROWS};
    att_attention_args a = {.size = sizeof a, .n_sequences = n, .q_offsets = of_keys ? all : offsets};
    a.k_offsets = of_keys ? offsets : NULL;
    a.q = a.k = a.v = view(f->x, ATT_F32, ATT_DIMS(ROWS, HEADS, DIM));
    a.out = view(f->y, ATT_F32, ATT_DIMS(ROWS, HEADS, DIM));
    return att_forward(f->plan, &a);
}
static att_status q_offset(fixture *f, int64_t n) { return ragged(f, (const int64_t[]){0, n, ROWS}, 2, false); }
static att_status k_offset(fixture *f, int64_t n) { return ragged(f, (const int64_t[]){0, n, ROWS}, 2, true); }
static att_status first_offset(fixture *f, int64_t n) { return ragged(f, (const int64_t[]){n, 2, ROWS}, 2, false); }
static att_status last_offset(fixture *f, int64_t n) { return ragged(f, (const int64_t[]){0, 2, n}, 2, false); }
static att_status n_sequences(fixture *f, int64_t n) { return ragged(f, (const int64_t[]){0, ROWS}, n, false); }
static att_status q_start(fixture *f, int64_t n)
{
    att_attention_spec s = spec_of(f->o.n);
    att_attention_args a = f->o.args;
    att_plan *plan;
    s.align = ATT_ALIGN_STARTS;
    s.mask[0] = &att_mask_causal;
    s.mask[1] = &att_mask_window;
    s.modifier[0] = &att_modifier_alibi;
    s.window_left = s.window_right = INT64_C(1) << 48;
    must(f->ctx, att_plan_new(f->ctx, &s, &plan));
    a.modifier_param[0] = view(f->x, ATT_F32, ATT_DIMS(HEADS));
    a.q_starts = &n;
    const att_status e = att_forward(plan, &a);
    att_plan_free(plan);
    return e;
}
static att_status document(fixture *f, int64_t n)
{
    att_attention_spec s = spec_of(f->o.n);
    att_attention_args a = f->o.args;
    int32_t ids[2][KEYS] = {{(int32_t)as_int(n), 1, (int32_t)as_int(n)}, {1, (int32_t)as_int(n)}};
    s.mask[0] = &att_mask_document;
    a.q_documents = view(ids[0], ATT_I32, ATT_DIMS(1, f->o.n.tq));
    a.k_documents = view(ids[1], ATT_I32, ATT_DIMS(1, f->o.n.tk));
    return att_attention(f->ctx, &s, &a);
}
static att_status weights(fixture *f, int64_t sequence, int64_t head, int64_t first, int64_t count)
{
    return att_weights(f->plan, &f->o.args, sequence, head, first, count, f->weights);
}
static att_status weights_sequence(fixture *f, int64_t n) { return weights(f, n, 0, 0, 1); }
static att_status weights_head(fixture *f, int64_t n) { return weights(f, 0, n, 0, 1); }
static att_status weights_first(fixture *f, int64_t n) { return weights(f, 0, 0, n, 1); }
static att_status weights_count(fixture *f, int64_t n) { return weights(f, 0, 0, 1, n); }

static att_status cache_sequences(fixture *f, int64_t n)
{
    att_cache *c;
    const att_status s = att_cache_new(f->plan, n, &c);
    att_cache_free(c);
    return s;
}
static att_status append_sequence(fixture *f, int64_t n)
{
    const att_tensor k = sequence_of(f->o.args.k, 0), v = sequence_of(f->o.args.v, 0);
    return att_cache_append(f->cache, n == ATT_ALL_SEQUENCES ? n - 1 : n, &k, &v);
}
static att_status truncate_sequence(fixture *f, int64_t n) { return att_cache_truncate(f->cache, n, KEYS); }
static att_status truncate_length(fixture *f, int64_t n)
{
    const att_status s = att_cache_truncate(f->cache, 0, n);
    if (!s && n < KEYS)
        append(f->ctx, f->cache, &f->o.args, n, KEYS - n);
    return s;
}
static att_status select_from(fixture *f, int64_t n) { return att_cache_select(f->cache, 1, &n); }
static att_status select_n(fixture *f, int64_t n) { return att_cache_select(f->cache, n, (const int64_t[]){0}); }
static att_status length_sequence(fixture *f, int64_t n)
{
    assert_int_equal(att_cache_length(f->cache, n), n == 0 ? KEYS : -1);
    return ATT_OK;
}

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
    return read_out(f, att_tape_slice(f->t, input_of(f), as_int(n), 0, 1));
}
static att_status slice_first(fixture *f, int64_t n) { return read_out(f, att_tape_slice(f->t, input_of(f), 0, n, 1)); }
static att_status slice_count(fixture *f, int64_t n) { return read_out(f, att_tape_slice(f->t, input_of(f), 0, 1, n)); }
static att_status split_heads(fixture *f, int64_t n) { return read_out(f, att_split_heads(f->t, input_of(f), n)); }

static att_status sinusoidal(fixture *f, const att_positions *at, int64_t append)
{
    return read_out(f, att_sinusoidal(f->t, input_of(f), at, ATT_OPTIONS(att_sinusoids, .append = append)));
}
static att_status position(fixture *f, int64_t n)
{
    return sinusoidal(f, ATT_OPTIONS(att_positions, .each = (const int64_t[]){0, n, 1, n}), 0);
}
static att_status learned_position(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .each = (const int64_t[]){0, n, 1, n}};
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
    return sinusoidal(f, ATT_OPTIONS(att_positions, .each = (const int64_t[]){0, 1, 2, 3}), n);
}
static att_status dropout_start(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .offsets = (const int64_t[]){0, ROWS}, .n = 1, .starts = &n};
    return read_out(f, att_tape_dropout(f->t, input_of(f), NULL, 0.5f, 1, &at, (const uint32_t[]){1}));
}
static att_status rotary_dims(fixture *f, int64_t n)
{
    const att_positions at = {.size = sizeof at, .each = (const int64_t[]){0, 1}};
    return read_out(f, att_rotary(f->t, cube_of(f), &at, ATT_OPTIONS(att_rotary_options, .dims = n)));
}
static att_status pool_n(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, ROWS}, n, ATT_POOL_MEAN));
}
static att_status pool_kind(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, ROWS}, 1, (att_pooling)as_int(n)));
}
static att_status pool_offset(fixture *f, int64_t n)
{
    return read_out(f, att_pool(f->t, input_of(f), (const int64_t[]){0, n, ROWS}, 2, ATT_POOL_MAX));
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
static att_status entropy_target(fixture *f, int64_t n) { return entropy(f, as_int(n), 0); }
static att_status entropy_classes(fixture *f, int64_t n) { return entropy(f, 0, n); }
static att_status recompute_n(fixture *f, int64_t n);

static att_status argmax_except(fixture *f, int64_t n)
{
    const int32_t column[] = {as_int(n)};
    att_largest out[ROWS];
    return att_linear_argmax(f->t, input_of(f), f->w, NULL, &(att_except){column, 1, false}, out);
}
static att_status except_n(fixture *f, int64_t n)
{
    att_largest out[ROWS];
    return att_linear_argmax(f->t, input_of(f), f->w, NULL, &(att_except){(const int32_t[]){1}, n, false}, out);
}
static att_status top_n(fixture *f, int64_t n)
{
    att_largest out[ROWS * ROWS];
    double sum[ROWS];
    return att_linear_top(f->t, input_of(f), f->w, NULL, NULL, n, out, sum);
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
    return read_out(f, att_pool2d(f->t, image_of(f), ATT_POOL_MAX, &o));
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

/* ---- optimizers */

static att_status add_frozen(fixture *f, const int64_t *rows, int64_t n)
{
    att_optimizer *o;
    must(f->ctx, att_optimizer_new(f->ctx, NULL, &o));
    const att_status s =
        att_optimizer_add(o, f->w, ATT_OPTIONS(att_learn_options, .frozen_rows = rows, .n_frozen_rows = n));
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
        att_optimizer_new(f->ctx, ATT_OPTIONS(att_optimizer_config, .method = (att_method)as_int(n)), &o);
    if (!s)
        att_optimizer_free(o);
    return s;
}
static att_status schedule(att_schedule s, int64_t step)
{
    double rate;
    s.size = sizeof s, s.peak = 1;
    const att_status e = att_schedule_rate(&s, step, &rate);
    assert_true(e || (rate >= 0 && rate <= 1));
    return e;
}
static att_status schedule_all(fixture *f, int64_t n, att_status (*of)(att_schedule_kind kind, int64_t n))
{
    att_status e = ATT_OK;
    (void)f;
    for (int kind = ATT_CONSTANT; kind <= ATT_LINEAR; kind++) {
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

static void nothing(void *arg, int i) { (void)arg, (void)i; }
static att_status parallel_for_n(fixture *f, int64_t n)
{
    att_parallel_for(f->ctx, as_int(n), nothing, NULL);
    return ATT_OK;
}
static att_var *twice(const void *user, att_tape *t, att_var *const *x)
{
    (void)user;
    return att_add(t, x[0], x[0]);
}
static att_status recompute_n(fixture *f, int64_t n)
{
    return read_out(f, att_recompute(f->t, twice, NULL, 0, (att_var *[]){input_of(f)}, as_int(n)));
}

/* ---- the table: numbers of [least, most] are right; what counts an array of the caller's is tried up to the array's
 * length, as more cannot be known */

enum { ARRAY = 1, ANY = 2 /* no number is wrong */ };

#define NUMBER(name, least, most, flags)                                                                               \
    {                                                                                                                  \
#name, name, least, most, flags                                                                                \
    }
static const struct {
    const char *name;
    att_status (*call)(fixture *f, int64_t n);
    int64_t least, most;
    int flags;
} numbers[] = {
    NUMBER(n_threads, 0, 1024, 0),
    NUMBER(parallel_for_n, 0, 1000, ARRAY | ANY),
    NUMBER(wrap_rank, 0, ATT_MAX_RANK, 0),
    NUMBER(wrap_dtype, ATT_F32, ATT_BOOL, 0),
    NUMBER(wrap_dim, 0, INT64_C(1) << 59, 0),
    NUMBER(wrap_stride, -(INT64_C(1) << 57), INT64_C(1) << 57, 0),
    NUMBER(status_name, 0, 0, ANY),
    NUMBER(tensor_rank, 2, 2, 0),
    NUMBER(tensor_dim, ROWS, ROWS, 0),
    NUMBER(tensor_stride, 0, -1, ARRAY),
    NUMBER(tensor_device, ATT_CPU, ATT_CPU, 0),
    NUMBER(matmul_of_other_dims, 0, 2, ARRAY),
    NUMBER(softmax_dim, -2, 1, 0),
    NUMBER(spec_heads, 1, 1 << 20, 0),
    NUMBER(spec_kv_heads, 0, HEADS, 0),
    NUMBER(spec_head_dim, 1, 1 << 20, 0),
    NUMBER(spec_key_dim, 0, DIM, 0),
    NUMBER(spec_value_dim, 0, 1 << 20, 0),
    NUMBER(spec_score_dim, 0, 1 << 20, 0),
    NUMBER(spec_window_left, -1, INT64_C(1) << 48, 0),
    NUMBER(spec_window_right, -1, INT64_C(1) << 48, 0),
    NUMBER(spec_align, 0, 3, 0),
    NUMBER(spec_dtype, ATT_F32, ATT_BF16, 0),
    NUMBER(q_length, 0, 3, 0),
    NUMBER(k_length, 0, KEYS, 0),
    NUMBER(q_offset, 0, ROWS, 0),
    NUMBER(k_offset, 0, ROWS, 0),
    NUMBER(first_offset, 0, 0, 0),
    NUMBER(last_offset, ROWS, ROWS, 0),
    NUMBER(n_sequences, 1, 1, ARRAY),
    NUMBER(q_start, -(INT64_C(1) << 48), INT64_C(1) << 48, 0),
    NUMBER(document, 0, 0, ANY),
    NUMBER(weights_sequence, 0, 0, 0),
    NUMBER(weights_head, 0, HEADS - 1, 0),
    NUMBER(weights_first, 0, 2, 0),
    NUMBER(weights_count, 0, 2, 0),
    NUMBER(cache_sequences, 1, 1 << 16, 0),
    NUMBER(append_sequence, 0, -1, ARRAY),
    NUMBER(truncate_sequence, -1, 0, 0),
    NUMBER(truncate_length, 0, KEYS, 0),
    NUMBER(select_from, 0, 0, 0),
    NUMBER(select_n, 1, 1, ARRAY),
    NUMBER(length_sequence, 0, 0, ANY),
    NUMBER(embedding_id, 0, ROWS - 1, 0),
    NUMBER(embedding_count, 0, 1, ARRAY),
    NUMBER(gather_id, 0, ROWS - 1, 0),
    NUMBER(gather_count, 0, 1, ARRAY),
    NUMBER(linear_activation, ATT_IDENTITY, ATT_SIGMOID, 0),
    NUMBER(activation, ATT_IDENTITY, ATT_SIGMOID, 0),
    NUMBER(concat_n, 1, 1, ARRAY),
    NUMBER(concat_dim, -2, 1, 0),
    NUMBER(slice_dim, -2, 1, 0),
    NUMBER(slice_first, 0, ROWS - 1, 0),
    NUMBER(slice_count, 0, ROWS - 1, 0),
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
    NUMBER(pool_kind, ATT_POOL_MEAN, ATT_POOL_MAX, 0),
    NUMBER(pool_offset, 0, ROWS, 0),
    NUMBER(gru_n, 1, 1, ARRAY),
    NUMBER(gru_offset, 0, ROWS, 0),
    NUMBER(entropy_target, INT64_MIN, COLUMNS - 1, 0),
    NUMBER(entropy_classes, 0, COLUMNS, 0),
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
    NUMBER(frozen_row, 0, ROWS - 1, 0),
    NUMBER(n_frozen_rows, 0, 1, ARRAY),
    NUMBER(moment_param, 0, 0, ANY),
    NUMBER(moment_k, 0, 0, ANY),
    NUMBER(method, ATT_ADAMW, ATT_SGD, 0),
    NUMBER(schedule_step, 0, INT64_MAX, 0),
    NUMBER(schedule_warmup, 0, INT64_MAX - 1, 0),
    NUMBER(schedule_steps, 1, INT64_MAX, 0),
    NUMBER(schedule_kind, ATT_CONSTANT, ATT_LINEAR, 0),
    NUMBER(average_n, 1, 1, ARRAY),
};

static void fixture_open(fixture *f, fail_alloc *memory)
{
    const att_allocator a = {little_memory, fail_alloc_give, memory};
    const shape n = {1, HEADS, HEADS, 3, KEYS, DIM, DIM};
    const att_attention_spec s = spec_of(n);
    must(NULL, att_open(&f->ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = a)));
    check_fill(f->x, ROWS * COLUMNS, 1, 0, 1);
    check_fill(f->y, ROWS * COLUMNS, 2, 0, 1);
    check_fill(f->kernel, 64, 3, 0, 1);
    f->xs = view(f->x, ATT_F32, ATT_DIMS(ROWS, COLUMNS)), f->ys = view(f->y, ATT_F32, ATT_DIMS(ROWS, COLUMNS));
    f->w = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(ROWS, COLUMNS));
    f->gru_ih = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(3, COLUMNS));
    f->gru_hh = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(3, 1));
    f->filters = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(1, 2, 2, 2));
    f->t = recording_tape(f->ctx);
    f->plan = plan_of(f->ctx, &s);
    f->o = make(n);
    f->cache = cache_of(f->ctx, f->plan, 1);
    append(f->ctx, f->cache, &f->o.args, 0, KEYS);
    must(f->ctx, att_optimizer_new(f->ctx, NULL, &f->optimizer));
    must(f->ctx, att_optimizer_add(f->optimizer, f->w, NULL));
}

static void fixture_close(fixture *f)
{
    att_optimizer_free(f->optimizer);
    att_cache_free(f->cache);
    drop(&f->o);
    att_plan_free(f->plan);
    att_tape_free(f->t);
    att_param_free(f->w), att_param_free(f->gru_ih), att_param_free(f->gru_hh), att_param_free(f->filters);
    att_close(f->ctx);
}

static void integers_that_cannot_be_are_errors(void **state)
{
    (void)state;
    static const int64_t tried[] = {INT64_MIN,
                                    INT64_MIN + 1,
                                    INT64_MIN / 2,
                                    -(INT64_C(1) << 49),
                                    INT32_MIN,
                                    -9,
                                    -3,
                                    -2,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    6,
                                    9,
                                    3000000,
                                    INT32_MAX - 1,
                                    INT32_MAX,
                                    INT64_C(1) << 32,
                                    INT64_C(1) << 49,
                                    INT64_MAX / 4,
                                    INT64_MAX / 3,
                                    INT64_MAX / 2,
                                    INT64_MAX - 1,
                                    INT64_MAX};
    fail_alloc memory = {0};
    fixture f;
    int wrong = 0;
    fixture_open(&f, &memory);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t j = 0; j < sizeof tried / sizeof *tried; j++) {
            const int64_t n = tried[j];
            if ((numbers[i].flags & ARRAY) && n > numbers[i].most)
                continue;
            att_fail(f.ctx, ATT_OK, "%s", "");
            const att_status s = numbers[i].call(&f, n);
            const bool right = (numbers[i].flags & ANY) || (n >= numbers[i].least && n <= numbers[i].most);
            if ((!s && !right) || (s && !*att_error(f.ctx))) {
                print_error("%s of %lld: %s, \"%s\"\n", numbers[i].name, (long long)n, att_status_name(s),
                            att_error(f.ctx));
                wrong++;
            }
            att_tape_reset(f.t);
        }
    fixture_close(&f);
    assert_int_equal(wrong, 0);
    assert_int_equal(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_that_cannot_be_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
