#include "stack/mixed_layers.h"

#include <string.h>

static const char full[] = "full_attention", sliding[] = "sliding_attention";

/* ---- which layers slide */

static void read_pattern(att_settings *s, const att_mixed_keys *keys, int64_t layers, bool *slides)
{
    const int64_t every = att_settings_int_or(s, keys->every, 1, INT32_MAX, keys->default_every);
    for (int64_t i = 0; !s->status && i < layers; i++)
        slides[i] = i % every != (keys->last ? every - 1 : 0);
}

static void read_types(att_settings *s, const att_mixed_keys *keys, int64_t layers, bool *slides)
{
    const json_t *types = att_settings_list(s, "layer_types", false);
    if (!types) {
        read_pattern(s, keys, layers, slides);
        return;
    }
    if (!s->status && (int64_t)json_array_size(types) != layers)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"layer_types\" has %zu types, but there are %lld layers",
                          json_array_size(types), (long long)layers);
    for (int64_t i = 0; !s->status && i < layers; i++) {
        const json_t *item = json_array_get(types, (size_t)i);
        const char *type = json_is_string(item) ? json_string_value(item) : "";
        slides[i] = !strcmp(type, sliding);
        if (!slides[i] && strcmp(type, full) != 0)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                              "\"layer_types\" has %s, which is not supported; full_attention and sliding_attention "
                              "are",
                              att_json_show(item).text);
    }
}

/* ---- rotary positions */

/* Reads what the object that was entered states of one type of layers. */
static void read_rotary(att_settings *s, double base, int64_t head_dim, double *frequency)
{
    att_settings_only_number(s, "partial_rotary_factor", 1);
    att_rotary_frequencies(att_settings_number_or(s, "rope_theta", 1, 1e12, base), head_dim, frequency);
    att_rotary_scale(s, frequency, head_dim / 2);
}

/* "rope_parameters": an object with one for each type; null stands for the defaults. */
static void read_newer(att_settings *s, const double base[2], int64_t head_dim, double *const frequency[2])
{
    static const char *const known[] = {full, sliding, NULL};
    const att_settings_scope file = att_settings_enter(s, "rope_parameters");
    att_settings_only_known(s, known);
    for (int i = 0; !s->status && i < 2; i++) {
        att_rotary_frequencies(base[i], head_dim, frequency[i]);
        if (!att_settings_has(s, known[i]))
            continue;
        const att_settings_scope both = att_settings_enter(s, known[i]);
        read_rotary(s, base[i], head_dim, frequency[i]);
        att_settings_leave(s, both);
    }
    att_settings_leave(s, file);
}

static void read_older(att_settings *s, const double base[2], bool sliding_scaled, int64_t head_dim,
                       double *const frequency[2])
{
    for (int i = 0; i < 2; i++) {
        att_rotary_frequencies(base[i], head_dim, frequency[i]);
        if (s->status || !att_settings_has(s, "rope_scaling") || (i == 1 && !sliding_scaled))
            continue;
        const att_settings_scope file = att_settings_enter(s, "rope_scaling");
        read_rotary(s, base[i], head_dim, frequency[i]);
        att_settings_leave(s, file);
    }
}

/* The base of sliding layers is that of the others if it is null, as in the class that has the older keys. */
static void read_frequencies(att_settings *s, const att_mixed_keys *keys, int64_t head_dim, att_mixed_layers *out)
{
    double base[2] = {att_settings_number_or(s, keys->full, 1, 1e12, keys->default_full)};
    const double otherwise = att_settings_has_key(s, keys->sliding) ? base[0] : keys->default_sliding;
    base[1] = att_settings_number_or(s, keys->sliding, 1, 1e12, otherwise);
    double *const frequency[2] = {out->full, out->sliding};
    if (!att_settings_has(s, "rope_parameters")) {
        read_older(s, base, keys->sliding_scaled, head_dim, frequency);
        return;
    }
    att_settings_only_empty(s, "rope_scaling"); /* which of them would count? */
    read_newer(s, base, head_dim, frequency);
}

/* ---- all */

void att_mixed_layers_read(att_settings *s, const att_mixed_keys *keys, int64_t layers, int64_t head_dim,
                           att_mixed_layers *out)
{
    if (s->status)
        return;
    read_types(s, keys, layers, out->slides);
    read_frequencies(s, keys, head_dim, out);
}

att_rotary_options att_mixed_layers_rotary(const att_mixed_layers *m, int64_t layer)
{
    return (att_rotary_options){.size = sizeof(att_rotary_options),
                                .frequencies = m->slides[layer] ? m->sliding : m->full};
}
