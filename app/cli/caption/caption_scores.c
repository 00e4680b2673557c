#include "caption_scores.h"

#include <stdlib.h>
#include <string.h>

/* ---- References ------------------------------------------------------------ */

int64_t caption_references_image(const caption_references *r, int64_t i) { return i * r->all / r->n; }

int caption_references_open(caption_references *r, att_ctx *ctx, const att_caption_set *set, int64_t n)
{
    att_caption_set_info info = {.size = sizeof info};
    att_caption_set_describe(set, &info);
    n = n < info.images ? n : info.images;
    *r = (caption_references){.ctx = ctx, .set = set, .n = n, .all = info.images};
    r->offset = calloc((size_t)n + 1, sizeof *r->offset);
    for (int64_t i = 0; r->offset && i < n; i++)
        r->offset[i + 1] = r->offset[i] + att_caption_set_count(set, caption_references_image(r, i));
    r->text = r->offset ? malloc((size_t)r->offset[n] * sizeof *r->text) : NULL;
    if (!r->text)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = r->offset[i]; k < r->offset[i + 1]; k++)
            r->text[k] = att_caption_set_caption(set, caption_references_image(r, i), k - r->offset[i]);
    return CLI_DONE;
}

void caption_references_free(caption_references *r)
{
    free(r->offset);
    free(r->text);
}

/* ---- Scores ---------------------------------------------------------------- */

int caption_scores_make(caption_scores *s, const caption_references *r, const char *const *texts)
{
    *s = (caption_scores){.bleu.size = sizeof s->bleu};
    att_bleu_counts sum = {0};
    s->count = malloc((size_t)r->n * sizeof *s->count);
    s->cider = malloc((size_t)r->n * sizeof *s->cider);
    int code = s->count && s->cider ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < r->n; i++) {
        const int64_t first = r->offset[i];
        code = cli_status(r->ctx, att_bleu_count(r->ctx, ATT_BLEU_TOKENIZER_NONE, texts[i], strlen(texts[i]),
                                                 r->text + first, NULL, r->offset[i + 1] - first, &s->count[i]));
        if (!code)
            att_bleu_add(&sum, &s->count[i]);
    }
    if (!code)
        code = cli_status(r->ctx, att_bleu_describe(&sum, NULL, &s->bleu));
    if (!code)
        code = cli_status(r->ctx, att_cider(r->ctx, texts, r->n, r->text, r->offset, s->cider, &s->mean));
    return code;
}

void caption_scores_free(caption_scores *s)
{
    free(s->count);
    free(s->cider);
}

int caption_scores_intervals(const caption_scores *s, const caption_references *r, uint64_t seed,
                             caption_intervals *out)
{
    const att_bleu_resampling o = {.size = sizeof o, .seed = seed};
    att_interval chrf;
    int code = cli_status(r->ctx, att_bleu_intervals(r->ctx, s->count, r->n, &o, &out->bleu4, &chrf));
    if (!code)
        code = cli_status(r->ctx, att_mean_interval(r->ctx, s->cider, r->n, &o, &out->cider));
    out->bleu4.mean = s->bleu.bleu;
    out->cider.mean = s->mean;
    return code;
}

int caption_scores_differences(const caption_scores *a, const caption_scores *b, const caption_references *r,
                               uint64_t seed, caption_intervals *out)
{
    const att_bleu_resampling o = {.size = sizeof o, .seed = seed};
    att_interval chrf;
    double *difference = malloc((size_t)r->n * sizeof *difference);
    int code = difference ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < r->n; i++)
        difference[i] = a->cider[i] - b->cider[i];
    if (!code)
        code = cli_status(r->ctx, att_bleu_differences(r->ctx, a->count, b->count, r->n, &o, &out->bleu4, &chrf));
    if (!code)
        code = cli_status(r->ctx, att_mean_interval(r->ctx, difference, r->n, &o, &out->cider));
    out->bleu4.mean = a->bleu.bleu - b->bleu.bleu;
    out->cider.mean = a->mean - b->mean;
    free(difference);
    return code;
}

/* ---- Controls -------------------------------------------------------------- */

int caption_shuffle(const att_ctx *ctx, const char *const *texts, int64_t n, uint64_t seed, const char **to)
{
    int64_t *from = malloc((size_t)n * sizeof *from);
    const int code = from ? cli_status(ctx, att_cyclic_permutation(seed, n, from)) : cli_fail_memory();
    for (int64_t i = 0; !code && i < n; i++)
        to[i] = texts[from[i]];
    free(from);
    return code;
}

typedef struct counted {
    const char *text;
    int64_t count;
} counted;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const counted *)a)->text, ((const counted *)b)->text);
}

static int by_count(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->text, y->text);
}

int64_t caption_distinct(const char *const *texts, int64_t n, const char **out)
{
    counted *all = malloc((size_t)n * sizeof *all);
    int64_t distinct = 0;
    if (!all)
        return -1;
    for (int64_t i = 0; i < n; i++)
        all[i] = (counted){texts[i], 1};
    qsort(all, (size_t)n, sizeof *all, by_text);
    for (int64_t i = 0; i < n; i++)
        if (distinct && !strcmp(all[distinct - 1].text, all[i].text))
            all[distinct - 1].count++;
        else
            all[distinct++] = all[i];
    qsort(all, (size_t)distinct, sizeof *all, by_count);
    for (int64_t i = 0; i < distinct; i++)
        out[i] = all[i].text;
    free(all);
    return distinct;
}
