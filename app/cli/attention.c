/* attend attention: the attention weights of a head. */
#include "cli/base/cli.h"
#include "cli/base/output.h"
#include "cli/draw/color.h"
#include "cli/draw/heatmap.h"

#include <stdlib.h>
#include <string.h>

static const char *model_name, *svg_path;
static int64_t layer = -1, head, threads;
static bool json;

static const cli_option options[] = {
    CLI_MODEL(&model_name),
    {"layer", 'l', "N", .integer = &layer, .min = 0, .max = 1000, .quiet = true,
     .help = "layer, from 0; default: the last"},
    {"head", 'H', "N", .integer = &head, .min = 0, .max = 1000, .help = "head, from 0"},
    {"svg", 0, "FILE", .text = &svg_path, .quiet = true, .help = "also write the picture as an SVG file"},
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

static int choose(const att_sentence_info *info)
{
    if (layer >= info->layers)
        return cli_misuse("--layer: the model has the layers 0 to %lld, not %lld", (long long)info->layers - 1,
                          (long long)layer);
    if (head >= info->heads)
        return cli_misuse("--head: the model has the heads 0 to %lld, not %lld", (long long)info->heads - 1,
                          (long long)head);
    if (layer < 0)
        layer = info->layers - 1;
    return CLI_DONE;
}

static void print_json(const char *const *labels, const att_attention_map *map)
{
    const int64_t n = map->tokens.count;
    printf("{\"layer\": %lld, \"head\": %lld, \"tokens\": ", (long long)layer, (long long)head);
    cli_write_json_texts(stdout, labels, n);
    fputs(", \"weights\": ", stdout);
    cli_write_json_matrix(stdout, map->weights, n, n);
    puts("}");
}

static int draw_svg(const char *text, const char *const *labels, const att_attention_map *map)
{
    cli_output out;
    char title[256];
    int code = cli_output_open(&out, svg_path);
    if (code)
        return code;
    snprintf(title, sizeof title, "Layer %lld, head %lld: %s", (long long)layer, (long long)head, text);
    const heatmap h = heatmap_square(labels, map->tokens.count, map->weights);
    heatmap_svg(out.file, title, &h);
    return cli_output_close(&out, code);
}

static int show(const cli_model *m, const char *text, const att_attention_map *map)
{
    const att_tokenizer *t = att_sentence_tokenizer(m->sentence);
    int64_t n = map->tokens.count;
    const char **labels = malloc(((size_t)n + 1) * sizeof *labels);
    if (!labels)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        labels[i] = att_tokenizer_token(t, map->tokens.ids[i]);
    const int code = svg_path ? draw_svg(text, labels, map) : CLI_DONE; /* first: | head ends the output below */
    if (code) {
        free(labels);
        return code;
    }
    if (json) {
        print_json(labels, map);
    } else {
        printf("Layer %lld of 0 to %lld, head %lld of 0 to %lld.\n"
               "Rows: the token that attends; columns: the tokens attended to.\n\n",
               (long long)layer, (long long)m->info.layers - 1, (long long)head, (long long)m->info.heads - 1);
        const heatmap h = heatmap_square(labels, n, map->weights);
        heatmap_terminal(stdout, &h, terminal_colors(stdout));
    }
    free(labels);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    const char *text = arguments[0];
    cli_model m;
    att_attention_map map = {0};
    int code = cli_model_open(&m, model_name, threads);
    if (code)
        return code;
    code = choose(&m.info);
    if (!code)
        code = cli_status(m.ctx, att_sentence_attention(m.sentence, text, strlen(text), layer, head, &map));
    if (!code && map.tokens.truncated)
        cli_note("the text is longer than %lld tokens and was truncated", (long long)m.info.max_tokens);
    if (!code)
        code = show(&m, text, &map);
    att_attention_map_free(m.sentence, &map);
    cli_model_close(&m);
    return code;
}

const cli_command cli_attention = {
    .name = "attention",
    .summary = "show the attention weights of a head as a picture",
    .arguments = "TEXT",
    .min_arguments = 1,
    .max_arguments = 1,
    .details = "The attention weights of one head of one layer, after the softmax. Rows: the\n"
               "token that attends; columns: the tokens attended to. Each row sums to 1.",
    .examples = "attend attention -m all-MiniLM-L6-v2 \"The cat sat on the mat because it was tired.\"\n"
                "attend attention -m all-MiniLM-L6-v2 --layer 5 --head 3 --svg head.svg \"Hello shiny sun!\"",
    .options = options,
    .see = "translate|tokenize",
    .run = run,
};
