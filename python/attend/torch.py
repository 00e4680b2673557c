"""Attention of torch tensors by attend: `import attend.torch` adds the operator torch.ops.attend.attention, and, if
transformers is installed, the name "attend" for its attn_implementation.

It computes on torch's threads, so there are no two pools that take turns on the same processors."""
import ctypes
import importlib.util
import os

import torch
from torch._C import DispatchKey, DispatchKeySet

from attend import _attend

__all__ = ["scaled_dot_product_attention"]

_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # att_dtype


# ---- threads

def _gomp_parallel():
    """Returns the address of GOMP_parallel in the OpenMP runtime that torch has loaded, 0 if there is none."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "omp" in line and "/" in line}
    beside = os.path.join(os.path.dirname(torch.__file__), "lib")
    runtimes = [path for path in paths if os.path.basename(path).startswith(("libgomp", "libiomp5", "libomp"))]
    for path in sorted(runtimes, key=lambda path: not path.startswith(beside)):  # torch's own first
        try:
            return ctypes.cast(ctypes.CDLL(path).GOMP_parallel, ctypes.c_void_p).value
        except (OSError, AttributeError):
            continue
    return 0


_attend.torch_open(_gomp_parallel() if torch.backends.openmp.is_available() else 0,
                   max(torch.get_num_threads(), len(os.sched_getaffinity(0))))


# ---- the operator

# query [B, H, L, E], key [B, K, S, E], value [B, K, S, D]: head h of queries uses head h / (H / K) of keys. bias float32
# and mask bool broadcast to [B, H, L, S]; lengths int64 [B], keys used of S; seed int64 [1], for dropout. Query i is at
# position start + i, key j at j; before, after: the window in keys, -1: all. softcap 0: none; scale 0: 1 / sqrt(E).
# -> out [B, H, L, D], log-sum-exp [B, H, L]
_ARGUMENTS = ("Tensor query, Tensor key, Tensor value, {}Tensor? bias, Tensor? mask, Tensor? lengths, Tensor? seed, "
              "bool causal, SymInt start, SymInt before, SymInt after, float softcap, float scale, float dropout")
_library = torch.library.Library("attend", "DEF")
_library.define(f"attention({_ARGUMENTS.format('')}) -> (Tensor, Tensor)", tags=torch.Tag.pt2_compliant_tag)
_library.define(f"attention_backward(Tensor dout, {_ARGUMENTS.format('Tensor out, Tensor lse, ')}, bool needs_dquery, "
                "bool needs_dkey, bool needs_dvalue, bool needs_dbias) -> (Tensor, Tensor, Tensor, Tensor)",
                tags=torch.Tag.pt2_compliant_tag)
attention = torch.ops.attend.attention.default
_attention_backward = torch.ops.attend.attention_backward.default


def _at(tensor):
    return None if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def _rows(tensor):
    """Returns a tensor whose last dimension is contiguous."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _results(query, value):
    """Returns memory for out [B, H, L, D], stored as torch's, so that joining heads afterwards needs no copy, and for
    the log-sum-exp [B, H, L]."""
    batch, heads, time, _ = query.shape
    dim = value.shape[3]
    out = query.new_empty_strided((batch, heads, time, dim), (heads * time * dim, dim, heads * dim, 1))
    return out, query.new_empty((batch, heads, time), dtype=torch.float32)


def _forward(query, key, value, bias, mask, lengths, seed, *options):
    out, lse = _results(query, value)
    if not out.numel() or not key.numel():
        return out.zero_(), lse.fill_(-torch.inf)
    query, key, value = _rows(query), _rows(key), _rows(value)
    _attend.torch_forward(torch.get_num_threads(), _DTYPES[query.dtype], _at(query), _at(key), _at(value), _at(out),
                          _at(lse), _at(bias), _at(mask), _at(lengths), _at(seed), *options)
    return out, lse


def _gradients(query, key, value, bias, needs):
    like = [query, key, value, query if bias is None else bias]
    gradients = [torch.empty_like(x) if need else x.new_empty(0) for x, need in zip(like, needs)]
    return [x if x.dim() != 4 or x.stride(-1) == 1 else torch.empty_like(x, memory_format=torch.contiguous_format)
            for x in gradients]


def _backward(dout, query, key, value, out, lse, bias, mask, lengths, seed, *options):
    options, needs = options[:-4], options[-4:]
    gradients = _gradients(query, key, value, bias, needs)
    if not out.numel() or not key.numel():
        return tuple(x.zero_() for x in gradients)
    dout, query, key, value = _rows(dout), _rows(query), _rows(key), _rows(value)
    wanted = [_at(x) if need else None for x, need in zip(gradients, needs)]
    _attend.torch_backward(torch.get_num_threads(), _DTYPES[query.dtype], _at(query), _at(key), _at(value), _at(out),
                           _at(lse), _at(bias), _at(mask), _at(lengths), _at(seed), *options, _at(dout), *wanted)
    return tuple(gradients)


