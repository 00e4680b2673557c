/* LayerNorm, and Normalize, which scales vectors to length 1. */
#include "sentence/module.h"

/* ---- LayerNorm */

static void read_layer_norm(att_settings *s, att_module *m)
{
    static const char *const known[] = {"dimension", NULL};
    att_settings_only_known(s, known);
    m->in_key = "dimension";
    m->in = m->out = att_settings_int(s, "dimension", 1, ATT_MAX_FEATURES);
}

static void build_layer_norm(att_nn_params *p, att_module *m)
{
    m->norm = att_nn_norm_new(p, att_nn_join(m->name, "norm").text, ATT_NN_NORM_LAYER, m->in, 1e-5f);
}

static att_var *apply_layer_norm(att_tape *t, const att_module *m, const att_texts *texts, att_var *x)
{
    (void)texts;
    return att_nn_norm_apply(t, m->norm, x);
}

const att_module_type att_module_layer_norm = {
    .name = "LayerNorm", .read = read_layer_norm, .build = build_layer_norm, .apply = apply_layer_norm};

/* ---- Normalize */

static void read_normalize(att_settings *s, att_module *m)
{
    static const char *const known[] = {"module_input_name", "module_output_name", NULL};
    if (!s->root)
        return;
    att_settings_only_known(s, known);
    att_module_read_names(s, m);
}

static att_var *apply_normalize(att_tape *t, const att_module *m, const att_texts *texts, att_var *x)
{
    (void)m;
    (void)texts;
    return att_normalize(t, x, 1e-12f);
}

const att_module_type att_module_normalize = {
    .name = "Normalize", .optional_settings = true, .read = read_normalize, .apply = apply_normalize};
