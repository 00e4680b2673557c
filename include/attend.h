/* attend.h - attention and what surrounds it, in C.
 *
 *   att_ctx     what a program opens once: threads, memory, instruction set
 *   att_tensor  a view of the caller's numbers: dtype, dimensions, strides
 *   att_plan    attention with its score, modifiers and masks chosen
 *
 * Chapters: 1 Context, 2 Tensors, 3 Operations on tensors, 4 Plan, 5 Measure. Other headers:
 *   attend_extend.h     scores, modifiers and masks of your own
 *   attend_learn.h      variables, parameters, operations with gradients
 *   attend_optimizer.h  optimizers, learning rates
 *   attend_nn.h         layers: of a Transformer, recurrent, convolutions
 *   attend_vectors.h    embeddings in fewer bits, search among them
 *   attend_util.h       what libraries on top need
 * and those of libattend_model:
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
 * - A call that can fail returns att_status; att_error() then returns one sentence that names the argument and both
 *   values. Nothing is written before all arguments have been checked. The library never exits, prints or aborts.
 * - A pointer may be NULL where its comment states it, as in "cfg or NULL: ..." or "bias [out] or NULL", and so may an
 *   array [n] if n is 0. Any other NULL is an error. A call that returns att_status then returns ATT_ERR_ARGUMENT, and
 *   the sentence names the pointer. A call that returns a pointer returns NULL, one that returns a count 0, one that
 *   returns an index -1, and one that returns nothing does nothing, so functions that free accept NULL. After any error
 *   *out is NULL.
 * - Option structs start with their size and take zero as the sensible default:
 *       att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2));
 *   In C++: att_config cfg = {}; cfg.size = sizeof cfg; cfg.n_threads = 2;
 *   Structs that a call fills are given with their size too: att_plan_info info = {.size = sizeof info};
 *   So a program and a library may be of different versions: fields that one of them does not know are zero; an
 *   option that is set and not known is an error, and so is a size of 0. Structs that callbacks get begin with their
 *   size, too: a field after that is of a newer header than the library.
 * - A pointer in a struct that the caller passes is marked by how long it, and what it points to, must exist. [call]:
 *   until the call returns. [object]: until the object that the call makes is freed, or for calls on a tape, until the
 *   tape's reset.
 * - Structs that calls fill and that have no size, many of them in arrays, have room for later versions: fields named
 *   `reserved` are zero and may become fields that the function that frees the struct also frees. Other structs do not
 *   change: see docs/API.md. Arrays in structs that a call filled are memory of the context. The caller may keep such
 *   an array by setting its pointer to NULL, and frees it by att_free(ctx, p).
 * - Shapes are written [batch, heads, time, dim]; strides count elements.
 * - In every mask, true means that the pair attends.
 * - Callbacks run on the calling thread, during the call, and must return: neither longjmp nor an exception may leave
 *   them. They may call the library, but must not free or change what the call uses. Some run on any thread, and on
 *   several at once: the functions of scores, modifiers and masks, the bodies of att_parallel_for, and an allocator's
 *   functions. Those of an allocator must not call the library.
 *
 * Threads: several threads may use an att_ctx or att_plan at once; the error text belongs to the calling thread.
 * Closing or freeing must not overlap with use.
 *
 * Stacks: a call uses less than 96 KiB of the calling thread's stack, with the additive score or bf16 less than 256
 * KiB; so do bodies on the threads of a host's parallel_for. A context's own threads have enough, whatever the
 * process's limit is.
 *
 * fork: the child can use and free what the parent has made, even if other threads of the parent were computing. In the
 * child a context starts its own threads, as many as in the parent, when it first needs them. If the system refuses
 * some, calls run on fewer threads, and att_threads returns how many. Results that another thread was writing when the
 * process forked are incomplete in the child.
 *
 * Bits: on one instruction set a result has the same bits for any number of threads, and a sequence's result does not
 * depend on what else is in its batch. The sign and payload of a NaN are exempt: only its being a NaN is the same.
 */
#ifndef ATTEND_H
#define ATTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* Helpers of the macros below, whose temporaries live until the end of the full expression. */
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

/* Makes an option struct with named fields: ATT_OPTIONS(att_config, .n_threads = 2). In C++20 it works inside functions
 * only, and fields must be in the order of the struct. */
