/* The general attention layer: inputs X, separate queries Q; self-attention as a special case; the effect of order. */
// order: 70
#include "layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 231, QUERIES = 3, KEY = 2, VALUE = 3 };

static const char *const query_names[QUERIES] = {"h_1", "h_2", "h_3"};

typedef struct general_layer_chapter {
    vectors v;           /* inputs [n, dim] */
    float *wq, *wk, *wv; /* [dim, KEY], [dim, KEY], [dim, VALUE]: as in X W */
    float *q;            /* queries [QUERIES, KEY] */
    float *k, *val;      /* keys [n, KEY], values [n, VALUE] */
    float *y;            /* of the general layer [QUERIES, VALUE] */
    float *self;         /* of self-attention [n, VALUE] */
    att_tensor X, Wq, Wk, Wv, Q, K, V, Y;
} general_layer_chapter;

static void introduce(page *p, general_layer_chapter *l)
{
    torch_random random;
    page_title(p, (text){"The attention layer in general", "一般の注意層"});
    page_print(p,
               (text){"So far the words asked each other. In general somebody else asks: say, the states of a network "
                      "that writes a caption, and X is the parts of the picture. X [N, D_x] are the inputs; Q [M, D_k] "
                      "are the queries, as many as one likes. Here N = %" PRId64 ", D_x = %" PRId64
                      ", M = %d, D_k = %d.",
                      "これまでは、単語どうしが尋ね合っていました。一般には、尋ねる側は別にあります。たとえば、"
                      "画像の説明文を書くネットワークの状態が尋ね、Xは画像の各部分です。X [N, D_x]が入力、"
                      "Q [M, D_k]がクエリで、クエリはいくつあってもかまいません。ここではN = %" PRId64
                      "、D_x = %" PRId64 "、M = %d、D_k = %dです。"},
               l->v.n, l->v.dim, QUERIES, KEY);
    page_table(p, l->v.labels, l->v.n, NULL, l->v.dim, l->v.x);
    page_print(p,
               (text){"Queries, and the matrices below, are random numbers between -1 and 1: uniform_(-1, 1) after "
                      "torch.manual_seed(%d).",
                      "クエリと、このあとの行列は、-1から1までの乱数です。torch.manual_seed(%d)のあとの"
                      "uniform_(-1, 1)で得られます。"},
               SEED);
    torch_manual_seed(&random, SEED);
    layer_draw(&random, 1, l->q, QUERIES * KEY);
    layer_draw(&random, 1, l->wk, l->v.dim * KEY);
    layer_draw(&random, 1, l->wv, l->v.dim * VALUE);
    layer_draw(&random, 1, l->wq, l->v.dim * KEY);
    page_table(p, query_names, QUERIES, NULL, KEY, l->q);
}

static void keys_and_values(page *p, general_layer_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_tensor X = l->X, W_k = l->Wk, W_v = l->Wv, K = l->K, V = l->V;
    page_step(p, (text){"Keys and values", "キーとバリュー"});
    page_print(
        p,
        (text){"Two linear maps: W_k [D_x, D_k] makes keys of the queries' dimension, so that they can be "
               "compared; W_v [D_x, D_v] makes values, of any dimension: here D_v = %d.",
               "二つの線形変換です。W_k [D_x, D_k]は、クエリと比べられるように、クエリと同じ次元のキーを作ります。"
               "W_v [D_x, D_v]が作るバリューの次元は自由です。ここではD_v = %dです。"},
        VALUE);
    page_formula(p, "K = X W_k    V = X W_v");
    CALL(p, att_tensor_matmul(ctx, &X, &W_k, NULL, &K));
    page_table(p, l->v.labels, l->v.n, (const char *const[]){"k_1", "k_2"}, KEY, l->k);
    CALL(p, att_tensor_matmul(ctx, &X, &W_v, NULL, &V));
    page_table(p, l->v.labels, l->v.n, (const char *const[]){"v_1", "v_2", "v_3"}, VALUE, l->val);
}

