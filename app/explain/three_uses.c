/* The three uses of attention in a translator: encoder, decoder, source-to-target; a real model's weights. */
// order: 100
#include "page.h"

#include "attend_util.h"
#include "cli/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 64 }; /* tokens of a text: larger tables are unreadable */

/* One of the three: the weights of all its heads. */
typedef struct use {
    att_trace_side side;
    int64_t layers, heads, rows, columns;
    const char *const *row, *const *column; /* labels of queries and keys */
    float *weights;                         /* [layers, heads, rows, columns] */
} use;

enum { ENCODER, DECODER, CROSS, USES };

typedef struct three_uses_chapter {
    const att_translator *m;
    const att_encoder_decoder *model;
    const att_tokenizer *tokenizer;
    att_encoder_decoder_info info;
    const char *text;
    att_tokens source;           /* including its end token */
    att_translation translation; /* tokens without their end */
    int64_t n, rows;             /* source's tokens; the translation's, with the end */
    int32_t next[MAX_TOKENS];    /* [rows]: the next tokens */
    const char *of_source[MAX_TOKENS], *of_before[MAX_TOKENS], *of_next[MAX_TOKENS];
    use use[USES];
    int64_t hidden; /* numbers in a vector */
} three_uses_chapter;

/* ---- a translation, and all of its attention */

/* Returns the trace of a source [n] and a translation `next` [rows], which ends; NULL: it failed. The caller frees
 * it. */
static att_trace *trace_of(page *p, const three_uses_chapter *l, const int32_t *source, int64_t n, const int32_t *next)
{
    const att_trace_options o = {.size = sizeof o, .ids = source, .n_ids = n};
    att_trace *t = NULL;
    if (p->status == ATT_OK)
        p->status = att_translator_trace(l->m, NULL, 0, next, l->rows - 1, &o, &t);
    return t;
}

/* Reads the logits [rows, vocabulary] of a pass, and the encoder's result for the first token [hidden]; each or
 * NULL. */
static void read_pass(page *p, const three_uses_chapter *l, att_trace *t, float *logits, float *first)
{
    if (p->status == ATT_OK && logits)
        p->status = att_trace_output(t, -1, 0, l->rows, logits);
    if (p->status == ATT_OK && first)
        p->status = att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, -1, 0, 1, first);
    att_trace_free(t);
}

static const char *name_of(const three_uses_chapter *l, int32_t id)
{
    const char *token = att_tokenizer_token(l->tokenizer, id);
    return token ? token : "?";
}

static void print_tokens(page *p, const char *name, const char *const *token, int64_t n)
{
    enum { ROOM = 58, LONGEST = 302 }; /* columns; bytes of a token with the space before it */
    char line[1024];
    size_t used = (size_t)snprintf(line, sizeof line, "%-10s", name);
    int columns = 0;
    for (int64_t i = 0; i < n; i++) {
        const int width = 1 + utf8_width(token[i]);
        if (columns > 0 && (columns + width > ROOM || used + LONGEST > sizeof line)) {
            page_line(p, "%s", line);
            used = (size_t)snprintf(line, sizeof line, "%-10s", "");
            columns = 0;
        }
        used += (size_t)snprintf(line + used, sizeof line - used, " %.300s", token[i]);
        columns += width;
    }
    page_line(p, "%s", line);
}

static void introduce(page *p)
{
    page_title(p, (text){"Three uses of attention", "注意の三つの使い方"});
    page_print(p, (text){"A Transformer that translates uses attention in three places. It is the same function, "
                         "Attention(Q, X, X): queries from Q look at X, which gives keys and values. What differs is "
                         "where Q and X come from, and what is hidden. Here on a translator's own weights.",
                         "翻訳を行うTransformerは、三つの場所で注意を使います。関数はどれも同じAttention(Q, X, X)です。"
                         "Qから作ったクエリが、キーとバリューを与えるXを見ます。違うのは、QとXがどこから来るか、"
                         "そして何を隠すかだけです。ここでは、翻訳モデルの本物の重みで見ていきます。"});
}

