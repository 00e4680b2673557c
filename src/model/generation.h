/* How a model's folder wants it to be searched. */
#ifndef ATT_MODEL_GENERATION_H
#define ATT_MODEL_GENERATION_H

#include "model/beam_search.h"

enum { ATT_MAX_BEAMS = 1024, ATT_MAX_BANNED = 64 };

typedef struct att_generation {
    att_search search; /* its banned are these; n_best is 1 */
    int32_t banned[ATT_MAX_BANNED];
} att_generation;

/* FOLDER/generation_config.json, or config.json where there is none, as in older folders, for the model m. out stays
 * where it is while it is used. Settings are those of the class GenerationConfig; one that would change what is found
 * and is not supported is an error, which names the file, the setting and its value. */
att_status att_generation_read(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m,
                               att_generation *out);
/* Where nothing was said: the likeliest token each time, but never <pad>, up to the end, which is forced. */
void att_generation_greedy(const att_encoder_decoder_info *m, att_generation *out);
/* FOLDER/generation_config.json: so many beams, and <pad> is never generated. Scores count without it, as it is
 * learnt. */
att_status att_generation_write(att_ctx *ctx, const char *folder, const att_encoder_decoder_info *m, int64_t beam);

#endif
