/* A query attends to the keys of its own document: args.q_documents and args.k_documents have an id for each time step.
 */
#include "attn/stage/stage.h"

static int32_t id_of_query(const att_head *at, int64_t q) { return at->document[0][q * at->document_stride[0]]; }
static int32_t id_of_key(const att_head *at, int64_t k) { return at->document[1][k * at->document_stride[1]]; }

static bool keep(const att_head *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    return id_of_query(at, q) == id_of_key(at, k);
}

/* The first of the ascending keys [0, tk) whose id is not less than `id`. */
static int64_t first_key_of(const att_head *at, int64_t id)
{
    int64_t low = 0, high = at->tk;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (id_of_key(at, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void span(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t *first, int64_t *last)
{
    (void)user;
    *first = 0;
    *last = at->tk;
    if (!at->documents_ascend)
        return;
    *first = first_key_of(at, id_of_query(at, q));
    *last = first_key_of(at, (int64_t)id_of_query(at, q + queries - 1) + 1);
}

typedef struct range {
    int32_t least, most;
} range;

/* Of the ids of n time steps. */
static range range_of(const int32_t *id, int64_t stride, int64_t n, bool ascend)
{
    range r = {id[0], id[(n - 1) * stride]};
    for (int64_t i = 0; !ascend && i < n; i++) {
        r.least = id[i * stride] < r.least ? id[i * stride] : r.least;
        r.most = id[i * stride] > r.most ? id[i * stride] : r.most;
    }
    return r;
}

static att_cover cover(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys)
{
    (void)user;
    const int64_t *stride = at->document_stride;
    const range a = range_of(at->document[0] + q * stride[0], stride[0], queries, at->documents_ascend);
    const range b = range_of(at->document[1] + k * stride[1], stride[1], keys, at->documents_ascend);
    if (a.most < b.least || b.most < a.least)
        return ATT_EMPTY;
    return a.least == a.most && b.least == b.most ? ATT_FULL : ATT_PARTIAL;
}

static void bits(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys,
                 uint64_t *bits)
{
    (void)user;
    for (int64_t j = 0; j < keys; j++) {
        const int32_t id = id_of_key(at, k + j);
        bits[j] = 0;
        for (int64_t i = 0; i < queries; i++)
            bits[j] |= (uint64_t)(id_of_query(at, q + i) == id) << i;
    }
}

const att_mask att_mask_document = {.name = "document", .keep = keep, .span = span, .cover = cover, .bits = bits};
