#include "finished.h"
#include "digest.h"
#include "in_use.h"
#include "json.h"
#include "output.h"
#include "shard.h"

#include <attend_vision.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const cli_command *command;
static json_t *made_of; /* the record, but for the output; NULL: --resume is not given */
static char *record;    /* its path */

/* ---- What an output is made of ------------------------------------------------ */

/* A text as JSON has it; one that is not UTF-8 by the codes of its bytes */
static json_t *text_value(const char *text)
{
    json_t *v = text ? json_string(text) : json_null();
    if (v)
        return v;
    for (v = json_array(); *text; text++)
        json_array_append_new(v, json_integer((unsigned char)*text));
    return v;
}

static json_t *digest_value(const cli_digest *d)
{
    char sum[17];
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)d->sum);
    return json_pack("{s:I, s:s}", "bytes", (json_int_t)d->bytes, "digest", sum);
}

/* Sets *value to a file that is read: its name and digest. Of images and folders the content is not read. */
static int file_value(const char *path, json_t **value)
{
    cli_digest d;
    struct stat s;
    const bool names = strcmp(path, "-") && !stat(path, &s) && (S_ISDIR(s.st_mode) || att_image_has_name(path));
    const int code = names ? cli_digest_names(path, &d) : cli_digest_file(path, &d);
    if (code)
        return code;
    *value = digest_value(&d);
    json_object_set_new(*value, "file", text_value(path));
    return CLI_DONE;
}

/* The word of a choice; null: none is chosen */
static json_t *choice_value(const cli_option *o)
{
    const char *word = o->value;
    for (int i = 0; i < *o->choice; i++)
        word += strcspn(word, "|") + 1;
    return *o->choice < 0 ? json_null() : json_stringn(word, strcspn(word, "|"));
}

static json_t *texts_value(const cli_texts *t)
{
    json_t *v = json_array();
    for (int i = 0; i < t->n; i++)
        json_array_append_new(v, text_value(t->text[i]));
    return v;
}

/* Sets *value to that of an option, or leaves it NULL if no result depends on it. */
static int option_value(const cli_option *o, json_t **value)
{
    const bool model = o->text && !strcmp(o->value, "MODEL"); /* see cli_finished_check */
    if (o->writes || model || o->flag == &cli_shard.resume || !strcmp(o->name, "threads"))
        return CLI_DONE;
    if (o->text && *o->text && cli_is_path(o->value))
        return file_value(*o->text, value);
    *value = o->flag      ? json_boolean(*o->flag)
             : o->text    ? text_value(*o->text)
             : o->texts   ? texts_value(o->texts)
             : o->integer ? json_integer(*o->integer)
             : o->number  ? json_real(*o->number)
                          : choice_value(o);
    return CLI_DONE;
}

static int add_options(void)
{
    int code = CLI_DONE;
    for (const cli_option *o = command->options; !code && o->name; o++) {
        char key[64];
        json_t *value = NULL;
        code = option_value(o, &value);
        snprintf(key, sizeof key, "--%s", o->name);
        if (value && !json_is_null(value) && json_object_set_new(made_of, key, value))
            code = cli_fail_memory();
        else if (value && json_is_null(value))
            json_decref(value);
    }
    return code;
}

/* Adds the arguments [n], which are files. */
static int add_arguments(int n, char *const *arguments)
{
    json_t *list = json_array();
    int code = CLI_DONE;
    json_object_set_new(made_of, "arguments", list);
    for (int i = 0; !code && i < n; i++) {
        json_t *value = NULL;
        code = file_value(arguments[i], &value);
        if (!code)
            json_array_append_new(list, value);
    }
    return code;
}

int cli_finished_add_input(void)
{
    static const char key[] = "standard input";
    json_t *value = NULL;
    if (!made_of || json_object_get(made_of, key))
        return CLI_DONE;
    const int code = file_value("-", &value);
    if (!code)
        json_object_set_new(made_of, key, value);
    return code;
}

/* ---- The output ------------------------------------------------------------------ */

static const char *path_of(const cli_option *o)
{
    return o->writes && *o->text && strcmp(*o->text, "-") ? *o->text : NULL;
}

/* Returns the first output, or --output; NULL: there is none. */
static const char *main_output(void)
{
    const char *found = NULL;
    for (const cli_option *o = command->options; o->name; o++)
        if (path_of(o) && (!found || !strcmp(o->name, "output")))
            found = path_of(o);
    return found;
}

/* Refuses an output that is there, but is not a file. */
static int check_files(void)
{
    struct stat s;
    for (const cli_option *o = command->options; o->name; o++)
        if (path_of(o) && !stat(path_of(o), &s) && !S_ISREG(s.st_mode))
            return cli_fail("--%s %s is not a file, which --resume needs", o->name, path_of(o));
    return CLI_DONE;
}

