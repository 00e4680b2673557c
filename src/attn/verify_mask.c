/* Checks that the functions of a mask agree with keep. */
#include "attn/verify.h"

#include <stdio.h>

/* A mask of one plan, with random parameters. */
typedef struct check {
    att_ctx *ctx;
    const att_mask *mask;
    const double *value;
    att_head at;
    att_param_view param[ATT_MAX_PARAMS];
    bool inspected;
} check;

static att_mask_block block_of(const check *c, const att_head *head, int64_t q, int64_t queries, int64_t k,
                               int64_t keys)
{
    return (att_mask_block){.size = sizeof(att_mask_block),
                            .head = head,
                            .user = c->mask->user,
                            .value = c->value,
                            .param = c->param,
                            .q = q,
                            .queries = queries,
                            .k = k,
                            .keys = keys,
                            .inspected = c->inspected};
}

static bool keeps_at(const check *c, const att_head *head, int64_t q, int64_t k)
{
    const att_mask_block pair = block_of(c, head, q, 1, k, 1);
    return c->mask->keep(&pair);
}
static bool keeps(const check *c, int64_t q, int64_t k) { return keeps_at(c, &c->at, q, k); }

static att_status differ(const check *c, const char *what, int64_t q, int64_t k)
{
    return att_fail(c->ctx, ATT_ERR_ARGUMENT, "\"%s\": %s, but keep returns %s for query %lld and key %lld",
                    c->mask->name, what, keeps(c, q, k) ? "true" : "false", (long long)q, (long long)k);
}

static att_status check_cover(const check *c, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    static const char *const names[] = {"ATT_COVER_EMPTY", "ATT_COVER_PARTIAL", "ATT_COVER_FULL"};
    const att_mask_block b = block_of(c, &c->at, q0, queries, k0, keys);
    const att_cover cover = c->mask->cover(&b);
    char what[128];
    if ((unsigned)cover > ATT_COVER_FULL)
        return att_fail(c->ctx, ATT_ERR_ARGUMENT, "\"%s\": cover gives %d, which is not an att_cover", c->mask->name,
                        (int)cover);
    snprintf(what, sizeof what, "cover of %lld queries from %lld by %lld keys from %lld is %s", (long long)queries,
             (long long)q0, (long long)keys, (long long)k0, names[cover]);
    for (int64_t q = q0; cover != ATT_COVER_PARTIAL && q < q0 + queries; q++)
        for (int64_t k = k0; k < k0 + keys; k++)
            if (keeps(c, q, k) != (cover == ATT_COVER_FULL))
                return differ(c, what, q, k);
    return ATT_OK;
}

static att_status check_bits(const check *c, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    uint64_t bits[ATT_KEY_BLOCK];
    const att_mask_block b = block_of(c, &c->at, q0, queries, k0, keys);
    c->mask->bits(&b, bits);
    for (int64_t k = k0; k < k0 + keys; k++)
        for (int i = 0; i < queries; i++)
            if ((bits[k - k0] >> i & 1) != keeps(c, q0 + i, k)) {
                char what[96];
                snprintf(what, sizeof what, "bit %d of bits from query %lld on is %d", i, (long long)q0,
                         (int)(bits[k - k0] >> i & 1));
                return differ(c, what, q0 + i, k);
            }
    return ATT_OK;
}

static att_status check_span(const check *c, int64_t q0, int64_t queries)
{
    int64_t first = 0, last = c->at.tk;
    char what[128];
    const att_mask_block b = block_of(c, &c->at, q0, queries, 0, c->at.tk);
    c->mask->span(&b, &first, &last);
    snprintf(what, sizeof what, "span of %lld queries from %lld is [%lld, %lld)", (long long)queries, (long long)q0,
             (long long)first, (long long)last);
    for (int64_t q = q0; q < q0 + queries; q++)
        for (int64_t k = 0; k < c->at.tk; k++)
            if ((k < first || k >= last) && keeps(c, q, k))
                return differ(c, what, q, k);
    return ATT_OK;
}

/* Checks that a mask that does not state that it uses positions keeps the same pairs at all positions. */
static att_status check_positions(const check *c)
{
    att_head other = c->at;
    other.position = 0;
    for (int64_t q = 0; q < c->at.tq && !(c->mask->flags & ATT_STAGE_NEEDS_ALIGN); q++)
        for (int64_t k = 0; k < c->at.tk; k++)
            if (keeps_at(c, &other, q, k) != keeps(c, q, k)) {
                char what[96];
                snprintf(what, sizeof what,
                         "without ATT_STAGE_NEEDS_ALIGN, at position 0 instead of %lld keep returns %s",
                         (long long)c->at.position, keeps(c, q, k) ? "false" : "true");
                return differ(c, what, q, k);
            }
    return ATT_OK;
}