#ifdef __cplusplus /* g++ warns about fields without a value; here they are meant to be zero */
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

/* The codes, names and messages of att_status are made from one list. */
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
ATT_API const char *att_version(void);             /* version of the running library; ATT_VERSION is the header's */

typedef struct att_ctx att_ctx;

/* The caller's memory allocator. alloc returns memory aligned to `alignment` (a power of two, at least 64) or NULL.
 * Several threads may call both functions at once. */
typedef struct att_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*free)(void *user, void *p);
    void *user;
} att_allocator;

/* The caller's own thread pool: it calls body(arg, i) once for each i in [0, n), in any order, on any threads, and
 * returns when all are done. */
typedef void (*att_parallel_fn)(void *user, int n, void (*body)(void *arg, int i), void *arg);

/* Receives a sentence about something that is not an error but that a user should know, for example that a file has
 * tensors that its model does not use. The text is valid during the call. */
typedef void (*att_note_fn)(void *user, const char *text);

/* Receives the share of a call's work that is done: above 0, never decreasing, and 1 at the end. If it returns false,
 * even at the end, the call returns ATT_ERR_CANCELLED and writes no file. The thread that called the library calls it
 * between batches of work. It may call the library, but must not close or free what the call uses, and must return. */
typedef bool (*att_progress_fn)(void *user, double share);
/* The options of calls that have no others. NULL: none. */
typedef struct att_call_options {
    size_t size;
    att_progress_fn progress; /* [call] or NULL */
    void *user;               /* [call] */
} att_call_options;

typedef struct att_config {
    size_t size;                  /* sizeof(att_config); ATT_OPTIONS fills it */
    int n_threads;                /* 0: as many as the process may use (affinity, cgroup quota) */
    const char *isa;              /* [call] or NULL: $ATTEND_ISA, else the best here; "scalar" "avx2" "avx512"
                                   * "avx512bf16" "amx" "neon" */
    att_allocator allocator;      /* all zero: the C library's */
    att_parallel_fn parallel_for; /* [object] or NULL: the context's own pool of n_threads */
    void *parallel_user;          /* [object] */
    const volatile int *cancel;   /* [object] or NULL: a flag that makes long calls of all threads return
                                   * ATT_ERR_CANCELLED while it is not zero; see att_cancel_by. It is read atomically,
                                   * by other threads as well */
    att_note_fn note;             /* [object] or NULL */
    void *note_user;              /* [object] */
} att_config;

/* Opens a context. cfg or NULL: all defaults. */
ATT_API att_status att_open(att_ctx **out, const att_config *cfg);
/* Closes a context and joins its threads. Everything that was made with it must be freed before. */
ATT_API void att_close(att_ctx *ctx);
/* Returns the calling thread's last error sentence, "" before the first. ctx or NULL (after a failed att_open). */
ATT_API const char *att_error(const att_ctx *ctx);
/* Returns the system's error number (errno) of the calling thread's last error, such as ENOENT if its sentence ends
 * with "No such file or directory"; 0 if the error is not ATT_ERR_IO or ATT_ERR_SYSTEM, or has another reason. */
ATT_API int att_error_number(void);
/* Returns how many threads a context uses, and the name of its instruction set, such as "avx512". */
ATT_API int att_threads(const att_ctx *ctx);
ATT_API const char *att_isa(const att_ctx *ctx);
/* Sets the number of threads of later calls: from 1 to the number with which the context was opened; 0: all of these.
 * Results have the same bits. Calls that are running keep their threads, so other threads may compute in the context
 * meanwhile. Unused threads of the context sleep rather than end, and memory per thread is still allocated for all of
 * them. */
