#include "decoder/beam_config.h"
#include "io/settings.h"
#include "util/util.h"

enum { MAX_TOKENS = 1 << 20 };

static int64_t whole(att_settings *s, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
    return att_settings_has(s, key) ? att_settings_int(s, key, min, max) : otherwise;
}

static void read_banned(att_settings *s, att_generation *g)
{
    const json_t *list = att_settings_list(s, "bad_words_ids", false), *word;
    att_search *o = &g->search;
    size_t i;
    json_array_foreach(list, i, word)
    {
        const double id = json_array_size(word) == 1 ? json_number_value(json_array_get(word, 0)) : 0;
        if (json_array_size(word) != 1 || !json_is_number(json_array_get(word, 0)) || o->n_banned == ATT_MAX_BANNED) {
            att_settings_unsupported(s, "bad_words_ids", "a list of at most 64 tokens, each in brackets");
            return;
        }
        if (!(id >= 0 && id < (double)o->vocabulary && id == (double)(int32_t)id)) {
            att_settings_fail(s, ATT_ERR_FORMAT, "\"bad_words_ids\" has %g, but the model's tokens are 0 to %d", id,
                              (int)o->vocabulary - 1);
            return;
        }
        if ((int32_t)id != o->end)
            g->banned[o->n_banned++] = (int32_t)id;
    }
}

/* Settings that must have their default value, because they are not supported. */
static void check_others(att_settings *s)
{
    static const struct {
        const char *key;
        double only;
    } numbers[] = {{"num_return_sequences", 1},
                   {"repetition_penalty", 1},
                   {"encoder_repetition_penalty", 1},
                   {"no_repeat_ngram_size", 0},
                   {"encoder_no_repeat_ngram_size", 0},
                   {"num_beam_groups", 1},
                   {"diversity_penalty", 0},
                   {"guidance_scale", 1}};
    static const char *const none[] = {"forced_bos_token_id", "suppress_tokens",     "begin_suppress_tokens",
                                       "sequence_bias",       "force_words_ids",     "exponential_decay_length_penalty",
                                       "penalty_alpha",       "watermarking_config", "dola_layers",
                                       "constraints",         "stop_strings",        "max_time"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        att_settings_only_number(s, numbers[i].key, numbers[i].only);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        att_settings_only_empty(s, none[i]);
    att_settings_only_bool(s, "do_sample", false);
    att_settings_only_bool(s, "token_healing", false);
}

static void read(att_settings *s, const att_encoder_decoder_info *m, att_generation *g)
{
    att_search *o = &g->search;
    const int64_t last = m->target_vocabulary - 1;
    /* max_length and min_length count the start token; the latter and min_new_tokens do not count eos. */
    const int64_t max = whole(s, "max_length", 2, MAX_TOKENS, m->max_positions);
    const int64_t min = whole(s, "min_length", 0, MAX_TOKENS, 0);
    const int64_t min_new = whole(s, "min_new_tokens", 0, MAX_TOKENS, -1) + 1;
    o->vocabulary = m->target_vocabulary;
    o->beam = whole(s, "num_beams", 1, ATT_MAX_BEAMS, 1);
    o->n_best = 1;
    o->max_tokens = whole(s, "max_new_tokens", 1, MAX_TOKENS, max - 1);
    o->min_tokens = att_max(min, min_new);
    o->start = (int32_t)whole(s, "decoder_start_token_id", 0, last, m->start);
    o->end = (int32_t)whole(s, "eos_token_id", 0, last, m->eos);
    o->force_end = att_settings_has(s, "forced_eos_token_id");
    if (o->force_end && att_settings_int(s, "forced_eos_token_id", 0, last) != o->end)
        att_settings_unsupported(s, "forced_eos_token_id", "that of \"eos_token_id\"");
    o->length_penalty = att_settings_has(s, "length_penalty") ? att_settings_number(s, "length_penalty", -100, 100) : 1;
    o->early_stopping = att_settings_bool(s, "early_stopping", false);
    o->renormalize = att_settings_bool(s, "renormalize_logits", false);
    o->banned = g->banned;
    read_banned(s, g);
    check_others(s);
}

att_status att_generation_read(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m, att_generation *out)
{
    att_settings s;
    *out = (att_generation){0};
    att_settings_read(&s, ctx, folder, "generation_config.json", false);
    if (!s.status && !s.root)
        att_settings_read(&s, ctx, folder, "config.json", true);
    read(&s, m, out);
    att_settings_close(&s);
    return s.status;
}

void att_generation_greedy(const att_encoder_decoder_info *m, att_generation *out)
{
    *out = (att_generation){.search = {.vocabulary = m->target_vocabulary,
                                       .beam = 1,
                                       .n_best = 1,
                                       .max_tokens = m->max_positions - 1,
                                       .length_penalty = 1,
                                       .start = (int32_t)m->start,
                                       .end = (int32_t)m->eos,
                                       .force_end = true,
                                       .n_banned = 1},
                            .banned = {(int32_t)m->pad}};
    out->search.banned = out->banned;
}

att_status att_generation_write(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m, int64_t beam)
{
    json_t *root =
        json_pack("{s:I, s:I, s:I, s:I, s:[[I]], s:b, s:I, s:I}", "decoder_start_token_id", (json_int_t)m->start,
                  "eos_token_id", (json_int_t)m->eos, "forced_eos_token_id", (json_int_t)m->eos, "pad_token_id",
                  (json_int_t)m->pad, "bad_words_ids", (json_int_t)m->pad, "renormalize_logits", true, "max_length",
                  (json_int_t)m->max_positions, "num_beams", (json_int_t)beam);
    return att_settings_write(ctx, folder, "generation_config.json", root);
}
