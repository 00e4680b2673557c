#include "hub.h"
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "cli/fetch/fetch.h"
#include "cli/fetch/hub_choice.h"
#include "cli/fetch/lock.h"
#include "transfer.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* ---- what the cache has */

/* Finds the snapshot of a model in the cache, and the .gguf file in it if one is asked for. */
static bool is_cached(const char *name, const char *gguf, att_model_path *out)
{
    struct stat s;
    if (att_hub_find(name, ATT_OPTIONS(att_hub_options, .incomplete = gguf != NULL), out))
        return false;
    const size_t n = strlen(out->text);
    return !gguf || ((size_t)snprintf(out->text + n, sizeof out->text - n, "/%s", gguf) < sizeof out->text - n &&
                     stat(out->text, &s) == 0);
}

/* Reports which files of weights a snapshot lacks, by its index; or, if it has no index, what the cache lacks. */
static int refuse_offline(const char *name, const char *gguf)
{
    static const char index_name[] = "model.safetensors.index.json";
    att_model_path folder;
    char path[sizeof folder + sizeof index_name + 512], missing[600] = "";
    struct stat s;
    const char *tensor;
    json_t *file;
    const bool has = !att_hub_find(name, ATT_OPTIONS(att_hub_options, .incomplete = true), &folder);
    snprintf(path, sizeof path, "%s/%s", folder.text, index_name);
    json_t *index = has && !gguf ? json_load_file(path, 0, NULL) : NULL;
    json_object_foreach(json_object_get(index, "weight_map"), tensor, file)
    {
        const char *text = json_string_value(file);
        const size_t n = strlen(missing);
        snprintf(path, sizeof path, "%s/%.255s", folder.text, text ? text : "");
        if (text && stat(path, &s) && !strstr(missing, text) && n + strlen(text) + 3 < sizeof missing)
            snprintf(missing + n, sizeof missing - n, "%s%s", n ? ", " : "", text);
    }
    json_decref(index);
    if (gguf)
        snprintf(missing, sizeof missing, "%.500s", gguf);
    if (has && *missing)
        return cli_fail("%s is in %s, but without %s, and HF_HUB_OFFLINE is set, so that nothing is downloaded", name,
                        folder.text, missing);
    return cli_fail(
        "HF_HUB_OFFLINE is set, so that nothing is downloaded, and %s is not in the cache of the Hugging Face "
        "Hub%s",
        name, has ? " with its weights" : "");
}

/* ---- results */

static void print(const hub_transfer *t, const hub_choice *c, const char *path, bool is_new)
{
    if (!cli_fetch_json) {
        printf("%s %s %s\n", t->name, is_new ? "is now in" : "is already in", path);
        return;
    }
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "name", t->name);
    cli_json_string(&j, "revision", t->revision);
    cli_json_string(&j, "commit", *t->listing.commit ? t->listing.commit : NULL);
    cli_json_string(&j, "path", path);
    cli_json_integer(&j, "received", t->received);
    cli_json_array(&j, "files");
    for (size_t i = 0; i < c->n; i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "file", c->file[i]->name);
        cli_json_integer(&j, "bytes", c->file[i]->bytes);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

/* ---- all steps */

/* Checks that the disk has room for what is missing. */
static int check_room(const hub_transfer *t, int64_t bytes)
{
    struct statvfs disk;
    if (statvfs(t->snapshot.root.text, &disk))
        return CLI_DONE; /* writing reports it */
    const double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    return (double)bytes <= free_bytes ? CLI_DONE
                                       : cli_fail("%s needs %.1f MB, but %s has room for %.1f MB", t->name,
                                                  (double)bytes / 1e6, t->snapshot.root.text, free_bytes / 1e6);
}

