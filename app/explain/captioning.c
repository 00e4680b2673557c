/* Captions of a picture: one vector for all of it, then attention to the locations of a grid, word by word. */
// order: 95
#include "captioning.h"
#include "layer.h"
#include "numbers.h"
#include "vit_picture.h"

#include "attend_util.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LABEL = 64, BEST = 3 }; /* BEST: words that are printed */

/* ---- tables */

/* "h_2,3" */
static const char *name_at(char out[LABEL], const captioning_chapter *l, const char *name, int64_t i)
{
    snprintf(out, LABEL, "%s_%" PRId64 ",%" PRId64, name, i / l->m.grid[1] + 1, i % l->m.grid[1] + 1);
    return out;
}

/* "c_3" */
static const char *name_of(char out[LABEL], const char *name, int64_t i)
{
    snprintf(out, LABEL, "%s_%" PRId64, name, i);
    return out;
}

/* ---- the grid */

static void introduce(page *p, const captioning_chapter *l)
{
    const att_caption_model_info *i = &l->m.info;
    page_title(p, (text){"Captions of a picture", "画像キャプション"});
    page_print(
        p,
        (text){"A network writes a sentence about a picture: convolutions read the picture, a GRU writes the "
               "words, one after another. First from one vector for the whole picture, then with attention, where "
               "each word gets a vector of its own. All on a model's own weights, number by number. The model: a "
               "grid of H x W = %" PRId64 " x %" PRId64 " locations, states of D_h = %" PRId64 " numbers, %" PRId64
               " words. Where several numbers follow a name, they are the first of its row. Rows and columns of "
               "the grid are counted from 1. (The same story of translations, with measurements: `attend explain "
               "fixed-context`.)",
               "画像を説明する文を書くネットワークです。畳み込みが画像を読み、GRUが単語を一つずつ書きます。"
               "まず、画像全体を表す一つのベクトルから書く場合を見ます。次に、注意を使って、単語ごとに別の"
               "ベクトルから書く場合を見ます。あるモデルの本物の重みを使い、計算を一つずつ追います。"
               "モデルの大きさは、グリッドがH x W = %" PRId64 " x %" PRId64 "、状態の幅がD_h = %" PRId64
               "、単語が%" PRId64 "語です。名前のあとに並ぶ数は、その行の先頭の数個です。グリッドの行と列は1から"
               "数えます。（翻訳での同じ話とその測定は、`attend explain fixed-context`にあります。）"},
        i->grid[0], i->grid[1], i->hidden, i->words);
}

static void picture(page *p, captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const char *path = p->picture;
    const att_image_processor *processor = l->m.processor;
    const att_caption_model_info *i = &l->m.info;
    att_image image = {0}, seen = {0};
    float *pixels = page_floats(p, i->image[0] * i->image[1] * i->channels);
    page_step(p, (text){"The picture", "画像"});
    page_print(p,
               (text){"The picture as the model sees it, %" PRId64 " x %" PRId64 " pixels of %" PRId64
                      " numbers, here as characters:",
                      "モデルが見る画像は%" PRId64 " x %" PRId64 "画素で、一つの画素は%" PRId64
                      "個の数です。ここでは文字で示します。"},
               i->image[0], i->image[1], i->channels);
    CALL(p, att_image_open(ctx, path, NULL, &image));
    l->opened = image;
    CALL(p, att_image_processor_crop(processor, &image, &seen));
    l->image = seen;
    CALL(p, att_image_processor_apply(processor, &image, pixels));
    vit_print_picture(p, &l->image, NULL);
    if (p->status == ATT_OK)
        l->x = pixels;
}

