/* The layer of a Transformer: attention and feed-forward, each with residual and layer norm; N layers; projection. */
// order: 110
#include "block.h"
#include "attend_util.h"
#include "layer.h"
#include "torch.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 789, LAYERS = 6, MAX_WIDTH = 1024, TABLE_WIDTH = 6 };
enum { QUERY, KEY, VALUE, OUTPUT, INNER, INNER_BIAS, OUTER, OUTER_BIAS, ONES, ZEROS, PARTS };

typedef struct block_chapter {
    vectors words; /* [n, d] */
    int64_t query; /* its row */
    torch_random random;
    const float *part[PARTS]; /* of the layer that is being made */
    att_nn_params *params;
    att_tape *tape;
    const att_nn_encoder_layer *layer[LAYERS];
    float *y, *f, *z; /* [n, d]: first sublayer's result; feed-forward; the layer's result */
    att_tensor X;
} block_chapter;

/* ---- weights */

/* Draws the weights of nn.TransformerEncoderLayer(d, 1, 4 d), in its order. */
static void draw_layer(page *p, block_chapter *l)
{
    const int64_t d = l->words.dim, inner = 4 * d;
    float *output = page_floats(p, 4 * d * d + 2 * inner * d + inner + d), *w_in = output + d * d;
    float *w_1 = w_in + 3 * d * d, *b_1 = w_1 + inner * d, *w_2 = b_1 + inner, *b_2 = w_2 + d * inner;
    if (p->status != ATT_OK)
        return;
    layer_draw(&l->random, torch_linear_bound(d), output, d * d);
    layer_draw(&l->random, torch_linear_bound(d), b_2, d); /* out_proj.bias, which is set to 0 afterwards */
    layer_draw(&l->random, torch_xavier_bound(d, 3 * d), w_in, 3 * d * d);
    layer_draw(&l->random, torch_linear_bound(d), w_1, inner * d);
    layer_draw(&l->random, torch_linear_bound(d), b_1, inner);
    layer_draw(&l->random, torch_linear_bound(inner), w_2, d * inner);
    layer_draw(&l->random, torch_linear_bound(inner), b_2, d);
    const float *part[] = {w_in, w_in + d * d, w_in + 2 * d * d, output, w_1, b_1, w_2, b_2};
    memcpy(l->part, part, sizeof part);
}

/* Sets the parameter of a layer by its name, as `load` of att_nn_params_config. */
static att_status load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    static const struct {
        const char *end;
        int part;
    } names[] = {{"query.weight", QUERY}, {"key.weight", KEY},
                 {"value.weight", VALUE}, {"output.weight", OUTPUT},
                 {"inner.weight", INNER}, {"inner.bias", INNER_BIAS},
                 {"outer.weight", OUTER}, {"outer.bias", OUTER_BIAS},
                 {"norm.weight", ONES},   {"bias", ZEROS}};
    const block_chapter *l = user;
    size_t i = 0;
    while (strlen(name) < strlen(names[i].end) || strcmp(name + strlen(name) - strlen(names[i].end), names[i].end) != 0)
        i++;
    return att_wrap(value, (float *)l->part[names[i].part], ATT_F32, rank, dim, NULL);
}

static void make_layers(page *p, block_chapter *l)
{
    const int64_t d = l->words.dim;
    float *ones = page_floats(p, d);
    l->part[ONES] = ones, l->part[ZEROS] = page_floats(p, d);
    for (int64_t i = 0; i < d && p->status == ATT_OK; i++)
        ones[i] = 1;
    if (p->status == ATT_OK)
        p->status = att_nn_params_new(p->ctx, ATT_OPTIONS(att_nn_params_config, .load = load, .user = l), &l->params);
    torch_manual_seed(&l->random, SEED);
    for (int i = 0; i < LAYERS && p->status == ATT_OK; i++) {
        draw_layer(p, l);
        if (p->status != ATT_OK)
            return;
        l->layer[i] =
            att_nn_encoder_layer_new(l->params, att_nn_number("layer", i).text,
                                     ATT_OPTIONS(att_nn_layer_config, .width = d, .heads = 1, .intermediate = 4 * d));
        p->status = att_nn_params_status(l->params);
    }
}

