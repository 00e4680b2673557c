/* Functions for the chapters of `attend explain`.
 *
 * A chapter is a file NAME.c here with a line "// order: N" (its position in the list) and a table entry `const chapter
 * chapter_NAME`; the build finds it. Its text is in both languages, side by side. Its numbers come from calls that are
 * executed: CALL prints a call as it is in the source and executes it, so readers see the code that ran. After the
 * first error all functions do nothing, so a chapter needs no checks. */
#ifndef EXPLAIN_PAGE_H
#define EXPLAIN_PAGE_H

#include "cli/caption/captioner.h"
#include "cli/draw/chart.h"
#include "cli/draw/heatmap.h"
#include "vectors.h"

#include <attend_translate.h>

#include <jansson.h>

#include <stdio.h>

typedef struct text {
    const char *en, *ja;
} text;

enum { PAGE_MAX_BLOCKS = 64 };
enum { PAGE_NOTHING, PAGE_PROSE, PAGE_CODE, PAGE_FIGURES };

typedef struct page {
    FILE *out;
    att_ctx *ctx;
    int japanese;
    int colors;                       /* see terminal_colors() */
    const vectors *own;               /* the user's vectors, or NULL: the chapter's example */
    int64_t query;                    /* the query's number from 1; 0: the chapter chooses */
    const att_translator *translator; /* of a chapter that translates */
    const char *sentence;             /* to translate */
    const att_image_model *images;    /* of a chapter on a picture */
    const cli_captioner *captioner;   /* of a chapter on captions of a picture */
    const char *folder, *picture;     /* the model's folder; the picture's file */
    const char *svg;                  /* NULL, or a file for the last picture */
    const char *title;
    int code;          /* exit code of writing the file */
    att_status status; /* the first error; att_error() has its sentence */
    int step;
    int last;                     /* kind of the last output, one of PAGE_...: decides on empty lines */
    void *block[PAGE_MAX_BLOCKS]; /* freed by page_close */
    int n_blocks;
} page;

typedef struct chapter {
    text about; /* one line for the list */
    att_status (*run)(page *p);
    bool draws;      /* the chapter has a picture */
    bool translates; /* works on a translator and a sentence instead of vectors */
    bool sees;       /* works on a vision model and a picture instead */
    bool captions;   /* works on a captioner and a picture instead */
    bool own_data;   /* works on data of its own instead, which nothing replaces */
} chapter;

/* Returns the text in the page's language. */
const char *page_text(const page *p, text t);

/* Returns zeroed memory, freed with the page; a single zero if out of memory (see p->status). */
float *page_floats(page *p, int64_t count);
/* Returns the dense f32 view [m, n] of a. */
att_tensor page_matrix(page *p, const float *a, int64_t m, int64_t n);
/* Makes a zero matrix and its view. */
float *page_zeros(page *p, int64_t m, int64_t n, att_tensor *view);
void page_close(page *p);

/* Returns the vectors of the user or of the example, and the row of the query: --query, otherwise the second. */
vectors page_vectors(page *p, const vectors *example);
int64_t page_query(page *p, const vectors *v);

/* A text in the page's language, padded to `width` columns, for tables that page_line prints. */
typedef struct page_cell {
    char text[96];
} page_cell;
page_cell page_left(const page *p, text t, int width);
page_cell page_right(const page *p, text t, int width);

void page_title(page *p, text t);
void page_step(page *p, text t);            /* "3  The context vector" */
void page_print(page *p, text format, ...); /* a paragraph, wrapped; the same arguments in both languages */
void page_formula(page *p, const char *formula);
void page_line(page *p, const char *format, ...) ATT_PRINTF(2, 3); /* prints a line of numbers, unchanged */
void page_code(page *p, const char *code);                         /* C code, from #: line breaks are set again */
/* Prints a [m, n] with row labels [m] and column labels [n] (NULL: none), with four decimals, split if too wide. */
void page_table(page *p, const char *const *rows, int64_t m, const char *const *columns, int64_t n, const float *a);
/* Prints a table with other decimals: fewer for large numbers, whose fourth decimal is beyond the precision of f32. */
void page_table_rounded(page *p, int decimals, const char *const *rows, int64_t m, const char *const *columns,
                        int64_t n, const float *a);
/* Prints the first six numbers of m rows [width], with three decimals. */
void page_rows(page *p, const char *const *labels, const float *const *rows, int m, int64_t width);
enum { PAGE_MAX_GRID = 16 };
/* Prints a number for each location of a grid of at most PAGE_MAX_GRID rows: scale * a [grid[0], grid[1]] */
void page_grid(page *p, const float *a, const int64_t grid[2], float scale, int decimals);
void page_heatmap(page *p, const char *const *labels, int64_t n, const float *weights);
/* Names of the axes of attention weights. */
extern const text page_query_name, page_key_name;
void page_picture(page *p, const heatmap *h);                                  /* weights must not be negative */
void page_chart(page *p, const char *x_name, const chart_panel *panel, int n); /* n panels, one below the other */
/* Draws to f as SVG; -1: out of memory. */
typedef int page_draw(FILE *f, const page *p, const void *drawing);
/* Writes a drawing to the file of --svg, if there is one. */
void page_drawing(page *p, page_draw *draw, const void *drawing);
/* Prints whether a and b [count] agree to six digits of the largest number. */
void page_agree(page *p, text what, const float *a, const float *b, int64_t count);
/* Checks agreement to five digits: for softmax, whose weights have the errors of scores with many terms. */
void page_agree_roughly(page *p, text what, const float *a, const float *b, int64_t count);
/* Reads FOLDER/config.json of a model that has been opened. The caller frees *out with json_decref. */
att_status page_config(att_ctx *ctx, const char *folder, json_t **out);
/* Prints the result of a call that may fail: status and message. Out of memory is an error of the page. */
void page_answer(page *p, att_status s);

/* Prints a call, executes it, keeps the first error. */
#define CALL(p, ...)                                                                                                   \
    ((p)->status = (page_code((p), #__VA_ARGS__ ";"), (p)->status == ATT_OK) ? (__VA_ARGS__) : (p)->status)
/* Prints a call, executes it, prints its result: errors are shown. */
#define ANSWER(p, ...)                                                                                                 \
    ((p)->status == ATT_OK ? (page_code((p), #__VA_ARGS__ ";"), page_answer((p), (__VA_ARGS__))) : (void)0)
/* Prints statements and executes them. */
#define LOOP(p, ...)                                                                                                   \
    do {                                                                                                               \
        page_code((p), #__VA_ARGS__);                                                                                  \
        __VA_ARGS__                                                                                                    \
    } while (0)

#endif
