/* Self-attention without learned matrices, one query, every product shown. */
// order: 10
#include "page.h"

#include "cli/base/utf8.h"

#include <math.h>

static const char *const words[] = {"Hello", "shiny", "sun"};
static const float embeddings[] = {0.34f, 0.22f, 0.54f, 0.53f, 0.34f, 0.98f, 0.29f, 0.54f, 0.93f};
static const vectors example = {.n = 3, .dim = 3, .labels = words, .x = embeddings};

/* The output of the example's source: its weights, and weight times embedding. */
static const float source_weight[] = {0.2291f, 0.4064f, 0.3645f};
static const float source_product[] = {0.0779f, 0.0504f, 0.1237f, 0.2156f, 0.1382f, 0.3983f, 0.1057f, 0.1972f, 0.3390f};

typedef struct simplified_chapter {
    vectors v;
    int64_t q;          /* the query's row */
    att_tensor X, Q;    /* [n, dim], [1, dim] */
    const float *query; /* [dim] */
    float *s, *w, *c;   /* scores [n], weights [n], context [dim] */
    att_tensor S, W, C; /* [1, n], [1, n], [1, dim] */
} simplified_chapter;

static void introduce(page *p, simplified_chapter *l)
{
    int64_t n = l->v.n, dim = l->v.dim;
    page_title(p, p->own
                      ? (text){"Self-attention by hand", "手計算でたどる自己注意"}
                      : (text){"Self-attention by hand: Hello shiny sun!", "手計算でたどる自己注意：Hello shiny sun!"});
    page_print(
        p,
        (text){"Each word is a vector of %lld numbers, its embedding. Attention makes a new vector for one of "
               "them, the query, out of all of them: the better a word matches the query, the more of it goes in. "
               "The query here is \"%s\". In the C below capital letters are tensors, and small letters are "
               "their numbers; a tensor is only a view, nothing is copied.",
               "それぞれの単語は%lld個の数からなるベクトル、つまり埋め込みで表されます。注意（attention）は、"
               "そのうちの一つであるクエリのために、すべての単語から新しいベクトルを作ります。"
               "クエリとよく合う単語ほど、多く取り込まれます。ここでのクエリは「%s」です。"
               "以下のCコードでは、大文字がテンソル、小文字がその中の数を表します。"
               "テンソルは数を指すだけで、コピーは行いません。"},
        (long long)dim, l->v.labels[l->q]);
    float *x = (float *)l->v.x, *query = (float *)l->query;
    att_tensor X = {0}, Q = {0};
    CALL(p, att_wrap(&X, x, ATT_F32, ATT_DIMS(n, dim), NULL));
    CALL(p, att_wrap(&Q, query, ATT_F32, ATT_DIMS(1, dim), NULL));
    l->X = X, l->Q = Q;
    page_table(p, l->v.labels, n, NULL, dim, x);
}

/* "shiny · Hello = 0.53×0.34 + 0.34×0.22 + 0.98×0.54 = 0.7842", with as many of the products as fit. */
static void print_dot(page *p, const simplified_chapter *l, int64_t j)
{
    char line[512];
    for (int64_t shown = l->v.dim < 4 ? l->v.dim : 4; shown >= 0; shown--) {
        int used = snprintf(line, sizeof line, "%.100s · %.100s = ", l->v.labels[l->q], l->v.labels[j]);
        for (int64_t c = 0; c < shown; c++)
            used += snprintf(line + used, sizeof line - (size_t)used, "%.4g×%.4g + ", l->query[c],
                             l->v.x[j * l->v.dim + c]);
        if (shown == l->v.dim)
            used -= 3;
        snprintf(line + used, sizeof line - (size_t)used, "%s = %.4f", shown < l->v.dim ? "…" : "", l->s[j]);
        if (utf8_width(line) <= 72)
            break;
    }
    page_line(p, "%s", line);
}

