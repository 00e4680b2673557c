/* From scores to weights: dividing by the sum, softmax as written, softmax that does not overflow; then all queries. */
// order: 20
#include "layer.h"

#include <math.h>
#include <string.h>

typedef struct softmax_chapter {
    vectors v;
    int64_t row;        /* of the query */
    const float *q;     /* [dim] */
    float *s, *w;       /* of the query: scores [n], weights [n] */
    float *ss, *ww;     /* of all queries: scores [n, n], weights [n, n] */
    float *c;           /* contexts [n, dim] */
    att_tensor X, Q;    /* [n, dim], [1, dim] */
    att_tensor s1, w1;  /* of the query: [1, n] */
    att_tensor S, W, C; /* of all: [n, n], [n, n], [n, dim] */
} softmax_chapter;

static void print_row(page *p, const softmax_chapter *l, const char *name, const float *a /* [n] */)
{
    page_table(p, &name, 1, l->v.labels, l->v.n, a);
}

static void print_sum(page *p, const float *a /* [n] */, int64_t n)
{
    float sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += a[j];
    page_line(p, "Σ w = %.4f", sum);
}

static void introduce(page *p, const softmax_chapter *l)
{
    page_title(p, p->own ? (text){"From scores to weights: softmax", "スコアから重みへ：softmax"}
                         : (text){"Your journey starts with one step: from scores to weights",
                                  "Your journey starts with one step：スコアから重みへ"});
    page_print(
        p,
        (text){"%lld words, each a vector of %lld numbers; the query is \"%s\". In the C below capital letters are "
               "tensors, small letters are their numbers.",
               "%lld個の単語があり、それぞれ%lld個の数からなるベクトルです。クエリは「%s」です。"
               "以下のCコードでは、大文字がテンソル、小文字がその中の数を表します。"},
        (long long)l->v.n, (long long)l->v.dim, l->v.labels[l->row]);
    page_table(p, l->v.labels, l->v.n, NULL, l->v.dim, l->v.x);
}

static void one_query(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n, dim = l->v.dim;
    const float *x = l->v.x, *q = l->q;
    float *s = l->s;
    att_tensor Q = l->Q, X = l->X, S = l->s1;
    page_step(p, (text){"Scores of one query", "一つのクエリのスコア"});
    page_print(p, (text){"The score of a word is its dot product with the query. As loops:",
                         "単語のスコアは、クエリとの内積です。ループで書くと次のようになります。"});
    page_formula(p, "s_j = q · x_j");
    LOOP(
        p, for (int64_t j = 0; j < n; j++) {
            s[j] = 0;
            for (int64_t c = 0; c < dim; c++)
                s[j] += q[c] * x[j * dim + c];
        });
    print_row(p, l, "s", s);
    float *loops = page_floats(p, n);
    if (p->status == ATT_OK)
        memcpy(loops, s, (size_t)n * sizeof *s);
    page_print(
        p, (text){"The same as one call, a row times a matrix:", "行と行列の積として、一度に計算することもできます。"});
    CALL(p, att_tensor_matmul(ctx, &Q, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    page_agree(p, (text){"Loops and att_tensor_matmul", "ループとatt_tensor_matmul"}, loops, s, n);
    if (p->own || l->row != 1)
        return;
    float cut = 0; /* journey with itself, from digits cut off as the source has it */
    for (int c = 0; c < 3; c++)
        cut += floorf(10 * l->q[c]) * floorf(10 * l->q[c]) / 100;
    page_print(
        p,
        (text){"The source says beside these figures that values are cut off, 0.87 to 0.8. That holds for a drawing "
               "in the book it follows, not for the calculation: with digits cut off the score of \"journey\" with "
               "itself would be %.4f. It is %.4f.",
               "出典はこの計算について「0.87は0.8に切り捨てられている」と書いています。"
               "切り捨てているのは、もとになった本の図だけです。計算では切り捨てていません。"
               "もし切り捨てたなら「journey」どうしのスコアは%.4fになるはずですが、実際は%.4fです。"},
        cut, s[1]);
}

static void divide_by_sum(page *p, const softmax_chapter *l)
{
    int64_t n = l->v.n;
    const float *s = l->s;
    float *w = page_floats(p, n);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"First try: divide by the sum", "まず試す：合計で割る"});
    page_formula(p, "w_j = s_j / Σ_k s_k");
    LOOP(p, float sum = 0; for (int64_t k = 0; k < n; k++) sum += s[k];
         for (int64_t j = 0; j < n; j++) w[j] = s[j] / sum;);
    print_row(p, l, "w", w);
    print_sum(p, w, n);
    float min = 0;
    for (int64_t j = 0; j < n; j++)
        min = fminf(min, s[j]);
    if (min < 0)
        page_print(
            p, (text){"Here a score is negative, and so is its weight: this is not a share of a whole. Where scores "
                      "cancel, the sum would even be zero.",
                      "ここには負のスコアがあり、その重みも負になってしまいます。これでは割合とは言えません。"
                      "スコアが打ち消し合えば、合計がゼロになることさえあります。"});
    else
        page_print(p,
                   (text){"The sum is 1, but this only works because all scores are positive: a negative score would "
                          "become a negative weight, and scores that cancel would divide by zero.",
                          "合計は1になりますが、これがうまくいくのは全スコアが正のときだけです。"
                          "負のスコアは負の重みになり、スコアが打ち消し合えばゼロで割ることになります。"});
}