def _fake_backward(dout, query, key, value, out, lse, bias, mask, lengths, seed, *options):
    return tuple(_gradients(query, key, value, bias, options[-4:]))


class _Attention(torch.autograd.Function):
    """The operator with its gradients"""

    @staticmethod
    def forward(ctx, keys, *args):
        with torch._C._AutoDispatchBelowAutograd():
            out, lse = attention.redispatch(keys & _BELOW_AUTOGRAD, *args)
        ctx.save_for_backward(*args[:7], out, lse)
        ctx.options = args[7:]
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, dout, _):
        if dout is None:
            return (None,) * 15
        query, key, value, bias, mask, lengths, seed, out, lse = ctx.saved_tensors
        needs = ctx.needs_input_grad[1:5]
        gradients = _attention_backward(dout, query, key, value, out, lse, bias, mask, lengths, seed, *ctx.options,
                                        *needs)
        return (None, *(x if need else None for x, need in zip(gradients, needs)), *(None,) * 10)


class _AttentionBackward(torch.autograd.Function):
    """The gradients, where their own gradients may be asked for"""

    @staticmethod
    def forward(ctx, keys, *args):
        with torch._C._AutoDispatchBelowAutograd():
            return _attention_backward.redispatch(keys & _BELOW_AUTOGRAD, *args)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("attend.torch: attention has no second derivatives")


_BELOW_AUTOGRAD = torch._C._after_autograd_keyset
_CPU = DispatchKeySet(DispatchKey.CPU)


def _autograd(keys, *args):
    if torch.is_grad_enabled() and (args[0].requires_grad or args[1].requires_grad or args[2].requires_grad or
                                    (args[3] is not None and args[3].requires_grad)):
        return _Attention.apply(keys, *args)
    below = keys & _BELOW_AUTOGRAD
    if below.highestPriorityTypeId() == DispatchKey.CPU:
        return _forward(*args)  # what the dispatcher would call next, without the way through it
    return attention.redispatch(below, *args)


def _backward_autograd(keys, *args):
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in args[:7]):
        return _AttentionBackward.apply(keys, *args)
    return _attention_backward.redispatch(keys & _BELOW_AUTOGRAD, *args)


_library.impl("attention", _forward, "CPU")
_library.impl("attention_backward", _backward, "CPU")
_library.impl("attention", _autograd, "Autograd", with_keyset=True)
_library.impl("attention_backward", _backward_autograd, "Autograd", with_keyset=True)
torch.library.register_fake("attend::attention", lambda query, key, value, *_: _results(query, value), lib=_library)
torch.library.register_fake("attend::attention_backward", _fake_backward, lib=_library)


# ---- torch.nn.functional.scaled_dot_product_attention

def _check(query, key, value, attn_mask, dropout_p, is_causal):
    """Raises RuntimeError, as torch does."""
    for name, x in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if x is None:
            continue
        if x.is_nested:
            raise RuntimeError(f"attend.torch: {name} is a nested tensor; pad it, and say by attn_mask what is padding")
        if x.device.type not in ("cpu", "meta"):
            raise RuntimeError(f"attend.torch: {name} is on {x.device}, but attend computes on the CPU; "
                               "use torch's function there")
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(f"attend.torch: query, key and value have {query.dim()}, {key.dim()} and {value.dim()} "
                           "dimensions, at least 2 are needed")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(f"attend.torch: query, key and value are {query.dtype}, {key.dtype} and {value.dtype}, but must "
                           "be of one type")
    if query.dtype not in _DTYPES:
        raise RuntimeError(f"attend.torch: query is {query.dtype}; float32, float16 and bfloat16 are supported")
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError("attend.torch: attn_mask is given and is_causal is True; put both into attn_mask")
        if attn_mask.dtype not in (torch.bool, torch.float32, query.dtype):
            raise RuntimeError(f"attend.torch: attn_mask is {attn_mask.dtype}, but must be bool, float32 or {query.dtype}")
        if attn_mask.dim() < 2:
            raise RuntimeError(f"attend.torch: attn_mask has {attn_mask.dim()} dimensions, at least 2 are needed")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"attend.torch: dropout_p is {dropout_p}, but must be from 0 to 1")


