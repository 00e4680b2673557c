/* Models whose copies of weights are made when they are opened, and what memory models take. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/model_cases.h"

#include <unistd.h>

static att_model_weights weights_of(const att_any_model *m)
{
    att_model_weights w = {.size = sizeof w};
    captioner_need(att_any_model_weights(m, &w));
    return w;
}

static int64_t sum_of(const int64_t bytes[ATT_MAX_DTYPES])
{
    int64_t sum = 0;
    for (int i = 0; i < ATT_MAX_DTYPES; i++)
        sum += bytes[i];
    return sum;
}

/* ---- prepared */

/* The first call makes all copies, or none, and computes the same. */
static void a_prepared_model_has_the_copies_of_a_used_one(void **state)
{
    (void)state;
    static case_result first, second;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        int64_t packed[2];
        for (int prepare = 0; prepare < 2; prepare++) {
            att_any_model *m;
            captioner_need(att_any_model_open(ctx, path.text, ATT_SUBJECT_NONE,
                                              ATT_OPTIONS(att_model_options, .prepare = prepare), &m));
            const int64_t opened = weights_of(m).packed;
            case_run(k, ctx, m, prepare ? &second : &first);
            packed[prepare] = weights_of(m).packed;
            if (opened != (prepare ? packed[1] : 0))
                fail_msg("%s: %lld bytes when opened, %lld when used", k->name, (long long)opened,
                         (long long)packed[prepare]);
            att_any_model_free(m);
        }
        const bool classifier = k->make == case_caption_folder; /* its encoder has one, which captions do not use */
        if (packed[0] == 0 || packed[0] > packed[1] || (packed[0] < packed[1] && !classifier))
            fail_msg("%s: %lld bytes of copies, %lld if prepared", k->name, (long long)packed[0], (long long)packed[1]);
        case_expect_same(k, &first, &second);
        folder_remove(&f);
    }
}

static void preparing_can_be_cancelled(void **state)
{
    (void)state;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        volatile int cancel = 0;
        att_ctx *own;
        captioner_need(att_open(&own, ATT_OPTIONS(att_config, .n_threads = 1, .cancel = &cancel)));
        for (int prepare = 0; prepare < 2; prepare++) {
            att_any_model *m;
            cancel = prepare;
            assert_int_equal(att_any_model_open(own, path.text, ATT_SUBJECT_NONE,
                                                ATT_OPTIONS(att_model_options, .prepare = prepare), &m),
                             prepare ? ATT_ERR_CANCELLED : ATT_OK);
            assert_true(prepare == !m);
            att_any_model_free(m);
        }
        att_close(own);
        folder_remove(&f);
    }
}

/* At each allocation; preparing has more of them than opening alone. */
static void preparing_without_memory_leaves_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    long calls[2];
    for (int prepare = 0; prepare < 2; prepare++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            fail_alloc a = {.fail_at = n};
            att_ctx *own = NULL;
            att_any_model *m = NULL;
            att_status s = att_open(&own, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
            s = s ? s
                  : att_any_model_open(own, f.path, ATT_SUBJECT_NONE,
                                       ATT_OPTIONS(att_model_options, .prepare = prepare), &m);
            failed = a.calls >= n;
            calls[prepare] = a.calls;
            assert_int_equal(s, failed ? ATT_ERR_MEMORY : ATT_OK);
            assert_true(failed == !m);
            att_any_model_free(m);
            att_close(own);
            assert_int_equal(a.live, 0);
        }
    }
    assert_true(calls[1] >= calls[0] + 6 * TINY_LAYERS); /* six matrices of each layer */
    folder_remove(&f);
}

/* ---- where weights are */

/* All weights in use are the model's own, in its files, or given; with copies, those in the files are fewer. */
static void weights_are_own_mapped_or_packed(void **state)
{
    (void)state;
    static case_result r;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        for (int how = 0; how < 3; how++) {
            att_any_model *m;
            captioner_need(att_any_model_open(
                ctx, path.text, ATT_SUBJECT_NONE,
                ATT_OPTIONS(att_model_options, .weights = how == 1 ? ATT_WEIGHT_TYPE_BF16 : ATT_WEIGHT_TYPE_STORED,
                            .copy = how == 2),
                &m));
            const att_model_weights before = weights_of(m);
            const int64_t used = sum_of(before.used);
            assert_int_equal(before.packed, 0);
            if (k->run != case_recommend) /* whose vectors of items may be a table besides */
                assert_int_equal(before.own + before.mapped, used);
            assert_true(how == 2 ? before.mapped == 0 : before.mapped > 0);
            assert_true(how != 1 || before.own >= before.used[ATT_BF16]);
            case_run(k, ctx, m, &r);
            const att_model_weights after = weights_of(m);
            assert_true(after.packed > 0);
            assert_int_equal(after.own, before.own);
            assert_true(how != 0 || after.mapped < before.mapped);
            att_any_model_free(m);
        }
        folder_remove(&f);
    }
}

/* ---- between calls */

/* A call takes as much again, and computes the same. */
static void a_sentence_model_gives_back_what_calls_left(void **state)
{
    (void)state;
    static case_result first, second;
    const test_folder f = tiny_sentence();
    fail_alloc a = {.fail_at = 0};
    att_ctx *own = fail_open(&a);
    att_sentence *m;
    assert_int_equal(att_sentence_open(own, f.path, ATT_OPTIONS(att_model_options, .prepare = true), &m), ATT_OK);
    first.n = second.n = 0;
    captioner_need(case_sentence(own, m, &first));
    const long used = a.bytes, idle = (long)att_sentence_idle_bytes(m);
    att_sentence_trim(m);
    const long trimmed = a.bytes;
    assert_true(idle > 0 && trimmed <= used - idle);
    assert_int_equal(att_sentence_idle_bytes(m), 0);
    captioner_need(case_sentence(own, m, &second));
    assert_int_equal(a.bytes, used);
    case_expect_same(&model_cases[0], &first, &second);
    att_sentence_trim(m);
    assert_int_equal(a.bytes, trimmed);
    att_sentence_trim(NULL);
    att_sentence_free(m);
    att_close(own);
    assert_int_equal(a.live, 0);
    folder_remove(&f);
}

