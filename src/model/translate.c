/* Texts to translations: tokenize, sort by length, search in batches, put back in order. */
#include "io/settings.h"
#include "model/search.h"
#include "model/transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_ROWS = 128,    /* translations that grow side by side: weights are read once for all of them */
    BATCH_TOKENS = 4096, /* of sources */
    MAX_BANNED = 64,
    MOST_BEAMS = 1024
};

struct att_translator {
    att_ctx *ctx;
    att_transformer *model;
    att_tokenizer *tokenizer;
    bool borrowed;     /* both are the caller's */
    att_search search; /* as the settings say */
    int32_t banned[MAX_BANNED];
};

/* ---- settings: generation_config.json, in older folders config.json */

static void read_banned(att_settings *s, att_translator *m)
{
    const json_t *list = att_settings_list(s, "bad_words_ids", false), *word;
    size_t i;
    json_array_foreach(list, i, word)
    {
        const json_t *id = json_array_get(word, 0);
        if (json_array_size(word) != 1 || !json_is_number(id) || m->search.n_banned == MAX_BANNED) {
            att_settings_unsupported(s, "bad_words_ids", "a list of a few [token]");
            return;
        }
        m->banned[m->search.n_banned++] = (int32_t)json_number_value(id);
    }
}

static int64_t whole(att_settings *s, const char *key, int64_t least, int64_t most, int64_t otherwise)
{
    return att_settings_has(s, key) ? att_settings_whole(s, key, least, most) : otherwise;
}

static void read_search(att_settings *s, att_translator *m)
{
    att_search *o = &m->search;
    const att_marian_config *c = att_transformer_config(m->model);
    const int64_t last = c->target_vocabulary - 1, length = whole(s, "max_length", 2, 1 << 20, c->max_positions);
    att_settings_only_bool(s, "do_sample", false);
    o->beam = whole(s, "num_beams", 1, MOST_BEAMS, 1);
    o->max_tokens = whole(s, "max_new_tokens", 1, 1 << 20, length - 1); /* max_length counts the start, too */
    o->start = (int32_t)whole(s, "decoder_start_token_id", 0, last, c->start);
    o->end = (int32_t)whole(s, "eos_token_id", 0, last, c->eos);
    o->force_end = att_settings_has(s, "forced_eos_token_id");
    if (o->force_end && att_settings_whole(s, "forced_eos_token_id", 0, last) != o->end)
        att_settings_unsupported(s, "forced_eos_token_id", "that of \"eos_token_id\"");
    o->length_penalty = att_settings_has(s, "length_penalty") ? att_settings_number(s, "length_penalty", -100, 100) : 1;
    o->early_stopping = att_settings_bool(s, "early_stopping", false);
    read_banned(s, m);
    o->banned = m->banned;
    o->vocabulary = c->target_vocabulary;
}

static att_status read_settings(att_translator *m, const char *folder)
{
    att_settings s;
    att_settings_read(&s, m->ctx, folder, "generation_config.json", false);
    if (!s.status && !s.root) {
        att_settings_close(&s);
        att_settings_read(&s, m->ctx, folder, "config.json", true);
    }
    read_search(&s, m);
    att_settings_close(&s);
    return s.status;
}

/* ---- open and close */

static att_status open_all(att_translator *m, const char *folder)
{
    att_status s = att_transformer_open(m->ctx, folder, &m->model);
    s = s ? s : att_tokenizer_open(m->ctx, folder, &m->tokenizer);
    s = s ? s : read_settings(m, folder);
    if (s)
        return s;
    const att_marian_config *c = att_transformer_config(m->model);
    if (att_tokenizer_size(m->tokenizer) > c->source_vocabulary)
        return att_fail(m->ctx, ATT_ERR_FORMAT, "%s: vocab.json has %lld tokens but \"vocab_size\" is %lld", folder,
                        (long long)att_tokenizer_size(m->tokenizer), (long long)c->source_vocabulary);
    return ATT_OK;
}

