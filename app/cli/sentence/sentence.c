#include "sentence.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Reports how a folder without modules.json makes a vector of hidden states. */
static void note_plain(const cli_sentence *m)
{
    cli_note("%s has no modules.json, which would state how its hidden states become an embedding: %s is taken, as "
             "sentence-transformers does",
             m->base.name, m->info.pooling[0] == ATT_POOLING_LAST ? "that of the last token" : "their mean");
}

static int describe(cli_model *base)
{
    cli_sentence *m = (cli_sentence *)base;
    m->sentence = att_any_model_as(base->opened, ATT_SUBJECT_SENTENCE);
    m->info = (att_sentence_info){.size = sizeof m->info};
    const int code = cli_status(base->ctx, att_sentence_describe(m->sentence, &m->info));
    if (!code && m->info.plain)
        note_plain(m);
    return code;
}

const cli_model_kind cli_sentence_kind = {.subject = ATT_SUBJECT_SENTENCE, .describe = describe};

/* ---- Prompts -------------------------------------------------------------------- */

/* Returns whether a text is one word, as names of prompts are. Other texts have other characters, too. */
static bool is_word(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '-' || text[n] == '_')
        n++;
    return n > 0 && !text[n];
}

/* Refuses a word that is not the name of one of the model's prompts. */
static int refuse_name(const cli_sentence *m, const char *option, const char *given)
{
    const int n = (int)m->info.prompts;
    const char **names = malloc(((size_t)n + 1) * sizeof *names);
    cli_hint hint;
    if (!names)
        return cli_fail_memory();
    for (int i = 0; i < n; i++)
        att_sentence_prompt_at(m->sentence, i, &names[i]);
    cli_fail(
        "--%s: %s has no prompt \"%s\"%s", option, m->base.name, given,
        cli_did_you_mean(&hint, "", given, names, n,
                         "; \"attend info\" lists them; a text before each text is more than a word, as \"query: \""));
    free(names);
    return CLI_FAILED;
}

int cli_sentence_prompt(const cli_sentence *m, const char *option, const char *given, const char *usual,
                        const char **prompt)
{
    const char *name;
    *prompt = NULL;
    for (int64_t i = 0; given && i < m->info.prompts; i++) {
        const char *text = att_sentence_prompt_at(m->sentence, i, &name);
        if (!strcmp(name, given))
            *prompt = text;
    }
    if (*prompt)
        return CLI_DONE;
    if (given && is_word(given))
        return refuse_name(m, option, given);
    *prompt = given;
    return given ? CLI_DONE : cli_status(m->base.ctx, att_sentence_prompt(m->sentence, usual, prompt));
}
