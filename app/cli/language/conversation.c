#include "conversation.h"
#include "cli/base/grow.h"
#include "cli/base/json.h"
#include "cli/base/output.h"

#include <stdlib.h>
#include <string.h>

int cli_conversation_open(cli_conversation *c, const cli_language *m, const char *template_name)
{
    *c = (cli_conversation){.m = m};
    return cli_status(m->base.ctx,
                      att_chat_template_open(m->base.ctx, m->base.folder.text, template_name, NULL, &c->template));
}

/* ---- messages */

static void remove_messages(cli_conversation *c, size_t first)
{
    while (c->count > first)
        free((void *)(uintptr_t)c->message[--c->count].text);
}

void cli_conversation_close(cli_conversation *c)
{
    remove_messages(c, 0);
    free(c->message);
    att_generation_free(c->session);
    att_chat_template_free(c->template);
    *c = (cli_conversation){0};
}

static bool has_system(const cli_conversation *c) { return c->count > 0 && !strcmp(c->message[0].role, "system"); }

void cli_conversation_reset(cli_conversation *c) { remove_messages(c, has_system(c)); }

/* Inserts a message at an index. */
static int insert(cli_conversation *c, size_t at, const char *role, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy || !cli_reserve(&c->room, c->count + 1, &(cli_array){&c->message, sizeof *c->message}, 1)) {
        free(copy);
        return cli_fail_memory();
    }
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    memmove(c->message + at + 1, c->message + at, (c->count - at) * sizeof *c->message);
    c->message[at] = (att_chat_message){sizeof *c->message, role, copy, bytes};
    c->count++;
    return CLI_DONE;
}

int cli_conversation_system(cli_conversation *c, const char *text, size_t bytes)
{
    const att_chat_message example[] = {{sizeof *example, "system", text, bytes}, {sizeof *example, "user", "", 0}};
    att_text rendered = {0};
    int code = CLI_DONE;
    if (bytes > 0)
        code = cli_status(c->m->base.ctx, att_chat_render(c->template, example, 2,
                                                          ATT_OPTIONS(att_chat_options, .reply = true), &rendered));
    att_text_free(c->m->base.ctx, &rendered);
    if (!code && bytes > 0)
        code = insert(c, 0, "system", text, bytes);
    const size_t old = bytes > 0;
    if (!code && c->count > old && !strcmp(c->message[old].role, "system")) {
        free((void *)(uintptr_t)c->message[old].text);
        memmove(c->message + old, c->message + old + 1, (--c->count - old) * sizeof *c->message);
    }
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
    const char *end = att_chat_template_end(c->template);
    const long long positions = (long long)c->m->info.max_positions;
    att_generate_options with = *o;
    with.stop = &end;
    with.n_stop = end ? 1 : 0;
    with.first_sequence = c->replies;
    reply->prompt = prompt->count;
    if (prompt->count >= positions)
        return cli_fail("the conversation has %lld tokens, but the model has %lld positions: /reset begins a new one",
                        (long long)prompt->count, positions);
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

int cli_conversation_reply(cli_conversation *c, const char *text, size_t bytes, const att_generate_options *o,
                           cli_reply *reply)
{
    const att_tokenizer *t = att_text_generator_tokenizer(c->m->generator);
    const size_t before = c->count;
    att_tokens prompt = {0};
    *reply = (cli_reply){0};
    int code = insert(c, c->count, "user", text, bytes);
    if (!code)
        code = cli_status(c->m->base.ctx, att_chat_tokenize(c->template, t, c->message, (int64_t)c->count,
                                                            ATT_OPTIONS(att_chat_options, .reply = true), &prompt));
    if (!code)
        code = generate(c, &prompt, o, reply);
    att_tokens_free(c->m->base.ctx, &prompt);
    if (!code || code == CLI_INTERRUPTED) {
        const att_text *answer = &reply->generated.text;
        const size_t space = answer->bytes > 0 && answer->text[0] == ' '; /* templates have their own */
        const int added = insert(c, c->count, "assistant", answer->text + space, answer->bytes - space);
        code = added ? added : code;
        c->replies++;
    }
    if (code && code != CLI_INTERRUPTED)
        remove_messages(c, before);
    return code;
}

void cli_reply_free(const cli_conversation *c, cli_reply *reply)
{
    att_generated_free(c->m->base.ctx, &reply->generated);
    *reply = (cli_reply){0};
}

/* ---- files */

int cli_conversation_save(const cli_conversation *c, const char *path)
{
    cli_output out = {0};
    const int code = cli_output_open(&out, path);
    if (code)
        return code;
    cli_json j = {.file = out.file, .first = "\n  ", .between = ",\n  ", .last = "\n"};
    cli_json_array(&j, NULL);
    for (size_t i = 0; i < c->count; i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "role", c->message[i].role);
        cli_json_bytes(&j, "content", c->message[i].text, c->message[i].bytes);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    return cli_output_close(&out, code);
}
