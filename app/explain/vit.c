/* The Vision Transformer on a picture: patches, [CLS], q k v, scores, heads as columns, projection, the class. */
// order: 120
#include "vit.h"
#include "layer.h"
#include "numbers.h"
#include "vit_picture.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LABEL = 32, BEST = 3 }; /* BEST: classes that are printed */

/* Prints a number for each patch, in the patches' places, then that of [CLS]. a [tokens] */
static void print_grid(page *p, const vit_chapter *l, const float *a, float scale, int decimals)
{
    page_grid(p, a + 1, l->m.grid, scale, decimals);
    page_table_rounded(p, decimals, (const char *const[]){"CLS"}, 1, NULL, 1, (float[]){scale * a[0]});
}

/* ---- the picture */

static void introduce(page *p, vit_chapter *l)
{
    const att_vit_info *i = &l->m.info;
    page_title(p, (text){"The Vision Transformer", "Vision Transformer"});
    page_print(
        p,
        (text){"A Vision Transformer reads a picture as a sentence: its words are patches. Here it is shown on a "
               "model's own weights, number by number, in the first of its layers. The model: D = %" PRId64 ", %" PRId64
               " layers of %" PRId64 " heads, D_h = %" PRId64 " numbers in a head, %" PRId64
               " classes. Where several numbers follow a name, they are the first of its row. Layers and heads "
               "are counted from 0, patches and their rows and columns from 1.",
               "Vision Transformerは、画像を文のように読みます。単語にあたるのが、パッチです。ここでは、"
               "あるモデルの本物の重みを使って、最初の層の計算を一つずつ追います。モデルの大きさは、"
               "D = %" PRId64 "、%" PRId64 "層、各層に%" PRId64 "ヘッド、一つのヘッドの幅はD_h = %" PRId64
               "、クラスは%" PRId64 "個です。名前のあとに並ぶ数は、その行の先頭の数個です。層とヘッドは0から、パッ"
               "チとその行と列は1から数えます。"},
        i->hidden, i->layers, i->heads, l->m.head_dim, i->classes);
}

static void picture(page *p, vit_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const char *path = p->picture;
    const att_image_processor *processor = att_image_model_processor(p->images);
    const att_vit_info *i = &l->m.info;
    att_image image = {0}, seen = {0};
    float *x = l->x;
    page_step(p, (text){"A picture and its patches", "画像とパッチ"});
    page_print(p,
               (text){"The picture as the model sees it, %" PRId64 " x %" PRId64 " pixels, and cut into N = %" PRId64
                      " patches of %" PRId64 " x %" PRId64
                      ". The numbers x are its pixels, scaled and normalized as the "
                      "model wants them.",
                      "モデルが見る画像は%" PRId64 " x %" PRId64 "画素で、それを切り分けると、N = %" PRId64
                      "個のパッチになります。パッチは%" PRId64 " x %" PRId64 "画素です。xは、画素の値を、"
                      "モデルに合わせて正規化した数です。"},
               i->image[0], i->image[1], l->m.patches, i->patch[0], i->patch[1]);
    CALL(p, att_image_open(ctx, path, NULL, &image));
    l->opened = image;
    CALL(p, att_image_processor_crop(processor, &image, &seen));
    l->image = seen;
    CALL(p, att_image_processor_apply(processor, &image, x));
    vit_print_picture(p, &l->image, i->patch);
}

/* Returns the patch whose numbers differ most. */
static int64_t max_contrast(const vit_chapter *l)
{
    int64_t best = 0;
    double widest = -1;
    for (int64_t i = 0; i < l->m.patches; i++) {
        const float *x = l->patches + i * l->m.numbers;
        double sum = 0, square = 0;
        for (int64_t c = 0; c < l->m.numbers; c++)
            sum += x[c], square += (double)x[c] * x[c];
        const double variance = square - sum * sum / (double)l->m.numbers;
        if (variance > widest)
            best = i, widest = variance;
    }
    return best;
}

