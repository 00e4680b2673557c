/* Prints what is special about the models of each subject. */
#include "subjects.h"

#include "facts.h"

#include <stdio.h>

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
    cli_json *j = info_json();
    bool more = false;
    for (int64_t i = 0; i < m->info.prompts; i++)
        more |= *att_sentence_prompt_at(m->sentence, i, NULL) != 0;
    if (!more && !j)
        return;
    info_fact_begin("prompts", "prompts");
    if (j)
        cli_json_object(j, "prompts");
    more = false;
    for (int64_t i = 0; i < m->info.prompts; i++) {
        text = att_sentence_prompt_at(m->sentence, i, &name);
        if (j)
            cli_json_string(j, name, text);
        if (j || !*text)
            continue;
        printf("%s%s ", more ? ", " : "", name);
        print_quoted(text);
        more = true;
    }
    info_list_end();
    if (m->info.default_prompt) {
        info_fact_begin("default_prompt", "default prompt");
        info_text(m->info.default_prompt);
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
    const bool unlimited = m->info.max_tokens == INT32_MAX && !info_json();
    static const char *const measures[] = {[ATT_SIMILARITY_COSINE] = "cosine",
                                           [ATT_SIMILARITY_DOT] = "dot product",
                                           [ATT_SIMILARITY_EUCLIDEAN] = "Euclidean distance",
                                           [ATT_SIMILARITY_MANHATTAN] = "Manhattan distance"};
    const info_fact facts[] = {{"dim", "dimension", m->info.dim, NULL},
                               {"layers", "layers", m->info.layers, NULL},
                               {"heads", "heads", m->info.heads, NULL},
                               {"max_tokens", "maximum of tokens", m->info.max_tokens, unlimited ? "none" : NULL},
                               {"similarity", "similarity", 0, measures[m->info.similarity]},
                               {"pooling", "pooling", 0, pooling}};
    pooling_of(&m->info, pooling, sizeof pooling);
    info_facts(facts, sizeof facts / sizeof *facts - (m->info.poolings == 0));
    print_prompts(m);
}

static void show_translator(const cli_model *base)
{
    const cli_translator *m = (const cli_translator *)base;
    const info_fact facts[] = {{"architecture", "architecture", 0, m->info.architecture},
                               {"source_vocabulary", "source vocabulary", m->info.source_vocabulary, NULL},
                               {"target_vocabulary", "target vocabulary", m->info.target_vocabulary, NULL},
                               {"attention_layers", "layers", m->info.attention_layers, NULL},
                               {"attention_heads", "heads", m->info.attention_heads, NULL},
                               {"max_tokens", "maximum of tokens", m->info.max_positions, NULL}};
    info_facts(facts, sizeof facts / sizeof *facts);
}

