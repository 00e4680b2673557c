/* Classifiers of texts and of pairs of texts: a text encoder and a head on the vector of its first token. Those with a
 * probe are a sentence model instead (probe_classifier.c). */
#include "classifier/classifier.h"
#include "model/class_names.h"
#include "util/util.h"

#include <string.h>

/* ---- the encoder with its head */

/* The arguments of opening the encoder: with the head of the settings, or for other labels. */
typedef struct opening {
    att_text_head *head;
    const char *class, *folder;
    const att_text_labels *labels; /* or NULL: the folder's */
    bool new_output;               /* the last matrix is new */
} opening;

/* Returns whether a parameter of a model that is made for labels is new: the last matrix, and what the folder lacks. */
static bool is_fresh(const att_model *m, const char *name, const void *user)
{
    const opening *o = user;
    const char *output = "classifier.output";
    if (!o->labels || strncmp(name, "classifier.", strlen("classifier.")) != 0)
        return false;
    return (o->new_output && !strncmp(name, output, strlen(output))) || !att_checkpoint_has(m->checkpoint, name);
}

static att_status build_head(att_model *m, const void *user)
{
    const opening *o = user;
    const bool plain = !att_model_has(m, "classifier.output.weight") ||
                       (!o->labels && *o->class && !att_is_sequence_classification(o->class));
    if (plain)
        return att_fail(m->ctx, ATT_ERR_UNSUPPORTED,
                        "%s: is an encoder without a classifier of texts%s%s: att_sentence_open makes vectors with it, "
                        "and att_text_classifier_new trains a classifier on it",
                        o->folder, *o->class ? ", of the class " : "", o->class);
    return att_text_head_build(m->params, ((const att_encoder *)m)->info.hidden, o->head);
}

static att_status open_encoder(att_text_classifier *m, const char *folder, const att_model_options *options, opening *o)
{
    att_model *base = &m->model;
    const att_model_change change = {.built = build_head,
                                     .names = att_text_head_names(m->config.head.kind),
                                     .fresh = is_fresh,
                                     .init = {.size = sizeof change.init, .kind = ATT_INIT_NORMAL, .value = 0.02},
                                     .seed = o->labels ? o->labels->seed : 0,
                                     .user = o};
    const att_model_kind *kind = NULL;
    if (!base->trainable)
        return att_model_open_as_changed(base->ctx, "att_text_classifier_open", att_encoder_kinds, folder, options,
                                         &change, &m->encoder);
    const att_status s = att_model_kind_find(base->ctx, "att_text_classifier_open_for_training", folder,
                                             att_encoder_kinds, &kind, &m->encoder);
    return s ? s
             : att_model_open_changed(base->ctx, "att_text_classifier_open_for_training", kind, folder,
                                      ATT_OPTIONS(att_trainable_options, .freeze = base->freeze.list,
                                                  .n_freeze = base->freeze.n, .weights = base->options.weights),
                                      &change, &m->encoder);
}

/* ---- labels */

/* Returns whether the folder has these labels or, if they have no names, as many. A folder that states no class may
 * have a classifier. */
static bool are_own(const att_text_classifier_config *c, const att_text_labels *l)
{
    bool own = l->n == c->head.labels && (!*c->class || att_is_sequence_classification(c->class));
    for (int64_t i = 0; own && l->names && i < l->n; i++)
        own = !strcmp(l->names[i], c->name[i]);
    return own;
}

/* Replaces the labels of the settings. */
static att_status set_labels(att_ctx *ctx, att_text_classifier_config *c, const att_text_labels *l)
{
    att_settings none;
    char **name;
    att_settings_init(&none, ctx, "", NULL);
    const att_status s = l->names ? att_class_names_copy(ctx, l->names, l->n, &name)
                                  : att_class_names_read(&none, NULL, l->n, "LABEL_", &name);
    if (s)
        return s;
    att_class_names_free(ctx, c->head.labels, c->name);
    c->name = name;
    c->relabeled = true;
    c->head.labels = l->n;
    c->activation = l->n == 1 ? ATT_TEXT_ACTIVATION_SIGMOID : ATT_TEXT_ACTIVATION_IDENTITY;
    c->probability = l->n == 1 ? ATT_TEXT_ACTIVATION_SIGMOID : ATT_TEXT_ACTIVATION_SOFTMAX;
    return ATT_OK;
}

static att_status check_labels(att_ctx *ctx, const att_text_labels *l)
{
    if (l->n < 1 || l->n > 1 << 20)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_text_classifier_new: labels.n is %lld, not from 1 to %d",
                        (long long)l->n, 1 << 20);
    return l->names ? att_class_names_check(ctx, "att_text_classifier_new: labels.names", l->names, l->n) : ATT_OK;
}

/* ---- open */

static att_status check_parts(const att_text_classifier *m)
{
    const int64_t tokens = att_tokenizer_size(m->tokenizer);
    return tokens <= m->info.vocabulary /* fewer: embeddings are padded with rows of no token */
               ? ATT_OK
               : att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the tokenizer has %lld tokens but vocab_size is %lld",
                          m->folder, (long long)tokens, (long long)m->info.vocabulary);
}

