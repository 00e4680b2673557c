#include "embed_work.h"

#include "count.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct embed_job {
    serve_job base;
    const serve_texts *input;
    const char *prompt; /* before each text */
    float *vectors;     /* [n, width] */
    int64_t width;
    int64_t *tokens; /* [n] */
    bool *truncated; /* [n] */
} embed_job;

/* ---- the compute loop ---- */

static bool fits(const serve_job *a, const serve_job *b)
{
    const embed_job *x = (const embed_job *)a, *y = (const embed_job *)b;
    return x->width == y->width && !x->input->ids == !y->input->ids && !strcmp(x->prompt, y->prompt);
}

/* The arrays of one call. */
typedef struct embed_arrays {
    const char **text;
    size_t *bytes;
    int32_t *ids;
    int64_t *offsets, *tokens;
    bool *truncated;
    float *vectors;
} embed_arrays;

static bool make_arrays(embed_arrays *a, const serve_batch *b, int64_t width)
{
    const size_t n = (size_t)b->n;
    int64_t ids = 0;
    for (int64_t i = 0; i < b->n; i++)
        ids += b->job[i]->cost[b->item[i]];
    *a = (embed_arrays){.text = malloc(n * sizeof *a->text),
                        .bytes = malloc(n * sizeof *a->bytes),
                        .ids = malloc((size_t)(ids + 1) * sizeof *a->ids),
                        .offsets = malloc((n + 1) * sizeof *a->offsets),
                        .tokens = malloc(n * sizeof *a->tokens),
                        .truncated = calloc(n, sizeof *a->truncated),
                        .vectors = malloc(n * (size_t)width * sizeof *a->vectors)};
    return a->text && a->bytes && a->ids && a->offsets && a->tokens && a->truncated && a->vectors;
}

static void free_arrays(embed_arrays *a)
{
    free(a->text);
    free(a->bytes);
    free(a->ids);
    free(a->offsets);
    free(a->tokens);
    free(a->truncated);
    free(a->vectors);
}

/* Collects the texts of the items, or their ids. */
static void gather(embed_arrays *a, const serve_batch *b)
{
    int64_t at = 0;
    a->offsets[0] = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const serve_texts *input = ((const embed_job *)b->job[i])->input;
        const int64_t k = b->item[i];
        if (input->ids) {
            const int64_t n = input->offsets[k + 1] - input->offsets[k];
            memcpy(a->ids + at, input->ids + input->offsets[k], (size_t)n * sizeof *a->ids);
            a->offsets[i + 1] = at += n;
        } else {
            a->text[i] = input->text[k];
            a->bytes[i] = input->bytes[k];
        }
    }
}

static void scatter(const embed_arrays *a, const serve_batch *b, int64_t width)
{
    for (int64_t i = 0; i < b->n; i++) {
        embed_job *j = (embed_job *)b->job[i];
        memcpy(j->vectors + b->item[i] * width, a->vectors + i * width, (size_t)width * sizeof *a->vectors);
        j->tokens[b->item[i]] = a->tokens[i];
        j->truncated[b->item[i]] = a->truncated[i];
    }
}

static att_status run(const serve_batch *b)
{
    const embed_job *first = (const embed_job *)b->job[0];
    const att_sentence *m = att_any_model_as(b->model->opened, ATT_SUBJECT_SENTENCE);
    const bool ids = first->input->ids;
    embed_arrays a;
    att_status s = ATT_ERR_MEMORY;
    if (make_arrays(&a, b, first->width)) {
        gather(&a, b);
        s = att_sentence_embed(m, b->n, ids ? NULL : a.text, ids ? NULL : a.bytes,
                               ATT_OPTIONS(att_embed_options, .ids = ids ? a.ids : NULL,
                                           .offsets = ids ? a.offsets : NULL, .tokens = a.tokens,
                                           .truncated = a.truncated, .prompt = ids ? NULL : first->prompt,
                                           .dims = first->width),
                               a.vectors);
        if (!s)
            scatter(&a, b, first->width);
    }
    free_arrays(&a);
    return s;
}

static const serve_work work = {.name = "embed", .fits = fits, .run = run};

/* ---- what a request gives ---- */

bool serve_find_prompt(serve_call *c, const serve_model *m, const char *name, const char **prompt)
{
    const att_sentence *s = att_any_model_as(m->opened, ATT_SUBJECT_SENTENCE);
    if (!att_sentence_prompt(s, name, prompt))
        return true;
    char known[256];
    size_t n = 0;
    const char *one;
    for (int64_t i = 0; n < sizeof known && att_sentence_prompt_at(s, i, &one); i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s\"%s\"", i ? ", " : "", one);
    serve_refuse(c, 400, "prompt_name", "prompt_name: %s has no prompt \"%.60s\"; there are: %s", m->id, name, known);
    return false;
}