att_status att_translator_open(att_ctx *ctx, const char *folder, att_translator **out)
{
    if (!folder || !out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_translator_open: %s is NULL", folder ? "out" : "folder");
    *out = NULL;
    att_translator *m = att_calloc(ctx, 1, sizeof *m);
    if (!m)
        return ATT_ERR_MEMORY;
    m->ctx = ctx;
    const att_status s = open_all(m, folder);
    if (s)
        att_translator_free(m);
    else
        *out = m;
    return s;
}

att_status att_translator_of(const att_transformer *model, const att_tokenizer *tokenizer, att_translator **out)
{
    const att_marian_config *c = att_transformer_config(model);
    att_translator *m = att_calloc(att_transformer_ctx(model), 1, sizeof *m);
    *out = m;
    if (!m)
        return ATT_ERR_MEMORY;
    *m = (att_translator){.ctx = att_transformer_ctx(model),
                          .model = (att_transformer *)model, /* only read */
                          .tokenizer = (att_tokenizer *)tokenizer,
                          .borrowed = true,
                          .search = {.vocabulary = c->target_vocabulary,
                                     .beam = 1,
                                     .max_tokens = c->max_positions - 1,
                                     .length_penalty = 1,
                                     .start = (int32_t)c->start,
                                     .end = (int32_t)c->eos,
                                     .force_end = true,
                                     .n_banned = 1},
                          .banned = {(int32_t)c->pad}};
    m->search.banned = m->banned;
    return ATT_OK;
}

void att_translator_free(att_translator *m)
{
    if (!m)
        return;
    if (!m->borrowed) {
        att_transformer_free(m->model);
        att_tokenizer_free(m->tokenizer);
    }
    att_free(m->ctx, m);
}

const att_transformer *att_translator_model(const att_translator *m) { return m->model; }
const att_tokenizer *att_translator_tokenizer(const att_translator *m) { return m->tokenizer; }

/* ---- a batch */

typedef struct job {
    const att_translator *m;
    att_search search;
    int64_t n;
    att_tokens *source;   /* [n] */
    int64_t *order;       /* [n] the longest first */
    att_found *found;     /* [n][n_best] */
    att_translation *out; /* [n][n_best] */
} job;

static att_var *step(void *user, att_tape *t, const int32_t *ids) { return att_transformer_step(user, t, ids); }
static att_status select_rows(void *user, int64_t n, const int64_t *from)
{
    return att_transformer_select(user, n, from);
}

/* Sources order[first, last) */
static att_status translate_batch(const job *j, int64_t first, int64_t last)
{
    att_ctx *ctx = j->m->ctx;
    const int64_t n = last - first, best = j->search.n_best;
    int64_t *offsets = att_alloc(ctx, (size_t)n + 1, sizeof *offsets);
    if (!offsets)
        return ATT_ERR_MEMORY;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + j->source[j->order[first + i]].count;
    int32_t *ids = att_alloc(ctx, (size_t)offsets[n] + 1, sizeof *ids);
    att_found *found = att_calloc(ctx, (size_t)(n * best), sizeof *found);
    att_transformer_state *state = NULL;
    att_status e = ids && found ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        const att_tokens *s = &j->source[j->order[first + i]];
        memcpy(ids + offsets[i], s->ids, (size_t)s->count * sizeof *ids);
    }
    e = e ? e : att_transformer_start(j->m->model, ids, offsets, n, &state);
    const att_generator model = {.user = state, .step = step, .select = select_rows};
    e = e ? e : att_search_run(ctx, &j->search, &model, n, found);
    for (int64_t i = 0; !e && i < n; i++)
        memcpy(j->found + j->order[first + i] * best, found + i * best, (size_t)best * sizeof *found);
    att_transformer_state_free(state);
    att_free(ctx, found);
    att_free(ctx, ids);
    att_free(ctx, offsets);
    return e;
}

/* ---- the call */

static att_status tokenize(const job *j, const char *const *texts, const size_t *bytes)
{
    const int64_t most = att_transformer_config(j->m->model)->max_positions;
    for (int64_t i = 0; i < j->n; i++) {
        att_tokens *s = &j->source[i];
        const att_status e = att_encode(j->m->tokenizer, texts[i], bytes ? bytes[i] : strlen(texts[i]), NULL, s);
        if (e)
            return e;
        if (s->count > most)
            return att_fail(j->m->ctx, ATT_ERR_ARGUMENT, "text %lld has %lld tokens but the model has %lld positions",
                            (long long)i, (long long)s->count, (long long)most);
    }
    return ATT_OK;
}

/* Longest first, so that a batch is of like lengths; stable. */
static int by_length(const void *a, const void *b, void *source)
{
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int64_t x = ((const att_tokens *)source)[i].count, y = ((const att_tokens *)source)[k].count;
    return x != y ? (x > y ? -1 : 1) : i < k ? -1 : 1;
}

