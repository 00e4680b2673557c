/* attend bench attention: one attention to measure, from its options to its tensors. */
#ifndef CLI_BENCH_ATTENTION_H
#define CLI_BENCH_ATTENTION_H

#include "attend_extend.h"
#include "bench.h"

enum { PASS_FORWARD, PASS_BACKWARD };
enum { LAYOUT_BHTD, LAYOUT_BTHD };
enum { ATTENTION_MAX_STAGES = 16, ATTENTION_MAX_PARAMS = 16 };

/* Set by options and by fields of a line of --shapes; 0 and NULL: the default, which attention_open sets. */
typedef struct attention_settings {
    const char *name;
    int64_t batch, heads, kv_heads, q_len, k_len, dim, key_dim, value_dim, score_dim;
    const char *score;
    const char *mask, *modifier;            /* lists: "causal,lengths=0.8" */
    int pass, causal, align, dtype, layout; /* causal: an att_align, or 0 */
    int64_t threads, repeat;
    double dropout, seconds;
    bool cache, no_verify;
} attention_settings;

/* An attention, its plan, and the memory of its tensors, which are logically [batch, heads, time, dim] whatever the
 * layout. */
typedef struct attention_case {
    attention_settings set;
    const char *line;  /* begins error messages: "", or "shapes.jsonl: line 3: " */
    const char *where; /* prefix of messages about a setting: "--", or "shapes.jsonl: line 3: " */
    att_ctx *ctx;
    att_plan *plan;
    att_attention_spec spec;
    att_attention_args args, call; /* call: the args, with a cache instead of keys and values if there is one */
    att_attention_grads grads;     /* backward only */
    att_cache *cache;
    att_plan_info info;
    att_stage stage[ATTENTION_MAX_STAGES]; /* the spec's */
    /* the args', of the score and then of the stages, and their gradients; the first of each stage */
    att_tensor param[ATTENTION_MAX_PARAMS], dparam[ATTENTION_MAX_PARAMS];
    int first_param[ATTENTION_MAX_STAGES];
    att_tensor call_param[ATTENTION_MAX_PARAMS]; /* parameters of a call with a cache */
    double window[2];
    int32_t *q_documents, *k_documents; /* [batch, q_len] [batch, k_len], or NULL */
    unsigned char *allowed;             /* [q_len, k_len] of the boolean mask, or NULL */
    bool causal, windowed;
    int64_t document_length; /* 0: no documents */
    int64_t *k_lengths;      /* [batch] */
    uint32_t *ids;           /* [batch], of the sequences, for dropout */
    void *memory[32];        /* memory of the tensors */
    int n_memory;
    double bytes; /* of the tensors */
} attention_case;

/* ---- attention_case.c ---- */

/* Makes the case that `set` describes; for the backward pass it runs the forward, which fills out and lse. To be closed
 * after a failure, too. */
int attention_open(attention_case *c, const attention_settings *set, const char *line);
void attention_close(attention_case *c);
/* Runs one pass; arg is the case. */
int attention_once(void *arg);
/* 0, or a code after the library's error message. */
int attention_status(const attention_case *c, att_status s);
/* Makes a dense tensor [dim[0], ...], which the case frees, of random numbers if dtype is f32, f16 or bf16. */
int attention_tensor(attention_case *c, att_tensor *out, att_dtype dtype, int rank, const int64_t *dim);
/* Reads row x[b, head, i], as doubles: [dim[3]] of a tensor of rank 4, one number of rank 3. Dimensions of 1 are
 * broadcast. */
void attention_read(const attention_case *c, const att_tensor *x, int64_t b, int64_t head, int64_t i, double *row);
/* Returns the floating-point operations of the pass: 2 (dim + value_dim) forward and 2 (3 dim + 2 value_dim) backward
 * for each pair that attends. Causal attention of as many keys as queries counts as half. */
double attention_flops(const attention_case *c);
/* Returns the bytes of keys and values if the pass is bound by reading them (one query per head), otherwise 0. */
double attention_reads(const attention_case *c);

/* ---- attention_stages.c: score, modifiers and masks by name ---- */

/* Sets the stages of the spec, and their arguments. */
int attention_set_stages(attention_case *c);
/* Returns the number of parameters of the score. */
int attention_score_params(const attention_case *c);
/* Return the number of keys of sequence b, and the position of its query i. */
int64_t attention_key_count(const attention_case *c, int64_t b);
int64_t attention_position(const attention_case *c, int64_t b, int64_t i);
/* Finds the keys [*first, *last) of query i of sequence b; the boolean mask thins them out further. */
void attention_keys(const attention_case *c, int64_t b, int64_t i, int64_t *first, int64_t *last);
bool attention_allows(const attention_case *c, int64_t i, int64_t j);

/* ---- attention_check.c ---- */

/* Compares a sample of the pass's results with plain loops in double. *worst: the largest error relative to the error
 * that rounding allows; more than 1 is a failure. */
int attention_verify(attention_case *c, double *worst);

#endif
