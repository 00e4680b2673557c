/* Positions as sines and cosines: four required properties, each checked; binary counting; added or appended. */
// order: 75
#include "layer.h"
#include "positions.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { D = 8, SHOWN = 6, MANY = 1000 };

/* ---- our own computation, in double */

static double frequency(int64_t k, int64_t d) { return pow(10000, -2 * (double)k / (double)d); }

/* Returns the distance of p(t) and p(t + delta) of d features by the formula, with frequencies from k = first. */
static double formula_distance(int64_t d, int64_t first, double delta)
{
    double sum = 0;
    for (int64_t k = first; k < first + d / 2; k++)
        sum += 2 * (1 - cos(delta * frequency(k, d)));
    return sqrt(sum);
}

static double distance(const float *a, const float *b, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum);
}

/* p(0), p(1) ... [n, D] by the formula, with frequencies from k = first. */
static void by_formula(int64_t first, int64_t n, float *out)
{
    for (int64_t i = 0; i < n * D; i++) {
        double angle = (double)(i / D) * frequency(i % D / 2 + first, D);
        out[i] = (float)(i % 2 ? cos(angle) : sin(angle));
    }
}

/* Computes positions at [n] of d numbers by the library: out [n, d]. */
static void encode_positions(page *p, const positions_chapter *l, const att_positions *at, int64_t n, int64_t d,
                             float *out)
{
    att_tensor zero, P = {0};
    page_zeros(p, n, d, &zero);
    if (p->status == ATT_OK)
        p->status = att_var_value(l->tape,
                                  att_sinusoidal(l->tape, att_input(l->tape, &zero), at,
                                                 ATT_OPTIONS(att_sinusoidal_options, .interleaved = true)),
                                  &P);
    if (p->status == ATT_OK)
        memcpy(out, P.data, (size_t)(n * d) * sizeof *out);
    att_tape_reset(l->tape);
}

/* ---- the waves */

static void introduce(page *p)
{
    page_title(p, (text){"Positions, in waves", "位置を波で表す"});
    page_print(
        p,
        (text){"Self-attention does not know where a word stands (`attend explain general-layer` shows it). So it "
               "is told: to each position t belongs a vector p(t), which the word's vector is given. Four things "
               "are asked of p. It is unique: no two positions have the same. Neighbors are equally far apart "
               "everywhere. It goes on for texts of any length. And it is deterministic. Each is checked here, "
               "with %d numbers for a position.",
               "自己注意は、単語がどこにあるかを知りません（`attend explain general-layer`で確かめました）。"
               "そこで位置を教えます。位置tごとにベクトルp(t)を決め、単語のベクトルに与えるのです。"
               "p(t)に求められることは四つあります。一意であること、つまり同じp(t)を持つ位置が二つとないこと。"
               "隣どうしの距離が、どこでも等しいこと。どんな長さのテキストにも使えること。そして決定論的であること。"
               "ここでは、一つの位置を%d個の数で表し、四つとも計算して確かめます。"},
        D);
}

