/* Routes of LibreTranslate: translation, and the languages of the models. */
#include "count.h"
#include "languages.h"
#include "routes.h"

#include <stdlib.h>
#include <string.h>

typedef struct translate_fields {
    serve_texts q;
    serve_text model, source, target, api_key;
    int64_t alternatives;
} translate_fields;

enum { MAX_ALTERNATIVES = 16 };

static const serve_field translate_table[] = {
    {"q", SERVE_TEXTS, offsetof(translate_fields, q), .required = true,
     .help = "text or list of texts; each line by itself"},
    {"source", SERVE_TEXT, offsetof(translate_fields, source), .required = true,
     .help = "code of the language, such as \"de\"; \"auto\": the one that the model for the target translates from"},
    {"target", SERVE_TEXT, offsetof(translate_fields, target), .required = true,
     .help = "code of the language to translate to"},
    {"format", SERVE_REFUSED, .words = "\"text\"", .help = "texts are plain, \"text\"; markup would be translated"},
    {"alternatives", SERVE_INTEGER, offsetof(translate_fields, alternatives), .max = MAX_ALTERNATIVES,
     .help = "number of further translations of each text"},
    {"api_key", SERVE_TEXT, offsetof(translate_fields, api_key), .help = "a key, instead of a header"},
    SERVE_MODEL_FIELD(translate_fields, "translator"),
    {0},
};

typedef struct detect_fields {
    serve_text q, api_key;
} detect_fields;

static const serve_field detect_table[] = {
    {"q", SERVE_TEXT, offsetof(detect_fields, q), .required = true, .help = "text"},
    {"api_key", SERVE_TEXT, offsetof(detect_fields, api_key), .help = "a key, instead of a header"},
    {0},
};

/* ---- the compute loop ---- */

typedef struct line {
    int64_t text; /* of q */
    const char *begin;
    size_t bytes;
} line;

typedef struct translate_job {
    serve_job base;
    serve_call *call;
    line *line; /* [n]: the items */
    int64_t n_best;
    att_translation *out; /* [n, n_best] */
} translate_job;

static bool fits(const serve_job *a, const serve_job *b)
{
    return ((const translate_job *)a)->n_best == ((const translate_job *)b)->n_best;
}

/* Keeps the translations of an item; its job fails if --max-memory has no room for them and their text in the answer.
 */
static void keep(translate_job *j, int64_t item, const att_translation *best)
{
    enum { COPIES = 3 }; /* of a text: itself, and in the answer, where it may be escaped */
    size_t bytes = 0;
    for (int64_t k = 0; k < j->n_best; k++)
        bytes += COPIES * best[k].text.bytes + (size_t)best[k].tokens.count * sizeof *best[k].tokens.ids;
    memcpy(j->out + item * j->n_best, best, (size_t)j->n_best * sizeof *best);
    if (serve_call_acquire(j->call, bytes))
        return;
    j->base.status = ATT_ERR_MEMORY;
    snprintf(j->base.message, sizeof j->base.message, "%s", serve_memory_sentence);
}

static att_status run(const serve_batch *b)
{
    const att_translator *m = att_any_model_as(b->model->opened, ATT_SUBJECT_TRANSLATE);
    const int64_t n_best = ((const translate_job *)b->job[0])->n_best, usual = att_translator_beam(m);
    const size_t n = (size_t)b->n;
    const char **text = malloc(n * sizeof *text);
    size_t *bytes = malloc(n * sizeof *bytes);
    att_translation *out = calloc(n * (size_t)n_best, sizeof *out);
    att_status s = text && bytes && out ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < b->n; i++) {
        const line *l = &((const translate_job *)b->job[i])->line[b->item[i]];
        text[i] = l->begin;
        bytes[i] = l->bytes;
    }
    if (!s)
        s = att_translate(m, b->n, text, bytes,
                          ATT_OPTIONS(att_translate_options, .beam = usual < n_best ? n_best : usual, .n_best = n_best,
                                      .split = true, .no_scores = true),
                          out);
    for (int64_t i = 0; !s && i < b->n; i++)
        keep((translate_job *)b->job[i], b->item[i], out + i * n_best);
    free(text);
    free(bytes);
    free(out);
    return s;
}

static const serve_work work = {.name = "translate", .fits = fits, .run = run};

