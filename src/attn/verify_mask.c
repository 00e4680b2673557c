/* Do the functions of a mask agree with keep? */
#include "attn/verify.h"

#include <stdio.h>

/* A mask in one place, with tables for those that have one. */
typedef struct check {
    att_ctx *ctx;
    const att_mask *mask;
    att_head at;
    uint8_t table[ATT_VERIFY_TQ * ATT_VERIFY_TK];
    int32_t id[2][ATT_VERIFY_TK];
} check;

static bool keeps(const check *c, int64_t q, int64_t k) { return c->mask->keep(&c->at, c->mask->user, q, k); }

static att_status differ(const check *c, const char *what, int64_t q, int64_t k)
{
    return att_fail(c->ctx, ATT_ERR_ARGUMENT, "\"%s\": %s, but keep says %s for query %lld and key %lld", c->mask->name,
                    what, keeps(c, q, k) ? "true" : "false", (long long)q, (long long)k);
}

static att_status check_cover(const check *c, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    static const char *const names[] = {"ATT_EMPTY", "ATT_PARTIAL", "ATT_FULL"};
    const att_cover cover = c->mask->cover(&c->at, c->mask->user, q0, queries, k0, keys);
    char what[128];
    if ((unsigned)cover > ATT_FULL)
        return att_fail(c->ctx, ATT_ERR_ARGUMENT, "\"%s\": cover gives %d, which is no att_cover", c->mask->name,
                        (int)cover);
    snprintf(what, sizeof what, "cover of %lld queries from %lld by %lld keys from %lld is %s", (long long)queries,
             (long long)q0, (long long)keys, (long long)k0, names[cover]);
    for (int64_t q = q0; cover != ATT_PARTIAL && q < q0 + queries; q++)
        for (int64_t k = k0; k < k0 + keys; k++)
            if (keeps(c, q, k) != (cover == ATT_FULL))
                return differ(c, what, q, k);
    return ATT_OK;
}

static att_status check_bits(const check *c, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    uint64_t bits[ATT_KEY_BLOCK];
    c->mask->bits(&c->at, c->mask->user, q0, queries, k0, keys, bits);
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
    c->mask->span(&c->at, c->mask->user, q0, queries, &first, &last);
    snprintf(what, sizeof what, "span of %lld queries from %lld is [%lld, %lld)", (long long)queries, (long long)q0,
             (long long)first, (long long)last);
    for (int64_t q = q0; q < q0 + queries; q++)
        for (int64_t k = 0; k < c->at.tk; k++)
            if ((k < first || k >= last) && keeps(c, q, k))
                return differ(c, what, q, k);
    return ATT_OK;
}

/* Who does not say that it uses positions keeps the same pairs at all of them. */
static att_status check_positions(const check *c)
{
    att_head other = c->at;
    other.position = 0;
    for (int64_t q = 0; q < c->at.tq && !(c->mask->flags & ATT_NEEDS_ALIGN); q++)
        for (int64_t k = 0; k < c->at.tk; k++)
            if (c->mask->keep(&other, c->mask->user, q, k) != keeps(c, q, k)) {
                char what[96];
                snprintf(what, sizeof what, "without ATT_NEEDS_ALIGN, at position 0 instead of %lld keep says %s",
                         (long long)c->at.position, keeps(c, q, k) ? "false" : "true");
                return differ(c, what, q, k);
            }
    return ATT_OK;
}

/* Blocks of queries by blocks of keys, from every few on. */
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

/* Round 0: ids of documents ascend; 1: they are in any order. */
static void fill_tables(check *c, int round)
{
    uint64_t random = (uint64_t)round;
    for (int i = 0; i < ATT_VERIFY_TQ * ATT_VERIFY_TK; i++)
        c->table[i] = att_verify_random(&random) % 4 != 0;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < ATT_VERIFY_TK; i++)
            c->id[side][i] = round ? (int32_t)(att_verify_random(&random) % 3) : i / 29;
    c->at.mask = c->table;
    c->at.mask_stride[0] = ATT_VERIFY_TK;
    c->at.mask_stride[1] = 1;
    for (int side = 0; side < 2; side++) {
        c->at.document[side] = c->id[side];
        c->at.document_stride[side] = 1;
    }
    c->at.documents_ascend = !round;
}

att_status att_verify_mask(att_ctx *ctx, const att_attention_spec *spec, const att_mask *mask)
{
    static const int queries[] = {1, 31, 64}, keys[] = {1, 32, 256};
    check *c = att_calloc(ctx, 1, sizeof *c);
    if (!c)
        return ATT_ERR_MEMORY;
    att_status e = ATT_OK;
    c->ctx = ctx;
    c->mask = mask;
    for (int round = 0; round < 2; round++) {
        c->at = att_verify_place(spec, round);
        fill_tables(c, round);
        e = e ? e : check_positions(c);
        for (int i = 0; !e && i < 3; i++)
            for (int j = 0; !e && j < 3; j++)
                e = check_blocks(c, queries[i], keys[j]);
    }
    att_free(ctx, c);
    return e;
}
