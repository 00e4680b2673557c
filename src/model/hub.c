/* Models in the cache of the Hugging Face Hub, as huggingface_hub lays it out: CACHE/models--OWNER--NAME has the commit
 * of a branch or tag in refs/REVISION, and the files of a commit, which may be links, in snapshots/COMMIT. */
#include "attend_model.h"

#include "io/gguf.h"
#include "io/settings.h"
#include "util/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PART = 96, MAX_REVISION = 255, MAX_COMMIT = 64, MAX_RELATIVE = 2 * MAX_PART + MAX_REVISION + 64 };

/* ---- names */

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

typedef struct hub_name {
    int owner, repository; /* bytes; owner 0: the name has none, as those of the Hub's first models */
    const char *text, *revision;
} hub_name;

/* Returns the bytes of the owner or repository with which s begins; 0: the Hub does not allow it. */
static int part_length(const char *s)
{
    const size_t n = strspn(s, WORD);
    return n > 0 && n <= MAX_PART && !strchr(".-", s[0]) && !strchr(".-", s[n - 1]) ? (int)n : 0;
}

/* Returns whether a revision is one that can be a path below `refs`. */
static bool is_revision(const char *s)
{
    const size_t n = strspn(s, WORD "/");
    return n > 0 && n <= MAX_REVISION && !s[n] && *s != '/' && s[n - 1] != '/' && !strstr(s, "//");
}

static bool read_name(const char *text, hub_name *out)
{
    const int first = part_length(text), owner = text[first] == '/' ? first : 0;
    const char *repository = text + owner + (owner > 0), *dashes = strstr(text, "--");
    const int n = part_length(repository);
    const char *end = repository + n;
    *out = (hub_name){owner, n, text, *end == '@' ? end + 1 : "main"};
    return n > 0 && (*end == '@' || !*end) && !strstr(text, "..") && !(dashes && dashes < end) &&
           !(n > 4 && strncmp(end - 4, ".git", 4) == 0) && is_revision(out->revision);
}

bool att_hub_is_name(const char *text)
{
    hub_name name;
    return text && read_name(text, &name) && name.owner > 0;
}

/* ---- the cache */

att_status att_hub_cache(att_model_path *out)
{
    static const char *const where[][2] = {{"HF_HUB_CACHE", ""},
                                           {"HUGGINGFACE_HUB_CACHE", ""},
                                           {"HF_HOME", "/hub"},
                                           {"XDG_CACHE_HOME", "/huggingface/hub"},
                                           {"HOME", "/.cache/huggingface/hub"}};
    if (att_require(__func__, ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    out->text[0] = 0;
    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        const char *value = getenv(where[i][0]), *home = getenv("HOME");
        if (!value || !*value)
            continue;
        const bool below_home = home && value[0] == '~' && value[1] == '/';
        const int n =
            snprintf(out->text, sizeof out->text, "%s%s%s", below_home ? home : "", value + below_home, where[i][1]);
        if ((size_t)n < sizeof out->text)
            return ATT_OK;
        out->text[0] = 0;
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: the path of the cache has more than %zu bytes", where[i][0],
                        sizeof out->text - 1);
    }
    return att_fail(NULL, ATT_ERR_ARGUMENT,
                    "there is no cache of the Hugging Face Hub, as HOME is not set: set HF_HUB_CACHE to a folder");
}

/* Joins CACHE/models--OWNER--NAME and what is below it -> path */
static att_status join(const char *cache, const hub_name *name, const char *below, const char *last,
                       att_model_path *out)
{
    char relative[MAX_RELATIVE];
    const char *repository = name->text + name->owner + (name->owner > 0);
    snprintf(relative, sizeof relative, "models--%.*s%s%.*s/%s/%s", name->owner, name->text, name->owner ? "--" : "",
             name->repository, repository, below, last);
    return att_join_path(NULL, cache, relative, out->text);
}

/* Reads the first line of a file; "" if there is none. */
static att_status read_line(const char *path, char line[MAX_RELATIVE])
{
    errno = 0;
    FILE *f = fopen(path, "re");
    *line = 0;
    if (!f)
        return errno == ENOMEM ? att_fail(NULL, ATT_ERR_MEMORY, "out of memory") : ATT_OK;
    if (!fgets(line, MAX_RELATIVE, f))
        *line = 0;
    fclose(f);
    line[strcspn(line, "\r\n")] = 0;
    return ATT_OK;
}

/* Finds the commit of a revision: what refs/REVISION has, else the revision itself; "" if it is not a commit. */
static att_status find_commit(const char *cache, const hub_name *name, char commit[MAX_RELATIVE])
{
    att_model_path path;
    att_status s = join(cache, name, "refs", name->revision, &path);
    s = s ? s : read_line(path.text, commit);
    if (!s && !*commit)
        snprintf(commit, MAX_RELATIVE, "%s", name->revision);
    const size_t n = strlen(commit);
    if (n > MAX_COMMIT || strspn(commit, "0123456789abcdef") < n)
        *commit = 0;
    return s;
}

