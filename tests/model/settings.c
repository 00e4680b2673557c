/* docs/SETTINGS.md says of each key of a published folder what attend does with it. Each cell of its tables is tried: a
 * folder is opened in which the key has another value, or one of a type that it cannot have. */
#include "attend_sentence.h"
#include "attend_text_classifier.h"
#include "attend_vision.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "decoder/beam_config.h"
#include "language/text_generator.h"

#include <jansson.h>

#define TABLES "docs/SETTINGS.md"

enum { MAX_CLASSES = 8, MESSAGE = 1024 };

/* ---- how a folder is opened; nothing is left open */

static att_status open_bert(const char *folder)
{
    att_encoder *m;
    const att_status s = att_encoder_open(ctx, folder, NULL, &m);
    att_encoder_free(m);
    return s;
}

static att_status open_marian(const char *folder)
{
    const att_encoder_decoder_info info = {.target_vocabulary = 40, .max_positions = 16, .pad = 3};
    att_generation g;
    att_transformer *m = NULL;
    att_status s = att_generation_read(ctx, folder, &info, &g);
    s = s ? s : att_transformer_open(ctx, folder, NULL, &m);
    att_transformer_free(m);
    return s;
}

static att_status open_language(const char *folder)
{
    att_generation_config g;
    att_language_model *m = NULL;
    att_status s = att_generation_config_read(ctx, folder, 40, &g);
    s = s ? s : att_language_model_open(ctx, folder, NULL, &m);
    att_language_model_free(m);
    return s;
}

static att_status open_processor(const char *folder)
{
    att_image_processor *p;
    const att_status s = att_image_processor_open(ctx, folder, &p);
    att_image_processor_free(p);
    return s;
}

static att_status open_vit(const char *folder)
{
    att_vit *m;
    const att_status s = att_vit_open(ctx, folder, NULL, &m);
    att_vit_free(m);
    return s;
}

static att_status open_timm(const char *folder)
{
    const att_status s = open_processor(folder);
    return s ? s : open_vit(folder);
}

static att_status open_sentence(const char *folder)
{
    att_sentence *m;
    const att_status s = att_sentence_open(ctx, folder, NULL, &m);
    att_sentence_free(m);
    return s;
}

static att_status open_classifier(const char *folder)
{
    att_text_classifier *m;
    const att_status s = att_text_classifier_open(ctx, folder, NULL, &m);
    att_text_classifier_free(m);
    return s;
}

static att_status open_tokenizer(const char *folder)
{
    att_tokenizer *t;
    const att_status s = att_tokenizer_open(ctx, folder, &t);
    att_tokenizer_free(t);
    return s;
}

static att_status open_generation(const char *folder)
{
    att_generation_config g;
    return att_generation_config_read(ctx, folder, 40, &g);
}

static att_status open_beams(const char *folder)
{
    const att_encoder_decoder_info info = {.target_vocabulary = 40, .max_positions = 16, .pad = 3};
    att_generation g;
    return att_generation_read(ctx, folder, &info, &g);
}

/* ---- folders as they should be, but for weights: how far opening comes shows what it reads */

#define BERT_OF(type) "{" BERT_REST(type)
#define BERT_REST(type)                                                                                                \
    "\"model_type\": \"" type "\", \"vocab_size\": 40, \"hidden_size\": 12, \"num_hidden_layers\": 2, "                \
    "\"num_attention_heads\": 3, \"intermediate_size\": 20, \"hidden_act\": \"gelu\", "                                \
    "\"max_position_embeddings\": 16, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-5}"
#define BERT BERT_OF("bert")
#define DISTILBERT                                                                                                     \
    "{\"model_type\": \"distilbert\", \"vocab_size\": 40, \"dim\": 12, \"n_layers\": 2, \"n_heads\": 3, "              \
    "\"hidden_dim\": 20, \"activation\": \"gelu\", \"max_position_embeddings\": 16}"
