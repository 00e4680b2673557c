/* The shipped translator, layer by layer with its own weights: sizes, sublayers, the effect of each part,
 * projection. */
#include "block.h"

#include "attend_util.h"
#include "cli/base/command.h"
#include "cli/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 12, MAX_TOKENS = 32 };
/* The part that a variant of the model lacks. */
enum { NOTHING, FEED_FORWARD, SELF_ATTENTION, CROSS_ATTENTION, RESIDUAL, NORM, VARIANTS };

typedef struct translator_chapter {
    att_transformer *model;
    att_transformer_info info;
    att_encoder_decoder_info ids; /* of special tokens */
    att_tokenizer *tokenizer;
    att_safetensors *file;
    att_nn_params *params;
    att_tape *tape;
    const att_nn_embedding *embedding;
    att_nn_linear projection; /* to logits */
    const att_nn_encoder_layer *encoder[MAX_LAYERS];
    const att_nn_decoder_layer *decoder[MAX_LAYERS];
    att_tokens source;
    int32_t reads[MAX_TOKENS + 1], writes[MAX_TOKENS]; /* [rows]: the decoder's input, and the translation */
    int64_t rows;
    int lacks; /* one of the variants */
} translator_chapter;

/* ---- weights */

/* Loads the parameter of a layer by its name in the file, which is that of the class MarianMTModel. */
static att_status load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    static const char *const names[][2] = {
        {"feed_forward_norm", "final_layer_norm"},
        {"feed_forward.inner", "fc1"},
        {"feed_forward.outer", "fc2"},
        {"attention_norm", "self_attn_layer_norm"},
        {"attention.query", "self_attn.q_proj"},
        {"attention.key", "self_attn.k_proj"},
        {"attention.value", "self_attn.v_proj"},
        {"attention.output", "self_attn.out_proj"},
        {"cross_norm", "encoder_attn_layer_norm"},
        {"cross.query", "encoder_attn.q_proj"},
        {"cross.key", "encoder_attn.k_proj"},
        {"cross.value", "encoder_attn.v_proj"},
        {"cross.output", "encoder_attn.out_proj"},
        {"logits.bias", "final_logits_bias"},
    };
    char theirs[128];
    snprintf(theirs, sizeof theirs, "%s", name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(name, names[i][0]);
        if (!found)
            continue;
        snprintf(theirs, sizeof theirs, "%.*s%s%s", (int)(found - name), name, names[i][1],
                 found + strlen(names[i][0]));
        break;
    }
    return att_safetensors_load(user, theirs, rank, dim, value);
}

static void make_layers(page *p, translator_chapter *l)
{
    const att_transformer_info *m = &l->info;
    att_ctx *ctx = p->ctx;
    att_safetensors *file = l->file;
    att_nn_params *params = NULL;
    const att_nn_encoder_layer **encoder = l->encoder;
    page_step(p, (text){"Its layers", "モデルの層"});
    page_print(p, (text){"A layer requests its parameters by name, and load finds them in the file, where W_1 of the "
                         "first layer, for example, is model.encoder.layers.0.fc1.weight. Those of the decoder are "
                         "found in the same way:",
                         "層はパラメータを名前で要求し、loadがファイルの中から見つけます。たとえば最初の層のW_1は、"
                         "model.encoder.layers.0.fc1.weightです。デコーダの層も同様です。"});
    CALL(p, att_nn_params_new(ctx, ATT_OPTIONS(att_nn_params_config, .load = load, .user = file), &params));
    l->params = params;
    if (p->status != ATT_OK)
        return;
    const att_nn_layer_config c = {
        .size = sizeof c, .width = m->hidden, .heads = m->encoder_heads, .intermediate = m->encoder_intermediate};
    LOOP(
        p, for (int64_t i = 0; i < m->encoder_layers; i++) {
            const att_nn_name name = att_nn_number("model.encoder.layers", i);
            encoder[i] = att_nn_encoder_layer_new(params, name.text, &c);
        });
    for (int64_t i = 0; i < m->decoder_layers; i++)
        l->decoder[i] = att_nn_decoder_layer_new(params, att_nn_number("model.decoder.layers", i).text, &c);
    l->embedding = att_nn_embedding_new(params, "model.shared", m->source_vocabulary, m->hidden);
    l->projection.bias = att_nn_params_request(params, "logits", "bias", 1, &m->target_vocabulary, NULL);
    p->status = att_nn_params_status(params);
    if (p->status == ATT_OK)
        l->projection.weight = l->embedding->weight;
}

