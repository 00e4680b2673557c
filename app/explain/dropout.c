/* Dropout of attention weights: PyTorch's mask, scaling, the library's mask. */
// order: 50
#include "layer.h"

#include <inttypes.h>
#include <string.h>

enum { SEED = 123, OUT = 2 };

typedef struct dropout_chapter {
    layer of;
    int64_t query;       /* its row */
    torch_random random; /* state after the first mask */
    float *w, *dropped;  /* weights, causal, and after dropout [n, n] */
    float *mask;         /* 0 or 2 [n, n] */
    att_attention_args args;
} dropout_chapter;

static void square(page *p, const dropout_chapter *l, const float *a /* [n, n] */)
{
    page_table(p, l->of.words.labels, l->of.words.n, l->of.words.labels, l->of.words.n, a);
}

static void introduce(page *p, dropout_chapter *l)
{
    page_title(p, (text){"Dropout of attention weights", "注意の重みのドロップアウト"});
    page_print(p, (text){"In training some weights are set to zero at random, others each time, so that the model does "
                         "not lean on a few of them. These are the weights of `attend explain causal`:",
                         "学習中は、重みの一部を、毎回違うところで無作為にゼロにします。モデルが少数の重みに"
                         "頼りきりにならないようにするためです。もとにするのは`attend explain causal`の重みです。"});
    att_attention_args args = l->args;
    att_plan *plan = NULL;
    if (p->status == ATT_OK)
        p->status =
            att_plan_new(p->ctx,
                         ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = OUT, .value_dim = l->of.words.n,
                                     ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT),
                         &plan);
    if (p->status == ATT_OK)
        p->status = att_weights(plan, &args, 0, 0, 0, l->of.words.n, l->w);
    att_plan_free(plan);
    square(p, l, l->w);
}

static void pytorch_mask(page *p, dropout_chapter *l)
{
    int64_t n = l->of.words.n;
    float *mask = l->mask;
    torch_random random;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"A mask", "マスク"});
    page_print(
        p,
        (text){"Each weight is kept with probability 1 - p; here p = 0.5. PyTorch takes 53 bits from two draws of "
               "its Mersenne Twister for each, and keeps it if that number, between 0 and 1, is below 1 - p. "
               "nn.Dropout(0.5)(torch.ones(%" PRId64 ", %" PRId64 ")) after torch.manual_seed(%d):",
               "それぞれの重みは、確率1 - pで残ります。ここではp = 0.5です。PyTorchは重みごとに、"
               "メルセンヌ・ツイスタの出力二つから0から1までの53ビットの数を作り、"
               "それが1 - pより小さければ残します。torch.manual_seed(%3$d)のあとの"
               "nn.Dropout(0.5)(torch.ones(%1$" PRId64 ", %2$" PRId64 "))は次のとおりです。"},
        n, n, SEED);
    LOOP(p, torch_manual_seed(&random, 123);
         for (int64_t i = 0; i < n * n; i++) mask[i] = torch_bernoulli(&random, 0.5) ? 2 : 0;);
    l->random = random;
    square(p, l, mask);
    page_print(p, (text){"On Intel's processors PyTorch may take another generator (MKL's) for this, and the same seed "
                         "then gives another mask: nothing to rely on.",
                         "ただしIntelのプロセッサーでは、PyTorchはここで別の生成器（MKLのもの）を使うことがあり、"
                         "同じシードでもマスクが変わります。あてにはできません。"});
}

