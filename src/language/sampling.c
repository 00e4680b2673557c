/* Each of top-k, top-p and min-p keeps the first tokens in the order of descending logits. Tokens are sorted in bands:
 * the most probable ones first, the others only if they are needed. Rarely more than some hundreds of a vocabulary
 * are. */
#include "language/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 2, MAX_WIDTH = 64 }; /* of logits: all logits below both limits are one band */

/* ---- settings */

static att_status check_bias(att_ctx *ctx, const char *caller, int64_t vocabulary, const att_sampling *s)
{
    if (s->n_bias < 0 || s->n_bias >= vocabulary)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n_bias is %lld, not in [0, %lld]: fewer than the model has tokens",
                        caller, (long long)s->n_bias, (long long)vocabulary - 1);
    if (s->n_bias > 0 && !s->bias)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: bias is NULL, but n_bias is %lld", caller, (long long)s->n_bias);
    for (int64_t i = 0; i < s->n_bias; i++) {
        const att_logit_bias *b = &s->bias[i];
        if (b->id < 0 || b->id >= vocabulary)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: bias[%lld].id is %d, but the model's are 0 to %lld", caller,
                            (long long)i, (int)b->id, (long long)vocabulary - 1);
        if (b->bias != -INFINITY && !(b->bias >= -100 && b->bias <= 100))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: bias[%lld].bias is %g, neither -infinity nor in [-100, 100]",
                            caller, (long long)i, (double)b->bias);
    }
    return ATT_OK;
}

