/* Settings that text encoders with rotary positions have in common. */
#ifndef ATT_STACK_ENCODER_CONFIG_H
#define ATT_STACK_ENCODER_CONFIG_H

#include "attend_encoder.h"
#include "io/settings.h"

/* The keys of a class */
typedef struct att_encoder_keys {
    const char *hidden, *layers, *heads, *intermediate, *positions;
} att_encoder_keys;
/* "hidden_size" and so on */
extern const att_encoder_keys att_encoder_usual_keys;

/* Reads sizes; "vocab_size" has one name in all classes. */
void att_encoder_config_read(att_settings *s, const att_encoder_keys *keys, att_encoder_info *out);
/* Checks the features of a head, an even number up to ATT_MAX_HEAD_DIM; given 0: hidden / heads, a whole number. 0
 * after an error */
int64_t att_encoder_head_dim(att_settings *s, const att_encoder_keys *keys, const att_encoder_info *c, int64_t given);

#endif
