/* Valid arguments for each public function, found by the parameter's type and name: for tests/model/null.c. */
#ifndef NULL_FIXTURES_H
#define NULL_FIXTURES_H

#include "check.h"
#include "attend_extend.h"
#include "attend_language.h"
#include "attend_util.h"
#include "language_fixtures.h"
#include "interactions_fixtures.h"
#include "recommend_fixtures.h"
#include "vision_fixtures.h"
#include "nn_fixtures.h"
#include "tiny_bert.h"
#include "tiny_gguf.h"
#include "tiny_marian.h"
#include "toy_texts.h"

/* "function.name", "type name" or "type", the first that there is; what it points to is the argument where that is a
 * pointer, and holds it where it is a value. */
typedef struct fixture {
    const char *of;
    const void *value;
} fixture;

static const int64_t two_offsets[] = {0, 2}, zeros[] = {0, 0}, ones[] = {1};
static const uint32_t ids[] = {0};
static const char *const texts[] = {"a b", "a b"};
static const size_t bytes_of_texts[] = {3, 3};
static const double scores[] = {1};
static const att_schedule rates = {.size = sizeof rates, .max_rate = 0.01};
static const att_loss_options learning = {.dropout = 0.1f, .sequence_ids = ids, .count = &(int64_t){0}};
static void body(void *arg, int i) { (void)arg, (void)i; }
static void progress(void *user, double share) { (void)user, (void)share; }
static void each(void *user, const char *name) { (void)user, (void)name; }
static att_var *apply(const void *user, att_tape *t, att_var *const *x) { return (void)user, att_scale(t, x[0], 2); }

static att_status twice(const void *user, const att_tensor *x, const att_tensor *y)
{
    (void)user;
    for (int i = 0; i < 4; i++)
        ((float *)y->data)[i] = 2 * ((float *)x->data)[i];
    return ATT_OK;
}
static att_status twice_back(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                             const att_tensor *dx)
{
    (void)user, (void)x, (void)y;
    for (int i = 0; dx->data && i < 4; i++)
        ((float *)dx->data)[i] += 2 * ((float *)dy->data)[i];
    return ATT_OK;
}