static void scaling(page *p, dropout_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    const float *w = l->w, *mask = l->mask;
    att_tensor C, D = page_matrix(p, l->dropped, n, n), V = l->of.V;
    float *d = l->dropped, *c = page_zeros(p, n, OUT, &C);
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"Why 2, and not 1", "なぜ1ではなく2か"});
    page_print(p, (text){"What is left is multiplied by 1/(1 - p), so that the expected value of each weight stays:",
                         "残った重みには1/(1 - p)を掛けます。そうすれば、それぞれの重みの期待値は変わりません。"});
    page_formula(p, "E[m w] = p · 0 + (1 - p) · w/(1 - p) = w");
    LOOP(p, for (int64_t i = 0; i < n * n; i++) d[i] = w[i] * mask[i];);
    square(p, l, d);
    CALL(p, att_tensor_matmul(ctx, &D, &V, NULL, &C));
    page_table(p, l->of.words.labels, n, NULL, OUT, c);
    page_print(p, (text){"A row now sums to 1 only on average, and no division repairs that: it is meant so. Contexts "
                         "are off, each time in another way.",
                         "行の合計は、平均すれば1ですが、一回ごとには1になりません。割り算で直すこともしません。"
                         "これは意図したものです。コンテキストは、毎回違う方向へずれます。"});
}

static void average(page *p, dropout_chapter *l)
{
    enum { SHOWN = 5 };
    static const int counts[SHOWN] = {1, 10, 100, 1000, 10000};
    static const char *const names[SHOWN + 1] = {"1", "10", "100", "1000", "10000", "w"};
    int64_t n = l->of.words.n;
    const float *w = l->w + l->query * n;
    float *rows = page_floats(p, (l->query + 1) * (SHOWN + 1));
    float *kept = page_floats(p, n); /* counts */
    page_step(p, (text){"The expected value", "期待値"});
    page_print(p,
               (text){"The weights of \"%s\" after dropout, averaged over so many masks, and without dropout (w):",
                      "「%s」の重みをドロップアウトし、列の見出しの枚数だけのマスクで平均したものと、"
                      "ドロップアウトしない重み（w）です。"},
               l->of.words.labels[l->query]);
    torch_random *g = &l->random;
    for (int done = 0, shown = 0; shown < SHOWN && p->status == ATT_OK; shown++) {
        for (; done < counts[shown]; done++) {
            for (int64_t j = 0; j <= l->query; j++)
                kept[j] += (float)torch_bernoulli(g, 0.5);
        }
        for (int64_t j = 0; j <= l->query; j++) {
            rows[j * (SHOWN + 1) + shown] = 2 * kept[j] / (float)done * w[j];
            rows[j * (SHOWN + 1) + SHOWN] = w[j];
        }
    }
    page_table(p, l->of.words.labels, l->query + 1, names, SHOWN + 1, rows);
}

/* ---- the library's own */

/* Returns the unit matrix. With these values the contexts [n, n] are the weights after dropout. */
static att_tensor unit_matrix(page *p, int64_t n)
{
    float *unit = page_floats(p, n * n);
    for (int64_t i = 0; i < n && p->status == ATT_OK; i++)
        unit[i * n + i] = 1;
    return layer_heads(p, unit, 1, 1, n, n);
}

static void by_library(page *p, dropout_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *twice = page_floats(p, n * n);
    att_tensor q = l->args.q, k = l->args.k, I = unit_matrix(p, n), D = layer_heads(p, l->dropped, 1, 1, n, n);
    const uint32_t ids[] = {7};
    page_step(p, (text){"In one call", "一度の呼び出しで"});
    page_print(
        p,
        (text){"In the library dropout is part of attention, and no mask is stored. Whether a weight stays "
               "depends on a seed, the id of the sequence, the head, and the places of query and key, and on "
               "nothing else: Philox computes it from these, in any order. So the same weights stay for any "
               "number of threads, any batch and any processor, and backward finds the same mask again. To see it, the "
               "values here are the unit matrix I, ids is {7}: the contexts then are the weights.",
               "このライブラリでは、ドロップアウトは注意の計算の一部で、マスクは保存されません。"
               "重みが残るかどうかは、シード、系列のid、ヘッド、クエリとキーの位置だけで決まります。"
               "Philoxなら、これらの値だけから、どの順序でも計算できるからです。そのため、スレッド数、バッチ、プロセッ"
               "サーが"
               "何であっても残る重みは同じで、逆伝播でも同じマスクが得られます。目で見るために、"
               "ここではバリューを単位行列Iとします。idsは{7}です。コンテキストがそのまま重みになります。"});
    CALL(p,
         att_attention(ctx,
                       ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .value_dim = n,
                                   ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT, .dropout = 0.5f),
                       ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = I, .out = D, .dropout_seed = 123,
                                   .sequence_ids = ids)));
    square(p, l, l->dropped);
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < n * n; i++)
        twice[i] = l->dropped[i] != 0 ? 2 * l->w[i] : 0;
    page_agree(p, (text){"What is left, and twice its weight", "残った重みと、もとの重みの2倍"}, twice, l->dropped,
               n * n);
}

