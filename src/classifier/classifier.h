/* Text classifiers, internal. Public: att_text_classifier_*. */
#ifndef ATT_CLASSIFIER_CLASSIFIER_H
#define ATT_CLASSIFIER_CLASSIFIER_H

#include "classifier/classifier_config.h"
#include "model/tape_pool.h"
#include "probe/probe.h"
#include "sentence/sentence.h"
#include "stack/encoder.h"

struct att_text_classifier {
    att_model model; /* parameters are those of the encoder, the head's among them */
    att_text_classifier_config config;
    char *folder;
    att_tokenizer *tokenizer;
    att_encoder *encoder;
    att_encoder_info info;
    att_tape_pool tapes;
    /* A folder with a probe has these instead of a tokenizer and an encoder. */
    att_sentence *sentence;
    att_probe *probe;
};

/* Opens a sentence model with a probe, as `load` of the kind. (probe_classifier.c) */
att_status att_probe_classifier_load(att_text_classifier *m, const char *folder);
/* The options and results of att_text_classify, whose arguments have been checked. (probe_classifier.c) */
att_status att_probe_classify(const att_text_classifier *m, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_text_classify_options *options, float *out);

/* The tokens of texts or pairs, for the encoder and the head. Arrays must stay until the tape's reset. */
typedef struct att_text_classifier_input {
    const int32_t *ids, *type_ids; /* [offsets[n]]; type_ids or NULL: all 0 */
    att_text_head_call head;       /* with the offsets, and dropout */
} att_text_classifier_input;
/* Computes logits -> [n, labels]. */
att_var *att_text_classifier_logits(att_tape *t, const att_text_classifier *m, const att_text_classifier_input *in);

/* Returns whether the model reads types of tokens. Otherwise all have type 0. */
static inline bool att_text_classifier_has_types(const att_text_classifier *m)
{
    return m->info.types > 1 && !m->config.no_types;
}

/* Applies an activation to logits [n, labels]. */
att_var *att_text_activate(att_tape *t, att_var *logits, att_text_activation activation);

#endif
