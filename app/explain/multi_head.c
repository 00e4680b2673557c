/* Multiple heads: a split without copies, attention of each head, out_proj; nn.MultiheadAttention; common mistakes. */
// order: 60
#include "multi_head.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 123, OUT = MULTI_HEAD_OUT, HEADS = 2, PARAMETERS = MULTI_HEAD_PARAMETERS };

typedef struct multi_head_chapter {
    layer of;
    float *wo, *bo; /* out_proj: [OUT, OUT], [OUT] */
    float *c, *y;   /* contexts, concatenated, and the output of out_proj [n, OUT] */
    att_tensor Wo, C, Y;
} multi_head_chapter;

static void introduce(page *p, multi_head_chapter *l)
{
    const vectors *v = &l->of.words;
    page_title(p, (text){"Multi-head attention", "マルチヘッド注意"});
    page_print(p,
               (text){"One row of weights has one point of view. Several heads look in several ways at once: each gets "
                      "its own part of the query, key and value, and its own weights. That costs no more than one head "
                      "of full width, since each is so much narrower. Weights of nn.Linear from seed %d again, and "
                      "attention is causal; there are %d heads for the %" PRId64 " words.",
                      "一行の重みは、一つの見方しか表せません。複数のヘッドを使えば、同時にいくつもの見方ができます。"
                      "各ヘッドは、クエリ、キー、バリューの一部分ずつを受け取り、自分の重みを持ちます。"
                      "ヘッドの数だけ幅が狭くなるので、計算量は、全幅のヘッド一つの場合と変わりません。"
                      "ここでも重みはシード%dのnn.Linearで、注意は因果的です。%d個のヘッドで、"
                      "%" PRId64 "個の単語を処理します。"},
               SEED, HEADS, v->n);
    layer_print(p, &l->of);
    layer_draw(&l->of.random, torch_linear_bound(OUT), l->wo, OUT * OUT);
    layer_draw(&l->of.random, torch_linear_bound(OUT), l->bo, OUT);
    page_print(p, (text){"The generator goes on, to a fourth layer, out_proj, which has a bias and will mix the heads:",
                         "同じ生成器から続けて、四つめの層out_projの重みを作ります。この層にはバイアスがあり、"
                         "最後にヘッドを混ぜ合わせます。"});
    page_table(p, (const char *const[]){"W_o 1", "W_o 2"}, OUT, NULL, OUT, l->wo);
    page_table(p, (const char *const[]){"b_o"}, 1, NULL, OUT, l->bo);
}

/* Shows that each head's query is computed from all numbers of a word. */
static void mixed(page *p, const multi_head_chapter *l)
{
    const vectors *v = &l->of.words;
    const int64_t i = page_query(p, v);
    const float *x = v->x + i * v->dim, *q = l->of.q + i * OUT, *w = l->of.wq;
    page_print(
        p,
        (text){"What is split is not the word but its query, key and value. Each row of W_q, W_k and W_v takes in "
               "all numbers of the word, so every head sees the whole word, in its own mixture. The queries of "
               "\"%s\":",
               "分けるのは単語ではなく、そのクエリ、キー、バリューです。W_q、W_k、W_vのどの行も、単語の数を"
               "すべて使います。ですから、どのヘッドも単語全体を、それぞれの混ぜ方で見ています。"
               "「%s」のクエリは次のとおりです。"},
        v->labels[i]);
    for (int64_t h = 0; h < HEADS && v->dim == 3; h++, w += 3)
        page_line(p, "head %" PRId64 ": q = %.4g×%.4f + %.4g×%.4f + %.4g×%.4f = %.4f", h + 1, x[0], w[0], x[1], w[1],
                  x[2], w[2], q[h]);
    for (int64_t h = 0; h < HEADS && v->dim != 3; h++, w += v->dim)
        page_line(p, "head %" PRId64 ": q = %.4g×%.4f + … + %.4g×%.4f = %.4f", h + 1, x[0], w[0], x[v->dim - 1],
                  w[v->dim - 1], q[h]);
    if (!p->own)
        page_print(p,
                   (text){"The source says that the dimensions of the token are divided among the heads, and asks why "
                          "no head gets to see them all. Every head does: h matrices W_i^Q of [d_model, d_k], as the "
                          "paper has them, lie side by side in one of [d_model, d_model].",
                          "出典は、トークンの次元をヘッドどうしで分けると述べ、どのヘッドもすべての次元を見るほうが"
                          "よいのではないかと問うています。実際には、どのヘッドもすべてを見ています。論文のh個の行列"
                          "W_i^Q [d_model, d_k]を横に並べたものが、一つの行列[d_model, d_model]です。"});
}

