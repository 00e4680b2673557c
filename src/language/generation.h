/* A session of generations, internal. generation.c has its calls, generation_sequence.c has one sequence,
 * generation_rows.c assigns rows of the state, and generation_step.c computes the tokens of all sequences. att_generate
 * (generate.c) uses a session. */
#ifndef ATT_LANGUAGE_GENERATION_H
#define ATT_LANGUAGE_GENERATION_H

#include "language/sampling.h"
#include "language/text_generator.h"
#include "language/text_stream.h"
#include "stack/language_model.h"

enum { ATT_PROMPT_TOKENS = 256 }; /* tokens of prompts in a step: reading all weights for fewer is not worth it */

typedef struct att_generation_sequence {
    int64_t number;
    const att_text_generator *g;
    att_generate_options o; /* sampling and stop are copied: sampler and below */
    att_sampler sampler;
    att_logit_bias *bias;           /* [sampler.s.n_bias]; NULL if that is 0 */
    char **stop;                    /* [o.n_stop] */
    int32_t *stop_token;            /* [o.n_stop]: the special token of this name; -1 */
    int32_t *ids;                   /* prompt, generated tokens, room for o.lookup + 1 more */
    uint64_t *seen;                 /* for the repetition penalty; or NULL */
    att_token_scores scores;        /* of generated tokens */
    att_token_scores prompt_scores; /* of the prompt's tokens */
    att_text_stream stream;
    int64_t prompt, count;  /* tokens: of the prompt; now */
    int64_t limit;          /* of count */
    int64_t need;           /* tokens of the session's max_tokens that are reserved for it */
    int64_t row;            /* of the state; -1: none */
    int64_t done;           /* tokens that the state has */
    int64_t cached;         /* tokens of the prompt that the state had before */
    att_generation_end end; /* 0: it continues */
    /* of a step */
    int64_t added;     /* tokens after `done` that are computed: of the prompt, or the last one and the proposed ones */
    int64_t proposed;  /* tokens beyond count */
    int64_t wanted;    /* rows of logits: those after the last tokens of `added` */
    int64_t first_row; /* the first of the wanted rows */
    int64_t chosen;    /* tokens beyond count after the step */
} att_generation_sequence;

/* The beginning of a sequence that ended, for prompts that begin with it. */
typedef struct att_generation_prefix {
    int32_t *ids; /* [count] */
    int64_t count, row;
    int64_t used; /* the step that used it last */
} att_generation_prefix;

struct att_generation {
    const att_text_generator *g;
    att_ctx *ctx;
    att_generation_options o;
    att_language_state *state;
    bool borrowed; /* the state is the caller's: row i always belongs to sequence i */
    bool exact;    /* a token's keys and values have the same bits however they were computed, which bf16 does not
                    * guarantee */
    bool moved;    /* sequences have come or left since rows were arranged */
    bool calling;  /* a token's callback runs */
    att_status failed;
    att_generation_sequence **sequence; /* [n], ascending numbers; room for o.max_sequences */
    att_generation_prefix *prefix;      /* [n_prefixes]; room for o.max_sequences */
    int64_t n, n_prefixes, next_number, steps;
    int64_t tokens;        /* the sum of tokens that sequences need */
    int64_t prefix_tokens; /* the sum of tokens of prefixes */
    int64_t computed;      /* tokens, by all steps */
    int64_t next_prompt;   /* number of the sequence whose prompt is first in the next step */
    int64_t *from;         /* [2 o.max_sequences + 1] scratch: rows */
    att_tape *tape;
    att_tensor logits;
    int tasks;
    att_sampler_scratch *scratch; /* [tasks] */
    bool *finite;                 /* [tasks] */
};

/* ---- generation.c */

/* Opens a session as att_generation_new does. state: NULL, or the caller's, with a row for each of o->max_sequences. */
att_status att_generation_open(const att_text_generator *g, const att_generation_options *o, att_language_state *state,
                               att_generation **out);

/* A sequence to be added. caller is for errors. att_generation_admit checks o; att_prompt_check has checked ids [n]. */
typedef struct att_generation_entry {
    const char *caller;
    const int32_t *ids;
    int64_t n;
    const att_generate_options *o;
    int64_t need; /* as in att_generation_sequence */
} att_generation_entry;
att_status att_generation_admit(att_generation *s, const att_generation_entry *entry, int64_t *number);
/* Returns whether there is room for a sequence that needs this number of tokens. */
bool att_generation_has_room(const att_generation *s, int64_t need);

/* ---- generation_sequence.c */

/* Returns the largest number of tokens that a prompt [n] may have together with the generated tokens. */
int64_t att_generation_limit(const att_text_generator *g, const att_generate_options *o, int64_t n);
/* Checks that the model can continue a prompt: ids [first + n] from `first` on. what: the prompt's name in errors, such
 * as "att_generate: prompt 3". */
att_status att_prompt_check(const att_text_generator *g, const char *what, const int32_t *ids, int64_t first,
                            int64_t n);

att_status att_generation_sequence_new(const att_text_generator *g, const att_generation_entry *entry,
                                       att_generation_sequence **out);
void att_generation_sequence_free(att_generation_sequence *q);
/* Appends the next of the chosen tokens to the sequence. */
att_status att_generation_sequence_accept(att_generation_sequence *q);
/* Writes the generated tokens and text to out. */
att_status att_generation_sequence_write(att_generation_sequence *q, att_generated *out);

/* ---- generation_step.c */

/* Makes a step, as att_generation_step does, of a session that may be changed. */
att_status att_generation_compute(att_generation *s, int64_t *active);

/* ---- generation_rows.c */

/* Assigns a row of the state to each sequence that continues and to each prefix, and gives new sequences the beginnings
 * that they share with others. */
att_status att_generation_arrange(att_generation *s);
/* Releases the row of a sequence. The state keeps the sequence's beginning if options.kept_tokens permits it. */
void att_generation_release(att_generation *s, att_generation_sequence *q);
void att_generation_prefixes_free(att_generation *s);

#endif