static void scores(page *p, simplified_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_tensor Q = l->Q, X = l->X, S = l->S;
    page_step(p, (text){"Scores", "スコア"});
    page_print(p,
               (text){"The score of a word is the dot product of the query with it: multiply number by number, and add "
                      "the products up. att_tensor_matmul makes all of them at once, Q [1, %lld] times X transposed.",
                      "単語のスコアは、クエリとその単語のドット積（内積）です。対応する数どうしを掛け、すべて足します。"
                      "att_tensor_matmulなら、Q [1, %lld]とXの転置との積として、全部を一度に計算できます。"},
               (long long)l->v.dim);
    page_formula(p, "s_j = q · x_j = Σ_c q_c x_jc");
    CALL(p, att_tensor_matmul(ctx, &Q, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    for (int64_t j = 0; j < l->v.n; j++)
        print_dot(p, l, j);
}

static void weights(page *p, simplified_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_tensor S = l->S, W = l->W;
    int64_t n = l->v.n;
    page_step(p, (text){"Weights", "重み"});
    page_print(p, (text){"Softmax turns scores into weights: positive, with sum 1. The exponential widens the distance "
                         "between high and low scores.",
                         "softmaxはスコアを、正の値で合計が1になる重みに変えます。"
                         "指数関数によって、高いスコアと低いスコアの差が広がります。"});
    page_formula(p, "w_j = exp(s_j) / Σ_k exp(s_k)");
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    float *rows = page_floats(p, 3 * n);
    double sum = 0, weight = 0;
    for (int64_t j = 0; j < n && p->status == ATT_OK; j++) {
        rows[j] = l->s[j], rows[n + j] = expf(l->s[j]), rows[2 * n + j] = l->w[j];
        sum += rows[n + j], weight += l->w[j];
    }
    page_table(p, (const char *const[]){"s", "exp(s)", "w"}, 3, l->v.labels, n, rows);
    page_line(p, "Σ exp(s) = %.4f   Σ w = %.4f", sum, weight);
    page_print(
        p,
        (text){
            "att_tensor_softmax subtracts the largest score from all of them first. The weights are the same, and no "
            "exponential overflows: see `attend explain softmax`.",
            "att_tensor_softmaxは、まず全スコアから最大値を引きます。重みは同じで、指数関数がオーバーフローすることも"
            "ありません。くわしくは`attend explain softmax`を見てください。"});
}

static void context(page *p, simplified_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_tensor W = l->W, X = l->X, C = l->C;
    int64_t n = l->v.n, dim = l->v.dim;
    page_step(p, (text){"The context vector", "コンテキストベクトル"});
    page_print(p,
               (text){"The context vector is the sum of all words, each times its weight: \"%s\" enriched with what "
                      "the others say.",
                      "コンテキストベクトルは、各単語に重みを掛けて足し合わせたものです。"
                      "「%s」に、ほかの単語の情報が加わります。"},
               l->v.labels[l->q]);
    page_formula(p, "c = Σ_j w_j x_j");
    CALL(p, att_tensor_matmul(ctx, &W, &X, NULL, &C));
    float *products = page_floats(p, n * dim);
    for (int64_t i = 0; i < n * dim && p->status == ATT_OK; i++)
        products[i] = l->w[i / dim] * l->v.x[i];
    page_print(p, (text){"Weight times word, row by row, and their sum c:",
                         "重み×単語を一行ずつ示し、最後にその合計cを示します。"});
    page_table(p, l->v.labels, n, NULL, dim, products);
    page_table(p, (const char *const[]){"c"}, 1, NULL, dim, l->c);
}

static void in_one_call(page *p, simplified_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->v.n, dim = l->v.dim;
    att_tensor q = {0}, k = {0}, out = {0};
    page_step(p, (text){"All three steps in one call", "三つの手順を一度の呼び出しで"});
    page_print(
        p, (text){"att_attention does it all, without ever storing the scores. Its tensors are [batch, heads, time, "
                  "dim]. Scale 1 keeps the plain dot product; left out, the scores are divided by √dim, as in the "
                  "Transformer.",
                  "att_attentionはスコアを保存せずに、これらすべてを行います。テンソルの形は[batch, heads, time, dim]"
                  "です。scaleを1にすると、ドット積をそのまま使います。省略すると、Transformerと同じく"
                  "スコアを√dimで割ります。"});
    float *fused = page_floats(p, dim);
    if (p->status == ATT_OK) {
        att_wrap(&q, (float *)l->query, ATT_F32, ATT_DIMS(1, 1, 1, dim), NULL);
        att_wrap(&k, (float *)l->v.x, ATT_F32, ATT_DIMS(1, 1, n, dim), NULL);
        att_wrap(&out, fused, ATT_F32, ATT_DIMS(1, 1, 1, dim), NULL);
    }
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim, .scale = 1),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = k, .out = out)));
    page_table(p, (const char *const[]){"out"}, 1, NULL, dim, fused);
    page_agree(p, (text){"Context vector and out", "コンテキストベクトルとout"}, l->c, fused, dim);
}

