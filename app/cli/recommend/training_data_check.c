#include "training_data_check.h"
#include "cli/base/output.h"
#include "cli/model/checkpoints.h"
#include "log_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

json_t *cli_training_data_of(const json_t *training, const char *model, bool renewed)
{
    static const char *const names[] = {"bytes", "checksums"};
    static const char *const options[] = {"data",        "split",      "min-actions", "held-out-users",
                                          "valid-share", "test-share", "valid-from",  "test-from"};
    const json_t *before = json_object_get(training, "learnt");
    json_t *all = json_is_array(before) ? json_copy((json_t *)before) : json_array();
    json_t *own = json_pack("{s:s}", "model", model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_object_get(training, names[i]))
            json_object_set(own, names[i], json_object_get(training, names[i]));
    const json_t *from = json_object_get(training, "options");
    json_t *to = from ? json_object() : NULL;
    for (size_t i = 0; to && i < sizeof options / sizeof *options; i++)
        if (json_object_get(from, options[i]))
            json_object_set(to, options[i], json_object_get(from, options[i]));
    if (to)
        json_object_set_new(own, "options", to);
    if (renewed)
        json_object_set_new(own, "renewed", json_true());
    json_array_append_new(all, own);
    return all;
}

static const char *text_of(const json_t *options, const char *name)
{
    return json_string_value(json_object_get(options, name));
}

static double number_of(const json_t *options, const char *name, double otherwise)
{
    const char *text = text_of(options, name);
    return text ? strtod(text, NULL) : otherwise;
}

/* Returns the number of a split: that of "leave-one-out" also for NULL, because it is the default. */
static int split_number(const char *name)
{
    int i = ATT_HOLDOUT_NONE;
    while (i > 0 && (!name || strcmp(name, cli_split_name((att_holdout_kind)i)) != 0))
        i--;
    return i;
}

void cli_training_data_split(const json_t *options, cli_interactions_options *o)
{
    *o = (cli_interactions_options){CLI_INTERACTIONS_DEFAULTS};
    o->split = split_number(text_of(options, "split"));
    o->min_actions = (int64_t)number_of(options, "min-actions", 0);
    o->held_out_users = (int64_t)number_of(options, "held-out-users", 0);
    o->valid_share = number_of(options, "valid-share", 0);
    o->test_share = number_of(options, "test-share", 0);
    o->valid_from = text_of(options, "valid-from");
    o->test_from = text_of(options, "test-from");
    cli_interactions_complete(o);
}

/* Returns whether a training with the split `was` learns nothing that `is` holds out, if the log is the same. */
static bool covers(const cli_interactions_options *was, const cli_interactions_options *is)
{
    if (was->split != is->split)
        return false;
    if (was->split == ATT_HOLDOUT_LEAVE_ONE_OUT && was->held_out_users) /* which they are depends on both numbers */
        return was->held_out_users == is->held_out_users && was->min_actions == is->min_actions;
    if (was->split == ATT_HOLDOUT_LEAVE_ONE_OUT)
        return was->min_actions <= is->min_actions;
    return was->valid_share == is->valid_share && was->test_share == is->test_share &&
           cli_time_same(was->valid_from, is->valid_from) && cli_time_same(was->test_from, is->test_from);
}

static void add_option(char *text, size_t size, const char *name, const char *value)
{
    const size_t n = strlen(text);
    if (value)
        snprintf(text + n, size - n, " --%s %s", name, value);
}

static void add_number(char *text, size_t size, const char *name, double x)
{
    char number[CLI_NUMBER_BYTES];
    cli_write_number(x, number);
    add_option(text, size, name, x != 0 ? number : NULL);
}

/* Writes the split as it would be typed. */
static void write_split(const cli_interactions_options *o, char *text, size_t size)
{
    snprintf(text, size, "--split %s", cli_split_name((att_holdout_kind)o->split));
    if (o->split == ATT_HOLDOUT_LEAVE_ONE_OUT) {
        add_number(text, size, "min-actions", (double)o->min_actions);
        add_number(text, size, "held-out-users", (double)o->held_out_users);
    }
    add_number(text, size, "valid-share", o->valid_share);
    add_number(text, size, "test-share", o->test_share);
    add_option(text, size, "valid-from", o->valid_from);
    add_option(text, size, "test-from", o->test_from);
}

int cli_training_data_other_log(const json_t *training, const char *path, bool *other)
{
    struct stat s;
    char sum[CLI_CHECKSUM];
    const json_t *bytes = json_object_get(json_object_get(training, "bytes"), "data");
    const char *was = text_of(json_object_get(training, "checksums"), "data");
    *other = false;
    if (stat(path, &s) || !S_ISREG(s.st_mode) || !json_is_integer(bytes))
        return CLI_DONE;
    *other = s.st_size != (off_t)json_integer_value(bytes);
    if (*other || !was)
        return CLI_DONE;
    const int code = cli_file_checksum(path, sum);
    *other = !code && strcmp(sum, was) != 0;
    return code;
}

