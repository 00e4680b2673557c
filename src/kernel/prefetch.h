/* Prefetch lists: rows that are read or written later are fetched into the second-level cache, line by line, between
 * the instructions of a kernel. Only lines of these rows are touched. */
#ifndef ATT_KERNEL_PREFETCH_H
#define ATT_KERNEL_PREFETCH_H

#include "util/util.h"

enum { ATT_CACHE_LINE = 64, ATT_PREFETCH_RUNS = 4 }; /* bytes of a line; runs of rows in a list */

/* Rows with a stride. */
typedef struct att_prefetch_run {
    uintptr_t line;      /* the next line; an integer, as it may pass the last row */
    int64_t left, lines; /* lines left of this row; lines of each row */
    uintptr_t jump;      /* bytes from the end of a row's lines to the next row */
    int64_t rows;        /* rows after this one */
} att_prefetch_run;

/* A list of such rows; fetching consumes it. */
typedef struct att_prefetch {
    int64_t share; /* the largest number of lines that one tile fetches; 0: no limit */
    int next, count;
    att_prefetch_run run[ATT_PREFETCH_RUNS];
} att_prefetch;

/* Empties the list; the runs stay as they are, because writing them takes time. */
static inline void att_prefetch_clear(att_prefetch *list)
{
    list->share = 0;
    list->next = list->count = 0;
}

/* Appends `rows` rows of `bytes`, `stride` bytes apart. Rows without a gap are one. */
static inline void att_prefetch_add(att_prefetch *list, const void *row, int64_t bytes, int64_t stride, int64_t rows)
{
    if (!row || rows <= 0 || bytes == 0)
        return;
    if (stride == bytes) {
        bytes *= rows;
        rows = 1;
    }
    const int64_t lines = att_ceil_div(bytes, ATT_CACHE_LINE);
    list->run[list->count++] = (att_prefetch_run){(uintptr_t)row, lines, lines,
                                                  (uintptr_t)stride - (uintptr_t)(lines * ATT_CACHE_LINE), rows - 1};
}

/* Adjacent lines. */
typedef struct att_prefetch_lines {
    uintptr_t line;
    int64_t left;
} att_prefetch_lines;

/* Removes the next lines from a list, at most `max`; left 0: the list is empty. */
static inline att_prefetch_lines att_prefetch_next(att_prefetch *list, int64_t max)
{
    if (!list || list->next == list->count)
        return (att_prefetch_lines){0, 0};
    att_prefetch_run *run = &list->run[list->next];
    max = list->share && list->share < max ? list->share : max;
    const att_prefetch_lines lines = {run->line, run->left < max ? run->left : max};
    run->line += (uintptr_t)(lines.left * ATT_CACHE_LINE);
    run->left -= lines.left;
    if (run->left == 0) {
        run->line += run->jump;
        run->left = run->lines;
        list->next += run->rows-- == 0;
    }
    return lines;
}

static inline void att_prefetch_line(uintptr_t line) { __builtin_prefetch((const void *)line, 0, 2); }

/* Fetches n lines, or none if fewer are left. */
static inline void att_prefetch_some(att_prefetch_lines *x, int64_t n)
{
    if (x->left < n)
        return;
    for (int64_t i = 0; i < n; i++)
        att_prefetch_line(x->line + (uintptr_t)(i * ATT_CACHE_LINE));
    x->line += (uintptr_t)(n * ATT_CACHE_LINE);
    x->left -= n;
}

#endif
