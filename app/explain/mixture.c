/* A weighted mean of people: weights chosen by hand, the same weights by attention, temperature, self-attention. */
// order: 25
#include "cli/base/output.h"
#include "layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The people, from Python: random.seed(0), then for each person randint(160, 200), randint(60, 80) and randint(20,
 * 80). */
static const char *const names[] = {"a", "b", "c", "d"};
static const float numbers[] = {184, 73, 22, 176, 76, 51, 185, 69, 50, 182, 78, 77};
static const vectors people = {.n = 4, .dim = 3, .labels = names, .x = numbers};
static const char *const columns_en[] = {"height", "weight", "age"}, *const columns_ja[] = {"身長", "体重", "年齢"};

enum { DECIMALS = 2, COMPARISONS = 3 };

typedef struct mixture_chapter {
    vectors v;
    int64_t q;                  /* row of the query */
    int follows;                /* the source: its people, its query */
    const char *const *columns; /* [dim], or NULL */
    char renewed[64];           /* label of the new row */
    float *compared;            /* sums, their ratios, distances [COMPARISONS, n] */
    float *by_hand;             /* weights [n] */
    float *z;                   /* the numbers, standardized [n, dim] */
    float *s, *w;               /* scores and weights of the query [n] */
    float *c;                   /* the new row [dim] */
    att_tensor X, Z, S, W, C;   /* [n, dim], [n, dim], [1, n], [1, n], [1, dim] */
} mixture_chapter;

static void print_rows(page *p, const mixture_chapter *l, const float *rows /* [n, dim] */)
{
    page_table_rounded(p, DECIMALS, l->v.labels, l->v.n, l->columns, l->v.dim, rows);
}

static void print_new(page *p, const mixture_chapter *l, const float *row /* [dim] */)
{
    page_table_rounded(p, DECIMALS, (const char *const[]){l->renewed}, 1, l->columns, l->v.dim, row);
}

/* Prints a row of numbers for each label, a number for each person. */
static void print_people(page *p, const mixture_chapter *l, const char *const *labels, int64_t m,
                         const float *a /* [m, n] */)
{
    page_table(p, labels, m, l->v.labels, l->v.n, a);
}

/* Prints the scores and weights of the query, and the weights by hand if they are wanted. */
static void print_weights(page *p, const mixture_chapter *l, bool with_hand)
{
    const int64_t n = l->v.n;
    float *rows = page_floats(p, 3 * n);
    if (p->status != ATT_OK)
        return;
    memcpy(rows, l->s, (size_t)n * sizeof *rows);
    memcpy(rows + n, l->w, (size_t)n * sizeof *rows);
    memcpy(rows + 2 * n, l->by_hand, (size_t)n * sizeof *rows);
    print_people(p, l, (const char *const[]){"s", "w", page_text(p, (text){"by hand", "手で"})}, with_hand ? 3 : 2,
                 rows);
}

/* Returns the index of the largest of a [n], other than `without`. */
static int64_t largest(const float *a, int64_t n, int64_t without)
{
    int64_t best = without == 0 && n > 1;
    for (int64_t j = 0; j < n; j++)
        best = j != without && a[j] > a[best] ? j : best;
    return best;
}

/* Returns the rank of person j: how many people have a sum nearer to the query's, or equally near and in an earlier
 * row. The query is first. */
static int64_t rank_of(const mixture_chapter *l, int64_t j)
{
    const float *f = l->compared;
    const float own = fabsf(f[j] - f[l->q]);
    int64_t rank = j != l->q;
    for (int64_t k = 0; k < l->v.n && j != l->q; k++) {
        if (k == l->q)
            continue;
        const float other = fabsf(f[k] - f[l->q]);
        rank += other < own || (other == own && k < j);
    }
    return rank;
}