static void align_and_attend(page *p, general_layer_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    att_tensor E, A, K = l->K, Q = l->Q, V = l->V, Y = l->Y;
    float *e = page_zeros(p, n, QUERIES, &E), *a = page_zeros(p, n, QUERIES, &A);
    att_tensor At = layer_transpose(p, a, n, QUERIES);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Alignment", "アライメント"});
    page_print(p, (text){"How well does input i fit query j? Row = input, column = query.",
                         "入力iは、クエリjにどれだけ合うでしょうか。行が入力、列がクエリです。"});
    page_formula(p, "e_ij = q_j · k_i / √D_k");
    CALL(p, att_tensor_matmul(ctx, &K, &Q, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &E));
    LOOP(p, for (int64_t i = 0; i < 3 * n; i++) e[i] /= sqrtf(2););
    page_table(p, l->v.labels, n, query_names, QUERIES, e);
    if (!p->own)
        page_print(p, (text){"The source writes q_j · x_i / √D_x here. But x_i is not compared, its key is: q_j has 2 "
                             "numbers, as a key has, and x_i has 3.",
                             "出典の式はq_j · x_i / √D_xとなっています。しかし、比べるのはx_iではなくキーです。"
                             "q_jはキーと同じく2個の数からなり、x_iは3個です。"});
    page_step(p, (text){"Attention", "注意"});
    page_print(p, (text){"Softmax runs down the columns, dimension 0: each query has its weights, with sum 1.",
                         "softmaxは列の方向（次元0）に計算します。クエリごとに、合計が1の重みが得られます。"});
    CALL(p, att_tensor_softmax(ctx, &E, 0, &A));
    page_table(p, l->v.labels, n, query_names, QUERIES, a);
    page_print(p, (text){"The output has one row for each query. (At is A transposed, as a view.)",
                         "出力は、クエリごとに一行です。（Atは、Aを転置したビューです。）"});
    page_formula(p, "y_j = Σ_i a_ij v_i");
    CALL(p, att_tensor_matmul(ctx, &At, &V, NULL, &Y));
    page_table(p, query_names, QUERIES, NULL, VALUE, l->y);
    if (!p->own)
        page_print(p, (text){"The source adds up inputs x_i, but it is the values v_i; so Y is M × D_v, not M × D_k.",
                             "出典の式は入力x_iを足していますが、足すのはバリューv_iです。ですからYの形も、"
                             "M × D_kではなくM × D_vです。"});
}

static void in_one_call(page *p, general_layer_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    float *fused = page_floats(p, QUERIES * VALUE);
    att_tensor q = layer_heads(p, l->q, 1, 1, QUERIES, KEY), k = layer_heads(p, l->k, 1, 1, n, KEY);
    att_tensor v = layer_heads(p, l->val, 1, 1, n, VALUE), out = layer_heads(p, fused, 1, 1, QUERIES, VALUE);
    page_step(p, (text){"In one call", "一度の呼び出しで"});
    page_print(p, (text){"Queries and keys may differ in number, keys and values in dimension.",
                         "クエリとキーは数が違っていてもよく、キーとバリューは次元が違っていてもかまいません。"});
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .value_dim = 3),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_agree(p, (text){"Y and att_attention", "Yとatt_attention"}, l->y, fused, QUERIES * VALUE);
}

/* ---- self-attention, and the order of the inputs */

/* Applies the general layer on x [n, dim] with queries q [m, KEY]; q NULL: self-attention. out [m, VALUE]. */
static void apply(page *p, const general_layer_chapter *l, const float *x, const float *q, int64_t m,
                  const att_mask *mask, float *out)
{
    int64_t n = l->v.n;
    att_tensor Q, K, V, X = page_matrix(p, x, n, l->v.dim);
    float *own = page_zeros(p, m, KEY, &Q), *k = page_zeros(p, n, KEY, &K), *v = page_zeros(p, n, VALUE, &V);
    if (p->status == ATT_OK && !q)
        p->status = att_tensor_matmul(p->ctx, &X, &l->Wq, NULL, &Q);
    if (p->status == ATT_OK)
        p->status = att_tensor_matmul(p->ctx, &X, &l->Wk, NULL, &K);
    if (p->status == ATT_OK)
        p->status = att_tensor_matmul(p->ctx, &X, &l->Wv, NULL, &V);
    att_attention_args args = {.size = sizeof args};
    args.q = layer_heads(p, q ? q : own, 1, 1, m, KEY), args.k = layer_heads(p, k, 1, 1, n, KEY);
    args.v = layer_heads(p, v, 1, 1, n, VALUE), args.out = layer_heads(p, out, 1, 1, m, VALUE);
    if (p->status == ATT_OK)
        p->status = att_attention(p->ctx,
                                  ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = KEY, .value_dim = VALUE,
                                              .stage = &(const att_stage){.mask = mask}, .n_stages = mask != NULL,
                                              .align = ATT_ALIGN_TOP_LEFT),
                                  &args);
}