ATT_API att_status att_set_threads(att_ctx *ctx, int n);
/* Sets a flag that cancels long calls of the calling thread, in any context, in addition to the context's own flag:
 * while it is not zero, they return ATT_ERR_CANCELLED. Calls of other threads are not cancelled, but the parallel
 * bodies of a cancelled call are, on any thread. The flag is used until this thread's next att_cancel_by. flag or NULL:
 * none. Returns the previous flag or NULL, so that the caller can restore it:
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
    ATT_I8 = 9,   /* an integer from -128 to 127, without a scale; of weights and tables, which may have this type */
    /* Quantized types, as in .gguf files (ggml): blocks of 32 numbers along the last dimension, or of 256 if the name
     * ends in K or XS. A number is d q + m: d, and m in types named _1, Q2_K, Q4_K and Q5_K, of 16 or 32 numbers, q an
     * integer with the bits of the name, in IQ4 one of 16 steps. Weights of att_linear and of the operations on its
     * logits (argmax, topk, cross entropy) and tables of att_embedding may have these types. */
    /* clang-format off */
    ATT_Q8_0 = 6, ATT_Q5_0 = 10, ATT_Q5_1 = 11, ATT_Q4_0 = 7, ATT_Q4_1 = 8, ATT_IQ4_NL = 17, /* blocks of 32 */
    ATT_Q6_K = 16, ATT_Q5_K = 15, ATT_Q4_K = 14, ATT_Q3_K = 13, ATT_Q2_K = 12, ATT_IQ4_XS = 18 /* of 256 */
    /* clang-format on */
} att_dtype;

/* A view of the caller's memory. A tensor of zeros (data NULL) stands for one that is not given. */
typedef struct att_tensor {
    void *data;
    att_dtype dtype;
    int rank;
    int64_t dim[ATT_MAX_RANK];
    int64_t stride[ATT_MAX_RANK]; /* in elements; 0 repeats. Quantized: the last is 1, the others are in whole blocks */
} att_tensor;

ATT_API const char *att_dtype_name(att_dtype t); /* "f32" */
ATT_API size_t att_dtype_size(att_dtype t);      /* bytes of one element; 0 if t is quantized or is not a dtype */
/* Returns how many numbers a block has: 1 if t is not quantized, 0 if it is not a dtype. */
ATT_API int64_t att_dtype_block(att_dtype t);
/* Returns the bytes of n elements of the last dimension, n a multiple of the block. 0 if t is not a dtype. */
ATT_API int64_t att_dtype_bytes(att_dtype t, int64_t n);

/* Makes a view. stride or NULL: dense, last dimension contiguous. data or NULL: only its shape.
 * Errors: rank not in [0, ATT_MAX_RANK], negative dimension, sizes that overflow. */
ATT_API att_status att_wrap(att_tensor *out, void *data, att_dtype dtype, int rank, const int64_t *dim,
                            const int64_t *stride);
/* Stands for the arguments rank and dim of att_wrap: att_wrap(&q, p, ATT_F32, ATT_DIMS(2, 8, 128, 64), NULL). */
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
/* Computes the matrix product out[M, N] = a[M, K] b[K, N]. Tensors are f32, with any strides; out overlaps neither a
 * nor b. options or NULL: defaults. */
ATT_API att_status att_tensor_matmul(att_ctx *ctx, const att_tensor *a, const att_tensor *b,
                                     const att_matmul_options *options, const att_tensor *out);
/* Computes out = softmax of x over dimension `dim`, where a negative dim counts from the end. The maximum is subtracted
 * first. Both are f32 of the same shape; out may be x. A slice that is all -inf gives zeros. */
ATT_API att_status att_tensor_softmax(att_ctx *ctx, const att_tensor *x, int dim, const att_tensor *out);
/* Computes out[M, N], the cosine of each row of a[M, D] with each row of b[N, D]; a zero row gives 0. All are f32. */
ATT_API att_status att_tensor_cosine(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out);
/* Copies x to out, converted to out's type, in the same shape. f32, f16, bf16 and quantized types can be converted to
 * one another, and i8 to them, but not to Q2_K, Q3_K and IQ4 types; other types must be equal. Rounding is to nearest
 * even. Quantization to blocks of 32 is that of ggml's reference, to blocks of 256 by least squares (quantize_k.c); a
 * number that is not finite makes the d of its block NaN. Strides are free; x and out must not overlap. */
ATT_API att_status att_tensor_convert(att_ctx *ctx, const att_tensor *x, const att_tensor *out);

/* ---- 4 Plan: attention -------------------------------------------------- */
/* out = softmax(modifiers(score(q, k)), masked) v            (Vaswani et al. 2017, eq. 1)
 *
 * A spec has what changes the computation; a plan is made from it once. The args have what changes from call to call
 * (pointers, lengths, offsets). Memory is linear in the lengths: a [Tq, Tk] array exists only for weights. */

