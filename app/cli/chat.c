/* attend chat: a conversation with a language model. */
#include "cli/base/command.h"
#include "cli/base/grow.h"
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "cli/language/conversation.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_name, *template_name, *system_message;
static int64_t max_tokens = 1024, top, threads;
static int dtype;
static cli_sampling given = CLI_SAMPLING_NONE;
static bool json;

static const cli_option options[] = {
    CLI_LANGUAGE_MODEL_OPTION(&model_name),
    CLI_DTYPE(&dtype),
    {"system", 0, "TEXT", .text = &system_message, .quiet = true,
     .help = "system message, which tells the model what it is to do; default: the model's own, if it has one"},
    {"template", 0, "NAME", .text = &template_name, .quiet = true,
     .help = "format of conversations, such as chatml or llama3; default: that of the model's chat template"},
    {"max-tokens", 'n', "N", .integer = &max_tokens, .max = INT32_MAX,
     .help = "maximum number of tokens of an answer; 0: as many as the model has positions for"},
    {"sample", 0, NULL, .flag = &given.sample,
     .help = "choose tokens at random where the model's settings do not state it"},
    CLI_SAMPLING(given),
    {"json", 0, NULL, .flag = &json, .help = "print an object for each answer"},
    CLI_TOP_LOGPROBS(&top),
    CLI_THREADS(&threads),
    {0},
};

/* ---- lines of standard input */

typedef struct line_reader {
    char *data; /* [used]; the next line begins at `at` */
    size_t used, at, room;
    bool terminal;
} line_reader;

static void show_prompt(const line_reader *r)
{
    if (r->terminal) {
        fputs("> ", stdout);
        fflush(stdout);
    }
}

/* Reads like read(). A signal that arrives just before read() would have no effect until the next line, so cli_signal
 * is checked repeatedly. */
static ssize_t read_unless_signaled(char *to, size_t bytes)
{
    enum { MILLISECONDS = 100 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!cli_signal && poll(&input, 1, MILLISECONDS) == 0)
        continue;
    if (!cli_signal)
        return read(STDIN_FILENO, to, bytes);
    errno = EINTR;
    return -1;
}

/* Reads more; *end: there is no more. */
static int read_more(line_reader *r, bool *end)
{
    ssize_t n;
    if (!cli_reserve(&r->room, r->used + 4096, &(cli_array){&r->data, 1}, 1))
        return cli_fail_memory();
    memmove(r->data, r->data + r->at, r->used - r->at);
    r->used -= r->at;
    r->at = 0;
    while ((n = read_unless_signaled(r->data + r->used, 4096)) < 0) {
        if (errno != EINTR)
            return cli_fail_errno("standard input");
        if (cli_signal && !(r->terminal && cli_end_forget()))
            return CLI_INTERRUPTED;
        if (r->terminal) { /* Ctrl-C: the terminal has discarded the line */
            fputs("\n(/quit or Ctrl-D ends the chat)\n", stdout);
            show_prompt(r);
        }
    }
    r->used += (size_t)n;
    *end = n == 0;
    return CLI_DONE;
}

/* Reads the next line, without its end; *line NULL: the input has ended. */
static int next_line(line_reader *r, const char **line, size_t *bytes)
{
    size_t from = r->at;
    bool end = false;
    *line = NULL;
    for (;;) {
        const char *found = r->used > from ? memchr(r->data + from, '\n', r->used - from) : NULL;
        if (found || (end && r->used > r->at)) {
            const size_t stop = found ? (size_t)(found - r->data) : r->used;
            *line = r->data + r->at;
            *bytes = stop - r->at - (stop > r->at && r->data[stop - 1] == '\r');
            r->at = stop + (found != NULL);
            return CLI_DONE;
        }
        if (end)
            return CLI_DONE;
        from = r->used - r->at;
        const int code = read_more(r, &end);
        if (code)
            return code;
    }
}

/* ---- what is written */

typedef struct stream_state {
    bool begun, line_end; /* something was written; it ends a line */
    int error;            /* errno of writing */
} stream_state;

/* Writes a piece of an answer, without the white space before its first. */
static bool write_piece(void *user, const att_generated_token *token)
{
    stream_state *s = user;
    const char *text = token->text;
    size_t bytes = token->bytes;
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

static void write_json(const cli_conversation *c, const cli_reply *r)
{
    const att_chat_message *answer = &c->message[c->count - 1];
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "role", "assistant");
    cli_json_bytes(&j, "content", answer->text, answer->bytes);
    cli_json_string(&j, "end", cli_generation_end(r->generated.end));
    cli_json_integer(&j, "prompt_tokens", r->prompt);
    cli_json_integer(&j, "cached_tokens", r->generated.cached);
    cli_json_integer(&j, "completion_tokens", r->generated.tokens.count);
    if (top)
        cli_tokens_write(&j, "tokens", c->m,
                         &(cli_scored_tokens){r->generated.tokens.ids, r->generated.log_probabilities,
                                              r->generated.top_ids, r->generated.top_log_probabilities,
                                              r->generated.tokens.count, top});
    cli_json_end(&j);
}

/* ---- the work */

static void note_end(const cli_conversation *c, att_generation_end end)
{
    if (end == ATT_GENERATION_CONTEXT)
        cli_note("the answer ends where the conversation has the model's %lld positions: /reset begins a new one",
                 (long long)c->m->info.max_positions);
    if (end == ATT_GENERATION_LENGTH)
        cli_note("the answer ends after --max-tokens %lld", (long long)max_tokens);
}

