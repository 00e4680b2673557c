/* Parses the command line: the command, and its options with getopt_long. */
#include "command.h"
#include "finished.h"
#include "in_use.h"
#include "program.h"
#include "shard.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_BASE = 256, HELP = LONG_BASE - 1, QUIET = LONG_BASE - 2 };

static bool quiet;
const cli_option cli_quiet_option = {"quiet", 0, NULL, .flag = &quiet,
                                     .help = "print errors only: no notes, reports or progress, as cron needs it"};

const cli_command *cli_find(const cli_command *const *commands, const char *path, const char *name)
{
    const char *names[CLI_MAX_OPTIONS];
    int n = 0;
    for (; commands[n]; n++) {
        if (strcmp(commands[n]->name, name) == 0)
            return commands[n];
        names[n] = commands[n]->name;
    }
    cli_hint hint;
    char before[64], otherwise[96];
    snprintf(before, sizeof before, "%s%s", path[6] ? path + 7 : "", path[6] ? " " : ""); /* without "attend " */
    snprintf(otherwise, sizeof otherwise, "; \"attend help%s\" lists them", path + 6);
    cli_misuse("there is no command \"%s%s\"%s", before, name,
               cli_did_you_mean(&hint, before, name, names, n, otherwise));
    return NULL;
}

/* ---- Values --------------------------------------------------------------- */

/* Reports that `given`, from `source` ("--threads" or "$ATTEND_THREADS"), is not a valid value. */
static int wrong_number(const cli_option *o, const char *source, const char *given)
{
    const char *kind = o->integer ? "whole number" : "number";
    if (o->above_min)
        return cli_misuse("%s: \"%s\" is not a %s greater than %.10g, up to %.10g", source, given, kind, o->min,
                          o->max);
    if (isinf(o->max))
        return cli_misuse("%s: \"%s\" is not a %s of at least %.10g", source, given, kind, o->min);
    return cli_misuse("%s: \"%s\" is not a %s from %.10g to %.10g", source, given, kind, o->min, o->max);
}

static int set_integer(const cli_option *o, const char *source, const char *given)
{
    char *end;
    errno = 0;
    long long v = strtoll(given, &end, 10);
    bool plain = *given >= '+' && *given <= '9' && end != given && !*end; /* strtoll would skip spaces */
    if (!plain || errno || (double)v < o->min || (double)v > o->max)
        return wrong_number(o, source, given);
    *o->integer = v;
    return CLI_DONE;
}

static int set_number(const cli_option *o, const char *source, const char *given)
{
    char *end;
    double v = strtod(given, &end);
    bool plain = *given >= '+' && *given <= '9' && end != given && !*end;
    if (!plain || !isfinite(v) || v < o->min || v > o->max || (o->above_min && v == o->min))
        return wrong_number(o, source, given);
    *o->number = v;
    return CLI_DONE;
}

static int set_choice(const cli_option *o, const char *source, const char *given)
{
    char words[128], *list[16], *rest = words;
    int n = 0;
    snprintf(words, sizeof words, "%s", o->value);
    while (n < 16 && (list[n] = strsep(&rest, "|"))) {
        if (strcmp(list[n], given) == 0) {
            *o->choice = n;
            return CLI_DONE;
        }
        n++;
    }
    cli_hint hint;
    return cli_misuse("%s: \"%s\" is not one of %s%s", source, given, o->value,
                      cli_did_you_mean(&hint, "", given, (const char *const *)list, n, ""));
}

static int add_text(const cli_option *o, const char *source, const char *given)
{
    if (o->texts->n == CLI_TEXTS)
        return cli_misuse("%s is given more than %d times", source, CLI_TEXTS);
    o->texts->text[o->texts->n++] = given;
    return CLI_DONE;
}

static int set_text(const cli_option *o, const char *given)
{
    if (!*given && (strstr(o->value, "FILE") || strstr(o->value, "FOLDER")))
        return cli_misuse("--%s is empty", o->name);
    *o->text = given;
    return CLI_DONE;
}

int cli_option_set(const cli_option *o, const char *source, const char *given)
{
    if (o->flag)
        *o->flag = true;
    else if (o->text)
        return set_text(o, given);
    else if (o->texts)
        return add_text(o, source, given);
    else if (o->integer)
        return set_integer(o, source, given);
    else if (o->number)
        return set_number(o, source, given);
    else
        return set_choice(o, source, given);
    return CLI_DONE;
}

/* ---- Parsing -------------------------------------------------------------- */

static int count(const cli_option *options)
{
    int n = 0;
    while (options && options[n].name)
        n++;
    return n;
}

/* Makes the arguments of getopt_long: longs[n + 3], letters "+:hm:" of at most 2 n + 4 characters. */
static void translate(const cli_option *options, int n, struct option *longs, char *letters)
{
    *letters++ = ':'; /* distinguishes a missing value */
    *letters++ = 'h';
    longs[n] = (struct option){"help", no_argument, NULL, HELP};
    longs[n + 1] = (struct option){cli_quiet_option.name, no_argument, NULL, QUIET};
    longs[n + 2] = (struct option){0};
    for (int i = 0; i < n; i++) {
        bool value = !options[i].flag;
        longs[i] = (struct option){options[i].name, value ? required_argument : no_argument, NULL, LONG_BASE + i};
        if (options[i].letter) {
            *letters++ = options[i].letter;
            if (value)
                *letters++ = ':';
        }
    }
    *letters = '\0';
}

static int by_letter(const cli_option *options, int n, int letter)
{
    for (int i = 0; i < n; i++)
        if (options[i].letter == letter)
            return i;
    return -1;
}

