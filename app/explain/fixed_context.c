/* Why a recurrent network forgets: the influence of each word on a fixed context, and on an attention context. */
// order: 90
#include "fixed_context.h"
#include "layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SEED = 123, UNITS = 16, GATES = 3 * UNITS, DIM = 4, WORDS = 32, MAX_LENGTHS = 10, PARAMETERS = 4 };

typedef struct fixed_context_chapter {
    vectors words;
    att_tape *tape;
    float *value[PARAMETERS];     /* as nn.GRU has them: weight_ih, weight_hh, bias_ih, bias_hh */
    att_param *param[PARAMETERS]; /* the same */
    float query[UNITS];           /* of norm 1: finds the first word's state */
    int64_t length[MAX_LENGTHS];  /* 1, 2, 4 ... and all words */
    int n_lengths;
} fixed_context_chapter;

/* ---- the network */

static att_recurrent gru(const fixed_context_chapter *l)
{
    return (att_recurrent){.size = sizeof(att_recurrent),
                           .weight_ih = l->param[0],
                           .weight_hh = l->param[1],
                           .bias_ih = l->param[2],
                           .bias_hh = l->param[3]};
}

/* A context [1, UNITS] of the first n words. */
typedef att_var *context_fn(const fixed_context_chapter *l, att_var *x, int64_t n);

static att_var *fixed(const fixed_context_chapter *l, att_var *x, int64_t n)
{
    const int64_t offsets[] = {0, n};
    const att_recurrent options = gru(l);
    att_recurrent_state last = {0};
    att_gru(l->tape, x, offsets, 1, &options, &last);
    return last.hidden;
}

/* Returns weights [1, n] of states h [n, UNITS]. */
static att_var *weights(const fixed_context_chapter *l, att_var *h)
{
    att_tape *t = l->tape;
    att_tensor Q = {0};
    att_wrap(&Q, (float *)l->query, ATT_F32, ATT_DIMS(1, UNITS), NULL);
    att_var *s = att_matmul(t, att_constant(t, &Q), att_normalize(t, h, 1e-12f),
                            ATT_OPTIONS(att_matmul_options, .transpose_b = true));
    return att_softmax(t, att_scale(t, s, 50));
}

static att_var *attended(const fixed_context_chapter *l, att_var *x, int64_t n)
{
    const int64_t offsets[] = {0, n};
    const att_recurrent options = gru(l);
    att_var *h = att_gru(l->tape, x, offsets, 1, &options, NULL);
    return att_matmul(l->tape, weights(l, h), h, NULL);
}

/* Computes the influence of each of the first n words, out [n]: the norm of all derivatives of the context by the
 * word. */
static void influence(page *p, const fixed_context_chapter *l, context_fn *context, int64_t n, float *out)
{
    const int64_t dim = l->words.dim;
    att_tensor X = page_matrix(p, l->words.x, n, dim), dC, dX = {0};
    float one[UNITS];
    double sum[VECTORS_MAX] = {0};
    att_wrap(&dC, one, ATT_F32, ATT_DIMS(1, UNITS), NULL);
    for (int u = 0; u < UNITS && p->status == ATT_OK; u++) {
        for (int i = 0; i < UNITS; i++)
            one[i] = i == u;
        att_var *x = att_input(l->tape, &X);
        p->status = att_tape_backward(l->tape, context(l, x, n), &dC);
        if (p->status == ATT_OK)
            p->status = att_var_grad(l->tape, x, &dX);
        for (int64_t i = 0; i < n * dim && p->status == ATT_OK; i++)
            sum[i / dim] += (double)((float *)dX.data)[i] * ((float *)dX.data)[i];
        att_tape_reset(l->tape);
        for (int i = 0; i < PARAMETERS; i++)
            att_param_zero_grad(l->param[i]);
    }
    for (int64_t t = 0; t < n; t++)
        out[t] = (float)sqrt(sum[t]);
}

/* ---- attention */

