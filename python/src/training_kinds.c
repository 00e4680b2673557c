/* The kinds of trainings: the fields of their options, what they read, and how they are measured. */
#include "attend_sentence.h"
#include "attend_text_classifier.h"
#include "attend_translate.h"
#include "caption_set.h"
#include "image_set.h"
#include "recommender.h"
#include "texts.h"
#include "training.h"

#include <math.h>
#include <stddef.h>

/* ---- recommendation: data is (Log, vectors of the texts of its new items or None, whether they are added) */

static const char *const item_losses[] = {"softmax", "sampled-softmax", "binary", "gbce", NULL};
static const option_field recommendation_fields[] = {
    OPTION(INTEGER, att_recommender_training_options, batch),
    OPTION(BOOL, att_recommender_training_options, with_replacement),
    OPTION_OF(att_recommender_training_options, loss, item_losses),
    OPTION(INTEGER, att_recommender_training_options, negatives),
    OPTION(DOUBLE, att_recommender_training_options, calibration),
    OPTION(DOUBLE, att_recommender_training_options, mask_share),
    OPTION(DOUBLE, att_recommender_training_options, last_mask_share),
    OPTION(FLOAT, att_recommender_training_options, dropout),
    OPTION(TEXT, att_recommender_training_options, settings),
    OPTION(TEXT, att_recommender_training_options, model),
    {NULL, OPTION_BOOL, 0, NULL},
};

typedef struct item_content {
    att_item_content content;
    tensor_argument vectors;
} item_content;

static void content_free(void *memory)
{
    tensor_release(&((item_content *)memory)->vectors);
    PyMem_Free(memory);
}

static bool read_log(module_state *state, PyObject *data, void *options, void **memory)
{
    att_recommender_training_options *o = options;
    PyObject *log, *vectors;
    int add;
    if (!PyArg_ParseTuple(data, "OOp:recommendation", &log, &vectors, &add))
        return false;
    const interaction_log *l = log_of(state, log);
    if (!l)
        return false;
    o->data = l->holdout;
    if (vectors == Py_None)
        return true;
    item_content *c = *memory = PyMem_Calloc(1, sizeof *c);
    if (!c)
        return PyErr_NoMemory();
    if (!tensor_read_rows(state, vectors, "vectors of item texts", &c->vectors) ||
        !tensor_make_dense(state, &c->vectors, 2))
        return false;
    c->content = (att_item_content){
        .size = sizeof c->content, .vectors = c->vectors.t.data, .width = c->vectors.t.dim[1], .add = add != 0};
    o->content = &c->content;
    return true;
}

static att_status open_recommendation(att_ctx *ctx, const char *folder, const att_training_options *common,
                                      const void *options, att_training **out)
{
    return att_recommender_training_open(ctx, folder, common, options, out);
}

static PyObject *evaluate_recommendation(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    const att_scorer scorer = att_recommender_scorer(att_training_recommender(t));
    return log_rank(state, (interaction_log *)PyTuple_GetItem(data, 0), &scorer, options);
}

/* ---- translation: two files */

static const option_field translation_fields[] = {
    OPTION(TEXT, att_translator_training_options, source),
    OPTION(TEXT, att_translator_training_options, target),
    OPTION(INTEGER, att_translator_training_options, max_tokens),
    OPTION(INTEGER, att_translator_training_options, batch_tokens),
    OPTION(FLOAT, att_translator_training_options, label_smoothing),
    OPTION(FLOAT, att_translator_training_options, dropout),
    OPTION(TEXT, att_translator_training_options, valid_source),
    OPTION(TEXT, att_translator_training_options, valid_target),
    OPTION(TEXT, att_translator_training_options, tokenizer),
    OPTION(INTEGER, att_translator_training_options, vocabulary),
    OPTION(DOUBLE, att_translator_training_options, character_coverage),
    OPTION(BOOL, att_translator_training_options, byte_fallback),
    OPTION(TEXT, att_translator_training_options, settings),
    OPTION(TEXT, att_translator_training_options, config),
    OPTION(INTEGER, att_translator_training_options, skip_bad_lines),
    {NULL, OPTION_BOOL, 0, NULL},
};

