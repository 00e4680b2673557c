/* Inside attention: the plan, a checked call, and what the drivers share. */
#ifndef ATT_ATTN_H
#define ATT_ATTN_H

#include "attn/stage.h"

#include <stdatomic.h>

enum { ATT_MAX_SPARES = 8, ATT_MAX_GROUP = 32 };

typedef struct att_spare att_spare;
struct att_plan {
    att_ctx *ctx;
    att_attention_spec spec; /* defaults filled in */
    const att_kernels *kernels;
    att_vectors vectors;
    const att_score *score;       /* of the running instruction set, as are the modifiers */
    const att_prologue *prologue; /* NULL: the tiles see the rows of q and k as they are */
    int64_t q_dim, k_dim;         /* of rows as the tiles see them */
    int n_modifiers, n_masks;
    const att_modifier *modifier[ATT_MAX_STAGES];
    const att_mask *mask[ATT_MAX_STAGES];
    unsigned flags; /* of all stages together */
    bool fold;      /* the scale is in the turned queries */
    bool words;     /* bf16 is multiplied in pairs: forward all of it, backward what S and dP are made of */
    bool late;      /* and then the scale is part of the softmax */
    bool plain;     /* no stage has a parameter or asks for one, so sites need no view of them */
    int sink;       /* which modifier is the sink, or -1 */
    /* Scratch memory that earlier calls have left, as many as may run at once. */
    _Atomic(att_spare *) spare[ATT_MAX_SPARES];
};

/* A call whose arguments have been checked. */
typedef struct att_call {
    const att_plan *plan;
    att_attention_args args; /* whatever the caller's size of it */
    bool outputs;            /* v, out and lse have been checked, too */
    bool ragged;
    int64_t sequences, max_tq, max_tk;
    bool documents_ascend;             /* in each sequence */
    att_tensor q_rows, k_rows;         /* what the tiles see: args.q and k, or made of them by att_prologue_begin */
    bool keys_per_head;                /* k_rows has a head for each of q's, not of k's */
    int64_t first_head, last_head;     /* query heads whose rows are prepared */
    att_tensor floats[2];              /* q and k in f32, where rows are made of them */
    float *prepared[2], *converted[2]; /* memory of those that are not the caller's */
} att_call;

/* outputs: out and lse are used; without them only q and k are looked at. */
att_status att_call_check(const att_plan *plan, const att_attention_args *args, bool outputs, att_call *call);
/* The gradients of a backward call, whatever the caller's size of them, checked against it. */
att_status att_call_check_grads(const att_call *call, const att_attention_grads *grads, att_attention_grads *g);
/* One gradient, unless it is left zero: it has the shape of `like` and shares no memory with anything else. */
att_status att_call_check_grad(const att_call *call, const char *name, const att_tensor *t, const char *like_name,
                               const att_tensor *like, const att_attention_grads *g);
/* Of an instruction set. */
att_vectors att_vectors_of(const att_kernels *kernels);
static inline bool att_given(const att_tensor *t) { return t->data || t->rank; }
/* Numbers of one head's parameter [heads or 1, ...]. */
int64_t att_param_count(const att_tensor *t);
/* One head of one sequence in a tensor of the layout of q (of_keys: of k). */
att_rows att_call_rows(const att_call *call, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys);
/* Blocks of keys and values are met as copies: of another type, out of a cache, or where many queries read rows that do
 * not lie side by side: those share few sets of a processor's first cache, and each is a page of its own. */
bool att_call_copies(const att_call *call);
/* One head of one sequence of the call. */
void att_call_site(const att_call *call, int64_t sequence, int64_t head, att_site *site);

/* Takes the place of a call's k and v, after a look whether it may (cache.c), and of one head's of a sequence. */
att_status att_cache_check(att_call *call);
void att_cache_view(const att_cache *cache, int64_t sequence, int64_t kv_head, att_site *site);
void *att_page_at(const att_page *page, size_t offset);