static int answer(cli_conversation *c, const line_reader *in, const att_sampling *sampling, const char *text,
                  size_t bytes)
{
    stream_state stream = {false, true, 0};
    cli_reply reply;
    int code = cli_conversation_reply(c, text, bytes,
                                      ATT_OPTIONS(att_generate_options, .max_tokens = max_tokens, .sampling = sampling,
                                                  .seed = given.seed > 0 ? (uint64_t)given.seed : 0,
                                                  .log_probabilities = top > 0, .top = top, .token = write_piece,
                                                  .user = &stream),
                                      &reply);
    const bool complete = !code || code == CLI_INTERRUPTED;
    if (json && complete)
        write_json(c, &reply);
    else if (complete && !(stream.begun && stream.line_end))
        putchar('\n');
    if (code == CLI_INTERRUPTED && in->terminal && cli_end_forget()) { /* ends the answer, not the chat */
        clearerr(stdout);
        code = CLI_DONE;
    }
    if (fflush(stdout) && !stream.error)
        stream.error = errno;
    if (!code)
        note_end(c, reply.generated.end);
    cli_reply_free(c, &reply);
    return stream.error ? cli_fail("standard output: %s", strerror(stream.error)) : code;
}

typedef struct chat_command {
    const char *name, *argument, *help;
    int (*run)(cli_conversation *c, const char *argument);
} chat_command;

static int reset(cli_conversation *c, const char *argument)
{
    (void)argument;
    cli_conversation_reset(c);
    return CLI_DONE;
}

static int save(cli_conversation *c, const char *argument)
{
    return *argument ? cli_conversation_save(c, argument) : cli_fail("/save FILE: which file?");
}

static int set_system(cli_conversation *c, const char *argument)
{
    return cli_conversation_system(c, argument, strlen(argument));
}

static int help(cli_conversation *c, const char *argument);

static const chat_command commands[] = {
    {"/reset", "", "begin a new conversation; the system message stays", reset},
    {"/system", " TEXT", "set the system message; without TEXT remove it", set_system},
    {"/save", " FILE", "write the messages to a file, as JSON", save},
    {"/help", "", "print these commands", help},
    {"/quit", "", "end the chat, as Ctrl-D does; Ctrl-C ends an answer", NULL},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help(cli_conversation *c, const char *argument)
{
    (void)c, (void)argument;
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

static int run_command(cli_conversation *c, const char *line, size_t bytes, bool *quit)
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
        code = commands[i].run ? commands[i].run(c, argument) : CLI_DONE;
    *quit = i < COMMANDS && !commands[i].run && !code;
    free(copy);
    return code;
}

/* Answers line by line. An error in one answer does not end the chat, but without a terminal it becomes the exit
 * code. */
static int chat(cli_conversation *c, line_reader *in, const att_sampling *sampling)
{
    int code = CLI_DONE, failed = CLI_DONE;
    bool quit = false;
    while (!quit && code != CLI_INTERRUPTED && !ferror(stdout)) {
        const char *line;
        size_t bytes = 0;
        show_prompt(in);
        code = next_line(in, &line, &bytes);
        if (code || !line) {
            if (!code && in->terminal)
                putchar('\n');
            return code ? code : failed;
        }
        if (is_command(line, bytes))
            code = run_command(c, line, bytes, &quit);
        else if (bytes > 0)
            code = answer(c, in, sampling, line, bytes);
        if (code == CLI_FAILED && !in->terminal)
            failed = code;
    }
    return code == CLI_INTERRUPTED ? code : failed;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    cli_language m = {0};
    cli_conversation c = {0};
    line_reader in = {.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    att_sampling sampling;
    if (top && !json)
        return cli_misuse("--top-logprobs is for --json");
    int code = cli_model_open(&m.base, &cli_language_kind, model_name, dtype, threads);
    if (!code)
        code = cli_sampling_read(&m, &given, false, &sampling);
    if (!code)
        code = cli_top_check(&m, top);
    if (!code)
        code = cli_conversation_open(&c, &m, template_name);
    if (!code && system_message)
        code = cli_conversation_system(&c, system_message, strlen(system_message));
    if (!code) {
        cli_sampling_note(&sampling, given.seed);
        if (in.terminal)
            cli_note("%s, chat template %s; /help lists commands, /quit or Ctrl-D ends", m.base.name,
                     att_chat_template_name(c.template));
        cli_end_later();
        code = chat(&c, &in, &sampling);
    }
    free(in.data);
    if (m.base.ctx)
        cli_conversation_close(&c);
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
        "Lines that begin with \"/\" and a word are commands: /reset begins a new conversation, /system TEXT sets the "
        "system message, /save FILE writes the messages as JSON, /help lists commands, /quit ends. Special tokens that "
        "are typed, such as \"<|im_end|>\", are text like any other. On a terminal Ctrl-C ends an answer and Ctrl-D "
        "the "
        "chat.\n\n"
        "Tokens are chosen as the model's generation_config.json states, or as the sampling options do.\n\n"
        "--json: {\"role\": \"assistant\", \"content\": \"...\", \"end\": \"eos\", \"prompt_tokens\": 60, "
        "\"cached_tokens\": 43, \"completion_tokens\": 9} per answer; with --top-logprobs also \"tokens\", as `attend "
        "generate --json` has them. The end is eos, stop, length (--max-tokens), context (no position is left) or "
        "interrupted.",
    .examples = "attend chat -m SmolLM2-135M-Instruct\n"
                "attend chat -m SmolLM2-135M-Instruct --system \"Answer in one sentence.\" < questions.txt\n"
                "echo 'What is the capital of Japan?' | attend chat -m SmolLM2-135M-Instruct --json",
    .options = options,
    .see = "generate|fetch",
    .run = run,
};
