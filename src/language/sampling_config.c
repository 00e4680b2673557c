/* Reads generation_config.json of a language model. */
#include "io/settings.h"
#include "model/gguf_model.h"
#include "language/text_generator.h"

#include <float.h>
#include <math.h>

static float number(att_settings *s, const char *key, double min, double max, double otherwise)
{
    return (float)(att_settings_has(s, key) ? att_settings_number(s, key, min, max) : otherwise);
}

static void read_sampling(att_settings *s, att_sampling *out)
{
    *out = (att_sampling){
        .size = sizeof *out,
        .sample = att_settings_bool(s, "do_sample", false),
        .temperature = number(s, "temperature", 0, 1e6, 1),
        .top_k = att_settings_has(s, "top_k") ? att_settings_int(s, "top_k", 0, INT32_MAX) : 50,
        .top_p = number(s, "top_p", 0, 1, 1),
        .min_p = number(s, "min_p", 0, 1, 0),
        .repetition_penalty = number(s, "repetition_penalty", 1e-3, 1e3, 1),
    };
    if (!s->status && out->temperature == 0) { /* as in folders that do not sample */
        out->sample = false;
        out->temperature = 1;
    }
    if (out->top_p == 0) /* only the most probable token; in att_sampling 0 would mean the default */
        out->top_p = FLT_MIN;
}

/* Checks settings that would change the text. */
static void check_others(att_settings *s)
{
    static const struct {
        const char *key;
        double only;
    } numbers[] = {{"num_beams", 1},
                   {"num_beam_groups", 1},
                   {"num_return_sequences", 1},
                   {"typical_p", 1},
                   {"epsilon_cutoff", 0},
                   {"eta_cutoff", 0},
                   {"encoder_repetition_penalty", 1},
                   {"no_repeat_ngram_size", 0},
                   {"encoder_no_repeat_ngram_size", 0},
                   {"diversity_penalty", 0},
                   {"guidance_scale", 1},
                   {"min_length", 0},
                   {"min_new_tokens", 0}};
    static const char *const none[] = {"bad_words_ids",       "forced_bos_token_id",
                                       "forced_eos_token_id", "suppress_tokens",
                                       "sequence_bias",       "force_words_ids",
                                       "constraints",         "exponential_decay_length_penalty",
                                       "penalty_alpha",       "dola_layers",
                                       "watermarking_config", "begin_suppress_tokens",
                                       "forced_decoder_ids",  "top_h",
                                       "stop_strings",        "max_time"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        att_settings_only_number(s, numbers[i].key, numbers[i].only);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        att_settings_only_empty(s, none[i]);
    att_settings_only_bool(s, "token_healing", false);
}

static void add_eos(att_settings *s, const json_t *value, int64_t vocabulary, att_generation_config *out)
{
    const double id = json_number_value(value);
    if (!json_is_number(value) || id != floor(id) || out->n_eos == ATT_MAX_EOS)
        att_settings_unsupported(s, "eos_token_id", "a token or a list of at most 64");
    else if (!(id >= 0 && id < (double)vocabulary))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"eos_token_id\" has %g, but the model's tokens are 0 to %lld", id,
                          (long long)vocabulary - 1);
    else
        out->eos[out->n_eos++] = (int32_t)id;
}

/* Reads a number, or a list of numbers. */
static void read_eos(att_settings *s, int64_t vocabulary, att_generation_config *out)
{
    const json_t *value = s->status ? NULL : att_settings_get(s, "eos_token_id"), *item;
    size_t i;
    if (!json_is_array(value) && att_settings_has(s, "eos_token_id"))
        add_eos(s, value, vocabulary, out);
    json_array_foreach(value, i, item)
    {
        add_eos(s, item, vocabulary, out);
        if (s->status)
            return;
    }
}

att_status att_generation_config_read(att_ctx *ctx, const char *folder, int64_t vocabulary, att_generation_config *out)
{
    att_settings s, config;
    *out = (att_generation_config){0};
    att_model_settings_read(&config, ctx, folder, "config.json", false);
    att_model_settings_read(&s, ctx, folder, "generation_config.json", false);
    const bool has_own = s.root != NULL || s.status;
    att_settings *from = has_own ? &s : &config;
    read_sampling(from, &out->sampling);
    check_others(from);
    read_eos(from, vocabulary, out);
    if (has_own && !s.status && !att_settings_has(&s, "eos_token_id"))
        read_eos(&config, vocabulary, out);
    const att_status e = s.status ? s.status : config.status;
    att_settings_close(&s);
    att_settings_close(&config);
    return e;
}
