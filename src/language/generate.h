/* What the files of generation share: generate.c is the call, generate_group.c continues a group of its prompts. */
#ifndef ATT_LANGUAGE_GENERATE_H
#define ATT_LANGUAGE_GENERATE_H

#include "language/sampling.h"
#include "language/text_generator.h"
#include "language/text_stream.h"
#include "stack/language_model.h"

typedef struct att_generate_sequence {
    int64_t number;         /* of the prompt */
    int32_t *ids;           /* prompt, generated tokens, room for max_lookup + 1 more */
    float *log_probability; /* of ids beyond the prompt; or NULL */
    int64_t prompt, count;  /* tokens: of the prompt, now */
    int64_t limit;          /* of count */
    int64_t done;           /* tokens that the state has */
    int64_t proposed;       /* tokens beyond count in this pass */
    int64_t chosen;         /* tokens beyond count after this pass */
    int64_t first_row;      /* of its logits in this pass */
    uint64_t *seen;         /* for the repetition penalty; or NULL */
    att_text_stream stream;
    att_generation_end end; /* 0: it continues */
} att_generate_sequence;

typedef struct att_generate_job {
    const att_text_generator *g;
    att_ctx *ctx;
    att_generate_options o;
    att_sampler sampler;
    int32_t *stop_token; /* [n_stop]: the special token of this name; -1 */
    const int32_t *ids;  /* prompts */
    const int64_t *offsets;
    att_generated *out;
    /* of a group */
    att_language_state *state;
    att_generate_sequence *s; /* [n]: that of row i in the state */
    int64_t n;
    att_tape *tape;
    att_tensor logits;
    int tasks;
    att_sampler_scratch *scratch; /* [tasks] */
    bool *finite;                 /* [tasks] */
} att_generate_job;

/* Continues prompts [first, last). */
att_status att_generate_group(att_generate_job *j, int64_t first, int64_t last);

#endif
