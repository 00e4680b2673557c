"""Attention with a mask of your own in Python: numba compiles it, attend calls it on all threads, without the GIL.

    python3 own_mask_numba.py
"""
import numba
import numpy
from numba import types

import attend

# att_mask_block of attend_extend.h; pointers are addresses
block = types.Record.make_c_struct([
    ("size", types.uintp), ("head", types.uintp), ("user", types.uintp), ("value", types.uintp), ("param", types.uintp),
    ("q", types.int64), ("queries", types.int64), ("k", types.int64), ("keys", types.int64), ("inspected", types.uint8),
])
STEP = 2  # is compiled in


@numba.cfunc(types.uint8(types.CPointer(block)))
def dilated(b):
    """Does query q attend to key k? To itself and to each STEP-th key before it"""
    pair = numba.carray(b, 1)[0]
    return pair.k <= pair.q and (pair.q - pair.k) % STEP == 0


mask = attend.Mask(dilated, name="dilated", needs_align=True)
x = numpy.arange(6, dtype="f").reshape(1, 1, 6, 1)
out = attend.scaled_dot_product_attention(numpy.zeros_like(x), x, x, stages=[(mask,)])
print(*out.ravel())