static void grid(page *p, captioning_chapter *l)
{
    att_tape *t = l->tape;
    const att_caption_model_info *i = &l->m.info;
    const captioning_stage *stage = l->m.stage;
    const int64_t stages = l->m.stages, locations = l->m.locations, d = i->hidden,
                  middle = locations / 2 + i->grid[1] / 2;
    const att_nn_linear *project = l->m.project;
    const att_pool_options halves = {.size = sizeof halves, .kernel = {2, 2}};
    att_tensor Pixels = {0}, X = {0}, H = {0};
    att_var *x, *y, *h;
    char name[3][LABEL];
    if (p->status != ATT_OK)
        return;
    p->status = att_wrap(&Pixels, l->x, ATT_F32, ATT_DIMS(1, i->image[0], i->image[1], i->channels), NULL);
    page_step(p, (text){"A grid of vectors", "ベクトルのグリッド"});
    page_print(p,
               (text){"%" PRId64 " stages of convolutions halve rows and columns: from (%" PRId64 ", %" PRId64
                      ", %" PRId64 ") to (H, W, D_x) = (%" PRId64 ", %" PRId64 ", %" PRId64
                      "). Then a matrix and tanh make of each location the D_h numbers that the writer gets to see.",
                      "畳み込みの段が%" PRId64 "段あり、段ごとに行と列が半分になります。形は、(%" PRId64 ", %" PRId64
                      ", %" PRId64 ")から(H, W, D_x) = (%" PRId64 ", %" PRId64 ", %" PRId64
                      ")に変わります。そのあと、行列とtanhが、位置ごとにD_h個の数を作ります。"
                      "文を書く側に渡されるのは、これです。"},
               stages, i->image[0], i->image[1], i->channels, i->grid[0], i->grid[1], i->features);
    page_formula(p, "h_ij = tanh(x_ij W + b)");
    LOOP(
        p, x = att_constant(t, &Pixels); for (int64_t s = 0; s < stages; s++) {
            x = att_nn_conv_apply(t, stage[s].conv[0], x);
            x = att_nn_batch_norm_apply(t, stage[s].norm[0], x, NULL);
            x = att_activate(t, x, ATT_ACTIVATION_RELU);
            x = att_pool2d(t, x, ATT_POOLING_MAX, &halves);
            y = att_nn_conv_apply(t, stage[s].conv[1], x);
            y = att_nn_batch_norm_apply(t, stage[s].norm[1], y, NULL);
            x = att_add(t, x, att_activate(t, y, ATT_ACTIVATION_RELU));
        } x = att_reshape(t, x, 2, (const int64_t[]){locations, -1});
        h = att_nn_linear_apply(t, project, x, ATT_ACTIVATION_TANH, NULL););
    CALL(p, att_var_value(t, x, &X));
    CALL(p, att_var_value(t, h, &H));
    l->x = page_floats(p, locations * i->features), l->h = page_floats(p, locations * d);
    if (p->status != ATT_OK)
        return;
    memcpy(l->x, X.data, (size_t)(locations * i->features) * sizeof *l->x);
    memcpy(l->h, H.data, (size_t)(locations * d) * sizeof *l->h);
    att_tape_reset(t);
    page_rows(p,
              (const char *const[]){name_at(name[0], l, "h", 0), name_at(name[1], l, "h", middle),
                                    name_at(name[2], l, "h", locations - 1)},
              (const float *const[]){l->h, l->h + middle * d, l->h + (locations - 1) * d}, 3, d);
    const int64_t field = 1 + 7 * ((1 << stages) - 1);
    page_print(
        p,
        (text){"A location is not a tile of the picture: each convolution takes in what is around, in the end up to "
               "%" PRId64 " x %" PRId64 " pixels, of which those in the middle count most.",
               "一つの位置は、画像を切り分けた一枚ではありません。畳み込みのたびに周りの値を取り込むので、"
               "最後には最大%" PRId64 " x %" PRId64
               "画素の範囲が関わります。ただし、いちばん効くのは中央付近の画素です。"},
        field, field);
}

/* ---- one vector */