static void translate(page *p, three_uses_chapter *l)
{
    const att_translator *m = l->m;
    const att_tokenizer *tokenizer = l->tokenizer;
    const char *text = l->text;
    att_translation translation = {0};
    att_tokens source = {0};
    page_step(p, (struct text){"A sentence and its translation", "文とその翻訳"});
    page_print(p, (struct text){"\"%s\"", "「%s」"}, text);
    CALL(p, att_translate(m, 1, &text, NULL, ATT_OPTIONS(att_translate_options, .beam = 1), &translation));
    if (p->status != ATT_OK)
        return;
    l->translation = translation;
    page_print(p, (struct text){"→ \"%s\"", "→「%s」"}, translation.text.text);
    page_print(p, (struct text){"The model does not see words but tokens. A source has an end, too:",
                                "モデルが見るのは単語ではなく、トークンです。原文にも終わりの印があります。"});
    CALL(p, att_tokenize(tokenizer, text, strlen(text), NULL, &source));
    if (p->status != ATT_OK)
        return;
    l->source = source;
    l->n = source.count, l->rows = translation.tokens.count + 1;
    if (l->n > MAX_TOKENS || l->rows > MAX_TOKENS) {
        p->status = att_fail(p->ctx, ATT_ERR_ARGUMENT,
                             "the sentence has %" PRId64 " tokens and its translation %" PRId64
                             ", but no more than %d can be looked at",
                             l->n, l->rows, MAX_TOKENS);
        return;
    }
    for (int64_t i = 0; i < l->n; i++)
        l->of_source[i] = name_of(l, source.ids[i]);
    for (int64_t i = 0; i < l->rows; i++) {
        l->next[i] = i + 1 == l->rows ? (int32_t)l->info.eos : translation.tokens.ids[i];
        l->of_before[i] = name_of(l, i == 0 ? (int32_t)l->info.start : l->next[i - 1]);
        l->of_next[i] = name_of(l, l->next[i]);
    }
    print_tokens(p, "source", l->of_source, l->n);
    print_tokens(p, "target", l->of_next, l->rows);
}

/* Counts the layers and heads of a use, and keeps the weights of all. */
static void read_use(page *p, use *u, const att_trace *trace)
{
    att_trace_info i = {.size = sizeof i};
    att_trace_attention_info a = {.size = sizeof a};
    if (p->status == ATT_OK)
        p->status = att_trace_describe(trace, &i);
    if (p->status == ATT_OK)
        p->status = att_trace_attention(trace, att_trace_find(trace, u->side, -1), &a);
    if (p->status != ATT_OK)
        return;
    u->layers = i.layers[u->side], u->heads = a.heads;
    u->weights = page_floats(p, u->layers * u->heads * u->rows * u->columns);
    for (int64_t h = 0; h < u->layers * u->heads && p->status == ATT_OK; h++)
        p->status = att_trace_weights(trace, att_trace_find(trace, u->side, h / u->heads), h % u->heads, 0, u->rows,
                                      u->weights + h * u->rows * u->columns);
}

static void read_uses(page *p, three_uses_chapter *l, const att_trace *trace)
{
    const use of_encoder = {ATT_TRACE_SIDE_ENCODER, 0, 0, l->n, l->n, l->of_source, l->of_source, NULL};
    const use of_decoder = {ATT_TRACE_SIDE_DECODER, 0, 0, l->rows, l->rows, l->of_before, l->of_before, NULL};
    const use of_both = {ATT_TRACE_SIDE_CROSS, 0, 0, l->rows, l->n, l->of_next, l->of_source, NULL};
    att_trace_info i = {.size = sizeof i};
    l->use[ENCODER] = of_encoder, l->use[DECODER] = of_decoder, l->use[CROSS] = of_both;
    for (int u = 0; u < USES; u++)
        read_use(p, &l->use[u], trace);
    if (p->status == ATT_OK)
        p->status = att_trace_describe(trace, &i);
    l->hidden = i.hidden[ATT_TRACE_SIDE_ENCODER];
}

