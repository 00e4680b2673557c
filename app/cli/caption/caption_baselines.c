#include "caption_baselines.h"
#include "caption_images.h"
#include "caption_ridge.h"
#include "cli/base/progress.h"

#include <attend_util.h>

#include <stdlib.h>
#include <string.h>

/* ---- Candidates ------------------------------------------------------------- */

static int add_training(caption_candidates *c, att_ctx *ctx, const att_caption_set *train, uint64_t seed)
{
    caption_references r;
    const char **distinct = NULL;
    int64_t count = 0;
    int code = caption_references_open(&r, ctx, train, INT64_MAX);
    if (!code) {
        distinct = malloc((size_t)r.offset[r.n] * sizeof *distinct);
        count = distinct ? caption_distinct(r.text, r.offset[r.n], distinct) : -1;
        code = count < 0 ? cli_fail_memory() : CLI_DONE;
    }
    const int64_t more = count < CAPTION_TRIED ? count : CAPTION_TRIED;
    for (int64_t i = 0; !code && i < more; i++) {
        const uint32_t counter[4] = {(uint32_t)i, 1};
        uint32_t words[4];
        att_random(seed, counter, words);
        const int64_t k = i + (int64_t)(((uint64_t)words[0] * (uint64_t)(count - i)) >> 32);
        c->text[c->n++] = distinct[k];
        distinct[k] = distinct[i];
    }
    free(distinct);
    caption_references_free(&r);
    return code;
}

int caption_candidates_open(caption_candidates *c, att_ctx *ctx, const char *const *texts, int64_t n,
                            const att_caption_set *train, uint64_t seed)
{
    *c = (caption_candidates){.text = malloc((size_t)(n + CAPTION_TRIED) * sizeof *c->text)};
    c->distinct = c->text ? caption_distinct(texts, n, c->text) : -1;
    if (c->distinct < 0)
        return cli_fail_memory();
    c->n = c->distinct < CAPTION_TRIED ? c->distinct : CAPTION_TRIED;
    return train ? add_training(c, ctx, train, seed) : CLI_DONE;
}

void caption_candidates_free(caption_candidates *c) { free(c->text); }

/* ---- CIDEr-D of captions that all images get --------------------------------- */

enum { PART = 32 }; /* captions that are tried between two reports of progress */

typedef struct trial {
    const caption_references *r;
    const char *const *candidate; /* of this part */
    double *mean;
    float *score; /* [a part, r->n]; or NULL */
    att_status status[PART];
} trial;

/* Scores one candidate, on one thread. */
static void try_candidate(void *arg, int i)
{
    trial *t = arg;
    const int64_t n = t->r->n;
    const char **texts = malloc((size_t)n * sizeof *texts);
    double *score = malloc((size_t)n * sizeof *score);
    t->status[i] = texts && score ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t k = 0; !t->status[i] && k < n; k++)
        texts[k] = t->candidate[i];
    if (!t->status[i])
        t->status[i] = att_cider(t->r->ctx, texts, n, t->r->text, t->r->offset, score, &t->mean[i]);
    for (int64_t k = 0; !t->status[i] && t->score && k < n; k++)
        t->score[i * n + k] = (float)score[k];
    free(score);
    free(texts);
}

/* Scores candidates [n] as the caption of all images: mean [n], and score [n, images] or NULL. unit: for the progress
 */
static int try_all(const caption_references *r, const char *const *candidates, int64_t n, const char *unit,
                   double *mean, float *score)
{
    cli_progress line;
    int code = CLI_DONE;
    cli_progress_begin(&line);
    for (int64_t first = 0; !code && first < n; first += PART) {
        const int64_t count = n - first < PART ? n - first : PART;
        trial t = {.r = r,
                   .candidate = candidates + first,
                   .mean = mean + first,
                   .score = score ? score + first * r->n : NULL};
        att_parallel_for(r->ctx, (int)count, try_candidate, &t);
        for (int64_t i = 0; !code && i < count; i++)
            if (t.status[i])
                code = t.status[i] == ATT_ERR_CANCELLED ? CLI_INTERRUPTED : cli_fail_memory();
        cli_progress_show(&line, first + count, unit, (double)(first + count) / (double)n);
    }
    cli_progress_end(&line);
    return code;
}

int caption_best_constant(const caption_references *r, const caption_candidates *c, const char **best)
{
    double *mean = malloc((size_t)c->n * sizeof *mean);
    const int code = mean ? try_all(r, c->text, c->n, "constants", mean, NULL) : cli_fail_memory();
    int64_t at = 0;
    for (int64_t i = 1; !code && i < c->n; i++)
        at = mean[i] > mean[at] ? i : at;
    *best = c->text[at];
    free(mean);
    return code;
}

/* ---- Four of them ------------------------------------------------------------ */

static float larger(float a, float b) { return a > b ? a : b; }

