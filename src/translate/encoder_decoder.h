/* Encoder-decoder models, whatever the architecture. A further architecture is a struct of functions and a row in
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
    /* config.json of a model, and of a new one by default, for a joint vocabulary whose last token is <pad>; NULL: out
     * of memory. */
    json_t *(*settings)(const att_encoder_decoder *m);
    json_t *(*defaults)(int64_t vocabulary);
    /* Teacher forcing: inputs [target_offsets[n]] of the decoder -> the input of the output layer, a row for each. */
    att_var *(*decode)(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *p, const int32_t *inputs,
                       const att_nn_dropout *of_source, const att_nn_dropout *of_target);
    /* The output layer: rows of its input -> logits */
    att_var *(*output)(att_tape *t, const att_encoder_decoder *m, att_var *x);
    /* Encodes sources, concatenated: ids [offsets[n]], offsets [n + 1] -> the state of decoding, a row for each source;
     * after an error *out is {0}. */
    att_status (*start)(const att_encoder_decoder *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                        att_generator *out);
    /* Adds the parts of a pass for a trace, whose info has the numbers of tokens. */
    void (*trace)(const att_encoder_decoder *m, att_trace_pass *pass);
    /* Name and layout of a parameter in a file, if different from ours; else NULL. */
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

/* Logits of one token after one: for att_model_kind.prepare */
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

/* Computes the input of the output layer for each target token given the tokens before it. All fields of pairs and
 * options are given. */
att_var *att_encoder_decoder_states(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                    const att_loss_options *options);

/* Opens a model for inference, by "model_type" of FOLDER/config.json. */
att_status att_encoder_decoder_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_encoder_decoder **out);
/* Makes a new model for training, randomly initialized, for a joint vocabulary as above: by default a Transformer of
 * 3 + 3 layers of 256, modified by `settings` (JSON, as in config.json) and by those in the file `path`; each may be
 * NULL. Errors name the file and the setting: unknown, in conflict with the settings or the vocabulary, or an invalid
 * value. vocabulary 0 and out NULL: only checks what does not depend on the vocabulary. */
att_status att_encoder_decoder_new(att_ctx *ctx, const char *settings, const char *path, int64_t vocabulary,
                                   uint64_t seed, att_encoder_decoder **out);
/* Writes FOLDER/config.json and FOLDER/generation_config.json; creates the folder if necessary. */
att_status att_encoder_decoder_write_settings(const att_encoder_decoder *m, const char *folder, int64_t beam);

#endif