/* Returns the number of rows in which the most probable token is the next one. */
static int64_t agreeing(const three_uses_chapter *l, const float *y /* [rows, vocabulary] */)
{
    const int64_t vocabulary = l->info.target_vocabulary;
    int64_t count = 0;
    for (int64_t i = 0; i < l->rows; i++) {
        int64_t best = 0;
        for (int64_t j = 1; j < vocabulary; j++)
            best = y[i * vocabulary + j] > y[i * vocabulary + best] ? j : best;
        count += best == l->next[i];
    }
    return count;
}

static void all_at_once(page *p, three_uses_chapter *l)
{
    const att_translator *translator = l->m;
    const int64_t rows = l->rows, n = rows - 1;
    const int32_t *ids = l->next;
    const char *source = l->text;
    float *logits = page_floats(p, rows * l->info.target_vocabulary);
    att_trace *trace = NULL;
    page_step(p, (text){"All of it at once", "全体を一度に"});
    page_print(p,
               (text){"To look at it, the finished translation is decoded once more, all tokens at once. Each position "
                      "reads the token before it, the first one a token that means start:",
                      "中を見るために、できあがった訳文を、もう一度、全トークンまとめてデコードします。"
                      "各位置は一つ前のトークンを読み、最初の位置は開始を表すトークンを読みます。"});
    print_tokens(p, "it reads", l->of_before, l->rows);
    print_tokens(p, "it writes", l->of_next, l->rows);
    page_print(p, (text){"A trace keeps what attention needs in that pass; then it has the weights of each layer and "
                         "head of the three, and the logits.",
                         "トレースは、この一回の計算で注意に必要なものを保存します。そこから、三つの注意のどの層、"
                         "どのヘッドの重みでも、ロジットでも取り出せます。"});
    CALL(p, att_translator_trace(translator, source, strlen(source), ids, n, NULL, &trace));
    CALL(p, att_trace_output(trace, -1, 0, rows, logits));
    read_uses(p, l, trace);
    const int64_t agreed = p->status == ATT_OK ? agreeing(l, logits) : 0;
    page_print(p,
               agreed == l->rows
                   ? (text){"In %" PRId64 " of %" PRId64 " positions the likeliest next token is the translation's: at "
                            "once is the same as one by one. The three, and the shape of a head's weights:",
                            "%2$" PRId64 "個の位置のうち%1$" PRId64 "個で、いちばん確からしい次のトークンが訳文と"
                            "一致します。まとめて計算しても、一つずつ計算しても同じなのです。三つの注意と、"
                            "一つのヘッドの重みの形は、次のとおりです。"}
                   : (text){"In %" PRId64 " of %" PRId64 " positions the likeliest next token is the translation's; "
                            "the others were banned, or too many. The three, and the shape of a head's weights:",
                            "%2$" PRId64 "個の位置のうち%1$" PRId64 "個で、いちばん確からしい次のトークンが訳文と"
                            "一致します。ほかは、禁じられているか、長すぎて打ち切られたトークンです。三つの注意と、"
                            "一つのヘッドの重みの形は、次のとおりです。"},
               agreed, l->rows);
    att_trace_free(trace);
    static const char *const name[USES] = {"Q = source, X = source", "Q = target, X = target, causal",
                                           "Q = target, X = source"};
    for (int i = 0; i < USES; i++) {
        const use *u = &l->use[i];
        page_line(p, "%-31s %" PRId64 " x %" PRId64 " x [%" PRId64 ", %" PRId64 "]", name[i], u->layers, u->heads,
                  u->rows, u->columns);
    }
    page_print(p, (text){"(layers x heads x [tokens that look, tokens that are looked at])",
                         "（層 x ヘッド x [見る側のトークン, 見られる側のトークン]）"});
}

