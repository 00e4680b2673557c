/* Texts that follow prompts: generations, which join and leave the one session of their model. */
#ifndef SERVE_GENERATE_WORK_H
#define SERVE_GENERATE_WORK_H

#include "call.h"

enum { SERVE_STOPS = 4 }; /* of a request */

/* One of the texts of a request. The compute loop adds to it, the request's connection reads it. */
typedef struct serve_choice {
    struct serve_generation *of;
    int64_t prompt; /* its index */
    /* of the compute loop alone: */
    int64_t number; /* of its sequence; -1: it has not joined, or has left */
    bool last;      /* its last token has come */
    /* with the generation's lock: */
    char *text; /* [bytes]: whole characters; without an end that may begin a stop string */
    size_t bytes, room;
    int64_t tokens;
    int32_t *ids, *top_ids;              /* [tokens], [tokens, options.top]; only with options.log_probabilities */
    float *log_probabilities, *top_ones; /* as well */
    size_t token_room;
    int64_t cached;         /* tokens of the prompt that were not computed */
    att_generation_end end; /* 0: it continues */
} serve_choice;

/* Token ids of prompts, concatenated. */
typedef struct serve_prompts {
    int64_t n;
    int32_t *ids;     /* [offsets[n]] */
    int64_t *offsets; /* [n + 1]; NULL: n is 0 */
    size_t room, offsets_room;
} serve_prompts;
/* Adds a prompt, ids [n]. Returns false if out of memory. */
bool serve_prompts_add(serve_prompts *p, const int32_t *ids, int64_t n);
void serve_prompts_free(serve_prompts *p);
/* Returns the number of tokens of a prompt. */
int64_t serve_prompt_tokens(const serve_prompts *p, int64_t i);

/* How the texts of a request are chosen: options with all that they have pointers to. */
typedef struct serve_sampling {
    att_generate_options options; /* the seed's sequence is the index of a choice among those of its prompt */
    att_sampling sampling;
    att_logit_bias *bias;
    char *stop[SERVE_STOPS + 1]; /* [options.n_stop] */
} serve_sampling;
void serve_sampling_free(serve_sampling *s); /* s or NULL */

typedef struct serve_generation {
    serve_job job;
    serve_prompts prompts;
    int64_t per_prompt, choices; /* choices = prompts.n * per_prompt, those of a prompt one after another */
    int64_t cost;                /* tokens of all prompts */
    serve_sampling *sampling;
    serve_choice *choice; /* [choices] */
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint64_t changes; /* with the lock: of any choice, and the end */
    serve_end end;    /* with the lock: the job's */
} serve_generation;

/* Makes a generation, which owns the prompts, whose struct is emptied, and `sampling`; after an error they are the
 * caller's. Returns NULL if out of memory. */
serve_generation *serve_generation_new(serve_model *m, serve_prompts *prompts, int64_t per_prompt,
                                       serve_sampling *sampling);
/* g or NULL; its job has ended, or was never added. */
void serve_generation_free(serve_generation *g);
/* Waits until there are changes beside those that were seen. Returns false if there are none until `deadline`. */
bool serve_generation_wait(serve_generation *g, uint64_t seen, double deadline);

/* ---- sessions ---- */

/* The tokens of all texts of a model together whose keys and values fit into this many bytes. */
int64_t serve_session_tokens(const att_language_model_info *m, int64_t bytes);
/* s or NULL. */
void serve_session_free(serve_session *s);

#endif