/* Keys and values of each layer, at least */
static void a_state_has_the_bytes_of_its_tokens(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 0, 1};
    const test_folder f = case_llama_folder();
    att_language_model *m;
    size_t bytes[2];
    captioner_need(att_language_model_open(ctx, f.path, NULL, &m));
    for (int half = 0; half < 2; half++) {
        att_language_state *s;
        att_tape *t;
        att_tensor v;
        captioner_need(att_language_state_new(m, 1, half ? ATT_F16 : ATT_F32, &s));
        captioner_need(att_tape_new(ctx, NULL, &t));
        const size_t empty = att_language_state_bytes(s);
        captioner_need(
            att_var_value(t,
                          att_language_model_apply(t, m, ids, (const int64_t[]){0, 3}, 1, s,
                                                   ATT_OPTIONS(att_language_model_options, .last_only = true)),
                          &v));
        bytes[half] = att_language_state_bytes(s) - empty;
        att_tape_free(t);
        att_language_state_free(s);
    }
    assert_true(bytes[1] > 0 && bytes[0] >= 2 * 3 * 2 * LLAMA_KV_HEADS * 4 * sizeof(float)); /* layers, tokens, both */
    assert_true(bytes[0] >= bytes[1]);
    assert_int_equal(att_language_state_bytes(NULL), 0);
    att_language_model_free(m);
    folder_remove(&f);
}

/* ---- resident pages */

enum { HIDDEN = 256, LAYERS = 4, WINDOW = 64 * 1024 }; /* what Linux maps around a page that is read */

/* Makes a vision Transformer of 12 MB whose matrices are many pages. */
static test_folder large_vit(void)
{
    char settings[400];
    att_vit *m;
    const test_folder f = folder_new();
    const att_image_processor_config processor = captioner_processor();
    snprintf(
        settings, sizeof settings,
        "{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, \"num_channels\": 3, \"hidden_size\": %d, "
        "\"num_hidden_layers\": %d, \"num_attention_heads\": 4, \"intermediate_size\": 1024, \"num_labels\": 5}",
        HIDDEN, LAYERS);
    captioner_need(att_vit_new(ctx, settings, 1, &m));
    captioner_need(att_vit_write(m, f.path, NULL, 0));
    captioner_need(att_image_processor_write(ctx, f.path, &processor));
    att_vit_free(m);
    return f;
}

/* Returns the bytes of the file's mappings that are resident in this process; -1: it has none. */
static int64_t resident_of(const char *file)
{
    char line[600];
    bool of_file = false;
    int64_t sum = -1;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        long long kilobytes;
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
            of_file = strstr(line, file) != NULL;
        else if (of_file && sscanf(line, "Rss: %lld kB", &kilobytes) == 1)
            sum = (sum < 0 ? 0 : sum) + kilobytes * 1024;
    }
    fclose(maps);
    return sum;
}

/* Tensors that are not matrices stay in the file, with the pages that they share with others: at most as much before
 * and after each as the system maps at once. All matrices are gone, whether they were packed or converted. */
static void matrices_that_were_copied_give_their_pages_back(void **state)
{
    (void)state;
    const test_folder f = large_vit();
    char path[100];
    att_safetensors *file;
    snprintf(path, sizeof path, "%s/model.safetensors", f.path);
    captioner_need(att_safetensors_open(ctx, path, &file));
    int64_t bound = 0, all = 0;
    for (int64_t i = 0; i < att_safetensors_count(file); i++) {
        att_tensor t;
        captioner_need(att_safetensors_get(file, att_safetensors_name(file, i), &t));
        const int64_t bytes = att_dtype_bytes(t.dtype, att_count(&t));
        all += bytes;
        bound += t.rank < 2 || bytes < 4 * WINDOW ? bytes + 2 * WINDOW : 2 * (int64_t)sysconf(_SC_PAGESIZE);
    }
    att_safetensors_free(file);
    assert_true(bound < all * 3 / 4);
    for (int how = 0; how < 3; how++) {
        static const att_model_options options[] = {
            {.size = sizeof *options},
            {.size = sizeof *options, .prepare = true},
            {.size = sizeof *options, .weights = ATT_WEIGHT_TYPE_INT8},
        };
        const att_image image = case_image(8, 3);
        float p[5];
        att_image_model *m;
        captioner_need(att_image_model_open(ctx, f.path, &options[how], &m));
        if (how == 0)
            captioner_need(att_image_classify(m, 1, &image, NULL, p));
        const int64_t resident = resident_of(path);
        if (resident < 0 || resident > bound)
            fail_msg("%d: %lld bytes of %lld are resident, at most %lld may be", how, (long long)resident,
                     (long long)all, (long long)bound);
        captioner_need(att_image_classify(m, 1, &image, NULL, p));
        att_image_model_free(m);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prepared_model_has_the_copies_of_a_used_one),
        cmocka_unit_test(preparing_can_be_cancelled),
        cmocka_unit_test(preparing_without_memory_leaves_nothing),
        cmocka_unit_test(a_sentence_model_gives_back_what_calls_left),
        cmocka_unit_test(a_state_has_the_bytes_of_its_tokens),
        cmocka_unit_test(weights_are_own_mapped_or_packed),
        cmocka_unit_test(matrices_that_were_copied_give_their_pages_back),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