/* ---- what a use's heads do */

/* Returns the largest weight that a row of a head gives to another token, in the mean of rows. */
static double decided(const use *u, const float *w /* [rows, columns] */)
{
    double sum = 0;
    for (int64_t i = 0; i < u->rows; i++) {
        float max = 0;
        for (int64_t j = 0; j < u->columns; j++)
            max = (u->row != u->column || i != j) && w[i * u->columns + j] > max ? w[i * u->columns + j] : max;
        sum += max;
    }
    return sum / (double)u->rows;
}

static void show_head(page *p, const use *u)
{
    const int64_t size = u->rows * u->columns;
    int64_t best = 0;
    for (int64_t h = 1; h < u->layers * u->heads && p->status == ATT_OK; h++)
        best = decided(u, u->weights + h * size) > decided(u, u->weights + best * size) ? h : best;
    page_print(p,
               (text){"Of %" PRId64 " heads the one that attends most to single other tokens is head %" PRId64
                      " of layer %" PRId64 " (from 0). Rows: the token that attends; columns: the tokens attended to:",
                      "%" PRId64 "個のヘッドのうち、ほかの一つのトークンにいちばんはっきり注意を向けているのは、"
                      "ヘッド%" PRId64 "（層%" PRId64
                      "、0から数えて）です。行は注意を向ける側、列は向けられる側のトークンです。"},
               u->layers * u->heads, best % u->heads, best / u->heads);
    page_picture(p, &(heatmap){.row = u->row,
                               .column = u->column,
                               .rows = u->rows,
                               .columns = u->columns,
                               .weights = u->weights + best * size,
                               .row_name = page_text(p, page_query_name),
                               .column_name = page_text(p, page_key_name),
                               .corner = "q↓ k→"});
}

/* Finds the share of all heads' weights that is after the diagonal, and the largest of these weights. */
static void later(const use *u, double *share, double *largest)
{
    double sum = 0;
    *largest = 0;
    for (int64_t i = 0; i < u->layers * u->heads * u->rows * u->columns; i++) {
        const int64_t row = i / u->columns % u->rows, column = i % u->columns;
        if (column > row) {
            sum += u->weights[i];
            *largest = fmax(*largest, u->weights[i]);
        }
    }
    *share = sum / (double)(u->layers * u->heads * u->rows);
}

static double farthest(const float *a, const float *b, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs((double)a[i] - b[i]));
    return max;
}

static void encoder(page *p, three_uses_chapter *l)
{
    double share, largest;
    int32_t other[MAX_TOKENS];
    float *a = page_floats(p, l->hidden), *b = page_floats(p, l->hidden);
    page_step(p, (text){"The source looks at itself", "原文が原文を見る"});
    page_print(
        p, (text){"Q = X = the source: self-attention in the encoder. Each token collects from all others what "
                  "tells which of its meanings it has here.",
                  "Q = X = 原文。エンコーダの自己注意です。各トークンは、ここで自分がどの意味なのかを知る手がかりを、"
                  "ほかのすべてのトークンから集めます。"});
    show_head(p, &l->use[ENCODER]);
    if (p->status != ATT_OK)
        return;
    later(&l->use[ENCODER], &share, &largest);
    memcpy(other, l->source.ids, (size_t)l->n * sizeof *other);
    other[l->n > 1 ? l->n - 2 : 0] = (int32_t)l->info.eos; /* before the end */
    read_pass(p, l, trace_of(p, l, l->source.ids, l->n, l->next), NULL, a);
    read_pass(p, l, trace_of(p, l, other, l->n, l->next), NULL, b);
    page_print(p,
               (text){"Nothing is hidden, the sentence is there as a whole: %.0f %% of all weight of all heads lies on "
                      "tokens that come later. Put another token before the end, and the vector of the "
                      "first changes too, by up to %.2g.",
                      "文の全体がはじめからあるので、何も隠しません。全ヘッドの重みの%.0f%%が、後にあるトークンに"
                      "向けられています。終わりの印の直前を別のトークンに置き換えると、最初のトークンの"
                      "ベクトルも最大%.2g変わります。"},
               100 * share, farthest(a, b, l->hidden));
}