static void split(page *p, multi_head_chapter *l, att_plan **plan, att_attention_args *args)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *q = l->of.q;
    att_tensor Q = {0};
    page_step(p, (text){"Splitting", "分割"});
    mixed(p, l);
    page_print(p,
               (text){"Of two numbers the first head takes the first, the second the second: heads = 2, head_dim = 1. "
                      "Nothing is moved. The same numbers are seen as [batch, heads, time, dim]: the next head is 1 "
                      "number on, the next word 2.",
                      "二つの数のうち、一つめを最初のヘッドが、二つめを次のヘッドが受け取ります。"
                      "つまりheads = 2、head_dim = 1です。データは動かしません。同じ数を[batch, heads, time, dim]の"
                      "形で見るだけです。次のヘッドは1つ先、次の単語は2つ先にあります。"});
    const int64_t strides[] = {2 * n, 1, 2, 1};
    page_line(p, "strides = {%" PRId64 ", 1, 2, 1}", strides[0]);
    CALL(p, att_wrap(&Q, q, ATT_F32, ATT_DIMS(1, 2, n, 1), strides));
    *args = (att_attention_args){.size = sizeof *args, .q = Q};
    args->k = layer_heads(p, l->of.k, 1, HEADS, n, 1);
    args->v = layer_heads(p, l->of.v, 1, HEADS, n, 1);
    args->out = layer_heads(p, l->c, 1, HEADS, n, 1);
    page_print(
        p, (text){"Keys, values and contexts are viewed in the same way. The plan has what all calls have in common:",
                  "キー、バリュー、コンテキストも同様です。すべての呼び出しに共通なことは、プランで決めます。"});
    CALL(p, att_plan_new(ctx,
                         ATT_OPTIONS(att_attention_spec, .heads = 2, .head_dim = 1,
                                     ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT),
                         plan));
}

static void each_head(page *p, multi_head_chapter *l, const att_plan *plan, att_attention_args args)
{
    const vectors *v = &l->of.words;
    int64_t n = v->n;
    float *w = page_floats(p, n * n);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Each head's weights", "各ヘッドの重み"});
    page_print(p,
               (text){"Scores are divided by the root of head_dim, here 1: of a head's own numbers, not of the whole "
                      "width.",
                      "スコアはhead_dim（ここでは1）の平方根で割ります。全体の幅ではなく、"
                      "一つのヘッドが持つ数の個数です。"});
    page_formula(p, "W_h = softmax(q_h k_hᵀ / √head_dim)");
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    page_table(p, v->labels, n, v->labels, n, w);
    CALL(p, att_weights(plan, &args, 0, 1, 0, n, w));
    page_table(p, v->labels, n, v->labels, n, w);
    page_step(p, (text){"Contexts, side by side", "コンテキストを横に並べる"});
    page_print(p,
               (text){"With the same strides, out puts the heads' contexts side by side again, word by word. (Step 8 "
                      "joins them along another axis.)",
                      "outにも同じストライドを使うと、各ヘッドのコンテキストが、単語ごとに横に並びます。"
                      "（別の軸で連結するとどうなるかは、手順8で示します。）"});
    CALL(p, att_forward(plan, &args));
    page_table(p, v->labels, n, (const char *const[]){"head 1", "head 2"}, OUT, l->c);
}

