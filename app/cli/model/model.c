/* Contexts, and models by name. */
#include "checkpoints.h"
#include "cli/base/command.h"
#include "cli/base/in_use.h"
#include "cli/base/signals.h"
#include "known_models.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cli_keep_notes;
static char *notes[8]; /* as many as fit */
enum { MAX_NOTES = sizeof notes / sizeof *notes };

static void pass_note(void *user, const char *text)
{
    (void)user;
    int n = 0;
    while (n < MAX_NOTES && notes[n])
        n++;
    if (!cli_keep_notes)
        cli_note("%s", text);
    else if (n < MAX_NOTES && !(notes[n] = strdup(text)))
        cli_end_without_memory();
}

const char *cli_kept_note(int i) { return i < MAX_NOTES ? notes[i] : NULL; }

int cli_open(att_ctx **ctx, int64_t threads)
{
    return cli_status(NULL, att_open(ctx, ATT_OPTIONS(att_config, .n_threads = (int)threads, .cancel = &cli_signal,
                                                      .note = pass_note)));
}

/* ---- The kind of a model ---------------------------------------------------- */

static const struct {
    const char *name, *command; /* the first command that uses it */
} kinds[] = {{"sentence model", "attend embed"},
             {"translator", "attend translate"},
             {"language model", "attend chat"},
             {"vision model", "attend classify"},
             {"recommender", "attend recommend"},
             {"captioner", "attend caption"},
             {"model", ""}};

const char *cli_model_kind_name(cli_model_kind kind) { return kinds[kind].name; }

static bool is_file(const char *folder, const char *name)
{
    char path[sizeof(att_model_path) + sizeof "/base/model.safetensors"];
    struct stat s;
    snprintf(path, sizeof path, "%s%s", folder, name);
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
}

static bool has_gguf(const char *folder)
{
    bool found = false;
    DIR *d = opendir(folder);
    if (!d && errno == ENOMEM)
        cli_end_without_memory();
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = cli_has_extension(e->d_name, ".gguf");
    if (d)
        closedir(d);
    return found;
}

/* By model_type, or the end of the class's name; timm's models have an architecture. CLI_ANY_MODEL: unknown. */
static cli_model_kind kind_of_config(const json_t *config)
{
    static const struct {
        const char *type;
        cli_model_kind kind;
    } types[] = {{"bert", CLI_SENTENCE_MODEL},
                 {"marian", CLI_TRANSLATION_MODEL},
                 {"attend-seq2seq", CLI_TRANSLATION_MODEL},
                 {"vit", CLI_VISION_MODEL},
                 {"deit", CLI_VISION_MODEL},
                 {"dinov2", CLI_VISION_MODEL},
                 {"dinov2_with_registers", CLI_VISION_MODEL},
                 {"attend-vit", CLI_VISION_MODEL},
                 {"attend-sasrec", CLI_RECOMMENDER},
                 {"attend-bert4rec", CLI_RECOMMENDER},
                 {"attend-captioner", CLI_CAPTIONER}};
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel"};
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *class = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].type))
            return types[i].kind;
    for (size_t i = 0; class && i < sizeof ends / sizeof *ends; i++)
        if (cli_ends_with(class, ends[i]))
            return CLI_LANGUAGE_MODEL;
    return json_is_string(json_object_get(config, "architecture")) ? CLI_VISION_MODEL : CLI_ANY_MODEL;
}

cli_model_kind cli_model_kind_of(const char *path)
{
    char file[sizeof(att_model_path) + sizeof "/config.json"];
    if (is_file(path, "/modules.json"))
        return CLI_SENTENCE_MODEL;
    snprintf(file, sizeof file, "%s/config.json", path);
    errno = 0;
    json_t *config = json_load_file(file, 0, NULL);
    if (!config && errno == ENOMEM)
        cli_end_without_memory();
    const cli_model_kind found = kind_of_config(config);
    json_decref(config);
    return found == CLI_ANY_MODEL && !config && (is_file(path, "") || has_gguf(path)) ? CLI_LANGUAGE_MODEL : found;
}

