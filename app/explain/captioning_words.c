/* All words of the caption: their maps in the terminal and as a picture; the limits of the maps. */
#include "captioning.h"
#include "layer.h"
#include "numbers.h"

#include "cli/base/utf8.h"
#include "cli/caption/caption_maps.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- maps */

enum { ACROSS = 74, GAP = 2, CELL = 2 }; /* characters */

/* Appends row r of a word's map. */
static void shade_row(char *line, const captioning_chapter *l, int64_t word, int64_t r, float largest)
{
    static const char *const shades[] = {"··", "░░", "▒▒", "▓▓", "██"};
    const int64_t columns = l->m.grid[1];
    const float *a = l->record.a + word * l->m.locations + r * columns;
    for (int64_t j = 0; j < columns; j++)
        strcat(line, shades[(int)fminf(5 * a[j] / largest, 4)]);
}

/* Appends text in exactly `width` columns. */
static void append_field(char *line, const char *text, int64_t width)
{
    const char *s = text;
    int64_t used = 0;
    while (*s) {
        const char *begin = s;
        const int columns = utf8_columns(utf8_next(&s));
        if (used + columns > width)
            break;
        strncat(line, begin, (size_t)(s - begin));
        used += columns;
    }
    for (; used < width; used++)
        strcat(line, " ");
}

static const char *without_end(char *line)
{
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ')
        line[--n] = '\0';
    return line;
}

/* Prints the words [first, last) side by side. */
static void print_block(page *p, const captioning_chapter *l, int64_t first, int64_t last, int64_t width, float largest)
{
    char line[1024] = "", text[64];
    for (int64_t i = first; i < last; i++)
        append_field(line, captioning_word(p, l, i), width - GAP), append_field(line, "", GAP);
    page_line(p, "%s", without_end(line));
    for (int64_t r = 0; r < l->m.grid[0]; r++) {
        line[0] = '\0';
        for (int64_t i = first; i < last; i++) {
            char row[256] = "";
            shade_row(row, l, i, r, largest);
            append_field(line, row, width);
        }
        page_line(p, "%s", without_end(line));
    }
    line[0] = '\0';
    for (int64_t i = first; i < last; i++) {
        const float *a = l->record.a + i * l->m.locations;
        snprintf(text, sizeof text, "%.1f %%", 100 * a[numbers_largest(a, l->m.locations)]);
        append_field(line, text, width);
    }
    page_line(p, "%s", without_end(line));
    if (l->m.gate) {
        line[0] = '\0';
        for (int64_t i = first; i < last; i++) {
            snprintf(text, sizeof text, "β %.2f", l->record.gate[i]);
            append_field(line, text, width);
        }
        page_line(p, "%s", without_end(line));
    }
}

static void print_maps(page *p, const captioning_chapter *l)
{
    const int64_t n = l->caption.count;
    int64_t width = CELL * l->m.grid[1] < 8 ? 8 : CELL * l->m.grid[1];
    for (int64_t i = 0; i < n; i++) {
        const int64_t word = utf8_width(captioning_word(p, l, i));
        width = word > width && word <= 16 ? word : width;
    }
    width += GAP;
    const int64_t across = ACROSS / width;
    const float largest = l->record.a[numbers_largest(l->record.a, n * l->m.locations)];
    for (int64_t i = 0; i < n; i += across) {
        if (i > 0)
            page_line(p, "%s", "");
        print_block(p, l, i, i + across < n ? i + across : n, width, largest);
    }
}

static int draw_maps(FILE *f, const page *p, const void *drawing) { return caption_maps_svg(f, p->title, drawing); }

static void draw(page *p, const captioning_chapter *l, const att_trace *trace, float *weights)
{
    char about[160], seen[160];
    snprintf(
        about, sizeof about,
        page_text(p, (text){"Attention to %d x %d locations before each word", "単語ごとの、%d x %d個の位置への注意"}),
        (int)l->m.grid[0], (int)l->m.grid[1]);
    snprintf(seen, sizeof seen,
             page_text(p, (text){"what the model sees: %d x %d pixels", "モデルが見る画像：%d x %d画素"}),
             (int)l->image.width, (int)l->image.height);
    caption_maps maps = {.m = p->captioner,
                         .caption = &l->caption,
                         .seen.size = sizeof maps.seen,
                         .weights = weights,
                         .weights_name = about,
                         .image_name = seen};
    if (p->status == ATT_OK)
        p->status = att_trace_describe(trace, &maps.seen);
    page_drawing(p, draw_maps, &maps);
}