static void waves(page *p, const positions_chapter *l)
{
    static const char *const rows[D] = {"sin t",     "cos t",     "sin t/10",   "cos t/10",
                                        "sin t/100", "cos t/100", "sin t/1000", "cos t/1000"};
    static const char *const columns[SHOWN] = {"t = 0", "t = 1", "t = 2", "t = 3", "t = 4", "t = 5"};
    att_tape *t = l->tape;
    const int64_t offsets[] = {0, SHOWN};
    att_tensor Zeros, P = {0};
    page_zeros(p, SHOWN, D, &Zeros);
    float rotated[D * SHOWN];
    page_step(p, (text){"Sines and cosines", "サインとコサイン"});
    page_print(p,
               (text){"d / 2 waves, each slower than the one before, and of each its sine and its cosine. With d = 8 "
                      "each is ten times as slow:",
                      "d / 2個の波を使います。後の波ほど遅く、それぞれからサインとコサインを取ります。"
                      "d = 8なら、波は一つごとに10倍遅くなります。"});
    page_formula(p, "p(t)_2k = sin(w_k t)    p(t)_2k+1 = cos(w_k t)");
    page_formula(p, "w_k = 1 / 10000^(2k/d)    k = 0, 1, ... d/2 - 1");
    page_print(p, (text){"The library adds p to what it is given; to zeros, so that p alone is left:",
                         "ライブラリは、渡されたものにpを足します。pだけを見るために、ゼロに足します。"});
    CALL(p,
         att_var_value(t,
                       att_sinusoidal(t, att_input(t, &Zeros), ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1),
                                      ATT_OPTIONS(att_sinusoidal_options, .interleaved = true)),
                       &P));
    for (int i = 0; i < D * SHOWN && p->status == ATT_OK; i++)
        rotated[i] = ((const float *)P.data)[i % SHOWN * D + i / SHOWN];
    att_tape_reset(t);
    page_table(p, rows, D, columns, SHOWN, rotated);
    page_print(p,
               (text){"A column is a position, from top to bottom its %d numbers.",
                      "一列が一つの位置で、上から下へ%d個の数が並びます。"},
               D);
}

static void from_zero(page *p, const positions_chapter *l)
{
    static const char *const from[] = {"k from 0", "k from 1"}, *const waves[] = {"1st w", "2nd w", "3rd w", "4th w"};
    static const char *const widths[] = {"d = 8", "d = 512"};
    float w[2 * D / 2], apart[4], *own = page_floats(p, SHOWN * D);
    if (p->status != ATT_OK)
        return;
    for (int i = 0; i < D; i++)
        w[i] = (float)frequency(i % (D / 2) + i / (D / 2), D);
    for (int i = 0; i < 4; i++)
        apart[i] = (float)formula_distance(i / 2 ? 512 : D, i % 2, 1);
    page_step(p, (text){"An erratum: k from 1", "間違い：kを1から数える"});
    page_print(p,
               (text){"The source writes the same formula, w_k = 1 / 10000^(2k/d), but lists w_1, w_2, ... w_d/2. The "
                      "paper and the models count from 0, so that the first wave is sin t itself. Both:",
                      "出典の式も同じw_k = 1 / 10000^(2k/d)ですが、並べているのはw_1, w_2, ... w_d/2です。"
                      "論文も実際のモデルも0から数え、最初の波はsin tそのものになります。両方を並べてみます。"});
    page_table(p, from, 2, waves, D / 2, w);
    by_formula(0, SHOWN, own);
    page_agree(p, (text){"The library, and the formula with k from 0", "ライブラリと、kが0からの式"}, l->p, own,
               SHOWN * D);
    by_formula(1, SHOWN, own);
    page_agree(p, (text){"The library, and the formula with k from 1", "ライブラリと、kが1からの式"}, l->p, own,
               SHOWN * D);
    page_print(p,
               (text){"Counted from 1 the fastest wave is missing, the one that tells neighbors apart. How far apart "
                      "are they then?",
                      "1から数えると、いちばん速い波がなくなります。隣どうしを見分けるのは、その波です。"
                      "隣との距離はどうなるでしょうか。"});
    page_table(p, widths, 2, from, 2, apart);
    page_print(
        p,
        (text){"With %d numbers %.0f times nearer; with 512 it is hardly to be seen, since there each wave is only "
               "%.4f times as slow as the one before. But weights that were trained with the one are wrong with "
               "the other.",
               "%d個の数では、%.0f倍も近くなってしまいます。512個ではほとんど違いません。"
               "波が一つごとに%.4f倍しか遅くならないからです。それでも、一方で学習した重みを、"
               "もう一方で使うことはできません。"},
        D, (double)apart[0] / (double)apart[1], 1 / frequency(1, 512));
}

/* ---- the four properties */

