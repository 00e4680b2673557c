/* Checks for numbers that are outside the range of a type. */
#ifndef ATT_IO_DTYPE_RANGE_H
#define ATT_IO_DTYPE_RANGE_H

#include "attend.h"

/* Checks y, which is x, a tensor of any strides, converted to another type, dense. Errors: a finite number of x became
 * infinite; for a quantized type also a number that is not finite, because others of its block would become NaN. The
 * message has source and name, of the file and the tensor, and `verb`, what to do with another type: "convert to",
 * "open as". */
att_status att_check_narrow(att_ctx *ctx, const char *source, const char *name, const char *verb, const att_tensor *x,
                            const att_tensor *y);

#endif