static const fixture constants[] = {
    {"att_status", &(att_status){ATT_OK}},
    {"att_dtype", &(att_dtype){ATT_F32}},
    {"att_activation", &(att_activation){ATT_TANH}},
    {"att_pooling", &(att_pooling){ATT_POOL_MEAN}},
    {"att_bleu_tokenizer", &(att_bleu_tokenizer){ATT_BLEU_13A}},
    {"bool", &(bool){false}},
    {"int dim", &(int){0}},
    {"int dim0", &(int){0}},
    {"int dim1", &(int){-1}},
    {"int rank", &(int){2}},
    {"int n", &(int){1}},
    {"int k", &(int){0}},
    {"int32_t id", &(int32_t){1}},
    {"int64_t", &(int64_t){0}},
    {"int64_t n", &(int64_t){1}},
    {"att_cache_append.sequence", &(int64_t){ATT_ALL_SEQUENCES}},
    {"int64_t count", &(int64_t){2}},
    {"int64_t sequences", &(int64_t){1}},
    {"int64_t q_count", &(int64_t){1}},
    {"int64_t heads", &(int64_t){1}},
    {"int64_t step", &(int64_t){1}},
    {"att_training_write.n", &(int64_t){0}},
    {"att_translate_alignment.layer", &(int64_t){-1}},
    {"size_t", &(size_t){3}}, /* of "a b" */
    {"att_require.n", &(size_t){1}},
    {"att_tape_require.n", &(size_t){1}},
    {"size_t user_bytes", &(size_t){1}},
    {"uint64_t", &(uint64_t){1}},
    {"double", &(double){0.01}},
    {"float", &(float){0.5f}},
    {"att_take_options.dst_size", &(size_t){sizeof(att_config)}},
    {"att_give_info.src_size", &(size_t){sizeof(att_bert_info)}},
    {"void (*)(void *arg, int i) body", &(void (*)(void *, int)){body}},
    {"void (*)(void *user, const char *name) each", &(void (*)(void *, const char *)){each}},
    {"const att_function *", &(const att_function){sizeof(att_function), "twice", twice, twice_back}},
    {"att_recompute_fn apply", &(att_recompute_fn){apply}},
    {"const void *", "a b"},
    {"const char *", "a b"},
    {"const char *type_name", "att_config"},
    {"att_model_find.name", "/"},
    {"const char *path", "written"}, /* what is written lies in the folder of its process */
    {"const char *folder", "written"},
    {"const char *const *", (const char *const[]){"a b"}},
    {"att_cider.references", texts},
    {"att_mean_interval.x", scores},
    {"const char **", (const char *[]){NULL}},
    {"const size_t *", (const size_t[]){3}},
    {"const int32_t *", (const int32_t[]){1, 0}},
    {"att_embedding_dot.ids", (const int32_t[]){1, 0, 0, 1}},
    {"const int64_t *offsets", two_offsets},
    {"const int64_t *source_offsets", two_offsets},
    {"const int64_t *from", (const int64_t[]){0}},
    {"const int64_t *dim", (const int64_t[]){2, 2}},
    {"const int64_t *stride", (const int64_t[]){2, 1}},
    {"const uint32_t *counter", (const uint32_t[4]){0}},
    {"const uint32_t *sequence_ids", (const uint32_t[]){0}},
    {"uint32_t *", (uint32_t[4]){0}},
    {"const float *", (const float[]){0, 1, 1, 0}},
    {"float *", (float[64]){0}},
    {"double *", (double[8]){0}},
    {"bool *", &(bool){false}},
    {"att_interactions_time.text", "1997-09-20"},
    {"int64_t *", (int64_t[8]){0}},
    {"void *data", (float[4]){0}},
    {"void *arg", (char[1]){0}},
    {"void *user", (char[1]){0}},
    {"att_take_options.dst", &(att_config){0}},
    {"att_give_info.dst", &(att_bert_info){.size = sizeof(att_bert_info)}},
    {"att_take_options.src", &(const att_config){.size = sizeof(att_config)}},
    {"att_give_info.src", &(const att_bert_info){.size = sizeof(att_bert_info)}},
    {"const att_named *", &(const att_named){"a b", "a b"}},
    {"const att_config *", &(const att_config){.size = sizeof(att_config), .n_threads = 1}},
    {"const att_tape_config *", &(const att_tape_config){.size = sizeof(att_tape_config)}},
    {"const att_excluded_columns *", &(const att_excluded_columns){.column = (const int32_t[]){0}, .n = 1}},
    {"const att_positions *",
     &(const att_positions){sizeof(att_positions), NULL, two_offsets, 1, (const int64_t[]){0}}},
    {"const att_model_options *", &(const att_model_options){.size = sizeof(att_model_options)}},
    {"const att_sinusoidal_options *", &(const att_sinusoidal_options){.size = sizeof(att_sinusoidal_options)}},
    {"const att_rotary_options *",
     &(const att_rotary_options){.size = sizeof(att_rotary_options), .frequencies = (const double[]){1}}},
    {"const att_attend_params *", &(const att_attend_params){.size = sizeof(att_attend_params)}},
    {"const att_cross_entropy_options *",
     &(const att_cross_entropy_options){.size = sizeof(att_cross_entropy_options), .count = &(int64_t){0}}},
    {"const att_conv_options *", &(const att_conv_options){.size = sizeof(att_conv_options)}},
    {"const att_batch_norm_options *", &(const att_batch_norm_options){.size = sizeof(att_batch_norm_options)}},
    {"const att_resize_options *", &(const att_resize_options){.size = sizeof(att_resize_options), .out = {3, 1}}},
    {"const att_pool_options *", &(const att_pool_options){.size = sizeof(att_pool_options), .kernel = {1, 1}}},
    {"const att_optimizer_config *", &(const att_optimizer_config){.size = sizeof(att_optimizer_config)}},
    {"const att_param_options *", &(const att_param_options){.size = sizeof(att_param_options),
                                                             .frozen_rows = (const int64_t[]){0},
                                                             .n_frozen_rows = 1}},
    {"const att_update *", &(const att_update){.size = sizeof(att_update), .rate = 0.1}},
    {"const att_schedule *", &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1}},
    {"const att_safetensors_options *",
     &(const att_safetensors_options){sizeof(att_safetensors_options), 0, (const char *const[]){"a b", "pt"}, 1}},
    {"const att_encode_options *", &(const att_encode_options){.size = sizeof(att_encode_options)}},
    {"const att_vocab_options *", &(const att_vocab_options){.size = sizeof(att_vocab_options),
                                                             .pieces = 70,
                                                             .symbols = (const char *const[]){"@"},
                                                             .n_symbols = 1,
                                                             .control = (const char *const[]){"<pad>"},
                                                             .n_control = 1,
                                                             .progress = progress}},
    {"const att_sequence_pairs *",
     &(const att_sequence_pairs){1, (const int32_t[]){1, 0}, two_offsets, (const int32_t[]){1, 0}, two_offsets}},
    {"const att_loss_options *", &learning},
    {"const att_encoder_decoder_write_options *",
     &(const att_encoder_decoder_write_options){.size = sizeof(att_encoder_decoder_write_options)}},
    {"const att_translate_options *",
     &(const att_translate_options){.size = sizeof(att_translate_options), .length_penalty = &(const float){1}}},
    {"const att_bleu_counts *", &(const att_bleu_counts){0}},
    {"const att_bleu_resampling *", &(const att_bleu_resampling){.size = sizeof(att_bleu_resampling), .resamples = 3}},
    /* What a call writes: a constant suffices, as each call is in a process of its own. */
    {"att_recurrent_state *", &(att_recurrent_state){0}},
    {"att_top_column *", (att_top_column[2]){[0] = {.column = 0}}},
    {"att_tensor *", &(att_tensor){0}},
    {"att_tokens *", &(att_tokens){0}},
    {"att_text *", &(att_text){0}},
    {"att_text_start *", &(att_text_start){.size = sizeof(att_text_start)}},
    {"const att_table_options *", &(const att_table_options){.size = sizeof(att_table_options)}},
    {"att_table_record *", &(att_table_record){.size = sizeof(att_table_record)}},
    {"att_table_info *", &(att_table_info){.size = sizeof(att_table_info)}},
    {"att_model_path *", &(att_model_path){""}},
    {"att_attention_map *", &(att_attention_map){.weights = NULL}},
    {"att_translation *", (att_translation[4]){[0] = {.score = 0}}},
    {"att_alignment *", &(att_alignment){.weights = NULL}},
    {"att_bleu_counts *", &(att_bleu_counts){0}},
    {"att_interval *", &(att_interval){0}},
    {"att_plan_info *", &(att_plan_info){.size = sizeof(att_plan_info)}},
    {"att_vocab_result *", &(att_vocab_result){.size = sizeof(att_vocab_result)}},
    {"att_bert_info *", &(att_bert_info){.size = sizeof(att_bert_info)}},
    {"att_sentence_info *", &(att_sentence_info){.size = sizeof(att_sentence_info)}},
    {"att_encoder_decoder_info *", &(att_encoder_decoder_info){.size = sizeof(att_encoder_decoder_info)}},
    {"att_model_weights *", &(att_model_weights){.size = sizeof(att_model_weights)}},
    {"att_language_model_info *", &(att_language_model_info){.size = sizeof(att_language_model_info)}},
    {"att_transformer_info *", &(att_transformer_info){.size = sizeof(att_transformer_info)}},
    {"att_seq2seq_config *", &(att_seq2seq_config){.size = sizeof(att_seq2seq_config)}},
    {"att_training_report *", &(att_training_report){.size = sizeof(att_training_report)}},
    {"const att_gguf_options *", &(const att_gguf_options){.size = sizeof(att_gguf_options)}},
    {"const bool *", (bool[64]){false}},
    {"att_training_info *", &(att_training_info){.size = sizeof(att_training_info)}},
    {"att_sampling *", &(att_sampling){.size = sizeof(att_sampling)}},
    {"att_generated *", &(att_generated){.end = 0}},
    {"const att_generate_options *",
     &(const att_generate_options){.size = sizeof(att_generate_options),
                                   .max_tokens = 2,
                                   .stop = (const char *const[]){"a"},
                                   .n_stop = 1,
                                   .sampling = &(const att_sampling){.size = sizeof(att_sampling)}}},
    {"att_bleu_info *", &(att_bleu_info){.size = sizeof(att_bleu_info)}},
};

