/* config.json of the class BertModel, read strictly. */
#ifndef ATT_STACK_BERT_CONFIG_H
#define ATT_STACK_BERT_CONFIG_H

#include "attend_util.h"
#include "attend_learn.h"
#include "io/settings.h"

typedef struct att_bert_config {
    int64_t vocabulary, hidden, layers, heads, intermediate, max_positions, types;
    att_activation activation;
    float eps;
    float hidden_dropout, attention_dropout; /* in training */
} att_bert_config;

/* From settings in the format of config.json. Errors name the file, the setting and its value. */
void att_bert_config_read(att_settings *s, att_bert_config *c);

#endif
