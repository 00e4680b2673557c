/* Sequential recommendation: a history as a sentence, a model that learns while one reads, its scores and attention. */
// order: 130
#include "page.h"
#include "shop_rows.h" /* written by the build: SHOP_ROWS */

#include <attend_recommend.h>

#include <math.h>
#include <string.h>

static const struct {
    const char *customer, *item;
} rows[] = {SHOP_ROWS};

enum { ROWS = sizeof rows / sizeof *rows, MAX_ITEMS = 32, HIDDEN = 16, STEPS = 150, TOP = 3, LABEL = 24 };

typedef struct shop_chapter {
    att_interactions *log;
    att_holdout *held;
    att_interactions_info i;
    att_holdout_info h;
    att_recommender *model, *masked; /* SASRec, BERT4Rec */
    att_training *training, *masked_training;
    const char *items[MAX_ITEMS]; /* ids, by number */
    float *counts;                /* [items] */
} shop_chapter;

/* ---- The log -------------------------------------------------------------------- */

static void read_log(page *p, shop_chapter *l)
{
    static const char *users[ROWS], *items[ROWS];
    const int64_t n = ROWS;
    att_ctx *ctx = p->ctx;
    att_interactions *log = NULL;
    for (int64_t k = 0; k < n; k++) {
        users[k] = rows[k].customer;
        items[k] = rows[k].item;
    }
    CALL(p, att_interactions_new(ctx, n, users, items, NULL, NULL, &log));
    l->log = log;
    l->i.size = sizeof l->i;
    if (p->status == ATT_OK)
        p->status = att_interactions_describe(log, &l->i);
    for (int64_t k = 0; p->status == ATT_OK && k < l->i.items && k < MAX_ITEMS; k++)
        l->items[k] = att_interactions_item(log, k);
}

/* "tent mat stove" */
static void join(const shop_chapter *l, att_history h, int64_t first, int64_t end, char *line, size_t size)
{
    *line = '\0';
    for (int64_t k = first; k < end; k++)
        snprintf(line + strlen(line), size - strlen(line), "%s%s", k > first ? " " : "", l->items[h.items[k]]);
}

static void introduce(page *p, shop_chapter *l)
{
    page_title(p, (text){"Recommendation: a history as a sentence", "推薦：履歴を文として読む"});
    page_print(p,
               (text){"A Transformer continues sentences. What a customer has bought, in its order, is like a sentence "
                      "too, and an item like a word: so it can say what comes next. This is sequential "
                      "recommendation; the model of this chapter is SASRec (Kang, McAuley 2018). The log of the shop "
                      "is made up: each customer has two or three projects, one after the other, and now and then "
                      "buys a bag beside them.",
                      "Transformerは文の続きを予測します。客が買った品物を順に並べたものも文のようなもので、"
                      "品物は単語に当たります。ですから、次に何が来るかを予測できます。これを系列推薦といいます。"
                      "この章のモデルはSASRec（Kang, McAuley 2018）です。店の記録は架空のものです。"
                      "どの客も二つか三つの作業を順に進め、ときどき、それとは別に袋（bag）も買います。"});
    read_log(p, l);
    if (p->status != ATT_OK)
        return;
    page_print(p,
               (text){"%lld purchases of %lld customers, %lld items. The first two histories:",
                      "%lld件の購入、客は%lld人、品物は%lld種類です。最初の二人の履歴を見ましょう。"},
               (long long)l->i.actions, (long long)l->i.users, (long long)l->i.items);
    for (int64_t u = 0; u < 2; u++) {
        char line[256];
        const att_history h = att_interactions_history(l->log, u);
        join(l, h, 0, h.count, line, sizeof line);
        page_line(p, "%s  %s", att_interactions_user(l->log, u), line);
    }
}

