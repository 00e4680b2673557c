#include "text_classifier.h"

static int describe(cli_model *base)
{
    cli_text_classifier *m = (cli_text_classifier *)base;
    m->model = att_any_model_as(base->opened, ATT_SUBJECT_CLASSIFIER);
    m->info = (att_text_classifier_info){.size = sizeof m->info};
    return cli_status(base->ctx, att_text_classifier_describe(m->model, &m->info));
}

const cli_model_kind cli_text_classifier_kind = {.subject = ATT_SUBJECT_CLASSIFIER, .describe = describe};

int cli_text_classifier_need_score(const cli_text_classifier *m)
{
    return m->info.labels == 1
               ? CLI_DONE
               : cli_fail("%s has %lld labels (%s, %s%s), not one score: \"attend classify --pairs FILE\" prints their "
                          "probabilities",
                          m->base.name, (long long)m->info.labels, att_text_classifier_label(m->model, 0),
                          att_text_classifier_label(m->model, 1), m->info.labels > 2 ? ", ..." : "");
}

int cli_text_classifier_check_tokens(const cli_text_classifier *m, int64_t max_tokens)
{
    return max_tokens > m->info.max_tokens
               ? cli_misuse("--max-tokens %lld: %s takes at most %lld", (long long)max_tokens, m->base.name,
                            (long long)m->info.max_tokens)
               : CLI_DONE;
}

void cli_text_classifier_note(const cli_text_classifier *m, int64_t truncated, int64_t n, const char *items,
                              int64_t max_tokens)
{
    if (truncated)
        cli_note("%lld of %lld %s are longer than %lld tokens and were truncated", (long long)truncated, (long long)n,
                 items, (long long)(max_tokens ? max_tokens : m->info.max_tokens));
}