void captioning_show_words(page *p, captioning_chapter *l)
{
    const att_caption_model *model = p->captioner->model;
    const att_image image = l->opened;
    const int32_t *ids = l->caption.ids;
    const int64_t n = l->caption.count;
    float *weights = page_floats(p, n * l->m.locations);
    att_trace *trace = NULL;
    page_step(p, (text){"All words", "すべての単語"});
    page_print(
        p,
        (text){"The same for each of the %" PRId64 " words: its map, the largest weight%s. Dark is the largest of all.",
               "%" PRId64 "語のそれぞれについて、同じ計算をします。位置ごとの重みのマップと、いちばん大きい重み%sを"
               "示します。全体でいちばん大きい重みを、いちばん濃くしています。"},
        n, l->m.gate ? page_text(p, (text){" and the gate", "、ゲートの値"}) : "");
    if (p->status == ATT_OK)
        print_maps(p, l);
    page_print(p,
               (text){"These are weights of what goes into c_t, not reasons for a word. Nobody has told the model "
                      "where to turn: it has learned that from captions alone, since every step from the grid to the "
                      "probability of a word has a gradient. The library's own function, with the same words:",
                      "これは、c_tに何をどれだけ混ぜるかを示す重みで、その単語が選ばれた理由ではありません。"
                      "どこに注意を向けるべきかを、誰かが教えたわけでもありません。グリッドから単語の確率まで、"
                      "すべての計算に勾配があるので、モデルはキャプションだけからそれを学習しました。"
                      "同じ単語について、ライブラリの関数でも計算します。"});
    CALL(p, att_caption_trace(model, &image, ids, n, NULL, &trace));
    CALL(p, att_trace_weights(trace, att_trace_find(trace, ATT_TRACE_SIDE_CROSS, 0), 0, 0, n, weights));
    page_agree_roughly(
        p, (text){"The weights of all words, and the model's own", "すべての単語の重みと、モデル自身の重み"},
        l->record.a, weights, n * l->m.locations);
    draw(p, l, trace, weights);
    att_trace_free(trace);
}

/* ---- order */