typedef struct att_plan att_plan;
typedef struct att_cache att_cache;
typedef struct att_score att_score;       /* computes the score of a query and a key */
typedef struct att_modifier att_modifier; /* changes scores */
typedef struct att_mask att_mask;         /* which pairs attend */
/* Programs can define their own as constants of these types: see attend_extend.h. */

/* q . k (Luong et al. 2015); spec.scale 0 = 1 / sqrt(head_dim) (Vaswani et al. 2017) */
ATT_API extern const att_score *const att_score_dot;
/* q W k. Parameter: W [heads or 1, head_dim, key_dim] (Luong et al. 2015) */
ATT_API extern const att_score *const att_score_general;
/* v . tanh(q + k). Parameter: v [heads or 1, head_dim] (Bahdanau et al. 2015). With spec.score_dim = A it also projects
 * queries and keys: v . tanh(Wq q + Wk k). Parameters: v [heads or 1, A], Wq [heads or 1, A, head_dim], Wk [heads or 1,
 * A, key_dim]. It stores nothing of size Tq Tk A. */
ATT_API extern const att_score *const att_score_additive;
/* q . k / (|q| |k|), a zero row gives 0 */
ATT_API extern const att_score *const att_score_cosine;

/* s + bias. Parameter: bias, each dimension 1 or that of [B, heads, Tq, Tk]; for ragged calls Tq and Tk are the longest
 * lengths */
ATT_API extern const att_modifier *const att_modifier_bias;
/* s times value[0] */
ATT_API extern const att_modifier *const att_modifier_scale;
/* c tanh(s / c), c = value[0] (Gemma Team 2024) */
ATT_API extern const att_modifier *const att_modifier_softcap;
/* s - slope |key position - query position|; needs spec.align. Parameter: slopes [heads or 1] (Press et al. 2022) */
ATT_API extern const att_modifier *const att_modifier_alibi;
/* s + table[bucket of key position - query position]; needs spec.align. value[0]: all distances from this one on share
 * the last bucket. Parameter: table [heads or 1, buckets] (T5, Raffel et al. 2020). Half of the buckets are for keys
 * after the query; in the causal one all buckets are for keys before it. */
ATT_API extern const att_modifier *const att_modifier_relative;
ATT_API extern const att_modifier *const att_modifier_relative_causal;
/* Adds a score that has no value to each row's softmax; at most one in a spec. Parameter: sinks [heads or 1] (gpt-oss,
 * OpenAI 2025) */
ATT_API extern const att_modifier *const att_modifier_sink;

/* key position <= query position; needs spec.align */
ATT_API extern const att_mask *const att_mask_causal;
/* value[0] keys before the query's position and value[1] after it, -1 = unbounded; needs spec.align (Beltagy et al.
 * 2020) */
ATT_API extern const att_mask *const att_mask_window;
/* Query and key attend if they have the same id. Parameters, i32: q_documents, batched [B or 1, Tq], ragged [tokens],
 * and k_documents, batched [B or 1, Tk], ragged [tokens], which may be left zero if keys and queries are the same
 * tokens. Ascending ids are faster. */
ATT_API extern const att_mask *const att_mask_document;
/* Parameter: mask, bool, true = attend; each dimension 1 or that of [B, heads, Tq, Tk] */
ATT_API extern const att_mask *const att_mask_boolean;

/* One stage of a spec, a modifier or a mask; the other pointer is NULL. */
typedef struct att_stage {
    const att_modifier *modifier;
    const att_mask *mask;
    double value[2]; /* for stages that use values: see each stage */
} att_stage;
/* att_score_find and att_stage_find find one of the above by its name, such as "dot", "softcap", "causal"; values of
 * the stage are 0. If there is none, the error sentence lists all names. att_score_name and att_stage_name return the
 * name of score or stage i, and NULL if i is out of range. */
ATT_API att_status att_score_find(const char *name, const att_score **out);
ATT_API att_status att_stage_find(const char *name, att_stage *out);
ATT_API const char *att_score_name(int i);
ATT_API const char *att_stage_name(int i);
/* Fills in stage and n_stages in the braces of a spec: ATT_STAGES({.modifier = att_modifier_softcap, .value = {30}},
 * {.mask = att_mask_causal}) */