static att_status translate_all(const job *j)
{
    const int64_t rows = BATCH_ROWS / j->search.beam > 0 ? BATCH_ROWS / j->search.beam : 1;
    att_status e = ATT_OK;
    for (int64_t i = 0; i < j->n; i++)
        j->order[i] = i;
    qsort_r(j->order, (size_t)j->n, sizeof *j->order, by_length, j->source);
    for (int64_t first = 0, last; !e && first < j->n; first = last) {
        int64_t tokens = 0;
        for (last = first; last < j->n && last - first < rows; last++) {
            tokens += j->source[j->order[last]].count;
            if (last > first && tokens > BATCH_TOKENS)
                break;
        }
        e = translate_batch(j, first, last);
    }
    return e;
}

static att_status write_text(const job *j, att_found *found, att_translation *out)
{
    out->tokens.ids = found->ids;
    out->tokens.count = found->count;
    out->score = (float)found->score;
    if (!found->ids)
        return ATT_OK;
    found->ids = NULL;
    return att_detokenize(j->m->tokenizer, out->tokens.ids, out->tokens.count, &out->text);
}

static att_status set_options(const att_translator *m, const att_translate_options *options, att_search *search)
{
    att_translate_options o;
    const att_status e = att_take_options(&o, sizeof o, options, "att_translate_options");
    const int64_t positions = att_transformer_config(m->model)->max_positions;
    *search = m->search;
    if (e)
        return e;
    const struct {
        const char *name;
        int64_t value, least, most;
    } limits[] = {{"beam", o.beam, 0, MOST_BEAMS},
                  {"max_tokens", o.max_tokens, 0, positions},
                  {"min_tokens", o.min_tokens, 0, positions},
                  {"n_best", o.n_best, 0, o.beam ? o.beam : search->beam}};
    for (int i = 0; i < 4; i++)
        if (limits[i].value < limits[i].least || limits[i].value > limits[i].most)
            return att_fail(m->ctx, ATT_ERR_ARGUMENT, "options.%s is %lld, expected %lld to %lld", limits[i].name,
                            (long long)limits[i].value, (long long)limits[i].least, (long long)limits[i].most);
    search->beam = o.beam ? o.beam : search->beam;
    search->max_tokens = o.max_tokens ? o.max_tokens : search->max_tokens;
    search->max_tokens = search->max_tokens < positions ? search->max_tokens : positions;
    search->min_tokens = o.min_tokens;
    search->n_best = o.n_best ? o.n_best : 1;
    search->length_penalty = o.length_penalty ? (double)*o.length_penalty : search->length_penalty;
    return ATT_OK;
}

att_status att_translate(const att_translator *m, int64_t n, const char *const *texts, const size_t *bytes,
                         const att_translate_options *options, att_translation *out)
{
    job j = {.m = m, .n = n, .out = out};
    att_status e = set_options(m, options, &j.search);
    if (e)
        return e;
    const int64_t count = n * j.search.n_best;
    memset(out, 0, (size_t)count * sizeof *out);
    j.source = att_calloc(m->ctx, (size_t)n + 1, sizeof *j.source);
    j.order = att_alloc(m->ctx, (size_t)n + 1, sizeof *j.order);
    j.found = att_calloc(m->ctx, (size_t)count + 1, sizeof *j.found);
    e = j.source && j.order && j.found ? ATT_OK : ATT_ERR_MEMORY;
    e = e ? e : tokenize(&j, texts, bytes);
    e = e ? e : translate_all(&j);
    for (int64_t i = 0; !e && i < count; i++)
        e = write_text(&j, &j.found[i], &out[i]);
    for (int64_t i = 0; j.found && i < count; i++)
        att_free(m->ctx, j.found[i].ids);
    for (int64_t i = 0; j.source && i < n; i++)
        att_tokens_free(m->tokenizer, &j.source[i]);
    for (int64_t i = 0; e && i < count; i++)
        att_translation_free(m, &out[i]);
    att_free(m->ctx, j.found);
    att_free(m->ctx, j.order);
    att_free(m->ctx, j.source);
    return e;
}

void att_translation_free(const att_translator *m, att_translation *t)
{
    att_text_free(m->tokenizer, &t->text);
    att_free(m->ctx, t->tokens.ids);
    *t = (att_translation){0};
}
