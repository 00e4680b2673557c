/* Encoder-decoder models of any architecture. To add an architecture, write a struct of functions and a row in
 * encoder_decoder.c. Public: att_encoder_decoder_*. */
#ifndef ATT_TRANSLATE_ENCODER_DECODER_H
#define ATT_TRANSLATE_ENCODER_DECODER_H

#include "model/model.h"
#include "decoder/beam_search.h"
#include "model/trace.h"
#include "attend_translate.h"

typedef struct att_architecture {
    att_model_kind kind; /* first */
    const char *name;    /* see att_encoder_decoder_info */
    /* Return config.json of a model, and the default one of a new model for a joint vocabulary whose last token is
     * <pad>; NULL: out of memory. */
    json_t *(*settings)(const att_encoder_decoder *m);
    json_t *(*defaults)(int64_t vocabulary);
    /* Applies the model to known targets (teacher forcing): inputs [target_offsets[n]] of the decoder. Returns the
     * input of the output layer, a row for each. */
    att_var *(*decode)(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *p, const int32_t *inputs,
                       const att_nn_dropout *of_source, const att_nn_dropout *of_target);
    /* Applies the output layer: returns the logits of rows of its input. */
    att_var *(*output)(att_tape *t, const att_encoder_decoder *m, att_var *x);
    /* Encodes sources, which are concatenated: ids [offsets[n]], offsets [n + 1]. *out is the state of decoding, with a
     * row for each source; after an error it is {0}. */
    att_status (*start)(const att_encoder_decoder *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                        att_generator *out);
    /* Adds the parts of a pass for a trace, whose info has the numbers of tokens. */
    void (*trace)(const att_encoder_decoder *m, att_trace_pass *pass);
    /* The name and layout of a parameter in a file, if they differ from those in memory; otherwise NULL. */
    att_parameter_naming in_file;
} att_architecture;

extern const att_model_kind *const att_encoder_decoder_kinds[]; /* of all architectures, up to NULL */

/* The first member of each model struct. */
struct att_encoder_decoder {
    att_model model;
    att_encoder_decoder_info info;
};
static inline const att_architecture *att_architecture_of(const att_encoder_decoder *m)
{
    return (const att_architecture *)m->model.kind;
}

/* Prepares a model (att_model_kind.prepare): computes the logits of one source token and one target token. */
static inline att_var *att_encoder_decoder_prepare(att_tape *t, const void *model)
{
    static const int32_t id = 0;
    static const int64_t offsets[] = {0, 1};
    const att_encoder_decoder *m = model;
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
    const att_nn_dropout none = {.size = sizeof none, .at = &at};
    const att_sequence_pairs p = {
        .n = 1, .source = &id, .source_offsets = offsets, .target = &id, .target_offsets = offsets};
    const att_architecture *a = att_architecture_of(m);
    return a->output(t, m, a->decode(t, m, &p, &id, &none, &none));
}

/* Computes the input of the output layer for each target token from the tokens before it. All members of pairs and
 * options must be set. */
att_var *att_encoder_decoder_states(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                    const att_loss_options *options);

/* Opens a model for inference, by "model_type" of FOLDER/config.json. */
att_status att_encoder_decoder_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_encoder_decoder **out);
/* Makes a new model for training, randomly initialized, for a joint vocabulary whose last token is <pad>. The default
 * is a Transformer of 3 + 3 layers of 256; `settings` (JSON, as in config.json) and the file `path` change it, and each
 * may be NULL. Errors: a setting is unknown, in conflict with other settings or the vocabulary, or has an invalid
 * value; they name the file and the setting. vocabulary 0 and out NULL: only checks the settings that do not depend on
 * the vocabulary. */
att_status att_encoder_decoder_new(att_ctx *ctx, const char *settings, const char *path, int64_t vocabulary,
                                   uint64_t seed, att_encoder_decoder **out);
/* Writes FOLDER/config.json and FOLDER/generation_config.json; creates the folder if necessary. */
att_status att_encoder_decoder_write_settings(const att_encoder_decoder *m, const char *folder, int64_t beam);

#endif