#define ATT_STAGES(...)                                                                                                \
    .stage = (const att_stage[]){__VA_ARGS__},                                                                         \
    .n_stages = (int)(sizeof((const att_stage[]){__VA_ARGS__}) / sizeof(att_stage))

/* The positions of the queries among the keys. Every stage that depends on distance needs it, and there is no
 * default. */
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
    int64_t score_dim; /* of the projections in att_score_additive; 0: queries and keys are given projected */
    att_dtype dtype;   /* of q, k, v, out and their gradients: ATT_F32, ATT_F16 or ATT_BF16; sums are in f32. With
                        * ATT_BF16 on avx512bf16 and amx, the forward rounds the weights to bf16 in sequences of more
                        * than a few queries */
    const att_score *score; /* [call] or NULL: att_score_dot */
    float scale;            /* of the score; 0 = 1 / sqrt(head_dim) for dot, 1 for others */
    const att_stage *stage; /* [call] [n_stages]: modifiers are applied in this order; a pair attends if all masks allow
                             * it */
    int n_stages;           /* at most 16, and at most 16 parameters in all */
    att_align align;
    float dropout; /* 0 <= p < 1: see att_attention_args.dropout_seed */
} att_attention_spec;

/* The arguments of a call, either batched, tensors of rank 4:
 *     q [B, heads, Tq, head_dim]  k [B, kv_heads, Tk, head_dim]  v [B, kv_heads, Tk, value_dim]
 *     out [B, heads, Tq, value_dim]  lse [B, heads, Tq]
 * or ragged, all sequences one after the other, with q_offsets and k_offsets:
 *     q [tokens, heads, head_dim]  k, v [tokens, kv_heads, dim]  out [tokens, heads, value_dim]  lse [tokens, heads]
 * The last dimension is contiguous, all other strides are free. out and lse overlap nothing else. */
typedef struct att_attention_args {
    size_t size;
    att_tensor q, k, v, out;
    att_tensor lse;           /* optional: natural log-sum-exp of each row's scores, f32 */
    int64_t n_sequences;      /* ragged: B; batched: 0 */
    const int64_t *q_offsets; /* [call] ragged: [B + 1], ascending from 0: sequence b is rows [q_offsets[b],
                               * q_offsets[b + 1]) */
    const int64_t *k_offsets; /* [call] ragged: [B + 1], or NULL: q_offsets */
    const int64_t *q_lengths; /* [call] batched: [B] or NULL, rows used of Tq; the rows after them become 0 */
    const int64_t *k_lengths; /* [call] batched: [B] or NULL, keys used of Tk */
    const int64_t *q_starts;  /* [call] [B] for ATT_ALIGN_STARTS */
    /* [n_params]: the parameters of the score, then those of the stages in their order; see each of these. Optional
     * parameters may be all zero, and the last ones may be left out. */
    const att_tensor *param; /* [call] */
    int n_params;
    /* With spec.dropout = p (Srivastava et al. 2014), a weight becomes 0 with probability p, and otherwise 1 / (1 - p)
     * times as much, so that the expected output does not change; lse is without dropout. The choice depends only on
     * this seed, the sequence's id, the head and the absolute positions of query and key (modulo 2^32), not on threads,
     * batch or instruction set. Philox4x32-10 (Salmon et al. 2011) with
     *     key (low, high word of the seed), counter (query, key / 4, head of q, sequence id)
     * makes four words, and a weight is kept if word key % 4 >= round(p 2^32). Backward needs the seed and ids of the
     * forward. Dropout sets a weight to 0 but does not mask its key: NaN and Inf in the value still reach all rows that
     * attend to it. */
    uint64_t dropout_seed;
    const uint32_t *sequence_ids; /* [call] [B], needed if p > 0: dropout identifies sequences by these, not by their
                                   * order */
    const att_cache *cache; /* [call] if set, it has keys, values and their lengths, so k, v, k_lengths and k_offsets
                             * are left zero */
} att_attention_args;

/* Fills in param and n_params in the braces of args: ATT_PARAMS(w, slopes) */
#define ATT_PARAMS(...)                                                                                                \
    .param = (const att_tensor[]){__VA_ARGS__},                                                                        \
    .n_params = (int)(sizeof((const att_tensor[]){__VA_ARGS__}) / sizeof(att_tensor))

