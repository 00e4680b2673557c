/* Writes a language model as a .gguf file. From a folder it does the reverse of gguf_config.c and gguf_weights.c; from
 * a .gguf file it copies values and tensors, in another type. */
#include "io/gguf_write.h"
#include "language/chat.h"
#include "language/text_generator.h"
#include "model/checkpoint.h"
#include "stack/llama_config.h"
#include "text/gguf_tokenizer_write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY = 128, QUANTIZATION_VERSION = 2 };

typedef struct source {
    att_ctx *ctx;
    const char *model; /* a folder, or a .gguf file */
    att_dtype dtype;
    bool medium; /* as in att_gguf_options */
    bool tied;   /* the embeddings are the output layer */
    int64_t layers;
    att_progress progress;
    att_gguf_writer w;
    att_settings settings; /* config.json, which has the first error */
    att_llama_config c;
    att_gguf_vocabulary vocabulary;
    att_checkpoint *checkpoint;
    char *names;                        /* [tensors, ATT_CHECKPOINT_NAME] */
    float factor[ATT_MAX_HEAD_DIM / 2]; /* the factors of frequencies: rope_freqs.weight */
} source;

/* ---- types */

/* Types of files, with their numbers */
static const struct {
    att_dtype dtype;
    bool medium;
    int number;
} file_types[] = {
    {ATT_F32, false, 0},   {ATT_F16, false, 1},  {ATT_BF16, false, 32}, {ATT_Q8_0, false, 7},  {ATT_Q4_0, false, 2},
    {ATT_Q4_1, false, 3},  {ATT_Q5_0, false, 8}, {ATT_Q5_1, false, 9},  {ATT_Q4_K, false, 14}, {ATT_Q4_K, true, 15},
    {ATT_Q5_K, false, 16}, {ATT_Q5_K, true, 17}, {ATT_Q6_K, false, 18},
};
enum { FILE_TYPES = sizeof file_types / sizeof *file_types };

/* Returns the row of a type of file, FILE_TYPES if there is none. */
static int find_file_type(att_dtype dtype, bool medium)
{
    int i = 0;
    while (i < FILE_TYPES && (file_types[i].dtype != dtype || file_types[i].medium != medium))
        i++;
    return i;
}

/* Returns whether a medium file has more bits for values and inner layers of this layer, as llama.cpp chooses: in the
 * first and the last eighth, and in every third one between. */
