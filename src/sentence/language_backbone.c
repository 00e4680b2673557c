/* Causal language models as backbones, as Qwen3-Embedding: each token attends to those before it, and the vector of the
 * last one stands for the text. */
#include "sentence/backbone.h"
#include "stack/language_model.h"

#include <string.h>

static const att_language_model *language_of(const att_backbone *b) { return (const att_language_model *)b->model; }

static att_status open_folder(att_backbone *b, const char *folder, const att_backbone_opening *how)
{
    att_language_model *m = NULL;
    att_status s = att_tokenizer_open(how->outer->ctx, folder, &b->tokenizer);
    s = s ? s : att_language_base_open_inside(how->outer, folder, how->extension, &m);
    b->model = m ? &m->model : NULL;
    if (!s)
        b->info = (att_backbone_info){.vocabulary = m->info.vocabulary,
                                      .max_tokens = m->info.max_positions,
                                      .layers = m->info.layers,
                                      .heads = m->info.heads};
    return s;
}

static int64_t features(const att_model *m) { return ((const att_language_model *)m)->info.hidden; }

/* Computes hidden states without dropout: published models state none for training. */
static att_var *tokens(att_tape *t, const att_backbone *b, const att_texts *x)
{
    return att_language_base_apply(t, language_of(b), x->ids, x->offsets, x->n);
}

/* Returns the pooling that sentence-transformers takes by the class that the folder states. */
static att_pooling plain(const att_settings *config)
{
    static const char causal[] = "ForCausalLM";
    const char *class = json_string_value(json_array_get(att_settings_get(config, "architectures"), 0));
    const size_t n = class ? strlen(class) : 0;
    return n >= sizeof causal - 1 && !strcmp(class + n - (sizeof causal - 1), causal) ? ATT_POOLING_LAST
                                                                                      : ATT_POOLING_MEAN;
}

static att_trace_part trace(const att_backbone *b, int64_t n) { return att_language_trace_part(language_of(b), n); }

static att_var *finish(att_tape *t, const att_backbone *b, att_var *x)
{
    return att_nn_norm_apply(t, language_of(b)->norm, x);
}

static att_status write_weights(const att_backbone *b, const char *from, const char *folder, att_dtype dtype)
{
    (void)from;
    return att_language_base_write(language_of(b), folder, dtype);
}

const att_backbone_kind att_backbone_language = {.module = "Transformer",
                                                 .types = att_language_base_kinds,
                                                 .features = features,
                                                 .source = "config.json",
                                                 .configure = att_transformer_settings_read,
                                                 .open = open_folder,
                                                 .tokens = tokens,
                                                 .plain = plain,
                                                 .trace = trace,
                                                 .finish = finish,
                                                 .files = att_transformer_files,
                                                 .write = write_weights};
