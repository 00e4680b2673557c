#include "in_use.h"

#include <attend_vision.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODELS = 8, DEPTH = 3, PATH_BYTES = 4096 };

static const cli_command *command;
static int n_arguments;
static char *const *arguments;
static struct {
    char name[256];
    att_model_path path;
} models[MODELS];
static int n_models;

bool cli_is_path(const char *value)
{
    static const char *const names[] = {"FILE", "FOLDER", "IMAGE", "MODEL", "TRANSLATION", "REFERENCE"};
    for (size_t i = 0; value && i < sizeof names / sizeof *names; i++)
        if (strstr(value, names[i]))
            return true;
    return false;
}

/* ---- files */

/* A file or folder that is going to be written. */
typedef struct target {
    const char *option; /* NULL: no option names it */
    const char *path;
    struct stat is;
} target;

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool cli_is_model_file(const char *name)
{
    static const char *const ends[] = {".safetensors", ".gguf",  ".spm",   ".model",
                                       ".bin",         ".jinja", "-ubyte", "-ubyte.gz"};
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "preprocessor_config.json",
                                        "processor_config.json",
                                        "sentence_bert_config.json",
                                        "modules.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "vocab.json",
                                        "added_tokens.json",
                                        "chat_template.json",
                                        "config_sentence_transformers.json",
                                        "vocab.txt",
                                        "merges.txt",
                                        "items.json",
                                        "words.json",
                                        "training.json",
                                        "log.jsonl",
                                        "batches.meta.txt",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (cli_has_extension(name, ends[i]))
            return true;
    return false;
}

/* Returns whether t is a file of a folder's contents, or in a folder within it. images: the folder has images. */
static bool holds(const char *folder, const target *t, bool images, int depth)
{
    char path[PATH_BYTES];
    struct stat s;
    bool found = false;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        const bool content = cli_is_model_file(e->d_name) || (images && att_image_has_name(e->d_name));
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (e->d_type == DT_REG && !content) ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path || stat(path, &s))
            continue;
        found = S_ISDIR(s.st_mode) ? depth > 1 && holds(path, t, images, depth - 1) : content && same(&s, &t->is);
    }
    if (d)
        closedir(d);
    return found;
}

/* Returns whether the file is in the folder t, and is one that is written there. */
static bool is_in(const char *file, const target *t)
{
    char path[PATH_BYTES];
    struct stat s;
    const char *slash = strrchr(file, '/');
    const int n = slash ? (int)(slash - file) + 1 : 0;
    return cli_is_model_file(file + n) && snprintf(path, sizeof path, "%.*s.", n, file) < (int)sizeof path &&
           !stat(path, &s) && same(&s, &t->is);
}

typedef enum reading { IS_NOT_READ, IS_READ, FOLDER_IS_READ } reading;

/* Returns whether writing t would change the input at `path`, which is the value of an option or an argument. */
static reading read_at(const target *t, const char *path, const char *name)
{
    const bool images = strstr(name, "IMAGE") || strstr(name, "FOLDER");
    struct stat s;
    if (stat(path, &s))
        return IS_NOT_READ;
    const bool folder = S_ISDIR(s.st_mode), into = S_ISDIR(t->is.st_mode);
    const bool found = folder == into ? same(&s, &t->is) : into ? is_in(path, t) : holds(path, t, images, DEPTH);
    return !found ? IS_NOT_READ : folder ? FOLDER_IS_READ : IS_READ;
}

/* ---- messages */

/* Refuses an output that would replace an input, a folder or a file. The input is the value of an option, after "--";
 * or `input` names it. */
static int refuse(const target *t, bool folder, const char *dashes, const char *input, const char *path)
{
    const bool whole = S_ISDIR(t->is.st_mode);
    char text[2 * PATH_BYTES];
    snprintf(text, sizeof text, "%s would %s %s%s%s%s%s, which this command reads; name another %s", t->path,
             whole ? "change" : "replace", folder && !whole ? "a file of " : "", dashes, input, *input ? " " : "", path,
             whole ? "folder" : "file");
    return cli_fail("%s%s%s%s", t->option ? "--" : "", t->option ? t->option : "", t->option ? " " : "", text);
}

/* ---- what is read */

static int check_options(const target *t)
{
    for (const cli_option *o = command->options; o && o->name; o++) {
        const bool own = S_ISDIR(t->is.st_mode) && !strcmp(o->value ? o->value : "", "MODEL"); /* see check_model */
        const bool input = !o->writes && o->text && *o->text && cli_is_path(o->value) && !own;
        const reading found = input ? read_at(t, *o->text, o->value) : IS_NOT_READ;
        if (found)
            return refuse(t, found == FOLDER_IS_READ, "--", o->name, *o->text);
    }
    return CLI_DONE;
}

static int check_arguments(const target *t)
{
    for (int i = 0; cli_is_path(command->arguments) && i < n_arguments; i++) {
        const reading found = read_at(t, arguments[i], command->arguments);
        if (found)
            return refuse(t, found == FOLDER_IS_READ, "", "", arguments[i]);
    }
    return CLI_DONE;
}

static int check_input(const target *t)
{
    struct stat s;
    return !fstat(STDIN_FILENO, &s) && S_ISREG(s.st_mode) && same(&s, &t->is)
               ? refuse(t, false, "", "the file of", "standard input")
               : CLI_DONE;
}

