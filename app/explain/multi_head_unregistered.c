/* Layers in a list, which PyTorch does not find: only out_proj learns. */
#include "multi_head.h"

#include <inttypes.h>
#include <string.h>

enum { OUT = MULTI_HEAD_OUT, PARAMETERS = MULTI_HEAD_PARAMETERS, REGISTERED = 3, SHOWN = 4 };

typedef struct unregistered_example {
    const layer *of;
    const att_plan *plan;
    att_tape *tape;
    att_param *w[PARAMETERS];
    float *own[PARAMETERS]; /* their data */
    int64_t count[PARAMETERS];
    float *dy; /* [n, OUT] */
    att_tensor dY;
} unregistered_example;

static void set_up(page *p, unregistered_example *l, const att_tensor *const *value)
{
    l->dy = page_zeros(p, l->of->words.n, OUT, &l->dY);
    for (int i = 0; i < PARAMETERS && p->status == ATT_OK; i++) {
        att_tensor own = *value[i];
        l->count[i] = own.rank == 2 ? own.dim[0] * own.dim[1] : own.dim[0];
        own.data = l->own[i] = page_floats(p, l->count[i]);
        if (p->status == ATT_OK)
            p->status = att_param_new(p->ctx, &own, &l->w[i]);
    }
    if (p->status == ATT_OK)
        p->status = att_tape_new(p->ctx, ATT_OPTIONS(att_tape_config, .record = true), &l->tape);
}

static void tear_down(unregistered_example *l)
{
    att_tape_free(l->tape);
    for (int i = 0; i < PARAMETERS; i++)
        att_param_free(l->w[i]);
}

static att_var *multi_head(const unregistered_example *l)
{
    att_tape *t = l->tape;
    const int64_t offsets[] = {0, l->of->words.n};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = offsets};
    att_var *x = att_constant(t, &l->of->X), *y[3];
    for (int i = 0; i < 3; i++)
        y[i] = att_split_heads(t, att_linear(t, x, l->w[i], NULL, ATT_ACTIVATION_IDENTITY, NULL), 2);
    att_var *c = att_merge_heads(t, att_attend(t, l->plan, y[0], y[1], y[2], &args, NULL));
    return att_linear(t, c, l->w[3], l->w[4], ATT_ACTIVATION_IDENTITY, NULL);
}

/* Returns L = ½ Σ (Y - T)² of y [n, OUT], where T is the first OUT numbers of each word, and writes its gradient to
 * dy. */
static float loss(const unregistered_example *l, const float *y)
{
    const vectors *v = &l->of->words;
    double sum = 0;
    for (int64_t i = 0; i < v->n * OUT; i++) {
        l->dy[i] = y[i] - (i % OUT < v->dim ? v->x[i / OUT * v->dim + i % OUT] : 0);
        sum += 0.5 * l->dy[i] * l->dy[i];
    }
    return (float)sum;
}

/* Returns the loss, then takes a step W -= 0.1 dW of the parameters from `first` on. */
static float learn(page *p, const unregistered_example *l, int first)
{
    att_tensor Y = {0};
    att_var *y = multi_head(l);
    p->status = att_var_value(l->tape, y, &Y);
    const float L = p->status == ATT_OK ? loss(l, Y.data) : 0;
    if (p->status == ATT_OK)
        p->status = att_tape_backward(l->tape, y, &l->dY);
    for (int i = first; i < PARAMETERS && p->status == ATT_OK; i++) {
        const float *dw = att_param_grad(l->w[i])->data;
        for (int64_t j = 0; dw && j < l->count[i]; j++)
            l->own[i][j] -= 0.1f * dw[j];
        att_param_invalidate(l->w[i]);
    }
    att_tape_reset(l->tape);
    for (int i = 0; i < PARAMETERS; i++)
        att_param_zero_grad(l->w[i]);
    return L;
}