static void introduce(page *p, const mixture_chapter *l)
{
    page_title(p, (text){"Mixtures: weights by hand, weights by attention",
                         "混ぜ合わせ：手で決めた重みと、注意で計算する重み"});
    if (p->own)
        page_print(p,
                   (text){"%" PRId64 " vectors of %" PRId64 " numbers. \"%s\" becomes a mixture of all.",
                          "%" PRId64 "個のベクトルがあり、それぞれ%" PRId64 "個の数からなります。全部を混ぜて、"
                          "「%s」を更新します。"},
                   l->v.n, l->v.dim, l->v.labels[l->q]);
    else
        page_print(
            p, (text){"Four people of three numbers each: height in cm, weight in kg, age. The source of this example "
                      "draws them with Python's random, seed 0, and renews one of them by mixing all four. "
                      "It says itself that this is not self-attention, only gives an impression of it. The chapter "
                      "follows it, "
                      "then computes the weights that the source chooses by hand, and ends with what is missing.",
                      "四人の人がいて、それぞれ身長（cm）、体重（kg）、年齢の三つの数で表されます。この例の出典は、"
                      "Pythonのrandom（シード0）で四人を作り、全員を混ぜて一人を更新します。出典自身が、これは"
                      "自己注意そのものではなく、雰囲気の例だと断っています。この章では、まず出典の計算をたどり、"
                      "次に、出典が手で決めた重みを計算で求めます。最後に、自己注意には何が足りないかを示します。"});
    print_rows(p, l, l->v.x);
}

static void compare(page *p, mixture_chapter *l)
{
    const int64_t n = l->v.n, dim = l->v.dim, q = l->q;
    const float *x = l->v.x;
    float *f = l->compared, *ratio = f + n, *distance = ratio + n;
    page_step(p, (text){"Who is near?", "誰が近いか"});
    page_print(p, (text){"The source of the example adds up the numbers of each row, and calls the ratio of two sums "
                         "their similarity. Beside it here is the distance, over all numbers:",
                         "例の出典は、各行の数を足し、その和の比を類似度と呼びます。"
                         "ここでは、すべての数による距離も並べてみます。"});
    page_formula(p, "f_j = Σ_c x_jc    ratio = f_j / f_q    distance = √Σ_c (x_jc - x_qc)²");
    LOOP(p, for (int64_t j = 0; j < n; j++) for (int64_t c = 0; c < dim; c++) f[j] += x[j * dim + c];);
    for (int64_t j = 0; j < n; j++) {
        double square = 0;
        for (int64_t c = 0; c < dim; c++)
            square += ((double)x[j * dim + c] - x[q * dim + c]) * ((double)x[j * dim + c] - x[q * dim + c]);
        ratio[j] = f[q] != 0 ? f[j] / f[q] : 0;
        distance[j] = (float)sqrt(square);
    }
    if (p->status == ATT_OK && f[q] == 0) {
        memcpy(ratio, distance, (size_t)n * sizeof *ratio);
        print_people(p, l, (const char *const[]){"f", "distance"}, 2, f);
        page_print(p,
                   (text){"The sum of \"%s\" is 0, so there are no ratios to it.",
                          "「%s」の和が0なので、比は求められません。"},
                   l->v.labels[q]);
        return;
    }
    print_people(p, l, (const char *const[]){"f", "ratio", "distance"}, COMPARISONS, f);
    if (!l->follows)
        return;
    int64_t next = 0, near = 0, far = largest(distance, n, -1);
    for (int64_t j = 0; j < n; j++) {
        next = rank_of(l, j) == 1 ? j : next;
        near = j != q && (near == q || distance[j] < distance[near]) ? j : near;
    }
    page_print(
        p,
        (text){"The ratio is not a similarity: it is largest, %.4f, for \"%s\", who is furthest away. What counts for "
               "the source is how near it is to 1. And a sum forgets what it is made of: \"%s\" has the sum "
               "nearest to that of \"%s\", but over all three numbers \"%s\" is nearer.",
               "この比は、類似度とは言えません。最大値%.4fになるのは、いちばん遠い「%s」だからです。"
               "出典が実際に使うのは、比が1にどれだけ近いかです。また、和にすると中身がわからなくなります。"
               "和なら「%s」が「%s」にいちばん近いのですが、三つの数すべてで比べると「%s」のほうが近いのです。"},
        ratio[largest(ratio, n, -1)], l->v.labels[far], l->v.labels[next], l->v.labels[q], l->v.labels[near]);
}

