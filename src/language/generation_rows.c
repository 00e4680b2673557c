/* Assigns rows of the state to sequences and prefixes.
 *
 * The rows of sequences that continue come first, in their order, then those of prefixes. A new sequence begins as a
 * copy of the row with which its prompt shares the longest beginning. The rows share pages of the state, so nothing is
 * copied. Keys and values of f32 and f16 have the same bits however tokens came into the state. Those of bf16 depend on
 * where a prompt was split; therefore only whole parts of it, which the new sequence would compute in the same way, are
 * shared. */
#include "language/generation.h"
#include "util/util.h"

#include <string.h>

/* Returns the number of tokens at the beginning of a sequence that others may share. */
static int64_t usable(const att_generation *s, const att_generation_sequence *q)
{
    const int64_t part = s->o.prompt_tokens;
    return s->exact ? q->done : att_min(q->done, q->prompt) / part * part;
}

/* Returns the number of equal tokens at the beginning of ids [n] and of a sequence's prompt, without the prompt's last
 * token. */
static int64_t common(const att_generation *s, const att_generation_sequence *q, const int32_t *ids, int64_t n)
{
    const int64_t max = att_min(n, q->prompt - 1), part = s->o.prompt_tokens;
    int64_t i = 0;
    while (i < max && ids[i] == q->ids[i])
        i++;
    return s->exact ? i : i / part * part;
}

/* Returns the row that a new sequence copies at first, and sets the number of tokens that it shares. */
static int64_t find_beginning(att_generation *s, att_generation_sequence *q)
{
    int64_t row = 0;
    att_generation_prefix *from = NULL;
    if (q->o.prompt_log_probabilities) /* all its tokens must be computed */
        return row;
    for (int64_t i = 0; i < s->n_prefixes; i++) {
        att_generation_prefix *p = &s->prefix[i];
        const int64_t count = common(s, q, p->ids, p->count);
        if (count > q->cached) {
            from = p;
            row = p->row;
            q->cached = count;
        }
    }
    for (int64_t i = 0; i < s->n; i++) {
        const att_generation_sequence *other = s->sequence[i];
        const int64_t count = other->row < 0 ? 0 : common(s, q, other->ids, usable(s, other));
        if (count > q->cached) {
            from = NULL;
            row = other->row;
            q->cached = count;
        }
    }
    if (from)
        from->used = s->steps;
    q->done = q->cached;
    return row;
}

att_status att_generation_arrange(att_generation *s)
{
    int64_t n = 0;
    if (s->borrowed || !s->moved)
        return ATT_OK;
    for (int64_t i = 0; i < s->n; i++) {
        att_generation_sequence *q = s->sequence[i];
        if (!q->end)
            s->from[n++] = q->row >= 0 ? q->row : find_beginning(s, q);
    }
    for (int64_t i = 0; i < s->n_prefixes; i++)
        s->from[n++] = s->prefix[i].row;
    if (n == 0) /* a state has at least one row */
        s->from[n++] = 0;
    att_status e = att_language_state_select(s->state, n, s->from);
    int64_t row = 0;
    for (int64_t i = 0; !e && i < s->n; i++) {
        att_generation_sequence *q = s->sequence[i];
        if (q->end)
            continue;
        const bool is_new = q->row < 0;
        q->row = row++;
        if (is_new)
            e = att_language_state_truncate(s->state, q->row, q->done);
    }
    for (int64_t i = 0; i < s->n_prefixes; i++)
        s->prefix[i].row = row++;
    if (!e && row == 0)
        e = att_language_state_truncate(s->state, 0, 0);
    s->moved = e != ATT_OK;
    return e;
}

/* ---- prefixes */

/* Frees a prefix, and the state's memory of its row. */
static void remove_prefix(att_generation *s, int64_t i)
{
    att_language_state_truncate(s->state, s->prefix[i].row, 0);
    s->prefix_tokens -= s->prefix[i].count;
    att_free(s->ctx, s->prefix[i].ids);
    s->prefix[i] = s->prefix[--s->n_prefixes];
}

void att_generation_prefixes_free(att_generation *s)
{
    while (s->n_prefixes > 0)
        att_free(s->ctx, s->prefix[--s->n_prefixes].ids);
}

/* Returns whether one of ids [n] and other [m] is the beginning of the other. */
static bool continues(const int32_t *ids, int64_t n, const int32_t *other, int64_t m)
{
    return memcmp(ids, other, (size_t)att_min(n, m) * sizeof *ids) == 0;
}

/* Removes prefixes that a sequence continues. Returns false if a prefix continues the sequence. */
static bool replace_prefixes(att_generation *s, const int32_t *ids, int64_t n)
{
    for (int64_t i = s->n_prefixes - 1; i >= 0; i--) {
        att_generation_prefix *p = &s->prefix[i];
        if (!continues(ids, n, p->ids, p->count))
            continue;
        if (p->count >= n) {
            p->used = s->steps;
            return false;
        }
        remove_prefix(s, i);
    }
    return true;
}

/* Makes room for a prefix of n tokens: removes the prefixes that were not used for the longest time. */
static void remove_oldest(att_generation *s, int64_t n)
{
    while (s->n_prefixes == s->o.max_sequences || s->prefix_tokens + n > s->o.kept_tokens) {
        int64_t oldest = 0;
        for (int64_t i = 1; i < s->n_prefixes; i++)
            oldest = s->prefix[i].used < s->prefix[oldest].used ? i : oldest;
        remove_prefix(s, oldest);
    }
}

/* Keeps the row of a sequence as a prefix. Returns false if it is not worth it, or if there is no memory for its
 * ids. */
static bool keep(att_generation *s, const att_generation_sequence *q)
{
    const int64_t n = usable(s, q);
    if (n == 0 || n > s->o.kept_tokens || !replace_prefixes(s, q->ids, n))
        return false;
    int32_t *ids = att_alloc(s->ctx, (size_t)n, sizeof *ids);
    if (!ids)
        return false;
    memcpy(ids, q->ids, (size_t)n * sizeof *ids);
    remove_oldest(s, n);
    s->prefix[s->n_prefixes++] = (att_generation_prefix){.ids = ids, .count = n, .row = q->row, .used = s->steps};
    s->prefix_tokens += n;
    att_language_state_truncate(s->state, q->row, n);
    return true;
}

void att_generation_release(att_generation *s, att_generation_sequence *q)
{
    if (q->row >= 0 && !s->borrowed && !s->failed && !keep(s, q))
        att_language_state_truncate(s->state, q->row, 0);
    q->row = -1;
    s->moved = true;
}