/* Where a row begins, in f16 and bf16 too; where rows are packed, the first of a panel. */
static inline void *att_row_at(const att_rows *r, int64_t row)
{
    return (char *)r->at + row * r->stride * (int64_t)att_dtype_size(r->dtype);
}
/* How many of the first n rows of a block are packed */
static inline int64_t att_rows_packed(const att_rows *block, int64_t n)
{
    const int64_t packed = block->panel && block->packed > 0 ? block->packed : 0;
    return packed < n ? packed : n;
}
/* Rows from `first` on, in a cache those of one page, where `first` begins one (rows.c). */
att_rows att_rows_block(const att_rows *r, int64_t first);
/* Rows [first, first + n) of dim numbers as floats: in place, or converted into buffer [n, dim]. In a cache `first`
 * begins a page, and n rows end in it. */
att_floats att_rows_read(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer);
/* y = or += x [n, dim], rounded to y's type; buffer [dim]. Does nothing where y is not given. */
void att_rows_write(const att_kernels *k, const float *x, int64_t stride, const att_rows *y, int64_t first, int64_t n,
                    int64_t dim, bool add, float *buffer);
/* Appends rows to a list of what is prefetched; not those of a cache. */
void att_rows_prefetch(att_prefetch *list, const att_rows *y, int64_t first, int64_t n, int64_t dim);
/* Rows [first, last) become 0. */
void att_rows_clear(const att_rows *y, int64_t first, int64_t last, int64_t dim);

/* Rows [first, last) of out and lse, which attend to nothing. */
void att_site_clear(const att_plan *plan, const att_site *site, int64_t first, int64_t last);
/* What has no value joins the softmax of rows that attend to something, maximum and sum [rows]; left [rows]: what
 * remains of their o. Of a plan with a sink. */
void att_add_sink(const att_plan *plan, const att_site *site, int rows, float *max, float *sum, float *left);
/* What the turned queries were multiplied with. */
static inline float att_query_scale(const att_plan *plan) { return plan->fold ? plan->spec.scale : 1; }
bool att_plan_uses(const att_plan *plan, const att_mask *mask);

/* Scratch memory from p on, part after part, each in cache lines of its own (work.c): how many floats that takes. */
typedef struct att_part {
    float **at;
    int64_t count;
} att_part;
size_t att_lay_out(float *p, int n, const att_part *part);
int64_t att_part_count(size_t a, int64_t b); /* a * b, or more than there can be */
/* Scratch memory of a call, 64-byte aligned; NULL: error set. A plan keeps what its calls give back, unless it is
 * large, so that most calls allocate none: what the system gives anew costs small calls more time than their
 * arithmetic. */
float *att_scratch_take(const att_plan *plan, size_t count);
void att_scratch_give(const att_plan *plan, float *p);
void att_scratch_free(att_plan *plan); /* all that it keeps */
enum { ATT_SPARE_BYTES = 64 };         /* beside the floats, of each that is taken */
/* To how many tasks a call's items are dealt: enough to share the work evenly, large enough to be worth waking for. */
int64_t att_task_count(att_ctx *ctx, int64_t items, double work, double work_of_task, int tasks_per_thread);
/* i with first[i] <= item < first[i + 1]; first [n + 1] ascends. */
int64_t att_find(const int64_t *first, int64_t n, int64_t item);

/* Few queries over many keys (decode.c): the same bits, another way. */
enum { ATT_FEW = 8 }; /* queries of heads that share keys, together */
bool att_decode_suits(const att_call *call);
att_status att_decode(const att_call *call);
size_t att_decode_workspace(const att_call *call); /* bytes, over all threads */

/* Floats of scratch that one thread needs in forward, where the longest sequence has tk keys; bytes that all of a
 * backward call takes. */
size_t att_plan_scratch(const att_plan *plan, bool copies, int64_t tk);
size_t att_backward_workspace(const att_call *call);

