/* Sentence-BERT: a vector for a sentence by mean pooling, cosine, the loss of pairs, and titles that a query finds. */
// order: 125
#include "page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PRODUCTS = 6,
    KINDS = 6,
    PAIRS = PRODUCTS * KINDS,
    WIDTH = 16,
    STEPS = 100,
    MAX_WORDS = 48,
    MAX_TOKENS = 4 * PAIRS
};

/* Words of a title, and those of a customer who looks for it. */
static const char *const products[PRODUCTS][2] = {{"tent", "shelter"}, {"stove", "cooker"}, {"mat", "mattress"},
                                                  {"lamp", "light"},   {"bag", "rucksack"}, {"tin", "mould"}};
static const char *const kinds[KINDS][2] = {{"for two", "small"},  {"for a family", "large"}, {"of steel", "metal"},
                                            {"of wood", "timber"}, {"for children", "kids"},  {"for winter", "warm"}};

typedef struct texts {
    int64_t n, offsets[PAIRS + 1];
    int32_t ids[MAX_TOKENS];
} texts;

typedef struct sentence_chapter {
    char title[PAIRS][48], query[PAIRS][48];
    char words[MAX_WORDS][16]; /* [n_words]: the vocabulary */
    int64_t n_words;
    att_nn_params *params;
    const att_nn_embedding *embedding;
    const att_nn_encoder_layer *layer;
    att_optimizer *optimizer;
    att_tape *tape;
} sentence_chapter;

/* ---- pairs */

/* Returns whether a pair is held out: one of each product and of each kind. */
static bool is_held_out(int64_t pair) { return pair / KINDS == pair % KINDS; }

static void make_pairs(sentence_chapter *l)
{
    for (int64_t i = 0; i < PAIRS; i++) {
        const int64_t product = i / KINDS, kind = i % KINDS;
        snprintf(l->title[i], sizeof l->title[i], "%s %s", products[product][0], kinds[kind][0]);
        snprintf(l->query[i], sizeof l->query[i], "%s %s", kinds[kind][1], products[product][1]);
    }
}

/* Returns the id of a word, which a new word gets. */
static int32_t id_of(sentence_chapter *l, const char *word, size_t bytes)
{
    int64_t i = 0;
    while (i < l->n_words && (strlen(l->words[i]) != bytes || memcmp(l->words[i], word, bytes) != 0))
        i++;
    if (i == l->n_words && i < MAX_WORDS)
        snprintf(l->words[l->n_words++], sizeof l->words[0], "%.*s", (int)bytes, word);
    return (int32_t)i;
}

/* Appends the words of a text as its tokens. */
static void add(sentence_chapter *l, texts *t, const char *text)
{
    int64_t count = t->n > 0 ? t->offsets[t->n] : 0;
    t->offsets[t->n] = count;
    while (*text) {
        const size_t bytes = strcspn(text, " ");
        t->ids[count++] = id_of(l, text, bytes);
        text += bytes + (text[bytes] == ' ');
    }
    t->offsets[++t->n] = count;
}

static void introduce(page *p, sentence_chapter *l)
{
    page_title(p, (text){"Sentence-BERT: a vector for a sentence", "Sentence-BERT：文を一つのベクトルに"});
    page_print(
        p,
        (text){"A shop has titles, and customers who use other words for what they look for. To compare two "
               "sentences, one wants a vector for each, near one another if the sentences mean the same. "
               "Sentence-BERT (Reimers, Gurevych 2019) makes it of a Transformer's output, and trains it on pairs. "
               "Such a vector is also what an item has before anybody has bought it: content-based "
               "recommendation. Here is a small one, of one layer, that learns while you read.",
               "店には商品名があり、客は別の言葉でそれを探します。二つの文を比べるには、それぞれを一つのベクトルに"
               "して、意味が同じなら近くなるようにします。Sentence-BERT（Reimers, Gurevych 2019）は、"
               "Transformerの出力からこれを作り、文の対で学習します。こうしたベクトルは、まだ誰も買っていない商品にも"
               "あります。内容に基づく推薦（コンテンツベース）です。ここでは層が一つの小さなモデルが、"
               "読んでいるあいだに学習します。"});
    make_pairs(l);
    page_print(p,
               (text){"%d pairs of a title and a query, made of %d products and %d kinds; the first of each product:",
                      "商品名と検索語の対は%d組です（品物%d種類、特徴%d種類）。品物ごとに一つずつ示します。"},
               PAIRS, PRODUCTS, KINDS);
    for (int64_t i = 0; i < PRODUCTS; i++)
        page_line(p, "%-18s %s", l->title[i * KINDS + (i + 1) % KINDS], l->query[i * KINDS + (i + 1) % KINDS]);
}

