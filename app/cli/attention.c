/* attend attention: the attention weights of a head, over a text or an image. */
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/paths.h"
#include "cli/draw/color.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"
#include "cli/language/language.h"
#include "cli/sentence/sentence.h"
#include "cli/vision/image_attention.h"

#include <stdlib.h>
#include <string.h>

static const char *model_name, *svg_path;
static int64_t layer = -1, head = -1, threads;
static int dtype;
static bool json;

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    {"layer", 'l', "N", .integer = &layer, .max = 1000, .quiet = true,
     .help = "layer, from 0; default: the last; of an image: rollout, the product of the attention of all layers"},
    {"head", 'H', "N", .integer = &head, .max = 1000, .quiet = true,
     .help = "head, from 0; default: 0; of an image: the mean of all"},
    {"svg", 0, "FILE", .text = &svg_path, .writes = true, .quiet = true,
     .help = "also write the picture to this file: " PICTURE_FORMATS},
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* A text's weights, and what the model has of them */
typedef struct shown {
    const char *text;
    const att_tokenizer *tokenizer;
    int64_t layers, heads;
    att_trace *trace;
    att_trace_info info;
    const int32_t *ids; /* [count] */
    int64_t count;
    float *weights; /* [count, count] */
} shown;

static int choose(const shown *s)
{
    if (layer >= s->layers)
        return cli_misuse("--layer: the model has the layers 0 to %lld, not %lld", (long long)s->layers - 1,
                          (long long)layer);
    if (head >= s->heads)
        return cli_misuse("--head: the model has the heads 0 to %lld, not %lld", (long long)s->heads - 1,
                          (long long)head);
    layer = layer < 0 ? s->layers - 1 : layer;
    head = head < 0 ? 0 : head;
    return CLI_DONE;
}

/* The weights of the head of a trace */
static int compute(att_ctx *ctx, shown *s, att_trace_side side)
{
    s->info.size = sizeof s->info;
    int code = cli_status(ctx, att_trace_describe(s->trace, &s->info));
    if (code)
        return code;
    s->ids = side == ATT_TRACE_SIDE_ENCODER ? s->info.source_ids : s->info.target_ids;
    s->count = side == ATT_TRACE_SIDE_ENCODER ? s->info.source : s->info.target;
    s->weights = malloc(((size_t)s->count * (size_t)s->count + 1) * sizeof *s->weights);
    if (!s->weights)
        return cli_fail_memory();
    return cli_status(
        ctx, att_trace_weights(s->trace, att_trace_find(s->trace, side, layer), head, 0, s->count, s->weights));
}

static void free_shown(shown *s)
{
    att_trace_free(s->trace);
    free(s->weights);
}

static void print_json(const char *const *labels, const shown *s)
{
    const int64_t n = s->count;
    cli_json j = cli_json_begin(stdout);
    cli_json_integer(&j, "layer", layer);
    cli_json_integer(&j, "head", head);
    cli_json_strings(&j, "tokens", labels, n);
    cli_json_matrix(&j, "weights", s->weights, n, n);
    cli_json_end(&j);
}

static int draw_svg(const char *const *labels, const shown *s)
{
    picture p;
    char title[256];
    int code = picture_open(&p, svg_path);
    if (code)
        return code;
    snprintf(title, sizeof title, "Layer %lld, head %lld: %s", (long long)layer, (long long)head, s->text);
    const heatmap h = heatmap_square(labels, s->count, s->weights);
    heatmap_svg(p.svg, title, &h);
    return picture_close(&p, code);
}

static int show(const shown *s)
{
    const int64_t n = s->count;
    const char **labels = malloc(((size_t)n + 1) * sizeof *labels);
    if (!labels)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        labels[i] = att_tokenizer_token(s->tokenizer, s->ids[i]);
    /* first: | head ends the output below */
    const int code = svg_path ? draw_svg(labels, s) : CLI_DONE;
    if (!code && json) {
        print_json(labels, s);
    } else if (!code) {
        printf("Layer %lld of 0 to %lld, head %lld of 0 to %lld.\n"
               "Rows: the token that attends; columns: the tokens attended to.\n\n",
               (long long)layer, (long long)s->layers - 1, (long long)head, (long long)s->heads - 1);
        const heatmap h = heatmap_square(labels, n, s->weights);
        heatmap_terminal(stdout, &h, terminal_colors(stdout));
    }
    free(labels);
    return code;
}

