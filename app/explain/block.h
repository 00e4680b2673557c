/* The parts of the chapter block, and declarations that they share. */
#ifndef EXPLAIN_BLOCK_H
#define EXPLAIN_BLOCK_H

#include "page.h"

/* The sizes of a Transformer, named as in the paper (Vaswani et al. 2017). */
typedef struct block_sizes {
    int64_t n, d_model, d_ff, h, d_k, d_v; /* n layers in the encoder and n in the decoder */
} block_sizes;

int64_t block_encoder_parameters(const block_sizes *s); /* Returns the number of parameters of one layer. */
int64_t block_decoder_parameters(const block_sizes *s);

/* "1,048,576" */
const char *block_number(char text[32], int64_t n);

/* Shows the paper's sizes, counted. */
void block_counted(page *p);
/* Shows the shipped translator: its sizes, and its layers on a sentence. */
void block_translator(page *p);

#endif
