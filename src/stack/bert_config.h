/* Functions that BERT and similar models share: they read settings of config.json strictly, and make layers. */
#ifndef ATT_STACK_BERT_CONFIG_H
#define ATT_STACK_BERT_CONFIG_H

#include "io/settings.h"
#include "stack/encoder.h"

typedef struct att_bert_config {
    int64_t vocabulary, hidden, layers, heads, intermediate;
    int64_t positions; /* rows of the table of positions */
    int64_t types;     /* 0: none */
    att_activation activation;
    float eps;
    float hidden_dropout, attention_dropout; /* in training */
} att_bert_config;

/* The names of settings in a class of config; NULL: it has no such setting. */
typedef struct att_bert_keys {
    const char *hidden, *layers, *heads, *intermediate, *types, *eps, *hidden_dropout, *attention_dropout, *activation;
} att_bert_keys;
/* The names in BertConfig. */
extern const att_bert_keys att_bert_keys_of_class;

/* Reads settings in the format of config.json. Errors name the file, the setting and its value. */
void att_bert_config_read(att_settings *s, const att_bert_keys *keys, att_bert_config *c);
/* Checks that there are positions from `first` on. */
void att_bert_check_positions(att_settings *s, const att_bert_config *c, int64_t first);
/* Sets m->info, except type and first_position, which are already set, and makes the layers, x =
 * LayerNorm(x + Attention(x)), x = LayerNorm(x + f(x W_inner + b) W_outer + b). Called during build. attention or NULL:
 * scaled dot products. */
void att_bert_layers(att_encoder *m, const att_bert_config *c, const att_nn_attention_config *attention);

#endif