bool cli_model_is(cli_model_kind kind, const char *name)
{
    att_model_path folder;
    const att_status s = name ? att_model_find(name, &folder) : ATT_ERR_IO;
    if (s == ATT_ERR_MEMORY)
        cli_end_without_memory();
    return s == ATT_OK && cli_model_kind_of(folder.text) == kind;
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
    static const char *const trainings[] = {
        [CLI_SENTENCE_MODEL] = "embed",  [CLI_TRANSLATION_MODEL] = "translate", [CLI_LANGUAGE_MODEL] = "embed",
        [CLI_VISION_MODEL] = "classify", [CLI_RECOMMENDER] = "recommend",       [CLI_CAPTIONER] = "caption",
        [CLI_ANY_MODEL] = "embed"};
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
        command = trainings[cli_model_kind_of(folder)];
    if (!code && (training || c.n > 0))
        code = cli_fail("%s has a training that has not %s: attend train %s --resume -o %s", name,
                        c.n > 0 && has_no_words(folder, &c) ? "trained captions yet" : "finished", command,
                        cli_quoted(name).text);
    json_decref(training);
    return code;
}

/* ---- Models by name --------------------------------------------------------- */

/* The models of a kind */
typedef struct model_list {
    cli_model_kind kind;
    int count;
    char first[256], names[512]; /* as many as fit */
} model_list;

static void add_of_kind(void *user, const char *name)
{
    model_list *list = user;
    att_model_path folder;
    if (att_model_find(name, &folder) || cli_model_kind_of(folder.text) != list->kind)
        return;
    if (list->count == 1 && !strcmp(list->first, name))
        return; /* in the models folder and among those that come with attend */
    if (list->count++ == 0)
        snprintf(list->first, sizeof list->first, "%s", name);
    const size_t n = strlen(list->names);
    snprintf(list->names + n, sizeof list->names - n, "%s%s", n ? ", " : "", name);
}

/* The model to fetch instead of a missing one: that of this name or, if there is no other model of the kind, any of the
 * kind; NULL: none. */
static const char *to_fetch(const char *name, const model_list *list)
{
    const cli_known_model *m = cli_known_model_find(name);
    for (const cli_known_model *k = cli_known_models; !m && list->count == 0 && k->name; k++)
        if (k->kind == list->kind)
            m = k;
    return m ? m->name : NULL;
}

/* The end of the message that no model has this name: the nearest one of the list or of those to download. */
static const char *near_model(cli_hint *hint, const char *name, model_list *list)
{
    const char *words[32];
    int n = 0;
    for (const cli_known_model *k = cli_known_models; k->name && n < 32; k++)
        if (k->kind == list->kind)
            words[n++] = k->name;
    for (char *word, *rest = list->names; n < 32 && (word = strsep(&rest, ", "));)
        if (*word)
            words[n++] = word;
    return cli_did_you_mean(hint, "", name, words, n, "");
}

static int find_named(cli_model_kind kind, const char *name, att_model_path *path)
{
    const att_status s = att_model_find(name, path);
    if (s != ATT_ERR_IO)
        return cli_status(NULL, s);
    char message[1024];
    snprintf(message, sizeof message, "%s", att_error(NULL));
    model_list list = {.kind = kind};
    const int code = cli_status(NULL, att_models_list(add_of_kind, &list));
    if (code)
        return code;
    const char *fetch = to_fetch(name, &list);
    cli_hint hint = {""};
    if (!cli_known_model_find(name) && *near_model(&hint, name, &list))
        fetch = NULL;
    return fetch ? cli_fail("%s; \"attend fetch %s\" downloads one", message, fetch)
                 : cli_fail("%s%s", message, hint.text);
}

static int find_only(cli_model_kind kind, att_model_path *path)
{
    model_list list = {.kind = kind};
    const int code = cli_status(NULL, att_models_list(add_of_kind, &list));
    if (code)
        return code;
    if (list.count > 1)
        return cli_misuse("--model MODEL is needed, as there are %d %ss: %s", list.count, kinds[kind].name, list.names);
    if (list.count == 1)
        return cli_status(NULL, att_model_find(list.first, path));
    const char *fetch = to_fetch("", &list);
    return cli_misuse("--model MODEL is needed, as no %s is in the models folder%s%s%s", kinds[kind].name,
                      fetch ? "; \"attend fetch " : "", fetch ? fetch : "", fetch ? "\" downloads one" : "");
}

