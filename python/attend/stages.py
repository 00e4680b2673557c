"""Scores, modifiers and masks of your own, as compiled functions of ctypes, cffi or numba: the types of attend_extend.h."""
import os
import sys
from collections import namedtuple

from attend import _attend

_SCORE, _MODIFIER, _MASK = range(3)
_FLAGS = {"needs_align": 1, "bilinear": 2, "additive": 4, "sink": 8, "has_value": 16, "needs_value": 32, "product": 64}
_KINDS = {"per_head": 0, "per_pair": 1, "per_query": 2, "per_key": 3}  # att_param_kind
_DTYPES = {"float32": 0, "int32": 3, "bool": 5}  # att_dtype
_EXTENTS = {None: 0, "any": 1, "head_dim": 2, "key_dim": 3, "score_dim": 4}  # att_extent


def get_include():
    """The folder of attend.h and attend_extend.h, whose structs the functions get: cc -I"""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


class Param(namedtuple("Param", "name kind dtype rows columns optional as_queries",
                       defaults=("per_head", "float32", None, None, False, False))):
    """A parameter that calls pass: kind "per_head", [heads or 1, rows, columns], "per_pair", "per_query", "per_key";
    dtype "float32", of masks also "int32" and "bool"; rows and columns None, "any", "head_dim", "key_dim", "score_dim" """


def _code(codes, value, name):
    if value not in codes:
        raise _attend.ArgumentError(f"{name}: {value!r}, must be one of {', '.join(map(repr, codes))}")
    return codes[value]


def _params(given):
    params = [Param(p) if isinstance(p, str) else Param(*p) for p in given]
    return tuple((p.name, _code(_KINDS, p.kind, "kind"), _code(_DTYPES, p.dtype, "dtype"), _code(_EXTENTS, p.rows, "rows"),
                  _code(_EXTENTS, p.columns, "columns"), p.optional, p.as_queries) for p in params)


def _address(function, name):
    """The address of a compiled function: an int, numba's cfunc, a function of ctypes or a function pointer of cffi"""
    if function is None:
        return 0
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(getattr(function, "address", None), int):
        return function.address
    ctypes = sys.modules.get("ctypes")
    if ctypes and isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    cffi = sys.modules.get("_cffi_backend")
    if cffi and isinstance(function, cffi._CDataBase):
        return int(cffi.FFI().cast("uintptr_t", function))
    raise _attend.DtypeError(f"{name}: a compiled function is needed: of ctypes, cffi (a pointer) or numba (cfunc), or its "
                             f"address, not {type(function).__name__}")


def _new(cls, kind, name, functions, params, user, **flags):
    first = next(iter(functions))
    addresses = tuple(_address(function, key) for key, function in functions.items())
    if not addresses[0]:
        raise _attend.ArgumentError(f"{first}: is needed")
    set_flags = sum(_FLAGS[flag] for flag, is_set in flags.items() if is_set)
    return _attend.Stage.__new__(cls, kind, name, addresses, set_flags, _params(params), user,
                                 tuple(f for f in functions.values() if f is not None))


class Score(_attend.Stage):
    """A score of your own, for score=: att_score of attend_extend.h. Functions are double formula(const att_pair *), and
    so on, as that has them. The formula suffices; derivative makes gradients, tile makes it fast. The functions and
    user (bytes, an array, or an address) are kept as long as the score, or a plan with it."""

    def __new__(cls, formula, *, name="score", derivative=None, tile=None, tile_back=None, term=None, term_back=None,
                params=(), user=None, needs_align=False, bilinear=False, product=False):
        functions = {"formula": formula, "derivative": derivative, "tile": tile, "tile_back": tile_back, "term": term,
                     "term_back": term_back}
        return _new(cls, _SCORE, name, functions, params, user, needs_align=needs_align, bilinear=bilinear, product=product)


class Modifier(_attend.Stage):
    """A modifier of scores of your own, for stages=[(modifier, number or array, ...)]: att_modifier of attend_extend.h"""

    def __new__(cls, formula, *, name="modifier", derivative=None, tile=None, tile_back=None, params=(), user=None,
                needs_align=False, additive=False, sink=False, has_value=False, needs_value=False):
        functions = {"formula": formula, "derivative": derivative, "tile": tile, "tile_back": tile_back}
        return _new(cls, _MODIFIER, name, functions, params, user, needs_align=needs_align, additive=additive, sink=sink,
                    has_value=has_value, needs_value=needs_value)


class Mask(_attend.Stage):
    """A mask of your own, for stages=[(mask, number or array, ...)]: att_mask of attend_extend.h"""

    def __new__(cls, keep, *, name="mask", span=None, cover=None, bits=None, inspect=None, params=(), user=None,
                needs_align=False, has_value=False, needs_value=False):
        functions = {"keep": keep, "span": span, "cover": cover, "bits": bits, "inspect": inspect}
        return _new(cls, _MASK, name, functions, params, user, needs_align=needs_align, has_value=has_value,
                    needs_value=needs_value)
