/* Causal attention: the mask before softmax, wrong ways, a batch, shorter inputs, other masks. */
// order: 40
#include "causal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 123, OUT = CAUSAL_OUT, BATCH = 2 };

typedef struct causal_chapter {
    layer of;
    float *s;    /* scores [n, n], all of them */
    float *w;    /* weights [n, n], causal */
    float *c;    /* contexts [n, OUT], causal */
    float *both; /* contexts [BATCH, n, OUT] */
    att_tensor S, W, C;
} causal_chapter;

static void square(page *p, const causal_chapter *l, const float *a /* [n, n] */)
{
    page_table(p, l->of.words.labels, l->of.words.n, l->of.words.labels, l->of.words.n, a);
}

/* Prints a square matrix with the sums of its rows. */
static void square_and_sums(page *p, const causal_chapter *l, const float *w /* [n, n] */)
{
    int64_t n = l->of.words.n;
    const char *names[VECTORS_MAX + 1];
    float *rows = page_floats(p, n * (n + 1));
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < n; i++) {
        float *row = rows + i * (n + 1);
        for (int64_t j = 0; j < n; j++)
            row[n] += row[j] = w[i * n + j];
        names[i] = l->of.words.labels[i];
    }
    names[n] = "Σ_j";
    page_table(p, l->of.words.labels, n, names, n + 1, rows);
}

/* Returns a copy of the scores to be modified. */
static float *copy_scores(page *p, const causal_chapter *l, att_tensor *view)
{
    int64_t n = l->of.words.n;
    float *s = page_zeros(p, n, n, view);
    if (p->status == ATT_OK)
        memcpy(s, l->s, (size_t)(n * n) * sizeof *s);
    return s;
}

static void introduce(page *p, causal_chapter *l)
{
    const vectors *v = &l->of.words;
    page_title(p, (text){"Causal attention: hiding the future", "因果的注意：未来を隠す"});
    page_print(p,
               (text){"A language model learns to predict the next word. It must not see it: each of the %" PRId64
                      " words may look only at itself and at the words before it. Weights as in `attend explain "
                      "trainable`, but from seed %d; queries, keys and values are:",
                      "言語モデルは、次の単語を予測するように学習します。その単語が見えてしまってはいけません。%" PRId64
                      "個の単語はそれぞれ、自分自身と、自分より前の単語だけを見ることができます。"
                      "重みは`attend explain trainable`と同じように、ただしシード%dから作ります。"
                      "クエリ、キー、バリューは次のとおりです。"},
               v->n, SEED);
    layer_print(p, &l->of);
}

static void scores(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *s = l->s;
    att_tensor Q = l->of.Q, K = l->of.K, S = l->S;
    page_step(p, (text){"Scores", "スコア"});
    page_print(p, (text){"Row = query, column = key. The future lies right of the diagonal.",
                         "行がクエリ、列がキーです。対角線より右が未来にあたります。"});
    CALL(p, att_tensor_matmul(ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < n * n; i++) s[i] /= sqrtf(2););
    square(p, l, s);
}

static void before_softmax(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const layer *of = &l->of;
    int64_t n = of->words.n;
    att_tensor S, W = l->W, V = of->V, C = l->C;
    float *s = copy_scores(p, l, &S);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"The mask, before softmax", "マスクはsoftmaxの前に"});
    page_print(p, (text){"A score of -inf becomes a weight of exp(-inf) = 0, and softmax divides by the sum of what is "
                         "left: each row still sums to 1.",
                         "スコアを-infにすると、重みはexp(-inf) = 0になります。softmaxは残りの合計で割るので、"
                         "どの行も合計は1のままです。"});
    page_formula(p, "s_ij = -inf  for j > i");
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = i + 1; j < n; j++) s[i * n + j] = -INFINITY;);
    square(p, l, s);
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    square_and_sums(p, l, l->w);
    CALL(p, att_tensor_matmul(ctx, &W, &V, NULL, &C));
    page_table(p, of->words.labels, n, NULL, OUT, l->c);
    page_print(p, (text){"The first word can only look at itself: its context is its own value.",
                         "最初の単語が見ることができるのは自分だけなので、コンテキストは自分のバリューそのものです。"});
}

