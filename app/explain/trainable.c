/* Self-attention with three matrices: PyTorch's initial weights, scaled dot product, a few steps of training. */
// order: 30
#include "layer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 789, OUT = 2, DRAWS = 3 };

typedef struct trainable_chapter {
    layer of;
    int64_t query;    /* its row */
    float *s, *w, *c; /* scores and weights [n, n], contexts [n, OUT] */
    att_tensor S, W, C;
} trainable_chapter;

static void introduce(page *p, const trainable_chapter *l)
{
    const vectors *v = &l->of.words;
    page_title(p, (text){"Self-attention with trainable weights", "学習可能な重みを持つ自己注意"});
    page_print(
        p,
        (text){"So far words were compared as they are. Here each word x makes three vectors, with three matrices "
               "that all words share: a query (what it looks for), a key (what it is found by) and a value (what "
               "it gives). Training changes the matrices, and with them who looks at whom. %" PRId64
               " words of %" PRId64 " numbers; queries, keys and values have %d.",
               "これまでは、単語のベクトルをそのまま比べてきました。ここでは、全単語に共通の三つの行列を使って、"
               "各単語xから三つのベクトルを作ります。クエリ（何を探すか）、キー（何として見つかるか）、"
               "バリュー（何を渡すか）です。学習で変わるのはこの行列であり、それによって、"
               "どの単語がどの単語に注意を向けるかが変わります。%" PRId64 "個の単語はそれぞれ%" PRId64
               "個の数からなり、クエリ、キー、バリューは%d個の数からなります。"},
        v->n, v->dim, OUT);
    page_table(p, v->labels, v->n, NULL, v->dim, v->x);
}

/* Shows the first draws, from 32 bits to a weight. */
static void show_draws(page *p, float bound)
{
    torch_random bits, weights;
    torch_manual_seed(&bits, SEED);
    torch_manual_seed(&weights, SEED);
    for (int i = 0; i < DRAWS; i++) {
        uint32_t draw = torch_draw(&bits);
        page_line(p, "%10" PRIu32 "  mod 2^24 = %8" PRIu32 "   u = %.4f   w = %7.4f", draw, draw & 0xffffff,
                  (double)(draw & 0xffffff) * 0x1p-24, torch_uniform(&weights, -bound, bound));
    }
}

static void weights(page *p, trainable_chapter *l)
{
    layer *of = &l->of;
    int64_t dim = of->words.dim;
    float bound = torch_linear_bound(dim), *w_q = of->wq, *w_k = of->wk, *w_v = of->wv;
    torch_random random;
    page_step(p, (text){"Weights before training", "学習前の重み"});
    page_print(
        p,
        (text){"Before training the weights are random. PyTorch's nn.Linear, here after torch.manual_seed(%d), "
               "draws them uniformly between -b and b. The bound b is called Kaiming's, with a = √5, which comes "
               "to one over the root of the number of inputs, here %.4f.",
               "学習を始める前の重みはランダムです。PyTorchのnn.Linear（ここではtorch.manual_seed(%d)のあと）は、"
               "重みを-bからbまでの一様乱数にします。bはKaimingの初期化でa = √5とした場合の上限で、"
               "入力の数の平方根の逆数、ここでは%.4fになります。"},
        SEED, bound);
    page_formula(p, "w = -b + 2 b u,   b = √(6 / ((1 + 5) d_in)) = 1 / √d_in");
    page_print(p,
               (text){"Random is not arbitrary: u comes from a known generator, the Mersenne Twister MT19937, so that "
                      "the same seed gives the same weights here as in PyTorch, to the last bit. u is the low 24 "
                      "bits of a draw, divided by 2^24:",
                      "ランダムといっても、でたらめではありません。uはメルセンヌ・ツイスタMT19937という"
                      "既知の生成器から得られます。同じシードなら、ここでもPyTorchでも、最後のビットまで"
                      "同じ重みになります。uは、生成器が返す32ビットのうち下位24ビットを2^24で割ったものです。"});
    show_draws(p, bound);
    if (p->status != ATT_OK)
        return;
    LOOP(p, torch_manual_seed(&random, 789);
         for (int64_t i = 0; i < 2 * dim; i++) w_q[i] = torch_uniform(&random, -bound, bound);
         for (int64_t i = 0; i < 2 * dim; i++) w_k[i] = torch_uniform(&random, -bound, bound);
         for (int64_t i = 0; i < 2 * dim; i++) w_v[i] = torch_uniform(&random, -bound, bound););
    page_table(p, (const char *const[]){"W_q 1", "W_q 2"}, OUT, NULL, dim, w_q);
    page_table(p, (const char *const[]){"W_k 1", "W_k 2"}, OUT, NULL, dim, w_k);
    page_table(p, (const char *const[]){"W_v 1", "W_v 2"}, OUT, NULL, dim, w_v);
    if (!p->own)
        page_print(
            p, (text){"The source's first form, nn.Parameter(torch.rand(d_in, d_out)), is another one: its "
                      "weights lie between 0 and 1, and its matrix lies the other way round. nn.Linear has one "
                      "row for each output.",
                      "出典が先に示しているnn.Parameter(torch.rand(d_in, d_out))は、これとは別物です。"
                      "重みは0から1までの値になり、行列の縦横も逆です。nn.Linearの行列は、出力一つにつき一行です。"});
}

