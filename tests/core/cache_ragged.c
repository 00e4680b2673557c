/* A cache of sequences that get different numbers of tokens: the bits of a full pass over all of them, and of each
 * sequence alone, in any type; forks of a prefix share its pages until tokens are added. */
#include "cache_help.h"
#include "attn/forward/forward.h"
#include "fail_alloc.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))
enum { SEQUENCES = 5, TOKENS = 330 };
static const int64_t lengths[SEQUENCES] = {61, 0, TOKENS, 1, 278};

typedef enum stages { PLAIN, ALIBI, WINDOW_DROPOUT, DOCUMENTS, STAGES } stages;

/* All tokens of all sequences, batched, in the cache's type and in f32, and the full pass over them. */
typedef struct whole {
    operands o, floats;
    att_attention_spec spec;
    att_plan *plan;
    stages stages;
    float slopes[8];
    int32_t documents[SEQUENCES * TOKENS];
} whole;

static const uint32_t ids[SEQUENCES] = {9, 7, 0, UINT32_MAX, 4};

static void add_stages(whole *w, int64_t heads)
{
    att_attention_args *a = &w->o.args;
    add_mask(&w->spec, att_mask_causal);
    w->spec.align = ATT_ALIGN_BOTTOM_RIGHT;
    if (w->stages == ALIBI) {
        add_modifier(&w->spec, att_modifier_alibi, 0);
        for (int64_t h = 0; h < heads; h++)
            w->slopes[h] = 0.02f * (float)(h + 1);
        att_wrap(param_at(a, 0), w->slopes, ATT_F32, ATT_DIMS(heads), NULL);
    } else if (w->stages == WINDOW_DROPOUT) {
        add_window(&w->spec, 40, 0);
        w->spec.dropout = 0.3f;
        a->dropout_seed = 77;
        a->sequence_ids = ids;
    } else if (w->stages == DOCUMENTS) {
        add_mask(&w->spec, att_mask_document);
        for (int i = 0; i < SEQUENCES * TOKENS; i++)
            w->documents[i] = i % TOKENS / 23;
        att_wrap(param_at(a, 0), w->documents, ATT_I32, ATT_DIMS(SEQUENCES, TOKENS), NULL);
        add_param(a, a->param[0]);
    }
}

static whole *make_whole(att_ctx *ctx, att_dtype dtype, stages stages, int64_t heads, int64_t kv_heads)
{
    const shape n = {SEQUENCES, heads, kv_heads, TOKENS, TOKENS, 24, 20};
    whole *w = calloc(1, sizeof *w);
    w->o = make(n);
    w->floats = make(n);
    w->spec = spec_of(n);
    w->stages = stages;
    add_stages(w, heads);
    store_as(ctx, dtype, &w->o, &w->spec);
    w->o.args.q_lengths = w->o.args.k_lengths = lengths;
    w->plan = plan_of(ctx, &w->spec);
    must(ctx, att_forward(w->plan, &w->o.args));
    return w;
}

static void drop_whole(whole *w)
{
    att_plan_free(w->plan);
    drop(&w->o), drop(&w->floats);
    free(w);
}

/* ---- some tokens of each sequence */

/* Tokens [first[b], first[b] + n[b]) of each sequence b, and where they are in a ragged batch. */
typedef struct step {
    int64_t first[SEQUENCES], n[SEQUENCES], offsets[SEQUENCES + 1];
} step;

static void set_offsets(step *s)
{
    for (int b = 0; b < SEQUENCES; b++)
        s->offsets[b + 1] = s->offsets[b] + s->n[b];
}

/* Those of x [sequences, heads, time, dim], as [tokens, heads, dim]; the caller frees y->data. */
static att_tensor gather(const att_tensor *x, const step *s)
{
    const int64_t heads = x->dim[1], dim = x->dim[3], tokens = s->offsets[SEQUENCES];
    const size_t row = (size_t)dim * att_dtype_size(x->dtype);
    att_tensor y;
    char *to = malloc((size_t)(tokens * heads) * row + 1);
    att_wrap(&y, to, x->dtype, ATT_DIMS(tokens, heads, dim), NULL);
    for (int b = 0; b < SEQUENCES; b++)
        for (int64_t i = 0; i < s->n[b]; i++)
            for (int64_t h = 0; h < heads; h++, to += row)
                memcpy(to, (const char *)x->data + (size_t)((b * heads + h) * x->dim[2] + s->first[b] + i) * row, row);
    return y;
}

static void append_step(att_ctx *ctx, att_cache *c, const att_attention_args *from, const step *s)
{
    const att_tensor k = gather(&from->k, s), v = gather(&from->v, s);
    must(ctx, att_cache_append_ragged(c, s->offsets, &k, &v));
    free(k.data), free(v.data);
}