static void open_model(page *p, translator_chapter *l, const char *folder)
{
    char path[sizeof(att_model_path) + sizeof "/model.safetensors"];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    p->status = att_transformer_open(p->ctx, folder, NULL, &l->model);
    if (p->status == ATT_OK)
        p->status = att_transformer_describe(l->model, &l->info);
    if (p->status == ATT_OK && (l->info.encoder_layers > MAX_LAYERS || l->info.decoder_layers > MAX_LAYERS))
        p->status = att_fail(p->ctx, ATT_ERR_UNSUPPORTED, "%s has more than %d layers", folder, MAX_LAYERS);
    if (p->status == ATT_OK)
        p->status = att_encoder_decoder_describe(att_transformer_as_encoder_decoder(l->model), &l->ids);
    if (p->status == ATT_OK)
        p->status = att_tokenizer_open(p->ctx, folder, &l->tokenizer);
    if (p->status == ATT_OK)
        p->status = att_safetensors_open(p->ctx, path, &l->file);
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &l->tape);
}

static void close_model(page *p, translator_chapter *l)
{
    if (l->tokenizer)
        att_tokens_free(p->ctx, &l->source);
    att_tape_free(l->tape);
    att_nn_params_free(l->params);
    att_safetensors_free(l->file);
    att_tokenizer_free(l->tokenizer);
    att_transformer_free(l->model);
}

/* ---- its sizes */

static int64_t count_file(page *p, const att_safetensors *file)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < att_safetensors_count(file) && p->status == ATT_OK; i++) {
        att_tensor w = {0};
        int64_t count = 1;
        p->status = att_safetensors_get(file, att_safetensors_name(file, i), &w);
        for (int d = 0; d < w.rank; d++)
            count *= w.dim[d];
        sum += count;
    }
    return sum;
}

static void sizes(page *p, const translator_chapter *l)
{
    const att_transformer_info *m = &l->info;
    const int64_t d = m->hidden, h = m->encoder_heads;
    const block_sizes s = {m->encoder_layers, d, m->encoder_intermediate, h, d / h, d / h};
    const int64_t encoder = s.n * block_encoder_parameters(&s), decoder = s.n * block_decoder_parameters(&s);
    const int64_t table = m->target_vocabulary * d, all = encoder + decoder + table + m->target_vocabulary;
    char a[32];
    page_step(p, (text){"A trained model", "学習済みのモデル"});
    page_print(p,
               (text){"%s, the model of `attend translate`, is a smaller one: d_model = %" PRId64 ", h = %" PRId64
                      ", so d_k = %" PRId64 " again; d_ff = %" PRId64 ", N = %" PRId64 ". Its parameters:",
                      "`attend translate`のモデル%sは、これより小さく、d_model = %" PRId64 "、h = %" PRId64
                      "で、d_kは同じく%" PRId64 "、d_ff = %" PRId64 "、N = %" PRId64
                      "です。パラメータは次のとおりです。"},
               CLI_TRANSLATOR_SHIPPED, d, h, d / h, s.d_ff, s.n);
    page_line(p, page_text(p, (text){"encoder     %" PRId64 " layers of %s", "エンコーダ  %" PRId64 "層 x %s"}), s.n,
              block_number(a, block_encoder_parameters(&s)));
    page_line(p, page_text(p, (text){"decoder     %" PRId64 " layers of %s", "デコーダ    %" PRId64 "層 x %s"}), s.n,
              block_number(a, block_decoder_parameters(&s)));
    page_line(p, page_text(p, (text){"embeddings  %" PRId64 " x %" PRId64, "埋め込み    %" PRId64 " x %" PRId64}),
              m->target_vocabulary, d);
    page_line(p, page_text(p, (text){"logits      %" PRId64 " biases", "ロジット    バイアス%" PRId64 "個"}),
              m->target_vocabulary);
    page_line(p, page_text(p, (text){"together    %s", "合計        %s"}), block_number(a, all));
    const int64_t in_file = count_file(p, l->file);
    page_print(p,
               in_file == all ? (text){"That is what its file has: %s numbers. One table serves the source, the target "
                                       "and the final projection.",
                                       "ファイルにある数も%s個で、同じです。原文、訳文、最後の射影は、一つの表を"
                                       "共有しています。"}
                              : (text){"Its file has %s numbers.", "ファイルにある数は%s個です。"},
               block_number(a, in_file));
}

