#include "model/search.h"
#include "io/util.h"

#include <math.h>
#include <string.h>

enum { NO_ROW = -1 };

/* A way on: a row goes on with a token. */
typedef struct way {
    int64_t row;
    int32_t token;
    double log_probability; /* of the whole text */
} way;

/* What a row has come by, a step ago. */
typedef struct link {
    int64_t row;
    int32_t token;
} link;

typedef struct state {
    att_ctx *ctx;
    const att_search *search;
    int64_t sentences, most_rows, rows, steps;
    link *links;       /* [max_tokens][most_rows] */
    int64_t *sentence; /* [most_rows] */
    double *score;     /* [most_rows] log probabilities */
    int32_t *ids;      /* [most_rows] */
    int64_t *from;     /* [most_rows] */
    way *ways;         /* [most_rows][width]: of a row, the best first */
    way *next;         /* [most_rows] */
    att_largest *best; /* [most_rows][width]: tokens by their logits */
    double *log_sum;   /* [most_rows]: of e to the logits */
    int32_t *except;   /* [n_banned + 1] */
    att_found *found;  /* [sentences][beam], the best first; ids of what is not there are NULL */
    int64_t *n_found;  /* [sentences] */
} state;

/* Continuations that are looked at: ends among them leave `beam` that go on. */
static int64_t width(const att_search *s) { return s->beam == 1 ? 1 : 2 * s->beam; }

/* ---- the best tokens of a row */

static bool may_end(const state *s) { return s->steps + 1 >= s->search->min_tokens; }

/* Into ways [n] of `count`, the best first and the first of equals first; returns the count after it. */
static int64_t insert(way *ways, int64_t n, int64_t count, way w)
{
    int64_t at = att_min(count, n);
    for (; at > 0 && ways[at - 1].log_probability < w.log_probability; at--)
        if (at < n)
            ways[at] = ways[at - 1];
    if (at < n)
        ways[at] = w;
    return att_min(count + 1, n);
}

static bool must_end(const state *s) { return s->search->force_end && s->steps + 1 == s->search->max_tokens; }

/* What may not follow */
static att_except except(const state *s)
{
    att_except e = {.column = s->except, .n = s->search->n_banned, .counted = !s->search->renormalize};
    if (e.n)
        memcpy(s->except, s->search->banned, (size_t)e.n * sizeof *s->except);
    if (!may_end(s))
        s->except[e.n++] = s->search->end;
    return e;
}

/* s->best and s->log_sum, of rows x that the model makes logits of. Greedy search needs the largest logits alone where
 * nobody asks for probabilities. */
static att_status find_best(state *s, att_tape *t, att_var *x, const att_nn_linear *output)
{
    const att_except without = except(s), *e = without.n ? &without : NULL;
    if (s->search->beam > 1 || !s->search->texts_alone)
        return att_linear_top(t, x, output->weight, output->bias, e, width(s->search), s->best, s->log_sum);
    for (int64_t r = 0; r < s->rows; r++)
        s->log_sum[r] = 0;
    return att_linear_argmax(t, x, output->weight, output->bias, e, s->best);
}

/* The best first. An end that is forced costs nothing. */
static att_status rank_rows(state *s, att_tape *t, att_var *x, const att_nn_linear *output)
{
    const int64_t n = width(s->search);
    att_tensor value;
    att_status e = att_read(t, x, &value);
    e = e || must_end(s) ? e : find_best(s, t, x, output);
    for (int64_t r = 0; !e && r < s->rows; r++) {
        const att_largest *best = s->best + r * n;
        way *ways = s->ways + r * n;
        if (!must_end(s) && (isnan(s->log_sum[r]) || isnan(best->value) || best->value == INFINITY))
            return att_fail(s->ctx, ATT_ERR_FORMAT, "the model's logits after %lld tokens are not numbers",
                            (long long)s->steps);
        for (int64_t i = 0; i < n; i++)
            if (must_end(s))
                ways[i] = (way){i == 0 ? r : NO_ROW, s->search->end, s->score[r]};
            else
                ways[i] = (way){best[i].column < 0 ? NO_ROW : r, (int32_t)best[i].column,
                                s->score[r] + (double)best[i].value - s->log_sum[r]};
    }
    return e;
}

