#include "text_answer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

bool serve_text_answer_begin(serve_text_answer *a, const serve_text_shape *shape, serve_generation *g)
{
    unsigned char random[12] = {0};
    *a = (serve_text_answer){.shape = shape, .g = g, .created = (int64_t)time(NULL)};
    a->cursor = calloc((size_t)g->choices, sizeof *a->cursor);
    int at = snprintf(a->id, sizeof a->id, "%s", shape->id);
    if (getrandom(random, sizeof random, 0) < 0)
        snprintf((char *)random, sizeof random, "%p", (void *)g);
    for (size_t i = 0; i < sizeof random; i++)
        at += snprintf(a->id + at, sizeof a->id - (size_t)at, "%02x", random[i]);
    return a->cursor;
}

void serve_text_answer_free(serve_text_answer *a)
{
    serve_generation_free(a->g);
    json_decref(a->echo);
    free(a->cursor);
}

int64_t serve_text_answer_tokens(const serve_text_answer *a, int64_t *cached)
{
    int64_t tokens = 0;
    *cached = 0;
    for (int64_t i = 0; i < a->g->choices; i++) {
        tokens += a->g->choice[i].tokens;
        if (i % a->g->per_prompt == 0)
            *cached += a->g->choice[i].cached;
    }
    return tokens;
}

/* ---- log probabilities ---- */

/* The text of a token by itself, with the space that it begins with. */
typedef struct token_text {
    att_text decoded;
    char *own; /* NULL: it is decoded.text */
    const char *text;
    size_t bytes;
} token_text;

static token_text text_of(const serve_model *m, int32_t id)
{
    static const char space[] = "\xE2\x96\x81"; /* as SentencePiece writes one */
    token_text t = {.text = ""};
    const char *name = att_tokenizer_token(m->tokenizer, id);
    if (!name || att_detokenize(m->tokenizer, &id, 1, &t.decoded))
        return t;
    const bool begins = !strncmp(name, space, sizeof space - 1) && (!t.decoded.bytes || *t.decoded.text != ' ');
    if (t.decoded.bytes == 0 && !begins) { /* a special token */
        t.text = name;
        t.bytes = strlen(name);
    } else if (begins && asprintf(&t.own, " %s", t.decoded.text) >= 0) {
        t.text = t.own;
        t.bytes = t.decoded.bytes + 1;
    } else {
        t.text = t.decoded.text;
        t.bytes = t.decoded.bytes;
    }
    return t;
}

static void text_free(const serve_model *m, token_text *t)
{
    att_text_free(m->ctx, &t->decoded);
    free(t->own);
}

static void write_chat_token(cli_json *j, const serve_model *m, int32_t id, float log_probability)
{
    token_text t = text_of(m, id);
    cli_json_bytes(j, "token", t.text, t.bytes);
    cli_json_float(j, "logprob", log_probability);
    cli_json_array(j, "bytes");
    for (size_t i = 0; i < t.bytes; i++)
        cli_json_integer(j, NULL, (unsigned char)t.text[i]);
    cli_json_end(j);
    text_free(m, &t);
}

