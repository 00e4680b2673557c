/* Sliding windows on images: checks, and the number of windows. */
#include "tape/tape.h"

static bool check_axis(att_tape *t, const char *op, const char *axis, const att_tensor *x, int64_t size, int64_t kernel,
                       int64_t stride, int64_t padding)
{
    if (kernel < 1 || kernel > INT32_MAX) /* so that sums of kernel and padding fit in 64 bits */
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s: kernel is %lld, not from 1 to %d", op, axis, (long long)kernel,
                      INT32_MAX);
    else if (stride < 1)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s: stride is %lld, less than 1", op, axis, (long long)stride);
    else if (padding < 0 || padding >= kernel)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s: padding is %lld, not from 0 to below the kernel's %lld", op, axis,
                      (long long)padding, (long long)kernel);
    else if (size < 1 || size < kernel - 2 * padding)
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: %s: a kernel of %lld is larger than x, %s, with a padding of %lld", op,
                      axis, (long long)kernel, att_shape_of(x).text, (long long)padding);
    return !t->status;
}

bool att_tape_window(att_tape *t, const char *op, const att_tensor *x, const int64_t kernel[2], const int64_t stride[2],
                     const int64_t padding[2], att_window *w)
{
    if (x->rank != 4) {
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: x is %s, not [images, height, width, channels]", op, att_shape_of(x).text);
        return false;
    }
    *w = (att_window){.images = x->dim[0], .channels = x->dim[3]};
    for (int i = 0; i < 2; i++) {
        const int64_t size = x->dim[1 + i], step = stride[i] == 0 ? 1 : stride[i];
        if (!check_axis(t, op, i ? "width" : "height", x, size, kernel[i], step, padding[i]))
            return false;
        w->size[i] = size;
        w->kernel[i] = kernel[i];
        w->stride[i] = step;
        w->padding[i] = padding[i];
        w->out[i] = (size + 2 * padding[i] - kernel[i]) / step + 1;
    }
    return true;
}
