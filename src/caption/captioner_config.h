/* Reads config.json of "attend-captioner" strictly, and writes it. */
#ifndef ATT_CAPTION_CAPTIONER_CONFIG_H
#define ATT_CAPTION_CAPTIONER_CONFIG_H

#include "io/settings.h"
#include "caption/image_cnn.h"

/* The value of "model_type" in config.json. */
#define ATT_CAPTIONER_TYPE "attend-captioner"

typedef enum att_captioner_encoder { ATT_CAPTIONER_CNN, ATT_CAPTIONER_VIT } att_captioner_encoder;
typedef enum att_captioner_decoder {
    ATT_CAPTIONER_GRU,
    ATT_CAPTIONER_LSTM,
    ATT_CAPTIONER_TRANSFORMER
} att_captioner_decoder;

typedef struct att_captioner_config {
    att_captioner_encoder encoder;
    int64_t image[2], channels;                      /* of the CNN: height, width and channels of its images */
    int64_t stage[ATT_IMAGE_CNN_MAX_STAGES], stages; /* channels after each stage */
    int64_t grid[2], features;                       /* rows and columns of locations; numbers of a location */
    int64_t presence;                                /* words that are predicted from the grid; 0: none */
    att_captioner_decoder decoder;
    bool attention, gate;                            /* of a recurrent decoder; a Transformer has attention */
    int64_t hidden, embedding, layers;               /* of the decoder; embedding: of a recurrent one */
    int64_t heads, intermediate;                     /* of a Transformer */
    int64_t vocabulary, max_positions, unknown, end; /* ids; `end` is the first input, too */
} att_captioner_config;

/* Returns "gru", "lstm" or "transformer". */
const char *att_captioner_decoder_name(const att_captioner_config *c);
/* Reads settings in the format of config.json. Errors name the file, the setting and its value. */
void att_captioner_config_read(att_settings *s, att_captioner_config *c);
/* Returns the settings as JSON in the format of config.json; NULL: out of memory. */
json_t *att_captioner_config_json(const att_captioner_config *c);

#endif