/* ---- a pass, with parts left out */

/* norm(x + f) */
static att_var *add_and_norm(const translator_chapter *l, const att_nn_norm *n, att_var *x, att_var *f)
{
    att_var *sum = !f ? x : l->lacks == RESIDUAL ? f : att_add(l->tape, x, f);
    return l->lacks == NORM ? sum : att_nn_norm_apply(l->tape, n, sum);
}

static att_var *feed_forward(const translator_chapter *l, const att_nn_feed_forward *f, att_var *x)
{
    return l->lacks == FEED_FORWARD ? NULL : att_nn_feed_forward_apply(l->tape, f, x, NULL, NULL);
}

static att_var *encoder_layer(const translator_chapter *l, const att_nn_encoder_layer *layer, att_var *x)
{
    att_var *a = l->lacks == SELF_ATTENTION ? NULL : att_nn_attention_apply(l->tape, layer->attention, x, NULL);
    x = add_and_norm(l, layer->attention_norm, x, a);
    return add_and_norm(l, layer->feed_forward_norm, x, feed_forward(l, layer->feed_forward, x));
}

static att_var *decoder_layer(const translator_chapter *l, const att_nn_decoder_layer *layer, att_var *source,
                              att_var *x)
{
    const int64_t to[] = {0, l->rows}, from[] = {0, l->source.count};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = to, .k_offsets = from};
    const att_nn_attention_call cross = {.size = sizeof cross, .source = source, .args = &args};
    att_var *a = l->lacks == SELF_ATTENTION ? NULL : att_nn_attention_apply(l->tape, layer->attention, x, NULL);
    x = add_and_norm(l, layer->attention_norm, x, a);
    a = l->lacks == CROSS_ATTENTION ? NULL : att_nn_attention_apply(l->tape, layer->cross, x, &cross);
    x = add_and_norm(l, layer->cross_norm, x, a);
    return add_and_norm(l, layer->feed_forward_norm, x, feed_forward(l, layer->feed_forward, x));
}

static att_var *embed(const translator_chapter *l, const int32_t *ids, int64_t n)
{
    const int64_t offsets[] = {0, n};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
    att_var *x = att_nn_embedding_apply(l->tape, l->embedding, ids, n);
    return att_sinusoidal(l->tape, att_scale(l->tape, x, sqrtf((float)l->info.hidden)), &at, NULL);
}

static att_var *encode(const translator_chapter *l)
{
    att_var *x = embed(l, l->source.ids, l->source.count);
    for (int64_t i = 0; i < l->info.encoder_layers; i++)
        x = encoder_layer(l, l->encoder[i], x);
    return x;
}

/* Computes the words that are read after the first `layers` layers of the decoder. */
static att_var *decode(const translator_chapter *l, int64_t layers)
{
    att_var *source = encode(l), *x = embed(l, l->reads, l->rows);
    for (int64_t i = 0; i < layers; i++)
        x = decoder_layer(l, l->decoder[i], source, x);
    return x;
}

/* Returns logits [rows, vocabulary] of the next token after the first `layers` layers, valid until the tape is
 * reset. */
static const float *logits(page *p, const translator_chapter *l, int64_t layers)
{
    att_tensor Y = {0};
    if (p->status == ATT_OK)
        p->status = att_var_value(
            l->tape, att_nn_linear_apply(l->tape, &l->projection, decode(l, layers), ATT_ACTIVATION_IDENTITY, NULL),
            &Y);
    return Y.data;
}