/* Shows a sequence by itself, as in by_library, and as the second one of a batch. */
static void in_a_batch(page *p, dropout_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *both = page_floats(p, 2 * n * n);
    att_tensor q = l->args.q, k = l->args.k, I = unit_matrix(p, n), D = layer_heads(p, both, 2, 1, n, n);
    const uint32_t ids[] = {3, 7};
    q.dim[0] = k.dim[0] = I.dim[0] = 2, q.stride[0] = k.stride[0] = I.stride[0] = 0;
    page_print(p, (text){"Now as the second sequence of a batch of two, with ids {3, 7}. The first one's weights:",
                         "今度は、idsを{3, 7}として、二つの系列からなるバッチの二つめにします。一つめの重みです。"});
    CALL(p,
         att_attention(ctx,
                       ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .value_dim = n,
                                   ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_TOP_LEFT, .dropout = 0.5f),
                       ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = I, .out = D, .dropout_seed = 123,
                                   .sequence_ids = ids)));
    square(p, l, both);
    if (p->status != ATT_OK)
        return;
    if (memcmp(both + n * n, l->dropped, (size_t)(n * n) * sizeof *both) == 0)
        page_print(p,
                   (text){"It has a mask of its own. The second one's are those above, to the last bit.",
                          "一つめには別のマスクが使われています。二つめの重みは、前の表と最後のビットまで同じです。"});
    else
        page_agree(p, (text){"Alone and in a batch", "単独とバッチ"}, both + n * n, l->dropped, n * n);
}

static void how_much(page *p, dropout_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *c = page_floats(p, n * OUT);
    att_tensor q = l->args.q, k = l->args.k, v = l->args.v, out = layer_heads(p, c, 1, 1, n, OUT);
    page_step(p, (text){"How much, and when", "どれだけ、いつ"});
    page_print(p,
               (text){"0.5 shows well; usual are 0.1 to 0.2, and large language models often have none. It is for "
                      "training only: a model in use computes without it, which is what the scaling was for. A "
                      "probability of 1 would leave nothing:",
                      "0.5は見やすくするためで、普通は0.1から0.2です。大規模言語モデルでは使わないことも多くあります。"
                      "使うのは学習のときだけです。推論ではドロップアウトなしで計算します。"
                      "残った重みを拡大したのは、そのためです。確率1では何も残りません。"});
    ANSWER(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .dropout = 1),
                            ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_print(p, (text){"And sequences without ids could not be told apart:", "idがなければ、系列を区別できません。"});
    ANSWER(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .dropout = 0.1f),
                            ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
}

static att_status run(page *p)
{
    dropout_chapter l = {0};
    if (layer_make(p, &l.of, OUT, SEED) != ATT_OK)
        return p->status;
    int64_t n = l.of.words.n;
    l.query = page_query(p, &l.of.words);
    l.w = page_floats(p, n * n), l.dropped = page_floats(p, n * n), l.mask = page_floats(p, n * n);
    l.args = layer_args(p, &l.of);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    pytorch_mask(p, &l);
    scaling(p, &l);
    average(p, &l);
    by_library(p, &l);
    in_a_batch(p, &l);
    how_much(p, &l);
    return p->status;
}

const chapter chapter_dropout = {
    .about = {"PyTorch's mask; why what is left is scaled; the library's mask",
              "PyTorchのマスク、残りを拡大する理由、ライブラリのマスク"},
    .run = run,
};
