/* All heads of all layers of a side, as small maps. */
#include "cli/draw/color.h"
#include "cli/draw/picture.h"
#include "cli/draw/thumbnails.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 32, SIDE = 32, LINES = 6, CHARACTERS = 12 };

/* The maps in cells of 1 / 255 of the largest weight */
typedef struct maps {
    int64_t height, width;
    uint8_t *cells; /* [layers, heads, height, width] */
} maps;

/* All heads. Of an image, a map has the weights of its locations in the row of a token; otherwise all queries and
 * keys. */
typedef struct heads {
    const attended *a;
    int64_t layers, heads;
    int64_t from;          /* the token whose row is shown over the image; -1: all queries and keys */
    int64_t rows, columns; /* of the weights that are pooled */
    const char *note;
    float *scale; /* [layers, heads]: the weight that is 255 */
    float *row;   /* [keys]; or NULL */
    char (*name)[NAME];
    const char **label;
} heads;

static void free_heads(heads *h)
{
    free(h->scale);
    free(h->row);
    free(h->name);
    free(h->label);
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static int make_names(heads *h)
{
    h->name = malloc((size_t)(h->layers + h->heads) * sizeof *h->name);
    h->label = malloc((size_t)(h->layers + h->heads) * sizeof *h->label);
    if (!h->name || !h->label)
        return cli_fail_memory();
    for (int64_t i = 0; i < h->layers + h->heads; i++) {
        const bool layer = i < h->layers;
        snprintf(h->name[i], NAME, "%s %lld", layer ? "layer" : "head", (long long)(layer ? i : i - h->layers));
        h->label[i] = h->name[i];
    }
    return CLI_DONE;
}

/* Copies the locations of an image in the row of a token, as map i. */
static int pool_row(const heads *h, int64_t attention, int64_t head, const maps *m, int64_t i)
{
    const attended *a = h->a;
    const int64_t before = a->attention.keys - h->rows * h->columns;
    const int code = cli_status(a->m.base.ctx, att_trace_weights(a->trace, attention, head, h->from, 1, h->row));
    h->scale[i] = 0;
    for (int64_t k = before; !code && k < a->attention.keys; k++)
        h->scale[i] = h->row[k] > h->scale[i] ? h->row[k] : h->scale[i];
    if (!code)
        thumbnail_pool(h->row + before, h->rows, h->columns, m->height, m->width, m->cells + i * m->height * m->width);
    return code;
}

static int pool(const heads *h, maps *m)
{
    const attended *a = h->a;
    m->height = min(h->rows, SIDE);
    m->width = min(h->columns, SIDE);
    const int64_t size = m->height * m->width;
    m->cells = malloc((size_t)(h->layers * h->heads * size));
    int code = m->cells ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < h->layers * h->heads; i++) {
        const int64_t attention = att_trace_find(a->trace, a->side, i / h->heads), head = i % h->heads;
        code = h->from >= 0 ? pool_row(h, attention, head, m, i)
                            : cli_status(a->m.base.ctx, att_trace_pooled(a->trace, attention, head, m->height, m->width,
                                                                         m->cells + i * size, &h->scale[i]));
    }
    return code;
}

static thumbnails thumbnails_of(const heads *h, const maps *m)
{
    return (thumbnails){.ctx = h->a->m.base.ctx,
                        .row = h->label,
                        .column = h->label + h->layers,
                        .rows = h->layers,
                        .columns = h->heads,
                        .height = m->height,
                        .width = m->width,
                        .cells = m->cells,
                        .note = h->note};
}

static int open_heads(heads *h, const attended *a)
{
    const int64_t keys = a->attention.keys, locations = a->info.grid[0] * a->info.grid[1];
    const bool over_image = locations > 0 && a->side != ATT_TRACE_SIDE_DECODER && keys >= locations;
    if (a->asked->from >= 0 && !over_image)
        return cli_misuse("--from does not go with --heads where keys are not locations of an image");
    *h = (heads){.a = a, .layers = a->info.layers[a->side], .heads = a->attention.heads, .from = -1};
    if (over_image && (a->asked->from >= 0 || (a->side == ATT_TRACE_SIDE_ENCODER && a->info.prefix > 0)))
        h->from = a->asked->from >= 0 ? a->asked->from : 0;
    h->rows = h->from >= 0 ? a->info.grid[0] : a->attention.queries;
    h->columns = h->from >= 0 ? a->info.grid[1] : keys;
    h->note = h->from >= 0 ? "Each head in parts of its largest weight, over the image"
                           : "Each head in parts of its largest weight; rows: queries, columns: keys";
    h->scale = malloc((size_t)(h->layers * h->heads) * sizeof *h->scale);
    h->row = malloc((size_t)keys * sizeof *h->row);
    return h->scale && h->row ? make_names(h) : cli_fail_memory();
}

