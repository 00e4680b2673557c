/* attend translate: lines to lines in another language. */
#include "cli/base/command.h"
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/base/unknown_tokens.h"
#include "cli/translate/alignment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* lines at a time: enough for batches of like lengths, few enough to hold and to report */

static const char *model_name = CLI_TRANSLATOR_SHIPPED, *file, *output_path, *prefix;
static cli_texts texts;
static int64_t beam, max_length, min_length, n_best = 1, threads;
static double length_penalty = NAN;
static bool scores, json, split, lines_failed;
static cli_types types;
static cli_alignment alignment = {.layer = -1, .head = -1};

static const cli_option options[] = {
    CLI_TRANSLATOR_OPTION(&model_name),
    {"beam", 'b', "N", .integer = &beam, .min = 1, .max = 1024, .quiet = true,
     .help = "beam size; 1: greedy search; default: the model's setting"},
    {"max-length", 0, "N", .integer = &max_length, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "maximum number of tokens of a translation, with the end token (eos); default: the model's setting"},
    {"min-length", 0, "N", .integer = &min_length, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "minimum number of tokens of a translation, with the end token (eos)"},
    {"length-penalty", 0, "X", .number = &length_penalty, .min = -100, .max = 100, .quiet = true,
     .help = "length penalty of beam search: score = log probability / tokens ^ X; larger values prefer longer "
             "translations; default: the model's setting"},
    {"nbest", 'n', "N", .integer = &n_best, .min = 1, .max = 1024,
     .help = "print the N best translations of each line, each on a line; at most --beam"},
    {"scores", 's', NULL, .flag = &scores, .help = "print the score and a tab before each translation"},
    CLI_FILE(&file),
    CLI_SENTENCE(&texts),
    CLI_OUTPUT(&output_path),
    CLI_SHARD,
    CLI_JSON(&json),
    {"split", 0, NULL, .flag = &split, .help = "split lines that are too long for the model into segments"},
    {"prefix", 0, "TEXT", .text = &prefix, .quiet = true,
     .help = "beginning of each translation, which the model continues; scores are of what follows it"},
    {"alignment", 'a', "FILE", .text = &alignment.path, .writes = true, .quiet = true,
     .help = "write the attention weights of each target token over the source tokens: of the first line as a picture "
             "(.svg, .png), of all lines as JSON, or of all in the terminal (\"-\")"},
    {"layer", 'l', "N", .integer = &alignment.layer, .max = 1000, .quiet = true,
     .help = "decoder layer of --alignment, from 0; default: the last"},
    {"head", 'H', "N", .integer = &alignment.head, .max = 1000, .quiet = true,
     .help = "head of --alignment, from 0; default: the mean of all"},
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    {0},
};

/* ---- what is written */

/* Writes a translation as one line, whatever is in it. */
static void write_line(FILE *f, const att_translation *t)
{
    const bool nothing = t->tokens.count == 0 && t->score == 0; /* of an empty line, or no translation was found */
    if (scores && !nothing)
        fprintf(f, "%.4f\t", (double)t->score);
    for (size_t i = 0; i < t->text.bytes; i++)
        putc(t->text.text[i] == '\n' || t->text.text[i] == '\r' ? ' ' : t->text.text[i], f);
    putc('\n', f);
}