static void project(page *p, multi_head_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const vectors *v = &l->of.words;
    int64_t n = v->n;
    float *y = l->y;
    const float *b_o = l->bo;
    att_tensor C = l->C, W_o = l->Wo, Y = l->Y;
    page_step(p, (text){"out_proj", "out_proj"});
    page_print(
        p, (text){"So far no head knows of the other. The last layer mixes what they found.",
                  "ここまで、ヘッドは互いのことを知りません。最後の層が、それぞれの見つけたものを混ぜ合わせます。"});
    page_formula(p, "Y = C W_oᵀ + b_o");
    CALL(p, att_tensor_matmul(ctx, &C, &W_o, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Y));
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < 2 * n; i++) y[i] += b_o[i % 2];);
    page_table(p, v->labels, n, NULL, OUT, y);
    if (!p->own)
        page_print(p, (text){"These are the numbers that the source's print(context_vecs) shows, twice, for its batch "
                             "of two.",
                             "これが、出典のprint(context_vecs)が表示する値です。出典は二つのバッチなので、"
                             "同じ値が二回表示されます。"});
}

/* ---- the same, as layers */

static void layers(page *p, multi_head_chapter *l, const att_plan *plan, att_tape *t, att_param *const *w)
{
    const layer *of = &l->of;
    int64_t n = of->words.n, offsets[] = {0, n};
    att_tensor X = of->X, Y = {0};
    att_param *w_q = w[0], *w_k = w[1], *w_v = w[2], *w_o = w[3], *b_o = w[4];
    att_var *x, *q, *k, *v, *c, *y;
    const att_attention_args *args = ATT_OPTIONS(att_attention_args, .n_sequences = 1, .q_offsets = offsets);
    if (p->status != ATT_OK)
        return;
    LOOP(p, x = att_input(t, &X); q = att_linear(t, x, w_q, NULL, ATT_ACTIVATION_IDENTITY, NULL);
         k = att_linear(t, x, w_k, NULL, ATT_ACTIVATION_IDENTITY, NULL);
         v = att_linear(t, x, w_v, NULL, ATT_ACTIVATION_IDENTITY, NULL); q = att_split_heads(t, q, 2);
         k = att_split_heads(t, k, 2); v = att_split_heads(t, v, 2);
         c = att_merge_heads(t, att_attend(t, plan, q, k, v, args, NULL));
         y = att_linear(t, c, w_o, b_o, ATT_ACTIVATION_IDENTITY, NULL););
    CALL(p, att_var_value(t, y, &Y));
    if (p->status == ATT_OK)
        page_agree(p, (text){"Y by hand and from layers", "手で計算したYと層によるY"}, l->y, Y.data, n * OUT);
}

static void as_layers(page *p, multi_head_chapter *l, const att_plan *plan, att_tape *t, att_param *const *w)
{
    page_step(p, (text){"The same, as layers", "同じものを層で書く"});
    page_print(p, (text){"As a model is written: an operation computes at once, and a view costs nothing.",
                         "モデルではこのように書きます。演算はその場で実行され、ビューにはコストがかかりません。"});
    layers(p, l, plan, t, w);
    att_tape_reset(t);
}

static void make_params(page *p, const att_tensor *const *value, att_param **w)
{
    for (int i = 0; i < PARAMETERS && p->status == ATT_OK; i++)
        p->status = att_param_new(p->ctx, value[i], &w[i]);
}

/* ---- torch.nn.MultiheadAttention */

static int64_t min_divisor(int64_t n)
{
    for (int64_t d = 2; d < n; d++) {
        if (n % d == 0)
            return d;
    }
    return n;
}

