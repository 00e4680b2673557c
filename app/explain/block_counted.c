/* The parameters and multiply-adds of a Transformer's layers, and those of the paper's model. */
#include "block.h"

#include <inttypes.h>
#include <math.h>

enum { VOCABULARY = 37000, ROWS = 8 };
static const block_sizes base = {.n = 6, .d_model = 512, .d_ff = 2048, .h = 8, .d_k = 64, .d_v = 64};

/* Rows of the paper's table 3, with their parameters in millions. */
static const struct {
    const char *name;
    block_sizes sizes;
    int millions;
} rows[ROWS] = {
    {"base", {6, 512, 2048, 8, 64, 64}, 65},        {"N = 2", {2, 512, 2048, 8, 64, 64}, 36},
    {"N = 4", {4, 512, 2048, 8, 64, 64}, 50},       {"N = 8", {8, 512, 2048, 8, 64, 64}, 80},
    {"d_k = 16", {6, 512, 2048, 8, 16, 64}, 58},    {"d_k = 32", {6, 512, 2048, 8, 32, 64}, 60},
    {"d_ff = 1024", {6, 512, 1024, 8, 64, 64}, 53}, {"d_ff = 4096", {6, 512, 4096, 8, 64, 64}, 90},
};

const char *block_number(char text[32], int64_t n)
{
    char digits[32];
    const int count = snprintf(digits, sizeof digits, "%" PRId64, n);
    char *s = text;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            *s++ = ',';
        *s++ = digits[i];
    }
    *s = 0;
    return text;
}

/* ---- the formulas */

static int64_t attention_matrices(const block_sizes *s)
{
    return s->h * (s->d_model * (2 * s->d_k + s->d_v) + s->d_v * s->d_model);
}

static int64_t feed_forward_matrices(const block_sizes *s) { return 2 * s->d_model * s->d_ff; }

static int64_t attention_parameters(const block_sizes *s)
{
    return attention_matrices(s) + s->h * (2 * s->d_k + s->d_v) + s->d_model;
}

static int64_t feed_forward_parameters(const block_sizes *s) { return feed_forward_matrices(s) + s->d_ff + s->d_model; }

static int64_t norm_parameters(const block_sizes *s) { return 2 * s->d_model; }

int64_t block_encoder_parameters(const block_sizes *s)
{
    return attention_parameters(s) + feed_forward_parameters(s) + 2 * norm_parameters(s);
}

int64_t block_decoder_parameters(const block_sizes *s)
{
    return 2 * attention_parameters(s) + feed_forward_parameters(s) + 3 * norm_parameters(s);
}

static int64_t all_layers(const block_sizes *s)
{
    return s->n * (block_encoder_parameters(s) + block_decoder_parameters(s));
}

/* ---- the page */

static void print_count(page *p, text name, text formula, int64_t parameters, int64_t operations)
{
    char a[32], b[32], last[48] = "";
    if (operations)
        snprintf(last, sizeof last, " %12s", block_number(b, operations));
    page_line(p, "%s %s %12s%s", page_left(p, name, 17).text, page_left(p, formula, 24).text,
              block_number(a, parameters), last);
}

/* Counts the parameters of the library's own layers of these sizes. */
static void count_layers(page *p)
{
    att_ctx *ctx = p->ctx;
    att_nn_params *params = NULL;
    int64_t encoder = 0, decoder = 0;
    char a[32], b[32];
    page_print(p, (text){"The same from layers of these sizes, whose parameters are counted one by one:",
                         "同じ大きさの層を作り、パラメータを一つずつ数えても、同じになります。"});
    CALL(p, att_nn_params_new(ctx, NULL, &params));
    if (p->status == ATT_OK)
        LOOP(p,
             att_nn_encoder_layer_new(params, "encoder",
                                      ATT_OPTIONS(att_nn_layer_config, .width = 512, .heads = 8, .intermediate = 2048));
             att_nn_decoder_layer_new(
                 params, "decoder", ATT_OPTIONS(att_nn_layer_config, .width = 512, .heads = 8, .intermediate = 2048)););
    if (p->status == ATT_OK)
        p->status = att_nn_params_status(params);
    for (int64_t i = 0; i < att_nn_params_count(params) && p->status == ATT_OK; i++) {
        const char *name;
        const att_tensor *w = att_param_value(att_nn_params_at(params, i, &name));
        *(name[0] == 'e' ? &encoder : &decoder) += w->dim[0] * (w->rank == 2 ? w->dim[1] : 1);
    }
    att_nn_params_free(params);
    page_line(p, page_text(p, (text){"encoder %s, decoder %s", "エンコーダ %s、デコーダ %s"}), block_number(a, encoder),
              block_number(b, decoder));
}