/* Shows the causal mask with a row for each key. */
static void keys_in_rows(page *p, const causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor E, A, Q = l->of.Q, K = l->of.K;
    float *e = page_zeros(p, n, n, &E), *a = page_zeros(p, n, n, &A), *across = page_floats(p, n * n);
    if (p->status != ATT_OK)
        return;
    page_print(p,
               (text){"Some write this matrix with a row for each key and a column for each query, e_ij = k_i · q_j / "
                      "√d_k (`attend explain general-layer`). Then key i comes later than query j below the diagonal: "
                      "it is the lower triangle that is masked, and softmax runs down the columns.",
                      "この行列を、行をキー、列をクエリにして、e_ij = k_i · q_j / √d_kと書くこともあります"
                      "（`attend explain general-layer`）。すると、キーiがクエリjより後になるのは対角線の下です。"
                      "マスクするのは下三角で、softmaxは列の方向に計算します。"});
    CALL(p, att_tensor_matmul(ctx, &K, &Q, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &E));
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) e[i * n + j] =
                i > j ? -INFINITY : e[i * n + j] / sqrtf(2););
    CALL(p, att_tensor_softmax(ctx, &E, 0, &A));
    square(p, l, a);
    for (int64_t i = 0; i < n * n && p->status == ATT_OK; i++)
        across[i] = a[i % n * n + i / n];
    page_agree(p, (text){"W, and this matrix transposed", "Wと、この行列を転置したもの"}, l->w, across, n * n);
    if (!p->own)
        page_print(
            p, (text){"That is why one source masks the lower triangle and is right, and why the same mask on "
                      "rows of queries would show each word only itself and the future.",
                      "ある出典が下三角をマスクしているのは、そのためで、間違いではありません。しかし、"
                      "行がクエリの行列に同じマスクを使うと、どの単語にも、自分と未来だけが見えることになります。"});
}

static void after_softmax(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor S, W;
    float *w = page_zeros(p, n, n, &W);
    copy_scores(p, l, &S);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Wrong: the mask after softmax", "間違い：softmaxの後のマスク"});
    page_print(p,
               (text){"Setting weights to zero afterwards hides the future too. But softmax had divided by a sum with "
                      "the future in it: the rows no longer sum to 1.",
                      "softmaxの後で重みをゼロにしても、未来は隠れます。しかしsoftmaxは、未来を含んだ合計で"
                      "すでに割ってしまっているので、行の合計は1になりません。"});
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = i + 1; j < n; j++) w[i * n + j] = 0;);
    square_and_sums(p, l, w);
    page_print(
        p, (text){"Dividing each row by its sum seems to repair it:", "各行をその合計で割れば、直るように見えます。"});
    float *sums = page_floats(p, n);
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) sums[i] += w[i * n + j];
         for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) w[i * n + j] /= sums[i];);
    page_agree(p,
               (text){"Masked before softmax, and after it with the division",
                      "softmaxの前のマスクと、後のマスクを割り算で直したもの"},
               l->w, w, n * n);
}

