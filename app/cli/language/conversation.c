#include "conversation.h"
#include "cli/base/grow.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int cli_conversation_open(cli_conversation *c, const cli_language *m, const char *template_name)
{
    *c = (cli_conversation){.m = m, .options = {.size = sizeof c->options, .reply = true}};
    return cli_status(m->base.ctx,
                      att_chat_template_open(m->base.ctx, m->base.folder.text, template_name, NULL, &c->template));
}

/* ---- messages */

static void free_message(const att_chat_message *m)
{
    free((void *)(uintptr_t)m->text);
    free((void *)(uintptr_t)m->more);
}

void cli_conversation_truncate(cli_conversation *c, size_t first)
{
    while (c->count > first)
        free_message(&c->message[--c->count]);
}

void cli_conversation_close(cli_conversation *c)
{
    cli_conversation_truncate(c, 0);
    free(c->message);
    cli_whole_text_free(&c->tools);
    cli_whole_text_free(&c->documents);
    att_generation_free(c->session);
    att_chat_template_free(c->template);
    *c = (cli_conversation){0};
}

static bool has_system(const cli_conversation *c) { return c->count > 0 && !strcmp(c->message[0].role, "system"); }

void cli_conversation_reset(cli_conversation *c) { cli_conversation_truncate(c, has_system(c)); }

int cli_conversation_insert(cli_conversation *c, size_t at, const att_chat_message *message)
{
    att_chat_message m = *message;
    char *text = malloc(m.bytes + 1);
    m.text = text;
    m.more = m.more ? strdup(m.more) : NULL;
    if (!text || (message->more && !m.more) ||
        !cli_reserve(&c->room, c->count + 1, &(cli_array){&c->message, sizeof *c->message}, 1)) {
        free_message(&m);
        return cli_fail_memory();
    }
    if (m.bytes > 0)
        memcpy(text, message->text, m.bytes);
    text[m.bytes] = '\0';
    memmove(c->message + at + 1, c->message + at, (c->count - at) * sizeof *c->message);
    c->message[at] = m;
    c->count++;
    return CLI_DONE;
}

static int insert_text(cli_conversation *c, size_t at, const char *role, const char *text, size_t bytes)
{
    return cli_conversation_insert(c, at, &(att_chat_message){sizeof *c->message, role, text, bytes, NULL});
}

/* ---- what templates may leave out */

/* Fails if the template refuses messages [n], or writes the text that it writes without the first `less` of them and
 * with other options. what: what it then leaves out. */
static int check_written(const cli_conversation *c, const char *what, const att_chat_message *messages, int64_t n,
                         int64_t less, const att_chat_options *with, const att_chat_options *other)
{
    att_ctx *ctx = c->m->base.ctx;
    att_text a = {0}, b = {0};
    int code = cli_status(ctx, att_chat_render(c->template, messages, n, with, &a));
    if (!code && !att_chat_render(c->template, messages + less, n - less, other, &b) && a.bytes == b.bytes &&
        !memcmp(a.text, b.text, a.bytes))
        code = cli_fail("the chat template %s leaves %s out", att_chat_template_name(c->template), what);
    att_text_free(ctx, &a);
    att_text_free(ctx, &b);
    return code;
}

int cli_conversation_check_system(const cli_conversation *c, const char *text, size_t bytes)
{
    const att_chat_message example[] = {{sizeof *example, "system", text, bytes, NULL},
                                        {sizeof *example, "user", "", 0, NULL}};
    return check_written(c, "system messages", example, 2, 1, &c->options, &c->options);
}

/* Reads a JSON list -> *to, the field of the options. */
static int read_list(cli_conversation *c, const char *option, const char *path, cli_whole_text *text, const char **to)
{
    static const att_chat_message example = {sizeof example, "user", "a", 1, NULL};
    const att_chat_options without = c->options;
    json_error_t error;
    if (!path)
        return CLI_DONE;
    int code = cli_whole_text_read(path, text);
    json_t *list = code ? NULL : json_loadb(text->text, text->bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!code && !list)
        code = cli_fail("%s:%d: %s", path, error.line, error.text);
    bool objects = json_array_size(list) > 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        objects &= json_is_object(json_array_get(list, i));
    if (!code && !objects)
        code = cli_fail("%s: this is not a JSON list with an object for each of the %s", path, option + 2);
    json_decref(list);
    if (code)
        return code;
    *to = text->text;
    return check_written(c, option, &example, 1, 0, &c->options, &without);
}

