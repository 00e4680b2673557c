/* The score -|q - k|, the sum of absolute differences, for own_score.py: its formula, its derivative, and a version for
 * tiles. */
#include <attend_extend.h>
#include <math.h>

double formula(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s -= fabs((double)p->query[d] - p->key[d]);
    return s;
}

void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    (void)dparam; /* it has no parameters */
    for (int64_t d = 0; d < p->dim; d++) {
        const double sign = (p->query[d] > p->key[d]) - (p->query[d] < p->key[d]);
        dq[d] -= sign * ds;
        dk[d] += sign * ds;
    }
}

void tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++) {
            float s = 0;
            for (int64_t d = 0; d < t->dim; d++)
                s -= fabsf(t->query[d * t->columns + i] - t->key[j * t->key_stride + d]);
            t->s[j * t->stride + i] = s;
        }
}