/* log softmax(y)_id */
static double log_probability(const translator_chapter *l, const float *y /* [vocabulary] */, int32_t id)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < l->info.target_vocabulary; i++)
        max = fmax(max, y[i]);
    for (int64_t i = 0; i < l->info.target_vocabulary; i++)
        sum += exp(y[i] - max);
    return y[id] - max - log(sum);
}

static int32_t likeliest(const translator_chapter *l, const float *y /* [vocabulary] */)
{
    int32_t best = 0;
    for (int32_t i = 1; i < l->info.target_vocabulary; i++)
        best = y[i] > y[best] ? i : best;
    return best;
}

static const char *name_of(const translator_chapter *l, int32_t id)
{
    const char *token = att_tokenizer_token(l->tokenizer, id);
    return token ? token : "?";
}

/* ---- the encoder, sublayer by sublayer */

static double root_mean_square(page *p, att_tape *t, att_var *x)
{
    att_tensor X = {0};
    double sum = 0;
    p->status = p->status == ATT_OK ? att_var_value(t, x, &X) : p->status;
    const int64_t count = p->status == ATT_OK ? X.dim[0] * X.dim[1] : 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)((float *)X.data)[i] * ((float *)X.data)[i] / (double)count;
    return sqrt(sum);
}

/* Returns the share of the numbers that are not 0, in percent. */
static double active(page *p, att_tape *t, att_var *h)
{
    att_tensor H = {0};
    int64_t count = 0;
    p->status = p->status == ATT_OK ? att_var_value(t, h, &H) : p->status;
    const int64_t all = p->status == ATT_OK ? H.dim[0] * H.dim[1] : 0;
    for (int64_t i = 0; i < all; i++)
        count += ((float *)H.data)[i] != 0;
    return all > 0 ? 100 * (double)count / (double)all : 0;
}

static void print_tokens(page *p, const translator_chapter *l, const int32_t *ids, int64_t n)
{
    char line[512];
    size_t used = 0;
    for (int64_t i = 0; i < n; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%.12s", i ? " " : "", name_of(l, ids[i]));
    page_line(p, "%s", line);
}

static void encoder(page *p, translator_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->source.count, layers = l->info.encoder_layers, offsets[] = {0, n};
    const int32_t *ids = l->source.ids;
    const att_nn_embedding *embedding = l->embedding;
    const att_nn_encoder_layer *const *encoder = l->encoder;
    const att_positions *at = ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1);
    att_var *e, *x[MAX_LAYERS + 1], *a[MAX_LAYERS], *y[MAX_LAYERS], *h[MAX_LAYERS], *f[MAX_LAYERS];
    att_tensor Own = {0}, Its = {0};
    page_print(p, (text){"The source: its embeddings, times √d_model = 16 (section 3.4 of the paper), and positions:",
                         "原文の埋め込みを√d_model = 16倍し（論文の3.4節）、位置を足します。"});
    print_tokens(p, l, ids, n);
    if (p->status != ATT_OK)
        return;
    LOOP(p, e = att_nn_embedding_apply(t, embedding, ids, n); x[0] = att_sinusoidal(t, att_scale(t, e, 16), at, NULL););
    page_print(p, (text){"Then the layers, each in five lines:", "続いて、各層を五行ずつで計算します。"});
    LOOP(
        p, for (int64_t i = 0; i < layers; i++) {
            const att_nn_feed_forward *ff = encoder[i]->feed_forward;
            const att_nn_norm *n_1 = encoder[i]->attention_norm, *n_2 = encoder[i]->feed_forward_norm;
            a[i] = att_nn_attention_apply(t, encoder[i]->attention, x[i], NULL);
            y[i] = att_nn_norm_apply(t, n_1, att_add(t, x[i], a[i]));
            h[i] = att_nn_linear_apply(t, ff->inner, y[i], ATT_ACTIVATION_RELU, NULL);
            f[i] = att_nn_linear_apply(t, ff->outer, h[i], ATT_ACTIVATION_IDENTITY, NULL);
            x[i + 1] = att_nn_norm_apply(t, n_2, att_add(t, y[i], f[i]));
        });
    page_print(
        p, (text){"The root mean square of each, and the share of h that is not 0. In an untrained layer it "
                  "is about half; here few units are active for a token.",
                  "それぞれの二乗平均平方根と、hのうち0でないものの割合です。学習前の層なら、およそ半分です。ここでは、"
                  "一つのトークンに反応するユニットはわずかです。"});
    page_line(p, "%s",
              page_text(p, (text){"layer        x        a        y        f    h > 0",
                                  "   層        x        a        y        f    h > 0"}));
    for (int64_t i = 0; i < layers && p->status == ATT_OK; i++)
        page_line(p, "%5" PRId64 " %8.3f %8.3f %8.3f %8.3f %6.1f %%", i + 1, root_mean_square(p, t, x[i]),
                  root_mean_square(p, t, a[i]), root_mean_square(p, t, y[i]), root_mean_square(p, t, f[i]),
                  active(p, t, h[i]));
    if (p->status == ATT_OK)
        p->status = att_var_value(t, x[layers], &Own);
    if (p->status == ATT_OK)
        p->status = att_var_value(t, att_transformer_encode(t, l->model, ids, offsets, 1), &Its);
    if (p->status == ATT_OK)
        page_agree(p,
                   (text){"x after the last layer, and att_transformer_encode of the model",
                          "最後の層のxと、モデルのatt_transformer_encode"},
                   Own.data, Its.data, n * l->info.hidden);
    att_tape_reset(t);
}

