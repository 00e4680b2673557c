#include "sentence.h"

static int describe(cli_model *base)
{
    cli_sentence *m = (cli_sentence *)base;
    m->sentence = att_any_model_as(base->opened, ATT_SUBJECT_SENTENCE);
    m->info = (att_sentence_info){.size = sizeof m->info};
    const int code = cli_status(base->ctx, att_sentence_describe(m->sentence, &m->info));
    if (!code && m->info.plain)
        cli_note("%s has no modules.json, which would state how its hidden states become an embedding: their mean is "
                 "taken, as sentence-transformers does",
                 base->name);
    return code;
}

const cli_model_kind cli_sentence_kind = {.subject = ATT_SUBJECT_SENTENCE, .describe = describe};
