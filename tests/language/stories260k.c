/* stories260K, a published model of llama2.c (github.com/karpathy/llama2.c), as a folder: its greedy tokens. */
#include "fixtures/converted_model.h"
#include "fixtures/real_files.h"

/* ---- stories260K.bin: seven sizes, and all tensors of a kind, layer by layer */

typedef struct sizes {
    int32_t dim, hidden, layers, heads, kv_heads, vocabulary, positions;
} sizes;

static float *read_floats(FILE *f, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    assert_int_equal(fread(x, sizeof *x, (size_t)n, f), n);
    return x;
}

/* Rows of queries or keys rotate as pairs (0, 1), (2, 3) ... of a head there, and as (i, i + half) here. */
static void unpermute(float *x, int64_t heads, int64_t head_dim, int64_t columns)
{
    const size_t bytes = (size_t)(head_dim * columns) * sizeof *x;
    float *head = malloc(bytes);
    for (int64_t h = 0; h < heads; h++, x += head_dim * columns) {
        memcpy(head, x, bytes);
        for (int64_t i = 0; i < head_dim; i++)
            memcpy(x + (i / 2 + i % 2 * (head_dim / 2)) * columns, head + i * columns, (size_t)columns * sizeof *x);
    }
    free(head);
}

static void read_kind(FILE *f, const sizes *s, converted *c, const char *name, int64_t rows, int64_t columns,
                      int64_t rotated_heads)
{
    for (int i = 0; i < s->layers; i++) {
        char whole[64];
        snprintf(whole, sizeof whole, "model.layers.%d.%s.weight", i, name);
        float *x = read_floats(f, (rows ? rows : 1) * columns);
        if (rotated_heads)
            unpermute(x, rotated_heads, rows / rotated_heads, columns);
        converted_add(c, whole, x, rows, columns);
    }
}

static sizes read_model(const char *path, converted *c)
{
    sizes s;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(&s, sizeof s, 1, f), 1);
    assert_true(s.vocabulary > 0); /* the output layer is tied */
    const int64_t keys = (int64_t)s.dim / s.heads * s.kv_heads;
    converted_add(c, "model.embed_tokens.weight", read_floats(f, (int64_t)s.vocabulary * s.dim), s.vocabulary, s.dim);
    read_kind(f, &s, c, "input_layernorm", 0, s.dim, 0);
    read_kind(f, &s, c, "self_attn.q_proj", s.dim, s.dim, s.heads);
    read_kind(f, &s, c, "self_attn.k_proj", keys, s.dim, s.kv_heads);
    read_kind(f, &s, c, "self_attn.v_proj", keys, s.dim, 0);
    read_kind(f, &s, c, "self_attn.o_proj", s.dim, s.dim, 0);
    read_kind(f, &s, c, "post_attention_layernorm", 0, s.dim, 0);
    read_kind(f, &s, c, "mlp.gate_proj", s.hidden, s.dim, 0);
    read_kind(f, &s, c, "mlp.down_proj", s.dim, s.hidden, 0);
    read_kind(f, &s, c, "mlp.up_proj", s.hidden, s.dim, 0);
    converted_add(c, "model.norm.weight", read_floats(f, s.dim), 0, s.dim);
    fclose(f);
    return s;
}

static att_language_model *open_model(const char *path, const test_folder *folder, sizes *s)
{
    converted *c = calloc(1, sizeof *c);
    char config[512];
    *s = read_model(path, c);
    snprintf(config, sizeof config,
             "{\"model_type\": \"llama\", \"vocab_size\": %d, \"hidden_size\": %d, \"num_hidden_layers\": %d, "
             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"intermediate_size\": %d, "
             "\"max_position_embeddings\": %d, \"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true}",
             s->vocabulary, s->dim, s->layers, s->heads, s->kv_heads, s->hidden, s->positions);
    att_language_model *m = converted_open(c, folder, config);
    for (int64_t i = 0; i < c->n; i++)
        free(c->tensor[i].data);
    free(c);
    return m;
}

/* ---- tok512.bin: the longest piece; for each its score, length and bytes */

enum { MAX_PIECES = 512, MAX_PIECE = 64 };
static char pieces[MAX_PIECES][MAX_PIECE];

static void read_pieces(const char *path, int n)
{
    int32_t longest, length;
    float score;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(n <= MAX_PIECES);
    assert_int_equal(fread(&longest, sizeof longest, 1, f), 1);
    for (int i = 0; i < n; i++) {
        assert_int_equal(fread(&score, sizeof score, 1, f), 1);
        assert_int_equal(fread(&length, sizeof length, 1, f), 1);
        assert_in_range(length, 0, MAX_PIECE - 1);
        assert_int_equal(fread(pieces[i], 1, (size_t)length, f), length);
    }
    fclose(f);
}

/* Returns the piece of a token after another, as llama2.c prints it. */
static const char *piece(int32_t before, int32_t token, char byte[2])
{
    unsigned value;
    const char *text = pieces[token];
    if (sscanf(text, "<0x%02X>", &value) == 1) {
        byte[0] = (char)value;
        byte[1] = 0;
        return byte;
    }
    return before == 1 && text[0] == ' ' ? text + 1 : text;
}

/* ---- 200 tokens */

static void greedy_tokens_are_those_of_llama2c(void **state)
{
    (void)state;
    enum { STEPS = 200, BOS = 1 };
    char path[3][MAX_FILE_NAME], text[8192] = "", want[8192] = "";
    static const char *const file[] = {"stories260K.bin", "tok512.bin", "expected_greedy_200.txt"};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "models/stories260K/%s", file[i]);
        const char *found = data_file(text);
        if (!found) {
            print_message("skipped: ../shared/data/%s does not exist\n", text);
            skip();
        }
        snprintf(path[i], sizeof path[i], "%s", found);
    }
    const test_folder folder = folder_new();
    sizes s;
    att_language_model *m = open_model(path[0], &folder, &s);
    read_pieces(path[1], s.vocabulary);
    FILE *f = fopen(path[2], "rb");
    assert_non_null(f);
    want[fread(want, 1, sizeof want - 1, f)] = 0;
    fclose(f);
    att_language_state *cache;
    att_tape *t;
    assert_int_equal(att_language_state_new(m, 1, ATT_F32, &cache), ATT_OK);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    int32_t token = BOS;
    text[0] = 0;
    for (int i = 0; i < STEPS; i++) {
        att_tensor logits;
        const int64_t offsets[] = {0, 1};
        if (att_var_value(t,
                          att_language_model_apply(t, m, &token, offsets, 1, cache,
                                                   ATT_OPTIONS(att_language_model_options, .last_only = true)),
                          &logits))
            fail_msg("%s", att_error(ctx));
        const int32_t next = most_probable(logits.data, s.vocabulary);
        char byte[2];
        strcat(text, piece(token, next, byte));
        token = next;
        att_tape_reset(t);
    }
    strcat(text, "\n"); /* llama2.c ends with it */
    assert_string_equal(text, want);
    att_tape_free(t);
    att_language_state_free(cache);
    att_language_model_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(greedy_tokens_are_those_of_llama2c)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
