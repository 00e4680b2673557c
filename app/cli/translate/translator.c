#include "translator.h"

static int describe(cli_model *base)
{
    cli_translator *m = (cli_translator *)base;
    m->translator = att_any_model_as(base->opened, ATT_SUBJECT_TRANSLATE);
    m->info = (att_encoder_decoder_info){.size = sizeof m->info};
    return cli_status(base->ctx, att_encoder_decoder_describe(att_translator_model(m->translator), &m->info));
}

const cli_model_kind cli_translator_kind = {.subject = ATT_SUBJECT_TRANSLATE, .describe = describe};
