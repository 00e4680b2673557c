/* Score functions with one interface; why the dot product is scaled. */
// order: 80
#include "attend_extend.h"
#include "layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 789, OUT = 2, ROWS = 64 };

typedef struct scores_chapter {
    layer of;
    int64_t query;  /* its row */
    torch_random g; /* state after the weights */
    float *s, *w;   /* scores and weights of the step, by hand [n, n] */
    float *library; /* weights by the library [n, n] */
    att_tensor S, W;
    att_attention_args args; /* q and k */
} scores_chapter;

/* Prints the query's scores and weights, and compares all weights with the library's. */
static void conclude(page *p, const scores_chapter *l)
{
    int64_t n = l->of.words.n, row = l->query * n;
    float *rows = page_floats(p, 2 * n);
    if (p->status != ATT_OK)
        return;
    memcpy(rows, l->s + row, (size_t)n * sizeof *rows);
    memcpy(rows + n, l->w + row, (size_t)n * sizeof *rows);
    page_table(p, (const char *const[]){"s", "w"}, 2, l->of.words.labels, n, rows);
    page_agree(p, (text){"All weights by hand and by att_weights", "手計算とatt_weightsの、すべての重み"}, l->w,
               l->library, n * n);
}

static void introduce(page *p, scores_chapter *l)
{
    page_title(p, (text){"Scores: ways to compare", "スコア：比べ方のいろいろ"});
    page_print(p,
               (text){"Softmax, masks and the sum of values do not care where scores come from. So a score is one "
                      "interface, here the type att_score, and attention takes any: one field of the spec. The figures "
                      "below are the scores and weights of \"%s\", from queries and keys as in `attend explain "
                      "trainable`:",
                      "softmaxもマスクもバリューの加重和も、スコアの求め方には左右されません。そこで、スコアを一つの"
                      "インターフェース（ここではatt_score型）にしておけば、どんなスコアでも注意に使えます。"
                      "specのフィールド一つで選びます。以下の数値は「%s」のスコアと重みで、クエリとキーは"
                      "`attend explain trainable`と同じです。"},
               l->of.words.labels[l->query]);
    layer_print(p, &l->of);
}