/* Computes softmax by its formula. Also fills e with the exponentials. */
static void naive(page *p, int64_t n, const float *s, float *e, float *w)
{
    LOOP(p, float sum = 0; for (int64_t k = 0; k < n; k++) sum += e[k] = expf(s[k]);
         for (int64_t j = 0; j < n; j++) w[j] = e[j] / sum;);
}

static void two_softmaxes(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    float *rows = page_floats(p, 2 * n), *e = rows, *written = rows + n; /* [2, n] */
    att_tensor S = l->s1, W = l->w1;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Softmax as it is written", "定義どおりのsoftmax"});
    page_print(p, (text){"The exponential makes any score positive, and keeps the order.",
                         "指数関数を使えば、どんなスコアも正になり、大小の順序も変わりません。"});
    page_formula(p, "w_j = exp(s_j) / Σ_k exp(s_k)");
    naive(p, n, l->s, e, written);
    page_table(p, (const char *const[]){"exp(s)", "w"}, 2, l->v.labels, n, rows);
    print_sum(p, written, n);
    page_step(p, (text){"Softmax that does not overflow", "オーバーフローしないsoftmax"});
    page_print(p,
               (text){"Subtracting the largest score m from all of them changes nothing, since exp(-m) cancels. But no "
                      "exponential is then larger than 1.",
                      "全スコアから最大値mを引いても、exp(-m)が約分で消えるので結果は変わりません。"
                      "しかも、指数関数の値は1を超えなくなります。"});
    page_formula(p, "w_j = exp(s_j - m) / Σ_k exp(s_k - m),   m = max_k s_k");
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    print_row(p, l, "w", l->w);
    print_sum(p, l->w, n);
    page_agree(p, (text){"As written, and without overflow", "定義どおりの計算とオーバーフローしない計算"}, written,
               l->w, n);
}

/* Returns the least power of ten that makes vectors so long that exp of their best score overflows a float; 0: there is
 * none. */
static float lengthen(const float *s, int64_t n)
{
    float best = 0, factor = 1;
    for (int64_t j = 0; j < n; j++)
        best = fmaxf(best, s[j]);
    while (best > 1e-6f && best * factor * factor < 89)
        factor *= 10;
    return best > 1e-6f ? factor : 0;
}

static void overflow(page *p, const softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    float *s = page_floats(p, 3 * n), *e = s + n, *w = e + n, factor = lengthen(l->s, n); /* [3, n] */
    att_tensor S = page_matrix(p, s, 1, n), W = page_matrix(p, w, 1, n);
    if (p->status != ATT_OK || factor == 0)
        return;
    for (int64_t j = 0; j < n; j++)
        s[j] = l->s[j] * factor * factor;
    page_step(p, (text){"Why it matters", "なぜ重要か"});
    page_print(
        p,
        (text){"Let all vectors be %g times as long: the scores are %g times as large. exp(s) is beyond the largest "
               "float, 3.4e38, for s above 88.72; it becomes inf, and inf / inf is not a number.",
               "すべてのベクトルを%g倍の長さにすると、スコアは%g倍になります。"
               "sが88.72を超えるとexp(s)はfloatの最大値3.4e38を超えて無限大infになり、"
               "inf / infは数ではなくなります（NaN）。"},
        factor, factor * factor);
    naive(p, n, s, e, w);
    page_table(p, (const char *const[]){"s", "exp(s)", "w"}, 3, l->v.labels, n, s);
    page_print(p,
               (text){"The library, on the same scores:", "同じスコアを、ライブラリで計算すると次のようになります。"});
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    print_row(p, l, "w", w);
    print_sum(p, w, n);
}