static void write_json(FILE *f, const cli_translator *m, const char *text, size_t bytes, const att_translation *t)
{
    const att_tokenizer *tokenizer = att_translator_tokenizer(m->translator);
    cli_json j = cli_json_begin(f);
    cli_json_bytes(&j, "text", text, bytes);
    cli_json_array(&j, "translations");
    for (int64_t k = 0; k < n_best && t[k].text.text; k++) {
        cli_json_object(&j, NULL);
        cli_json_bytes(&j, "text", t[k].text.text, t[k].text.bytes);
        cli_json_float(&j, "score", t[k].score);
        cli_json_array(&j, "tokens");
        for (int64_t i = 0; i < t[k].tokens.count; i++) {
            const char *token = att_tokenizer_token(tokenizer, t[k].tokens.ids[i]);
            cli_json_string(&j, NULL, token ? token : "");
        }
        cli_json_end(&j);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

/* t [in->count][n_best] */
static int write_block(FILE *f, const cli_translator *m, const cli_lines *in, const att_translation *t)
{
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < in->count; i++) {
        const att_translation *best = t + i * n_best;
        if (json)
            write_json(f, m, in->text[i], in->bytes[i], best);
        for (int64_t k = 0; !json && k < n_best; k++)
            write_line(f, &best[k]);
        if (best->tokens.count > 0) /* an empty line has no alignment */
            code = cli_alignment_add(&alignment, in->text[i], in->bytes[i], best);
    }
    return code;
}

/* ---- the work */

/* The options and results of a block of lines. */
typedef struct block {
    cli_share progress;
    att_translation *translations; /* [BLOCK, n_best] */
    int64_t tokens[BLOCK];
    att_status status[BLOCK];
    int32_t *prefix_ids;               /* --prefix, of each line */
    int64_t prefix_offsets[BLOCK + 1]; /* all 0: none */
} block;

/* Reports which lines could not be translated. `before`: lines before the block. */
static void report_failed(const cli_translator *m, const block *b, int64_t count, int64_t before)
{
    for (int64_t i = 0; i < count; i++) {
        lines_failed |= b->status[i] != ATT_OK;
        if (b->status[i] && b->tokens[i] > m->info.max_positions)
            cli_fail("line %lld has %lld tokens but the model has %lld positions; with --split it is translated "
                     "in parts",
                     (long long)(before + i + 1), (long long)b->tokens[i], (long long)m->info.max_positions);
        else if (b->status[i])
            cli_fail("line %lld: %s", (long long)(before + i + 1), att_error(m->base.ctx));
    }
}

/* Names the first line whose numbers are not finite. */
static int find_damaged(const cli_translator *m, const cli_lines *in, int64_t before, const att_translate_options *o)
{
    int code = CLI_DONE;
    att_translation *t = malloc((size_t)n_best * sizeof *t);
    for (int64_t i = 0; t && !code && i < in->count; i++) {
        const att_status s = att_translate(m->translator, 1, &in->text[i], &in->bytes[i], o, t);
        if (s == ATT_ERR_FORMAT)
            code = cli_fail("line %lld: %s: the weights are damaged, or too large", (long long)(before + i + 1),
                            att_error(m->base.ctx));
        for (int64_t k = 0; s == ATT_OK && k < n_best; k++)
            att_translation_free(m->base.ctx, &t[k]);
    }
    free(t);
    return code;
}

static int translate(const cli_translator *m, const cli_lines *in, block *b)
{
    const float penalty = (float)length_penalty;
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = beam, .max_tokens = max_length, .min_tokens = min_length,
                    .n_best = n_best, .length_penalty = isnan(length_penalty) ? NULL : &penalty, .split = split,
                    .no_scores = !scores && !json, .prefix_ids = b->prefix_ids, .prefix_offsets = b->prefix_offsets,
                    .tokens = b->tokens, .status = b->status, .progress = cli_share_report, .user = &b->progress);
    cli_share_next(&b->progress, in->count, in->total > 0 ? in->done / in->total : 0);
    const att_status s = att_translate(m->translator, in->count, in->text, in->bytes, o, b->translations);
    const int code = s == ATT_ERR_FORMAT ? find_damaged(m, in, in->before + b->progress.done, o) : CLI_DONE;
    return code ? code : cli_status(m->base.ctx, s);
}

/* Repeats the tokens of --prefix for each line of a block. */
static int make_prefix(const cli_translator *m, block *b)
{
    const int64_t limit = max_length ? max_length : m->info.max_positions;
    att_ctx *ctx = m->base.ctx;
    att_tokens tokens;
    if (!prefix)
        return CLI_DONE;
    int code = cli_status(
        ctx, att_tokenize(att_translator_tokenizer(m->translator), prefix, strlen(prefix),
                          ATT_OPTIONS(att_tokenize_options, .no_special = true, .target = true, .split_special = true),
                          &tokens));
    if (code)
        return code;
    b->prefix_ids = malloc(((size_t)tokens.count * BLOCK + 1) * sizeof *b->prefix_ids);
    for (int64_t i = 0; b->prefix_ids && i < BLOCK; i++) {
        memcpy(b->prefix_ids + i * tokens.count, tokens.ids, (size_t)tokens.count * sizeof *tokens.ids);
        b->prefix_offsets[i + 1] = (i + 1) * tokens.count;
    }
    if (!b->prefix_ids)
        code = cli_fail_memory();
    else if (tokens.count >= limit)
        code = cli_misuse("--prefix has %lld tokens, and a translation at most %lld, the end token included",
                          (long long)tokens.count, (long long)limit);
    att_tokens_free(ctx, &tokens);
    return code;
}

