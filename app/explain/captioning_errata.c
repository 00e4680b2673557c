/* The errata of the chapter's source, computed on the model: the direction of softmax, x for keys and values, shapes.
 */
#include "captioning.h"

#include <inttypes.h>
#include <math.h>

/* ---- softmax */

static void direction(page *p, const captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t T = l->caption.count, H = l->m.grid[0], W = l->m.grid[1], n = H * W;
    att_tensor all = page_matrix(p, l->record.e, T, n), a, map, A;
    float *over_words = page_zeros(p, T, n, &a), *by_column = page_zeros(p, H, W, &A);
    const char *names[CAPTIONING_MAX_WORDS];
    float *sum = page_floats(p, 3 * T);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Erratum: the direction of softmax", "間違い：softmaxの方向"});
    page_print(
        p, (text){"The source applies softmax \"in the direction of columns\". That is right for its matrix e_ij, "
                  "where a row is an input and a column a query. But here E [T, H W] has a row for each word, and "
                  "the scores of one word are a map of H rows and W columns. What comes of softmax down the words of "
                  "E, or down the columns of each map?",
                  "出典は、softmaxを「列方向に」適用するとしています。出典の行列e_ijでは、行が入力、列がクエリなので、"
                  "それで正しいのです。しかし、ここでは、E [T, H W]の行は単語で、一つの単語のスコアはH行W列の"
                  "マップです。それでも列方向に計算したら、つまり、Eの単語の方向に、またはマップの列ごとに"
                  "計算したら、どうなるでしょうか。"});
    CALL(p, att_tensor_softmax(ctx, &all, 0, &a));
    for (int64_t t = 0; t < T && p->status == ATT_OK; t++) {
        map = page_matrix(p, l->record.e + t * n, H, W);
        if (t == 0)
            CALL(p, att_tensor_softmax(ctx, &map, 0, &A));
        else if (p->status == ATT_OK)
            p->status = att_tensor_softmax(ctx, &map, 0, &A);
        names[t] = captioning_word(p, l, t);
        for (int64_t i = 0; i < n; i++) {
            sum[3 * t] += l->record.a[t * n + i];
            sum[3 * t + 1] += by_column[i];
            sum[3 * t + 2] += over_words[t * n + i];
        }
    }
    page_print(p,
               (text){"The sum of each word's weights, over all locations, by columns, and over words:",
                      "単語ごとの重みの合計です。全部の位置にわたる場合、列ごとの場合、単語の方向の場合を並べます。"});
    page_table_rounded(p, 3, names, T,
                       (const char *const[]){page_text(p, (text){"locations", "全位置"}),
                                             page_text(p, (text){"columns", "列"}),
                                             page_text(p, (text){"words", "単語"})},
                       3, sum);
    page_print(
        p,
        (text){"By columns each word has %" PRId64
               " sums of 1, and must find something in every column. Over words the sums of locations are 1: how "
               "much a word gets depends on the other words, even on those that have not been written yet. "
               "Softmax goes over what is chosen from, separately for each that chooses.",
               "列ごとに計算すると、一つの単語に合計1の重みが%" PRId64
               "組でき、どの列からも何かを選ばなければなりません。単語の方向に計算すると、合計が1になるのは位置の"
               "ほうで、一つの単語がどれだけ受け取るかは、ほかの単語、まだ書かれていない単語にさえ左右されます。"
               "softmaxは、選ぶ側ごとに別々に、選ばれる側の全体にわたって計算します。"},
        W);
}

/* ---- keys and values */

static void print_shapes(page *p, const captioning_chapter *l)
{
    const int64_t T = l->caption.count, n = l->m.locations, d = l->m.info.hidden, x = l->m.info.features;
    page_line(p, "X           N x D_x  %4" PRId64 " x %" PRId64, n, x);
    page_line(p, "Q           M x D_k  %4" PRId64 " x %" PRId64, T, d);
    page_line(p, "K           N x D_k  %4" PRId64 " x %" PRId64, n, d);
    page_line(p, "V           N x D_v  %4" PRId64 " x %" PRId64, n, d);
    page_line(p, "E, A        M x N    %4" PRId64 " x %" PRId64, T, n);
    page_line(p, "Y = A V     M x D_v  %4" PRId64 " x %" PRId64, T, d);
}

