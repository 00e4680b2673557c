/* attend generate: a language model continues texts. */
#include "cli/base/command.h"
#include "cli/base/grow.h"
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/read_file.h"
#include "cli/language/language.h"
#include "cli/language/rate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64 }; /* lines at a time */

static const char *model_name, *file;
static int64_t max_tokens = 256, lookup, top, threads;
static cli_types types;
static cli_texts stop;
static cli_sampling given = CLI_SAMPLING_NONE;
static bool streaming, json, lines, ignore_eos, prompt_logprobs, stats;

static const cli_option options[] = {
    CLI_LANGUAGE_MODEL_OPTION(&model_name),
    CLI_TYPES(types),
    {"file", 'f', "FILE", .text = &file, .quiet = true,
     .help = "read the prompt from this file; \"-\": standard input"},
    {"lines", 'l', NULL, .flag = &lines, .help = "each line of the input is a prompt; they are computed together"},
    {"max-tokens", 'n', "N", .integer = &max_tokens, .max = INT32_MAX,
     .help = "maximum number of generated tokens; 0: as many as the model has positions for"},
    {"sample", 0, NULL, .flag = &given.sample,
     .help = "choose tokens at random, as the model's generation_config.json states"},
    CLI_SAMPLING(given),
    CLI_STOP(&stop),
    {"ignore-eos", 0, NULL, .flag = &ignore_eos, .help = "continue after the model's end token"},
    CLI_LOOKUP(&lookup),
    CLI_STATS(&stats),
    {"stream", 0, NULL, .flag = &streaming,
     .help = "write each piece at once, as on a terminal; with --json an object for each token"},
    CLI_JSON(&json),
    CLI_TOP_LOGPROBS(&top),
    {"prompt-logprobs", 0, NULL, .flag = &prompt_logprobs,
     .help = "with --json: also the log probabilities of the prompt's tokens"},
    CLI_THREADS(&threads),
    {0},
};

/* ---- prompts */

typedef struct prompts {
    int64_t n, first;        /* first: number of the first one, for lines */
    const char *const *text; /* [n] */
    const size_t *bytes;     /* [n] */
    int32_t *ids;            /* [offsets[n]] */
    int64_t *offsets;        /* [n + 1] */
    bool refused;            /* the prompt after the last of n cannot be continued: a message states why */
} prompts;

/* What --stats reports of the whole command. */
static struct {
    cli_rate rate;
    int64_t prompt, cached; /* tokens */
} speed;

/* Reports that a prompt which begins with the model's first token, as text, now has two of them. */
static void note_two_firsts(const att_tokenizer *t, const char *what, const char *text, size_t bytes,
                            const att_tokens *tokens)
{
    const char *first = tokens->count > 1 ? att_tokenizer_token(t, tokens->ids[0]) : NULL;
    const size_t n = first ? strlen(first) : 0;
    if (n > 0 && tokens->ids[0] == tokens->ids[1] && n <= bytes && memcmp(text, first, n) == 0)
        cli_note("%s begins with \"%s\", which the model puts before it, too: leave it out", what, first);
}

/* Tokenizes the prompts up to the first one that cannot be continued. */
static int encode(const cli_language *m, prompts *p)
{
    const att_tokenizer *t = att_text_generator_tokenizer(m->generator);
    size_t room = 0;
    int code = CLI_DONE;
    p->offsets = calloc((size_t)p->n + 1, sizeof *p->offsets);
    if (!p->offsets)
        return cli_fail_memory();
    for (int64_t i = 0; !code && !p->refused && i < p->n; i++) {
        att_tokens tokens = {0};
        char what[40] = "the prompt";
        if (lines)
            snprintf(what, sizeof what, "line %lld", (long long)(p->first + i + 1));
        code = cli_status(m->base.ctx, att_tokenize(t, p->text[i], p->bytes[i], NULL, &tokens));
        if (!code) {
            note_two_firsts(t, what, p->text[i], p->bytes[i], &tokens);
            p->refused = cli_prompt_check(m, what, tokens.count) != CLI_DONE;
        }
        p->n = p->refused ? i : p->n;
        p->offsets[i + 1] = p->offsets[i] + tokens.count;
        if (!code && !p->refused &&
            !cli_reserve(&room, (size_t)p->offsets[i + 1], &(cli_array){&p->ids, sizeof *p->ids}, 1))
            code = cli_fail_memory();
        if (!code && !p->refused)
            memcpy(p->ids + p->offsets[i], tokens.ids, (size_t)tokens.count * sizeof *p->ids);
        att_tokens_free(m->base.ctx, &tokens);
    }
    return code;
}

/* ---- what is written */

typedef struct stream_state {
    const cli_language *m;
    int64_t first; /* number of the first prompt */
    bool line_end; /* the last character written ends a line */
    int error;     /* errno of writing */
} stream_state;

