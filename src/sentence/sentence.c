/* Sentence embeddings: Transformer, Pooling, Normalize (Reimers, Gurevych 2019). */
#include "sentence/sentence.h"

#include <string.h>

/* ---- open and close */

/* The tokenizer must already lower-case, else the setting is not supported. */
static att_status check_lower_case(const att_sentence *m, const char *folder)
{
    const att_tokenize_options *opt = ATT_OPTIONS(att_tokenize_options, .no_special = true);
    att_tokens upper = {0}, lower = {0};
    att_status s = att_tokenize(m->tokenizer, "A", 1, opt, &upper);
    if (!s)
        s = att_tokenize(m->tokenizer, "a", 1, opt, &lower);
    if (!s &&
        (upper.count != lower.count || memcmp(upper.ids, lower.ids, (size_t)upper.count * sizeof *upper.ids) != 0))
        s = att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                     "%s/sentence_bert_config.json: \"do_lower_case\" is true, but the tokenizer does not lower",
                     folder);
    att_tokens_free(m->model.ctx, &upper);
    att_tokens_free(m->model.ctx, &lower);
    return s;
}

/* Checks the modules against each other. */
static att_status check_parts(att_sentence *m, const char *folder)
{
    att_modules *p = &m->modules;
    const att_encoder_info *e = &m->info;
    if (p->plain)
        p->dim = e->hidden;
    if (p->dim != e->hidden)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the pooling is for %lld features but hidden_size is %lld",
                        folder, (long long)p->dim, (long long)e->hidden);
    if (att_tokenizer_size(m->tokenizer) > e->vocabulary) /* fewer: embeddings are padded with rows of no token */
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the tokenizer has %lld tokens but vocab_size is %lld",
                        folder, (long long)att_tokenizer_size(m->tokenizer), (long long)e->vocabulary);
    if (p->max_tokens == 0 || p->max_tokens > e->max_positions)
        p->max_tokens = e->max_positions;
    return p->lower_case ? check_lower_case(m, folder) : ATT_OK;
}

static att_status load(att_model *base, const char *folder)
{
    att_sentence *m = (att_sentence *)base;
    pthread_mutex_init(&m->lock, NULL);
    att_status s = att_modules_read(base->ctx, folder, &m->modules);
    s = s ? s : att_tokenizer_open(base->ctx, m->modules.transformer, &m->tokenizer);
    if (!s)
        s = base->trainable ? att_encoder_open_for_training(
                                  base->ctx, m->modules.transformer,
                                  ATT_OPTIONS(att_trainable_options, .freeze = base->freeze.list,
                                              .n_freeze = base->freeze.n, .weights = base->options.weights),
                                  &m->encoder)
                            : att_encoder_open(base->ctx, m->modules.transformer, &base->options, &m->encoder);
    m->info.size = sizeof m->info;
    s = s ? s : att_encoder_describe(m->encoder, &m->info);
    return s ? s : check_parts(m, folder);
}

size_t att_sentence_idle_bytes(const att_sentence *m)
{
    att_sentence *pool = (att_sentence *)m; /* the pool of tapes is mutable, the model is not */
    size_t bytes = 0;
    if (!m)
        return 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n_idle; i++)
        bytes += att_tape_bytes(pool->idle[i]);
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

void att_sentence_trim(const att_sentence *m)
{
    att_sentence *pool = (att_sentence *)m;
    if (!m)
        return;
    pthread_mutex_lock(&pool->lock);
    while (pool->n_idle > 0)
        att_tape_free(pool->idle[--pool->n_idle]);
    pthread_mutex_unlock(&pool->lock);
}

static void free_sentence(att_model *base)
{
    att_sentence *m = (att_sentence *)base;
    att_sentence_trim(m);
    pthread_mutex_destroy(&m->lock);
    att_encoder_free(m->encoder);
    att_tokenizer_free(m->tokenizer);
    att_modules_free(base->ctx, &m->modules);
}

static const att_model_kind kind = {.bytes = sizeof(att_sentence), .load = load, .free = free_sentence};

att_status att_sentence_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_sentence **out)
{
    return att_model_open(ctx, __func__, &kind, folder, options, out);
}

att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                          att_sentence **out)
{
    return att_model_open_for_training(ctx, __func__, &kind, folder, options, out);
}

void att_sentence_free(att_sentence *m) { att_model_free(m); }

att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_sentence_info all = {.dim = m->info.hidden,
                                   .max_tokens = m->modules.max_tokens,
                                   .layers = m->info.layers,
                                   .heads = m->info.heads,
                                   .pooling = m->modules.pooling,
                                   .normalized = m->modules.normalized,
                                   .plain = m->modules.plain,
                                   .similarity = m->modules.similarity};
    return att_info_write(info, &all, sizeof all, "att_sentence_info");
}

att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->encoder->model : NULL, weights);
}

const att_tokenizer *att_sentence_tokenizer(const att_sentence *m) { return m ? m->tokenizer : NULL; }

const att_encoder *att_sentence_encoder(const att_sentence *m) { return m ? m->encoder : NULL; }

const att_nn_params *att_sentence_params(const att_sentence *m) { return att_encoder_params(att_sentence_encoder(m)); }

/* ---- tapes */

att_status att_sentence_acquire_tape(const att_sentence *m, att_tape **out)
{
    att_sentence *pool = (att_sentence *)m; /* the pool of tapes is mutable, the model is not */
    *out = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->n_idle > 0)
        *out = pool->idle[--pool->n_idle];
    pthread_mutex_unlock(&pool->lock);
    return *out ? ATT_OK : att_tape_new(m->model.ctx, NULL, out);
}

void att_sentence_release_tape(const att_sentence *m, att_tape *t)
{
    att_sentence *pool = (att_sentence *)m;
    att_tape_reset(t);
    pthread_mutex_lock(&pool->lock);
    const bool keep = pool->n_idle < ATT_MAX_IDLE_TAPES;
    if (keep)
        pool->idle[pool->n_idle++] = t;
    pthread_mutex_unlock(&pool->lock);
    if (!keep)
        att_tape_free(t);
}

/* ---- from hidden states to a vector */

att_var *att_sentence_pool(att_tape *t, const att_sentence *m, att_var *x, const int64_t *offsets, int64_t n)
{
    x = att_pool(t, x, offsets, n, m->modules.pooling);
    return m->modules.normalized ? att_normalize(t, x, 1e-12f) : x;
}