static void introduce(page *p, const fixed_context_chapter *l)
{
    page_title(p, (text){"The fixed context: why it forgets", "固定長のコンテキスト：なぜ忘れるのか"});
    page_print(
        p,
        (text){"Before attention a translator read its sentence word by word with a recurrent network, and what "
               "that held at the end, one vector of fixed width, was all that the writer of the translation got "
               "to see. Long sentences are lost in it, it is said. Here it is measured, on %" PRId64
               " words of %" PRId64 " numbers and a GRU of %d units, with nn.GRU's weights after "
               "torch.manual_seed(%d).",
               "注意が現れる前の翻訳モデルは、回帰型ネットワークで文を一語ずつ読みました。最後に残った、"
               "幅の決まった一つのベクトルだけが、訳文を書く側に渡されるすべてでした。長い文はそこに収まらないと、"
               "よく言われます。ここではそれを測ってみます。%" PRId64 "個の単語（それぞれ%" PRId64
               "個の数）と、%dユニットのGRUを使います。重みはtorch.manual_seed(%d)のあとのnn.GRUと同じです。"},
        l->words.n, l->words.dim, UNITS, SEED);
    if (!p->own)
        page_print(p, (text){"The words are random, between -1 and 1.", "単語は-1から1までの乱数です。"});
}

static void reading(page *p, const fixed_context_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->words.n, offsets[] = {0, n};
    const att_recurrent gru_weights = gru(l);
    att_tensor X = page_matrix(p, l->words.x, n, l->words.dim), C = {0};
    att_var *x;
    att_recurrent_state last = {0};
    page_step(p, (text){"Reading", "読む"});
    page_print(p,
               (text){"The state h is %d numbers. With each word a part z of each is kept, and the rest replaced by "
                      "something new, n:",
                      "状態hは%d個の数です。一語ごとに、それぞれの数のうちzの割合を残し、"
                      "残りを新しい値nで置き換えます。"},
               UNITS);
    page_formula(p, "h_t = z_t h_t-1 + (1 - z_t) n_t    z_t = σ(W_z x_t + U_z h_t-1 + b_z)");
    if (p->status != ATT_OK)
        return;
    LOOP(p, x = att_input(t, &X); att_gru(t, x, offsets, 1, &gru_weights, &last););
    CALL(p, att_var_value(t, last.hidden, &C));
    if (p->status == ATT_OK)
        page_table(p, (const char *const[]){"c"}, 1, NULL, UNITS, C.data);
    att_tape_reset(t);
    page_print(p,
               (text){"That is the context: the last state. One word is %" PRId64 " numbers, the %" PRId64 " words are "
                      "%" PRId64 ". The context is %d for either.",
                      "この最後の状態がコンテキストです。一語なら%" PRId64 "個、%" PRId64 "語なら%" PRId64
                      "個の数が入ります。コンテキストは、どちらの場合も%d個です。"},
               l->words.dim, n, n * l->words.dim, UNITS);
}

/* Prints, for each length, a line with the influence of the first and the last word, and their ratio. */
static void print_ends(page *p, const fixed_context_chapter *l)
{
    float each[VECTORS_MAX] = {0}, alone = 0;
    page_line(p, "%5s   %s  %s  %s", "n", page_right(p, (text){"first", "最初"}, 8).text,
              page_right(p, (text){"last", "最後"}, 8).text,
              page_right(p, (text){"first / last", "最初 / 最後"}, 12).text);
    for (int i = 0; i < l->n_lengths; i++) {
        const int64_t n = l->length[i];
        influence(p, l, fixed, n, each);
        page_line(p, "%5" PRId64 "   %8.4f  %8.4f  %12.1e", n, (double)each[0], (double)each[n - 1],
                  (double)each[0] / (double)each[n - 1]);
        alone = i == 0 ? each[0] : alone;
    }
    if (!p->own)
        page_print(p,
                   (text){"Every word that is read takes away a part of those before it: what is left of the first is "
                          "multiplied by %.2f with each word, in the mean.",
                          "一語読むたびに、それより前の単語の一部が失われます。最初の単語の残りは、一語ごとに"
                          "平均で%.2f倍になります。"},
                   pow((double)each[0] / (double)alone, 1 / (double)(l->words.n - 1)));
}

