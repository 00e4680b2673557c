/* Types of tensors in .gguf files that are written: those that llama.cpp chooses. */
#include "fixtures/gguf_write.h"

/* Rows of the feed-forward output are in blocks of 32, all others of 256; the output layer is the embeddings or not. */
static void types_of_tensors_are_those_of_llama_cpp(void **state)
{
    (void)state;
    static const struct {
        att_dtype dtype;
        bool medium;
        int file_type;
        const char *query, *value, *last_value, *down, *last_down, *output;
    } types[] = {{ATT_Q5_0, false, 8, "Q5_0", "Q5_0", "Q5_0", "Q5_0", "Q5_0", "Q5_0"},
                 {ATT_Q5_1, false, 9, "Q5_1", "Q5_1", "Q5_1", "Q5_1", "Q5_1", "Q5_1"},
                 {ATT_Q4_1, false, 3, "Q4_1", "Q4_1", "Q4_1", "Q4_1", "Q4_1", "Q4_1"},
                 {ATT_Q4_K, false, 14, "Q4_K", "Q5_K", "Q5_K", "Q5_0", "Q5_0", "Q6_K"},
                 {ATT_Q4_K, true, 15, "Q4_K", "Q4_K", "Q6_K", "Q5_0", "Q8_0", "Q6_K"},
                 {ATT_Q5_K, false, 16, "Q5_K", "Q5_K", "Q5_K", "Q5_1", "Q5_1", "Q6_K"},
                 {ATT_Q5_K, true, 17, "Q5_K", "Q5_K", "Q6_K", "Q5_1", "Q8_0", "Q6_K"},
                 {ATT_Q6_K, false, 18, "Q6_K", "Q6_K", "Q6_K", "Q8_0", "Q8_0", "Q6_K"}};
    for (int tied = 0; tied < 2; tied++) {
        const tiny_llama m = {.name = "llama",
                              .type = "llama",
                              .head_dim = 8,
                              .hidden = 256,
                              .inner = 96,
                              .tied = tied,
                              .more = ", \"head_dim\": 8"};
        const fixture f = begin(&m, NULL);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            const att_gguf_options *o =
                ATT_OPTIONS(att_gguf_options, .dtype = types[i].dtype, .medium = types[i].medium);
            if (att_gguf_write(ctx, f.folder.path, f.file, o))
                fail_msg("%s", att_error(ctx));
            att_gguf *g = open_file(f.file);
            const char *const names[][2] = {{"blk.0.attn_q.weight", types[i].query},
                                            {"blk.0.attn_v.weight", types[i].value},
                                            {"blk.1.attn_v.weight", types[i].last_value},
                                            {"blk.0.ffn_down.weight", types[i].down},
                                            {"blk.1.ffn_down.weight", types[i].last_down},
                                            {"token_embd.weight", tied ? types[i].output : types[i].query},
                                            {tied ? "token_embd.weight" : "output.weight", types[i].output},
                                            {"output_norm.weight", "F32"}};
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                assert_string_equal(att_gguf_find(g, names[k][0])->type_name, names[k][1]);
            assert_int_equal(att_gguf_int(g, "general.file_type", 0, 100), types[i].file_type);
            att_gguf_free(g);
        }
        end(&f);
    }
}

/* A file of F32 becomes one of K types with the same bytes as the folder does. */
static void a_file_is_quantized_as_its_folder(void **state)
{
    (void)state;
    const tiny_llama m = {.name = "qwen3",
                          .type = "qwen3",
                          .head_dim = 8,
                          .hidden = 256,
                          .inner = 256,
                          .qk_norm = true,
                          .more = ", \"head_dim\": 8"};
    const fixture f = begin(&m, NULL);
    const att_gguf_options *o = ATT_OPTIONS(att_gguf_options, .dtype = ATT_Q4_K, .medium = true);
    char twice[320];
    snprintf(twice, sizeof twice, "%s/twice.gguf", f.folder.path);
    write_file(f.folder.path, f.file, ATT_F32);
    assert_int_equal(att_gguf_write(ctx, f.file, twice, o), ATT_OK);
    assert_int_equal(att_gguf_write(ctx, f.folder.path, f.file, o), ATT_OK);
    att_gguf *direct = open_file(f.file), *through = open_file(twice);
    assert_int_equal(att_gguf_count(direct), att_gguf_count(through));
    for (int64_t i = 0; i < att_gguf_count(direct); i++) {
        const att_gguf_tensor *a = att_gguf_at(direct, i), *b = att_gguf_find(through, a->name);
        assert_true(a->type == b->type && a->bytes == b->bytes);
        assert_memory_equal(a->data, b->data, (size_t)a->bytes);
    }
    att_gguf_free(direct);
    att_gguf_free(through);
    unlink(twice);
    end(&f);
}

/* Queries, keys and values in one matrix have the types of values. */
static void fused_matrices_have_the_types_of_values(void **state)
{
    (void)state;
    static const tiny_llama m = {
        .name = "phi3", .type = "phi3", .head_dim = 64, .hidden = 256, .inner = 256, .fused = true, .more = ""};
    static const struct {
        att_dtype dtype;
        bool medium;
        const char *first, *last;
    } cases[] = {{ATT_Q4_K, true, "Q4_K", "Q6_K"}, {ATT_Q5_K, true, "Q5_K", "Q6_K"}, {ATT_Q4_K, false, "Q5_K", "Q5_K"}};
    for (size_t i = 0; i < 3; i++) {
        const fixture f = begin(&m, NULL);
        const att_gguf_options *o = ATT_OPTIONS(att_gguf_options, .dtype = cases[i].dtype, .medium = cases[i].medium);
        if (att_gguf_write(ctx, f.folder.path, f.file, o))
            fail_msg("%s", att_error(ctx));
        att_gguf *g = open_file(f.file);
        assert_string_equal(att_gguf_find(g, "blk.0.attn_qkv.weight")->type_name, cases[i].first);
        assert_string_equal(att_gguf_find(g, "blk.1.attn_qkv.weight")->type_name, cases[i].last);
        att_gguf_free(g);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_tensors_are_those_of_llama_cpp),
        cmocka_unit_test(a_file_is_quantized_as_its_folder),
        cmocka_unit_test(fused_matrices_have_the_types_of_values),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
