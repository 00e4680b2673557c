#include "decoder/beam_search.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum { NO_ROW = -1 };

/* One hypothesis: a row extended by a token. */
typedef struct hypothesis {
    int64_t row;
    int32_t token;
    double log_probability; /* of the whole sequence */
} hypothesis;

/* One step back: the row of the previous step that a row extends, and the token. */
typedef struct back_pointer {
    int64_t row;
    int32_t token;
} back_pointer;

typedef struct state {
    att_ctx *ctx;
    const att_search *search;
    int64_t sentences, max_rows, rows, steps;
    back_pointer *back_pointers; /* [max_tokens][max_rows] */
    int64_t *sentence;           /* [max_rows] */
    double *score;               /* [max_rows] log probabilities */
    int32_t *ids;                /* [max_rows] last token of each row */
    int64_t *from;               /* [max_rows] rows of the previous step */
    hypothesis *hypotheses;      /* [max_rows][width]: the best of each row, in descending order */
    hypothesis *next;            /* [max_rows] */
    att_top_column *best;        /* [max_rows][width]: tokens with the largest logits */
    double *log_sum;             /* [max_rows]: log-sum-exp of the logits */
    int32_t *except;             /* [n_banned + 1] */
    att_finished *finished;      /* [sentences][beam], best first; missing ones have ids NULL */
    int64_t *n_finished;         /* [sentences] */
} state;

/* Returns the number of hypotheses of a sentence per step. Of 2 * beam hypotheses at least `beam` do not end. */
static int64_t width(const att_search *s) { return s->beam == 1 ? 1 : 2 * s->beam; }

/* ---- the best tokens of each row */

static bool may_end(const state *s) { return s->steps + 1 >= s->search->min_tokens; }

/* Inserts h into hypotheses [n], which has `count` entries sorted by descending probability. The order is stable.
 * Returns the new count. */
static int64_t insert(hypothesis *hypotheses, int64_t n, int64_t count, hypothesis h)
{
    int64_t at = att_min(count, n);
    for (; at > 0 && hypotheses[at - 1].log_probability < h.log_probability; at--)
        if (at < n)
            hypotheses[at] = hypotheses[at - 1];
    if (at < n)
        hypotheses[at] = h;
    return att_min(count + 1, n);
}

/* Returns the number of tokens of a sentence's prefix. */
static int64_t prefix_of(const state *s, int64_t sentence)
{
    const int64_t *offsets = s->search->prefix_offsets;
    return offsets ? offsets[sentence + 1] - offsets[sentence] : 0;
}

static bool is_forced(const state *s, int64_t row) { return s->steps < prefix_of(s, s->sentence[row]); }

static bool must_end(const state *s) { return s->search->force_end && s->steps + 1 == s->search->max_tokens; }

/* Returns the tokens that must not follow. */
static att_excluded_columns except(const state *s)
{
    att_excluded_columns e = {
        .size = sizeof e, .column = s->except, .n = s->search->n_banned, .in_log_sum = !s->search->renormalize};
    if (e.n)
        memcpy(s->except, s->search->banned, (size_t)e.n * sizeof *s->except);
    if (!may_end(s))
        s->except[e.n++] = s->search->end;
    return e;
}

/* Computes s->best and s->log_sum from the model's output x for each row. Greedy search without scores needs only the
 * largest logit. */
static att_status find_best(state *s, att_tape *t, att_var *x, const att_nn_linear *output)
{
    const att_excluded_columns without = except(s), *e = without.n ? &without : NULL;
    if (s->search->beam > 1 || !s->search->no_scores)
        return att_linear_topk(t, x, output->weight, output->bias, e, width(s->search), s->best, s->log_sum);
    for (int64_t r = 0; r < s->rows; r++)
        s->log_sum[r] = 0;
    return att_linear_argmax(t, x, output->weight, output->bias, e, s->best);
}

static int32_t forced_token(const state *s, int64_t row)
{
    return is_forced(s, row) ? s->search->prefix[s->search->prefix_offsets[s->sentence[row]] + s->steps]
                             : s->search->end;
}

/* Returns whether any row has a choice. */
static bool must_rank(const state *s)
{
    int64_t r = 0;
    while (r < s->rows && is_forced(s, r))
        r++;
    return r < s->rows && !must_end(s);
}