static bool has_more_bits(int64_t layer, int64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/* Returns the type of a matrix if its rows are in blocks of it: ATT_Q6_K for the output layer, and more bits for some
 * matrices of layers: values, alone or in one matrix with queries and keys, and the feed-forward output. */
static att_dtype wanted_type(const source *f, const char *name)
{
    const bool output = !strcmp(name, "output.weight") || (f->tied && !strcmp(name, "token_embd.weight"));
    const bool values = strstr(name, ".attn_v.") || strstr(name, ".attn_qkv."), down = strstr(name, ".ffn_down.");
    long long layer;
    if (att_dtype_block(f->dtype) <= 32)
        return f->dtype;
    if (output)
        return ATT_Q6_K;
    if ((!values && !down) || sscanf(name, "blk.%lld.", &layer) != 1)
        return f->dtype;
    if (f->medium && has_more_bits(layer, f->layers))
        return ATT_Q6_K;
    const bool small = !f->medium && f->dtype == ATT_Q4_K && layer < (values ? 4 : f->layers / 8); /* Q4_K_S */
    return small ? ATT_Q5_K : f->dtype;
}

/* Returns the type in the file of a tensor with these dimensions. If its rows are not in whole blocks of the type that
 * is wanted, it is the next larger one with blocks of 32, or F16, as in llama.cpp. */
static att_dtype type_of(const source *f, const char *name, int rank, const int64_t *dim)
{
    if (rank < 2 || strcmp(name, "position_embd.weight") == 0)
        return ATT_F32;
    att_dtype type = wanted_type(f, name);
    if (dim[rank - 1] % att_dtype_block(type) && att_dtype_block(type) > 32)
        type = type == ATT_Q4_K ? ATT_Q5_0 : type == ATT_Q5_K ? ATT_Q5_1 : ATT_Q8_0;
    return dim[rank - 1] % att_dtype_block(type) ? ATT_F16 : type;
}

static void put_type(source *f)
{
    att_gguf_put_int(&f->w, "general.file_type", file_types[find_file_type(f->dtype, f->medium)].number);
    att_gguf_put_int(&f->w, "general.quantization_version", QUANTIZATION_VERSION);
}

/* ---- values of a folder */

static bool is_gpt2(const source *f) { return strcmp(f->c.type, "gpt2") == 0; }

static void put_int(source *f, const char *name, int64_t x)
{
    char key[KEY];
    snprintf(key, sizeof key, "%s.%s", f->c.type, name);
    att_gguf_put_int(&f->w, key, x);
}

static void put_number(source *f, const char *name, double x)
{
    char key[KEY];
    snprintf(key, sizeof key, "%s.%s", f->c.type, name);
    att_gguf_put_number(&f->w, key, x);
}

/* Writes the last name of the folder's path. */
static void put_name(source *f)
{
    char *path = realpath(f->model, NULL);
    if (path)
        att_gguf_put_text(&f->w, "general.name", strrchr(path, '/') + 1);
    else
        f->settings.status =
            att_fail(f->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", f->model, strerror(errno));
    free(path);
}

/* Writes the settings of rotary positions. If frequencies are scaled by different factors, a tensor has the factors. */
static void put_rotary(source *f)
{
    const att_llama_config *c = &f->c;
    const int64_t n = c->rotary_dims / 2;
    put_number(f, "rope.freq_base", c->rotary_base);
    put_int(f, "rope.dimension_count", c->rotary_dims);
    if (strcmp(c->scaling.type, "linear") == 0) {
        char key[KEY];
        snprintf(key, sizeof key, "%s.rope.scaling.type", c->type);
        att_gguf_put_text(&f->w, key, "linear");
        put_number(f, "rope.scaling.factor", c->scaling.factor);
    } else if (strcmp(c->scaling.type, "default") != 0) {
        att_gguf_entry e = {.name = "rope_freqs.weight", .rank = 1, .dim = {n}, .dtype = ATT_F32};
        for (int64_t i = 0; i < n; i++)
            f->factor[i] = (float)(pow(c->rotary_base, -(double)i / (double)n) / c->frequency[i]);
        const att_status s = att_wrap(&e.value, f->factor, ATT_F32, 1, &n, NULL);
        f->settings.status = f->settings.status ? f->settings.status : s;
        att_gguf_put_tensor(&f->w, &e);
    }
}

static void put_settings(source *f)
{
    const att_llama_config *c = &f->c;
    att_gguf_put_text(&f->w, "general.architecture", c->type);
    att_gguf_put_text(&f->w, "general.type", "model");
    put_name(f);
    put_type(f);
    put_int(f, "vocab_size", c->vocabulary);
    put_int(f, "context_length", c->max_positions);
    put_int(f, "embedding_length", c->hidden);
    put_int(f, "block_count", c->layers);
    put_int(f, "feed_forward_length", c->intermediate);
    put_int(f, "attention.head_count", c->heads);
    if (is_gpt2(f)) {
        put_number(f, "attention.layer_norm_epsilon", (double)c->eps);
        return;
    }
    put_int(f, "attention.head_count_kv", c->kv_heads);
    if (c->head_dim * c->heads != c->hidden) {
        put_int(f, "attention.key_length", c->head_dim);
        put_int(f, "attention.value_length", c->head_dim);
    }
    put_number(f, "attention.layer_norm_rms_epsilon", (double)c->eps);
    if (strcmp(c->type, "phi3") == 0)
        put_int(f, "attention.sliding_window", c->window);
    put_rotary(f);
}

static att_status read_settings(source *f)
{
    static const char *const types[][2] = {{"gpt2", "gpt2"},   {"llama", "llama"}, {"mistral", "llama"},
                                           {"olmo2", "olmo2"}, {"phi3", "phi3"},   {"qwen2", "qwen2"},
                                           {"qwen3", "qwen3"}}; /* architectures of the file */
    enum { TYPES = sizeof types / sizeof *types };
    att_settings *s = &f->settings;
    att_settings_read(s, f->ctx, f->model, "config.json", true);
    const char *type = att_settings_text(s, "model_type", NULL);
    size_t i = 0;
    while (i < TYPES && strcmp(type, types[i][0]) != 0)
        i++;
    if (i == TYPES && !s->status)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"model_type\" is \"%.80s\", which is not supported in a .gguf file; gpt2, llama, "
                          "mistral, olmo2, phi3, qwen2 and qwen3 are",
                          type);
    if (!s->status && strcmp(type, "gpt2") != 0)
        att_llama_config_read(s, &f->c);
    if (!s->status && f->c.window > 0 && strcmp(type, "phi3") != 0)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"sliding_window\" is %lld, which a .gguf file of %s cannot express",
                          (long long)f->c.window, type);
    if (!s->status)
        f->c.type = types[i][1];
    return s->status;
}

