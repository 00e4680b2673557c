/* Text generators, internal: text_generator.c and generate.c. */
#ifndef ATT_LANGUAGE_TEXT_GENERATOR_H
#define ATT_LANGUAGE_TEXT_GENERATOR_H

#include "attend_language.h"
#include "attend_util.h"

enum { ATT_MAX_EOS = 64 };

/* The settings of generation_config.json. */
typedef struct att_generation_config {
    att_sampling sampling;
    int32_t eos[ATT_MAX_EOS]; /* [n_eos] end tokens */
    int64_t n_eos;
} att_generation_config;

struct att_text_generator {
    att_ctx *ctx;
    att_language_model *model;
    att_tokenizer *tokenizer;
    att_language_model_info info;
    att_generation_config config;
};

/* Reads the settings of a folder whose model has this vocabulary. (sampling_config.c) */
att_status att_generation_config_read(att_ctx *ctx, const char *folder, int64_t vocabulary, att_generation_config *out);

/* Finds the latest earlier occurrence of the last three, otherwise of the last two, of ids [n], and writes the tokens
 * after it to out [max]. Returns their number; 0 if there is none. out may be ids + n: then a repetition is continued.
 * (generate_lookup.c) */
int64_t att_lookup(const int32_t *ids, int64_t n, int64_t max, int32_t *out);

#endif
