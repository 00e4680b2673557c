/* WordLevel: each piece is a token of the vocabulary, or unknown. */
#include "text/pipeline/pipeline.h"

#include <string.h>

static void read_wordlevel(att_settings *s, att_pipeline *t)
{
    const char *unknown = att_settings_text(s, "unk_token", NULL);
    if (!s->status)
        t->vocabulary.unknown = att_vocabulary_find(&t->vocabulary, unknown, strlen(unknown));
}

static void segment(att_encoding *e, const char *s, size_t bytes)
{
    const att_vocabulary *v = &e->t->vocabulary;
    const int32_t id = att_vocabulary_find(v, s, bytes);
    if (id != ATT_NO_TOKEN) {
        att_encoding_add(e, id, 0, bytes);
        return;
    }
    att_encoding_unknown(e, 0, bytes);
    if (v->unknown != ATT_NO_TOKEN)
        att_encoding_add(e, v->unknown, 0, bytes);
    else
        att_token_sink_fail(e->sink, att_fail(e->t->base.ctx, ATT_ERR_FORMAT,
                                              "\"%.*s\" is not in the vocabulary, which has no unknown token",
                                              (int)(bytes < 40 ? bytes : 40), s));
}

const att_subword_model att_wordlevel_model = {"WordLevel", read_wordlevel, segment};
