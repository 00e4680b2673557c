#include "kinds.h"
#include "cli/base/grow.h"
#include "cli/base/paths.h"
#include "maps.h"

#include <stdlib.h>
#include <string.h>

/* ---- Texts --------------------------------------------------------------------- */

static int read_text(attended *a)
{
    char *text = (char *)a->asked->argument;
    return cli_paths_refuse_images(1, &text);
}

static int read_sentence(attended *a)
{
    const int code = read_text(a);
    if (!code && a->m.sentence.info.layers == 0)
        return cli_fail("%s has no attention: an embedding is the mean of vectors of tokens", a->m.base.name);
    return code ? code : cli_sentence_prompt(&a->m.sentence, "prompt", a->asked->prompt, NULL, &a->prompt);
}

static att_status trace_sentence(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_sentence_trace(a->m.sentence.sentence, a->asked->argument, strlen(a->asked->argument), a->prompt, o,
                              out);
}

static const char *sentence_token(const attended *a, int32_t id)
{
    return att_tokenizer_token(att_sentence_tokenizer(a->m.sentence.sentence), id);
}

static attention_result vector(const attended *a)
{
    (void)a;
    return ATTENTION_RESULT_VECTOR;
}

/* A pair is its texts with a tab between them. */
static att_status trace_classifier(const attended *a, const att_trace_options *o, att_trace **out)
{
    const char *text = a->asked->argument, *tab = strchr(text, '\t'), *pair = tab ? tab + 1 : NULL;
    return att_text_classifier_trace(a->m.text_classifier.model, text, tab ? (size_t)(tab - text) : strlen(text), pair,
                                     pair ? strlen(pair) : 0, o, out);
}

static const char *classifier_token(const attended *a, int32_t id)
{
    return att_tokenizer_token(att_text_classifier_tokenizer(a->m.text_classifier.model), id);
}

static const char *classifier_name(const attended *a, int64_t column)
{
    return att_text_classifier_label(a->m.text_classifier.model, column);
}

static attention_result labels(const attended *a)
{
    return a->m.text_classifier.info.probability == ATT_TEXT_ACTIVATION_SOFTMAX   ? ATTENTION_RESULT_PROBABILITIES
           : a->m.text_classifier.info.probability == ATT_TEXT_ACTIVATION_SIGMOID ? ATTENTION_RESULT_EACH
                                                                                  : ATTENTION_RESULT_SCORES;
}

static att_status trace_language(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_language_trace(a->m.language.generator, a->asked->argument, strlen(a->asked->argument), o, out);
}

static const char *language_token(const attended *a, int32_t id)
{
    return att_tokenizer_token(att_text_generator_tokenizer(a->m.language.generator), id);
}

static const char *language_name(const attended *a, int64_t column) { return language_token(a, (int32_t)column); }

static attention_result probabilities(const attended *a)
{
    (void)a;
    return ATTENTION_RESULT_PROBABILITIES;
}

/* ---- Translators --------------------------------------------------------------- */

/* Copies tokens [n] to the target. */
static int set_target(attended *a, const int32_t *ids, int64_t n)
{
    a->target = malloc(((size_t)n + 1) * sizeof *a->target);
    if (!a->target)
        return cli_fail_memory();
    memcpy(a->target, ids, (size_t)n * sizeof *ids);
    a->n_target = n;
    return CLI_DONE;
}

static int tokenize_target(attended *a)
{
    const att_tokenizer *t = att_translator_tokenizer(a->m.translator.translator);
    const char *text = a->asked->target;
    att_tokens tokens;
    int code = cli_status(a->m.base.ctx,
                          att_tokenize(t, text, strlen(text),
                                       ATT_OPTIONS(att_tokenize_options, .no_special = true, .target = true), &tokens));
    if (code)
        return code;
    code = set_target(a, tokens.ids, tokens.count);
    att_tokens_free(a->m.base.ctx, &tokens);
    return code;
}

