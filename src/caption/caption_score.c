/* Computes how probable captions are, given images. The captions are the decoder's input (teacher forcing); many
 * captions of an image are processed together. */
#include "attend_util.h"
#include "io/check_texts.h"
#include "caption/caption_model.h"
#include "caption/plain_words.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum {
    GRIDS = 32,            /* images encoded at once */
    BATCH_LOGITS = 1 << 22 /* logits of the words that are computed together */
};

/* Captions as ids. */
typedef struct texts {
    const att_caption_model *m;
    int64_t n;
    int32_t *words;   /* [offsets[n]], the end included */
    int64_t *offsets; /* [n + 1] */
    att_bytes plain;  /* scratch */
} texts;

/* Writes the ids of a caption with its end to words [room]. Returns their number. */
static int64_t encode(texts *x, const char *caption, int32_t *words, int64_t room)
{
    x->plain.count = 0;
    att_plain_words((att_byte_view){caption, strlen(caption)}, &x->plain);
    att_bytes_add(&x->plain, "", 1);
    if (x->plain.status)
        return 0;
    const int64_t n = att_words_encode(&x->m->words, x->plain.data, words, room);
    if (n < room)
        words[n] = (int32_t)x->m->captioner->config.end;
    return att_min(n + 1, room);
}

static att_status texts_make(texts *x, const char *const *captions)
{
    const int64_t room = x->m->captioner->config.max_positions;
    x->offsets = att_calloc(x->m->ctx, (size_t)x->n + 1, sizeof *x->offsets);
    x->words = att_alloc(x->m->ctx, (size_t)x->n, (size_t)room * sizeof *x->words);
    if (!x->offsets || !x->words)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < x->n; i++)
        x->offsets[i + 1] = x->offsets[i] + encode(x, captions[i], x->words + x->offsets[i], room);
    return x->plain.status;
}

static void texts_free(texts *x)
{
    att_free(x->m->ctx, x->words);
    att_free(x->m->ctx, x->offsets);
    att_bytes_free(&x->plain);
}

/* Returns the log probability of a word: its logit minus the log-sum-exp of all logits. The log-sum-exp is the largest
 * logit minus the logarithm of its probability. */
static double log_probability(const float *logits, const float *probability, int64_t n, int32_t word)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (double)logits[word] - (double)logits[best] + log((double)probability[best]);
}

typedef struct part {
    const texts *x;
    int64_t first;                     /* caption */
    const float *logits, *probability; /* [words, vocabulary] */
    double *out;                       /* of the first caption */
} part;

static void sum_caption(void *arg, int i)
{
    const part *p = arg;
    const att_captioner_config *c = &p->x->m->captioner->config;
    const int64_t *offsets = p->x->offsets + p->first;
    p->out[i] = 0;
    for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
        const int64_t row = (k - offsets[0]) * c->vocabulary;
        if (p->x->words[k] != c->unknown)
            p->out[i] += log_probability(p->logits + row, p->probability + row, c->vocabulary, p->x->words[k]);
    }
}

/* Scores captions first to last - 1 of one image: out [last - first]. */
static att_status score_part(att_tape *t, const texts *x, const att_tensor *grid, int64_t first, int64_t last,
                             double *out)
{
    const att_caption_model *m = x->m;
    const int64_t n = last - first, of_image[] = {0, n};
    int64_t *offsets = att_alloc(m->ctx, (size_t)n + 1, sizeof *offsets);
    if (!offsets)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = x->offsets[first + i] - x->offsets[first];
    const att_caption_batch b = {
        .images = 1, .captions = n, .of_image = of_image, .words = x->words + x->offsets[first], .offsets = offsets};
    att_tensor logits, probability;
    att_var *y = att_captioner_logits(t, m->captioner, att_constant(t, grid), &b);
    att_status s = att_var_value(t, att_softmax(t, y), &probability);
    s = s ? s : att_var_value(t, y, &logits);
    if (!s) {
        const part p = {.x = x, .first = first, .logits = logits.data, .probability = probability.data, .out = out};
        att_parallel_for(m->ctx, (int)n, sum_caption, (void *)(uintptr_t)&p);
    }
    att_tape_reset(t);
    att_free(m->ctx, offsets);
    return s;
}

/* Scores all captions of one image: out [x->n]. */
static att_status score_image(att_tape *t, const texts *x, float *grid, double *out)
{
    const att_captioner_config *c = &x->m->captioner->config;
    const int64_t words = att_max(1, BATCH_LOGITS / c->vocabulary);
    att_tensor g;
    att_status s = att_wrap(&g, grid, ATT_F32, 2, (const int64_t[]){c->grid[0] * c->grid[1], c->features}, NULL);
    for (int64_t first = 0, last; !s && first < x->n; first = last) {
        for (last = first + 1; last < x->n && x->offsets[last + 1] - x->offsets[first] <= words;)
            last++;
        s = score_part(t, x, &g, first, last, out + first);
    }
    for (int64_t i = 0; !s && i < x->n; i++)
        if (!isfinite(out[i]))
            s = att_fail(x->m->ctx, ATT_ERR_FORMAT,
                         "the log probability of caption %lld is not a number: the weights are damaged, or too large",
                         (long long)i);
    return s;
}

static att_status score_all(const att_caption_model *m, int64_t n, const att_image *images, const texts *x,
                            att_progress *p, double *out)
{
    const int64_t size = att_caption_grid_size(m), max = att_max(1, att_min(n, GRIDS));
    att_tape *t = NULL;
    float *grids = att_alloc(m->ctx, (size_t)max, (size_t)size * sizeof *grids);
    att_status s = grids ? att_model_tape(&m->captioner->model, &t) : ATT_ERR_MEMORY;
    for (int64_t first = 0; !s && first < n; first += max) {
        const int64_t count = att_min(max, n - first);
        s = att_caption_grids(m, count, images + first, grids);
        for (int64_t i = 0; !s && i < count; i++) {
            s = score_image(t, x, grids + i * size, out + (first + i) * x->n);
            s = s ? s : att_progress_add(p, 1);
        }
    }
    att_tape_free(t);
    att_free(m->ctx, grids);
    return s;
}

att_status att_caption_score(const att_caption_model *m, int64_t n, const att_image *images, int64_t n_captions,
                             const char *const *captions, const att_call_options *options, double *out)
{
    att_progress p;
    att_status s = att_caption_check(__func__, m, n, images, out);
    if (!s && n_captions < 0)
        s = att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: n_captions is %lld, expected 0 or more", __func__,
                     (long long)n_captions);
    s = s ? s : att_check_texts(m->ctx, "att_caption_score: captions", captions, n_captions);
    s = s ? s : att_progress_of(&p, m->ctx, __func__, options, n);
    if (s || n == 0 || n_captions == 0)
        return s ? s : att_progress_end(&p);
    texts x = {.m = m, .n = n_captions, .plain.ctx = m->ctx};
    s = texts_make(&x, captions);
    s = s ? s : score_all(m, n, images, &x, &p, out);
    texts_free(&x);
    return s;
}
