#include "classifier/head.h"

#include <string.h>

struct att_text_head_kind {
    const char *type, *class;
    const att_checkpoint_name *names;
    att_activation activation;
    const char *dropout[2]; /* settings: the first one that has a value counts */
    float default_dropout;
    bool drops_twice; /* dropout before `dense`, too */
};

#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name bert_names[] = {
    LINEAR("classifier.dense", "pooler.dense"), LINEAR("classifier.output", "classifier"), {0}};
static const att_checkpoint_name roberta_names[] = {
    LINEAR("classifier.dense", "classifier.dense"), LINEAR("classifier.output", "classifier.out_proj"), {0}};
static const att_checkpoint_name distilbert_names[] = {
    LINEAR("classifier.dense", "pre_classifier"), LINEAR("classifier.output", "classifier"), {0}};

#define ROBERTA(type, name)                                                                                            \
    {                                                                                                                  \
        type, name "ForSequenceClassification", roberta_names, ATT_ACTIVATION_TANH,                                    \
            {"classifier_dropout", "hidden_dropout_prob"}, 0.1f, true                                                  \
    }
static const att_text_head_kind kinds[] = {
    {"bert",
     "BertForSequenceClassification",
     bert_names,
     ATT_ACTIVATION_TANH,
     {"classifier_dropout", "hidden_dropout_prob"},
     0.1f,
     false},
    ROBERTA("roberta", "Roberta"),
    ROBERTA("xlm-roberta", "XLMRoberta"),
    ROBERTA("camembert", "Camembert"),
    {"distilbert",
     "DistilBertForSequenceClassification",
     distilbert_names,
     ATT_ACTIVATION_RELU,
     {"seq_classif_dropout", "seq_classif_dropout"},
     0.2f,
     false},
    {"mpnet",
     "MPNetForSequenceClassification",
     roberta_names,
     ATT_ACTIVATION_TANH,
     {"hidden_dropout_prob", "hidden_dropout_prob"},
     0.1f,
     true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const att_text_head_kind *att_text_head_find(const char *type)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].type, type))
            return &kinds[i];
    return NULL;
}

const char *att_text_head_class(const att_text_head_kind *kind) { return kind->class; }

const att_checkpoint_name *att_text_head_names(const att_text_head_kind *kind) { return kind->names; }

void att_text_head_read(att_settings *s, att_text_head *head)
{
    const att_text_head_kind *k = head->kind;
    const char *key = k->dropout[!att_settings_has(s, k->dropout[0])];
    head->dropout = (float)att_settings_number_or(s, key, 0, 0.99, (double)k->default_dropout);
}

att_status att_text_head_build(att_nn_params *p, int64_t hidden, att_text_head *head)
{
    head->dense = att_nn_linear_new(p, "classifier.dense", hidden, hidden, NULL);
    head->output = att_nn_linear_new(p, "classifier.output", hidden, head->labels, NULL);
    return att_nn_params_status(p);
}

att_var *att_text_head_apply(att_tape *t, const att_text_head *head, att_var *x, const att_text_head_call *call)
{
    const att_text_head_kind *k = head->kind;
    const att_positions rows = {.size = sizeof rows, .offsets = call->rows, .n = call->n};
    const att_nn_dropout all = {sizeof all, head->dropout, call->seed, &rows, call->sequence_ids};
    const att_nn_dropout *dropout = call->dropout ? &all : NULL;
    x = att_pool(t, x, call->offsets, call->n, ATT_POOLING_CLS, 0);
    if (k->drops_twice)
        x = att_nn_dropout_apply(t, dropout, att_nn_dropout_id("classifier", "dense"), x, NULL);
    x = att_nn_linear_apply(t, head->dense, x, k->activation, NULL);
    x = att_nn_dropout_apply(t, dropout, att_nn_dropout_id("classifier", "output"), x, NULL);
    return att_nn_linear_apply(t, head->output, x, ATT_ACTIVATION_IDENTITY, NULL);
}
