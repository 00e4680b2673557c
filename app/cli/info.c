/* attend info: the version, the machine and the models that are there; or one of them. */
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/caption/captioner.h"
#include "cli/classifier/text_classifier.h"
#include "cli/language/language.h"
#include "cli/recommend/recommender.h"
#include "cli/sentence/sentence.h"
#include "cli/translate/translator.h"
#include "cli/vision/vision.h"

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

static cli_json out = {.first = "\n  ", .between = ",\n  ", .last = "\n"};
static const char *key; /* key of the next value; NULL: the value belongs to a list */

/* Begins a line with the name of its value or list. */
static void begin(const char *key_of, const char *title)
{
    static bool more;
    key = key_of;
    if (!json) {
        printf("%s%-20s", more ? "\n" : "", title);
    } else if (!more) {
        out.file = stdout;
        cli_json_object(&out, NULL);
    }
    more = true;
}

static void print_value(const char *value)
{
    if (json)
        cli_json_string(&out, key, value);
    else
        fputs(value, stdout);
}

static void print_integer(int64_t value)
{
    if (json)
        cli_json_integer(&out, key, value);
    else
        printf("%lld", (long long)value);
}

static void begin_list(void)
{
    if (json)
        cli_json_array(&out, key);
    key = NULL;
}

static void end_list(void)
{
    if (json)
        cli_json_end(&out);
}

/* *arg, a bool: another name stands before. */
static void print_name(void *arg, const char *name)
{
    bool *more = arg;
    if (!json && *more)
        fputs(", ", stdout);
    *more = true;
    print_value(name);
}

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

static void end_lines(void)
{
    if (json)
        cli_json_end(&out);
    else
        putchar('\n');
}

static int print_all(const att_ctx *ctx, const char *folder)
{
    begin("version", "version");
    print_value(att_version());
    begin("isa", "instruction set");
    print_value(att_isa(ctx));
    begin("isas", "usable here");
    begin_list();
    int code = print_sets();
    end_list();
    begin("threads", "threads");
    print_integer(att_threads(ctx));
    begin("models_folder", "models folder");
    print_value(folder || json ? folder : "none");
    begin("models", "models");
    begin_list();
    if (!code)
        code = print_models();
    end_list();
    end_lines();
    return code;
}

/* ---- One model ------------------------------------------------------------------ */

typedef struct fact {
    const char *key, *title;
    int64_t number;
    const char *text; /* or NULL: the number */
} fact;

static void print_facts(const fact *facts, int n)
{
    for (int i = 0; i < n; i++) {
        begin(facts[i].key, facts[i].title);
        if (facts[i].text)
            print_value(facts[i].text);
        else
            print_integer(facts[i].number);
    }
}

/* Prints the bytes of each type: "Q4_1 74.2 MB, f32 0.1 MB". */
static void print_bytes(const char *of, const char *title, const int64_t *bytes)
{
    bool more = false;
    begin(of, title);
    if (json)
        cli_json_object(&out, of);
    for (int t = 0; t < ATT_MAX_DTYPES; t++)
        if (bytes[t] > 0) {
            const char *name = att_dtype_name((att_dtype)t);
            if (json)
                cli_json_integer(&out, name, bytes[t]);
            else
                printf("%s%s %.1f MB", more ? ", " : "", name, (double)bytes[t] / 1e6);
            more = true;
        }
    end_list();
}

/* Prints the types in which weights are stored and computed with. */
static void print_weights(const att_model_weights *w)
{
    bool whole = false;
    print_bytes("stored", "weights stored", w->stored);
    print_bytes("used", "weights in use", w->used);
    for (int t = 0; t < ATT_MAX_DTYPES && !whole; t++)
        whole = w->used[t] > 0 && att_dtype_block((att_dtype)t) > 1;
    begin("products", "products");
    const char *floats = w->compute == ATT_COMPUTE_BF16 ? "bf16, summed in f32" : "f32";
    print_value(whole ? "int8 in blocks of 32, summed in f32" : floats);
}

/* Prints the memory of the weights of a model that is ready to compute. */
static void print_memory(const att_model_weights *w)
{
    const struct {
        const char *key, *title;
        int64_t bytes;
    } parts[] = {
        {"own", "of its own", w->own}, {"packed", "packed", w->packed}, {"mapped", "in mapped files", w->mapped}};
    begin("memory", "in memory");
    if (json)
        cli_json_object(&out, "memory");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (json)
            cli_json_integer(&out, parts[i].key, parts[i].bytes);
        else
            printf("%s%s %.1f MB", i ? ", " : "", parts[i].title, (double)parts[i].bytes / 1e6);
    end_list();
}