/* ---- one request ---- */

static int64_t count_lines(const serve_texts *q)
{
    int64_t lines = 0;
    for (int64_t i = 0; i < q->n; i++)
        for (size_t k = 0; k <= q->bytes[i]; k++)
            lines += k == q->bytes[i] || q->text[i][k] == '\n';
    return lines;
}

/* Lists the lines of all texts that are not blank. */
static void split_lines(const serve_texts *q, translate_job *j)
{
    for (int64_t i = 0; i < q->n; i++)
        for (const char *at = q->text[i], *end = at + q->bytes[i]; at < end;) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            stop = stop ? stop : end;
            if (strspn(at, " \t\r") < (size_t)(stop - at))
                j->line[j->base.n++] = (line){i, at, (size_t)(stop - at)};
            at = stop + 1;
        }
}

/* Makes the arrays of a job, and lists its lines. Returns false if the request was refused. */
static bool make_arrays(serve_call *c, const serve_texts *q, translate_job *j, int64_t **cost)
{
    const size_t n = (size_t)count_lines(q), best = (size_t)j->n_best;
    if (!serve_call_acquire(c, n * (sizeof *j->line + sizeof **cost + best * sizeof *j->out))) {
        serve_refuse_memory(c);
        return false;
    }
    j->line = malloc(n * sizeof *j->line);
    *cost = malloc(n * sizeof **cost);
    j->out = calloc(n * best, sizeof *j->out);
    if (j->line && *cost && j->out)
        split_lines(q, j);
    else
        serve_refuse(c, 503, NULL, "out of memory");
    return j->line && *cost && j->out;
}

/* Counts the tokens of all lines -> cost [n], *tokens. */
static bool count_all(serve_call *c, const serve_model *m, const translate_job *j, int64_t *cost, int64_t *tokens)
{
    for (int64_t i = 0; i < j->base.n; i++) {
        const line *l = &j->line[i];
        const serve_element p = {.field = "q", .index = l->text, .text = {l->begin, l->bytes}};
        if (!serve_count_tokens(c, m, &p, 0, &cost[i]))
            return false;
        *tokens += cost[i];
    }
    return true;
}

/* Writes translation k of a text: each line where its source was, blank ones as they are. A line that has fewer
 * translations has its best one. */
static void write_text(cli_json *j, const char *key, const serve_texts *q, int64_t i, const translate_job *job,
                       int64_t k)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    const char *at = q->text[i];
    for (int64_t n = 0; f && n < job->base.n; n++) {
        const line *l = &job->line[n];
        const att_translation *t = &job->out[n * job->n_best];
        if (l->text != i)
            continue;
        t = t[k].text.text ? t + k : t;
        fwrite(at, 1, (size_t)(l->begin - at), f);
        fwrite(t->text.text, 1, t->text.bytes, f);
        at = l->begin + l->bytes;
    }
    if (f) {
        fwrite(at, 1, (size_t)(q->text[i] + q->bytes[i] - at), f);
        fclose(f);
    }
    cli_json_bytes(j, key, text, bytes);
    free(text);
}

static void write_detected(cli_json *j, const char *key, const serve_model *m)
{
    cli_json_object(j, key);
    cli_json_string(j, "confidence", NULL);
    cli_json_string(j, "language", m->source);
    cli_json_end(j);
}

static void write_alternatives(cli_json *j, const char *key, const serve_texts *q, int64_t i, const translate_job *job)
{
    cli_json_array(j, key);
    for (int64_t k = 1; k < job->n_best; k++)
        write_text(j, NULL, q, i, job, k);
    cli_json_end(j);
}

/* Writes the answer to a text, or to a list of texts: each member is then a list. */
static void write_answer(serve_call *c, const serve_model *m, const translate_fields *o, const translate_job *job)
{
    const bool single = o->q.single, detected = !strcmp(o->source.text, "auto");
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    if (!single)
        cli_json_array(&j, "translatedText");
    for (int64_t i = 0; i < o->q.n; i++)
        write_text(&j, single ? "translatedText" : NULL, &o->q, i, job, 0);
    if (!single)
        cli_json_end(&j);
    if (detected && !single)
        cli_json_array(&j, "detectedLanguage");
    for (int64_t i = 0; detected && i < o->q.n; i++)
        write_detected(&j, single ? "detectedLanguage" : NULL, m);
    if (detected && !single)
        cli_json_end(&j);
    if (o->alternatives > 0 && !single)
        cli_json_array(&j, "alternatives");
    for (int64_t i = 0; o->alternatives > 0 && i < o->q.n; i++)
        write_alternatives(&j, single ? "alternatives" : NULL, &o->q, i, job);
    serve_answer_close(c, &j);
}