/* Draws, for each length, a row with the influence of each word, relative to the largest. */
static void picture(page *p, const fixed_context_chapter *l, context_fn *context)
{
    const int64_t n = l->words.n;
    char name[MAX_LENGTHS][24];
    const char *names[MAX_LENGTHS];
    float *rows = page_floats(p, l->n_lengths * n);
    for (int i = 0; i < l->n_lengths && p->status == ATT_OK; i++) {
        float *row = rows + i * n, max = 0;
        influence(p, l, context, l->length[i], row);
        for (int64_t t = 0; t < l->length[i]; t++)
            max = fmaxf(max, row[t]);
        for (int64_t t = 0; t < l->length[i]; t++)
            row[t] /= max > 0 ? max : 1;
        snprintf(name[i], sizeof name[i], "n = %" PRId64, l->length[i]);
        names[i] = name[i];
    }
    page_picture(p, &(heatmap){.row = names,
                               .rows = l->n_lengths,
                               .columns = n,
                               .weights = rows,
                               .row_name = page_text(p, (text){"words read", "読んだ単語数"}),
                               .column_name = page_text(p, (text){"influence of word t", "単語tの影響"}),
                               .corner = "    t→"});
}

static void forgetting(page *p, const fixed_context_chapter *l)
{
    page_step(p, (text){"What is left of each word", "それぞれの単語は、どれだけ残るか"});
    page_print(
        p, (text){"How much does the context change if a word changes a little? That is a gradient, which the "
                  "tape computes: of each number of the context by each of the word, one root of all squares. Of "
                  "the first word and the last, for longer and longer sentences:",
                  "ある単語が少し変わったら、コンテキストはどれだけ変わるでしょうか。それは勾配であり、"
                  "テープで計算できます。コンテキストの各数を単語の各数で微分し、すべての二乗の和の平方根を取ります。"
                  "文を長くしながら、最初の単語と最後の単語で比べます。"});
    page_formula(p, "|∂c/∂x_t| = √Σ (∂c_u / ∂x_t,i)²");
    print_ends(p, l);
    page_print(p, (text){"All words, the strongest of each row being 1:",
                         "すべての単語を図にします。各行でいちばん強いものを1としています。"});
    picture(p, l, fixed);
}

/* Computes the context of the first n words, c [UNITS]. first: replaces the first word [dim]. */
static void context_with(page *p, const fixed_context_chapter *l, const float *first, int64_t n, float *c)
{
    const int64_t dim = l->words.dim;
    float *x = page_floats(p, n * dim);
    att_tensor X = page_matrix(p, x, n, dim), C = {0};
    if (p->status != ATT_OK)
        return;
    memcpy(x, l->words.x, (size_t)(n * dim) * sizeof *x);
    memcpy(x, first, (size_t)dim * sizeof *x);
    p->status = att_var_value(l->tape, fixed(l, att_input(l->tape, &X), n), &C);
    if (p->status == ATT_OK)
        memcpy(c, C.data, UNITS * sizeof *c);
    att_tape_reset(l->tape);
}

static void other_word(page *p, const fixed_context_chapter *l)
{
    char name[MAX_LENGTHS][24];
    const char *names[MAX_LENGTHS];
    float apart[MAX_LENGTHS] = {0}, one[UNITS], two[UNITS];
    float *other = page_floats(p, l->words.dim);
    for (int64_t i = 0; i < l->words.dim && p->status == ATT_OK; i++)
        other[i] = -l->words.x[i];
    page_step(p, (text){"Two sentences", "二つの文"});
    page_print(p,
               (text){"A gradient speaks of small changes. So change all of the first word, to its opposite -x_1, and "
                      "leave the others. How far are the two contexts apart?",
                      "勾配でわかるのは、小さな変化だけです。そこで最初の単語をまるごと、正反対の-x_1に変え、"
                      "ほかはそのままにします。二つのコンテキストは、どれだけ離れているでしょうか。"});
    for (int i = 0; i < l->n_lengths && p->status == ATT_OK; i++) {
        context_with(p, l, l->words.x, l->length[i], one);
        context_with(p, l, other, l->length[i], two);
        double sum = 0;
        for (int u = 0; u < UNITS; u++)
            sum += ((double)one[u] - two[u]) * ((double)one[u] - two[u]);
        apart[i] = (float)sqrt(sum);
        snprintf(name[i], sizeof name[i], "n = %" PRId64, l->length[i]);
        names[i] = name[i];
    }
    page_table(p, (const char *const[]){"|c - c'|"}, 1, names, l->n_lengths, apart);
    if (!p->own)
        page_print(p,
                   (text){"By four decimals of the context nobody can tell which of the two sentences of %" PRId64
                          " words it was.",
                          "%" PRId64 "語の二つの文のどちらだったのか、コンテキストの小数第四位まででは、"
                          "もう区別できません。"},
                   l->words.n);
}