/* ---- how the log was read ----------------------------------------------------------- */

/* Returns whether two names have the same ending, such as ".csv", apart from ".gz". A pipe matches any ending. */
static bool same_end(const char *a, const char *b)
{
    const char *names[] = {a, b};
    char end[2][16];
    if (!strncmp(b, "/dev/", 5))
        return true;
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(names[i]) - (cli_ends_with(names[i], ".gz") ? 3 : 0);
        size_t at = n;
        while (at > 0 && names[i][at - 1] != '.' && names[i][at - 1] != '/')
            at--;
        const bool has_end = at > 0 && names[i][at - 1] == '.';
        snprintf(end[i], sizeof end[i], "%.*s", has_end ? (int)(n - at) : 0, names[i] + at);
    }
    return !strcasecmp(end[0], end[1]);
}

/* Returns whether an option, which was typed, has another value than `was`, or NULL. Numbers of lines that are left out
 * may differ. */
static bool differs(const cli_option *o, const char *was)
{
    char is[CLI_NUMBER_BYTES];
    if (o->text)
        return !was || strcmp(*o->text, was) != 0;
    if (!o->number && (!o->integer || !strcmp(o->name, "skip-bad-lines")))
        return false;
    cli_write_number(o->number ? *o->number : (double)*o->integer, is);
    return !was || strcmp(is, was) != 0;
}

int cli_check_reading(const json_t *all, const char *name, const char *path, const cli_option *options,
                      const bool *typed)
{
    static const char *const names[] = {"format",          "user-column",    "item-column", "time-column",
                                        "drop-duplicates", "skip-bad-lines", "event",       "event-column",
                                        "min-rating",      "rating-column",  "min-count"};
    const char *log = text_of(all, "data");
    bool same = log && same_end(log, path);
    int code = CLI_DONE;
    for (size_t k = 0; !code && log && k < sizeof names / sizeof *names; k++) {
        int i = 0;
        while (options[i].name && strcmp(options[i].name, names[k]) != 0)
            i++;
        const cli_option *o = options + i;
        const char *was = text_of(all, names[k]);
        const bool of_file = !strcmp(names[k], "format") || cli_ends_with(names[k], "-column");
        if (!o->name) /* recommend has no --min-count */
            continue;
        same = same && !(o->choice && typed[i]); /* another format has its own columns */
        if (!typed[i] && was && !same && of_file)
            cli_note("%s was trained with --%s %s, but on a file with another ending than %s, which is read without",
                     name, names[k], was, path);
        else if (!typed[i])
            code = was ? cli_option_set(o, names[k], was) : CLI_DONE;
        else if (o->flag && !was)
            cli_note("%s was trained without --%s", name, names[k]);
        else if (differs(o, was))
            cli_note("%s was trained with%s --%s%s%s", name, was ? "" : "out", names[k], was ? " " : "",
                     was ? was : "");
    }
    return code;
}

/* ---- what it was trained on ------------------------------------------------------------- */

static int note_one(const json_t *entry, const char *name, const cli_interactions_options *here)
{
    char split[256];
    bool other;
    cli_interactions_options was;
    const json_t *options = json_object_get(entry, "options");
    const char *model = text_of(entry, "model"), *data = text_of(options, "data");
    if (!model)
        model = "another model";
    if (!options) {
        cli_note("%s was fine-tuned from %s, whose training data is unknown; it may include actions that are held out "
                 "here",
                 name, model);
        return CLI_DONE;
    }
    cli_training_data_split(options, &was);
    write_split(&was, split, sizeof split);
    const int code = cli_training_data_other_log(entry, here->path, &other);
    if (!code && was.split == ATT_HOLDOUT_NONE)
        cli_note("%s began with %s, which was trained with --split none, so also on the actions that are held "
                 "out here",
                 name, model);
    else if (!code && !covers(&was, here))
        cli_note(
            "%s began with %s, which was trained with %s, not as here: it may have been trained on actions that are "
            "held out here",
            name, model, split);
    else if (!code && other && !json_is_true(json_object_get(entry, "renewed")))
        cli_note("%s began with %s, which was trained on another log, %s: it may have been trained on actions that are "
                 "held out here",
                 name, model, data ? data : "which is not known");
    return code;
}

int cli_training_data_note(const json_t *trained_on, const char *name, const cli_interactions_options *here)
{
    int code = CLI_DONE;
    for (size_t i = 0; !code && here->split != ATT_HOLDOUT_NONE && i < json_array_size(trained_on); i++)
        code = note_one(json_array_get(trained_on, i), name, here);
    return code;
}