static void by_hand(page *p, mixture_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->v.n, dim = l->v.dim;
    const float *x = l->v.x;
    float *w = l->by_hand, sum = 0;
    att_tensor W = page_matrix(p, w, 1, n), X = l->X, C = l->C;
    float *products = page_floats(p, n * dim);
    if (p->status != ATT_OK)
        return;
    for (int64_t j = 0; j < n; j++) {
        const int64_t rank = rank_of(l, j);
        sum += w[j] = rank == 0 ? 0.6f : rank == 1 ? 0.3f : 0.1f / (float)(n - 2);
    }
    for (int64_t j = 0; j < n && n < 3; j++)
        w[j] /= sum;
    page_step(p, (text){"Weights by hand", "手で決めた重み"});
    page_print(
        p,
        (text){"The nearest sum, that of \"%s\" itself, gets 60 %%, the next one 30 %%, and the others share 10 %%.",
               "和がいちばん近いもの（「%s」自身）に60%%、次に近いものに30%%、残りには合わせて10%%の重みを与えます。"},
        l->v.labels[l->q]);
    if (n < 3)
        page_print(p, (text){"Fewer than three share all of it in the same ratio:",
                             "三つより少ないときは、同じ比のまま、合計が1になるようにします。"});
    print_people(p, l, (const char *const[]){"w"}, 1, w);
    page_print(p, (text){"The new row is the sum of all, each times its weight:",
                         "新しい行は、各行に重みを掛けて足したものです。"});
    page_formula(p, "new = Σ_j w_j x_j = w X");
    CALL(p, att_tensor_matmul(ctx, &W, &X, NULL, &C));
    for (int64_t i = 0; i < n * dim && p->status == ATT_OK; i++)
        products[i] = w[i / dim] * x[i];
    print_rows(p, l, products);
    page_print(p, (text){"Added up:", "合計すると、次のようになります。"});
    print_new(p, l, l->c);
    if (!l->follows)
        return;
    char in_double[3][CLI_NUMBER_BYTES];
    for (int c = 0; c < 3; c++)
        cli_write_number(0.6 * x[c] + 0.3 * x[3 + c] + 0.05 * ((double)x[6 + c] + x[9 + c]), in_double[c]);
    page_print(p, (text){"So does the source. Python computes in double, where 0.6, 0.3 and 0.05 are not exact either, "
                         "and shows all digits:",
                         "出典の結果と同じです。Pythonは倍精度で計算しますが、0.6や0.3や0.05は倍精度でも正確には"
                         "表せません。Pythonは、その桁をすべて表示しています。"});
    page_line(p, "%s  %s  %s", in_double[0], in_double[1], in_double[2]);
}