/* ---- one layer, step by step */

static void introduce(page *p, const block_chapter *l)
{
    const int64_t n = l->words.n, d = l->words.dim;
    page_title(p, (text){"The Transformer's layer", "Transformerの層"});
    page_print(
        p,
        (text){"Attention alone is not a Transformer. A layer has two parts, attention and a feed-forward network. "
               "The result of each is added to its input and normalized, and N layers follow each other. First "
               "every step of one layer on %1$" PRId64 " words of %2$" PRId64
               " numbers, with the weights of nn.TransformerEncoderLayer(%2$" PRId64 ", 1, %3$" PRId64
               ") after torch.manual_seed(%4$d), without dropout; then N layers; then the paper's sizes, counted; "
               "then the weights of a trained translator.",
               "注意だけではTransformerになりません。一つの層は、注意とフィードフォワードネットワークという二つの"
               "部分からなり、どちらの結果も、入力に足してから正規化します。そして、この層をN個重ねます。"
               "まず、%2$" PRId64 "個の数からなる単語%1$" PRId64
               "個で、一つの層の計算をすべてたどります。重みは、torch.manual_seed(%4$d)のあとの"
               "nn.TransformerEncoderLayer(%2$" PRId64 ", 1, %3$" PRId64
               ")と同じで、ドロップアウトはありません。次にN個の層と進み、論文のモデルの大きさを計算し、"
               "最後に学習済みの翻訳モデルの重みを見ます。"},
        n, d, 4 * d, SEED);
    page_table(p, l->words.labels, n, NULL, d, l->words.x);
}

static void attention(page *p, block_chapter *l, att_tensor *R)
{
    att_tape *t = l->tape;
    const att_nn_encoder_layer *layer = l->layer[0];
    att_tensor X = l->X, A = {0};
    att_var *x, *a, *r;
    page_step(p, (text){"Attention, added to its input", "注意の結果を入力に足す"});
    page_print(
        p, (text){"The first part is self-attention with its out_proj, as in `attend explain multi-head`, here "
                  "with one head. Its result does not replace x but is added to it: the residual connection (He "
                  "and others, 2015). So attention only has to compute a change, each word keeps its own numbers, "
                  "and in the backward pass the gradient reaches x by the sum as it is, whatever attention's "
                  "weights are.",
                  "最初の部分は、out_projまで含めた自己注意です（`attend explain multi-head`）。ここではヘッドは一つ"
                  "です。結果は、xと置き換えるのではなく、xに足します。これが残差接続です（Heら、2015年）。"
                  "注意は変化分だけを計算すればよく、どの単語にも自分の数が残ります。逆伝播でも、注意の重みが"
                  "どうであれ、勾配は足し算を通ってそのままxに届きます。"});
    page_formula(p, "a = MultiHead(x, x, x)    r = x + a");
    if (p->status != ATT_OK)
        return;
    LOOP(p, x = att_input(t, &X); a = att_nn_attention_apply(t, layer->attention, x, NULL); r = att_add(t, x, a););
    CALL(p, att_var_value(t, a, &A));
    page_table(p, l->words.labels, l->words.n, NULL, l->words.dim, A.data);
    CALL(p, att_var_value(t, r, R));
    page_table(p, l->words.labels, l->words.n, NULL, l->words.dim, R->data);
}

