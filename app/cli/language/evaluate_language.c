/* attend evaluate language: perplexity and bits per byte. */
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/read_file.h"
#include "language.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_TEXT = 64 };

static const char *model_name;
static int64_t window, stride, threads;
static cli_types types;
static bool json;

static const cli_option options[] = {
    CLI_LANGUAGE_MODEL_OPTION(&model_name),
    CLI_TYPES(types),
    {"window", 0, "N", .integer = &window, .min = 0, .max = 1 << 24, .quiet = true,
     .help = "tokens of context; default: the smaller of the model's context and 1,024"},
    {"stride", 0, "N", .integer = &stride, .min = 0, .max = 1 << 24, .quiet = true,
     .help = "tokens from one window to the next; default: the window. Smaller: more context for each token, lower "
             "perplexity, more work"},
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

static int measure(const cli_language *m, const att_tokens *tokens, att_perplexity *p)
{
    cli_share s = cli_share_of_call("tokens", tokens->count);
    const att_status status =
        att_language_perplexity(att_text_generator_model(m->generator), tokens->ids, tokens->count,
                                ATT_OPTIONS(att_perplexity_options, .window = window, .stride = stride,
                                            .progress = cli_share_report, .user = &s),
                                p);
    cli_share_end(&s);
    return cli_status(m->base.ctx, status);
}

/* Prints the results. bytes: of the text of the predicted tokens. */
static int print(const att_perplexity *p, const cli_model *m, size_t bytes, double seconds)
{
    const double bits = p->loss * (double)p->tokens / (log(2) * (double)bytes);
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    if (json) {
        cli_json j = cli_json_begin(stdout);
        cli_json_number(&j, "perplexity", p->perplexity, 10);
        cli_json_number(&j, "loss", p->loss, 10);
        cli_json_number(&j, "bits_per_byte", bits, 10);
        cli_json_integer(&j, "tokens", p->tokens);
        cli_json_integer(&j, "bytes", (int64_t)bytes);
        cli_json_integer(&j, "window", p->window);
        cli_json_integer(&j, "stride", p->stride);
        cli_json_string(&j, "compute", cli_model_compute(m));
        cli_json_fixed(&j, "seconds", seconds, 3);
        cli_json_end(&j);
    } else {
        printf("perplexity     %10.4f  per token\n"
               "loss           %10.4f  nats per token\n"
               "bits per byte  %10.4f\n"
               "%lld tokens predicted, %zu bytes; window %lld, stride %lld; %.0f tokens/s\n",
               p->perplexity, p->loss, bits, (long long)p->tokens, bytes, (long long)p->window, (long long)p->stride,
               (double)p->tokens / seconds);
    }
    return cli_output_close(&out, code);
}

static int check_window(const cli_language *m)
{
    const int64_t positions = m->info.max_positions, all = window ? window : positions < 1024 ? positions : 1024;
    if (window > positions)
        return cli_misuse("--window: the model has %lld positions, not %lld", (long long)positions, (long long)window);
    if (stride > all)
        return cli_misuse("--stride: %lld is more than the window, %lld", (long long)stride, (long long)all);
    return CLI_DONE;
}

static int evaluate(const cli_language *m, const char *path)
{
    cli_whole_text text = {0};
    const att_tokenizer *t = att_text_generator_tokenizer(m->generator);
    att_tokens tokens = {0};
    att_perplexity p = {.size = sizeof p};
    const char *name = strcmp(path, "-") ? path : "standard input";
    double size;
    int code = check_window(m);
    if (!code)
        code = cli_file_check(path, &size);
    if (!code)
        code = cli_whole_text_read(path, &text);
    if (!code && text.bytes == 0)
        code = cli_fail("%s is empty", name);
    if (!code)
        code = cli_status(m->base.ctx,
                          att_tokenize(t, text.text, text.bytes,
                                       ATT_OPTIONS(att_tokenize_options, .offsets = true, .split_special = true),
                                       &tokens));
    if (!code && tokens.count < 2)
        code = cli_fail("%s: the text has only one token, so there is nothing to predict", name);
    const double begin = cli_seconds();
    if (!code)
        code = measure(m, &tokens, &p);
    if (!code && p.tokens < SMALL_TEXT)
        cli_note("%s: only %lld tokens are predicted, too few for a perplexity of the model", name,
                 (long long)p.tokens);
    if (!code) /* the first token is not predicted */
        code = print(&p, &m->base, text.bytes - (size_t)tokens.offsets[1], cli_seconds() - begin);
    att_tokens_free(m->base.ctx, &tokens);
    cli_whole_text_free(&text);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    cli_language m = {0};
    int code = cli_model_open(&m.base, &cli_language_kind, model_name, types, threads);
    if (!code)
        code = evaluate(&m, arguments[0]);
    cli_model_close(&m.base);
    return code;
}

const cli_command cli_evaluate_language = {
    .name = "language",
    .summary = "measure the perplexity and bits per byte of a language model on a text",
    .arguments = "FILE",
    .min_arguments = 1,
    .max_arguments = 1,
    .details = "Reads the file (\"-\": standard input) as one text and predicts each token but the\n"
               "first from those before it. Perplexity is exp(the mean of -log p); it depends on\n"
               "the tokenizer, bits per byte does not.\n\n"
               "Window k has the tokens from k * stride on and predicts those that no earlier\n"
               "window has. With the stride equal to the window, the first tokens of each have\n"
               "little context; with half the window, each has at least half a window.",
    .examples = "attend evaluate language -m SmolLM2-135M-Instruct book.txt\n"
                "attend evaluate language -m SmolLM2-135M-Instruct --window 1024 --stride 512 book.txt",
    .options = options,
    .see = "generate|tokenize",
    .run = run,
};