static void cut(page *p, vit_chapter *l)
{
    const att_vit_info *i = &l->m.info;
    const int64_t rows = l->m.grid[0], columns = l->m.grid[1], C = i->channels, width = i->image[1];
    const int64_t *P = i->patch;
    const float *x = l->x;
    float *patch = l->patches;
    char labels[VIT_MAX_GRID][LABEL];
    const char *names[VIT_MAX_GRID];
    page_step(p, (text){"From pixels to rows", "画素から行へ"});
    page_print(p,
               (text){"Each patch becomes a row of P² C numbers, channel by channel and line by line: from (H, W, C) = "
                      "(%" PRId64 ", %" PRId64 ", %" PRId64 ") to (N, P² C) = (%" PRId64 ", %" PRId64 ").",
                      "それぞれのパッチが、P² C個の数の行になります。チャネルごと、行ごとに並べます。"
                      "形は、(H, W, C) = (%" PRId64 ", %" PRId64 ", %" PRId64 ")から(N, P² C) = (%" PRId64 ", %" PRId64
                      ")に変わります。"},
               i->image[0], width, C, l->m.patches, l->m.numbers);
    if (p->status != ATT_OK)
        return;
    LOOP(p, int64_t to = 0;
         for (int64_t r = 0; r < rows;
              r++) for (int64_t s = 0; s < columns;
                        s++) for (int64_t c = 0; c < C; c++) for (int64_t i = 0; i < P[0];
                                                                  i++) for (int64_t j = 0; j < P[1]; j++) patch[to++] =
             x[((r * P[0] + i) * width + s * P[1] + j) * C + c];);
    l->shown = max_contrast(l);
    page_print(p,
               (text){"Patch %" PRId64 " (row %" PRId64 ", column %" PRId64
                      ") has the most contrast; its first channel:",
                      "明暗の差がいちばん大きいのは、パッチ%" PRId64 "（%" PRId64 "行%" PRId64
                      "列目）です。その最初のチャネルを示します。"},
               l->shown + 1, l->shown / columns + 1, l->shown % columns + 1);
    for (int64_t k = 0; k < P[0] && k < VIT_MAX_GRID; k++) {
        snprintf(labels[k], LABEL, page_text(p, (text){"line %" PRId64, "%" PRId64 "行目"}), k + 1);
        names[k] = labels[k];
    }
    page_table_rounded(p, 2, names, P[0] < VIT_MAX_GRID ? P[0] : VIT_MAX_GRID, NULL, P[1],
                       l->patches + l->shown * l->m.numbers);
}

/* ---- tokens */

static const float *value_of(const att_param *w) { return att_param_value(w)->data; }

static void tokens(page *p, vit_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.patches, d = l->m.info.hidden;
    const float *bias = value_of(l->m.patch_bias), *cls = value_of(l->m.cls), *position = value_of(l->m.positions);
    att_tensor Patch = page_matrix(p, l->patches, n, l->m.numbers), Tokens;
    att_tensor E = page_matrix(p, value_of(l->m.patch_weight), d, l->m.numbers);
    float *token = page_zeros(p, n, d, &Tokens), *z = l->z;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"The patch matrix", "パッチの行列"});
    page_print(
        p,
        (text){"One learned matrix E makes a token of each patch: (N, P² C) times (P² C, D) is (N, D) = (%" PRId64
               ", %" PRId64 "). A convolution whose stride is its width, P, is the same; that is how the file "
               "has it.",
               "学習した一つの行列Eが、それぞれのパッチをトークンにします。(N, P² C)と(P² C, D)の積は"
               "(N, D) = (%" PRId64 ", %" PRId64
               ")です。幅とストライドがどちらもPの畳み込みと同じ計算で、ファイルにはその形で入っています。"},
        n, d);
    page_formula(p, "token_i = x_i E + b");
    CALL(p, att_tensor_matmul(ctx, &Patch, &E, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Tokens));
    LOOP(p, for (int64_t i = 0; i < n * d; i++) token[i] += bias[i % d];);
    page_step(p, (text){"[CLS] and positions", "[CLS]と位置"});
    page_print(
        p,
        (text){"Above the patches stands one more row, [CLS], a learned vector that is the same for every picture. "
               "It will collect what the classifier needs. And each row is told its place: a learned position "
               "is added. So z_0 has N + 1 = %" PRId64 " rows. (The source gives z N rows, but its own table has "
               "[CLS] and N patches.) Patch %" PRId64 ":",
               "パッチの上に、もう一行、[CLS]を置きます。学習したベクトルで、どの画像でも同じです。"
               "分類に必要な情報を、ここに集めます。また、どの行にも、学習した位置のベクトルを足します。"
               "ですから、z_0はN + 1 = %" PRId64 "行です。（出典はzをN行としていますが、出典の表には、"
               "CLSとN個のパッチがあります。）パッチ%" PRId64 "は、次のようになります。"},
        n + 1, l->shown + 1);
    LOOP(p, for (int64_t i = 0; i < (n + 1) * d; i++) z[i] = (i < d ? cls[i] : token[i - d]) + position[i];);
    const int64_t at = l->shown * d;
    page_rows(p, (const char *const[]){"CLS", "+ position", "= z_0", "patch", "+ position", "= z_0"},
              (const float *const[]){cls, position, z, token + at, position + at + d, z + at + d}, 6, d);
}

