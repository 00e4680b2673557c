/* The loop of a server: four clients join and leave one session of a language model, each with a prompt, a length and a
 * way of sampling of its own; one that comes while the session is full waits, and one goes away before its text ends.
 * Then each text is compared with what att_generate makes of its prompt alone.
 *
 *     cc server_loop.c $(pkg-config --cflags --libs attend_model) -o server_loop && ./server_loop FOLDER A B C D
 */
#include <attend_language.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 4, LEAVES = 1, LEAVES_AFTER = 5 }; /* client 1 goes away after 5 tokens */

static const att_sampling at_random = {.size = sizeof at_random, .sample = true, .temperature = 2};

typedef struct client {
    int comes; /* at this step */
    const char *name;
    att_generate_options options;
    /* while it is served */
    att_tokens prompt;
    int64_t number; /* in the session; -1: none */
    int64_t tokens; /* of its text so far */
    bool joined, last;
    att_generated text;
} client;

static client clients[CLIENTS] = {
    {.comes = 0, .name = "first", .options = {.max_tokens = 12}},
    {.comes = 1, .name = "second", .options = {.max_tokens = 20}},
    {.comes = 3, .name = "third", .options = {.max_tokens = 16, .sampling = &at_random, .seed = 1}},
    {.comes = 4, .name = "fourth", .options = {.max_tokens = 8}},
};

/* Receives a piece of a client's text, which a server would send. */
static bool send_piece(void *user, const att_generated_token *token)
{
    client *c = user;
    printf("  %-6s \"%.*s\"\n", c->name, (int)token->bytes, token->text);
    c->tokens++;
    c->last = token->last;
    return true;
}

/* Clients that have come join, if there is room; those without wait for the next step. */
static att_status join(att_generation *session, int step)
{
    for (client *c = clients; c < clients + CLIENTS; c++) {
        if (c->joined || c->comes > step)
            continue;
        const att_status s = att_generation_add(session, c->prompt.ids, c->prompt.count, &c->options, &c->number);
        if (s == ATT_ERR_BUSY)
            printf("step %d: no room for the %s client\n", step, c->name);
        else if (s)
            return s;
        else
            printf("step %d: the %s client joins\n", step, c->name);
        c->joined = !s;
    }
    return ATT_OK;
}

/* Clients whose text has ended, or that go away, leave. */
static att_status leave(att_generation *session, int step)
{
    att_status s = ATT_OK;
    for (int i = 0; !s && i < CLIENTS; i++) {
        client *c = &clients[i];
        const bool goes = i == LEAVES && c->tokens == LEAVES_AFTER;
        if (c->number < 0 || !(c->last || goes))
            continue;
        s = att_generation_finish(session, c->number,
                                  &c->text); /* att_generation_remove where the text is not wanted */
        printf("step %d: the %s client %s\n", step, c->name, goes ? "goes away" : "has its text");
        c->number = -1;
    }
    return s;
}

static att_status serve(const att_text_generator *g)
{
    att_generation *session = NULL;
    att_status s = att_generation_new(
        g, ATT_OPTIONS(att_generation_options, .max_sequences = 3, .prompt_tokens = 4, .kept_tokens = 64), &session);
    int64_t active = 1;
    int waiting = CLIENTS;
    for (int step = 0; !s && (active > 0 || waiting > 0); step++) {
        s = join(session, step);
        s = s ? s : att_generation_step(session, &active);
        s = s ? s : leave(session, step);
        waiting = 0;
        for (int i = 0; i < CLIENTS; i++)
            waiting += !clients[i].joined;
    }
    att_generation_free(session);
    return s;
}

/* Checks that a client has the same text as its prompt by itself, or the beginning of it if the client has gone
 * away. */
static att_status compare(att_ctx *ctx, const att_text_generator *g, const client *c, bool *same)
{
    att_generated alone = {0};
    const int64_t offsets[] = {0, c->prompt.count};
    att_generate_options o = c->options;
    o.token = NULL;
    const att_status s = att_generate(g, 1, c->prompt.ids, offsets, &o, &alone);
    const bool all = c->text.end != ATT_GENERATION_CANCELLED;
    const size_t bytes = c->text.text.bytes;
    *same = !s && bytes > 0 && bytes <= alone.text.bytes && memcmp(c->text.text.text, alone.text.text, bytes) == 0 &&
            (!all || (bytes == alone.text.bytes && c->text.end == alone.end));
    if (!s)
        printf("%s: \"%s\", %s\n", c->name, c->text.text.text,
               *same ? all ? "as alone" : "as alone, so far" : "not as alone");
    att_generated_free(ctx, &alone);
    return s;
}

int main(int n, char **argument)
{
    att_ctx *ctx = NULL;
    att_text_generator *g = NULL;
    bool good = true, same;
    if (n != 2 + CLIENTS)
        return fprintf(stderr, "usage: server_loop FOLDER TEXT TEXT TEXT TEXT\n"), 2;
    att_status s = att_open(&ctx, NULL);
    s = s ? s : att_text_generator_open(ctx, argument[1], NULL, &g);
    for (int i = 0; !s && i < CLIENTS; i++) {
        client *c = &clients[i];
        c->number = -1;
        c->options.size = sizeof c->options;
        c->options.token = send_piece;
        c->options.user = c;
        s = att_tokenize(att_text_generator_tokenizer(g), argument[2 + i], strlen(argument[2 + i]), NULL, &c->prompt);
    }
    s = s ? s : serve(g);
    for (int i = 0; !s && i < CLIENTS; i++) {
        s = compare(ctx, g, &clients[i], &same);
        good = good && same;
    }
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    for (int i = 0; i < CLIENTS; i++) {
        att_tokens_free(ctx, &clients[i].prompt);
        att_generated_free(ctx, &clients[i].text);
    }
    att_text_generator_free(g);
    att_close(ctx);
    return s != ATT_OK || !good;
}