static void project(page *p, trainable_chapter *l)
{
    att_ctx *ctx = p->ctx;
    att_tensor X = l->of.X, W_q = l->of.Wq, W_k = l->of.Wk, W_v = l->of.Wv, Q = l->of.Q, K = l->of.K, V = l->of.V;
    page_step(p, (text){"Queries, keys, values", "クエリ、キー、バリュー"});
    page_print(
        p,
        (text){
            "Three matrix products. All three are learned alike; true says that W is transposed.",
            "行列積を三回行います。三つの行列は、どれも同じように学習されます。trueは、Wを転置することを表します。"});
    page_formula(p, "Q = X W_qᵀ    K = X W_kᵀ    V = X W_vᵀ");
    CALL(p, att_tensor_matmul(ctx, &X, &W_q, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &Q));
    CALL(p, att_tensor_matmul(ctx, &X, &W_k, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &K));
    CALL(p, att_tensor_matmul(ctx, &X, &W_v, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &V));
    layer_print(p, &l->of);
}

static void scores(page *p, trainable_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const layer *of = &l->of;
    int64_t n = of->words.n;
    float *s = l->s;
    const float *q = of->q + l->query * OUT;
    att_tensor Q = of->Q, K = of->K, S = l->S;
    page_step(p, (text){"Scores", "スコア"});
    page_print(p,
               (text){"A word's query with every word's key, divided by the root of their dimension, so that scores do "
                      "not grow with it (`attend explain scores` shows why).",
                      "ある単語のクエリと、すべての単語のキーとの内積です。次元が増えてもスコアが大きくならないように、"
                      "次元の平方根で割ります（理由は`attend explain scores`で示します）。"});
    page_formula(p, "s_ij = q_i · k_j / √d_k");
    for (int64_t j = 0; j < n; j++)
        page_line(p, "%s · %s = %.4f×%.4f + %.4f×%.4f = %.4f", of->words.labels[l->query], of->words.labels[j], q[0],
                  of->k[j * OUT], q[1], of->k[j * OUT + 1], q[0] * of->k[j * OUT] + q[1] * of->k[j * OUT + 1]);
    CALL(p, att_tensor_matmul(ctx, &Q, &K, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &S));
    if (p->status != ATT_OK)
        return;
    LOOP(p, for (int64_t i = 0; i < n * n; i++) s[i] /= sqrtf(2););
    page_table(p, of->words.labels, n, of->words.labels, n, s);
}

static void contexts(page *p, trainable_chapter *l)
{
    att_ctx *ctx = p->ctx;
    const layer *of = &l->of;
    int64_t n = of->words.n;
    att_tensor S = l->S, W = l->W, V = of->V, C = l->C;
    page_step(p, (text){"Weights and contexts", "重みとコンテキスト"});
    page_print(p, (text){"Softmax of each row, then the values, each times its weight.",
                         "各行でsoftmaxを計算し、その重みをバリューに掛けて足し合わせます。"});
    page_formula(p, "W = softmax(S)    C = W V");
    CALL(p, att_tensor_softmax(ctx, &S, -1, &W));
    page_table(p, of->words.labels, n, of->words.labels, n, l->w);
    CALL(p, att_tensor_matmul(ctx, &W, &V, NULL, &C));
    page_table(p, of->words.labels, n, NULL, OUT, l->c);
    if (!p->own)
        page_print(p,
                   (text){"These are the numbers that the source's print(sa_v2(inputs)) shows. The weights are nearly "
                          "even: untrained matrices make small scores.",
                          "これが、出典のprint(sa_v2(inputs))が表示する値です。重みがほぼ均等なのは、"
                          "学習前の行列ではスコアが小さいからです。"});
}