static void pytorch_module(page *p, const multi_head_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n, width = l->of.words.dim, heads = min_divisor(width), dim = width / heads;
    att_tensor X = l->of.X, W_in, W_o, QKV, C, Y;
    float *w_in = page_zeros(p, 3 * width, width, &W_in), *w_o = page_zeros(p, width, width, &W_o);
    float *qkv = page_zeros(p, n, 3 * width, &QKV), *c = page_zeros(p, n, width, &C), *y = page_zeros(p, n, width, &Y);
    torch_random random;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"torch.nn.MultiheadAttention", "torch.nn.MultiheadAttention"});
    page_print(
        p,
        (text){"PyTorch's own module keeps W_q, W_k and W_v as one matrix, in_proj, so that one product makes "
               "all three; its width is that of the words. nn.MultiheadAttention(%" PRId64 ", %" PRId64
               ") after torch.manual_seed(%d) draws out_proj as nn.Linear does (and then sets its bias to 0), "
               "then in_proj, between Xavier's bounds ±√(6 / (d + 3d)) = ±%.4f:",
               "PyTorchのモジュールは、W_q、W_k、W_vを一つの行列in_projとして持つので、一回の積で三つとも得られます。"
               "幅は単語のベクトルと同じです。torch.manual_seed(%3$d)のあとの"
               "nn.MultiheadAttention(%1$" PRId64 ", %2$" PRId64
               ")は、まずout_projをnn.Linearと同じように作り（バイアスはその後で0にします）、次にin_projを、"
               "Xavierの範囲±√(6 / (d + 3d)) = ±%4$.4fの一様乱数にします。"},
        width, heads, SEED, torch_xavier_bound(width, 3 * width));
    torch_manual_seed(&random, SEED);
    layer_draw(&random, torch_linear_bound(width), w_o, width * width);
    layer_draw(&random, torch_linear_bound(width), y, width); /* out_proj.bias, which is set to 0 afterwards */
    layer_draw(&random, torch_xavier_bound(width, 3 * width), w_in, 3 * width * width);
    const int64_t strides[] = {3 * n * width, dim, 3 * width, 1};
    att_tensor q = {0}, k = {0}, v = {0}, out = layer_heads(p, c, 1, heads, n, dim);
    CALL(p, att_tensor_matmul(ctx, &X, &W_in, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &QKV));
    CALL(p, att_wrap(&q, qkv, ATT_F32, ATT_DIMS(1, heads, n, dim), strides));
    CALL(p, att_wrap(&k, qkv + width, ATT_F32, ATT_DIMS(1, heads, n, dim), strides));
    CALL(p, att_wrap(&v, qkv + 2 * width, ATT_F32, ATT_DIMS(1, heads, n, dim), strides));
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = heads, .head_dim = dim),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    CALL(p, att_tensor_matmul(ctx, &C, &W_o, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Y));
    page_table(p, l->of.words.labels, n, NULL, width, y);
    page_print(p,
               (text){"That is module(x, x, x)[0], with %" PRId64 " heads of %" PRId64
                      " and nothing hidden. (Its attn_mask has the opposite sense: true hides.)",
                      "これはmodule(x, x, x)[0]の値です。ヘッドは%" PRId64 "個で、それぞれの幅は%" PRId64
                      "、何も隠していません。（このモジュールのattn_maskは意味が逆で、trueが「隠す」です。）"},
               heads, dim);
    if (!p->own)
        page_print(p,
                   (text){"And given the weights of the source's class, with kdim = vdim = 3, it makes the numbers of "
                          "step 4.",
                          "また、kdim = vdim = 3として、出典のクラスの重みを与えると、手順4と同じ値になります。"});
}

/* ---- wrong splits */

