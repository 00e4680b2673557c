#include "sentence/sentence_config.h"
#include "io/settings.h"
#include "stack/encoder.h"

#include <stdio.h>
#include <string.h>

/* ---- Pooling: 1_Pooling/config.json */

static const struct {
    const char *flag, *mode; /* older flags; newer "pooling_mode" */
    int kind;                /* att_pooling, -1: not supported */
} modes[] = {{"pooling_mode_cls_token", "cls", ATT_POOLING_CLS},
             {"pooling_mode_max_tokens", "max", ATT_POOLING_MAX},
             {"pooling_mode_mean_tokens", "mean", ATT_POOLING_MEAN},
             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1},
             {"pooling_mode_weightedmean_tokens", "weightedmean", -1},
             {"pooling_mode_lasttoken", "lasttoken", -1}};
enum { N_MODES = sizeof modes / sizeof modes[0] };

/* The one flag that is set; none: the mean. */
static int mode_by_flags(att_settings *s)
{
    int set = -1;
    for (int i = 0; i < N_MODES; i++) {
        if (!att_settings_bool(s, modes[i].flag, false))
            continue;
        if (set >= 0)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s\" and \"%s\" are both true, which is not supported",
                              modes[set].flag, modes[i].flag);
        set = i;
    }
    return set >= 0 ? set : 2;
}

static int mode_by_name(att_settings *s)
{
    const json_t *value = att_settings_get(s, "pooling_mode");
    const char *name = json_string_value(json_array_size(value) == 1 ? json_array_get(value, 0) : value);
    for (int i = 0; name && i < N_MODES; i++)
        if (!strcmp(modes[i].mode, name))
            return i;
    att_settings_unsupported(s, "pooling_mode", "one of mean, cls and max");
    return 0;
}

static void read_pooling(att_settings *s, att_modules *out)
{
    /* Prompts are not used, so include_prompt has no effect. */
    static const char *const known[] = {"word_embedding_dimension",
                                        "embedding_dimension",
                                        "pooling_mode",
                                        "pooling_mode_cls_token",
                                        "pooling_mode_max_tokens",
                                        "pooling_mode_mean_tokens",
                                        "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens",
                                        "pooling_mode_lasttoken",
                                        "include_prompt",
                                        NULL};
    att_settings_only_known(s, known);
    const bool newer = att_settings_has(s, "embedding_dimension");
    out->dim = att_settings_int(s, newer ? "embedding_dimension" : "word_embedding_dimension", 1, 1 << 20);
    const int mode = att_settings_has(s, "pooling_mode") ? mode_by_name(s) : mode_by_flags(s);
    if (modes[mode].kind < 0)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s\": pooling by \"%s\" is not supported; mean, cls and max are",
                          att_settings_has(s, "pooling_mode") ? "pooling_mode" : modes[mode].flag, modes[mode].mode);
    else
        out->pooling = (att_pooling)modes[mode].kind;
}

/* ---- Normalize: no settings in older folders */

static void read_normalize(att_settings *s, att_modules *out)
{
    static const char *const known[] = {"module_input_name", "module_output_name", NULL};
    if (s->root) {
        att_settings_only_known(s, known);
        att_settings_only_text(s, "module_input_name", "sentence_embedding");
        att_settings_only_text(s, "module_output_name", "sentence_embedding");
    }
    out->normalized = true;
}

/* ---- Transformer: sentence_bert_config.json, tokenizer_config.json */

/* Newer layout: input and output modality. */
static void check_modality(att_settings *s)
{
    if (!att_settings_has(s, "modality_config"))
        return;
    const att_settings_scope file = att_settings_enter(s, "modality_config");
    att_settings_enter(s, "text");
    att_settings_need(s, "method");
    att_settings_only_text(s, "method", "forward");
    att_settings_need(s, "method_output_name");
    att_settings_only_text(s, "method_output_name", "last_hidden_state");
    att_settings_leave(s, file);
}

static void read_transformer(att_settings *s, att_modules *out)
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
    att_settings_only_text(s, "transformer_task", "feature-extraction");
    att_settings_only_text(s, "module_output_name", "token_embeddings");
    att_settings_only_empty(s, "processing_kwargs");
    att_settings_only_empty(s, "query_length");
    att_settings_only_empty(s, "document_length");
    att_settings_only_empty(s, "query_expansion");
    check_modality(s);
    out->lower_case = att_settings_bool(s, "do_lower_case", false);
    if (att_settings_has(s, "max_seq_length"))
        out->max_tokens = att_settings_int(s, "max_seq_length", 3, 1 << 20);
}