static void print_json(const heads *h, const maps *m)
{
    const int64_t size = m->height * m->width;
    cli_json j = attention_json(h->a, -1, -1);
    if (h->from >= 0)
        cli_json_integer(&j, "from", h->from);
    cli_json_array(&j, "heads");
    for (int64_t i = 0; i < h->layers * h->heads; i++) {
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "layer", i / h->heads);
        cli_json_integer(&j, "head", i % h->heads);
        cli_json_float(&j, "largest", h->scale[i]);
        cli_json_array(&j, "parts"); /* of the largest, in 255ths */
        for (int64_t y = 0; y < m->height; y++) {
            cli_json_array(&j, NULL);
            for (int64_t x = 0; x < m->width; x++)
                cli_json_integer(&j, NULL, m->cells[i * size + y * m->width + x]);
            cli_json_end(&j);
        }
        cli_json_end(&j);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

static void name_view(const heads *h, char *text, size_t size)
{
    char of[64] = "";
    if (h->from >= 0)
        snprintf(of, sizeof of, ", from token %lld \"%s\"", (long long)h->from, h->a->query[h->from]);
    snprintf(text, size, "%lld layer%s of %lld head%s, %s%s", (long long)h->layers, h->layers == 1 ? "" : "s",
             (long long)h->heads, h->heads == 1 ? "" : "s", attention_side_name(h->a->side), of);
}

static int draw(const heads *h, const maps *m)
{
    picture p;
    char title[256], name[128];
    const thumbnails t = thumbnails_of(h, m);
    const int code = picture_open(&p, h->a->asked->svg);
    if (code)
        return code;
    name_view(h, name, sizeof name);
    snprintf(title, sizeof title, "%s: %s", name, h->a->asked->argument);
    return picture_close(&p, thumbnails_svg(p.svg, title, &t));
}

static void print_terminal(const heads *h, const maps *m)
{
    char name[128];
    const thumbnails t = thumbnails_of(h, m);
    name_view(h, name, sizeof name);
    printf("%s.\n%s.\n\n", name, h->note);
    thumbnails_terminal(stdout, &t, terminal_colors(stdout));
}

/* Makes maps for a terminal. Each cell is the largest of some cells of the large maps. */
static int make_smaller(const heads *h, const maps *large, maps *out)
{
    const int64_t size = large->height * large->width, n = h->layers * h->heads;
    *out = (maps){.height = min(large->height, LINES), .width = min(large->width, CHARACTERS)};
    float *x = malloc((size_t)size * sizeof *x);
    out->cells = malloc((size_t)(n * out->height * out->width));
    for (int64_t i = 0; x && out->cells && i < n; i++) {
        for (int64_t k = 0; k < size; k++)
            x[k] = large->cells[i * size + k];
        thumbnail_pool(x, large->height, large->width, out->height, out->width,
                       out->cells + i * out->height * out->width);
    }
    const int code = x && out->cells ? CLI_DONE : cli_fail_memory();
    free(x);
    return code;
}

/* Shows the maps. The picture comes first, because the reader of standard output may end the process. */
static int show(const heads *h)
{
    const bool json = h->a->asked->json;
    maps large, small = {0};
    int code = pool(h, &large);
    if (!code && !json)
        code = make_smaller(h, &large, &small);
    if (!code && h->a->asked->svg)
        code = draw(h, &large);
    if (!code && json)
        print_json(h, &large);
    else if (!code)
        print_terminal(h, &small);
    free(large.cells);
    free(small.cells);
    return code;
}

int attention_show_heads(attended *a)
{
    heads h = {0};
    int code = attention_check_from(a, a->attention.queries);
    if (!code)
        code = open_heads(&h, a);
    if (!code)
        code = attended_trace(a, -1, false, true, &a->trace);
    if (!code)
        code = show(&h);
    free_heads(&h);
    return code;
}