/* ---- the model */

static void make_model(page *p, sentence_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_nn_params *params = NULL;
    texts all = {0};
    for (int64_t i = 0; i < PAIRS; i++) {
        all = (texts){0};
        add(l, &all, l->title[i]);
        add(l, &all, l->query[i]);
    }
    const int64_t words = l->n_words;
    page_step(p, (text){"Tokens, and a layer of a Transformer", "トークンと、Transformerの層"});
    page_print(
        p,
        (text){"BERT cuts a sentence into tokens, pieces of words; here each of the %lld words is one. A token's "
               "embedding and its position go through layers of the kind of `attend explain block`: each output "
               "row is a token in the light of the others. BERT-base has 12 layers of 768 numbers, this model "
               "one of %d, with random weights for now.",
               "BERTは文をトークン（単語の一部）に分けます。ここでは%lld個の単語がそのままトークンです。"
               "トークンの埋め込みに位置を足し、`attend explain block`の層に通します。出力の各行は、"
               "ほかのトークンを踏まえたトークンのベクトルです。BERT-baseは768個の数の層が12個、"
               "このモデルは%d個の数の層が一つで、重みはまだランダムです。"},
        (long long)words, WIDTH);
    CALL(p, att_nn_params_new(ctx, NULL, &params));
    l->params = params;
    if (p->status != ATT_OK)
        return;
    const att_nn_layer_config c = {.size = sizeof c, .width = WIDTH, .heads = 2, .intermediate = 2 * WIDTH};
    const att_nn_embedding *embedding = NULL;
    const att_nn_encoder_layer *layer = NULL;
    LOOP(p, embedding = att_nn_embedding_new(params, "embedding", words, WIDTH);
         layer = att_nn_encoder_layer_new(params, "layer", &c););
    l->embedding = embedding, l->layer = layer;
    p->status = att_nn_params_status(params);
    if (p->status == ATT_OK)
        p->status = att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &l->tape);
    if (p->status == ATT_OK)
        p->status = att_optimizer_new(ctx, NULL, &l->optimizer);
    if (p->status == ATT_OK)
        p->status = att_nn_params_optimize(params, l->optimizer);
}

/* Computes a vector of length 1 for each text -> [n, WIDTH]. */
static att_var *embed(const sentence_chapter *l, const texts *x)
{
    att_tape *t = l->tape;
    const att_positions at = {.size = sizeof at, .offsets = x->offsets, .n = x->n};
    const att_attention_args sizes = {
        .size = sizeof sizes, .n_sequences = x->n, .q_offsets = x->offsets, .k_offsets = x->offsets};
    const att_nn_layer_call call = {.size = sizeof call, .args = &sizes};
    att_var *e = att_sinusoidal(t, att_nn_embedding_apply(t, l->embedding, x->ids, x->offsets[x->n]), &at, NULL);
    att_var *h = att_nn_encoder_layer_apply(t, l->layer, e, &call);
    return att_normalize(t, att_pool(t, h, x->offsets, x->n, ATT_POOLING_MEAN, 0), 1e-12f);
}

/* Computes the cosines of two lists of texts into s [a->n, b->n]. */
static void cosines(page *p, const sentence_chapter *l, const texts *a, const texts *b, float *s)
{
    att_tape *t = l->tape;
    att_tensor S = {0};
    if (p->status == ATT_OK)
        p->status = att_var_value(
            t, att_matmul(t, embed(l, a), embed(l, b), ATT_OPTIONS(att_matmul_options, .transpose_b = true)), &S);
    if (p->status == ATT_OK)
        memcpy(s, S.data, (size_t)(a->n * b->n) * sizeof *s);
    att_tape_reset(t);
}

/* ---- two sentences */