static void one_vector(page *p, captioning_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t d = l->m.info.hidden, locations = l->m.locations;
    const att_nn_linear *bridge = l->m.bridge;
    att_tensor H = page_matrix(p, l->h, locations, d), C = {0}, S = {0};
    att_var *c, *s;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"One vector for the picture", "画像全体を表す一つのベクトル"});
    page_print(
        p,
        (text){"The simplest writer gets one vector c, here the mean of all locations, and begins with a state s_0 "
               "that a layer makes of it. (The source writes c = h_0, since it calls the writer's states h; here "
               "these are s, and h is the grid.) H W D_h = %" PRId64 " numbers become %" PRId64 ":",
               "いちばん簡単な作りでは、文を書く側は一つのベクトルcだけを受け取ります。ここでは、全部の位置の平均"
               "です。そこから一つの層が最初の状態s_0を作ります。（出典は、書く側の状態をhと呼び、c = h_0と"
               "書いています。ここでは状態をsとし、hはグリッドとします。）H W D_h = %" PRId64 "個の数が、%" PRId64
               "個になります。"},
        locations * d, d);
    page_formula(p, "c = 1 / (H W) Σ_ij h_ij    s_0 = tanh(c W + b)");
    LOOP(p, c = att_mean(t, att_constant(t, &H), 0); c = att_reshape(t, c, 2, (const int64_t[]){1, -1});
         s = att_nn_linear_apply(t, bridge, c, ATT_ACTIVATION_TANH, NULL););
    CALL(p, att_var_value(t, c, &C));
    CALL(p, att_var_value(t, s, &S));
    l->mean = page_floats(p, d);
    if (p->status != ATT_OK)
        return;
    memcpy(l->mean, C.data, (size_t)d * sizeof *l->mean);
    page_rows(p, (const char *const[]){"c", "s_0"}, (const float *const[]){l->mean, S.data}, 2, d);
    att_tape_reset(t);
}

static void what_is_lost(page *p, const captioning_chapter *l)
{
    const int64_t d = l->m.info.hidden, locations = l->m.locations;
    float *mirrored = page_floats(p, locations * d), *mean = page_floats(p, d);
    page_step(p, (text){"What it cannot tell", "一つのベクトルでは伝わらないこと"});
    page_print(p,
               (text){"Exchange left and right in the grid: location (i, j) gets the vector of (i, W + 1 - j). Other "
                      "vectors in all locations, and the same mean:",
                      "グリッドの左右を入れ替えてみます。位置(i, j)に、(i, W + 1 - j)のベクトルを置きます。"
                      "どの位置のベクトルも変わりますが、平均は変わりません。"});
    if (p->status != ATT_OK)
        return;
    captioning_mirror(&l->m, l->h, d, mirrored);
    for (int64_t i = 0; i < locations * d; i++)
        mean[i % d] += mirrored[i] / (float)locations;
    page_agree(p, (text){"c of the grid, and of its mirror image", "もとのグリッドのcと、左右を入れ替えたグリッドのc"},
               l->mean, mean, d);
    page_print(
        p,
        (text){"So from c alone nobody can say what is left of what. And that is one loss of many: c fixes "
               "%1$" PRId64 " directions out of %2$" PRId64 ", and in the other %3$" PRId64
               " the grid can change while c stays. Training chooses what c holds, and the convolutions may learn "
               "to write into their features where they are. But all that a caption might mention, the color of "
               "a shirt, the hat of the third person, has to share these %1$" PRId64
               " numbers. A wider c holds more, but is as wide for every picture.",
               "ですから、cだけを見て、何が何の左にあるかを言うことはできません。失われるのは、それだけでは"
               "ありません。cが決めるのは、%2$" PRId64 "の方向のうち%1$" PRId64 "だけで、残りの%3$" PRId64
               "の方向には、グリッドが変わってもcは変わりません。cに何を残すかは学習で選べますし、畳み込みが、"
               "自分の位置を特徴に書き込むことを覚えるかもしれません。しかし、シャツの色や三人目の帽子のように、"
               "文に出てくるかもしれないことすべてが、この%1$" PRId64
               "個の数を分け合うのです。cを広くすれば入る量は増えますが、その広さはどの画像でも同じです。"},
        d, locations * d, (locations - 1) * d);
}