static int download(hub_transfer *t, const hub_choice *c, bool *is_new)
{
    int64_t missing = 0;
    for (size_t i = 0; i < c->n; i++)
        missing += hub_snapshot_has(&t->snapshot, c->file[i]) ? 0 : c->file[i]->bytes;
    *is_new = missing > 0;
    int code = cli_make_folders(t->snapshot.root.text);
    if (!code)
        code = check_room(t, missing);
    if (!code && missing > 0)
        cli_note("downloading %s (%zu files, %.1f MB) to %s", t->name, c->n, (double)c->bytes / 1e6,
                 t->snapshot.root.text);
    t->all = c->bytes;
    t->line.first = 1 - (double)missing / (double)(c->bytes + !c->bytes);
    for (size_t i = 0; !code && i < c->n; i++)
        if (hub_snapshot_has(&t->snapshot, c->file[i]))
            t->done += c->file[i]->bytes;
        else
            code = hub_transfer_get(t, c->file[i]);
    if (!code && !c->chosen && !hub_listing_find(&t->listing, "modules.json"))
        code = hub_snapshot_lack(&t->snapshot, "modules.json"); /* so that nobody wonders whether it was left out */
    for (size_t i = 0; !code && i < c->n; i++) /* weights come last: a snapshot with them is complete */
        code = hub_snapshot_link(&t->snapshot, c->file[i]);
    return code ? code : hub_snapshot_refer(&t->snapshot, t->revision, t->listing.commit);
}

static int fetch_listed(hub_transfer *t, const char *gguf)
{
    hub_choice c = {0};
    bool is_new = false;
    char path[sizeof t->snapshot.folder + 1100];
    const hub_reader reader = {hub_transfer_read, t};
    int code = gguf ? hub_choose_gguf(&c, &t->listing, t->name, gguf)
                    : hub_choose(&c, &t->listing, t->name, &reader, cli_fetch_json);
    if (!code)
        code = download(t, &c, &is_new);
    if (!code) {
        cli_progress_end(&t->line);
        snprintf(path, sizeof path, "%s%s%s", t->snapshot.folder.text, c.chosen ? "/" : "", c.chosen ? c.chosen : "");
        print(t, &c, path, is_new);
    }
    hub_choice_close(&c);
    return code;
}

/* name: with its revision, as typed */
static int fetch(hub_transfer *t, const char *name, const char *gguf)
{
    att_model_path cached;
    http_answer answer;
    if (t->environment->offline) {
        if (!is_cached(name, gguf, &cached))
            return refuse_offline(name, gguf);
        print(t, &(hub_choice){0}, cached.text, false);
        return CLI_DONE;
    }
    const int code = hub_transfer_list(t, &answer);
    if (!code)
        return fetch_listed(t, gguf);
    if (code != CLI_FAILED || answer.status)
        return code; /* after a message */
    if (!is_cached(name, gguf, &cached))
        return cli_fail("%s", answer.why);
    cli_note("%s; whether it has changed is not known", answer.why);
    print(t, &(hub_choice){0}, cached.text, false);
    return CLI_DONE;
}

int hub_fetch(const char *name, const char *gguf)
{
    char model[256];
    const int n = (int)strcspn(name, "@");
    hub_environment environment;
    if (!att_hub_is_name(name))
        return cli_misuse("\"%s\" is not the name of a model of the Hugging Face Hub, which is OWNER/NAME or "
                          "OWNER/NAME@REVISION",
                          name);
    if (gguf && !cli_has_extension(gguf, ".gguf"))
        return cli_misuse(
            "\"%s\" is not the name of a .gguf file, which alone may be chosen: attend fetch %s downloads "
            "what attend needs of others",
            gguf, name);
    snprintf(model, sizeof model, "%.*s", n, name);
    hub_transfer t = {.name = model, .revision = name[n] ? name + n + 1 : "main", .environment = &environment};
    int code = hub_environment_read(&environment);
    cli_end_later();
    cli_progress_begin(&t.line);
    if (!code)
        code = fetch(&t, name, gguf);
    hub_transfer_close(&t);
    return code;
}
