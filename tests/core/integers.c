/* Integers of the calls of attend.h: contexts, tensors, attention, caches. */
#include "fixtures/integers.h"

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
static void nothing(void *arg, int i) { (void)arg, (void)i; }
static att_status parallel_for_n(fixture *f, int64_t n)
{
    att_parallel_for(f->ctx, as_int(n), nothing, NULL);
    return ATT_OK;
}
static att_status wrap_rank(fixture *f, int64_t n)
{
    static const int64_t dim[ATT_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    att_tensor t;
    return att_wrap(&t, f->x, ATT_F32, as_int(n), dim, NULL);
}
static att_status wrap_dtype(fixture *f, int64_t n)
{
    att_tensor t;
    assert_true(!att_dtype_size((att_dtype)as_int(n)) == ((n < ATT_F32 || n > ATT_BOOL) && n != ATT_I8));
    assert_non_null(att_dtype_name((att_dtype)as_int(n)));
    assert_int_equal(att_wrap(&t, f->x, ATT_I8, ATT_DIMS(1), NULL), ATT_OK);
    n = n == ATT_I8 ? n + 1 : n; /* which follows those that are in blocks, so that one number is none */
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
    return att_tensor_matmul(f->ctx, &x, &f->xs, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &f->ys);
}
static att_status tensor_dim(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.dim[0] = n;
    return att_tensor_convert(f->ctx, &x, &f->ys);
}
static att_status tensor_stride(fixture *f, int64_t n)
{
    att_tensor x = f->xs;
    x.stride[0] = n;
    x.stride[1] = n;
    return att_tensor_convert(f->ctx, &f->ys, &x);
}
static att_status matmul_of_other_dims(fixture *f, int64_t n)
{
    att_tensor a = f->xs, b = f->ys, out = f->ys;
    a.dim[0] = a.dim[1] = b.dim[0] = b.dim[1] = out.dim[0] = out.dim[1] = n;
    const att_status s = att_tensor_matmul(f->ctx, &a, &b, NULL, &out);
    return s ? s : att_tensor_cosine(f->ctx, &a, &b, &out);
}
static att_status softmax_dim(fixture *f, int64_t n) { return att_tensor_softmax(f->ctx, &f->xs, as_int(n), &f->ys); }

/* ---- attention */

static att_status plan_with(fixture *f, size_t at, int64_t n)
{
    att_attention_spec s = {.size = sizeof s, .heads = HEADS, .head_dim = DIM};
    att_plan *plan;
    *(int64_t *)((char *)&s + at) = n;
    if (at == offsetof(att_attention_spec, score_dim))
        s.score = att_score_additive;
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
static att_status window(fixture *f, int64_t left, int64_t right)
{
    att_attention_spec s = {.size = sizeof s, .heads = HEADS, .head_dim = DIM, .align = ATT_ALIGN_TOP_LEFT};
    att_plan *plan;
    add_window(&s, left, right);
    const att_status e = att_plan_new(f->ctx, &s, &plan);
    att_plan_free(plan);
    return e;
}
static att_status spec_window_left(fixture *f, int64_t n) { return window(f, n, 0); }
static att_status spec_window_right(fixture *f, int64_t n) { return window(f, 0, n); }
static att_status spec_n_stages(fixture *f, int64_t n)
{
    static att_stage stages[16];
    att_attention_spec s = {.size = sizeof s,
                            .heads = HEADS,
                            .head_dim = DIM,
                            .stage = stages,
                            .n_stages = as_int(n),
                            .align = ATT_ALIGN_TOP_LEFT};
    att_plan *plan;
    for (int i = 0; i < 16; i++)
        stages[i].mask = att_mask_causal;
    const att_status e = att_plan_new(f->ctx, &s, &plan);
    att_plan_free(plan);
    return e;
}
static att_status args_n_params(fixture *f, int64_t n)
{
    att_attention_args a = f->o.args;
    a.n_params = as_int(n);
    return att_forward(f->plan, &a);
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
    add_mask(&s, att_mask_causal);
    add_window(&s, INT64_C(1) << 48, INT64_C(1) << 48);
    add_modifier(&s, att_modifier_alibi, 0);
    check_ok(f->ctx, att_plan_new(f->ctx, &s, &plan));
    *param_at(&a, 0) = view(f->x, ATT_F32, ATT_DIMS(HEADS));
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
    add_mask(&s, att_mask_document);
    *param_at(&a, 0) = view(ids[0], ATT_I32, ATT_DIMS(1, f->o.n.tq));
    *param_at(&a, 1) = view(ids[1], ATT_I32, ATT_DIMS(1, f->o.n.tk));
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

static const number numbers[] = {
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
    NUMBER(spec_n_stages, 0, 16, 0),
    NUMBER(args_n_params, 0, 0, 0),
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
