/* attend info: the version, the machine and the models that are there; or one of them. */
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/caption/captioner.h"
#include "cli/language/language.h"
#include "cli/recommend/recommender.h"
#include "cli/vision/vision.h"

#include <string.h>
#include <unistd.h>

static const char *model_name;
static bool json;
static int64_t threads;
static int dtype;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "show this model: a folder, or the name of a model in the models folder or of one that comes with attend"},
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

static cli_json out = {.first = "\n  ", .between = ",\n  ", .last = "\n"};
static const char *key; /* of the value that comes next; NULL: it is of a list */

/* Begins a line, with what its value or list is. */
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

static fact identity[3]; /* name, folder, kind: before the others */

/* Once a model is open. */
static void print_facts(const fact *facts, int n)
{
    if (facts != identity)
        print_facts(identity, 3);
    for (int i = 0; i < n; i++) {
        begin(facts[i].key, facts[i].title);
        if (facts[i].text)
            print_value(facts[i].text);
        else
            print_integer(facts[i].number);
    }
}

/* Bytes of each type: "Q4_1 74.2 MB, f32 0.1 MB" */
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

/* What is stored, and what computes. */
static void print_weights(const att_model_weights *w)
{
    print_bytes("stored", "weights stored", w->stored);
    print_bytes("used", "weights in use", w->used);
    const bool whole = w->used[ATT_Q8_0] + w->used[ATT_Q4_0] + w->used[ATT_Q4_1] > 0;
    begin("products", "products");
    print_value(whole ? "int8 in blocks of 32, summed in f32" : "f32");
}

static int show_sentence(const char *name)
{
    static const char *const measures[] = {[ATT_SIMILARITY_COSINE] = "cosine",
                                           [ATT_SIMILARITY_DOT] = "dot product",
                                           [ATT_SIMILARITY_EUCLIDEAN] = "Euclidean distance",
                                           [ATT_SIMILARITY_MANHATTAN] = "Manhattan distance"};
    cli_model m;
    att_model_weights weights = {.size = sizeof weights};
    const int code = cli_model_open(&m, name, dtype, threads);
    if (code)
        return code;
    const fact facts[] = {{"dim", "dimension", m.info.dim, NULL},
                          {"layers", "layers", m.info.layers, NULL},
                          {"heads", "heads", m.info.heads, NULL},
                          {"max_tokens", "maximum of tokens", m.info.max_tokens, NULL},
                          {"similarity", "similarity", 0, measures[m.info.similarity]}};
    print_facts(facts, sizeof facts / sizeof *facts);
    att_sentence_weights(m.sentence, &weights);
    print_weights(&weights);
    cli_model_close(&m);
    return code;
}