static void self_attention(page *p, general_layer_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    att_tensor Q, X = l->X, W_q = l->Wq;
    float *own = page_zeros(p, n, KEY, &Q);
    att_tensor q = layer_heads(p, own, 1, 1, n, KEY);
    att_tensor k = layer_heads(p, l->k, 1, 1, n, KEY), v = layer_heads(p, l->val, 1, 1, n, VALUE);
    att_tensor out = layer_heads(p, l->self, 1, 1, n, VALUE);
    page_step(p, (text){"Self-attention, a special case", "特別な場合としての自己注意"});
    page_print(
        p, (text){"If the queries come from the inputs too, the layer needs nothing but X, and M = N. That is "
                  "all that self-attention is.",
                  "クエリも入力から作れば、層に必要なのはXだけになり、M = Nです。自己注意とは、それだけのことです。"});
    page_formula(p, "Q = X W_q");
    CALL(p, att_tensor_matmul(ctx, &X, &W_q, NULL, &Q));
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .value_dim = 3),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_table(p, l->v.labels, n, NULL, VALUE, l->self);
}

/* Reverses the rows of a [n, width]. */
static void reverse(const float *a, int64_t n, int64_t width, float *out)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * width, a + (n - 1 - i) * width, (size_t)width * sizeof *a);
}

static void order(page *p, const general_layer_chapter *l)
{
    int64_t n = l->v.n, dim = l->v.dim;
    const char *names[VECTORS_MAX];
    float *x = page_floats(p, n * dim), *out = page_floats(p, n * VALUE), *expected = page_floats(p, n * VALUE);
    float *y = page_floats(p, QUERIES * VALUE);
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < n; i++)
        names[i] = l->v.labels[n - 1 - i];
    reverse(l->v.x, n, dim, x);
    reverse(l->self, n, VALUE, expected);
    page_step(p, (text){"The order of the inputs", "入力の順序"});
    page_print(p, (text){"The same words, last first, through the same self-attention:",
                         "同じ単語を逆の順に並べて、同じ自己注意に通します。"});
    apply(p, l, x, NULL, n, NULL, out);
    page_table(p, names, n, NULL, VALUE, out);
    page_agree(p, (text){"The outputs above, last first, and these", "上の出力を逆順に並べたものとこの出力"}, expected,
               out, n * VALUE);
    page_print(p,
               (text){"So each word gets the same output wherever it stands: permute the inputs, and the outputs are "
                      "permuted in the same way. That is called equivariance, f(P X) = P f(X).",
                      "つまり、どの単語も、どこにあろうと同じ出力になります。入力を並べ替えると、出力も同じように"
                      "並べ替わります。これを同変性といい、f(P X) = P f(X)と書きます。"});
    if (!p->own)
        page_print(p, (text){"The source calls it invariance; but that would be f(P X) = f(X).",
                             "出典はこれを「順序不変」と呼んでいますが、不変ならf(P X) = f(X)となるはずです。"});
    page_print(p, (text){"The general layer is invariant in its inputs: queries that stay get the same Y from X in any "
                         "order.",
                         "一般の注意層は、入力の順序について不変です。クエリがそのままなら、"
                         "Xをどう並べ替えてもYは変わりません。"});
    apply(p, l, x, l->q, QUERIES, NULL, y);
    page_agree(p, (text){"Y from X, and from X last first", "XからのYと、逆順のXからのY"}, l->y, y, QUERIES * VALUE);
}