/* Extends each row by its best tokens, or by the next token of its prefix. A forced token has log probability 0. */
static att_status rank_rows(state *s, att_tape *t, att_var *x, const att_nn_linear *output)
{
    const int64_t n = width(s->search);
    att_tensor value;
    att_status e = att_var_value(t, x, &value);
    e = e || !must_rank(s) ? e : find_best(s, t, x, output);
    for (int64_t r = 0; !e && r < s->rows; r++) {
        const att_top_column *best = s->best + r * n;
        hypothesis *hypotheses = s->hypotheses + r * n;
        const bool forced = is_forced(s, r) || must_end(s);
        if (!forced && (isnan(s->log_sum[r]) || isnan(best->value) || best->value == INFINITY))
            return att_fail(s->ctx, ATT_ERR_FORMAT, "the model's logits after %lld tokens are not numbers",
                            (long long)s->steps);
        for (int64_t i = 0; i < n; i++)
            if (forced)
                hypotheses[i] = (hypothesis){i == 0 ? r : NO_ROW, forced_token(s, r), s->score[r]};
            else
                hypotheses[i] = (hypothesis){best[i].column < 0 ? NO_ROW : r, (int32_t)best[i].column,
                                             s->score[r] + (double)best[i].value - s->log_sum[r]};
    }
    return e;
}

/* ---- finished hypotheses */

/* Returns the tokens of a hypothesis, by following the back pointers. */
static int32_t *trace_back(const state *s, const hypothesis *h, int64_t *count)
{
    const bool ends = h->token == s->search->end;
    *count = s->steps + !ends;
    int32_t *ids = att_alloc(s->ctx, (size_t)*count + 1, sizeof *ids);
    int64_t row = h->row;
    if (ids && !ends)
        ids[s->steps] = h->token;
    for (int64_t i = s->steps; ids && i > 0; i--) {
        const back_pointer *l = &s->back_pointers[(i - 1) * s->max_rows + row];
        ids[i - 1] = l->token;
        row = l->row;
    }
    return ids;
}

/* Adds a finished hypothesis if it is among the `beam` best. */
static att_status keep_finished(state *s, int64_t sentence, const hypothesis *h)
{
    const int64_t beam = s->search->beam;
    att_finished *best = s->finished + sentence * beam;
    att_finished f = {.steps = s->steps + 1 - prefix_of(s, sentence), .log_probability = h->log_probability};
    f.score = h->log_probability / pow((double)f.steps, s->search->length_penalty);
    int64_t at = s->n_finished[sentence];
    while (at > 0 && best[at - 1].score < f.score)
        at--;
    if (at == beam)
        return ATT_OK;
    f.ids = trace_back(s, h, &f.count);
    if (!f.ids)
        return ATT_ERR_MEMORY;
    const int64_t last = s->n_finished[sentence] < beam ? s->n_finished[sentence]++ : beam - 1;
    att_free(s->ctx, best[last].ids);
    memmove(best + at + 1, best + at, (size_t)(last - at) * sizeof *best);
    best[at] = f;
    return ATT_OK;
}

/* Returns whether a sentence is finished: no extension of a hypothesis with this log probability can be among the
 * best. */
static bool is_done(const state *s, int64_t sentence, double log_probability)
{
    const int64_t beam = s->search->beam;
    if (s->n_finished[sentence] < beam)
        return false;
    return beam == 1 || s->search->early_stopping ||
           log_probability / pow((double)(s->steps + 1 - prefix_of(s, sentence)), s->search->length_penalty) <=
               s->finished[sentence * beam + beam - 1].score;
}

/* ---- one step */

/* Selects the next rows of a sentence, whose current rows are [first, last), and writes them to `next` from index
 * `count`. */
static att_status extend(state *s, int64_t first, int64_t last, int64_t *count)
{
    const att_search *o = s->search;
    const int64_t n = width(o), sentence = s->sentence[first], begin = *count;
    hypothesis *best = s->hypotheses + first * n; /* of all rows, merged into the first row's */
    int64_t n_best = n;
    while (n_best > 0 && best[n_best - 1].row == NO_ROW)
        n_best--;
    for (int64_t i = n; i < (last - first) * n; i++)
        if (best[i].row != NO_ROW)
            n_best = insert(best, n, n_best, best[i]);
    if (n_best == 0)
        return att_fail(s->ctx, ATT_ERR_FORMAT, "after %lld tokens none may follow: all %lld are banned",
                        (long long)s->steps, (long long)o->vocabulary);
    for (int64_t i = 0; i < n_best; i++)
        if (best[i].token != o->end && s->steps + 1 < o->max_tokens) {
            if (*count - begin < o->beam)
                s->next[(*count)++] = best[i];
        } else if (i < o->beam && keep_finished(s, sentence, &best[i])) {
            return ATT_ERR_MEMORY;
        }
    if (*count > begin && is_done(s, sentence, s->next[begin].log_probability))
        *count = begin;
    return ATT_OK;
}

