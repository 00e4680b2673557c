/* Embeds many texts, or their tokens. */
#include "io/check_texts.h"
#include "model/token_batches.h"
#include "sentence/sentence.h"
#include "util/array.h"
#include "util/util.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK_TEXTS = 2048 }; /* texts whose tokens are in memory at a time while ids are collected */

typedef struct embed_call {
    const char *name; /* of the public function, for errors */
    const att_sentence *m;
    int64_t n;
    const char *const *texts; /* [n], or NULL: ids are given */
    const size_t *bytes;
    att_embed_options options;
    const char *prompt;    /* a text before each text */
    int64_t prompt_tokens; /* number of its tokens, if modules leave them out; otherwise 0 */
    bool every_token;      /* out has a vector of each token, not of each text; ids are given */
    int64_t dim;           /* of a row of out */
    float *out;            /* [n, dim], or [options.offsets[n], dim] */
} embed_call;

/* ---- tokens */

static void find_ids(const embed_call *c, int64_t first, int64_t count, att_tokens *out)
{
    const att_embed_options *o = &c->options;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = first + i;
        out[i] = (att_tokens){.ids = (int32_t *)o->ids + o->offsets[k], /* not modified */
                              .count = o->offsets[k + 1] - o->offsets[k]};
    }
}

/* Tokenizes texts, or finds their ids. */
static att_status tokenize(void *user, int64_t first, int64_t count, att_tokens *out)
{
    const embed_call *c = user;
    const att_embed_options *o = &c->options;
    att_ctx *ctx = c->m->model.ctx;
    att_status s = ATT_OK;
    if (c->texts)
        s = att_sentence_tokenize(c->m, count, c->texts + first, c->bytes ? c->bytes + first : NULL, c->prompt, out);
    else
        find_ids(c, first, count, out);
    if (s && first > 0)
        s = att_fail(ctx, s, "%s: of the texts from %lld on: %s", c->name, (long long)first, att_error(ctx));
    for (int64_t i = 0; !s && i < count; i++) {
        if (o->tokens)
            o->tokens[first + i] = out[i].count;
        if (o->truncated)
            o->truncated[first + i] = out[i].truncated;
        if (o->unknown)
            o->unknown[first + i] = out[i].unknown;
    }
    return s;
}

/* ---- vectors */

static att_var *apply(void *user, att_tape *t, const att_token_batch *b)
{
    const embed_call *c = user;
    const att_backbone *backbone = &c->m->backbone;
    const att_texts x = {.ids = b->ids, .offsets = b->offsets, .n = b->n, .prompt = c->prompt_tokens};
    return c->every_token ? att_modules_apply_to_tokens(t, &c->m->modules, &x, backbone->kind->tokens(t, backbone, &x))
                          : att_sentence_truncate(t, c->m, att_sentence_apply(t, c->m, &x), c->dim);
}

static void keep(void *user, const att_token_batch *b, const float *rows)
{
    const embed_call *c = user;
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t from = c->every_token ? b->offsets[i] : i, n = c->every_token ? b->offsets[i + 1] - from : 1;
        const int64_t to = c->every_token ? c->options.offsets[b->text[i]] : b->text[i];
        memcpy(c->out + to * c->dim, rows + from * c->dim, (size_t)(n * c->dim) * sizeof *rows);
    }
}

static att_status embed_all(embed_call *c)
{
    return att_token_call_run(&(const att_token_call){.ctx = c->m->model.ctx,
                                                      .name = c->name,
                                                      .n = c->n,
                                                      .tapes = att_sentence_tapes(c->m),
                                                      .report = c->options.progress,
                                                      .report_user = c->options.user,
                                                      .user = c,
                                                      .tokenize = tokenize,
                                                      .borrowed = !c->texts,
                                                      .apply = apply,
                                                      .keep = keep});
}

/* ---- the calls */

static att_status check_ids(const embed_call *c)
{
    const att_embed_options *o = &c->options;
    const att_backbone *b = &c->m->backbone;
    if (c->texts)
        return att_fail(c->m->model.ctx, ATT_ERR_ARGUMENT, "%s: texts and options.ids are given, not one of them",
                        c->name);
    const att_given_ids given = {.ids = o->ids,
                                 .offsets = o->offsets,
                                 .min =
                                     b->kind->vectors ? 0 : 1, /* no token has no hidden state, but perhaps a vector */
                                 .max = c->m->max_tokens,
                                 .vocabulary = b->info.vocabulary};
    return att_check_given_ids(c->m->model.ctx, c->name, &given, c->n);
}

/* Finds the prompt of the texts; ids have none. */
static att_status read_prompt(embed_call *c)
{
    const att_embed_options *o = &c->options;
    const bool ids = o->ids || o->offsets;
    c->prompt = "";
    if (ids && (o->prompt || o->prompt_name))
        return att_fail(c->m->model.ctx, ATT_ERR_ARGUMENT, "%s: options.ids and options.%s are both given", c->name,
                        o->prompt ? "prompt" : "prompt_name");
    att_status s = ids ? ATT_OK : att_sentence_choose_prompt(c->m, c->name, o->prompt, o->prompt_name, &c->prompt);
    return s ? s : att_sentence_prompt_tokens(c->m, c->prompt, &c->prompt_tokens);
}

