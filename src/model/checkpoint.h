/* The tensors of a model's files by our names, which are mapped to those of the files. */
#ifndef ATT_MODEL_CHECKPOINT_H
#define ATT_MODEL_CHECKPOINT_H

#include "attend_model.h"
#include "attend_nn.h"
#include "attend_util.h"
#include "io/file.h"
#include "model/gguf_model.h"

/* A row of a model's table of names; '*' stands for the same number in both. If several rows match our name, the first
 * whose tensor exists counts. The table ends with {0}. */
typedef struct att_checkpoint_name {
    const char *ours, *theirs;
} att_checkpoint_name;
/* The rows of a linear layer. */
#define ATT_CHECKPOINT_LINEAR(ours, theirs)                                                                            \
    {ours ".weight", theirs ".weight"}, { ours ".bias", theirs ".bias" }

enum { ATT_CHECKPOINT_NAME = 128 };
/* Writes prefix and the row's name in files, with the number of our `name`, if that matches the row -> theirs
 * (checkpoint_names.c). */
bool att_checkpoint_translate_row(const att_checkpoint_name *row, const char *prefix, const char *name,
                                  char theirs[ATT_CHECKPOINT_NAME]);
/* Maps our `name` by the first row that matches -> theirs; false: none. */
bool att_checkpoint_translate(const att_checkpoint_name *names, const char *prefix, const char *name,
                              char theirs[ATT_CHECKPOINT_NAME]);
/* Writes the name in a .gguf file of this architecture of a tensor of a folder; false: none. (gguf_weights.c) */
bool att_gguf_weight_name(const char *architecture, const char *theirs, char name[ATT_CHECKPOINT_NAME]);

typedef struct att_checkpoint_file {
    char path[ATT_MAX_PATH];
    att_safetensors *data;
} att_checkpoint_file;

typedef struct att_checkpoint_entry {
    const char *name;
    const att_checkpoint_file *file; /* NULL: its value is in weights */
    const att_tensor *value;
} att_checkpoint_entry;

typedef struct att_checkpoint {
    att_ctx *ctx;
    char path[ATT_MAX_PATH]; /* of the file that lists all tensors, for messages */
    const att_checkpoint_name *names;
    const att_checkpoint_name *more_names; /* of parameters that are added to those of the model's kind; or NULL */
    const char *prefix;                    /* optional prefix of all of their names: "bert." */
    att_checkpoint_file *file;             /* [files]; space for all is there from the start */
    int64_t files;
    att_gguf *gguf; /* weights may be in its memory */
    att_gguf_weights weights;
    att_checkpoint_entry *entry; /* [count], sorted by name */
    bool *used;                  /* [count]: whether tensor i was requested */
    int64_t count;
    char ours[ATT_CHECKPOINT_NAME]; /* of an added one: what our names of its parameters begin with */
    struct att_checkpoint *next;    /* the one that was added before; or NULL */
} att_checkpoint;

/* Opens FOLDER/model.safetensors, or the files that FOLDER/model.safetensors.index.json lists; names NULL: names in the
 * files are ours. If there are only other formats, the error states how to convert them. */
att_status att_checkpoint_open(att_ctx *ctx, const char *folder, const att_checkpoint_name *names, const char *prefix,
                               att_checkpoint **out);
/* Opens a .gguf file, which the checkpoint then owns, even after an error. */
att_status att_checkpoint_open_gguf(att_ctx *ctx, att_gguf *g, const att_checkpoint_name *names, const char *prefix,
                                    att_checkpoint **out);
/* Opens what FOLDER/model.safetensors.index.json lists (shards.c). */
att_status att_checkpoint_open_shards(att_checkpoint *c, const char *folder);
/* Adds another folder's files: parameters whose names begin with `ours` are their tensors, whose names follow that.
 * All functions on c but att_checkpoint_get are about these, too. */
att_status att_checkpoint_add(att_checkpoint *c, const char *ours, const char *folder);
/* The path of the file that lists the tensor for our `name` */
const char *att_checkpoint_path(const att_checkpoint *c, const char *name);
/* The tensors are then no longer valid. NULL is allowed. */
void att_checkpoint_close(att_checkpoint *c);
/* Loads a parameter: serves as `load` of att_nn_params_config, with the checkpoint as its user. */
att_status att_checkpoint_load(void *checkpoint, const char *name, int rank, const int64_t *dim, att_tensor *out);
/* Returns tensor i of c->entry, as it is in the file. */
att_status att_checkpoint_get(const att_checkpoint *c, int64_t i, att_tensor *out);
/* Returns which memory has p, a pointer into a tensor. */
att_memory att_checkpoint_memory(const att_checkpoint *c, const void *p);
/* A parameter that is a part of a tensor: its rows [first, first + dim[0]) of `whole`; transposed: of the tensor's
 * transpose. */
typedef struct att_checkpoint_part {
    int64_t whole, first;
    bool transposed;
} att_checkpoint_part;
/* Loads a part of a tensor of rank 1 or 2, as att_checkpoint_load loads a tensor. */
att_status att_checkpoint_load_part(att_checkpoint *c, const char *name, int rank, const int64_t *dim,
                                    att_checkpoint_part part, att_tensor *out);
/* Returns how many numbers all tensors of the file have. */
int64_t att_checkpoint_numbers(const att_checkpoint *c);
/* Returns whether the file has a tensor for our `name`. */
bool att_checkpoint_has(const att_checkpoint *c, const char *name);
/* Returns an error if the file has both our "embedding.weight" and "head.weight", and they differ: then one must not
 * stand for both.
 */
att_status att_checkpoint_check_tied(const att_checkpoint *c);
/* Sends a note (att_note) if there are tensors that were not requested and whose names do not begin with an entry of
 * `unused` (ends with NULL; '*' stands for a number): as in `transformers`, such a model is used without them. For a
 * .gguf file returns an error, as llama.cpp does. */
att_status att_checkpoint_all_used(const att_checkpoint *c, const char *const *unused);

#endif