static void dot(page *p, scores_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *w = l->library;
    att_tensor Q = l->of.Q, K = l->of.K, S = l->S, W = l->W;
    att_attention_args args = l->args;
    att_plan *plan = NULL;
    page_step(p, (text){"Dot product", "内積"});
    page_print(p, (text){"All scores are one matrix product. Scale 1 leaves them as they are.",
                         "全スコアが一回の行列積で得られます。scaleを1にすると、そのまま使います。"});
    page_formula(p, "s = q · k");
    CALL(p, att_tensor_matmul(ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    CALL(p, att_plan_new(ctx,
                         ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = att_score_dot, .scale = 1),
                         &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    conclude(p, l);
    att_plan_free(plan);
}

static void scaled_dot(page *p, scores_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *s = l->s, *w = l->library;
    att_tensor S = l->S, W = l->W;
    att_attention_args args = l->args;
    att_plan *plan = NULL;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Scaled dot product", "スケーリングした内積"});
    page_print(p, (text){"Divided by the root of the dimension, for a reason that the last step shows. It is what "
                         "Transformers use, and the default here.",
                         "次元の平方根で割ります。理由は最後の手順で示します。Transformerが使うのはこれで、"
                         "このライブラリでも、指定しなければこれになります。"});
    page_formula(p, "s = q · k / √d");
    LOOP(p, for (int64_t i = 0; i < n * n; i++) s[i] /= sqrtf(2););
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    CALL(p, att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2), &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    conclude(p, l);
    att_plan_free(plan);
}

static void general(page *p, scores_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n, dim = l->of.words.dim;
    att_tensor M, XM;
    float *m = page_zeros(p, dim, dim, &M), *w = l->library;
    page_zeros(p, n, dim, &XM);
    att_tensor X = l->of.X, W_qt = layer_transpose(p, l->of.wq, OUT, dim), W_k = l->of.Wk, S = l->S, W = l->W;
    att_attention_args args = {.size = sizeof args};
    args.q = args.k = layer_heads(p, l->of.words.x, 1, 1, n, dim);
    att_tensor param;
    att_wrap(&param, m, ATT_F32, ATT_DIMS(1, dim, dim), NULL);
    args.param = &param;
    args.n_params = 1;
    att_plan *plan = NULL;
    page_step(p, (text){"General: a matrix in between", "一般形：行列をはさむ"});
    page_print(
        p, (text){"A learned matrix M between the two; they need not even have the same dimension. With M = W_qᵀ W_k "
                  "it compares the words themselves, x_i M x_j, and does what the two projections did: the scores "
                  "are those of the dot product above.",
                  "クエリとキーのあいだに、学習する行列Mをはさみます。両者の次元が同じである必要もありません。"
                  "M = W_qᵀ W_kとすれば、単語そのものをx_i M x_jで比べることになり、二つの射影と同じ働きをします。"
                  "スコアは、最初の内積と同じです。"});
    page_formula(p, "s = q M k");
    CALL(p, att_tensor_matmul(ctx, &W_qt, &W_k, NULL, &M));
    static const char *const names[] = {"M 1", "M 2", "M 3"};
    if (dim <= 3)
        page_table(p, names, dim, NULL, dim, m);
    CALL(p, att_tensor_matmul(ctx, &X, &M, NULL, &XM));
    CALL(p, att_tensor_matmul(ctx, &XM, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    page_line(p, "args.param[0] = M [1, %" PRId64 ", %" PRId64 "]", dim, dim);
    CALL(p, att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim, .score = att_score_general),
                         &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    conclude(p, l);
    att_plan_free(plan);
}

/* Shows the additive score of the words themselves, with W_q and W_k among its parameters. */
static void projected(page *p, scores_chapter *l, const float *v /* [OUT] */)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n, dim = l->of.words.dim;
    float *w = l->library;
    att_attention_args args = {.size = sizeof args};
    args.q = args.k = layer_heads(p, l->of.words.x, 1, 1, n, dim);
    att_tensor param[3];
    att_wrap(&param[0], (float *)v, ATT_F32, ATT_DIMS(1, OUT), NULL);
    att_wrap(&param[1], l->of.wq, ATT_F32, ATT_DIMS(1, OUT, dim), NULL);
    att_wrap(&param[2], l->of.wk, ATT_F32, ATT_DIMS(1, OUT, dim), NULL);
    args.param = param;
    args.n_params = 3;
    att_plan *plan = NULL;
    page_print(p, (text){"Or the score does the projecting itself, of the words as they are:",
                         "単語をそのまま渡し、射影もスコアの中で行うこともできます。"});
    page_line(p, "args.param[1] = W_q [1, %d, %" PRId64 "]", OUT, dim);
    page_line(p, "args.param[2] = W_k [1, %d, %" PRId64 "]", OUT, dim);
    CALL(p, att_plan_new(ctx,
                         ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim, .score = att_score_additive,
                                     .score_dim = 2),
                         &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    page_agree(p,
               (text){"Weights with projections given and applied",
                      "射影してから渡した場合と、スコアの中で射影した場合の重み"},
               l->w, w, n * n);
    att_plan_free(plan);
}

static void additive(page *p, scores_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *s = l->s, *w = l->library, *v = page_floats(p, OUT);
    const float *q = l->of.q, *k = l->of.k;
    att_tensor S = l->S, W = l->W;
    att_attention_args args = l->args;
    att_tensor param;
    att_wrap(&param, v, ATT_F32, ATT_DIMS(1, OUT), NULL);
    args.param = &param;
    args.n_params = 1;
    att_plan *plan = NULL;
    if (p->status != ATT_OK)
        return;
    layer_draw(&l->g, torch_linear_bound(OUT), v, OUT);
    page_step(p, (text){"Additive", "加法"});
    page_print(
        p, (text){"The first attention (Bahdanau and others, 2014) asked a little network: add query and key, tanh, "
                  "and a learned vector v. q and k are the projections from above; v comes from the same "
                  "generator:",
                  "最初の注意（Bahdanauら、2014年）は、小さなネットワークでスコアを計算しました。クエリとキーを足し、"
                  "tanhを通し、学習するベクトルvとの内積を取ります。qとkは上の射影で、vは同じ生成器から作ります。"});
    page_formula(p, "s = v · tanh(q + k),   q = W_q x_i,   k = W_k x_j");
    page_table(p, (const char *const[]){"v"}, 1, NULL, OUT, v);
    memset(s, 0, (size_t)(n * n) * sizeof *s);
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++) for (int64_t c = 0; c < 2; c++)
                s[i * n + j] += v[c] * tanhf(q[i * 2 + c] + k[j * 2 + c]););
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    page_line(p, "args.param[0] = v [1, %d]", OUT);
    CALL(p, att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = att_score_additive),
                         &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    conclude(p, l);
    att_plan_free(plan);
    projected(p, l, v);
    page_print(p,
               (text){"Frameworks first make all sums q + k, a tensor of n x n x d. Here nothing of that size exists, "
                      "neither forward nor backward.",
                      "フレームワークでは、まずすべての和q + kを並べた、n x n x dのテンソルを作ります。"
                      "ここでは、順伝播でも逆伝播でも、その大きさのものは作られません。"});
}

/* ---- one's own */

#define SHOWN(name, ...)                                                                                               \
    static const char name[] = #__VA_ARGS__;                                                                           \
    __VA_ARGS__
SHOWN(
    own_source, static double l1(const att_pair *p) {
        double s = 0;
        for (int64_t c = 0; c < p->dim; c++)
            s -= fabs((double)p->query[c] - p->key[c]);
        return s;
    } static const att_score mine = {sizeof mine, "l1", .formula = l1};)

static void own(page *p, scores_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *s = l->s, *w = l->library;
    const float *q = l->of.q, *k = l->of.k;
    att_tensor S = l->S, W = l->W;
    att_attention_args args = l->args;
    att_plan *plan = NULL;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"One of your own", "自作のスコア"});
    page_print(p,
               (text){"The interface is open: a function of a query and a key is enough. Here the nearer, the better, "
                      "by the sum of the differences:",
                      "インターフェースは公開されています。クエリとキーの関数を一つ書けば十分です。"
                      "ここでは、差の合計が小さいほど高いスコアにします。"});
    page_formula(p, "s = -Σ_c |q_c - k_c|");
    page_code(p, own_source);
    CALL(p, att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = &mine), &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, n, w));
    for (int64_t i = 0; i < n * n && p->status == ATT_OK; i++)
        s[i] = -fabsf(q[i / n * OUT] - k[i % n * OUT]) - fabsf(q[i / n * OUT + 1] - k[i % n * OUT + 1]);
    p->status = p->status == ATT_OK ? att_tensor_softmax(ctx, &S, -1, &W) : p->status;
    conclude(p, l);
    att_plan_free(plan);
}