static bool key_is_missing(serve_call *c, serve_text key)
{
    if (serve_call_has_key(c, key))
        return false;
    http_answer_header(c->answer, "WWW-Authenticate", "Bearer");
    serve_refuse(c, 401, "api_key", "a key is needed: \"Authorization: Bearer KEY\", or the field api_key");
    return true;
}

static void answer_translate(serve_call *c, void *fields)
{
    const translate_fields *o = fields;
    int64_t *cost = NULL, tokens = 0;
    serve_model *m = key_is_missing(c, o->api_key) ? NULL : serve_translator(c, o->model, o->source, o->target);
    if (!m)
        return;
    translate_job j = {.base = {.work = &work, .model = m}, .call = c, .n_best = o->alternatives + 1};
    const bool good = make_arrays(c, &o->q, &j, &cost) && count_all(c, m, &j, cost, &tokens);
    j.base.cost = cost;
    if (good && (j.base.n == 0 || serve_call_run(c, &j.base))) {
        serve_call_count(c, tokens, 0);
        write_answer(c, m, o, &j);
    }
    for (int64_t i = 0; j.out && i < j.base.n * j.n_best; i++)
        att_translation_free(c->shared->models.ctx, &j.out[i]);
    free(j.out);
    free(j.line);
    free(cost);
}

static void answer_detect(serve_call *c, void *fields)
{
    static const serve_text automatic = {"auto", 4};
    const detect_fields *o = fields;
    const serve_model *m =
        key_is_missing(c, o->api_key) ? NULL : serve_translator(c, (serve_text){0}, automatic, (serve_text){0});
    if (!m)
        return;
    cli_json j = serve_answer_open(c);
    cli_json_array(&j, NULL);
    write_detected(&j, NULL, m);
    serve_answer_close(c, &j);
}

static void answer_languages(serve_call *c, void *fields)
{
    (void)fields;
    cli_json j = serve_answer_open(c);
    serve_languages_write(&j, &c->shared->models);
    serve_answer_close(c, &j);
}

#define TRANSLATION                                                                                                    \
    "{\"translatedText\": {\"|\": [\"string\", [\"string\"]]}, \"detectedLanguage?\": {\"|\": "                        \
    "[{\"confidence\": \"null\", \"language\": \"string\"}, [{\"confidence\": \"null\", \"language\": "                \
    "\"string\"}]]}, \"alternatives?\": {\"|\": [[\"string\"], [[\"string\"]]]}}"

const serve_route serve_route_translate = {.method = "POST",
                                           .path = "/translate",
                                           .answers = TRANSLATION,
                                           .summary = "Translations of texts, as LibreTranslate's",
                                           .fields = translate_table,
                                           .size = sizeof(translate_fields),
                                           .run = answer_translate,
                                           .errors = SERVE_ERRORS_FLAT,
                                           .form = true,
                                           .own_key = true};
#define DETECTED "[{\"confidence\": \"null\", \"language\": \"string\"}]"

const serve_route serve_route_detect = {.method = "POST",
                                        .path = "/detect",
                                        .answers = DETECTED,
                                        .summary = "The language that is translated, as LibreTranslate's",
                                        .fields = detect_table,
                                        .size = sizeof(detect_fields),
                                        .run = answer_detect,
                                        .errors = SERVE_ERRORS_FLAT,
                                        .form = true,
                                        .own_key = true};
#define LANGUAGES "[{\"code\": \"string\", \"name\": \"string\", \"targets\": [\"string\"]}]"

const serve_route serve_route_languages = {.method = "GET",
                                           .path = "/languages",
                                           .answers = LANGUAGES,
                                           .summary = "The languages that are translated, as LibreTranslate's",
                                           .run = answer_languages,
                                           .errors = SERVE_ERRORS_FLAT,
                                           .open = true};