static int read_translation(attended *a)
{
    const cli_translator *m = &a->m.translator;
    att_translation t;
    int code = read_text(a);
    if (code || m->info.attention_layers == 0 || a->asked->target)
        return code || m->info.attention_layers == 0 ? code : tokenize_target(a);
    code = cli_status(m->base.ctx, att_translate(m->translator, 1, &a->asked->argument, NULL,
                                                 ATT_OPTIONS(att_translate_options, .no_scores = true), &t));
    if (code)
        return code;
    code = set_target(a, t.tokens.ids, t.tokens.count);
    att_translation_free(m->base.ctx, &t);
    return code;
}

static att_status trace_translation(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_translator_trace(a->m.translator.translator, a->asked->argument, strlen(a->asked->argument), a->target,
                                a->n_target, o, out);
}

static const char *translator_token(const attended *a, int32_t id)
{
    return att_tokenizer_token(att_translator_tokenizer(a->m.translator.translator), id);
}

static const char *translator_name(const attended *a, int64_t column) { return translator_token(a, (int32_t)column); }

static attention_result target(const attended *a)
{
    (void)a;
    return ATTENTION_RESULT_TARGET;
}

/* ---- Images -------------------------------------------------------------------- */

static int read_image(attended *a)
{
    att_image_options o = {.size = sizeof o};
    uint8_t color[3];
    const int code = cli_read_background(a->asked->background, color, &o);
    if (code)
        return code;
    cli_images_read(a->m.base.ctx, 1, &a->asked->argument, &o, &a->image);
    return cli_image_code(&a->image);
}

static att_status trace_image(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_image_trace(a->m.vision.model, &a->image.image, o, out);
}

static const char *image_name(const attended *a, int64_t column)
{
    return att_image_model_label(a->m.vision.model, column);
}

static attention_result classes(const attended *a)
{
    const att_vit_info *i = &a->m.vision.info;
    return i->classes == 0  ? ATTENTION_RESULT_VECTOR
           : i->multi_label ? ATTENTION_RESULT_EACH
                            : ATTENTION_RESULT_PROBABILITIES;
}

static const char *caption_word(const attended *a, int32_t id)
{
    return att_caption_model_word(a->m.captioner.model, id);
}

static const char *caption_name(const attended *a, int64_t column)
{
    return att_caption_model_word(a->m.captioner.model, column);
}

static int find_word(const attended *a, const char *word, int32_t *id)
{
    const char *known;
    for (int64_t i = 0; (known = att_caption_model_word(a->m.captioner.model, i)); i++)
        if (!strcmp(known, word)) {
            *id = (int32_t)i;
            return CLI_DONE;
        }
    return cli_fail("--target: %s does not know the word \"%s\"", a->m.base.name, word);
}