/* If sentence_bert_config.json has no limit. A huge value means none. */
static void read_tokenizer_limit(att_settings *s, att_modules *out)
{
    if (s->root && out->max_tokens == 0 && att_settings_has(s, "model_max_length")) {
        const double limit = att_settings_number(s, "model_max_length", 3, 1e300);
        out->max_tokens = limit < 1 << 20 ? (int64_t)limit : 0;
    }
}

/* ---- the folder: config_sentence_transformers.json, modules.json */

/* "similarity_fn_name"; the cosine where it is missing or null */
static att_similarity read_similarity(att_settings *s)
{
    static const char *const names[] = {[ATT_SIMILARITY_COSINE] = "cosine",
                                        [ATT_SIMILARITY_DOT] = "dot",
                                        [ATT_SIMILARITY_EUCLIDEAN] = "euclidean",
                                        [ATT_SIMILARITY_MANHATTAN] = "manhattan"};
    const char *key = "similarity_fn_name";
    return att_settings_has(s, key)
               ? (att_similarity)att_settings_choice(s, key, names, 4, "one of cosine, dot, euclidean and manhattan")
               : ATT_SIMILARITY_COSINE;
}

/* A prompt before each sentence would change all embeddings. */
static void read_prompts(att_settings *s, att_modules *out)
{
    if (!s->root)
        return;
    att_settings_only_text(s, "model_type", "SentenceTransformer");
    att_settings_only_empty(s, "truncate_dim");
    out->similarity = read_similarity(s);
    if (!att_settings_has(s, "default_prompt_name"))
        return;
    const char *name = att_settings_text(s, "default_prompt_name", NULL);
    const char *prompt = json_string_value(json_object_get(att_settings_get(s, "prompts"), name));
    if (prompt && *prompt)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"default_prompt_name\" is \"%.40s\": a prompt before each sentence is not supported", name);
}

/* Reads one file with one of the readers above. */
static att_status read_file(att_ctx *ctx, const char *folder, const char *name, bool required,
                            void (*reader)(att_settings *s, att_modules *out), att_modules *out)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, name, required);
    if (!s.status)
        reader(&s, out);
    att_settings_close(&s);
    return s.status;
}

/* FOLDER or FOLDER/PATH in new memory; NULL: error set */
static char *join(att_ctx *ctx, const char *folder, const char *path)
{
    const size_t bytes = strlen(folder) + strlen(path) + 2;
    char *joined = att_alloc(ctx, bytes, 1);
    if (joined)
        snprintf(joined, bytes, "%s%s%s", folder, *path ? "/" : "", path);
    return joined;
}

/* config.json; another architecture is named before its tokenizer may be found wrong. */
static void read_architecture(att_settings *s, att_modules *out)
{
    (void)out;
    att_model_kind_of(s, att_encoder_kinds, " for embeddings of sentences");
}

static att_status read_transformer_folder(att_ctx *ctx, const char *folder, att_modules *out)
{
    out->transformer = join(ctx, folder, "");
    if (!out->transformer)
        return ATT_ERR_MEMORY;
    att_status s = read_file(ctx, folder, "config.json", true, read_architecture, out);
    s = s ? s : read_file(ctx, folder, "sentence_bert_config.json", false, read_transformer, out);
    return s ? s : read_file(ctx, folder, "tokenizer_config.json", false, read_tokenizer_limit, out);
}

static att_status read_pooling_folder(att_ctx *ctx, const char *folder, att_modules *out)
{
    return read_file(ctx, folder, "config.json", true, read_pooling, out);
}

static att_status read_normalize_folder(att_ctx *ctx, const char *folder, att_modules *out)
{
    return read_file(ctx, folder, "config.json", false, read_normalize, out);
}

/* Supported modules, in the only order that is supported. */
static const struct {
    const char *type; /* last component of the class name */
    att_status (*read)(att_ctx *ctx, const char *folder, att_modules *out);
} chain[ATT_MAX_MODULES] = {
    {"Transformer", read_transformer_folder}, {"Pooling", read_pooling_folder}, {"Normalize", read_normalize_folder}};