/* Returns whether all outputs exist. */
static bool exists(void)
{
    struct stat s;
    for (const cli_option *o = command->options; o->name; o++)
        if (path_of(o) && stat(path_of(o), &s))
            return false;
    return true;
}

/* Returns a list of the digests of all outputs. */
static int digest_outputs(json_t **list)
{
    int code = CLI_DONE;
    *list = json_array();
    for (const cli_option *o = command->options; !code && o->name; o++) {
        cli_digest d;
        if (!path_of(o))
            continue;
        code = cli_digest_file(path_of(o), &d);
        if (!code)
            json_array_append_new(*list, digest_value(&d));
    }
    return code;
}

int cli_finished_begin(const cli_command *c, int n, char *const *arguments)
{
    if (!cli_shard.resume)
        return CLI_DONE;
    command = c;
    const char *output = main_output();
    if (!output)
        return cli_misuse("--resume needs an output file: -o FILE");
    const char *slash = strrchr(output, '/'), *name = slash ? slash + 1 : output;
    if (asprintf(&record, "%.*s.%s.finished", (int)(name - output), output, name) < 0)
        return cli_fail_memory();
    made_of = json_object();
    json_object_set_new(made_of, "attend", json_string(att_version()));
    json_object_set_new(made_of, "command", json_string(c->name));
    int code = check_files();
    if (!code)
        code = add_options();
    return code ? code : add_arguments(n, arguments);
}

/* ---- Comparing ------------------------------------------------------------------- */

/* Narrows two values to what differs: of lists, to the first elements that do; NULL: there is none. */
static void narrow(const json_t **was, const json_t **is)
{
    if (!json_is_array(*was) || !json_is_array(*is))
        return;
    size_t i = 0;
    while (i < json_array_size(*was) && json_equal(json_array_get(*was, i), json_array_get(*is, i)))
        i++;
    *was = json_array_get(*was, i);
    *is = json_array_get(*is, i);
}

/* Fails because the output was made with another value of a key; NULL: none. */
static int refuse(const char *key, const json_t *was, const json_t *is)
{
    narrow(&was, &is);
    char *a = was ? json_dumps(was, JSON_ENCODE_ANY) : strdup("none"),
         *b = is ? json_dumps(is, JSON_ENCODE_ANY) : strdup("none");
    const int code = cli_fail("%s is finished, but of %s %.200s, not %.200s; remove it, or name another output",
                              main_output(), key, a ? a : "", b ? b : "");
    free(a);
    free(b);
    return code;
}

/* Compares all keys of the record with what the output would be made of now, and the outputs with their digests. */
static int compare(const json_t *was)
{
    const char *key;
    json_t *value, *outputs = NULL;
    json_object_foreach(made_of, key, value)
    {
        if (!json_equal(json_object_get(was, key), value))
            return refuse(key, json_object_get(was, key), value);
    }
    json_object_foreach((json_t *)was, key, value)
    {
        if (!json_object_get(made_of, key) && strcmp(key, "outputs"))
            return refuse(key, value, NULL);
    }
    int code = digest_outputs(&outputs);
    if (!code && !json_equal(outputs, json_object_get(was, "outputs")))
        code = cli_fail("%s has changed since it was finished: remove it, or name another output", main_output());
    json_decref(outputs);
    if (code)
        return code;
    cli_note("%s is finished", main_output());
    return CLI_FINISHED;
}

int cli_finished_check(const char *path)
{
    cli_digest d;
    if (!made_of)
        return CLI_DONE;
    int code = cli_digest_model(path, &d);
    if (code)
        return code;
    json_object_set_new(made_of, "model", digest_value(&d));
    if (!exists() && unlink(record) && errno != ENOENT)
        return cli_fail_errno(record);
    json_error_t error;
    FILE *f = fopen(record, "rbe");
    if (!f)
        return errno == ENOENT ? CLI_DONE : cli_fail_errno(record);
    json_t *was = json_loadf(f, 0, &error);
    fclose(f);
    code = json_is_object(was)
               ? compare(was)
               : cli_fail("%s: is not the record of a finished output: remove it and %s", record, main_output());
    json_decref(was);
    return code;
}

int cli_finished_write(void)
{
    cli_output out;
    json_t *outputs = NULL;
    if (!made_of)
        return CLI_DONE;
    int code = digest_outputs(&outputs);
    json_object_set_new(made_of, "outputs", outputs);
    if (!code)
        code = cli_output_open(&out, record);
    if (!code && json_dumpf(made_of, out.file, JSON_INDENT(1)))
        code = cli_fail_errno(record);
    if (!code)
        fputc('\n', out.file);
    if (record && out.file)
        code = cli_output_close(&out, code);
    return code;
}
