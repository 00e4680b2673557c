/* Documents in the order of a text classifier's scores with a query. */
#ifndef CLI_CLASSIFIER_RERANKER_H
#define CLI_CLASSIFIER_RERANKER_H

#include "text_classifier.h"

typedef struct cli_reranker {
    cli_text_classifier m;
    att_text_activation activation;
    int64_t max_tokens;       /* of a pair; 0: the model's */
    bool quiet;               /* show no progress */
    int64_t pairs, truncated; /* so far */
} cli_reranker;

/* Opens a model. name NULL: the only text classifier. *r must not move until it is closed.
 */
int cli_reranker_open(cli_reranker *r, const char *name, cli_types types, int64_t threads);
void cli_reranker_close(cli_reranker *r);
/* Ranks documents [n] by their scores with a query -> out [top], top at most n. */
int cli_reranker_rank(cli_reranker *r, const char *query, size_t bytes, int64_t n, const char *const *documents,
                      const size_t *document_bytes, int64_t top, att_ranked_text *out);
/* Reports how many pairs were truncated, if any. */
void cli_reranker_note(const cli_reranker *r);

#endif
