/* The recurrent encoder-decoder, internal. Public: att_seq2seq_*. */
#ifndef ATT_TRANSLATE_SEQ2SEQ_H
#define ATT_TRANSLATE_SEQ2SEQ_H

#include "translate/encoder_decoder.h"
#include "decoder/recurrent_decoder.h"

extern const att_architecture att_seq2seq_architecture;

struct att_seq2seq {
    att_encoder_decoder base;
    att_seq2seq_config config;
    att_param *source; /* table */
    const att_nn_recurrent *encoder;
    att_recurrent_decoder decoder;
};

#endif