/* Writes how tokens are sampled, if generation_config.json states that they are. */
static att_status put_sampling(source *f)
{
    att_generation_config config;
    const att_status s = att_generation_config_read(f->ctx, f->model, f->c.vocabulary, &config);
    const att_sampling *sampling = &config.sampling;
    if (s || !sampling->sample)
        return s;
    att_gguf_put_number(&f->w, "general.sampling.temp", (double)sampling->temperature);
    att_gguf_put_int(&f->w, "general.sampling.top_k", sampling->top_k);
    att_gguf_put_number(&f->w, "general.sampling.top_p", (double)sampling->top_p);
    att_gguf_put_number(&f->w, "general.sampling.min_p", (double)sampling->min_p);
    att_gguf_put_number(&f->w, "general.sampling.penalty_repeat", (double)sampling->repetition_penalty);
    return ATT_OK;
}

/* ---- tensors of a folder */

/* Puts rows of queries and keys into the order of llama.cpp's architecture llama: row j d/2 + i of a head becomes row 2
 * i + j. This is a view with other strides. */
static void order_rows(att_tensor *t, int64_t head_dim)
{
    const int64_t row = t->stride[0];
    for (int d = t->rank - 1; d > 0; d--) {
        t->dim[d + 2] = t->dim[d];
        t->stride[d + 2] = t->stride[d];
    }
    t->dim[0] /= head_dim;
    t->stride[0] = head_dim * row;
    t->dim[1] = head_dim / 2;
    t->stride[1] = row;
    t->dim[2] = 2;
    t->stride[2] = head_dim / 2 * row;
    t->rank += 2;
}

/* Transposes a matrix of the layers of GPT-2, which is [in, out] in a folder. */
static void transpose(att_tensor *t)
{
    const int64_t dim = t->dim[0], stride = t->stride[0];
    t->dim[0] = t->dim[1], t->stride[0] = t->stride[1];
    t->dim[1] = dim, t->stride[1] = stride;
}

/* Makes a vector of [1, n], which a folder may have. */
static void drop_row(att_tensor *t)
{
    for (int d = 1; d < t->rank; d++) {
        t->dim[d - 1] = t->dim[d];
        t->stride[d - 1] = t->stride[d];
    }
    t->rank--;
}

/* Returns whether a tensor is unused and therefore not written: a tied output layer, and frequencies and masks in
 * older folders. */
static bool is_unused(const source *f, const char *name)
{
    return (f->c.tied && strcmp(name, "lm_head.weight") == 0) || strstr(name, "rotary_emb.") ||
           (is_gpt2(f) && (strstr(name, ".attn.bias") || strstr(name, ".attn.masked_bias")));
}