/* ---- what has ended */

/* The tokens of a row, last links first, and one more. */
static int32_t *spell(const state *s, const way *w, int64_t *count)
{
    const bool ends = w->token == s->search->end;
    *count = s->steps + !ends;
    int32_t *ids = att_alloc(s->ctx, (size_t)*count + 1, sizeof *ids);
    int64_t row = w->row;
    if (ids && !ends)
        ids[s->steps] = w->token;
    for (int64_t i = s->steps; ids && i > 0; i--) {
        const link *l = &s->links[(i - 1) * s->most_rows + row];
        ids[i - 1] = l->token;
        row = l->row;
    }
    return ids;
}

/* Keeps a text that has ended, if it is one of the best. */
static att_status keep(state *s, int64_t sentence, const way *w)
{
    const int64_t beam = s->search->beam;
    att_found *best = s->found + sentence * beam;
    att_found f = {.steps = s->steps + 1, .log_probability = w->log_probability};
    f.score = w->log_probability / pow((double)f.steps, s->search->length_penalty);
    int64_t at = s->n_found[sentence];
    while (at > 0 && best[at - 1].score < f.score)
        at--;
    if (at == beam)
        return ATT_OK;
    f.ids = spell(s, w, &f.count);
    if (!f.ids)
        return ATT_ERR_MEMORY;
    const int64_t last = s->n_found[sentence] < beam ? s->n_found[sentence]++ : beam - 1;
    att_free(s->ctx, best[last].ids);
    memmove(best + at + 1, best + at, (size_t)(last - at) * sizeof *best);
    best[at] = f;
    return ATT_OK;
}

/* Can what goes on with this log probability, at best, be no longer among the best? */
static bool decided(const state *s, int64_t sentence, double log_probability)
{
    const int64_t beam = s->search->beam;
    if (s->n_found[sentence] < beam)
        return false;
    return beam == 1 || s->search->early_stopping ||
           log_probability / pow((double)(s->steps + 1), s->search->length_penalty) <=
               s->found[sentence * beam + beam - 1].score;
}

/* ---- one step */

/* The next rows of a sentence, of which rows [first, last) are now: into next, from `count` on. */
static att_status go_on(state *s, int64_t first, int64_t last, int64_t *count)
{
    const att_search *o = s->search;
    const int64_t n = width(o), sentence = s->sentence[first], begin = *count;
    way *best = s->ways + first * n; /* rows' ways one after the other: merged into the first's place */
    int64_t found = n;
    while (found > 0 && best[found - 1].row == NO_ROW)
        found--;
    for (int64_t i = n; i < (last - first) * n; i++)
        if (best[i].row != NO_ROW)
            found = insert(best, n, found, best[i]);
    if (found == 0)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "after %lld tokens none may follow: all %lld are banned",
                        (long long)s->steps, (long long)o->vocabulary);
    for (int64_t i = 0; i < found; i++)
        if (best[i].token != o->end && s->steps + 1 < o->max_tokens) {
            if (*count - begin < o->beam)
                s->next[(*count)++] = best[i];
        } else if (i < o->beam && keep(s, sentence, &best[i])) {
            return ATT_ERR_MEMORY;
        }
    if (*count > begin && decided(s, sentence, s->next[begin].log_probability))
        *count = begin;
    return ATT_OK;
}

/* All sentences; s->next are then the next rows, n of them. */
static att_status go_on_all(state *s, int64_t *n)
{
    att_status e = ATT_OK;
    *n = 0;
    for (int64_t first = 0, last; !e && first < s->rows; first = last) {
        for (last = first; last < s->rows && s->sentence[last] == s->sentence[first];)
            last++;
        e = go_on(s, first, last, n);
    }
    return e;
}

