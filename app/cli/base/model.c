/* Contexts, and models by name. */
#include "cli.h"

#include <string.h>
#include <sys/stat.h>

int cli_open(att_ctx **ctx, int64_t threads)
{
    return cli_status(NULL, att_open(ctx, ATT_OPTIONS(att_config, .n_threads = (int)threads, .cancel = &cli_signal)));
}

static void find_minilm(void *found, const char *name) { *(bool *)found |= strstr(name, "MiniLM") != NULL; }

int cli_model_find(const char *name, att_model_path *path)
{
    bool minilm = false;
    const att_status s = att_model_find(name, path);
    if (s != ATT_ERR_IO)
        return cli_status(NULL, s);
    char message[1024];
    snprintf(message, sizeof message, "%s", att_error(NULL));
    const int code = cli_status(NULL, att_models_list(find_minilm, &minilm));
    return code ? code : cli_fail("%s%s", message, minilm ? "" : "; \"./dev demo\" fetches all-MiniLM-L6-v2");
}

int cli_model_open(cli_model *m, const char *name, int64_t threads)
{
    att_model_path folder;
    *m = (cli_model){.name = name, .info = {.size = sizeof m->info}};
    int code = cli_model_find(name, &folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_sentence_open(m->ctx, folder.text, &m->sentence));
    if (!code)
        att_sentence_describe(m->sentence, &m->info);
    else
        cli_model_close(m);
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
    att_model_path folder;
    *m = (cli_translator){.info = {.size = sizeof m->info}};
    int code = cli_model_find(name, &folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_translator_open(m->ctx, folder.text, &m->translator));
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

static bool is_file(const char *folder, const char *name)
{
    char path[sizeof(att_model_path) + sizeof "/modules.json"];
    struct stat s;
    snprintf(path, sizeof path, "%s%s", folder, name);
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
}

int cli_tokenizer_open(cli_tokenizer *t, const char *name)
{
    att_model_path folder;
    const char *path = name;
    *t = (cli_tokenizer){0};
    int code = CLI_DONE;
    if (!is_file(name, "")) {
        code = cli_model_find(name, &folder);
        path = folder.text;
    }
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
