/* Text encoders of each family, as transformers saved them (tests/golden/make_encoder_families.py): hidden states,
 * attention weights, ids and embeddings are those of transformers. With folders as arguments it prints for each one the
 * greatest error, that of transformers' own float32, and the share of gradients: for check_encoder_families.py. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "attend_encoder.h"
#include "attend_sentence.h"
#include "stack/encoder.h"

#include <errno.h>
#include <jansson.h>
#include <inttypes.h>

#define FOLDERS "tests/golden/encoders/"
static const char *const families[] = {"bert_xlmr", "roberta",    "xlm_roberta",   "camembert",  "distilbert",
                                       "mpnet",     "modernbert", "modernbert_ja", "nomic_bert", "gemma3_text"};
enum { FAMILIES = sizeof families / sizeof families[0], MAX_TOKENS = 1024, MAX_LINE = 1 << 20 };

/* ---- expected.txt */

typedef struct expected {
    const char *folder;
    FILE *file;
    char line[MAX_LINE];   /* the next one; "" at the end */
    double f32;            /* the greatest error of transformers' own hidden states in float32 */
    int64_t every;         /* hidden states are those of each such token */
    double worst;          /* ours so far */
    double worst_gradient; /* the greatest error of our gradients, over that of transformers in float32 */
} expected;

static void next(expected *e)
{
    if (!fgets(e->line, sizeof e->line, e->file))
        *e->line = 0;
    e->line[strcspn(e->line, "\n")] = 0;
}

static void open_expected(expected *e, const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/expected.txt", folder);
    *e = (expected){.folder = folder, .file = fopen(path, "r")};
    if (!e->file)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fscanf(e->file, "f32 %lf\nevery %" SCNd64 "\n", &e->f32, &e->every), 2);
    next(e);
}

/* What follows the word with which the next line begins; NULL: it begins with another. */
static const char *after(const expected *e, const char *word)
{
    const size_t n = strlen(word);
    return !strncmp(e->line, word, n) && e->line[n] == ' ' ? e->line + n + 1 : NULL;
}

static int64_t read_integers(const char *text, int32_t *x)
{
    int64_t n = 0;
    char *end;
    for (const char *at = text; *at; at = end) {
        assert_true(n < MAX_TOKENS);
        x[n++] = (int32_t)strtol(at, &end, 10);
        assert_true(end > at);
    }
    return n;
}

/* Compares a row with the next line. */
static void compare(expected *e, const char *what, const float *is, int64_t n)
{
    char *end;
    const char *at = e->line;
    for (int64_t i = 0; i < n; i++, at = end) {
        const double wanted = strtod(at, &end), error = fabs((double)is[i] - wanted);
        assert_true(end > at);
        if (!(error < 1e-3))
            fail_msg("%s: %s: [%lld] is %.9g, not %.9g", e->folder, what, (long long)i, (double)is[i], wanted);
        e->worst = fmax(e->worst, error);
    }
    assert_int_equal(*at, 0);
    next(e);
}

/* ---- models */

typedef struct model {
    char path[4096];
    att_encoder *encoder;
    att_encoder_info info;
    att_tape *tape;
} model;

static void need(att_status s)
{
    if (s)
        fail_msg("%s", att_error(ctx));
}

static model open_model(const char *folder, const att_model_options *options)
{
    model m = {.info.size = sizeof m.info};
    snprintf(m.path, sizeof m.path, "%s", folder);
    need(att_encoder_open(ctx, m.path, options, &m.encoder));
    need(att_encoder_describe(m.encoder, &m.info));
    need(att_tape_new(ctx, NULL, &m.tape));
    return m;
}

static void close_model(model *m)
{
    att_tape_free(m->tape);
    att_encoder_free(m->encoder);
}

/* Hidden states [n, hidden] of a sequence, on the tape until the next call */
static const float *apply(const model *m, const int32_t *ids, const int32_t *types, int64_t n)
{
    att_tensor y;
    att_tape_reset(m->tape);
    need(att_var_value(m->tape,
                       att_encoder_apply(m->tape, m->encoder, ids, (const int64_t[]){0, n}, 1,
                                         ATT_OPTIONS(att_encoder_options, .type_ids = types)),
                       &y));
    return y.data;
}

/* ---- what is compared */

static int64_t read_sequence(expected *e, int32_t *ids)
{
    const int64_t n = read_integers(after(e, "ids"), ids);
    next(e);
    return n;
}