void serve_log_probabilities_write(cli_json *j, const char *key, const serve_choice *c, int64_t from, int64_t to)
{
    const serve_model *m = c->of->job.model;
    const int64_t top = c->of->sampling->options.top;
    cli_json_array(j, key);
    for (int64_t i = from; i < to; i++) {
        cli_json_object(j, NULL);
        write_chat_token(j, m, c->ids[i], c->log_probabilities[i]);
        cli_json_array(j, "top_logprobs");
        for (int64_t k = i * top; k < (i + 1) * top; k++) {
            cli_json_object(j, NULL);
            write_chat_token(j, m, c->top_ids[k], c->top_ones[k]);
            cli_json_end(j);
        }
        cli_json_end(j);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void write_chat_tokens(cli_json *j, const serve_choice *c, int64_t from, int64_t to)
{
    cli_json_object(j, "logprobs");
    serve_log_probabilities_write(j, "content", c, from, to);
    cli_json_string(j, "refusal", NULL);
    cli_json_end(j);
}

static int64_t count_characters(const token_text *t)
{
    int64_t n = 0;
    for (size_t i = 0; i < t->bytes; i++)
        n += ((unsigned char)t->text[i] & 0xC0) != 0x80;
    return n;
}

/* Writes an object of the most probable tokens at a position. */
static void write_top(cli_json *j, const serve_choice *c, int64_t at)
{
    const serve_model *m = c->of->job.model;
    const int64_t top = c->of->sampling->options.top;
    cli_json_object(j, NULL);
    for (int64_t k = at * top; k < (at + 1) * top; k++) {
        token_text t = text_of(m, c->top_ids[k]);
        char key[256];
        snprintf(key, sizeof key, "%s", t.text);
        cli_json_float(j, key, c->top_ones[k]);
        text_free(m, &t);
    }
    cli_json_end(j);
}

/* Writes the tokens [from, to) of a choice as a completion has them. */
static void write_completion_tokens(cli_json *j, const serve_choice *c, int64_t from, int64_t to, serve_cursor *cursor)
{
    const serve_model *m = c->of->job.model;
    cli_json_object(j, "logprobs");
    cli_json_array(j, "tokens");
    for (int64_t i = from; i < to; i++) {
        token_text t = text_of(m, c->ids[i]);
        cli_json_bytes(j, NULL, t.text, t.bytes);
        text_free(m, &t);
    }
    cli_json_end(j);
    cli_json_row(j, "token_logprobs", c->log_probabilities + from, to - from);
    cli_json_array(j, "top_logprobs");
    for (int64_t i = from; i < to && c->of->sampling->options.top; i++)
        write_top(j, c, i);
    cli_json_end(j);
    cli_json_array(j, "text_offset");
    for (int64_t i = from; i < to; i++) {
        token_text t = text_of(m, c->ids[i]);
        cli_json_integer(j, NULL, cursor->characters);
        cursor->characters += count_characters(&t);
        text_free(m, &t);
    }
    cli_json_end(j);
    cli_json_end(j);
}

/* ---- choices ---- */

/* Returns how many bytes at the beginning of a choice are not in its answer. */
static size_t find_begin(const serve_text_answer *a, const serve_choice *c)
{
    return a->shape->chat && c->bytes > 0 && *c->text == ' ';
}

const char *serve_choice_text(const serve_text_answer *a, int64_t index, size_t *bytes)
{
    const serve_choice *c = &a->g->choice[index];
    const size_t from = find_begin(a, c);
    *bytes = c->bytes - from;
    return c->bytes > from ? c->text + from : "";
}

serve_piece serve_next_piece(serve_text_answer *a, int64_t index)
{
    const serve_choice *c = &a->g->choice[index];
    serve_cursor *cursor = &a->cursor[index];
    const size_t from = cursor->bytes > 0 ? cursor->bytes : find_begin(a, c);
    const serve_piece p = {.c = c,
                           .cursor = cursor,
                           .index = index,
                           .text = c->bytes > from ? c->text + from : "",
                           .bytes = c->bytes > from ? c->bytes - from : 0,
                           .from = cursor->tokens,
                           .to = c->tokens};
    cursor->bytes = c->bytes;
    cursor->tokens = c->tokens;
    return p;
}

const char *serve_end_reason(att_generation_end end)
{
    return end == 0 ? NULL : end == ATT_GENERATION_EOS || end == ATT_GENERATION_STOP ? "stop" : "length";
}

static const json_t *echo_of(const serve_text_answer *a, int64_t index)
{
    return json_is_array(a->echo) ? json_array_get(a->echo, (size_t)a->g->choice[index].prompt) : a->echo;
}

/* Writes the text of a completion, after its prompt if that is wanted. */
static void write_text(cli_json *j, const serve_text_answer *a, const serve_piece *p)
{
    const json_t *echo = p->cursor->begun ? NULL : echo_of(a, p->index);
    const size_t before = json_string_length(echo);
    char *both = echo ? malloc(before + p->bytes + 1) : NULL;
    if (both) {
        memcpy(both, json_string_value(echo), before);
        memcpy(both + before, p->text, p->bytes);
        cli_json_bytes(j, "text", both, before + p->bytes);
        free(both);
    } else {
        cli_json_bytes(j, "text", p->text, p->bytes);
    }
}

static void write_choice(cli_json *j, const serve_text_answer *a, const serve_piece *p, bool chunk,
                         att_generation_end end)
{
    const serve_choice *c = p->c;
    cli_json_object(j, NULL);
    cli_json_integer(j, "index", p->index);
    if (a->shape->chat) {
        cli_json_object(j, chunk ? "delta" : "message");
        if (!p->cursor->begun)
            cli_json_string(j, "role", "assistant");
        if (!chunk || !end)
            cli_json_bytes(j, "content", p->text, p->bytes);
        if (!chunk)
            cli_json_string(j, "refusal", NULL);
        cli_json_end(j);
    } else {
        write_text(j, a, p);
    }
    if (!a->g->sampling->options.log_probabilities || (chunk && p->from == p->to))
        cli_json_string(j, "logprobs", NULL);
    else if (a->shape->chat)
        write_chat_tokens(j, c, p->from, p->to);
    else
        write_completion_tokens(j, c, p->from, p->to, p->cursor);
    cli_json_string(j, "finish_reason", serve_end_reason(end));
    cli_json_end(j);
    p->cursor->begun = true;
}

/* ---- answers ---- */

static void begin_object(cli_json *j, const serve_text_answer *a, const char *object)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "id", a->id);
    cli_json_string(j, "object", object);
    cli_json_integer(j, "created", a->created);
    cli_json_string(j, "model", a->g->job.model->id);
    cli_json_string(j, "system_fingerprint", "attend-" ATT_VERSION);
    cli_json_array(j, "choices");
}

