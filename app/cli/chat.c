/* attend chat: a conversation with a language model. */
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/line_input.h"
#include "cli/base/read_file.h"
#include "cli/base/signals.h"
#include "cli/language/conversation.h"
#include "cli/language/rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *model_name, *template_name, *system_message, *system_file, *load_file, *tools_file, *documents_file,
    *variables;
static int64_t max_tokens = 1024, lookup, top, threads;
static cli_types types;
static cli_texts stop;
static cli_sampling given = CLI_SAMPLING_NONE;
static bool json, stats, drop_oldest;

static const cli_option options[] = {
    CLI_LANGUAGE_MODEL_OPTION(&model_name),
    CLI_TYPES(types),
    {"system", 0, "TEXT", .text = &system_message, .quiet = true,
     .help = "system message, which tells the model what it is to do; default: the model's own, if it has one"},
    {"system-file", 0, "FILE", .text = &system_file, .quiet = true, .help = "read the system message from this file"},
    {"load", 0, "FILE", .text = &load_file, .quiet = true,
     .help = "continue the conversation that /save has written, or another list of {\"role\": ..., \"content\": ...}"},
    {"tools", 0, "FILE", .text = &tools_file, .quiet = true,
     .help =
         "functions that the model may call, as JSON in OpenAI's format: [{\"type\": \"function\", ...}]; a call is "
         "printed, not run"},
    {"documents", 0, "FILE", .text = &documents_file, .quiet = true,
     .help = "documents for answers, as JSON: [{\"title\": ..., \"text\": ...}]"},
    {"template", 0, "NAME", .text = &template_name, .quiet = true,
     .help =
         "chat template: a file FILE.jinja, one of several that the model names, such as tool_use, or one that comes "
         "with attend, such as chatml or llama3; default: the model's"},
    {"template-variables", 0, "JSON", .text = &variables, .quiet = true,
     .help = "variables for the chat template, such as '{\"enable_thinking\": false}'"},
    {"max-tokens", 'n', "N", .integer = &max_tokens, .max = INT32_MAX,
     .help = "maximum number of tokens of an answer; 0: as many as the model has positions for"},
    {"sample", 0, NULL, .flag = &given.sample,
     .help = "choose tokens at random where the model's settings do not state it"},
    CLI_SAMPLING(given),
    CLI_STOP(&stop),
    CLI_LOOKUP(&lookup),
    {"drop-oldest", 0, NULL, .flag = &drop_oldest,
     .help = "if the conversation fills the model's context, leave out its oldest messages, but not the system's"},
    CLI_STATS(&stats),
    {"json", 0, NULL, .flag = &json, .help = "print an object for each answer"},
    CLI_TOP_LOGPROBS(&top),
    CLI_THREADS(&threads),
    {0},
};

/* ---- what is written */

typedef struct chat {
    cli_conversation c;
    cli_line_input in;
    att_sampling sampling;
} chat;

typedef struct stream_state {
    bool begun, line_end; /* something was written; it ends a line */
    int error;            /* errno of writing */
    cli_rate rate;
} stream_state;

/* Writes a piece of an answer, without the white space before its first. */
static bool write_piece(void *user, const att_generated_token *token)
{
    stream_state *s = user;
    const char *text = token->text;
    size_t bytes = token->bytes;
    cli_rate_token(&s->rate);
    for (; !s->begun && bytes > 0 && (*text == ' ' || *text == '\n'); bytes--)
        text++;
    if (bytes > 0 && !json) {
        fwrite(text, 1, bytes, stdout);
        s->begun = true;
        s->line_end = text[bytes - 1] == '\n';
        if (fflush(stdout) && errno != EINTR)
            s->error = errno;
    }
    return !cli_signal && !s->error;
}

