#include "stack/rotary_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_POSITIONS = 1 << 24 };

void att_rotary_frequencies(double base, int64_t dims, double *frequency)
{
    for (int64_t i = 0; i < dims / 2; i++)
        frequency[i] = pow(base, -2 * (double)i / (double)dims);
}

/* Frequencies of long contexts as in Llama 3.1: slow ones are divided by the factor, fast ones stay, and those between
 * are interpolated. */
static void scale_llama3(att_settings *s, double *frequency, int64_t n)
{
    const double pi = 3.14159265358979323846;
    const double factor = att_settings_number(s, "factor", 1e-3, 1e6);
    const double low = att_settings_number(s, "low_freq_factor", 1e-3, 1e6);
    const double high = att_settings_number(s, "high_freq_factor", 1e-3, 1e6);
    const double original = (double)att_settings_int(s, "original_max_position_embeddings", 1, MAX_POSITIONS);
    if (!s->status && high <= low)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%shigh_freq_factor\" is %g, not above \"low_freq_factor\", %g",
                          s->within, high, low);
    for (int64_t i = 0; !s->status && i < n; i++) {
        const double turns = original * frequency[i] / (2 * pi); /* of a pair over the original context */
        const double smooth = fmin(fmax((turns - low) / (high - low), 0), 1);
        frequency[i] = smooth * frequency[i] + (1 - smooth) * frequency[i] / factor;
    }
}

/* Factors of a .gguf file, one for each frequency */
static void scale_factors(att_settings *s, double *frequency, int64_t n)
{
    const json_t *factors = att_settings_list(s, "factors", true);
    if (!s->status && json_array_size(factors) != (size_t)n)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%sfactors\" has %zu numbers, not %lld", s->within,
                          json_array_size(factors), (long long)n);
    for (int64_t i = 0; !s->status && i < n; i++) {
        const double factor = json_number_value(json_array_get(factors, (size_t)i));
        if (!(factor >= 1e-3 && factor <= 1e6))
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%sfactors\" has %s, not a number in [0.001, 1000000]", s->within,
                              att_json_show(json_array_get(factors, (size_t)i)).text);
        else
            frequency[i] /= factor;
    }
}

att_rotary_scaling att_rotary_scale(att_settings *s, double *frequency, int64_t n)
{
    att_rotary_scaling out = {.factor = 1};
    const char *key = att_settings_has(s, "rope_type") ? "rope_type" : "type";
    const char *type = att_settings_text(s, key, "default");
    if (!strcmp(type, "llama3"))
        scale_llama3(s, frequency, n);
    else if (!strcmp(type, "factors"))
        scale_factors(s, frequency, n);
    else if (!strcmp(type, "linear")) {
        out.factor = att_settings_number(s, "factor", 1e-3, 1e6);
        for (int64_t i = 0; !s->status && i < n; i++)
            frequency[i] /= out.factor;
    } else if (strcmp(type, "default") != 0)
        att_settings_unsupported(s, key, "one of default, linear and llama3");
    snprintf(out.type, sizeof out.type, "%s", type);
    return out;
}