att_status att_sampling_complete(att_ctx *ctx, const char *caller, int64_t vocabulary, att_sampling *s)
{
    const struct {
        const char *name;
        float *value, min, max;
        const char *range;
        float usual; /* the value that 0 stands for */
    } numbers[] = {
        {"temperature", &s->temperature, 1e-6f, 1e6f, "[1e-6, 1e6]", 1},
        {"top_p", &s->top_p, 0, 1, "[0, 1]", 1},
        {"min_p", &s->min_p, 0, 1, "[0, 1]", 0},
        {"repetition_penalty", &s->repetition_penalty, 1e-3f, 1e3f, "[1e-3, 1e3]", 1},
        {"presence_penalty", &s->presence_penalty, -2, 2, "[-2, 2]", 0},
        {"frequency_penalty", &s->frequency_penalty, -2, 2, "[-2, 2]", 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const float value = *numbers[i].value;
        if (value != 0 && !(value >= numbers[i].min && value <= numbers[i].max))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: %s is %g, not in %s", caller, numbers[i].name, (double)value,
                            numbers[i].range);
        if (value == 0)
            *numbers[i].value = numbers[i].usual;
    }
    if (s->top_k < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: top_k is %lld, not at least 0", caller, (long long)s->top_k);
    return check_bias(ctx, caller, vocabulary, s);
}

/* ---- logits */

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* Returns whether each logit is finite, or -infinity, which is a mask. The loop has no early end, so that it can be
 * vectorized. */
static bool all_valid(const float *x, int64_t n)
{
    int bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= !(x[i] < INFINITY);
    return !bad;
}

/* Makes seen ids less probable: changes their logits in row [n]. */
static void penalize_repetition(float *row, int64_t n, const uint64_t *seen, float penalty)
{
    for (int64_t word = 0; word < (n + 63) / 64; word++)
        for (uint64_t bits = seen[word]; bits; bits &= bits - 1) {
            float *x = &row[word * 64 + __builtin_ctzll(bits)];
            *x = *x < 0 ? *x * penalty : *x / penalty;
        }
}

/* Subtracts the presence and the frequency penalty. count: scratch, as long as row; exact up to 2^24. */
static void penalize_counts(float *row, const att_sampling *s, const int32_t *ids, int64_t n, float *count)
{
    for (int64_t i = 0; i < n; i++)
        count[ids[i]] = 0;
    for (int64_t i = 0; i < n; i++)
        count[ids[i]]++;
    for (int64_t i = 0; i < n; i++) {
        if (count[ids[i]] > 0)
            row[ids[i]] -= s->presence_penalty + s->frequency_penalty * count[ids[i]];
        count[ids[i]] = 0; /* subtracts once for each id */
    }
}

/* Returns the logits with bias and penalties; if there are neither, the logits themselves. */
static const float *adjust(const att_sampler *s, const float *logits, const att_sampler_position *at,
                           att_sampler_scratch *scratch)
{
    const att_sampling *o = &s->s;
    float *row = scratch->row;
    const bool repetition = at->seen && o->repetition_penalty != 1;
    const bool counts = at->n_generated > 0 && (o->presence_penalty != 0 || o->frequency_penalty != 0);
    if (o->n_bias == 0 && !repetition && !counts)
        return logits;
    memcpy(row, logits, (size_t)s->vocabulary * sizeof *row);
    for (int64_t i = 0; i < o->n_bias; i++)
        row[o->bias[i].id] += o->bias[i].bias;
    if (repetition)
        penalize_repetition(row, s->vocabulary, at->seen, o->repetition_penalty);
    if (counts)
        penalize_counts(row, o, at->generated, at->n_generated, scratch->weight);
    return row;
}

/* ---- candidates in descending order; equal logits by ascending id */

typedef struct candidates {
    const float *logits; /* [vocabulary] */
    int64_t vocabulary;
    float max;
    float threshold, width; /* logits of at least threshold = max - width are in order; threshold -infinity: all are */
    att_candidate *order;
    int64_t n;
} candidates;

static int by_logit(const void *a, const void *b)
{
    const att_candidate *x = a, *y = b;
    return x->logit != y->logit ? (x->logit > y->logit ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

static void add_band(candidates *c)
{
    const float before = c->n ? c->threshold : INFINITY;
    const int64_t first = c->n;
    c->width += BAND;
    c->threshold = c->width < MAX_WIDTH ? c->max - c->width : -INFINITY;
    for (int64_t i = 0; i < c->vocabulary; i++)
        if (c->logits[i] >= c->threshold && c->logits[i] < before)
            c->order[c->n++] = (att_candidate){c->logits[i], (int32_t)i};
    qsort(c->order + first, (size_t)(c->n - first), sizeof *c->order, by_logit);
}

/* Returns whether there is a candidate i. If so, it is in order. */
static bool has(candidates *c, int64_t i)
{
    while (i >= c->n && (c->n == 0 || c->threshold > -INFINITY))
        add_band(c);
    return i < c->n;
}

/* ---- random tokens */

/* Returns a uniform random number in [0, 1) with 53 bits. */
static double uniform(uint64_t seed, const att_sampler_position *at)
{
    uint32_t word[4];
    att_random(seed,
               (const uint32_t[4]){(uint32_t)at->position, (uint32_t)((uint64_t)at->position >> 32),
                                   (uint32_t)at->sequence, (uint32_t)((uint64_t)at->sequence >> 32)},
               word);
    return ((double)(word[0] >> 5) * 0x1p26 + (double)(word[1] >> 6)) * 0x1p-53;
}

/* Returns the index at which the running sum of weight [n] exceeds u times their sum. */
static int64_t draw(const float *weight, int64_t n, double u)
{
    double sum = 0, running = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)weight[i];
    for (int64_t i = 0; i < n; i++) {
        running += (double)weight[i];
        if (running > u * sum)
            return i;
        last = weight[i] > 0 ? i : last;
    }
    return last; /* u * sum was rounded up to sum */
}

/* Samples without top-k and top-p, for which no order is needed. */
static int32_t sample_all(const att_sampler *s, const float *logits, float max, double u, float *weight)
{
    for (int64_t i = 0; i < s->vocabulary; i++) {
        weight[i] = expf((logits[i] - max) / s->s.temperature);
        weight[i] = weight[i] < s->s.min_p ? 0 : weight[i];
    }
    return (int32_t)draw(weight, s->vocabulary, u);
}

/* Returns the number of the k most probable candidates and of others that are equal to the k-th. */
static int64_t top_k(candidates *c, int64_t k)
{
    int64_t n = 0;
    while (has(c, n) && (n < k || c->order[n].logit == c->order[k - 1].logit))
        n++;
    return n;
}

static int32_t sample_ordered(const att_sampler *s, const float *logits, float max, double u,
                              att_sampler_scratch *scratch)
{
    candidates c = {.logits = logits, .vocabulary = s->vocabulary, .max = max, .order = scratch->order};
    const float t = s->s.temperature;
    const bool some = s->s.top_k && s->s.top_k < s->vocabulary;
    const int64_t limit = some ? top_k(&c, s->s.top_k) : s->vocabulary;
    double sum = 0, before = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < limit; i++)
        sum += (double)expf(((some ? c.order[i].logit : logits[i]) - max) / t);
    float *weight = scratch->weight;
    for (; n < limit && has(&c, n); n++) {
        const float w = expf((c.order[n].logit - max) / t);
        if (n > 0 && (w < s->s.min_p || (s->s.top_p < 1 && before >= (double)s->s.top_p * sum)))
            break;
        before += (double)w;
        weight[n] = w;
    }
    return c.order[draw(weight, n, u)].id;
}

int32_t att_sampler_choose(const att_sampler *s, const float *logits, const att_sampler_position *at,
                           att_sampler_scratch *scratch)
{
    const float *from = adjust(s, logits, at, scratch);
    int32_t id = (int32_t)largest(from, s->vocabulary);
    const float max = from[id];
    if (!isfinite(max) || !all_valid(logits, s->vocabulary))
        return -1;
    if (s->s.sample) {
        const double u = uniform(s->seed, at);
        id = s->s.top_k == 0 && s->s.top_p >= 1 ? sample_all(s, from, max, u, scratch->weight)
                                                : sample_ordered(s, from, max, u, scratch);
    }
    return id;
}

/* ---- log probabilities */

bool att_sampler_score(const att_sampler *s, const float *logits, int32_t id, att_sampler_scratch *scratch,
                       const att_token_scores *out, int64_t row)
{
    const float max = logits[largest(logits, s->vocabulary)];
    candidates c = {.logits = logits, .vocabulary = s->vocabulary, .max = max, .order = scratch->order};
    double sum = 0;
    if (!isfinite(max) || !all_valid(logits, s->vocabulary))
        return false;
    for (int64_t i = 0; i < s->vocabulary; i++)
        sum += (double)expf(logits[i] - max);
    if (out->own)
        out->own[row] = (float)((double)(logits[id] - max) - log(sum));
    for (int64_t i = 0; out->ids && i < s->top && has(&c, i); i++) {
        out->ids[row * s->top + i] = c.order[i].id;
        out->highest[row * s->top + i] = (float)((double)(c.order[i].logit - max) - log(sum));
    }
    return true;
}