/* Reports that getopt_long has refused `given`; `known` is its optopt. */
static int refuse(const cli_option *options, int n, const char *path, const char *given, int known, bool no_value)
{
    char shown[32];
    int i = known >= LONG_BASE ? known - LONG_BASE : by_letter(options, n, known);
    if (no_value && i >= 0 && known < LONG_BASE)
        return cli_misuse("-%c needs a value, %s", known, options[i].value);
    if (no_value && i >= 0)
        return cli_misuse("--%s needs a value, %s", options[i].name, options[i].value);
    if (known >= QUIET)
        return cli_misuse("--%s takes no value", known == HELP    ? "help"
                                                 : known == QUIET ? cli_quiet_option.name
                                                                  : options[i].name);
    if (known) {
        snprintf(shown, sizeof shown, "-%c", known);
        return cli_misuse("there is no option \"%s\"; \"%s --help\" lists them", shown, path);
    }
    const char *names[CLI_MAX_OPTIONS + 2] = {"help", cli_quiet_option.name};
    for (int k = 0; k < n; k++)
        names[k + 2] = options[k].name;
    snprintf(shown, sizeof shown, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    cli_hint hint;
    char otherwise[96];
    snprintf(otherwise, sizeof otherwise, "; \"%s --help\" lists them", path);
    return cli_misuse("there is no option \"--%s\"%s", shown,
                      cli_did_you_mean(&hint, "--", shown, names, n + 2, otherwise));
}

/* Sets options that were not given from the environment. */
static int set_from_environment(const cli_option *options, int n, const char *path, const bool *given)
{
    for (int i = 0; i < n; i++) {
        const char *value = options[i].env && !given[i] ? getenv(options[i].env) : NULL;
        if (value && *value) {
            char source[64];
            snprintf(source, sizeof source, "$%s", options[i].env);
            int code = cli_option_set(&options[i], source, value);
            if (code)
                return code;
        } else if (options[i].required && !given[i]) {
            return cli_misuse("--%s %s is needed; \"%s --help\" has more", options[i].name, options[i].value, path);
        }
    }
    return CLI_DONE;
}

static int check_arguments(const cli_command *c, const char *path, int n, char **arguments)
{
    if (n < c->min_arguments)
        return cli_misuse("%s is needed; \"%s --help\" has more", c->arguments, path);
    if (c->max_arguments >= 0 && n > c->max_arguments)
        return cli_misuse("\"%s\" is one argument too many%s", arguments[c->max_arguments],
                          c->max_arguments ? "; put quotes around a text with spaces" : "");
    return CLI_DONE;
}

static int parse(const cli_command *c, const char *path, int argc, char **argv, bool *help)
{
    struct option longs[CLI_MAX_OPTIONS + 3];
    char letters[2 * CLI_MAX_OPTIONS + 4];
    bool given[CLI_MAX_OPTIONS] = {false};
    int n = count(c->options);
    if (n > CLI_MAX_OPTIONS) /* a mistake in the table: no option would work, so a test sees it */
        return cli_fail("%s has %d options, but CLI_MAX_OPTIONS is %d", path, n, CLI_MAX_OPTIONS);
    translate(c->options, n, longs, letters);
    opterr = 0;
    optind = 0; /* GNU: restart */
    for (int found; (found = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (found == ':' || found == '?')
            return refuse(c->options, n, path, argv[optind - 1], optopt, found == ':');
        if (found == 'h' || found == HELP) {
            *help = true;
            return CLI_DONE;
        }
        if (found == QUIET) {
            quiet = true;
            continue;
        }
        int i = found >= LONG_BASE ? found - LONG_BASE : by_letter(c->options, n, found);
        char source[64]; /* as typed */
        if (found < LONG_BASE)
            snprintf(source, sizeof source, "-%c", found);
        else
            snprintf(source, sizeof source, "--%s", c->options[i].name);
        int code = cli_option_set(&c->options[i], source, optarg);
        if (code)
            return code;
        given[i] = true;
    }
    int code = quiet && !c->program ? cli_only_errors() : CLI_DONE;
    if (!code && c->complete)
        code = c->complete(given);
    if (!code)
        code = set_from_environment(c->options, n, path, given);
    if (!code)
        code = check_arguments(c, path, argc - optind, argv + optind);
    if (!code)
        code = cli_shard_begin(c);
    if (!code)
        code = cli_in_use_begin(c, argc - optind, argv + optind);
    return code ? code : cli_finished_begin(c, argc - optind, argv + optind);
}

int cli_run(const cli_command *c, const char *path, int argc, char **argv)
{
    bool help = false;
    if (c->commands && argc > 1 && argv[1][0] != '-') {
        const cli_command *sub = cli_find(c->commands, path, argv[1]);
        char deeper[64];
        snprintf(deeper, sizeof deeper, "%s %s", path, argv[1]);
        return sub ? cli_run(sub, deeper, argc - 1, argv + 1) : CLI_MISUSE;
    }
    int code = parse(c, path, argc, argv, &help);
    if (help)
        cli_print_help(stdout, c, path);
    else if (!code && c->program)
        code = cli_program_become(path, c->program, argv);
    else if (!code)
        code = c->run ? c->run(argc - optind, argv + optind)
                      : cli_misuse("%s is needed; \"%s --help\" lists them", c->arguments, path);
    if (!code && !help)
        code = cli_finished_write();
    return code == CLI_FINISHED ? CLI_DONE : code;
}

int cli_run_here(const cli_command *c, int (*run)(int n, char **arguments), int argc, char **argv)
{
    cli_command here = *c;
    char path[64];
    here.program = NULL;
    here.run = run;
    snprintf(path, sizeof path, "attend %s", c->name);
    return cli_run(&here, path, argc, argv);
}