/* Adds to k, one after the other, the candidate with which the best of all that are chosen is best, in sum over images;
 * score [candidates, images], best [images]: scratch, all 0 */
static void choose(caption_kinds *k, const caption_candidates *c, const float *score, int64_t images, float *best)
{
    double before = -1;
    while (k->kinds < CAPTION_KINDS) {
        double largest = before;
        int64_t at = -1;
        for (int64_t i = 0; i < c->n; i++) {
            double sum = 0;
            for (int64_t p = 0; p < images; p++)
                sum += (double)larger(best[p], score[i * images + p]);
            if (sum > largest) {
                largest = sum;
                at = i;
            }
        }
        if (at < 0)
            return;
        k->text[k->kinds++] = c->text[at];
        for (int64_t p = 0; p < images; p++)
            best[p] = larger(best[p], score[at * images + p]);
        before = largest;
    }
}

static int choose_texts(caption_kinds *k, att_ctx *ctx, const caption_candidates *c, const att_caption_set *train)
{
    caption_references r;
    float *score = NULL, *best = NULL;
    double *mean = malloc((size_t)c->n * sizeof *mean);
    int code = caption_references_open(&r, ctx, train, CAPTION_CHOICE_IMAGES);
    if (!code) {
        score = malloc((size_t)(c->n * r.n) * sizeof *score);
        best = calloc((size_t)r.n, sizeof *best);
        code = mean && score && best ? CLI_DONE : cli_fail_memory();
    }
    if (!code)
        code = try_all(&r, c->text, c->n, "constants on training images", mean, score);
    if (!code)
        choose(k, c, score, r.n, best);
    k->chosen_on = r.n;
    free(score);
    free(best);
    free(mean);
    caption_references_free(&r);
    return code;
}

/* Learns from the training images which of the four captions an image should get. */
static int learn(caption_kinds *k, const cli_captioner *m, const att_caption_set *train, caption_ridge *ridge)
{
    caption_references r;
    double *x = NULL, mean[CAPTION_KINDS];
    float *score = NULL;
    const char **paths = NULL;
    int code = caption_references_open(&r, m->base.ctx, train, CAPTION_RIDGE_IMAGES);
    if (!code) {
        x = malloc((size_t)(r.n * m->info.features) * sizeof *x);
        score = malloc((size_t)(r.n * k->kinds) * sizeof *score);
        paths = malloc((size_t)r.n * sizeof *paths);
        code = x && score && paths ? CLI_DONE : cli_fail_memory();
    }
    for (int64_t i = 0; !code && i < r.n; i++)
        paths[i] = att_caption_set_path(train, caption_references_image(&r, i));
    if (!code)
        code = try_all(&r, k->text, k->kinds, "constants", mean, score);
    if (!code)
        code = caption_image_features(m, paths, r.n, x);
    if (!code)
        code = caption_ridge_learn(ridge, m->base.ctx, x, r.n, m->info.features, score, k->kinds);
    k->trained_on = r.n;
    k->strength = ridge->strength;
    free(x);
    free(score);
    free(paths);
    caption_references_free(&r);
    return code;
}

/* Assigns one of the four to each measured image, and reports which one its references would have chosen. */
static int assign(caption_kinds *k, const cli_captioner *m, const caption_ridge *ridge, const caption_references *r,
                  const char *const *paths)
{
    double *x = malloc((size_t)(r->n * m->info.features) * sizeof *x), mean[CAPTION_KINDS];
    float *score = malloc((size_t)(r->n * k->kinds) * sizeof *score);
    k->given = malloc((size_t)r->n * sizeof *k->given);
    k->best = malloc((size_t)r->n * sizeof *k->best);
    int code = x && score && k->given && k->best ? CLI_DONE : cli_fail_memory();
    if (!code)
        code = try_all(r, k->text, k->kinds, "constants", mean, score);
    if (!code)
        code = caption_image_features(m, paths, r->n, x);
    for (int64_t i = 0; !code && i < r->n; i++) {
        const int64_t kind = caption_ridge_choose(ridge, x + i * m->info.features);
        int64_t best = 0;
        for (int64_t c = 1; c < k->kinds; c++)
            best = score[c * r->n + i] > score[best * r->n + i] ? c : best;
        k->given[i] = k->text[kind];
        k->best[i] = k->text[best];
        k->images[kind]++;
    }
    free(x);
    free(score);
    return code;
}

int caption_kinds_make(caption_kinds *k, const cli_captioner *m, const caption_candidates *c,
                       const att_caption_set *train, const caption_references *r, const char *const *paths)
{
    caption_ridge ridge = {0};
    *k = (caption_kinds){0};
    int code = choose_texts(k, m->base.ctx, c, train);
    if (!code)
        code = learn(k, m, train, &ridge);
    if (!code)
        code = assign(k, m, &ridge, r, paths);
    caption_ridge_free(&ridge);
    return code;
}

void caption_kinds_free(caption_kinds *k)
{
    free(k->given);
    free(k->best);
}
