/* Numbers that a type with a smaller range than f32 does not have */
#ifndef ATT_IO_DTYPE_RANGE_H
#define ATT_IO_DTYPE_RANGE_H

#include "attend.h"

/* y is x, a tensor of any strides, converted to another type, dense. Error: a finite number of x that became infinite;
 * of a quantized type also one that is not finite, as others of its block would become NaN. source and name, of the
 * file and the tensor, are for the error; so is `verb`, what to do with another type: "convert to", "open as". */
att_status att_check_narrow(att_ctx *ctx, const char *source, const char *name, const char *verb, const att_tensor *x,
                            const att_tensor *y);

#endif