static void keys_and_values(page *p, const captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.locations, d = l->m.info.hidden, x = l->m.info.features;
    const float *v = att_param_value(l->m.score)->data;
    att_tensor Q = page_matrix(p, l->q, 1, d), X = page_matrix(p, l->x, n, x), E;
    page_zeros(p, 1, n, &E);
    double bound = 0;
    for (int64_t c = 0; c < d && p->status == ATT_OK; c++)
        bound += fabs(v[c]);
    page_step(p, (text){"Erratum: x instead of k and v", "間違い：kとvのかわりにx"});
    page_print(
        p, (text){"In the source's general layer the N locations of the picture are the inputs X, and the M states of "
                  "the writer the queries Q. It makes keys K and values V of X, and then compares and adds up X "
                  "itself: e_ij = q_j · x_i / √D_x, y_j = Σ_i a_ij x_i. Here X are the features of the convolutions, "
                  "the values are h, and a query is made to be compared with keys, not with x:",
                  "出典の一般の注意層では、画像のN個の位置が入力Xで、文を書く側のM個の状態がクエリQです。そこでは、"
                  "XからキーKとバリューVを作りながら、比べるのも足すのもXそのものになっています。"
                  "e_ij = q_j · x_i / √D_x、y_j = Σ_i a_ij x_iです。ここでは、Xは畳み込みの特徴で、バリューはhです。"
                  "クエリは、xではなくキーと比べるために作られています。"});
    ANSWER(p, att_tensor_matmul(ctx, &Q, &X, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &E));
    if (x == d)
        page_print(
            p, (text){"Since this model has D_x = D_h, the product exists, and nothing says that it has no meaning.",
                      "このモデルではD_x = D_hなので、積は計算できてしまい、意味がないことには気づけません。"});
    page_print(
        p, (text){"So these are the shapes. The source gives Y M × D_k; in this model D_k = D_v = D_h hides the "
                  "difference, in `attend explain general-layer` they are not equal.",
                  "正しい形は次のとおりです。出典はYをM × D_kとしています。このモデルではD_k = D_v = D_hなので違いが"
                  "見えませんが、`attend explain general-layer`ではD_kとD_vが異なります。"});
    print_shapes(p, l);
    page_print(
        p,
        (text){"And the root: a dot product q · k adds up D_k = %" PRId64 " products, so it is divided by √D_k = "
               "%.2f; √D_x = %.2f has no part in it (`attend explain scores` says what that does to softmax). An "
               "additive score needs no root: tanh is between -1 and 1, so no score is beyond Σ |v_c| = %.2f.",
               "平方根についても同じです。内積q · kはD_k = %" PRId64
               "個の積の和なので、√D_k = %.2fで割ります。√D_x = %.2fは関係がありません（softmaxへの影響は"
               "`attend explain scores`で示します）。加法スコアに平方根は要りません。tanhは-1から1までなので、"
               "スコアの絶対値がΣ |v_c| = %.2fを超えることはないからです。"},
        d, sqrt((double)d), sqrt((double)x), bound);
}

/* ---- one's own */

static void own(page *p)
{
    page_print(p, (text){"Pictures and models of your own:", "自分の画像やモデルで試すには："});
    page_line(p, "attend caption --attention maps.svg photo.jpg");
    page_line(p, "attend train caption --data captions.txt --images photos/ -o model");
    page_line(p, "attend explain captioning --model model --image photo.jpg");
}

void captioning_show_errata(page *p, captioning_chapter *l)
{
    direction(p, l);
    keys_and_values(p, l);
    own(p);
}