/* Blocks of keys, [*first, *last), outside of which masks leave nothing of a block of queries. */
void att_span(const att_plan *plan, const att_site *site, int64_t q0, int64_t queries, int64_t *first, int64_t *last);

/* What masks leave of a block of queries by a block of at most ATT_KEY_BLOCK keys. */
typedef struct att_cut {
    int n_runs;
    att_run run[ATT_KEY_BLOCK / ATT_SUB_TILE]; /* keys, counted from k0, where anything attends; ascending */
    att_run holes;                             /* keys among which are all pairs of the runs that do not attend */
    uint64_t bits[ATT_KEY_BLOCK];              /* of these keys: att_cut_bits */
    int second; /* key of the last run from which on only the second half of a panel of queries attends: at a diagonal
                 */
} att_cut;
/* Of a key in the runs, bit i: query q0 + i attends to it. */
static inline uint64_t att_cut_bits(const att_cut *cut, int64_t key)
{
    return cut->holes.first <= key && key < cut->holes.last ? cut->bits[key] : ~UINT64_C(0);
}
static inline bool att_cut_partial(const att_cut *cut) { return cut->holes.first < cut->holes.last; }
/* The first key of run r that is behind those to which the first half of the queries attends. */
static inline int64_t att_cut_second(const att_cut *cut, int r)
{
    return r == cut->n_runs - 1 ? cut->second : cut->run[r].last;
}
/* The keys of run r among which all its holes are. */
att_run att_cut_holes(const att_cut *cut, int r);
void att_cut_block(const att_plan *plan, const att_site *site, int64_t q0, int queries, int64_t k0, int keys,
                   att_cut *cut);
/* Appends keys, to the last run where they follow it; partial: not all pairs of them attend. */
void att_cut_add(att_cut *cut, int64_t first, int64_t last, bool partial);
/* 0 x NaN is NaN: a row of keys or values that is not finite must not meet the weight 0 of a query that does not attend
 * to it. Such keys leave the runs, and are added afterwards to the queries that do attend. */
typedef struct att_clean {
    int n_runs, n_unclean;
    att_run run[ATT_KEY_BLOCK / ATT_SUB_TILE + ATT_KEY_BLOCK];
    int64_t unclean[ATT_KEY_BLOCK]; /* keys, counted from k0 */
} att_clean;
/* x [keys, dim]: the rows from k0 on. */
void att_cut_clean(const att_plan *plan, const att_cut *cut, int queries, const float *x, int64_t stride, int64_t dim,
                   att_clean *clean);
/* o [dim][panel] += x [keys, dim]^T w [keys][panel] over the unclean keys, for queries that attend. */
void att_add_unclean(const att_plan *plan, const att_cut *cut, const att_clean *clean, int queries, const float *x,
                     int64_t stride, int64_t dim, const float *w, int64_t w_stride, float *o);

/* A block of at most a panel of queries by one of keys, on its way through the stages. */
typedef struct att_block {
    const att_plan *plan;
    const att_site *site;
    const att_cut *cut;
    int64_t q0, k0;
    int queries;
    att_floats query;   /* [queries, q_dim] from q0 on */
    att_floats key;     /* [keys, k_dim] from k0 on */
    const float *q;     /* [q_dim][panel], turned by att_turn_queries; not read where the score takes rows */
    const float *ready; /* [keys, k_dim's att_ready_count] from k0 on, or NULL */
    bool words;         /* query, key and q are in words of two numbers */
    float *s;           /* [keys][panel], rows stride apart: scores; in backward then the weights */
    float *ds;          /* backward: the same, gradients */
    int64_t stride;
    float *saved[ATT_MAX_STAGES]; /* backward: what modifier i was given, laid as s; NULL where it is additive */
    float *dq;                    /* backward: [q_dim][panel], or [panel, q_dim] of rows, added to */
    float *dk;                    /* backward: [keys, k_dim], rows dk_stride apart, added to */
    int64_t dk_stride;
    double *pair;                                    /* [att_pair_scratch] */
    const att_operand *score_param, *modifier_param; /* the site's, or with gradients of this task's own */
} att_block;

