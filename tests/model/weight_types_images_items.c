/* Vision models, captioners and recommenders whose weights are of another type than the file's. */
#include "fixtures/captioner.h"
#include "fixtures/check.h"

#include "attend_caption.h"
#include "attend_recommend.h"

#include <math.h>

enum { HIDDEN = 32, CLASSES = 5, ITEMS = 7, IMAGES = 3, MAX_NUMBERS = 256 };

/* ---- models, whose matrices all have rows in whole blocks */

static const att_image *images(void)
{
    static uint8_t pixels[IMAGES][CAPTIONER_SIDE][CAPTIONER_SIDE][3];
    static att_image image[IMAGES];
    for (int i = 0; i < IMAGES; i++) {
        captioner_image(pixels[i], i);
        image[i] = (att_image){CAPTIONER_SIDE, CAPTIONER_SIDE, 3, &pixels[i][0][0][0]};
    }
    return image;
}

static void write_vision(const char *folder)
{
    static const char settings[] =
        "{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, \"num_channels\": 3, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 64, \"num_labels\": 5}";
    const att_image_processor_config processor = captioner_processor();
    att_vit *m;
    captioner_need(att_vit_new(ctx, settings, 1, &m));
    captioner_need(att_vit_write(m, folder, NULL, 0));
    captioner_need(att_image_processor_write(ctx, folder, &processor));
    att_vit_free(m);
}

static void write_captioner(const char *folder, const char *encoder, const char *decoder)
{
    char text[600];
    att_settings s;
    att_captioner *m;
    const att_image_processor_config processor = captioner_processor();
    att_words w = captioner_words();
    snprintf(text, sizeof text,
             "{\"model_type\": \"attend-captioner\", %s, %s, \"hidden_size\": 32, \"vocab_size\": %d, "
             "\"max_positions\": %d, \"unk_token_id\": %d, \"eos_token_id\": %d}",
             encoder, decoder, CAPTIONER_WORDS + 2, CAPTIONER_POSITIONS, CAPTIONER_WORDS, CAPTIONER_WORDS + 1);
    att_settings_parse(&s, ctx, "the model's settings", text, strlen(text));
    captioner_need(att_captioner_make(ctx, &s, 3, &m));
    captioner_need(att_captioner_save(m, folder, 0));
    captioner_need(att_words_write(&w, folder));
    captioner_need(att_image_processor_write(ctx, folder, &processor));
    att_settings_close(&s);
    att_words_free(&w);
    att_model_free(m);
}

#define CNN "\"encoder\": \"cnn\", \"image_size\": 8, \"num_channels\": 3, \"channels\": [8, 32]"
#define TRANSFORMER                                                                                                    \
    "\"decoder\": \"transformer\", \"num_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 64"
#define GRU                                                                                                            \
    "\"decoder\": \"gru\", \"attention\": \"additive\", \"gate\": true, \"embedding_size\": 32, \"num_layers\": 1"

static void write_cnn_transformer(const char *folder) { write_captioner(folder, CNN, TRANSFORMER); }

static void write_cnn_gru(const char *folder) { write_captioner(folder, CNN, GRU); }

static void write_vit_transformer(const char *folder)
{
    char encoder[300];
    write_captioner(folder, "\"encoder\": \"vit\", \"grid\": 2, \"encoder_hidden_size\": 32", TRANSFORMER);
    snprintf(encoder, sizeof encoder, "%s/encoder", folder);
    write_vision(encoder);
}

static void write_recommender(const char *folder, const char *type)
{
    static const char *const ids[ITEMS] = {"a", "b", "c", "d", "e", "f", "g"};
    char settings[200];
    att_recommender *m;
    snprintf(settings, sizeof settings, "{\"model_type\": \"%s\", \"hidden_size\": 32, \"intermediate_size\": 64}",
             type);
    captioner_need(att_recommender_new(ctx, settings, ITEMS, ids, NULL, 1, &m));
    captioner_need(att_recommender_write(m, folder, 0));
    att_recommender_free(m);
}

static void write_sasrec(const char *folder) { write_recommender(folder, "attend-sasrec"); }
static void write_bert4rec(const char *folder) { write_recommender(folder, "attend-bert4rec"); }

/* ---- results */

/* What a model computes -> numbers [n]; its bytes -> *weights; or the error of opening it. */
typedef struct result {
    int n;
    double number[MAX_NUMBERS];
    att_model_weights weights;
} result;

static void add(result *r, int n, const float *x)
{
    for (int i = 0; i < n; i++)
        r->number[r->n++] = (double)x[i];
}

