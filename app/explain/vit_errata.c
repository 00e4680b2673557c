/* The errata of the chapter's source, computed on the model: one matrix for q, k and v, the scale, shapes, W^O. */
#include "numbers.h"
#include "vit.h"

#include <inttypes.h>
#include <math.h>

/* ---- k and v made with the matrix of q */

/* Unusual properties of a layer's weights. */
typedef struct oddness {
    double asymmetry;  /* the largest |S_ij - S_ji| of a head's scores */
    int64_t to_itself; /* rows whose largest weight is on themselves, in all heads */
} oddness;

static double asymmetry(page *p, const vit_chapter *l, const vit_states *s)
{
    const int64_t n = l->m.tokens, d_h = l->m.head_dim, d = l->m.info.hidden, stride[] = {d, 1};
    att_tensor Q = {0}, K = {0}, S;
    float *scores = page_zeros(p, n, n, &S);
    double largest = 0;
    if (p->status == ATT_OK)
        p->status = att_var_value(l->tape, s->q, &Q);
    if (p->status == ATT_OK)
        p->status = att_var_value(l->tape, s->k, &K);
    if (p->status != ATT_OK)
        return 0;
    att_wrap(&Q, (float *)Q.data + l->head * d_h, ATT_F32, ATT_DIMS(n, d_h), stride);
    att_wrap(&K, (float *)K.data + l->head * d_h, ATT_F32, ATT_DIMS(n, d_h), stride);
    p->status = att_tensor_matmul(p->ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S);
    for (int64_t i = 0; i < n * n; i++)
        largest = fmax(largest, fabs((double)scores[i] - scores[i % n * n + i / n]));
    return largest;
}

static oddness measure(page *p, const vit_chapter *l, vit_erratum erratum)
{
    const int64_t n = l->m.tokens;
    oddness o = {0};
    vit_states s;
    float *w = page_floats(p, n * n);
    if (p->status != ATT_OK)
        return o;
    vit_layer_apply(l->tape, &l->m, 0, vit_embed(l->tape, &l->m, l->patches), erratum, &s);
    o.asymmetry = asymmetry(p, l, &s);
    for (int64_t h = 0; h < l->m.info.heads && p->status == ATT_OK; h++) {
        p->status = vit_weights(l->tape, &l->m, &s, erratum, h, w);
        for (int64_t i = 0; i < n; i++)
            o.to_itself += numbers_largest(w + i * n, n) == i;
    }
    att_tape_reset(l->tape);
    return o;
}

static void one_matrix(page *p, const vit_chapter *l)
{
    const int64_t rows = l->m.tokens * l->m.info.heads;
    page_step(p, (text){"Erratum: one matrix for q, k and v", "間違い：q、k、vに一つの行列"});
    page_print(
        p, (text){"As the source writes it, k = v = q. Then q kᵀ is symmetric: i attends to j by the same score as j "
                  "to i. And a row's product with itself is the square of its length, so rows tend to attend to "
                  "themselves. Layer 0, with W^k and with W^q alone: the largest difference of S_ij and S_ji in the "
                  "head, and the rows of all heads whose largest weight is on themselves.",
                  "出典の式のとおりなら、k = v = qです。すると、q kᵀは対称になり、iから見たjのスコアと、jから見た"
                  "iのスコアが、いつも同じになります。また、自分自身との内積は長さの二乗なので、どの行も自分自身に"
                  "注意を向けがちです。層0で、W^kを使う場合と、W^qだけの場合を比べます。このヘッドのS_ijとS_jiの差の"
                  "最大値と、全ヘッドのうち、自分自身への重みがいちばん大きい行の数です。"});
    page_formula(p, "k = z W^q  ⇒  S = q qᵀ = Sᵀ");
    const oddness right = measure(p, l, VIT_RIGHT), wrong = measure(p, l, VIT_ONE_MATRIX);
    const char *to_itself =
        page_text(p, (text){"to itself %4" PRId64 " of %" PRId64, "自分自身 %4" PRId64 " / %" PRId64});
    char of[2][64];
    snprintf(of[0], sizeof of[0], to_itself, right.to_itself, rows);
    snprintf(of[1], sizeof of[1], to_itself, wrong.to_itself, rows);
    page_line(p, "k = h W^k   max |S_ij - S_ji| %7.2f   %s", right.asymmetry, of[0]);
    page_line(p, "k = h W^q   max |S_ij - S_ji| %7.2f   %s", wrong.asymmetry, of[1]);
}

/* ---- the scale */

/* Computes the entropy of weights in bits, the mean over a head's rows, out [heads]. */
static void entropies(page *p, const vit_chapter *l, vit_erratum erratum, float *out)
{
    const int64_t n = l->m.tokens;
    vit_states s;
    float *w = page_floats(p, n * n);
    if (p->status != ATT_OK)
        return;
    vit_layer_apply(l->tape, &l->m, 0, vit_embed(l->tape, &l->m, l->patches), erratum, &s);
    for (int64_t h = 0; h < l->m.info.heads && p->status == ATT_OK; h++) {
        double bits = 0;
        p->status = vit_weights(l->tape, &l->m, &s, erratum, h, w);
        for (int64_t i = 0; i < n * n; i++)
            bits -= w[i] > 0 ? w[i] * log2(w[i]) / (double)n : 0;
        out[h] = (float)bits;
    }
    att_tape_reset(l->tape);
}

