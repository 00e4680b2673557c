/* Words with positions: added, or concatenated, which is adding as well. */
#include "layer.h"
#include "positions.h"

#include <inttypes.h>

enum { SEED = 123, OUT = 2 };

static void added(page *p, const positions_chapter *l)
{
    att_tape *t = l->tape;
    int64_t n = l->words.n, dim = l->words.dim, offsets[] = {0, n};
    att_tensor X = page_matrix(p, l->words.x, n, dim), Y = {0};
    const att_positions *at = ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1);
    page_step(p, (text){"Added", "足す"});
    page_print(p, (text){"How is a word given its position? The paper adds p to the word: the width stays. It takes as "
                         "many numbers of p as a word has.",
                         "単語には、どうやって位置を与えるのでしょうか。論文では、pを単語に足します。幅は変わりません。"
                         "pの数の個数は、単語のベクトルに合わせます。"});
    CALL(p,
         att_var_value(
             t, att_sinusoidal(t, att_input(t, &X), at, ATT_OPTIONS(att_sinusoidal_options, .interleaved = true)), &Y));
    if (p->status == ATT_OK)
        page_table(p, l->words.labels, n, NULL, dim, Y.data);
    att_tape_reset(t);
}

static void put_behind(page *p, const positions_chapter *l)
{
    att_tape *t = l->tape;
    int64_t n = l->words.n, dim = l->words.dim, offsets[] = {0, n};
    att_tensor X = page_matrix(p, l->words.x, n, dim), XP = {0};
    const att_positions *at = ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1);
    float *w = page_floats(p, OUT * (dim + 2)), *whole = page_floats(p, n * OUT), *parts = page_floats(p, n * OUT);
    torch_random random;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Or concatenated", "または連結する"});
    page_print(
        p, (text){"In the source's picture p is put behind the word: the width grows. Here by two numbers:",
                  "出典の図では、pを単語の後ろに連結しています。幅は大きくなります。ここでは二つの数を連結します。"});
    CALL(p, att_var_value(t,
                          att_sinusoidal(t, att_input(t, &X), at,
                                         ATT_OPTIONS(att_sinusoidal_options, .interleaved = true, .append = 2)),
                          &XP));
    if (p->status != ATT_OK)
        return;
    const float *xp = XP.data;
    page_table(p, l->words.labels, n, NULL, dim + 2, xp);
    torch_manual_seed(&random, SEED);
    layer_draw(&random, torch_linear_bound(dim + 2), w, OUT * (dim + 2));
    for (int64_t i = 0; i < n * OUT; i++) {
        const float *row = xp + i / OUT * (dim + 2), *weight = w + i % OUT * (dim + 2);
        double of_word = 0, of_position = 0, of_both = 0;
        for (int64_t c = 0; c < dim + 2; c++) {
            double product = (double)weight[c] * row[c];
            of_both += product;
            *(c < dim ? &of_word : &of_position) += product;
        }
        whole[i] = (float)of_both;
        parts[i] = (float)of_word + (float)of_position;
    }
    page_print(p, (text){"The two are not far from each other. The first thing that attention does with its input is a "
                         "linear map, to queries, keys and values; and a map of both behind each other is a map of the "
                         "word plus a map of the position:",
                         "この二つは、かけ離れたものではありません。注意がまず行うのは、クエリ、キー、バリューへの"
                         "線形変換です。連結したものの線形変換は、単語の線形変換と位置の線形変換の和になります。"});
    page_formula(p, "W [x; p] = W_x x + W_p p");
    page_agree(p, (text){"Both sides, with a random W", "両辺（Wは乱数）"}, whole, parts, n * OUT);
    page_print(
        p,
        (text){"So concatenating also adds, but with a matrix W_p of its own for positions; adding makes do with "
               "one matrix for both, %" PRId64 " x %d weights instead of %" PRId64 " x %d, and trusts that in a "
               "wide vector words and positions find room beside each other. Which one a model does is in its "
               "settings; att_sinusoidal does both.",
               "つまり連結も足し算の一種で、位置のために別の行列W_pを持っているのです。足すほうは一つの行列を"
               "両方に使うので、重みは%3$" PRId64 " x %4$d個でなく%1$" PRId64 " x %2$d個で済みます。"
               "幅の広いベクトルなら、単語と位置が互いに邪魔せずに収まることを当てにしています。"
               "どちらを使うかはモデルの設定によります。att_sinusoidalは両方できます。"},
        dim, OUT, dim + 2, OUT);
    att_tape_reset(t);
}

void positions_and_words(page *p, const positions_chapter *l)
{
    added(p, l);
    put_behind(p, l);
}
