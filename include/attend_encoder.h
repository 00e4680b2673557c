/* attend_encoder.h - text encoders: Transformers such as BERT, in which each token attends to the whole text.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
#ifndef ATTEND_ENCODER_H
#define ATTEND_ENCODER_H

#include "attend_model.h"
#include "attend_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text encoder, from ids to a hidden state of each token, in the format of a class of `transformers`: BERT (Devlin et
 * al. 2018), RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020), CamemBERT (Martin et al. 2020), DistilBERT (Sanh
 * et al. 2019), MPNet (Song et al. 2020), ModernBERT (Warner et al. 2024), NomicBERT (Nussbaum et al. 2024),
 * EmbeddingGemma (Vera et al. 2025; the text model of Gemma 3 without its causal mask). */
typedef struct att_encoder att_encoder;

typedef struct att_encoder_info {
    size_t size;
    const char *type; /* "model_type" of config.json: "bert", "roberta", "xlm-roberta", "camembert", "distilbert",
                       * "mpnet", "modernbert", "nomic_bert", "gemma3_text" */
    int64_t vocabulary, hidden, layers, heads, intermediate;
    int64_t max_positions; /* tokens of a sequence */
    int64_t types;         /* number of token types, which mark the texts of a pair; 0: none */
    bool pooler; /* the folder has a pooler, which is not computed: hidden states are those of the last layer */
    /* The position of the first token of a sequence: 0, but in RoBERTa and MPNet the id of padding + 1. There, a
     * padding token has its id as its position, and is not counted in the positions of the others. */
    int64_t first_position;
} att_encoder_info;

/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_encoder_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_encoder **out);
/* Opens a model for training: its weights are f32 copies, except frozen ones. options or NULL: defaults. */
ATT_API att_status att_encoder_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                                 att_encoder **out);
ATT_API void att_encoder_free(att_encoder *m);
ATT_API att_status att_encoder_describe(const att_encoder *m, att_encoder_info *info);
ATT_API att_status att_encoder_weights(const att_encoder *m, att_model_weights *weights);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_encoder_params(const att_encoder *m);

typedef struct att_encoder_options {
    size_t size;
    const int32_t *type_ids;     /* [call] [offsets[n]], each in [0, types), as att_tokenize_pair has them; or NULL: all
                                  * 0, as they are in a model without token types */
    const int64_t *position_ids; /* [call] [offsets[n]], each in [0, first_position + max_positions); or NULL: from
                                  * first_position on in each sequence. MPNet's relative positions do not use them. */
    /* In training: dropout with the probabilities of config.json, hidden_dropout_prob after the embeddings and after
     * each sublayer, attention_probs_dropout_prob on attention weights. Of a model that was opened for training. */
    bool dropout;
    uint64_t seed;                /* of dropout: a different one for each step */
    const uint32_t *sequence_ids; /* [call] [n], with dropout: identify the sequences in the masks */
} att_encoder_options;
/* Computes the hidden states of the last layer for n sequences, concatenated: ids [offsets[n]], offsets [n + 1]
 * ascending from 0 -> [offsets[n], hidden]. A sequence has the same bits whatever else is in the call. options or NULL:
 * defaults. Returns NULL on error, like all operations. Errors: an id, a token type or a position that the model does
 * not have; a sequence of more than max_positions tokens. */
ATT_API att_var *att_encoder_apply(att_tape *t, const att_encoder *m, const int32_t *ids, const int64_t *offsets,
                                   int64_t n, const att_encoder_options *options);

/* Traces one pass of the model (attend_trace.h): attention and hidden states of one sequence, ids [n]. Hidden states
 * are those before the norm after the last layer, if the model has one, which is then the trace's output layer; other
 * models have none. options or NULL: defaults; options.ids must be NULL. Errors: n not in [1, max_positions]; options
 * out of range; an id that is not in the vocabulary; out of memory; cancelled. */
ATT_API att_status att_encoder_trace(const att_encoder *m, const int32_t *ids, int64_t n,
                                     const att_trace_options *options, att_trace **out);

#ifdef __cplusplus
}
#endif
#endif
