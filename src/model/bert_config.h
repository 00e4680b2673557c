/* config.json of the class BertModel, read strictly. */
#ifndef ATT_MODEL_BERT_CONFIG_H
#define ATT_MODEL_BERT_CONFIG_H

#include "attend_model.h"

typedef struct att_bert_config {
    int64_t vocabulary, hidden, layers, heads, intermediate, max_positions, types;
    att_activation activation;
    float eps;
    float hidden_dropout, attention_dropout; /* while it learns */
} att_bert_config;

/* FOLDER/config.json. Errors name the file, the setting and its value. */
att_status att_bert_config_read(att_ctx *ctx, const char *folder, att_bert_config *out);

#endif
