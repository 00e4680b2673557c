/* Stacked GRU and LSTM layers, unidirectional or bidirectional */
#include "nn/nn.h"

#include <stdio.h>

static att_recurrent load_one(att_nn_loader *s, const char *prefix, int64_t gates, int64_t in, int64_t units,
                              int64_t layer, bool reverse)
{
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    att_param *p[4];
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_l%d%s", names[i], (int)layer, reverse ? "_reverse" : "");
        p[i] = i < 2 ? att_nn_matrix(s, prefix, name, gates * units, i == 0 ? in : units)
                     : att_nn_vector(s, prefix, name, gates * units);
    }
    return (att_recurrent){.size = sizeof(att_recurrent),
                           .weight_ih = p[0],
                           .weight_hh = p[1],
                           .bias_ih = p[2],
                           .bias_hh = p[3],
                           .reverse = reverse};
}

att_nn_recurrent att_nn_recurrent_load(att_nn_loader *s, const char *prefix, const att_nn_recurrent_config *c)
{
    const int64_t gates = c->lstm ? 4 : 3;
    att_nn_recurrent l = {.cell = c->lstm ? att_lstm : att_gru,
                          .layers = c->layers,
                          .directions = c->bidirectional ? 2 : 1,
                          .dropout_id = att_nn_dropout_id(prefix, "layer")};
    for (int64_t i = 0; i < l.layers * l.directions; i++) {
        const int64_t layer = i / l.directions, in = layer ? l.directions * c->units : c->in;
        l.layer[i] = load_one(s, prefix, gates, in, c->units, layer, i % l.directions);
    }
    return l;
}

att_var *att_nn_recurrent_apply(att_tape *t, const att_nn_recurrent *l, att_var *x, const int64_t *offsets, int64_t n,
                                const att_recurrent_state *start, att_recurrent_state *last,
                                const att_nn_dropout *dropout)
{
    for (int64_t i = 0; i < l->layers * l->directions; i += l->directions) {
        att_var *y[2];
        if (i > 0)
            x = att_nn_dropout_apply(t, dropout, l->dropout_id + (uint64_t)i, x, NULL);
        for (int64_t direction = 0; direction < l->directions; direction++) {
            att_recurrent layer = l->layer[i + direction];
            if (start)
                layer.initial = start[i + direction];
            y[direction] = l->cell(t, x, offsets, n, &layer, last ? &last[i + direction] : NULL);
        }
        x = l->directions == 2 ? att_concat(t, 2, y, 1) : y[0];
    }
    return x;
}
