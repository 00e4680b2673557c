#include "options.h"
#include "cli/base/output.h"
#include "cli/model/checkpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE = 4300 }; /* bytes of an option's value */

/* What the folder had at the start of the process, or NULL. Values of options point into it. */
static json_t *stored;

static const json_t *stored_in(const char *object, const char *name)
{
    return json_object_get(json_object_get(stored, object), name);
}

static bool is_in(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names != NULL;
}

/* --output, --resume and --json are not stored. */
static bool is_stored(const cli_training_options *o, const cli_option *p)
{
    return p->text != o->folder && p->flag != o->resume && strcmp(p->name, "json") != 0;
}

/* ---- values as text */

static bool is_path(const cli_option *p)
{
    return p->text && (strstr(p->value, "FILE") || strstr(p->value, "FOLDER") || !strcmp(p->value, "MODEL"));
}

/* The first error, an errno, of what a path is; 0: none. Without this, a failing disk would store other options. */
static int path_error;

/* Is there something at the path? */
static bool is_there(const char *path, struct stat *s)
{
    if (stat(path, s) == 0)
        return true;
    if (errno != ENOENT && errno != ENOTDIR && !path_error)
        path_error = errno;
    return false;
}

/* Standard input, a descriptor, a pipe: nothing that can be read again by its name. */
static bool is_passing(const char *path)
{
    struct stat s;
    return !strcmp(path, "-") || !strncmp(path, "/dev/", 5) ||
           (is_there(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

/* The part of a path that is inside the folder, or NULL. */
static const char *inside(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/' ? path + n + strspn(path + n, "/") : NULL;
}

/* Of a file in the output folder "./" and its path there, of another one the absolute path; a name (of a model) stays.
 */
static void write_path(const char *folder, const char *path, char text[VALUE])
{
    struct stat s;
    char here[VALUE / 2];
    snprintf(text, VALUE, "%s", path);
    if (inside(folder, path))
        snprintf(text, VALUE, "./%s", inside(folder, path));
    else if (*path == '/' || !is_there(path, &s))
        return;
    else if (getcwd(here, sizeof here))
        snprintf(text, VALUE, "%s/%s", here, path);
    else
        path_error = errno;
}

/* Is a number outside the range of what can be typed? It stands for one that is not set. */
static bool is_unset(const cli_option *p, double x)
{
    return (p->integer || p->number) && !(x > p->min || (x == p->min && !p->above_min));
}

/* The value as one would type it; false: the option is not set. */
static bool write_value(const cli_training_options *o, const cli_option *p, char text[VALUE])
{
    const char *word = p->value;
    if ((p->flag && !*p->flag) || (p->text && !*p->text) || (p->choice && *p->choice < 0) ||
        (p->integer && is_unset(p, (double)*p->integer)) || (p->number && is_unset(p, *p->number)))
        return false;
    if (p->flag)
        snprintf(text, VALUE, "set");
    else if (p->text && is_path(p))
        write_path(*o->folder, *p->text, text);
    else if (p->text)
        snprintf(text, VALUE, "%s", *p->text);
    else if (p->integer)
        snprintf(text, VALUE, "%lld", (long long)*p->integer);
    else if (p->number)
        cli_write_number(*p->number, text);
    for (int i = 0; p->choice && i < *p->choice; i++)
        word = strchr(word, '|') + 1;
    if (p->choice)
        snprintf(text, VALUE, "%.*s", (int)strcspn(word, "|"), word);
    return true;
}

/* ---- reading */

static int differs(const cli_training_options *o, const char *name, const char *was, const char *is, const char *why)
{
    return cli_misuse("--%s is %s in %s but %s here%s", name, was ? was : "not set", *o->folder, is ? is : "not set",
                      why);
}

static int check_value(const cli_training_options *o, const cli_option *p, const char *why)
{
    char text[VALUE];
    const bool set = write_value(o, p, text);
    const char *was = json_string_value(stored_in("options", p->name));
    return !was == !set && (!set || !strcmp(was, text)) ? CLI_DONE : differs(o, p->name, was, set ? text : NULL, why);
}

static bool may_renew; /* the first option of o->renewed was typed */
static bool renewed;   /* the training begins anew */

/* Compares a file with the one that the training began with; what is not known of that is the same. how: receives what
 * differs. */
static int compare_file(const cli_option *p, char how[128])
{
    struct stat s;
    char sum[CLI_CHECKSUM];
    const json_t *bytes = stored_in("bytes", p->name);
    const char *was = json_string_value(stored_in("checksums", p->name));
    *how = '\0';
    if (stat(*p->text, &s) || !S_ISREG(s.st_mode)) /* another command says what cannot be opened */
        return CLI_DONE;
    if (json_is_integer(bytes) && s.st_size != (off_t)json_integer_value(bytes))
        snprintf(how, 128, "has %lld bytes, but had %lld", (long long)s.st_size, (long long)json_integer_value(bytes));
    else if (was) {
        const int code = cli_file_checksum(*p->text, sum);
        if (code)
            return code;
        if (strcmp(sum, was) != 0)
            snprintf(how, 128, "has the size, but not the content that it had");
    }
    return CLI_DONE;
}

/* May the file of an option be another one, where the training begins anew? */
static bool may_differ(const cli_training_options *o, const cli_option *p)
{
    return o->renewed && is_in(o->renewed, p->name);
}

/* A file that the training began with is the one that it was, or the training begins anew. */
static int check_file(const cli_training_options *o, const cli_option *p)
{
    char how[128];
    const int code = compare_file(p, how);
    const bool may = may_differ(o, p);
    if (code || !*how)
        return code;
    if (may && may_renew) {
        renewed = true;
        return CLI_DONE;
    }
    return cli_fail("--%s: %s %s when the training in %s began%s%s%s", p->name, *p->text, how, *o->folder,
                    may ? "; to begin again with the model in that folder, add --" : "", may ? o->renewed[0] : "",
                    may ? " and the file" : "");
}

/* The stored path of an option, which may be relative to the folder; valid until the process ends. */
static const char *stored_path(const cli_training_options *o, const cli_option *p)
{
    static json_t *all;
    char path[2 * VALUE];
    const char *text = json_string_value(stored_in("options", p->name));
    if (!text || !is_path(p) || strncmp(text, "./", 2) != 0)
        return text;
    snprintf(path, sizeof path, "%s/%s", *o->folder, text + 2);
    all = all ? all : json_object();
    json_object_set_new(all, p->name, json_string(path));
    return json_string_value(json_object_get(all, p->name));
}

/* A folder that the training began with, if it is there still, is the one that was typed. */
static int check_folder(const cli_training_options *o, const cli_option *p)
{
    struct stat was, is;
    const char *path = stored_path(o, p);
    if (!path || stat(path, &was) || stat(*p->text, &is) || !S_ISDIR(was.st_mode) || !S_ISDIR(is.st_mode) ||
        (was.st_dev == is.st_dev && was.st_ino == is.st_ino))
        return check_file(o, p);
    return differs(o, p->name, path, *p->text, "");
}

/* An option that was typed */
static int check_typed(const cli_training_options *o, const cli_option *p)
{
    if (is_in(o->same_file, p->name) && stored_in("options", p->name))
        return check_folder(o, p);
    if (may_differ(o, p) && may_renew) {
        renewed = true;
        return CLI_DONE;
    }
    if (is_in(o->same_file, p->name))
        return differs(o, p->name, NULL, *p->text, "");
    const bool free = is_in(o->free, p->name) || (renewed && !is_in(o->kept, p->name));
    return free ? CLI_DONE : check_value(o, p, "");
}

/* An option that was not typed; the environment comes first where the option may change. */
static int set_stored(const cli_training_options *o, const cli_option *p, bool *given)
{
    char source[VALUE];
    const json_t *was = stored_in("options", p->name);
    const char *set = p->env && is_in(o->free, p->name) ? getenv(p->env) : NULL;
    if (!was || (set && *set))
        return CLI_DONE;
    if (json_is_null(was))
        return cli_misuse("--%s %s is needed again: it was no file when the training in %s began", p->name, p->value,
                          *o->folder);
    if (!json_is_string(was))
        return cli_fail("%s/training.json: \"%s\" is not a text", *o->folder, p->name);
    if (is_unset(p, strtod(json_string_value(was), NULL))) /* as older versions stored it */
        return CLI_DONE;
    *given = true;
    snprintf(source, sizeof source, "--%s in %.2000s/training.json", p->name, *o->folder);
    const int code = cli_option_set(p, source, stored_path(o, p));
    return code || !is_in(o->same_file, p->name) || is_in(o->free, p->name) ? code : check_file(o, p);
}

static int set_all(const cli_training_options *o, bool *given)
{
    const char *command = json_string_value(json_object_get(stored, "command"));
    if (!command || strcmp(command, o->command))
        return cli_fail("%s: has a training of another kind: attend train %s --resume -o %s", *o->folder,
                        command ? command : "COMMAND", cli_quoted(*o->folder).text);
    int code = CLI_DONE;
    for (int i = 0; o->renewed && o->table[i].name; i++)
        may_renew = may_renew || (given[i] && !strcmp(o->table[i].name, o->renewed[0]));
    for (int i = 0; !code && o->table[i].name; i++)
        if (is_stored(o, &o->table[i]))
            code = given[i] ? check_typed(o, &o->table[i]) : set_stored(o, &o->table[i], &given[i]);
    return code;
}

/* The folder is one of a version that stored no options: all that are required must have been typed. */
static int check_required(const cli_training_options *o, const bool *given)
{
    char missing[256] = "";
    size_t n = 0;
    for (int i = 0; o->table[i].name; i++)
        if (o->table[i].required && !given[i] && n < sizeof missing)
            n += (size_t)snprintf(missing + n, sizeof missing - n, " --%s %s", o->table[i].name, o->table[i].value);
    if (n == 0)
        return CLI_DONE;
    return cli_misuse("%s: its training was started by an older attend, which stored no options; those of the start "
                      "are needed again:%s ...",
                      *o->folder, missing);
}

int cli_training_options_read(const cli_training_options *o, bool *given)
{
    cli_checkpoints c;
    const char *folder = *o->folder;
    if (!folder) /* without --resume the parser asks for it */
        return *o->resume ? cli_misuse("--output FOLDER is needed: that of the training to continue") : CLI_DONE;
    cli_checkpoints_find(folder, &c);
    if (!*o->resume && c.n > 0)
        return cli_fail("%s: has checkpoints of a training already: attend train %s --resume -o %s", folder, o->command,
                        cli_quoted(folder).text);
    if (!*o->resume)
        return CLI_DONE;
    int code = cli_training_file_read(folder, &stored);
    if (!code && !stored && c.n == 0)
        code = cli_fail("%s: there is no training to continue: start it without --resume", folder);
    if (!code)
        code = stored ? set_all(o, given) : check_required(o, given);
    if (!code && renewed) {
        json_object_del(stored, "finished");
        *o->resume = false;
        return CLI_DONE;
    }
    if (!code && c.n == 0 && cli_training_finished())
        code = cli_fail("%s: its training has finished and kept no checkpoint to continue from", folder);
    if (!code && c.n == 0) {
        cli_note("%s has no checkpoint yet: the training starts again from step 1", folder);
        *o->resume = false;
    }
    return code;
}

int cli_training_options_same(const cli_training_options *o, const char *name, const char *why)
{
    const cli_option *p = o->table;
    while (strcmp(p->name, name) != 0)
        p++;
    return stored ? check_value(o, p, why) : CLI_DONE;
}

bool cli_training_options_renewed(void) { return renewed; }

int64_t cli_training_finished(void) { return json_integer_value(json_object_get(stored, "finished")); }

/* ---- writing */

static json_t *new_learnt; /* or NULL: what is stored */

void cli_training_options_trained(json_t *learnt) { new_learnt = learnt; }

/* Adds size and, of those that may be others, checksum of the file of an option that must stay the same. */
static int add_file(const cli_training_options *o, const cli_option *p, json_t *bytes, json_t *checksums)
{
    struct stat s;
    char sum[CLI_CHECKSUM];
    if (!is_in(o->same_file, p->name) || !is_there(*p->text, &s) || !S_ISREG(s.st_mode))
        return CLI_DONE;
    json_object_set_new(bytes, p->name, json_integer(s.st_size));
    const int code = may_differ(o, p) ? cli_file_checksum(*p->text, sum) : CLI_DONE;
    if (!code && may_differ(o, p))
        json_object_set_new(checksums, p->name, json_string(sum));
    return code;
}

/* The options as a JSON object. */
static json_t *options_object(const cli_training_options *o)
{
    char text[VALUE];
    json_t *all = json_object();
    for (const cli_option *p = o->table; p->name; p++) {
        if (!is_stored(o, p) || !write_value(o, p, text))
            continue;
        json_t *value = is_path(p) && is_passing(text) ? NULL : json_string(text); /* NULL, too: it is not UTF-8 */
        json_object_set_new(all, p->name, value ? value : json_null());
    }
    return all;
}

/* The object of training.json: options, and the files as they were at the first call. */
static int whole_object(const cli_training_options *o, json_t **all)
{
    static json_t *bytes, *checksums;
    char text[VALUE];
    int code = CLI_DONE;
    if (!bytes) {
        bytes = json_object();
        checksums = json_object();
        for (const cli_option *p = o->table; !code && p->name; p++)
            if (is_stored(o, p) && write_value(o, p, text))
                code = add_file(o, p, bytes, checksums);
    }
    *all = json_pack("{s:s, s:o, s:O}", "command", o->command, "options", options_object(o), "bytes", bytes);
    if (json_object_size(checksums) > 0)
        json_object_set(*all, "checksums", checksums);
    json_t *learnt = new_learnt ? new_learnt : json_object_get(stored, "learnt");
    if (learnt)
        json_object_set(*all, "learnt", learnt);
    return code;
}

int cli_training_options_line(const cli_training_options *o, char **line)
{
    json_t *whole, *all = json_pack("{s:i}", "step", 0);
    const int code = whole_object(o, &whole);
    json_object_update(all, whole);
    json_decref(whole);
    if (code) {
        json_decref(all);
        return code;
    }
    char *text = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(all);
    if (!text || asprintf(line, "%s\n", text) < 0)
        *line = NULL;
    free(text);
    return *line ? CLI_DONE : cli_fail_memory();
}

int cli_training_options_write(const cli_training_options *o, int64_t finished)
{
    return cli_training_options_write_to(o, *o->folder, finished);
}

int cli_training_options_write_to(const cli_training_options *o, const char *folder, int64_t finished)
{
    char path[CLI_TRAINING_PATH];
    struct stat s;
    cli_output out = {0};
    int code = cli_training_file_path(folder, path);
    if (!code && lstat(path, &s) == 0 && !S_ISREG(s.st_mode))
        code = cli_fail("%s: is %s, not a file", path, S_ISLNK(s.st_mode) ? "a symbolic link" : "something else");
    if (!code)
        code = cli_output_open(&out, path);
    if (code)
        return code;
    json_t *all;
    code = whole_object(o, &all);
    if (finished)
        json_object_set_new(all, "finished", json_integer(finished));
    if (path_error && !code)
        code = cli_fail("%s is not written, because a file that it names cannot be checked: %s", path,
                        strerror(path_error));
    else if (!code && (json_dumpf(all, out.file, JSON_INDENT(1)) || putc('\n', out.file) == EOF))
        code = cli_fail_errno(path);
    json_decref(all);
    return cli_output_close(&out, code);
}