#define SIZES                                                                                                          \
    "\"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                  \
    "\"intermediate_size\": 24, \"max_position_embeddings\": 64"
#define MODERNBERT "{\"model_type\": \"modernbert\", " SIZES "}"
#define NOMIC_BERT "{\"model_type\": \"nomic_bert\", " SIZES "}"
#define GEMMA3_TEXT "{\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": true, " SIZES "}"
#define OWN_NOMIC_BERT                                                                                                 \
    "{\"model_type\": \"nomic_bert\", \"vocab_size\": 40, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 4, "             \
    "\"n_inner\": "                                                                                                    \
    "24, \"n_positions\": 64, \"activation_function\": \"swiglu\", \"rotary_emb_fraction\": 1.0, \"qkv_proj_bias\": "  \
    "false, \"mlp_fc1_bias\": false, \"mlp_fc2_bias\": false}"
#define MARIAN                                                                                                         \
    "{\"model_type\": \"marian\", \"vocab_size\": 40, \"d_model\": 8, \"encoder_layers\": 1, "                         \
    "\"encoder_attention_heads\": 2, \"encoder_ffn_dim\": 8, \"decoder_layers\": 1, \"decoder_attention_heads\": 2, "  \
    "\"decoder_ffn_dim\": 8, \"max_position_embeddings\": 16, \"pad_token_id\": 3, \"eos_token_id\": 0, "              \
    "\"decoder_start_token_id\": 3}"
#define LLAMA(type)                                                                                                    \
    "{\"model_type\": \"" type "\", \"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 2, "               \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 24, "                              \
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5}"
#define ROPE                                                                                                           \
    "{\"model_type\": \"llama\", \"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, " \
    "\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 100, \"factor\": 8, \"low_freq_factor\": 1, "    \
    "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 16}}"
#define GPT2                                                                                                           \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 40, \"n_embd\": 8, \"n_layer\": 2, \"n_head\": 2, \"n_positions\": "   \
    "16}"
#define VIT(type) "{\"model_type\": \"" type "\"}"
#define TIMM                                                                                                           \
    "{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 5, \"model_args\": {}, \"pretrained_cfg\": "        \
    "{\"input_size\": [3, 224, 224]}}"
#define MODULES                                                                                                        \
    "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"                                       \
    " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"                                  \
    " {\"path\": \"2_Normalize\", \"type\": \"sentence_transformers.models.Normalize\"}]"
#define MODULES_WITH(module)                                                                                           \
    "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"                                       \
    " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"                                  \
    " {\"path\": \"2\", \"type\": \"sentence_transformers.models." module "\"}]"
#define SENTENCE_WITH(module)                                                                                          \
    {"config.json", BERT}, {"modules.json", MODULES_WITH(module)},                                                     \
    {                                                                                                                  \
        "1_Pooling/config.json", "{\"embedding_dimension\": 12}"                                                       \
    }
#define SENTENCE                                                                                                       \
    {"config.json", BERT}, {"modules.json", MODULES}, { "1_Pooling/config.json", "{\"embedding_dimension\": 12}" }
#define ONE_MODULE "[{\"path\": \"\", \"type\": \"sentence_transformers.base.modules.transformer.Transformer\"}]"
#define CROSS_ENCODER                                                                                                  \
    {"config.json", BERT}, {"config_sentence_transformers.json", "{\"model_type\": \"CrossEncoder\"}"},                \
    {                                                                                                                  \
        "modules.json", ONE_MODULE                                                                                     \
    }
#define WORDS "\"vocab\": {\"[UNK]\": 0, \"[PAD]\": 1, \"a\": 2}"
#define BPE(normalizer, pre_tokenizer)                                                                                 \
    {                                                                                                                  \
        "tokenizer.json", "{\"normalizer\": " normalizer ", \"pre_tokenizer\": " pre_tokenizer                         \
                          ", \"decoder\": null, \"post_processor\": null, \"model\": {\"type\": \"BPE\", "             \
                          "\"merges\": [], " WORDS "}}"                                                                \
    }
