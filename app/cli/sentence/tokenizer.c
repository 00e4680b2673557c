#include "tokenizer.h"

#include <sys/stat.h>

static bool is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
}

int cli_tokenizer_open(cli_tokenizer *t, const char *name)
{
    att_model_path folder;
    const char *path = name;
    char modules[sizeof folder + sizeof "/modules.json"];
    *t = (cli_tokenizer){0};
    int code = CLI_DONE;
    if (!is_file(name)) {
        code = cli_model_find(ATT_SUBJECT_NONE, name, &folder);
        path = folder.text;
    }
    if (!code)
        snprintf(modules, sizeof modules, "%s/modules.json", path);
    if (!code && is_file(modules)) { /* sentence-transformers: has a token limit */
        code = cli_model_open(&t->model.base, &cli_sentence_kind, name, (cli_types){0}, 1);
        t->ctx = t->model.base.ctx;
        t->tokenizer = code ? NULL : att_sentence_tokenizer(t->model.sentence);
        t->max_tokens = code ? 0 : t->model.info.max_tokens;
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
    const bool of_model = t->model.base.opened;
    att_tokenizer_free(t->own);
    cli_model_close(&t->model.base);
    if (!of_model)
        att_close(t->ctx);
    *t = (cli_tokenizer){0};
}