static void hold_out(page *p, shop_chapter *l)
{
    att_interactions *log = l->log;
    att_holdout *held = NULL;
    page_step(p, (text){"What is held out", "取っておくもの"});
    page_print(p, (text){"To know whether predictions are right, the last purchase of each customer is not trained on, "
                         "but predicted in the end: the test. The one before is for validation, by which one chooses "
                         "a model. (Such a test knows the future of other customers; a split at a point in time does "
                         "not.)",
                         "予測が当たるかどうかを知るために、各客の最後の購入は学習に使わず、最後に予測してみます。"
                         "これがテストです。その一つ前は検証用で、モデルを選ぶのに使います。"
                         "（この分け方では、ほかの客の未来を学んでしまいます。時点で分ければ、そうはなりません。）"});
    CALL(p, att_holdout_new(log, NULL, &held));
    l->held = held;
    l->h.size = sizeof l->h;
    if (p->status == ATT_OK)
        p->status = att_holdout_describe(held, &l->h);
    page_line(p, "%lld + %lld + %lld = %lld", (long long)l->h.actions, (long long)l->h.cases[ATT_HOLDOUT_PART_VALID],
              (long long)l->h.cases[ATT_HOLDOUT_PART_TEST], (long long)l->i.actions);
}

static void popularity(page *p, shop_chapter *l)
{
    float *counts = l->counts = page_floats(p, l->i.items);
    int64_t best = 0;
    if (p->status != ATT_OK)
        return;
    page_step(p, (text){"What everybody buys", "誰もが買うもの"});
    page_print(p, (text){"The simplest recommendation: what is bought most.",
                         "いちばん単純な推薦は、最も多く買われている品物を勧めることです。"});
    for (int64_t u = 0; u < l->i.users; u++) {
        const att_history h = att_holdout_train(l->held, u);
        for (int64_t k = 0; k < h.count; k++)
            counts[h.items[k]]++;
    }
    for (int64_t k = 0; k < l->i.items; k++)
        best = counts[k] > counts[best] ? k : best;
    page_table_rounded(p, 0, (const char *const[]){page_text(p, (text){"count", "件数"})}, 1, l->items, l->i.items,
                       counts);
    page_print(p,
               (text){"It recommends \"%s\" to everybody, whatever their project. What comes next depends on what "
                      "came before.",
                      "これでは、どんな作業をしている客にも「%s」を勧めることになります。"
                      "次に何が来るかは、その前に何があったかで決まります。"},
               l->items[best]);
}

/* ---- The model -------------------------------------------------------------------- */

static void shift(page *p, const shop_chapter *l)
{
    char input[256], target[256];
    const att_history h = att_holdout_train(l->held, 1);
    page_step(p, (text){"Each position predicts the next one", "各位置が次を予測する"});
    page_print(p,
               (text){"The input is the history, the target the same history one further: every position is an "
                      "example to learn from. So no position may see what comes after it: the causal mask of `attend "
                      "explain causal`. The history of %s, as far as it is for training:",
                      "入力は履歴、目標は同じ履歴を一つずらしたものです。どの位置も学習の例になります。"
                      "ですから、どの位置からも、そのあとは見えないようにします。"
                      "`attend explain causal`の因果マスクです。%sの履歴のうち、学習に使う部分は次のとおりです。"},
               att_interactions_user(l->log, 1));
    join(l, h, 0, h.count - 1, input, sizeof input);
    join(l, h, 1, h.count, target, sizeof target);
    page_line(p, "%s  %s", page_left(p, (text){"input", "入力"}, 6).text, input);
    page_line(p, "%s  %s", page_left(p, (text){"target", "目標"}, 6).text, target);
    page_print(
        p, (text){"Each item has a vector that is learned, and so has each position, counted from the end: the last "
                  "purchase is always position 1. After the layers the last state is compared with the vectors of "
                  "all items; the same vectors are input and output.",
                  "どの品物にも、学習されるベクトルがあります。位置にもありますが、終わりから数えます。"
                  "最後の購入は、いつも位置1です。層を通ったあと、最後の状態を全品物のベクトルと比べます。"
                  "入力と出力には、同じベクトルを使います。"});
    page_formula(p, "x_i = item_i + position_{n+1-i}    h = layers(x)    score_j = h_n · item_j");
}

