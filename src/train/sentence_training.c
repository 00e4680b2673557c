/* Training of a sentence embedding model with similarity scores: the loss of a pair is (cos(u, v) - score)^2 (Reimers,
 * Gurevych 2019, 3.1). */
#include "io/texts.h"
#include "io/util.h"
#include "model/sentence.h"
#include "text/utf8.h"
#include "train/parallel_corpus.h"
#include "train/training.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct similarity {
    att_ctx *ctx;
    att_sentence *model;
    bool borrowed; /* the caller's */
    att_sentence_training_options options;
    att_tokens *tokens;    /* [2 n]: both sentences of each pair */
    float *score;          /* [n] */
    uint32_t *order;       /* [n]: pairs, in the order of batches */
    int64_t cut;           /* pairs with a truncated sentence */
    uint64_t start, texts; /* checksums of the initial weights and of the data */
    /* Of a batch, first sentences, then second ones: */
    int32_t *ids;
    int64_t *offsets;       /* [2 batch + 1] */
    uint32_t *sequence_ids; /* [2 batch] */
    float *target;          /* [batch] -score */
} similarity;

/* ---- opening */

/* Are both the same folder? The training would overwrite its initial model. */
static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static size_t text_bytes(const att_sentence_training_options *o, int64_t i)
{
    return o->bytes ? o->bytes[i] : strlen(o->texts[i]);
}

/* FNV-1a over n 32-bit words. */
static uint64_t checksum(uint64_t sum, const void *words, int64_t n)
{
    const char *x = words;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, x + 4 * i, sizeof word);
        sum = att_fnv64(sum, word);
    }
    return sum;
}

static att_status read_texts(similarity *t)
{
    const att_sentence_training_options *o = &t->options;
    const int64_t max = t->model->modules.max_tokens;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < 2 * o->pairs; i++) {
        e = att_encode(t->model->tokenizer, o->texts[i], text_bytes(o, i),
                       ATT_OPTIONS(att_encode_options, .max_tokens = max), &t->tokens[i]);
        t->texts = checksum(t->texts, t->tokens[i].ids, e ? 0 : t->tokens[i].count);
    }
    for (int64_t i = 0; !e && i < o->pairs; i++) {
        t->score[i] = (float)o->scores[i];
        t->cut += t->tokens[2 * i].truncated || t->tokens[2 * i + 1].truncated;
    }
    t->texts = checksum(t->texts, t->score, e ? 0 : o->pairs);
    return e;
}

static att_status prepare(similarity *t)
{
    const size_t n = (size_t)t->options.pairs, batch = (size_t)t->options.batch;
    t->tokens = att_calloc(t->ctx, 2 * n, sizeof *t->tokens);
    t->score = att_alloc(t->ctx, n, sizeof *t->score);
    t->order = att_alloc(t->ctx, n, sizeof *t->order);
    t->ids = att_alloc(t->ctx, 2 * batch * (size_t)t->model->modules.max_tokens, sizeof *t->ids);
    t->offsets = att_alloc(t->ctx, 2 * batch + 1, sizeof *t->offsets);
    t->sequence_ids = att_alloc(t->ctx, 2 * batch, sizeof *t->sequence_ids);
    t->target = att_alloc(t->ctx, batch, sizeof *t->target);
    if (!t->tokens || !t->score || !t->order || !t->ids || !t->offsets || !t->sequence_ids || !t->target)
        return ATT_ERR_MEMORY;
    const char *name;
    const att_param *p;
    for (int64_t i = 0; (p = att_bert_param(t->model->bert, i, &name)); i++) {
        const att_tensor *w = att_param_value(p);
        t->start = checksum(t->start, w->data, w->dim[0] * w->stride[0]);
    }
    return read_texts(t);
}

static att_status open_similarity(void *self, const char *folder, bool resume)
{
    similarity *t = self;
    (void)resume;
    if (folder && same_folder(t->options.model, folder))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: is the model's own folder; a training needs another one",
                        folder);
    att_status e = folder ? att_sentence_open_for_training(t->ctx, t->options.model, &t->model) : ATT_OK;
    e = e ? e : prepare(t);
    t->options.texts = NULL; /* the caller's, not used any more */
    t->options.bytes = NULL;
    t->options.scores = NULL;
    return e;
}

static void free_similarity(void *self)
{
    similarity *t = self;
    for (int64_t i = 0; t->tokens && i < 2 * t->options.pairs; i++)
        att_tokens_free(t->model->tokenizer, &t->tokens[i]);
    void *const all[] = {t->tokens, t->score, t->order, t->ids, t->offsets, t->sequence_ids, t->target};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(t->ctx, all[i]);
    if (!t->borrowed)
        att_sentence_free(t->model);
    att_free(t->ctx, t);
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_bert_param(((const similarity *)self)->model->bert, i, name);
}

static att_param_options param_options(const void *self, const char *name, const att_tensor *value)
{
    (void)self, (void)name;
    return (att_param_options){.size = sizeof(att_param_options), .no_weight_decay = value->rank == 1};
}

static att_status begin_epoch(void *self, uint64_t seed, int64_t number, int64_t *batches)
{
    similarity *t = self;
    const int64_t n = t->options.pairs;
    att_permutation(seed, 0, number, n, t->order);
    *batches = att_ceil_div(n, t->options.batch);
    return ATT_OK;
}

/* Appends sentence `which` of n pairs to the batch, from index i. */
static void gather_side(similarity *t, const uint32_t *pairs, int64_t n, int which, int64_t i)
{
    for (int64_t k = 0; k < n; k++, i++) {
        const int64_t sentence = 2 * (int64_t)pairs[k] + which;
        const att_tokens *x = &t->tokens[sentence];
        memcpy(t->ids + t->offsets[i], x->ids, (size_t)x->count * sizeof *x->ids);
        t->offsets[i + 1] = t->offsets[i] + x->count;
        t->sequence_ids[i] = (uint32_t)sentence;
        t->target[k] = -t->score[pairs[k]];
    }
}