static void norm(page *p, block_chapter *l, const att_tensor *R)
{
    att_tape *t = l->tape;
    const att_nn_encoder_layer *layer = l->layer[0];
    const int64_t n = l->words.n, d = l->words.dim;
    float *y = l->y;
    const float *r = R->data;
    att_tensor Y = {0};
    page_step(p, (text){"Layer norm", "層正規化"});
    page_print(
        p, (text){"Sums would grow from layer to layer. Layer norm (Ba and others, 2016) shifts and scales each "
                  "row, by itself, to mean 0 and variance 1; 1e-5 prevents a division by zero. Then each feature "
                  "has a learned factor γ and summand β; before training they are 1 and 0.",
                  "足していくだけでは、層を重ねるごとに値が大きくなります。層正規化（Baら、2016年）は、各行をそれぞれ、"
                  "平均0、分散1になるようにずらして拡大縮小します。1e-5は、ゼロで割らないためのものです。その後、"
                  "次元ごとに、学習する係数γを掛け、βを足します。学習前はγ = 1、β = 0です。"});
    page_formula(p, "y = γ (r - μ) / √(σ² + 1e-5) + β");
    if (p->status != ATT_OK)
        return;
    LOOP(
        p, for (int64_t i = 0; i < n; i++) {
            float mean = 0, variance = 0;
            for (int64_t c = 0; c < d; c++)
                mean += r[i * d + c] / d;
            for (int64_t c = 0; c < d; c++)
                variance += (r[i * d + c] - mean) * (r[i * d + c] - mean) / d;
            for (int64_t c = 0; c < d; c++)
                y[i * d + c] = (r[i * d + c] - mean) / sqrtf(variance + 1e-5f);
        });
    page_table(p, l->words.labels, n, NULL, d, y);
    if (p->status == ATT_OK)
        p->status = att_var_value(t, att_nn_norm_apply(t, layer->attention_norm, att_input(t, R)), &Y);
    if (p->status == ATT_OK)
        page_agree(p, (text){"y and att_nn_norm_apply", "yとatt_nn_norm_apply"}, y, Y.data, n * d);
}

/* Applies the feed-forward network and attention to only the query's row, and compares the results with those for all
 * words. */
static void one_row_alone(page *p, block_chapter *l, const att_tensor *Y)
{
    att_tape *t = l->tape;
    const att_nn_encoder_layer *layer = l->layer[0];
    const int64_t d = l->words.dim, i = l->query;
    att_tensor One = {0}, All = {0}, F = {0};
    att_var *y, *one;
    page_print(p,
               (text){"No word has an influence on another here: it is applied to each position separately, with the "
                      "same weights. The row of \"%s\" alone:",
                      "ここでは、単語どうしは影響し合いません。同じ重みを、位置ごとに別々に適用するからです。"
                      "「%s」の行だけを通してみます。"},
               l->words.labels[i]);
    if (p->status != ATT_OK)
        return;
    LOOP(p, y = att_input(t, Y); one = att_slice(t, y, 0, i, 1););
    CALL(p, att_var_value(t, att_nn_feed_forward_apply(t, layer->feed_forward, one, NULL, NULL), &F));
    if (p->status != ATT_OK)
        return;
    const bool same = memcmp(F.data, l->f + i * d, (size_t)d * sizeof *l->f) == 0;
    page_table(p, &l->words.labels[i], 1, NULL, d, F.data);
    page_print(
        p, same ? (text){"These are its numbers above, to the last bit. Attention, of all words and of this one:",
                         "上の表のこの行と、最後のビットまで同じです。注意なら、全単語の場合とこの単語だけの場合は、"
                         "次のようになります。"}
                : (text){"These are not its numbers above! Attention, of all words and of this one:",
                         "上の表のこの行とは違います！注意なら、全単語の場合とこの単語だけの場合は、"
                         "次のようになります。"});
    CALL(p, att_var_value(t, att_nn_attention_apply(t, layer->attention, y, NULL), &All));
    CALL(p, att_var_value(t, att_nn_attention_apply(t, layer->attention, one, NULL), &One));
    page_table(p, &l->words.labels[i], 1, NULL, d, p->status == ATT_OK ? (float *)All.data + i * d : l->f);
    page_table(p, &l->words.labels[i], 1, NULL, d, One.data);
}