static bool find_prompt(serve_call *c, const serve_model *m, const serve_embedding *e, const char **prompt)
{
    if (e->input->ids && e->prompt_name.text) {
        serve_refuse(c, 400, "prompt_name", "token ids have no prompt: leave out prompt_name, or send texts");
        return false;
    }
    *prompt = "";
    return e->input->ids || serve_find_prompt(c, m, e->prompt_name.text, prompt);
}

/* Checks the ids of texts that are given as such. */
static bool check_ids(serve_call *c, const serve_model *m, const serve_embedding *e)
{
    const serve_texts *t = e->input;
    const int64_t size = att_tokenizer_size(m->tokenizer);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t n = t->offsets[i + 1] - t->offsets[i];
        if (m->max_tokens > 0 && n > m->max_tokens) {
            serve_refuse(c, 400, e->input_name, "%s[%lld] has %lld tokens, but %s takes at most %lld", e->input_name,
                         (long long)i, (long long)n, m->id, (long long)m->max_tokens);
            return false;
        }
        for (int64_t k = t->offsets[i]; k < t->offsets[i + 1]; k++)
            if (t->ids[k] >= size) {
                serve_refuse(c, 400, e->input_name, "%s[%lld] has the token %d, but %s has %lld tokens", e->input_name,
                             (long long)i, (int)t->ids[k], m->id, (long long)size);
                return false;
            }
    }
    return true;
}

/* Returns text i, with its field. */
static serve_element element(const serve_embedding *e, int64_t i)
{
    return (serve_element){.field = e->input_name, .index = i, .text = {e->input->text[i], e->input->bytes[i]}};
}

/* Counts the tokens of each text, by which steps are filled: cost [n]. */
static bool count_tokens(serve_call *c, const serve_model *m, const serve_embedding *e, int64_t *cost)
{
    const serve_texts *t = e->input;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->ids) {
            cost[i] = t->offsets[i + 1] - t->offsets[i];
            continue;
        }
        const serve_element p = element(e, i);
        if (!serve_count_tokens(c, m, &p, m->max_tokens, &cost[i]))
            return false;
    }
    return true;
}

/* Refuses the first text that was truncated, if none may be. */
static bool refuse_long(serve_call *c, const serve_model *m, const serve_embedding *e, const bool *truncated)
{
    for (int64_t i = 0; e->refuse_long && i < e->input->n; i++)
        if (truncated[i]) {
            const serve_element p = element(e, i);
            serve_refuse_long(c, m, &p);
            return true;
        }
    return false;
}

static bool check_dims(serve_call *c, const serve_model *m, serve_embedding *e)
{
    e->width = e->dims ? e->dims : m->info.sentence.dim;
    if (e->width <= m->info.sentence.full_dim)
        return true;
    serve_refuse(c, 400, "dimensions", "dimensions: %lld is not from 1 to %lld, the dimensions of %s",
                 (long long)e->width, (long long)m->info.sentence.full_dim, m->id);
    return false;
}

/* Acquires the memory of the vectors and of their text in the answer. */
static bool acquire(serve_call *c, const serve_embedding *e)
{
    enum { TEXT = 12 }; /* bytes of a number as JSON */
    const size_t bytes = (size_t)(e->input->n * e->width) * (sizeof *e->vectors + TEXT);
    if (serve_call_acquire(c, bytes))
        return true;
    serve_refuse_memory(c);
    return false;
}

static bool run_job(serve_call *c, serve_model *m, serve_embedding *e, embed_job *j)
{
    int64_t *cost = malloc((size_t)e->input->n * sizeof *cost);
    const size_t n = (size_t)e->input->n;
    e->vectors = malloc(n * (size_t)e->width * sizeof *e->vectors);
    j->tokens = malloc(n * sizeof *j->tokens);
    j->truncated = calloc(n, sizeof *j->truncated);
    j->vectors = e->vectors;
    j->base = (serve_job){.work = &work, .model = m, .n = e->input->n, .cost = cost};
    bool good = cost && e->vectors && j->tokens && j->truncated;
    if (!good)
        serve_refuse(c, 503, NULL, "there is not enough memory for the answer");
    good = good && count_tokens(c, m, e, cost) && serve_call_run(c, &j->base) && !refuse_long(c, m, e, j->truncated);
    for (int64_t i = 0; good && i < e->input->n; i++) {
        e->tokens += j->tokens[i];
        e->truncated += j->truncated[i];
    }
    free(cost);
    free(j->tokens);
    free(j->truncated);
    return good;
}

bool serve_embed(serve_call *c, serve_model *m, serve_embedding *e)
{
    embed_job j = {.input = e->input};
    if (!find_prompt(c, m, e, &j.prompt) || !check_dims(c, m, e) || (e->input->ids && !check_ids(c, m, e)))
        return false;
    j.width = e->width;
    if (!acquire(c, e) || !run_job(c, m, e, &j))
        return false;
    serve_call_count(c, e->tokens, e->truncated);
    return true;
}

void serve_embedding_free(serve_embedding *e) { free(e->vectors); }