static void norm(page *p, vit_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->m.tokens, d = l->m.info.hidden;
    const att_nn_norm *layer_norm = l->m.layer[0].before;
    att_tensor Z = page_matrix(p, l->z, n, d), H = {0};
    att_var *h;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"LayerNorm", "層正規化"});
    page_print(p,
               (text){"Before attention each row is normalized to mean 0 and variance 1, then multiplied by a learned "
                      "gain and moved by a learned bias. (The source feeds z itself to the matrices.)",
                      "注意の前に、各行を平均0、分散1に正規化し、学習したゲインを掛け、バイアスを足します。"
                      "（出典では、zをそのまま行列に入力しています。）"});
    page_formula(p, "h = (z - mean) / √(variance + ε) · gain + bias");
    LOOP(p, h = att_nn_norm_apply(t, layer_norm, att_constant(t, &Z)););
    CALL(p, att_var_value(t, h, &H));
    if (p->status == ATT_OK)
        memcpy(l->h, H.data, (size_t)(n * d) * sizeof *l->h);
    att_tape_reset(t);
    page_rows(p, (const char *const[]){"h CLS", "h patch"}, (const float *const[]){l->h, l->h + (l->shown + 1) * d}, 2,
              d);
}

/* ---- one head */

/* Fills l->head. */
static void choose_head(page *p, vit_chapter *l)
{
    const int64_t n = l->m.tokens;
    float *w = page_floats(p, n * n);
    vit_states states;
    double narrowest = INFINITY;
    if (p->status != ATT_OK)
        return;
    vit_layer_apply(l->tape, &l->m, 0, vit_embed(l->tape, &l->m, l->patches), VIT_RIGHT, &states);
    for (int64_t i = 0; i < l->m.info.heads && p->status == ATT_OK; i++) {
        p->status = vit_weights(l->tape, &l->m, &states, VIT_RIGHT, i, w);
        const double bits = numbers_entropy(w, n);
        if (bits < narrowest)
            narrowest = bits, l->head = i;
    }
    att_tape_reset(l->tape);
}

/* Returns the columns of a layer's matrix that belong to the head, [head_dim, hidden] as the file has them, and its
 * bias. */
static att_tensor head_matrix(page *p, const vit_chapter *l, const att_nn_linear *of, const float **bias)
{
    const int64_t first = l->head * l->m.head_dim;
    *bias = of->bias ? value_of(of->bias) + first : page_floats(p, l->m.head_dim);
    return page_matrix(p, value_of(of->weight) + first * l->m.info.hidden, l->m.head_dim, l->m.info.hidden);
}