static att_status open_translation(att_ctx *ctx, const char *folder, const att_training_options *common,
                                   const void *options, att_training **out)
{
    return att_translator_training_open(ctx, folder, common, options, out);
}

static PyObject *evaluate_loss(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    (void)data;
    double loss = 0;
    att_status status;
    if (PyDict_Size(options) > 0)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "evaluate: this training has no options of it");
    LONG_CALL_BEGIN
    status = att_training_validate(t, &loss);
    LONG_CALL_END(status)
    return call_succeeded(state, status) ? Py_BuildValue("{s:d}", "loss", loss) : NULL;
}

/* ---- rows of texts, for sentences and for reranking */

/* Rows of texts, with what each is worth */
typedef struct rows {
    texts texts; /* [n, columns] */
    int64_t n, columns;
    double *scores;  /* [n] or NULL */
    int32_t *labels; /* [n] or NULL */
    texts names;     /* of the labels; n 0: none */
} rows;

static void rows_free(void *memory)
{
    rows *r = memory;
    texts_release(&r->texts);
    texts_release(&r->names);
    PyMem_Free(r->scores);
    PyMem_Free(r->labels);
    PyMem_Free(r);
}

/* Reads a number for each of n rows. false with an exception */
static bool read_values(module_state *state, PyObject *list, const char *name, int64_t n, rows *r)
{
    const bool is_score = !strcmp(name, "scores");
    if (PyTuple_Size(list) != n)
        return raise_sentence(state, ATT_ERR_SHAPE, "%s has %zd numbers, but there are %lld rows", name,
                              PyTuple_Size(list), (long long)n);
    if (is_score)
        r->scores = PyMem_Calloc((size_t)n + 1, sizeof *r->scores);
    else
        r->labels = PyMem_Calloc((size_t)n + 1, sizeof *r->labels);
    if (!r->scores && !r->labels)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < n; i++) {
        PyObject *one = PyTuple_GetItem(list, (Py_ssize_t)i);
        if (is_score)
            r->scores[i] = PyFloat_AsDouble(one);
        else
            r->labels[i] = (int32_t)PyLong_AsLong(one);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return raise_sentence(state, ATT_ERR_DTYPE, "%s[%lld]: %R, must be %s", name, (long long)i, one,
                                  is_score ? "a number" : "an integer");
        }
    }
    return true;
}

/* Reads (texts of all rows, columns, scores or None, labels or None, names of labels). NULL with an exception; *memory
 * is freed in any case. */
static rows *read_rows(module_state *state, PyObject *data, void **memory)
{
    PyObject *all, *scores, *labels, *names;
    long long columns;
    rows *r = PyMem_Calloc(1, sizeof *r);
    *memory = r;
    if (!r)
        return (rows *)PyErr_NoMemory();
    if (!PyArg_ParseTuple(data, "OLOOO:rows", &all, &columns, &scores, &labels, &names) ||
        !texts_read(state, all, "rows", false, &r->texts) || !texts_read(state, names, "names", false, &r->names))
        return NULL;
    r->columns = columns;
    r->n = columns > 0 ? r->texts.n / columns : 0;
    if ((scores != Py_None && !read_values(state, scores, "scores", r->n, r)) ||
        (labels != Py_None && !read_values(state, labels, "labels", r->n, r)))
        return NULL;
    return r;
}

/* ---- sentences: data is rows */

static const char *const sentence_losses[] = {"cosine", "multiple-negatives-ranking", "triplet", "softmax", NULL};
static const char *const distances[] = {"euclidean", "cosine", NULL};
static const option_field sentence_fields[] = {
    OPTION(INTEGER, att_sentence_training_options, batch),
    OPTION(TEXT, att_sentence_training_options, model),
    OPTION_OF(att_sentence_training_options, loss, sentence_losses),
    OPTION_OF(att_sentence_training_options, distance, distances),
    OPTION(INTEGER, att_sentence_training_options, classes),
    OPTION(DOUBLE, att_sentence_training_options, scale),
    OPTION(DOUBLE, att_sentence_training_options, margin),
    {NULL, OPTION_BOOL, 0, NULL},
};