static void order(page *p, const captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.locations, d = l->m.info.hidden;
    float *h = page_floats(p, n * d), *k = page_floats(p, n * d), *c = page_floats(p, d);
    float *a = page_floats(p, n), *expected = page_floats(p, n);
    att_attention_args args = {.size = sizeof args, .n_params = 1};
    args.q = layer_heads(p, l->q, 1, 1, 1, d), args.out = layer_heads(p, c, 1, 1, 1, d);
    args.k = layer_heads(p, k, 1, 1, n, d), args.v = layer_heads(p, h, 1, 1, n, d);
    const att_tensor v = page_matrix(p, att_param_value(l->m.score)->data, 1, d);
    args.param = &v;
    att_plan *plan = NULL;
    if (p->status != ATT_OK)
        return;
    captioning_mirror(&l->m, l->h, d, h);
    captioning_mirror(&l->m, l->k, d, k);
    captioning_mirror(&l->m, l->a, 1, expected);
    page_step(p, (text){"The order of the locations", "位置の順序"});
    page_print(p,
               (text){"Left and right of the grid are exchanged once more, for word %" PRId64
                      ": keys and values are now those of P h, the query is the same.",
                      "もう一度、グリッドの左右を入れ替えます。%" PRId64
                      "番目の単語で、キーとバリューはP hのものになり、クエリは変わりません。"},
               l->shown + 1);
    CALL(p,
         att_plan_new(
             ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = d, .score = att_score_additive, .scale = 1),
             &plan));
    CALL(p, att_weights(plan, &args, 0, 0, 0, 1, a));
    CALL(p, att_forward(plan, &args));
    att_plan_free(plan);
    page_agree_roughly(p,
                       (text){"The map of P h, and the map of h with left and right exchanged",
                              "P hのマップと、hのマップの左右を入れ替えたもの"},
                       a, expected, n);
    page_agree_roughly(p, (text){"c_t of P h and of h", "P hのc_tとhのc_t"}, c, l->c, d);
    page_formula(p, "a_t(P h) = P a_t(h)    c_t(P h) = c_t(h)");
    page_print(
        p, (text){"The weights move with the locations: they are equivariant. The sum c_t does not notice: it is "
                  "invariant. (The source says so of self-attention, which is equivariant; `attend explain "
                  "general-layer` shows it.) So attention chooses locations by what is in them, and tells as little as "
                  "the mean about where they are: that has to be in the vectors themselves, from convolutions or "
                  "from positions that are added (`attend explain positions`). What it gains over one vector is the "
                  "choice: c_t may be nearly one location, and another one for the next word.",
                  "重みは、位置と一緒に動きます。これが同変です。一方、和であるc_tは変わりません。これが不変です。"
                  "（出典は自己注意を「順序不変」としていますが、自己注意は同変です。`attend explain general-layer`で"
                  "示します。）ですから、注意が位置を選ぶ手がかりは、そこに何があるかだけです。それがどこにあるかは、"
                  "平均と同じく、c_tには現れません。場所の情報は、畳み込みによって、または足した位置のベクトルによって"
                  "（`attend explain positions`）、ベクトルそのものに書き込まれている必要があります。注意が一つの"
                  "ベクトルに勝るのは、選べることです。c_tは、ほとんど一つの位置だけのベクトルにもなれますし、"
                  "次の単語では別の位置に移れます。"});
}

/* ---- sums of locations */

static void sums(page *p, const captioning_chapter *l)
{
    const int64_t n = l->caption.count, locations = l->m.locations;
    const double even = (double)n / (double)locations;
    float *sum = page_floats(p, locations);
    double penalty = 0;
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < n * locations; i++)
        sum[i % locations] += l->record.a[i];
    for (int64_t i = 0; i < locations; i++)
        penalty += (1 - (double)sum[i]) * (1 - (double)sum[i]);
    page_step(p, (text){"What each place gets", "位置ごとの合計"});
    page_print(
        p,
        (text){"Softmax makes the weights of each word sum to 1. What a location gets from all words together is "
               "free; only the mean is fixed, T / (H W) = %.2f, for T = %" PRId64 " words. Σ_t a_t,ij:",
               "softmaxによって、重みの合計は単語ごとに1になります。しかし、一つの位置が全部の単語から受け取る"
               "重みの合計は、決まっていません。決まっているのはその平均だけで、T / (H W) = %.2fです（Tは単語の数で、"
               "%" PRId64 "）。Σ_t a_t,ijは次のとおりです。"},
        even, n);
    page_grid(p, sum, l->m.grid, 1, 2);
    page_print(
        p,
        (text){"Xu and others (2015) add a penalty to the loss, so that no location is left out, and call it "
               "doubly stochastic attention: over the locations exactly, over the words nearly (`attend train "
               "caption --doubly-stochastic λ`). Here it is %.2f λ. With fewer words than locations the sums cannot "
               "all be 1; the least penalty is that of equal sums, %.2f λ.",
               "Xuら（2015年）は、どの位置も取り残されないように、損失にペナルティを加え、二重に確率的な注意（doubly "
               "stochastic attention）と呼びました。重みの合計は、位置にわたっては正確に1、単語にわたってもほぼ1に"
               "なります（`attend train caption --doubly-stochastic λ`）。ここでは、ペナルティは%.2f λです。単語の数が"
               "位置の数より少なければ、合計をどこも1にすることはできません。ペナルティが最小になるのは、合計がどこも"
               "等しいときで、%.2f λです。"},
        penalty, (double)locations * (1 - even) * (1 - even));
    page_formula(p, "λ Σ_ij (1 - Σ_t a_t,ij)²");
}

void captioning_show_limits(page *p, captioning_chapter *l)
{
    order(p, l);
    sums(p, l);
}