static void check_states(expected *e, const model *m)
{
    int32_t ids[MAX_TOKENS], types[MAX_TOKENS];
    const int64_t n = read_sequence(e, ids);
    const bool has_types = after(e, "types");
    if (has_types) {
        assert_int_equal(read_integers(after(e, "types"), types), n);
        next(e);
    }
    const float *y = apply(m, ids, has_types ? types : NULL, n);
    for (int64_t i = 0; i < n; i += e->every)
        compare(e, "hidden states", y + i * m->info.hidden, m->info.hidden);
}

static void check_weights(expected *e, const model *m)
{
    int32_t ids[MAX_TOKENS];
    float weights[MAX_TOKENS];
    att_trace *t;
    const int64_t all = read_integers(after(e, "weights"), ids), n = all - 2;
    next(e);
    need(att_encoder_trace(m->encoder, ids + 2, n, NULL, &t));
    for (int64_t i = 0; i < n; i++) {
        need(att_trace_weights(t, att_trace_find(t, ATT_TRACE_SIDE_ENCODER, ids[0]), ids[1], i, 1, weights));
        compare(e, "attention weights", weights, n);
    }
    att_trace_free(t);
}

/* Is parameter i, whose gradient in the layout of the file becomes *x, the tensor of this name, or rows of it? */
static bool is_gradient_of(const att_encoder *m, int64_t i, const char *theirs, att_tensor *x)
{
    const char *ours;
    att_file_tensor file = {.value = *att_param_grad(att_nn_params_at(att_encoder_params(m), i, &ours))};
    att_encoder_in_file(m, ours, &file);
    *x = file.value;
    return !strcmp(file.name, theirs);
}

/* Compares a gradient with the numbers from *at on; the greatest difference. */
static double compare_rows(const att_tensor *x, char **at)
{
    const int64_t rows = x->rank > 1 ? x->dim[0] : 1, columns = x->dim[x->rank - 1];
    double worst = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = x->rank > 1 ? i / columns * x->stride[0] : 0;
        const float *is = (const float *)x->data + row + i % columns * x->stride[x->rank - 1];
        worst = fmax(worst, fabs((double)*is - strtod(*at, at)));
    }
    return worst;
}

/* Compares the gradients of the parameters that a tensor has with the next line; the greatest difference. */
static double compare_gradient(expected *e, const att_encoder *m, const char *theirs)
{
    char *at = e->line;
    double worst = 0;
    for (int64_t i = 0; i < att_nn_params_count(att_encoder_params(m)); i++) {
        att_tensor x;
        if (is_gradient_of(m, i, theirs, &x))
            worst = fmax(worst, compare_rows(&x, &at));
    }
    if (at == e->line || *at)
        fail_msg("%s: there is no parameter of this size: %s", e->folder, theirs);
    next(e);
    return worst;
}

/* Gradients of the sum of all squares */
static void check_gradient(expected *e)
{
    static float none[MAX_TOKENS * 128];
    int32_t ids[MAX_TOKENS];
    const int64_t n = read_integers(after(e, "gradient"), ids);
    att_encoder *m;
    att_tape *t;
    att_tensor zeros, y;
    next(e);
    const double f32 = strtod(after(e, "error"), NULL);
    next(e);
    need(att_encoder_open_for_training(ctx, e->folder, NULL, &m));
    need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t));
    att_var *x = att_encoder_apply(t, m, ids, (const int64_t[]){0, n}, 1, NULL);
    need(att_var_value(t, x, &y));
    assert_true(y.dim[1] <= 128);
    need(att_wrap(&zeros, none, ATT_F32, ATT_DIMS(n, y.dim[1]), NULL));
    att_var *loss =
        att_mean_squared_error(t, x, att_input(t, &zeros), ATT_OPTIONS(att_mean_squared_error_options, .sum = true));
    need(att_tape_backward(t, loss, NULL));
    while (after(e, "of")) {
        char name[ATT_CHECKPOINT_NAME];
        snprintf(name, sizeof name, "%s", after(e, "of"));
        next(e);
        const double error = compare_gradient(e, m, name);
        e->worst_gradient = fmax(e->worst_gradient, error / f32);
        if (!(error <= 8 * f32))
            fail_msg("%s: the gradient of %s has an error of %g, that of transformers in float32 %g", e->folder, name,
                     error, f32);
    }
    att_tape_free(t);
    att_encoder_free(m);
}

/* Compares tokens, which it frees, with the ids of the next line. */
static void check_ids(expected *e, const char *text, att_tokens *tokens)
{
    int32_t ids[MAX_TOKENS];
    const int64_t n = read_sequence(e, ids);
    if (tokens->count != n || memcmp(tokens->ids, ids, (size_t)n * sizeof *ids) != 0)
        fail_msg("%s: \"%s\" has other ids, %lld of them", e->folder, text, (long long)tokens->count);
    att_tokens_free(ctx, tokens);
}

