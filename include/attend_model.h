/* attend_model.h - what all models have in common, on top of attend_nn.h and attend_text.h.
 *
 * Chapters: 1 Weights, 2 Models by name, 3 Models of any kind. Each subject has a header: attend_language.h,
 * attend_sentence.h, attend_text_classifier.h, attend_translate.h, attend_vision.h, attend_caption.h,
 * attend_recommend.h; attend_train.h is on their trainings.
 *
 * A model is a folder in the format in which it is published. Settings are read from it, never assumed: an unsupported
 * setting is an error that names it. Files are validated completely before any of their content is used. attend.h
 * states how arguments that may be NULL are marked.
 *
 * Names: *_open opens a model for inference, *_open_for_training opens it for training, with f32 weights of its own,
 * *_new makes an object from others, *_free frees what *_open, *_open_for_training or *_new returned.
 *
 * Parameters: *_params returns the parameters of a model, by name (attend_nn.h), valid as long as the model. If it was
 * opened for training (att_nn_params_trainable), an optimizer may change them. Parameters of a model for inference must
 * not be changed, and have the types in which they are stored: f32, f16, bf16 or quantized. If m is NULL, the result is
 * NULL.
 *
 * Scopes: all models name the scopes of their operations the same way, for the hook of a tape (attend_learn.h):
 *   encoder                    tokens that attend to all: text encoders, vision Transformers, BERT4Rec, and the
 *                              encoders of translators and captioners
 *   decoder                    tokens that attend to those before them: language models, SASRec, and the decoders
 *                              of translators and captioners
 *   encoder/embeddings         keeps the input of layer 0; in a decoder it is decoder/embeddings
 *   encoder/layer.N            keeps the result of layer N, from 0
 *   encoder/layer.N/attention  keeps the result of this part of the layer, as do its other parts: cross, which
 *                              attends to the source in decoders that have one, and then feed_forward
 *   decoder/cross              a recurrent decoder's attention to its source, once for each token or for all
 * The scopes encoder and decoder keep the hidden states after the last norm, but the decoder of a language model keeps
 * its logits. Recurrent layers and convolutions have no scopes of their own.
 *
 * Threads: a model that was opened for inference is read-only, and many threads may use it at once.
 *
 * Stacks: as attend.h states, a call uses less than 96 KiB of the calling thread's stack, or less than 256 KiB with
 * additive attention, as when training captioners.
 *
 * Process-wide state belongs to the program, and the libraries change none of it:
 * - Memory for JSON is allocated by jansson. Its parser (up to 2.15) does not survive a failed allocation: it loses
 *   characters or writes out of bounds. A program that must survive running out of memory therefore first calls
 *   json_set_alloc_funcs with an allocator that never returns NULL (it ends the process, or has a reserve).
 * - SIGBUS ends the process if a mapped file (att_safetensors_open, att_NAME_open without `copy`) is truncated while in
 *   use. A signal handler of the program may report it; it runs in any thread, including those of the library. */
#ifndef ATTEND_MODEL_H
#define ATTEND_MODEL_H

#include "attend_nn.h"
#include "attend_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Weights ---------------------------------------------------------- */

/* A .safetensors file, memory-mapped. Opening validates it: header length, JSON, duplicate names, dtypes, overlaps,
 * gaps, truncation. The format requires no alignment: tensors that do not begin at a multiple of their type's size are
 * copied. Tensors are valid until att_safetensors_free. While the file is open it may be replaced (by renaming another
 * file to its name), but must not be truncated or overwritten: as with any mapped file, reading truncated pages raises
 * SIGBUS, and new content is visible. */
typedef struct att_safetensors att_safetensors;
ATT_API att_status att_safetensors_open(att_ctx *ctx, const char *path, att_safetensors **out);
ATT_API void att_safetensors_free(att_safetensors *f);
ATT_API int64_t att_safetensors_count(const att_safetensors *f);
/* Returns the name of tensor i in [0, count), in the file's order; NULL if i is out of range. */
ATT_API const char *att_safetensors_name(const att_safetensors *f, int64_t i);
/* Returns the index of the tensor with that name; -1 if there is none. */
ATT_API int64_t att_safetensors_find(const att_safetensors *f, const char *name);
/* Returns the tensor with that name, as a view of the file or of its copy. Error: no such tensor. */
ATT_API att_status att_safetensors_get(const att_safetensors *f, const char *name, att_tensor *out);
/* A tensor of any type of the format, also of one that att_tensor does not have. */
typedef struct att_safetensors_data {
    size_t size;
    const char *type; /* the format's name, such as "BF16" or "F64" */
    int bits;         /* of a number of this type */
    int rank;
    int64_t dim[ATT_MAX_RANK];
    const void *bytes; /* dense, in the file or in its copy */
} att_safetensors_data;
/* Returns the tensor with that name, whatever its type is. Errors: no such tensor; more than ATT_MAX_RANK dimensions.
 */
