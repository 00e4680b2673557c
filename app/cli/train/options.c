/* The options of trainings in FOLDER/training.json: they are stored there, and read again by --resume. */
#include "cli/base/output.h"
#include "cli/model/checkpoints.h"
#include "train.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE = 4300 }; /* bytes of an option's value */

/* Options of all trainings that may change when one continues. */
static const char *const may_change[] = {"steps",          "epochs",     "minutes", "patience",
                                         "validate-every", "save-every", "keep",    "average",
                                         "dtype",          "threads",    NULL};

static const json_t *stored_in(const cli_training *t, const char *object, const char *name)
{
    return json_object_get(json_object_get(t->file.stored, object), name);
}

/* Returns whether the list has this name. names NULL: the list is empty. */
static bool is_in(const char *const *names, const char *name)
{
    while (names && *names && strcmp(*names, name))
        names++;
    return names && *names;
}

static bool is_free(const cli_training *t, const char *name)
{
    return is_in(may_change, name) || is_in(t->kind->may_change, name);
}

/* --output, --resume and --json are not stored. */
static bool is_stored(const cli_training *t, const cli_option *p)
{
    return p->text != &t->options.folder && p->flag != &t->options.resume && p->flag != &t->options.json;
}

/* ---- values as text */

static bool is_path(const cli_option *p)
{
    return p->text && (strstr(p->value, "FILE") || strstr(p->value, "FOLDER") || !strcmp(p->value, "MODEL"));
}

/* Returns whether there is something at the path. */
static bool is_there(cli_training *t, const char *path, struct stat *s)
{
    if (stat(path, s) == 0)
        return true;
    if (errno != ENOENT && errno != ENOTDIR && !t->file.path_error)
        t->file.path_error = errno;
    return false;
}