static void check_text(expected *e, const att_sentence *s)
{
    float y[MAX_TOKENS];
    char text[1000];
    att_tokens tokens;
    att_sentence_info info = {.size = sizeof info};
    need(att_sentence_describe(s, &info));
    snprintf(text, sizeof text, "%s", after(e, "text"));
    next(e);
    need(att_tokenize(att_sentence_tokenizer(s), text, strlen(text), NULL, &tokens));
    check_ids(e, text, &tokens);
    need(att_sentence_embed(s, 1, (const char *const[]){text}, NULL, NULL, y));
    compare(e, "embedding", y, info.dim);
}

static void check_pair(expected *e, const att_sentence *s)
{
    char text[1000];
    att_tokens tokens;
    snprintf(text, sizeof text, "%s", after(e, "pair"));
    const char *between = strstr(text, " | ");
    const size_t first = (size_t)(between - text);
    next(e);
    need(att_tokenize_pair(att_sentence_tokenizer(s), text, first, between + 3, strlen(between + 3), NULL, &tokens));
    check_ids(e, text, &tokens);
}

/* Compares all that expected.txt has. */
static void check_folder(expected *e)
{
    model m = open_model(e->folder, NULL);
    att_sentence *s = NULL;
    while (*e->line)
        if (after(e, "ids"))
            check_states(e, &m);
        else if (after(e, "weights"))
            check_weights(e, &m);
        else if (after(e, "gradient"))
            check_gradient(e);
        else {
            if (!s)
                need(att_sentence_open(ctx, e->folder, NULL, &s));
            (after(e, "text") ? check_text : check_pair)(e, s);
        }
    att_sentence_free(s);
    close_model(&m);
    fclose(e->file);
}

static const char *folder_of(int family)
{
    static char path[64];
    snprintf(path, sizeof path, FOLDERS "%s", families[family]);
    return path;
}

/* ---- tests */

static void each_family_has_the_numbers_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        static expected e;
        open_expected(&e, folder_of(i));
        check_folder(&e);
        /* Both sum in f32, in other orders; expected.txt rounds to 9 digits. */
        if (!(e.worst <= 8 * e.f32 + 1e-8))
            fail_msg("%s: the error is %g, and that of transformers in float32 is %g", families[i], e.worst, e.f32);
    }
}

/* The longest sequence has the last row of the table of positions. */
static void positions_of_a_family_begin_where_its_class_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int64_t first, longest, types;
    } is[FAMILIES] = {{"bert", 0, 16, 2},       {"roberta", 2, 20, 2},    {"xlm-roberta", 2, 18, 2},
                      {"camembert", 2, 16, 2},  {"distilbert", 0, 16, 0}, {"mpnet", 2, 150, 0},
                      {"modernbert", 0, 32, 0}, {"modernbert", 0, 32, 0}, {"nomic_bert", 0, 32, 2},
                      {"gemma3_text", 0, 32, 0}};
    for (int i = 0; i < FAMILIES; i++) {
        model m = open_model(folder_of(i), NULL);
        int32_t ids[MAX_TOKENS];
        assert_string_equal(m.info.type, is[i].type);
        assert_int_equal(m.info.first_position, is[i].first);
        assert_int_equal(m.info.max_positions, is[i].longest);
        assert_int_equal(m.info.types, is[i].types);
        for (int64_t k = 0; k <= is[i].longest; k++)
            ids[k] = 5;
        apply(&m, ids, NULL, is[i].longest);
        att_tensor y;
        const int64_t offsets[] = {0, is[i].longest + 1};
        assert_null(att_encoder_apply(m.tape, m.encoder, ids, offsets, 1, NULL));
        assert_int_equal(att_var_value(m.tape, NULL, &y), ATT_ERR_ARGUMENT);
        check_message(ctx, "positions");
        close_model(&m);
    }
}

/* Positions that are given have the bits of the same that are counted; padding in a text keeps its own. */
static void positions_are_counted_as_fairseq_does(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 5, 1, 6, 1, 2};
    static const int64_t as_roberta[] = {2, 3, 1, 4, 1, 5}, as_bert[] = {0, 1, 2, 3, 4, 5}, offsets[] = {0, 6};
    for (int i = 0; i < FAMILIES; i++) {
        model m = open_model(folder_of(i), NULL);
        att_tensor counted, given;
        const int64_t *at = m.info.first_position ? as_roberta : as_bert;
        need(att_var_value(m.tape, att_encoder_apply(m.tape, m.encoder, ids, offsets, 1, NULL), &counted));
        need(att_var_value(
            m.tape,
            att_encoder_apply(m.tape, m.encoder, ids, offsets, 1, ATT_OPTIONS(att_encoder_options, .position_ids = at)),
            &given));
        assert_memory_equal(counted.data, given.data, (size_t)(6 * m.info.hidden) * sizeof(float));
        close_model(&m);
    }
}