static void decoder(page *p, three_uses_chapter *l)
{
    double share, largest;
    int32_t other[MAX_TOKENS];
    const int64_t vocabulary = l->info.target_vocabulary, before = (l->rows - 1) * vocabulary;
    float *y = page_floats(p, l->rows * vocabulary), *z = page_floats(p, l->rows * vocabulary);
    page_step(p, (text){"The translation looks at itself", "訳文が訳文を見る"});
    page_print(p,
               (text){"Q = X = the target: self-attention in the decoder, with the causal mask. What is written next "
                      "must fit what was written so far. Rows and columns are the tokens that are read.",
                      "Q = X = 訳文。デコーダの自己注意で、因果マスクが付きます。次に書くものは、"
                      "ここまでに書いたものとつながらなければなりません。行と列は、読むトークンです。"});
    show_head(p, &l->use[DECODER]);
    if (p->status != ATT_OK || l->rows < 2)
        return;
    later(&l->use[DECODER], &share, &largest);
    memcpy(other, l->next, sizeof other);
    other[l->rows - 2] = (int32_t)l->info.eos;
    read_pass(p, l, trace_of(p, l, l->source.ids, l->n, l->next), y, NULL);
    read_pass(p, l, trace_of(p, l, l->source.ids, l->n, other), z, NULL);
    if (p->status == ATT_OK) {
        const bool same = memcmp(y, z, (size_t)before * sizeof *y) == 0;
        page_print(
            p,
            same ? (text){"The largest weight on a later token, of all heads, is %g. Put another token in the "
                          "place of the last one that is read: the logits of the last position change by up to "
                          "%.2g, and those of the %" PRId64 " before it stay the same, to the last bit. That is "
                          "why a model can learn from all positions at once, although each predicts the next.",
                          "後にあるトークンへの重みは、全ヘッドを通じて最大でも%gです。最後に読むトークンを別のものに"
                          "置き換えると、最後の位置のロジットは最大%.2g変わりますが、その前の%" PRId64
                          "個の位置では、最後のビットまで変わりません。だからこそ、どの位置も次を予測するのに、"
                          "全位置から一度に学習できるのです。"}
                 : (text){"The largest weight on a later token, of all heads, is %g. Put another token in the "
                          "place of the last one that is read: the logits of the last position change by up to "
                          "%.2g, and those of the %" PRId64 " before it change, too!",
                          "後にあるトークンへの重みは、全ヘッドを通じて最大でも%gです。最後に読むトークンを別のものに"
                          "置き換えると、最後の位置のロジットは最大%.2g変わり、その前の%" PRId64
                          "個の位置でも変わってしまいます。"},
            largest, farthest(y + before, z + before, vocabulary), l->rows - 1);
    }
}

/* Prints, for each token of the translation, the source token with the largest weight, averaged over a layer's
 * heads. */
static void print_alignment(page *p, const three_uses_chapter *l)
{
    const use *u = &l->use[CROSS];
    const float *last = u->weights + (u->layers - 1) * u->heads * u->rows * u->columns;
    for (int64_t i = 0; i < u->rows && p->status == ATT_OK; i++) {
        double max = -1;
        int64_t best = 0;
        for (int64_t j = 0; j < u->columns; j++) {
            double mean = 0;
            for (int64_t h = 0; h < u->heads; h++)
                mean += last[(h * u->rows + i) * u->columns + j] / (double)u->heads;
            if (mean > max)
                max = mean, best = j;
        }
        page_line(p, "%.2f  %s → %s", max, u->row[i], u->column[best]);
    }
}

