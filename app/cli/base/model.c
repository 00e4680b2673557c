/* Contexts, the models folder, and models by name. */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_open(att_ctx **ctx, int64_t threads)
{
    return cli_status(NULL, att_open(ctx, ATT_OPTIONS(att_config, .n_threads = (int)threads, .cancel = &cli_signal)));
}

char *cli_models_folder(void)
{
    const char *own = getenv("ATTEND_MODELS"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char *folder = NULL;
    int n;
    if (own && *own)
        n = asprintf(&folder, "%s", own);
    else if (data && *data)
        n = asprintf(&folder, "%s/attend/models", data);
    else
        n = asprintf(&folder, "%s/.local/share/attend/models", home ? home : "");
    return n < 0 ? NULL : folder;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The models folder of the installation, relative to the program's own path, so the tree may be moved; malloc'd, NULL:
 * none. */
static int models_shipped(char **folder)
{
    static const char *const from_program[] = {CLI_DATA_FROM_PROGRAM "/attend/models",
                                               "models"}; /* installed; as built */
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    *folder = NULL;
    if (n < 0)
        return CLI_DONE;
    program[n] = 0;
    *strrchr(program, '/') = 0;
    for (size_t i = 0; i < sizeof from_program / sizeof from_program[0]; i++) {
        if (asprintf(folder, "%s/%s", program, from_program[i]) < 0) {
            *folder = NULL;
            return cli_fail_memory();
        }
        if (is_folder(*folder))
            return CLI_DONE;
        free(*folder);
        *folder = NULL;
    }
    return CLI_DONE;
}

/* The folders that are searched for models by name; free both. */
static int models_folders(char **own, char **shipped)
{
    *own = cli_models_folder();
    *shipped = NULL;
    return *own ? models_shipped(shipped) : cli_fail_memory();
}

static int list_folder(const char *folder, void (*each)(void *arg, const char *name), void *arg)
{
    struct dirent **entries;
    errno = 0;
    int n = folder ? scandir(folder, &entries, NULL, alphasort) : -1;
    if (n < 0)
        return errno == ENOMEM ? cli_fail_memory() : CLI_DONE;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/config.json", folder, entries[i]->d_name);
        struct stat s;
        if (entries[i]->d_name[0] != '.' && stat(path, &s) == 0)
            each(arg, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return CLI_DONE;
}

int cli_models_list(void (*each)(void *arg, const char *name), void *arg)
{
    char *own, *shipped;
    int code = models_folders(&own, &shipped);
    if (!code)
        code = list_folder(own, each, arg);
    if (!code)
        code = list_folder(shipped, each, arg);
    free(own);
    free(shipped);
    return code;
}

static void append_name(void *arg, const char *name)
{
    char *list = arg; /* [512] */
    size_t n = strlen(list);
    snprintf(list + n, 512 - n, "%s%s", n ? ", " : "", name);
}

static int not_found(const char *name, const char *folder)
{
    char list[512] = "";
    const int code = cli_models_list(append_name, list);
    if (code)
        return code;
    return cli_fail("\"%s\" is no folder and no model in %s, and none that comes with attend; there are: %s%s", name,
                    folder, *list ? list : "none",
                    strstr(list, "MiniLM") ? "" : "; \"./dev demo\" fetches all-MiniLM-L6-v2");
}

int cli_model_find(const char *name, char **path)
{
    char *own, *shipped;
    int code = models_folders(&own, &shipped);
    const char *const folders[] = {"", own, shipped};
    *path = NULL;
    for (int i = 0; !code && !*path && *name && i < 3; i++) {
        if (!folders[i])
            continue;
        if (asprintf(path, "%s%s%s", folders[i], *folders[i] ? "/" : "", name) < 0) {
            *path = NULL;
            code = cli_fail_memory();
        } else if (!is_folder(*path)) {
            free(*path);
            *path = NULL;
        }
    }
    if (!code && !*path)
        code = not_found(name, own);
    free(own);
    free(shipped);
    return code;
}

int cli_model_open(cli_model *m, const char *name, int64_t threads)
{
    char *folder = NULL;
    *m = (cli_model){.name = name, .info = {.size = sizeof m->info}};
    int code = cli_model_find(name, &folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_sentence_open(m->ctx, folder, &m->sentence));
    if (!code)
        att_sentence_describe(m->sentence, &m->info);
    else
        cli_model_close(m);
    free(folder);
    return code;
}

void cli_model_close(cli_model *m)
{
    att_sentence_free(m->sentence);
    att_close(m->ctx);
    m->sentence = NULL;
    m->ctx = NULL;
}

int cli_translator_open(cli_translator *m, const char *name, int64_t threads)
{
    char *folder = NULL;
    *m = (cli_translator){.info = {.size = sizeof m->info}};
    int code = cli_model_find(name, &folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_translator_open(m->ctx, folder, &m->translator));
    if (!code)
        att_encoder_decoder_describe(att_translator_model(m->translator), &m->info);
    else
        cli_translator_close(m);
    free(folder);
    return code;
}

void cli_translator_close(cli_translator *m)
{
    att_translator_free(m->translator);
    att_close(m->ctx);
    *m = (cli_translator){0};
}

/* ---- Tokenizers -------------------------------------------------------------- */

static bool is_file(const char *folder, const char *name)
{
    char path[4096];
    struct stat s;
    snprintf(path, sizeof path, "%s%s", folder, name);
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
}

int cli_tokenizer_open(cli_tokenizer *t, const char *name)
{
    char *path = NULL;
    *t = (cli_tokenizer){0};
    int code = CLI_DONE;
    if (is_file(name, ""))
        path = strdup(name);
    else
        code = cli_model_find(name, &path);
    if (!code && !path)
        code = cli_fail_memory();
    if (!code && is_file(path, "/modules.json")) { /* sentence-transformers: has a token limit */
        code = cli_model_open(&t->model, name, 1);
        t->ctx = t->model.ctx;
        t->tokenizer = code ? NULL : att_sentence_tokenizer(t->model.sentence);
        t->max_tokens = t->model.info.max_tokens;
    } else if (!code) {
        code = cli_open(&t->ctx, 1);
        if (!code)
            code = cli_status(t->ctx, att_tokenizer_open(t->ctx, path, &t->own));
        t->tokenizer = t->own;
    }
    free(path);
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