/* ---- the decoder */

/* Translates by repeatedly choosing the most probable token. */
static void translate(page *p, translator_chapter *l)
{
    const int64_t vocabulary = l->info.target_vocabulary;
    l->reads[0] = (int32_t)l->ids.start;
    for (l->rows = 1; p->status == ATT_OK; l->rows++) {
        const float *y = logits(p, l, l->info.decoder_layers);
        if (p->status != ATT_OK)
            return;
        const int32_t next = likeliest(l, y + (l->rows - 1) * vocabulary);
        l->writes[l->rows - 1] = next;
        att_tape_reset(l->tape);
        if (next == (int32_t)l->ids.eos || l->rows == MAX_TOKENS)
            return;
        l->reads[l->rows] = next;
    }
}

/* Shows the decoder's layers on the tokens of the translation, each sublayer a line, and the final projection. */
static void decoder(page *p, translator_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->rows, layers = l->info.decoder_layers, offsets[] = {0, n}, from[] = {0, l->source.count};
    const int32_t *reads = l->reads;
    const att_nn_embedding *embedding = l->embedding;
    const att_nn_linear *projection = &l->projection;
    const att_nn_decoder_layer *const *decoder = l->decoder;
    const att_positions *at = ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1);
    const att_attention_args *sizes =
        ATT_OPTIONS(att_attention_args, .n_sequences = 1, .q_offsets = offsets, .k_offsets = from);
    att_var *source = encode(l), *x, *a, *y, *c, *z, *f, *s;
    att_tensor Own = {0}, Its = {0};
    page_step(p, (text){"The whole Transformer, as code", "Transformer全体をコードで"});
    page_print(p, (text){"The encoder's output, here source, is computed once. The decoder reads the translation so "
                         "far, from the token that stands for its beginning:",
                         "エンコーダの出力（ここではsource）の計算は一度だけです。デコーダは、始まりを表すトークンに"
                         "続けて、そこまでの訳文を読みます。"});
    print_tokens(p, l, reads, n);
    page_print(
        p, (text){"Each of its layers has three sublayers. a is self-attention with the causal mask, which the layer "
                  "has from its making (`attend explain causal`): a position sees itself and those before. c is "
                  "attention to the source: queries from the translation, keys and values from the encoder, no mask. "
                  "f is the feed-forward network. Each is added to its input and normalized. After the last layer "
                  "comes the projection, with the embeddings as its matrix.",
                  "層には三つの部分があります。aは因果マスクの付いた自己注意で、マスクは層を作るときに決まっています"
                  "（`attend explain causal`）。どの位置からも、自分とその前だけが見えます。cは原文への注意です。"
                  "クエリは訳文、キーとバリューはエンコーダの出力から作り、マスクはありません。fは"
                  "フィードフォワードです。どれも入力に足してから正規化します。最後の層のあとに射影が来ます。"
                  "その行列は埋め込みの表です。"});
    if (p->status != ATT_OK)
        return;
    LOOP(
        p, x = att_sinusoidal(t, att_scale(t, att_nn_embedding_apply(t, embedding, reads, n), 16), at, NULL);
        for (int64_t i = 0; i < layers; i++) {
            const att_nn_decoder_layer *d = decoder[i];
            a = att_nn_attention_apply(t, d->attention, x, NULL);
            y = att_nn_norm_apply(t, d->attention_norm, att_add(t, x, a));
            c = att_nn_attention_apply(t, d->cross, y,
                                       ATT_OPTIONS(att_nn_attention_call, .source = source, .args = sizes));
            z = att_nn_norm_apply(t, d->cross_norm, att_add(t, y, c));
            f = att_nn_feed_forward_apply(t, d->feed_forward, z, NULL, NULL);
            x = att_nn_norm_apply(t, d->feed_forward_norm, att_add(t, z, f));
        } s = att_nn_linear_apply(t, projection, x, ATT_ACTIVATION_IDENTITY, NULL););
    if (p->status == ATT_OK)
        p->status = att_var_value(t, s, &Own);
    if (p->status == ATT_OK)
        p->status = att_var_value(t, att_transformer_decode(t, l->model, source, from, reads, offsets, 1), &Its);
    if (p->status == ATT_OK)
        page_agree_roughly(p,
                           (text){"s, and att_transformer_decode of the model", "sと、モデルのatt_transformer_decode"},
                           Own.data, Its.data, n * l->info.target_vocabulary);
    page_print(p,
               (text){"With the encoder of the step before, this is the whole model of the paper: everything else "
                      "is how one trains it, and how one searches for the translation.",
                      "前のステップのエンコーダと合わせて、これが論文のモデルのすべてです。残るのは、学習のしかたと、"
                      "訳文の探し方だけです。"});
    att_tape_reset(t);
}