/* ---- those that are made */

enum { MOST_FIXTURES = 500 };
static fixture fixtures[MOST_FIXTURES];
static int n_fixtures;
static test_folder made;
static att_ctx *ctx;

static void give(const char *of, const void *value)
{
    assert_true(n_fixtures < MOST_FIXTURES);
    fixtures[n_fixtures++] = (fixture){of, value};
}

static void need(att_status s)
{
    if (s)
        fail_msg("a fixture: %s", att_error(ctx));
}

static const char *path_in_made(const char *name)
{
    static char path[16][128];
    static int n;
    assert_true(n < 16);
    snprintf(path[n], sizeof path[n], "%s/%s", made.path, name);
    return path[n++];
}

/* Of f32, with numbers of its own. Fixtures stay until the program ends, as what they are of does. */
static const att_tensor *numbers(int rank, const int64_t *dim)
{
    static float data[80][16];
    static att_tensor tensor[80];
    static int n;
    assert_true(n < 80);
    check_fill(data[n], 16, (uint64_t)n, 0, 1);
    need(att_wrap(&tensor[n], data[n], ATT_F32, rank, dim, NULL));
    return &tensor[n++];
}
#define NUMBERS(...) numbers(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void give_tensors(void)
{
    static const char *const square[] = {"const att_tensor *", "const att_tensor *a", "const att_tensor *b",
                                         "const att_tensor *out", "const att_tensor *out2"};
    for (size_t i = 0; i < sizeof square / sizeof square[0]; i++)
        give(square[i], NUMBERS(2, 2));
    give("const att_tensor *lse", NUMBERS(2));
    give("const att_tensor *running_mean", NUMBERS(2));
    give("const att_tensor *running_var", NUMBERS(2));
    give("const att_tensor *lse2", NUMBERS(2));
    give("const att_tensor *k", NUMBERS(1, 1, 1, 2));
    give("const att_tensor *v", NUMBERS(1, 1, 1, 2));
    give("att_cache_append_ragged.k", NUMBERS(2, 1, 2));
    give("att_cache_append_ragged.v", NUMBERS(2, 1, 2));
}

