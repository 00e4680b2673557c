/* attend.h - attention and what surrounds it, in C.
 *
 *   att_ctx     what a program opens once: threads, memory, instruction set
 *   att_tensor  a view of the caller's numbers: dtype, dimensions, strides
 *   att_plan    attention with its score, modifiers and masks chosen
 *
 * Chapters: 1 Context, 2 Tensors, 3 Operations on tensors, 4 Plan, 5 Measure. Other headers:
 *
 *   attend_extend.h     scores, modifiers and masks of your own
 *   attend_learn.h      variables, parameters, operations with gradients
 *   attend_optimizer.h  optimizers, learning rates
 *   attend_nn.h         layers: of a Transformer, recurrent, convolutions
 *   attend_vectors.h    embeddings in fewer bits, search among them
 *   attend_util.h       what libraries on top need
 *
 * and those of libattend_model:
 *
 *   attend_text.h       tokenizers, vocabularies, tables
 *   attend_metric.h     BLEU, chrF, CIDEr, ranks
 *   attend_model.h      weights, models by name and of any kind
 *   attend_train.h      what all trainings have
 *   attend_trace.h      attention and hidden states of one pass of a model
 *   attend_language.h   language models
 *   attend_encoder.h    text encoders
 *   attend_sentence.h   sentence embeddings
 *   attend_translate.h  translation
 *   attend_vision.h     images, vision Transformers
 *   attend_caption.h    captions of images
 *   attend_recommend.h  sequential recommendation
 *
 * Conventions
 * - A call that can fail returns att_status; att_error() then has one sentence
 *   that names the argument and both values. Nothing is written before all
 *   arguments have been checked. The library never exits, prints or aborts.
 * - A pointer may be NULL where the comment states it, as in "cfg or NULL: ..." or
 *   "bias [out] or NULL", and an array of n where n is 0. Any other that is NULL
 *   is an error: an att_status is ATT_ERR_ARGUMENT and the sentence names the
 *   pointer; a call that returns a pointer returns NULL, one that returns a count
 *   0, or -1 for an index that does not exist; one that returns nothing does
 *   nothing, so functions that free take NULL. After any error *out is NULL.
 * - Option structs start with their size and take zero as the sensible default:
 *       att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2));
 *   In C++: att_config cfg = {}; cfg.size = sizeof cfg; cfg.n_threads = 2;
 *   Structs that a call fills are given with their size too:
 *       att_plan_info info = {.size = sizeof info};
 *   So a program and a library may be of different versions: fields that one of
 *   them does not know are zero; an option that is set and not known is an error,
 *   and so is a size of 0. Structs that callbacks get begin with their size, too: a
 *   field after that is of a newer header than the library.
 * - A pointer in a struct that a call is given is marked. [call]: it, and what it points
 *   to, is needed until the call returns. [object]: until the object that the call makes
 *   is freed; of a tape, until its reset.
 * - Structs without a size that calls fill, many of them in arrays, have room: what is
 *   named `reserved` is zero, and may become a field of a later version, which the
 *   function that frees the struct then frees, too. Other structs stay as they are:
 *   see docs/API.md. Arrays in structs that a call filled are memory of the context: one
 *   may be taken over, by setting its pointer to NULL, and freed by att_free(ctx, p).
 * - Shapes are written [batch, heads, time, dim]; strides count elements.
 * - In every mask, true means: attend.
 * - Callbacks run on the calling thread, during the call, and must return: neither
 *   longjmp nor an exception may leave them. They may call the library, but not free
 *   or change what the call uses. On any thread, and on several at once, run the
 *   functions of scores, modifiers and masks, the bodies of att_parallel_for, and an
 *   allocator's functions, which may not call the library.
 *
 * Threads: an att_ctx or att_plan may be used by several threads at once; the
 * error text belongs to the calling thread. Closing or freeing must not overlap
 * with use.
 *
 * Stacks: a call takes less than 96 KiB of the calling thread's, with the additive
 * score or bf16 less than 256 KiB; so do bodies on the threads of a host's
 * parallel_for. A context's own threads have enough, whatever the process's limit.
 *
 * fork: in the child, what the parent has made can be used and freed, also where
 * other threads of the parent were computing. A context gets threads of its own
 * there, as many as it has in the parent, when it first needs them: where the system
 * refuses them calls run on fewer, and att_threads returns how many. What a call of
 * another thread was about to write when the process forked is half-written there.
 *
 * On one instruction set a result has the same bits for any number of threads,
 * and a sequence's result does not depend on what else is in its batch. The sign
 * and payload of a NaN are exempt: a NaN is a NaN in both, no more.
 */
