/* Routes of tokens, as TEI's: of the tokenizer of any model. */
#include "embed_work.h"
#include "routes.h"

#include <stdlib.h>
#include <string.h>

typedef struct tokenize_fields {
    serve_texts inputs;
    serve_text model, prompt_name;
    bool add_special_tokens;
} tokenize_fields;

static const serve_field tokenize_table[] = {
    {"inputs", SERVE_TEXTS, offsetof(tokenize_fields, inputs), .required = true, .help = "text or list of texts"},
    {"model", SERVE_TEXT, offsetof(tokenize_fields, model),
     .help = "name of a model; default: the first one that has a tokenizer"},
    {"add_special_tokens", SERVE_BOOL, offsetof(tokenize_fields, add_special_tokens), .usual = 1,
     .help = "add the special tokens around a text"},
    {"prompt_name", SERVE_TEXT, offsetof(tokenize_fields, prompt_name),
     .help = "name of one of the prompts of a sentence model, before each text; offsets count its bytes, too"},
    {0},
};

typedef struct decode_fields {
    const json_t *ids;
    serve_text model;
    bool skip_special_tokens;
} decode_fields;

static const serve_field decode_table[] = {
    {"ids", SERVE_JSON, offsetof(decode_fields, ids), .required = true,
     .words = "{\"|\": [[\"integer\"], [[\"integer\"]]]}", .help = "ids of tokens, or list of such lists"},
    {"model", SERVE_TEXT, offsetof(decode_fields, model),
     .help = "name of a model; default: the first one that has a tokenizer"},
    {"skip_special_tokens", SERVE_REFUSED, .words = "true", .help = "texts are without special tokens: true"},
    {0},
};

/* Returns the model whose tokenizer a request means. NULL: the request was refused. */
static serve_model *choose(serve_call *c, serve_text name)
{
    serve_models *all = &c->shared->models;
    serve_model *m = NULL;
    if (name.text)
        m = serve_call_model(c, name, ATT_SUBJECT_NONE);
    for (int i = 0; !name.text && !m && i < all->n; i++)
        m = all->model[i]->tokenizer ? all->model[i] : NULL;
    if (m && m->tokenizer)
        return m;
    if (m)
        serve_refuse(c, 400, "model", "%s is a %s, which has no tokenizer", m->id, att_subject_name(m->subject));
    else if (!name.text)
        serve_refuse(c, 404, "model", "no model that is served has a tokenizer");
    return NULL;
}

/* ---- tokenizing ---- */

static void write_tokens(cli_json *j, const att_tokens *t, const char *text)
{
    cli_json_array(j, NULL);
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t start = t->offsets[2 * i], stop = t->offsets[2 * i + 1];
        cli_json_object(j, NULL);
        cli_json_integer(j, "id", t->ids[i]);
        cli_json_bytes(j, "text", text + start, (size_t)(stop - start));
        cli_json_bool(j, "special", t->special[i]);
        cli_json_integer(j, "start", start);
        cli_json_integer(j, "stop", stop);
        cli_json_end(j);
    }
    cli_json_end(j);
}

/* Finds the prompt of a sentence model; others have none. */
static bool find_prompt(serve_call *c, const serve_model *m, serve_text name, const char **prompt)
{
    *prompt = "";
    if (!name.text)
        return true;
    if (m->subject != ATT_SUBJECT_SENTENCE)
        serve_refuse(c, 400, "prompt_name", "prompt_name: %s is a %s, which has no prompts", m->id,
                     att_subject_name(m->subject));
    else
        return serve_find_prompt(c, m, name.text, prompt);
    return false;
}

/* Acquires the memory of a text's tokens: of their arrays and of what write_tokens writes. */
static bool acquire_tokens(serve_call *c, const att_tokens *t, size_t bytes)
{
    enum { TOKEN = 120, ESCAPED = 3 }; /* bytes of one, and of an escaped byte */
    return serve_call_acquire(c, (size_t)t->count * TOKEN + ESCAPED * bytes);
}

/* Writes the texts after the prompt; they are made one at a time. Returns ATT_ERR_BUSY if their tokens have no room in
 * --max-memory. */
