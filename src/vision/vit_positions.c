/* Initializes the positions of a new vision Transformer. They are learned, and begin as sines and cosines of the column
 * and the row (Beyer, Zhai, Kolesnikov 2022; each as in Vaswani et al. 2017), so that neighbors are similar from the
 * first step.
 */
#include "vision/vit.h"

#include <math.h>

void att_vit_init_positions(att_vit *m)
{
    const att_vit_info *i = &m->config.info;
    const int64_t quarter = i->hidden / 4, rows = i->image[0] / i->patch[0], columns = i->image[1] / i->patch[1];
    float *x = (float *)att_param_value(m->position)->data + m->config.positioned * i->hidden;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++, x += i->hidden)
            for (int64_t k = 0; k < quarter; k++) {
                const double frequency = pow(10000, -(double)k / (double)quarter);
                x[k] = (float)sin((double)column * frequency);
                x[quarter + k] = (float)cos((double)column * frequency);
                x[2 * quarter + k] = (float)sin((double)row * frequency);
                x[3 * quarter + k] = (float)cos((double)row * frequency);
            }
    att_param_invalidate(m->position);
}
