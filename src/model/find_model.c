/* Models by name: the folders in which they are searched. */
#include "attend_model.h"

#include "attend_util.h"
#include "io/gguf.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_gguf(const char *path) { return att_is_gguf_name(path) && att_is_file(path); }

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Sets a path; false: it does not fit. */
ATT_PRINTF(2, 3) static bool set_path(att_model_path *path, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(path->text, sizeof path->text, format, list);
    va_end(list);
    return n >= 0 && (size_t)n < sizeof path->text;
}

/* Finds the models folder; "" if no environment variable states it. */
static att_status find_own(att_model_path *out)
{
    const char *own = getenv("ATTEND_MODELS"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    bool fits = true;
    out->text[0] = 0;
    if (own && *own)
        fits = set_path(out, "%s", own);
    else if (data && *data)
        fits = set_path(out, "%s/attend/models", data);
    else if (home && *home)
        fits = set_path(out, "%s/.local/share/attend/models", home);
    return fits ? ATT_OK
                : att_fail(NULL, ATT_ERR_ARGUMENT, "the models folder's path has more than %zu bytes",
                           sizeof out->text - 1);
}

att_status att_models_folder(att_model_path *out)
{
    if (att_require(__func__, ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = find_own(out);
    return s || *out->text ? s
                           : att_fail(NULL, ATT_ERR_ARGUMENT,
                                      "there is no models folder, as HOME is not set: set ATTEND_MODELS to a folder");
}

/* Finds the models that come with a file: the program, or the shared object with this function in it. */
static bool find_beside(const char *file, att_model_path *out)
{
    static const char *const from_there[] = {ATT_DATA_FROM_PROGRAM "/attend/models", "models",
                                             ATT_DATA_FROM_LIBEXEC "/attend/models"};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash && i < sizeof from_there / sizeof from_there[0]; i++)
        if (set_path(out, "%.*s/%s", (int)(slash - file), file, from_there[i]) && is_folder(out->text))
            return true;
    return false;
}

/* Finds the models that come with attend: relative to the program, so that an installed tree or a build folder may be
 * moved, or to the shared object that has the library in it, as Python's; otherwise in the library's installation
 * folder. Returns whether there is such a folder. */
static bool find_shipped(att_model_path *out)
{
    att_model_path program = {""};
    Dl_info object;
    if (readlink("/proc/self/exe", program.text, sizeof program.text - 1) > 0 && find_beside(program.text, out))
        return true;
    if (dladdr(ATT_DATA_FOLDER, &object) && find_beside(object.dli_fname, out))
        return true;
    return set_path(out, "%s/attend/models", ATT_DATA_FOLDER) && is_folder(out->text);
}

/* Finds out whether a folder has a model. */
static att_status find_model(const char *folder, bool *found)
{
    att_model_path config;
    *found = (set_path(&config, "%s/config.json", folder) && att_is_file(config.text)) ||
             (set_path(&config, "%s/modules.json", folder) && att_is_file(config.text));
    errno = 0;
    DIR *d = *found ? NULL : opendir(folder);
    if (!*found && !d && errno == ENOMEM)
        return att_fail(NULL, ATT_ERR_MEMORY, "out of memory");
    for (const struct dirent *e; d && !*found && (e = readdir(d));)
        *found = att_is_gguf_name(e->d_name);
    if (d)
        closedir(d);
    return ATT_OK;
}

/* Returns whether a name is that of an unfinished conversion. */
static bool is_unfinished(const char *name)
{
    static const char end[] = ".unfinished";
    const size_t n = strlen(name);
    return n >= sizeof end - 1 && !strcmp(name + n - (sizeof end - 1), end);
}

static att_status list_folder(const char *folder, void (*each)(void *user, const char *name), void *user)
{
    struct dirent **entries;
    errno = 0;
    const int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        return errno == ENOMEM ? att_fail(NULL, ATT_ERR_MEMORY, "out of memory") : ATT_OK;
    att_status s = ATT_OK;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        att_model_path path;
        bool found = false;
        if (!s && name[0] != '.' && !is_unfinished(name) && set_path(&path, "%s/%s", folder, name))
            s = find_model(path.text, &found);
        if (found)
            each(user, name);
        free(entries[i]);
    }
    free(entries);
    return s;
}

att_status att_models_list(void (*each)(void *user, const char *name), void *user)
{
    if (att_require(__func__, ATT_NAMED({"each", each ? "" : NULL})))
        return ATT_ERR_ARGUMENT;
    att_model_path folder;
    att_status s = find_own(&folder);
    if (!s && *folder.text)
        s = list_folder(folder.text, each, user);
    return s || !find_shipped(&folder) ? s : list_folder(folder.text, each, user);
}

typedef struct name_list {
    char text[512]; /* as many as fit */
} name_list;

static void append_name(void *user, const char *name)
{
    name_list *list = user;
    const size_t n = strlen(list->text);
    snprintf(list->text + n, sizeof list->text - n, "%s%s", n ? ", " : "", name);
}

static att_status not_found(const char *name, const char *folder)
{
    name_list list = {""};
    const att_status s = att_models_list(append_name, &list);
    const char *in = *folder ? folder : "a models folder (HOME and ATTEND_MODELS are not set)";
    return s ? s
             : att_fail(
                   NULL, ATT_ERR_IO,
                   "\"%s\" is neither a folder nor a model in %s, nor one that comes with attend; available are: %s",
                   name, in, *list.text ? list.text : "none");
}

/* Finds OWNER/NAME in the cache of the Hugging Face Hub. */
static att_status find_in_hub(const char *name, const char *folder, att_model_path *out)
{
    const att_status s = att_hub_find(name, NULL, out);
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", att_error(NULL));
    return s == ATT_ERR_IO ? att_fail(NULL, s, "%s; nor is it a folder, or a model in %s", sentence,
                                      *folder ? folder : "a models folder")
                           : s;
}

att_status att_model_find(const char *name, att_model_path *out)
{
    if (att_require(__func__, ATT_NAMED({"name", name}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_model_path own, shipped;
    const att_status s = find_own(&own);
    if (s)
        return s;
    if (*name) {
        if (set_path(out, "%s", name) && (is_folder(out->text) || is_gguf(out->text)))
            return ATT_OK;
        if (*own.text && set_path(out, "%s/%s", own.text, name) && is_folder(out->text))
            return ATT_OK;
        if (find_shipped(&shipped) && set_path(out, "%s/%s", shipped.text, name) && is_folder(out->text))
            return ATT_OK;
    }
    out->text[0] = 0;
    return att_hub_is_name(name) && !att_exists(name) ? find_in_hub(name, own.text, out) : not_found(name, own.text);
}
