/* Models from the Python package index to the models folder. */
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "cli/model/known_models.h"
#include "download.h"
#include "fetch.h"

#include <string.h>
#include <sys/stat.h>

bool cli_fetch_json;

bool cli_fetch_is_of_hub(const char *name) { return strchr(name, '/'); }

/* folder NULL: it is missing. */
static void print_json(cli_json *j, const cli_known_model *m, const char *folder)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "name", m->name);
    cli_json_integer(j, "bytes", m->wheel.bytes);
    cli_json_string(j, "license", m->license);
    cli_json_string(j, "kind", att_subject_name(m->subject));
    cli_json_string(j, "folder", folder);
    cli_json_end(j);
}

static int list(const char *models)
{
    cli_json j = {.file = stdout, .between = ",\n "};
    if (cli_fetch_json)
        cli_json_array(&j, NULL);
    for (const cli_known_model *m = cli_known_models; m->name; m++) {
        char folder[sizeof(att_model_path) + 256];
        struct stat s;
        snprintf(folder, sizeof folder, "%s/%s", models, m->name);
        const bool found = stat(folder, &s) == 0;
        if (cli_fetch_json)
            print_json(&j, m, found ? folder : NULL);
        else
            printf("%-21s  %6.1f MB  %-10s  %-14s  %s\n", m->name, (double)m->wheel.bytes / 1e6, m->license,
                   att_subject_name(m->subject), found ? folder : "-");
    }
    if (cli_fetch_json)
        cli_json_end(&j);
    return CLI_DONE;
}

static int refuse(const char *name)
{
    enum { MAX_NAMES = 32 };
    const char *names[MAX_NAMES];
    int n = 0;
    for (const cli_known_model *m = cli_known_models; m->name && n < MAX_NAMES; m++)
        names[n++] = m->name;
    cli_hint hint;
    return cli_misuse("\"%s\" is not a model that can be downloaded%s", name,
                      cli_did_you_mean(&hint, "", name, names, n,
                                       "; \"attend fetch\" lists them, and those of the Hugging Face Hub are named "
                                       "OWNER/NAME"));
}

static int fetch(const char *name, const char *models)
{
    const cli_known_model *m = cli_known_model_find(name);
    if (!m)
        return refuse(name);
    att_model_path folder;
    bool is_new;
    cli_end_later();
    const int code = cli_download(m, models, &folder, &is_new);
    if (code)
        return code;
    if (cli_fetch_json)
        print_json(&(cli_json){.file = stdout}, m, folder.text);
    else
        printf("%s %s %s\n", m->name, is_new ? "is now in" : "is already in", folder.text);
    return CLI_DONE;
}

int cli_fetch_known(const char *name)
{
    att_model_path models;
    const int code = cli_status(NULL, att_models_folder(&models));
    if (code)
        return code;
    return name ? fetch(name, models.text) : list(models.text);
}