static void table(page *p)
{
    const block_sizes *s = &base;
    const int64_t attention = attention_matrices(s), feed_forward = feed_forward_matrices(s);
    page_print(
        p, (text){"The paper's base model has d_model = 512, h = 8 heads of d_k = d_v = 512 / 8 = 64 numbers, d_ff "
                  "= 4 · 512 = 2048, N = 6. Each entry of a matrix is one parameter, and one multiplication with "
                  "an addition for each token. Parameters (with biases), and these multiply-adds per token:",
                  "論文の基本モデルは、d_model = 512、h = 8個のヘッドがそれぞれd_k = d_v = 512 / 8 = 64個の数、"
                  "d_ff = 4 · 512 = 2048、N = 6です。行列の要素一つが、パラメータ一つ、そして"
                  "トークン一つあたり積和演算一回にあたります。パラメータ（バイアスも含む）と、トークンあたりの積和演"
                  "算の数は、"
                  "次のとおりです。"});
    page_line(p, "%-42s %s %s", "", page_right(p, (text){"parameters", "パラメータ"}, 12).text,
              page_right(p, (text){"per token", "積和"}, 12).text);
    print_count(p, (text){"attention", "注意"}, (text){"4 d_model² + 4 d_model", "4 d_model² + 4 d_model"},
                attention_parameters(s), attention);
    print_count(p, (text){"feed-forward", "FFN"}, (text){"2 d_model d_ff + biases", "2 d_model d_ff + バイアス"},
                feed_forward_parameters(s), feed_forward);
    print_count(p, (text){"layer norm", "層正規化"}, (text){"2 d_model", "2 d_model"}, norm_parameters(s), 0);
    print_count(p, (text){"encoder layer", "エンコーダの層"}, (text){"1 attention, 2 norms", "注意1、正規化2"},
                block_encoder_parameters(s), attention + feed_forward);
    print_count(p, (text){"decoder layer", "デコーダの層"}, (text){"2 attentions, 3 norms", "注意2、正規化3"},
                block_decoder_parameters(s), 2 * attention + feed_forward);
    print_count(p, (text){"6 + 6 layers", "6 + 6層"}, (text){"", ""}, all_layers(s),
                s->n * (3 * attention + 2 * feed_forward));
    print_count(p, (text){"final projection", "最後の射影"}, (text){"37,000 d_model", "37,000 d_model"},
                VOCABULARY * s->d_model, VOCABULARY * s->d_model);
    page_print(
        p, (text){"Two thirds of an encoder's layer are feed-forward. (Keys and values of the source are computed "
                  "once for each of its tokens; the table counts as many of these as target tokens.)",
                  "エンコーダの層の三分の二は、フィードフォワードです。（原文のキーとバリューの計算は、原文のトークン"
                  "一つにつき一回です。表では、訳文のトークンと同じ数だけ数えています。）"});
}

