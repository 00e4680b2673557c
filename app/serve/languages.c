#include "languages.h"

#include <string.h>

/* English names of ISO 639 codes. */
static const char *const names[][2] = {
    {"ar", "Arabic"},
    {"az", "Azerbaijani"},
    {"bg", "Bulgarian"},
    {"bn", "Bengali"},
    {"ca", "Catalan"},
    {"cs", "Czech"},
    {"da", "Danish"},
    {"de", "German"},
    {"el", "Greek"},
    {"en", "English"},
    {"eo", "Esperanto"},
    {"es", "Spanish"},
    {"et", "Estonian"},
    {"eu", "Basque"},
    {"fa", "Persian"},
    {"fi", "Finnish"},
    {"fr", "French"},
    {"ga", "Irish"},
    {"gl", "Galician"},
    {"he", "Hebrew"},
    {"hi", "Hindi"},
    {"hr", "Croatian"},
    {"hu", "Hungarian"},
    {"id", "Indonesian"},
    {"is", "Icelandic"},
    {"it", "Italian"},
    {"ja", "Japanese"},
    {"ka", "Georgian"},
    {"ko", "Korean"},
    {"lt", "Lithuanian"},
    {"lv", "Latvian"},
    {"mk", "Macedonian"},
    {"ms", "Malay"},
    {"mt", "Maltese"},
    {"nb", "Norwegian Bokmål"},
    {"nl", "Dutch"},
    {"nn", "Norwegian Nynorsk"},
    {"no", "Norwegian"},
    {"pl", "Polish"},
    {"pt", "Portuguese"},
    {"ro", "Romanian"},
    {"ru", "Russian"},
    {"sk", "Slovak"},
    {"sl", "Slovenian"},
    {"sq", "Albanian"},
    {"sr", "Serbian"},
    {"sv", "Swedish"},
    {"sw", "Swahili"},
    {"th", "Thai"},
    {"tl", "Tagalog"},
    {"tr", "Turkish"},
    {"uk", "Ukrainian"},
    {"ur", "Urdu"},
    {"vi", "Vietnamese"},
    {"zh", "Chinese"},
};

static const char *name_of(const char *code)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], code))
            return names[i][1];
    return code;
}

static bool is_translator(const serve_model *m) { return m->subject == ATT_SUBJECT_TRANSLATE && *m->source; }

/* Lists the pairs of languages as "de-en, fr-en". */
static const char *list_pairs(const serve_models *m, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; i < m->n && used < size; i++)
        if (is_translator(m->model[i]))
            used += (size_t)snprintf(text + used, size - used, "%s%s-%s", used ? ", " : "", m->model[i]->source,
                                     m->model[i]->target);
    return text;
}

static bool is_code(serve_text t, const char *code)
{
    return strlen(code) == t.bytes && !memcmp(code, t.text, t.bytes);
}

static bool translates(const serve_model *m, serve_text source, serve_text target)
{
    return (is_code(source, "auto") || is_code(source, m->source)) && (!target.text || is_code(target, m->target));
}

/* Returns how many bytes of a code are quoted. */
static int quoted(serve_text t) { return t.bytes < 16 ? (int)t.bytes : 16; }

/* Returns the model of that name. If it does not state its languages, any are accepted. */
static serve_model *named_translator(serve_call *c, serve_text name, serve_text source, serve_text target)
{
    serve_model *m = serve_call_model(c, name, ATT_SUBJECT_TRANSLATE);
    if (!m || !is_translator(m) || translates(m, source, target))
        return m;
    serve_refuse(c, 400, is_code(target, m->target) ? "source" : "target",
                 "%s translates from %s to %s, not from %.*s to %.*s", m->id, m->source, m->target, quoted(source),
                 source.text, quoted(target), target.text);
    return NULL;
}

serve_model *serve_translator(serve_call *c, serve_text name, serve_text source, serve_text target)
{
    char pairs[512];
    const serve_models *all = &c->shared->models;
    serve_model *found = NULL;
    if (name.text)
        return named_translator(c, name, source, target);
    for (int i = 0; i < all->n; i++) {
        serve_model *m = all->model[i];
        if (!is_translator(m) || !translates(m, source, target))
            continue;
        if (found && strcmp(found->source, m->source)) {
            serve_refuse(c, 400, "source", "the language cannot be detected, as there are models for several: %s",
                         list_pairs(all, pairs, sizeof pairs));
            return NULL;
        }
        found = found ? found : m;
    }
    if (!found)
        serve_refuse(c, 400, target.text ? "target" : NULL, "no model translates from %.*s to %.*s; there are: %s",
                     quoted(source), source.text, quoted(target), target.text ? target.text : "",
                     list_pairs(all, pairs, sizeof pairs));
    return found;
}

/* Returns whether an earlier model than model i has the same source. */
static bool is_repeated(const serve_models *m, int i)
{
    for (int k = 0; k < i; k++)
        if (is_translator(m->model[k]) && !strcmp(m->model[k]->source, m->model[i]->source))
            return true;
    return false;
}

void serve_languages_write(cli_json *j, const serve_models *m)
{
    cli_json_array(j, NULL);
    for (int i = 0; i < m->n; i++) {
        const char *source = m->model[i]->source;
        if (!is_translator(m->model[i]) || is_repeated(m, i))
            continue;
        cli_json_object(j, NULL);
        cli_json_string(j, "code", source);
        cli_json_string(j, "name", name_of(source));
        cli_json_array(j, "targets");
        for (int k = i; k < m->n; k++)
            if (is_translator(m->model[k]) && !strcmp(m->model[k]->source, source))
                cli_json_string(j, NULL, m->model[k]->target);
        cli_json_end(j);
        cli_json_end(j);
    }
    cli_json_end(j);
}