/* Makes a plan; att_plan_free frees it. Errors name the field of the spec. */
ATT_API att_status att_plan_new(att_ctx *ctx, const att_attention_spec *spec, att_plan **out);
ATT_API void att_plan_free(att_plan *plan);
/* Makes a copy of a plan with n more stages [n] after its own; their parameters follow those of the plan. A program can
 * thus add a mask to a plan that a model has made (att_tape_config.before_attend). The original may be freed first.
 * Errors: those of att_plan_new. */
ATT_API att_status att_plan_with(const att_plan *plan, const att_stage *stages, int n, att_plan **out);
/* Frees the scratch memory that the plan keeps between calls: up to 8 MiB for each of up to 8 calls that ran at once.
 * The next call allocates it again. Other threads may compute with the plan meanwhile. */
ATT_API void att_plan_trim(const att_plan *plan);

/* Computes out (and lse, if given) for all queries. If a query attends to no key, its row is 0 and its lse -inf. */
ATT_API att_status att_forward(const att_plan *plan, const att_attention_args *args);

/* Gradients of sum(dout * out) + sum(dlse * lse). dout and dlse are given; the others are written, each in the shape of
 * its tensor, with any strides but a contiguous last dimension. A gradient that is left zero is not computed. None may
 * overlap another tensor. */
typedef struct att_attention_grads {
    size_t size;
    att_tensor dout;
    att_tensor dlse; /* optional: the gradient of lse, in its shape */
    att_tensor dq, dk, dv;
    /* [n_dparams]: gradients of args.param, in their shapes and order, each summed over everything that shares the
     * parameter. One that is all zero or left out at the end is not computed; masks have none. */
    const att_tensor *dparam; /* [call] */
    int n_dparams;
    bool accumulate; /* add to the existing numbers */
} att_attention_grads;
/* Computes gradients (Dao et al. 2022, appendix B). args: those of a forward call, with its out and lse. Memory is
 * linear in the lengths, and the bits are the same for any number of threads. Queries that attend to no key have no
 * gradient. */
ATT_API att_status att_backward(const att_plan *plan, const att_attention_args *args, const att_attention_grads *grads);

/* Makes a plan, computes the forward and frees the plan in one call. */
ATT_API att_status att_attention(att_ctx *ctx, const att_attention_spec *spec, const att_attention_args *args);

/* Computes the attention weights of one head for queries [q_first, q_first + q_count) of one sequence -> weights
 * [q_count, Tk of that sequence]. They are recomputed from q and k and are before dropout; v, out and lse of args are
 * not used. */
ATT_API att_status att_weights(const att_plan *plan, const att_attention_args *args, int64_t sequence, int64_t head,
                               int64_t q_first, int64_t q_count, float *weights);

/* One attention weight and the steps to it, computed in double by the defining formulas. */
typedef struct att_pair_info {
    size_t size;
    double score;          /* of query and key, times spec.scale */
    int n_stages;          /* the plan's */
    const char *stage[16]; /* [n_stages] their names: valid as long as the plan */
    double after[16];   /* [n_stages] the score after each stage, in order; -INFINITY from a mask on that excludes the
                         * pair */
    int masked_by;      /* the index of the first such mask, or -1 */
    double weight;      /* before dropout, as in att_weights: e^(score after all stages - log_sum_exp); 0 if masked */
    double log_sum_exp; /* of the query's scores, with the sink; -INFINITY: nothing attends */
} att_pair_info;
/* Describes the pair of query q and key k of one head of one sequence. It computes the scores of all keys of that
 * query. Arguments are as for att_weights. */
ATT_API att_status att_pair_describe(const att_plan *plan, const att_attention_args *args, int64_t sequence,
                                     int64_t head, int64_t q, int64_t k, att_pair_info *info);

/* Merges attention over two sets of keys (Dao et al. 2022, section 3.1): combines (out, lse) of one set with (out2,
 * lse2) of the other by log-sum-exp, and writes the result to out and lse. out, out2 [..., value_dim], lse, lse2 [...],
 * f32, any strides; out and lse overlap nothing. Only one of the two may have been computed with a sink. */