/* A plan and a call that need all arrays: ragged, with positions and dropout. A batched one has lengths instead. */
static void give_attention(void)
{
    static att_attention_spec spec = {.size = sizeof spec,
                                      .heads = 1,
                                      .head_dim = 2,
                                      .align = ATT_ALIGN_STARTS,
                                      .dropout = 0.1f},
                              plain = {.size = sizeof plain, .heads = 1, .head_dim = 2};
    static att_attention_args others = {.size = sizeof others,
                                        .n_sequences = 1,
                                        .q_offsets = two_offsets,
                                        .k_offsets = two_offsets,
                                        .q_starts = zeros,
                                        .sequence_ids = ids},
                              args, batched, cached = {.size = sizeof cached};
    static att_attention_grads grads = {.size = sizeof grads};
    static att_plan *plan, *plain_plan;
    static att_cache *cache;
    static att_stage causal;
    causal.mask = att_mask_causal;
    spec.stage = &causal;
    spec.n_stages = 1;
    spec.score = att_score_dot;
    args = others;
    args.q = *NUMBERS(2, 1, 2), args.k = *NUMBERS(2, 1, 2), args.v = *NUMBERS(2, 1, 2), args.out = *NUMBERS(2, 1, 2);
    args.lse = *NUMBERS(2, 1);
    batched = (att_attention_args){.size = sizeof batched,
                                   .q = *NUMBERS(1, 1, 2, 2),
                                   .k = *NUMBERS(1, 1, 2, 2),
                                   .v = *NUMBERS(1, 1, 2, 2),
                                   .out = *NUMBERS(1, 1, 2, 2),
                                   .q_lengths = ones,
                                   .k_lengths = ones};
    grads.dout = *NUMBERS(2, 1, 2), grads.dq = *NUMBERS(2, 1, 2);
    need(att_plan_new(ctx, &spec, &plan));
    need(att_plan_new(ctx, &plain, &plain_plan));
    need(att_forward(plan, &args));
    need(att_cache_new(plain_plan, 1, &cache));
    give("const att_attention_spec *", &spec);
    give("att_attention.spec", &plain);
    give("att_verify.spec", &plain);
    give("const att_attention_args *", &args);
    give("att_attention.args", &batched);
    give("att_attend.args", &others);
    give("att_attend_cached.args", &cached);
    give("const att_attention_grads *", &grads);
    give("const att_plan *", plan);
    give("att_plan *", plan);
    give("att_cache_new.plan", plain_plan);
    give_nn_layers(ctx, give_nn_configs(plain_plan));
    give("att_attend_cached.plan", plain_plan);
    give("att_cache *", cache);
    give("const att_cache *", cache);
}

