/* Routes that rank documents by a cross-encoder: those of Cohere and Jina, and TEI's. */
#include "ranks.h"
#include "routes.h"
#include "score_work.h"

#include <stdlib.h>
#include <string.h>

typedef struct rerank_fields {
    serve_text model, query;
    serve_texts documents, texts;
    int64_t top_n, max_tokens_per_doc;
    bool return_documents, return_text, truncate, raw_scores;
} rerank_fields;

/* clang-format off */
#define COMMON                                                                                                  \
    SERVE_MODEL_FIELD(rerank_fields, "text classifier with one label, a cross-encoder"),                        \
    {"query", SERVE_TEXT, offsetof(rerank_fields, query), .required = true, .help = "text that documents are compared with"},        \
    {"truncate", SERVE_BOOL, offsetof(rerank_fields, truncate), .usual = 1,                                     \
     .help = "truncate pairs of query and document that are too long for the model; false: refuse them"},       \
    {"raw_scores", SERVE_BOOL, offsetof(rerank_fields, raw_scores),                                             \
     .help = "scores are the model's logits; false: their sigmoid, from 0 to 1"}
#define OF_DOCUMENTS                                                                                            \
    {"top_n", SERVE_INTEGER, offsetof(rerank_fields, top_n), .min = 1, .max = INT32_MAX,                        \
     .help = "number of documents to return, the best ones; default: all"},                                     \
    {"return_documents", SERVE_BOOL, offsetof(rerank_fields, return_documents), .help = "return the documents, too"}, \
    {"max_tokens_per_doc", SERVE_INTEGER, offsetof(rerank_fields, max_tokens_per_doc), .min = 1, .max = INT32_MAX, \
     .help = "accepted if it is not less than what the model takes, which truncates pairs in any case"},        \
    {"max_chunks_per_doc", SERVE_IGNORED, .help = "documents are not split"},                                   \
    {"rank_fields", SERVE_REFUSED, .words = "[\"text\"]", .help = "documents are texts, or have one as \"text\""}
#define OF_TEXTS                                                                                                \
    {"return_text", SERVE_BOOL, offsetof(rerank_fields, return_text), .help = "return the texts, too"},         \
    {"truncation_direction", SERVE_REFUSED, .words = "\"Right\"",                                               \
     .help = "the longer text of a pair is truncated at its end: \"Right\""}
static const serve_field document_table[] = {
    COMMON,
    {"documents", SERVE_DOCUMENTS, offsetof(rerank_fields, documents), .required = true,
     .help = "list of texts, or of objects with a \"text\""},
    OF_DOCUMENTS,
    {0},
};
static const serve_field both_table[] = {
    COMMON,
    {"documents", SERVE_DOCUMENTS, offsetof(rerank_fields, documents),
     .help = "list of texts, or of objects with a \"text\": the answer is as Jina's and Cohere's"},
    OF_DOCUMENTS,
    {"texts", SERVE_TEXTS, offsetof(rerank_fields, texts), .help = "list of texts: the answer is a list, as TEI's"},
    OF_TEXTS,
    {0},
};
/* clang-format on */

/* ---- answers ---- */

/* [{"index", "score", "text"}] */
static void write_tei(serve_call *c, const rerank_fields *o, const serve_rank *r)
{
    cli_json j = serve_answer_open(c);
    cli_json_array(&j, NULL);
    for (int64_t i = 0; i < o->texts.n; i++) {
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "index", r[i].index);
        cli_json_float(&j, "score", r[i].score);
        if (o->return_text)
            cli_json_bytes(&j, "text", o->texts.text[r[i].index], o->texts.bytes[r[i].index]);
        cli_json_end(&j);
    }
    serve_answer_close(c, &j);
}

/* Writes the counts where Cohere has them, with a warning if there were pairs too long. */
static void write_meta(cli_json *j, const serve_scoring *s)
{
    char warning[128];
    cli_json_object(j, "meta");
    cli_json_object(j, "tokens");
    cli_json_integer(j, "input_tokens", s->tokens);
    cli_json_end(j);
    if (s->truncated > 0) {
        snprintf(warning, sizeof warning, "%lld pairs of query and document were truncated", (long long)s->truncated);
        cli_json_strings(j, "warnings", &(const char *){warning}, 1);
    }
    cli_json_end(j);
}

/* {"results": [{"index", "relevance_score", "document": {"text"}}], ...} */
static void write_jina(serve_call *c, const serve_model *m, const rerank_fields *o, const serve_rank *r,
                       const serve_scoring *s)
{
    const int64_t n = o->top_n > 0 && o->top_n < o->documents.n ? o->top_n : o->documents.n;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "object", "list");
    cli_json_string(&j, "model", m->id);
    cli_json_array(&j, "results");
    for (int64_t i = 0; i < n; i++) {
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "index", r[i].index);
        cli_json_float(&j, "relevance_score", r[i].score);
        if (o->return_documents) {
            cli_json_object(&j, "document");
            cli_json_bytes(&j, "text", o->documents.text[r[i].index], o->documents.bytes[r[i].index]);
            cli_json_end(&j);
        }
        cli_json_end(&j);
    }
    cli_json_end(&j);
    serve_usage_write(&j, s->tokens, s->truncated);
    write_meta(&j, s);
    serve_answer_close(c, &j);
}