static void raw_scores(page *p, mixture_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->v.n, q = l->q;
    att_tensor X = l->X, Q = page_matrix(p, l->v.x + q * l->v.dim, 1, l->v.dim), S = l->S, W = l->W;
    page_step(p, (text){"Scores instead of ranks", "順位の代わりにスコア"});
    page_print(
        p,
        (text){"Attention has no ranks. The query is compared with each key by a dot product, the score; softmax "
               "makes weights of scores; with these the values are added up. First with all numbers as they are: "
               "\"%s\" is the query Q, and the rows of X are keys.",
               "注意は、順位を使いません。クエリと各キーを内積で比べたものがスコアで、それをsoftmaxで重みに変え、"
               "その重みでバリューを足し合わせます。まず、数をそのまま使ってみましょう。"
               "「%s」がクエリQで、Xの各行がキーです。"},
        l->v.labels[q]);
    page_formula(p, "s_j = q · k_j    w = softmax(s)");
    CALL(p, att_tensor_matmul(ctx, &Q, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    print_weights(p, l, false);
    if (p->status == ATT_OK && l->follows)
        page_print(
            p,
            (text){"All weight is on \"%s\". A dot product grows with the numbers, so whoever has large ones wins, not "
                   "who is similar; and scores that are hundreds apart leave softmax one weight of 1.",
                   "重みは、すべて「%s」に集まりました。内積は、数が大きいほど大きくなるので、似ている人ではなく、"
                   "数の大きい人が選ばれます。また、スコアが何百も離れていると、softmaxの重みは一つだけが1に"
                   "なってしまいます。"},
            l->v.labels[largest(l->w, n, -1)]);
}

static void standardize(page *p, mixture_chapter *l)
{
    const int64_t n = l->v.n, dim = l->v.dim;
    const float *x = l->v.x;
    float *z = l->z;
    page_step(p, (text){"Numbers that can be compared", "比べられる数にする"});
    page_print(p,
               (text){"Each column minus its mean, divided by its standard deviation: 0 is the average, and no unit "
                      "outweighs another. (A Transformer has layer norm for this; it does the same with each row.)",
                      "各列から平均を引き、標準偏差で割ります。0が平均となり、どの単位も同じ重さになります。"
                      "（Transformerでは、層正規化がこの役目を果たします。列ではなく、行ごとに同じことをします。）"});
    page_formula(p, "z_jc = (x_jc - mean_c) / deviation_c");
    LOOP(
        p, for (int64_t c = 0; c < dim; c++) {
            double mean = 0, variance = 0;
            for (int64_t j = 0; j < n; j++)
                mean += x[j * dim + c] / (double)n;
            for (int64_t j = 0; j < n; j++)
                variance += pow(x[j * dim + c] - mean, 2) / (double)n;
            const double scale = variance > 0 ? 1 / sqrt(variance) : 0;
            for (int64_t j = 0; j < n; j++)
                z[j * dim + c] = (float)(scale * (x[j * dim + c] - mean));
        });
    page_table(p, l->v.labels, n, l->columns, dim, z);
}

static void attention(page *p, mixture_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->v.n, dim = l->v.dim;
    float *s = l->s, *one = page_floats(p, dim);
    att_tensor X = l->X, Z = l->Z, Q = page_matrix(p, l->z + l->q * dim, 1, dim), S = l->S, W = l->W, C = l->C;
    att_tensor q = layer_heads(p, l->z + l->q * dim, 1, 1, 1, dim), k = layer_heads(p, l->z, 1, 1, n, dim);
    att_tensor v = layer_heads(p, l->v.x, 1, 1, n, dim), out = layer_heads(p, one, 1, 1, 1, dim);
    page_step(p, (text){"The same as attention", "同じことを注意で"});
    page_print(p,
               (text){"Query and keys are the standardized rows now, the values still the rows themselves. Scores are "
                      "divided by √d, the root of the number of products in each.",
                      "今度は、標準化した行をクエリとキーに使います。バリューは、もとの行のままです。"
                      "スコアは、足した積の個数dの平方根√dで割ります。"});
    page_formula(p, "new = softmax(q Kᵀ / √d) V");
    CALL(p, att_tensor_matmul(ctx, &Q, &Z, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t j = 0; j < n; j++) s[j] /= sqrtf((float)dim););
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    CALL(p, att_tensor_matmul(ctx, &W, &X, NULL, &C));
    print_weights(p, l, true);
    page_print(p, (text){"With these weights the rows become:", "この重みで各行を足すと、次のようになります。"});
    print_new(p, l, l->c);
    if (l->follows)
        page_print(
            p,
            (text){"The largest weight is near that by hand, but it comes from the numbers. The second largest is that "
                   "of \"%s\", the nearest by distance, not of the one with the nearest sum. In one call:",
                   "いちばん大きい重みは手で決めた値に近いのですが、こちらは数から計算したものです。"
                   "二番目に大きいのは、和がいちばん近い人ではなく、距離がいちばん近い「%s」の重みです。"
                   "一度の呼び出しで書くと、次のようになります。"},
            l->v.labels[largest(l->w, n, l->q)]);
    else
        page_print(p, (text){"In one call:", "一度の呼び出しで書くと、次のようになります。"});
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_agree(p, (text){"The new row by steps and by att_attention", "順を追った計算とatt_attentionによる新しい行"},
               l->c, one, dim);
}

/* Prints softmax(s / t) for m values of t, a row each. */
static void print_cooled(page *p, const mixture_chapter *l, const char *symbol, const float *s /* [n] */,
                         const double *t /* [m] */, int m)
{
    enum { MAX_ROWS = 5, LABEL = 16 };
    const int64_t n = l->v.n;
    char text[MAX_ROWS][LABEL];
    const char *labels[MAX_ROWS];
    att_tensor S;
    float *rows = page_zeros(p, m, n, &S);
    if (p->status != ATT_OK)
        return;
    for (int i = 0; i < m; i++) {
        snprintf(text[i], LABEL, "%s = %g", symbol, t[i]);
        labels[i] = text[i];
        for (int64_t j = 0; j < n; j++)
            rows[i * n + j] = (float)(s[j] / t[i]);
    }
    p->status = att_tensor_softmax(p->ctx, &S, -1, &S);
    print_people(p, l, labels, m, rows);
}

static void temperature(page *p, const mixture_chapter *l)
{
    page_step(p, (text){"Temperature", "温度"});
    page_print(p,
               (text){"Scores may be divided by any number τ before softmax, the temperature. A low one sharpens the "
                      "weights until the largest score has them all; a high one levels them, until the result is "
                      "the mean of all rows. √d is such a temperature, too; τ = 1 shows the weights above.",
                      "softmaxの前に、スコアを好きな数τで割ることができます。これを温度といいます。"
                      "温度が低いと重みの差が開き、ついには最大のスコアがすべてを占めます。高いと差が縮み、"
                      "ついには全行の平均になります。√dも一種の温度です。τ = 1が、上で求めた重みです。"});
    page_formula(p, "w = softmax(s / τ)");
    print_cooled(p, l, "τ", l->s, (const double[]){0.1, 0.5, 1, 2, 10}, 5);
}

static void hand_as_softmax(page *p, const mixture_chapter *l)
{
    const int64_t n = l->v.n;
    const float *f = l->compared, *hand = l->by_hand;
    att_tensor S, W;
    float *rows = page_floats(p, 2 * n), *s = rows, *near = page_floats(p, n);
    if (p->status != ATT_OK)
        return;
    S = page_matrix(p, s, 1, n), W = page_matrix(p, rows + n, 1, n);
    page_step(p, (text){"The weights by hand, as a softmax", "手で決めた重みをsoftmaxで"});
    page_print(p, (text){"Any positive weights are the softmax of some scores: of their own logarithms.",
                         "正の重みなら、どんなものでも、あるスコアのsoftmaxになっています。"
                         "重みの対数がそのスコアです。"});
    LOOP(p, for (int64_t j = 0; j < n; j++) s[j] = logf(hand[j]););
    if (p->status == ATT_OK)
        p->status = att_tensor_softmax(p->ctx, &S, -1, &W);
    print_people(p, l, (const char *const[]){"ln w", "w"}, 2, rows);
    page_print(p, (text){"The question is whether anything in the rows supports such scores. The rule of step 2, the "
                         "nearer the sum the larger the weight, would be this one, with a temperature T:",
                         "問題は、そのスコアの裏付けがデータにあるかどうかです。「和が近いほど重い」という"
                         "手順2の規則をスコアにすると、温度をTとして、次のようになります。"});
    page_formula(p, "w = softmax(-|f_j - f_q| / T)");
    for (int64_t j = 0; j < n; j++)
        near[j] = -fabsf(f[j] - f[l->q]);
    print_cooled(p, l, "T", near, (const double[]){10, 20, 40}, 3);
    if (l->follows)
        page_print(
            p,
            (text){"The sums of \"%s\" and \"%s\" differ by %.0f. So their weights are nearly equal at any of these "
                   "temperatures: at T = 20 one is %.2f times the other. By hand it is %.0f times: a rank "
                   "forgets how far apart things are, and so it has no gradient to learn from.",
                   "「%s」と「%s」の和の差は%.0fです。ですから、どの温度でも、二人の重みはほとんど同じになります。"
                   "T = 20なら、一方は他方の%.2f倍です。手で決めた重みでは%.0f倍です。順位にすると、"
                   "どれだけ離れているかがわからなくなり、学習に使う勾配も失われます。"},
            l->v.labels[1], l->v.labels[2], fabsf(f[1] - f[2]), exp((near[1] - near[2]) / 20.0), hand[1] / hand[2]);
}

static void everyone(page *p, const mixture_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->v.n, dim = l->v.dim;
    float *all = page_floats(p, n * dim), *weights = page_floats(p, n * n);
    att_attention_args args = {.size = sizeof args};
    args.q = args.k = layer_heads(p, l->z, 1, 1, n, dim);
    args.v = layer_heads(p, l->v.x, 1, 1, n, dim), args.out = layer_heads(p, all, 1, 1, n, dim);
    att_plan *plan = NULL;
    page_step(p, (text){"Everyone at once", "全員を一度に"});
    page_print(p, (text){"So far one row is new. In self-attention every row is a query: each has weights of its own, "
                         "and all new rows are made at the same time, from the old ones.",
                         "ここまでに更新したのは一行だけです。自己注意では、すべての行がクエリになります。"
                         "行ごとに自分の重みがあり、すべての新しい行が、もとの行から同時に作られます。"});
    CALL(p, att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim), &plan));
    CALL(p, att_forward(plan, &args));
    print_rows(p, l, all);
    page_agree(p, (text){"The query's row here and above", "この中のクエリの行と、上で求めた行"}, all + l->q * dim,
               l->c, dim);
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, weights));
    page_heatmap(p, l->v.labels, n, weights);
    att_plan_free(plan);
}

