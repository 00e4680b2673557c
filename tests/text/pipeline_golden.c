/* Tokenizers of tokenizer.json: ids, offsets and decoded text of the `tokenizers` package. */
#include "fixtures/check.h"
#include "fixtures/text_lines.h"
#include "fixtures/real_files.h"
#include "text/utf8.h"
#include "fixtures/tokenizer.h"

#include <jansson.h>

/* Returns the hash that tests/golden/make_pipelines.py makes of a line; random_ids [n]: ids that may be drawn. */
static uint32_t hash_of(const att_tokenizer *t, text_lines *line, unsigned number, const int32_t *random_ids,
                        unsigned n)
{
    att_tokens x;
    att_text text;
    text_line(line, number);
    if (att_tokenize(t, line->line, line->bytes, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x))
        fail_msg("line %u: %s", number, att_error(ctx));
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < x.count; i++)
        h = hash_int(h, (uint32_t)x.ids[i]);
    for (int64_t i = 0; i < 2 * x.count; i++)
        h = hash_int(h, (uint32_t)x.offsets[i]);
    assert_int_equal(att_detokenize(t, x.ids, x.count, &text), ATT_OK);
    h = hash_bytes(h, text.text, text.bytes);
    att_text_free(ctx, &text);
    int32_t ids[10];
    line->random = (UINT64_C(1) << 32) + number;
    for (int i = 0; i < 10; i++)
        ids[i] = random_ids[below(line, n)];
    assert_int_equal(att_detokenize(t, ids, 10, &text), ATT_OK);
    h = hash_bytes(h, text.text, text.bytes);
    att_text_free(ctx, &text);
    att_tokens_free(ctx, &x);
    return h;
}

