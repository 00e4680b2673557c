#include "classifier/classifier_config.h"
#include "attend_util.h"
#include "model/class_names.h"
#include "probe/probe.h"
#include "stack/encoder.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LABELS = 1 << 20, MAX_TOKENS = 1 << 20 };

/* ---- which folders */

bool att_is_sequence_classification(const char *class)
{
    static const char end[] = "ForSequenceClassification";
    const size_t n = strlen(class), bytes = sizeof end - 1;
    return n >= bytes && !strcmp(class + n - bytes, end);
}

/* Sets *is: whether "model_type" of config_sentence_transformers.json, if that exists, is CrossEncoder. */
static att_status find_cross_encoder(att_ctx *ctx, const char *folder, bool *is)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "config_sentence_transformers.json", false);
    const char *type = s.root ? json_string_value(att_settings_get(&s, "model_type")) : NULL;
    *is = type && !strcmp(type, "CrossEncoder");
    att_settings_close(&s);
    return s.status;
}

static const char *class_of(const att_settings *config)
{
    const char *class = json_string_value(json_array_get(att_settings_get(config, "architectures"), 0));
    return class ? class : "";
}

static bool has_file(att_ctx *ctx, const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    return !att_join_path(ctx, folder, name, path) && att_is_file(path);
}

static bool has_modules(att_ctx *ctx, const char *folder) { return has_file(ctx, folder, "modules.json"); }

att_status att_is_text_classifier(att_ctx *ctx, const char *folder, const att_settings *config, bool *is)
{
    const att_status s = find_cross_encoder(ctx, folder, is);
    *is = *is || att_probe_is_in(ctx, folder, ATT_PROBE_TEXTS) ||
          (!has_modules(ctx, folder) && att_is_sequence_classification(class_of(config)));
    return s == ATT_ERR_MEMORY ? s : ATT_OK; /* opening it knows more of what is wrong */
}

/* ---- activations */

/* Reads the activation of a class, "torch.nn.modules.activation.Sigmoid". A class that is not PyTorch's is code of the
 * folder's own, without which CrossEncoder takes its default, too. */
static void read_activation(att_settings *s, const char *key, att_text_activation *out)
{
    static const struct {
        const char *class;
        att_text_activation activation;
    } known[] = {{"Identity", ATT_TEXT_ACTIVATION_IDENTITY}, {"Sigmoid", ATT_TEXT_ACTIVATION_SIGMOID}};
    const char *path = att_settings_has(s, key) ? att_settings_text(s, key, NULL) : NULL;
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!path || s->status)
        return;
    if (strncmp(path, "torch.", 6) != 0) {
        att_note(s->ctx,
                 "%s: \"%s%s\" is \"%.100s\", code that is not run: the default is taken, as CrossEncoder does without "
                 "trust_remote_code",
                 s->path, s->within, key, path);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].class, dot + 1)) {
            *out = known[i].activation;
            return;
        }
    att_settings_unsupported(s, key, "torch.nn.Identity or torch.nn.Sigmoid");
}

/* ---- config.json */

static void read_names(att_settings *s, att_text_classifier_config *c)
{
    const json_t *names = att_settings_get(s, "id2label");
    const int64_t n = names ? (int64_t)json_object_size(names) : att_settings_int_or(s, "num_labels", 1, MAX_LABELS, 2);
    if (names && !json_is_object(names))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"id2label\" is %s, not an object of names", att_json_show(names).text);
    else if (names && (n < 1 || n > MAX_LABELS))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"id2label\" has %lld names, expected 1 to %d", (long long)n, MAX_LABELS);
    else if (names && att_settings_has(s, "num_labels") && att_settings_int(s, "num_labels", 1, MAX_LABELS) != n)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"num_labels\" is %s, but \"id2label\" has %lld names",
                          att_json_show(att_settings_get(s, "num_labels")).text, (long long)n);
    c->head.labels = n;
    s->status = s->status ? s->status : att_class_names_read(s, names, n, "LABEL_", &c->name);
}

/* Returns the activation that the pipeline of `transformers` takes. */
static att_text_activation probability_of(att_settings *s, int64_t labels)
{
    static const char *const types[] = {"regression", "multi_label_classification", "single_label_classification"};
    const char *key = "problem_type";
    const int type = att_settings_has(s, key) ? att_settings_choice(s, key, types, 3,
                                                                    "one of regression, single_label_classification "
                                                                    "and multi_label_classification")
                                              : 2;
    return type == 0                  ? ATT_TEXT_ACTIVATION_IDENTITY
           : type == 1 || labels == 1 ? ATT_TEXT_ACTIVATION_SIGMOID
                                      : ATT_TEXT_ACTIVATION_SOFTMAX;
}

static void read_default_activation(att_settings *s, att_text_classifier_config *c)
{
    c->activation = c->head.labels == 1 ? ATT_TEXT_ACTIVATION_SIGMOID : ATT_TEXT_ACTIVATION_IDENTITY;
    const json_t *object = att_settings_get(s, "sentence_transformers");
    if (!json_object_get(object, "activation_fn")) {
        read_activation(s, "sbert_ce_default_activation_function", &c->activation);
        return;
    }
    const att_settings_scope file = att_settings_enter(s, "sentence_transformers");
    read_activation(s, "activation_fn", &c->activation);
    att_settings_leave(s, file);
}