static bool handle_token(void *user, const att_generated_token *token)
{
    stream_state *s = user;
    cli_rate_token(&speed.rate);
    if (!streaming)
        return !cli_signal;
    if (json) {
        cli_json j = cli_json_begin(stdout);
        cli_json_integer(&j, "prompt", s->first + token->sequence);
        cli_json_integer(&j, "position", token->position);
        cli_token_write(&j, s->m,
                        &(cli_scored_tokens){&token->id, &token->log_probability, token->top_ids,
                                             token->top_log_probabilities, 1, top},
                        0);
        cli_json_bytes(&j, "text", token->bytes ? token->text : "", token->bytes);
        cli_json_bool(&j, "last", token->last);
        cli_json_end(&j);
    } else if (token->bytes) {
        fwrite(token->text, 1, token->bytes, stdout);
        s->line_end = token->text[token->bytes - 1] == '\n';
    }
    if (fflush(stdout) && errno != EINTR)
        s->error = errno;
    return !cli_signal && !s->error;
}

/* Writes the result of prompt i. */
static void write_json(const cli_language *m, const prompts *p, int64_t i, const att_generated *g)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_bytes(&j, "prompt", p->text[i], p->bytes[i]);
    cli_json_bytes(&j, "text", g->text.text, g->text.bytes);
    cli_json_string(&j, "end", cli_generation_end(g->end));
    cli_tokens_write(&j, "tokens", m,
                     &(cli_scored_tokens){g->tokens.ids, g->log_probabilities, g->top_ids, g->top_log_probabilities,
                                          g->tokens.count, top});
    if (prompt_logprobs)
        cli_tokens_write(&j, "prompt_logprobs", m,
                         &(cli_scored_tokens){p->ids + p->offsets[i], g->prompt_log_probabilities, g->prompt_top_ids,
                                              g->prompt_top_log_probabilities, p->offsets[i + 1] - p->offsets[i], top});
    cli_json_close(&j);
}

/* Writes what stands for the text of a line that cannot be continued. */
static void write_refused(const char *text, size_t bytes)
{
    if (!json) {
        putchar('\n');
        return;
    }
    cli_json j = cli_json_begin(stdout);
    cli_json_bytes(&j, "prompt", text, bytes);
    cli_json_string(&j, "text", NULL);
    cli_json_string(&j, "end", "error");
    cli_json_close(&j);
}

/* Writes a text. With --lines it becomes one line, even if it has line ends. */
static void write_text(const att_generated *g)
{
    for (size_t i = 0; i < g->text.bytes; i++) {
        const char c = g->text.text[i];
        putchar(lines && (c == '\n' || c == '\r') ? ' ' : c);
    }
    putchar('\n');
}

/* ---- the work */

/* Generates and writes the texts of the prompts up to the first one that cannot be continued. */
static int generate(const cli_language *m, prompts *p, const att_sampling *sampling)
{
    stream_state stream = {m, p->first, true, 0};
    const att_generate_options *o =
        ATT_OPTIONS(att_generate_options, .max_tokens = max_tokens, .sampling = sampling,
                    .seed = given.seed > 0 ? (uint64_t)given.seed : 0, .first_sequence = p->first, .stop = stop.text,
                    .n_stop = stop.n, .lookup = lookup, .log_probabilities = json, .top = top,
                    .prompt_log_probabilities = prompt_logprobs, .ignore_eos = ignore_eos,
                    .token = streaming || stats ? handle_token : NULL, .user = &stream);
    att_generated *out = calloc((size_t)p->n, sizeof *out);
    if (!out)
        return cli_fail_memory();
    int code = encode(m, p);
    if (!code && p->n > 0)
        code = cli_status(m->base.ctx, att_generate(m->generator, p->n, p->ids, p->offsets, o, out));
    for (int64_t i = 0; (!code || code == CLI_INTERRUPTED) && i < p->n; i++) {
        if (!streaming && out[i].tokens.ids && json)
            write_json(m, p, i, &out[i]);
        else if (!streaming && out[i].tokens.ids)
            write_text(&out[i]);
        if (out[i].end == ATT_GENERATION_CONTEXT)
            cli_note("the text ends where it has the model's %lld positions", (long long)m->info.max_positions);
        if (out[i].end == ATT_GENERATION_CALLBACK)
            code = CLI_INTERRUPTED;
        speed.cached += out[i].cached;
    }
    speed.prompt += p->offsets ? p->offsets[p->n] : 0;
    if (streaming && !json && !stream.line_end)
        putchar('\n');
    if (stream.error)
        code = cli_fail("standard output: %s", strerror(stream.error));
    for (int64_t i = 0; i < p->n; i++)
        att_generated_free(m->base.ctx, &out[i]);
    free(p->ids);
    free(p->offsets);
    free(out);
    return code;
}

/* Continues lines, except those that cannot be continued. *refused: there was one. */
static int generate_block(const cli_language *m, const prompts *all, const att_sampling *sampling, bool *refused)
{
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < all->n; i++) {
        prompts p = {.n = all->n - i, .first = all->first + i, .text = all->text + i, .bytes = all->bytes + i};
        code = generate(m, &p, sampling);
        i += p.n;
        if (!code && p.refused)
            write_refused(all->text[i], all->bytes[i]);
        *refused = *refused || p.refused;
    }
    return code;
}

