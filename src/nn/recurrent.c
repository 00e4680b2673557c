/* Stacked GRU and LSTM layers, unidirectional or bidirectional */
#include "nn/nn.h"

#include <stdio.h>

static att_recurrent make_one(att_nn_params *p, const char *name, int64_t gates, int64_t in, int64_t units,
                              int64_t layer, bool reverse)
{
    static const char *const parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_FAN_IN_UNIFORM, .fan_in = units};
    att_param *param[4];
    for (int i = 0; i < 4; i++) {
        const int64_t dim[] = {gates * units, i == 0 ? in : units};
        char part[32];
        snprintf(part, sizeof part, "%s_l%d%s", parts[i], (int)layer, reverse ? "_reverse" : "");
        param[i] = att_nn_params_request(p, name, part, i < 2 ? 2 : 1, dim, &init);
    }
    return (att_recurrent){.size = sizeof(att_recurrent),
                           .weight_ih = param[0],
                           .weight_hh = param[1],
                           .bias_ih = param[2],
                           .bias_hh = param[3],
                           .reverse = reverse};
}

const att_nn_recurrent *att_nn_recurrent_new(att_nn_params *p, const char *name, const att_nn_recurrent_config *config)
{
    att_nn_recurrent_config c;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_recurrent_config"))
        return NULL;
    const int64_t directions = c.bidirectional ? 2 : 1;
    if (c.layers < 1 || c.layers > ATT_NN_MAX_RECURRENT / directions)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": layers is %lld, expected 1..%lld", name, (long long)c.layers,
                           (long long)(ATT_NN_MAX_RECURRENT / directions));
    if (!att_nn_check_size(p, name, "in", c.in) || !att_nn_check_size(p, name, "units", c.units))
        return NULL;
    const int64_t n = c.layers * directions;
    att_nn_recurrent *l = att_nn_params_alloc(p, sizeof *l);
    att_recurrent *layer = att_nn_params_alloc(p, (size_t)n * sizeof *layer);
    if (!l || !layer)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        layer[i] = make_one(p, name, c.lstm ? 4 : 3, i < directions ? c.in : directions * c.units, c.units,
                            i / directions, i % directions);
    *l = (att_nn_recurrent){.layers = c.layers,
                            .directions = directions,
                            .lstm = c.lstm,
                            .layer = layer,
                            .dropout_id = att_nn_dropout_id(name, "layer")};
    return att_nn_params_status(p) ? NULL : l;
}

att_var *att_nn_recurrent_apply(att_tape *t, const att_nn_recurrent *l, att_var *x, const int64_t *offsets, int64_t n,
                                const att_recurrent_state *initial, att_recurrent_state *last,
                                const att_nn_dropout *dropout)
{
    if (!att_nn_given(t, __func__, l))
        return NULL;
    for (int64_t i = 0; i < l->layers * l->directions; i += l->directions) {
        att_var *y[2];
        if (i > 0)
            x = att_nn_dropout_apply(t, dropout, l->dropout_id + (uint64_t)i, x, NULL);
        for (int64_t direction = 0; direction < l->directions; direction++) {
            att_recurrent layer = l->layer[i + direction];
            if (initial)
                layer.initial = initial[i + direction];
            y[direction] = (l->lstm ? att_lstm : att_gru)(t, x, offsets, n, &layer, last ? &last[i + direction] : NULL);
        }
        x = l->directions == 2 ? att_concat(t, 2, y, 1) : y[0];
    }
    return x;
}