static att_status read_dims(embed_call *c)
{
    const int64_t dims = c->options.dims, full = c->m->modules.dim;
    att_ctx *ctx = c->m->model.ctx;
    c->dim = c->every_token ? c->m->modules.token_dim : dims ? dims : c->m->dim;
    if (c->every_token && dims != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.dims is %lld, but vectors of tokens are not truncated",
                        c->name, (long long)dims);
    if (dims < 0 || dims > full)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.dims is %lld, but embeddings have 1 to %lld numbers",
                        c->name, (long long)dims, (long long)full);
    return ATT_OK;
}

/* Sets the options of a call and checks its texts or ids. */
static att_status begin(embed_call *c, const att_embed_options *options)
{
    att_ctx *ctx = c->m->model.ctx;
    att_embed_options *o = &c->options;
    char texts[64];
    att_status s = att_options_read(o, sizeof *o, options, "att_embed_options");
    if (!s && c->n < 0)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, less than 0", c->name, (long long)c->n);
    s = s ? s : read_dims(c);
    if (s)
        return s;
    snprintf(texts, sizeof texts, "%s: texts", c->name);
    s = o->ids || o->offsets ? check_ids(c) : att_check_texts(ctx, texts, c->texts, c->n);
    return s ? s : read_prompt(c);
}

att_status att_sentence_embed(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_embed_options *options, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    embed_call c = {.name = __func__, .m = m, .n = n, .texts = texts, .bytes = bytes, .out = out};
    att_status s = begin(&c, options);
    s = s || n == 0 ? s : att_require(__func__, ATT_NAMED({"out", out}));
    s = s ? s : embed_all(&c);
    return s ? s : att_check_finite(m->model.ctx, "the numbers of the vector of text", n, c.dim, out);
}

/* Appends the ids of texts from `first` on, tokens [count], to those of y, which has room for *room. */
static att_status append_ids(att_ctx *ctx, int64_t first, int64_t count, const att_tokens *tokens,
                             att_token_embeddings *y, size_t *room)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < count; i++) {
        const int64_t at = y->offsets[first + i], n = tokens[i].count;
        s = att_grow(ctx, &y->ids, sizeof *y->ids, (size_t)at, (size_t)n, room);
        if (!s && n > 0)
            memcpy(y->ids + at, tokens[i].ids, (size_t)n * sizeof *y->ids);
        y->offsets[first + i + 1] = at + n;
    }
    return s;
}

/* Fills in ids and offsets of y. */
static att_status collect_ids(embed_call *c, att_token_embeddings *y)
{
    att_ctx *ctx = c->m->model.ctx;
    size_t room = 0;
    att_tokens *tokens = att_alloc(ctx, (size_t)att_min(c->n, BLOCK_TEXTS) + 1, sizeof *tokens);
    y->offsets = att_calloc(ctx, (size_t)c->n + 1, sizeof *y->offsets);
    att_status s = tokens && y->offsets ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t first = 0; !s && first < c->n; first += BLOCK_TEXTS) {
        const int64_t count = att_min(c->n - first, BLOCK_TEXTS);
        s = tokenize(c, first, count, tokens);
        if (s)
            break;
        s = append_ids(ctx, first, count, tokens, y, &room);
        for (int64_t i = 0; c->texts && i < count; i++)
            att_tokens_free(ctx, &tokens[i]);
    }
    att_free(ctx, tokens);
    return s;
}

static att_status embed_tokens(embed_call *c, att_token_embeddings *y)
{
    att_ctx *ctx = c->m->model.ctx;
    att_status s = collect_ids(c, y);
    if (s)
        return s;
    const int64_t count = y->offsets[c->n];
    y->vectors = att_alloc(ctx, (size_t)count, (size_t)c->dim * sizeof *y->vectors);
    if (!y->vectors)
        return ATT_ERR_MEMORY;
    c->texts = NULL;
    c->options.ids = y->ids;
    c->options.offsets = y->offsets;
    c->options.tokens = NULL; /* which have been told */
    c->options.truncated = NULL;
    c->options.unknown = NULL;
    c->out = y->vectors;
    s = embed_all(c);
    return s ? s : att_check_finite(ctx, "the numbers of the vector of token", count, c->dim, y->vectors);
}

att_status att_sentence_embed_tokens(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                     const att_embed_options *options, att_token_embeddings *out)
{
    if (out)
        *out = (att_token_embeddings){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    embed_call c = {.name = __func__, .m = m, .n = n, .texts = texts, .bytes = bytes, .every_token = true};
    att_status s = begin(&c, options);
    s = s ? s : embed_tokens(&c, out);
    if (s)
        att_token_embeddings_free(m->model.ctx, out);
    return s;
}

void att_token_embeddings_free(att_ctx *ctx, att_token_embeddings *e)
{
    if (!ctx || !e)
        return;
    att_free(ctx, e->offsets);
    att_free(ctx, e->ids);
    att_free(ctx, e->vectors);
    *e = (att_token_embeddings){0};
}
