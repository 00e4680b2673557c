/* Patterns for names of parameters, whose parts are separated by dots: finds the names that they match, and suggests a
 * name for a pattern that matches none. */
#ifndef ATT_UTIL_PATTERN_H
#define ATT_UTIL_PATTERN_H

#include "attend_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct att_patterns {
    const char *const *list; /* [n] */
    int64_t n;
} att_patterns;

/* Returns whether the pattern matches name, or its beginning up to a dot. '*' stands for any characters. */
static inline bool att_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL; /* the last '*', and the position at which the text after it was tried */
    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (!*pattern && (!*name || *name == '.')) {
            return true;
        } else if (*name && *pattern == *name) {
            pattern++, name++;
        } else if (star && *from) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
}

static inline bool att_patterns_match(const att_patterns *p, const char *name)
{
    for (int64_t i = 0; i < p->n; i++)
        if (att_pattern_matches(p->list[i], name))
            return true;
    return false;
}

enum { ATT_PATTERN_NAME = 96, ATT_PATTERN_SHOWN = 3 };

/* Returns the number of edits that change a to b (Levenshtein 1966). Only the first characters of each count. */
static inline int att_edit_distance(const char *a, const char *b)
{
    int row[ATT_PATTERN_NAME];
    const int n = (int)strnlen(b, ATT_PATTERN_NAME - 1);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] && i < ATT_PATTERN_NAME; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int replaced = diagonal + (a[i - 1] != b[j - 1]);
            const int other = (row[j - 1] < row[j] ? row[j - 1] : row[j]) + 1;
            diagonal = row[j];
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[n];
}

/* The best suggestion until now. */
typedef struct att_pattern_best {
    char name[ATT_PATTERN_SHOWN][ATT_PATTERN_NAME];
    int distance[ATT_PATTERN_SHOWN];
    int n;
} att_pattern_best;

static inline void att_pattern_add(att_pattern_best *b, const char *name, int distance)
{
    int at = b->n;
    for (int i = 0; i < b->n; i++)
        if (!strcmp(b->name[i], name))
            return;
    while (at > 0 && b->distance[at - 1] > distance)
        at--;
    if (at == ATT_PATTERN_SHOWN)
        return;
    b->n += b->n < ATT_PATTERN_SHOWN;
    for (int i = b->n - 1; i > at; i--) {
        memcpy(b->name[i], b->name[i - 1], sizeof b->name[i]);
        b->distance[i] = b->distance[i - 1];
    }
    snprintf(b->name[at], sizeof b->name[at], "%s", name);
    b->distance[at] = distance;
}

/* Adds suggestions for a pattern: name, and each of its beginnings up to a dot. */
static inline void att_pattern_compare(att_pattern_best *b, const char *pattern, const char *name)
{
    char part[ATT_PATTERN_NAME];
    for (const char *end = name; end; end = *end ? end : NULL) {
        end += *end == '.';
        end += strcspn(end, ".");
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        att_pattern_add(b, part, att_edit_distance(pattern, part));
    }
}

/* Returns the error of a pattern that matches none of n names; name(user, i) is one of them. */
static inline att_status att_pattern_fail(att_ctx *ctx, const char *pattern, int64_t n,
                                          const char *(*name)(const void *user, int64_t i), const void *user)
{
    att_pattern_best b = {.n = 0};
    char parts[256] = "", last[ATT_PATTERN_NAME] = "";
    for (int64_t i = 0; i < n; i++) {
        const char *one = name(user, i);
        char part[ATT_PATTERN_NAME];
        snprintf(part, sizeof part, "%.*s", (int)strcspn(one, "."), one);
        const size_t used = strlen(parts);
        if (strcmp(part, last) != 0 && used + strlen(part) + 8 < sizeof parts)
            snprintf(parts + used, sizeof parts - used, "%s%s", used ? ", " : "", part);
        memcpy(last, part, sizeof last);
        att_pattern_compare(&b, pattern, one);
    }
    return att_fail(ctx, ATT_ERR_ARGUMENT,
                    "freeze: \"%.80s\" matches no parameter; nearest are %s%s%s%s%s; the parts are %s", pattern,
                    b.n > 0 ? b.name[0] : "none", b.n > 1 ? ", " : "", b.n > 1 ? b.name[1] : "", b.n > 2 ? ", " : "",
                    b.n > 2 ? b.name[2] : "", parts);
}

/* Checks that there are patterns, each of some characters. */
static inline att_status att_patterns_valid(att_ctx *ctx, const att_patterns *p)
{
    if (p->n < 0 || (p->n > 0 && !p->list))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n_freeze is %lld with %s freeze", (long long)p->n,
                        p->list ? "this" : "no");
    for (int64_t i = 0; i < p->n; i++)
        if (!p->list[i] || !*p->list[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "freeze[%lld] is %s", (long long)i, p->list[i] ? "empty" : "NULL");
    return ATT_OK;
}

/* Checks that each pattern matches one of n names. */
static inline att_status att_patterns_check(att_ctx *ctx, const att_patterns *p, int64_t n,
                                            const char *(*name)(const void *user, int64_t i), const void *user)
{
    for (int64_t i = 0; i < p->n; i++) {
        bool matches = false;
        for (int64_t k = 0; k < n && !matches; k++)
            matches = att_pattern_matches(p->list[i], name(user, k));
        if (!matches)
            return att_pattern_fail(ctx, p->list[i], n, name, user);
    }
    return ATT_OK;
}

#endif