static void pooling(page *p, sentence_chapter *l)
{
    enum { TITLE = KINDS + 2 };
    att_tape *t = l->tape;
    texts one = {0};
    const char *labels[8];
    const float *rows[8];
    add(l, &one, l->title[TITLE]);
    const int64_t n = one.offsets[1], *offsets = one.offsets;
    const int32_t *ids = one.ids;
    const att_nn_embedding *embedding = l->embedding;
    const att_nn_encoder_layer *layer = l->layer;
    const att_positions *at = ATT_OPTIONS(att_positions, .offsets = offsets, .n = 1);
    float *u = page_floats(p, WIDTH), *h;
    att_var *x, *y;
    att_tensor H = {0}, U = {0};
    page_step(p, (text){"Mean pooling", "平均プーリング"});
    page_print(
        p,
        (text){"\"%s\" has %lld rows after the layer, and a sentence of another length has others. The mean of "
               "the rows is one vector, u. (BERT has a first token, [CLS], whose row may serve as well; the "
               "paper found the mean a little better.) The first six numbers:",
               "「%s」は、層を通ると%lld行になります。長さの違う文なら、行の数も違います。行の平均を取れば、"
               "一つのベクトルuになります。（BERTには最初に[CLS]というトークンがあり、その行を使うこともできます。"
               "論文では平均のほうが少しよい結果でした。）最初の六個の数を示します。"},
        l->title[TITLE], (long long)n);
    if (p->status != ATT_OK)
        return;
    LOOP(p, x = att_sinusoidal(t, att_nn_embedding_apply(t, embedding, ids, n), at, NULL);
         y = att_nn_encoder_layer_apply(t, layer, x, NULL););
    CALL(p, att_var_value(t, y, &H));
    if (p->status != ATT_OK)
        return;
    h = H.data;
    LOOP(p, for (int64_t i = 0; i < n; i++) for (int64_t c = 0; c < WIDTH; c++) u[c] += h[i * WIDTH + c] / n;);
    for (int64_t i = 0; i < n; i++)
        labels[i] = l->words[ids[i]], rows[i] = h + i * WIDTH;
    labels[n] = "u", rows[n] = u;
    page_rows(p, labels, rows, (int)n + 1, WIDTH);
    p->status = att_var_value(t, att_pool(t, y, offsets, 1, ATT_POOLING_MEAN, 0), &U);
    if (p->status == ATT_OK)
        page_agree(p, (text){"u and att_pool", "uとatt_pool"}, u, U.data, WIDTH);
    att_tape_reset(t);
}

static void cosine(page *p, sentence_chapter *l)
{
    texts title = {0}, query = {0}, other = {0};
    float s[2] = {0};
    add(l, &title, "stove for winter");
    add(l, &query, "warm cooker");
    add(l, &other, "winter for stove");
    cosines(p, l, &title, &query, &s[0]);
    cosines(p, l, &title, &other, &s[1]);
    page_step(p, (text){"Cosine, and what one saves", "コサインと、節約できる計算"});
    page_print(
        p, (text){"Two sentences are compared by the cosine of the angle between their vectors, 1: the same direction. "
                  "With random weights it says little yet:",
                  "二つの文は、ベクトルのなす角のコサインで比べます。1なら同じ向きです。重みがランダムなうちは、"
                  "まだ当てになりません。"});
    page_formula(p, "cos(u, v) = u·v / (|u| |v|)");
    page_line(p, "stove for winter, warm cooker    %.2f", (double)s[0]);
    page_line(p, "stove for winter, winter for stove    %.2f", (double)s[1]);
    page_print(p, (text){"The mean of embeddings alone could not tell the second pair apart: the same words, cosine 1. "
                         "Positions and attention can. A cross-encoder, which reads both sentences at once, would know "
                         "still more, but needs a pass for each pair: for 10,000 sentences 50 million, 65 hours with "
                         "BERT, says the paper, where 10,000 vectors and their cosines take 5 seconds.",
                         "埋め込みの平均だけなら、二つめの対は区別できません。同じ単語なので、コサインは1です。"
                         "位置と注意があれば区別できます。二つの文を同時に読むクロスエンコーダならもっとよく"
                         "わかりますが、対ごとに計算が必要です。論文によれば、1万文では5,000万組で、BERTなら65時間。"
                         "ベクトルを1万個作ってコサインを計算するなら、5秒です。"});
}

