/* A mask that detaches the weights: PyTorch's .data. */
#include "causal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { OUT = CAUSAL_OUT, MATRICES = 3 }; /* W_q, W_k, W_v */

typedef struct causal_gradient_example {
    const layer *of;
    att_tape *tape;
    att_param *w[MATRICES];
    float *own[MATRICES]; /* their data [OUT, dim] */
    float *dc;            /* [n, OUT] */
    att_tensor X, Mask, dC;
} causal_gradient_example;

/* Sets the initial values of W_q, W_k and W_v. */
static void start(page *p, const causal_gradient_example *l)
{
    const float *first[MATRICES] = {l->of->wq, l->of->wk, l->of->wv};
    for (int i = 0; i < MATRICES && p->status == ATT_OK; i++) {
        memcpy(l->own[i], first[i], (size_t)(OUT * l->of->words.dim) * sizeof *first[i]);
        att_param_invalidate(l->w[i]);
    }
}

static void set_up(page *p, causal_gradient_example *l)
{
    int64_t n = l->of->words.n;
    float *mask = page_zeros(p, n, n, &l->Mask);
    l->dc = page_zeros(p, n, OUT, &l->dC);
    for (int i = 0; i < MATRICES; i++) {
        att_tensor W;
        l->own[i] = page_zeros(p, OUT, l->of->words.dim, &W);
        if (p->status == ATT_OK)
            p->status = att_param_new(p->ctx, &W, &l->w[i]);
    }
    for (int64_t i = 0; i < n * n && p->status == ATT_OK; i++)
        mask[i] = i % n > i / n ? -INFINITY : 0;
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, ATT_OPTIONS(att_tape_config, .record = true), &l->tape);
    start(p, l);
}

static void tear_down(causal_gradient_example *l)
{
    att_tape_free(l->tape);
    for (int i = 0; i < MATRICES; i++)
        att_param_free(l->w[i]);
}

/* Resets the tape and the gradients. */
static void forget(const causal_gradient_example *l)
{
    att_tape_reset(l->tape);
    for (int i = 0; i < MATRICES; i++)
        att_param_zero_grad(l->w[i]);
}

/* Returns L = ½ Σ (C - T)² of c [n, OUT], where T is the first OUT features of each word, and writes its gradient to
 * dc. */
static float loss(const causal_gradient_example *l, const float *c)
{
    const vectors *v = &l->of->words;
    double sum = 0;
    for (int64_t i = 0; i < v->n * OUT; i++) {
        l->dc[i] = c[i] - (i % OUT < v->dim ? v->x[i / OUT * v->dim + i % OUT] : 0);
        sum += 0.5 * l->dc[i] * l->dc[i];
    }
    return (float)sum;
}

static void print_gradients(page *p, const causal_gradient_example *l)
{
    static const char *const name[MATRICES] = {"dW_q", "dW_k", "dW_v"};
    static const char *const row[MATRICES][OUT] = {{"dW_q 1", "dW_q 2"}, {"dW_k 1", "dW_k 2"}, {"dW_v 1", "dW_v 2"}};
    for (int i = 0; i < MATRICES && p->status == ATT_OK; i++) {
        const float *dw = att_param_grad(l->w[i])->data;
        if (dw)
            page_table(p, row[i], OUT, NULL, l->of->words.dim, dw);
        else
            page_line(p, "%s     NULL", name[i]);
    }
}

static void with_history(page *p, const causal_gradient_example *l)
{
    att_tape *t = l->tape;
    att_param *w_q = l->w[0], *w_k = l->w[1], *w_v = l->w[2];
    att_tensor X = l->X, Mask = l->Mask, dC = l->dC, C = {0};
    att_var *x, *q, *k, *v, *s, *w, *c;
    page_print(p,
               (text){"First the right way, on a tape that records what is computed, so that it can go back. Mask is "
                      "-inf above the diagonal, 0 elsewhere; the loss is that of `attend explain trainable`: each "
                      "context shall become the first numbers of its own word.",
                      "まず正しい方法です。テープに計算を記録しておけば、後で逆向きにたどれます。Maskは対角線より上が"
                      "-inf、ほかは0です。損失は`attend explain trainable`と同じで、各コンテキストを"
                      "その単語自身の最初の数に近づけます。"});
    if (p->status != ATT_OK)
        return;
    LOOP(p, x = att_constant(t, &X); q = att_linear(t, x, w_q, NULL, ATT_ACTIVATION_IDENTITY, NULL);
         k = att_linear(t, x, w_k, NULL, ATT_ACTIVATION_IDENTITY, NULL);
         v = att_linear(t, x, w_v, NULL, ATT_ACTIVATION_IDENTITY, NULL);
         s = att_scale(t, att_matmul(t, q, k, ATT_OPTIONS(att_matmul_options, .transpose_b = true)), 1 / sqrtf(2));
         w = att_softmax(t, att_add(t, s, att_constant(t, &Mask))); c = att_matmul(t, w, v, NULL););
    CALL(p, att_var_value(t, c, &C));
    if (p->status == ATT_OK)
        loss(l, C.data);
    CALL(p, att_tape_backward(t, c, &dC));
    print_gradients(p, l);
    forget(l);
}

