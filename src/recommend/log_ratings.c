/* Recognizes ratings in the column of times. */
#include "recommend/interactions.h"

#include "util/util.h"

#include <math.h>

enum { MAX = 100, MAX_RATING = 10, VALUES = 4 * MAX + 1, WORDS = (VALUES + 63) / 64 };

/* A set of multiples of 0.5 from -MAX to MAX. */
typedef struct values {
    uint64_t bits[WORDS];
} values;

/* Adds x; returns whether the set had it. */
static bool add(values *v, double x)
{
    const int i = (int)(2 * x) + 2 * MAX;
    const uint64_t bit = UINT64_C(1) << i % 64;
    const bool had = v->bits[i / 64] & bit;
    v->bits[i / 64] |= bit;
    return had;
}

typedef struct seen {
    values all;
    int64_t distinct, ties; /* ties: the number of actions whose value another action of the user has */
    int64_t up, down;       /* pairs of a user's neighboring actions */
    bool whole, fractions;  /* whether all are integers; whether some are not multiples of 0.5, which are not in the
                             * sets */
    double low, high;
} seen;

/* Counts the numbers of a user. Returns false if one of them is not small. */
static bool see_user(seen *s, const double *x, int64_t n)
{
    values own = {{0}};
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= MAX))
            return false;
        s->whole = s->whole && x[i] == floor(x[i]);
        s->low = fmin(s->low, x[i]);
        s->high = fmax(s->high, x[i]);
        s->up += i > 0 && x[i] > x[i - 1];
        s->down += i > 0 && x[i] < x[i - 1];
        if (2 * x[i] == floor(2 * x[i])) {
            s->distinct += !add(&s->all, x[i]);
            s->ties += add(&own, x[i]);
        } else
            s->fractions = true;
    }
    return true;
}

/* If the numbers of each user only rise, they give the same order as the file, so they do no harm. Numbers up to 10 are
 * ratings, unless each is an integer that occurs once for a user: these are positions of actions. Numbers beyond 10 are
 * positions as often as ratings; they count as ratings if they occur often and in no order. */
bool att_log_has_ratings(const att_interactions *log, double *low, double *high)
{
    seen s = {.whole = true, .low = INFINITY, .high = -INFINITY};
    const int64_t users = log->info.users;
    for (int64_t u = 0; u < users; u++)
        if (!see_user(&s, log->time + log->offsets[u], log->offsets[u + 1] - log->offsets[u]))
            return false;
    *low = s.low;
    *high = s.high;
    if (s.up > 0 && s.down == 0)
        return false;
    if (fmax(-s.low, s.high) <= MAX_RATING)
        return s.ties > 0 || (s.fractions && s.up > 0 && s.down > 0);
    return s.ties > 0 && s.whole && log->info.actions >= 4 * s.distinct &&
           10 * (s.up < s.down ? s.up : s.down) > s.up + s.down;
}