/* Vectors, and logits but for a constant */
static att_status run_vision(const char *folder, const att_model_options *o, result *r)
{
    float vectors[IMAGES * HIDDEN], p[IMAGES * CLASSES];
    att_image_model *m;
    att_model_weights of_vit = {.size = sizeof of_vit};
    const att_status s = att_image_model_open(ctx, folder, o, &m);
    if (s)
        return s;
    captioner_need(att_image_embed(m, IMAGES, images(), NULL, vectors));
    captioner_need(att_image_classify(m, IMAGES, images(), NULL, p));
    for (int i = 0; i < IMAGES; i++)
        for (int c = CLASSES - 1; c >= 0; c--)
            p[i * CLASSES + c] = logf(p[i * CLASSES + c] / p[i * CLASSES]);
    add(r, IMAGES * HIDDEN, vectors);
    add(r, IMAGES * CLASSES, p);
    captioner_need(att_image_model_weights(m, &r->weights));
    captioner_need(att_vit_weights(att_image_model_vit(m), &of_vit));
    assert_memory_equal(&of_vit, &r->weights, sizeof of_vit);
    att_image_model_free(m);
    return ATT_OK;
}

/* Computes how probable an image's first caption is, and how much more probable the others are. */
static att_status run_captioner(const char *folder, const att_model_options *o, result *r)
{
    double scores[IMAGES * CAPTIONER_COLORS];
    att_caption_model *m;
    const att_status s = att_caption_model_open(ctx, folder, o, &m);
    if (s)
        return s;
    captioner_need(att_caption_score(m, IMAGES, images(), CAPTIONER_COLORS, captioner_captions, NULL, scores));
    for (int i = 0; i < IMAGES * CAPTIONER_COLORS; i++)
        r->number[r->n++] = scores[i] - (i % CAPTIONER_COLORS ? scores[i - i % CAPTIONER_COLORS] : 0);
    captioner_need(att_caption_model_weights(m, &r->weights));
    att_caption_model_free(m);
    return ATT_OK;
}

/* Vectors of histories, and scores of all items */
static att_status run_recommender(const char *folder, const att_model_options *o, result *r)
{
    static const int64_t offsets[] = {0, 5, 6, 9};
    static const int32_t histories[] = {3, 1, 4, 1, 5, 2, 6, 0, 2};
    float vectors[3 * HIDDEN], scores[3 * ITEMS];
    att_recommender *m;
    const att_status s = att_recommender_open(ctx, folder, o, &m);
    if (s)
        return s;
    const att_scorer scorer = att_recommender_scorer(m);
    captioner_need(att_recommender_embed(m, 3, histories, offsets, NULL, vectors));
    captioner_need(scorer.score(scorer.user, histories, offsets, 3, ITEMS, scores));
    add(r, 3 * HIDDEN, vectors);
    add(r, 3 * ITEMS, scores);
    captioner_need(att_recommender_weights(m, &r->weights));
    att_recommender_free(m);
    return ATT_OK;
}

static const struct {
    const char *name;
    void (*write)(const char *folder);
    att_status (*run)(const char *folder, const att_model_options *o, result *r);
    bool recurrent;
} models[] = {{"vision", write_vision, run_vision, false},
              {"captioner, cnn", write_cnn_transformer, run_captioner, false},
              {"captioner, vit", write_vit_transformer, run_captioner, false},
              {"captioner, gru", write_cnn_gru, run_captioner, true},
              {"sasrec", write_sasrec, run_recommender, false},
              {"bert4rec", write_bert4rec, run_recommender, false}};
enum { MODELS = sizeof models / sizeof models[0] };

static att_status run(int k, const char *folder, att_weight_type weights, result *r)
{
    *r = (result){.weights.size = sizeof r->weights};
    return models[k].run(folder, ATT_OPTIONS(att_model_options, .weights = weights), r);
}

/* ---- tests */

/* Returns the root of the mean square of the difference, as a share of that of the exact numbers. */
static double error_of(const result *r, const result *exact)
{
    double error = 0, size = 0;
    for (int i = 0; i < r->n; i++) {
        error += pow(r->number[i] - exact->number[i], 2);
        size += pow(exact->number[i], 2);
    }
    return sqrt(error / size);
}

/* As in weight_types.c: a number is off by up to 2^-11 in f16, 2^-8 in bf16, 1/254 of its block's largest in int8, 1/14
 * in int4. */