static void project(page *p, vit_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.tokens, d = l->m.info.hidden, d_h = l->m.head_dim, row = (l->shown + 1) * d_h;
    const vit_layer *layer = &l->m.layer[0];
    const float *b_q, *b_k, *b_v;
    att_tensor W_q = head_matrix(p, l, layer->query, &b_q), W_k = head_matrix(p, l, layer->key, &b_k);
    att_tensor W_v = head_matrix(p, l, layer->value, &b_v), H = page_matrix(p, l->h, n, d), Q, K, V;
    float *q = l->q = page_zeros(p, n, d_h, &Q), *k = l->k = page_zeros(p, n, d_h, &K);
    float *v = l->v = page_zeros(p, n, d_h, &V);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"q, k and v of one head", "一つのヘッドのq、k、v"});
    page_print(
        p,
        (text){"Head %" PRId64 " of layer 0, the one whose [CLS] attends most narrowly. Three matrices of its own, "
               "W^q, W^k and W^v, make its queries, keys and values: (N + 1, D) times (D, D_h) is (N + 1, D_h) = "
               "(%" PRId64 ", %" PRId64 ").",
               "層0のヘッド%" PRId64 "を見ます。[CLS]の注意がいちばん絞られているヘッドです。三つの別々の行列"
               "W^q、W^k、W^vが、クエリ、キー、バリューを作ります。(N + 1, D)と(D, D_h)の積は"
               "(N + 1, D_h) = (%" PRId64 ", %" PRId64 ")です。"},
        l->head, n, d_h);
    page_formula(p, "q = h W^q + b^q    k = h W^k + b^k    v = h W^v + b^v");
    CALL(p, att_tensor_matmul(ctx, &H, &W_q, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Q));
    CALL(p, att_tensor_matmul(ctx, &H, &W_k, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &K));
    CALL(p, att_tensor_matmul(ctx, &H, &W_v, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &V));
    LOOP(
        p, for (int64_t i = 0; i < n * d_h; i++) {
            q[i] += b_q[i % d_h];
            k[i] += b_k[i % d_h];
            v[i] += b_v[i % d_h];
        });
    page_rows(p, (const char *const[]){"q CLS", "k CLS", "v CLS", "q patch", "k patch", "v patch"},
              (const float *const[]){q, k, v, q + row, k + row, v + row}, 6, d_h);
    page_print(p,
               (text){"The source has no biases, and writes k = z W^q and v = z W^q, so that all three are the same. "
                      "It means W^k and W^v; below it is shown what its formula would do. (In one place it also has "
                      "W^q z; but where rows are tokens, the matrix stands on the right.)",
                      "出典の式にバイアスはなく、k = z W^q、v = z W^qとなっていて、三つとも同じになってしまいます。"
                      "正しくはW^kとW^vです。出典の式どおりに計算するとどうなるかは、あとで示します。"
                      "（出典にはW^q zと書いた箇所もありますが、行がトークンなら、行列は右に来ます。）"});
}