static void read_config(att_settings *s, att_text_classifier_config *c)
{
    const att_model_kind *kind = att_model_kind_of(s, att_encoder_kinds, " for classes of texts");
    c->head.kind = kind ? att_text_head_find(att_settings_text(s, "model_type", NULL)) : NULL;
    if (!c->head.kind) {
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"model_type\" is %s, an encoder whose classifier is not supported",
                          att_json_show(att_settings_get(s, "model_type")).text);
        return;
    }
    snprintf(c->class, sizeof c->class, "%s", class_of(s));
    read_names(s, c);
    att_text_head_read(s, &c->head);
    c->probability = probability_of(s, c->head.labels);
    read_default_activation(s, c);
}

/* ---- tokenizer_config.json */

/* A huge limit means none. */
static void read_tokenizer(att_settings *s, att_text_classifier_config *c)
{
    if (!s->root)
        return;
    if (!c->max_tokens && att_settings_has(s, "model_max_length")) {
        const double limit = att_settings_number(s, "model_max_length", 1, 1e300);
        c->max_tokens = limit < MAX_TOKENS ? (int64_t)limit : 0;
    }
    const json_t *inputs = att_settings_get(s, "model_input_names");
    c->no_types = json_is_array(inputs);
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const char *name = json_string_value(json_array_get(inputs, i));
        if (name && !strcmp(name, "token_type_ids"))
            c->no_types = false;
    }
}

/* ---- the files of a CrossEncoder */

static void read_modules(att_settings *s)
{
    att_settings_enter_item(s, "", json_array_get(s->root, 0));
    const char *type = att_settings_text(s, "type", NULL), *dot = s->status ? NULL : strrchr(type, '.');
    if (!s->status && (json_array_size(s->root) != 1 || !dot || strcmp(dot, ".Transformer") != 0))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "has %d modules, the first \"%.100s\": of a CrossEncoder, one Transformer with a classifier "
                          "is supported",
                          (int)json_array_size(s->root), type);
    att_settings_only_text(s, "path", "");
    att_settings_only_empty(s, "kwargs");
}

static void read_transformer(att_settings *s, att_text_classifier_config *c)
{
    static const char *const known[] = {"max_seq_length",
                                        "do_lower_case",
                                        "transformer_task",
                                        "modality_config",
                                        "module_output_name",
                                        "processing_kwargs",
                                        "unpad_inputs",
                                        "query_length",
                                        "document_length",
                                        "query_expansion",
                                        NULL};
    if (!s->root)
        return;
    att_settings_only_known(s, known);
    att_settings_only_text(s, "transformer_task", "sequence-classification");
    att_settings_only_text(s, "module_output_name", "scores");
    att_settings_only_empty(s, "processing_kwargs");
    att_settings_only_bool(s, "do_lower_case", false);
    att_settings_only_empty(s, "query_length");
    att_settings_only_empty(s, "document_length");
    att_settings_only_empty(s, "query_expansion");
    if (att_settings_has(s, "max_seq_length"))
        c->max_tokens = att_settings_int(s, "max_seq_length", 1, MAX_TOKENS);
    if (att_settings_has(s, "modality_config")) {
        const att_settings_scope file = att_settings_enter(s, "modality_config");
        att_settings_enter(s, "text");
        att_settings_only_text(s, "method", "forward");
        att_settings_only_text(s, "method_output_name", "logits");
        att_settings_leave(s, file);
    }
}

/* Refuses a default prompt: a prompt before each text would change all scores. */
static void read_cross_encoder(att_settings *s, att_text_classifier_config *c)
{
    if (!s->root)
        return;
    read_activation(s, "activation_fn", &c->activation);
    const char *name =
        att_settings_has(s, "default_prompt_name") ? att_settings_text(s, "default_prompt_name", NULL) : NULL;
    const char *prompt = name ? json_string_value(json_object_get(att_settings_get(s, "prompts"), name)) : NULL;
    if (prompt && *prompt)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"default_prompt_name\" is \"%.40s\": a prompt before each pair is not supported", name);
}

/* ---- all of them */

static att_status read_file(att_ctx *ctx, const char *folder, const char *name, bool required,
                            void (*reader)(att_settings *s, att_text_classifier_config *c),
                            att_text_classifier_config *c)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, name, required);
    if (!s.status)
        reader(&s, c);
    att_settings_close(&s);
    return s.status;
}

static att_status check_modules(att_ctx *ctx, const char *folder)
{
    att_settings s;
    att_settings_read_list(&s, ctx, folder, "modules.json");
    if (!s.status)
        read_modules(&s);
    att_settings_close(&s);
    return s.status;
}

att_status att_text_classifier_config_read(att_ctx *ctx, const char *folder, att_text_classifier_config *out)
{
    att_text_classifier_config c = {.modules = has_modules(ctx, folder)};
    *out = c;
    if (c.modules && !has_file(ctx, folder, "config.json"))
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s: there is no config.json of an encoder beside modules.json: its embeddings are static, or "
                        "its encoder is in a subfolder",
                        folder);
    att_status s = c.modules ? find_cross_encoder(ctx, folder, &c.modules) : ATT_OK;
    if (!s && c.modules)
        s = check_modules(ctx, folder);
    s = s ? s : read_file(ctx, folder, "config.json", true, read_config, &c);
    if (!s && c.modules)
        s = read_file(ctx, folder, "sentence_bert_config.json", false, read_transformer, &c);
    if (!s && c.modules)
        s = read_file(ctx, folder, "config_sentence_transformers.json", false, read_cross_encoder, &c);
    s = s ? s : read_file(ctx, folder, "tokenizer_config.json", false, read_tokenizer, &c);
    if (s)
        att_text_classifier_config_free(ctx, &c);
    *out = c;
    return s;
}

void att_text_classifier_config_free(att_ctx *ctx, att_text_classifier_config *c)
{
    att_class_names_free(ctx, c->head.labels, c->name);
    *c = (att_text_classifier_config){0};
}