static void fewer_bits_are_less_exact(void **state)
{
    (void)state;
    static const struct {
        att_weight_type weights;
        double min, max;
    } of[] = {{ATT_WEIGHT_TYPE_STORED, 0, 0},     {ATT_WEIGHT_TYPE_F32, 0, 0},
              {ATT_WEIGHT_TYPE_F16, 1e-6, 1e-3},  {ATT_WEIGHT_TYPE_BF16, 1e-4, 8e-3},
              {ATT_WEIGHT_TYPE_INT8, 1e-3, 4e-2}, {ATT_WEIGHT_TYPE_INT4, 1e-2, 0.3}};
    static result exact, r;
    for (int k = 0; k < MODELS; k++) {
        const test_folder folder = folder_new();
        models[k].write(folder.path);
        for (size_t i = 0; i < sizeof of / sizeof of[0] - (models[k].recurrent ? 2 : 0); i++) {
            captioner_need(run(k, folder.path, of[i].weights, &r));
            if (i == 0)
                exact = r;
            const double error = error_of(&r, &exact);
            if (error < of[i].min || error > of[i].max)
                fail_msg("%s, weights %d: off by %g", models[k].name, (int)of[i].weights, error);
        }
        folder_remove(&folder);
    }
}

/* Of a folder's file: of matrices, and of all else */
static void count_file(const char *folder, int64_t bytes[2])
{
    char path[300];
    att_safetensors *f;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    captioner_need(att_safetensors_open(ctx, path, &f));
    for (int64_t i = 0; i < att_safetensors_count(f); i++) {
        att_tensor t;
        int64_t n = 4;
        captioner_need(att_safetensors_get(f, att_safetensors_name(f, i), &t));
        const bool matrix = t.rank == 2 || (t.rank == 3 && t.dim[0] == 1);
        for (int d = 0; d < t.rank; d++)
            n *= t.dim[d];
        assert_true(!matrix || t.dim[t.rank - 1] % 32 == 0);
        bytes[matrix] += n;
    }
    att_safetensors_free(f);
}

/* 34 bytes for 32 numbers of 4 */
static void a_model_tells_the_bytes_of_its_weights(void **state)
{
    (void)state;
    static result r;
    for (int k = 0; k < MODELS; k++) {
        const att_weight_type type = models[k].recurrent ? ATT_WEIGHT_TYPE_BF16 : ATT_WEIGHT_TYPE_INT8;
        const att_dtype dtype = models[k].recurrent ? ATT_BF16 : ATT_Q8_0;
        const test_folder folder = folder_new();
        char encoder[300];
        int64_t bytes[2] = {0, 0};
        models[k].write(folder.path);
        count_file(folder.path, bytes);
        snprintf(encoder, sizeof encoder, "%s/encoder", folder.path);
        if (access(encoder, F_OK) == 0)
            count_file(encoder, bytes);
        captioner_need(run(k, folder.path, type, &r));
        assert_int_equal(r.weights.stored[ATT_F32], bytes[0] + bytes[1]);
        assert_int_equal(r.weights.used[ATT_F32], bytes[0]);
        assert_int_equal(r.weights.used[dtype], dtype == ATT_BF16 ? bytes[1] / 2 : bytes[1] / 128 * 34);
        folder_remove(&folder);
    }
}

static void recurrent_decoders_have_no_quantized_weights(void **state)
{
    (void)state;
    static result r;
    for (int k = 0; k < MODELS; k++) {
        if (!models[k].recurrent)
            continue;
        const test_folder folder = folder_new();
        models[k].write(folder.path);
        assert_int_equal(run(k, folder.path, ATT_WEIGHT_TYPE_INT8, &r), ATT_ERR_UNSUPPORTED);
        check_message(ctx, "recurrent layers have no products of int8 or int4 weights, expected f32, f16 or bf16");
        assert_int_equal(run(k, folder.path, ATT_WEIGHT_TYPE_INT4, &r), ATT_ERR_UNSUPPORTED);
        folder_remove(&folder);
    }
}

static void another_number_is_no_type(void **state)
{
    (void)state;
    static result r;
    for (int k = 0; k < MODELS; k++) {
        const test_folder folder = folder_new();
        models[k].write(folder.path);
        assert_int_equal(run(k, folder.path, (att_weight_type)9, &r), ATT_ERR_ARGUMENT);
        check_message(ctx, "weights is 9, which is not an att_weight_type");
        folder_remove(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_bits_are_less_exact),
        cmocka_unit_test(a_model_tells_the_bytes_of_its_weights),
        cmocka_unit_test(recurrent_decoders_have_no_quantized_weights),
        cmocka_unit_test(another_number_is_no_type),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