/* ---- weights */

/* Sets *has to whether a folder has a file of weights. A link to a file that was not downloaded is not one. */
static att_status find_weights(const char *folder, bool *has)
{
    static const char end[] = ".safetensors";
    errno = 0;
    DIR *d = opendir(folder);
    if (!d && errno == ENOMEM)
        return att_fail(NULL, ATT_ERR_MEMORY, "out of memory");
    for (const struct dirent *e; d && !*has && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        char path[ATT_MAX_PATH];
        *has = (att_is_gguf_name(e->d_name) || (n >= sizeof end && !strcmp(e->d_name + n + 1 - sizeof end, end))) &&
               att_join_path(NULL, folder, e->d_name, path) == ATT_OK && att_is_file(path);
    }
    if (d)
        closedir(d);
    return ATT_OK;
}

/* Sets *has to whether all files of an index of weights exist. */
static void find_shards(const att_settings *s, const char *folder, bool *has)
{
    const char *tensor;
    json_t *file;
    json_object_foreach(json_object_get(s->root, "weight_map"), tensor, file)
    {
        const char *name = json_string_value(file);
        char path[ATT_MAX_PATH];
        if (name)
            *has = *has && att_join_path(NULL, folder, name, path) == ATT_OK && att_is_file(path);
    }
}

/* Reads an index of weights. If it cannot be read, *whole is true, and opening the model reports why. */
static att_status check_index(const char *folder, const char *index, bool *whole)
{
    att_ctx *ctx = NULL;
    att_settings settings;
    att_status s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1));
    if (s)
        return s;
    att_settings_read(&settings, ctx, folder, index, true);
    *whole = true;
    find_shards(&settings, folder, whole);
    s = settings.status == ATT_ERR_MEMORY ? att_fail(NULL, ATT_ERR_MEMORY, "out of memory") : ATT_OK;
    att_settings_close(&settings);
    att_close(ctx);
    return s;
}

/* Sets *whole to whether a snapshot has weights, and all files of them. */
static att_status check_weights(const char *folder, bool *whole)
{
    static const char index[] = "model.safetensors.index.json";
    char path[ATT_MAX_PATH];
    *whole = false;
    if (att_join_path(NULL, folder, index, path) == ATT_OK && att_is_file(path))
        return check_index(folder, index, whole);
    const att_status s = find_weights(folder, whole);
    const bool below = !s && !*whole && att_join_path(NULL, folder, "0_StaticEmbedding", path) == ATT_OK;
    return below ? find_weights(path, whole) : s;
}

/* ---- finding */

static att_status fail(const hub_name *name, const char *cache, bool has_snapshot)
{
    const int n = (int)strcspn(name->text, "@");
    const char *revision = name->text[n] ? name->revision : "";
    return att_fail(
        NULL, ATT_ERR_IO,
        "\"%s\" is %s the cache of the Hugging Face Hub, %s%s: attend fetch %s (or hf download %.*s%s%s) %s",
        name->text, has_snapshot ? "in" : "not in", cache,
        has_snapshot ? ", but without all of its weights (.safetensors or .gguf)" : "", name->text, n, name->text,
        *revision ? " --revision " : "", revision, has_snapshot ? "gets them" : "puts it there");
}

att_status att_hub_find(const char *name, const att_hub_options *options, att_model_path *out)
{
    hub_name n;
    att_hub_options o;
    att_model_path cache;
    char commit[MAX_RELATIVE] = "";
    bool found = false, whole = true;
    if (att_require(__func__, ATT_NAMED({"name", name}, {"out", out})) ||
        att_options_read(&o, sizeof o, options, "att_hub_options"))
        return ATT_ERR_ARGUMENT;
    out->text[0] = 0;
    if (!read_name(name, &n))
        return att_fail(NULL, ATT_ERR_IO,
                        "\"%.200s\" is not the name of a model of the Hugging Face Hub: OWNER/NAME or "
                        "OWNER/NAME@REVISION, of at most %d letters, digits, \"-\", \"_\" and \".\" each",
                        name, MAX_PART);
    if (!o.cache && att_hub_cache(&cache))
        return ATT_ERR_IO; /* no cache has no snapshots */
    o.cache = o.cache ? o.cache : cache.text;
    att_status s = find_commit(o.cache, &n, commit);
    if (!s && *commit && !(s = join(o.cache, &n, "snapshots", commit, out)))
        found = att_exists(out->text);
    if (found && !o.incomplete)
        s = check_weights(out->text, &whole);
    if (!s && !(found && whole))
        s = fail(&n, o.cache, found);
    if (s)
        out->text[0] = 0;
    return s;
}
