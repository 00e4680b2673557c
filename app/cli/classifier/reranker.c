#include "reranker.h"

#include "cli/base/progress.h"

#include <stdlib.h>

int cli_reranker_open(cli_reranker *r, const char *name, cli_types types, int64_t threads)
{
    *r = (cli_reranker){.activation = ATT_TEXT_ACTIVATION_MODEL};
    int code = cli_model_open(&r->m.base, &cli_text_classifier_kind, name, types, threads);
    if (!code)
        code = cli_text_classifier_need_score(&r->m);
    return code;
}

void cli_reranker_close(cli_reranker *r) { cli_model_close(&r->m.base); }

int cli_reranker_rank(cli_reranker *r, const char *query, size_t bytes, int64_t n, const char *const *documents,
                      const size_t *document_bytes, int64_t top, att_ranked_text *out)
{
    bool *truncated = calloc((size_t)n + 1, sizeof *truncated);
    if (!truncated)
        return cli_fail_memory();
    cli_share progress = cli_share_of_call("pairs", n);
    const att_text_rank_options o = {.size = sizeof o,
                                     .top = top,
                                     .activation = r->activation,
                                     .max_tokens = r->max_tokens,
                                     .truncated = truncated,
                                     .progress = r->quiet ? NULL : cli_share_report,
                                     .user = &progress};
    const att_status s = att_text_rank(r->m.model, query, bytes, n, documents, document_bytes, &o, out);
    cli_share_end(&progress);
    for (int64_t i = 0; !s && i < n; i++)
        r->truncated += truncated[i];
    r->pairs += n;
    free(truncated);
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", r->m.base.name, att_error(r->m.base.ctx))
                               : cli_status(r->m.base.ctx, s);
}

void cli_reranker_note(const cli_reranker *r)
{
    cli_text_classifier_note(&r->m, r->truncated, r->pairs, "pairs of query and document", r->max_tokens);
}
