/* What a folder or a .gguf file is, and opening it whatever it is. */
#include "fixtures/captioner.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/progress.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_gguf.h"
#include "open/subjects.h"

#include "attend_caption.h"
#include "attend_language.h"
#include "attend_recommend.h"
#include "attend_sentence.h"
#include "attend_translate.h"

static att_model_identity identify(const char *path, att_status expected)
{
    att_model_identity id = {.size = sizeof id};
    const att_status s = att_model_identify(ctx, path, &id);
    if (s != expected)
        fail_msg("%s: %d, %s", path, (int)s, att_error(ctx));
    return id;
}

/* ---- what a folder is */

/* Each type that a subject's functions open, alone in config.json */
static void each_type_that_is_opened_is_identified(void **state)
{
    (void)state;
    int subjects = 0, types = 0;
    for (const att_model_subject *const *s = att_subjects; *s; s++, subjects++)
        for (const att_model_kind *const *k = (*s)->kinds; *k; k++)
            for (int64_t i = 0; att_model_type_at((*k)->types, i); i++, types++) {
                char config[100];
                const test_folder f = folder_new();
                snprintf(config, sizeof config, "{\"model_type\": \"%s\"}", att_model_type_at((*k)->types, i));
                folder_write(&f, "config.json", config);
                const att_model_identity id = identify(f.path, ATT_OK);
                assert_int_equal(id.subject, (*s)->subject);
                assert_string_equal(att_subject_name(id.subject), (*s)->name);
                assert_string_equal(id.type, att_model_type_at((*k)->types, i));
                assert_string_equal(id.architecture, "");
                folder_remove(&f);
            }
    assert_int_equal(subjects, 7);
    assert_string_equal(att_subject_name(ATT_SUBJECT_CAPTION), "captioner");
    assert_string_equal(att_subject_name(ATT_SUBJECT_NONE), "model");
    assert_string_equal(att_subject_name((att_subject)77), "model");
    assert_int_equal(types, 29); /* bert and eight relatives; marian, attend-seq2seq; gpt2 and six like Llama; five of
                                    vision; captioner; five of recommenders */
}

static const struct {
    const char *config;
    att_subject subject;
    const char *type, *architecture;
} configs[] = {
    {"{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}", ATT_SUBJECT_SENTENCE, "bert", "BertModel"},
    {"{\"model_type\": \"bert\", \"architectures\": [\"BertLMHeadModel\"]}", ATT_SUBJECT_SENTENCE, "bert",
     "BertLMHeadModel"},
    {"{\"architectures\": [\"GPT2LMHeadModel\"]}", ATT_SUBJECT_LANGUAGE, "", "GPT2LMHeadModel"},
    {"{\"model_type\": \"mixtral\", \"architectures\": [\"MixtralForCausalLM\"]}", ATT_SUBJECT_LANGUAGE, "mixtral",
     "MixtralForCausalLM"},
    {"{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 2}", ATT_SUBJECT_VISION, "timm",
     "vit_tiny_patch16_224"},
    {"{\"model_type\": \"roberta\", \"architectures\": [\"RobertaModel\"]}", ATT_SUBJECT_SENTENCE, "roberta",
     "RobertaModel"},
    {"{\"model_type\": \"electra\", \"architectures\": [\"ElectraModel\"]}", ATT_SUBJECT_NONE, "electra",
     "ElectraModel"},
    {"{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"]}", ATT_SUBJECT_CLASSIFIER,
     "bert", "BertForSequenceClassification"},
    {"{\"model_type\": \"deberta\", \"architectures\": [\"DebertaForSequenceClassification\"]}", ATT_SUBJECT_CLASSIFIER,
     "deberta", "DebertaForSequenceClassification"},
    {"{\"model_type\": 7, \"architectures\": \"BertModel\"}", ATT_SUBJECT_NONE, "", ""},
    {"{\"model_type\": null, \"architectures\": [], \"architecture\": 1}", ATT_SUBJECT_NONE, "", ""},
    {"{}", ATT_SUBJECT_NONE, "", ""}};

static void a_folder_is_what_its_settings_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        const test_folder f = folder_new();
        folder_write(&f, "config.json", configs[i].config);
        att_model_identity id = identify(f.path, ATT_OK);
        assert_int_equal(id.subject, configs[i].subject);
        assert_string_equal(id.type, configs[i].type);
        assert_string_equal(id.architecture, configs[i].architecture);
        folder_write(&f, "modules.json", "[]"); /* whatever else there is */
        id = identify(f.path, ATT_OK);
        assert_int_equal(id.subject, ATT_SUBJECT_SENTENCE);
        assert_string_equal(id.type, configs[i].type);
        folder_remove(&f);
    }
}

