/* Translators with a fixed context, with attention, and without recurrence: what runs/compare.sh has measured. */
#include "fixed_context.h"

#include "compare_rows.h" /* written by the build from runs/compare.jsonl: COMPARE_ROWS */

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FIXED, ADDITIVE, TRANSFORMER, MODELS };
enum { SINGLE, JOINED, TEXTS };
static const char *const models[MODELS] = {"fixed", "additive", "transformer"};
static const char *const texts[TEXTS] = {"single", "joined"};

/* BLEU of a model, trained from a seed, on the lines of a text with a given number of words. Fields are named as in the
 * file. */
typedef struct row {
    const char *model;
    int64_t seed;
    const char *text;
    double length;                         /* the mean of the lines */
    int64_t from, to;                      /* words; to 0: or more */
    int64_t lines, words, reference_words; /* of the translations, and of what people wrote */
    double bleu, bleu_low, bleu_high;      /* and its interval, which a line alone has not */
} row;

static const row rows[] = {COMPARE_ROWS};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is(const row *r, int model, int text)
{
    return strcmp(r->model, models[model]) == 0 && strcmp(r->text, texts[text]) == 0;
}

/* The rows of all models, of[MODELS], on the same lines from the same seed, if row i is the first model's. */
static bool compared(int i, int text, const row **of)
{
    int found = 0;
    for (int m = 0; m < MODELS && is(&rows[i], FIXED, text); m++)
        for (const row *r = rows; r < rows + ROWS && found == m; r++)
            if (is(r, m, text) && r->seed == rows[i].seed && r->from == rows[i].from)
                of[found++] = r;
    return found == MODELS;
}

static int64_t count_seeds(void)
{
    int64_t n = 0;
    for (int i = 0; i < ROWS; i++) {
        int k = 0;
        while (rows[k].seed != rows[i].seed)
            k++;
        n += k == i;
    }
    return n;
}

/* ---- tables */

/* " 31.4 ±  2.1", twelve columns: BLEU, and half its interval. */
static void put_bleu(char text[32], const row *r)
{
    const int n = snprintf(text, 32, "%5.1f", r->bleu);
    if (r->lines > 1)
        snprintf(text + n, 32 - (size_t)n, " ± %4.1f", (r->bleu_high - r->bleu_low) / 2);
    else
        snprintf(text + n, 32 - (size_t)n, "%7s", "");
}

/* "6-10", "151-" */
static const char *put_range(char text[48], const row *r)
{
    snprintf(text, 48, r->to ? "%" PRId64 "-%" PRId64 : "%" PRId64 "-", r->from, r->to);
    return text;
}

static void print_rows(page *p, int text)
{
    const row *of[MODELS];
    page_line(p, "%-6s %4s %7s %6s %12s %12s %12s %5s", texts[text], "seed", "words", "lines", models[FIXED],
              models[ADDITIVE], models[TRANSFORMER], "left");
    for (int i = 0; i < ROWS; i++) {
        char range[48], left[16] = "-", bleu[MODELS][32];
        const row *r = &rows[i];
        if (!compared(i, text, of))
            continue;
        for (int m = 0; m < MODELS; m++)
            put_bleu(bleu[m], of[m]);
        if (of[ADDITIVE]->bleu > 0)
            snprintf(left, sizeof left, "%.0f %%", 100 * r->bleu / of[ADDITIVE]->bleu);
        page_line(p, "%6s %4" PRId64 " %7s %6" PRId64 " %s %s %s %5s", "", r->seed, put_range(range, r), r->lines,
                  bleu[FIXED], bleu[ADDITIVE], bleu[TRANSFORMER], left);
    }
}