static void heads(page *p)
{
    char a[32], b[32], c[32];
    const int64_t d = base.d_model;
    page_print(p,
               (text){"Heads cost nothing extra: 8 matrices of 512 x 64 are as large as one of 512 x 512, and 8 scores "
                      "of 64 products each take as many as one of 512. That would not be so with 8 heads of full "
                      "width:",
                      "ヘッドを分けても、計算量は増えません。512 x 64の行列8個は512 x 512の行列一つと同じ大きさで、"
                      "64個の積からなるスコア8個は、512個の積からなるスコア一つと同じ計算量です。ヘッド8個が"
                      "どれも全幅だったら、そうはいきません。"});
    const block_sizes one = {1, d, 2048, 1, d, d}, full = {1, d, 2048, 8, d, d};
    page_line(p, page_text(p, (text){"1 head of 512   %12s", "512次元のヘッド1個  %12s"}),
              block_number(a, attention_matrices(&one)));
    page_line(p, page_text(p, (text){"8 heads of 64   %12s", "64次元のヘッド8個   %12s"}),
              block_number(b, attention_matrices(&base)));
    page_line(p, page_text(p, (text){"8 heads of 512  %12s", "512次元のヘッド8個  %12s"}),
              block_number(c, attention_matrices(&full)));
    page_print(p,
               (text){"(Only softmax is computed 8 times.) Scores and weighted values are not in the table, since they "
                      "depend on the number n of tokens that are attended to: 2 n d_model multiply-adds per token and "
                      "attention. For n = 25 and n = 1024:",
                      "（softmaxだけは8回計算します。）スコアとバリューの加重和は、注意が向けられるトークンの数nに"
                      "よるので、表には含めていません。注意一つ、トークン一つあたり、2 n d_model回の積和です。"
                      "n = 25とn = 1024では、次のとおりです。"});
    page_line(p, "n = 25    %10s", block_number(a, 2 * 25 * d));
    page_line(p, "n = 1024  %10s", block_number(b, 2 * 1024 * d));
    page_print(
        p, (text){"At n = 2 d_model = 1024 that is as much as the four matrices: before, attention is mostly linear "
                  "layers; far beyond, it grows with the square of the length.",
                  "n = 2 d_model = 1024で、四つの行列と同じになります。それより短ければ、注意の計算の大半は線形層です。"
                  "それよりはるかに長ければ、系列の長さの二乗で増えていきます。"});
}

/* Subtracts our layers from the paper's totals: the rest should be the same in each row, up to rounding. */
static void compare_paper(page *p)
{
    double low = 0, high = INFINITY;
    page_print(
        p, (text){"The paper's table 3 has parameters in millions, for other sizes too. Less those of our layers, "
                  "what is left must be the embeddings, the same in each row:",
                  "論文の表3には、ほかの大きさも含めて、パラメータ数（百万単位）があります。そこから層のパラメータを"
                  "引いた残りは埋め込みで、どの行でも同じになるはずです。"});
    page_line(p, "%-12s %s %s %s", "", page_right(p, (text){"layers", "層"}, 12).text,
              page_right(p, (text){"paper", "論文"}, 7).text, page_right(p, (text){"left", "残り"}, 7).text);
    for (int i = 0; i < ROWS; i++) {
        char a[32];
        const int64_t layers = all_layers(&rows[i].sizes);
        const double left = rows[i].millions - (double)layers * 1e-6;
        low = fmax(low, left - 0.5), high = fmin(high, left + 0.5);
        page_line(p, "%-12s %12s %7d %7.2f", rows[i].name, block_number(a, layers), rows[i].millions, left);
    }
    if (low <= high)
        page_print(p,
                   (text){"It is, within the rounding to whole millions: any number from %.2f to %.2f agrees with all "
                          "eight rows. So the layers are counted right. As a table of embeddings of 512 numbers that "
                          "would be some 41,000 tokens. The paper speaks of about 37,000, which is %.1f million and "
                          "makes %.1f with the layers; it does not say what else is in its 65.",
                          "百万単位の丸めの範囲で、そのとおりです。%.2fから%.2fまでの数なら、八行すべてに合います。"
                          "層の数え方は正しいということです。512個の数の埋め込みとすれば、およそ41,000トークンぶん"
                          "です。論文には約37,000とあります。それなら%.1f、層と合わせて%.1fになります（単位は百万）。"
                          "論文の65に、ほかに何が含まれるのかは、書かれていません。"},
                   low, high, VOCABULARY * 512 * 1e-6, (double)(all_layers(&base) + VOCABULARY * 512) * 1e-6);
    else
        page_print(p, (text){"It is not: the layers are counted wrong.", "同じになりません。層の数え方が違います。"});
}

void block_counted(page *p)
{
    page_step(p, (text){"The paper's sizes, counted", "論文のモデルの大きさを数える"});
    table(p);
    count_layers(p);
    heads(p);
    compare_paper(p);
}