static att_status write_all(cli_json *j, serve_call *c, const serve_model *m, const tokenize_fields *o,
                            const char *prompt)
{
    const size_t before = strlen(prompt);
    att_status s = ATT_OK;
    cli_json_array(j, NULL);
    for (int64_t i = 0; !s && i < o->inputs.n; i++) {
        const size_t bytes = before + o->inputs.bytes[i];
        char *text = malloc(bytes + 1);
        att_tokens t = {0};
        if (!text)
            return ATT_ERR_MEMORY;
        memcpy(text, prompt, before);
        memcpy(text + before, o->inputs.text[i], o->inputs.bytes[i] + 1);
        s = att_tokenize(m->tokenizer, text, bytes,
                         ATT_OPTIONS(att_tokenize_options, .no_special = !o->add_special_tokens, .offsets = true), &t);
        if (!s && !acquire_tokens(c, &t, bytes))
            s = ATT_ERR_BUSY;
        if (!s)
            write_tokens(j, &t, text);
        att_tokens_free(c->shared->models.ctx, &t);
        free(text);
    }
    return s;
}

static void answer_tokenize(serve_call *c, void *fields)
{
    const tokenize_fields *o = fields;
    const char *prompt;
    const serve_model *m = choose(c, o->model);
    if (!m || !find_prompt(c, m, o->prompt_name, &prompt))
        return;
    cli_json j = serve_answer_open(c);
    const att_status s = write_all(&j, c, m, o, prompt);
    serve_answer_close(c, &j);
    if (s == ATT_ERR_BUSY)
        serve_refuse_memory(c);
    else if (s)
        serve_refuse(c, s == ATT_ERR_MEMORY ? 503 : 400, "inputs", "inputs: %s", att_error(c->shared->models.ctx));
}

/* ---- decoding ---- */

/* Reads a list of ids -> ids [n]. Returns false if it is not one, or has others than the tokenizer. */
static bool read_ids(const json_t *list, int64_t size, int32_t *ids)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= size)
            return false;
        ids[i] = (int32_t)json_integer_value(id);
    }
    return json_is_array(list);
}

/* Writes the text of a list of ids. Returns ATT_ERR_BUSY if it has no room in --max-memory. */
static att_status write_text(serve_call *c, cli_json *j, const serve_model *m, const json_t *list)
{
    int32_t *ids = malloc((json_array_size(list) + 1) * sizeof *ids);
    att_text text = {0};
    att_status s = ids ? ATT_OK : ATT_ERR_MEMORY;
    if (!s && !read_ids(list, att_tokenizer_size(m->tokenizer), ids))
        s = ATT_ERR_ARGUMENT;
    s = s ? s : att_detokenize(m->tokenizer, ids, (int64_t)json_array_size(list), &text);
    if (!s && !serve_call_acquire(c, 4 * text.bytes)) /* itself, and escaped */
        s = ATT_ERR_BUSY;
    if (!s)
        cli_json_bytes(j, NULL, text.text, text.bytes);
    att_text_free(c->shared->models.ctx, &text);
    free(ids);
    return s;
}

static void answer_decode(serve_call *c, void *fields)
{
    const decode_fields *o = fields;
    const serve_model *m = choose(c, o->model);
    const bool single = !json_is_array(json_array_get(o->ids, 0));
    att_status s = ATT_OK;
    if (!m)
        return;
    cli_json j = serve_answer_open(c);
    cli_json_array(&j, NULL);
    for (size_t i = 0; !s && i < (single ? 1 : json_array_size(o->ids)); i++)
        s = write_text(c, &j, m, single ? o->ids : json_array_get(o->ids, i));
    serve_answer_close(c, &j);
    if (s == ATT_ERR_BUSY)
        serve_refuse_memory(c);
    else if (s == ATT_ERR_ARGUMENT)
        serve_refuse(c, 400, "ids", "ids: is not a list of ids from 0 to %lld, or of such lists",
                     (long long)att_tokenizer_size(m->tokenizer) - 1);
    else if (s)
        serve_refuse(c, 503, "ids", "ids: %s", att_status_text(s));
}

#define TOKENS                                                                                                         \
    "[[{\"id\": \"integer\", \"text\": \"string\", \"special\": \"boolean\", \"start\": \"integer\", "                 \
    "\"stop\": \"integer\"}]]"

const serve_route serve_route_tokenize = {.method = "POST",
                                          .path = "/tokenize",
                                          .answers = TOKENS,
                                          .summary = "Tokens of texts, as TEI's, with offsets in bytes",
                                          .fields = tokenize_table,
                                          .size = sizeof(tokenize_fields),
                                          .run = answer_tokenize,
                                          .errors = SERVE_ERRORS_FLAT};
#define TEXTS "[\"string\"]"

const serve_route serve_route_decode = {.method = "POST",
                                        .path = "/decode",
                                        .answers = TEXTS,
                                        .summary = "Texts of tokens, as TEI's",
                                        .fields = decode_table,
                                        .size = sizeof(decode_fields),
                                        .run = answer_decode,
                                        .errors = SERVE_ERRORS_FLAT};