/* Finds the words of --target. */
static int find_words(attended *a)
{
    char *copy = strdup(a->asked->target), *rest = copy;
    size_t room = 0;
    int code = copy ? CLI_DONE : cli_fail_memory();
    for (char *word; !code && (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        if (!cli_reserve(&room, (size_t)a->n_target + 1, &(cli_array){&a->target, sizeof *a->target}, 1))
            code = cli_fail_memory();
        else
            code = find_word(a, word, &a->target[a->n_target++]);
    }
    free(copy);
    return code || a->n_target > 0 ? code : cli_misuse("--target: \"%s\" has no word", a->asked->target);
}

static int read_caption(attended *a)
{
    const cli_captioner *m = &a->m.captioner;
    att_caption_options o = {.size = sizeof o, .no_scores = true};
    att_image_caption c;
    int code = read_image(a);
    if (code || !strcmp(m->info.attention, "none"))
        return code
                   ? code
                   : cli_fail("%s has no attention: all words come from one context vector of the image", m->base.name);
    if (a->asked->target)
        return find_words(a);
    code = cli_captioner_caption(m, 1, &a->image.image, &o, &c);
    if (code)
        return code;
    code = c.text ? set_target(a, c.ids, c.count) : cli_fail("%s has no caption of the image", m->base.name);
    att_image_caption_free(m->base.ctx, &c);
    return code;
}

static att_status trace_caption(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_caption_trace(a->m.captioner.model, &a->image.image, a->target, a->n_target, o, out);
}

/* ---- Histories ----------------------------------------------------------------- */

static int read_history(attended *a)
{
    int code = read_text(a);
    if (!code)
        code = cli_histories_read(&a->history, a->m.recommender.model, a->asked->argument, "the history", NULL);
    return code || a->history.offsets[1] > 0 ? code : cli_fail("the history has no item");
}

static att_status trace_history(const attended *a, const att_trace_options *o, att_trace **out)
{
    return att_recommender_trace(a->m.recommender.model, a->history.offsets[1], a->history.items, o, out);
}

static const char *item(const attended *a, int32_t id)
{
    const char *known = att_recommender_item(a->m.recommender.model, id);
    return known ? known : "[MASK]"; /* the mask of BERT4Rec, after the items */
}

static const char *item_name(const attended *a, int64_t column) { return item(a, (int32_t)column); }

static attention_result scores(const attended *a)
{
    (void)a;
    return ATTENTION_RESULT_SCORES;
}

/* ---- The table ----------------------------------------------------------------- */

static const attention_kind sentence_models = {.model = &cli_sentence_kind,
                                               .side = ATT_TRACE_SIDE_ENCODER,
                                               .prompts = true,
                                               .read = read_sentence,
                                               .trace = trace_sentence,
                                               .source = sentence_token,
                                               .target = sentence_token, /* with a causal backbone */
                                               .result = vector};

static const attention_kind text_classifiers = {.model = &cli_text_classifier_kind,
                                                .side = ATT_TRACE_SIDE_ENCODER,
                                                .outcome = "classes",
                                                .read = read_text,
                                                .trace = trace_classifier,
                                                .source = classifier_token,
                                                .result = labels,
                                                .name = classifier_name};

static const attention_kind language_models = {.model = &cli_language_kind,
                                               .side = ATT_TRACE_SIDE_DECODER,
                                               .outcome = "tokens",
                                               .read = read_text,
                                               .trace = trace_language,
                                               .target = language_token,
                                               .result = probabilities,
                                               .name = language_name};

static const attention_kind translators = {.model = &cli_translator_kind,
                                           .side = ATT_TRACE_SIDE_CROSS,
                                           .mean = true,
                                           .writes = true,
                                           .outcome = "tokens",
                                           .read = read_translation,
                                           .trace = trace_translation,
                                           .source = translator_token,
                                           .target = translator_token,
                                           .result = target,
                                           .name = translator_name};

static const attention_kind vision_models = {.model = &cli_vision_kind,
                                             .side = ATT_TRACE_SIDE_ENCODER,
                                             .mean = true,
                                             .image = true,
                                             .argument = "image",
                                             .outcome = "classes",
                                             .read = read_image,
                                             .trace = trace_image,
                                             .result = classes,
                                             .name = image_name,
                                             .show = attention_show_image};

static const attention_kind captioners = {.model = &cli_captioner_kind,
                                          .side = ATT_TRACE_SIDE_CROSS,
                                          .mean = true,
                                          .image = true,
                                          .writes = true,
                                          .argument = "image",
                                          .outcome = "words",
                                          .read = read_caption,
                                          .trace = trace_caption,
                                          .target = caption_word,
                                          .result = target,
                                          .name = caption_name,
                                          .show = attention_show_caption};

static const attention_kind recommenders = {.model = &cli_recommender_kind,
                                            .side = ATT_TRACE_SIDE_DECODER,
                                            .mean = true,
                                            .outcome = "items",
                                            .read = read_history,
                                            .trace = trace_history,
                                            .source = item,
                                            .target = item,
                                            .result = scores,
                                            .name = item_name};

const attention_kind *const attention_kinds[] = {&sentence_models, &language_models, &translators,      &vision_models,
                                                 &captioners,      &recommenders,    &text_classifiers, NULL};
