/* Pooling: makes the vector of a text from hidden states of its tokens, in one way or in several, whose results are
 * concatenated. */
#include "sentence/module.h"

#include <string.h>

/* The ways of pooling, in the order of the flags in sentence-transformers, which is that of their results. */
static const struct {
    const char *flag, *mode; /* older flags; newer "pooling_mode" */
    att_pooling kind;
} modes[] = {{"pooling_mode_cls_token", "cls", ATT_POOLING_CLS},
             {"pooling_mode_max_tokens", "max", ATT_POOLING_MAX},
             {"pooling_mode_mean_tokens", "mean", ATT_POOLING_MEAN},
             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", ATT_POOLING_MEAN_SQRT},
             {"pooling_mode_weightedmean_tokens", "weightedmean", ATT_POOLING_WEIGHTED_MEAN},
             {"pooling_mode_lasttoken", "lasttoken", ATT_POOLING_LAST}};
enum { N_MODES = sizeof modes / sizeof modes[0] };

/* Reads the flags that are set. If there are none, pooling is the mean. */
static void read_flags(att_settings *s, att_module *m)
{
    for (int i = 0; i < N_MODES; i++)
        if (att_settings_bool(s, modes[i].flag, false))
            m->pooling[m->poolings++] = modes[i].kind;
    if (m->poolings == 0)
        m->pooling[m->poolings++] = ATT_POOLING_MEAN;
}

static void add_mode(att_settings *s, att_module *m, const json_t *value)
{
    const char *name = json_string_value(value);
    for (int i = 0; name && i < N_MODES; i++)
        if (!strcmp(modes[i].mode, name)) {
            m->pooling[m->poolings++] = modes[i].kind;
            return;
        }
    att_settings_fail(s, name ? ATT_ERR_UNSUPPORTED : ATT_ERR_FORMAT,
                      "\"pooling_mode\" has %s, not one of cls, max, mean, mean_sqrt_len_tokens, weightedmean and "
                      "lasttoken",
                      att_json_show(value).text);
}

/* Reads "mean", or ["cls", "mean"]. */
static void read_modes(att_settings *s, att_module *m)
{
    const json_t *value = att_settings_get(s, "pooling_mode");
    const size_t n = json_array_size(value);
    if (!json_is_array(value)) {
        add_mode(s, m, value);
        return;
    }
    if (n < 1 || n > ATT_MAX_POOLINGS)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"pooling_mode\" is a list of %d, expected 1 to %d", (int)n,
                          ATT_MAX_POOLINGS);
    for (size_t i = 0; !s->status && i < n; i++)
        add_mode(s, m, json_array_get(value, i));
}

static void read(att_settings *s, att_module *m)
{
    static const char *const known[] = {"word_embedding_dimension",
                                        "embedding_dimension",
                                        "pooling_mode",
                                        "pooling_mode_cls_token",
                                        "pooling_mode_max_tokens",
                                        "pooling_mode_mean_tokens",
                                        "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens",
                                        "pooling_mode_lasttoken",
                                        "include_prompt",
                                        NULL};
    att_settings_only_known(s, known);
    m->in_key = att_settings_has(s, "embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension";
    m->in = att_settings_int(s, m->in_key, 1, ATT_MAX_FEATURES);
    (att_settings_has(s, "pooling_mode") ? read_modes : read_flags)(s, m);
    m->out = m->poolings * m->in;
    m->without_prompt = !att_settings_bool(s, "include_prompt", true);
}

static att_var *apply(att_tape *t, const att_module *m, const att_texts *texts, att_var *x)
{
    const int64_t skip = m->without_prompt ? texts->prompt : 0;
    att_var *y[ATT_MAX_POOLINGS];
    for (int i = 0; i < m->poolings; i++)
        y[i] = att_pool(t, x, texts->offsets, texts->n, m->pooling[i], skip);
    return m->poolings == 1 ? y[0] : att_concat(t, m->poolings, y, 1);
}

const att_module_type att_module_pooling = {.name = "Pooling", .read = read, .apply = apply};