static void print_parameter(const char *name, const att_tensor *v, int width)
{
    if (json) {
        cli_json_object(&out, NULL);
        cli_json_string(&out, "name", name);
        cli_json_string(&out, "dtype", att_dtype_name(v->dtype));
        cli_json_array(&out, "shape");
    } else {
        printf("\n  %-*s  %-4s ", width, name, att_dtype_name(v->dtype));
    }
    for (int d = 0; d < v->rank; d++)
        if (json)
            cli_json_integer(&out, NULL, v->dim[d]);
        else
            printf("%s%lld", d ? " x " : " ", (long long)v->dim[d]);
    end_list(); /* the shape, and the parameter */
    end_list();
}

/* Prints the number of parameters, and a line for each. */
static void print_parameters(const att_nn_params *p)
{
    const char *name;
    const att_param *x;
    int width = 0;
    begin("parameters", "parameters");
    if (!json)
        print_integer(att_nn_params_count(p));
    begin_list();
    for (int64_t i = 0; att_nn_params_at(p, i, &name); i++)
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    for (int64_t i = 0; (x = att_nn_params_at(p, i, &name)); i++)
        print_parameter(name, att_param_value(x), width);
    end_list();
}

/* Prints a text in quotes, on one line. */
static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", stdout);
        else
            putchar(*text);
    putchar('"');
}

/* Prints the prompts of a sentence model; without --json only those that are not empty. */
static void print_prompts(const cli_sentence *m)
{
    const char *name, *text;
    bool more = false;
    for (int64_t i = 0; i < m->info.prompts; i++)
        more |= *att_sentence_prompt_at(m->sentence, i, NULL) != 0;
    if (!more && !json)
        return;
    begin("prompts", "prompts");
    if (json)
        cli_json_object(&out, "prompts");
    more = false;
    for (int64_t i = 0; i < m->info.prompts; i++) {
        text = att_sentence_prompt_at(m->sentence, i, &name);
        if (json)
            cli_json_string(&out, name, text);
        if (json || !*text)
            continue;
        printf("%s%s ", more ? ", " : "", name);
        print_quoted(text);
        more = true;
    }
    end_list();
    if (m->info.default_prompt) {
        begin("default_prompt", "default prompt");
        print_value(m->info.default_prompt);
    }
}