#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}"
#define WORDPIECE                                                                                                      \
    "{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "           \
    "\"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "             \
    "\"post_processor\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "                        \
    "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, " WORDS "}}"

typedef struct subject {
    const char *class;
    att_status (*open)(const char *folder);
    const char *within;     /* the object that has the key, as "model_args"; "": that of the file */
    const char *file[6][2]; /* names and texts; the key is in the first */
} subject;

static const subject subjects[] = {
    {"BertConfig", open_bert, "", {{"config.json", BERT}}},
    {"RobertaConfig", open_bert, "", {{"config.json", BERT_OF("roberta")}}},
    {"XLMRobertaConfig", open_bert, "", {{"config.json", BERT_OF("xlm-roberta")}}},
    {"CamembertConfig", open_bert, "", {{"config.json", BERT_OF("camembert")}}},
    {"MPNetConfig", open_bert, "", {{"config.json", BERT_OF("mpnet")}}},
    {"DistilBertConfig", open_bert, "", {{"config.json", DISTILBERT}}},
    {"ModernBertConfig", open_bert, "", {{"config.json", MODERNBERT}}},
    {"NomicBertConfig", open_bert, "", {{"config.json", NOMIC_BERT}}},
    {"Gemma3TextConfig", open_bert, "", {{"config.json", GEMMA3_TEXT}}},
    {"nomic-bert", open_bert, "", {{"config.json", OWN_NOMIC_BERT}}},
    {"BertForSequenceClassification", open_classifier, "", {{"config.json", BERT}}},
    {"RobertaForSequenceClassification", open_classifier, "", {{"config.json", BERT_OF("roberta")}}},
    {"DistilBertForSequenceClassification", open_classifier, "", {{"config.json", DISTILBERT}}},
    {"MPNetForSequenceClassification", open_classifier, "", {{"config.json", BERT_OF("mpnet")}}},
    {"ModernBertForSequenceClassification", open_classifier, "", {{"config.json", MODERNBERT}}},
    {"NomicBertForSequenceClassification", open_classifier, "", {{"config.json", NOMIC_BERT}}},
    {"sentence_transformers",
     open_classifier,
     "sentence_transformers",
     {{"config.json", "{\"sentence_transformers\": {}, " BERT_REST("bert")}}},
    {"CrossEncoder",
     open_classifier,
     "",
     {{"config_sentence_transformers.json", "{\"model_type\": \"CrossEncoder\"}"}, CROSS_ENCODER}},
    {"modules.json of CrossEncoder", open_classifier, "", {{"modules.json", ONE_MODULE}, CROSS_ENCODER}},
    {"Transformer of CrossEncoder", open_classifier, "", {{"sentence_bert_config.json", "{}"}, CROSS_ENCODER}},
    {"MarianConfig", open_marian, "", {{"config.json", MARIAN}}},
    {"LlamaConfig", open_language, "", {{"config.json", LLAMA("llama")}}},
    {"MistralConfig", open_language, "", {{"config.json", LLAMA("mistral")}}},
    {"Olmo2Config", open_language, "", {{"config.json", LLAMA("olmo2")}}},
    {"Phi3Config", open_language, "", {{"config.json", LLAMA("phi3")}}},
    {"Qwen2Config", open_language, "", {{"config.json", LLAMA("qwen2")}}},
    {"Qwen3Config", open_language, "", {{"config.json", LLAMA("qwen3")}}},
    {"StaticModel", open_sentence, "", {{"config.json", "{\"model_type\": \"model2vec\", \"apply_pca\": 256}"}}},
    {"RopeParameters", open_language, "rope_parameters", {{"config.json", ROPE}}},
    {"GPT2Config", open_language, "", {{"config.json", GPT2}}},
    {"ViTConfig", open_vit, "", {{"config.json", VIT("vit")}}},
    {"DeiTConfig", open_vit, "", {{"config.json", VIT("deit")}}},
    {"Dinov2Config", open_vit, "", {{"config.json", VIT("dinov2")}}},
    {"Dinov2WithRegistersConfig", open_vit, "", {{"config.json", VIT("dinov2_with_registers")}}},
    {"ViTImageProcessor",
     open_processor,
     "",
     {{"preprocessor_config.json", "{\"image_processor_type\": \"ViTImageProcessor\"}"}}},
    {"DeiTImageProcessor",
     open_processor,
     "",
     {{"preprocessor_config.json", "{\"image_processor_type\": \"DeiTImageProcessor\"}"}}},
    {"BitImageProcessor",
     open_processor,
     "",
     {{"preprocessor_config.json", "{\"image_processor_type\": \"BitImageProcessor\"}"}}},
    {"language models", open_generation, "", {{"generation_config.json", "{}"}}},
    {"MarianMTModel", open_beams, "", {{"generation_config.json", "{}"}}},
    {"SentenceTransformer", open_sentence, "", {{"config_sentence_transformers.json", "{}"}, SENTENCE}},
    {"modules.json", open_sentence, "", {{"modules.json", MODULES}, SENTENCE}},
    {"Transformer", open_sentence, "", {{"sentence_bert_config.json", "{}"}, SENTENCE}},
    {"Pooling", open_sentence, "", {{"1_Pooling/config.json", "{\"word_embedding_dimension\": 12}"}, SENTENCE}},
    {"Normalize", open_sentence, "", {{"2_Normalize/config.json", "{}"}, SENTENCE}},
    {"Dense",
     open_sentence,
     "",
     {{"2/config.json", "{\"in_features\": 12, \"out_features\": 3}"}, SENTENCE_WITH("Dense")}},
    {"LayerNorm", open_sentence, "", {{"2/config.json", "{\"dimension\": 12}"}, SENTENCE_WITH("LayerNorm")}},
    {"Dropout", open_sentence, "", {{"2/config.json", "{\"dropout\": 0.5}"}, SENTENCE_WITH("Dropout")}},
    {"BertTokenizer",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{\"tokenizer_class\": \"BertTokenizer\"}"}, {"tokenizer.json", WORDPIECE}}},
    {"GPT2Tokenizer",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\"}"}, BPE("null", BYTES)}},
    {"LlamaTokenizer",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\"}"},
      BPE("{\"type\": \"Prepend\", \"prepend\": \"_\"}", "null")}},
    {"Qwen2Tokenizer",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}"}, BPE("null", BYTES)}},
    {"PreTrainedTokenizerFast",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}"}, BPE("null", BYTES)}},
    {"MarianTokenizer",
     open_tokenizer,
     "",
     {{"tokenizer_config.json", "{}"},
      {"vocab.json", "{\"</s>\": 0, \"<unk>\": 1, \"<pad>\": 2}"},
      {"source.spm", "none"}}},
    {"timm", open_timm, "", {{"config.json", TIMM}}},
    {"VisionTransformer", open_timm, "model_args", {{"config.json", TIMM}}},
    {"PretrainedCfg", open_timm, "pretrained_cfg", {{"config.json", TIMM}}},
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

