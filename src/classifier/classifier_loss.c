#include "classifier/classifier_loss.h"

static att_var *activate(att_tape *t, att_var *x, att_text_activation activation)
{
    return activation == ATT_TEXT_ACTIVATION_SIGMOID ? att_activate(t, x, ATT_ACTIVATION_SIGMOID) : x;
}

static att_var *ranking(att_tape *t, att_var *logits, const att_text_classifier_target *target)
{
    att_var *x = att_reshape(t, logits, ATT_DIMS(target->n, target->candidates));
    x = att_scale(t, activate(t, x, target->activation), target->scale);
    return att_cross_entropy(t, x, target->labels, ATT_OPTIONS(att_cross_entropy_options, .sum = true));
}

/* Computes the squared error. The scores have no gradient. */
static att_var *squared_error(att_tape *t, att_var *logits, const att_text_classifier_target *target)
{
    att_tensor scores;
    att_wrap(&scores, (void *)target->scores, ATT_F32, ATT_DIMS(target->n, 1), NULL);
    return att_mean_squared_error(t, activate(t, logits, target->activation), att_constant(t, &scores),
                                  ATT_OPTIONS(att_mean_squared_error_options, .sum = true));
}

att_var *att_text_classifier_loss_apply(att_tape *t, att_var *logits, const att_text_classifier_target *target)
{
    switch (target->loss) {
    case ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY:
        return att_binary_cross_entropy(t, logits, target->scores,
                                        ATT_OPTIONS(att_binary_cross_entropy_options, .sum = true));
    case ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY:
        return att_cross_entropy(t, logits, target->labels, ATT_OPTIONS(att_cross_entropy_options, .sum = true));
    case ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING:
        return ranking(t, logits, target);
    default:
        return squared_error(t, logits, target);
    }
}
