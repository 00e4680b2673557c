/* Scores of texts and of pairs of texts by a classifier: the work behind reranking and classification. */
#ifndef SERVE_SCORE_WORK_H
#define SERVE_SCORE_WORK_H

#include "call.h"

typedef struct serve_scoring {
    /* given: */
    const char *field; /* for messages: field[i] is text i, or the second one of pair i */
    int64_t n;
    const char *const *text, *const *pair; /* [n]; pair NULL: texts stand alone */
    const size_t *bytes, *pair_bytes;
    att_text_activation activation;
    bool refuse_long; /* what is too long is refused instead of truncated */
    /* computed: */
    float *scores; /* [n, labels] */
    int64_t tokens, truncated;
} serve_scoring;

/* Computes scores. Returns false if the request was refused. serve_scoring_free frees them, also then. */
bool serve_score(serve_call *c, serve_model *m, serve_scoring *s);
void serve_scoring_free(serve_scoring *s);

#endif