static void wrong_split(page *p, att_tape *t)
{
    static const float eight[8];
    att_tensor X = page_matrix(p, eight, 1, 8), H = {0};
    page_step(p, (text){"Heads that do not divide the width", "幅を割り切れないヘッド数"});
    page_print(p, (text){"8 numbers for 3 heads: there is no such split, and it is an error.",
                         "8個の数を3個のヘッドに分けることはできません。エラーになります。"});
    ANSWER(p, att_var_value(t, att_split_heads(t, att_input(t, &X), 3), &H));
    att_tape_reset(t);
    if (!p->own)
        page_print(p,
                   (text){"The source's class has an assert against it; its text says that this gives two arrays of 4 "
                          "dimensions, but those would be 2 heads.",
                          "出典のクラスもassertで禁じています。本文には、これで4次元の配列二つになるとありますが、"
                          "それではヘッドは2個です。"});
    page_print(p, (text){"Two heads, and four:", "2個と4個なら分けられます。"});
    ANSWER(p, att_var_value(t, att_split_heads(t, att_input(t, &X), 2), &H));
    page_line(p, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", H.dim[0], H.dim[1], H.dim[2]);
    ANSWER(p, att_var_value(t, att_split_heads(t, att_input(t, &X), 4), &H));
    page_line(p, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", H.dim[0], H.dim[1], H.dim[2]);
    att_tape_reset(t);
}

/* ---- mistakes in published code */

static void wrong_axis(page *p, const multi_head_chapter *l, att_tape *t, att_param *w_o, att_param *b_o)
{
    int64_t n = l->of.words.n;
    att_tensor C = l->C, Side = {0}, Below = {0}, Y = {0};
    att_var *c, *heads[HEADS], *side, *below;
    page_step(p, (text){"Wrong: heads joined along another axis", "間違い：別の軸で連結したヘッド"});
    page_print(p,
               (text){"A published class computes its heads one by one, each [batch, time, head_dim], and joins them "
                      "with torch.cat(heads, dim=0). Dimension 0 is the batch. Here, without a batch, it is the words. "
                      "The two heads, joined along the last dimension and along the first:",
                      "ある公開コードのクラスは、ヘッドを一つずつ計算し（形は[batch, time, head_dim]）、"
                      "torch.cat(heads, dim=0)で連結しています。次元0はバッチです。バッチのないここでは、"
                      "単語の次元にあたります。二つのヘッドを、最後の次元と最初の次元で連結してみます。"});
    if (p->status != ATT_OK)
        return;
    LOOP(p, c = att_input(t, &C); heads[0] = att_slice(t, c, -1, 0, 1); heads[1] = att_slice(t, c, -1, 1, 1);
         side = att_concat(t, 2, heads, -1); below = att_concat(t, 2, heads, 0););
    CALL(p, att_var_value(t, side, &Side));
    CALL(p, att_var_value(t, below, &Below));
    page_line(p, "side   [%" PRId64 ", %" PRId64 "]", Side.dim[0], Side.dim[1]);
    page_line(p, "below  [%" PRId64 ", %" PRId64 "]", Below.dim[0], Below.dim[1]);
    if (p->status != ATT_OK)
        return;
    page_agree(p, (text){"The heads side by side, and C", "横に並べたヘッドとC"}, Side.data, l->c, n * OUT);
    page_print(p, (text){"out_proj takes rows of 2 numbers and refuses the other, in PyTorch as here:",
                         "out_projの入力は2個の数の行なので、もう一方は拒否されます。PyTorchでも同じです。"});
    ANSWER(p, att_var_value(t, att_linear(t, below, w_o, b_o, ATT_ACTIVATION_IDENTITY, NULL), &Y));
    if (n < 2)
        return;
    att_tensor Again = page_matrix(p, Below.data, n, OUT);
    float *y = page_zeros(p, n, OUT, &Y);
    page_print(p,
               (text){"A reshape to [%" PRId64 ", 2] silences the error and makes it worse: a row now has one head's "
                      "contexts of two words.",
                      "そこで[%" PRId64 ", 2]にreshapeするとエラーは消えますが、事態は悪化します。"
                      "一行に、一つのヘッドの、二つの単語のコンテキストが並んでしまいます。"},
               n);
    page_table(p, l->of.words.labels, n, NULL, OUT, Below.data);
    if (p->status == ATT_OK)
        p->status = att_tensor_matmul(p->ctx, &Again, &l->Wo, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Y);
    for (int64_t i = 0; i < n * OUT && p->status == ATT_OK; i++)
        y[i] += l->bo[i % OUT];
    page_agree(p, (text){"out_proj of that, and Y of step 4", "それをout_projに通したものと手順4のY"}, l->y, y,
               n * OUT);
}

/* [2, n, OUT]: a, and a with its rows reversed. */
static const float *with_reverse(page *p, const float *a, int64_t n)
{
    float *both = page_floats(p, 2 * n * OUT);
    for (int64_t i = 0; i < 2 * n && p->status == ATT_OK; i++)
        memcpy(both + i * OUT, a + (i < n ? i : 2 * n - 1 - i) * OUT, OUT * sizeof *a);
    return both;
}

static void unpacked(page *p, const multi_head_chapter *l, const att_plan *plan)
{
    const vectors *v = &l->of.words;
    int64_t n = v->n;
    const char *names[VECTORS_MAX];
    float *c = page_floats(p, 2 * n * OUT);
    att_attention_args args = {.size = sizeof args};
    args.q = layer_heads(p, with_reverse(p, l->of.q, n), 2, HEADS, n, 1);
    args.k = layer_heads(p, with_reverse(p, l->of.k, n), 2, HEADS, n, 1);
    args.v = layer_heads(p, with_reverse(p, l->of.v, n), 2, HEADS, n, 1);
    args.out = layer_heads(p, c, 2, HEADS, n, 1);
    for (int64_t i = 0; i < n; i++)
        names[i] = v->labels[n - 1 - i];
    page_step(p, (text){"Wrong: one tensor, unpacked as two", "間違い：一つのテンソルを二つに分けて受け取る"});
    page_print(p,
               (text){"The same class writes attention_output, _ = self.attention_func.forward(...). But that function "
                      "returns one tensor, no tuple, and Python unpacks a tensor along its first dimension, the "
                      "batch. Take a batch of two: the words, and the words last first.",
                      "同じクラスは、attention_output, _ = self.attention_func.forward(...)と書いています。"
                      "しかし、この関数が返すのはタプルではなく、一つのテンソルです。Pythonは、テンソルを最初の次元、"
                      "つまりバッチの方向に分解します。単語の列と、それを逆順にした列の、二つのバッチで見てみます。"});
    CALL(p, att_forward(plan, &args));
    page_table(p, v->labels, n, NULL, OUT, c);
    page_print(p, (text){"These are attention_output now. And these are _, which nobody reads:",
                         "これがattention_outputになります。そして次が_で、誰も読みません。"});
    page_table(p, names, n, NULL, OUT, p->status == ATT_OK ? c + n * OUT : c);
    page_print(
        p, (text){"Half of the batch is gone, without a word. Other batches end with an error that names neither "
                  "cause nor tensor:",
                  "バッチの半分が、何の知らせもなく消えてしまいました。バッチの大きさが2でなければエラーになりますが、"
                  "原因もテンソルも示されません。"});
    page_line(p, "batch 1   ValueError: not enough values to unpack (expected 2, got 1)");
    page_line(p, "batch 3   ValueError: too many values to unpack (expected 2)");
    page_print(p, (text){"Here a result has a place whose shape the caller states. One that has room for the first "
                         "sequence only:",
                         "ここでは、結果の置き場所と形を、呼び出す側が示します。一つめの系列のぶんしかなければ、"
                         "こうなります。"});
    page_line(p, "args.out = [1, %d, %" PRId64 ", 1]", HEADS, n);
    args.out = layer_heads(p, c, 1, HEADS, n, 1);
    if (p->status == ATT_OK)
        ANSWER(p, att_forward(plan, &args));
}

static att_status run(page *p)
{
    multi_head_chapter l = {0};
    if (layer_make(p, &l.of, OUT, SEED) != ATT_OK)
        return p->status;
    int64_t n = l.of.words.n;
    l.wo = page_zeros(p, OUT, OUT, &l.Wo), l.bo = page_floats(p, OUT);
    l.c = page_zeros(p, n, OUT, &l.C), l.y = page_zeros(p, n, OUT, &l.Y);
    if (p->status != ATT_OK)
        return p->status;
    att_attention_args args = {0};
    att_plan *plan = NULL;
    att_tape *tape = NULL;
    att_param *w[PARAMETERS] = {0};
    att_tensor b_o = {0};
    const att_tensor *const value[PARAMETERS] = {&l.of.Wq, &l.of.Wk, &l.of.Wv, &l.Wo, &b_o};
    p->status = att_wrap(&b_o, l.bo, ATT_F32, ATT_DIMS(OUT), NULL);
    introduce(p, &l);
    split(p, &l, &plan, &args);
    each_head(p, &l, plan, args);
    project(p, &l);
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &tape);
    make_params(p, value, w);
    if (p->status == ATT_OK)
        as_layers(p, &l, plan, tape, w);
    pytorch_module(p, &l);
    if (p->status == ATT_OK)
        wrong_split(p, tape);
    if (p->status == ATT_OK)
        wrong_axis(p, &l, tape, w[3], w[4]);
    if (p->status == ATT_OK)
        unpacked(p, &l, plan);
    multi_head_unregistered(p, &l.of, plan, value);
    att_tape_free(tape);
    for (int i = 0; i < PARAMETERS; i++)
        att_param_free(w[i]);
    att_plan_free(plan);
    return p->status;
}

const chapter chapter_multi_head = {
    .about = {"two heads, out_proj, nn.MultiheadAttention; wrong splits, joins",
              "二つのヘッドとout_proj、nn.MultiheadAttention、分割と連結の間違い"},
    .run = run,
};