static att_status take_rows(state *s, const att_generator *model, int64_t n)
{
    bool same = n == s->rows;
    for (int64_t b = 0; b < n; b++) {
        const way *w = &s->next[b];
        s->from[b] = w->row;
        s->links[s->steps * s->most_rows + b] = (link){w->row, w->token};
        s->score[b] = w->log_probability;
        s->ids[b] = w->token;
        same = same && w->row == b;
    }
    for (int64_t b = 0; b < n; b++) /* from[b] may be below b */
        s->next[b].row = s->sentence[s->from[b]];
    for (int64_t b = 0; b < n; b++)
        s->sentence[b] = s->next[b].row;
    s->rows = n;
    s->steps++;
    return n == 0 || same ? ATT_OK : model->select(model->user, n, s->from);
}

static att_status step(state *s, const att_generator *model, att_tape *t)
{
    int64_t n;
    att_status e = rank_rows(s, t, model->step(model->user, t, s->ids), model->output);
    e = e ? e : go_on_all(s, &n);
    e = e ? e : take_rows(s, model, n);
    att_tape_reset(t);
    return e;
}

/* ---- the whole */

static att_status allocate(state *s)
{
    const att_search *o = s->search;
    const size_t rows = (size_t)s->most_rows;
    s->links = att_alloc(s->ctx, (size_t)o->max_tokens * rows, sizeof *s->links);
    s->sentence = att_alloc(s->ctx, rows, sizeof *s->sentence);
    s->score = att_alloc(s->ctx, rows, sizeof *s->score);
    s->ids = att_alloc(s->ctx, rows, sizeof *s->ids);
    s->from = att_alloc(s->ctx, rows, sizeof *s->from);
    s->ways = att_alloc(s->ctx, rows * (size_t)width(o), sizeof *s->ways);
    s->next = att_alloc(s->ctx, rows, sizeof *s->next);
    s->best = att_alloc(s->ctx, rows * (size_t)width(o), sizeof *s->best);
    s->log_sum = att_alloc(s->ctx, rows, sizeof *s->log_sum);
    s->except = att_alloc(s->ctx, (size_t)o->n_banned + 1, sizeof *s->except);
    s->found = att_calloc(s->ctx, rows, sizeof *s->found);
    s->n_found = att_calloc(s->ctx, (size_t)s->sentences, sizeof *s->n_found);
    return s->links && s->sentence && s->score && s->ids && s->from && s->ways && s->next && s->best && s->log_sum &&
                   s->except && s->found && s->n_found
               ? ATT_OK
               : ATT_ERR_MEMORY;
}

static void clean(state *s)
{
    for (int64_t i = 0; s->found && i < s->most_rows; i++)
        att_free(s->ctx, s->found[i].ids);
    void *const all[] = {s->links, s->sentence, s->score,   s->ids,    s->from,  s->ways,
                         s->next,  s->best,     s->log_sum, s->except, s->found, s->n_found};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(s->ctx, all[i]);
}

static void hand_over(state *s, att_found *out)
{
    const att_search *o = s->search;
    for (int64_t i = 0; i < s->sentences; i++)
        for (int64_t k = 0; k < o->n_best; k++) {
            out[i * o->n_best + k] = s->found[i * o->beam + k];
            s->found[i * o->beam + k].ids = NULL;
        }
}

att_status att_search_run(att_ctx *ctx, const att_search *search, const att_generator *model, int64_t sentences,
                          att_found *out)
{
    state s = {
        .ctx = ctx, .search = search, .sentences = sentences, .rows = sentences, .most_rows = sentences * search->beam};
    att_tape *t = NULL;
    att_status e = allocate(&s);
    e = e ? e : att_tape_new(ctx, NULL, &t);
    for (int64_t i = 0; !e && i < sentences; i++) {
        s.sentence[i] = i;
        s.score[i] = 0;
        s.ids[i] = search->start;
    }
    while (!e && s.rows > 0)
        e = step(&s, model, t);
    if (!e)
        hand_over(&s, out);
    att_tape_free(t);
    clean(&s);
    return e;
}