/* Shows the effect of the division after softmax if the last word, which is masked for all others, has a high score. */
static void leak(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor S, W;
    float *s = copy_scores(p, l, &S), *w = page_zeros(p, n, n, &W), *sums = page_floats(p, n);
    if (p->status != ATT_OK || n < 2)
        return;
    page_print(p,
               (text){"But what is hidden still had its say. Let only the last word change, so that it scores 200 with "
                      "all others:",
                      "それでも、隠したはずのものが影響を及ぼしています。最後の単語だけを変えて、"
                      "ほかのすべての単語とのスコアが200になるようにしてみます。"});
    LOOP(p, for (int64_t i = 0; i + 1 < n; i++) s[i * n + n - 1] = 200;);
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++)
            w[i * n + j] = 0;
        for (int64_t j = 0; j < n; j++)
            sums[i] += w[i * n + j];
        for (int64_t j = 0; j < n; j++)
            w[i * n + j] /= sums[i];
    }
    square(p, l, w);
    page_print(p, (text){"Its exponential took the whole sum, exp(-200) is below float, and 0/0 is not a number: a "
                         "word of the future has destroyed the past. Masked before softmax nothing changes at all, "
                         "whatever stands there.",
                         "最後の単語の指数関数の値が合計をすべて占め、ほかはexp(-200)で、floatでは0になります。"
                         "そして0/0は数ではありません（NaN）。未来の単語が過去を壊してしまいました。"
                         "softmaxの前にマスクすれば、そこに何があっても、何も変わりません。"});
}

static void largest_number(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor S, W, C, V = l->of.V;
    float *w = page_zeros(p, n, n, &W), *c = page_zeros(p, n, OUT, &C);
    copy_scores(p, l, &S);
    if (p->status != ATT_OK)
        return;
    page_print(
        p,
        (text){
            "Worse is what one reads in published code: the most negative float, -FLT_MAX, which is meant for scores, "
            "put into "
            "the weights. The contexts then are:",
            "公開されているコードには、もっと悪い例もあります。スコアに入れるはずの、floatで表せる最小の数-FLT_MAXを、"
            "重みのほうに入れてしまうのです。するとコンテキストは次のようになります。"});
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = i + 1; j < n; j++) w[i * n + j] = -FLT_MAX;);
    CALL(p, att_tensor_matmul(ctx, &W, &V, NULL, &C));
    page_table(p, l->of.words.labels, n, NULL, OUT, c);
}

static void zero_times_infinity(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor S, W;
    float *s = copy_scores(p, l, &S), *w = page_zeros(p, n, n, &W), *mask = page_floats(p, n * n);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Wrong: a mask by multiplication", "間違い：掛け算で作るマスク"});
    page_print(p,
               (text){"triu(ones, 1) * -inf, a recipe that one often reads, looks like 0 below the diagonal and -inf "
                      "above. But zero times infinity is not a number:",
                      "triu(ones, 1) * -infという書き方をよく見かけます。対角線の下が0、上が-infになりそうですが、"
                      "ゼロ掛ける無限大は数ではありません（NaN）。"});
    LOOP(p,
         for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) mask[i * n + j] = (float)(j > i) * -INFINITY;);
    square(p, l, mask);
    LOOP(p, for (int64_t i = 0; i < n * n; i++) s[i] += mask[i];);
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    square(p, l, w);
    page_print(p, (text){"So a mask is filled in, not multiplied (masked_fill in PyTorch), or better: a yes or no that "
                         "no arithmetic touches. Mind which is which: in this library, and in PyTorch's "
                         "scaled_dot_product_attention, true means attend; in masked_fill and in "
                         "nn.MultiheadAttention, true means hide.",
                         "ですからマスクは、掛けるのではなく書き込みます（PyTorchではmasked_fill）。"
                         "もっとよいのは、計算に触れさせず、「見る」「見ない」の二値のまま扱うことです。"
                         "向きには注意しましょう。このライブラリとPyTorchのscaled_dot_product_attentionでは、"
                         "trueは「見る」です。masked_fillとnn.MultiheadAttentionでは、trueは「隠す」です。"});
    if (!p->own)
        page_print(p, (text){"The source gives the recipe in its text; its class rightly uses masked_fill_.",
                             "出典は、本文ではこの掛け算の書き方を示していますが、クラスのほうでは正しくmasked_fill_を"
                             "使っています。"});
}

