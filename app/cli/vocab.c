/* attend vocab: texts to a vocabulary of pieces. */
#include "cli/base/command.h"
#include "cli/base/lines.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/unknown_tokens.h"
#include "cli/base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, PART = 1 << 20, MAX_LIST = 1024 };
enum normalization { NFKC, IDENTITY };

static const char *output_path, *symbols, *control;
static int64_t size = 8000, max_length = 16, min_count = 1;
static double coverage = 0.9995;
static int normalization = NFKC;
static bool byte_fallback, split_digits;

static const cli_option options[] = {
    {"size", 's', "N", .integer = &size, .min = 4, .max = 1 << 22, .help = "vocabulary size"},
    {"output", 'o', "FILE", .text = &output_path, .writes = true, .required = true,
     .help = "SentencePiece model to write; appears when complete"},
    {"character-coverage", 'c', "RATIO", .number = &coverage, .min = 0.5, .max = 1,
     .help = "character coverage: the share of the text whose characters become pieces; rarer ones are unknown"},
    {"min-count", 0, "N", .integer = &min_count, .min = 1, .max = 1e18,
     .help = "minimum number of occurrences of a character; rarer ones are unknown"},
    {"byte-fallback", 'b', NULL, .flag = &byte_fallback,
     .help = "byte fallback: encode unknown characters as bytes, with 256 further pieces"},
    {"split-digits", 0, NULL, .flag = &split_digits, .help = "split numbers into digits: each digit is a piece"},
    {"max-length", 'l', "N", .integer = &max_length, .min = 1, .max = 64,
     .help = "maximum number of characters of a piece"},
    {"normalization", 'n', "nfkc|identity", .choice = &normalization, .help = "Unicode normalization of the text"},
    {"symbols", 0, "LIST", .text = &symbols,
     .help = "user-defined symbols, which are never split, separated by commas: \"<sep>,[MASK]\""},
    {"control", 0, "LIST", .text = &control,
     .help = "control symbols, which no text encodes to, besides <unk>, <s> and </s>: \"<pad>\""},
    {0},
};

/* Splits the texts between commas: list [MAX_LIST] points into *copy, malloc'd. */
static int split(const char *text, const char *option, char **copy, const char **list, int64_t *n)
{
    *n = 0;
    if (!text)
        return CLI_DONE;
    *copy = strdup(text);
    if (!*copy)
        return cli_fail_memory();
    char *rest = *copy;
    for (char *item; (item = strsep(&rest, ","));) {
        if (!*item || *n == MAX_LIST)
            return cli_misuse("--%s: \"%s\" %s", option, text, *item ? "has too many texts" : "has an empty text");
        list[(*n)++] = item;
    }
    return CLI_DONE;
}

static int read_lines(const att_ctx *ctx, att_vocab *v, cli_lines *in)
{
    cli_progress progress;
    int64_t count = 0;
    int code = CLI_DONE;
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(in, BLOCK);
        if (code || in->count == 0)
            break;
        for (int64_t i = 0; !code && i < in->count; i++)
            code = cli_status(ctx, att_vocab_add(v, in->text[i], in->bytes[i]));
        count += in->count;
        cli_progress_show(&progress, count, "lines", in->total > 0 ? in->done / in->total : 0);
    }
    cli_progress_end(&progress);
    return code;
}

/* Returns the options with which no character is too rare. */
static const char *how_to_include_all(void)
{
    if (min_count == 1)
        return "; --character-coverage 1 takes all";
    return coverage < 1 ? "; --character-coverage 1 --min-count 1 takes all" : "; --min-count 1 takes all";
}

/* Reports the characters that the vocabulary lacks. */
static void report_missing(const att_vocab_result *r)
{
    cli_unknown left_out = {0};
    char list[CLI_UNKNOWN_LIST];
    if (r->pieces < size)
        cli_note("the vocabulary has %lld pieces, not %lld: no other two are neighbors twice", (long long)r->pieces,
                 (long long)size);
    for (const char *s = r->left_out_text, *begin = s; *s && !left_out.more; begin = s) {
        utf8_next(&s);
        cli_unknown_add(&left_out, begin, (size_t)(s - begin));
    }
    cli_unknown_list(&left_out, list);
    if (r->left_out > 0)
        cli_note("%lld %s too rare for the vocabulary%s: %s", (long long)r->left_out,
                 r->left_out == 1 ? "character is" : "characters are",
                 byte_fallback ? " and spelled in bytes" : how_to_include_all(), list);
}

static int train(const att_ctx *ctx, att_vocab *v, cli_share *progress, const cli_output *out, att_vocab_result *r)
{
    *progress = cli_share_of_call("% trained", 100);
    const int code = cli_status(ctx, att_vocab_train(v, r));
    cli_share_end(progress);
    if (!code)
        fwrite(r->model, 1, r->bytes, out->file);
    return code;
}

static int run(int n, char **arguments)
{
    static const char *symbol_list[MAX_LIST], *control_list[MAX_LIST];
    char *symbol_text = NULL, *control_text = NULL;
    int64_t n_symbols, n_control = 0;
    cli_share progress;
    att_ctx *ctx = NULL;
    att_vocab *v = NULL;
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    att_vocab_result result = {.size = sizeof result};
    int code = split(symbols, "symbols", &symbol_text, symbol_list, &n_symbols);
    if (!code)
        code = split(control, "control", &control_text, control_list, &n_control);
    if (!code)
        code = cli_lines_open(&in, n, arguments);
    in.part = PART;
    if (!code)
        code = cli_open(&ctx, 1);
    const att_vocab_options *o =
        ATT_OPTIONS(att_vocab_options, .pieces = size, .character_coverage = coverage, .max_length = max_length,
                    .min_count = min_count, .keep_text = normalization == IDENTITY, .byte_fallback = byte_fallback,
                    .split_digits = split_digits, .symbols = symbol_list, .n_symbols = n_symbols,
                    .control = control_list, .n_control = n_control, .progress = cli_share_report, .user = &progress);
    if (!code)
        code = cli_status(ctx, att_vocab_new(ctx, o, &v));
    if (!code)
        code = cli_output_open(&out, output_path);
    if (!code)
        code = read_lines(ctx, v, &in);
    if (!code)
        code = train(ctx, v, &progress, &out, &result);
    code = cli_output_close(&out, code);
    if (!code)
        report_missing(&result);
    att_vocab_free(v);
    att_close(ctx);
    cli_lines_close(&in);
    free(symbol_text);
    free(control_text);
    return code;
}

const cli_command cli_vocab = {
    .name = "vocab",
    .summary = "learn a subword vocabulary (BPE) from text",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details = "Byte-pair encoding: starts from the characters and repeatedly merges the most\n"
               "frequent pair of adjacent pieces. Reads lines from the files (\"-\": standard\n"
               "input, which is also the default) and writes a SentencePiece model, which other\n"
               "programs can read; the result is deterministic. Files of two languages give a\n"
               "joint vocabulary. A piece consists of letters, of digits or of neither.\n\n"
               "nfkc: Unicode's NFKC, all white space becomes a space, other control\n"
               "characters are removed. identity: only spaces at both ends and repeated spaces\n"
               "are removed.\n\n"
               "The text may have any size: memory grows with the number of distinct words. A\n"
               "word has at most 1 MiB.",
    .examples = "attend vocab --size 8000 -o joint.spm train.de train.en\n"
                "attend tokenize -m joint.spm < test.de",
    .options = options,
    .see = "tokenize|train translate",
    .run = run,
};
