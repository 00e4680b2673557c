/* All heads of all layers of a side, as small maps. */
#include "cli/draw/color.h"
#include "cli/draw/picture.h"
#include "cli/draw/thumbnails.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 32, SIDE = 32, LINES = 6, CHARACTERS = 12 };

/* All maps. Of an image the part of its locations in the row of a token, else all queries and keys. */
typedef struct heads {
    const attended *a;
    int64_t layers, heads;
    int64_t from;          /* the token whose row is shown over the image; -1: all queries and keys */
    int64_t rows, columns; /* of what is pooled */
    thumbnails t;
    uint8_t *cells; /* [layers, heads, t.height, t.width] */
    float *scale;   /* [layers, heads]: what 255 is */
    float *row;     /* [keys]; or NULL */
    char (*name)[NAME];
    const char **label;
} heads;

static void free_heads(heads *h)
{
    free(h->cells);
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
    h->t.row = h->label;
    h->t.column = h->label + h->layers;
    return CLI_DONE;
}

/* The locations of an image in the row of a token */
static int pool_row(const heads *h, int64_t attention, int64_t head, uint8_t *out, float *scale)
{
    const attended *a = h->a;
    const int64_t before = a->attention.keys - h->rows * h->columns;
    const int code = cli_status(a->m.base.ctx, att_trace_weights(a->trace, attention, head, h->from, 1, h->row));
    *scale = 0;
    for (int64_t i = before; !code && i < a->attention.keys; i++)
        *scale = h->row[i] > *scale ? h->row[i] : *scale;
    if (!code)
        thumbnail_pool(h->row + before, h->rows, h->columns, h->t.height, h->t.width, out);
    return code;
}

/* Maps of this size in cells at most */
static int pool(heads *h, int64_t height, int64_t width)
{
    const attended *a = h->a;
    h->t.height = min(h->rows, height);
    h->t.width = min(h->columns, width);
    const int64_t size = h->t.height * h->t.width;
    free(h->cells);
    h->t.cells = h->cells = malloc((size_t)(h->layers * h->heads * size));
    int code = h->cells ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < h->layers * h->heads; i++) {
        const int64_t attention = att_trace_find(a->trace, a->side, i / h->heads), head = i % h->heads;
        code = h->from >= 0
                   ? pool_row(h, attention, head, h->cells + i * size, &h->scale[i])
                   : cli_status(a->m.base.ctx, att_trace_pooled(a->trace, attention, head, h->t.height, h->t.width,
                                                                h->cells + i * size, &h->scale[i]));
    }
    return code;
}

static int open_heads(heads *h, const attended *a)
{
    const int64_t keys = a->attention.keys, locations = a->info.grid[0] * a->info.grid[1];
    const bool over_image = locations > 0 && a->side != ATT_TRACE_SIDE_DECODER && keys >= locations;
    *h = (heads){.a = a, .layers = a->info.layers[a->side], .heads = a->attention.heads, .from = -1};
    if (over_image && (a->asked->from >= 0 || (a->side == ATT_TRACE_SIDE_ENCODER && a->info.prefix > 0)))
        h->from = a->asked->from >= 0 ? a->asked->from : 0;
    h->rows = h->from >= 0 ? a->info.grid[0] : a->attention.queries;
    h->columns = h->from >= 0 ? a->info.grid[1] : keys;
    h->t = (thumbnails){.ctx = a->m.base.ctx,
                        .rows = h->layers,
                        .columns = h->heads,
                        .note = "Each head in parts of its largest weight; rows: queries, columns: keys"};
    if (h->from >= 0)
        h->t.note = "Each head in parts of its largest weight, over the image";
    h->scale = malloc((size_t)(h->layers * h->heads) * sizeof *h->scale);
    h->row = malloc((size_t)keys * sizeof *h->row);
    return h->scale && h->row ? make_names(h) : cli_fail_memory();
}

static void print_json(const heads *h)
{
    const int64_t size = h->t.height * h->t.width;
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
        for (int64_t y = 0; y < h->t.height; y++) {
            cli_json_array(&j, NULL);
            for (int64_t x = 0; x < h->t.width; x++)
                cli_json_integer(&j, NULL, h->cells[i * size + y * h->t.width + x]);
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

static int draw(heads *h)
{
    picture p;
    char title[256], name[128];
    int code = pool(h, SIDE, SIDE);
    if (!code)
        code = picture_open(&p, h->a->asked->svg);
    if (code)
        return code;
    name_view(h, name, sizeof name);
    snprintf(title, sizeof title, "%s: %s", name, h->a->asked->argument);
    return picture_close(&p, thumbnails_svg(p.svg, title, &h->t));
}

static int print_terminal(heads *h)
{
    char name[128];
    const int code = pool(h, LINES, CHARACTERS);
    if (code)
        return code;
    name_view(h, name, sizeof name);
    printf("%s.\n%s.\n\n", name, h->t.note);
    thumbnails_terminal(stdout, &h->t, terminal_colors(stdout));
    return CLI_DONE;
}

int attention_show_heads(attended *a)
{
    heads h;
    int code = attention_check_from(a, a->attention.queries);
    if (!code)
        code = attended_trace(a, -1, false, true, &a->trace);
    if (code)
        return code;
    code = open_heads(&h, a);
    if (!code && a->asked->svg)
        code = draw(&h);
    if (!code && a->asked->json) {
        code = pool(&h, SIDE, SIDE);
        if (!code)
            print_json(&h);
    } else if (!code) {
        code = print_terminal(&h);
    }
    free_heads(&h);
    return code;
}