/* Returns the nearest of all pairs of positions by their first d features; *apart: their distance in the text. */
static double nearest(const float *x /* [MANY, D] */, int64_t d, int64_t *apart)
{
    double min = INFINITY;
    for (int64_t t = 0; t < MANY; t++)
        for (int64_t u = t + 1; u < MANY; u++) {
            double now = distance(x + t * D, x + u * D, d);
            if (now < min)
                min = now, *apart = u - t;
        }
    return min;
}

static void unique(page *p, const positions_chapter *l)
{
    int64_t one = 0, all = 0;
    page_step(p, (text){"Unique", "一意であること"});
    page_print(p,
               (text){"Each of the first %d positions against each other, %d pairs. Of which two are the vectors "
                      "nearest? First with one wave alone, then with all:",
                      "最初の%d個の位置を、総当たりで比べます。%d組になります。ベクトルがいちばん近いのは、"
                      "どの二つでしょうか。まず波一つだけで、次にすべての波で調べます。"},
               MANY, MANY * (MANY - 1) / 2);
    if (p->status != ATT_OK)
        return;
    double with_one = nearest(l->p, 2, &one), with_all = nearest(l->p, D, &all);
    page_line(p, "sin t, cos t   %.6f   t, t + %" PRId64, with_one, one);
    page_line(p, "p(t)           %.4f     t, t + %" PRId64, with_all, all);
    page_print(p,
               (text){"One wave comes round: %" PRId64
                      " is nearly %.0f turns of 2π, and a clock with one hand does not "
                      "tell which turn it is. The slower hands do. With all waves no two positions are nearer than "
                      "%.2f, and those are %" PRId64 " apart, %.0f turns of the first wave and one of the second; the "
                      "third has moved on.",
                      "一つの波は、また戻ってきます。%1$" PRId64 "は、2πのほぼ%2$.0f回転ぶんです。"
                      "針が一本の時計では、何回転目かがわかりません。それを示すのが、もっと遅い針です。"
                      "すべての波を使えば、%3$.2fより近い二つの位置はありません。いちばん近いのは%4$" PRId64
                      "離れた位置どうしで、第一の波がほぼ%5$.0f回転、第二の波が1回転したところですが、"
                      "第三の波が進んでいます。"},
               one, (double)one / 6.283185307, with_all, all, (double)all / 6.283185307);
}