ATT_API att_status att_merge(att_ctx *ctx, const att_tensor *out, const att_tensor *lse, const att_tensor *out2,
                             const att_tensor *lse2);

/* A cache has the keys and values of sequences, for decoding: tokens can be appended and removed. It grows as needed,
 * and stores keys in the layout that decoding reads fastest. A new token reads the keys and values before it once:
 *     att_cache_new(plan, 1, &cache);
 *     att_attention_args args = {.size = sizeof args, .cache = cache};       // q [1, heads, 1, head_dim], out
 *     while (next_token(&args.q, &k, &v)) {                                  // k, v [1, kv_heads, 1, dim]
 *         att_cache_append(cache, ATT_ALL_SEQUENCES, &k, &v);
 *         att_forward(plan, &args);
 *     }
 * Queries of a call with a cache are batched, or ragged: q [tokens, heads, head_dim] with q_offsets, and with the
 * cache's number of sequences as n_sequences. So one call can have prompts of any lengths and single tokens of other
 * sequences:
 *     att_cache_append_ragged(cache, offsets, &k, &v);                       // k, v [tokens, kv_heads, dim]
 *     args.q_offsets = offsets, args.n_sequences = att_cache_sequences(cache);
 *     att_forward(plan, &args);                                              // q, out [tokens, heads, dim]
 * Bits: in f32 and f16 a query gets the bits of a full pass over all tokens of its sequence, as tensors of the cache's
 * type, however the tokens came into the cache: at once, ragged, one by one, in a copy of a prefix, or after others
 * were removed. This holds for bf16, too, except on sets that round weights to bf16 for more than a few queries (see
 * spec.dtype). There, calls with more than a few queries of a sequence match a full pass, and shorter ones match
 * decoding. In all types a sequence has the same bits in a ragged batch and alone.
 *
 * There is no backward through a cache, and scores that precompute something for each key (cosine; additive with
 * projections) recompute it in each call. If a parameter has a dimension Tk, it is the length of the cache's longest
 * sequence; parameters per key are [B or 1, Tk]. While one thread changes a cache, no other may use it. */
enum { ATT_ALL_SEQUENCES = -1 };
/* Makes a cache for calls of this plan, and of others of its context with the same kv_heads, dimensions and dtype. */
ATT_API att_status att_cache_new(const att_plan *plan, int64_t sequences, att_cache **out);
ATT_API void att_cache_free(att_cache *cache);
/* Appends n tokens to ATT_ALL_SEQUENCES, k [B, kv_heads, n, key_dim] and v [B, kv_heads, n, value_dim], or to one
 * sequence, k [kv_heads, n, key_dim] and v [kv_heads, n, value_dim]. They have spec.dtype, or f32, which is rounded to
 * nearest even. The last dimension is contiguous, other strides are free. After an error the cache is unchanged. */
ATT_API att_status att_cache_append(att_cache *cache, int64_t sequence, const att_tensor *k, const att_tensor *v);
/* Appends a number of tokens to each sequence that may differ and may be 0: sequence b gets rows [offsets[b], offsets[b
 * + 1]) of k [tokens, kv_heads, key_dim] and v [tokens, kv_heads, value_dim]. offsets [B + 1] ascend from 0 to tokens.
 * Types and errors are as for att_cache_append. */
ATT_API att_status att_cache_append_ragged(att_cache *cache, const int64_t *offsets, const att_tensor *k,
                                           const att_tensor *v);
/* Truncates a sequence, or ATT_ALL_SEQUENCES, to `length` tokens. Error: a sequence is shorter. */
ATT_API att_status att_cache_truncate(att_cache *cache, int64_t sequence, int64_t length);
/* Replaces the sequences by n new ones: sequence b becomes a copy of the old sequence from[b], from [n]. It serves beam
 * search, continuing one prefix in n ways (from all 0), adding a sequence (a copy of any, truncated to 0 if it is to be
 * empty) and dropping finished ones. Common tokens share memory, so nothing is copied. When a copy is appended to, only
 * the last page, at most 255 tokens, gets memory of its own. */
