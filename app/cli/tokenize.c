/* attend tokenize: lines to the model's tokens, and back. */
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
static bool json, offsets, no_truncate, no_special, target, decode;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name, .required = true, .env = "ATTEND_MODEL",
     .help = "model folder, name of a model in the models folder, OWNER/NAME in the cache of the Hugging Face Hub, or "
             "file: SentencePiece (.spm) or GGUF (.gguf)"},
    {"json", 0, NULL, .flag = &json, .help = "print token ids instead, a JSON array per line"},
    {"offsets", 0, NULL, .flag = &offsets,
     .help =
         "print ids, tokens, which of these the model puts around a text, and the bytes of the line that each token "
         "stands for, a JSON object per line"},
    {"decode", 0, NULL, .flag = &decode, .help = "print the texts of lines of ids, as --json prints them, instead"},
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

/* {"ids": [0, 4], "tokens": ["a", "Ġb"], "special": [false, false], "offsets": [[0, 1], [1, 3]]} */
static void print_offsets(const att_tokenizer *t, const att_tokens *tokens)
{
    cli_json j = cli_json_begin(stdout);
    print_ids(&j, "ids", tokens);
    cli_json_array(&j, "tokens");
    for (int64_t i = 0; i < tokens->count; i++)
        cli_json_string(&j, NULL, att_tokenizer_token(t, tokens->ids[i]));
    cli_json_end(&j);
    cli_json_array(&j, "special");
    for (int64_t i = 0; i < tokens->count; i++)
        cli_json_bool(&j, NULL, tokens->special[i]);
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

/* Reads the ids of a line, "[0, 4]" or "0 4", into ids [bytes / 2 + 1]. Returns their number; -1: the line has
 * something else. */
static int64_t read_ids(const char *text, size_t bytes, int32_t *ids)
{
    static const char between[] = " \t[],";
    const char *const end = text + bytes;
    int64_t n = 0;
    for (char *after;; text = after) {
        while (text < end && *text && strchr(between, *text))
            text++;
        if (text == end)
            return n;
        const long id = strtol(text, &after, 10);
        if (after == text || after > end || (after < end && (!*after || !strchr(between, *after))))
            return -1;
        ids[n++] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id; /* -1, which no token has */
    }
}

typedef struct job {
    cli_tokenizer m;
    cli_lines in;
    cli_unknown unknown;
    int64_t lines; /* so far */
} job;

static int decode_line(const job *j, const char *text, size_t bytes)
{
    int32_t *ids = malloc((bytes / 2 + 1) * sizeof *ids);
    if (!ids)
        return cli_fail_memory();
    const int64_t n = read_ids(text, bytes, ids);
    att_text decoded = {0};
    int code = 0;
    if (n < 0)
        code = cli_fail("line %" PRId64 ": \"%.40s\" is not a list of ids, as \"[101, 7592, 102]\"", j->lines, text);
    else if (att_detokenize(j->m.tokenizer, ids, n, &decoded))
        code = cli_fail("line %" PRId64 ": %s", j->lines, att_error(j->m.ctx));
    else if (json)
        cli_json_bytes(&(cli_json){.file = stdout}, NULL, decoded.text, decoded.bytes);
    else
        fwrite(decoded.text, 1, decoded.bytes, stdout);
    if (!code)
        putchar('\n');
    att_text_free(j->m.ctx, &decoded);
    free(ids);
    return code;
}

static int tokenize_line(job *j, const char *text, size_t bytes)
{
    const att_tokenize_options *o =
        ATT_OPTIONS(att_tokenize_options, .no_special = no_special, .max_tokens = no_truncate ? 0 : j->m.max_tokens,
                    .target = target, .offsets = offsets, .unknown = cli_unknown_add, .user = &j->unknown);
    att_tokens tokens = {0};
    const int code = cli_status(j->m.ctx, att_tokenize(j->m.tokenizer, text, bytes, o, &tokens));
    if (!code)
        print(j->m.tokenizer, &tokens);
    cli_unknown_end_line(&j->unknown);
    att_tokens_free(j->m.ctx, &tokens);
    return code;
}

static int run(int n, char **arguments)
{
    job j = {.in = {.fd = -1}};
    cli_output out = {0};
    if (decode && (offsets || no_special || no_truncate || target))
        return cli_misuse("--decode makes texts of ids, so --offsets, --no-special, --no-truncate and --target have no "
                          "effect");
    int code = cli_lines_open(&j.in, n, arguments);
    j.in.any_bytes = true; /* byte-level tokenizers have tokens for all bytes */
    if (!code)
        code = cli_tokenizer_open(&j.m, model_name);
    if (!code)
        code = cli_output_open(&out, NULL);
    while (!code) {
        code = cli_lines_next(&j.in, BLOCK);
        if (code || j.in.count == 0)
            break;
        for (int64_t i = 0; !code && i < j.in.count; i++) {
            j.lines++;
            code =
                decode ? decode_line(&j, j.in.text[i], j.in.bytes[i]) : tokenize_line(&j, j.in.text[i], j.in.bytes[i]);
        }
        if (!code)
            code = cli_output_flush(&out);
    }
    code = cli_output_close(&out, code);
    cli_unknown_report(&j.unknown);
    cli_tokenizer_close(&j.m);
    cli_lines_close(&j.in);
    return code;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "tokenize text, line by line, with the tokenizer of a model, or decode ids",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details = "Reads lines from the files (\"-\": standard input, which is also the default) and\n"
               "prints the tokens of each, separated by spaces. \"##\" continues a word (WordPiece);\n"
               "\"\u2581\" begins one (SentencePiece).",
    .examples = "echo 'Hello shiny sun!' | attend tokenize -m all-MiniLM-L6-v2\n"
                "attend tokenize -m source.spm --json < sentences.txt\n"
                "echo '[101, 7592, 102]' | attend tokenize -m all-MiniLM-L6-v2 --decode",
    .options = options,
    .see = "vocab",
    .run = run,
};