static void neighbors(page *p, const positions_chapter *l)
{
    enum { ROWS = 5, DISTANCE = 7 };
    static const char *const rows[ROWS] = {"t, t + 1", "t, t + 2", "t, t + 3", "t, t + 6", "t, t + 63"};
    static const int delta[ROWS] = {1, 2, 3, 6, 63};
    float figures[3 * ROWS], *rotated = page_floats(p, (MANY - DISTANCE) * D);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Neighbors equally far apart", "隣との距離が等しいこと"});
    for (int i = 0; i < ROWS; i++) {
        double low = INFINITY, high = 0;
        for (int64_t t = 0; t + delta[i] < MANY; t++) {
            double now = distance(l->p + t * D, l->p + (t + delta[i]) * D, D);
            low = fmin(low, now), high = fmax(high, now);
        }
        figures[3 * i] = (float)low, figures[3 * i + 1] = (float)high;
        figures[3 * i + 2] = (float)formula_distance(D, 0, delta[i]);
    }
    page_print(p,
               (text){"The smallest and the greatest distance of neighbors among the %d positions; and of those that "
                      "are further apart:",
                      "%d個の位置の中で、隣どうしの距離の最小と最大です。もっと離れた位置どうしも並べます。"},
               MANY);
    page_formula(p, "|p(t + δ) - p(t)| = √Σ_k 2 (1 - cos(w_k δ))");
    page_table(p, rows, ROWS, (const char *const[]){"min", "max", "formula"}, 3, figures);
    page_print(p,
               (text){"There is no t in the formula: only how far apart they are counts. That is why a model can "
                      "learn \"the word before\", wherever that is. The reason: to go on by δ is to turn each pair of "
                      "numbers by the angle w_k δ, the same for all t. Turned for δ = %d:",
                      "式にtは現れません。どれだけ離れているかだけで決まります。だからモデルは、どこにいても"
                      "「一つ前の単語」を学習できます。δだけ進むことは、各組の二つの数を角度w_k δだけ"
                      "回転させることで、その角度はtによらないのです。δ = %dだけ回転させてみます。"},
               DISTANCE);
    page_formula(p, "p(t + δ)_2k = cos(w_k δ) p(t)_2k + sin(w_k δ) p(t)_2k+1");
    page_formula(p, "p(t + δ)_2k+1 = cos(w_k δ) p(t)_2k+1 - sin(w_k δ) p(t)_2k");
    for (int64_t i = 0; i < (MANY - DISTANCE) * D; i++) {
        double angle = DISTANCE * frequency(i % D / 2, D), sign = i % 2 ? -1 : 1;
        rotated[i] = (float)(cos(angle) * l->p[i] + sign * sin(angle) * l->p[i ^ 1]);
    }
    page_agree(p, (text){"p(t) turned, and p(t + 7), of all t", "回転したp(t)とp(t + 7)（すべてのt）"}, rotated,
               l->p + DISTANCE * D, (MANY - DISTANCE) * D);
    page_print(p, (text){"Equal does not mean growing: 63 apart is nearer than 1 apart. (att_rotary turns queries and "
                         "keys by these angles instead of adding p.)",
                         "等しくても、離れるほど遠くなるとは限りません。63離れた位置のほうが、隣より近いのです。"
                         "（att_rotaryは、pを足す代わりに、クエリとキーをこの角度だけ回転させます。）"});
}

static void any_length(page *p, const positions_chapter *l)
{
    enum { PLACES = 4, KINDS = 3 };
    static const int64_t at[2 * PLACES] = {0, 1, 1000, 1001, 1000000, 1000001, 1000000000, 1000000001};
    static const char *const rows[PLACES] = {"t = 0", "t = 1000", "t = 1000000", "t = 1000000000"};
    static const char *const kinds[KINDS] = {"t", "t / (n-1)", "p(t)"};
    float figures[2 * PLACES] = {0}, *x = page_floats(p, 2 * PLACES * D);
    if (p->status != ATT_OK)
        return;
    encode_positions(p, l, ATT_OPTIONS(att_positions, .position_ids = at), 2 * PLACES, D, x);
    for (int i = 0; i < PLACES; i++) {
        for (int64_t j = 0; j < D; j++)
            figures[2 * i] = fmaxf(figures[2 * i], fabsf(x[2 * i * D + j]));
        figures[2 * i + 1] = (float)distance(x + 2 * i * D, x + (2 * i + 1) * D, D);
    }
    page_step(p, (text){"Any length", "どんな長さでも"});
    page_print(p,
               (text){"The largest of the %d numbers, and the distance to the next position, far beyond any text:",
                      "どんなテキストよりもはるかに先まで見てみましょう。%d個の数の最大と、次の位置までの距離です。"},
               D);
    page_table(p, rows, PLACES, (const char *const[]){"max |p|", "to t + 1"}, 2, figures);
    page_print(
        p, (text){"Simpler ideas fail one demand or another. The number t itself grows beyond all that was seen "
                  "in training. As a share of the length, t / (n - 1), it stays in [0, 1], but a step then means "
                  "something else in each text. For n = 6 and n = 100, largest number and step:",
                  "もっと単純な方法では、どれかの条件を満たせません。tそのものを使うと、学習で見たことのない"
                  "大きさになっていきます。長さに対する割合t / (n - 1)なら[0, 1]に収まりますが、"
                  "一歩の意味がテキストごとに変わってしまいます。n = 6とn = 100で、最大の数と一歩の幅を比べます。"});
    float one = figures[1], max = 0;
    for (int64_t i = 0; i < MANY * D; i++)
        max = fmaxf(max, fabsf(l->p[i]));
    page_table(p, kinds, KINDS, (const char *const[]){"max, 6", "step, 6", "max, 100", "step, 100"}, 4,
               (const float[]){5, 1, 99, 1, 1, 1 / 5.0f, 1, 1 / 99.0f, max, one, max, one});
}

