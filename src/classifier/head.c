#include "classifier/head.h"
#include "model/activation.h"

#include <string.h>

struct att_text_head_kind {
    const char *type, *class;
    const att_checkpoint_name *names;
    att_activation activation;
    const char *dropout[2]; /* settings: the first one that has a value counts; the second or NULL */
    float default_dropout;
    bool drops_twice; /* dropout before `dense`, too */
    /* Reads pooling, activation and norm; or NULL: the first token, the activation above, no norm. */
    void (*read)(att_settings *s, att_text_head *head);
};

#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name bert_names[] = {
    LINEAR("classifier.dense", "pooler.dense"), LINEAR("classifier.output", "classifier"), {0}};
static const att_checkpoint_name roberta_names[] = {
    LINEAR("classifier.dense", "classifier.dense"), LINEAR("classifier.output", "classifier.out_proj"), {0}};
static const att_checkpoint_name distilbert_names[] = {
    LINEAR("classifier.dense", "pre_classifier"), LINEAR("classifier.output", "classifier"), {0}};
static const att_checkpoint_name modernbert_names[] = {LINEAR("classifier.dense", "head.dense"),
                                                       LINEAR("classifier.norm", "head.norm"),
                                                       LINEAR("classifier.output", "classifier"),
                                                       {0}};

static void read_modernbert(att_settings *s, att_text_head *head)
{
    static const char *const poolings[] = {"cls", "mean"};
    const char *key = "classifier_pooling";
    if (att_settings_has(s, key) && att_settings_choice(s, key, poolings, 2, "\"cls\" or \"mean\"") == 1)
        head->pooling = ATT_POOLING_MEAN;
    head->activation = att_activation_read(s, "classifier_activation", "gelu");
    head->no_bias = !att_settings_bool(s, "classifier_bias", false);
    head->has_norm = true;
    head->norm_kind = att_settings_bool(s, "norm_bias", false) ? ATT_NN_NORM_LAYER : ATT_NN_NORM_LAYER_NO_BIAS;
    head->eps = (float)att_settings_number_or(s, "norm_eps", 0, 1, 1e-5);
}

#define BERT(type_, name, names_, twice)                                                                               \
    {                                                                                                                  \
        .type = type_, .class = name "ForSequenceClassification", .names = names_, .activation = ATT_ACTIVATION_TANH,  \
        .dropout = {"classifier_dropout", "hidden_dropout_prob"}, .default_dropout = 0.1f, .drops_twice = twice        \
    }
static const att_text_head_kind kinds[] = {
    BERT("bert", "Bert", bert_names, false),
    BERT("roberta", "Roberta", roberta_names, true),
    BERT("xlm-roberta", "XLMRoberta", roberta_names, true),
    BERT("camembert", "Camembert", roberta_names, true),
    {.type = "distilbert",
     .class = "DistilBertForSequenceClassification",
     .names = distilbert_names,
     .activation = ATT_ACTIVATION_RELU,
     .dropout = {"seq_classif_dropout"},
     .default_dropout = 0.2f},
    {.type = "mpnet",
     .class = "MPNetForSequenceClassification",
     .names = roberta_names,
     .activation = ATT_ACTIVATION_TANH,
     .dropout = {"hidden_dropout_prob"},
     .default_dropout = 0.1f,
     .drops_twice = true},
    {.type = "modernbert",
     .class = "ModernBertForSequenceClassification",
     .names = modernbert_names,
     .dropout = {"classifier_dropout"},
     .read = read_modernbert},
    {.type = "nomic_bert",
     .class = "NomicBertForSequenceClassification",
     .names = bert_names,
     .activation = ATT_ACTIVATION_TANH,
     .dropout = {"classifier_dropout", "hidden_dropout_prob"}},
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
    const char *key = k->dropout[k->dropout[1] && !att_settings_has(s, k->dropout[0])];
    head->dropout = (float)att_settings_number_or(s, key, 0, 0.99, (double)k->default_dropout);
    head->activation = k->activation;
    head->pooling = ATT_POOLING_CLS;
    if (k->read)
        k->read(s, head);
}

att_status att_text_head_build(att_nn_params *p, int64_t hidden, att_text_head *head)
{
    head->dense = att_nn_linear_new(p, "classifier.dense", hidden, hidden,
                                    ATT_OPTIONS(att_nn_linear_options, .no_bias = head->no_bias));
    if (head->has_norm)
        head->norm = att_nn_norm_new(p, "classifier.norm", head->norm_kind, hidden, head->eps);
    head->output = att_nn_linear_new(p, "classifier.output", hidden, head->labels, NULL);
    return att_nn_params_status(p);
}

att_var *att_text_head_apply(att_tape *t, const att_text_head *head, att_var *x, const att_text_head_call *call)
{
    const att_positions rows = {.size = sizeof rows, .offsets = call->rows, .n = call->n};
    const att_nn_dropout all = {sizeof all, head->dropout, call->seed, &rows, call->sequence_ids};
    const att_nn_dropout *dropout = call->dropout ? &all : NULL;
    x = att_pool(t, x, call->offsets, call->n, head->pooling, 0);
    if (head->kind->drops_twice)
        x = att_nn_dropout_apply(t, dropout, att_nn_dropout_id("classifier", "dense"), x, NULL);
    x = att_nn_linear_apply(t, head->dense, x, head->activation, NULL);
    if (head->norm)
        x = att_nn_norm_apply(t, head->norm, x);
    x = att_nn_dropout_apply(t, dropout, att_nn_dropout_id("classifier", "output"), x, NULL);
    return att_nn_linear_apply(t, head->output, x, ATT_ACTIVATION_IDENTITY, NULL);
}
