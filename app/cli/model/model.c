/* Models by name. */
#include "model.h"

#include "checkpoints.h"
#include "cli/base/in_use.h"
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "known_models.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The subject of a model ------------------------------------------------- */

/* Commands by subject: the first one that uses a model, and the training of one */
static const struct {
    const char *use, *training;
} commands[] = {[ATT_SUBJECT_NONE] = {"", "embed"},
                [ATT_SUBJECT_SENTENCE] = {"attend embed", "embed"},
                [ATT_SUBJECT_TRANSLATE] = {"attend translate", "translate"},
                [ATT_SUBJECT_LANGUAGE] = {"attend chat", "embed"},
                [ATT_SUBJECT_VISION] = {"attend classify", "classify"},
                [ATT_SUBJECT_CAPTION] = {"attend caption", "caption"},
                [ATT_SUBJECT_RECOMMEND] = {"attend recommend", "recommend"}};

static bool is_file(const char *folder, const char *name)
{
    char path[sizeof(att_model_path) + sizeof "/base/model.safetensors"];
    struct stat s;
    snprintf(path, sizeof path, "%s%s", folder, name);
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
}

att_subject cli_model_subject(const char *path)
{
    att_ctx *ctx = NULL;
    att_model_identity id = {.size = sizeof id};
    att_status s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1));
    s = s ? s : att_model_identify(ctx, path, &id); /* opening it reports what is wrong with it */
    att_close(ctx);
    if (s == ATT_ERR_MEMORY)
        cli_end_without_memory();
    return id.subject;
}

bool cli_model_is(att_subject subject, const char *name)
{
    att_model_path folder;
    const att_status s = name ? att_model_find(name, &folder) : ATT_ERR_IO;
    if (s == ATT_ERR_MEMORY)
        cli_end_without_memory();
    return s == ATT_OK && cli_model_subject(folder.text) == subject;
}

/* Has the training of a captioner trained word prediction alone? */
static bool has_no_words(const char *folder, const cli_checkpoints *c)
{
    char path[sizeof(att_model_path) + sizeof c->newest];
    att_ctx *ctx = NULL;
    att_safetensors *f = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, c->newest);
    const bool opened = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1)) == ATT_OK &&
                        att_safetensors_open(ctx, path, &f) == ATT_OK;
    const char *step = opened ? att_safetensors_metadata(f, "step") : NULL,
               *presence = step ? att_safetensors_metadata(f, "presence_steps") : NULL;
    const bool none = presence && strtoll(step, NULL, 10) <= strtoll(presence, NULL, 10);
    att_safetensors_free(f);
    att_close(ctx);
    return none;
}

/* Refuses the folder of a training that was killed before it wrote a model. */
static int check_finished(const char *name, const char *folder)
{
    cli_checkpoints c;
    json_t *training = NULL;
    if (is_file(folder, "/model.safetensors"))
        return CLI_DONE;
    if (is_file(folder, "/base/model.safetensors")) { /* which att_recommender_open opens */
        cli_note(
            "%s: its training is replacing the model, or was killed then, so that in %s/base is used; attend train "
            "recommend --resume -o %s continues it",
            name, folder, cli_quoted(name).text);
        return CLI_DONE;
    }
    int code = cli_training_file_read(folder, &training);
    cli_checkpoints_find(folder, &c);
    const char *command = json_string_value(json_object_get(training, "command"));
    if (!command)
        command = commands[cli_model_subject(folder)].training;
    if (!code && (training || c.n > 0))
        code = cli_fail("%s has a training that has not %s: attend train %s --resume -o %s", name,
                        c.n > 0 && has_no_words(folder, &c) ? "trained captions yet" : "finished", command,
                        cli_quoted(name).text);
    json_decref(training);
    return code;
}

/* ---- Models by name --------------------------------------------------------- */

/* The models of a subject */
typedef struct model_list {
    att_subject subject;
    int count;
    char first[256], names[512]; /* as many as fit */
} model_list;

static void add_of_subject(void *user, const char *name)
{
    model_list *list = user;
    att_model_path folder;
    if (att_model_find(name, &folder) || cli_model_subject(folder.text) != list->subject)
        return;
    if (list->count == 1 && !strcmp(list->first, name))
        return; /* in the models folder and among those that come with attend */
    if (list->count++ == 0)
        snprintf(list->first, sizeof list->first, "%s", name);
    const size_t n = strlen(list->names);
    snprintf(list->names + n, sizeof list->names - n, "%s%s", n ? ", " : "", name);
}

/* The model to fetch instead of a missing one: that of this name or, if there is no other model of the subject, any of
 * the subject; NULL: none. */