/* How much is written at all. */
static void print_written(page *p, int text)
{
    const row *of[MODELS];
    for (int i = 0; i < ROWS; i++) {
        char range[48];
        double share[MODELS];
        if (!compared(i, text, of))
            continue;
        for (int m = 0; m < MODELS; m++)
            share[m] = 100 * (double)of[m]->words / (double)of[m]->reference_words;
        page_line(p, "%6s %4" PRId64 " %7s %6" PRId64 " %10.0f %% %10.0f %% %10.0f %%", texts[text], rows[i].seed,
                  put_range(range, &rows[i]), rows[i].lines, share[FIXED], share[ADDITIVE], share[TRANSFORMER]);
    }
}

/* In how many rows the interval of model `one` lies above that of `other`, below it, or on it. */
static void print_apart(page *p, int text, int one, int other)
{
    const row *of[MODELS];
    int above = 0, below = 0, over = 0;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].lines < 2 || !compared(i, text, of))
            continue;
        const bool higher = of[one]->bleu_low > of[other]->bleu_high, lower = of[one]->bleu_high < of[other]->bleu_low;
        above += higher;
        below += lower;
        over += !higher && !lower;
    }
    page_line(p, "%-6s %11s - %-8s %6d %6d %8d", texts[text], models[one], models[other], above, below, over);
}

/* ---- the plot */

/* Of one text: a curve for each model. */
typedef struct curves {
    chart_curve curve[MODELS];
    chart_point point[ROWS];
} curves;

/* Of all seeds on the same lines as row first: the mean, and the lowest and the highest end of the intervals. */
static chart_point make_point(const row *first)
{
    chart_point q = {.x = first->length, .low = INFINITY, .high = -INFINITY};
    int n = 0;
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (strcmp(r->model, first->model) || strcmp(r->text, first->text) || r->from != first->from)
            continue;
        const bool sampled = r->lines > 1;
        q.y += (r->bleu - q.y) / ++n;
        q.low = fmin(q.low, sampled ? r->bleu_low : r->bleu);
        q.high = fmax(q.high, sampled ? r->bleu_high : r->bleu);
    }
    return q;
}

/* The file has the rows of each model and seed by length. */
static chart_panel make_panel(curves *c, int text)
{
    static const char *const names[TEXTS] = {"BLEU, single", "BLEU, joined"};
    chart_point *q = c->point;
    for (int m = 0; m < MODELS; m++) {
        chart_curve *v = &c->curve[m];
        *v = (chart_curve){.name = models[m], .point = q, .color = m};
        for (const row *r = rows; r < rows + ROWS; r++)
            if (is(r, m, text) && r->seed == rows[0].seed)
                *q++ = make_point(r);
        v->n = q - v->point;
    }
    return (chart_panel){.name = names[text], .curve = c->curve, .n = MODELS};
}

static void plot(page *p)
{
    curves of[TEXTS];
    chart_panel panel[TEXTS];
    for (int t = 0; t < TEXTS; t++)
        panel[t] = make_panel(&of[t], t);
    page_chart(p, "words", panel, TEXTS);
}

/* ---- the step */

static void single(page *p)
{
    page_say(
        p, (text){"That is why it can forget. How much a translator that has learnt does forget must be measured. "
                  "runs/compare.sh lets three learn German to English, from the same sentences (Multi30k) with "
                  "the same vocabulary, for about the same time: a GRU whose last state is all there is (fixed), "
                  "the same with attention over all states (additive), and a Transformer. Then it takes BLEU, how "
                  "near their translations are to people's, by the words of the source.",
                  "これが、忘れてしまいうる理由です。学習した翻訳モデルが実際にどれだけ忘れるかは、測ってみなければ"
                  "わかりません。runs/compare.shは、三つのモデルにドイツ語から英語への翻訳を学習させます。"
                  "同じ文（Multi30k）、同じ語彙で、時間もほぼ同じです。最後の状態だけを使うGRU（fixed）、すべての状態に"
                  "注意を向けるGRU（additive）、そしてTransformerです。それから、訳文が人の訳にどれだけ近いかを表す"
                  "BLEUを、原文の単語数ごとに求めます。"});
    page_say(p,
             (text){"Behind ± is half the interval that has 95 %% of the BLEU of 1,000 samples of the lines. It "
                    "tells what other lines might change, not what another training would. Seeds: %" PRId64 ".",
                    "±の後は、行を1,000回抽出し直したときのBLEUの95%%が入る区間の半分です。別の行なら"
                    "どれだけ変わりうるかを表し、学習をやり直した場合の違いは含みません。シードの数：%" PRId64 "。"},
             count_seeds());
    print_rows(p, SINGLE);
}