/* ---- learning */

/* Takes a step of training; returns the loss before it. */
static float learn(page *p, sentence_chapter *l, const texts *queries, const texts *titles, const int32_t *same)
{
    att_tape *t = l->tape;
    att_tensor L = {0};
    double norm;
    att_var *u = embed(l, queries), *v = embed(l, titles), *s, *e;
    s = att_scale(t, att_matmul(t, u, v, ATT_OPTIONS(att_matmul_options, .transpose_b = true)), 20);
    e = att_cross_entropy(t, s, same, NULL);
    p->status = att_var_value(t, e, &L);
    const float loss = p->status == ATT_OK ? *(float *)L.data : 0;
    if (p->status == ATT_OK)
        p->status = att_tape_backward(t, e, NULL);
    att_tape_reset(t);
    if (p->status == ATT_OK)
        p->status = att_optimizer_step(l->optimizer, ATT_OPTIONS(att_update, .rate = 0.01), &norm);
    return loss;
}

static void loss(page *p, sentence_chapter *l)
{
    enum { BLOCK = 25, BLOCKS = STEPS / BLOCK };
    texts titles = {0}, queries = {0};
    int32_t same[PAIRS];
    const char *labels[BLOCKS];
    char names[BLOCKS][16];
    float mean[BLOCKS] = {0};
    page_step(p, (text){"The loss of pairs", "対の損失"});
    page_print(
        p,
        (text){"A pair should be nearer than what does not belong together, and in a batch of pairs all other titles "
               "do not belong to a query. So each row of the cosines, times 20, is a classification whose right "
               "class is on the diagonal: multiple negatives ranking, or InfoNCE. (The paper's own loss classified "
               "pairs of sentences as entailment or contradiction; this one, of Henderson and others 2017, needs no "
               "labels and has replaced it.) %d pairs are learned; one of each product is held out.",
               "対になる二つは、ほかの組み合わせより近くなければなりません。一つのバッチでは、ある検索語にとって、"
               "ほかの商品名はすべて外れです。そこで、コサインを20倍した各行を、正解が対角線にある分類とみなします。"
               "multiple negatives ranking、またはInfoNCEと呼ばれる損失です。（論文の損失は、文の対を含意か矛盾かに"
               "分類するものでした。ラベルのいらないこの損失（Hendersonら 2017）が、それに取って代わりました。）"
               "%d組で学習し、品物ごとに一組を取っておきます。"},
        PAIRS - PRODUCTS);
    for (int64_t i = 0; i < PAIRS; i++) {
        if (is_held_out(i))
            continue;
        same[queries.n] = (int32_t)queries.n;
        add(l, &titles, l->title[i]);
        add(l, &queries, l->query[i]);
    }
    page_formula(p, "S = 20 cos(u_i, v_j)    loss = -mean_i log softmax(S_i)_i");
    page_code(p, "s = att_scale(t, att_matmul(t, u, v, ATT_OPTIONS(att_matmul_options, .transpose_b = true)), 20);");
    page_code(p, "att_tape_backward(t, att_cross_entropy(t, s, same, NULL), NULL);");
    page_code(p, "att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.01), &norm);");
    for (int step = 0; step < STEPS && p->status == ATT_OK; step++)
        mean[step / BLOCK] += learn(p, l, &queries, &titles, same) / BLOCK;
    for (int b = 0; b < BLOCKS; b++) {
        snprintf(names[b], sizeof names[b], "%d-%d", b * BLOCK + 1, (b + 1) * BLOCK);
        labels[b] = names[b];
    }
    page_print(
        p,
        (text){"%d steps; guessing among %d titles would be ln %d = %.2f. The mean loss of each %d:",
               "%d回学習します。%d個の商品名から当てずっぽうに選ぶなら、損失はln %d = %.2fです。%d回ごとの平均損失は、"
               "次のとおりです。"},
        STEPS, PAIRS - PRODUCTS, PAIRS - PRODUCTS, log(PAIRS - PRODUCTS), BLOCK);
    page_table_rounded(p, 2, (const char *const[]){page_text(p, (text){"loss", "損失"})}, 1, labels, BLOCKS, mean);
}