enum { N_CHAIN = ATT_MAX_MODULES };

/* Does the path stay inside its folder? */
static bool stays_inside(const char *path)
{
    size_t part = 0;
    for (const char *p = path; *p; p += part + (p[part] == '/')) {
        part = strcspn(p, "/");
        if ((part == 0 && p == path) || (part == 2 && memcmp(p, "..", 2) == 0))
            return false;
    }
    return true;
}

/* Module i of modules.json: {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling", ...} */
static void read_module(att_settings *s, size_t i, const char *folder, att_modules *out)
{
    att_settings_enter_item(s, "", json_array_get(s->root, i));
    const char *type = att_settings_text(s, "type", NULL), *dot = strrchr(type, '.');
    const char *path = att_settings_text(s, "path", "");
    att_settings_only_empty(s, "kwargs");
    if (s->status)
        return;
    if (i >= N_CHAIN || !dot || strncmp(type, "sentence_transformers.", 22) != 0 ||
        strcmp(dot + 1, chain[i].type) != 0) {
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "module %d is \"%.100s\": only Transformer, Pooling and then perhaps Normalize are supported",
                          (int)i, type);
        return;
    }
    if (!stays_inside(path)) {
        att_settings_fail(s, ATT_ERR_FORMAT, "\"path\" of module %d is \"%.100s\", which is not in the model's folder",
                          (int)i, path);
        return;
    }
    out->path[out->n++] = join(s->ctx, path, "");
    char *joined = out->path[i] ? join(s->ctx, folder, path) : NULL;
    s->status = joined ? chain[i].read(s->ctx, joined, out) : ATT_ERR_MEMORY;
    att_free(s->ctx, joined);
}

static void read_plain(att_settings *s, att_modules *out)
{
    read_architecture(s, out);
    out->pooling = ATT_POOLING_MEAN;
    out->plain = true;
}

/* As sentence-transformers does: a mean of hidden states, and no settings of its own. */
static att_status read_plain_folder(att_ctx *ctx, const char *folder, att_modules *m)
{
    att_status s = read_file(ctx, folder, "config.json", true, read_plain, m);
    s = s ? s : read_file(ctx, folder, "tokenizer_config.json", false, read_tokenizer_limit, m);
    m->transformer = join(ctx, folder, "");
    m->path[m->n++] = join(ctx, "", "");
    return s ? s : m->transformer && m->path[0] ? ATT_OK : ATT_ERR_MEMORY;
}

/* Has the folder a config.json, but no modules.json? */
static att_status find_plain(att_ctx *ctx, const char *folder, bool *plain)
{
    char modules[ATT_MAX_PATH], config[ATT_MAX_PATH];
    att_status s = att_join_path(ctx, folder, "modules.json", modules);
    s = s ? s : att_join_path(ctx, folder, "config.json", config);
    *plain = !s && !att_is_file(modules) && att_is_file(config);
    return s;
}

/* modules.json, and the files that it names */
static att_status read_modules(att_ctx *ctx, const char *folder, att_modules *m)
{
    att_settings s;
    att_settings_read_list(&s, ctx, folder, "modules.json");
    if (!s.status && json_array_size(s.root) < 2)
        att_settings_fail(&s, ATT_ERR_FORMAT, "is not a list of Transformer, Pooling and perhaps Normalize");
    for (size_t i = 0; !s.status && i < json_array_size(s.root); i++)
        read_module(&s, i, folder, m);
    att_settings_close(&s);
    return s.status ? s.status : read_file(ctx, folder, "config_sentence_transformers.json", false, read_prompts, m);
}

att_status att_modules_read(att_ctx *ctx, const char *folder, att_modules *out)
{
    att_modules m = {.folder = join(ctx, folder, "")};
    bool plain;
    if (!m.folder)
        return ATT_ERR_MEMORY;
    att_status s = find_plain(ctx, folder, &plain);
    s = s ? s : (plain ? read_plain_folder : read_modules)(ctx, folder, &m);
    if (s)
        att_modules_free(ctx, &m);
    *out = m;
    return s;
}

void att_modules_free(att_ctx *ctx, att_modules *m)
{
    att_free(ctx, m->folder);
    att_free(ctx, m->transformer);
    for (int i = 0; i < m->n; i++)
        att_free(ctx, m->path[i]);
    *m = (att_modules){0};
}