static void context(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n, dim = l->v.dim;
    const float *x = l->v.x, *w = l->w;
    att_tensor C, W = l->w1, X = l->X;
    float *c = page_zeros(p, 1, dim, &C), *loops = page_floats(p, dim);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"The context vector", "コンテキストベクトル"});
    page_print(p, (text){"The words, each times its weight, added up. By loops, then as a row times a matrix:",
                         "各単語に重みを掛けて足し合わせます。まずループで、次に行と行列の積として計算します。"});
    page_formula(p, "c = Σ_j w_j x_j");
    LOOP(p, for (int64_t j = 0; j < n; j++) for (int64_t i = 0; i < dim; i++) c[i] += w[j] * x[j * dim + i];);
    page_table(p, (const char *const[]){"c"}, 1, NULL, dim, c);
    memcpy(loops, c, (size_t)dim * sizeof *c);
    CALL(p, att_tensor_matmul(ctx, &W, &X, NULL, &C));
    page_agree(p, (text){"Loops and att_tensor_matmul", "ループとatt_tensor_matmul"}, loops, c, dim);
}

static void all_scores(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n, dim = l->v.dim;
    const float *x = l->v.x;
    float *s = page_floats(p, n * n);
    att_tensor X = l->X, S = l->S;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"All queries at once: scores", "すべてのクエリを一度に：スコア"});
    page_print(p, (text){"Every word is the query in turn. Three loops:",
                         "すべての単語を順にクエリにします。三重のループです。"});
    page_formula(p, "S = X Xᵀ");
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) for (int64_t c = 0; c < dim; c++)
                s[i * n + j] += x[i * dim + c] * x[j * dim + c];);
    page_table(p, l->v.labels, n, l->v.labels, n, s);
    page_print(p, (text){"Or one matrix product (GEMM), of X with X transposed:",
                         "あるいは、XとXの転置との行列積（GEMM）一回で済みます。"});
    CALL(p, att_tensor_matmul(ctx, &X, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    page_table(p, l->v.labels, n, l->v.labels, n, l->ss);
    page_agree(p, (text){"Loops and GEMM", "ループとGEMM"}, s, l->ss, n * n);
}

static void all_weights(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    float *sums = page_floats(p, n);
    att_tensor S = l->S, W = l->W;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"All queries at once: weights", "すべてのクエリを一度に：重み"});
    page_print(p, (text){"Softmax of each row: dimension -1 is the last one, the keys.",
                         "各行でsoftmaxを計算します。次元-1は最後の次元、つまりキーの方向です。"});
    page_formula(p, "W = softmax(S)");
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    page_table(p, l->v.labels, n, l->v.labels, n, l->ww);
    for (int64_t i = 0; i < n * n && p->status == ATT_OK; i++)
        sums[i / n] += l->ww[i];
    page_print(p, (text){"Every row sums to 1:", "どの行も合計は1です。"});
    print_row(p, l, "Σ_j w_ij", sums);
    page_print(
        p,
        (text){"The scores were symmetric; the weights are not, because each row is divided by its own sum. As a heat "
               "map, row = query, column = key:",
               "スコアは対称でしたが、重みは対称ではありません。行ごとに違う合計で割るからです。"
               "ヒートマップで見てみましょう。行がクエリ、列がキーです。"});
    page_heatmap(p, l->v.labels, n, l->ww);
}

static void all_contexts(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n, dim = l->v.dim;
    float *fused = page_floats(p, n * dim);
    att_tensor W = l->W, X = l->X, C = l->C, x = {0}, out = {0};
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"All context vectors", "すべてのコンテキストベクトル"});
    page_formula(p, "C = W X");
    CALL(p, att_tensor_matmul(ctx, &W, &X, NULL, &C));
    page_table(p, l->v.labels, n, NULL, dim, l->c);
    page_print(
        p,
        (text){
            "And all of it, scores, softmax and sum, in one call that stores no n x n matrix. Its tensors are [batch, "
            "heads, time, dim]; scale 1 keeps the plain dot product.",
            "スコア、softmax、加重和のすべてを、n x n行列を保存せずに一度の呼び出しで計算することもできます。"
            "テンソルの形は[batch, heads, time, dim]です。scaleを1にすると、内積をそのまま使います。"});
    att_wrap(&x, (float *)l->v.x, ATT_F32, ATT_DIMS(1, 1, n, dim), NULL);
    att_wrap(&out, fused, ATT_F32, ATT_DIMS(1, 1, n, dim), NULL);
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim, .scale = 1),
                          ATT_OPTIONS(att_attention_args, .q = x, .k = x, .v = x, .out = out)));
    page_agree(p, (text){"C and att_attention", "Cとatt_attention"}, l->c, fused, n * dim);
}