static att_var *loss(void *self, att_tape *tape, int64_t batch, uint64_t seed, att_training_report *r, int64_t *count)
{
    similarity *t = self;
    const int64_t first = batch * t->options.batch, rest = t->options.pairs - first;
    const int64_t n = att_min(rest, t->options.batch);
    att_tensor target;
    t->offsets[0] = 0;
    gather_side(t, t->order + first, n, 0, 0);
    gather_side(t, t->order + first, n, 1, n);
    att_wrap(&target, t->target, ATT_F32, ATT_DIMS(n), NULL);
    *count = n;
    r->pairs = t->options.pairs;
    r->too_long = t->cut;
    r->source_tokens += t->offsets[n];
    r->target_tokens += t->offsets[2 * n] - t->offsets[n];

    att_var *x = att_bert_apply_with_dropout(tape, t->model->bert, t->ids, t->offsets, 2 * n, seed, t->sequence_ids);
    x = att_normalize(tape, att_pool(tape, x, t->offsets, 2 * n, t->model->modules.pooling), 1e-12f);
    att_var *cosine = att_dot(tape, att_slice(tape, x, 0, 0, n), att_slice(tape, x, 0, n, n));
    att_var *error = att_add(tape, cosine, att_constant(tape, &target));
    return att_dot(tape, error, error);
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    const similarity *t = self;
    att_fields_int(fields, "pairs", t->options.pairs);
    att_fields_int(fields, "batch_pairs", t->options.batch);
    att_fields_int(fields, "texts", (int64_t)t->texts)->sum_of = "texts or scores";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "weights of the pre-trained model";
    att_fields_double(fields, "decay", t->options.weight_decay);
}

static void describe(const void *self, att_training_info *info)
{
    const similarity *t = self;
    info->pairs = t->options.pairs;
    info->too_long = t->cut;
    info->vocabulary = att_tokenizer_size(t->model->tokenizer);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    return att_sentence_write(((const similarity *)self)->model, folder, dtype);
}

static const att_training_kind kind = {.name = "how alike sentences are",
                                       .keep = 2,
                                       .open = open_similarity,
                                       .param = param,
                                       .param_options = param_options,
                                       .begin_epoch = begin_epoch,
                                       .loss = loss,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_similarity};

/* ---- construction */

static att_status check(att_ctx *ctx, const char *folder, const att_sentence_training_options *o)
{
    if (!o->model != !folder)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        folder ? "options.model is NULL" : "options.model is for a training in a folder");
    if (!folder && o->evaluation_id)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.evaluation_id is for a training in a folder");
    if (o->pairs < 1 || o->pairs > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.pairs is %lld, expected 1 or more", (long long)o->pairs);
    if (!o->scores || !o->schedule)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o->scores ? "schedule" : "scores");
    if (att_check_texts(ctx, "options.texts", o->texts, 2 * o->pairs))
        return ATT_ERR_ARGUMENT;
    if (o->batch < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.batch is %lld", (long long)o->batch);
    for (int64_t i = 0; i < o->pairs; i++)
        if (!(o->scores[i] >= -1 && o->scores[i] <= 1))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scores[%lld] is %g, which is no cosine, from -1 to 1",
                            (long long)i, o->scores[i]);
    for (int64_t i = 0; i < 2 * o->pairs; i++)
        if (!att_utf8_valid(o->texts[i], text_bytes(o, i)))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.texts[%lld] is not UTF-8", (long long)i);
    return ATT_OK;
}

/* given: has the model if it is the caller's */
static att_status make(similarity given, const char *folder, const att_sentence_training_options *options,
                       att_training **out)
{
    att_ctx *ctx = given.ctx;
    att_status e = att_take_options(&given.options, sizeof given.options, options, "att_sentence_training_options");
    e = e ? e : check(ctx, folder, &given.options);
    att_schedule rates;
    e = e ? e : att_take_options(&rates, sizeof rates, given.options.schedule, "att_schedule");
    similarity *t = e ? NULL : att_alloc(ctx, 1, sizeof *t);
    if (!t)
        return e ? e : ATT_ERR_MEMORY;
    *t = given;
    att_sentence_training_options *o = &t->options;
    o->batch = att_min(o->batch ? o->batch : 16, o->pairs);
    const att_training_config config = {
        .folder = folder,
        .resume = o->resume,
        .keep = o->keep,
        .note = o->note,
        .note_bytes = o->note_bytes,
        .keep_best = true,
        .evaluation_id = o->evaluation_id,
        .optimizer = {.size = sizeof config.optimizer, .method = ATT_ADAMW, .weight_decay = o->weight_decay},
        .schedule = rates,
        .clip = o->clip,
        .accumulate = 1,
        .seed = o->seed};
    return att_training_make(ctx, &kind, t, &config, out);
}

att_status att_sentence_training_new(att_sentence *m, const att_sentence_training_options *options, att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (!m->model.trainable)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "the model does not learn: it comes from att_sentence_open");
    return make((similarity){.ctx = m->model.ctx, .model = m, .borrowed = true}, NULL, options, out);
}

att_status att_sentence_training_open(att_ctx *ctx, const char *folder, const att_sentence_training_options *options,
                                      att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    return make((similarity){.ctx = ctx}, folder, options, out);
}

const att_sentence *att_training_sentence(const att_training *t)
{
    return t && t->kind == &kind ? ((const similarity *)t->self)->model : NULL;
}
