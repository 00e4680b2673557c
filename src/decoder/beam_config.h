/* Search settings of a model folder. */
#ifndef ATT_DECODER_BEAM_CONFIG_H
#define ATT_DECODER_BEAM_CONFIG_H

#include "decoder/beam_search.h"
#include "attend_translate.h"

enum { ATT_MAX_BEAMS = 1024, ATT_MAX_BANNED = 64 };

typedef struct att_generation {
    att_search search; /* `banned` points into this struct; n_best is 1 */
    int32_t banned[ATT_MAX_BANNED];
} att_generation;

/* Reads FOLDER/generation_config.json for the model m, or config.json if that file does not exist (older folders). out
 * must not move while it is used. The settings are those of the class GenerationConfig. An unsupported setting that
 * would change results is an error that names the file, the setting and its value. */
att_status att_generation_read(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m,
                               att_generation *out);
/* Sets *out to the default: greedy search without <pad>, with eos forced at the maximum length. */
void att_generation_greedy(const att_encoder_decoder_info *m, att_generation *out);
/* Writes FOLDER/generation_config.json with this beam size; <pad> is never generated, and probabilities are normalized
 * without it, as in training. */
att_status att_generation_write(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m, int64_t beam);

#endif
