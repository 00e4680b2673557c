/* The classifiers that `transformers` puts on text encoders: output(f(dense(vector of the first token))). ModernBERT's
 * may take the mean of all tokens instead, and has a norm: output(LayerNorm(f(dense(x)))). A table has what is special
 * about each. */
#ifndef ATT_CLASSIFIER_HEAD_H
#define ATT_CLASSIFIER_HEAD_H

#include "model/model.h"

typedef struct att_text_head_kind att_text_head_kind;

typedef struct att_text_head {
    const att_text_head_kind *kind;
    int64_t labels;
    float dropout; /* in training */
    att_pooling pooling;
    att_activation activation; /* of `dense` */
    bool no_bias;              /* of `dense` */
    bool has_norm;
    att_nn_norm_kind norm_kind;
    float eps; /* of the norm */
    const att_nn_linear *dense, *output;
    const att_nn_norm *norm; /* or NULL */
} att_text_head;

/* What a call of the head has besides hidden states x [offsets[n], hidden] of n texts */
typedef struct att_text_head_call {
    const int64_t *offsets; /* [n + 1] */
    int64_t n;
    bool dropout;
    /* With dropout */
    uint64_t seed;
    const uint32_t *sequence_ids; /* [n] */
    const int64_t *rows;          /* [n + 1]: 0, 1, ..., n, the offsets of a row for each text */
} att_text_head_call;

/* The head of a "model_type" of config.json; NULL: none is known. */
const att_text_head_kind *att_text_head_find(const char *type);
/* "BertForSequenceClassification" */
const char *att_text_head_class(const att_text_head_kind *kind);
/* Names of its parameters in files */
const att_checkpoint_name *att_text_head_names(const att_text_head_kind *kind);

/* Reads what config.json has of a head. */
void att_text_head_read(att_settings *s, att_text_head *head);
/* During build: makes its parameters, "classifier.dense", "classifier.output", and maybe
 * "classifier.norm". */
att_status att_text_head_build(att_nn_params *p, int64_t hidden, att_text_head *head);
/* -> [n, labels] */
att_var *att_text_head_apply(att_tape *t, const att_text_head *head, att_var *x, const att_text_head_call *call);

#endif