static att_tokenizer *open_folder(const char *path)
{
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, path, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* Lists all ids that have a token; returns their number. */
static unsigned ids_of(const att_tokenizer *t, int32_t **ids)
{
    unsigned n = 0;
    *ids = malloc((size_t)att_tokenizer_size(t) * sizeof **ids);
    for (int32_t i = 0; i < att_tokenizer_size(t); i++)
        if (att_tokenizer_token(t, i))
            (*ids)[n++] = i;
    return n;
}

/* Compares every line, or every step-th, with the hashes in tests/golden/pipeline/NAME.hashes. */
static void check_hashes(const att_tokenizer *t, const char *name, unsigned step)
{
    static text_lines lines;
    char path[MAX_FILE_NAME];
    unsigned char want[4];
    int32_t *ids;
    const unsigned n = ids_of(t, &ids);
    snprintf(path, sizeof path, "tests/golden/pipeline/%s.hashes", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text_lines_init(&lines);
    for (unsigned i = 0; i < N_TEXT_LINES; i += step) {
        assert_int_equal(fread(want, 1, 4, f), 4);
        if (i / step % (unsigned)check_step(7))
            continue;
        const uint32_t h = hash_of(t, &lines, i, ids, n);
        if (h != (want[0] | (uint32_t)want[1] << 8 | (uint32_t)want[2] << 16 | (uint32_t)want[3] << 24))
            fail_msg("line %u: not as in %s", i, path);
    }
    fclose(f);
    free(lines.text);
    free(ids);
}

static void copy_tokenizer(const char *name)
{
    char path[MAX_FILE_NAME];
    remove_all();
    snprintf(path, sizeof path, "tests/golden/pipeline/%s.json", name);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

static void check_stand_in(const char *name)
{
    copy_tokenizer(name);
    att_tokenizer *t = open_folder(folder.path);
    check_hashes(t, name, 1);
    att_tokenizer_free(t);
}

static void lines_are_those_of_gpt2(void **state) { (void)state, check_stand_in("gpt2"); }
static void lines_are_those_of_llama_3(void **state) { (void)state, check_stand_in("llama3"); }
static void lines_are_those_of_qwen(void **state) { (void)state, check_stand_in("qwen"); }
static void lines_are_those_of_smollm2(void **state) { (void)state, check_stand_in("smollm2"); }
static void lines_are_those_of_llama_2(void **state) { (void)state, check_stand_in("llama2"); }
static void lines_are_those_of_gemma(void **state) { (void)state, check_stand_in("gemma"); }
static void lines_are_those_of_clip(void **state) { (void)state, check_stand_in("clip"); }
static void lines_are_those_of_xlm_roberta(void **state) { (void)state, check_stand_in("xlmr"); }

/* BERT's, with the settings of `config` beside its tokenizer.json. */
static void check_minilm(const char *config, const char *hashes, unsigned step)
{
    char path[2 * MAX_FILE_NAME], real[4 * MAX_FILE_NAME], to[MAX_FILE_NAME];
    remove_all();
    snprintf(path, sizeof path, "%s/tokenizer.json", model_folder("all-MiniLM-L6-v2"));
    snprintf(to, sizeof to, "%s/tokenizer.json", folder.path);
    assert_non_null(realpath(path, real));
    assert_int_equal(symlink(real, to), 0);
    write_file("tokenizer_config.json", config);
    att_tokenizer *t = open_folder(folder.path);
    check_hashes(t, hashes, step);
    att_tokenizer_free(t);
    remove_all();
}

static void lines_are_those_of_minilm(void **state) { (void)state, check_minilm("{}", "minilm", 5); }

static void text_is_cleaned_up_as_transformers_does(void **state)
{
    (void)state;
    check_minilm("{\"clean_up_tokenization_spaces\": true}", "minilm_clean", 50);
}

/* gpt2.json with steps, or settings of the model, instead of its own */
static att_tokenizer *open_with(const char *steps)
{
    char path[MAX_FILE_NAME];
    json_t *root = json_load_file("tests/golden/pipeline/gpt2.json", 0, NULL);
    json_t *step = json_loads(steps, 0, NULL), *model = json_object_get(step, "model");
    assert_non_null(step);
    json_object_update(model ? json_object_get(root, "model") : root, model ? model : step);
    remove_all();
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    json_decref(step);
    return open_folder(folder.path);
}

/* Each line of steps.txt: a hash, and what is put instead of gpt2.json's. */
static void each_step_gives_what_the_reference_gives(void **state)
{
    (void)state;
    static text_lines lines;
    char *text, *line[100];
    const int n_lines = golden_lines("pipeline/steps.txt", &text, line, 100);
    text_lines_init(&lines);
    assert_true(n_lines > 50);
    for (int i = 0; i < n_lines; i++) {
        att_tokenizer *t = open_with(line[i] + 9);
        int32_t *ids;
        const unsigned n = ids_of(t, &ids);
        uint32_t h = HASH_START;
        for (unsigned k = 0; k < N_TEXT_LINES; k += 20)
            h = hash_int(h, hash_of(t, &lines, k, ids, n));
        if (h != strtoul(line[i], NULL, 16))
            fail_msg("not as in the reference: %s", line[i] + 9);
        free(ids);
        att_tokenizer_free(t);
    }
    free(text);
    free(lines.text);
}

/* Writes the text of the code points [first, first + 256), each before an "a"; returns its bytes. */
static size_t text_of_characters(uint32_t first, char *text)
{
    size_t n = 0;
    for (uint32_t c = first; c < first + 256; c++)
        if (c < 0xD800 || c >= 0xE000) {
            n += att_utf8_encode(c, text + n);
            text[n++] = 'a';
        }
    return n;
}

static void every_character_is_what_it_is_for_the_reference(void **state)
{
    (void)state;
    char *golden, *line[100], text[256 * 5];
    const int n_lines = golden_lines("pipeline/characters.txt", &golden, line, 100);
    assert_true(n_lines > 20);
    for (int i = 0; i < n_lines; i++) {
        att_tokenizer *t = open_with(line[i] + 9);
        uint32_t h = HASH_START;
        for (uint32_t first = 0; first < 0x20000; first += 256) {
            att_tokens x;
            const size_t bytes = text_of_characters(first, text);
            if (att_tokenize(t, text, bytes, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x))
                fail_msg("%s", att_error(ctx));
            for (int64_t k = 0; k < x.count; k++)
                h = hash_int(h, (uint32_t)x.ids[k]);
            for (int64_t k = 0; k < 2 * x.count; k++)
                h = hash_int(h, (uint32_t)x.offsets[k]);
            att_tokens_free(ctx, &x);
        }
        if (h != strtoul(line[i], NULL, 16))
            fail_msg("not as in the reference: %s", line[i] + 9);
        att_tokenizer_free(t);
    }
    free(golden);
}

static void link_as(const char *file, const char *name)
{
    char real[4 * MAX_FILE_NAME], to[MAX_FILE_NAME];
    assert_non_null(realpath(file, real));
    snprintf(to, sizeof to, "%s/%s", folder.path, name);
    assert_int_equal(symlink(real, to), 0);
}

static void check_real(const char *vocab, const char *merges, const char *class, const char *name)
{
    char text[100];
    const char *found = data_file(vocab);
    if (!found)
        skip();
    remove_all();
    link_as(found, "vocab.json");
    link_as(data_file(merges), "merges.txt");
    snprintf(text, sizeof text, "{\"tokenizer_class\": \"%s\"}", class);
    write_file("tokenizer_config.json", text);
    att_tokenizer *t = open_folder(folder.path);
    check_hashes(t, name, 5);
    att_tokenizer_free(t);
}

static void lines_are_those_of_the_real_gpt2(void **state)
{
    (void)state;
    check_real("vocab/gpt2/encoder.json", "vocab/gpt2/vocab.bpe", "GPT2Tokenizer", "real_gpt2");
}

static void lines_are_those_of_the_real_clip(void **state)
{
    (void)state;
    check_real("vocab/clip/vocab.json", "vocab/clip/merges.txt", "CLIPTokenizer", "real_clip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_those_of_gpt2),
        cmocka_unit_test(lines_are_those_of_llama_3),
        cmocka_unit_test(lines_are_those_of_qwen),
        cmocka_unit_test(lines_are_those_of_smollm2),
        cmocka_unit_test(lines_are_those_of_llama_2),
        cmocka_unit_test(lines_are_those_of_gemma),
        cmocka_unit_test(lines_are_those_of_clip),
        cmocka_unit_test(lines_are_those_of_xlm_roberta),
        cmocka_unit_test(lines_are_those_of_minilm),
        cmocka_unit_test(text_is_cleaned_up_as_transformers_does),
        cmocka_unit_test(each_step_gives_what_the_reference_gives),
        cmocka_unit_test(every_character_is_what_it_is_for_the_reference),
        cmocka_unit_test(lines_are_those_of_the_real_gpt2),
        cmocka_unit_test(lines_are_those_of_the_real_clip),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