static void table_ends(page *p, const positions_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t offsets[] = {0, SHOWN + 1};
    att_tensor T, X, Y;
    att_param *table = NULL;
    page_zeros(p, SHOWN, D, &T), page_zeros(p, SHOWN + 1, D, &X);
    if (p->status == ATT_OK)
        p->status = att_param_new(p->ctx, &T, &table);
    page_print(p,
               (text){"And a learned table, a row for each position, ends. One of %d rows, asked for a text of %d:",
                      "位置ごとに一行を持つ学習された表は、途中で終わります。%d行の表に、長さ%dのテキストを渡すと、"
                      "こうなります。"},
               SHOWN, SHOWN + 1);
    if (p->status == ATT_OK)
        ANSWER(p, att_var_value(t,
                                att_learned_positions(t, att_input(t, &X), table,
                                                      ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1)),
                                &Y));
    att_tape_reset(t);
    att_param_free(table);
    page_print(
        p, (text){"That p(t) goes on is not a promise that a model does: one that has only learned from short texts "
                  "has never seen what the slow waves say in long ones.",
                  "ただし、p(t)がどこまでも続くからといって、モデルもそうだとは限りません。"
                  "短いテキストだけで学習したモデルは、長いテキストで遅い波が取る値を、見たことがないのです。"});
}

static void deterministic(page *p, const positions_chapter *l)
{
    const int64_t offsets[] = {0, 4, 4 + SHOWN}, starts[] = {700, 0};
    float *x = page_floats(p, (4 + SHOWN) * D);
    page_step(p, (text){"Deterministic", "決定論的であること"});
    page_print(p,
               (text){"Nothing is random and nothing is learned: t decides. Computed again, in a batch behind another "
                      "text, which begins at position 700:",
                      "乱数も学習もなく、tだけで決まります。もう一度、今度はバッチの中で、位置700から始まる"
                      "別のテキストの後ろに並べて計算してみます。"});
    page_line(p, "offsets = {0, 4, %d}    starts = {700, 0}", 4 + SHOWN);
    encode_positions(p, l, ATT_OPTIONS(att_positions, .offsets = offsets, .n = 2, .starts = starts), 4 + SHOWN, D, x);
    if (p->status != ATT_OK)
        return;
    bool same = memcmp(x, l->p + (int64_t)700 * D, 4 * D * sizeof *x) == 0 &&
                memcmp(x + 4 * D, l->p, SHOWN * D * sizeof *x) == 0;
    if (same)
        page_print(p,
                   (text){"All %d vectors are the same as before, to the last bit.",
                          "%d個のベクトルすべてが、前と最後のビットまで同じです。"},
                   4 + SHOWN);
    else
        page_print(p, (text){"They differ!", "違いがあります！"});
}

/* ---- the picture */

/* Returns the maximum number of bits that change between successive numbers below n. */
static int max_flips(int n)
{
    int max = 0;
    for (int t = 0; t + 1 < n; t++) {
        int flips = 0;
        for (int changed = t ^ (t + 1); changed; changed >>= 1)
            flips += changed & 1;
        max = flips > max ? flips : max;
    }
    return max;
}

