/* Traces, internally. A subject describes a pass of its model by a table of stacks of layers, whose attention and
 * hidden states are found by their scopes; everything else is the same for all models. The public functions are
 * att_trace_*. */
#ifndef ATT_MODEL_TRACE_H
#define ATT_MODEL_TRACE_H

#include "attend_learn.h"
#include "attend_trace.h"
#include "attend_util.h"

/* A stack of layers of one side */
typedef struct att_trace_part {
    att_trace_side side;
    int64_t layers, heads;
    int64_t kv_heads;          /* 0: heads */
    int64_t head_dim, key_dim; /* of queries and of keys; key_dim 0: head_dim */
    int64_t queries, keys;
    int64_t first_key; /* index in the source of the first key, for options.hide */
    int64_t params;    /* numbers (f32) of all parameters of the plan's stages */
    const char *score; /* NULL: "dot" */
    bool causal;
    int64_t window;
    const int64_t *windows; /* [layers], of the model: the window of each; or NULL: `window` */
    int64_t hidden;         /* features of the hidden states that scopes of layers keep; 0: there are none */
    /* The scope of a layer's attention, whose number is '#'; not copied. NULL: that of all models (attend_model.h).
     * Attention may come in several calls, one after the other: with the keys of the first, and further queries. */
    const char *scope;
} att_trace_part;

enum { ATT_TRACE_PARTS = 3 };
typedef struct att_trace_pass {
    att_ctx *ctx;
    att_compute compute; /* of the model */
    const char *caller;  /* for errors: "att_sentence_trace" */
    /* In the order of their computation, except that layers of the decoder and of cross-attention alternate. */
    att_trace_part part[ATT_TRACE_PARTS];
    int parts;
    /* The subject sets: source and target, ids (copied), truncated, shifted, grid, prefix, output_rows and outputs;
     * image, which self must own, and bytes, the memory that self owns. Other fields are filled in. */
    att_trace_info info;
    /* Applies the model once. Ids, images and so on are needed only during att_trace_make. */
    att_var *(*apply)(const void *self, att_tape *t);
    /* Computes the output from hidden states x of `output_side`: of some rows [count, hidden] -> [count, outputs], or,
     * if whole, of all rows -> [output_rows, outputs]. NULL: the result of apply [output_rows, outputs] is kept, unless
     * info.outputs is 0. */
    att_var *(*output)(const void *self, att_tape *t, att_var *x);
    att_trace_side output_side;
    bool whole;
    void (*free)(const void *self); /* frees what self has: when the trace is freed, or after an error; or NULL */
} att_trace_pass;

/* Makes a trace, which keeps a copy of self [self_bytes]. options or NULL: defaults; the subject has read ids and
 * n_ids. Errors: options out of range; attention or hidden states other than those of the table; those of the pass.
 */
att_status att_trace_make(const att_trace_pass *pass, const void *self, size_t self_bytes,
                          const att_trace_options *options, att_trace **out);

/* ---- between the files trace*.c */

enum { ATT_TRACE_PARAMS = 17 }; /* maximum parameters of a plan's stages, and the mask of options.hide */

/* One attention layer. Arrays are NULL if options.layers leaves it out. */
typedef struct att_trace_layer {
    const att_trace_part *part;
    int64_t layer;
    char scope[96];
    bool saved;
    float *q, *k;        /* [queries, heads, head_dim], [keys, kv_heads, key_dim] */
    float *value_length; /* [keys, kv_heads]: Euclidean norm of each value */
    float *params;       /* [part->params] */
    int64_t rows;        /* queries that were recorded, saved or not */
    const att_plan *plan;
    att_plan *own; /* with the mask of options.hide; or NULL */
    att_tensor param[ATT_TRACE_PARAMS];
    int n_params;
} att_trace_layer;

/* Hidden states of a side: those of the layers [first, layers] */
typedef struct att_trace_states {
    const att_trace_part *part; /* NULL: none */
    int64_t first, recorded;
    float *x; /* [layers + 1 - first, queries, hidden] */
} att_trace_states;

struct att_trace {
    att_trace_pass pass;
    void *self;
    att_trace_info info;
    bool describe_only;
    att_trace_layer *layer; /* [info.attentions] */
    att_trace_states states[ATT_TRACE_SIDES];
    float *result;  /* [output_rows, outputs] of apply; or NULL */
    uint8_t *shown; /* [tokens to which options.hide applies]: 0: hidden; or NULL */
    float *numbers; /* memory of all these arrays */
    int32_t *ids;   /* ids of the source, then of the target */
};

/* (trace_find.c)
 *
 * Returns the layer whose scope has this pattern, 0 for a pattern without '#'; -1: none. */
int64_t att_trace_layer_of(const char *pattern, const char *scope);
/* Returns whether options.hide applies to the keys of a part. */
bool att_trace_hides(const att_trace *t, const att_trace_part *part);
/* Returns the number of the attention of a side's layer; -1: there is none. */
int64_t att_trace_index(const att_trace *t, att_trace_side side, int64_t layer);
/* Checks that there is an attention i. */
att_status att_trace_check_attention(const char *caller, const att_trace *t, int64_t i);
/* Applies the model and records what the trace has memory for. (trace_record.c) */
att_status att_trace_record(att_trace *t, const att_trace_options *options);
/* Checks that a trace has numbers. Errors: t is NULL; it only describes. */
att_status att_trace_ready(const char *caller, const att_trace *t);
/* Checks rows. Errors: [first, first + count) is not in [0, rows); out is NULL, and there is a row. */
att_status att_trace_check_rows(const char *caller, const att_trace *t, int64_t first, int64_t count, int64_t rows,
                                const void *out);

#endif
