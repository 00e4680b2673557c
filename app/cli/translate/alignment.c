#include "cli/base/json.h"
#include "alignment.h"
#include "cli/draw/color.h"
#include "cli/draw/heatmap.h"

#include <stdlib.h>
#include <string.h>

enum kind { NONE, PICTURE, TERMINAL, JSON };

static enum kind kind_of(const cli_alignment *a)
{
    if (!a->path)
        return NONE;
    return !strcmp(a->path, "-") ? TERMINAL : picture_has_name(a->path) ? PICTURE : JSON;
}

int cli_alignment_open(cli_alignment *a, const cli_translator *m)
{
    a->m = m;
    a->count = 0;
    a->file = (picture){0};
    if (!a->path)
        return CLI_DONE;
    if (m->info.attention_layers == 0)
        return cli_fail("--alignment: the model has no attention, but one fixed context of each text");
    if (a->layer >= m->info.attention_layers)
        return cli_misuse("--layer: the decoder has the layers 0 to %lld, not %lld",
                          (long long)m->info.attention_layers - 1, (long long)a->layer);
    if (a->head >= m->info.attention_heads)
        return cli_misuse("--head: the decoder has the heads 0 to %lld, not %lld",
                          (long long)m->info.attention_heads - 1, (long long)a->head);
    if (a->layer < 0)
        a->layer = m->info.attention_layers - 1;
    return kind_of(a) == TERMINAL ? CLI_DONE : picture_open(&a->file, a->path);
}

/* ---- one text */

/* Returns the tokens as texts [count]; free it. */
static const char **labels_of(const cli_alignment *a, const int32_t *ids, int64_t count)
{
    const att_tokenizer *t = att_translator_tokenizer(a->m->translator);
    const char **labels = malloc(((size_t)count + 1) * sizeof *labels);
    for (int64_t i = 0; labels && i < count; i++) {
        const char *token = att_tokenizer_token(t, ids[i]);
        labels[i] = token ? token : "";
    }
    return labels;
}

static void write_json(const cli_alignment *a, const heatmap *h)
{
    cli_json j = cli_json_begin(a->file.svg);
    cli_json_integer(&j, "layer", a->layer);
    if (a->head >= 0)
        cli_json_integer(&j, "head", a->head);
    cli_json_strings(&j, "source", h->column, h->columns);
    cli_json_strings(&j, "target", h->row, h->rows);
    cli_json_matrix(&j, "weights", h->weights, h->rows, h->columns);
    cli_json_end(&j);
}

static void draw(const cli_alignment *a, const heatmap *h, const char *text, size_t bytes)
{
    char title[256], where[96] = "Attention";
    if (a->head >= 0)
        snprintf(where, sizeof where, "Layer %lld, head %lld", (long long)a->layer, (long long)a->head);
    else if (a->m->info.attention_heads > 1)
        snprintf(where, sizeof where, "Layer %lld, mean of %lld heads", (long long)a->layer,
                 (long long)a->m->info.attention_heads);
    snprintf(title, sizeof title, "%s: %.*s", where, (int)(bytes < 150 ? bytes : 150), text);
    heatmap_svg(a->file.svg, title, h);
}

/* weights [target, source] */
static int show(const cli_alignment *a, const att_trace_info *i, const float *weights, const char *text, size_t bytes)
{
    const char **row = labels_of(a, i->target_ids, i->target), **column = labels_of(a, i->source_ids, i->source);
    const heatmap h = {row, column, i->target, i->source, weights, "translation (row)", "text (column)", "t↓ s→"};
    const int code = row && column ? CLI_DONE : cli_fail_memory();
    if (!code && kind_of(a) == TERMINAL) {
        putchar('\n');
        heatmap_terminal(stdout, &h, terminal_colors(stdout));
        putchar('\n');
    } else if (!code && kind_of(a) == PICTURE) {
        draw(a, &h, text, bytes);
    } else if (!code) {
        write_json(a, &h);
    }
    free(row);
    free(column);
    return code;
}

static int show_trace(const cli_alignment *a, const att_trace *trace, const char *text, size_t bytes)
{
    att_ctx *ctx = a->m->base.ctx;
    att_trace_info i = {.size = sizeof i};
    int code = cli_status(ctx, att_trace_describe(trace, &i));
    if (code)
        return code;
    float *weights = malloc((size_t)(i.target * i.source) * sizeof *weights);
    code = weights ? cli_status(ctx, att_trace_weights(trace, att_trace_find(trace, ATT_TRACE_SIDE_CROSS, a->layer),
                                                       a->head, 0, i.target, weights))
                   : cli_fail_memory();
    code = code ? code : show(a, &i, weights, text, bytes);
    free(weights);
    return code;
}

int cli_alignment_add(cli_alignment *a, const char *text, size_t bytes, const att_translation *t)
{
    if (!a->path || (++a->count > 1 && kind_of(a) == PICTURE))
        return CLI_DONE;
    att_trace *trace;
    const att_trace_options o = {.size = sizeof o, .layers = &a->layer, .n_layers = 1};
    int code = cli_status(a->m->base.ctx, att_translator_trace(a->m->translator, text, bytes, t->tokens.ids,
                                                               t->tokens.count, &o, &trace));
    if (code)
        return code;
    code = show_trace(a, trace, text, bytes);
    att_trace_free(trace);
    return code;
}

int cli_alignment_close(cli_alignment *a, int code)
{
    if (!code && a->count > 1 && kind_of(a) == PICTURE)
        cli_note("%s shows the first of %lld texts; a file that ends in neither .svg nor .png has all of them", a->path,
                 (long long)a->count);
    if (!code && a->count == 0 && kind_of(a) == PICTURE)
        code = cli_fail("%s: there is no text to draw", a->path);
    return a->file.svg ? picture_close(&a->file, code) : code;
}