static int check_model(const target *t, int i)
{
    if (S_ISDIR(t->is.st_mode)) /* a training refuses the model's own folder, unless --resume continues there */
        return CLI_DONE;
    const reading found = read_at(t, models[i].path.text, "MODEL");
    return found ? refuse(t, found == FOLDER_IS_READ, "", "the model", models[i].name) : CLI_DONE;
}

/* Returns whether writing this path would replace nothing. value: "FILE" or "FOLDER". A folder that is given as a file
 * is refused when it is opened. */
static bool is_new(target *t, const char *value)
{
    return !t->path || !strcmp(t->path, "-") || stat(t->path, &t->is) ||
           !(S_ISREG(t->is.st_mode) || (S_ISDIR(t->is.st_mode) && strstr(value, "FOLDER")));
}

static int check_all(const target *t)
{
    int code = check_options(t);
    if (!code)
        code = check_arguments(t);
    if (!code)
        code = check_input(t);
    for (int i = 0; !code && i < n_models; i++)
        code = check_model(t, i);
    return code;
}

/* ---- outputs */

/* Checks that no two outputs are one file. */
static int check_outputs(const cli_option *a)
{
    const cli_option *b = a + 1;
    struct stat s, other;
    for (; b->name; b++) {
        if (!b->writes || !*b->text || !strcmp(*b->text, "-"))
            continue;
        const bool one = !strcmp(*a->text, *b->text) ||
                         (!stat(*a->text, &s) && !stat(*b->text, &other) && S_ISREG(s.st_mode) && same(&s, &other));
        if (one)
            return cli_fail("--%s %s and --%s %s are one file; name another", a->name, *a->text, b->name, *b->text);
    }
    return CLI_DONE;
}

/* Checks that no input is the temporary file of an unfinished output, which is removed before the output is written:
 * see output.c. */
static int check_leftovers(const cli_option *o)
{
    enum { MAX_WRITERS = 64 };
    char path[PATH_BYTES];
    int code = CLI_DONE;
    for (int i = 0; !code && i < MAX_WRITERS; i++) {
        target t = {.option = o->name, .path = *o->text};
        if (snprintf(path, sizeof path, "%s.unfinished-%d", t.path, i) < PATH_BYTES && !stat(path, &t.is) &&
            S_ISREG(t.is.st_mode))
            code = check_all(&t);
    }
    return code;
}

/* Checks, before any work, that the folder of a new file exists. A new folder is made with those above it. */
static int check_parent(const cli_option *o)
{
    const char *path = *o->text, *file = strstr(o->value, "FILE"), *slash = strrchr(path, '/');
    char parent[PATH_BYTES];
    struct stat s;
    const bool is_file = file && (!strstr(o->value, "FOLDER") || cli_has_extension(path, file + strlen("FILE")));
    if (!is_file || !slash || slash == path || slash - path >= PATH_BYTES)
        return CLI_DONE;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return stat(parent, &s) && errno == ENOENT
               ? cli_fail("%s: %s; there is no folder %s", path, strerror(ENOENT), parent)
               : CLI_DONE;
}

/* Checks that standard output is not an input. If it were, that file would already be empty, or each line that is read
 * from it would be added to it. */
static int check_redirected(void)
{
    target t = {.path = "standard output"};
    return !fstat(STDOUT_FILENO, &t.is) && S_ISREG(t.is.st_mode) ? check_all(&t) : CLI_DONE;
}

int cli_in_use_begin(const cli_command *c, int n, char *const *given)
{
    int code = CLI_DONE;
    command = c;
    n_arguments = n;
    arguments = given;
    for (const cli_option *o = c->options; !code && o && o->name; o++) {
        if (!o->writes || !*o->text)
            continue;
        code = check_outputs(o);
        if (!code)
            code = check_parent(o);
        if (!code)
            code = check_leftovers(o);
        target t = {.option = o->name, .path = *o->text};
        if (!code && !is_new(&t, o->value))
            code = check_all(&t);
    }
    return code ? code : check_redirected();
}

int cli_in_use_model(const char *name, const char *path)
{
    int code = CLI_DONE;
    if (n_models == MODELS)
        return cli_fail("more than %d models are in use", MODELS);
    snprintf(models[n_models].name, sizeof models->name, "%s", name);
    snprintf(models[n_models].path.text, sizeof models->path.text, "%s", path);
    n_models++;
    for (const cli_option *o = command ? command->options : NULL; !code && o && o->name; o++) {
        target t = {.option = o->name, .path = o->writes ? *o->text : NULL};
        if (!is_new(&t, o->value))
            code = check_model(&t, n_models - 1);
    }
    return code;
}

/* Returns whether a path is an output, a file in one, or an output's name with one more ending. */
static bool is_of_output(const char *path, const char *output)
{
    const size_t n = strlen(output);
    return n > 0 && !strncmp(path, output, n) && (output[n - 1] == '/' || strchr("/.", path[n]));
}

int cli_in_use_check(const char *path)
{
    for (const cli_option *o = command ? command->options : NULL; o && o->name; o++)
        if (o->writes && *o->text && is_of_output(path, *o->text))
            return CLI_DONE; /* it has been checked already */
    target t = {.path = path};
    return !command || is_new(&t, "FILE") ? CLI_DONE : check_all(&t);
}