static void scale(page *p, const vit_chapter *l)
{
    const int64_t heads = l->m.info.heads, d_h = l->m.head_dim, d = l->m.info.hidden;
    char name[VIT_MAX_HEADS][32], right[32], wrong[32];
    const char *names[VIT_MAX_HEADS];
    float *bits = page_floats(p, 2 * heads);
    if (p->status != ATT_OK)
        return;
    for (int64_t h = 0; h < heads; h++) {
        snprintf(name[h], sizeof name[h], "head %" PRId64, h);
        names[h] = name[h];
    }
    snprintf(right, sizeof right, "√%" PRId64, d_h);
    snprintf(wrong, sizeof wrong, "√%" PRId64, d);
    page_step(p, (text){"Erratum: a head's scale by the whole width", "間違い：全体の幅によるスケーリング"});
    page_print(p,
               (text){"The source's D_h is the width of all heads together, which it divides into K; but it goes on to "
                      "divide each head's scores by √D_h. What is added up in a score are the products of one head, "
                      "%" PRId64 " and not %" PRId64
                      ". With the larger divisor the weights become more equal. Layer 0: the "
                      "entropy of the weights in bits, the mean of all rows; equal weights have %.2f.",
                      "出典のD_hは、全ヘッドを合わせた幅で、それをK個に分けます。ところが、分けたあとも、各ヘッドの"
                      "スコアを√D_hで割っています。一つのスコアで足すのは、一つのヘッドの積だけで、%" PRId64
                      "個です。%" PRId64 "個ではありません。割る数が大きいと、重みはどれも同じような値になります。"
                      "層0の重みのエントロピー（ビット、全行の平均）です。すべて等しい重みなら%.2fになります。"},
               d_h, d, log2((double)l->m.tokens));
    entropies(p, l, VIT_RIGHT, bits);
    entropies(p, l, VIT_WHOLE_SCALE, bits + heads);
    page_table_rounded(p, 2, (const char *const[]){right, wrong}, 2, names, heads, bits);
}

/* ---- shapes */

static void shapes(page *p, const vit_chapter *l)
{
    const int64_t n = l->m.tokens, d = l->m.info.hidden, d_h = l->m.head_dim, heads = l->m.info.heads;
    page_step(p, (text){"Errata: shapes", "間違い：形"});
    page_print(p,
               (text){"The source says that SA_i maps to N x N. That is the shape of its weights A_i alone; the result "
                      "has a value's width. It also gives q_i and k_i D / K columns in one line, and A_i v_i all of "
                      "D_h; and its list of splits has q twice and no v. With D_h for one head:",
                      "出典は、SA_iの値域をN x Nとしています。その形になるのは重みA_iだけで、結果の幅はバリューと"
                      "同じです。また、q_iとk_iの列数をD / Kとした行と、A_i v_iをD_h列とした行があり、分割の一覧には"
                      "qが二回あって、vがありません。D_hを一つのヘッドの幅とすると、正しくは次のとおりです。"});
    page_line(p, "z                      (N + 1) x D      %4" PRId64 " x %" PRId64, n, d);
    page_line(p, "q_i, k_i, v_i          (N + 1) x D_h    %4" PRId64 " x %" PRId64, n, d_h);
    page_line(p, "A_i                    (N + 1) x (N + 1)%4" PRId64 " x %" PRId64, n, n);
    page_line(p, "SA_i(z) = A_i v_i      (N + 1) x D_h    %4" PRId64 " x %" PRId64, n, d_h);
    page_line(p, "[SA_1, ..., SA_K]      (N + 1) x K D_h  %4" PRId64 " x %" PRId64, n, heads * d_h);
    page_line(p, "[SA_1, ..., SA_K] W^O  (N + 1) x D      %4" PRId64 " x %" PRId64, n, d);
}

/* ---- what the model answers */

static void answers(page *p, vit_chapter *l)
{
    static const text names[] = {
        {"right", "正しい式"}, {"k = v = q", "k = v = q"}, {"scale √D", "√Dで割る"}, {"no W^O", "W^Oなし"}};
    const int64_t classes = l->m.info.classes, right = numbers_largest(l->probability, classes);
    const char *label = att_image_model_label(p->images, right);
    float *probability = page_floats(p, classes);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"What the errata do to the answer", "間違いが答えに与える影響"});
    page_print(
        p,
        (text){"The same weights with each erratum, in all layers: the answer, its probability, and that of \"%s\". "
               "(A model that is trained with one learns other weights, and may do well. But a symmetric score "
               "or no W^O is less than it could have, and a published model read with one is wrong.)",
               "同じ重みで、全部の層に、それぞれの間違いを入れてみます。答えとその確率、そして「%s」の確率です。"
               "（間違った式で学習したモデルなら、重みも別のものになり、うまく働くかもしれません。しかし、"
               "対称なスコアでは、またW^Oがなければ、表せるものが減ります。また、公開されたモデルを"
               "間違った式で読めば、結果は正しくなくなります。）"},
        label);
    for (int erratum = 0; erratum < VIT_ERRATA; erratum++) {
        if (p->status == ATT_OK)
            p->status = vit_probabilities(l->tape, &l->m, l->patches, (vit_erratum)erratum, probability);
        const int64_t best = numbers_largest(probability, classes);
        page_line(p, "%s  %-12s %6.1f %%  %6.1f %%", page_left(p, names[erratum], 10).text,
                  att_image_model_label(p->images, best), 100 * probability[best], 100 * probability[right]);
    }
}

void vit_show_errata(page *p, vit_chapter *l)
{
    one_matrix(p, l);
    scale(p, l);
    shapes(p, l);
    answers(p, l);
}