/* Returns whether a path is standard input, a descriptor or a pipe, which cannot be read again by its name. */
static bool is_passing(cli_training *t, const char *path)
{
    struct stat s;
    return !strcmp(path, "-") || !strncmp(path, "/dev/", 5) ||
           (is_there(t, path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

/* Returns the part of a path that is inside the folder, or NULL. */
static const char *inside(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/' ? path + n + strspn(path + n, "/") : NULL;
}

/* Writes the path of a file in the stored form: "./" and its path if it is in the output folder, otherwise the absolute
 * path. A name (of a model) is not changed. */
static void write_path(cli_training *t, const char *path, char text[VALUE])
{
    struct stat s;
    char here[VALUE / 2];
    const char *folder = t->options.folder;
    snprintf(text, VALUE, "%s", path);
    if (inside(folder, path))
        snprintf(text, VALUE, "./%s", inside(folder, path));
    else if (*path == '/' || !is_there(t, path, &s))
        return;
    else if (getcwd(here, sizeof here))
        snprintf(text, VALUE, "%s/%s", here, path);
    else
        t->file.path_error = errno;
}

/* Returns whether a number is outside the option's range, which marks one that is not set. */
static bool is_unset(const cli_option *p, double x)
{
    return (p->integer || p->number) && !(x > p->min || (x == p->min && !p->above_min));
}

/* Writes the value as one would type it; false: the option is not set. */
static bool write_value(cli_training *t, const cli_option *p, char text[VALUE])
{
    const char *word = p->value;
    if ((p->flag && !*p->flag) || (p->text && !*p->text) || (p->choice && *p->choice < 0) ||
        (p->integer && is_unset(p, (double)*p->integer)) || (p->number && is_unset(p, *p->number)))
        return false;
    if (p->flag)
        snprintf(text, VALUE, "set");
    else if (p->text && is_path(p))
        write_path(t, *p->text, text);
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

static int differs(const cli_training *t, const char *name, const char *was, const char *is, const char *why)
{
    return cli_misuse("--%s is %s in %s but %s here%s", name, was ? was : "not set", t->options.folder,
                      is ? is : "not set", why);
}

static int check_value(cli_training *t, const cli_option *p, const char *why)
{
    char text[VALUE];
    const bool set = write_value(t, p, text);
    const char *was = json_string_value(stored_in(t, "options", p->name));
    return !was == !set && (!set || !strcmp(was, text)) ? CLI_DONE : differs(t, p->name, was, set ? text : NULL, why);
}

/* Compares a file with the one at the training's start. Unknown properties count as equal. how: receives the
 * difference. */
static int compare_file(const cli_training *t, const cli_option *p, char how[128])
{
    struct stat s;
    char sum[CLI_CHECKSUM];
    const json_t *bytes = stored_in(t, "bytes", p->name);
    const char *was = json_string_value(stored_in(t, "checksums", p->name));
    *how = '\0';
    if (stat(*p->text, &s) || !S_ISREG(s.st_mode)) /* another function reports files that cannot be opened */
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

/* Returns whether the file of an option may be another one, with which the training begins again. */
static bool may_differ(const cli_training *t, const cli_option *p)
{
    return t->kind->renewed && is_in(t->kind->renewed, p->name);
}

/* Checks that a file is unchanged since the training's start. If it is not, the training begins again. */
static int check_file(cli_training *t, const cli_option *p)
{
    char how[128];
    const int code = compare_file(t, p, how);
    const bool may = may_differ(t, p);
    if (code || !*how)
        return code;
    if (may && t->file.may_renew) {
        t->renewed = true;
        return CLI_DONE;
    }
    return cli_fail("--%s: %s %s when the training in %s began%s%s%s", p->name, *p->text, how, t->options.folder,
                    may ? "; to begin again with the model in that folder, add --" : "", may ? t->kind->renewed[0] : "",
                    may ? " and the file" : "");
}

/* Returns the stored path of an option, which may be relative to the folder; valid until the process ends. */
static const char *stored_path(cli_training *t, const cli_option *p)
{
    char path[2 * VALUE];
    const char *text = json_string_value(stored_in(t, "options", p->name));
    if (!text || !is_path(p) || strncmp(text, "./", 2) != 0)
        return text;
    snprintf(path, sizeof path, "%s/%s", t->options.folder, text + 2);
    t->file.paths = t->file.paths ? t->file.paths : json_object();
    json_object_set_new(t->file.paths, p->name, json_string(path));
    return json_string_value(json_object_get(t->file.paths, p->name));
}

/* Checks that a folder that the training began with, if it still exists, is the one that was typed. */
static int check_folder(cli_training *t, const cli_option *p)
{
    struct stat was, is;
    const char *path = stored_path(t, p);
    if (!path || stat(path, &was) || stat(*p->text, &is) || !S_ISDIR(was.st_mode) || !S_ISDIR(is.st_mode) ||
        (was.st_dev == is.st_dev && was.st_ino == is.st_ino))
        return check_file(t, p);
    return differs(t, p->name, path, *p->text, "");
}

/* Checks an option that was typed. */
static int check_typed(cli_training *t, const cli_option *p)
{
    if (is_in(t->kind->same_files, p->name) && stored_in(t, "options", p->name))
        return check_folder(t, p);
    if (may_differ(t, p) && t->file.may_renew) {
        t->renewed = true;
        return CLI_DONE;
    }
    if (is_in(t->kind->same_files, p->name))
        return differs(t, p->name, NULL, *p->text, "");
    const bool free = is_free(t, p->name) || (t->renewed && !is_in(t->kind->kept, p->name));
    return free ? CLI_DONE : check_value(t, p, "");
}

/* Restores an option that was not typed. If the option may change, the environment takes precedence. */
static int set_stored(cli_training *t, const cli_option *p, bool *given)
{
    char source[VALUE];
    const json_t *was = stored_in(t, "options", p->name);
    const char *set = p->env && is_free(t, p->name) ? getenv(p->env) : NULL;
    if (!was || (set && *set))
        return CLI_DONE;
    if (json_is_null(was))
        return cli_misuse("--%s %s is needed again: it was not a file when the training in %s began", p->name, p->value,
                          t->options.folder);
    if (!json_is_string(was))
        return cli_fail("%s/training.json: \"%s\" is not a text", t->options.folder, p->name);
    if (is_unset(p, strtod(json_string_value(was), NULL))) /* as older versions stored it */
        return CLI_DONE;
    *given = true;
    snprintf(source, sizeof source, "--%s in %.2000s/training.json", p->name, t->options.folder);
    const int code = cli_option_set(p, source, stored_path(t, p));
    return code || !is_in(t->kind->same_files, p->name) || is_free(t, p->name) ? code : check_file(t, p);
}

static int set_all(cli_training *t, bool *given)
{
    const char *command = json_string_value(json_object_get(t->file.stored, "command"));
    if (!command || strcmp(command, t->kind->command))
        return cli_fail("%s: has a training of another kind: attend train %s --resume -o %s", t->options.folder,
                        command ? command : "COMMAND", cli_quoted(t->options.folder).text);
    int code = CLI_DONE;
    t->file.may_renew = t->kind->renewed && cli_training_typed(t, t->kind->renewed[0]);
    for (int i = 0; !code && t->kind->options[i].name; i++)
        if (is_stored(t, &t->kind->options[i]))
            code = given[i] ? check_typed(t, &t->kind->options[i]) : set_stored(t, &t->kind->options[i], &given[i]);
    return code;
}

/* The folder is one of a version that stored no options: all that are required must have been typed. */
static int check_required(const cli_training *t, const bool *given)
{
    char missing[256] = "";
    size_t n = 0;
    for (const cli_option *p = t->kind->options; p->name; p++, given++)
        if (p->required && !*given && n < sizeof missing)
            n += (size_t)snprintf(missing + n, sizeof missing - n, " --%s %s", p->name, p->value);
    if (n == 0)
        return CLI_DONE;
    return cli_misuse("%s: its training was started by an older attend, which stored no options; those of the start "
                      "are needed again:%s ...",
                      t->options.folder, missing);
}

bool cli_training_typed(const cli_training *t, const char *name)
{
    int i = 0;
    while (t->kind->options[i].name && strcmp(t->kind->options[i].name, name) != 0)
        i++;
    return t->kind->options[i].name && t->file.typed[i];
}

bool cli_schedule_falls(int kind) { return kind == ATT_SCHEDULE_COSINE || kind == ATT_SCHEDULE_LINEAR; }

/* Checks that the last step is unchanged, if the learning rate depends on it. */
static int check_last_step(cli_training *t)
{
    const cli_training_options *o = &t->options;
    const char *why = cli_schedule_falls(o->schedule)  ? ", where --schedule falls to 0"
                      : o->warmup > 0 && o->warmup < 1 ? ", and --warmup is a share of them"
                                                       : NULL;
    int code = CLI_DONE;
    for (const cli_option *p = t->kind->options; !code && why && p->name; p++)
        if ((p->integer == &o->steps || p->number == &o->epochs) && cli_training_typed(t, p->name))
            code = check_value(t, p, why);
    return code;
}

/* Replaces an option that version 0.2 stored in another form. */
static void replace_half(json_t *options)
{
    if (json_object_get(options, "half")) {
        json_object_del(options, "half");
        json_object_set_new(options, "dtype", json_string("f16"));
    }
}

int cli_training_options_read(cli_training *t, bool *given)
{
    cli_checkpoints c;
    const char *folder = t->options.folder;
    if (!folder) /* without --resume the parser asks for it */
        return t->options.resume ? cli_misuse("--output FOLDER is needed: that of the training to continue") : CLI_DONE;
    cli_checkpoints_find(folder, &c);
    if (!t->options.resume && c.n > 0)
        return cli_fail("%s: has checkpoints of a training already: attend train %s --resume -o %s", folder,
                        t->kind->command, cli_quoted(folder).text);
    if (!t->options.resume)
        return CLI_DONE;
    int code = cli_training_file_read(folder, &t->file.stored);
    if (!code && !t->file.stored && c.n == 0)
        code = cli_fail("%s: there is no training to continue: start it without --resume", folder);
    replace_half(json_object_get(t->file.stored, "options"));
    if (!code)
        code = t->file.stored ? set_all(t, given) : check_required(t, given);
    if (!code && t->renewed) {
        json_object_del(t->file.stored, "finished");
        t->options.resume = false;
        return CLI_DONE;
    }
    if (!code && t->file.stored)
        code = check_last_step(t);
    if (!code && c.n == 0 && cli_training_finished(t))
        code = cli_fail("%s: its training has finished and kept no checkpoint to continue from", folder);
    if (!code && c.n == 0) {
        cli_note("%s has no checkpoint yet: the training starts again from step 1", folder);
        t->options.resume = false;
    }
    return code;
}

int64_t cli_training_finished(const cli_training *t)
{
    return json_integer_value(json_object_get(t->file.stored, "finished"));
}

/* ---- writing */

/* Adds size and, of those that may be others, checksum of the file of an option that must stay the same. */
static int add_file(cli_training *t, const cli_option *p)
{
    struct stat s;
    char sum[CLI_CHECKSUM];
    if (!is_in(t->kind->same_files, p->name) || !is_there(t, *p->text, &s) || !S_ISREG(s.st_mode))
        return CLI_DONE;
    json_object_set_new(t->file.bytes, p->name, json_integer(s.st_size));
    const int code = may_differ(t, p) ? cli_file_checksum(*p->text, sum) : CLI_DONE;
    if (!code && may_differ(t, p))
        json_object_set_new(t->file.checksums, p->name, json_string(sum));
    return code;
}

/* Returns the options as a JSON object. */
static json_t *options_object(cli_training *t)
{
    char text[VALUE];
    json_t *all = json_object();
    for (const cli_option *p = t->kind->options; p->name; p++) {
        if (!is_stored(t, p) || !write_value(t, p, text))
            continue;
        json_t *value = is_path(p) && is_passing(t, text) ? NULL : json_string(text); /* NULL, too: it is not UTF-8 */
        json_object_set_new(all, p->name, value ? value : json_null());
    }
    return all;
}

const char *cli_training_compute(const cli_training *t)
{
    att_tape *tape = NULL;
    const char *name = NULL;
    if (t->ctx &&
        !att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .compute = (att_compute)t->options.compute), &tape))
        name = att_compute_name(att_tape_compute(tape));
    att_tape_free(tape);
    return name;
}

/* Makes the object of training.json: options, and the files as they were at the first call. */
static int whole_object(cli_training *t, json_t **all)
{
    char text[VALUE];
    int code = CLI_DONE;
    if (!t->file.bytes) {
        t->file.bytes = json_object();
        t->file.checksums = json_object();
        for (const cli_option *p = t->kind->options; !code && p->name; p++)
            if (is_stored(t, p) && write_value(t, p, text))
                code = add_file(t, p);
    }
    *all =
        json_pack("{s:s, s:o, s:O}", "command", t->kind->command, "options", options_object(t), "bytes", t->file.bytes);
    if (t->options.compute && cli_training_compute(t)) /* what auto has chosen */
        json_object_set_new(*all, "compute", json_string(cli_training_compute(t)));
    if (json_object_size(t->file.checksums) > 0)
        json_object_set(*all, "checksums", t->file.checksums);
    json_t *trained_on = t->file.trained_on ? t->file.trained_on : json_object_get(t->file.stored, "learnt");
    if (trained_on)
        json_object_set(*all, "learnt", trained_on);
    return code;
}

int cli_training_options_line(cli_training *t, char **line)
{
    json_t *whole, *all = json_pack("{s:i}", "step", 0);
    const int code = whole_object(t, &whole);
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

int cli_training_options_write(cli_training *t, const char *folder, int64_t finished)
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
    code = whole_object(t, &all);
    if (finished)
        json_object_set_new(all, "finished", json_integer(finished));
    if (t->file.path_error && !code)
        code = cli_fail("%s is not written, because a file that it names cannot be checked: %s", path,
                        strerror(t->file.path_error));
    else if (!code && (json_dumpf(all, out.file, JSON_INDENT(1)) || putc('\n', out.file) == EOF))
        code = cli_fail_errno(path);
    json_decref(all);
    return cli_output_close(&out, code);
}
