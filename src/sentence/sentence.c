/* Sentence models: a backbone, and modules that make a vector from its results for a text (Reimers, Gurevych 2019). */
#include "sentence/sentence.h"
#include "stack/encoder.h"
#include "util/util.h"

#include <string.h>

/* ---- open and close */

/* Checks that the tokenizer lower-cases if a setting states it; otherwise the setting is not supported. */
static att_status check_lower_case(const att_sentence *m)
{
    const att_tokenizer *tokenizer = m->backbone.tokenizer;
    const att_tokenize_options *opt = ATT_OPTIONS(att_tokenize_options, .no_special = true);
    att_tokens upper = {0}, lower = {0};
    att_status s = att_tokenize(tokenizer, "A", 1, opt, &upper);
    if (!s)
        s = att_tokenize(tokenizer, "a", 1, opt, &lower);
    if (!s &&
        (upper.count != lower.count || memcmp(upper.ids, lower.ids, (size_t)upper.count * sizeof *upper.ids) != 0))
        s = att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                     "%s/%s: \"do_lower_case\" is true, but the tokenizer does not lower", m->modules.backbone,
                     m->modules.settings.file);
    att_tokens_free(m->model.ctx, &upper);
    att_tokens_free(m->model.ctx, &lower);
    return s;
}

/* Checks the parts against each other. */
static att_status check_parts(att_sentence *m)
{
    att_ctx *ctx = m->model.ctx;
    const att_backbone_settings *settings = &m->modules.settings;
    const att_backbone_info *b = &m->backbone.info;
    const int64_t tokens = att_tokenizer_size(m->backbone.tokenizer), truncate_dim = m->prompts.truncate_dim;
    if (tokens > b->vocabulary) /* it may have fewer: then some rows of the embedding belong to no token */
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: the tokenizer has %lld tokens but vocab_size is %lld",
                        m->modules.backbone, (long long)tokens, (long long)b->vocabulary);
    m->dim = truncate_dim ? att_min(truncate_dim, m->modules.dim) : m->modules.dim;
    if (m->modules.n == 0)
        m->modules.normalized = b->normalized;
    m->max_tokens = settings->max_tokens ? settings->max_tokens : b->max_tokens;
    if (b->max_tokens > 0)
        m->max_tokens = att_min(m->max_tokens, b->max_tokens);
    m->max_tokens = m->max_tokens ? m->max_tokens : INT32_MAX;
    return settings->lower_case ? check_lower_case(m) : ATT_OK;
}

static att_status load(att_model *base, const char *folder)
{
    att_sentence *m = (att_sentence *)base;
    att_tape_pool_begin(&m->tapes, base);
    att_status s = att_modules_read(base->ctx, folder, &m->modules);
    if (s)
        return s;
    s = att_prompts_read(base->ctx, m->modules.plain ? NULL : folder, &m->prompts);
    m->extension = (att_model_extension){.build = att_modules_build, .user = &m->modules, .names = ATT_MODULES_NAMES};
    m->backbone.kind = m->modules.kind;
    s = s ? s
          : m->backbone.kind->open(&m->backbone, m->modules.backbone,
                                   &(const att_backbone_opening){.outer = base, .extension = &m->extension});
    return s ? s : check_parts(m);
}

att_tape_pool *att_sentence_tapes(const att_sentence *m) { return &((att_sentence *)m)->tapes; }

size_t att_sentence_idle_bytes(const att_sentence *m) { return m ? att_tape_pool_bytes(att_sentence_tapes(m)) : 0; }

void att_sentence_trim(const att_sentence *m)
{
    if (m)
        att_tape_pool_trim(att_sentence_tapes(m));
}

static void free_sentence(att_model *base)
{
    att_sentence *m = (att_sentence *)base;
    att_tape_pool_end(&m->tapes);
    att_backbone_free(&m->backbone);
    att_modules_free(base->ctx, &m->modules);
    att_prompts_free(base->ctx, &m->prompts);
}

/* Prepares the model: applies it to one text of one token. */
static att_var *prepare(att_tape *t, const void *model)
{
    const att_texts texts = {.ids = (const int32_t[]){0}, .offsets = (const int64_t[]){0, 1}, .n = 1};
    return att_sentence_apply(t, model, &texts);
}

static const att_model_kind kind = {
    .bytes = sizeof(att_sentence), .load = load, .prepare = prepare, .free = free_sentence};

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

/* ---- what it has */

static const att_module *pooling_of(const att_sentence *m)
{
    const att_module *pooling = NULL;
    for (int i = 0; i < m->modules.n; i++)
        pooling = m->modules.module[i].poolings > 0 ? &m->modules.module[i] : pooling;
    return pooling;
}

att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_prompts *p = &m->prompts;
    const att_module *pooling = pooling_of(m);
    att_sentence_info all = {.dim = m->dim,
                             .max_tokens = m->max_tokens,
                             .layers = m->backbone.info.layers,
                             .heads = m->backbone.info.heads,
                             .normalized = m->modules.normalized,
                             .plain = m->modules.plain && pooling,
                             .similarity = p->similarity,
                             .full_dim = m->modules.dim,
                             .token_dim = m->modules.token_dim,
                             .prompts = p->n,
                             .default_prompt = p->chosen >= 0 ? p->prompt[p->chosen].name : NULL};
    if (pooling) {
        all.poolings = pooling->poolings;
        memcpy(all.pooling, pooling->pooling, sizeof all.pooling);
    }
    return att_info_write(info, &all, sizeof all, "att_sentence_info");
}

att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? m->backbone.model : NULL, weights);
}

const att_nn_params *att_sentence_params(const att_sentence *m)
{
    return att_model_params(m ? m->backbone.model : NULL);
}

const att_tokenizer *att_sentence_tokenizer(const att_sentence *m) { return m ? m->backbone.tokenizer : NULL; }

const att_encoder *att_sentence_encoder(const att_sentence *m)
{
    return m && m->backbone.kind == &att_backbone_encoder ? (const att_encoder *)m->backbone.model : NULL;
}

const char *att_sentence_prompt_at(const att_sentence *m, int64_t i, const char **name)
{
    const att_prompt *p = m && i >= 0 && i < m->prompts.n ? &m->prompts.prompt[i] : NULL;
    if (name)
        *name = p ? p->name : NULL;
    return p ? p->text : NULL;
}

att_status att_sentence_prompt(const att_sentence *m, const char *name, const char **text)
{
    if (text)
        *text = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"text", text})))
        return ATT_ERR_ARGUMENT;
    const char *found;
    const att_status s = att_prompts_find(m->model.ctx, &m->prompts, "att_sentence_prompt: name", name, &found);
    *text = s ? NULL : found;
    return s;
}

/* ---- from tokens to a vector */

att_var *att_sentence_apply(att_tape *t, const att_sentence *m, const att_texts *texts)
{
    const att_backbone *b = &m->backbone;
    att_var *x = (b->kind->vectors ? b->kind->vectors : b->kind->tokens)(t, b, texts);
    return att_modules_apply(t, &m->modules, texts, b->kind->vectors ? NULL : x, b->kind->vectors ? x : NULL);
}

att_var *att_sentence_truncate(att_tape *t, const att_sentence *m, att_var *x, int64_t dims)
{
    if (dims == m->modules.dim)
        return x;
    x = att_slice(t, x, 1, 0, dims);
    return m->modules.normalized ? att_normalize(t, x, 1e-12f) : x;
}