static att_status put_tensor(source *f, int64_t i, char name[ATT_CHECKPOINT_NAME])
{
    const char *theirs = f->checkpoint->entry[i].name;
    att_gguf_entry e = {.name = name};
    if (is_unused(f, theirs))
        return ATT_OK;
    if (!att_gguf_weight_name(f->c.type, theirs, name))
        return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: tensor \"%.80s\" has no name in a .gguf file",
                        f->checkpoint->path, theirs);
    const att_status s = att_checkpoint_get(f->checkpoint, i, &e.value);
    while (e.value.rank > 1 && e.value.dim[0] == 1 && f->c.vocabulary > 1)
        drop_row(&e.value);
    if (is_gpt2(f) && e.value.rank == 2 && strncmp(name, "blk.", 4) == 0)
        transpose(&e.value);
    e.rank = e.value.rank;
    memcpy(e.dim, e.value.dim, sizeof e.dim);
    e.dtype = type_of(f, name, e.rank, e.dim);
    if (strcmp(f->c.type, "llama") == 0 && (strstr(name, ".attn_q.") || strstr(name, ".attn_k.")))
        order_rows(&e.value, f->c.head_dim);
    att_gguf_put_tensor(&f->w, &e);
    return s;
}

static att_status put_tensors(source *f)
{
    att_status s = att_checkpoint_open(f->ctx, f->model, NULL, "", &f->checkpoint);
    if (s)
        return s;
    f->names = att_alloc(f->ctx, (size_t)f->checkpoint->count, ATT_CHECKPOINT_NAME);
    s = f->names ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < f->checkpoint->count; i++)
        s = put_tensor(f, i, f->names + i * ATT_CHECKPOINT_NAME);
    return s;
}

/* ---- all */

/* Checks that the written file is the model. user: the source. */
static att_status check(void *user, const char *path)
{
    source *f = user;
    att_gguf *g;
    json_t *config = NULL;
    att_status s = att_gguf_open(f->ctx, path, &g);
    s = s ? s : att_gguf_config(g, &config);
    json_decref(config);
    if (!s && f->vocabulary.t)
        s = att_gguf_vocabulary_check(&f->vocabulary, g);
    att_gguf_free(g);
    return s;
}

/* Opens the model, to check that its settings and its weights fit together. info or NULL: its sizes. */
static att_status check_model(att_ctx *ctx, const char *model, att_language_model_info *info)
{
    att_language_model *m;
    att_status s = att_language_model_open(ctx, model, NULL, &m);
    if (!s && info)
        s = att_language_model_describe(m, info);
    att_language_model_free(m);
    return s;
}

/* Sets what a .gguf file has of the settings of GPT-2. */
static void set_gpt2(source *f, const att_language_model_info *i)
{
    f->c.vocabulary = i->vocabulary;
    f->c.hidden = i->hidden;
    f->c.layers = i->layers;
    f->c.heads = f->c.kv_heads = i->heads;
    f->c.head_dim = i->head_dim;
    f->c.intermediate = i->intermediate;
    f->c.max_positions = i->max_positions;
    f->c.tied = i->tied;
    f->c.eps = (float)att_settings_number_or(&f->settings, "layer_norm_epsilon", 0, 1, 1e-5);
}

static att_status write_folder(source *f, const char *file)
{
    att_language_model_info info = {.size = sizeof info};
    att_status s = read_settings(f);
    s = s ? s : check_model(f->ctx, f->model, &info);
    if (!s && is_gpt2(f))
        set_gpt2(f, &info);
    s = s ? s : att_gguf_vocabulary_open(&f->vocabulary, f->ctx, f->model);
    if (!s)
        put_settings(f);
    s = s ? s : f->settings.status;
    s = s ? s : att_gguf_vocabulary_put(&f->vocabulary, &f->w, f->c.vocabulary);
    f->tied = f->c.tied;
    f->layers = f->c.layers;
    s = s ? s : put_sampling(f);
    s = s ? s : att_chat_put_gguf(f->ctx, f->model, &f->w);
    s = s ? s : put_tensors(f);
    s = s ? s : att_gguf_writer_save(&f->w, file, f->model, &f->progress, check, f);
    att_checkpoint_close(f->checkpoint);
    att_gguf_vocabulary_close(&f->vocabulary);
    att_settings_close(&f->settings);
    att_free(f->ctx, f->names);
    return s;
}