static att_param *param_of(const att_tensor *value)
{
    att_param *p;
    need(att_param_new(ctx, value, &p));
    return p;
}

static void give_params(void)
{
    static const char *const vectors[] = {"att_param *bias", "att_param *gamma", "att_param *beta"};
    static att_recurrent gru = {.size = sizeof gru}, lstm = {.size = sizeof lstm};
    att_param *p = param_of(NUMBERS(2, 2));
    give("att_param *", p);
    give("const att_param *", p);
    give("att_optimizer_add.param", param_of(NUMBERS(2, 2)));
    for (size_t i = 0; i < 3; i++)
        give(vectors[i], param_of(NUMBERS(2)));
    give("att_conv2d.weight", param_of(NUMBERS(1, 1, 1, 1)));
    give("att_conv2d.bias", param_of(NUMBERS(1)));
    gru.weight_ih = param_of(NUMBERS(6, 2)), gru.weight_hh = param_of(NUMBERS(6, 2));
    gru.bias_ih = param_of(NUMBERS(6)), gru.bias_hh = param_of(NUMBERS(6));
    lstm.weight_ih = param_of(NUMBERS(8, 2)), lstm.weight_hh = param_of(NUMBERS(8, 2));
    lstm.bias_ih = param_of(NUMBERS(8)), lstm.bias_hh = param_of(NUMBERS(8));
    give("att_gru.options", &gru);
    give("att_lstm.options", &lstm);
    att_tape *t; /* an optimizer that may step: with a gradient */
    att_optimizer *o;
    need(att_optimizer_new(ctx, NULL, &o));
    need(att_optimizer_add(o, p, NULL));
    need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t));
    need(att_tape_backward(t, att_parameter(t, p), NULL));
    att_tape_free(t);
    give("att_optimizer *", o);
}

/* A tape that records, with a scope that is open; one that does not; and one with gradients. */
static void give_tapes(void)
{
    static att_tape *t, *plain, *done;
    static att_var *x[1];
    static att_scope scope;
    const att_tape_config *record = ATT_OPTIONS(att_tape_config, .record = true);
    need(att_tape_new(ctx, record, &t));
    need(att_tape_new(ctx, NULL, &plain));
    need(att_tape_new(ctx, record, &done));
    att_var *inside = att_input(done, NUMBERS(2, 2));
    need(att_tape_backward(done, att_scale(done, inside, 2), NULL));
    x[0] = att_input(t, NUMBERS(2, 2));
    scope = att_scope_begin(t, "scope");
    give("att_tape *", t);
    give("const att_tape *", t);
    give("att_var_grad.t", done);
    give("att_var_grad.v", inside);
    give("att_attend_cached.t", plain);
    give("att_scope", &scope);
    give("att_var *", x[0]);
    give("const att_var *", att_scale(t, x[0], 2));
    give("att_var *const *", x);
    give("att_merge_heads.x", att_input(t, NUMBERS(2, 1, 2)));
    give("att_rotary.x", att_input(t, NUMBERS(2, 1, 2)));
    give("att_conv2d.x", att_input(t, NUMBERS(1, 2, 2, 1)));
    give("att_resize.x", att_input(t, NUMBERS(1, 2, 2, 1)));
    give("att_pool2d.x", att_input(t, NUMBERS(1, 2, 2, 1)));
    static const char *const heads[] = {"att_var *q", "att_var *k", "att_var *v"};
    static const char *const new_token[] = {"att_attend_cached.q", "att_attend_cached.k", "att_attend_cached.v"};
    for (int i = 0; i < 3; i++) {
        give(heads[i], att_input(t, NUMBERS(2, 1, 2)));
        give(new_token[i], att_input(plain, NUMBERS(1, 1, 2)));
    }
    give("att_retain_grad.v", x[0]);
    give("att_nn_conv_apply.x", att_input(t, NUMBERS(1, 2, 2, 1)));
    give_nn_calls(x[0], two_offsets, ids);
}