def _to_rank_4(query, key, value, attn_mask, grouped):
    """Returns the operands as [B, heads, time, dim] and the mask of rank 4, by torch's rules of broadcasting."""
    rank = max(query.dim(), key.dim(), value.dim(), 3)
    query, key, value = (x[(None,) * (rank - x.dim())] for x in (query, key, value))
    if grouped:
        heads, k_heads, v_heads = query.shape[-3], key.shape[-3], value.shape[-3]
        if not k_heads or not v_heads or heads % k_heads or heads % v_heads:
            raise RuntimeError(f"attend.torch: query has {heads} heads, key {k_heads} and value {v_heads}, which must "
                               "divide it")
        if k_heads != v_heads:
            key, value = (x.repeat_interleave(heads // n, -3) for x, n in ((key, k_heads), (value, v_heads)))
        batch = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3])
        query, key, value = (x.expand(*batch, *x.shape[-3:]) for x in (query, key, value))
    else:
        batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
        batch = batch[:-1]
    if attn_mask is not None and attn_mask.dim() > 4:
        attn_mask = attn_mask.expand(*batch, *attn_mask.shape[-3:]).flatten(0, -4)
    elif attn_mask is not None:
        attn_mask = attn_mask[(None,) * (4 - attn_mask.dim())]
        if len(batch) > 1 and attn_mask.shape[0] != 1:
            attn_mask = attn_mask.expand(*batch, *attn_mask.shape[1:]).flatten(0, -4)
    if len(batch) != 1:
        query, key, value = (x.reshape(-1, *x.shape[-3:]) for x in (query, key, value))
    return query, key, value, attn_mask, batch


def _check_shapes(query, key, value, attn_mask):
    if query.shape[3] != key.shape[3] or key.shape[2] != value.shape[2]:
        raise RuntimeError(f"attend.torch: query [..., {query.shape[2]}, {query.shape[3]}], key [..., {key.shape[2]}, "
                           f"{key.shape[3]}] and value [..., {value.shape[2]}, {value.shape[3]}] do not fit together")
    full = (*query.shape[:3], key.shape[2])
    if attn_mask is not None and any(n not in (1, m) for n, m in zip(attn_mask.shape, full)):
        raise RuntimeError(f"attend.torch: attn_mask {list(attn_mask.shape)} does not broadcast to {list(full)}")


def _autocast(*operands):
    """As torch's autocast of the CPU, whose list has scaled_dot_product_attention"""
    dtype = torch.get_autocast_dtype("cpu")
    return [x.to(dtype) if x is not None and x.dtype in _DTYPES else x for x in operands]


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """torch.nn.functional.scaled_dot_product_attention, computed by attend: the same arguments, results and gradients, of
    float32, float16 and bfloat16 on the CPU. Weights are dropped by numbers of torch's generator, but other ones."""
    if (query.is_cpu and key.is_cpu and value.is_cpu and not query.is_nested and attn_mask is None and
            dropout_p == 0 and scale != 0 and not torch.is_autocast_enabled("cpu") and query.dim() == 4 and
            query.shape == key.shape == value.shape and query.shape[3] and query.dtype in _DTYPES and
            query.dtype == key.dtype == value.dtype):  # the usual call, without more questions
        return attention(query, key, value, None, None, None, None, is_causal, 0, -1, -1, 0.0, scale or 0.0, 0.0)[0]
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = _autocast(query, key, value, attn_mask)
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    batch = None
    if not (query.dim() == key.dim() == value.dim() == 4 and query.shape[0] == key.shape[0] == value.shape[0] and
            key.shape[1] == value.shape[1] and (query.shape[1] == key.shape[1] or (enable_gqa and key.shape[1] and
                                                                                  query.shape[1] % key.shape[1] == 0))
            and (attn_mask is None or attn_mask.dim() == 4)):
        rank = max(query.dim(), key.dim(), value.dim())
        query, key, value, attn_mask, batch = _to_rank_4(query, key, value, attn_mask, enable_gqa)
    _check_shapes(query, key, value, attn_mask)
    if query.shape[3] == 0:  # all scores are 0
        query, key = (torch.nn.functional.pad(x, (0, 1)) for x in (query, key))
    if scale == 0:
        query, scale = query * 0, 1.0
    bias = mask = None
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        mask = attn_mask
    elif attn_mask is not None:
        bias = attn_mask.float()
    seed = torch.randint(2**63 - 1, (1,)) if 0 < dropout_p < 1 else None
    out, _ = attention(query, key, value, bias, mask, None, seed, is_causal, 0, -1, -1, 0.0, scale or 0.0,
                       dropout_p if seed is not None else 0.0)
    if dropout_p == 1:
        out = torch.dropout(out, 1.0, True)
    if batch is not None:
        out = out.reshape(*batch, *out.shape[1:])
        out = out[0] if rank == 2 else out
    return out


if importlib.util.find_spec("transformers"):
    from attend import _transformers  # registers "attend" there