static bool read_sentence_rows(module_state *state, PyObject *data, void *options, void **memory)
{
    att_sentence_training_options *o = options;
    const rows *r = read_rows(state, data, memory);
    if (!r)
        return false;
    o->pairs = r->n, o->columns = r->columns;
    o->texts = r->texts.text, o->bytes = r->texts.bytes;
    o->scores = r->scores, o->labels = r->labels;
    return true;
}

static att_status open_sentences(att_ctx *ctx, const char *folder, const att_training_options *common,
                                 const void *options, att_training **out)
{
    return att_sentence_training_open(ctx, folder, common, options, out);
}

/* Embeddings of {"texts": ...} by the current weights: an array */
static PyObject *embed_sentences(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    (void)data;
    const att_sentence *m = att_training_sentence(t);
    att_sentence_info info = {.size = sizeof info};
    PyObject *given = PyDict_GetItemString(options, "texts");
    texts of = {.n = 0};
    array *out = NULL;
    att_status status = att_sentence_describe(m, &info);
    if (!given)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "evaluate: the training has no rows for validation");
    if (status == ATT_OK && texts_read(state, given, "texts", false, &of))
        out = array_new(state, ATT_F32, 2, (int64_t[]){of.n, info.dim});
    if (out) {
        progress p = {.function = NULL};
        const att_embed_options embed = {.size = sizeof embed, .progress = progress_call, .user = &p};
        LONG_CALL_BEGIN
        status = att_sentence_embed(m, of.n, of.text, of.bytes, &embed, out->t.data);
        LONG_CALL_END(status)
    }
    texts_release(&of);
    return call_result(state, status, (PyObject *)out);
}

/* ---- reranking, and classes of texts: data is rows */

static const char *const reranking_losses[] = {"binary-cross-entropy", "cross-entropy", "multiple-negatives-ranking",
                                               "mean-squared-error", NULL};
static const char *const activations[] = {"loss", "identity", "sigmoid", NULL};
static const option_field reranking_fields[] = {
    OPTION(INTEGER, att_text_classifier_training_options, batch),
    OPTION(TEXT, att_text_classifier_training_options, model),
    OPTION_OF(att_text_classifier_training_options, loss, reranking_losses),
    OPTION_OF(att_text_classifier_training_options, activation, activations),
    OPTION(INTEGER, att_text_classifier_training_options, classes),
    OPTION(INTEGER, att_text_classifier_training_options, negatives),
    OPTION(INTEGER, att_text_classifier_training_options, max_tokens),
    OPTION(DOUBLE, att_text_classifier_training_options, scale),
    {NULL, OPTION_BOOL, 0, NULL},
};

static bool read_reranking_rows(module_state *state, PyObject *data, void *options, void **memory)
{
    att_text_classifier_training_options *o = options;
    const rows *r = read_rows(state, data, memory);
    if (!r)
        return false;
    o->rows = r->n, o->columns = r->columns;
    o->texts = r->texts.text, o->bytes = r->texts.bytes;
    o->scores = r->scores, o->labels = r->labels;
    o->names = r->names.n ? r->names.text : NULL;
    return true;
}

static att_status open_reranking(att_ctx *ctx, const char *folder, const att_training_options *common,
                                 const void *options, att_training **out)
{
    return att_text_classifier_training_open(ctx, folder, common, options, out);
}

/* Names of a model's labels: a list */
static PyObject *label_names(const att_text_classifier *m, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *name = PyUnicode_FromString(att_text_classifier_label(m, i));
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name))
            Py_CLEAR(list);
    }
    return list;
}

/* Of {"texts": ..., "pairs": ... or None, "max_tokens": ...} by the current weights: (logits [n, labels], their names)
 */
