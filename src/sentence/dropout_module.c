/* Dropout of the vectors of texts, in training only. */
#include "sentence/module.h"

static void read(att_settings *s, att_module *m)
{
    static const char *const known[] = {"dropout", NULL};
    att_settings_only_known(s, known);
    m->dropout = (float)att_settings_number_or(s, "dropout", 0, 0.99, 0.2);
}

static att_var *apply(att_tape *t, const att_module *m, const att_texts *texts, att_var *x)
{
    const att_texts_dropout *d = texts->dropout;
    if (!d)
        return x;
    const att_positions rows = {.size = sizeof rows, .offsets = d->rows, .n = texts->n};
    const att_nn_dropout dropout = {sizeof dropout, m->dropout, d->seed, &rows, d->sequence_ids};
    return att_nn_dropout_apply(t, &dropout, att_nn_dropout_id(m->name, "dropout"), x, NULL);
}

const att_module_type att_module_dropout = {.name = "Dropout", .read = read, .apply = apply};