static void gates(page *p, fixed_context_chapter *l)
{
    enum { ROWS = 3 };
    static const float bias[ROWS] = {0, 2, 4};
    static const char *const names[ROWS] = {"b_z + 0", "b_z + 2", "b_z + 4"};
    const int64_t n = l->words.n;
    float figures[3 * ROWS] = {0}, each[VECTORS_MAX] = {0}, was[UNITS], *gate = l->value[2] + UNITS;
    page_step(p, (text){"Holding on", "手放さない"});
    page_print(
        p,
        (text){"But weights are learned, and a GRU can learn to hold on: where z is near 1 the old is kept. Let us "
               "do that by hand and add to b_z, the bias of z. Influence after %" PRId64 " words:",
               "しかし重みは学習されるもので、GRUは手放さないことを学習できます。zが1に近ければ、古いものが残ります。"
               "zのバイアスb_zに数を足して、手でそうしてみます。%" PRId64 "語を読んだあとの影響です。"},
        n);
    if (p->status != ATT_OK)
        return;
    memcpy(was, gate, sizeof was);
    for (int i = 0; i < ROWS; i++) {
        for (int u = 0; u < UNITS; u++)
            gate[u] = was[u] + bias[i];
        att_param_invalidate(l->param[2]);
        influence(p, l, fixed, n, each);
        figures[3 * i] = 1 / (1 + expf(-bias[i])), figures[3 * i + 1] = each[0], figures[3 * i + 2] = each[n - 1];
    }
    memcpy(gate, was, sizeof was);
    att_param_invalidate(l->param[2]);
    page_table(p, names, ROWS,
               (const char *const[]){"σ", page_text(p, (text){"first", "最初"}), page_text(p, (text){"last", "最後"})},
               3, figures);
    page_print(p,
               (text){"The first word stays, and the last one hardly gets in: what is kept of the old is what is not "
                      "taken of the new. Training can choose what to hold. It cannot make room; a wider state can, "
                      "but is as wide for all sentences, and a longer one comes.",
                      "最初の単語は残りますが、最後の単語がほとんど入らなくなります。古いものを残したぶんだけ、"
                      "新しいものが入らないのです。何を残すかは学習で選べますが、場所を増やすことはできません。"
                      "状態の幅を広げても、その幅はどの文でも同じで、もっと長い文はいつか現れます。"});
}

/* Prints, for each length, a line with the weight of the first word, and its influence. */
static void print_first(page *p, const fixed_context_chapter *l)
{
    float each[VECTORS_MAX] = {0};
    const att_recurrent options = gru(l);
    page_line(p, "%5s   %8s  %s", "n", "α_1", page_right(p, (text){"first", "最初"}, 8).text);
    for (int i = 0; i < l->n_lengths && p->status == ATT_OK; i++) {
        const int64_t n = l->length[i], offsets[] = {0, n};
        att_tensor X = page_matrix(p, l->words.x, n, l->words.dim), W = {0};
        att_var *h = att_gru(l->tape, att_input(l->tape, &X), offsets, 1, &options, NULL);
        p->status = att_var_value(l->tape, weights(l, h), &W);
        const float first = p->status == ATT_OK ? *(float *)W.data : 0;
        att_tape_reset(l->tape);
        influence(p, l, attended, n, each);
        page_line(p, "%5" PRId64 "   %8.4f  %8.4f", n, (double)first, (double)each[0]);
    }
}