int cli_conversation_lists(cli_conversation *c, const char *tools, const char *documents, const char *variables)
{
    json_t *object = variables ? json_loads(variables, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;
    const bool good = !variables || json_is_object(object);
    json_decref(object);
    if (!good)
        return cli_misuse("--template-variables is not a JSON object, such as {\"enable_thinking\": false}: %s",
                          variables);
    c->options.variables = variables;
    const int code = read_list(c, "--tools", tools, &c->tools, &c->options.tools);
    return code ? code : read_list(c, "--documents", documents, &c->documents, &c->options.documents);
}

/* ---- changes */

int cli_conversation_system(cli_conversation *c, const char *text, size_t bytes)
{
    int code = bytes > 0 ? cli_conversation_check_system(c, text, bytes) : CLI_DONE;
    if (!code && bytes > 0)
        code = insert_text(c, 0, "system", text, bytes);
    const size_t old = bytes > 0;
    if (!code && c->count > old && !strcmp(c->message[old].role, "system")) {
        free_message(&c->message[old]);
        memmove(c->message + old, c->message + old + 1, (--c->count - old) * sizeof *c->message);
    }
    return code;
}

int cli_conversation_undo(cli_conversation *c)
{
    size_t last = c->count;
    while (last > 0 && strcmp(c->message[last - 1].role, "user") != 0)
        last--;
    if (last == 0)
        return cli_fail("there is no message to undo");
    cli_conversation_truncate(c, last - 1);
    c->full = false;
    return CLI_DONE;
}

/* ---- tokens */

/* Tokenizes the system message and the messages from `first` on. */
static int tokenize_from(const cli_conversation *c, size_t first, att_tokens *out)
{
    const att_tokenizer *t = att_text_generator_tokenizer(c->m->generator);
    const size_t system = has_system(c) && first > 0;
    att_chat_message *kept = malloc((c->count + 1) * sizeof *kept);
    if (!kept)
        return cli_fail_memory();
    if (system)
        kept[0] = c->message[0];
    memcpy(kept + system, c->message + first, (c->count - first) * sizeof *kept);
    const int code =
        cli_status(c->m->base.ctx,
                   att_chat_tokenize(c->template, t, kept, (int64_t)(system + c->count - first), &c->options, out));
    free(kept);
    return code;
}

/* Returns the index of the next message of the user after index i; c->count if there is none. */
static size_t next_user(const cli_conversation *c, size_t i)
{
    do
        i++;
    while (i < c->count && strcmp(c->message[i].role, "user") != 0);
    return i;
}

static void drop_oldest(cli_conversation *c, size_t first)
{
    const size_t system = has_system(c);
    for (size_t i = system; i < first; i++)
        free_message(&c->message[i]);
    memmove(c->message + system, c->message + first, (c->count - first) * sizeof *c->message);
    c->count -= first - system;
    c->full = false;
}

/* Finds the fewest oldest messages without which the conversation leaves `room` tokens for an answer, or at least one,
 * asks whether to drop them, and replaces the prompt. */
static int make_room(cli_conversation *c, int64_t room, att_tokens *prompt)
{
    const int64_t positions = c->m->info.max_positions;
    int64_t count = prompt->count;
    size_t first = has_system(c);
    att_tokens shorter = {0};
    int code = CLI_DONE;
    for (size_t next = next_user(c, first); !code && next < c->count && positions - count < room;
         next = next_user(c, next)) {
        att_tokens_free(c->m->base.ctx, &shorter);
        first = next;
        code = tokenize_from(c, first, &shorter);
        count = shorter.count;
    }
    const size_t dropped = first - has_system(c);
    if (!code && dropped > 0 && count < positions && c->drop && c->drop(c->user, dropped)) {
        att_tokens_free(c->m->base.ctx, prompt);
        drop_oldest(c, first);
        *prompt = shorter;
        return CLI_DONE;
    }
    att_tokens_free(c->m->base.ctx, &shorter);
    return code;
}

/* Tokenizes the conversation. If it is full, its oldest messages may be dropped. */
static int tokenize(cli_conversation *c, int64_t max_tokens, att_tokens *prompt)
{
    const int64_t positions = c->m->info.max_positions, quarter = positions / 4;
    int code = tokenize_from(c, 0, prompt);
    if (!code && (c->full || prompt->count >= positions))
        code = make_room(c, max_tokens > 0 && max_tokens < quarter ? max_tokens : quarter, prompt);
    if (!code && prompt->count >= positions)
        code = cli_fail("the conversation has %lld tokens, but the model has %lld positions: /reset begins a new one, "
                        "and with --drop-oldest the oldest messages are left out",
                        (long long)prompt->count, (long long)positions);
    return code;
}

/* ---- answers */

/* Opens a session of one sequence, which keeps the state of the conversation. After an error it is opened again. */
static int open_session(cli_conversation *c)
{
    const att_generation_options *o =
        ATT_OPTIONS(att_generation_options, .max_sequences = 1, .kept_tokens = c->m->info.max_positions);
    return c->session ? CLI_DONE : cli_status(c->m->base.ctx, att_generation_new(c->m->generator, o, &c->session));
}

/* Takes all steps of an answer. An interrupted answer has the text that was generated. */
static int generate_all(cli_conversation *c, const att_tokens *prompt, const att_generate_options *o, cli_reply *reply)
{
    att_ctx *ctx = c->m->base.ctx;
    int64_t number, active = 1;
    int code = cli_status(ctx, att_generation_add(c->session, prompt->ids, prompt->count, o, &number));
    if (code)
        return code;
    while (!code && active > 0)
        code = cli_status(ctx, att_generation_step(c->session, &active));
    if (!code || code == CLI_INTERRUPTED) {
        const int finished = cli_status(ctx, att_generation_finish(c->session, number, &reply->generated));
        code = finished ? finished : code;
    }
    return code;
}

static int generate(cli_conversation *c, const att_tokens *prompt, const att_generate_options *o, cli_reply *reply)
{
    const char *end = att_chat_template_end(c->template), *stop[CLI_TEXTS + 1];
    att_generate_options with = *o;
    if (o->n_stop > 0)
        memcpy(stop, o->stop, (size_t)o->n_stop * sizeof *stop);
    if (end)
        stop[with.n_stop++] = end;
    with.stop = stop;
    with.first_sequence = c->replies;
    reply->prompt = prompt->count;
    int code = open_session(c);
    if (!code)
        code = generate_all(c, prompt, &with, reply);
    if (!code && cli_signal && reply->generated.end == ATT_GENERATION_CALLBACK)
        code = CLI_INTERRUPTED;
    if (code && code != CLI_INTERRUPTED) {
        att_generation_free(c->session);
        c->session = NULL;
    }
    return code;
}

/* Answers the last message. */
static int answer(cli_conversation *c, const att_generate_options *o, cli_reply *reply)
{
    att_tokens prompt = {0};
    int code = tokenize(c, o->max_tokens, &prompt);
    if (!code)
        code = generate(c, &prompt, o, reply);
    att_tokens_free(c->m->base.ctx, &prompt);
    if (!code || code == CLI_INTERRUPTED) {
        const att_text *text = &reply->generated.text;
        const size_t space = text->bytes > 0 && text->text[0] == ' '; /* templates have their own */
        const int added = insert_text(c, c->count, "assistant", text->text + space, text->bytes - space);
        code = added ? added : code;
        c->replies++;
        c->full = reply->generated.end == ATT_GENERATION_CONTEXT;
    }
    return code;
}

int cli_conversation_reply(cli_conversation *c, const char *text, size_t bytes, const att_generate_options *o,
                           cli_reply *reply)
{
    *reply = (cli_reply){0};
    int code = insert_text(c, c->count, "user", text, bytes);
    if (code)
        return code;
    code = answer(c, o, reply);
    if (code && code != CLI_INTERRUPTED)
        cli_conversation_truncate(c, c->count - 1);
    return code;
}

int cli_conversation_retry(cli_conversation *c, const att_generate_options *o, cli_reply *reply)
{
    *reply = (cli_reply){0};
    const bool answered = c->count > 0 && !strcmp(c->message[c->count - 1].role, "assistant");
    const char *asked = c->count > answered ? c->message[c->count - 1 - answered].role : "";
    if (strcmp(asked, "user") != 0 && strcmp(asked, "tool") != 0)
        return cli_fail("there is no message to answer");
    const att_chat_message before = answered ? c->message[--c->count] : (att_chat_message){0};
    const int code = answer(c, o, reply);
    if (answered && code && code != CLI_INTERRUPTED)
        c->message[c->count++] = before; /* its place is free */
    else
        free_message(&before);
    return code;
}

void cli_reply_free(const cli_conversation *c, cli_reply *reply)
{
    att_generated_free(c->m->base.ctx, &reply->generated);
    *reply = (cli_reply){0};
}