static void held_out(page *p, sentence_chapter *l)
{
    texts titles = {0}, queries = {0};
    const char *rows[PRODUCTS], *columns[PRODUCTS];
    float *s = page_floats(p, PRODUCTS * PAIRS), *shown = page_floats(p, PRODUCTS * PRODUCTS);
    int64_t first = 0;
    for (int64_t i = 0; i < PAIRS; i++)
        add(l, &titles, l->title[i]);
    for (int64_t i = 0; i < PRODUCTS; i++) {
        rows[i] = l->query[i * KINDS + i];
        columns[i] = products[i][0];
        add(l, &queries, rows[i]);
    }
    cosines(p, l, &queries, &titles, s);
    for (int64_t i = 0; i < PRODUCTS && p->status == ATT_OK; i++) {
        int64_t best = 0;
        for (int64_t j = 0; j < PAIRS; j++)
            best = s[i * PAIRS + j] > s[i * PAIRS + best] ? j : best;
        first += best == i * KINDS + i;
        for (int64_t j = 0; j < PRODUCTS; j++)
            shown[i * PRODUCTS + j] = s[i * PAIRS + j * KINDS + j];
    }
    page_step(p, (text){"Sentences that were not learned", "学習していない文"});
    page_print(
        p, (text){"The queries that were held out, and the titles that were: no pair of them was seen, and none has a "
                  "word in common with the other. The cosines (a column stands for \"tent for two\", \"stove for a "
                  "family\" and so on):",
                  "取っておいた検索語と商品名です。どの対も学習しておらず、共通の単語もありません。コサインを示します"
                  "（列は「tent for two」「stove for a family」などの商品名を表します）。"});
    page_table_rounded(p, 1, rows, PRODUCTS, columns, PRODUCTS, shown);
    page_print(p,
               (text){"Among all %d titles the right one is the nearest for %lld of %d queries. The model has learned "
                      "which words mean the same, and puts new sentences together from them.",
                      "全%d個の商品名の中で、正しいものがいちばん近い検索語は、%lld件（%d件中）でした。"
                      "モデルは、どの単語とどの単語が同じ意味かを学び、それらから新しい文のベクトルを作っています。"},
               PAIRS, (long long)first, PRODUCTS);
}

static void end(page *p)
{
    page_step(p, (text){"With a model that knows a language", "言語を知っているモデルで"});
    page_print(p,
               (text){"all-MiniLM-L6-v2 is the same with 6 layers of 384 numbers, learned from 1.17 billion pairs by "
                      "this loss. `attend fetch all-MiniLM-L6-v2` downloads it; then:",
                      "all-MiniLM-L6-v2は、同じしくみで、384個の数の層が6個あり、この損失で11億7千万組の対から"
                      "学習しました。`attend fetch all-MiniLM-L6-v2`でダウンロードできます。使い方は次のとおりです。"});
    page_line(p, "attend similarity -m all-MiniLM-L6-v2 \"stove for winter\" \"warm cooker\"");
    page_line(p, "attend search -m all-MiniLM-L6-v2 --corpus titles.txt \"warm cooker\"");
    page_line(p, "attend train embed --help");
    page_line(p, "attend train recommend --help");
    page_print(p, (text){"The last one takes the titles of items, --item-texts: then items that nobody has bought yet "
                         "are recommended, too.",
                         "最後のコマンドは、--item-textsで商品名を受け取ります。まだ誰も買っていない商品も"
                         "推薦できるようになります。"});
}

static att_status run(page *p)
{
    sentence_chapter l = {0};
    introduce(p, &l);
    make_model(p, &l);
    if (p->status == ATT_OK) {
        pooling(p, &l);
        cosine(p, &l);
        loss(p, &l);
        held_out(p, &l);
        end(p);
    }
    att_tape_free(l.tape);
    att_optimizer_free(l.optimizer);
    att_nn_params_free(l.params);
    return p->status;
}

const chapter chapter_sentence_bert = {
    .about = {"sentences as vectors: mean pooling, cosine, the loss of pairs",
              "文を一つのベクトルに。平均プーリング、コサイン、対の損失"},
    .run = run,
    .own_data = true,
};