/* Extends the rows of all sentences. Then s->next has the next rows, and *n is their number. */
static att_status extend_all(state *s, int64_t *n)
{
    att_status e = ATT_OK;
    *n = 0;
    for (int64_t first = 0, last; !e && first < s->rows; first = last) {
        for (last = first; last < s->rows && s->sentence[last] == s->sentence[first];)
            last++;
        e = extend(s, first, last, n);
    }
    return e;
}

static att_status replace_rows(state *s, const att_generator *model, int64_t n)
{
    bool same = n == s->rows;
    for (int64_t b = 0; b < n; b++) {
        const hypothesis *h = &s->next[b];
        s->from[b] = h->row;
        s->back_pointers[s->steps * s->max_rows + b] = (back_pointer){h->row, h->token};
        s->score[b] = h->log_probability;
        s->ids[b] = h->token;
        same = same && h->row == b;
    }
    for (int64_t b = 0; b < n; b++) /* from[b] may be smaller than b */
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
    e = e ? e : extend_all(s, &n);
    e = e ? e : replace_rows(s, model, n);
    att_tape_reset(t);
    return e;
}

/* ---- search */

static att_status allocate(state *s)
{
    const att_search *o = s->search;
    const size_t rows = (size_t)s->max_rows;
    s->back_pointers = att_alloc(s->ctx, (size_t)o->max_tokens * rows, sizeof *s->back_pointers);
    s->sentence = att_alloc(s->ctx, rows, sizeof *s->sentence);
    s->score = att_alloc(s->ctx, rows, sizeof *s->score);
    s->ids = att_alloc(s->ctx, rows, sizeof *s->ids);
    s->from = att_alloc(s->ctx, rows, sizeof *s->from);
    s->hypotheses = att_alloc(s->ctx, rows * (size_t)width(o), sizeof *s->hypotheses);
    s->next = att_alloc(s->ctx, rows, sizeof *s->next);
    s->best = att_alloc(s->ctx, rows * (size_t)width(o), sizeof *s->best);
    s->log_sum = att_alloc(s->ctx, rows, sizeof *s->log_sum);
    s->except = att_alloc(s->ctx, (size_t)o->n_banned + 1, sizeof *s->except);
    s->finished = att_calloc(s->ctx, rows, sizeof *s->finished);
    s->n_finished = att_calloc(s->ctx, (size_t)s->sentences, sizeof *s->n_finished);
    return s->back_pointers && s->sentence && s->score && s->ids && s->from && s->hypotheses && s->next && s->best &&
                   s->log_sum && s->except && s->finished && s->n_finished
               ? ATT_OK
               : ATT_ERR_MEMORY;
}

static void clean(state *s)
{
    for (int64_t i = 0; s->finished && i < s->max_rows; i++)
        att_free(s->ctx, s->finished[i].ids);
    void *const all[] = {s->back_pointers, s->sentence, s->score,   s->ids,    s->from,     s->hypotheses,
                         s->next,          s->best,     s->log_sum, s->except, s->finished, s->n_finished};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(s->ctx, all[i]);
}

static void hand_over(state *s, att_finished *out)
{
    const att_search *o = s->search;
    for (int64_t i = 0; i < s->sentences; i++)
        for (int64_t k = 0; k < o->n_best; k++) {
            out[i * o->n_best + k] = s->finished[i * o->beam + k];
            s->finished[i * o->beam + k].ids = NULL;
        }
}

att_status att_search_run(const att_model *m, const att_search *search, const att_generator *model, int64_t sentences,
                          att_finished *out)
{
    state s = {.ctx = m->ctx,
               .search = search,
               .sentences = sentences,
               .rows = sentences,
               .max_rows = sentences * search->beam};
    att_tape *t = NULL;
    att_status e = allocate(&s);
    e = e ? e : att_model_tape(m, &t);
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