static void picture(page *p, const positions_chapter *l)
{
    enum { BITS = 5, T = 1 << BITS, WIDTH = 16 };
    static const char *const bits[BITS] = {"bit 0", "bit 1", "bit 2", "bit 3", "bit 4"};
    static const char *const waves[WIDTH] = {"sin 0", "cos 0", "sin 1", "cos 1", "sin 2", "cos 2", "sin 3", "cos 3",
                                             "sin 4", "cos 4", "sin 5", "cos 5", "sin 6", "cos 6", "sin 7", "cos 7"};
    float digit[BITS * T], shade[WIDTH * T], *x = page_floats(p, T * WIDTH);
    const int64_t offsets[] = {0, T};
    if (p->status != ATT_OK)
        return;
    encode_positions(p, l, ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1), T, WIDTH, x);
    for (int i = 0; i < BITS * T; i++)
        digit[i] = (float)(i % T >> i / T & 1);
    for (int i = 0; i < WIDTH * T; i++)
        shade[i] = (1 + x[i % T * WIDTH + i / T]) / 2;
    page_step(p, (text){"Counting, in waves", "波で数える"});
    page_print(p,
               (text){"Numbers are written in the same way. In binary the last digit changes at every step, the one "
                      "before it at every second, the one before that at every fourth. A column is a position, %d of "
                      "them from 0, its last digit on top:",
                      "数の書き方も、これと同じです。二進数では、いちばん下の桁は毎回変わり、次の桁は二回ごと、"
                      "その次は四回ごとに変わります。一列が一つの位置で、0から%d個あります。"
                      "いちばん下の桁を上に描きます。"},
               T);
    page_picture(p, &(heatmap){.row = bits,
                               .rows = BITS,
                               .columns = T,
                               .weights = digit,
                               .row_name = page_text(p, (text){"bits", "ビット"}),
                               .column_name = page_text(p, (text){"position t", "位置t"}),
                               .corner = "bit  t→"});
    page_print(p,
               (text){"Waves do that without jumps. Sine and cosine of one are in two lines; here d = %d, and each "
                      "wave is %.2f times as slow as the one above. Shown is (1 + p) / 2:",
                      "波は、同じことを滑らかに行います。一つの波のサインとコサインを二行に描きます。ここではd = %dで、"
                      "波は一つごとに%.2f倍遅くなります。図の値は(1 + p) / 2です。"},
               WIDTH, 1 / frequency(1, WIDTH));
    page_picture(p, &(heatmap){.row = waves,
                               .rows = WIDTH,
                               .columns = T,
                               .weights = shade,
                               .row_name = page_text(p, (text){"waves", "波"}),
                               .column_name = page_text(p, (text){"position t", "位置t"}),
                               .corner = "k    t→"});
    page_print(p,
               (text){"Fast on top: which of the neighbors is it? Slow below: in which part of the text? But a step "
                      "of a number changes 1 digit here and %d there; sine and cosine together are the hand of a "
                      "clock, and a step turns it equally far everywhere.",
                      "上は速く、隣どうしのどれなのかを示します。下は遅く、テキストのどのあたりなのかを示します。"
                      "ただし二進数では、一歩で変わる桁が1個のところもあれば、%d個のところもあります。"
                      "サインとコサインの組は時計の針で、一歩ぶんの回転は、どこでも同じです。"},
               max_flips(T));
}

static att_status run(page *p)
{
    positions_chapter l = {.words = page_vectors(p, &layer_words), .p = page_floats(p, MANY * D)};
    const int64_t offsets[] = {0, MANY};
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &l.tape);
    if (p->status != ATT_OK)
        return p->status;
    encode_positions(p, &l, ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1), MANY, D, l.p);
    introduce(p);
    waves(p, &l);
    from_zero(p, &l);
    unique(p, &l);
    neighbors(p, &l);
    any_length(p, &l);
    table_ends(p, &l);
    deterministic(p, &l);
    picture(p, &l);
    positions_and_words(p, &l);
    att_tape_free(l.tape);
    return p->status;
}

const chapter chapter_positions = {
    .about = {"unique, even, any length, deterministic: sines and cosines",
              "一意、等間隔、どんな長さでも、決定論的。サインとコサインで表す位置"},
    .run = run,
    .draws = true,
};