/* -log p of the translation: its cross entropy. */
static double surprise(page *p, const three_uses_chapter *l, const int32_t *source, int64_t n)
{
    const int64_t from[] = {0, n}, to[] = {0, l->rows};
    const att_sequence_pairs pair = {
        .size = sizeof pair, .n = 1, .source = source, .source_offsets = from, .target = l->next, .target_offsets = to};
    const att_loss_options plain = {.size = sizeof plain, .sum = true};
    att_tape *t = NULL;
    att_tensor L = {0};
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, NULL, &t);
    if (p->status == ATT_OK)
        p->status = att_var_value(t, att_encoder_decoder_loss(t, l->model, &pair, &plain), &L);
    const double sum = p->status == ATT_OK ? *(float *)L.data : 0;
    att_tape_free(t);
    return sum;
}

static void cross(page *p, const three_uses_chapter *l)
{
    page_step(p, (text){"The translation looks at the source", "訳文が原文を見る"});
    page_print(p,
               (text){"Q = the target, X = the source: source-to-target attention, with which all of this began. Only "
                      "here does the decoder learn what it has to translate. Rows are now the tokens that are written "
                      "at that step.",
                      "Q = 訳文、X = 原文。source-to-target attentionです。注意はもともと、この形で始まりました。"
                      "何を訳すのかをデコーダが知るのは、ここだけです。行は、そのとき書かれるトークンです。"});
    show_head(p, &l->use[CROSS]);
    page_print(p, (text){"The mean of the last layer's heads; for each token the one that it looks at most:",
                         "最後の層の全ヘッドの平均で、各トークンがいちばん見ているトークンは、次のとおりです。"});
    print_alignment(p, l);
    page_print(p, (text){"How much hangs on it? -log p of the same translation, added up over its tokens, with the "
                         "source, and with a source that is nothing but its end:",
                         "これがどれほど大事なのでしょうか。同じ訳文の-log pを、全トークンについて足し合わせます。"
                         "まず原文を見せ、次に、終わりの印だけの原文を見せます。"});
    const int32_t nothing[] = {(int32_t)l->info.eos};
    const double with = surprise(p, l, l->source.ids, l->n), without = surprise(p, l, nothing, 1);
    page_line(p, "-log p (target | source)   %8.3f", with);
    page_line(p, "-log p (target | nothing)  %8.3f", without);
    page_print(p, (text){"`attend translate --alignment FILE.svg` draws these weights, of any layer and head.",
                         "`attend translate --alignment FILE.svg`は、どの層、どのヘッドの重みでも、図に描きます。"});
}

static att_status run(page *p)
{
    three_uses_chapter l = {.m = p->translator, .text = p->sentence, .info = {.size = sizeof l.info}};
    l.model = att_translator_model(l.m), l.tokenizer = att_translator_tokenizer(l.m);
    p->status = att_encoder_decoder_describe(l.model, &l.info);
    if (p->status == ATT_OK && strcmp(l.info.architecture, "transformer") != 0)
        p->status = att_fail(p->ctx, ATT_ERR_UNSUPPORTED, "the model's architecture is \"%s\", not \"transformer\"",
                             l.info.architecture);
    if (p->status == ATT_OK) {
        introduce(p);
        translate(p, &l);
    }
    if (p->status == ATT_OK)
        all_at_once(p, &l);
    if (p->status == ATT_OK) {
        encoder(p, &l);
        decoder(p, &l);
        cross(p, &l);
    }
    att_tokens_free(p->ctx, &l.source);
    if (l.translation.text.text)
        att_translation_free(p->ctx, &l.translation);
    return p->status;
}

const chapter chapter_three_uses = {
    .about = {"encoder, decoder, between them: a real translator's attention",
              "エンコーダの中、デコーダの中、その間。本物の翻訳モデルで見る三つの注意"},
    .run = run,
    .draws = true,
    .translates = true,
};