/* ---- requests ---- */

static bool check(serve_call *c, const serve_model *m, const rerank_fields *o)
{
    if (m->info.classifier.labels != 1)
        serve_refuse(c, 400, "model", "%s has %lld labels, but reranking needs a score, of one: POST /classify", m->id,
                     (long long)m->info.classifier.labels);
    else if (!o->documents.text == !o->texts.text)
        serve_refuse(c, 400, "documents", "one of documents and texts is needed");
    else if (o->max_tokens_per_doc > 0 && o->max_tokens_per_doc < m->max_tokens)
        serve_refuse(c, 400, "max_tokens_per_doc",
                     "max_tokens_per_doc: %lld is not supported: pairs are truncated to what %s takes, %lld tokens",
                     (long long)o->max_tokens_per_doc, m->id, (long long)m->max_tokens);
    else
        return true;
    return false;
}

/* Acquires the memory of the documents in the answer, if they are returned. */
static bool acquire_documents(serve_call *c, const serve_texts *t, bool returned)
{
    enum { DOCUMENT = 32, ESCAPED = 3 }; /* bytes of one, and of an escaped byte */
    size_t bytes = 0;
    for (int64_t i = 0; returned && i < t->n; i++)
        bytes += DOCUMENT + ESCAPED * t->bytes[i];
    if (serve_call_acquire(c, bytes))
        return true;
    serve_refuse_memory(c);
    return false;
}

static void answer(serve_call *c, void *fields)
{
    const rerank_fields *o = fields;
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_CLASSIFIER);
    if (!m || !check(c, m, o))
        return;
    const serve_texts *t = o->texts.text ? &o->texts : &o->documents;
    if (!acquire_documents(c, t, o->return_text || o->return_documents))
        return;
    serve_scoring s = {.field = o->texts.text ? "texts" : "documents",
                       .n = t->n,
                       .pair = t->text,
                       .pair_bytes = t->bytes,
                       .activation = o->raw_scores ? ATT_TEXT_ACTIVATION_IDENTITY : ATT_TEXT_ACTIVATION_SIGMOID,
                       .refuse_long = !o->truncate};
    const char **query = malloc((size_t)t->n * sizeof *query);
    size_t *bytes = malloc((size_t)t->n * sizeof *bytes);
    for (int64_t i = 0; query && bytes && i < t->n; i++) {
        query[i] = o->query.text;
        bytes[i] = o->query.bytes;
    }
    s.text = query;
    s.bytes = bytes;
    serve_rank *r = NULL;
    if (!query || !bytes)
        serve_refuse(c, 503, NULL, "out of memory");
    else if (serve_score(c, m, &s) && !(r = serve_ranks(s.scores, s.n)))
        serve_refuse(c, 503, NULL, "out of memory");
    if (r && o->texts.text)
        write_tei(c, o, r);
    else if (r)
        write_jina(c, m, o, r, &s);
    free(r);
    free(query);
    free(bytes);
    serve_scoring_free(&s);
}

#define RESULTS                                                                                                        \
    "{\"object\": \"string\", \"model\": \"string\", \"results\": [{\"index\": "                                       \
    "\"integer\", \"relevance_score\": \"number\", \"document?\": {\"text\": \"string\"}}], \"usage\": "               \
    "{\"prompt_tokens\": \"integer\", \"total_tokens\": \"integer\", \"truncated\": \"integer\"}, \"meta\": "          \
    "{\"tokens\": {\"input_tokens\": \"integer\"}, \"warnings?\": [\"string\"]}}"

const serve_route serve_route_rerank_v1 = {.method = "POST",
                                           .path = "/v1/rerank",
                                           .answers = RESULTS,
                                           .summary = "Documents by a cross-encoder's scores, as Jina's and Cohere's",
                                           .fields = document_table,
                                           .size = sizeof(rerank_fields),
                                           .run = answer};
const serve_route serve_route_rerank_v2 = {.method = "POST",
                                           .path = "/v2/rerank",
                                           .answers = RESULTS,
                                           .summary = "Documents by a cross-encoder's scores, as Cohere's",
                                           .fields = document_table,
                                           .size = sizeof(rerank_fields),
                                           .run = answer};
const serve_route serve_route_rerank = {
    .method = "POST",
    .path = "/rerank",
    .answers = "{\"|\": [" RESULTS ", [{\"index\": \"integer\", \"score\": \"number\", \"text?\": \"string\"}]]}",
    .summary = "Documents by a cross-encoder's scores, as TEI's (texts) or Jina's "
               "(documents)",
    .fields = both_table,
    .size = sizeof(rerank_fields),
    .run = answer,
    .errors = SERVE_ERRORS_FLAT};