static void attend(page *p, vit_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const int64_t n = l->m.tokens, d_h = l->m.head_dim;
    att_tensor q_cls = page_matrix(p, l->q, 1, d_h), K = page_matrix(p, l->k, n, d_h), S, w_cls, C;
    att_tensor V = page_matrix(p, l->v, n, d_h);
    float *s = page_zeros(p, 1, n, &S), *w = l->w = page_zeros(p, 1, n, &w_cls), *c = page_zeros(p, 1, d_h, &C);
    l->sa = page_floats(p, n * d_h);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"The scores of [CLS]", "[CLS]のスコア"});
    page_print(p,
               (text){"Its query with the key of each patch, divided by √D_h, in the places of the patches; then with "
                      "its own key:",
                      "[CLS]のクエリと各パッチのキーの内積を、√D_hで割ります。パッチの位置に並べて示します。"
                      "最後は、自分自身のキーとのスコアです。"});
    page_formula(p, "s_j = q_CLS · k_j / √D_h");
    CALL(p, att_tensor_matmul(ctx, &q_cls, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    LOOP(p, for (int64_t j = 0; j < n; j++) s[j] /= sqrtf((float)d_h););
    print_grid(p, l, s, 1, 2);
    page_step(p, (text){"Its weights", "[CLS]の重み"});
    page_print(p, (text){"Softmax, in percent:", "softmaxを計算します。単位は%です。"});
    CALL(p, att_tensor_softmax(ctx, &S, -1, &w_cls));
    print_grid(p, l, w, 100, 1);
    page_step(p, (text){"The weighted sum", "加重和"});
    page_print(p, (text){"The values of all tokens, each times its weight, added up: what the head brings to [CLS]. It "
                         "has D_h numbers.",
                         "すべてのトークンのバリューに重みを掛けて足します。これが、このヘッドが[CLS]にもたらすもので、"
                         "D_h個の数です。"});
    page_formula(p, "SA = A v = softmax(q kᵀ / √D_h) v");
    CALL(p, att_tensor_matmul(ctx, &w_cls, &V, NULL, &C));
    page_rows(p, (const char *const[]){"SA CLS"}, (const float *const[]){c}, 1, d_h);
    att_tensor q = layer_heads(p, l->q, 1, 1, n, d_h), k = layer_heads(p, l->k, 1, 1, n, d_h);
    att_tensor v = layer_heads(p, l->v, 1, 1, n, d_h), out = layer_heads(p, l->sa, 1, 1, n, d_h);
    page_print(p, (text){"And of all rows in one call:", "全部の行を、一度の呼び出しで計算します。"});
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = d_h),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_agree(p, (text){"Its row of [CLS] and the sum above", "その[CLS]の行と、上の和"}, l->sa, c, d_h);
}

/* ---- all heads */

/* Prints where [CLS] attends most, in each head. */
static void print_heads(page *p, const vit_chapter *l, const vit_states *states)
{
    const int64_t n = l->m.tokens;
    float *w = page_floats(p, n * n);
    for (int64_t i = 0; i < l->m.info.heads && p->status == ATT_OK; i++) {
        p->status = vit_weights(l->tape, &l->m, states, VIT_RIGHT, i, w);
        const int64_t best = numbers_largest(w + 1, n - 1);
        page_line(p, "head %-2" PRId64 "  patch %-3" PRId64 "  %4.1f %%", i, best + 1, 100 * w[1 + best]);
    }
}