static void wrong_dimension(page *p, softmax_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n;
    att_tensor W, S = l->S, I = l->S;
    float *sums = page_floats(p, n), *columns = page_zeros(p, n, n, &W);
    if (p->status != ATT_OK)
        return;
    I.dtype = ATT_I32;
    page_step(p, (text){"A wrong dimension", "次元の指定を間違えたら"});
    if (!p->own)
        page_print(
            p, (text){"The last cell of the source ends in a TypeError, because softmax was given a dimension of type "
                      "float. (As printed it says dim=-1, which is right; it seems to have been changed after it ran, "
                      "and it prints "
                      "the scores instead of the weights. Step 8 is what it was after.) ",
                      "出典の最後のセルは、softmaxの次元にfloat型を渡したためTypeErrorで終わっています。"
                      "（掲載されたコードはdim=-1で正しいので、実行後に書き直したのでしょう。また、重みではなく"
                      "スコアを表示しています。求めたかったのは手順8の結果です。）"});
    page_print(p,
               (text){"In C the prototype turns -1.0 into -1 before the call, and it works. (The compiler reports 0.5, "
                      "which would become 0, when asked to: -Wfloat-conversion.)",
                      "Cでは関数プロトタイプにより、呼び出しの前に-1.0が-1に変換されるので、うまく動きます。"
                      "（0.5は0になってしまいますが、-Wfloat-conversionを付ければコンパイラが教えてくれます。）"});
    ANSWER(p, att_tensor_softmax(ctx, &S, -1.0, &W));
    page_print(
        p,
        (text){"A dimension that is not there is an error, and says so; W is left unchanged. So is a tensor that does "
               "not hold f32:",
               "存在しない次元を渡すとエラーになり、理由が示されます。Wは書き換えられません。"
               "f32でないテンソルも同様です。"});
    ANSWER(p, att_tensor_softmax(ctx, &S, 2, &W));
    ANSWER(p, att_tensor_softmax(ctx, &I, -1, &W));
    page_print(
        p,
        (text){
            "The mistake that nobody reports: dimension 0 exists, so this is done, but it makes the columns sum to 1. "
            "The rows then sum to:",
            "誰も教えてくれない間違いもあります。次元0は存在するので計算は成功しますが、"
            "合計が1になるのは列のほうです。行の合計は次のようになってしまいます。"});
    ANSWER(p, att_tensor_softmax(ctx, &S, 0, &W));
    for (int64_t i = 0; i < n * n; i++)
        sums[i / n] += columns[i];
    print_row(p, l, "Σ_j w_ij", sums);
}

static att_status run(page *p)
{
    softmax_chapter l = {.v = page_vectors(p, &layer_words)};
    int64_t n = l.v.n, dim = l.v.dim;
    l.row = page_query(p, &l.v);
    l.q = l.v.x + l.row * dim;
    l.X = page_matrix(p, l.v.x, n, dim), l.Q = page_matrix(p, l.q, 1, dim);
    l.s = page_zeros(p, 1, n, &l.s1), l.w = page_zeros(p, 1, n, &l.w1), l.c = page_zeros(p, n, dim, &l.C);
    l.ss = page_zeros(p, n, n, &l.S), l.ww = page_zeros(p, n, n, &l.W);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    one_query(p, &l);
    divide_by_sum(p, &l);
    two_softmaxes(p, &l);
    overflow(p, &l);
    context(p, &l);
    all_scores(p, &l);
    all_weights(p, &l);
    all_contexts(p, &l);
    wrong_dimension(p, &l);
    return p->status;
}

const chapter chapter_softmax = {
    .about = {"three ways from scores to weights, an overflow, all queries",
              "スコアから重みへの三つの方法とオーバーフロー、そして全クエリの一括計算"},
    .run = run,
    .draws = true,
};
