#include "maps.h"
#include "cli/caption/caption_maps.h"
#include "cli/draw/color.h"
#include "cli/draw/picture.h"
#include "cli/draw/thumbnails.h"
#include "cli/vision/image_attention.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

static const char *file_name(const attended *a)
{
    const char *path = strcmp(a->asked->argument, "-") ? a->asked->argument : "standard input",
               *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- Vision models --------------------------------------------------------------- */

static void print_image_json(const attended *a, const image_attention *map)
{
    char text[ATTENTION_NAME];
    cli_json j = attention_json(a, a->layer, a->head);
    if (a->asked->from >= 0)
        cli_json_integer(&j, "token", a->asked->from);
    cli_json_string(&j, "from",
                    map->mean ? "patches" : attention_source_name(a, a->asked->from < 0 ? 0 : a->asked->from, text));
    cli_json_matrix(&j, "weights", map->weights, map->seen.grid[0], map->seen.grid[1]);
    cli_json_end(&j);
}

int attention_show_image(attended *a)
{
    picture p;
    att_trace *trace;
    image_attention map = {0};
    int code = image_attention_check(&a->m.vision, a->layer, a->head);
    if (!code)
        code = attention_check_from(a, a->info.source);
    if (!code)
        code = attended_trace(a, a->layer, false, true, &trace);
    if (!code)
        code = image_attention_set(&map, &a->m.vision, trace, &(const image_row){a->layer, a->head, a->asked->from});
    if (code)
        return code;
    if (a->asked->svg)
        code = picture_open(&p, a->asked->svg);
    if (!code && a->asked->svg)
        code = picture_close(&p, image_attention_svg(p.svg, file_name(a), &map));
    if (!code && a->asked->json)
        print_image_json(a, &map);
    else if (!code)
        image_attention_terminal(stdout, &map, terminal_colors(stdout));
    image_attention_free(&map);
    return code;
}

/* ---- Captioners ------------------------------------------------------------------ */

/* The words that are shown: all, or that of --from */
typedef struct words {
    const attended *a;
    int64_t first, n;
    int64_t grid[2];
    float *weights; /* [n, grid[0] * grid[1]] */
    uint8_t *cells; /* for printing, of the same size */
} words;

static void print_words_json(const words *w)
{
    cli_json j = attention_json(w->a, w->a->attention.layer, w->a->head);
    if (w->a->asked->from >= 0)
        cli_json_integer(&j, "from", w->first);
    cli_json_strings(&j, "words", w->a->query + w->first, w->n);
    cli_json_array(&j, "grid");
    cli_json_integer(&j, NULL, w->grid[0]);
    cli_json_integer(&j, NULL, w->grid[1]);
    cli_json_end(&j);
    cli_json_matrix(&j, "weights", w->weights, w->n, w->grid[0] * w->grid[1]);
    cli_json_end(&j);
}

/* Returns the words with one space between them, malloc'd. */
static char *join(const words *w)
{
    size_t bytes = 1;
    for (int64_t i = 0; i < w->n; i++)
        bytes += strlen(w->a->query[w->first + i]) + 1;
    char *text = malloc(bytes), *to = text;
    for (int64_t i = 0; text && i < w->n; i++)
        to += sprintf(to, "%s%s", i ? " " : "", w->a->query[w->first + i]);
    return text;
}

static int draw_words(const words *w)
{
    const attended *a = w->a;
    picture p;
    char heads[96], about[200];
    att_image_caption caption = {.text = join(w), .ids = a->target + w->first, .count = w->n};
    caption_maps maps = {.m = &a->m.captioner,
                         .caption = &caption,
                         .seen.size = sizeof maps.seen,
                         .weights = w->weights,
                         .weights_name = about};
    int code = caption.text ? cli_status(a->m.base.ctx, att_trace_describe(a->trace, &maps.seen)) : cli_fail_memory();
    attention_heads_name(a, heads, sizeof heads);
    snprintf(about, sizeof about, "Attention to %lld x %lld locations before each word: %s", (long long)w->grid[0],
             (long long)w->grid[1], heads);
    if (!code)
        code = picture_open(&p, a->asked->svg);
    if (!code)
        code = picture_close(&p, caption_maps_svg(p.svg, file_name(a), &maps));
    free(caption.text);
    return code;
}

static void print_words(const words *w)
{
    const int64_t rows = w->grid[0], columns = w->grid[1], height = (rows + 1) / 2; /* characters are tall */
    char heads[96];
    for (int64_t i = 0; i < w->n; i++)
        thumbnail_pool(w->weights + i * rows * columns, rows, columns, height, columns,
                       w->cells + i * height * columns);
    attention_heads_name(w->a, heads, sizeof heads);
    printf("%s: what each word gets from %lld x %lld locations, in parts of its largest weight.\n\n", heads,
           (long long)rows, (long long)columns);
    thumbnails_terminal(stdout,
                        &(const thumbnails){.ctx = w->a->m.base.ctx,
                                            .row = (const char *const[]){""},
                                            .column = w->a->query + w->first,
                                            .rows = 1,
                                            .columns = w->n,
                                            .height = height,
                                            .width = columns,
                                            .cells = w->cells},
                        terminal_colors(stdout));
}

/* Shows the maps of words. The picture comes first, because the reader of standard output may end the process. */
static int show_words(words *w)
{
    const attended *a = w->a;
    const int64_t index = att_trace_find(a->trace, a->side, a->layer);
    w->weights = malloc((size_t)(w->n * a->attention.keys) * sizeof *w->weights);
    w->cells = malloc((size_t)(w->n * a->attention.keys));
    int code = w->weights && w->cells
                   ? cli_status(a->m.base.ctx, att_trace_weights(a->trace, index, a->head, w->first, w->n, w->weights))
                   : cli_fail_memory();
    if (!code && a->asked->svg)
        code = draw_words(w);
    if (!code)
        (a->asked->json ? print_words_json : print_words)(w);
    free(w->weights);
    free(w->cells);
    return code;
}

int attention_show_caption(attended *a)
{
    words w = {.a = a, .first = a->asked->from, .n = 1, .grid = {a->info.grid[0], a->info.grid[1]}};
    if (a->side != ATT_TRACE_SIDE_CROSS)
        return attention_show_weights(a);
    if (a->asked->from < 0) {
        w.first = 0;
        w.n = a->attention.queries;
    }
    int code = attention_check_from(a, a->attention.queries);
    if (!code)
        code = attended_trace(a, a->attention.layer, false, true, &a->trace);
    return code ? code : show_words(&w);
}