static void write_json(const cli_conversation *c, const cli_reply *r, const cli_rate *rate)
{
    const att_chat_message *answer = &c->message[c->count - 1];
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "role", "assistant");
    cli_json_bytes(&j, "content", answer->text, answer->bytes);
    cli_json_string(&j, "end", cli_generation_end(r->generated.end));
    cli_json_integer(&j, "prompt_tokens", r->prompt);
    cli_json_integer(&j, "cached_tokens", r->generated.cached);
    cli_json_integer(&j, "completion_tokens", r->generated.tokens.count);
    if (stats)
        cli_rate_write(&j, rate);
    if (top)
        cli_tokens_write(&j, "tokens", c->m,
                         &(cli_scored_tokens){r->generated.tokens.ids, r->generated.log_probabilities,
                                              r->generated.top_ids, r->generated.top_log_probabilities,
                                              r->generated.tokens.count, top});
    cli_json_end(&j);
}

/* ---- answers */

static void note_end(const cli_conversation *c, att_generation_end end)
{
    if (end == ATT_GENERATION_CONTEXT)
        cli_note("the answer ends where the conversation has the model's %lld positions: /reset begins a new one",
                 (long long)c->m->info.max_positions);
    if (end == ATT_GENERATION_LENGTH)
        cli_note("the answer ends after --max-tokens %lld", (long long)max_tokens);
}

/* Generates an answer to a text [bytes]; NULL: to the last message again. */
static int answer(chat *h, const char *text, size_t bytes)
{
    stream_state stream = {.line_end = true};
    const att_generate_options *o =
        ATT_OPTIONS(att_generate_options, .max_tokens = max_tokens, .sampling = &h->sampling,
                    .seed = given.seed > 0 ? (uint64_t)given.seed : 0, .stop = stop.text, .n_stop = stop.n,
                    .lookup = lookup, .log_probabilities = top > 0, .top = top, .token = write_piece, .user = &stream);
    cli_reply reply;
    cli_rate_begin(&stream.rate);
    int code = text ? cli_conversation_reply(&h->c, text, bytes, o, &reply) : cli_conversation_retry(&h->c, o, &reply);
    const bool complete = !code || code == CLI_INTERRUPTED;
    if (json && complete)
        write_json(&h->c, &reply, &stream.rate);
    else if (complete && !(stream.begun && stream.line_end))
        putchar('\n');
    if (code == CLI_INTERRUPTED && h->in.terminal && cli_end_forget()) { /* ends the answer, not the chat */
        clearerr(stdout);
        code = CLI_DONE;
    }
    if (fflush(stdout) && !stream.error)
        stream.error = errno;
    if (!code)
        note_end(&h->c, reply.generated.end);
    if (!code && stats && !json)
        cli_rate_note(&stream.rate, reply.prompt, reply.generated.cached);
    cli_reply_free(&h->c, &reply);
    return stream.error ? cli_fail("standard output: %s", strerror(stream.error)) : code;
}

/* Returns whether the oldest messages may be dropped, which a terminal is asked without --drop-oldest. */
static bool may_drop(void *user, size_t dropped)
{
    chat *h = user;
    const long long positions = (long long)h->c.m->info.max_positions;
    const char *line = NULL;
    size_t bytes;
    if (drop_oldest) {
        cli_note("the %zu oldest messages are left out, as the conversation fills the model's %lld positions", dropped,
                 positions);
        return true;
    }
    if (!h->in.terminal)
        return false;
    cli_note("the conversation fills the model's %lld positions; without its %zu oldest messages it continues",
             positions, dropped);
    return !cli_line_input_next(&h->in, "leave them out? [y/n] ", "\n", &line, &bytes) && line && bytes > 0 &&
           (*line == 'y' || *line == 'Y');
}

/* ---- commands */

typedef struct chat_command {
    const char *name, *argument, *help;
    int (*run)(chat *h, const char *argument);
} chat_command;

static int reset(chat *h, const char *argument)
{
    (void)argument;
    cli_conversation_reset(&h->c);
    return CLI_DONE;
}

static int undo(chat *h, const char *argument)
{
    (void)argument;
    return cli_conversation_undo(&h->c);
}

static int retry(chat *h, const char *argument)
{
    (void)argument;
    if (h->in.terminal && !h->sampling.sample)
        cli_note("the most probable tokens are the same again: --sample or --temperature draws others");
    return answer(h, NULL, 0);
}