static void feed_forward(page *p, block_chapter *l)
{
    att_tape *t = l->tape;
    const att_nn_linear *inner = l->layer[0]->feed_forward->inner, *outer = l->layer[0]->feed_forward->outer;
    const int64_t n = l->words.n, d = l->words.dim;
    att_tensor Y = page_matrix(p, l->y, n, d), H = {0}, F = {0};
    att_var *y, *h, *f;
    page_step(p, (text){"Feed-forward, position by position", "位置ごとのフィードフォワード"});
    page_print(p,
               (text){"The second part is two matrices with ReLU, max(0, x), in between: %1$" PRId64
                      " numbers become %2$" PRId64 ", four times as many, and these become %1$" PRId64
                      " again. Without ReLU the two matrices would amount to one.",
                      "二つめの部分は、二つの行列で、あいだにReLU、つまりmax(0, x)をはさみます。%1$" PRId64
                      "個の数を、四倍の%2$" PRId64 "個にしてから、%1$" PRId64
                      "個に戻します。ReLUがなければ、二つの行列は一つの行列と変わりません。"},
               d, 4 * d);
    page_formula(p, "h = max(0, y W_1ᵀ + b_1)    f = h W_2ᵀ + b_2");
    if (p->status != ATT_OK)
        return;
    LOOP(p, y = att_input(t, &Y); h = att_nn_linear_apply(t, inner, y, ATT_ACTIVATION_RELU, NULL);
         f = att_nn_linear_apply(t, outer, h, ATT_ACTIVATION_IDENTITY, NULL););
    CALL(p, att_var_value(t, h, &H));
    if (d <= TABLE_WIDTH)
        page_table(p, l->words.labels, n, NULL, 4 * d, H.data);
    int64_t zeros = 0;
    for (int64_t i = 0; i < n * 4 * d && p->status == ATT_OK; i++)
        zeros += ((const float *)H.data)[i] == 0;
    page_print(p,
               (text){"Of these numbers %" PRId64 " of %" PRId64 " are 0: a unit is active for some words only. f:",
                      "このうち、%2$" PRId64 "個中%1$" PRId64
                      "個が0です。それぞれのユニットは、一部の単語にだけ反応します。fは次のとおりです。"},
               zeros, n * 4 * d);
    CALL(p, att_var_value(t, f, &F));
    page_table(p, l->words.labels, n, NULL, d, F.data);
    if (p->status != ATT_OK)
        return;
    memcpy(l->f, F.data, (size_t)(n * d) * sizeof *l->f);
    one_row_alone(p, l, &Y);
}

static void whole_layer(page *p, block_chapter *l)
{
    att_tape *t = l->tape;
    const att_nn_encoder_layer *layer = l->layer[0];
    const int64_t n = l->words.n, d = l->words.dim;
    att_tensor X = l->X, Y = page_matrix(p, l->y, n, d), F = page_matrix(p, l->f, n, d), Z = {0}, Once = {0};
    att_var *y, *f, *z;
    page_step(p, (text){"Residual and norm again: the layer", "もう一度、残差と正規化"});
    page_print(p, (text){"What the feed-forward network computes is added and normalized in the same way. That is the "
                         "layer:",
                         "フィードフォワードの結果も、同じように足して正規化します。これで一層です。"});
    page_formula(p, "y = LayerNorm(x + MultiHead(x, x, x))    z = LayerNorm(y + FFN(y))");
    if (p->status != ATT_OK)
        return;
    LOOP(p, y = att_input(t, &Y); f = att_input(t, &F);
         z = att_nn_norm_apply(t, layer->feed_forward_norm, att_add(t, y, f)););
    CALL(p, att_var_value(t, z, &Z));
    page_table(p, l->words.labels, n, NULL, d, Z.data);
    if (p->status != ATT_OK)
        return;
    memcpy(l->z, Z.data, (size_t)(n * d) * sizeof *l->z);
    page_print(p, (text){"In one call:", "一度の呼び出しで書けば、こうなります。"});
    CALL(p, att_var_value(t, att_nn_encoder_layer_apply(t, layer, att_input(t, &X), NULL), &Once));
    if (p->status == ATT_OK)
        page_agree(p, (text){"z and att_nn_encoder_layer_apply", "zとatt_nn_encoder_layer_apply"}, l->z, Once.data,
                   n * d);
    page_print(
        p, (text){"PyTorch's module gives the same numbers. Newer models put the norm before each part, x + "
                  "MultiHead(LayerNorm(x)), which trains more easily when there are many layers (order = "
                  "ATT_NN_ORDER_PRE_NORM). A decoder's layer has a third part between the two, attention to the source "
                  "(`attend explain three-uses`), with a residual and a norm of its own.",
                  "PyTorchのモジュールも同じ値になります。新しいモデルでは、x + MultiHead(LayerNorm(x))のように、"
                  "各部分の前で正規化します。層が多いときには、そのほうが学習しやすいのです（order = "
                  "ATT_NN_ORDER_PRE_NORM）。デコーダの層には、二つのあいだに三つめの部分があります。原文への注意で"
                  "（`attend explain three-uses`）、これにも残差と正規化が付きます。"});
}

