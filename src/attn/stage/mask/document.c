/* A query attends to the keys of its own document: two parameters have an id for each query and each key. */
#include "attn/stage/stage.h"

static int64_t id_of_query(const att_mask_block *b, int64_t q) { return b->param[0].i32[q * b->param[0].stride[0]]; }
static int64_t id_of_key(const att_mask_block *b, int64_t k) { return b->param[1].i32[k * b->param[1].stride[1]]; }

static bool keep(const att_mask_block *b) { return id_of_query(b, b->q) == id_of_key(b, b->k); }

static bool ascend(const int32_t *id, int64_t stride, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (id[i * stride] < id[(i - 1) * stride])
            return false;
    return true;
}

/* Returns whether ids ascend. The ends of a block then determine which ids are in it. */
static bool inspect(const att_mask_block *b)
{
    return ascend(b->param[0].i32, b->param[0].stride[0], b->queries) &&
           ascend(b->param[1].i32, b->param[1].stride[1], b->keys);
}

/* Returns the first of the ascending keys [0, tk) whose id is not less than `id`. */
static int64_t first_key_of(const att_mask_block *b, int64_t id)
{
    int64_t low = 0, high = b->head->tk;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (id_of_key(b, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void span(const att_mask_block *b, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = b->head->tk;
    if (!b->inspected)
        return;
    *first = first_key_of(b, id_of_query(b, b->q));
    *last = first_key_of(b, id_of_query(b, b->q + b->queries - 1) + 1);
}

typedef struct range {
    int32_t min, max;
} range;

/* Returns the smallest and the largest id of n time steps. */
static range range_of(const int32_t *id, int64_t stride, int64_t n, bool ascend)
{
    range r = {id[0], id[(n - 1) * stride]};
    for (int64_t i = 0; !ascend && i < n; i++) {
        r.min = id[i * stride] < r.min ? id[i * stride] : r.min;
        r.max = id[i * stride] > r.max ? id[i * stride] : r.max;
    }
    return r;
}

static att_cover cover(const att_mask_block *b)
{
    const int64_t q_step = b->param[0].stride[0], k_step = b->param[1].stride[1];
    const range q = range_of(b->param[0].i32 + b->q * q_step, q_step, b->queries, b->inspected);
    const range k = range_of(b->param[1].i32 + b->k * k_step, k_step, b->keys, b->inspected);
    if (q.max < k.min || k.max < q.min)
        return ATT_COVER_EMPTY;
    return q.min == q.max && k.min == k.max ? ATT_COVER_FULL : ATT_COVER_PARTIAL;
}

static void bits(const att_mask_block *b, uint64_t *bits)
{
    for (int64_t j = 0; j < b->keys; j++) {
        const int64_t id = id_of_key(b, b->k + j);
        bits[j] = 0;
        for (int64_t i = 0; i < b->queries; i++)
            bits[j] |= (uint64_t)(id_of_query(b, b->q + i) == id) << i;
    }
}

static const att_param_shape params[] = {
    {.name = "q_documents", .kind = ATT_PARAM_PER_QUERY, .dtype = ATT_I32},
    {.name = "k_documents", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_I32, .as_queries = true},
};

static const att_mask mask = {.size = sizeof mask,
                              .name = "document",
                              .param = params,
                              .n_params = 2,
                              .keep = keep,
                              .span = span,
                              .cover = cover,
                              .bits = bits,
                              .inspect = inspect};
const att_mask *const att_mask_document = &mask;
