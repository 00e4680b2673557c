/* attend info: the version, the machine and the models that are there. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool json;
static int64_t threads;

static const cli_option options[] = {CLI_THREADS(&threads), CLI_JSON(&json), {0}};

static void add_model(void *list, const char *name) { json_array_append_new(list, json_string(name)); }

/* The instruction sets of this build that a context opens with here. */
static json_t *usable_sets(void)
{
    char names[] = CLI_INSTRUCTION_SETS, *rest = names;
    json_t *list = json_array();
    for (const char *name; (name = strsep(&rest, " "));) {
        att_ctx *ctx;
        if (att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .isa = name)) == ATT_OK) {
            json_array_append_new(list, json_string(name));
            att_close(ctx);
        }
    }
    return list;
}

static void print_list(const char *title, const json_t *list)
{
    printf("%-20s", title);
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("%s%s", i ? ", " : "", json_string_value(json_array_get(list, i)));
    puts(json_array_size(list) ? "" : "none");
}

static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    att_ctx *ctx = NULL;
    int code = cli_open(&ctx, threads);
    if (code)
        return code;
    char *folder = cli_models_folder();
    json_t *models = json_array();
    cli_models_list(add_model, models);
    json_t *all =
        json_pack("{s:s, s:s, s:o, s:i, s:s, s:o}", "version", att_version(), "isa", att_isa(ctx), "isas",
                  usable_sets(), "threads", att_threads(ctx), "models_folder", folder ? folder : "", "models", models);
    if (!all)
        code = cli_fail_memory();
    else if (json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        printf("%-20s%s\n%-20s%s\n", "version", att_version(), "instruction set", att_isa(ctx));
        print_list("usable here", json_object_get(all, "isas"));
        printf("%-20s%d\n%-20s%s\n", "threads", att_threads(ctx), "models folder", folder);
        print_list("models", models);
    }
    json_decref(all);
    free(folder);
    att_close(ctx);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "the version, the machine and the models that are there",
    .options = options,
    .run = run,
};