static void make_model(page *p, shop_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const char *const *items = l->items;
    const int64_t n_items = l->i.items;
    const att_holdout *held = l->held;
    const char *settings = "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 16, \"num_hidden_layers\": 1}";
    att_recommender *m = NULL;
    att_training *t = NULL;
    page_step(p, (text){"A model learns while you read", "読んでいるあいだに学習する"});
    page_print(p,
               (text){"A small SASRec: %d numbers an item, one layer. The loss is the cross entropy of the softmax "
                      "over all items. With random weights it is above that of guessing, ln %lld = %.4f: random scores "
                      "are sure of "
                      "wrong items.",
                      "小さなSASRecを作ります。品物一つにつき%d個の数、層は一つです。損失は、全品物にわたるsoftmaxの"
                      "交差エントロピーです。重みがランダムなうちは、当てずっぽうの損失ln %lld = %.4fより高い値です。"
                      "でたらめなスコアが、外れの品物を強く推すからです。"},
               HIDDEN, (long long)n_items, log((double)n_items));
    page_line(p, "%.*s", (int)(strstr(settings, " \"num") - settings), settings);
    page_line(p, "%s", strstr(settings, " \"num"));
    CALL(p, att_recommender_new(ctx, settings, n_items, items, NULL, 1, &m));
    l->model = m;
    const att_schedule rate = {.size = sizeof rate, .kind = ATT_SCHEDULE_CONSTANT, .max_rate = 0.01};
    CALL(p, att_recommender_training_new(
                m, ATT_OPTIONS(att_training_options, .schedule = &rate, .seed = 1),
                ATT_OPTIONS(att_recommender_training_options, .data = held, .batch = 30, .dropout = 0.2f), &t));
    l->training = t;
}

static void learn(page *p, shop_chapter *l)
{
    enum { BLOCK = 25, BLOCKS = STEPS / BLOCK };
    att_training *t = l->training;
    att_training_report r = {.size = sizeof r};
    chart_point point[STEPS];
    float *mean = page_floats(p, BLOCKS);
    char names[BLOCKS][LABEL];
    const char *labels[BLOCKS];
    if (p->status != ATT_OK)
        return;
    for (int b = 0; b < BLOCKS; b++) {
        snprintf(names[b], LABEL, "%d-%d", b * BLOCK + 1, (b + 1) * BLOCK);
        labels[b] = names[b];
    }
    page_code(p, "att_training_step(t, &r);");
    for (int step = 0; step < STEPS && p->status == ATT_OK; step++) {
        p->status = att_training_step(t, &r);
        mean[step / BLOCK] += (float)(r.loss / BLOCK);
        point[step] = (chart_point){step + 1, r.loss, r.loss, r.loss};
    }
    page_print(p,
               (text){"%d steps of 30 histories each; the mean loss of each %d:",
                      "履歴30件ずつで%d回学習します。%d回ごとの平均損失は、次のとおりです。"},
               STEPS, BLOCK);
    page_table_rounded(p, 2, (const char *const[]){page_text(p, (text){"loss", "損失"})}, 1, labels, BLOCKS, mean);
    const chart_curve curve = {.name = "loss", .point = point, .n = STEPS};
    page_chart(p, page_text(p, (text){"step", "ステップ"}),
               &(chart_panel){.name = page_text(p, (text){"loss", "損失"}), .curve = &curve, .n = 1}, 1);
}

/* ---- What it says ------------------------------------------------------------------ */

/* Finds the items with these ids [n]. */
static void find(page *p, const shop_chapter *l, const char *const *ids, int64_t n, int32_t *items)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t item = p->status == ATT_OK ? att_recommender_find_item(l->model, ids[k]) : 0;
        items[k] = (int32_t)(item < 0 ? 0 : item);
    }
}

