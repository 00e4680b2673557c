#include "models.h"

#include "generate_work.h"

#include "cli/model/model.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

/* Returns what requests call a model: the last part of a path, but both parts of OWNER/NAME in the Hub's cache. */
static void name_model(serve_model *m, const char *given)
{
    struct stat s;
    size_t n = strlen(given);
    while (n > 1 && given[n - 1] == '/')
        n--;
    const char *end = given + n, *begin = end;
    const bool is_path = stat(given, &s) == 0;
    while (begin > given && (!is_path || begin[-1] != '/'))
        begin--;
    snprintf(m->id, sizeof m->id, "%.*s", (int)(end - begin), begin);
}

serve_model *serve_models_find(const serve_models *m, const char *name, size_t bytes)
{
    for (int i = 0; i < m->n; i++)
        if (strlen(m->model[i]->id) == bytes && !memcmp(m->model[i]->id, name, bytes))
            return m->model[i];
    for (int i = 0; i < m->aliases; i++)
        if (strlen(m->alias[i].name) == bytes && !memcmp(m->alias[i].name, name, bytes))
            return (serve_model *)m->alias[i].model;
    return NULL;
}

serve_model *serve_models_first(const serve_models *m, att_subject subject)
{
    for (int i = 0; i < m->n; i++)
        if (m->model[i]->subject == subject)
            return m->model[i];
    return NULL;
}

/* ---- what a model is ---- */

static void describe_weights(serve_model *m)
{
    att_model_weights w = {.size = sizeof w};
    int largest = ATT_F32;
    if (att_any_model_weights(m->opened, &w))
        return;
    for (int i = 0; i < ATT_MAX_DTYPES; i++) {
        m->bytes += w.stored[i];
        if (w.used[i] > w.used[largest])
            largest = i;
    }
    m->dtype = att_dtype_name((att_dtype)largest);
    m->compute = att_compute_name(w.compute);
}

/* Reads a language code from the end of a folder's name, such as "opus-mt-de-en"; *end moves before it. */
static bool read_code(const char *name, const char **end, char to[16])
{
    const char *begin = *end;
    while (begin > name && islower((unsigned char)begin[-1]))
        begin--;
    const size_t n = (size_t)(*end - begin);
    if (n < 2 || n > 3 || begin == name || begin[-1] != '-')
        return false;
    memcpy(to, begin, n);
    to[n] = '\0';
    *end = begin - 1;
    return true;
}

/* Finds the languages of a translator: as tokenizer_config.json states them, or as its name ends. */
static void find_languages(serve_model *m)
{
    char path[sizeof m->folder + 32];
    snprintf(path, sizeof path, "%s/tokenizer_config.json", m->folder.text);
    json_t *settings = json_load_file(path, 0, NULL);
    const char *source = json_string_value(json_object_get(settings, "source_lang")),
               *target = json_string_value(json_object_get(settings, "target_lang"));
    if (source && target) {
        snprintf(m->source, sizeof m->source, "%s", source);
        snprintf(m->target, sizeof m->target, "%s", target);
    } else {
        const char *slash = strrchr(m->folder.text, '/'), *name = slash ? slash + 1 : m->folder.text,
                   *end = name + strlen(name);
        if (!read_code(name, &end, m->target) || !read_code(name, &end, m->source))
            m->source[0] = m->target[0] = '\0';
    }
    json_decref(settings);
}

/* Opens the chat template, which a model need not have. */
static void open_template(serve_model *m)
{
    if (att_chat_template_open(m->ctx, m->folder.text, NULL, NULL, &m->template))
        snprintf(m->no_template, sizeof m->no_template, "%s", att_error(m->ctx));
}

/* Finds how many tokens the texts of a language model may have: all together, and one. */
static void limit_texts(serve_model *m, int64_t cache_bytes)
{
    m->session_tokens = serve_session_tokens(&m->info.language, cache_bytes);
    m->max_tokens = m->info.language.max_positions;
    if (m->session_tokens < m->max_tokens)
        m->max_tokens = m->session_tokens;
}

static att_status describe(serve_model *m)
{
    const void *opened = att_any_model_as(m->opened, m->subject);
    att_status s = ATT_OK;
    switch (m->subject) {
    case ATT_SUBJECT_SENTENCE:
        m->info.sentence.size = sizeof m->info.sentence;
        s = att_sentence_describe(opened, &m->info.sentence);
        m->max_tokens = m->info.sentence.max_tokens;
        m->tokenizer = att_sentence_tokenizer(opened);
        break;
    case ATT_SUBJECT_CLASSIFIER:
        m->info.classifier.size = sizeof m->info.classifier;
        s = att_text_classifier_describe(opened, &m->info.classifier);
        m->max_tokens = m->info.classifier.max_tokens;
        m->tokenizer = att_text_classifier_tokenizer(opened);
        break;
    case ATT_SUBJECT_TRANSLATE:
        m->info.translator.size = sizeof m->info.translator;
        s = att_encoder_decoder_describe(att_translator_model(opened), &m->info.translator);
        m->max_tokens = m->info.translator.max_positions;
        m->tokenizer = att_translator_tokenizer(opened);
        find_languages(m);
        break;
    case ATT_SUBJECT_LANGUAGE:
        m->info.language.size = sizeof m->info.language;
        s = att_language_model_describe(att_text_generator_model(opened), &m->info.language);
        m->tokenizer = att_text_generator_tokenizer(opened);
        open_template(m);
        break;
    case ATT_SUBJECT_CAPTION:
        m->info.captioner.size = sizeof m->info.captioner;
        s = att_caption_model_describe(opened, &m->info.captioner);
        break;
    case ATT_SUBJECT_RECOMMEND:
        m->info.recommender.size = sizeof m->info.recommender;
        s = att_recommender_describe(opened, &m->info.recommender);
        break;
    case ATT_SUBJECT_VISION:
    case ATT_SUBJECT_NONE:
        break;
    }
    describe_weights(m);
    return s;
}