/* ---- attention, for one word */

/* Fills l->record and l->shown. */
static void record(page *p, captioning_chapter *l)
{
    const int64_t n = l->caption.count, d = l->m.info.hidden, locations = l->m.locations;
    const att_tensor H = page_matrix(p, l->h, locations, d);
    double narrowest = INFINITY;
    l->record = (captioning_record){.s = page_floats(p, n * d),
                                    .e = page_floats(p, n * locations),
                                    .a = page_floats(p, n * locations),
                                    .gate = page_floats(p, n)};
    if (p->status == ATT_OK)
        p->status = captioning_write(l->tape, &l->m, &H, l->caption.ids, n, &l->record);
    for (int64_t i = 0; i < n && p->status == ATT_OK; i++) {
        const double bits = numbers_entropy(l->record.a + i * locations, locations);
        if (bits < narrowest)
            narrowest = bits, l->shown = i;
    }
}

static void caption(page *p, captioning_chapter *l)
{
    const att_caption_model *model = p->captioner->model;
    const att_image image = l->opened;
    att_image_caption caption = {0};
    page_step(p, (text){"A caption", "キャプション"});
    page_print(p,
               (text){"With attention the writer keeps the grid, and makes a vector c_t of it before each word t, by "
                      "weights that depend on its state. This is what the model writes, right or "
                      "not:",
                      "注意を使えば、文を書く側は、グリッドを最後まで手元に残します。単語tを書く前に、そのつど、グリッ"
                      "ドからベクトルc_t"
                      "を作ります。そのときの重みは、状態によって変わります。モデルが書いた文を示します。正しいとはか"
                      "ぎりません。"});
    CALL(p, att_caption(model, 1, &image, NULL, &caption));
    l->caption = caption;
    if (p->status == ATT_OK && !caption.text)
        p->status = att_fail(p->ctx, ATT_ERR_UNSUPPORTED, "%s: the model finds no caption for it", p->picture);
    page_line(p, "%s", caption.text);
    if (p->status == ATT_OK)
        record(p, l);
    if (p->status == ATT_OK)
        page_print(p,
                   (text){"Of its words the one with the narrowest weights is number %" PRId64
                          ", \"%s\"; it is followed here step by step.",
                          "重みがいちばん絞られている単語は、%" PRId64 "番目の「%s」です。この単語を順に追います。"},
                   l->shown + 1, captioning_word(p, l, l->shown));
}

static const float *value_of(const att_param *w) { return att_param_value(w)->data; }

/* Prints the first numbers of the largest score's sum. */
static void print_largest(page *p, const captioning_chapter *l)
{
    const int64_t d = l->m.info.hidden, at = numbers_largest(l->e, l->m.locations);
    const float *q = l->q, *k = l->k + at * d, *v = value_of(l->m.score);
    char name[LABEL];
    float *sum = page_floats(p, d), *product = page_floats(p, d);
    if (p->status != ATT_OK)
        return;
    for (int64_t c = 0; c < d; c++) {
        sum[c] = tanhf(q[c] + k[c]);
        product[c] = v[c] * sum[c];
    }
    page_print(p,
               (text){"The location with the largest score is in row %" PRId64 ", column %" PRId64
                      ". The first of the %" PRId64 " products whose sum it is:",
                      "スコアがいちばん大きいのは、%" PRId64 "行%" PRId64 "列目の位置です。%" PRId64
                      "個の積の和になっています。その先頭は次のとおりです。"},
               at / l->m.grid[1] + 1, at % l->m.grid[1] + 1, d);
    page_rows(p, (const char *const[]){"q", name_at(name, l, "k", at), "tanh", "v", "v tanh"},
              (const float *const[]){q, k, sum, v, product}, 5, d);
}

