/* The route of recommendations. */
#include "routes.h"

#include <stdlib.h>
#include <string.h>

typedef struct recommend_fields {
    serve_texts history, allow, deny;
    serve_text model;
    int64_t k;
    bool exclude_seen;
} recommend_fields;

static const serve_field recommend_table[] = {
    {"history", SERVE_TEXTS, offsetof(recommend_fields, history), .required = true, .empty = true,
     .help = "ids of the items that somebody has chosen, the last one last"},
    SERVE_MODEL_FIELD(recommend_fields, "recommender"),
    {"k", SERVE_INTEGER, offsetof(recommend_fields, k), .min = 1, .max = INT32_MAX, .usual = 10,
     .help = "number of items to recommend"},
    {"exclude_seen", SERVE_BOOL, offsetof(recommend_fields, exclude_seen),
     .help = "leave out the items of the history"},
    {"allow", SERVE_TEXTS, offsetof(recommend_fields, allow), .help = "recommend only these items"},
    {"deny", SERVE_TEXTS, offsetof(recommend_fields, deny), .empty = true, .help = "never recommend these items"},
    {0},
};

/* Numbers of items. */
typedef struct item_list {
    int32_t *item; /* [n] */
    int64_t n;
} item_list;

typedef struct recommend_job {
    serve_job base;
    item_list history, allow, deny;
    int64_t k;
    bool exclude_seen;
    int32_t *items; /* [k]: -1: there are no more */
    float *scores;  /* [k] */
    bool by_popular;
} recommend_job;

/* ---- the compute loop ---- */

static bool fits(const serve_job *a, const serve_job *b)
{
    const recommend_job *x = (const recommend_job *)a, *y = (const recommend_job *)b;
    return x->k == y->k && x->exclude_seen == y->exclude_seen && x->allow.n + x->deny.n + y->allow.n + y->deny.n == 0;
}

static void scatter(const serve_batch *b, const att_recommendation *r)
{
    for (int64_t i = 0; i < b->n; i++) {
        recommend_job *j = (recommend_job *)b->job[i];
        memcpy(j->items, r->items + i * r->k, (size_t)r->k * sizeof *r->items);
        memcpy(j->scores, r->scores + i * r->k, (size_t)r->k * sizeof *r->scores);
        j->by_popular = r->by_popular[i];
    }
}

static att_status run(const serve_batch *b)
{
    const recommend_job *first = (const recommend_job *)b->job[0];
    int64_t all = 0, *offsets = malloc((size_t)(b->n + 1) * sizeof *offsets);
    att_recommendation r = {0};
    for (int64_t i = 0; i < b->n; i++)
        all += ((const recommend_job *)b->job[i])->history.n;
    int32_t *items = malloc((size_t)(all + 1) * sizeof *items);
    att_status s = offsets && items ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0, at = 0; !s && i < b->n; i++) {
        const item_list *h = &((const recommend_job *)b->job[i])->history;
        offsets[i] = at;
        if (h->n > 0)
            memcpy(items + at, h->item, (size_t)h->n * sizeof *items);
        offsets[i + 1] = at += h->n;
    }
    s = s ? s
          : att_recommend(att_any_model_as(b->model->opened, ATT_SUBJECT_RECOMMEND), b->n, items, offsets,
                          ATT_OPTIONS(att_recommend_options, .k = first->k, .exclude_seen = first->exclude_seen,
                                      .allow = first->allow.item, .n_allow = first->allow.n, .deny = first->deny.item,
                                      .n_deny = first->deny.n),
                          &r);
    if (!s)
        scatter(b, &r);
    att_recommendation_free(b->ctx, &r);
    free(offsets);
    free(items);
    return s;
}

static const serve_work work = {.name = "recommend", .fits = fits, .run = run};

/* ---- one request ---- */

/* Finds the items of ids; those that the model does not have are left out. Returns false if out of memory. */
static bool find_items(const att_recommender *m, const serve_texts *ids, item_list *out)
{
    out->item = malloc((size_t)(ids->n + 1) * sizeof *out->item);
    for (int64_t i = 0; out->item && i < ids->n; i++) {
        const int64_t item = att_recommender_find_item(m, ids->text[i]);
        if (item >= 0)
            out->item[out->n++] = (int32_t)item;
    }
    return out->item;
}

static void write_answer(serve_call *c, const serve_model *m, const recommend_fields *o, const recommend_job *r)
{
    const att_recommender *model = att_any_model_as(m->opened, ATT_SUBJECT_RECOMMEND);
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_array(&j, "items");
    for (int64_t i = 0; i < r->k && r->items[i] >= 0; i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "id", att_recommender_item(model, r->items[i]));
        cli_json_float(&j, "score", r->scores[i]);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_bool(&j, "by_popular", r->by_popular);
    cli_json_array(&j, "unknown");
    for (int64_t i = 0; i < o->history.n; i++)
        if (att_recommender_find_item(model, o->history.text[i]) < 0)
            cli_json_bytes(&j, NULL, o->history.text[i], o->history.bytes[i]);
    cli_json_end(&j);
    cli_json_string(&j, "model", m->id);
    serve_answer_close(c, &j);
}

static void answer(serve_call *c, void *fields)
{
    const recommend_fields *o = fields;
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_RECOMMEND);
    if (!m)
        return;
    const att_recommender *model = att_any_model_as(m->opened, ATT_SUBJECT_RECOMMEND);
    const int64_t cost = o->history.n + 1, items = m->info.recommender.items;
    recommend_job j = {.base = {.work = &work, .model = m, .n = 1, .cost = &cost},
                       .k = o->k < items ? o->k : items,
                       .exclude_seen = o->exclude_seen};
    j.items = malloc((size_t)j.k * sizeof *j.items);
    j.scores = malloc((size_t)j.k * sizeof *j.scores);
    const bool memory = find_items(model, &o->history, &j.history) && find_items(model, &o->allow, &j.allow) &&
                        find_items(model, &o->deny, &j.deny) && j.items && j.scores;
    if (!memory)
        serve_refuse(c, 503, NULL, "out of memory");
    else if (o->allow.n > 0 && j.allow.n == 0)
        serve_refuse(c, 400, "allow", "allow: %s has none of these items", m->id);
    else if (serve_call_run(c, &j.base))
        write_answer(c, m, o, &j);
    free(j.history.item);
    free(j.allow.item);
    free(j.deny.item);
    free(j.items);
    free(j.scores);
}

#define ITEMS                                                                                                          \
    "{\"items\": [{\"id\": \"string\", \"score\": \"number\"}], \"by_popular\": \"boolean\", \"unknown\": "            \
    "[\"string\"], \"model\": \"string\"}"

const serve_route serve_route_recommend = {.method = "POST",
                                           .path = "/recommend",
                                           .answers = ITEMS,
                                           .summary = "Items that may follow a history",
                                           .fields = recommend_table,
                                           .size = sizeof(recommend_fields),
                                           .run = answer};
