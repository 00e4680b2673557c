/* attend info: the version, the machine and the models that are there. */
#include "cli/base/cli.h"

#include "cli/base/output.h"

#include <string.h>

static bool json;
static int64_t threads;

static const cli_option options[] = {CLI_THREADS(&threads), CLI_JSON(&json), {0}};

static void print_value(const char *value)
{
    if (json)
        cli_write_json(stdout, value, strlen(value));
    else
        fputs(value, stdout);
}

/* *arg, a bool: another name stands before. */
static void print_name(void *arg, const char *name)
{
    bool *more = arg;
    fputs(*more ? ", " : "", stdout);
    *more = true;
    print_value(name);
}

/* The instruction sets of this build that a context opens with here. */
static int print_sets(void)
{
    char names[] = CLI_INSTRUCTION_SETS, *rest = names;
    bool more = false;
    int code = CLI_DONE;
    for (const char *name; !code && (name = strsep(&rest, " "));) {
        att_ctx *ctx;
        const att_status s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .isa = name));
        if (s == ATT_OK) {
            print_name(&more, name);
            att_close(ctx);
        } else if (s == ATT_ERR_MEMORY) {
            code = cli_fail_memory();
        }
    }
    return code;
}

static int print_models(void)
{
    bool more = false;
    const int code = cli_status(NULL, att_models_list(print_name, &more));
    if (!more && !json)
        fputs("none", stdout);
    return code;
}

static void begin(const char *key, const char *title)
{
    static bool more;
    if (json)
        printf("%s\"%s\": ", more ? ",\n  " : "{\n  ", key);
    else
        printf("%s%-20s", more ? "\n" : "", title);
    more = true;
}

static int print_all(const att_ctx *ctx, const char *folder)
{
    begin("version", "version");
    print_value(att_version());
    begin("isa", "instruction set");
    print_value(att_isa(ctx));
    begin("isas", "usable here");
    fputs(json ? "[" : "", stdout);
    int code = print_sets();
    fputs(json ? "]" : "", stdout);
    begin("threads", "threads");
    printf("%d", att_threads(ctx));
    begin("models_folder", "models folder");
    print_value(folder);
    begin("models", "models");
    fputs(json ? "[" : "", stdout);
    if (!code)
        code = print_models();
    puts(json ? "]\n}" : "");
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    att_ctx *ctx = NULL;
    int code = cli_open(&ctx, threads);
    if (code)
        return code;
    att_model_path folder;
    code = cli_status(ctx, att_models_folder(&folder));
    if (!code)
        code = print_all(ctx, folder.text);
    att_close(ctx);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show version, instruction set, threads and installed models",
    .options = options,
    .see = "fetch|bench",
    .run = run,
};
