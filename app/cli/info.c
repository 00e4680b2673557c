/* attend info: the version, the machine and the models that are there; or one of them. */
#include "cli/base/command.h"
#include "cli/info/facts.h"
#include "cli/info/subjects.h"

#include <string.h>

static const char *model_name;
static bool json, memory, parameters;
static int64_t threads;
static cli_types types;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "show this model: a folder, OWNER/NAME in the cache of the Hugging Face Hub, or the name of a model in "
             "the models folder or of one that comes with attend"},
    CLI_TYPES(types),
    {"memory", 0, NULL, .flag = &memory,
     .help = "with --model: also make the model ready to compute, and show the memory that it takes"},
    {"parameters", 0, NULL, .flag = &parameters,
     .help = "with --model: also list its parameters, with their shapes and types"},
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* Lists the instruction sets of this build that a context opens with here. */
static int print_sets(void)
{
    char names[] = CLI_INSTRUCTION_SETS, *rest = names;
    bool more = false;
    int code = CLI_DONE;
    for (const char *name; !code && (name = strsep(&rest, " "));) {
        att_ctx *ctx;
        const att_status s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .isa = name));
        if (s == ATT_OK) {
            info_name(&more, name);
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
    const int code = cli_status(NULL, att_models_list(info_name, &more));
    if (!more && !info_json())
        fputs("none", stdout);
    return code;
}

static int print_all(const att_ctx *ctx, const char *folder)
{
    info_fact_begin("version", "version");
    info_text(att_version());
    info_fact_begin("isa", "instruction set");
    info_text(att_isa(ctx));
    info_fact_begin("isas", "usable here");
    info_list_begin();
    int code = print_sets();
    info_list_end();
    info_fact_begin("threads", "threads");
    info_integer(att_threads(ctx));
    info_fact_begin("models_folder", "models folder");
    info_text(folder || info_json() ? folder : "none");
    info_fact_begin("models", "models");
    info_list_begin();
    if (!code)
        code = print_models();
    info_list_end();
    info_end();
    return code;
}

/* ---- One model ------------------------------------------------------------------ */

/* Prints the bytes of each type: "Q4_1 74.2 MB, f32 0.1 MB". */
static void print_bytes(const char *of, const char *title, const int64_t *bytes)
{
    bool more = false;
    info_fact_begin(of, title);
    info_object_begin();
    for (int t = 0; t < ATT_MAX_DTYPES; t++)
        if (bytes[t] > 0)
            info_bytes(&more, att_dtype_name((att_dtype)t), att_dtype_name((att_dtype)t), bytes[t]);
    info_list_end();
}

/* Prints the types in which weights are stored and computed with. */
static void print_weights(const att_model_weights *w)
{
    bool whole = false;
    print_bytes("stored", "weights stored", w->stored);
    print_bytes("used", "weights in use", w->used);
    for (int t = 0; t < ATT_MAX_DTYPES && !whole; t++)
        whole = w->used[t] > 0 && att_dtype_block((att_dtype)t) > 1;
    info_fact_begin("products", "products");
    const char *floats = w->compute == ATT_COMPUTE_BF16 ? "bf16, summed in f32" : "f32";
    info_text(whole ? "int8 in blocks of 32, summed in f32" : floats);
}

/* Prints the memory of the weights of a model that is ready to compute. */
static void print_memory(const att_model_weights *w)
{
    const struct {
        const char *key, *title;
        int64_t bytes;
    } parts[] = {
        {"own", "of its own", w->own}, {"packed", "packed", w->packed}, {"mapped", "in mapped files", w->mapped}};
    bool more = false;
    info_fact_begin("memory", "in memory");
    info_object_begin();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        info_bytes(&more, parts[i].key, parts[i].title, parts[i].bytes);
    info_list_end();
}

static void print_parameter(const char *name, const att_tensor *v, int width)
{
    cli_json *j = info_json();
    if (j) {
        cli_json_object(j, NULL);
        cli_json_string(j, "name", name);
        cli_json_string(j, "dtype", att_dtype_name(v->dtype));
        cli_json_array(j, "shape");
    } else {
        printf("\n  %-*s  %-4s ", width, name, att_dtype_name(v->dtype));
    }
    for (int d = 0; d < v->rank; d++)
        if (j)
            cli_json_integer(j, NULL, v->dim[d]);
        else
            printf("%s%lld", d ? " x " : " ", (long long)v->dim[d]);
    info_list_end(); /* the shape, and the parameter */
    info_list_end();
}