/* "▁book 0.98", padded to 16 columns. */
static void put_token(char text[64], const translator_chapter *l, const float *y /* [vocabulary] */)
{
    const int32_t best = likeliest(l, y);
    const char *name = name_of(l, best);
    const int width = utf8_width(name);
    snprintf(text, 64, "%.24s%*s %.2f", name, width < 10 ? 10 - width : 0, "", exp(log_probability(l, y, best)));
}

/* Shows the result of the final projection for the words after each layer. */
static void layer_by_layer(page *p, translator_chapter *l)
{
    const int64_t vocabulary = l->info.target_vocabulary, layers = l->info.decoder_layers;
    const float *y[MAX_LAYERS] = {0};
    page_step(p, (text){"Layer by layer to the next token", "層を重ねて、次のトークンへ"});
    page_print(
        p, (text){"The decoder's layers, with attention to the source in the middle, and the final projection "
                  "translate, one token after the other. What would the projection say after the first layer, "
                  "and after the second? For each token that is read, the likeliest next one:",
                  "原文への注意を真ん中に持つデコーダの層と、最後の射影とで、トークンを一つずつ訳していきます。"
                  "最後の射影を、一つめの層、二つめの層のすぐ後に使ったら、どうなるでしょうか。読んだトークンごとに、"
                  "いちばん確からしい次のトークンを示します。"});
    page_formula(p, "P = softmax(x Eᵀ + b)");
    for (int64_t i = 0; i < layers; i++)
        y[i] = logits(p, l, i + 1);
    char line[512];
    snprintf(line, sizeof line, "%s", page_left(p, (text){"reads", "読む"}, 10).text);
    for (int64_t i = 0; i < layers && strlen(line) < 400; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line),
                 i + 1 < layers ? page_text(p, (text){"  after %-9" PRId64, "  層%-13" PRId64})
                                : page_text(p, (text){"  after %" PRId64, "  層%" PRId64}),
                 i + 1);
    page_line(p, "%s", line);
    for (int64_t row = 0; row < l->rows && p->status == ATT_OK; row++) {
        const char *name = row ? name_of(l, l->reads[row]) : page_text(p, (text){"(start)", "(始まり)"});
        const int width = utf8_width(name);
        snprintf(line, sizeof line, "%.24s%*s", name, width < 10 ? 10 - width : 0, "");
        for (int64_t i = 0; i < layers && strlen(line) < 400; i++) {
            char next[64];
            put_token(next, l, y[i] + row * vocabulary);
            snprintf(line + strlen(line), sizeof line - strlen(line), "  %s", next);
        }
        page_line(p, "%s", line);
    }
    page_print(
        p, (text){"After the first layer it would mostly repeat the token that is read: thanks to the residual "
                  "that is what the vector mainly holds, and the projection finds it by its embedding. The "
                  "following layers turn it into the next token.",
                  "一つめの層の後では、ほとんどの場合、読んだトークンを繰り返してしまいます。残差のおかげで、ベクトルの"
                  "中身はまだほぼそのトークンで、射影は、それを埋め込みで見つけるからです。続く層が、次のトークンへと"
                  "変えていきます。"});
    att_tape_reset(l->tape);
}