static float four_digits(float v) { return roundf(v * 1e4f) / 1e4f; }

static void sum_rows(const float *a /* [3, 3] */, float *sum /* [3] */)
{
    for (int c = 0; c < 3; c++)
        sum[c] = a[c] + a[3 + c] + a[6 + c];
}

/* Repeats the source's calculation with its rounding, and finds the first difference. */
static void compare_source(page *p)
{
    float rounded[9], sum[3], source_sum[3];
    for (int i = 0; i < 9; i++)
        rounded[i] = four_digits(source_weight[i / 3] * embeddings[i]);
    sum_rows(rounded, sum);
    sum_rows(source_product, source_sum);
    page_step(p, (text){"The figures of the source", "出典の数値について"});
    page_print(
        p,
        (text){"The source of this example arrives at another context vector, %.4f %.4f %.4f. It rounds each "
               "step to four digits, and goes on with weights of %.4f, %.4f and %.4f, two of them off by one in the "
               "last digit. That alone leads to:",
               "この例の出典では、コンテキストベクトルが%.4f %.4f %.4fとなっています。"
               "出典は各段階を小数第四位に丸め、%.4f、%.4f、%.4fという重みで計算を進めています"
               "（うち二つは最後の桁が1ずれています）。ここまでを同じように行うと、次のようになります。"},
        source_sum[0], source_sum[1], source_sum[2], source_weight[0], source_weight[1], source_weight[2]);
    page_table(p, words, 3, NULL, 3, rounded);
    page_table(p, (const char *const[]){"sum"}, 1, NULL, 3, sum);
    page_print(p,
               (text){"These sums still agree with ours in all four digits, so it is not the rounding. But two of the "
                      "source's nine products are misprints:",
                      "それでも合計は四桁とも上の結果に一致するので、違いの原因は丸めではありません。"
                      "実は、出典の九つの積のうち二つが計算違いです。"});
    for (int i = 0; i < 9; i++) {
        if (fabsf(rounded[i] - source_product[i]) > 5e-5f)
            page_line(p, "%-6s %.4f × %.2f = %.4f   ≠   %.4f", words[i / 3], source_weight[i / 3], embeddings[i],
                      rounded[i], source_product[i]);
    }
    page_print(p, (text){"With its own products the sums come out as it prints them:",
                         "出典の積をそのまま足すと、出典どおりの合計になります。"});
    page_table(p, words, 3, NULL, 3, source_product);
    page_table(p, (const char *const[]){"sum"}, 1, NULL, 3, source_sum);
}

static void preview_chapters(page *p)
{
    page_step(p, (text){"What comes next", "このあと"});
    page_print(p,
               (text){"Nothing was learned here. A Transformer does not compare the embeddings themselves: it makes a "
                      "query, a key and a value of each word with three matrices, xW_q, xW_k and xW_v, which all "
                      "words share. All three are learned, and random only before training; the source, which takes "
                      "the query to be the data itself and calls the other two matrices random, is loose there. See "
                      "`attend explain trainable`.",
                      "ここまでの計算には、学習する部分がありません。Transformerは埋め込みをそのまま比べるのではなく、"
                      "全単語に共通の三つの行列を使って、各単語からクエリxW_q、キーxW_k、バリューxW_vのベクトルを"
                      "作ります。出典は、クエリは元のデータで、キーとバリューの行列はランダムだと述べていますが、"
                      "正確には三つとも学習される行列で、ランダムなのは学習を始める前だけです。"
                      "くわしくは`attend explain trainable`を見てください。"});
}

static att_status run(page *p)
{
    simplified_chapter l = {.v = page_vectors(p, &example)};
    l.q = page_query(p, &l.v);
    l.query = l.v.x + l.q * l.v.dim;
    l.s = page_zeros(p, 1, l.v.n, &l.S), l.w = page_zeros(p, 1, l.v.n, &l.W), l.c = page_zeros(p, 1, l.v.dim, &l.C);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    scores(p, &l);
    weights(p, &l);
    context(p, &l);
    in_one_call(p, &l);
    if (!p->own && l.q == 1)
        compare_source(p);
    preview_chapters(p);
    return p->status;
}

const chapter chapter_simplified = {
    .about = {"scores, weights and a context vector of three words, by hand",
              "三つの単語のスコア、重み、コンテキストベクトル。掛け算を一つずつ追って"},
    .run = run,
};