static PyObject *score_texts(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    (void)data;
    const att_text_classifier *m = att_training_text_classifier(t);
    att_text_classifier_info info = {.size = sizeof info};
    PyObject *first = PyDict_GetItemString(options, "texts"), *second = PyDict_GetItemString(options, "pairs");
    PyObject *most = PyDict_GetItemString(options, "max_tokens");
    texts of = {.n = 0}, pairs = {.n = 0};
    array *out = NULL;
    att_status status = att_text_classifier_describe(m, &info);
    const bool paired = second && second != Py_None;
    if (!first || !most)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "evaluate: the training has no rows for validation");
    if (status == ATT_OK && texts_read(state, first, "texts", false, &of) &&
        (!paired || texts_read(state, second, "pairs", false, &pairs)))
        out = array_new(state, ATT_F32, 2, (int64_t[]){of.n, info.labels});
    if (out) {
        progress p = {.function = NULL};
        const att_text_classify_options classify = {.size = sizeof classify,
                                                    .pairs = paired ? pairs.text : NULL,
                                                    .pair_bytes = paired ? pairs.bytes : NULL,
                                                    .activation = ATT_TEXT_ACTIVATION_IDENTITY,
                                                    .max_tokens = PyLong_AsLongLong(most),
                                                    .progress = progress_call,
                                                    .user = &p};
        LONG_CALL_BEGIN
        status = att_text_classify(m, of.n, of.text, of.bytes, &classify, out->t.data);
        LONG_CALL_END(status)
    }
    texts_release(&of);
    texts_release(&pairs);
    PyObject *found = call_result(state, status, (PyObject *)out);
    return found ? Py_BuildValue("(NN)", found, label_names(m, info.labels)) : NULL;
}

/* ---- images: data is (ImageSet, ImageSet for validation or None) */

static const option_field image_fields[] = {
    OPTION(INTEGER, att_image_training_options, batch),
    OPTION(FLOAT, att_image_training_options, label_smoothing),
    OPTION(FLOAT, att_image_training_options, dropout),
    OPTION(INTEGER, att_image_training_options, crop),
    OPTION(BOOL, att_image_training_options, flip),
    OPTION(DOUBLE, att_image_training_options, mixup),
    OPTION(INTEGER, att_image_training_options, cutout),
    OPTION(TEXT, att_image_training_options, settings),
    OPTION(TEXT, att_image_training_options, model),
    OPTION(BOOL, att_image_training_options, balance),
    {NULL, OPTION_BOOL, 0, NULL},
};

static bool read_images(module_state *state, PyObject *data, void *options, void **memory)
{
    (void)memory;
    PyObject *images, *valid;
    if (!PyArg_ParseTuple(data, "OO:images", &images, &valid))
        return false;
    att_image_set *s = image_set_of(state, images);
    ((att_image_training_options *)options)->images = s;
    return s != NULL;
}

static att_status open_images(att_ctx *ctx, const char *folder, const att_training_options *common, const void *options,
                              att_training **out)
{
    return att_image_training_open(ctx, folder, common, options, out);
}

/* Counts of (class, answer), of which the measures follow: {"accuracy": percent, "balanced_accuracy": percent, ...} */
static PyObject *accuracies(int64_t correct, const int64_t *confusion, int64_t classes, int64_t *scratch)
{
    int64_t *right = scratch, *n = scratch + classes, images = 0;
    att_interval all = {0}, balanced = {0};
    for (int64_t c = 0; c < classes; c++) {
        right[c] = confusion[c * classes + c];
        for (int64_t k = 0; k < classes; k++)
            n[c] += confusion[c * classes + k];
        images += n[c];
    }
    if (att_share_interval(correct, images, &all) != ATT_OK ||
        att_balanced_accuracy(right, n, classes, &balanced) != ATT_OK)
        all = balanced = (att_interval){NAN, NAN, NAN};
    return Py_BuildValue("{s:d,s:(dd),s:d,s:(dd),s:L}", "accuracy", 100 * all.mean, "accuracy_interval", 100 * all.low,
                         100 * all.high, "balanced_accuracy", 100 * balanced.mean, "balanced_accuracy_interval",
                         100 * balanced.low, 100 * balanced.high, "images", (long long)images);
}

static PyObject *evaluate_images(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    PyObject *valid = PyTuple_GetItem(data, 1);
    if (valid == Py_None || PyDict_Size(options) > 0)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "evaluate: %s",
                              valid == Py_None ? "there are no images for validation" : "has no options");
    att_image_set *set = image_set_of(state, valid);
    att_image_set_info info = {.size = sizeof info};
    att_status status = set ? att_image_set_describe(set, &info) : ATT_OK;
    if (!set || status != ATT_OK)
        return call_result(state, status, NULL);
    const size_t classes = (size_t)info.classes;
    int64_t correct = 0, *counts = PyMem_Calloc(classes * classes + 2 * classes, sizeof *counts);
    if (!counts)
        return PyErr_NoMemory();
    LONG_CALL_BEGIN
    status = att_training_image_correct(t, set, &correct, counts);
    LONG_CALL_END(status)
    PyObject *found =
        call_succeeded(state, status) ? accuracies(correct, counts, info.classes, counts + classes * classes) : NULL;
    PyMem_Free(counts);
    return found;
}

