#include "score_work.h"

#include "count.h"

#include <stdlib.h>
#include <string.h>

typedef struct score_job {
    serve_job base;
    const serve_scoring *s;
    int64_t *tokens; /* [n] */
    bool *truncated; /* [n] */
} score_job;

/* ---- the compute loop ---- */

static bool fits(const serve_job *a, const serve_job *b)
{
    const serve_scoring *x = ((const score_job *)a)->s, *y = ((const score_job *)b)->s;
    return x->activation == y->activation && !x->pair == !y->pair;
}

/* The arrays of one call. */
typedef struct score_arrays {
    const char **text, **pair;
    size_t *bytes, *pair_bytes;
    int64_t *tokens;
    bool *truncated;
    float *scores;
} score_arrays;

static bool make_arrays(score_arrays *a, size_t n, size_t labels)
{
    *a = (score_arrays){.text = malloc(n * sizeof *a->text),
                        .pair = malloc(n * sizeof *a->pair),
                        .bytes = malloc(n * sizeof *a->bytes),
                        .pair_bytes = malloc(n * sizeof *a->pair_bytes),
                        .tokens = malloc(n * sizeof *a->tokens),
                        .truncated = calloc(n, sizeof *a->truncated),
                        .scores = malloc(n * labels * sizeof *a->scores)};
    return a->text && a->pair && a->bytes && a->pair_bytes && a->tokens && a->truncated && a->scores;
}

static void free_arrays(score_arrays *a)
{
    free(a->text);
    free(a->pair);
    free(a->bytes);
    free(a->pair_bytes);
    free(a->tokens);
    free(a->truncated);
    free(a->scores);
}

static void gather(score_arrays *a, const serve_batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const serve_scoring *s = ((const score_job *)b->job[i])->s;
        const int64_t k = b->item[i];
        a->text[i] = s->text[k];
        a->bytes[i] = s->bytes[k];
        a->pair[i] = s->pair ? s->pair[k] : NULL;
        a->pair_bytes[i] = s->pair ? s->pair_bytes[k] : 0;
    }
}

static void scatter(const score_arrays *a, const serve_batch *b, int64_t labels)
{
    for (int64_t i = 0; i < b->n; i++) {
        const score_job *j = (const score_job *)b->job[i];
        const int64_t k = b->item[i];
        memcpy(j->s->scores + k * labels, a->scores + i * labels, (size_t)labels * sizeof *a->scores);
        j->tokens[k] = a->tokens[i];
        j->truncated[k] = a->truncated[i];
    }
}

static att_status run(const serve_batch *b)
{
    const serve_scoring *first = ((const score_job *)b->job[0])->s;
    const int64_t labels = b->model->info.classifier.labels;
    score_arrays a;
    att_status s = ATT_ERR_MEMORY;
    if (make_arrays(&a, (size_t)b->n, (size_t)labels)) {
        gather(&a, b);
        s = att_text_classify(att_any_model_as(b->model->opened, ATT_SUBJECT_CLASSIFIER), b->n, a.text, a.bytes,
                              ATT_OPTIONS(att_text_classify_options, .pairs = first->pair ? a.pair : NULL,
                                          .pair_bytes = first->pair ? a.pair_bytes : NULL,
                                          .activation = first->activation, .tokens = a.tokens,
                                          .truncated = a.truncated),
                              a.scores);
        if (!s)
            scatter(&a, b, labels);
    }
    free_arrays(&a);
    return s;
}

static const serve_work work = {.name = "score", .fits = fits, .run = run};

/* ---- one request ---- */

static serve_element element(const serve_scoring *s, int64_t i)
{
    return (serve_element){.field = s->field,
                           .index = i,
                           .text = {s->text[i], s->bytes[i]},
                           .pair = {s->pair ? s->pair[i] : NULL, s->pair ? s->pair_bytes[i] : 0}};
}

/* Counts tokens, computes, and refuses what is too long if nothing may be truncated. */
static bool run_job(serve_call *c, serve_model *m, serve_scoring *s, score_job *j, int64_t *cost)
{
    serve_element p;
    for (int64_t i = 0; i < s->n; i++) {
        p = element(s, i);
        if (!serve_count_tokens(c, m, &p, m->max_tokens, &cost[i]))
            return false;
    }
    if (!serve_call_run(c, &j->base))
        return false;
    for (int64_t i = 0; i < s->n; i++) {
        p = element(s, i);
        if (s->refuse_long && j->truncated[i]) {
            serve_refuse_long(c, m, &p);
            return false;
        }
        s->tokens += j->tokens[i];
        s->truncated += j->truncated[i];
    }
    serve_call_count(c, s->tokens, s->truncated);
    return true;
}

/* Acquires the memory of the scores, with their labels in the answer. */
static bool acquire(serve_call *c, const serve_model *m, const serve_scoring *s)
{
    enum { TEXT = 128, LABEL = 80 }; /* bytes for a text, and for each of its labels */
    if (serve_call_acquire(c, (size_t)s->n * (TEXT + LABEL * (size_t)m->info.classifier.labels)))
        return true;
    serve_refuse_memory(c);
    return false;
}

bool serve_score(serve_call *c, serve_model *m, serve_scoring *s)
{
    const size_t n = (size_t)s->n;
    if (!acquire(c, m, s))
        return false;
    int64_t *cost = malloc(n * sizeof *cost);
    score_job j = {.base = {.work = &work, .model = m, .n = s->n, .cost = cost},
                   .s = s,
                   .tokens = malloc(n * sizeof *j.tokens),
                   .truncated = calloc(n, sizeof *j.truncated)};
    s->scores = malloc(n * (size_t)m->info.classifier.labels * sizeof *s->scores);
    bool good = cost && j.tokens && j.truncated && s->scores;
    if (!good)
        serve_refuse(c, 503, NULL, "there is not enough memory for the answer");
    good = good && run_job(c, m, s, &j, cost);
    free(cost);
    free(j.tokens);
    free(j.truncated);
    return good;
}

void serve_scoring_free(serve_scoring *s) { free(s->scores); }