/* A file and its folder; config.json in the same folder counts for that, but not for the file. */
static void a_gguf_file_is_what_its_metadata_say(void **state)
{
    (void)state;
    char path[100];
    const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&f, "m.GGUF", &tiny_llamas[0], NULL);
    tiny_delete(&f, "config.json");
    snprintf(path, sizeof path, "%s/m.GGUF", f.path);
    for (int i = 0; i < 2; i++) {
        const att_model_identity id = identify(i ? f.path : path, ATT_OK);
        assert_int_equal(id.subject, ATT_SUBJECT_LANGUAGE);
        assert_string_equal(id.type, "llama");
        assert_string_equal(id.architecture, "LlamaForCausalLM");
    }
    folder_write(&f, "config.json", "{\"model_type\": \"vit\"}");
    assert_int_equal(identify(path, ATT_OK).subject, ATT_SUBJECT_LANGUAGE);
    assert_int_equal(identify(f.path, ATT_OK).subject, ATT_SUBJECT_VISION);
    folder_remove(&f);
}

/* ---- folders that are damaged */

static void what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    char path[100], command[200], config[400];
    snprintf(path, sizeof path, "%s/none", f.path);
    identify(path, ATT_ERR_IO);
    check_message(ctx, "none: No such file or directory");
    assert_int_equal(identify(f.path, ATT_OK).subject, ATT_SUBJECT_NONE); /* empty */
    folder_write(&f, "text.txt", "a b");
    snprintf(path, sizeof path, "%s/text.txt", f.path);
    assert_int_equal(att_model_identify(ctx, path, &(att_model_identity){.size = sizeof(att_model_identity)}), ATT_OK);

    folder_write(&f, "config.json", "{\"model_type\": \"vit\"");
    assert_int_equal(identify(f.path, ATT_ERR_FORMAT).subject, ATT_SUBJECT_NONE);
    check_message(ctx, "config.json: line 1, column 20");
    folder_write(&f, "config.json", "[\"vit\"]");
    identify(f.path, ATT_ERR_FORMAT);
    check_message(ctx, "config.json: is not a JSON object");
    folder_write(&f, "config.json", "{}");
    folder_write(&f, "adapter_config.json", "{\"base_model_name_or_path\": \"org/base-7b\"}");
    identify(f.path, ATT_ERR_UNSUPPORTED);
    check_message(ctx, "is an adapter of org/base-7b, not a model by itself");
    tiny_delete(&f, "adapter_config.json");
    snprintf(config, sizeof config, "{\"model_type\": \"%0200d\", \"architectures\": [\"%0150d\"]}", 0, 0);
    folder_write(&f, "config.json", config);
    const att_model_identity cut = identify(f.path, ATT_OK);
    assert_int_equal(strlen(cut.type), sizeof cut.type - 1);
    assert_int_equal(strlen(cut.architecture), sizeof cut.architecture - 1);
    snprintf(command, sizeof command, "rm %s/config.json && mkfifo %s/config.json", f.path, f.path);
    assert_int_equal(system(command), 0);
    identify(f.path, ATT_ERR_IO); /* and nothing waits for its writer */
    folder_remove(&f);
}

/* The names of files tell the subject, and opening it what is wrong. */
static void damaged_gguf_files_are_of_language_models(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_any_model *m;
    folder_write(&f, "m.gguf", "GGUF");
    assert_int_equal(identify(f.path, ATT_ERR_FORMAT).subject, ATT_SUBJECT_LANGUAGE);
    assert_int_equal(att_any_model_open(ctx, f.path, ATT_SUBJECT_NONE, NULL, &m), ATT_ERR_FORMAT);
    assert_null(m);
    folder_write(&f, "n.gguf", "GGUF");
    assert_int_equal(identify(f.path, ATT_ERR_ARGUMENT).subject, ATT_SUBJECT_LANGUAGE);
    check_message(ctx, "has several .gguf files");
    folder_remove(&f);
}

/* ---- opening */

/* A model is used as its subject's functions have it. */
static void use_sentence(const void *m)
{
    att_sentence_info info = {.size = sizeof info};
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_int_equal(info.dim, TINY_HIDDEN);
}
static void use_translator(const void *m) { assert_true(att_translator_beam(m) > 1); }
static void use_language(const void *m) { assert_non_null(att_text_generator_model(m)); }
static void use_vision(const void *m) { assert_string_equal(att_image_model_label(m, 9), "Ankle boot"); }
static void use_captioner(const void *m) { assert_non_null(att_caption_model_word(m, 0)); }
static void use_recommender(const void *m) { assert_string_equal(att_recommender_item(m, 1), "b"); }

/* Opens a model as bf16, so that matrices are converted; path: the model's. */
static att_status open_converted(void *path, att_progress_fn progress, void *user)
{
    att_any_model *m;
    const att_status s = att_any_model_open(
        ctx, path, ATT_SUBJECT_NONE,
        ATT_OPTIONS(att_model_options, .weights = ATT_WEIGHT_TYPE_BF16, .progress = progress, .user = user), &m);
    assert_true(!s == (m != NULL));
    att_any_model_free(m);
    return s;
}

