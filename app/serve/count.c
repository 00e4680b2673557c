#include "count.h"

bool serve_count_tokens(serve_call *c, const serve_model *m, const serve_element *p, int64_t max_tokens, int64_t *count)
{
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = max_tokens};
    att_tokens tokens = {0};
    const att_status s = p->pair.text ? att_tokenize_pair(m->tokenizer, p->text.text, p->text.bytes, p->pair.text,
                                                          p->pair.bytes, &o, &tokens)
                                      : att_tokenize(m->tokenizer, p->text.text, p->text.bytes, &o, &tokens);
    *count = tokens.count > 0 ? tokens.count : 1;
    if (s)
        serve_refuse(c, s == ATT_ERR_MEMORY ? 503 : 400, p->field, "%s[%lld]: %s", p->field, (long long)p->index,
                     att_error(c->shared->models.ctx));
    else
        att_tokens_free(c->shared->models.ctx, &tokens);
    return s == ATT_OK;
}

void serve_refuse_long(serve_call *c, const serve_model *m, const serve_element *p)
{
    int64_t count;
    if (serve_count_tokens(c, m, p, 0, &count))
        serve_refuse(c, 400, p->field,
                     "%s[%lld] has %lld tokens, but %s takes at most %lld: send a shorter text, or let it be truncated",
                     p->field, (long long)p->index, (long long)count, m->id, (long long)m->max_tokens);
}