static void scores(page *p, const shop_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const att_recommender *m = l->model;
    const int64_t n_items = l->i.items;
    const int64_t offsets[] = {0, 2};
    int32_t items[2];
    att_tensor H, V, S, P;
    float *h = page_zeros(p, 1, HIDDEN, &H), *v = page_zeros(p, n_items, HIDDEN, &V);
    float *s = page_zeros(p, 1, n_items, &S), *w = page_zeros(p, 1, n_items, &P), *listed = page_floats(p, 2 * TOP);
    att_recommendation next = {0};
    find(p, l, (const char *const[]){"tent", "mat"}, 2, items);
    page_step(p, (text){"Scores of the next item", "次の品物のスコア"});
    page_print(p,
               (text){"After \"tent\" and \"mat\": the last state h is a vector, and its dot products with the vectors "
                      "of all items, the rows of V, are the scores. It is attention's formula once more: h asks, and "
                      "the items are keys. Softmax would make probabilities of them, P.",
                      "tentとmatのあとはどうでしょうか。最後の状態hは一つのベクトルです。"
                      "全品物のベクトル（Vの各行）との内積が、スコアです。これも注意の式と同じで、"
                      "hがクエリ、品物がキーです。softmaxで確率Pにすることもできます。"});
    CALL(p, att_recommender_embed(m, 1, items, offsets, NULL, h));
    CALL(p, att_recommender_vectors(m, v));
    CALL(p, att_tensor_matmul(ctx, &H, &V, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    CALL(p, att_tensor_softmax(ctx, &S, -1, &P));
    page_table_rounded(p, 1, (const char *const[]){"s"}, 1, l->items, n_items, s);
    page_table_rounded(p, 2, (const char *const[]){"P"}, 1, l->items, n_items, w);
    page_print(p, (text){"The list of the best comes in one call, exactly, for any number of items:",
                         "上位の品物は、一度の呼び出しで得られます。品物がいくつあっても、近似なしです。"});
    CALL(p, att_recommend(m, 1, items, offsets, ATT_OPTIONS(att_recommend_options, .k = TOP), &next));
    for (int k = 0; k < TOP && p->status == ATT_OK; k++) {
        listed[k] = next.scores[k];
        listed[TOP + k] = s[next.items[k]];
        page_line(p, "%d  %-8s %6.1f", k + 1, l->items[next.items[k]], (double)next.scores[k]);
    }
    page_agree(p, (text){"These scores and the products", "このスコアと内積"}, listed, listed + TOP, TOP);
    if (next.items)
        att_recommendation_free(p->ctx, &next);
}

/* Computes in row i the attention of the last state after the first i + 1 items. */
static void attention(page *p, const shop_chapter *l)
{
    enum { N = 5 };
    static const char *const history[N] = {"paint", "bag", "brush", "bag", "roller"};
    const att_recommender *m = l->model;
    int32_t items[N];
    float *weights = page_floats(p, N * N);
    find(p, l, history, N, items);
    page_step(p, (text){"Which past items weigh", "履歴のどの品物が効いているか"});
    page_print(p,
               (text){"The attention of the layer says which items of the history went into the last state. A row for "
                      "each length of a history with two bags in it; the upper right is empty, by the causal mask:",
                      "層の注意を見れば、最後の状態に履歴のどの品物が入ったかがわかります。"
                      "袋を二つ含む履歴を、長さごとに一行ずつ示します。右上は、因果マスクのために空です。"});
    page_code(p, "att_recommender_trace(m, n, items, NULL, &trace);");
    page_code(p, "att_trace_weights(trace, 0, -1, n - 1, 1, weights);");
    for (int64_t n = 1; n <= N && p->status == ATT_OK; n++) {
        att_trace *trace = NULL;
        p->status = att_recommender_trace(m, n, items, NULL, &trace);
        if (p->status == ATT_OK)
            p->status = att_trace_weights(trace, 0, -1, n - 1, 1, weights + (n - 1) * N);
        att_trace_free(trace);
    }
    if (p->status != ATT_OK)
        return;
    page_heatmap(p, history, N, weights);
    page_print(p,
               (text){"A bag says nothing about the project. Where it comes last, it gets %.2f and %.2f of the "
                      "attention, and the items of the project get the rest: the model has learned to read past it. "
                      "Such weights show what a state was made of. They do not prove why an item is recommended: "
                      "values, the feed-forward network and the residual come after them.",
                      "袋からは、作業の内容はわかりません。袋が最後にある行では、袋の重みは%.2fと%.2fだけで、"
                      "残りは作業の品物に向かいます。袋を読み飛ばすことを学んだのです。"
                      "ただし、重みが示すのは、状態が何からできたかだけです。なぜその品物が勧められるかの証明には"
                      "なりません。そのあとに、バリュー、フィードフォワード層、残差があるからです。"},
               (double)weights[N + 1], (double)weights[3 * N + 3]);
}

/* ---- The other direction ------------------------------------------------------------- */

static void masked(page *p, shop_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const char *const *items = l->items;
    const int64_t n_items = l->i.items;
    const att_holdout *held = l->held;
    const char *settings = "{\"model_type\": \"attend-bert4rec\", \"hidden_size\": 16, \"num_hidden_layers\": 1}";
    const att_schedule rate = {.size = sizeof rate, .kind = ATT_SCHEDULE_CONSTANT, .max_rate = 0.01};
    att_training_report r = {.size = sizeof r};
    att_recommender *m = NULL;
    att_training *t = NULL;
    char line[256], gap[256];
    const att_history h = att_holdout_train(l->held, 1);
    page_step(p, (text){"BERT4Rec: fill in what is masked", "BERT4Rec：隠した品物を当てる"});
    page_print(p,
               (text){"SASRec reads from left to right. BERT4Rec (Sun and others 2019) learns as BERT does: in a "
                      "history some items are replaced by [MASK], all positions see all others, without a causal "
                      "mask, and the loss is on the masked positions alone, here a fifth of them. Items after the gap "
                      "help as well as those before it:",
                      "SASRecは左から右へ読みます。BERT4Rec（Sunら 2019）は、BERTと同じ学び方をします。"
                      "履歴の品物をいくつか[MASK]に置き換え、因果マスクなしで、どの位置からも全体が見えるようにし、"
                      "隠した位置だけで損失を計算します（ここでは五分の一です）。隠した品物の前だけでなく、"
                      "あとの品物も手掛かりになります。"});
    join(l, h, 0, 2, line, sizeof line);
    join(l, h, 3, h.count, gap, sizeof gap);
    page_line(p, "%s  %s [MASK] %s", page_left(p, (text){"input", "入力"}, 6).text, line, gap);
    page_line(p, "%s  %s", page_left(p, (text){"target", "目標"}, 6).text, l->items[h.items[2]]);
    page_print(p, (text){"To recommend, one appends a mask: what belongs there comes next. In training, therefore, the "
                         "last item alone is masked now and then:",
                         "推薦するときは、履歴の終わりに[MASK]を足します。そこに入るものが、次の品物です。"
                         "そのため学習でも、ときどき最後の品物だけを隠します。"});
    CALL(p, att_recommender_new(ctx, settings, n_items, items, NULL, 1, &m));
    l->masked = m;
    CALL(p, att_recommender_training_new(m, ATT_OPTIONS(att_training_options, .schedule = &rate, .seed = 1),
                                         ATT_OPTIONS(att_recommender_training_options, .data = held, .batch = 30,
                                                     .dropout = 0.2f, .last_mask_share = 0.1),
                                         &t));
    l->masked_training = t;
    CALL(p, att_training_step(t, &r));
    page_print(
        p, (text){"It takes many more steps than SASRec: a step teaches it about a fifth of the positions. Petrov and "
                  "Macdonald (2022) found that common code stops far too early; which of the two is then better, "
                  "papers disagree about (Klenitskiy, Vasilev 2023), and the loss decides more than the direction. "
                  "`attend train recommend --arch bert4rec` trains one.",
                  "学習には、SASRecよりずっと多くの回数が必要です。一回で学ぶのは位置の五分の一だけだからです。"
                  "PetrovとMacdonald（2022）によれば、よく使われる実装の学習はまったく足りません。そのうえでどちらが"
                  "よいかは論文によって異なり（Klenitskiy, Vasilev 2023）、読む向きよりも損失のほうが結果を"
                  "左右します。学習には`attend train recommend --arch bert4rec`を使います。"});
}

/* Ranks the test items: HR@1 and NDCG@5 of a scorer, into a row [2]. */
static void rank(page *p, const shop_chapter *l, att_scorer scorer, float *row)
{
    static const int64_t k[] = {1, 5};
    for (int c = 0; c < 2 && p->status == ATT_OK; c++) {
        att_ranking r = {.size = sizeof r};
        p->status =
            att_rank(l->held, &scorer, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .k = k[c]), &r);
        row[c] = (float)(c == 0 ? r.hr.mean : r.ndcg.mean);
    }
}

static void evaluate(page *p, const shop_chapter *l)
{
    const char *const names[] = {page_text(p, (text){"popularity", "人気順"}),
                                 page_text(p, (text){"item neighbors", "アイテム近傍"}), "SASRec"};
    static const att_baseline_kind kinds[] = {ATT_BASELINE_POPULARITY, ATT_BASELINE_NEIGHBORS};
    float *table = page_floats(p, 3 * 2);
    page_step(p, (text){"Is it any good?", "どれだけ当たるか"});
    page_print(
        p,
        (text){
            "Now the test: the held-out item is ranked among all %lld. HR@1 is how often it is the first, "
            "NDCG@5 also counts ranks up to 5, by 1 / log2(1 + rank). Beside the model are two baselines, "
            "popularity and items that the same customers have bought.",
            "いよいよテストです。取っておいた品物が、全%lld種類の中で何位になるかを調べます。"
            "HR@1は1位になる割合です。NDCG@5は、5位までを1 / log2(1 + 順位)で数えます。"
            "モデルのほかに、比較の基準（ベースライン）を二つ示します。人気順と、同じ客が買った品物によるものです。"},
        (long long)l->i.items);
    for (int b = 0; b < 2 && p->status == ATT_OK; b++) {
        att_baseline *baseline = NULL;
        p->status = att_baseline_new(l->held, kinds[b], NULL, &baseline);
        if (p->status == ATT_OK)
            rank(p, l, att_baseline_scorer(baseline), table + 2 * b);
        att_baseline_free(baseline);
    }
    if (p->status == ATT_OK)
        rank(p, l, att_recommender_scorer(l->model), table + 4);
    page_table_rounded(p, 2, names, 3, (const char *const[]){"HR@1", "NDCG@5"}, 2, table);
    page_print(
        p, (text){"Papers often rank among 100 random items instead: figures are higher then, and may order models "
                  "otherwise. And the loss of SASRec's paper compares with one random item at each position, which is "
                  "quicker with many items and less good.",
                  "論文では、ランダムに選んだ100品目の中で順位を付けることがよくあります。すると数値は高くなり、"
                  "モデルの優劣まで入れ替わることがあります。また、"
                  "SASRecの論文の損失は、各位置でランダムな一品目とだけ比べるものです。品物が多いときは速いのですが、"
                  "精度は落ちます。"});
    page_print(p, (text){"With a log of your own: `attend train recommend`, `attend evaluate recommend` and `attend "
                         "recommend`.",
                         "自分の記録で試すには、`attend train recommend`、`attend evaluate recommend`、"
                         "`attend recommend`を使ってください。"});
}

static att_status run(page *p)
{
    shop_chapter l = {0};
    introduce(p, &l);
    if (p->status == ATT_OK)
        hold_out(p, &l);
    if (p->status == ATT_OK)
        popularity(p, &l);
    if (p->status == ATT_OK)
        shift(p, &l);
    make_model(p, &l);
    learn(p, &l);
    if (p->status == ATT_OK) {
        scores(p, &l);
        attention(p, &l);
        masked(p, &l);
        evaluate(p, &l);
    }
    att_training_free(l.masked_training);
    att_training_free(l.training);
    att_recommender_free(l.masked);
    att_recommender_free(l.model);
    att_holdout_free(l.held);
    att_interactions_free(l.log);
    return p->status;
}

const chapter chapter_recommendation = {
    .about = {"a shop's log as sentences: a recommender learns while you read",
              "店の記録を文として読む。読んでいるあいだに学習する推薦モデル"},
    .run = run,
    .draws = true,
    .own_data = true,
};