static void missing(page *p, mixture_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->v.n, dim = l->v.dim;
    att_tensor K, W_k, Z = l->Z, S = l->S, W = l->W;
    float *k = page_zeros(p, n, 1, &K), *w_k = page_zeros(p, dim, 1, &W_k);
    att_tensor Q = page_matrix(p, k + l->q * (p->status == ATT_OK), 1, 1);
    if (p->status != ATT_OK)
        return;
    w_k[dim - 1] = 1;
    page_step(p, (text){"What is missing: learned matrices", "足りないもの：学習する行列"});
    page_print(p,
               (text){"So far the same numbers ask, answer and are passed on. In self-attention three matrices, "
                      "learned from data, make queries, keys and values of each row. They decide what counts. With "
                      "W^q = W^k = (0, ..., 0, 1)ᵀ, say, only the last number would be compared, here not scaled "
                      "(√1):",
                      "ここまでは、尋ねる数も、答える数も、渡される数も同じでした。自己注意では、データから学習した"
                      "三つの行列が、各行からクエリ、キー、バリューを作ります。何を重視するかは、この行列で決まります。"
                      "たとえばW^q = W^k = (0, ..., 0, 1)ᵀなら、最後の数だけを比べます（√1なので、"
                      "スケーリングはありません）。"});
    page_formula(p, "q = z W^q    k = z W^k    v = z W^v");
    CALL(p, att_tensor_matmul(ctx, &Z, &W_k, NULL, &K));
    CALL(p, att_tensor_matmul(ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    print_weights(p, l, true);
    page_print(p,
               (text){"And with W^q other than W^k the score of a for b need not be that of b for a. Such "
                      "matrices, and how they are learned, are in `attend explain trainable`. A Transformer also has "
                      "several heads, a matrix after them, and adds the result to the old row, instead of replacing "
                      "it: `attend explain vit`.",
                      "さらに、W^qとW^kが違えば、aから見たbのスコアと、bから見たaのスコアは、同じとは限りません。"
                      "行列とその学習は、`attend explain trainable`で扱います。Transformerには、"
                      "ほかにも、複数のヘッドと、そのあとの行列があります。また、結果は、もとの行と"
                      "置き換えるのではなく、もとの行に足します。`attend explain vit`で見てください。"});
}

static att_status run(page *p)
{
    mixture_chapter l = {.v = page_vectors(p, &people)};
    const int64_t n = l.v.n, dim = l.v.dim;
    l.q = p->own || p->query ? page_query(p, &l.v) : 0;
    l.follows = !p->own && l.q == 0;
    l.columns = p->own ? NULL : p->japanese ? columns_ja : columns_en;
    snprintf(l.renewed, sizeof l.renewed, page_text(p, (text){"new %.40s", "新しい%.40s"}), l.v.labels[l.q]);
    l.X = page_matrix(p, l.v.x, n, dim);
    l.compared = page_floats(p, COMPARISONS * n), l.by_hand = page_floats(p, n);
    l.z = page_zeros(p, n, dim, &l.Z), l.c = page_zeros(p, 1, dim, &l.C);
    l.s = page_zeros(p, 1, n, &l.S), l.w = page_zeros(p, 1, n, &l.W);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    compare(p, &l);
    by_hand(p, &l);
    raw_scores(p, &l);
    standardize(p, &l);
    attention(p, &l);
    temperature(p, &l);
    hand_as_softmax(p, &l);
    everyone(p, &l);
    missing(p, &l);
    return p->status;
}

const chapter chapter_mixture = {
    .about = {"four people mixed, by hand and by softmax; temperature",
              "四人を混ぜる重み。手で決めて、次にsoftmaxで。温度"},
    .run = run,
    .draws = true,
};