/* ---- what each part is worth */

static void part_by_part(page *p, translator_chapter *l)
{
    static const text names[VARIANTS] = {
        {"all parts", "すべてあり"},           {"no feed-forward", "FFNなし"},
        {"no self-attention", "自己注意なし"}, {"no cross-attention", "原文への注意なし"},
        {"no residual", "残差なし"},           {"no layer norm", "層正規化なし"}};
    const int64_t vocabulary = l->info.target_vocabulary;
    page_step(p, (text){"What each part is worth", "各部分を取り除くと"});
    page_print(p, (text){"The same weights, with one part left out in all layers: -log p of this translation, added up "
                         "over its tokens, and for how many of them it is still the likeliest.",
                         "同じ重みのまま、すべての層から一つの部分を取り除いてみます。この訳文の-log pを"
                         "全トークンについて足したものと、それでも訳文のトークンがいちばん確からしい位置の数です。"});
    page_line(p, "%-18s  %8s  %s", "", "-log p", page_text(p, (text){"likeliest", "最大"}));
    for (int k = 0; k < VARIANTS && p->status == ATT_OK; k++) {
        l->lacks = k;
        const float *y = logits(p, l, l->info.decoder_layers);
        double sum = 0;
        int64_t right = 0;
        for (int64_t i = 0; i < l->rows && p->status == ATT_OK; i++) {
            sum -= log_probability(l, y + i * vocabulary, l->writes[i]);
            right += likeliest(l, y + i * vocabulary) == l->writes[i];
        }
        char loss[32] = "> 1000";
        if (sum <= 1000)
            snprintf(loss, sizeof loss, "%.1f", sum);
        page_line(p, page_text(p, (text){"%s  %8s  %" PRId64 " of %" PRId64, "%s  %8s  %" PRId64 " / %" PRId64}),
                  page_left(p, names[k], 18).text, loss, right, l->rows);
        att_tape_reset(l->tape);
    }
    l->lacks = NOTHING;
    page_print(
        p, (text){"In a sentence as short as this one self-attention is missed least. Of the other parts none can be "
                  "left out: they have been trained together.",
                  "これほど短い文では、自己注意がなくても影響はわずかです。ほかの部分は、どれも欠かせません。"
                  "一緒に学習してきたからです。"});
}

void block_translator(page *p)
{
    static const char sentence[] = "Sie liest ein Buch.";
    translator_chapter l = {.info = {.size = sizeof l.info}, .ids = {.size = sizeof l.ids}};
    att_model_path folder;
    if (p->status)
        return;
    p->code = cli_model_find(ATT_SUBJECT_TRANSLATE, CLI_TRANSLATOR_SHIPPED, &folder);
    if (p->code)
        return;
    open_model(p, &l, folder.text);
    if (p->status == ATT_OK) {
        sizes(p, &l);
        make_layers(p, &l);
    }
    if (p->status == ATT_OK)
        p->status = att_tokenize(l.tokenizer, sentence, strlen(sentence), NULL, &l.source);
    if (p->status == ATT_OK) {
        encoder(p, &l);
        translate(p, &l);
        decoder(p, &l);
        layer_by_layer(p, &l);
        part_by_part(p, &l);
    }
    close_model(p, &l);
}