ATT_API att_status att_safetensors_get_data(const att_safetensors *f, const char *name, att_safetensors_data *out);
/* Returns the value of a key in the header's "__metadata__"; NULL if there is none. */
ATT_API const char *att_safetensors_metadata(const att_safetensors *f, const char *key);
/* Returns key i of "__metadata__", in the order of the file; NULL if i is out of range. */
ATT_API const char *att_safetensors_metadata_key(const att_safetensors *f, int64_t i);
/* Opens a file in memory, for embedding and fuzzing; only tensors that are not aligned are copied. `label` is its path
 * in messages. */
ATT_API att_status att_safetensors_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                                               att_safetensors **out);

typedef struct att_safetensors_options {
    size_t size;
    att_dtype dtype; /* type to which f32 and quantized tensors are converted: ATT_F16 (infinite beyond 65,504),
                      * ATT_BF16; 0: f32 */
    const char *const *metadata; /* [call] [2 n_metadata]: key, value, ...; `transformers` requires "format", "pt" */
    int64_t n_metadata;
} att_safetensors_options;
/* Writes tensors [n] with names [n], of any strides, sorted by descending element size and then by name. The new
 * content is written to a temporary file which replaces the file at path once it is on the disk; until then, and after
 * any error, the old file is intact. (If the disk fails after the replacement, the message states that the new file is
 * in place.) A symbolic link at path is followed. Data is converted in chunks of a few MB. options or NULL: defaults.
 * Errors: a name that is NULL, not UTF-8, duplicate or "__metadata__"; an invalid tensor; anything that the reader
 * would refuse; a folder, a device or a dangling link at path; I/O errors. */
ATT_API att_status att_safetensors_write(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                         const att_tensor *tensors, const att_safetensors_options *options);

/* att_safetensors_load reads a parameter from a file: it serves as `load` of att_nn_params_config, with the
 * att_safetensors as its user. att_safetensors_write_params writes all parameters to a file, as att_safetensors_write
 * does. options or NULL: defaults. */
ATT_API att_status att_safetensors_load(void *file, const char *name, int rank, const int64_t *dim, att_tensor *value);
ATT_API att_status att_safetensors_write_params(att_ctx *ctx, const char *path, const att_nn_params *p,
                                                const att_safetensors_options *options);

/* The type of the matrices of a model for inference. Matrices that have it already stay in the mapped file; others are
 * converted once, when the model is opened. Quantized matrices are multiplied in integers, and the rows that they are
 * multiplied with are also quantized, to 8 bits in blocks of 32: see att_linear. A matrix whose rows are not multiples
 * of 32 keeps its stored type. What other products compute is att_model_options.compute. Errors: quantization, but no
 * matrix has rows of whole blocks; a number that is too large for the type. */
typedef enum att_weight_type {
    ATT_WEIGHT_TYPE_STORED = 0, /* as in the file */
    ATT_WEIGHT_TYPE_F32,
    ATT_WEIGHT_TYPE_F16,
    ATT_WEIGHT_TYPE_BF16,
    ATT_WEIGHT_TYPE_INT8, /* ATT_Q8_0 */
    ATT_WEIGHT_TYPE_INT4  /* ATT_Q4_0 */
} att_weight_type;