static int show_translator(const char *name)
{
    cli_translator m;
    att_model_weights weights = {.size = sizeof weights};
    const int code = cli_translator_open(&m, name, dtype, threads);
    if (code)
        return code;
    const fact facts[] = {{"architecture", "architecture", 0, m.info.architecture},
                          {"source_vocabulary", "source vocabulary", m.info.source_vocabulary, NULL},
                          {"target_vocabulary", "target vocabulary", m.info.target_vocabulary, NULL},
                          {"attention_layers", "layers", m.info.attention_layers, NULL},
                          {"attention_heads", "heads", m.info.attention_heads, NULL},
                          {"max_tokens", "maximum of tokens", m.info.max_positions, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    att_translator_weights(m.translator, &weights);
    print_weights(&weights);
    cli_translator_close(&m);
    return code;
}

static int show_language(const char *name)
{
    cli_language m;
    att_model_weights weights = {.size = sizeof weights};
    const int code = cli_language_open(&m, name, dtype, threads);
    if (code)
        return code;
    const fact facts[] = {{"type", "type", 0, m.info.type},
                          {"vocabulary", "vocabulary", m.info.vocabulary, NULL},
                          {"hidden", "hidden size", m.info.hidden, NULL},
                          {"layers", "layers", m.info.layers, NULL},
                          {"heads", "heads", m.info.heads, NULL},
                          {"kv_heads", "heads of keys", m.info.kv_heads, NULL},
                          {"intermediate", "feed-forward size", m.info.intermediate, NULL},
                          {"max_tokens", "maximum of tokens", m.info.max_positions, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    att_language_model_weights(att_text_generator_model(m.generator), &weights);
    print_weights(&weights);
    cli_language_close(&m);
    return code;
}

/* The names of all classes; for people the first ones. */
static void print_labels(const cli_vision *m)
{
    enum { SHOWN = 10 };
    const int64_t n = m->info.classes, shown = json || n <= SHOWN ? n : SHOWN;
    bool more = false;
    begin("labels", "labels");
    begin_list();
    for (int64_t i = 0; i < shown; i++)
        print_name(&more, att_image_model_label(m->model, i));
    end_list();
    fputs(shown < n ? ", ..." : "", stdout);
}

static int show_vision(const char *name)
{
    static const char *const pooling[] = {"cls", "mean", "cls and mean", "cls and distillation"};
    cli_vision m;
    char image[64], patch[64];
    const int code = cli_vision_open(&m, name, threads);
    if (code)
        return code;
    snprintf(image, sizeof image, "%lld x %lld", (long long)m.info.image[0], (long long)m.info.image[1]);
    snprintf(patch, sizeof patch, "%lld x %lld", (long long)m.info.patch[0], (long long)m.info.patch[1]);
    const fact facts[] = {{"type", "type", 0, m.info.type},
                          {"image", "image", 0, image},
                          {"patch", "patch", 0, patch},
                          {"channels", "channels", m.info.channels, NULL},
                          {"hidden", "hidden size", m.info.hidden, NULL},
                          {"layers", "layers", m.info.layers, NULL},
                          {"heads", "heads", m.info.heads, NULL},
                          {"intermediate", "feed-forward size", m.info.intermediate, NULL},
                          {"dim", "dimension", att_image_model_dim(m.model), NULL},
                          {"pooling", "pooling", 0, pooling[m.info.pooling]},
                          {"classes", "classes", m.info.classes, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    if (m.info.classes > 0)
        print_labels(&m);
    cli_vision_close(&m);
    return code;
}

static int show_recommender(const char *name)
{
    static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"};
    cli_recommender m;
    const int code = cli_recommender_open(&m, name, threads);
    if (code)
        return code;
    const fact facts[] = {{"type", "type", 0, m.info.type},
                          {"items", "items", m.info.items, NULL},
                          {"block", "block", 0, blocks[m.info.block]},
                          {"hidden", "hidden size", m.info.hidden, NULL},
                          {"layers", "layers", m.info.layers, NULL},
                          {"heads", "heads", m.info.heads, NULL},
                          {"intermediate", "feed-forward size", m.info.intermediate, NULL},
                          {"max_positions", "maximum of items", m.info.max_positions, NULL},
                          {"content_width", "width of content", m.info.content_width, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    cli_recommender_close(&m);
    return code;
}

static int show_captioner(const char *name)
{
    cli_captioner m;
    char image[64], grid[64], attention[64];
    const int code = cli_captioner_open(&m, name, threads);
    if (code)
        return code;
    snprintf(image, sizeof image, "%lld x %lld", (long long)m.info.image[0], (long long)m.info.image[1]);
    snprintf(grid, sizeof grid, "%lld x %lld", (long long)m.info.grid[0], (long long)m.info.grid[1]);
    snprintf(attention, sizeof attention, "%s%s", m.info.attention, m.info.gate ? ", with a gate" : "");
    const fact facts[] = {
        {"encoder", "encoder", 0, m.info.encoder},      {"image", "image", 0, image},
        {"grid", "grid of locations", 0, grid},         {"features", "numbers of a location", m.info.features, NULL},
        {"decoder", "decoder", 0, m.info.decoder},      {"attention", "attention", 0, attention},
        {"hidden", "hidden size", m.info.hidden, NULL}, {"layers", "layers", m.info.layers, NULL},
        {"words", "words", m.info.words, NULL},         {"max_words", "maximum of words", m.info.max_words, NULL}};
    print_facts(facts, sizeof facts / sizeof *facts);
    cli_captioner_close(&m);
    return code;
}

/* What opening the model reported. */
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

/* Where config.json is something else, it states it. */
static int refuse_unknown(const char *name, const char *folder)
{
    char path[sizeof(att_model_path) + sizeof "/adapter_config.json"];
    int file;
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    if (access(path, F_OK) == 0)
        return cli_fail("%s is an adapter of another model, which adapter_config.json names: merge the two first",
                        name);
    snprintf(path, sizeof path, "%s/config.json", folder);
    if (access(path, F_OK) == 0) {
        const int code = cli_status(NULL, att_open_text(path, &file));
        if (code)
            return code;
        close(file);
    }
    return cli_fail("%s: its files do not tell what kind of model it is", name);
}

static int show_model(const char *name)
{
    static int (*const show[])(const char *) = {show_sentence, show_translator,  show_language,
                                                show_vision,   show_recommender, show_captioner};
    att_model_path folder;
    int code = cli_model_find(CLI_ANY_MODEL, name, &folder);
    if (code)
        return code;
    const cli_model_kind kind = cli_model_kind_of(folder.text);
    if (kind == CLI_ANY_MODEL)
        return refuse_unknown(name, folder.text);
    if (dtype && kind >= CLI_VISION_MODEL)
        return cli_misuse("--dtype: %s is a %s, whose weights have the type of the file", name,
                          cli_model_kind_name(kind));
    identity[0] = (fact){"model", "model", 0, name};
    identity[1] = (fact){"folder", "folder", 0, folder.text};
    identity[2] = (fact){"kind", "kind", 0, cli_model_kind_name(kind)};
    cli_keep_notes = true;
    code = show[kind](name);
    if (!code) {
        print_notes();
        end_lines();
    }
    return code;
}

static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    if (model_name)
        return show_model(model_name);
    if (dtype)
        return cli_misuse("--dtype needs --model");
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
                "attend info -m tatoeba-de-en",
    .options = options,
    .see = "fetch|bench",
    .run = run,
};