static int run_sentence(shown *s)
{
    cli_sentence m;
    int code = cli_model_open(&m.base, &cli_sentence_kind, model_name, dtype, threads);
    if (code)
        return code;
    s->tokenizer = att_sentence_tokenizer(m.sentence);
    s->layers = m.info.layers;
    s->heads = m.info.heads;
    code = choose(s);
    if (!code)
        code = cli_status(
            m.base.ctx, att_sentence_trace(m.sentence, s->text, strlen(s->text),
                                           ATT_OPTIONS(att_trace_options, .layers = &layer, .n_layers = 1), &s->trace));
    if (!code)
        code = compute(m.base.ctx, s, ATT_TRACE_SIDE_ENCODER);
    if (!code && s->info.truncated)
        cli_note("the text is longer than %lld tokens and was truncated", (long long)m.info.max_tokens);
    if (!code)
        code = show(s);
    free_shown(s);
    cli_model_close(&m.base);
    return code;
}

static int run_language(shown *s)
{
    cli_language m;
    int code = cli_model_open(&m.base, &cli_language_kind, model_name, dtype, threads);
    if (code)
        return code;
    s->tokenizer = att_text_generator_tokenizer(m.generator);
    s->layers = m.info.layers;
    s->heads = m.info.heads;
    code = choose(s);
    if (!code)
        code = cli_status(
            m.base.ctx, att_language_trace(m.generator, s->text, strlen(s->text),
                                           ATT_OPTIONS(att_trace_options, .layers = &layer, .n_layers = 1), &s->trace));
    if (!code)
        code = compute(m.base.ctx, s, ATT_TRACE_SIDE_DECODER);
    if (!code)
        code = show(s);
    free_shown(s);
    cli_model_close(&m.base);
    return code;
}

/* ---- Images -------------------------------------------------------------------- */

static void print_image_json(const char *path, const image_attention *a)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "image", path);
    if (layer >= 0)
        cli_json_integer(&j, "layer", layer);
    if (head >= 0)
        cli_json_integer(&j, "head", head);
    cli_json_string(&j, "from", a->mean ? "patches" : "[CLS]");
    cli_json_matrix(&j, "weights", a->weights, a->seen.grid[0], a->seen.grid[1]);
    cli_json_end(&j);
}

static int show_image(const char *path, const image_attention *a)
{
    picture p;
    const char *slash = strrchr(path, '/');
    int code = svg_path ? picture_open(&p, svg_path) : CLI_DONE;
    if (!code && svg_path)
        code = picture_close(&p, image_attention_svg(p.svg, slash ? slash + 1 : path, a));
    if (!code && json)
        print_image_json(path, a);
    else if (!code)
        code = image_attention_terminal(stdout, a, terminal_colors(stdout));
    return code;
}

static int run_image(const char *path)
{
    cli_vision m;
    cli_image image = {0};
    image_attention a = {0};
    int code = cli_model_open(&m.base, &cli_vision_kind, model_name, dtype, threads);
    if (code)
        return code;
    code = image_attention_check(&m, layer, head);
    if (!code) {
        cli_images_read(m.base.ctx, 1, &path, NULL, &image);
        code = cli_image_code(&image);
    }
    if (!code)
        code = image_attention_open(&a, &m, &image.image, layer, head);
    if (!code)
        code = show_image(strcmp(path, "-") ? path : "standard input", &a);
    image_attention_free(&a);
    cli_images_free(m.base.ctx, 1, &image);
    cli_model_close(&m.base);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    shown s = {.text = arguments[0]};
    if (cli_model_is(ATT_SUBJECT_VISION, model_name))
        return run_image(arguments[0]);
    const int code = cli_paths_refuse_images(1, arguments);
    if (code)
        return code;
    return cli_model_is(ATT_SUBJECT_LANGUAGE, model_name) ? run_language(&s) : run_sentence(&s);
}

const cli_command cli_attention = {
    .name = "attention",
    .summary = "show the attention weights of a head as a picture",
    .arguments = "TEXT|IMAGE",
    .min_arguments = 1,
    .max_arguments = 1,
    .details = "The attention weights of one head of one layer, after the softmax. Rows: the\n"
               "token that attends; columns: the tokens attended to. Each row sums to 1. The model\n"
               "is a sentence model or a language model, whose tokens attend only to those before\n"
               "them and themselves.\n\n"
               "With a vision model the argument is an image (\"-\": standard input), and the picture a map of its "
               "patches: what they get of the attention of the token [CLS], or of the mean attention of all patches "
               "where the model has none.",
    .examples = "attend attention -m all-MiniLM-L6-v2 \"The cat sat on the mat because it was tired.\"\n"
                "attend attention -m all-MiniLM-L6-v2 --layer 5 --head 3 --svg head.svg \"Hello shiny sun!\"\n"
                "attend attention -m SmolLM2-135M-Instruct --layer 0 \"The cat sat on the mat.\"\n"
                "attend attention -m vit-base-patch16-224 --svg cat.png cat.jpg",
    .options = options,
    .see = "classify|translate|tokenize",
    .run = run,
};