int cli_model_find(cli_model_kind kind, const char *name, att_model_path *path)
{
    int code = name ? find_named(kind, name, path) : find_only(kind, path);
    if (!code)
        code = cli_in_use_model(name ? name : path->text, path->text);
    if (code || kind == CLI_ANY_MODEL)
        return code;
    const int unfinished = check_finished(name ? name : path->text, path->text);
    if (unfinished)
        return unfinished;
    const cli_model_kind found = cli_model_kind_of(path->text);
    if (found != kind && found != CLI_ANY_MODEL)
        return cli_fail("%s is a %s: %s", name, kinds[found].name, kinds[found].command);
    return CLI_DONE;
}

/* ---- Open and close ---------------------------------------------------------- */

int cli_model_open(cli_model *m, const char *name, int weights, int64_t threads)
{
    *m = (cli_model){.info = {.size = sizeof m->info}};
    int code = cli_model_find(CLI_SENTENCE_MODEL, name, &m->folder);
    m->name = name ? name : m->folder.text;
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_sentence_open(m->ctx, m->folder.text,
                                                    ATT_OPTIONS(att_model_options, .weights = (att_weight_type)weights),
                                                    &m->sentence));
    if (!code)
        att_sentence_describe(m->sentence, &m->info);
    else
        cli_model_close(m);
    if (!code && m->info.plain)
        cli_note("%s has no modules.json, which would state how its hidden states become an embedding: their mean is "
                 "taken, as sentence-transformers does",
                 m->name);
    return code;
}

void cli_model_close(cli_model *m)
{
    att_sentence_free(m->sentence);
    att_close(m->ctx);
    m->sentence = NULL;
    m->ctx = NULL;
}

int cli_translator_open(cli_translator *m, const char *name, int weights, int64_t threads)
{
    att_model_path folder;
    *m = (cli_translator){.info = {.size = sizeof m->info}};
    int code = cli_model_find(CLI_TRANSLATION_MODEL, name, &folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code =
            cli_status(m->ctx, att_translator_open(m->ctx, folder.text,
                                                   ATT_OPTIONS(att_model_options, .weights = (att_weight_type)weights),
                                                   &m->translator));
    if (!code)
        att_encoder_decoder_describe(att_translator_model(m->translator), &m->info);
    else
        cli_translator_close(m);
    return code;
}

void cli_translator_close(cli_translator *m)
{
    att_translator_free(m->translator);
    att_close(m->ctx);
    *m = (cli_translator){0};
}

/* ---- Tokenizers -------------------------------------------------------------- */

int cli_tokenizer_open(cli_tokenizer *t, const char *name)
{
    att_model_path folder;
    const char *path = name;
    *t = (cli_tokenizer){0};
    int code = CLI_DONE;
    if (!is_file(name, "")) {
        code = cli_model_find(CLI_ANY_MODEL, name, &folder);
        path = folder.text;
    }
    if (!code && is_file(path, "/modules.json")) { /* sentence-transformers: has a token limit */
        code = cli_model_open(&t->model, name, ATT_WEIGHTS_STORED, 1);
        t->ctx = t->model.ctx;
        t->tokenizer = code ? NULL : att_sentence_tokenizer(t->model.sentence);
        t->max_tokens = t->model.info.max_tokens;
    } else if (!code) {
        code = cli_open(&t->ctx, 1);
        if (!code)
            code = cli_status(t->ctx, att_tokenizer_open(t->ctx, path, &t->own));
        t->tokenizer = t->own;
    }
    if (code)
        cli_tokenizer_close(t);
    return code;
}

void cli_tokenizer_close(cli_tokenizer *t)
{
    const bool of_model = t->model.sentence != NULL;
    att_tokenizer_free(t->own);
    cli_model_close(&t->model);
    if (!of_model)
        att_close(t->ctx);
    *t = (cli_tokenizer){0};
}