/* Do tiles of its score see rows of queries, not turned ones? And what they want made of each key beforehand. */
static inline bool att_takes_rows(const att_plan *p) { return p->score->prologue && p->score->prologue->rows; }
static inline int64_t att_ready_count(const att_plan *p)
{
    const att_prologue *o = p->score->prologue;
    return o && o->ready_count ? o->ready_count(p->k_dim) : 0;
}
/* Queries turned, the scale in them where it belongs there; nothing where the score takes rows. */
void att_turn_queries(const att_plan *plan, att_floats query, int queries, float *q);
/* bf16 in words of two (words.c): whether a plan can, words of so many numbers, rows and values of a block. Rows of
 * values that are not finite count as 0 there and are named in `unclean`. */
bool att_words_usable(const att_plan *plan);
int64_t att_words_in(int64_t dim);
att_floats att_words_of_rows(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim,
                             float *buffer);
void att_words_of_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                         att_clean *unclean);

/* Around what a thread multiplies in words. */
static inline void att_tiles_begin(const att_plan *p)
{
    if (p->words && p->kernels->tiles_begin)
        p->kernels->tiles_begin();
}
static inline void att_tiles_end(const att_plan *p)
{
    if (p->words && p->kernels->tiles_end)
        p->kernels->tiles_end();
}

/* Scores, modified and masked, of the cut's runs. */
void att_score_block(const att_block *b);
/* Modifiers alone, over the cut's runs. */
void att_modify_block(const att_block *b);
/* From ds, the gradient of the modified scores, back to dq, dk and the parameters. Of a score that is a dot product
 * only the modifiers and the scale: the driver has its products. */
void att_score_block_back(const att_block *b);

/* Dropout (dropout.c): bit i of keep[key] says whether query q0 + i keeps its weight of the key, in the cut's runs; x
 * is laid as s. Without dropout they do nothing. */
att_status att_dropout_check(const att_call *call);
att_dropout_mask att_dropout_of(const att_call *call, int64_t sequence, int64_t head);
void att_keep_block(const att_block *b, uint64_t *keep /* [ATT_KEY_BLOCK] */);
void att_drop_block(const att_block *b, const uint64_t *keep, float *x);
/* What weights that are kept are multiplied with. */
static inline float att_keep_scale(const att_plan *plan) { return (float)(1 / (1 - (double)plan->spec.dropout)); }

/* Pair by pair, for a stage of the caller's without a version for tiles (pairs.c). Those of which the pair does not
 * attend are left out. */
size_t att_pair_scratch(const att_call *call); /* doubles that `pair` must have */
void att_score_pairs(const att_block *b, const att_tile *t);
void att_score_pairs_back(const att_block *b, const att_tile *t);
void att_modify_pairs(const att_block *b, const att_modifier *m, const att_tile *t);
void att_modify_pairs_back(const att_block *b, const att_modifier *m, const att_tile *t);

/* The definition, in double, one row at a time, f32; what the tests hold everything else against. weights [tk] or NULL,
 * out [value_dim] or NULL; returns the row's log-sum-exp. */
double att_ref_attention_row(const att_plan *plan, const att_site *site, int64_t q, double *weights, double *out);
/* Gradients of one row's sum(dout * out) + dlse lse: adds to dq [head_dim], dk [tk, key_dim], dv [tk, value_dim], and
 * to the parameters' dscore_param[i], dmodifier_param[i], where not NULL; weights [tk] and out [value_dim] are those of
 * the row. */
typedef struct att_ref_grads {
    double *dq, *dk, *dv;
    double *dscore_param[ATT_MAX_PARAMS], *dmodifier_param[ATT_MAX_STAGES];
} att_ref_grads;
void att_ref_attention_row_backward(const att_plan *plan, const att_site *site, int64_t q, const double *weights,
                                    const double *out, const float *dout, float dlse, const att_ref_grads *g);

#endif