/* The states of a sequence do not depend on the others of a call. */
static void a_sequence_alone_has_the_bits_it_has_in_a_batch(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 7, 2, 0, 5, 6, 7, 8, 2};
    static const int64_t offsets[] = {0, 3, 9};
    for (int i = 0; i < FAMILIES; i++) {
        model m = open_model(folder_of(i), NULL);
        float batch[9 * 32];
        att_tensor y;
        need(att_var_value(m.tape, att_encoder_apply(m.tape, m.encoder, ids, offsets, 2, NULL), &y));
        memcpy(batch, y.data, (size_t)(9 * m.info.hidden) * sizeof *batch);
        for (int b = 0; b < 2; b++) {
            const int64_t n = offsets[b + 1] - offsets[b];
            assert_memory_equal(apply(&m, ids + offsets[b], NULL, n), batch + offsets[b] * m.info.hidden,
                                (size_t)(n * m.info.hidden) * sizeof *batch);
        }
        close_model(&m);
    }
}

/* Rows of hidden states have norm 1 to 10; a number in int8 has an error of at most 1 / 254 of the largest in its
 * block.
 */
static void int8_weights_give_nearly_the_same(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 7, 5, 6, 7, 8, 2};
    for (int i = 0; i < FAMILIES; i++) {
        model m = open_model(folder_of(i), NULL);
        if (m.info.hidden % 32 == 0) {
            model q = open_model(folder_of(i), ATT_OPTIONS(att_model_options, .weights = ATT_WEIGHT_TYPE_INT8));
            const float *x = apply(&m, ids, NULL, 7), *y = apply(&q, ids, NULL, 7);
            double difference = 0, all = 0;
            for (int64_t k = 0; k < 7 * m.info.hidden; k++) {
                difference += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
                all += (double)x[k] * (double)x[k];
            }
            assert_true(difference > 0 && sqrt(difference / all) < 0.05);
            close_model(&q);
        }
        close_model(&m);
    }
}

/* transformers computes in this type, whatever the weights have. */
static void check_dtype(const test_folder *f, const char *dtype)
{
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", f->path);
    json_t *settings = json_load_file(path, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(settings, "dtype")), dtype);
    assert_true(json_is_integer(json_object_get(settings, "vocab_size")));
    json_decref(settings);
}

/* A model that was opened for training and written is the same folder with weights in f32. */
static void a_model_is_written_in_the_format_that_it_was_read_in(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 7, 5, 6, 7, 8, 2};
    for (int i = 0; i < FAMILIES; i++) {
        const test_folder f = folder_new();
        att_sentence *s;
        need(att_sentence_open_for_training(ctx, folder_of(i), NULL, &s));
        need(att_sentence_write(s, f.path, ATT_F32));
        att_sentence_free(s);
        check_dtype(&f, "float32");
        model read = open_model(folder_of(i), NULL), written = open_model(f.path, NULL);
        assert_string_equal(written.info.type, read.info.type);
        assert_memory_equal(apply(&read, ids, NULL, 7), apply(&written, ids, NULL, 7),
                            (size_t)(7 * read.info.hidden) * sizeof(float));
        need(att_sentence_open(ctx, f.path, NULL, &s)); /* with its tokenizer */
        att_sentence_free(s);
        close_model(&read);
        close_model(&written);
        folder_remove(&f);
    }
}

static int print_errors(int n, char **folders)
{
    int wrong = 0;
    open_context(NULL);
    for (int i = 0; i < n; i++) {
        static expected e;
        open_expected(&e, folders[i]);
        check_folder(&e);
        printf("%s %.3g %.3g %.3g\n", folders[i], e.worst, e.f32, e.worst_gradient);
        wrong += !(e.worst <= 8 * e.f32 + 1e-8);
    }
    close_context(NULL);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_has_the_numbers_of_transformers),
        cmocka_unit_test(positions_of_a_family_begin_where_its_class_has_them),
        cmocka_unit_test(positions_are_counted_as_fairseq_does),
        cmocka_unit_test(a_sequence_alone_has_the_bits_it_has_in_a_batch),
        cmocka_unit_test(int8_weights_give_nearly_the_same),
        cmocka_unit_test(a_model_is_written_in_the_format_that_it_was_read_in),
    };
    return argc > 1 ? print_errors(argc - 1, argv + 1) : cmocka_run_group_tests(tests, open_context, close_context);
}