/* How att_NAME_open opens a model for inference. NULL: defaults. */
typedef struct att_model_options {
    size_t size;
    att_weight_type weights;
    att_progress_fn progress; /* [call] counts weights, most of whose time is spent on conversion; or NULL */
    void *user;               /* [call] */
    bool prepare; /* make the packed copies of weights when the model is opened instead of at its first use, so that the
                   * first call is as fast as others and allocates nothing for them */
    bool copy;    /* read files into memory of the process instead of mapping them, for example from a network disk:
                   * once the model is open, they may be truncated and overwritten */
    /* Returns the content of a file of the model in *data [*bytes], so that a model is opened without a disk; *data
     * NULL: there is no such file. `name` is relative to the model's path, such as "config.json" or
     * "1_Pooling/config.json"; if the path ends in .gguf, it is that file's own name. The names that are requested
     * depend on the model, and a name may be requested several times. The path only names the model in messages;
     * folders are not listed, so a .gguf file must be opened by its path. Files are checked like those of a disk. The
     * content belongs to the caller, and must exist until the model is freed, or with `copy` until it is open. The
     * thread that opens the model calls this function, which may itself open models. If it returns a status other than
     * ATT_OK, so does the function that opens the model, with the sentence of att_fail (attend_util.h), if it was
     * called. NULL: files come from the disk */
    att_status (*read)(void *user, const char *name, const void **data, size_t *bytes); /* [call] */
    void *read_user;                                                                    /* [call] or NULL */
    /* What products with matrices that are not quantized compute in the model's functions (see att_compute). With
     * `prepare`, the packed copies are those of this type. Functions that get a tape, such as att_vit_apply, compute
     * what that tape does. Error: the instruction set has no products of bf16 */
    att_compute compute;
} att_model_options;

/* How att_NAME_open_for_training opens a model. Its parameters are f32 copies, which an optimizer may update, except
 * frozen ones, which are not copied. */
typedef struct att_trainable_options {
    size_t size;
    /* Names or patterns of parameters that are frozen: see att_nn_params_config. att_NAME_params has the names of a
     * model. Frozen parameters are views of the files, which must not change while the model exists. Dropout applies to
     * their layers as to others; batch normalization whose weight and bias are frozen uses its running statistics
     * without changing them. Error: a pattern matches nothing (the message lists the parts of the model and the most
     * similar names). */
    const char *const *freeze; /* [call] [n_freeze] or NULL: none */
    int64_t n_freeze;
    att_weight_type weights; /* type of frozen matrices, as in att_model_options; 0: as stored */
    att_compute compute;     /* of the model's functions, as in att_model_options; the steps of a training have
                              * att_training_options.compute */
} att_trainable_options;

/* Bytes of a model's weights by type (att_dtype), as stored in its files and as used in computations; att_NAME_weights
 * fills it. A quantized matrix is multiplied with rows that become int8 in blocks, others with rows of f32 or,
 * if compute is bf16, both rounded to that. */
enum { ATT_MAX_DTYPES = 32 }; /* more than there are, so that new ones do not move fields */
typedef struct att_model_weights {
    size_t size;
    int64_t stored[ATT_MAX_DTYPES], used[ATT_MAX_DTYPES];
    /* The memory of the weights in use. `own` is memory of this process, with weights that were converted or read
     * (att_model_options.copy). Others stay in the files, or in the memory that `read` returned. Products with matrices
     * that are not quantized read packed copies, which the first call makes, or opening with `prepare`; the pages of
     * the file are then released. So far these copies have `packed` bytes, also of this process. `mapped` is what calls
     * read in the files, which the system shares between processes. */
    int64_t own, packed, mapped;
    att_compute compute; /* of products with matrices that are not quantized: what ATT_COMPUTE_AUTO has chosen */
} att_model_weights;

/* ---- 2 Models by name --------------------------------------------------- */

typedef struct att_model_path {
    char text[4096]; /* zero-terminated */
} att_model_path;
/* Finds the folder of a model, for the functions that open one. name is tried as these, in this order:
 * - the path of a folder or of a .gguf file;
 * - a name in the models folder, such as "all-MiniLM-L6-v2": $ATTEND_MODELS, else $XDG_DATA_HOME/attend/models, else
 *   $HOME/.local/share/attend/models;
 * - the name of a model that comes with attend: share/attend/models where the program is installed, else `models`
 *   beside the program, else share/attend/models where the library was installed;
 * - OWNER/NAME or OWNER/NAME@REVISION of the Hugging Face Hub, in its cache on this machine (att_hub_find), unless a
 *   file or folder has this path.
 *
 *     att_model_path path;
 *     if (att_model_find("all-MiniLM-L6-v2", &path) || att_sentence_open(ctx, path.text, NULL, &m)) ... att_error(NULL)
 *
 * Errors: no such model (the message lists the available ones); out of memory. */
ATT_API att_status att_model_find(const char *name, att_model_path *out);
/* Returns the path of the models folder, which need not exist. Error: none of the three variables is set. */
ATT_API att_status att_models_folder(att_model_path *out);
/* Calls each(user, name) for the models in the models folder, then for those that come with attend, each in
 * alphabetical order: folders with a config.json, a modules.json or a .gguf file. user or NULL. */