static void in_one_call(page *p, trainable_chapter *l)
{
    att_ctx *ctx = p->ctx;
    int64_t n = l->of.words.n;
    float *fused = page_floats(p, n * OUT);
    att_tensor q = layer_heads(p, l->of.q, 1, 1, n, OUT), k = layer_heads(p, l->of.k, 1, 1, n, OUT);
    att_tensor v = layer_heads(p, l->of.v, 1, 1, n, OUT), out = layer_heads(p, fused, 1, 1, n, OUT);
    page_step(p, (text){"Attention in one call", "注意を一度の呼び出しで"});
    page_print(p,
               (text){"The same from [batch, heads, time, dim] tensors. Without a scale in it, scores are divided by "
                      "the root of head_dim.",
                      "同じ計算を、[batch, heads, time, dim]の形のテンソルで行います。scaleを指定しなければ、"
                      "スコアはhead_dimの平方根で割られます。"});
    CALL(p, att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2),
                          ATT_OPTIONS(att_attention_args, .q = q, .k = k, .v = v, .out = out)));
    page_agree(p, (text){"C and att_attention", "Cとatt_attention"}, l->c, fused, n * OUT);
}

/* ---- training */

/* Returns the loss: half the sum over words of (context - the word's own first numbers)². Writes its gradient. */
static float loss(const vectors *v, const float *c, float *dc)
{
    double sum = 0;
    for (int64_t i = 0; i < v->n * OUT; i++) {
        float target = i % OUT < v->dim ? v->x[i / OUT * v->dim + i % OUT] : 0;
        dc[i] = c[i] - target;
        sum += 0.5 * dc[i] * dc[i];
    }
    return (float)sum;
}

typedef struct trainer {
    const att_plan *plan;
    att_attention_args args;
    att_attention_grads grads;
    float *dc;               /* [n, OUT] */
    float *dw[3];            /* [OUT, dim] */
    att_tensor dY[3], dW[3]; /* of Q, K, V [OUT, n], transposed; of W_q, W_k, W_v */
} trainer;

static void set_up(page *p, const trainable_chapter *l, trainer *t)
{
    int64_t n = l->of.words.n, dim = l->of.words.dim, count = n * OUT;
    float *numbers = page_floats(p, 5 * count + n + 3 * OUT * dim);
    if (p->status != ATT_OK)
        return;
    float *out = numbers, *lse = numbers + 5 * count, *dw = lse + n;
    t->dc = numbers + count;
    t->args = layer_args(p, &l->of);
    t->args.out = layer_heads(p, out, 1, 1, n, OUT);
    att_wrap(&t->args.lse, lse, ATT_F32, ATT_DIMS(1, 1, n), NULL);
    t->grads = (att_attention_grads){.size = sizeof t->grads, .dout = layer_heads(p, t->dc, 1, 1, n, OUT)};
    att_tensor *dy[] = {&t->grads.dq, &t->grads.dk, &t->grads.dv};
    for (int i = 0; i < 3; i++) {
        float *d = numbers + (2 + i) * count;
        *dy[i] = layer_heads(p, d, 1, 1, n, OUT);
        t->dY[i] = layer_transpose(p, d, n, OUT);
        t->dW[i] = page_matrix(p, t->dw[i] = dw + i * OUT * dim, OUT, dim);
    }
}

/* Repeats, without printing, the steps that were shown: forward, loss, backward, and a step against the gradient.
 * Returns the loss. */
static float learn(page *p, trainable_chapter *l, trainer *t, float rate)
{
    const layer *of = &l->of;
    const att_tensor *w[] = {&of->Wq, &of->Wk, &of->Wv}, *y[] = {&of->Q, &of->K, &of->V};
    int64_t count = OUT * of->words.dim;
    for (int i = 0; i < 3 && p->status == ATT_OK; i++)
        p->status = att_tensor_matmul(p->ctx, &of->X, w[i], ATT_OPTIONS(att_matmul_options, .transpose_b = true), y[i]);
    if (p->status == ATT_OK)
        p->status = att_forward(t->plan, &t->args);
    if (p->status != ATT_OK)
        return 0;
    float before = loss(&of->words, t->args.out.data, t->dc);
    p->status = att_backward(t->plan, &t->args, &t->grads);
    for (int i = 0; i < 3 && p->status == ATT_OK; i++) {
        p->status = att_tensor_matmul(p->ctx, &t->dY[i], &of->X, NULL, &t->dW[i]);
        for (int64_t j = 0; j < count; j++)
            ((float *)w[i]->data)[j] -= rate * t->dw[i][j];
    }
    return before;
}

