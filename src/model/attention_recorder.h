/* Records attention weights while a model is applied to one sequence: of self-attention, or of a decoder's to its
 * source. */
#ifndef ATT_MODEL_ATTENTION_RECORDER_H
#define ATT_MODEL_ATTENTION_RECORDER_H

#include "attend_learn.h"

typedef struct att_attention_recorder {
    att_ctx *ctx;
    int64_t layer;  /* -1: the rollout of all layers (Abnar, Zuidema 2020) */
    int64_t head;   /* -1: the mean of all heads, as for the rollout */
    int64_t count;  /* tokens of the sequence */
    float *weights; /* [count, count]: the result */
    float *scratch; /* [2, count, count], for means; else NULL */
    int64_t seen;   /* layers so far */
    att_status status;
} att_attention_recorder;

/* The hook of a tape, with an att_attention_recorder as its user */
void att_attention_record(void *recorder, const att_tape_event *event);
/* Is `index` one of a model's count layers or heads, or from `min` on? What: "layer". */
att_status att_attention_check(att_ctx *ctx, const char *what, int64_t index, int64_t min, int64_t count);

/* Of one decoder layer to the source, the mean of some heads; rows may come in one call or several. */
typedef struct att_source_recorder {
    const char *scope; /* of that layer's attention */
    int64_t first_head, heads, columns;
    int64_t rows;   /* recorded so far */
    float *head;    /* [rows, columns] of one head */
    float *weights; /* [all rows, columns] the mean of the heads, at first 0 */
    att_status status;
} att_source_recorder;

/* The hook of a tape, with an att_source_recorder as its user */
void att_source_record(void *recorder, const att_tape_event *event);

#endif