/* ---- opening ---- */

/* Opens a model that serve_models owns from here on. `given`: as the user named it. */
static int open_model(serve_models *m, const char *given, const serve_settings *o)
{
    serve_model *new = m->n < SERVE_MODELS ? calloc(1, sizeof *new) : NULL;
    struct stat folder;
    if (!new)
        return m->n < SERVE_MODELS ? cli_fail_memory()
                                   : cli_misuse("--model: there can be at largest %d", SERVE_MODELS);
    m->model[m->n++] = new;
    name_model(new, given);
    new->ctx = m->ctx;
    new->rate = 1000;
    int code = cli_model_find(ATT_SUBJECT_NONE, given, &new->folder);
    if (code)
        return code;
    m->n--;
    const serve_model *same = serve_models_find(m, new->id, strlen(new->id));
    m->n++;
    if (same)
        return cli_misuse("two models are called %s: %s and %s; rename one, or leave one out", new->id,
                          same->folder.text, new->folder.text);
    if (!stat(new->folder.text, &folder))
        new->created = (int64_t)folder.st_mtime;
    att_status s = att_any_model_open(m->ctx, new->folder.text, ATT_SUBJECT_NONE,
                                      ATT_OPTIONS(att_model_options, .weights = (att_weight_type)o->types.weights,
                                                  .compute = (att_compute)o->types.compute, .prepare = true),
                                      &new->opened);
    new->identity.size = sizeof new->identity;
    s = s ? s : att_any_model_describe(new->opened, &new->identity);
    new->subject = new->identity.subject;
    s = s ? s : describe(new);
    if (!s && new->subject == ATT_SUBJECT_LANGUAGE)
        limit_texts(new, o->max_cache << 20);
    return cli_status(m->ctx, s);
}

static void free_model(serve_model *m)
{
    serve_session_free(m->session);
    att_chat_template_free(m->template);
    att_any_model_free(m->opened);
    free(m);
}

typedef struct all_models {
    serve_models *m;
    const serve_settings *settings;
} all_models;

/* Opens a model of the models folder or one that comes with attend. What cannot be opened is reported and left out. */
static void open_listed(void *user, const char *name)
{
    all_models *all = user;
    serve_models *m = all->m;
    if (m->n == SERVE_MODELS || serve_models_find(m, name, strlen(name)))
        return;
    if (open_model(m, name, all->settings)) {
        cli_note("%s is not served", name);
        m->n--;
        free_model(m->model[m->n]);
    }
}

/* Adds the name of --alias NAME=MODEL. */
static int add_alias(serve_models *m, const char *text)
{
    const char *is = strchr(text, '=');
    if (!is || is == text || !is[1] || (size_t)(is - text) >= SERVE_NAME)
        return cli_misuse("--alias: \"%s\" is not NAME=MODEL", text);
    const serve_model *model = serve_models_find(m, is + 1, strlen(is + 1));
    if (!model)
        return cli_misuse("--alias: no model that is served is called \"%s\"", is + 1);
    if (serve_models_find(m, text, (size_t)(is - text)) || m->aliases == SERVE_MODELS)
        return cli_misuse("--alias: \"%.*s\" is already the name of a model", (int)(is - text), text);
    snprintf(m->alias[m->aliases].name, SERVE_NAME, "%.*s", (int)(is - text), text);
    m->alias[m->aliases++].model = model;
    return CLI_DONE;
}

int serve_models_open(serve_models *m, const serve_settings *s)
{
    all_models all = {.m = m, .settings = s};
    int code = CLI_DONE;
    for (int i = 0; !code && i < s->models.n; i++)
        code = open_model(m, s->models.text[i], s);
    if (!code && s->models.n == 0)
        code = cli_status(NULL, att_models_list(open_listed, &all));
    if (!code && m->n == 0)
        code = cli_fail("there is no model to serve: \"attend fetch all-MiniLM-L6-v2\" downloads one");
    for (int i = 0; !code && i < s->aliases.n; i++)
        code = add_alias(m, s->aliases.text[i]);
    return code;
}

void serve_models_close(serve_models *m)
{
    for (int i = 0; i < m->n; i++)
        free_model(m->model[i]);
    m->n = m->aliases = 0;
}