/* Writes how hidden states become a vector: "mean", "cls, max". */
static void pooling_of(const att_sentence_info *info, char *text, size_t size)
{
    static const char *const names[] = {[ATT_POOLING_CLS] = "cls",
                                        [ATT_POOLING_MEAN] = "mean",
                                        [ATT_POOLING_MAX] = "max",
                                        [ATT_POOLING_MEAN_SQRT] = "mean_sqrt_len_tokens",
                                        [ATT_POOLING_WEIGHTED_MEAN] = "weightedmean",
                                        [ATT_POOLING_LAST] = "lasttoken"};
    size_t n = 0;
    *text = 0;
    for (int64_t i = 0; i < info->poolings; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", names[info->pooling[i]]);
}

static void show_sentence(const cli_model *base)
{
    char pooling[ATT_MAX_POOLINGS * sizeof "mean_sqrt_len_tokens, "];
    const cli_sentence *m = (const cli_sentence *)base;
    const bool unlimited = m->info.max_tokens == INT32_MAX && !json;
    static const char *const measures[] = {[ATT_SIMILARITY_COSINE] = "cosine",
                                           [ATT_SIMILARITY_DOT] = "dot product",
                                           [ATT_SIMILARITY_EUCLIDEAN] = "Euclidean distance",
                                           [ATT_SIMILARITY_MANHATTAN] = "Manhattan distance"};
    const fact facts[] = {{"dim", "dimension", m->info.dim, NULL},
                          {"layers", "layers", m->info.layers, NULL},
                          {"heads", "heads", m->info.heads, NULL},
                          {"max_tokens", "maximum of tokens", m->info.max_tokens, unlimited ? "none" : NULL},
                          {"similarity", "similarity", 0, measures[m->info.similarity]},
                          {"pooling", "pooling", 0, pooling}};
    pooling_of(&m->info, pooling, sizeof pooling);
    print_facts(facts, sizeof facts / sizeof *facts - (m->info.poolings == 0));
    print_prompts(m);
}

static void show_translator(const cli_model *base)
{
    const cli_translator *m = (const cli_translator *)base;
    const fact facts[] = {{"architecture", "architecture", 0, m->info.architecture},
                          {"source_vocabulary", "source vocabulary", m->info.source_vocabulary, NULL},
                          {"target_vocabulary", "target vocabulary", m->info.target_vocabulary, NULL},
                          {"attention_layers", "layers", m->info.attention_layers, NULL},
                          {"attention_heads", "heads", m->info.attention_heads, NULL},
                          {"max_tokens", "maximum of tokens", m->info.max_positions, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
}

static void show_language(const cli_model *base)
{
    const cli_language *m = (const cli_language *)base;
    const fact facts[] = {{"vocabulary", "vocabulary", m->info.vocabulary, NULL},
                          {"hidden", "hidden size", m->info.hidden, NULL},
                          {"layers", "layers", m->info.layers, NULL},
                          {"heads", "heads", m->info.heads, NULL},
                          {"kv_heads", "heads of keys", m->info.kv_heads, NULL},
                          {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                          {"max_tokens", "maximum of tokens", m->info.max_positions, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
}

static const char *class_name(const void *model, int64_t i) { return att_image_model_label(model, i); }

static const char *label_name(const void *model, int64_t i) { return att_text_classifier_label(model, i); }

/* Prints the names of all classes [n]; without --json only the first ones. */
static void print_labels(const void *model, int64_t n, const char *(*name)(const void *model, int64_t i))
{
    enum { SHOWN = 10 };
    const int64_t shown = json || n <= SHOWN ? n : SHOWN;
    bool more = false;
    begin("labels", "labels");
    begin_list();
    for (int64_t i = 0; i < shown; i++)
        print_name(&more, name(model, i));
    end_list();
    fputs(shown < n ? ", ..." : "", stdout);
}

/* Prints what a classifier on embeddings is; NULL: nothing. */
static void print_probe(const att_probe *p)
{
    att_probe_info i = {.size = sizeof i};
    char text[96];
    if (!p || att_probe_describe(p, &i))
        return;
    if (i.kind == ATT_PROBE_KIND_LINEAR)
        snprintf(text, sizeof text, "linear, C %.3g", i.c);
    else
        snprintf(text, sizeof text, "%lld nearest of %lld vectors", (long long)i.neighbors, (long long)i.vectors);
    print_facts(&(const fact){"probe", "probe", 0, text}, 1);
}

static void show_vision(const cli_model *base)
{
    static const char *const pooling[] = {"cls", "mean", "cls and mean", "cls and distillation"};
    const cli_vision *m = (const cli_vision *)base;
    char image[64], patch[64];
    snprintf(image, sizeof image, "%lld x %lld", (long long)m->info.image[0], (long long)m->info.image[1]);
    snprintf(patch, sizeof patch, "%lld x %lld", (long long)m->info.patch[0], (long long)m->info.patch[1]);
    const fact facts[] = {{"image", "image", 0, image},
                          {"patch", "patch", 0, patch},
                          {"channels", "channels", m->info.channels, NULL},
                          {"hidden", "hidden size", m->info.hidden, NULL},
                          {"layers", "layers", m->info.layers, NULL},
                          {"heads", "heads", m->info.heads, NULL},
                          {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                          {"dim", "dimension", att_image_model_dim(m->model), NULL},
                          {"pooling", "pooling", 0, pooling[m->info.pooling]},
                          {"classes", "classes", m->info.classes, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    print_probe(att_image_model_probe(m->model));
    if (m->info.classes > 0)
        print_labels(m->model, m->info.classes, class_name);
}

static void show_text_classifier(const cli_model *base)
{
    static const char *const names[] = {[ATT_TEXT_ACTIVATION_IDENTITY] = "identity",
                                        [ATT_TEXT_ACTIVATION_SIGMOID] = "sigmoid",
                                        [ATT_TEXT_ACTIVATION_SOFTMAX] = "softmax"};
    const cli_text_classifier *m = (const cli_text_classifier *)base;
    const fact facts[] = {{"hidden", "hidden size", m->info.hidden, NULL},
                          {"layers", "layers", m->info.layers, NULL},
                          {"heads", "heads", m->info.heads, NULL},
                          {"max_tokens", "maximum of tokens", m->info.max_tokens, NULL},
                          {"activation", "activation", 0, names[m->info.activation]},
                          {"probability", "probabilities by", 0, names[m->info.probability]},
                          {"classes", "classes", m->info.labels, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    print_probe(att_text_classifier_probe(m->model));
    print_labels(m->model, m->info.labels, label_name);
}

static void show_recommender(const cli_model *base)
{
    static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"};
    const cli_recommender *m = (const cli_recommender *)base;
    const fact facts[] = {{"items", "items", m->info.items, NULL},
                          {"block", "block", 0, blocks[m->info.block]},
                          {"hidden", "hidden size", m->info.hidden, NULL},
                          {"layers", "layers", m->info.layers, NULL},
                          {"heads", "heads", m->info.heads, NULL},
                          {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                          {"max_positions", "maximum of items", m->info.max_positions, NULL},
                          {"content_width", "width of content", m->info.content_width, NULL}};
    print_facts(facts, m->info.hidden > 0 ? sizeof facts / sizeof *facts : 1); /* or the model counts */
}

static void show_captioner(const cli_model *base)
{
    const cli_captioner *m = (const cli_captioner *)base;
    char image[64], grid[64], attention[64];
    snprintf(image, sizeof image, "%lld x %lld", (long long)m->info.image[0], (long long)m->info.image[1]);
    snprintf(grid, sizeof grid, "%lld x %lld", (long long)m->info.grid[0], (long long)m->info.grid[1]);
    snprintf(attention, sizeof attention, "%s%s", m->info.attention, m->info.gate ? ", with a gate" : "");
    const fact facts[] = {
        {"encoder", "encoder", 0, m->info.encoder},      {"image", "image", 0, image},
        {"grid", "grid of locations", 0, grid},          {"features", "numbers of a location", m->info.features, NULL},
        {"decoder", "decoder", 0, m->info.decoder},      {"attention", "attention", 0, attention},
        {"hidden", "hidden size", m->info.hidden, NULL}, {"layers", "layers", m->info.layers, NULL},
        {"words", "words", m->info.words, NULL},         {"max_words", "maximum of words", m->info.max_words, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
}

/* Prints the notes that opening the model made. */
static void print_notes(void)
{
    for (int i = 0; cli_kept_note(i); i++) {
        if (i == 0) {
            begin("notes", "notes");
            begin_list();
        }
        if (i && !json)
            printf("\n%20s", "");
        print_value(cli_kept_note(i));
    }
    if (cli_kept_note(0))
        end_list();
}

/* The details of the models of each subject, besides identity and weights. */
static const struct {
    const cli_model_kind *kind;
    void (*show)(const cli_model *m);
} subjects[] = {{&cli_sentence_kind, show_sentence},
                {&cli_translator_kind, show_translator},
                {&cli_language_kind, show_language},
                {&cli_vision_kind, show_vision},
                {&cli_captioner_kind, show_captioner},
                {&cli_recommender_kind, show_recommender},
                {&cli_text_classifier_kind, show_text_classifier}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

typedef union any_model {
    cli_model base;
    cli_sentence sentence;
    cli_translator translator;
    cli_language language;
    cli_vision vision;
    cli_captioner captioner;
    cli_recommender recommender;
    cli_text_classifier text_classifier;
} any_model;

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
    const fact identity[] = {{"model", "model", 0, m->name},
                             {"folder", "folder", 0, m->folder.text},
                             {"kind", "kind", 0, att_subject_name(id.subject)},
                             {"type", "type", 0, id.type},
                             {"class", "class", 0, id.architecture}};
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++)
        if (!identity[i].text || *identity[i].text)
            print_facts(&identity[i], 1);
    show(m);
    print_weights(&weights);
    if (memory)
        print_memory(&weights);
    if (parameters)
        print_parameters(att_any_model_params(m->opened));
    print_notes();
    end_lines();
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
    any_model m;
    att_model_path folder;
    int i = 0, code = cli_model_find(ATT_SUBJECT_NONE, model_name, &folder);
    if (code)
        return code;
    const att_subject subject = cli_model_subject(folder.text);
    while (i < SUBJECTS && subjects[i].kind->subject != subject)
        i++;
    if (i == SUBJECTS)
        return refuse_unknown(model_name, folder.text);
    cli_keep_notes = true;
    code = cli_model_open_with(&m.base, subjects[i].kind, model_name,
                               ATT_OPTIONS(att_model_options, .weights = (att_weight_type)types.weights,
                                           .compute = (att_compute)types.compute, .prepare = memory),
                               threads);
    if (code)
        return code;
    code = show_opened(&m.base, subjects[i].show);
    cli_model_close(&m.base);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
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