/* The call for the queries of a step; the caller frees q, out, lse and the first parameter's memory. */
static att_attention_args call_of(const whole *w, const step *s, const att_cache *c)
{
    const int64_t tokens = s->offsets[SEQUENCES], heads = w->o.n.heads;
    att_attention_args a = w->o.args;
    a.q_lengths = a.k_lengths = NULL;
    a.k = a.v = (att_tensor){0};
    a.cache = c;
    a.n_sequences = SEQUENCES;
    a.q_offsets = s->offsets;
    a.q = gather(&w->o.args.q, s);
    const int64_t count = tokens * heads * w->o.n.value_dim;
    att_wrap(&a.out, check_numbers(count, 5), w->spec.dtype, ATT_DIMS(tokens, heads, w->o.n.value_dim), NULL);
    att_wrap(&a.lse, check_numbers(tokens * heads, 6), ATT_F32, ATT_DIMS(tokens, heads), NULL);
    if (w->stages == DOCUMENTS) { /* of queries [tokens]; of keys [sequences, longest] */
        static att_tensor param[2];
        att_tensor all = w->o.args.param[0];
        all.rank = 4, all.dim[3] = all.dim[1] = 1, all.dim[2] = TOKENS;
        param[0] = gather(&all, s);
        param[0].rank = 1;
        param[1] = w->o.args.param[1];
        param[1].dim[1] = 0;
        for (int b = 0; b < SEQUENCES; b++)
            param[1].dim[1] = att_max(param[1].dim[1], att_cache_length(c, b));
        a.param = param;
    }
    return a;
}

static void free_call(const whole *w, const att_attention_args *a)
{
    free(a->q.data), free(a->out.data), free(a->lse.data);
    if (w->stages == DOCUMENTS)
        free(a->param[0].data);
}

static void assert_same_row(const whole *w, const att_attention_args *a, int64_t token, int b, int64_t time)
{
    const int64_t heads = w->o.n.heads;
    const size_t row = (size_t)w->o.n.value_dim * att_dtype_size(w->spec.dtype);
    for (int64_t h = 0; h < heads; h++) {
        const int64_t from = (b * heads + h) * TOKENS + time, to = token * heads + h;
        if (memcmp((const char *)w->o.out + (size_t)from * row, (const char *)a->out.data + (size_t)to * row, row))
            fail_msg("%s, stages %d: query %d of sequence %d differs", att_dtype_name(w->spec.dtype), (int)w->stages,
                     (int)time, b);
        assert_same_bits(w->o.lse + from, (const float *)a->lse.data + to, 1);
    }
}

/* Queries of one sequence from which on decoding is not used */
static int64_t many(const whole *w) { return ATT_DECODE_QUERIES / (w->o.n.heads / w->o.n.kv_heads) + 1; }

/* Queries of a step have the bits of the full pass; where that rounds weights of bf16, those of sequences with many. */
static void check_step_bits(att_ctx *ctx, const whole *w, const step *s, const att_cache *c)
{
    const bool rounds = w->spec.dtype == ATT_BF16 && att_kernels_of(ctx->isa)->bf16.scores;
    const att_attention_args a = call_of(w, s, c);
    must(ctx, att_forward(w->plan, &a));
    for (int b = 0; b < SEQUENCES; b++)
        for (int64_t i = 0; i < s->n[b]; i++)
            if (!rounds || s->n[b] >= many(w))
                assert_same_row(w, &a, s->offsets[b] + i, b, s->first[b] + i);
    free_call(w, &a);
}

/* A random step: some sequences get none, some one, some many. */
static step next_step(const att_cache *c, uint64_t seed)
{
    static const int64_t counts[] = {0, 1, 1, 3, 9, 40, 200};
    step s = {.offsets = {0}};
    for (int b = 0; b < SEQUENCES; b++) {
        s.first[b] = att_cache_length(c, b);
        s.n[b] = att_min(counts[check_bits(seed, (uint64_t)b) % COUNT(counts)], lengths[b] - s.first[b]);
    }
    set_offsets(&s);
    return s;
}

static bool is_complete(const att_cache *c)
{
    for (int b = 0; b < SEQUENCES; b++)
        if (att_cache_length(c, b) < lengths[b])
            return false;
    return true;
}

static const struct {
    int64_t heads, kv_heads;
} heads[] = {{2, 2}, {4, 1}, {10, 1}};

static void ragged_prompts_and_tokens_give_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 3 * STAGES; i += check_step(2)) {
            const int h = i % COUNT(heads);
            whole *w = make_whole(ctx, types[(i + i / 3) % 3], (stages)(i % STAGES), heads[h].heads, heads[h].kv_heads);
            const att_attention_args *from = i % 2 ? &w->o.args : &w->floats.args; /* of its type, or f32 */
            att_cache *c = cache_of(ctx, w->plan, SEQUENCES);
            for (uint64_t seed = (uint64_t)i; !is_complete(c); seed += 100) {
                const step s = next_step(c, seed);
                append_step(ctx, c, from, &s);
                check_step_bits(ctx, w, &s, c);
            }
            att_cache_free(c);
            drop_whole(w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ragged_prompts_and_tokens_give_the_bits_of_the_full_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