/* ---- models: folders of tiny ones, and what is opened of them */

static void give_text(const char *bert_folder)
{
    static att_tokens tokens;
    static att_text text;
    static att_vocab *vocab[2]; /* the first for the content of a file, the other stays open */
    static att_vocab_result learnt = {.size = sizeof learnt};
    static att_marian_tokenizer_files marian = {
        .size = sizeof marian, .source_language = "de", .target_language = "en"};
    att_tokenizer *t, *wordpiece;
    need(att_tokenizer_open(ctx, made.path, &t));
    need(att_tokenizer_open(ctx, bert_folder, &wordpiece));
    need(att_encode(t, "a b", 3, NULL, &tokens));
    need(att_detokenize(t, tokens.ids, tokens.count, &text));
    for (int i = 0; i < 2; i++) {
        need(att_vocab_new(ctx, ATT_OPTIONS(att_vocab_options, .pieces = 9), &vocab[i]));
        need(att_vocab_add(vocab[i], "a b ab ab", 9));
        if (i == 0)
            need(att_vocab_learn(vocab[i], &learnt));
    }
    marian.source = marian.target = learnt.model;
    marian.source_bytes = marian.target_bytes = learnt.bytes;
    give("att_tokenizer_open.path", bert_folder);
    give("const att_tokenizer *", t);
    give("att_encode.t", wordpiece);
    give("att_tokenizer *", t);
    give("att_tokens_free.tokens", &tokens);
    give("att_text_free.text", &text);
    give("att_vocab *", vocab[1]);
    give("const att_marian_tokenizer_files *", &marian);
}

static void give_safetensors(void)
{
    static char data[4096];
    const char *path = path_in_made("a.safetensors");
    att_safetensors *f;
    need(att_safetensors_write(
        ctx, path, 1, (const char *const[]){"a b"}, NUMBERS(2, 2),
        ATT_OPTIONS(att_safetensors_options, .metadata = (const char *const[]){"a b", "pt"}, .n_metadata = 1)));
    need(att_safetensors_open(ctx, path, &f));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static size_t bytes;
    bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    give("att_safetensors_open.path", path);
    static int opened;
    give("att_open_text.path", path);
    give_tables(ctx, path_in_made("a.csv"));
    give("att_open_text.file", &opened);
    give("att_safetensors_load.file", f);
    give("att_safetensors_from_memory.data", data);
    give("att_safetensors_from_memory.bytes", &bytes);
    give("const att_tensor *tensors", NUMBERS(2, 2));
    give("att_safetensors *", f);
    give("const att_safetensors *", f);
}