static void attention(page *p, const fixed_context_chapter *l)
{
    att_tape *t = l->tape;
    const int64_t n = l->words.n, offsets[] = {0, n};
    const att_recurrent gru_weights = gru(l);
    att_tensor X = page_matrix(p, l->words.x, n, l->words.dim), Q = page_matrix(p, l->query, 1, UNITS), C = {0};
    att_var *h, *s, *w, *c;
    page_step(p, (text){"Keeping all states", "すべての状態を残す"});
    page_print(
        p,
        (text){
            "Attention throws nothing away. All states h_1 ... h_n stay, and each word of the translation "
            "makes its own context from them, with a query of its own. Here one that looks for the first "
            "word: the direction of h_1, compared by cosine, times 50. (In a model, training makes queries "
            "and keys that find each other.)",
            "注意は何も捨てません。状態h_1 ... h_nをすべて残し、訳文の単語ごとに、それぞれのクエリで、"
            "専用のコンテキストを作ります。ここでは、最初の単語を探すクエリを使います。h_1の向きを、"
            "コサイン類似度の50倍で比べます。（モデルでは、学習によって、互いを見つけ合うクエリとキーができます。）"});
    page_formula(p, "α_t = softmax_t(50 cos(q, h_t))    c = Σ_t α_t h_t");
    if (p->status != ATT_OK)
        return;
    LOOP(p, h = att_gru(t, att_input(t, &X), offsets, 1, &gru_weights, NULL);
         s = att_matmul(t, att_constant(t, &Q), att_normalize(t, h, 1e-12f),
                        ATT_OPTIONS(att_matmul_options, .transpose_b = true));
         w = att_softmax(t, att_scale(t, s, 50)); c = att_matmul(t, w, h, NULL););
    CALL(p, att_var_value(t, c, &C));
    if (p->status == ATT_OK)
        page_table(p, (const char *const[]){"c"}, 1, NULL, UNITS, C.data);
    att_tape_reset(t);
    page_print(p, (text){"The weight that the first word gets, and its influence on c:",
                         "最初の単語が受け取る重みと、cへの影響は、次のとおりです。"});
    print_first(p, l);
    page_print(p,
               (text){"The way to the first word no longer leads through all the others. Its influence depends on its "
                      "weight, not on how far back it stands. And what is kept grows with the sentence: n states.",
                      "最初の単語への道は、もうほかの単語すべてを通りません。影響は重みで決まり、どれだけ前にあるかでは"
                      "決まりません。残しておくものも、文とともに増えます。状態はn個あります。"});
    picture(p, l, attended);
}

/* ---- the chapter */

/* Sets up the weights in nn.GRU's order, then the words, unless they are the user's. */
static void set_up(page *p, fixed_context_chapter *l, float *random_words)
{
    static const float bound = 0.25f; /* 1 / √UNITS */
    const int64_t dim = l->words.dim, shape[PARAMETERS][2] = {{GATES, dim}, {GATES, UNITS}, {GATES, 0}, {GATES, 0}};
    torch_random random;
    torch_manual_seed(&random, SEED);
    for (int i = 0; i < PARAMETERS && p->status == ATT_OK; i++) {
        const int64_t count = shape[i][0] * (shape[i][1] ? shape[i][1] : 1);
        att_tensor w = {0};
        l->value[i] = page_floats(p, count);
        if (p->status == ATT_OK) {
            layer_draw(&random, bound, l->value[i], count);
            att_wrap(&w, l->value[i], ATT_F32, shape[i][1] ? 2 : 1, shape[i], NULL);
            p->status = att_param_new(p->ctx, &w, &l->param[i]);
        }
    }
    if (random_words)
        layer_draw(&random, 1, random_words, WORDS * DIM);
    for (int64_t n = 1; n < l->words.n; n *= 2)
        l->length[l->n_lengths++] = n;
    l->length[l->n_lengths++] = l->words.n;
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, ATT_OPTIONS(att_tape_config, .record = true), &l->tape);
    if (p->status != ATT_OK)
        return;
    context_with(p, l, l->words.x, 1, l->query); /* h_1 */
    double square = 0;
    for (int u = 0; u < UNITS; u++)
        square += (double)l->query[u] * l->query[u];
    for (int u = 0; u < UNITS && square > 0; u++)
        l->query[u] /= (float)sqrt(square);
}

static att_status run(page *p)
{
    float *random_words = p->own ? NULL : page_floats(p, WORDS * DIM);
    const vectors example = {.n = WORDS, .dim = DIM, .x = random_words};
    fixed_context_chapter l = {.words = page_vectors(p, &example)};
    if (p->status == ATT_OK)
        set_up(p, &l, random_words);
    introduce(p, &l);
    reading(p, &l);
    forgetting(p, &l);
    other_word(p, &l);
    gates(p, &l);
    attention(p, &l);
    fixed_context_measured(p);
    att_tape_free(l.tape);
    for (int i = 0; i < PARAMETERS; i++)
        att_param_free(l.param[i]);
    return p->status;
}

const chapter chapter_fixed_context = {
    .about = {"one vector for a whole sentence: what is left of each word",
              "一つのベクトルに収めた文。それぞれの単語は、どれだけ残るか"},
    .run = run,
    .draws = true,
};