static att_status load(att_model *base, const char *folder)
{
    att_text_classifier *m = (att_text_classifier *)base;
    att_text_classifier_config *c = &m->config;
    opening o = {.head = &c->head, .class = c->class, .folder = folder};
    att_tape_pool_begin(&m->tapes, base);
    if (att_probe_is_in(base->ctx, folder, ATT_PROBE_TEXTS))
        return att_probe_classifier_load(m, folder);
    m->folder = att_alloc(base->ctx, strlen(folder) + 1, 1);
    att_status s = m->folder ? ATT_OK : ATT_ERR_MEMORY;
    if (!s)
        memcpy(m->folder, folder, strlen(folder) + 1);
    s = s ? s : att_text_classifier_config_read(base->ctx, folder, c);
    o.labels = base->change ? base->change->user : NULL;
    o.new_output = o.labels && !are_own(c, o.labels);
    if (!s && o.new_output)
        s = set_labels(base->ctx, c, o.labels);
    s = s ? s : open_encoder(m, folder, &base->options, &o);
    s = s ? s : att_tokenizer_open(base->ctx, folder, &m->tokenizer);
    m->info.size = sizeof m->info;
    s = s ? s : att_encoder_describe(m->encoder, &m->info);
    if (!s)
        c->max_tokens = c->max_tokens ? att_min(c->max_tokens, m->info.max_positions) : m->info.max_positions;
    return s ? s : check_parts(m);
}

static void free_classifier(att_model *base)
{
    att_text_classifier *m = (att_text_classifier *)base;
    att_tape_pool_end(&m->tapes);
    att_probe_free(m->probe);
    att_sentence_free(m->sentence);
    att_encoder_free(m->encoder);
    att_tokenizer_free(m->tokenizer);
    att_text_classifier_config_free(base->ctx, &m->config);
    att_free(base->ctx, m->folder);
}

static att_var *prepare(att_tape *t, const void *model)
{
    const att_text_classifier_input one = {.ids = (const int32_t[]){0},
                                           .head = {.offsets = (const int64_t[]){0, 1}, .n = 1}};
    return att_text_classifier_logits(t, model, &one);
}

static const att_model_kind kind = {
    .bytes = sizeof(att_text_classifier), .load = load, .prepare = prepare, .free = free_classifier};

att_status att_text_classifier_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_text_classifier **out)
{
    return att_model_open(ctx, __func__, &kind, folder, options, out);
}

att_status att_text_classifier_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                                 att_text_classifier **out)
{
    return att_model_open_for_training(ctx, __func__, &kind, folder, options, out);
}

att_status att_text_classifier_new(att_ctx *ctx, const char *folder, const att_text_labels *labels,
                                   const att_trainable_options *options, att_text_classifier **out)
{
    att_text_labels l;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"labels", labels}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_options_read(&l, sizeof l, labels, "att_text_labels");
    s = s ? s : check_labels(ctx, &l);
    return s ? s
             : att_model_open_changed(ctx, __func__, &kind, folder, options, &(const att_model_change){.user = &l},
                                      out);
}

void att_text_classifier_free(att_text_classifier *m) { att_model_free(m); }

/* ---- describe */

att_status att_text_classifier_describe(const att_text_classifier *m, att_text_classifier_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_text_classifier_info all = {.type = m->info.type,
                                          .labels = m->config.head.labels,
                                          .max_tokens = m->config.max_tokens,
                                          .hidden = m->info.hidden,
                                          .layers = m->info.layers,
                                          .heads = m->info.heads,
                                          .activation = m->config.activation,
                                          .probability = m->config.probability};
    return att_info_write(info, &all, sizeof all, "att_text_classifier_info");
}

att_status att_text_classifier_weights(const att_text_classifier *m, att_model_weights *weights)
{
    return m && m->sentence ? att_sentence_weights(m->sentence, weights)
                            : att_model_weights_write(__func__, m ? &m->encoder->model : NULL, weights);
}

const att_tokenizer *att_text_classifier_tokenizer(const att_text_classifier *m)
{
    return m && m->sentence ? att_sentence_tokenizer(m->sentence) : m ? m->tokenizer : NULL;
}

const att_encoder *att_text_classifier_encoder(const att_text_classifier *m)
{
    return m && m->sentence ? att_sentence_encoder(m->sentence) : m ? m->encoder : NULL;
}

const att_nn_params *att_text_classifier_params(const att_text_classifier *m)
{
    return m && m->sentence ? att_sentence_params(m->sentence) : att_encoder_params(att_text_classifier_encoder(m));
}

const char *att_text_classifier_label(const att_text_classifier *m, int64_t i)
{
    return m && i >= 0 && i < m->config.head.labels ? m->config.name[i] : NULL;
}

/* The pool of tapes is mutable, the model is not. */
static att_tape_pool *pool_of(const att_text_classifier *m) { return &((att_text_classifier *)m)->tapes; }

void att_text_classifier_trim(const att_text_classifier *m)
{
    if (m && m->sentence)
        att_sentence_trim(m->sentence);
    else if (m)
        att_tape_pool_trim(pool_of(m));
}

size_t att_text_classifier_idle_bytes(const att_text_classifier *m)
{
    return m && m->sentence ? att_sentence_idle_bytes(m->sentence) : m ? att_tape_pool_bytes(pool_of(m)) : 0;
}

/* ---- apply */

att_var *att_text_classifier_logits(att_tape *t, const att_text_classifier *m, const att_text_classifier_input *in)
{
    const att_text_head_call *call = &in->head;
    const att_encoder_options o = {.size = sizeof o,
                                   .type_ids = in->type_ids,
                                   .dropout = call->dropout,
                                   .seed = call->seed,
                                   .sequence_ids = call->sequence_ids};
    att_var *x = att_encoder_apply(t, m->encoder, in->ids, call->offsets, call->n, &o);
    return att_text_head_apply(t, &m->config.head, x, call);
}

att_var *att_text_activate(att_tape *t, att_var *logits, att_text_activation activation)
{
    switch (activation) {
    case ATT_TEXT_ACTIVATION_SIGMOID:
        return att_activate(t, logits, ATT_ACTIVATION_SIGMOID);
    case ATT_TEXT_ACTIVATION_SOFTMAX:
        return att_softmax(t, logits);
    default:
        return logits;
    }
}