ATT_API att_status att_cache_select(att_cache *cache, int64_t n, const int64_t *from);
ATT_API int64_t att_cache_sequences(const att_cache *cache);
/* Returns the number of tokens of a sequence; -1 if there is no such sequence. */
ATT_API int64_t att_cache_length(const att_cache *cache, int64_t sequence);
/* Returns the bytes of memory of a cache, including what is reserved for further tokens. */
ATT_API size_t att_cache_bytes(const att_cache *cache);

/* The work and the cost of one pass of a plan, forward or backward. It is a part of att_plan_info. */
typedef struct att_pass_info { /* stays as it is */
    const char *kernel; /* forward "flash-forward", or "decode" for few queries; backward "flash-backward", or NULL with
                           a cache, through which there is no backward: then the rest is 0 */
    const char *why;    /* why this kernel, in words; valid until the calling thread's next att_plan_describe */
    int q_block, k_block; /* the tile: queries by keys */
    size_t workspace;     /* bytes that a call allocates, for all threads; backward: for dq, dk and dv, and 8 more for
                           * each row of out if any lse is beyond 1024 or -1024 */
    double flops; /* for each pair in tiles that are not empty: forward 2 (head_dim + value_dim), backward 6 head_dim +
                   * 4 value_dim; args NULL: 0 */
} att_pass_info;
/* Describes a plan, or one call of it. */
typedef struct att_plan_info {
    size_t size;
    const char *isa; /* "avx512" */
    double skipped;  /* share of tiles that are empty because of masks; args NULL: 0 */
    double bytes;    /* bytes of q, k, v, out and lse together; args NULL: 0 */
    att_pass_info forward, backward;
    int64_t heads, kv_heads, head_dim, key_dim, value_dim; /* of the spec, with defaults filled in */
    int n_params;                                          /* of args.param */
} att_plan_info;
/* Describes what a call with these args will do, without running it. args or NULL: describes the plan alone. */
ATT_API att_status att_plan_describe(const att_plan *plan, const att_attention_args *args, att_plan_info *info);
/* A parameter of a plan's calls, an element of args.param. */
typedef struct att_plan_parameter_info {
    size_t size;
    const char *stage, *name; /* "general", "W": valid as long as the plan */
    att_dtype dtype;
    bool optional;  /* may be left zero */
    bool of_mask;   /* has no gradient */
    int rank;       /* 0: the shape depends on the call; otherwise it is per head, [heads, ...] or [1, ...] */
    int64_t dim[3]; /* -1: any */
} att_plan_parameter_info;
/* Describes parameter i, in the order of args.param. Errors: i out of range. */
ATT_API att_status att_plan_parameter(const att_plan *plan, int i, att_plan_parameter_info *info);

/* ---- 5 Measure ---------------------------------------------------------- */

/* These measure the machine's own limits with the context's threads, as the best of several runs, which takes a few
 * tenths of a second. att_measure_peak counts 2 operations for each multiply-add in registers. Each of its runs takes
 * `seconds`, from 0.003 to 0.1, which should be about as long as the work that is compared with the peak: shorter runs
 * would find moments that other load on the machine leaves undisturbed. */
ATT_API att_status att_measure_peak(att_ctx *ctx, double seconds, double *flops_per_second);
ATT_API att_status att_measure_bandwidth(att_ctx *ctx, double *bytes_per_second); /* for reading memory */

/* What multiplies numbers of a type: f32; pairs of bf16 and fours of int8 in vectors, with avx512bf16 and amx; and
 * these in tiles, with amx. att_measure_peak measures f32; the others multiply random numbers, as zeros are multiplied
 * at a higher clock. */
typedef enum att_unit { ATT_UNIT_F32, ATT_UNIT_BF16, ATT_UNIT_INT8, ATT_UNIT_BF16_TILES, ATT_UNIT_INT8_TILES } att_unit;
ATT_API const char *att_unit_name(att_unit u); /* "f32", "bf16", "int8", "bf16 tiles", "int8 tiles"; NULL: not one */
/* Measures the peak of a unit as att_measure_peak does, 2 operations for each product that is added. Errors: unit is
 * not an att_unit; ATT_ERR_UNSUPPORTED: the context's instruction set has no such unit, or the system refuses tiles. */
ATT_API att_status att_measure_unit(att_ctx *ctx, att_unit unit, double seconds, double *operations_per_second);

#ifdef __cplusplus
}
#endif
#endif