ATT_API att_status att_models_list(void (*each)(void *user, const char *name), void *user);
/* How att_hub_find searches. */
typedef struct att_hub_options {
    size_t size;
    const char *cache; /* [call] a folder; or NULL: that of att_hub_cache */
    bool incomplete;   /* whether a snapshot without weights counts, too; it may have a tokenizer */
} att_hub_options;
/* Finds OWNER/NAME, OWNER/NAME@REVISION or NAME in the cache of the Hugging Face Hub, where huggingface_hub,
 * transformers, `attend fetch` and `hf download` put models: CACHE/models--OWNER--NAME/snapshots/COMMIT. REVISION is a
 * branch, a tag or a commit, default "main". A snapshot counts if it has a .safetensors or .gguf file, and all files of
 * its index. options or NULL: defaults. Errors: no such snapshot (the message has the command that downloads it); not a
 * name that the Hub allows; out of memory. */
ATT_API att_status att_hub_find(const char *name, const att_hub_options *options, att_model_path *out);
/* Returns whether a text is OWNER/NAME or OWNER/NAME@REVISION, in the characters that the Hub allows; NULL: false. */
ATT_API bool att_hub_is_name(const char *text);
/* Returns the path of that cache, which need not exist: $HF_HUB_CACHE, else $HF_HOME/hub, else
 * $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub. Error: none of the variables is set. */
ATT_API att_status att_hub_cache(att_model_path *out);

/* ---- 3 Models of any kind ----------------------------------------------- */

/* The subject whose functions open a model. */
typedef enum att_subject {
    ATT_SUBJECT_NONE = 0,
    ATT_SUBJECT_SENTENCE,  /* att_sentence_* */
    ATT_SUBJECT_TRANSLATE, /* att_translator_* */
    ATT_SUBJECT_LANGUAGE,  /* att_text_generator_* */
    ATT_SUBJECT_VISION,    /* att_image_model_* */
    ATT_SUBJECT_CAPTION,   /* att_caption_model_* */
    ATT_SUBJECT_RECOMMEND, /* att_recommender_* */
    ATT_SUBJECT_CLASSIFIER /* att_text_classifier_* */
} att_subject;
/* Returns what models of a subject are called: "sentence model", "translator", "language model", "vision model",
 * "captioner", "recommender", "text classifier"; ATT_SUBJECT_NONE: "model". */
ATT_API const char *att_subject_name(att_subject subject);

typedef struct att_model_identity {
    size_t size;
    att_subject subject;
    char type[64]; /* "model_type" of config.json, such as "bert", or the architecture of a .gguf file; "timm" for a
                    * folder of timm; "": none */
    char architecture[128]; /* the class, such as "BertModel", or the function of timm; "": none */
} att_model_identity;
/* Identifies a model by its files, without reading weights; path: a folder or a .gguf file. If no subject can open it,
 * the result is ATT_SUBJECT_NONE, not an error. Errors: an adapter of another model; config.json or the .gguf file
 * cannot be read or is damaged (the subject then follows from the names of the files); out of memory. */
ATT_API att_status att_model_identify(att_ctx *ctx, const char *path, att_model_identity *out);

/* A model of any subject, opened for inference, for programs that do not know in advance what a path has. */
typedef struct att_any_model att_any_model;
/* Opens a model by the function of its subject. subject ATT_SUBJECT_NONE: the one that att_model_identify finds.
 * options or NULL: defaults. Errors: those of the subject's function; the subject is not known. */
ATT_API att_status att_any_model_open(att_ctx *ctx, const char *path, att_subject subject,
                                      const att_model_options *options, att_any_model **out);
ATT_API void att_any_model_free(att_any_model *m);
ATT_API att_status att_any_model_describe(const att_any_model *m, att_model_identity *identity);
ATT_API att_status att_any_model_weights(const att_any_model *m, att_model_weights *weights);
/* Returns the model's parameters. Those of a vision Transformer that is the encoder of a captioner are not among them
 * (att_caption_model_encoder). */
ATT_API const att_nn_params *att_any_model_params(const att_any_model *m);
/* Returns the model as the type of this subject: a const att_sentence *, att_translator *, att_text_generator *,
 * att_image_model *, att_caption_model *, att_recommender * or att_text_classifier *, valid as long as m. NULL: it is
 * of another subject. */
ATT_API const void *att_any_model_as(const att_any_model *m, att_subject subject);

#ifdef __cplusplus
}
#endif
#endif