static int load(chat *h, const char *argument)
{
    if (!*argument)
        return cli_fail("/load FILE: which file?");
    const int code = cli_conversation_load(&h->c, argument);
    if (!code && strcmp(h->c.message[h->c.count - 1].role, "assistant") != 0)
        cli_note("%s: the last message has no answer; /retry generates one", argument);
    return code;
}

static int save(chat *h, const char *argument)
{
    return *argument ? cli_conversation_save(&h->c, argument) : cli_fail("/save FILE: which file?");
}

static int set_system(chat *h, const char *argument)
{
    return cli_conversation_system(&h->c, argument, strlen(argument));
}

static int help(chat *h, const char *argument);

static const chat_command commands[] = {
    {"/reset", "", "begin a new conversation; the system message stays", reset},
    {"/undo", "", "remove the last message and its answer", undo},
    {"/retry", "", "answer the last message again", retry},
    {"/system", " TEXT", "set the system message; without TEXT remove it", set_system},
    {"/save", " FILE", "write the messages to a file, as JSON", save},
    {"/load", " FILE", "replace the conversation by that of a file", load},
    {"/help", "", "print these commands", help},
    {"/quit", "", "end the chat, as Ctrl-D does; Ctrl-C ends an answer", NULL},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help(chat *h, const char *argument)
{
    (void)h, (void)argument;
    for (int i = 0; i < COMMANDS; i++) {
        char usage[32];
        snprintf(usage, sizeof usage, "%s%s", commands[i].name, commands[i].argument);
        fprintf(stderr, "  %-14s %s\n", usage, commands[i].help);
    }
    return CLI_DONE;
}

/* Returns whether a line is a command: "/word" or "/word argument". "/etc/passwd" is not one. */
static bool is_command(const char *line, size_t bytes)
{
    size_t n = 1;
    while (n < bytes && line[n] >= 'a' && line[n] <= 'z')
        n++;
    return bytes > 1 && line[0] == '/' && n > 1 && (n == bytes || line[n] == ' ');
}

static int run_command(chat *h, const char *line, size_t bytes, bool *quit)
{
    char *copy = malloc(bytes + 1), *rest = copy;
    if (!copy)
        return cli_fail_memory();
    memcpy(copy, line, bytes);
    copy[bytes] = '\0';
    const char *word = strsep(&rest, " ");
    const char *argument = rest ? rest + strspn(rest, " ") : "";
    int i = 0, code;
    while (i < COMMANDS && strcmp(commands[i].name, word) != 0)
        i++;
    if (i == COMMANDS)
        code = cli_fail("there is no command %s; /help lists them, and a space before it makes it a message", word);
    else if (*argument && !*commands[i].argument)
        code = cli_fail("%s takes nothing after it, but here is \"%s\"", word, argument);
    else
        code = commands[i].run ? commands[i].run(h, argument) : CLI_DONE;
    *quit = i < COMMANDS && !commands[i].run && !code;
    free(copy);
    return code;
}

/* ---- the work */

/* Answers line by line. An error in one answer does not end the chat, but without a terminal it becomes the exit
 * code. */
static int hold(chat *h)
{
    int code = CLI_DONE, failed = CLI_DONE;
    bool quit = false;
    while (!quit && code != CLI_INTERRUPTED && !ferror(stdout)) {
        const char *line;
        size_t bytes;
        code = cli_line_input_next(&h->in, "> ", "\n(/quit or Ctrl-D ends the chat)\n", &line, &bytes);
        if (code || !line) {
            if (!code && h->in.terminal)
                putchar('\n');
            return code ? code : failed;
        }
        if (is_command(line, bytes))
            code = run_command(h, line, bytes, &quit);
        else if (bytes > 0)
            code = answer(h, line, bytes);
        if (code == CLI_FAILED && !h->in.terminal)
            failed = code;
    }
    return code == CLI_INTERRUPTED ? code : failed;
}

static int check_options(void)
{
    if (top && !json)
        return cli_misuse("--top-logprobs is for --json");
    if (system_message && system_file)
        return cli_misuse("--system and --system-file are given, not one of them");
    return cli_stop_check(&stop);
}

static int set_first_messages(chat *h)
{
    cli_whole_text text = {0};
    int code = load_file ? cli_conversation_load(&h->c, load_file) : CLI_DONE;
    if (!code && system_message)
        code = cli_conversation_system(&h->c, system_message, strlen(system_message));
    if (!code && system_file)
        code = cli_whole_text_read(system_file, &text);
    if (!code && system_file) {
        cli_whole_text_end_line(&text);
        code = cli_conversation_system(&h->c, text.text, text.bytes);
    }
    cli_whole_text_free(&text);
    return code;
}

static void note_begin(const chat *h)
{
    cli_sampling_note(&h->sampling, given.seed);
    if (!h->in.terminal)
        return;
    if (!h->sampling.sample)
        cli_note("each token is the most probable one; --sample, --temperature and others draw them at random");
    cli_note("%s, chat template %s; /help lists commands, /quit or Ctrl-D ends", h->c.m->base.name,
             att_chat_template_name(h->c.template));
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    cli_language m = {0};
    chat h = {0};
    int code = check_options();
    if (!code)
        code = cli_model_open(&m.base, &cli_language_kind, model_name, types, threads);
    if (!code)
        code = cli_sampling_read(&m, &given, false, &h.sampling);
    if (!code)
        code = cli_top_check(&m, top);
    if (!code)
        code = cli_lookup_check(&m, lookup);
    if (!code)
        code = cli_conversation_open(&h.c, &m, template_name);
    if (!code)
        code = cli_conversation_lists(&h.c, tools_file, documents_file, variables);
    if (!code) {
        h.c.drop = may_drop;
        h.c.user = &h;
        code = set_first_messages(&h);
    }
    if (!code)
        code = cli_line_input_open(&h.in);
    if (!code) {
        note_begin(&h);
        cli_end_later();
        code = hold(&h);
    }
    cli_line_input_close(&h.in);
    if (m.base.ctx)
        cli_conversation_close(&h.c);
    cli_model_close(&m.base);
    return code;
}

const cli_command cli_chat = {
    .name = "chat",
    .summary = "hold a conversation with a language model",
    .details =
        "Reads messages from standard input, one per line, and prints the model's answers. The model sees the whole "
        "conversation, in the format it was trained with, which is read from its chat template; what it has computed "
        "of "
        "it before is not computed again.\n\n"
        "Lines that begin with \"/\" and a word are commands: /reset begins a new conversation, /undo removes the last "
        "message and its answer, /retry answers it again, /system TEXT sets the system message, /save FILE writes the "
        "messages as JSON, /load FILE reads them, /help lists commands, /quit ends. Special tokens that are typed, "
        "such "
        "as \"<|im_end|>\", are text like any other.\n\n"
        "On a terminal lines can be edited and earlier ones called back, and pasted text is one message, even of "
        "several "
        "lines (where attend was built with libedit). Ctrl-C ends an answer and Ctrl-D the chat. If the conversation "
        "fills the model's context, attend asks whether to leave out its oldest messages, which --drop-oldest does "
        "without asking. The prompt is then that of a conversation without these messages.\n\n"
        "With --tools the model may call functions. A call is printed as the model writes it, and not run; its result "
        "is a "
        "message of the role \"tool\" in a file for --load, which /retry answers.\n\n"
        "Tokens are chosen as the model's generation_config.json states, or the keys general.sampling.* of a .gguf "
        "file, "
        "or as the sampling options do.\n\n"
        "--json: {\"role\": \"assistant\", \"content\": \"...\", \"end\": \"eos\", \"prompt_tokens\": 60, "
        "\"cached_tokens\": 43, \"completion_tokens\": 9} per answer; with --top-logprobs also \"tokens\", as `attend "
        "generate --json` has them, and with --stats \"seconds_to_first_token\" and \"tokens_per_second\". The end is "
        "eos, stop, length (--max-tokens), context (no position is left) or "
        "interrupted.",
    .examples = "attend chat -m SmolLM2-135M-Instruct\n"
                "attend chat -m SmolLM2-135M-Instruct --system \"Answer in one sentence.\" < questions.txt\n"
                "echo 'What is the capital of Japan?' | attend chat -m SmolLM2-135M-Instruct --json",
    .options = options,
    .see = "generate|fetch",
    .run = run,
};