static void write_usage(cli_json *j, const serve_text_answer *a)
{
    int64_t cached;
    const int64_t tokens = serve_text_answer_tokens(a, &cached), prompt = a->g->cost;
    cli_json_object(j, "usage");
    cli_json_integer(j, "prompt_tokens", prompt);
    cli_json_integer(j, "completion_tokens", tokens);
    cli_json_integer(j, "total_tokens", prompt + tokens);
    cli_json_object(j, "prompt_tokens_details");
    cli_json_integer(j, "cached_tokens", cached);
    cli_json_end(j);
    cli_json_end(j);
}

static void write_whole(serve_text_answer *a, cli_json *j)
{
    begin_object(j, a, a->shape->object);
    for (int64_t i = 0; i < a->g->choices; i++) {
        const serve_piece p = serve_next_piece(a, i);
        write_choice(j, a, &p, false, p.c->end);
    }
    cli_json_end(j);
    write_usage(j, a);
}

static cli_json begin_event(const serve_text_answer *a, FILE *f)
{
    cli_json j = {.file = f};
    fputs("data: ", f);
    begin_object(&j, a, a->shape->chunk);
    return j;
}

static void end_event(const serve_text_answer *a, cli_json *j)
{
    cli_json_end(j);
    if (a->usage)
        cli_json_string(j, "usage", NULL);
    cli_json_close(j);
    putc('\n', j->file);
}

static void write_event(const serve_text_answer *a, FILE *f, const serve_piece *p, att_generation_end end)
{
    cli_json j = begin_event(a, f);
    write_choice(&j, a, p, true, end);
    end_event(a, &j);
}

static void write_events(serve_text_answer *a, FILE *f)
{
    for (int64_t i = 0; i < a->g->choices; i++) {
        const serve_piece p = serve_next_piece(a, i);
        const bool scores = a->g->sampling->options.log_probabilities && p.to > p.from;
        if (p.bytes > 0 || scores || (p.to > 0 && !p.cursor->begun))
            write_event(a, f, &p, 0);
        if (!p.c->end || p.cursor->ended)
            continue;
        const serve_piece last = serve_next_piece(a, i);
        write_event(a, f, &last, p.c->end);
        p.cursor->ended = true;
    }
}

static void write_finish(serve_text_answer *a, FILE *f)
{
    if (a->usage) {
        cli_json j = begin_event(a, f);
        cli_json_end(&j);
        write_usage(&j, a);
        cli_json_close(&j);
        putc('\n', f);
    }
    fputs("data: [DONE]\n\n", f);
}

static void write_error(serve_text_answer *a, FILE *f, int status, const char *message)
{
    http_answer error = {0};
    (void)a;
    serve_error_answer(&error, SERVE_ERRORS_OPENAI, status, NULL, message);
    if (error.body)
        fprintf(f, "data: %s\n", error.body);
    free(error.body);
}

#define EVENTS                                                                                                         \
    .type = "text/event-stream", .write = write_whole, .events = write_events, .finish = write_finish,                 \
    .fail = write_error
const serve_text_shape serve_chat_shape = {
    .id = "chatcmpl-", .object = "chat.completion", .chunk = "chat.completion.chunk", .chat = true, EVENTS};
const serve_text_shape serve_completion_shape = {
    .id = "cmpl-", .object = "text_completion", .chunk = "text_completion", EVENTS};