static void scores(page *p, captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.locations, d = l->m.info.hidden;
    att_tensor S = page_matrix(p, l->record.s + l->shown * d, 1, d), H = page_matrix(p, l->h, n, d), Q, K;
    att_tensor W_q = page_matrix(p, value_of(l->m.query->weight), d, d);
    att_tensor W_h = page_matrix(p, value_of(l->m.key->weight), d, d);
    float *q = page_zeros(p, 1, d, &Q), *k = page_zeros(p, n, d, &K), *e = l->e = page_floats(p, n);
    const float *v = value_of(l->m.score);
    l->q = q, l->k = k;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Its scores", "この単語のスコア"});
    page_print(
        p, (text){"How well does each location fit the state s_t-1, which knows the words so far? The source lets a "
                  "multilayer perceptron say so, f_att; this is the additive score of Bahdanau and others (`attend "
                  "explain scores` has more of it). The state makes a query, each location a key.",
                  "それぞれの位置は、ここまでの単語を知っている状態s_t-1に、どれだけ合うでしょうか。"
                  "出典では、多層パーセプトロンf_attがそれを計算します。Bahdanauらの加法スコアです（くわしくは"
                  "`attend explain scores`にあります）。状態がクエリを作り、それぞれの位置がキーを作ります。"});
    page_formula(p, "e_t,ij = f_att(s_t-1, h_ij) = v · tanh(q + k_ij)");
    page_formula(p, "q = s_t-1 W_q    k_ij = h_ij W_h");
    CALL(p, att_tensor_matmul(ctx, &S, &W_q, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Q));
    CALL(p, att_tensor_matmul(ctx, &H, &W_h, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &K));
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t c = 0; c < d; c++) e[i] += v[c] * tanhf(q[c] + k[i * d + c]););
    page_grid(p, e, l->m.grid, 1, 2);
    print_largest(p, l);
}

static void weights(page *p, captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.locations;
    att_tensor E = page_matrix(p, l->e, 1, n), A;
    float sum = 0, *a = l->a = page_zeros(p, 1, n, &A);
    page_step(p, (text){"Its weights", "この単語の重み"});
    page_print(p,
               (text){"One softmax over all H W = %" PRId64 " locations, over rows and columns together, makes weights "
                      "whose sum is 1. In percent:",
                      "行と列を合わせた、H W = %" PRId64
                      "個の位置全部にわたって、一度にsoftmaxを計算します。重みの合計は1になります。単位は%%です。"},
               n);
    page_formula(p, "a_t,ij = exp(e_t,ij) / Σ_kl exp(e_t,kl)");
    CALL(p, att_tensor_softmax(ctx, &E, -1, &A));
    page_grid(p, a, l->m.grid, 100, 1);
    for (int64_t i = 0; i < n && p->status == ATT_OK; i++)
        sum += a[i];
    page_line(p, "%s", "");
    page_line(p, "Σ a = %.4f", sum);
}

static void context(page *p, captioning_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.locations, d = l->m.info.hidden;
    att_tensor A = page_matrix(p, l->a, 1, n), H = page_matrix(p, l->h, n, d), C;
    float *fused = page_floats(p, d);
    att_tensor q = layer_heads(p, l->q, 1, 1, 1, d), k = layer_heads(p, l->k, 1, 1, n, d);
    att_tensor h = layer_heads(p, l->h, 1, 1, n, d), out = layer_heads(p, fused, 1, 1, 1, d);
    const att_tensor v = page_matrix(p, value_of(l->m.score), 1, d);
    char name[LABEL];
    l->c = page_zeros(p, 1, d, &C);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Its context", "この単語のコンテキスト"});
    page_print(p,
               (text){"Each weight times the whole vector of its location, and the %" PRId64 " vectors added up. (The "
                      "source multiplies weights and features element by element; but a weight is one number, and a "
                      "location has %" PRId64 ".) Beside it the one vector c, which has the same weight for all:",
                      "それぞれの重みを、その位置のベクトル全体に掛け、%" PRId64
                      "個のベクトルを足します。（出典は、重みと特徴を「要素ごとに掛け合わせ」としていますが、"
                      "重みは一つの数で、位置には%" PRId64 "個の数があります。）すべての位置を"
                      "同じ重みで平均した、先ほどのベクトルcと並べて示します。"},
               n, d);
    page_formula(p, "c_t = Σ_ij a_t,ij h_ij");
    CALL(p, att_tensor_matmul(ctx, &A, &H, NULL, &C));
    page_rows(p, (const char *const[]){"c", name_of(name, "c", l->shown + 1)}, (const float *const[]){l->mean, l->c}, 2,
              d);
    page_print(p, (text){"Scores, weights and context in one call:", "スコア、重み、コンテキストを一度の呼び出しで："});
    CALL(p,
         att_attention(
             ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = d, .score = att_score_additive, .scale = 1),
             ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = h, .param = &v, .n_params = 1, .out = out)));
    page_agree_roughly(p, (text){"c_t and att_attention", "c_tとatt_attention"}, l->c, fused, d);
}