static void show_language(const cli_model *base)
{
    const cli_language *m = (const cli_language *)base;
    const info_fact facts[] = {{"vocabulary", "vocabulary", m->info.vocabulary, NULL},
                               {"hidden", "hidden size", m->info.hidden, NULL},
                               {"layers", "layers", m->info.layers, NULL},
                               {"heads", "heads", m->info.heads, NULL},
                               {"kv_heads", "heads of keys", m->info.kv_heads, NULL},
                               {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                               {"max_tokens", "maximum of tokens", m->info.max_positions, NULL}};
    info_facts(facts, sizeof facts / sizeof *facts);
}

static const char *class_name(const void *model, int64_t i) { return att_image_model_label(model, i); }

static const char *label_name(const void *model, int64_t i) { return att_text_classifier_label(model, i); }

/* Prints the names of all classes [n]; without --json only the first ones. */
static void print_labels(const void *model, int64_t n, const char *(*name)(const void *model, int64_t i))
{
    enum { SHOWN = 10 };
    const int64_t shown = info_json() || n <= SHOWN ? n : SHOWN;
    bool more = false;
    info_fact_begin("labels", "labels");
    info_list_begin();
    for (int64_t i = 0; i < shown; i++)
        info_name(&more, name(model, i));
    info_list_end();
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
    info_facts(&(const info_fact){"probe", "probe", 0, text}, 1);
}

static void show_vision(const cli_model *base)
{
    static const char *const pooling[] = {"cls", "mean", "cls and mean", "cls and distillation"};
    const cli_vision *m = (const cli_vision *)base;
    char image[64], patch[64];
    snprintf(image, sizeof image, "%lld x %lld", (long long)m->info.image[0], (long long)m->info.image[1]);
    snprintf(patch, sizeof patch, "%lld x %lld", (long long)m->info.patch[0], (long long)m->info.patch[1]);
    const info_fact facts[] = {{"image", "image", 0, image},
                               {"patch", "patch", 0, patch},
                               {"channels", "channels", m->info.channels, NULL},
                               {"hidden", "hidden size", m->info.hidden, NULL},
                               {"layers", "layers", m->info.layers, NULL},
                               {"heads", "heads", m->info.heads, NULL},
                               {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                               {"dim", "dimension", att_image_model_dim(m->model), NULL},
                               {"pooling", "pooling", 0, pooling[m->info.pooling]},
                               {"classes", "classes", m->info.classes, NULL}};
    info_facts(facts, sizeof facts / sizeof *facts);
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
    const info_fact facts[] = {{"hidden", "hidden size", m->info.hidden, NULL},
                               {"layers", "layers", m->info.layers, NULL},
                               {"heads", "heads", m->info.heads, NULL},
                               {"max_tokens", "maximum of tokens", m->info.max_tokens, NULL},
                               {"activation", "activation", 0, names[m->info.activation]},
                               {"probability", "probabilities by", 0, names[m->info.probability]},
                               {"classes", "classes", m->info.labels, NULL}};
    info_facts(facts, sizeof facts / sizeof *facts);
    print_probe(att_text_classifier_probe(m->model));
    print_labels(m->model, m->info.labels, label_name);
}

static void show_recommender(const cli_model *base)
{
    static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"};
    const cli_recommender *m = (const cli_recommender *)base;
    const info_fact facts[] = {{"items", "items", m->info.items, NULL},
                               {"block", "block", 0, blocks[m->info.block]},
                               {"hidden", "hidden size", m->info.hidden, NULL},
                               {"layers", "layers", m->info.layers, NULL},
                               {"heads", "heads", m->info.heads, NULL},
                               {"intermediate", "feed-forward size", m->info.intermediate, NULL},
                               {"max_positions", "maximum of items", m->info.max_positions, NULL},
                               {"content_width", "width of content", m->info.content_width, NULL}};
    info_facts(facts, m->info.hidden > 0 ? sizeof facts / sizeof *facts : 1); /* or the model counts */
}

static void show_captioner(const cli_model *base)
{
    const cli_captioner *m = (const cli_captioner *)base;
    char image[64], grid[64], attention[64];
    snprintf(image, sizeof image, "%lld x %lld", (long long)m->info.image[0], (long long)m->info.image[1]);
    snprintf(grid, sizeof grid, "%lld x %lld", (long long)m->info.grid[0], (long long)m->info.grid[1]);
    snprintf(attention, sizeof attention, "%s%s", m->info.attention, m->info.gate ? ", with a gate" : "");
    const info_fact facts[] = {
        {"encoder", "encoder", 0, m->info.encoder},      {"image", "image", 0, image},
        {"grid", "grid of locations", 0, grid},          {"features", "numbers of a location", m->info.features, NULL},
        {"decoder", "decoder", 0, m->info.decoder},      {"attention", "attention", 0, attention},
        {"hidden", "hidden size", m->info.hidden, NULL}, {"layers", "layers", m->info.layers, NULL},
        {"words", "words", m->info.words, NULL},         {"max_words", "maximum of words", m->info.max_words, NULL}};
    info_facts(facts, sizeof facts / sizeof *facts);
}

static const info_subject subjects[] = {{&cli_sentence_kind, show_sentence},
                                        {&cli_translator_kind, show_translator},
                                        {&cli_language_kind, show_language},
                                        {&cli_vision_kind, show_vision},
                                        {&cli_captioner_kind, show_captioner},
                                        {&cli_recommender_kind, show_recommender},
                                        {&cli_text_classifier_kind, show_text_classifier}};

const info_subject *info_subject_of(att_subject subject)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (subjects[i].kind->subject == subject)
            return &subjects[i];
    return NULL;
}