static void all_heads(page *p, vit_chapter *l)
{
    att_tape *t = l->tape;
    const vit_layer *layer = &l->m.layer[0];
    const att_plan *plan = l->m.plan;
    const int64_t n = l->m.tokens, d = l->m.info.hidden, d_h = l->m.head_dim, heads = l->m.info.heads;
    const int64_t offsets[] = {0, n};
    const att_attention_args *args = ATT_OPTIONS(att_attention_args, .n_sequences = 1, .q_offsets = offsets);
    att_tensor H = page_matrix(p, l->h, n, d), Z = page_matrix(p, l->z, n, d), C = {0}, Y = {0};
    float *columns = page_floats(p, n * d_h);
    vit_states s = {0};
    att_var *h, *q, *k, *v, *c, *y, *z;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Heads are columns", "ヘッドは列"});
    page_print(p,
               (text){"The matrices of the %" PRId64
                      " heads stand side by side in one, (D, D). So one product makes the "
                      "queries of all, and head i has the D_h columns from i D_h on. Each has weights of its "
                      "own; the results stand side by side again, (N + 1, D).",
                      "%" PRId64 "個のヘッドの行列は、横に並べて一つの行列(D, D)になっています。ですから、一回の積で"
                      "全ヘッドのクエリができます。ヘッドiは、i D_h番目から始まるD_h列です。"
                      "ヘッドごとに別の重みがあり、結果は、また横に並んで(N + 1, D)になります。"},
               heads);
    LOOP(p, h = att_constant(t, &H); q = att_nn_linear_apply(t, layer->query, h, ATT_ACTIVATION_IDENTITY, NULL);
         k = att_nn_linear_apply(t, layer->key, h, ATT_ACTIVATION_IDENTITY, NULL);
         v = att_nn_linear_apply(t, layer->value, h, ATT_ACTIVATION_IDENTITY, NULL); q = att_split_heads(t, q, heads);
         k = att_split_heads(t, k, heads); v = att_split_heads(t, v, heads);
         c = att_merge_heads(t, att_attend(t, plan, q, k, v, args, NULL)););
    CALL(p, att_var_value(t, c, &C));
    for (int64_t i = 0; i < n * d_h && p->status == ATT_OK; i++)
        columns[i] = ((const float *)C.data)[i / d_h * d + l->head * d_h + i % d_h];
    page_agree(p,
               (text){"The head's columns of it, and the head by itself", "その中のヘッドの列と、一つのヘッドの計算"},
               columns, l->sa, n * d_h);
    page_print(p, (text){"Where [CLS] attends most:", "[CLS]がいちばん注意を向けるパッチは、次のとおりです。"});
    s.q = q, s.k = k;
    print_heads(p, l, &s);
    page_step(p, (text){"The output projection", "出力の射影"});
    page_print(p,
               (text){"Up to here no head knows of the others. A fourth matrix W^O mixes them, and the result is added "
                      "to what came in. The source ends before it.",
                      "ここまで、ヘッドは互いのことを知りません。四つめの行列W^Oがそれらを混ぜ合わせ、結果を"
                      "入力に足します。出典は、その前で終わっています。"});
    page_formula(p, "y = z + [SA_1, ..., SA_K] W^O + b^O");
    LOOP(p, z = att_constant(t, &Z); y = att_nn_linear_apply(t, layer->output, c, ATT_ACTIVATION_IDENTITY, z););
    CALL(p, att_var_value(t, y, &Y));
    if (p->status == ATT_OK)
        page_rows(p, (const char *const[]){"z_0 CLS", "y CLS"}, (const float *const[]){l->z, Y.data}, 2, d);
    att_tape_reset(t);
}

/* ---- all layers */

/* Computes the weights of [CLS] in the last layer, the mean of its heads, out [tokens]. */
static void last_weights(page *p, vit_chapter *l, float *out)
{
    const int64_t n = l->m.tokens, heads = l->m.info.heads;
    float *w = page_floats(p, n * n);
    vit_states states;
    att_var *x = vit_embed(l->tape, &l->m, l->patches);
    for (int64_t i = 0; i < l->m.info.layers; i++)
        x = vit_layer_apply(l->tape, &l->m, i, x, VIT_RIGHT, &states);
    for (int64_t h = 0; h < heads && p->status == ATT_OK; h++) {
        p->status = vit_weights(l->tape, &l->m, &states, VIT_RIGHT, h, w);
        for (int64_t j = 0; j < n; j++)
            out[j] += w[j] / (float)heads;
    }
    att_tape_reset(l->tape);
}

static void classify(page *p, vit_chapter *l)
{
    const att_image_model *model = p->images;
    const att_image *image = &l->opened;
    const int64_t classes = l->m.info.classes;
    float *probability = l->probability, *parts = page_floats(p, classes);
    page_step(p, (text){"The class", "クラス"});
    page_print(p,
               (text){"The second half of a layer is a feed-forward network, for each row by itself. After %" PRId64
                      " layers and a last norm the row of [CLS] goes to the classifier, and a softmax makes "
                      "probabilities of its %" PRId64 " logits. All of it in one call:",
                      "層の後半は、行ごとに計算するフィードフォワードネットワークです。%" PRId64
                      "層と最後の正規化のあと、[CLS]の行を分類器に入れ、%" PRId64
                      "個のロジットをsoftmaxで確率にします。全体を、一度の呼び出しで計算できます。"},
               l->m.info.layers, classes);
    page_formula(p, "y = z + MSA(LN(z))    z' = y + W_2 GELU(W_1 LN(y))");
    CALL(p, att_image_classify(model, 1, image, NULL, probability));
    if (p->status == ATT_OK)
        p->status = vit_probabilities(l->tape, &l->m, l->patches, VIT_RIGHT, parts);
    if (p->status != ATT_OK)
        return;
    float *rest = page_floats(p, classes);
    memcpy(rest, probability, (size_t)classes * sizeof *rest);
    for (int i = 0; i < BEST && i < classes; i++) {
        const int64_t best = numbers_largest(rest, classes);
        page_line(p, "%-12s %6.1f %%", att_image_model_label(model, best), 100 * rest[best]);
        rest[best] = -1;
    }
    page_agree(
        p,
        (text){"These and the layers of this chapter, one after the other", "この結果と、この章の層を順に適用した結果"},
        probability, parts, classes);
}