static void gate(page *p, const captioning_chapter *l)
{
    char name[LABEL];
    if (!l->m.gate)
        return;
    page_print(p,
               (text){"This model has a gate besides: one number between 0 and 1, by which the state says how much "
                      "picture the next word needs (Xu and others, 2015). c_t is multiplied by it.",
                      "このモデルには、ゲートもあります。次の単語に画像がどれだけ要るかを、状態が0から1までの一つの数で"
                      "表し、c_tに掛けます（Xuら、2015年）。"});
    page_formula(p, "β_t = σ(s_t-1 w + b)");
    page_table(p, (const char *const[]){name_of(name, "β", l->shown + 1)}, 1, NULL, 1, l->record.gate + l->shown);
}

/* Returns the probability of a word, 0 if the model does not have it. */
static float probability_of(const page *p, const captioning_chapter *l, const float *probability, const char *word)
{
    for (int64_t i = 0; i < l->m.vocabulary; i++) {
        const char *name = att_caption_model_word(p->captioner->model, i);
        if (name && !strcmp(name, word))
            return probability[i];
    }
    return 0;
}

/* Explains why the picture that comes with the model, which shows a woman, is said to show a man. */
static void bias(page *p, float man, float woman)
{
    static const char shipped[] = "examples/astronaut.png";
    const size_t n = strlen(p->picture);
    if (n < sizeof shipped - 1 || strcmp(p->picture + n - (sizeof shipped - 1), shipped) != 0 || !(man > woman))
        return;
    page_print(
        p,
        (text){"The picture shows Eileen Collins. That she is called a man (%.1f %% against %.1f %% for woman) has a "
               "reason: in the captions that the model learned from, man stands 5,374 times and woman 2,543 "
               "times. Where the picture leaves a doubt, as a space suit does, the more frequent word wins, and a "
               "model says it even more often than its data. \"Women also Snowboard\" (Hendricks and others, 2018) "
               "measures this, and trains captioners to look at the person, and to be unsure where there is "
               "nothing to be seen. The map above shows where this model looked.",
               "この写真の人物はアイリーン・コリンズです。man（%.1f %%）がwoman（%.1f "
               "%%）より上なのには、理由があります。学習に使ったキャプションには、manが5,374回、womanが2,"
               "543回出てきます。宇宙服のように"
               "どちらとも取れるときは、多いほうの単語が選ばれ、データの偏りよりも偏ります。\"Women also Snowboard\""
               "（Hendricksら、2018年）は、これを測り、人物そのものを見ること、見ても分からなければ確信を持たない"
               "ことを学習させました。このモデルがどこを見たかは、上の地図のとおりです。"},
        100 * (double)man, 100 * (double)woman);
}

