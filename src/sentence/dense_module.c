/* Dense: activation(x W^T + b), to which x or x R^T may be added. */
#include "sentence/module.h"

#include <string.h>

/* The classes of torch.nn, in its own namespace or in that of their file. */
static const struct {
    const char *name;
    att_activation activation;
} known[] = {{"activation.Tanh", ATT_ACTIVATION_TANH},       {"activation.ReLU", ATT_ACTIVATION_RELU},
             {"activation.GELU", ATT_ACTIVATION_GELU_ERF},   {"activation.SiLU", ATT_ACTIVATION_SILU},
             {"activation.Sigmoid", ATT_ACTIVATION_SIGMOID}, {"linear.Identity", ATT_ACTIVATION_IDENTITY}};

/* Returns whether a name is "torch.nn.modules.activation.Tanh" or "torch.nn.Tanh". */
static bool is_class(const char *name, const char *class)
{
    static const char long_form[] = "torch.nn.modules.", short_form[] = "torch.nn.";
    if (!strncmp(name, long_form, sizeof long_form - 1))
        return !strcmp(name + sizeof long_form - 1, class);
    return !strncmp(name, short_form, sizeof short_form - 1) &&
           !strcmp(name + sizeof short_form - 1, strchr(class, '.') + 1);
}

static att_activation read_activation(att_settings *s)
{
    const char *name = att_settings_text(s, "activation_function", "torch.nn.Tanh");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_class(name, known[i].name))
            return known[i].activation;
    att_settings_unsupported(s, "activation_function",
                             "one of Tanh, ReLU, GELU, SiLU, Sigmoid and Identity of torch.nn");
    return ATT_ACTIVATION_IDENTITY;
}

static void read(att_settings *s, att_module *m)
{
    static const char *const keys[] = {"in_features",       "out_features",       "bias",         "activation_function",
                                       "module_input_name", "module_output_name", "use_residual", NULL};
    att_settings_only_known(s, keys);
    m->in_key = "in_features";
    m->in = att_settings_int(s, "in_features", 1, ATT_MAX_FEATURES);
    m->out = att_settings_int(s, "out_features", 1, ATT_MAX_FEATURES);
    m->bias = att_settings_bool(s, "bias", true);
    m->activation = read_activation(s);
    m->residual = att_settings_bool(s, "use_residual", false);
    att_module_read_names(s, m);
}

static void build(att_nn_params *p, att_module *m)
{
    m->linear = att_nn_linear_new(p, att_nn_join(m->name, "linear").text, m->in, m->out,
                                  ATT_OPTIONS(att_nn_linear_options, .no_bias = !m->bias));
    if (m->residual && m->in != m->out)
        m->shortcut = att_nn_linear_new(p, att_nn_join(m->name, "residual").text, m->in, m->out,
                                        ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
}

static att_var *apply(att_tape *t, const att_module *m, const att_texts *texts, att_var *x)
{
    (void)texts;
    att_var *residual = !m->residual  ? NULL
                        : m->shortcut ? att_nn_linear_apply(t, m->shortcut, x, ATT_ACTIVATION_IDENTITY, NULL)
                                      : x;
    return att_nn_linear_apply(t, m->linear, x, m->activation, residual);
}

const att_module_type att_module_dense = {.name = "Dense", .read = read, .build = build, .apply = apply};
