/* Tokenizes texts after a prompt. */
#include "sentence/sentence.h"

#include <stdio.h>
#include <string.h>

att_status att_prompted_make(att_ctx *ctx, int64_t n, const char *const *texts, const size_t *bytes, const char *prompt,
                             att_prompted *out)
{
    const size_t before = strlen(prompt), heads = (size_t)n * (sizeof *out->text + sizeof *out->bytes);
    size_t all = heads;
    for (int64_t i = 0; i < n; i++)
        all += before + (bytes ? bytes[i] : strlen(texts[i]));
    out->text = att_alloc(ctx, all + 1, 1);
    if (!out->text)
        return ATT_ERR_MEMORY;
    out->bytes = (size_t *)(void *)(out->text + n);
    char *at = (char *)out->text + heads;
    for (int64_t i = 0; i < n; i++) {
        const size_t length = bytes ? bytes[i] : strlen(texts[i]);
        out->text[i] = memcpy(at, prompt, before);
        memcpy(at + before, texts[i], length);
        out->bytes[i] = before + length;
        at += before + length;
    }
    return ATT_OK;
}

static att_status tokenize(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                           att_tokens *out)
{
    const att_backbone *b = &m->backbone;
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = m->max_tokens, .no_special = b->info.no_special};
    return b->kind->tokenize ? b->kind->tokenize(b, n, texts, bytes, out)
                             : att_tokenize_batch(b->tokenizer, n, texts, bytes, &o, out);
}

att_status att_sentence_tokenize(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                 const char *prompt, att_tokens *out)
{
    att_prompted p = {0};
    memset(out, 0, (size_t)n * sizeof *out);
    if (!*prompt)
        return tokenize(m, n, texts, bytes, out);
    att_status s = att_prompted_make(m->model.ctx, n, texts, bytes, prompt, &p);
    s = s ? s : tokenize(m, n, p.text, p.bytes, out);
    att_free(m->model.ctx, p.text);
    return s;
}

/* Counts the tokens of the prompt by itself, without a special one at its end, as sentence-transformers does. */
att_status att_sentence_prompt_tokens(const att_sentence *m, const char *prompt, int64_t *count)
{
    bool all = true;
    att_tokens tokens;
    *count = 0;
    for (int i = 0; i < m->modules.n; i++)
        all &= !m->modules.module[i].without_prompt;
    if (all || !*prompt)
        return ATT_OK;
    const att_status s = att_sentence_tokenize(m, 1, &prompt, NULL, "", &tokens);
    if (s)
        return s;
    *count = tokens.count;
    if (tokens.count > 0 && att_tokenizer_is_special(m->backbone.tokenizer, tokens.ids[tokens.count - 1]))
        (*count)--;
    att_tokens_free(m->model.ctx, &tokens);
    return ATT_OK;
}

att_status att_sentence_choose_prompt(const att_sentence *m, const char *caller, const char *prompt, const char *name,
                                      const char **text)
{
    char what[128];
    snprintf(what, sizeof what, "%s: options.prompt_name", caller);
    if (prompt && name)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "%s: options.prompt and options.prompt_name are both given",
                        caller);
    if (prompt) {
        *text = prompt;
        return ATT_OK;
    }
    return att_prompts_find(m->model.ctx, &m->prompts, what, name, text);
}
