/* Writes a trained text classifier as a folder of `transformers`, which CrossEncoder opens, too. */
#include "classifier/classifier.h"
#include "io/atomic_write.h"

#include <stdio.h>
#include <string.h>

/* ---- config.json */

/* "id2label" and "label2id" */
static int set_names(json_t *root, const att_text_classifier_config *c)
{
    json_t *names = json_object(), *numbers = json_object();
    int failed = !names || !numbers;
    for (int64_t i = 0; !failed && i < c->head.labels; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        failed = json_object_set_new(names, number, json_string(c->name[i])) ||
                 json_object_set_new(numbers, c->name[i], json_integer(i));
    }
    failed = failed || json_object_set(root, "id2label", names) || json_object_set(root, "label2id", numbers);
    json_decref(names);
    json_decref(numbers);
    return failed;
}

static const char *class_of(att_text_activation a)
{
    return a == ATT_TEXT_ACTIVATION_SIGMOID ? "torch.nn.modules.activation.Sigmoid"
                                            : "torch.nn.modules.linear.Identity";
}

static int set_activation(json_t *root, const att_text_classifier_config *c)
{
    static const char key[] = "sentence_transformers";
    json_t *object = json_object_get(root, key);
    if (!json_is_object(object) && json_object_set_new(root, key, json_object()))
        return -1;
    json_object_del(root, "sbert_ce_default_activation_function");
    return json_object_set_new(json_object_get(root, key), "activation_fn", json_string(class_of(c->activation)));
}

/* Writes config.json as the original folder has it, but with the class, labels and activation of the model. */
static att_status write_config(const att_text_classifier *m, const char *folder, att_dtype dtype)
{
    const att_text_classifier_config *c = &m->config;
    json_t *root;
    const att_status s = att_settings_read_as_is(m->model.ctx, m->folder, "config.json", true, &root);
    if (s)
        return s;
    bool changed = false;
    json_object_del(root, "num_labels");
    if (c->relabeled)
        json_object_del(root, "problem_type");
    if (!att_model_set_dtype(root, dtype, &changed) ||
        json_object_set_new(root, "architectures", json_pack("[s]", att_text_head_class(c->head.kind))) ||
        set_names(root, c) || set_activation(root, c)) {
        json_decref(root);
        root = NULL;
    }
    return att_settings_write(m->model.ctx, folder, "config.json", root);
}

/* config_sentence_transformers.json, which counts before config.json where there is modules.json */
static att_status write_cross_encoder(const att_text_classifier *m, const char *folder)
{
    static const char name[] = "config_sentence_transformers.json";
    json_t *root;
    const att_status s = att_settings_read_as_is(m->model.ctx, m->folder, name, true, &root);
    if (s)
        return s;
    if (json_object_set_new(root, "activation_fn", json_string(class_of(m->config.activation)))) {
        json_decref(root);
        root = NULL;
    }
    return att_settings_write(m->model.ctx, folder, name, root);
}

/* ---- model.safetensors */

/* Names a parameter of the head, or of the encoder, whose names have its prefix in the class with a head. */
static void name_in_file(const void *user, const char *ours, att_file_tensor *out)
{
    const att_text_classifier *m = user;
    char inside[ATT_CHECKPOINT_NAME];
    const bool of_head = att_checkpoint_translate(att_text_head_names(m->config.head.kind), "", ours, out->name);
    if (of_head && strncmp(out->name, "pooler.", 7) != 0) /* which is a part of the encoder there */
        return;
    if (!of_head)
        att_encoder_in_file(m->encoder, ours, out);
    snprintf(inside, sizeof inside, "%s", out->name);
    snprintf(out->name, sizeof out->name, "%s%.100s", m->encoder->model.kind->prefix, inside);
}

/* ---- all */

att_status att_text_classifier_write(const att_text_classifier *m, const char *folder, att_dtype dtype)
{
    static const char *const of_tokenizer[] = {
        "tokenizer.json",          "tokenizer_config.json",   "vocab.txt",         "vocab.json", "merges.txt",
        "sentencepiece.bpe.model", "special_tokens_map.json", "added_tokens.json", NULL};
    static const char *const of_cross_encoder[] = {"modules.json", "sentence_bert_config.json", NULL};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    if (!m->model.trainable)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "%s: the model comes from att_text_classifier_open, and is not trainable", __func__);
    att_status s = att_make_folder(ctx, folder);
    s = s ? s : att_copy_files(ctx, m->folder, folder, of_tokenizer, 0);
    if (!s && m->config.modules)
        s = att_copy_files(ctx, m->folder, folder, of_cross_encoder, 1);
    if (!s && m->config.modules)
        s = write_cross_encoder(m, folder);
    s = s ? s : write_config(m, folder, dtype);
    return s ? s
             : att_model_write(&m->encoder->model, folder, dtype == ATT_F32 ? 0 : dtype, name_in_file, m, 0, NULL,
                               NULL);
}