/* Checks blocks of queries by blocks of keys, which begin every few queries and keys. */
static att_status check_blocks(const check *c, int64_t queries, int64_t keys)
{
    att_status e = ATT_OK;
    for (int64_t q = 0; !e && q + queries <= c->at.tq; q += 1 + queries / 2) {
        if (c->mask->span)
            e = check_span(c, q, queries);
        for (int64_t k = 0; !e && k + keys <= c->at.tk; k += 1 + keys / 2) {
            if (c->mask->cover)
                e = check_cover(c, q, queries, k, keys);
            if (!e && c->mask->bits && queries <= 64)
                e = check_bits(c, q, queries, k, keys);
        }
    }
    return e;
}

/* Returns how many numbers one head of a parameter has, and its strides. */
static int64_t lay_out(const att_attention_spec *s, const att_param_shape *shape, int64_t stride[2])
{
    enum { ANY_EXTENT = 13 };
    const int64_t size[] = {[ATT_EXTENT_NONE] = 1,
                            [ATT_EXTENT_ANY] = ANY_EXTENT,
                            [ATT_EXTENT_HEAD_DIM] = s->head_dim,
                            [ATT_EXTENT_KEY_DIM] = s->key_dim,
                            [ATT_EXTENT_SCORE_DIM] = s->score_dim ? s->score_dim : s->head_dim};
    stride[0] = shape->kind == ATT_PARAM_PER_PAIR ? ATT_VERIFY_TK : shape->kind == ATT_PARAM_PER_QUERY;
    stride[1] = shape->kind == ATT_PARAM_PER_PAIR || shape->kind == ATT_PARAM_PER_KEY;
    return shape->kind == ATT_PARAM_PER_PAIR    ? ATT_VERIFY_TQ * ATT_VERIFY_TK
           : shape->kind == ATT_PARAM_PER_QUERY ? ATT_VERIFY_TQ
           : shape->kind == ATT_PARAM_PER_KEY   ? ATT_VERIFY_TK
                                                : size[shape->rows] * size[shape->columns];
}

/* Makes a parameter of random numbers, or in round 0 of ascending integers. */
static bool make_param(check *c, const att_attention_spec *s, const att_param_shape *shape, int round,
                       att_arena *memory, att_param_view *o)
{
    const int64_t n = lay_out(s, shape, o->stride);
    uint64_t random = (uint64_t)round;
    void *p = att_arena_alloc(memory, (size_t)n * sizeof(float) + 1);
    o->count = shape->kind == ATT_PARAM_PER_HEAD ? n : 0;
    for (int64_t i = 0; p && i < n; i++) {
        const uint64_t bits = att_verify_random(&random);
        if (shape->dtype == ATT_I32)
            ((int32_t *)p)[i] = round ? (int32_t)(bits % 3) : (int32_t)(i / 29);
        else if (shape->dtype == ATT_BOOL)
            ((uint8_t *)p)[i] = bits % 4 != 0;
        else
            ((float *)p)[i] = (float)(int32_t)(bits >> 32) * 0x1p-31f;
    }
    if (shape->dtype == ATT_I32)
        o->i32 = p;
    else if (shape->dtype == ATT_BOOL)
        o->boolean = p;
    else
        o->data = p;
    return p || att_fail(c->ctx, ATT_ERR_MEMORY, "out of memory") == ATT_OK;
}

static att_status check_round(check *c, const att_plan *plan, int round, att_arena *memory)
{
    static const int queries[] = {1, 31, 64}, keys[] = {1, 32, 256};
    c->at = att_verify_head_at(&plan->spec, round);
    for (int i = 0; i < c->mask->n_params; i++)
        if (!make_param(c, &plan->spec, &c->mask->param[i], round, memory, &c->param[i]))
            return ATT_ERR_MEMORY;
    const att_mask_block whole = block_of(c, &c->at, 0, c->at.tq, 0, c->at.tk);
    c->inspected = c->mask->inspect && c->mask->inspect(&whole);
    att_status e = check_positions(c);
    for (int i = 0; !e && i < 3; i++)
        for (int j = 0; !e && j < 3; j++)
            e = check_blocks(c, queries[i], keys[j]);
    return e;
}

att_status att_verify_mask(const att_plan *plan, int i)
{
    const att_plan_mask *m = &plan->masks.list[i];
    check c = {.ctx = plan->ctx, .mask = &m->stage, .value = m->value};
    att_arena memory;
    att_arena_init(&memory, plan->ctx);
    att_status e = ATT_OK;
    for (int round = 0; !e && round < 2; round++)
        e = check_round(&c, plan, round, &memory);
    att_arena_free(&memory);
    return e;
}