/* Returns a view of the batch: the same data for each sequence, with stride 0. */
static att_tensor repeat(page *p, const float *a, int64_t n)
{
    att_tensor t = layer_heads(p, a, BATCH, 1, n, OUT);
    t.stride[0] = 0;
    return t;
}

static void print_batch(page *p, const causal_chapter *l)
{
    static const char *const names[] = {"1st: c_1", "c_2", "2nd: c_1", "c_2"};
    int64_t n = l->of.words.n, width = BATCH * OUT;
    float *rows = page_floats(p, n * width);
    for (int64_t i = 0; i < n * width && p->status == ATT_OK; i++)
        rows[i] = l->both[(i % width / OUT * n + i / width) * OUT + i % OUT];
    page_table(p, l->of.words.labels, n, names, width, rows);
}

static void in_one_call(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    att_tensor q = repeat(p, l->of.q, n), k = repeat(p, l->of.k, n), v = repeat(p, l->of.v, n);
    att_tensor out = layer_heads(p, l->both, BATCH, 1, n, OUT);
    page_step(p, (text){"A batch, in one call", "バッチを一度の呼び出しで"});
    page_print(p,
               (text){"A batch is several sequences at once; here the same one twice (with stride 0, so that it is not "
                      "copied). att_mask_causal is one of the masks that a call can have. It asks where the queries "
                      "stand among the keys, and there is no default:",
                      "バッチとは、複数の系列をまとめたものです。ここでは、同じ系列を二つ並べます"
                      "（ストライドを0にするので、コピーはしません）。att_mask_causalは、呼び出しで"
                      "指定できるマスクの一つです。クエリがキーに対してどの位置にあるかを指定する必要があり、"
                      "既定値はありません。"});
    ANSWER(p,
           att_attention(
               ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, ATT_STAGES({.mask = att_mask_causal})),
               ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_print(p, (text){"Query i is at position i:", "クエリiの位置はiです。"});
    CALL(p, att_attention(ctx,
                          ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2,
                                      ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    print_batch(p, l);
    page_agree(p, (text){"W V and att_attention", "W Vとatt_attention"}, l->c, l->both, n * OUT);
    if (!p->own)
        page_print(p, (text){"This is what the source prints, a tensor of shape [2, 6, 2]. No matrix of -inf was made: "
                             "the future is not computed and then hidden, but skipped.",
                             "これが出典の表示する、形が[2, 6, 2]のテンソルです。-infの行列は作られていません。"
                             "未来は、計算してから隠すのではなく、計算しないのです。"});
}

static void shorter(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n, m = n > 2 ? n - 2 : n, lengths[] = {n, m};
    float *full = page_floats(p, BATCH * n * OUT);
    att_tensor q = repeat(p, l->of.q, n), k = repeat(p, l->of.k, n), v = repeat(p, l->of.v, n);
    att_tensor out = layer_heads(p, l->both, BATCH, 1, n, OUT);
    if (p->status != ATT_OK)
        return;
    memcpy(full, l->both, (size_t)(BATCH * n * OUT) * sizeof *full);
    page_step(p, (text){"Shorter inputs", "短い入力"});
    page_print(
        p,
        (text){"Sequences of a batch differ in length. One can keep a mask for the longest and cut a corner out of "
               "it, mask[:num_tokens, :num_tokens], when all are shorter. Here each sequence has its own length; "
               "let the second have %" PRId64 " words:",
               "バッチの系列は、長さがまちまちです。最大の長さのマスクを用意しておき、全体が短いときは"
               "mask[:num_tokens, :num_tokens]で角を切り出す、という方法もあります。"
               "ここでは、系列ごとに長さを指定できます。二つめを%" PRId64 "語にしてみましょう。"},
        m);
    page_line(p, "lengths = {%" PRId64 ", %" PRId64 "}", n, m);
    CALL(p, att_attention(ctx,
                          ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2,
                                      ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out, .q_lengths = lengths,
                                      .k_lengths = lengths)));
    print_batch(p, l);
    if (p->status != ATT_OK)
        return;
    float *second = l->both + n * OUT;
    if (memcmp(second, full + n * OUT, (size_t)(m * OUT) * sizeof *second) == 0)
        page_print(
            p,
            (text){"What is behind the end is 0. The first %" PRId64
                   " contexts are the same as before, to the last bit: a causal context depends on nothing that "
                   "comes later, not even on whether anything does.",
                   "系列の終わりより後ろは0になります。最初の%" PRId64
                   "個のコンテキストは、前と最後のビットまで同じです。"
                   "因果的なコンテキストは、後に来るものに左右されません。何かが来るかどうかにさえ左右されません。"},
            m);
    else
        page_agree(p, (text){"The first contexts, before and now", "最初のコンテキストの前と今"}, second,
                   full + n * OUT, m * OUT);
}

/* ---- the caller's own mask */

static void padding(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const layer *of = &l->of;
    int64_t n = of->words.n, m = n - 2, lengths[] = {m};
    if (p->status != ATT_OK || n < 3)
        return;
    uint8_t drop[VECTORS_MAX] = {0}, keep[VECTORS_MAX];
    float *w = page_floats(p, n * n), *out = page_floats(p, n * OUT), *by_length = page_floats(p, n * OUT);
    att_attention_args args = layer_args(p, of);
    att_tensor mask;
    args.param = &mask;
    args.n_params = 1;
    att_plan *plan = NULL;
    page_step(p, (text){"True that drops, true that attends", "隠すtrueと、見るtrue"});
    page_print(p,
               (text){"Take the last two of the %" PRId64
                      " words for padding. key_padding_mask of nn.MultiheadAttention "
                      "is true where a word is padding and shall be dropped:",
                      "%" PRId64 "個の単語のうち、最後の二つがパディングだとします。nn.MultiheadAttentionの"
                      "key_padding_maskは、パディングとして隠す単語をtrueにします。"},
               n);
    LOOP(p, for (int64_t j = 0; j < n; j++) drop[j] = j >= m;);
    CALL(p, att_plan_new(
                ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, ATT_STAGES({.mask = att_mask_boolean})),
                &plan));
    page_print(p, (text){"Handed over as it is, to a library where true means attend:",
                         "これを、trueが「見る」を意味するライブラリに、そのまま渡してみます。"});
    CALL(p, att_wrap(&mask, drop, ATT_BOOL, ATT_DIMS(1, 1, 1, n), NULL));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    square(p, l, w);
    page_print(p,
               (text){"All look at the padding and at nothing else. No error, and each row sums to 1. Turned round it "
                      "is right:",
                      "どの単語も、パディングだけを見ています。エラーは出ず、行の合計も1です。"
                      "真偽を反転すれば、正しくなります。"});
    LOOP(p, for (int64_t j = 0; j < n; j++) keep[j] = !drop[j];);
    CALL(p, att_wrap(&mask, keep, ATT_BOOL, ATT_DIMS(1, 1, 1, n), NULL));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    square(p, l, w);
    att_attention_args plain = layer_args(p, of);
    plain.k_lengths = lengths;
    args.out = layer_heads(p, out, 1, 1, n, OUT), plain.out = layer_heads(p, by_length, 1, 1, n, OUT);
    if (p->status == ATT_OK)
        p->status = att_forward(plan, &args);
    if (p->status == ATT_OK)
        p->status = att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = OUT), &plain);
    page_agree(p,
               (text){"Contexts by this mask, and by k_lengths, which cannot be turned round",
                      "このマスクによるコンテキストと、向きを間違えようのないk_lengthsによるもの"},
               out, by_length, n * OUT);
    att_plan_free(plan);
}