static int generate_lines(const cli_language *m, const att_sampling *sampling)
{
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    bool refused = false;
    char *path = (char *)(uintptr_t)file;
    int code = cli_lines_open(&in, file ? 1 : 0, &path);
    if (!code)
        code = cli_output_open(&out, NULL);
    for (int64_t first = 0; !code; first += in.count) {
        code = cli_lines_next(&in, BLOCK);
        if (code || in.count == 0)
            break;
        code = generate_block(m, &(prompts){.n = in.count, .first = first, .text = in.text, .bytes = in.bytes},
                              sampling, &refused);
        if (!code)
            code = cli_output_flush(&out);
    }
    cli_lines_close(&in);
    code = cli_output_close(&out, code);
    return !code && refused ? CLI_FAILED : code;
}

/* Reads the whole of a file without the line end that editors and echo write. */
static int read_prompt(cli_whole_text *text)
{
    const char *path = file ? file : "-";
    double size;
    int code = cli_file_check(path, &size);
    if (!code)
        code = cli_whole_text_read(path, text);
    if (!code)
        cli_whole_text_end_line(text);
    return code;
}

static int generate_one(const cli_language *m, const char *prompt, const att_sampling *sampling)
{
    cli_whole_text read = {0};
    int code = prompt ? CLI_DONE : read_prompt(&read);
    const char *text = prompt ? prompt : read.text;
    const size_t bytes = prompt ? strlen(prompt) : read.bytes;
    prompts p = {.n = 1, .text = &text, .bytes = &bytes};
    if (!code)
        code = generate(m, &p, sampling);
    cli_whole_text_free(&read);
    return !code && p.refused ? CLI_FAILED : code;
}

static int check_options(int n)
{
    if (n && file)
        return cli_misuse("--file %s does not go with a prompt as an argument", file);
    if (n && lines)
        return cli_misuse("--lines is for a file or standard input, not for a prompt as an argument");
    if (lines && streaming && !json)
        return cli_misuse("--stream does not go with --lines, whose texts are computed together; with --json it does");
    if ((top || prompt_logprobs) && !json)
        return cli_misuse("--%s is for --json", top ? "top-logprobs" : "prompt-logprobs");
    if (prompt_logprobs && streaming)
        return cli_misuse("--prompt-logprobs does not go with --stream, which writes the tokens of the text");
    return cli_stop_check(&stop);
}

static int run(int n, char **arguments)
{
    cli_language m = {0};
    att_sampling sampling;
    int code = check_options(n);
    if (!code)
        code = cli_model_open(&m.base, &cli_language_kind, model_name, types, threads);
    if (!code)
        code = cli_sampling_read(&m, &given, true, &sampling);
    if (!code)
        code = cli_lookup_check(&m, lookup);
    if (!code)
        code = cli_top_check(&m, top);
    if (!code) {
        cli_sampling_note(&sampling, given.seed);
        streaming = streaming || (!json && !lines && isatty(STDOUT_FILENO));
        cli_rate_begin(&speed.rate);
        code = lines ? generate_lines(&m, &sampling) : generate_one(&m, n ? arguments[0] : NULL, &sampling);
        if (stats)
            cli_rate_note(&speed.rate, speed.prompt, speed.cached);
    }
    cli_model_close(&m.base);
    return code;
}

const cli_command cli_generate = {
    .name = "generate",
    .summary = "continue a text with a language model",
    .arguments = "[PROMPT]",
    .max_arguments = 1,
    .details =
        "Prints how the model continues the prompt: the argument, or the whole of a file or of standard input without "
        "its last line end; with --lines each line is a prompt, and the texts are printed as lines, in order. A line "
        "that "
        "cannot be continued, because it is empty or too long, is reported and gives an empty line, or \"end\": "
        "\"error\"; the exit code is then 1.\n\n"
        "Each token is the most probable one, unless a sampling option or --sample is given. Then tokens are random, "
        "by the settings of the model's generation_config.json and those options, which are printed with the seed. The "
        "order is that of `transformers` and vLLM: bias, repetition penalty, presence and frequency penalty, "
        "temperature, top-k, top-p, min-p. The text depends on the seed, but not on the number of threads, nor on what "
        "else is computed at the same time.\n\n"
        "--json: {\"prompt\": \"...\", \"text\": \"...\", \"end\": \"eos\", \"tokens\": [{\"id\": 1, \"token\": "
        "\"...\", \"log_probability\": -0.5}]} per prompt; log probabilities are natural and the model's own, before "
        "sampling options. With --top-logprobs tokens have \"top_logprobs\", the most probable tokens as such objects, "
        "and with --prompt-logprobs there is \"prompt_logprobs\" like \"tokens\". The end is eos, stop, length "
        "(--max-tokens), context (no position is left) or interrupted.",
    .examples = "attend generate -m SmolLM2-135M-Instruct \"The capital of France is\"\n"
                "attend generate -m SmolLM2-135M-Instruct --temperature 0.7 --seed 1 -n 100 -f story.txt\n"
                "attend generate -m SmolLM2-135M-Instruct --lines --json -n 20 < prompts.txt",
    .options = options,
    .see = "tokenize|fetch",
    .run = run,
};