static void give_bert(const char *folder)
{
    static att_sentence_training_options options = {.size = sizeof options,
                                                    .pairs = 1,
                                                    .texts = texts,
                                                    .bytes = bytes_of_texts,
                                                    .scores = scores,
                                                    .schedule = &rates};
    static att_sentence_training_options in_folder;
    att_bert *bert;
    att_sentence *sentence;
    att_training *t;
    in_folder = options;
    in_folder.model = folder;
    need(att_bert_open_for_training(ctx, folder, &bert));
    need(att_sentence_open_for_training(ctx, folder, &sentence));
    need(att_sentence_training_open(ctx, path_in_made("learns"), &in_folder, &t));
    need(att_training_save(t));
    static const char *const folders[] = {
        "att_bert_open.folder",     "att_bert_open_with.folder",     "att_bert_open_for_training.folder",
        "att_sentence_open.folder", "att_sentence_open_with.folder", "att_sentence_open_for_training.folder"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        give(folders[i], folder);
    give("const att_bert *", bert);
    give("att_bert *", bert);
    give("const att_sentence *", sentence);
    give("att_sentence *", sentence);
    give("att_sentence_training_new.options", &options);
    give("const att_sentence_training_options *", &in_folder);
    give("att_training_sentence.t", t);
    give("att_training_keep_best.t", t);
    give("att_training_keep_first.t", t);
    static att_attention_map map;
    need(att_sentence_attention(sentence, "a b", 3, 0, 0, &map));
    give("att_attention_map_free.map", &map);
}

static void give_translation(void)
{
    static att_translation translation;
    static att_alignment alignment;
    att_translator *m;
    need(att_translator_open(ctx, made.path, &m));
    need(att_translate(m, 1, (const char *const[]){"a b"}, NULL, NULL, &translation));
    need(att_translate_alignment(m, "a b", 3, (const int32_t[]){1}, 1, -1, -1, &alignment));
    give("const att_translator *", m);
    give("att_translator *", m);
    give("att_translator_open.folder", made.path);
    give("att_translator_open_with.folder", made.path);
    give("att_translation_free.t", &translation);
    give("att_alignment_free.a", &alignment);
}

static void give_encoder_decoders(void)
{
    static att_seq2seq_config config = {.size = sizeof config,
                                        .source_vocabulary = 5,
                                        .target_vocabulary = 5,
                                        .embedding = 2,
                                        .units = 2,
                                        .layers = 1,
                                        .max_positions = 8,
                                        .pad = 4,
                                        .start = 4};
    const char *folder = path_in_made("rnn");
    att_transformer *transformer;
    att_seq2seq *rnn;
    att_tape *t;
    need(att_transformer_open_for_training(ctx, made.path, &transformer));
    need(att_seq2seq_new(ctx, &config, 1, &rnn));
    need(att_encoder_decoder_write(att_seq2seq_as_encoder_decoder(rnn), folder, NULL));
    need(att_tape_new(ctx, NULL, &t));
    give("att_transformer_open.folder", made.path);
    give("att_transformer_open_for_training.folder", made.path);
    give("att_seq2seq_open.folder", folder);
    give("att_seq2seq_open_for_training.folder", folder);
    give("const att_seq2seq_config *", &config);
    give("const att_seq2seq *", rnn);
    give("att_seq2seq *", rnn);
    give("const att_transformer *", transformer);
    give("att_transformer *", transformer);
    give("const att_encoder_decoder *", att_transformer_as_encoder_decoder(transformer));
    give("att_encoder_decoder *", att_transformer_as_encoder_decoder(transformer));
    give("att_transformer_decode.t", t);
    give("att_transformer_decode.source",
         att_transformer_encode(t, transformer, (const int32_t[]){1, 0}, two_offsets, 1));
}

/* A training of tiny files, in memory, and one in a folder. */
static void give_trainings(void)
{
    static att_translator_training_options options = {
        .size = sizeof options, .max_tokens = 8, .dropout = 0.1f, .schedule = &rates};
    static att_translator_training_options in_folder;
    att_training *t;
    toy_write(&made, "train.de", "train.en", 1, 40);
    options.source = options.valid_source = path_in_made("train.de");
    options.target = options.valid_target = path_in_made("train.en");
    in_folder = options;
    in_folder.vocabulary = 70;
    in_folder.settings = "{\"d_model\": 16, \"encoder_layers\": 1, \"decoder_layers\": 1, \"encoder_ffn_dim\": 32, "
                         "\"decoder_ffn_dim\": 32, \"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2}";
    need(att_translator_training_open(ctx, path_in_made("training"), &in_folder, &t));
    need(att_training_save(t)); /* or att_training_free removes the folder */
    give("att_translator_training_new.options", &options);
    give("const att_translator_training_options *", &in_folder);
    give("const att_training *", t);
    give("att_training *", t);
}

static int make_fixtures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        give(constants[i].of, constants[i].value);
    ctx = check_open(NULL, 1); /* threads would not be in the processes of the calls */
    give("att_ctx *", ctx);
    give("const att_ctx *", ctx);
    made = folder_new();
    write_translator(ctx, &made);
    static test_folder bert;
    bert = tiny_sentence();
    give_tensors();
    give_attention();
    give_params();
    give_tapes();
    give("att_free.p", att_alloc(ctx, 1, 1));
    give_text(bert.path);
    give_safetensors();
    give_bert(bert.path);
    give_translation();
    give_encoder_decoders();
    give_language_model(ctx);
    give_vision(ctx, &rates);
    give_interactions(ctx);
    give_recommendation(ctx, &rates);
    give_trainings();
    return 0;
}

#endif