/* ---- captions: data is (CaptionSet, CaptionSet for validation or None) */

static const option_field caption_fields[] = {
    OPTION(INTEGER, att_caption_training_options, batch),
    OPTION(INTEGER, att_caption_training_options, captions_per_image),
    OPTION(FLOAT, att_caption_training_options, label_smoothing),
    OPTION(FLOAT, att_caption_training_options, dropout),
    OPTION(FLOAT, att_caption_training_options, doubly_stochastic),
    OPTION(INTEGER, att_caption_training_options, crop),
    OPTION(BOOL, att_caption_training_options, flip),
    OPTION(INTEGER, att_caption_training_options, presence_epochs),
    OPTION(FLOAT, att_caption_training_options, presence_weight),
    OPTION(INTEGER, att_caption_training_options, encoder_memory),
    OPTION(TEXT, att_caption_training_options, settings),
    OPTION(INTEGER, att_caption_training_options, min_count),
    OPTION(INTEGER, att_caption_training_options, max_words),
    OPTION(TEXT, att_caption_training_options, encoder),
    {NULL, OPTION_BOOL, 0, NULL},
};

static bool read_captions(module_state *state, PyObject *data, void *options, void **memory)
{
    (void)memory;
    PyObject *captions, *valid;
    att_caption_training_options *o = options;
    if (!PyArg_ParseTuple(data, "OO:captions", &captions, &valid))
        return false;
    o->captions = caption_set_of(state, captions);
    o->valid = o->captions && valid != Py_None ? caption_set_of(state, valid) : NULL;
    return o->captions && (valid == Py_None || o->valid);
}

static att_status open_captions(att_ctx *ctx, const char *folder, const att_training_options *common,
                                const void *options, att_training **out)
{
    return att_caption_training_open(ctx, folder, common, options, out);
}

/* {"loss": per word}; as long as only word prediction is trained, {"presence": its loss} */
static PyObject *evaluate_captions(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    (void)data;
    const bool words = att_training_steps(t) > att_training_caption_word_prediction_steps(t);
    double loss = 0;
    att_status status;
    if (PyDict_Size(options) > 0)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "evaluate: this training has no options of it");
    LONG_CALL_BEGIN
    status = att_training_caption_losses(t, words ? &loss : NULL, words ? NULL : &loss);
    LONG_CALL_END(status)
    return call_succeeded(state, status) ? Py_BuildValue("{s:d}", words ? "loss" : "presence", loss) : NULL;
}

const training_kind training_kinds[] = {
    {.name = "recommendation",
     .fields = recommendation_fields,
     .bytes = sizeof(att_recommender_training_options),
     .read = read_log,
     .release = content_free,
     .open = open_recommendation,
     .evaluate = evaluate_recommendation},
    {.name = "translation",
     .fields = translation_fields,
     .bytes = sizeof(att_translator_training_options),
     .open = open_translation,
     .evaluate = evaluate_loss},
    {.name = "sentences",
     .fields = sentence_fields,
     .bytes = sizeof(att_sentence_training_options),
     .read = read_sentence_rows,
     .release = rows_free,
     .open = open_sentences,
     .evaluate = embed_sentences},
    {.name = "reranking",
     .fields = reranking_fields,
     .bytes = sizeof(att_text_classifier_training_options),
     .read = read_reranking_rows,
     .release = rows_free,
     .open = open_reranking,
     .evaluate = score_texts},
    {.name = "images",
     .fields = image_fields,
     .bytes = sizeof(att_image_training_options),
     .read = read_images,
     .open = open_images,
     .evaluate = evaluate_images},
    {.name = "captions",
     .fields = caption_fields,
     .bytes = sizeof(att_caption_training_options),
     .read = read_captions,
     .open = open_captions,
     .evaluate = evaluate_captions},
    {.name = NULL},
};