/* The classes of config.json: what the tables say of PretrainedConfig holds for them. */
static const char *const of_base[] = {"BertConfig",   "ModernBertConfig", "NomicBertConfig", "Gemma3TextConfig",
                                      "MarianConfig", "LlamaConfig",      "Qwen3Config",     "GPT2Config",
                                      "ViTConfig",    "Dinov2Config"};

static const subject *find_subject(const char *class)
{
    for (int i = 0; i < SUBJECTS; i++)
        if (!strcmp(subjects[i].class, class))
            return &subjects[i];
    fail_msg("%s: no folder is known for the class %s", TABLES, class);
    return NULL;
}

/* ---- one key */

/* The folder of the subject that was tried last, and what opening it as it is says */
static struct {
    const subject *of;
    test_folder folder;
    char message[MESSAGE];
} last;

/* What opening that folder says, without its path. */
static att_status open_last(char message[MESSAGE])
{
    const att_status status = last.of->open(last.folder.path);
    const char *said = status ? att_error(ctx) : "", *path = strstr(said, last.folder.path);
    snprintf(message, MESSAGE, "%s", path ? path + strlen(last.folder.path) : said);
    return status;
}

static void leave_last(void)
{
    if (last.of)
        folder_remove(&last.folder);
    last.of = NULL;
}