#ifndef ATTEND_H
#define ATTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* For the macros below: what they make lives until the end of the expression in which they stand. */
template <class T> const T *att_address(const T &x) { return &x; }
template <class T, size_t n> const T *att_first(const T (&x)[n]) { return x; }
template <class T, size_t n> char (&att_count(const T (&x)[n]))[n]; /* sizeof it is n */
template <size_t n> struct att_dims {
    int64_t dim[n];
};
template <class... N> att_dims<sizeof...(N)> att_dims_of(N... n) { return {{static_cast<int64_t>(n)...}}; }

extern "C" {
#endif

#if defined(__GNUC__)
#define ATT_API __attribute__((visibility("default")))
#define ATT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define ATT_API
#define ATT_PRINTF(f, a)
#endif

#define ATT_VERSION "0.3.0"
#define ATT_VERSION_NUMBER 300 /* for #if: 10000 times the first number, 100 times the second, and the third */

/* An option struct with named fields: ATT_OPTIONS(att_config, .n_threads = 2). In C++20: in functions, and fields in
 * their order. */
#ifdef __cplusplus /* g++ warns of fields without a value, here where they are meant to be zero */
#define ATT_OPTIONS(type, ...)                                                                                         \
    att_address([&]() -> type {                                                                                        \
        _Pragma("GCC diagnostic push");                                                                                \
        _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"");                                            \
        return type{.size = sizeof(type), __VA_ARGS__};                                                                \
        _Pragma("GCC diagnostic pop");                                                                                 \
    }())
#else
#define ATT_OPTIONS(type, ...) (&(const type){.size = sizeof(type), __VA_ARGS__})
#endif

/* ---- 1 Context ---------------------------------------------------------- */

/* One list makes codes, names and messages. */
#define ATT_STATUS_LIST(X)                                                                                             \
    X(OK, 0, "done")                                                                                                   \
    X(ERR_ARGUMENT, 1, "an argument is wrong")                                                                         \
    X(ERR_SHAPE, 2, "dimensions do not fit together")                                                                  \
    X(ERR_DTYPE, 3, "this type of number cannot be used here")                                                         \
    X(ERR_MEMORY, 4, "out of memory")                                                                                  \
    X(ERR_IO, 5, "a file or folder cannot be read or written")                                                         \
    X(ERR_FORMAT, 6, "a file's content is damaged or not what it should be")                                           \
    X(ERR_UNSUPPORTED, 7, "this setting is not supported")                                                             \
    X(ERR_CANCELLED, 8, "cancelled")                                                                                   \
    X(ERR_SYSTEM, 9, "the operating system refused")                                                                   \
    X(ERR_BUSY, 10, "no room at the moment")

typedef enum att_status {
#define ATT_STATUS_CODE(name, code, text) ATT_##name = code,
    ATT_STATUS_LIST(ATT_STATUS_CODE)
#undef ATT_STATUS_CODE
} att_status;

ATT_API const char *att_status_name(att_status s); /* "ERR_SHAPE" */
ATT_API const char *att_status_text(att_status s); /* "dimensions do not fit together" */
ATT_API const char *att_version(void);             /* of the library that runs, ATT_VERSION is the header's */

typedef struct att_ctx att_ctx;

/* Memory comes from here. alloc returns memory aligned to `alignment` (a power
 * of two, at least 64) or NULL; both may be called from several threads. */
typedef struct att_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*free)(void *user, void *p);
    void *user;
} att_allocator;

/* The caller's own thread pool: call body(arg, i) once for each i in [0, n),
 * in any order, on any threads, and return when all are done. */
typedef void (*att_parallel_fn)(void *user, int n, void (*body)(void *arg, int i), void *arg);

/* Gets a sentence, valid during the call, of what is not an error but a user should know, as that a file has tensors
 * that its model does not use. */
typedef void (*att_note_fn)(void *user, const char *text);

/* Gets the share of a call's work that is done: above 0, never less than before, and 1 at the end. false makes the call
 * return ATT_ERR_CANCELLED, and no file is written, at the end neither. Called by the thread that called the library,
 * between batches of work. It may call the library, but must not close or free what the call uses, and returns. */
typedef bool (*att_progress_fn)(void *user, double share);
/* Of a call that has no other options. NULL: none */
typedef struct att_call_options {
    size_t size;
    att_progress_fn progress; /* [call] or NULL */
    void *user;               /* [call] */
} att_call_options;