/* ---- N layers */

enum { ALONE, RESIDUAL, WHOLE, KINDS };

/* Returns a measure of how much the words differ: the norm of their differences from the mean word, divided by the norm
 * of all. */
static double spread(const float *x, int64_t n, int64_t d)
{
    double apart = 0, all = 0;
    for (int64_t c = 0; c < d; c++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++)
            mean += x[i * d + c] / (double)n;
        for (int64_t i = 0; i < n; i++) {
            apart += (x[i * d + c] - mean) * (x[i * d + c] - mean);
            all += (double)x[i * d + c] * x[i * d + c];
        }
    }
    return all == 0 ? 0 : sqrt(apart / all);
}

/* Computes the words after layer i. */
static att_var *next(att_tape *t, const att_nn_encoder_layer *layer, att_var *x, int kind)
{
    if (kind == WHOLE)
        return att_nn_encoder_layer_apply(t, layer, x, NULL);
    att_var *a = att_nn_attention_apply(t, layer->attention, x, NULL);
    return kind == RESIDUAL ? att_add(t, x, a) : a;
}

/* Writes the measure, such as "0.4321". */
static void put_spread(char text[16], double v)
{
    if (isnan(v))
        snprintf(text, 16, "NaN");
    else if (v >= 0.0001)
        snprintf(text, 16, "%.4f", v);
    else
        snprintf(text, 16, "< 0.0001");
}

static void n_layers(page *p, block_chapter *l)
{
    const int64_t n = l->words.n, d = l->words.dim;
    att_var *x[KINDS];
    att_tensor X = l->X, Value = {0};
    page_step(p, (text){"N layers", "N個の層"});
    page_print(
        p, (text){"The output has the shape of the input, so layers can be repeated, each with its own weights: "
                  "the paper has N = 6. What happens to the words on the way? Below is how much they differ from "
                  "one another, as a share of their size, 0: they are all the same. First with attention alone, "
                  "then with the residual, then with the whole layer (further weights from the same generator):",
                  "出力の形は入力と同じなので、層はいくつでも重ねられます。重みは層ごとに別です。論文ではN = 6です。"
                  "そのあいだ、単語はどうなるのでしょうか。単語どうしがどれだけ違うかを、大きさに対する割合で"
                  "示します。0なら、すべて同じです。注意だけの場合、残差を加えた場合、層全体の場合の順です"
                  "（重みは同じ生成器の続きです）。"});
    page_line(p, "%s  %s %s %s", page_left(p, (text){"layers", "層の数"}, 6).text,
              page_right(p, (text){"attention", "注意"}, 14).text,
              page_right(p, (text){"x + attention", "x + 注意"}, 16).text,
              page_right(p, (text){"whole layer", "層全体"}, 14).text);
    for (int k = 0; k < KINDS && p->status == ATT_OK; k++)
        x[k] = att_input(l->tape, &X);
    for (int i = 0; i <= LAYERS && p->status == ATT_OK; i++) {
        char of[KINDS][16];
        for (int k = 0; k < KINDS && p->status == ATT_OK; k++) {
            if (i > 0)
                x[k] = next(l->tape, l->layer[i - 1], x[k], k);
            p->status = att_var_value(l->tape, x[k], &Value);
            if (p->status == ATT_OK)
                put_spread(of[k], spread(Value.data, n, d));
        }
        page_line(p, "%6d  %14s %16s %14s", i, of[ALONE], of[RESIDUAL], of[WHOLE]);
    }
    page_print(
        p,
        (text){"Attention is a mean over words, and a mean of means is hardly anything else than one mean for "
               "all: alone it makes words equal within a few layers (Dong and others, 2021). The residual is "
               "what keeps them apart.",
               "注意は単語の平均なので、平均の平均を取り続ければ、どの単語も同じ平均になってしまいます。注意だけでは、"
               "数層で単語の区別がなくなります（Dongら、2021年）。区別を保っているのは残差です。"});
}

