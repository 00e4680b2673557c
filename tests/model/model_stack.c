/* Models opened, used and converted on a thread with a stack that is not larger than attend_model.h says. */
// labels: threads native
#include "attend_sentence.h"
#include "attend_vision.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_gguf.h"
#include "fixtures/translator.h"

#include <pthread.h>

enum { STACK = 96 << 10 };

static bool as_compiled_for_use(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
    return false; /* their frames are larger */
#elif defined(__has_feature)
    return !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
    return true;
#endif
}

/* What a thread does, in the folder `of`. */
typedef struct task {
    att_status (*run)(const char *of);
    char of[128];
    att_status status;
} task;

static void *run_task(void *arg)
{
    task *t = arg;
    t->status = t->run(t->of);
    if (t->status)
        print_error("%s\n", att_error(NULL));
    return NULL;
}

static void on_small_stack(att_status (*run)(const char *of), const test_folder *f, const char *name)
{
    task t = {.run = run};
    pthread_t thread;
    pthread_attr_t attributes;
    if (!as_compiled_for_use())
        skip();
    snprintf(t.of, sizeof t.of, "%s/%s", f->path, name);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_task, &t), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_int_equal(t.status, ATT_OK);
}

static const char *const texts[] = {"a b c d e f g", "b"};

static att_status embed(const char *of)
{
    att_sentence *m;
    float *vectors;
    att_status s = att_sentence_open(ctx, of, NULL, &m);
    if (s)
        return s;
    vectors = calloc(2 * 4096, sizeof *vectors);
    s = att_sentence_embed(m, 2, texts, NULL, NULL, vectors);
    free(vectors);
    att_sentence_free(m);
    return s;
}

static void sentences_are_embedded(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    on_small_stack(embed, &f, "");
    folder_remove(&f);
}

static att_status translate_two(const char *of)
{
    att_translator *m;
    att_translation out[2] = {0};
    att_status s = att_translator_open(ctx, of, NULL, &m);
    if (s)
        return s;
    s = att_translate(m, 2, texts, NULL, ATT_OPTIONS(att_translate_options, .beam = 4), out);
    free_all(ctx, out, 2);
    att_translator_free(m);
    return s;
}

static void texts_are_translated(void **state)
{
    (void)state;
    on_small_stack(translate_two, &folder, "");
}

static att_status convert_both_ways(const char *of)
{
    char model[160], made[160], file[160];
    snprintf(model, sizeof model, "%s/m.gguf", of);
    snprintf(made, sizeof made, "%s/new/one", of);
    snprintf(file, sizeof file, "%s/new.gguf", of);
    const att_gguf_options options = {.size = sizeof options, .dtype = ATT_F32};
    att_status s = att_gguf_convert(ctx, model, made, &options);
    s = s ? s : att_gguf_write(ctx, made, file, &options);
    att_text_generator *g = NULL;
    s = s ? s : att_text_generator_open(ctx, file, NULL, &g);
    att_text_generator_free(g);
    return s;
}

static void language_models_are_converted(void **state)
{
    (void)state;
    const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&f, "m.gguf", &tiny_llamas[0], NULL);
    on_small_stack(convert_both_ways, &f, "");
    folder_remove(&f);
}

static att_status open_images(const char *of)
{
    att_image_model *m;
    const att_status s = att_image_model_open(ctx, of, NULL, &m);
    if (!s)
        att_image_model_free(m);
    return s;
}

static void image_models_are_opened(void **state)
{
    (void)state;
    const test_folder f = {"models"};
    on_small_stack(open_images, &f, "fashion-mnist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_embedded),
        cmocka_unit_test(texts_are_translated),
        cmocka_unit_test(language_models_are_converted),
        cmocka_unit_test(image_models_are_opened),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
