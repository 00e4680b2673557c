/* attend tokenize: lines to the model's tokens. */
#include "cli/base/command.h"
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/unknown_tokens.h"
#include "cli/sentence/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024 };

static const char *model_name;
static bool json, offsets, no_truncate, no_special, target;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name, .required = true, .env = "ATTEND_MODEL",
     .help = "model folder, name of a model in the models folder, or file: SentencePiece (.spm) or GGUF (.gguf)"},
    {"json", 0, NULL, .flag = &json, .help = "print token ids instead, a JSON array per line"},
    {"offsets", 0, NULL, .flag = &offsets,
     .help = "print ids, tokens, and the bytes of the line that each token stands for, a JSON object per line; "
             "SentencePiece and Marian have none"},
    {"no-truncate", 0, NULL, .flag = &no_truncate, .help = "do not truncate at the model's maximum length"},
    {"no-special", 0, NULL, .flag = &no_special, .help = "do not add special tokens such as [CLS] and [SEP]"},
    {"target", 0, NULL, .flag = &target, .help = "use the tokenizer of the target language, if the model has one"},
    {0},
};

static void print_ids(cli_json *j, const char *key, const att_tokens *tokens)
{
    cli_json_array(j, key);
    for (int64_t i = 0; i < tokens->count; i++)
        cli_json_integer(j, NULL, tokens->ids[i]);
    cli_json_end(j);
}

/* {"ids": [0, 4], "tokens": ["a", "Ġb"], "offsets": [[0, 1], [1, 3]]} */
static void print_offsets(const att_tokenizer *t, const att_tokens *tokens)
{
    cli_json j = cli_json_begin(stdout);
    print_ids(&j, "ids", tokens);
    cli_json_array(&j, "tokens");
    for (int64_t i = 0; i < tokens->count; i++)
        cli_json_string(&j, NULL, att_tokenizer_token(t, tokens->ids[i]));
    cli_json_end(&j);
    cli_json_array(&j, "offsets");
    for (int64_t i = 0; i < tokens->count; i++) {
        cli_json_array(&j, NULL);
        cli_json_integer(&j, NULL, tokens->offsets[2 * i]);
        cli_json_integer(&j, NULL, tokens->offsets[2 * i + 1]);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

static void print(const att_tokenizer *t, const att_tokens *tokens)
{
    if (offsets) {
        print_offsets(t, tokens);
        return;
    }
    if (json) {
        print_ids(&(cli_json){.file = stdout}, NULL, tokens);
        return;
    }
    for (int64_t i = 0; i < tokens->count; i++)
        printf("%s%s", i ? " " : "", att_tokenizer_token(t, tokens->ids[i]));
    putchar('\n');
}

static int run(int n, char **arguments)
{
    cli_tokenizer m = {0};
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    int code = cli_lines_open(&in, n, arguments);
    in.any_bytes = true; /* which byte-level tokenizers have tokens for */
    if (!code)
        code = cli_tokenizer_open(&m, model_name);
    if (!code)
        code = cli_output_open(&out, NULL);
    const att_tokenizer *t = m.tokenizer;
    cli_unknown unknown = {0};
    const att_tokenize_options *o =
        ATT_OPTIONS(att_tokenize_options, .no_special = no_special, .max_tokens = no_truncate ? 0 : m.max_tokens,
                    .target = target, .offsets = offsets, .unknown = cli_unknown_add, .user = &unknown);
    while (!code) {
        code = cli_lines_next(&in, BLOCK);
        if (code || in.count == 0)
            break;
        for (int64_t i = 0; !code && i < in.count; i++) {
            att_tokens tokens = {0};
            code = cli_status(m.ctx, att_tokenize(t, in.text[i], in.bytes[i], o, &tokens));
            if (!code)
                print(t, &tokens);
            cli_unknown_end_line(&unknown);
            att_tokens_free(m.ctx, &tokens);
        }
        if (!code)
            code = cli_output_flush(&out);
    }
    code = cli_output_close(&out, code);
    cli_unknown_report(&unknown);
    cli_tokenizer_close(&m);
    cli_lines_close(&in);
    return code;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "tokenize text, line by line, with the tokenizer of a model",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details = "Reads lines from the files (\"-\": standard input, which is also the default) and\n"
               "prints the tokens of each, separated by spaces. \"##\" continues a word (WordPiece);\n"
               "\"\u2581\" begins one (SentencePiece).",
    .examples = "echo 'Hello shiny sun!' | attend tokenize -m all-MiniLM-L6-v2\n"
                "attend tokenize -m source.spm --json < sentences.txt",
    .options = options,
    .see = "vocab",
    .run = run,
};
