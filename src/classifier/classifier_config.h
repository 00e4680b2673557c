/* The settings of a folder of a text classifier, that of `transformers` or of sentence-transformers' CrossEncoder. */
#ifndef ATT_CLASSIFIER_CLASSIFIER_CONFIG_H
#define ATT_CLASSIFIER_CLASSIFIER_CONFIG_H

#include "attend_text_classifier.h"
#include "classifier/head.h"

typedef struct att_text_classifier_config {
    bool modules;       /* the folder has the modules.json of a CrossEncoder */
    int64_t max_tokens; /* 0: no limit given */
    bool no_types;      /* the tokenizer's "model_input_names" leave out token types */
    att_text_head head; /* what config.json has of it */
    char **name;        /* [head.labels] */
    bool relabeled;     /* these are others than the folder's */
    char class[128];    /* the first of "architectures"; "": none */
    att_text_activation activation, probability;
} att_text_classifier_config;

/* Returns whether the class is one of sequence classification. */
bool att_is_sequence_classification(const char *class);
/* Sets *is: whether a folder is that of a text classifier, of such a class or of CrossEncoder. config: its config.json.
 * Error: out of memory. */
att_status att_is_text_classifier(att_ctx *ctx, const char *folder, const att_settings *config, bool *is);

/* Reads the settings. Errors name the file, the setting and its value. After an error there is nothing to free. */
att_status att_text_classifier_config_read(att_ctx *ctx, const char *folder, att_text_classifier_config *out);
void att_text_classifier_config_free(att_ctx *ctx, att_text_classifier_config *c);

#endif
