/* Text encoders of any architecture. A table has the architectures; one of them reads a model's settings, makes its
 * layers and embeds its tokens. Public: att_encoder_*. */
#ifndef ATT_STACK_ENCODER_H
#define ATT_STACK_ENCODER_H

#include "attend_encoder.h"
#include "model/model.h"
#include "model/trace.h"

/* x = dropout(embed(ids)); each layer: x = layer(x); norm(x), if there is one. The struct of an architecture begins
 * with it. */
struct att_encoder {
    att_model model;
    att_encoder_info info;              /* by configure and build */
    float hidden_dropout;               /* in training */
    const att_nn_encoder_layer **layer; /* [info.layers] */
    int64_t *window;                    /* [info.layers]: number of tokens that a token attends to; 0: all */
    const att_nn_norm *norm;            /* after the last layer; or NULL */
};

/* The tokens of a call. Type and position ids have been checked. */
typedef struct att_encoder_input {
    int64_t tokens;
    const int32_t *ids, *type_ids; /* [tokens] */
    att_positions at;              /* one by one, or by offsets if the first position is 0 */
} att_encoder_input;

/* Parameters that are rows of one tensor of the file: those of ".attention.query." may be the first third of
 * ".attention.fused." */
typedef struct att_encoder_part {
    const char *ours, *whole;
    int part, parts;
} att_encoder_part;

enum { ATT_ENCODER_BESIDE = 4 };
typedef struct att_encoder_architecture {
    att_model_kind kind; /* whose struct begins with an att_encoder */
    /* Embeds the tokens. Returns [tokens, hidden], before dropout. */
    att_var *(*embed)(att_tape *t, const att_encoder *m, const att_encoder_input *in);
    const att_encoder_part *parts; /* up to {0}; or NULL */
    /* Sets what else differs of a parameter in the file: layout, or `plus`; or NULL */
    void (*change)(const char *ours, att_file_tensor *out);
    /* Tensors of its class that have no effect on hidden states, but are written as they were read; the rest NULL */
    const char *beside[ATT_ENCODER_BESIDE];
} att_encoder_architecture;

extern const att_encoder_architecture att_bert, att_roberta, att_distilbert, att_mpnet, att_modernbert, att_nomic_bert,
    att_gemma3_text;
extern const att_model_kind *const att_encoder_kinds[]; /* of all architectures, up to NULL */
/* Prepares a model. `prepare` of all kinds. */
att_var *att_encoder_prepare(att_tape *t, const void *model);

/* Returns the model's type, a text of its kind's table. Called during configure. */
const char *att_encoder_type(const att_model *m, att_settings *s);
/* Returns the number of rows of a table of positions. */
static inline int64_t att_encoder_positions(const att_encoder *m)
{
    return m->info.first_position + m->info.max_positions;
}
/* Opens an encoder that is a part of `outer`: see att_model_open_inside. */
att_status att_encoder_open_inside(const att_model *outer, const char *folder, const att_model_extension *extension,
                                   att_encoder **out);

/* During build: info.layers layers of these settings, layer.0 and so on; or one of them, layer.i */
void att_encoder_layers(att_encoder *m, const att_nn_layer_config *layer);
void att_encoder_layer(att_encoder *m, int64_t i, const att_nn_layer_config *layer);

/* What the model makes of the last layer's x [rows, hidden]: norm(x), or x */
att_var *att_encoder_output(att_tape *t, const att_encoder *m, att_var *x);

/* The `load_parameter` of kinds whose architecture has parts: whichever the file has, the tensor or the one that it is
 * a part of. (encoder_parts.c) */
att_status att_encoder_load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out);
/* Names our parameter in a file that has the whole tensors. An att_parameter_naming, whose user is the encoder. */
void att_encoder_in_file(const void *encoder, const char *ours, att_file_tensor *out);
/* All architectures have their kind as the first member. */
static inline const att_encoder_architecture *att_encoder_architecture_of(const att_encoder *m)
{
    return (const att_encoder_architecture *)(const void *)m->model.kind;
}

/* Returns the encoder's part of a trace of n tokens. (encoder_trace.c) */
att_trace_part att_encoder_trace_part(const att_encoder *m, int64_t n);

/* Writes FOLDER/model.safetensors in the format in which the model was read: the weights of a model that was opened for
 * training from the folder `from`, and the other tensors of that folder. dtype 0: f32. */
att_status att_encoder_write_weights(const att_encoder *m, const char *from, const char *folder, att_dtype dtype);

#endif