static void enter(const subject *s)
{
    if (last.of == s)
        return;
    leave_last();
    last.of = s;
    last.folder = folder_new();
    for (int i = 5; i >= 0; i--) /* the first is also among the others */
        if (s->file[i][0])
            folder_write(&last.folder, s->file[i][0], s->file[i][1]);
    open_last(last.message);
}

/* What opening the folder of a subject says in which the key has a value. */
static att_status open_with(const subject *s, const char *key, json_t *value, char message[MESSAGE])
{
    json_t *root = json_loads(s->file[0][1], 0, NULL);
    assert_non_null(root);
    json_t *object = json_is_array(root) ? json_array_get(root, 0) : root;
    if (*s->within)
        object = json_object_get(object, s->within);
    assert_int_equal(json_object_set(object, key, value), 0);
    char *text = json_dumps(root, 0);
    enter(s);
    folder_write(&last.folder, s->file[0][0], text);
    free(text);
    json_decref(root);
    return open_last(message);
}

/* Does a message name the key, perhaps within others ("model_args.depth")? */
static bool names(const char *message, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = message; (at = strstr(at, key)); at++)
        if (at > message && (at[-1] == '"' || at[-1] == '.') && at[n] == '"')
            return true;
    return false;
}

static int disagreements;

static void expect_same(const subject *s, const char *key, json_t *value)
{
    char is[MESSAGE], *shown = json_dumps(value, JSON_ENCODE_ANY);
    open_with(s, key, value, is);
    if (strcmp(last.message, is) != 0)
        print_error("%s says \"%s\" of %s has no effect, but with %s: \"%s\", without: \"%s\"\n", TABLES, key, s->class,
                    shown, is, last.message);
    disagreements += strcmp(last.message, is) != 0;
    free(shown);
    json_decref(value);
}

static void expect_named(const subject *s, const char *key, json_t *value, const char *cell)
{
    char message[MESSAGE], *shown = json_dumps(value, JSON_ENCODE_ANY);
    const bool named = open_with(s, key, value, message) && names(message, key);
    if (!named)
        print_error("%s says of \"%s\" of %s: %s, but with %s: \"%s\"\n", TABLES, key, s->class, cell, shown, message);
    disagreements += !named;
    free(shown);
    json_decref(value);
}

static void try_no_effect(const subject *s, const char *key)
{
    expect_same(s, key, json_null());
    expect_same(s, key, json_true());
    expect_same(s, key, json_integer(7));
    expect_same(s, key, json_string("no such value"));
    expect_same(s, key, json_pack("[[s]]", "no such value"));
    expect_same(s, key, json_pack("{s:i}", "no such key", 1));
}

/* value: "false", "3", "null" or a text */
static void try_only(const subject *s, const char *key, const char *value, const char *cell)
{
    json_t *is = json_loads(value, JSON_DECODE_ANY, NULL);
    is = is ? is : json_string(value);
    json_t *other = json_is_boolean(is)  ? json_boolean(json_is_false(is))
                    : json_is_number(is) ? json_real(json_number_value(is) + 1)
                    : json_is_null(is)   ? json_pack("[s]", "no such value")
                                         : json_string("no such value");
    expect_same(s, key, is);
    expect_same(s, key, json_null());
    expect_named(s, key, other, cell);
}