static void check_opened(const char *path, att_subject subject, void (*use)(const void *m))
{
    att_any_model *m;
    att_model_identity id = {.size = sizeof id}, expected = identify(path, ATT_OK);
    att_model_weights stored = {.size = sizeof stored}, bf16 = {.size = sizeof bf16};
    captioner_need(att_any_model_open(ctx, path, ATT_SUBJECT_NONE, NULL, &m));
    assert_int_equal(att_any_model_describe(m, &id), ATT_OK);
    assert_memory_equal(&id, &expected, sizeof id);
    assert_int_equal(id.subject, subject);
    for (int s = ATT_SUBJECT_NONE; s <= ATT_SUBJECT_RECOMMEND; s++)
        assert_true((att_any_model_as(m, (att_subject)s) != NULL) == (s == (int)subject));
    use(att_any_model_as(m, subject));
    assert_int_equal(att_any_model_weights(m, &stored), ATT_OK);
    att_any_model_free(m);
    captioner_need(att_any_model_open(ctx, path, ATT_SUBJECT_NONE,
                                      ATT_OPTIONS(att_model_options, .weights = ATT_WEIGHT_TYPE_BF16), &m));
    assert_int_equal(att_any_model_weights(m, &bf16), ATT_OK);
    assert_true(bf16.used[ATT_BF16] > 0 && stored.used[ATT_BF16] == 0);
    assert_memory_equal(bf16.stored, stored.stored, sizeof stored.stored);
    att_any_model_free(m);
    assert_progress(ctx, open_converted, (void *)(uintptr_t)path);
}

static void a_model_of_each_subject_is_opened(void **state)
{
    (void)state;
    static const char *const ids[] = {"a", "b"};
    const test_folder bert = tiny_sentence(), items = folder_new(), llama = tiny_llama_folder(&tiny_llamas[0], NULL);
    att_recommender *m;
    captioner_need(att_recommender_new(ctx, "{\"model_type\": \"attend-sasrec\"}", 2, ids, NULL, 1, &m));
    captioner_need(att_recommender_write(m, items.path, 0));
    check_opened(bert.path, ATT_SUBJECT_SENTENCE, use_sentence);
    check_opened("models/tatoeba-de-en", ATT_SUBJECT_TRANSLATE, use_translator);
    folder_write(&llama, "tokenizer.json",
                 "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}");
    check_opened(llama.path, ATT_SUBJECT_LANGUAGE, use_language);
    check_opened("models/fashion-mnist", ATT_SUBJECT_VISION, use_vision);
    check_opened("models/flickr8k-captions", ATT_SUBJECT_CAPTION, use_captioner);
    check_opened(items.path, ATT_SUBJECT_RECOMMEND, use_recommender);
    att_recommender_free(m);
    folder_remove(&bert);
    folder_remove(&items);
    folder_remove(&llama);
}

/* Of a folder that no subject has; and one whose subject finds that something is missing */
static void what_cannot_be_opened_is_an_error(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_any_model *m;
    assert_int_equal(att_any_model_open(ctx, f.path, ATT_SUBJECT_NONE, NULL, &m), ATT_ERR_UNSUPPORTED);
    assert_null(m);
    check_message(ctx, "its files do not tell what kind of model it is");
    folder_write(&f, "config.json", "{\"model_type\": \"vit\"");
    assert_int_equal(att_any_model_open(ctx, f.path, ATT_SUBJECT_NONE, NULL, &m), ATT_ERR_FORMAT);
    check_message(ctx, "config.json: line 1, column 20");
    folder_write(&f, "config.json", "{\"model_type\": \"vit\"}");
    assert_int_equal(att_any_model_open(ctx, f.path, ATT_SUBJECT_NONE, NULL, &m), ATT_ERR_IO);
    check_message(ctx, "model.safetensors");
    assert_int_equal(att_any_model_open(ctx, f.path, ATT_SUBJECT_CAPTION, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"model_type\" is \"vit\", which is not supported; \"attend-captioner\" is");
    assert_int_equal(att_any_model_open(ctx, f.path, (att_subject)77, NULL, &m), ATT_ERR_ARGUMENT);
    check_message(ctx, "subject is 77, not an att_subject");
    folder_remove(&f);
}

/* At each allocation */
static void running_out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    bool failed = true;
    for (long n = 1; failed; n++) {
        fail_alloc a = {.fail_at = n};
        att_ctx *own = NULL;
        att_any_model *m = NULL;
        att_status s = att_open(&own, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
        s = s ? s : att_any_model_open(own, f.path, ATT_SUBJECT_NONE, NULL, &m);
        failed = a.calls >= n;
        assert_int_equal(s, failed ? ATT_ERR_MEMORY : ATT_OK);
        assert_true(failed == !m);
        att_any_model_free(m);
        att_close(own);
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_that_is_opened_is_identified),
        cmocka_unit_test(a_folder_is_what_its_settings_say),
        cmocka_unit_test(a_gguf_file_is_what_its_metadata_say),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(damaged_gguf_files_are_of_language_models),
        cmocka_unit_test(a_model_of_each_subject_is_opened),
        cmocka_unit_test(what_cannot_be_opened_is_an_error),
        cmocka_unit_test(running_out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