/* Copies all values except those about this file's types and layout. */
static void copy_values(source *f, const att_gguf *g)
{
    static const char *const others[] = {"general.file_type", "general.quantization_version",
                                         "general.alignment", "split.no",
                                         "split.count",       "split.tensors.count"};
    att_byte_view raw;
    const char *key;
    for (int64_t i = 0; (key = att_gguf_raw(g, i, &raw)); i++) {
        bool copied = true;
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            copied &= strcmp(key, others[k]) != 0;
        if (copied)
            att_gguf_put_raw(&f->w, key, raw);
    }
    put_type(f);
}

static att_status copy_tensor(source *f, const att_gguf_tensor *t)
{
    att_gguf_entry e = {.name = t->name, .rank = t->rank, .dtype = type_of(f, t->name, t->rank, t->dim)};
    const att_status s = att_gguf_view(t, &e.value);
    memcpy(e.dim, t->dim, sizeof e.dim);
    att_gguf_put_tensor(&f->w, &e);
    return s;
}

static att_status write_gguf(source *f, const char *file)
{
    char key[KEY];
    att_gguf *g;
    att_status s = check_model(f->ctx, f->model, NULL);
    s = s ? s : att_gguf_open(f->ctx, f->model, &g);
    if (s)
        return s;
    snprintf(key, sizeof key, "%.64s.block_count", att_gguf_text(g, "general.architecture", ""));
    f->layers = att_gguf_int(g, key, 1, INT32_MAX);
    f->tied = !att_gguf_find(g, "output.weight");
    copy_values(f, g);
    for (int64_t i = 0; !s && i < att_gguf_count(g); i++)
        s = copy_tensor(f, att_gguf_at(g, i));
    s = s ? s : att_gguf_writer_save(&f->w, file, f->model, &f->progress, check, f);
    att_gguf_free(g);
    return s;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

att_status att_gguf_write(att_ctx *ctx, const char *model, const char *file, const att_gguf_options *options)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"model", model}, {"file", file})))
        return ATT_ERR_ARGUMENT;
    att_gguf_options o;
    if (att_options_read(&o, sizeof o, options, "att_gguf_options"))
        return ATT_ERR_ARGUMENT;
    if (find_file_type(o.dtype, o.medium) == FILE_TYPES)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_gguf_write: dtype is %s, not %s", att_dtype_name(o.dtype),
                        o.medium ? "Q4_K or Q5_K, which a medium file has"
                                 : "f32, f16, bf16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1 or Q4_0");
    char gguf[ATT_MAX_PATH];
    att_status s = att_gguf_path(ctx, model, "config.json", gguf);
    if (!s && *gguf && is_same_file(gguf, file))
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s is the model itself; give another file", file);
    source *f = s ? NULL : att_calloc(ctx, 1, sizeof *f);
    if (!f)
        return s ? s : ATT_ERR_MEMORY;
    *f = (source){.ctx = ctx,
                  .model = *gguf ? gguf : model,
                  .dtype = o.dtype,
                  .medium = o.medium,
                  .progress = {.ctx = ctx, .call = __func__, .report = o.progress, .user = o.user}};
    f->w.ctx = f->w.values.ctx = ctx;
    s = *gguf ? write_gguf(f, file) : write_folder(f, file);
    att_gguf_writer_free(&f->w);
    att_free(ctx, f);
    return s;
}