/* Prints the number of parameters, and a line for each. */
static void print_parameters(const att_nn_params *p)
{
    const char *name;
    const att_param *x;
    int width = 0;
    info_fact_begin("parameters", "parameters");
    if (!info_json())
        info_integer(att_nn_params_count(p));
    info_list_begin();
    for (int64_t i = 0; att_nn_params_at(p, i, &name); i++)
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    for (int64_t i = 0; (x = att_nn_params_at(p, i, &name)); i++)
        print_parameter(name, att_param_value(x), width);
    info_list_end();
}

/* Prints the notes that opening the model made. */
static void print_notes(void)
{
    for (int i = 0; cli_kept_note(i); i++) {
        if (i == 0) {
            info_fact_begin("notes", "notes");
            info_list_begin();
        }
        if (i && !info_json())
            printf("\n%20s", "");
        info_text(cli_kept_note(i));
    }
    if (cli_kept_note(0))
        info_list_end();
}

/* Prints all that is known of a model that is open. */
static int show_opened(const cli_model *m, void (*show)(const cli_model *m))
{
    att_model_identity id = {.size = sizeof id};
    att_model_weights weights = {.size = sizeof weights};
    int code = cli_status(m->ctx, att_any_model_describe(m->opened, &id));
    if (!code)
        code = cli_status(m->ctx, att_any_model_weights(m->opened, &weights));
    if (code)
        return code;
    const info_fact identity[] = {{"model", "model", 0, m->name},
                                  {"folder", "folder", 0, m->folder.text},
                                  {"kind", "kind", 0, att_subject_name(id.subject)},
                                  {"type", "type", 0, id.type},
                                  {"class", "class", 0, id.architecture}};
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++)
        if (!identity[i].text || *identity[i].text)
            info_facts(&identity[i], 1);
    show(m);
    print_weights(&weights);
    if (memory)
        print_memory(&weights);
    if (parameters)
        print_parameters(att_any_model_params(m->opened));
    print_notes();
    info_end();
    return CLI_DONE;
}

/* Refuses a model that no subject recognizes, such as one of another program. */
static int refuse_unknown(const char *name, const char *folder)
{
    att_ctx *ctx;
    att_model_identity id = {.size = sizeof id};
    int code = cli_model_refuse_outer(name, folder);
    if (!code)
        code = cli_open(&ctx, 1);
    if (code)
        return code;
    code = cli_status(ctx, att_model_identify(ctx, folder, &id));
    att_close(ctx);
    return code ? code : cli_fail("%s: its files do not tell what kind of model it is", name);
}

static int show_model(void)
{
    info_model m;
    att_model_path folder;
    int code = cli_model_find(ATT_SUBJECT_NONE, model_name, &folder);
    if (code)
        return code;
    const info_subject *subject = info_subject_of(cli_model_subject(folder.text));
    if (!subject)
        return refuse_unknown(model_name, folder.text);
    cli_keep_notes = true;
    code = cli_model_open_with(&m.base, subject->kind, model_name,
                               ATT_OPTIONS(att_model_options, .weights = (att_weight_type)types.weights,
                                           .compute = (att_compute)types.compute, .prepare = memory),
                               threads);
    if (code)
        return code;
    code = show_opened(&m.base, subject->show);
    cli_model_close(&m.base);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    info_begin(json);
    if (model_name)
        return show_model();
    const char *type = types.weights ? "--dtype" : types.compute ? "--compute" : NULL;
    if (type || memory || parameters)
        return cli_misuse("%s needs --model", type ? type : memory ? "--memory" : "--parameters");
    att_ctx *ctx = NULL;
    int code = cli_open(&ctx, threads);
    if (code)
        return code;
    att_model_path folder;
    const bool found = att_models_folder(&folder) == ATT_OK;
    if (!found)
        cli_note("%s", att_error(NULL));
    code = print_all(ctx, found ? folder.text : NULL);
    att_close(ctx);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show version, instruction set, threads and models",
    .details = "With --model: what kind of model it is, its sizes, and which tensors of its files it does not use.",
    .examples = "attend info\n"
                "attend info -m tatoeba-de-en\n"
                "attend info -m fashion-mnist --parameters",
    .options = options,
    .see = "fetch|bench",
    .run = run,
};