static void compare_learning(page *p, const unregistered_example *l, const att_tensor *const *value)
{
    static const int steps[SHOWN] = {0, 10, 100, 300};
    float L[2 * SHOWN] = {0};
    for (int listed = 0; listed < 2; listed++) {
        for (int i = 0; i < PARAMETERS && p->status == ATT_OK; i++) {
            memcpy(l->own[i], value[i]->data, (size_t)l->count[i] * sizeof *l->own[i]);
            att_param_invalidate(l->w[i]);
        }
        for (int step = 0, shown = 0; shown < SHOWN && p->status == ATT_OK; step++) {
            const float now = learn(p, l, listed ? REGISTERED : 0);
            if (step == steps[shown])
                L[listed * SHOWN + shown++] = now;
        }
    }
    page_table(p, (const char *const[]){"ModuleList", "list"}, 2, (const char *const[]){"0", "10", "100", "300"}, SHOWN,
               L);
}

/* Lists the parameters of a layer of this library by name. */
static void by_name(page *p, int64_t width)
{
    att_ctx *ctx = p->ctx;
    att_nn_params *params = NULL;
    page_print(p, (text){"Here a layer requests each parameter by name, and one that it has not requested it cannot "
                         "use:",
                         "このライブラリの層は、パラメータを一つずつ名前で要求します。要求しなかったパラメータは、"
                         "使うこともできません。"});
    CALL(p, att_nn_params_new(ctx, NULL, &params));
    if (p->status == ATT_OK)
        LOOP(p, att_nn_attention_new(params, "attention",
                                     ATT_OPTIONS(att_nn_attention_config, .width = width, .heads = 1)););
    if (p->status == ATT_OK)
        p->status = att_nn_params_status(params);
    for (int64_t i = 0; i < att_nn_params_count(params) && p->status == ATT_OK; i++) {
        const char *name;
        const att_tensor *w = att_param_value(att_nn_params_at(params, i, &name));
        if (w->rank == 2)
            page_line(p, "%-24s [%" PRId64 ", %" PRId64 "]", name, w->dim[0], w->dim[1]);
        else
            page_line(p, "%-24s [%" PRId64 "]", name, w->dim[0]);
    }
    att_nn_params_free(params);
}

void multi_head_unregistered(page *p, const layer *of, const att_plan *plan, const att_tensor *const *value)
{
    unregistered_example l = {.of = of, .plan = plan};
    page_step(p, (text){"Wrong: layers that are not registered", "間違い：登録されない層"});
    page_print(p,
               (text){"The constructor of that class does not begin with super().__init__(), and PyTorch refuses the "
                      "first layer that is assigned to it:",
                      "このクラスのコンストラクタは、super().__init__()を呼んでいません。そのため、"
                      "最初の層を代入したところで、PyTorchがエラーにします。"});
    page_line(p, "AttributeError: cannot assign module before Module.__init__() call");
    page_print(
        p, (text){"The next erratum is silent. The layers of the heads are in Python lists, [nn.Linear(...) for _ in "
                  "range(num_heads)]. A module searches its attributes for layers, and an nn.ModuleList, but no "
                  "list. So for 2 heads parameters() has 2 tensors, out_proj's, in place of 14: the optimizer "
                  "never gets the others, to(device) does not move them, and state_dict() does not save them. L "
                  "after so many steps W -= 0.1 dW, where Y shall become the first numbers of each word (the heads "
                  "without biases, "
                  "as above):",
                  "次の間違いは、エラーになりません。各ヘッドの層を、[nn.Linear(...) for _ in range(num_heads)]と、"
                  "Pythonのリストに入れています。モジュールは、自分の属性とnn.ModuleListの中からは層を探しますが、"
                  "リストの中は探しません。ヘッドが2個なら、parameters()に現れるのは、14個のテンソルのうち、"
                  "out_projの2個だけです。残りはオプティマイザに渡らず、to(device)でも移らず、state_dict()にも"
                  "保存されません。Yを各単語の最初の数に近づける学習で、W -= 0.1 dWを何回か繰り返したあとの"
                  "Lを比べます（ヘッドの層には、上と同じく、バイアスがありません）。"});
    set_up(p, &l, value);
    compare_learning(p, &l, value);
    page_print(p,
               (text){"With the list the loss falls too, so that it is easily overlooked: out_proj learns, on top of "
                      "queries, keys and values that stay random.",
                      "リストでも損失は下がるので、気づきにくい間違いです。学習しているのはout_projだけで、"
                      "クエリ、キー、バリューは最初の乱数のままです。"});
    tear_down(&l);
    by_name(p, of->words.dim);
}