static void next_word(page *p, const captioning_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t d = l->m.info.hidden, E = l->m.embedding, words = l->m.vocabulary, at = l->shown;
    static const int64_t one[] = {0, 1};
    const att_nn_recurrent *gru = l->m.decoder;
    const att_nn_linear *readout = l->m.readout, *output = &l->m.output;
    const int32_t word = at > 0 ? l->caption.ids[at - 1] : (int32_t)l->m.end;
    att_tensor C = page_matrix(p, l->c, 1, d), S = page_matrix(p, l->record.s + at * d, 1, d), Y = {0};
    const att_recurrent_state before = {.hidden = att_constant(t, &S)};
    att_var *c, *w, *s, *y;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"The word", "単語"});
    page_print(p,
               (text){"The word before, w_t-1, and the context go into the GRU, and of its new state and the context "
                      "comes the probability of each word. The most probable ones (the caption is the most probable "
                      "one as a whole that beam search has found; its own word need not be the first):",
                      "直前の単語w_t-1とコンテキストをGRUに入れます。その新しい状態とコンテキストから、"
                      "それぞれの単語の確率が得られます。確率の高い順に示します。（キャプションは、全体としての確率が"
                      "いちばん高いものをビームサーチで選んだので、その単語が一位とはかぎりません。）"});
    page_formula(p, l->m.gate ? "s_t = GRU(s_t-1, [w_t-1, β_t c_t])    y = tanh([β_t c_t, s_t] W + b)"
                              : "s_t = GRU(s_t-1, [w_t-1, c_t])    y = tanh([c_t, s_t] W + b)");
    page_formula(p, "P(word) = softmax(y Eᵀ + b)");
    c = att_scale(t, att_constant(t, &C), l->record.gate[at]);
    LOOP(p, w = att_embedding(t, output->weight, &word, 1); w = att_scale(t, w, sqrtf((float)E));
         w = att_concat(t, 2, (att_var *[]){w, c}, 1);
         s = att_nn_recurrent_apply(t, gru, w, one, 1, &before, NULL, NULL);
         s = att_concat(t, 2, (att_var *[]){c, s}, 1);
         y = att_nn_linear_apply(t, readout, s, ATT_ACTIVATION_TANH, NULL);
         y = att_nn_linear_apply(t, output, y, ATT_ACTIVATION_IDENTITY, NULL); y = att_softmax(t, y););
    CALL(p, att_var_value(t, y, &Y));
    if (p->status != ATT_OK)
        return;
    float *probability = Y.data;
    const float man = probability_of(p, l, probability, "man"), woman = probability_of(p, l, probability, "woman");
    for (int i = 0; i < BEST && i < words; i++) {
        const int64_t best = numbers_largest(probability, words);
        const char *name = att_caption_model_word(p->captioner->model, best);
        page_line(p, "%-12s %5.1f %%", name ? name : best == l->m.end ? "(end)" : "<unk>", 100 * probability[best]);
        probability[best] = -1;
    }
    att_tape_reset(t);
    bias(p, man, woman);
}

static void one_word(page *p, captioning_chapter *l)
{
    scores(p, l);
    weights(p, l);
    context(p, l);
    gate(p, l);
    next_word(p, l);
}

static void walk(page *p, captioning_chapter *l)
{
    introduce(p, l);
    picture(p, l);
    grid(p, l);
    one_vector(p, l);
    what_is_lost(p, l);
    caption(p, l);
    if (p->status != ATT_OK)
        return;
    one_word(p, l);
    captioning_show_words(p, l);
    captioning_show_limits(p, l);
    captioning_show_errata(p, l);
}

static att_status run(page *p)
{
    captioning_chapter l = {0};
    p->status = captioning_parts_open(p->ctx, p->folder, p->captioner->model, &l.m);
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &l.tape);
    if (p->status == ATT_OK)
        walk(p, &l);
    att_tape_free(l.tape);
    captioning_parts_free(&l.m);
    att_image_caption_free(p->ctx, &l.caption);
    att_image_free(p->ctx, &l.image);
    att_image_free(p->ctx, &l.opened);
    return p->status;
}

const chapter chapter_captioning = {
    .about = {"one vector for a picture, or attention to a grid for each word",
              "画像を一つのベクトルにするか、単語ごとに位置に注意を向けるか"},
    .run = run,
    .draws = true,
    .captions = true,
};
