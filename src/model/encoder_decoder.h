/* Inside translation: a model that reads one text and writes another, whichever architecture it has. A further
 * architecture is a struct of functions and its row in encoder_decoder.c. Public: att_encoder_decoder. */
#ifndef ATT_MODEL_ENCODER_DECODER_H
#define ATT_MODEL_ENCODER_DECODER_H

#include "model/model.h"
#include "model/beam_search.h"

typedef struct att_architecture {
    att_model_kind kind;    /* first */
    const char *name;       /* that of att_encoder_decoder_info */
    const char *model_type; /* in config.json */
    /* What config.json has of a model, and of a new one by default, for one vocabulary of both languages, the last of
     * which is <pad>; NULL: memory ran out. */
    json_t *(*settings)(const att_encoder_decoder *m);
    json_t *(*defaults)(int64_t vocabulary);
    att_var *(*logits)(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *p,
                       const att_loss_options *l);
    /* The sources, all one after the other: ids [offsets[n]], offsets [n + 1] -> translations that grow, a row each;
     * after an error *out is {0}. */
    att_status (*start)(const att_encoder_decoder *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                        att_generator *out);
    /* The scope in which a layer of the decoder looks at the source. */
    att_nn_name (*scope_of_attention)(int64_t layer);
    /* What a file calls a parameter and how it has it, where that is not our way; else NULL. */
    att_parameter_naming in_file;
} att_architecture;

/* The first member of each model. */
struct att_encoder_decoder {
    att_model model;
    att_encoder_decoder_info info;
};
static inline const att_architecture *att_architecture_of(const att_encoder_decoder *m)
{
    return (const att_architecture *)m->model.kind;
}

/* By "model_type" of FOLDER/config.json. */
att_status att_encoder_decoder_open(att_ctx *ctx, const char *folder, bool trainable, att_encoder_decoder **out);
/* A new one to train, with random weights, for a vocabulary as above: by default a Transformer of 3 + 3 layers of
 * 256, but for what `settings` says, as in a config.json, and for what the file `path` says alike; each may be NULL.
 * Errors name the file and the setting: it is not known; it contradicts the settings or the vocabulary; its value.
 * vocabulary 0 and out NULL: makes none, but says what is wrong whatever the vocabulary will be. */
att_status att_encoder_decoder_new(att_ctx *ctx, const char *settings, const char *path, int64_t vocabulary,
                                   uint64_t seed, att_encoder_decoder **out);
/* FOLDER/config.json and FOLDER/generation_config.json; the folder is made if it is not there. */
att_status att_encoder_decoder_write_settings(const att_encoder_decoder *m, const char *folder, int64_t beam);

#endif