static void try_cell(const char *class, const char *key, const char *cell)
{
    const subject *s = find_subject(class);
    if (!strcmp(cell, "no effect"))
        try_no_effect(s, key);
    else if (!strcmp(cell, "honored"))
        expect_named(s, key, json_pack("[[s]]", "no such value"), cell);
    else if (!strncmp(cell, "only ", 5))
        try_only(s, key, cell + 5, cell);
    else if (*cell)
        fail_msg("%s: \"%s\" of %s is \"%s\"", TABLES, key, class, cell);
}

/* ---- the tables */

typedef struct table {
    char class[MAX_CLASSES][40];
    int classes;
} table;

/* Cell i of a row, "| a | b |", without spaces around it; false: it has no more. */
static bool read_cell(const char *row, int i, char out[40])
{
    for (; *row == '|' && i > 0; i--)
        row += 1 + strcspn(row + 1, "|");
    if (*row != '|' || !strchr(row + 1, '|'))
        return false;
    const size_t space = strspn(row + 1, " "), n = strcspn(row + 1, "|");
    size_t end = n;
    while (end > space && row[end] == ' ')
        end--;
    snprintf(out, 40, "%.*s", (int)(end > space ? end - space : 0), row + 1 + space);
    return true;
}

/* Calls a function for each cell; returns their number. A row begins with "| `key`", that of the classes with "| key".
 */
static int each_cell(void f(const char *class, const char *key, const char *cell))
{
    char row[1000];
    table t = {.classes = 0};
    int n = 0;
    FILE *file = fopen(TABLES, "r");
    assert_non_null(file);
    while (fgets(row, sizeof row, file)) {
        char key[80], cell[40];
        if (!strncmp(row, "| key |", 7))
            for (t.classes = 0; read_cell(row, t.classes + 1, cell) && *cell; t.classes++)
                snprintf(t.class[t.classes], 40, "%s", cell);
        if (sscanf(row, "| `%79[^`]`", key) != 1)
            continue;
        for (int i = 0; i < t.classes; i++, n++) {
            if (!read_cell(row, i + 1, cell))
                fail_msg("%s: a row has too few cells: %s", TABLES, row);
            f(t.class[i], key, cell);
        }
    }
    fclose(file);
    return n;
}

/* Is there a cell of this class and key? */
static struct {
    const char *class, *key;
    bool found;
} wanted;

static void compare(const char *class, const char *key, const char *cell)
{
    (void)cell;
    wanted.found |= !strcmp(class, wanted.class) && !strcmp(key, wanted.key);
}

/* A cell of the base class is one of each class that does not have its own. */
static void try_any(const char *class, const char *key, const char *cell)
{
    if (strcmp(class, "PretrainedConfig") != 0) {
        try_cell(class, key, cell);
        return;
    }
    for (size_t i = 0; i < sizeof of_base / sizeof of_base[0]; i++) {
        wanted.class = of_base[i];
        wanted.key = key;
        wanted.found = false;
        each_cell(compare);
        if (!wanted.found)
            try_cell(of_base[i], key, cell);
    }
}

static void each_key_is_treated_as_the_table_says(void **state)
{
    (void)state;
    assert_true(each_cell(try_any) > 900);
    leave_last();
    assert_int_equal(disagreements, 0);
}

/* A class that the tables forgot would be tried by nothing. */
static void each_class_has_a_table(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        char text[60];
        bool found = false;
        char row[1000];
        FILE *file = fopen(TABLES, "r");
        assert_non_null(file);
        snprintf(text, sizeof text, "| %s |", subjects[i].class);
        while (fgets(row, sizeof row, file))
            found |= !strncmp(row, "| key |", 7) && strstr(row, text);
        fclose(file);
        if (!found)
            fail_msg("%s has no table of %s", TABLES, subjects[i].class);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_treated_as_the_table_says),
        cmocka_unit_test(each_class_has_a_table),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