static void joined(page *p)
{
    page_say(p, (text){"The same sentences, two to five of them joined to one line. These lines are longer than nearly "
                       "all that was learnt, and what was learnt is nearly always a single sentence: here a model "
                       "shows, too, how it takes what it has not seen.",
                       "同じ文を、二つから五つずつ一行につないで測ります。学習した文のほとんどは、これより短く、しかも"
                       "一文だけです。ここには、見たことのないものをどう扱うかも表れます。"});
    print_rows(p, JOINED);
    page_say(p, (text){"The last column is what is left without attention: the share of additive's BLEU that fixed "
                       "has. Were length what a fixed context cannot hold, it would fall from row to row.",
                       "最後の列leftは、注意がないときに残るもの、つまりadditiveのBLEUに対するfixedのBLEUの割合です。"
                       "固定長のコンテキストに収まらないのが長さであるなら、行を追って下がるはずです。"});
}

static void written(page *p)
{
    page_say(
        p, (text){"But BLEU also falls where a translation ends too early, for whichever reason: a model that has "
                  "learnt that a sentence is all there is may stop behind the first. So see how many words there "
                  "are, of 100 that people wrote:",
                  "ただし、訳文が早く終わりすぎても、理由が何であれBLEUは下がります。文は一つだけだと学習したモデルは、"
                  "最初の文で止まるかもしれません。そこで、人の訳の100語に対して訳文が何語あるかも見ます。"});
    page_line(p, "%6s %4s %7s %6s %12s %12s %12s", "", "seed", "words", "lines", models[FIXED], models[ADDITIVE],
              models[TRANSFORMER]);
    for (int t = 0; t < TEXTS; t++)
        print_written(p, t);
    page_say(p,
             (text){"BLEU as a plot, of several seeds the mean; a picture (--svg) has bars, too, from the lowest end "
                    "of an interval to the highest:",
                    "BLEUを図にします。シードがいくつかあれば平均です。--svgで描く図には、区間のいちばん低い端から"
                    "いちばん高い端までの縦棒もあります。"});
    plot(p);
}

static void apart(page *p)
{
    page_say(p, (text){"Where two intervals lie apart, the choice of lines does not explain the difference. Where they "
                       "overlap, these lines do not decide, which does not mean that both are as good. In how many "
                       "rows does the first model's interval lie above the second's, below it, over it?",
                       "二つの区間が離れていれば、その差は、行の選び方だけでは説明できません。重なっていれば、これらの"
                       "行だけでは決められません。同じくらい良い、という意味ではありません。一つ目のモデルの区間が、"
                       "二つ目の区間より上にある行、下にある行、重なる行は、それぞれいくつあるでしょうか。"});
    page_line(p, "%-6s %11s   %-8s %6s %6s %8s", "", "", "", "above", "below", "overlap");
    for (int t = 0; t < TEXTS; t++) {
        print_apart(p, t, ADDITIVE, FIXED);
        print_apart(p, t, TRANSFORMER, FIXED);
        print_apart(p, t, TRANSFORMER, ADDITIVE);
    }
}

void fixed_context_measured(page *p)
{
    page_step(p, (text){"Measured, on translators", "翻訳モデルで測る"});
    single(p);
    joined(p);
    written(p);
    apart(p);
    page_say(p, (text){"To measure it on texts of your own:", "自分の文で測るには、次のようにします。"});
    page_line(p, "attend train translate --arch rnn --attention none -o fixed ...");
    page_line(p, "attend translate -m fixed test.de > fixed.en");
    page_line(p, "attend bleu fixed.en test.en --source test.de --confidence");
}