/* ---- the final projection */

static void projection(page *p, block_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->words.n, d = l->words.dim;
    att_tensor X = l->X, Z = page_matrix(p, l->z, n, d), W = {0};
    att_var *z, *e, *w;
    page_step(p, (text){"The final projection", "最後の射影"});
    page_print(
        p,
        (text){"What a decoder's last layer computes is still a vector of d numbers. One more matrix makes of it "
               "a score, called logit, for each token of the vocabulary, and softmax turns these into "
               "probabilities of the next token. The paper takes the table of embeddings for this matrix, too "
               "(section 3.4): a token is likely if its embedding points where z points. With the %" PRId64
               " words as a vocabulary (and weights that have learned nothing yet):",
               "デコーダの最後の層の出力は、まだd個の数からなるベクトルです。これを、もう一つの行列で語彙の"
               "各トークンのスコア（ロジット）に変え、softmaxで次のトークンの確率に変えます。論文は、この行列にも"
               "埋め込みの表を"
               "使います（3.4節）。埋め込みがzと同じ向きのトークンほど、確率が高くなります。%" PRId64
               "個の単語を語彙とみなすと、次のようになります（重みは、まだ何も学習していません）。"},
        n);
    page_formula(p, "P = softmax(z Eᵀ)");
    if (p->status != ATT_OK)
        return;
    LOOP(p, z = att_input(t, &Z); e = att_input(t, &X);
         w = att_softmax(t, att_matmul(t, z, e, ATT_OPTIONS(att_matmul_options, .transpose_b = true))););
    CALL(p, att_var_value(t, w, &W));
    page_table(p, l->words.labels, n, l->words.labels, n, W.data);
}

static att_status run(page *p)
{
    block_chapter l = {.words = page_vectors(p, &layer_words)};
    const int64_t n = l.words.n, d = l.words.dim;
    att_tensor R = {0};
    l.query = page_query(p, &l.words);
    if (p->status == ATT_OK && d > MAX_WIDTH)
        p->status = att_fail(p->ctx, ATT_ERR_ARGUMENT,
                             "the vectors have %" PRId64 " numbers, but this chapter has weights for no more than %d",
                             d, MAX_WIDTH);
    l.X = page_matrix(p, l.words.x, n, d);
    l.y = page_floats(p, n * d), l.f = page_floats(p, n * d), l.z = page_floats(p, n * d);
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &l.tape);
    make_layers(p, &l);
    if (p->status == ATT_OK) {
        introduce(p, &l);
        attention(p, &l, &R);
        norm(p, &l, &R);
        feed_forward(p, &l);
        whole_layer(p, &l);
        n_layers(p, &l);
        projection(p, &l);
    }
    att_tape_free(l.tape);
    att_nn_params_free(l.params);
    block_counted(p);
    block_translator(p);
    return p->status;
}

const chapter chapter_block = {
    .about = {"feed-forward, residual, norm, N layers; the paper's sizes",
              "フィードフォワード、残差、正規化、N個の層。論文のモデルの大きさを数える"},
    .run = run,
};