/* ---- why scaled */

static double variance(const float *a, int64_t count)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        mean += (double)a[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        sum += (a[i] - mean) * (a[i] - mean) / (double)count;
    return sum;
}

/* Returns the largest weight of a row, on average. */
static double largest(const float *w /* [ROWS, ROWS] */)
{
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        float best = 0;
        for (int j = 0; j < ROWS; j++)
            best = fmaxf(best, w[i * ROWS + j]);
        sum += (double)best / ROWS;
    }
    return sum;
}

static void random_scores(page *p, int64_t d)
{
    int64_t count = ROWS * d;
    att_tensor Q, K, S, W;
    float *q = page_zeros(p, ROWS, d, &Q), *k = page_zeros(p, ROWS, d, &K);
    float *s = page_zeros(p, ROWS, ROWS, &S), *w = page_zeros(p, ROWS, ROWS, &W);
    torch_random g;
    if (p->status != ATT_OK)
        return;
    torch_manual_seed(&g, 123);
    layer_draw(&g, sqrtf(3), q, count);
    layer_draw(&g, sqrtf(3), k, count);
    double figures[4] = {0};
    for (int scaled = 0; scaled < 2; scaled++) {
        if (scaled == 0)
            p->status = att_tensor_matmul(p->ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S);
        for (int i = 0; i < ROWS * ROWS && scaled; i++)
            s[i] /= sqrtf((float)d);
        if (p->status == ATT_OK)
            p->status = att_tensor_softmax(p->ctx, &S, -1, &W);
        figures[scaled] = variance(s, ROWS * ROWS), figures[2 + scaled] = largest(w);
    }
    page_line(p, "%5" PRId64 "  %11.2f  %7.4f  %15.4f  %9.4f", d, figures[0], figures[2], figures[1], figures[3]);
}