static void gradients(page *p, trainable_chapter *l, trainer *t)
{
    att_ctx *ctx = p->ctx;
    const layer *of = &l->of;
    const att_plan *plan = t->plan;
    att_attention_args args = t->args;
    att_attention_grads grads = t->grads;
    att_tensor X = of->X, dQt = t->dY[0], dKt = t->dY[1], dVt = t->dY[2];
    att_tensor dW_q = t->dW[0], dW_k = t->dW[1], dW_v = t->dW[2];
    page_step(p, (text){"Which way to change them: gradients", "どちらへ変えるか：勾配"});
    page_print(
        p, (text){"A task to learn: let each context become the first two numbers of its own word. The loss L is "
                  "how far away it is. Going backward, attention turns dL/dC into gradients of queries, keys and "
                  "values; and these, times the words, are the gradients of the three matrices. (A transpose is only "
                  "a view with other strides.)",
                  "課題を決めましょう。各コンテキストを、その単語自身の最初の二つの数に近づけます。損失Lは、そこからの"
                  "隔たりです。逆伝播では、注意がdL/dCを、クエリ、キー、バリューの勾配に変えます。"
                  "それに単語を掛けたものが、三つの行列の勾配です。"
                  "（転置は、ストライドの異なるビューにすぎません。）"});
    page_formula(p, "L = ½ Σ (C - T)²    dL/dC = C - T    dL/dW_q = (dL/dQ)ᵀ X");
    CALL(p, att_forward(plan, &args));
    float L = p->status == ATT_OK ? loss(&of->words, args.out.data, t->dc) : 0;
    page_table(p, (const char *const[]){"L"}, 1, NULL, 1, &L);
    CALL(p, att_backward(plan, &args, &grads));
    CALL(p, att_tensor_matmul(ctx, &dQt, &X, NULL, &dW_q));
    CALL(p, att_tensor_matmul(ctx, &dKt, &X, NULL, &dW_k));
    CALL(p, att_tensor_matmul(ctx, &dVt, &X, NULL, &dW_v));
    static const char *const names[3][OUT] = {{"dW_q 1", "dW_q 2"}, {"dW_k 1", "dW_k 2"}, {"dW_v 1", "dW_v 2"}};
    for (int i = 0; i < 3; i++)
        page_table(p, names[i], OUT, NULL, of->words.dim, t->dw[i]);
}

static void training(page *p, trainable_chapter *l)
{
    enum { SHOWN = 7 };
    static const int steps[SHOWN] = {0, 1, 2, 5, 10, 100, 1000};
    static const char *const names[SHOWN] = {"0", "1", "2", "5", "10", "100", "1000"};
    att_ctx *ctx = p->ctx;
    att_plan *plan = NULL;
    trainer t = {0};
    float figures[SHOWN] = {0};
    set_up(p, l, &t);
    if (p->status == ATT_OK)
        p->status = att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = OUT), &plan);
    t.plan = plan;
    if (p->status == ATT_OK)
        gradients(p, l, &t);
    page_step(p, (text){"Training", "学習"});
    page_print(p, (text){"A step against the gradient, again and again: W -= 0.1 dW. L after so many steps:",
                         "勾配と逆の向きへ少し進むこと、つまりW -= 0.1 dWを、何度も繰り返します。"
                         "それぞれの回数のあとのLは、次のとおりです。"});
    for (int i = 0, shown = 0; shown < SHOWN && p->status == ATT_OK; i++) {
        float L = learn(p, l, &t, 0.1f);
        if (i == steps[shown])
            figures[shown++] = L;
    }
    page_table(p, (const char *const[]){"L"}, 1, names, SHOWN, figures);
    int fell = figures[SHOWN - 1] < figures[0];
    if (fell)
        page_print(p, (text){"That is what trainable means. The weights at the end, row by row, are no longer even:",
                             "学習可能とは、こういうことです。最後の重みを一行ずつ見ると、もう均等ではありません。"});
    else
        page_print(p, (text){"L did not fall: for these vectors the steps are too long.",
                             "Lは下がりませんでした。このベクトルには、一歩が大きすぎます。"});
    if (fell && p->status == ATT_OK)
        p->status = att_weights(plan, &t.args, 0, 0, 0, l->of.words.n, l->w);
    if (fell)
        page_heatmap(p, l->of.words.labels, l->of.words.n, l->w);
    att_plan_free(plan);
}

static att_status run(page *p)
{
    trainable_chapter l = {0};
    layer_open(p, &l.of, OUT);
    int64_t n = l.of.words.n;
    l.query = page_query(p, &l.of.words);
    l.s = page_zeros(p, n, n, &l.S), l.w = page_zeros(p, n, n, &l.W), l.c = page_zeros(p, n, OUT, &l.C);
    if (p->status != ATT_OK)
        return p->status;
    introduce(p, &l);
    weights(p, &l);
    project(p, &l);
    scores(p, &l);
    contexts(p, &l);
    in_one_call(p, &l);
    training(p, &l);
    return p->status;
}

const chapter chapter_trainable = {
    .about = {"queries, keys, values; PyTorch's initial weights; training",
              "クエリ、キー、バリュー、PyTorchと同じ初期の重み、そして学習"},
    .run = run,
    .draws = true,
};