static void last_layer(page *p, vit_chapter *l)
{
    char first[64], last[64];
    float *w = page_floats(p, l->m.tokens);
    if (p->status != ATT_OK)
        return;
    last_weights(p, l, w);
    page_step(p, (text){"Where the last layer attends", "最後の層の注意"});
    page_print(p,
               (text){"The weights of [CLS] in layer %" PRId64 ", the mean of its heads, in percent. `attend classify "
                      "--attention FILE.svg` draws those of any layer and head.",
                      "層%" PRId64 "での[CLS]の重みです。全ヘッドの平均で、単位は%%です。"
                      "`attend classify --attention FILE.svg`は、どの層、どのヘッドの重みも図にします。"},
               l->m.info.layers - 1);
    print_grid(p, l, w, 100, 1);
    snprintf(first, sizeof first, page_text(p, (text){"[CLS]: layer 0, head %d", "[CLS]：層0、ヘッド%d"}),
             (int)l->head);
    snprintf(last, sizeof last, page_text(p, (text){"[CLS]: layer %d, mean of heads", "[CLS]：層%d、ヘッドの平均"}),
             (int)l->m.info.layers - 1);
    const vit_drawing d = {.image = &l->image,
                           .grid = {l->m.grid[0], l->m.grid[1]},
                           .patch = {l->m.info.patch[0], l->m.info.patch[1]},
                           .name = page_text(p, (text){"The picture", "画像"}),
                           .patches_name = page_text(p, (text){"Its patches", "パッチ"}),
                           .n_maps = 2,
                           .map_name = {first, last},
                           .map = {l->w + 1, w + 1}};
    page_drawing(p, vit_draw, &d);
}

static void walk(page *p, vit_chapter *l)
{
    introduce(p, l);
    picture(p, l);
    cut(p, l);
    choose_head(p, l);
    tokens(p, l);
    norm(p, l);
    project(p, l);
    attend(p, l);
    all_heads(p, l);
    classify(p, l);
    last_layer(p, l);
    vit_show_errata(p, l);
}

static att_status run(page *p)
{
    vit_chapter l = {0};
    p->status = vit_parts_open(p->ctx, p->folder, att_image_model_vit(p->images), &l.m);
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &l.tape);
    const att_vit_info *i = &l.m.info;
    if (p->status == ATT_OK) {
        l.x = page_floats(p, i->image[0] * i->image[1] * i->channels);
        l.patches = page_floats(p, l.m.patches * l.m.numbers);
        l.z = page_floats(p, l.m.tokens * i->hidden), l.h = page_floats(p, l.m.tokens * i->hidden);
        l.probability = page_floats(p, i->classes);
    }
    if (p->status == ATT_OK)
        walk(p, &l);
    att_tape_free(l.tape);
    vit_parts_free(&l.m);
    att_image_free(p->ctx, &l.image);
    att_image_free(p->ctx, &l.opened);
    return p->status;
}

const chapter chapter_vit = {
    .about = {"patches, [CLS], heads as columns: a real Vision Transformer",
              "パッチ、[CLS]、列に分けたヘッド。Vision Transformerの本物の数"},
    .run = run,
    .draws = true,
    .sees = true,
};