static void without_history(page *p, const causal_gradient_example *l, const att_tensor *weights, const float *contexts)
{
    att_tape *t = l->tape;
    att_tensor dC = l->dC, C = {0}, W = *weights;
    att_var *v, *c;
    page_print(p, (text){"Now with the numbers of the weights alone, which is what .data gives:",
                         "次に、重みの数だけを使います。.dataが返すのはこれです。"});
    if (p->status != ATT_OK)
        return;
    v = att_linear(t, att_constant(t, &l->X), l->w[2], NULL, ATT_ACTIVATION_IDENTITY, NULL);
    LOOP(p, c = att_matmul(t, att_constant(t, &W), v, NULL););
    CALL(p, att_var_value(t, c, &C));
    if (p->status == ATT_OK)
        loss(l, C.data);
    CALL(p, att_tape_backward(t, c, &dC));
    print_gradients(p, l);
    if (p->status == ATT_OK)
        page_agree(p, (text){"The contexts, with and without history", "履歴のあるコンテキストとないコンテキスト"},
                   contexts, C.data, l->of->words.n * OUT);
    forget(l);
}

/* Computes the contexts without output; detached: with detached weights. */
static att_var *contexts_of(const causal_gradient_example *l, bool detached)
{
    att_tape *t = l->tape;
    att_var *y[MATRICES], *x = att_constant(t, &l->X);
    for (int i = 0; i < MATRICES; i++)
        y[i] = att_linear(t, x, l->w[i], NULL, ATT_ACTIVATION_IDENTITY, NULL);
    att_var *s =
        att_scale(t, att_matmul(t, y[0], y[1], ATT_OPTIONS(att_matmul_options, .transpose_b = true)), 1 / sqrtf(2));
    att_var *w = att_softmax(t, att_add(t, s, att_constant(t, &l->Mask)));
    att_tensor W;
    if (detached && att_var_value(t, w, &W) == ATT_OK)
        w = att_constant(t, &W);
    return att_matmul(t, w, y[2], NULL);
}

/* Returns the loss, then takes a step W -= 0.1 dW. */
static float learn(page *p, const causal_gradient_example *l, bool detached)
{
    att_tensor C = {0};
    att_var *c = contexts_of(l, detached);
    p->status = att_var_value(l->tape, c, &C);
    float L = p->status == ATT_OK ? loss(l, C.data) : 0;
    if (p->status == ATT_OK)
        p->status = att_tape_backward(l->tape, c, &l->dC);
    for (int i = 0; i < MATRICES && p->status == ATT_OK; i++) {
        const float *dw = att_param_grad(l->w[i])->data;
        for (int64_t j = 0; dw && j < OUT * l->of->words.dim; j++)
            l->own[i][j] -= 0.1f * dw[j];
        att_param_invalidate(l->w[i]);
    }
    forget(l);
    return L;
}

static void compare_learning(page *p, const causal_gradient_example *l)
{
    enum { SHOWN = 4 };
    static const int steps[SHOWN] = {0, 10, 100, 1000};
    float L[2 * SHOWN] = {0};
    for (int detached = 0; detached < 2; detached++) {
        start(p, l);
        for (int step = 0, shown = 0; shown < SHOWN && p->status == ATT_OK; step++) {
            float now = learn(p, l, detached);
            if (step == steps[shown])
                L[detached * SHOWN + shown++] = now;
        }
    }
    page_table(p, (const char *const[]){"all", ".data"}, 2, (const char *const[]){"0", "10", "100", "1000"}, SHOWN, L);
}

void causal_gradient(page *p, const layer *of, const att_tensor *weights, const float *contexts)
{
    causal_gradient_example l = {.of = of, .X = of->X};
    page_step(p, (text){"Wrong: a mask that cuts the gradient", "間違い：勾配を断ち切るマスク"});
    page_print(p,
               (text){"The same published line writes its mask with attention_weights.data.masked_fill_(...). In "
                      "PyTorch .data is the numbers without their history: nothing tells the backward pass that they "
                      "came from queries and keys.",
                      "その公開コードの同じ行は、attention_weights.data.masked_fill_(...)と書いてマスクしています。"
                      "PyTorchの.dataは、履歴を切り離した数だけのテンソルです。クエリとキーから計算されたことが、"
                      "逆伝播に伝わらなくなります。"});
    set_up(p, &l);
    with_history(p, &l);
    without_history(p, &l, weights, contexts);
    page_print(p,
               (text){"No gradient at all has reached W_q and W_k, and nothing reports it: the contexts are right, and "
                      "W_v still learns, so that the loss may well fall. But who looks at whom stays what chance made "
                      "it. L after so many steps W -= 0.1 dW:",
                      "W_qとW_kには、勾配がまったく届いていません。しかも、それを知らせるものは何もありません。"
                      "コンテキストは正しく、W_vは学習するので、損失もおそらく下がります。"
                      "しかし、どの単語がどの単語を見るかは、最初の乱数のままです。"
                      "W -= 0.1 dWを何回か繰り返したあとのLは、次のとおりです。"});
    compare_learning(p, &l);
    tear_down(&l);
}