static int stream(const cli_translator *m, cli_lines *in, cli_output *out)
{
    static block b;
    b.translations = malloc((size_t)(BLOCK * n_best) * sizeof *b.translations);
    int code = b.translations ? make_prefix(m, &b) : cli_fail_memory();
    cli_unknown unknown = {0};
    cli_share_begin(&b.progress, "lines");
    while (!code) {
        code = cli_lines_next(in, BLOCK);
        if (code || in->count == 0)
            break;
        code = translate(m, in, &b);
        if (code)
            break;
        report_failed(m, &b, in->count, in->before + b.progress.done);
        code = write_block(out->file, m, in, b.translations);
        for (int64_t i = 0; i < in->count * n_best; i++)
            att_translation_free(m->base.ctx, &b.translations[i]);
        for (int64_t i = 0; !code && i < in->count; i++)
            code = cli_unknown_scan(&unknown, m->base.ctx, att_translator_tokenizer(m->translator), in->text[i],
                                    in->bytes[i], 0);
        if (!code)
            code = cli_output_flush(out);
    }
    cli_share_end(&b.progress);
    cli_unknown_report(&unknown);
    free(b.translations);
    free(b.prefix_ids);
    return code;
}

static int check_options(void)
{
    if (beam && n_best > beam)
        return cli_misuse("--nbest %lld is more than --beam %lld", (long long)n_best, (long long)beam);
    if (max_length && min_length > max_length)
        return cli_misuse("--min-length %lld is more than --max-length %lld", (long long)min_length,
                          (long long)max_length);
    if (split && alignment.path)
        return cli_misuse("--alignment does not go with --split: the parts of a text have one each");
    if (json && alignment.path && !strcmp(alignment.path, "-"))
        return cli_misuse("--alignment - does not go with --json: give it a file");
    if (!alignment.path && (alignment.layer >= 0 || alignment.head >= 0))
        return cli_misuse("--%s is for --alignment", alignment.layer >= 0 ? "layer" : "head");
    return CLI_DONE;
}

static int check_model(const cli_translator *m)
{
    const int64_t max = m->info.max_positions, own = att_translator_beam(m->translator);
    if (!beam && n_best > own)
        return cli_misuse("--nbest %lld is more than the model's beam size, %lld: --beam %lld is needed",
                          (long long)n_best, (long long)own, (long long)n_best);
    if (max_length > max || min_length > max)
        return cli_misuse("--%s: the model has %lld positions, not %lld",
                          max_length > max ? "max-length" : "min-length", (long long)max,
                          (long long)(max_length > max ? max_length : min_length));
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    cli_translator m = {0};
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    int code = check_options();
    if (!code)
        code = cli_lines_choose(&in, false, &texts, &file, n, arguments);
    if (!code)
        code = cli_model_open(&m.base, &cli_translator_kind, model_name, types, threads);
    if (!code)
        code = check_model(&m);
    if (!code)
        code = cli_output_open(&out, output_path);
    if (!code)
        code = cli_alignment_open(&alignment, &m);
    if (!code)
        code = stream(&m, &in, &out);
    code = cli_alignment_close(&alignment, code);
    code = cli_output_close(&out, code);
    cli_model_close(&m.base);
    cli_lines_close(&in);
    return !code && lines_failed ? CLI_FAILED : code; /* the output is complete: a line for each */
}

const cli_command cli_translate = {
    .name = "translate",
    .summary = "translate text, line by line",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details = "Reads lines from the files (\"-\": standard input, which is also the default), or the sentences of "
               "--text, and\n"
               "writes the translation of each, in order; memory does not grow with the input. An\n"
               "empty line stays empty. A line that is too long for the model is reported, its translation is "
               "empty, and the command fails at the end; --split translates it in parts. The model is a MarianMTModel "
               "folder, such as those of\n"
               "\"attend train translate\" and of OPUS-MT, with model.safetensors, source.spm,\n"
               "target.spm and vocab.json. For a model with several target languages a line\n"
               "begins with a code: \">>deu<< How are you?\".\n\n"
               "--nbest: N lines for each line, best first; empty if fewer translations were\n"
               "found. --json: {\"text\": \"...\", \"translations\": [{\"text\": \"...\", \"score\": ...,\n"
               "\"tokens\": [...]}, ...]} per line.\n\n"
               "--alignment: rows: the target token that attends; columns: the source tokens\n"
               "attended to; each row sums to 1. \"-\" draws each picture below its translation.",
    .examples = "attend translate -m de-en < letters.de > letters.en\n"
                "attend translate --text 'Guten Morgen!' --beam 5 --nbest 3 --scores\n"
                "echo 'Guten Morgen!' | attend translate -m de-en --alignment morning.svg",
    .options = options,
    .see = "train translate|bleu|fetch",
    .run = run,
};