static void why_scaled(page *p)
{
    page_step(p, (text){"Why scaled", "なぜスケーリングするのか"});
    page_print(p,
               (text){"If the d components of q and k are independent, with mean 0 and variance 1, then each of the d "
                      "products has variance 1, and their sum has variance d. Scores so far apart leave softmax one "
                      "weight near 1 and all others near 0, and there its gradient w (1 - w) is nearly 0 too: nothing "
                      "is learned. Dividing by √d makes the variance 1, whatever d is.",
                      "qとkのd個の成分が独立で、平均が0、分散が1なら、d個の積それぞれの分散は1、その和の分散はdです。"
                      "スコアがそれほど離れると、softmaxの重みは一つだけがほぼ1、ほかはほぼ0になり、"
                      "勾配w (1 - w)もほぼ0になって、学習が進みません。√dで割れば、dがいくつでも分散は1になります。"});
    page_formula(p, "Var(q · k) = Σ_c Var(q_c k_c) = d    Var(q · k / √d) = 1");
    page_print(
        p,
        (text){"Shown on %d random queries and keys, uniform between -√3 and √3 (torch.manual_seed(123)): the "
               "variance of the scores, and the largest of a query's %d weights, on average.",
               "-√3から√3までの一様乱数によるクエリとキー%d個ずつで、確かめてみましょう"
               "（torch.manual_seed(123)）。スコアの分散と、一つのクエリの%d個の重みのうち最大のもの（平均）です。"},
        ROWS, ROWS);
    page_line(p, "    d   Var(q · k)    max w  Var(q · k / √d)      max w");
    static const int64_t dims[] = {4, 16, 64, 256, 1024};
    for (int i = 0; i < 5; i++)
        random_scores(p, dims[i]);
    if (!p->own)
        page_print(p,
                   (text){"So it is the dimension of what is multiplied that counts, d_k, of a single head. One source "
                          "divides by the root of D_x, the inputs' dimension, another by that of all heads together; "
                          "with either, the variance is not 1.",
                          "ですから、使うべきは、掛け合わせるベクトルの次元、つまり一つのヘッドのd_kです。出典の一つは"
                          "入力の次元D_xの平方根で、別の一つは全ヘッドを合わせた次元の平方根で割っていますが、"
                          "どちらも分散は1になりません。"});
}

static att_status run(page *p)
{
    scores_chapter l = {0};
    if (layer_make(p, &l.of, OUT, SEED) != ATT_OK)
        return p->status;
    int64_t n = l.of.words.n;
    l.query = page_query(p, &l.of.words);
    l.g = l.of.random;
    l.s = page_zeros(p, n, n, &l.S), l.w = page_zeros(p, n, n, &l.W), l.library = page_floats(p, n * n);
    l.args = layer_args(p, &l.of);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    dot(p, &l);
    scaled_dot(p, &l);
    general(p, &l);
    additive(p, &l);
    own(p, &l);
    why_scaled(p);
    return p->status;
}

const chapter chapter_scores = {
    .about = {"dot, scaled, general, additive, your own; why scaled",
              "内積、スケーリング、一般形、加法、自作。なぜスケーリングするのか"},
    .run = run,
};