/* p(t): sine and cosine in turn (Vaswani et al. 2017, section 3.5). */
static void positions(int64_t n, int64_t dim, float *out)
{
    for (int64_t i = 0; i < n * dim; i++) {
        int64_t t = i / dim, c = i % dim;
        double angle = (double)t / pow(10000, (double)(c - c % 2) / (double)dim);
        out[i] = (float)(c % 2 ? cos(angle) : sin(angle));
    }
}

/* Prints the difference of f(P X) and P f(X), whose inputs x and reversed have been prepared. */
static void compare_orders(page *p, const general_layer_chapter *l, const float *x, const float *reversed,
                           const att_mask *mask)
{
    int64_t n = l->v.n, count = n * VALUE;
    float *straight = page_floats(p, count), *back = page_floats(p, count), *expected = page_floats(p, count);
    if (p->status != ATT_OK)
        return;
    apply(p, l, x, NULL, n, mask, straight);
    apply(p, l, reversed, NULL, n, mask, back);
    reverse(straight, n, VALUE, expected);
    page_agree(p, (text){"P f(X) and f(P X)", "P f(X)とf(P X)"}, expected, back, count);
}

static void what_tells_order(page *p, const general_layer_chapter *l)
{
    int64_t n = l->v.n, dim = l->v.dim;
    float *where = page_floats(p, n * dim), *x = page_floats(p, n * dim), *reversed = page_floats(p, n * dim);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Telling the order", "順序を伝える"});
    page_print(
        p, (text){"But sentences have an order. Either each input is told its position t: a vector p(t) of sines "
                  "and cosines is added to it (`attend explain positions` says why).",
                  "しかし、文には順序があります。一つの方法は、それぞれの入力に位置tを伝えることです。"
                  "サインとコサインからなるベクトルp(t)を足します（理由は`attend explain positions`で示します）。"});
    page_formula(p, "p(t)_2i = sin(t / 10000^(2i/d))    p(t)_2i+1 = cos(t / 10000^(2i/d))");
    positions(n, dim, where);
    page_table(p, l->v.labels, n, NULL, dim, where);
    reverse(l->v.x, n, dim, reversed);
    for (int64_t i = 0; i < n * dim; i++)
        x[i] = l->v.x[i] + where[i], reversed[i] += where[i];
    compare_orders(p, l, x, reversed, NULL);
    page_print(p,
               (text){"Or the mask tells it: with a causal mask each word sees others, according to where it stands.",
                      "もう一つは、マスクで伝えることです。因果マスクがあれば、どこにあるかによって、"
                      "見える単語が変わります。"});
    reverse(l->v.x, n, dim, reversed);
    compare_orders(p, l, l->v.x, reversed, att_mask_causal);
}

static att_status run(page *p)
{
    general_layer_chapter l = {.v = page_vectors(p, &layer_words)};
    int64_t n = l.v.n, dim = l.v.dim;
    l.X = page_matrix(p, l.v.x, n, dim);
    l.wq = page_zeros(p, dim, KEY, &l.Wq), l.q = page_zeros(p, QUERIES, KEY, &l.Q);
    l.wk = page_zeros(p, dim, KEY, &l.Wk), l.k = page_zeros(p, n, KEY, &l.K);
    l.wv = page_zeros(p, dim, VALUE, &l.Wv), l.val = page_zeros(p, n, VALUE, &l.V);
    l.y = page_zeros(p, QUERIES, VALUE, &l.Y), l.self = page_floats(p, n * VALUE);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    keys_and_values(p, &l);
    align_and_attend(p, &l);
    in_one_call(p, &l);
    self_attention(p, &l);
    order(p, &l);
    what_tells_order(p, &l);
    return p->status;
}

const chapter chapter_general_layer = {
    .about = {"queries of their own; self-attention as a case of it; order",
              "別に用意したクエリ、特別な場合としての自己注意、入力の順序"},
    .run = run,
};