typedef struct att_config {
    size_t size;                  /* sizeof(att_config); ATT_OPTIONS fills it */
    int n_threads;                /* 0: what the process may use (affinity, cgroup quota) */
    const char *isa;              /* [call] or NULL: $ATTEND_ISA, else the best here; "scalar" "avx2" "avx512"
                                   * "avx512bf16" "amx" "neon" */
    att_allocator allocator;      /* all zero: the C library's */
    att_parallel_fn parallel_for; /* [object] or NULL: the context's own pool of n_threads */
    void *parallel_user;          /* [object] */
    const volatile int *cancel;   /* [object] or NULL, a flag: non-zero makes long calls return ATT_ERR_CANCELLED, those
                                   * of all threads; see att_cancel_by. It is read atomically, by other threads as well */
    att_note_fn note;             /* [object] or NULL */
    void *note_user;              /* [object] */
} att_config;

/* Opens a context; cfg or NULL: all defaults. */
ATT_API att_status att_open(att_ctx **out, const att_config *cfg);
/* Closes it and joins its threads. All that was made with it must be freed before. */
ATT_API void att_close(att_ctx *ctx);
/* The calling thread's last error sentence, "" before the first. ctx or NULL (after a failed att_open). */
ATT_API const char *att_error(const att_ctx *ctx);
/* The system's number (errno) for the reason that this sentence ends with, as ENOENT with "No such file or directory";
 * 0 where the error is not ATT_ERR_IO or ATT_ERR_SYSTEM, or has another reason. */
ATT_API int att_error_number(void);
/* How many threads it uses, and its instruction set, "avx512". */
ATT_API int att_threads(const att_ctx *ctx);
ATT_API const char *att_isa(const att_ctx *ctx);
/* Has later calls use n threads, from 1 to those with which the context was opened, or all of these, 0. Results have
 * the same bits. Calls that are running keep theirs, so other threads may compute in the context meanwhile. The
 * context's own threads do not end but sleep, and memory that is taken for each thread is still taken for all. */
ATT_API att_status att_set_threads(att_ctx *ctx, int n);
/* Has a flag cancel the calls of the calling thread, in any context, beside the context's own flag, until the next
 * att_cancel_by of this thread: non-zero makes its long calls return ATT_ERR_CANCELLED, and those of no other thread.
 * Bodies of its parallel calls are cancelled with it, on any thread. flag or NULL: none. Returns the flag before, or
 * NULL, so that it can be set again:
 *     const volatile int *before = att_cancel_by(&request->gone);
 *     s = att_forward(plan, &args);
 *     att_cancel_by(before); */
ATT_API const volatile int *att_cancel_by(const volatile int *flag);

/* ---- 2 Tensors ---------------------------------------------------------- */

#define ATT_MAX_RANK 6

typedef enum att_dtype {
    ATT_F32 = 0,
    ATT_F16 = 1,
    ATT_BF16 = 2,
    ATT_I32 = 3,
    ATT_I64 = 4,
    ATT_BOOL = 5, /* one byte, 0 or not 0 */
    /* Quantized: blocks of 32 numbers along the last dimension, as in .gguf files (ggml). A block has d, f16, for Q4_1
     * also m, f16, and whole numbers q: 32 of 8 bits, or 16 bytes with the first 16 numbers in their low halves and the
     * others in the high ones. Weights of att_linear and of what computes with them (argmax, topk, cross entropy of a
     * vocabulary) and tables of att_embedding may be of these types; att_tensor_convert has them. */
    ATT_Q8_0 = 6, /* 34 bytes: d q */
    ATT_Q4_0 = 7, /* 18 bytes: d (q - 8) */
    ATT_Q4_1 = 8  /* 20 bytes: d q + m */
} att_dtype;

/* A view: the memory is the caller's. All zero (data NULL) = not given. */
typedef struct att_tensor {
    void *data;
    att_dtype dtype;
    int rank;
    int64_t dim[ATT_MAX_RANK];
    int64_t stride[ATT_MAX_RANK]; /* in elements; 0 repeats. Quantized: the last is 1, the others are in whole blocks */
} att_tensor;

ATT_API const char *att_dtype_name(att_dtype t); /* "f32" */
ATT_API size_t att_dtype_size(att_dtype t);      /* bytes of one element; 0 if t is quantized, or no dtype */
/* Bytes of n elements of the last dimension, n in whole blocks if t is quantized; 0 if t is not a dtype. */
ATT_API int64_t att_dtype_bytes(att_dtype t, int64_t n);