static const char *to_fetch(const char *name, const model_list *list)
{
    const cli_known_model *m = cli_known_model_find(name);
    for (const cli_known_model *k = cli_known_models; !m && list->count == 0 && k->name; k++)
        if (k->subject == list->subject)
            m = k;
    return m ? m->name : NULL;
}

/* The end of the message that no model has this name: the nearest one of the list or of those to download. */
static const char *near_model(cli_hint *hint, const char *name, model_list *list)
{
    const char *words[32];
    int n = 0;
    for (const cli_known_model *k = cli_known_models; k->name && n < 32; k++)
        if (k->subject == list->subject)
            words[n++] = k->name;
    for (char *word, *rest = list->names; n < 32 && (word = strsep(&rest, ", "));)
        if (*word)
            words[n++] = word;
    return cli_did_you_mean(hint, "", name, words, n, "");
}

static int find_named(att_subject subject, const char *name, att_model_path *path)
{
    const att_status s = att_model_find(name, path);
    if (s != ATT_ERR_IO)
        return cli_status(NULL, s);
    char message[1024];
    snprintf(message, sizeof message, "%s", att_error(NULL));
    model_list list = {.subject = subject};
    const int code = cli_status(NULL, att_models_list(add_of_subject, &list));
    if (code)
        return code;
    const char *fetch = to_fetch(name, &list);
    cli_hint hint = {""};
    if (!cli_known_model_find(name) && *near_model(&hint, name, &list))
        fetch = NULL;
    return fetch ? cli_fail("%s; \"attend fetch %s\" downloads one", message, fetch)
                 : cli_fail("%s%s", message, hint.text);
}

static int find_only(att_subject subject, att_model_path *path)
{
    model_list list = {.subject = subject};
    const int code = cli_status(NULL, att_models_list(add_of_subject, &list));
    if (code)
        return code;
    if (list.count > 1)
        return cli_misuse("--model MODEL is needed, as there are %d %ss: %s", list.count, att_subject_name(subject),
                          list.names);
    if (list.count == 1)
        return cli_status(NULL, att_model_find(list.first, path));
    const char *fetch = to_fetch("", &list);
    return cli_misuse("--model MODEL is needed, as no %s is in the models folder%s%s%s", att_subject_name(subject),
                      fetch ? "; \"attend fetch " : "", fetch ? fetch : "", fetch ? "\" downloads one" : "");
}

int cli_model_find(att_subject subject, const char *name, att_model_path *path)
{
    int code = name ? find_named(subject, name, path) : find_only(subject, path);
    if (!code)
        code = cli_in_use_model(name ? name : path->text, path->text);
    if (code || subject == ATT_SUBJECT_NONE)
        return code;
    const int unfinished = check_finished(name ? name : path->text, path->text);
    if (unfinished)
        return unfinished;
    const att_subject found = cli_model_subject(path->text);
    if (found != subject && found != ATT_SUBJECT_NONE)
        return cli_fail("%s is a %s: %s", name, att_subject_name(found), commands[found].use);
    return CLI_DONE;
}

/* ---- Opening ----------------------------------------------------------------- */

/* Conversion takes its time: an int8 of a model of some GB that is stored as f32. */
static int open_path(cli_model *m, const att_model_options *options)
{
    cli_share p = cli_share_of_call("% opened", 100);
    att_model_options o = *options;
    o.progress = cli_share_report;
    o.user = &p;
    const att_status s = att_any_model_open(m->ctx, m->folder.text, m->kind->subject, &o, &m->opened);
    cli_share_end(&p);
    return cli_status(m->ctx, s);
}

int cli_model_open(cli_model *m, const cli_model_kind *kind, const char *name, int weights, int64_t threads)
{
    return cli_model_open_with(m, kind, name, ATT_OPTIONS(att_model_options, .weights = (att_weight_type)weights),
                               threads);
}

int cli_model_open_with(cli_model *m, const cli_model_kind *kind, const char *name, const att_model_options *options,
                        int64_t threads)
{
    *m = (cli_model){.kind = kind};
    int code = cli_model_find(kind->subject, name, &m->folder);
    m->name = name ? name : m->folder.text;
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = open_path(m, options);
    if (!code)
        code = kind->describe(m);
    if (code)
        cli_model_close(m);
    return code;
}

void cli_model_close(cli_model *m)
{
    if (m->opened && m->kind->free)
        m->kind->free(m);
    att_any_model_free(m->opened);
    att_close(m->ctx);
    m->opened = NULL;
    m->ctx = NULL;
}
