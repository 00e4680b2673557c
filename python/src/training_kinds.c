/* The kinds of trainings: the fields of their options, what they read, and how they are measured. */
#include "attend_translate.h"
#include "recommender.h"
#include "training.h"

#include <stddef.h>

/* ---- recommendation: data is a Log */

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

static bool read_log(module_state *state, PyObject *data, void *options)
{
    const interaction_log *l = log_of(state, data);
    if (l)
        ((att_recommender_training_options *)options)->data = l->holdout;
    return l != NULL;
}

static att_status open_recommendation(att_ctx *ctx, const char *folder, const att_training_options *common,
                                      const void *options, att_training **out)
{
    return att_recommender_training_open(ctx, folder, common, options, out);
}

static PyObject *evaluate_recommendation(module_state *state, att_training *t, PyObject *data, PyObject *options)
{
    const att_scorer scorer = att_recommender_scorer(att_training_recommender(t));
    return log_rank(state, (interaction_log *)data, &scorer, options);
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

const training_kind training_kinds[] = {
    {.name = "recommendation",
     .fields = recommendation_fields,
     .bytes = sizeof(att_recommender_training_options),
     .read = read_log,
     .open = open_recommendation,
     .evaluate = evaluate_recommendation},
    {.name = "translation",
     .fields = translation_fields,
     .bytes = sizeof(att_translator_training_options),
     .open = open_translation,
     .evaluate = evaluate_loss},
    {.name = NULL},
};