/* Makes a view. stride or NULL: dense, last dimension contiguous. data or NULL: only its shape.
 * Errors: rank not in [0, ATT_MAX_RANK], negative dimension, sizes that overflow. */
ATT_API att_status att_wrap(att_tensor *out, void *data, att_dtype dtype, int rank, const int64_t *dim,
                            const int64_t *stride);
/* The rank and dimensions of att_wrap in one: att_wrap(&q, p, ATT_F32, ATT_DIMS(2, 8, 128, 64), NULL). */
#ifdef __cplusplus
#define ATT_DIMS(...)                                                                                                  \
    int(sizeof(att_dims_of(__VA_ARGS__)) / sizeof(int64_t)), att_address(att_dims_of(__VA_ARGS__))->dim
#else
#define ATT_DIMS(...)                                                                                                  \
    ((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), ((const int64_t[]){__VA_ARGS__})
#endif

/* ---- 3 Operations on tensors -------------------------------------------- */

typedef struct att_matmul_options {
    size_t size;
    bool transpose_a; /* a is [K, M] */
    bool transpose_b; /* b is [N, K] */
} att_matmul_options;
/* out[M, N] = a[M, K] times b[K, N]. f32; any strides, no overlap. options or NULL: defaults. */
ATT_API att_status att_tensor_matmul(att_ctx *ctx, const att_tensor *a, const att_tensor *b,
                                     const att_matmul_options *options, const att_tensor *out);
/* out = softmax of x over dimension `dim` (negative counts from the end), maximum subtracted first.
 * f32, same shapes; out may be x. A slice that is all -inf gives zeros. */
ATT_API att_status att_tensor_softmax(att_ctx *ctx, const att_tensor *x, int dim, const att_tensor *out);
/* out[M, N]: cosine of each row of a[M, D] with each row of b[N, D]; a zero row gives 0. f32. */
ATT_API att_status att_tensor_cosine(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out);
/* out = x, in out's type: f32, f16, bf16 and quantized types become one another, rounded to nearest even, and quantized
 * as ggml's reference does it, where a number that is not finite makes the d of its block NaN; other types stay. Same
 * shapes; any strides, no overlap. */
ATT_API att_status att_tensor_convert(att_ctx *ctx, const att_tensor *x, const att_tensor *out);

/* ---- 4 Plan: attention -------------------------------------------------- */
/* out = softmax(modifiers(score(q, k)), masked) v            (Vaswani et al. 2017, eq. 1)
 *
 * What changes the computation is in the spec; a plan is made of it once.
 * What changes from call to call (pointers, lengths, offsets) is in the args.
 * Memory is linear in the lengths: no [Tq, Tk] array exists unless weights are asked for. */

typedef struct att_plan att_plan;
typedef struct att_cache att_cache;
typedef struct att_score att_score;       /* how a query and a key make a score */
typedef struct att_modifier att_modifier; /* what then changes the score */
typedef struct att_mask att_mask;         /* which pairs attend */
/* One of your own is a constant of these types: see attend_extend.h. */

/* q . k (Luong et al. 2015); spec.scale 0 = 1 / sqrt(head_dim) (Vaswani et al. 2017) */
ATT_API extern const att_score *const att_score_dot;
/* q W k. Parameter: W [heads or 1, head_dim, key_dim] (Luong et al. 2015) */
ATT_API extern const att_score *const att_score_general;
/* v . tanh(q + k). Parameter: v [heads or 1, head_dim] (Bahdanau et al. 2015). With spec.score_dim = A it projects
 * itself, v . tanh(Wq q + Wk k). Parameters: v [heads or 1, A], Wq [heads or 1, A, head_dim], Wk [heads or 1, A,
 * key_dim]. Takes no memory for pairs: nothing of size Tq Tk A exists. */
ATT_API extern const att_score *const att_score_additive;
/* q . k / (|q| |k|), a zero row gives 0 */
ATT_API extern const att_score *const att_score_cosine;

/* s + bias. Parameter: bias, each dimension 1 or that of [B, heads, Tq, Tk], where ragged: of the longest lengths */
ATT_API extern const att_modifier *const att_modifier_bias;
/* s times value[0] */
ATT_API extern const att_modifier *const att_modifier_scale;
/* c tanh(s / c), c = value[0] (Gemma Team 2024) */
ATT_API extern const att_modifier *const att_modifier_softcap;
/* s - slope |key position - query position|; needs spec.align. Parameter: slopes [heads or 1] (Press et al. 2022) */
ATT_API extern const att_modifier *const att_modifier_alibi;
/* s + table[bucket of key position - query position]; needs spec.align. value[0]: the distance from which on all share
 * the last bucket. Parameter: table [heads or 1, buckets] (T5, Raffel et al. 2020). Half of the buckets are for keys
 * after the query; causal: all of them for keys before it. */
ATT_API extern const att_modifier *const att_modifier_relative;
ATT_API extern const att_modifier *const att_modifier_relative_causal;
/* A score without a value joins each row's softmax; one a spec. Parameter: sinks [heads or 1] (gpt-oss, OpenAI 2025) */
ATT_API extern const att_modifier *const att_modifier_sink;

/* key position <= query position; needs spec.align */
ATT_API extern const att_mask *const att_mask_causal;
/* value[0] keys before the query's position and value[1] after it, -1 = unbounded; needs spec.align (Beltagy et al.
 * 2020) */
ATT_API extern const att_mask *const att_mask_window;
/* Pairs of the same id. Parameters, i32: q_documents, batched [B or 1, Tq], ragged [tokens], and k_documents [B or 1,
 * Tk], [tokens], which may be left zero where the keys are those of the queries. Ids that ascend are faster. */
ATT_API extern const att_mask *const att_mask_document;
/* Parameter: mask, bool, true = attend; each dimension 1 or that of [B, heads, Tq, Tk] */
ATT_API extern const att_mask *const att_mask_boolean;

/* One stage of a spec, a modifier or a mask; the other pointer is NULL. */
typedef struct att_stage {
    const att_modifier *modifier;
    const att_mask *mask;
    double value[2]; /* of a stage that has some: see each */
} att_stage;
/* One of the above by its name, "dot", "softcap", "causal"; a stage with values that are 0. After an error the sentence
 * has all names; score i and stage i have these names, NULL from their number on. */
ATT_API att_status att_score_find(const char *name, const att_score **out);
ATT_API att_status att_stage_find(const char *name, att_stage *out);
ATT_API const char *att_score_name(int i);
ATT_API const char *att_stage_name(int i);
/* In the braces of a spec: ATT_STAGES({.modifier = att_modifier_softcap, .value = {30}}, {.mask = att_mask_causal}) */
#define ATT_STAGES(...)                                                                                                \
    .stage = (const att_stage[]){__VA_ARGS__},                                                                         \
    .n_stages = (int)(sizeof((const att_stage[]){__VA_ARGS__}) / sizeof(att_stage))

/* Where the queries stand among the keys; whatever depends on distance needs it, and there is no default. */
typedef enum att_align {
    ATT_ALIGN_UNSET = 0,
    ATT_ALIGN_TOP_LEFT,     /* query i is at position i */
    ATT_ALIGN_BOTTOM_RIGHT, /* query i is at position Tk - Tq + i: the last query sees the last key */
    ATT_ALIGN_STARTS        /* query i of sequence b is at position args.q_starts[b] + i */
} att_align;

typedef struct att_attention_spec {
    size_t size;
    int64_t heads;     /* of q */
    int64_t kv_heads;  /* of k and v; 0 = heads; divides heads: query head h uses key head h / (heads / kv_heads) */
    int64_t head_dim;  /* of q and k */
    int64_t key_dim;   /* of k, for a score whose queries and keys differ; 0 = head_dim */
    int64_t value_dim; /* of v and out; 0 = head_dim */
    int64_t score_dim; /* of what att_score_additive makes of queries and keys; 0: they are given projected */
    att_dtype dtype;   /* of q, k, v, out and their gradients: ATT_F32, ATT_F16 or ATT_BF16; sums are in f32. On
                          avx512bf16 and amx, the forward of sequences of more than a few queries rounds weights of
                          bf16 to bf16 */
    const att_score *score; /* [call] or NULL: att_score_dot */
    float scale;            /* of the score; 0 = 1 / sqrt(head_dim) for dot, 1 for others */
    const att_stage *stage; /* [call] [n_stages]: modifiers are applied in this order; all masks must allow a pair */
    int n_stages;           /* at most 16, and at most 16 parameters in all */
    att_align align;
    float dropout; /* 0 <= p < 1: see att_attention_args.dropout_seed */
} att_attention_spec;

/* Either batched, tensors of rank 4:
 *     q [B, heads, Tq, head_dim]  k [B, kv_heads, Tk, head_dim]  v [B, kv_heads, Tk, value_dim]
 *     out [B, heads, Tq, value_dim]  lse [B, heads, Tq]
 * or ragged, all sequences one after the other, with q_offsets and k_offsets:
 *     q [tokens, heads, head_dim]  k, v [tokens, kv_heads, dim]  out [tokens, heads, value_dim]  lse [tokens, heads]
 * The last dimension is contiguous, all other strides are free. out and lse overlap nothing else. */
typedef struct att_attention_args {
    size_t size;
    att_tensor q, k, v, out;
    att_tensor lse;           /* optional: log-sum-exp of each row's scores, natural logarithm, f32 */
    int64_t n_sequences;      /* ragged: B; batched: 0 */
    const int64_t *q_offsets; /* [call] ragged: [B + 1], ascending from 0: sequence b is rows [q_offsets[b],
                               * q_offsets[b + 1]) */
    const int64_t *k_offsets; /* [call] ragged: [B + 1], or NULL: q_offsets */
    const int64_t *q_lengths; /* [call] batched: [B] or NULL, rows used of Tq; the rows after them become 0 */
    const int64_t *k_lengths; /* [call] batched: [B] or NULL, keys used of Tk */
    const int64_t *q_starts;  /* [call] [B] for ATT_ALIGN_STARTS */
    /* [n_params]: the parameters of the score, then those of the stages, in their order; see each. Optional ones may be
     * all zero, and the last ones left out. */
    const att_tensor *param; /* [call] */
    int n_params;
    /* spec.dropout = p (Srivastava et al. 2014): a weight becomes 0 with probability p, else 1 / (1 - p) times as much,
     * so that the expected output stays; lse is that without dropout. Which ones depends on this seed, the sequence's
     * id, the head and the absolute positions of query and key (modulo 2^32), and on nothing else, neither threads nor
     * batch nor instruction set: Philox4x32-10 (Salmon et al. 2011) with
     *     key (low, high word of the seed), counter (query, key / 4, head of q, sequence id)
     * makes four words, and a weight is kept where word key % 4 >= round(p 2^32). Backward wants the same again.
     * Dropout sets a weight to 0 but does not mask its key: NaN and Inf in the value still reach all rows that attend
     * to it. */
    uint64_t dropout_seed;
    const uint32_t *sequence_ids; /* [call] [B], where p > 0: sequences are told apart by these, not by their order */
    const att_cache *cache; /* [call] has keys, values and their lengths: k, v, k_lengths, k_offsets are left zero */
} att_attention_args;

/* In the braces of args: ATT_PARAMS(w, slopes) */
#define ATT_PARAMS(...)                                                                                                \
    .param = (const att_tensor[]){__VA_ARGS__},                                                                        \
    .n_params = (int)(sizeof((const att_tensor[]){__VA_ARGS__}) / sizeof(att_tensor))

/* Makes a plan; errors name the field of the spec. Free it with att_plan_free. */
ATT_API att_status att_plan_new(att_ctx *ctx, const att_attention_spec *spec, att_plan **out);
ATT_API void att_plan_free(att_plan *plan);
/* Makes the same plan with n more stages [n] after its own, whose parameters come after those that the plan has: as for
 * a mask more where a model has made the plan (att_tape_config.before_attend). The plan need not outlive it. Errors:
 * those of att_plan_new. */
ATT_API att_status att_plan_with(const att_plan *plan, const att_stage *stages, int n, att_plan **out);
/* Frees the scratch memory that the plan keeps from call to call: of each call that runs at once, of 8 at most, and of
 * each 8 MiB at most. The next call takes it anew. May be called while others compute with the plan. */
ATT_API void att_plan_trim(const att_plan *plan);

/* out (and lse) of all queries. A row with nothing to attend gives 0 and -inf. */
ATT_API att_status att_forward(const att_plan *plan, const att_attention_args *args);

/* Gradients of sum(dout * out) + sum(dlse * lse): dout is given, the others are written, in the shapes of what they are
 * of (strides of their own; last dimension contiguous). One left zero is not wanted. They overlap nothing else. */
typedef struct att_attention_grads {
    size_t size;
    att_tensor dout;
    att_tensor dlse; /* optional: a gradient that reaches lse, in its shape */
    att_tensor dq, dk, dv;
    /* [n_dparams]: of args.param, in their shapes and order, each summed over what it is shared by; all zero, or after
     * the last: not wanted, as those of masks always are. */
    const att_tensor *dparam; /* [call] */
    int n_dparams;
    bool accumulate; /* add to what is there */
} att_attention_grads;
/* args: those of a forward call, with its out and lse. Linear memory; the same bits for any number of threads. Rows
 * with nothing to attend have no gradient. (Dao et al. 2022, appendix B) */
ATT_API att_status att_backward(const att_plan *plan, const att_attention_args *args, const att_attention_grads *grads);

/* Plan, forward, free in one call. */
ATT_API att_status att_attention(att_ctx *ctx, const att_attention_spec *spec, const att_attention_args *args);

/* Attention weights of one head for queries [q_first, q_first + q_count) of one sequence, into
 * weights [q_count, Tk of that sequence], recomputed from q and k, before dropout; v, out and lse of args are not
 * used. */
ATT_API att_status att_weights(const att_plan *plan, const att_attention_args *args, int64_t sequence, int64_t head,
                               int64_t q_first, int64_t q_count, float *weights);

/* What one weight is made of, in double, by the formulas that are the definition. */
typedef struct att_pair_info {
    size_t size;
    double score;          /* of query and key, times spec.scale */
    int n_stages;          /* the plan's */
    const char *stage[16]; /* [n_stages] their names: valid as long as the plan */
    double after[16];   /* [n_stages] the score after each, in the spec's order; -INFINITY from the first mask on that
                         * leaves the pair out */
    int masked_by;      /* which stage that mask is, or -1 */
    double weight;      /* before dropout, as in att_weights: e^(after all stages - log_sum_exp); 0 where masked */
    double log_sum_exp; /* of the query's scores, with the sink; -INFINITY: nothing attends */
} att_pair_info;
/* The pair of query q and key k of one head of one sequence. Costs the scores of all its keys. Arguments as for
 * att_weights. */
ATT_API att_status att_pair_describe(const att_plan *plan, const att_attention_args *args, int64_t sequence,
                                     int64_t head, int64_t q, int64_t k, att_pair_info *info);

/* Attention over keys in pieces: (out, lse) of some keys becomes that of those and of the keys of (out2, lse2), by
 * log-sum-exp. out, out2 [..., value_dim], lse, lse2 [...], f32, any strides; out and lse overlap nothing. Give a sink
 * to one of the pieces only. (Dao et al. 2022, section 3.1) */
ATT_API att_status att_merge(att_ctx *ctx, const att_tensor *out, const att_tensor *lse, const att_tensor *out2,
                             const att_tensor *lse2);

/* A cache: keys and values of sequences to which tokens are added, and taken off again, for decoding. It grows by
 * itself, and has keys as decoding reads them fastest. A token costs reading the keys and values before it once:
 *
 *     att_cache_new(plan, 1, &cache);
 *     att_attention_args args = {.size = sizeof args, .cache = cache};       // q [1, heads, 1, head_dim], out
 *     while (next_token(&args.q, &k, &v)) {                                  // k, v [1, kv_heads, 1, dim]
 *         att_cache_append(cache, ATT_ALL_SEQUENCES, &k, &v);
 *         att_forward(plan, &args);
 *     }
 *
 * Queries of a call with a cache are batched, or ragged: q [tokens, heads, head_dim] with q_offsets, and n_sequences
 * that of the cache. So prompts of any lengths and single tokens of other sequences may be one call:
 *
 *     att_cache_append_ragged(cache, offsets, &k, &v);                       // k, v [tokens, kv_heads, dim]
 *     args.q_offsets = offsets, args.n_sequences = att_cache_sequences(cache);
 *     att_forward(plan, &args);                                              // q, out [tokens, heads, dim]
 *
 * Bits. f32 and f16: a query gets those of a full pass over all tokens of its sequence, as tensors of the cache's type,
 * however these came into the cache: at once, ragged, token by token, in a copy of a prefix, after others were taken
 * off. bf16: the same, except where the forward of more than a few queries rounds weights to bf16 (see spec.dtype):
 * there calls with more than a few queries of a sequence match a full pass, and shorter ones match decoding. In all
 * types a sequence of a ragged batch gets what it gets alone.
 *
 * There is no backward through a cache, and scores that prepare keys (cosine; additive where it projects) do without.
 * Where a table has a dimension of Tk, that is the longest of its sequences, and what is given for each key is
 * [B or 1, Tk]. While one thread changes a cache none may use it. */
enum { ATT_ALL_SEQUENCES = -1 };
/* For calls of this plan, and of others of its context that have the same kv_heads, dimensions and dtype. */
ATT_API att_status att_cache_new(const att_plan *plan, int64_t sequences, att_cache **out);
ATT_API void att_cache_free(att_cache *cache);
/* Adds n tokens to ATT_ALL_SEQUENCES, k [B, kv_heads, n, key_dim] and v [B, kv_heads, n, value_dim], or to one, k
 * [kv_heads, n, key_dim] and v [kv_heads, n, value_dim], of spec.dtype, or of f32, rounded to nearest even. The last
 * dimension is contiguous, other strides are free. After an error, out of memory too, the cache is unchanged. */
ATT_API att_status att_cache_append(att_cache *cache, int64_t sequence, const att_tensor *k, const att_tensor *v);
/* The same, but as many to each sequence as it has rows, which may be none: sequence b gets rows [offsets[b],
 * offsets[b + 1]) of k [tokens, kv_heads, key_dim] and v [tokens, kv_heads, value_dim]. offsets [B + 1] ascend from 0
 * to tokens. */
ATT_API att_status att_cache_append_ragged(att_cache *cache, const int64_t *offsets, const att_tensor *k,
                                           const att_tensor *v);
/* Removes the tokens from `length` on from a sequence, or from ATT_ALL_SEQUENCES; none may be shorter. */
ATT_API att_status att_cache_truncate(att_cache *cache, int64_t sequence, int64_t length);
/* Makes n sequences; sequence b becomes a copy of what sequence from[b] was, from [n]: for beam search, to continue one
 * prefix in n ways (from all 0), to add a sequence (a copy of any, truncated to 0 if it is to be empty) or to drop
 * finished ones. Copies nothing: memory of common tokens is shared. Tokens that are then added take memory of their
 * own, and with them at most the 255 tokens before them, those on the same page. */
ATT_API att_status att_cache_select(att_cache *cache, int64_t n, const int64_t *from);
ATT_API int64_t att_cache_sequences(const att_cache *cache);
/* Tokens of a sequence; -1 where there is no such one. */
ATT_API int64_t att_cache_length(const att_cache *cache, int64_t sequence);
/* Bytes of memory that it has, with what is free for tokens that are yet to come. */
ATT_API size_t att_cache_bytes(const att_cache *cache);

/* What one pass of a plan, forward or backward, does and will cost. A part of att_plan_info. */
typedef struct att_pass_info { /* stays as it is */
    const char *kernel; /* forward "flash-forward", or "decode" for few queries; backward "flash-backward", or NULL with
                           a cache, through which there is no backward: then the rest is 0 */
    const char *why;    /* why this kernel, in words, until the calling thread describes again */
    int q_block, k_block; /* the tile: queries by keys */
    size_t workspace;     /* bytes that a call takes, over all threads; backward, for dq, dk and dv */
    double flops; /* per attended pair of tiles, forward 2 (head_dim + value_dim), backward 6 head_dim + 4 value_dim;
                     args NULL: 0 */
} att_pass_info;
/* Of a plan, or of one call of it. */
typedef struct att_plan_info {
    size_t size;
    const char *isa; /* "avx512" */
    double skipped;  /* share of tiles that masks make empty; args NULL: 0 */
    double bytes;    /* of q, k, v, out and lse, each once; args NULL: 0 */
    att_pass_info forward, backward;
    int64_t heads, kv_heads, head_dim, key_dim, value_dim; /* of the spec, defaults filled in */
    int n_params;                                          /* of args.param */
} att_plan_info;
/* Reports it before anything runs. args or NULL: of no call, see above. */
ATT_API att_status att_plan_describe(const att_plan *plan, const att_attention_args *args, att_plan_info *info);
/* A parameter that calls of a plan give. */
typedef struct att_plan_parameter_info {
    size_t size;
    const char *stage, *name; /* "general", "W": valid as long as the plan */
    att_dtype dtype;
    bool optional;  /* may be left zero */
    bool of_mask;   /* has no gradient */
    int rank;       /* 0: its shape depends on the call; else one per head, [heads, ...] or [1, ...] */
    int64_t dim[3]; /* -1: any */
} att_plan_parameter_info;
/* Parameter i, in the order of args.param. Errors: i out of range. */
ATT_API att_status att_plan_parameter(const att_plan *plan, int i, att_plan_parameter_info *info);

/* ---- 5 Measure ---------------------------------------------------------- */

/* The machine's own limits, measured now (a few tenths of a second), with the context's threads: the best of several
 * runs. Multiply-adds in registers count 2 operations each; their runs take `seconds`, from 0.003 to 0.1, which should
 * be about as long as the work that is compared with them: what else a machine does leaves few milliseconds alone. */
ATT_API att_status att_measure_peak(att_ctx *ctx, double seconds, double *flops_per_second);
ATT_API att_status att_measure_bandwidth(att_ctx *ctx, double *bytes_per_second); /* reading memory */

#ifdef __cplusplus
}
#endif
#endif