static void wrong_rank(page *p, causal_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    uint8_t *keep = (uint8_t *)page_floats(p, 2 * n * n);
    float *c = page_floats(p, n * OUT);
    att_attention_args args = layer_args(p, &l->of);
    att_tensor mask;
    args.out = layer_heads(p, c, 1, 1, n, OUT);
    args.param = &mask;
    args.n_params = 1;
    const att_attention_spec *spec =
        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = OUT, ATT_STAGES({.mask = att_mask_boolean}));
    page_step(p, (text){"A mask of the wrong rank", "階数の違うマスク"});
    page_print(
        p, (text){"Where a mask has fewer dimensions than the scores, PyTorch lines them up from the last one and "
                  "repeats the rest, whether that was meant or not. The published code rightly refuses it. So does "
                  "the library, which wants [batch, heads, queries, keys], each 1 or in full:",
                  "マスクの次元がスコアより少ないと、PyTorchは最後の次元からそろえ、残りは繰り返して使います。"
                  "意図したとおりとは限りません。公開コードは、これを正しく拒否しています。このライブラリも同じです。"
                  "形は[batch, heads, queries, keys]で、それぞれ1か、全部の大きさでなければなりません。"});
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) keep[i * n + j] = j <= i;);
    CALL(p, att_wrap(&mask, keep, ATT_BOOL, ATT_DIMS(n, n), NULL));
    ANSWER(p, att_attention(ctx, spec, &args));
    CALL(p, att_wrap(&mask, keep, ATT_BOOL, ATT_DIMS(1, 1, n, n + 1), NULL));
    ANSWER(p, att_attention(ctx, spec, &args));
    CALL(p, att_wrap(&mask, keep, ATT_BOOL, ATT_DIMS(1, 1, n, n), NULL));
    ANSWER(p, att_attention(ctx, spec, &args));
    page_agree(p, (text){"W V, and attention with this mask", "W Vと、このマスクによる注意"}, l->c, c, n * OUT);
    page_print(
        p,
        (text){"Code for several heads often repeats the mask of a batch for each head, mask.repeat(heads, 1, 1), "
               "and then computes each head by itself, whose weights are [batch, n, n]. With one sequence PyTorch "
               "makes as many sequences of it as there are heads, without a word. Here a mask for two heads, and "
               "one head:",
               "複数ヘッドのコードでは、バッチのマスクをmask.repeat(heads, 1, 1)でヘッドの数だけ繰り返しておきながら、"
               "ヘッドを一つずつ計算しているものがあります。一つのヘッドの重みは[batch, n, n]です。系列が一つなら、"
               "PyTorchは何も言わずに、それをヘッドの数だけの系列に増やしてしまいます。ヘッドが一つのところへ、"
               "二つ分のマスクを渡してみます。"});
    if (p->status != ATT_OK)
        return;
    memcpy(keep + n * n, keep, (size_t)(n * n));
    CALL(p, att_wrap(&mask, keep, ATT_BOOL, ATT_DIMS(2, 1, n, n), NULL));
    ANSWER(p, att_attention(ctx, spec, &args));
}

static att_status run(page *p)
{
    causal_chapter l = {0};
    if (layer_make(p, &l.of, OUT, SEED) != ATT_OK)
        return p->status;
    int64_t n = l.of.words.n;
    l.s = page_zeros(p, n, n, &l.S), l.w = page_zeros(p, n, n, &l.W), l.c = page_zeros(p, n, OUT, &l.C);
    l.both = page_floats(p, BATCH * n * OUT);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    scores(p, &l);
    before_softmax(p, &l);
    keys_in_rows(p, &l);
    after_softmax(p, &l);
    leak(p, &l);
    largest_number(p, &l);
    causal_gradient(p, &l.of, &l.W, l.c);
    zero_times_infinity(p, &l);
    in_one_call(p, &l);
    shorter(p, &l);
    padding(p, &l);
    wrong_rank(p, &l);
    return p->status;
}

const chapter chapter_causal = {
    .about = {"hiding the future: before softmax; NaN; lost gradients; padding",
              "未来を隠すマスク。softmaxの後ではなく前に。NaNの罠、消える勾配、パディング"},
    .run = run,
};
