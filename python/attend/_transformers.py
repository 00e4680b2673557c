"""The name "attend" for attn_implementation of transformers: attention, and masks that say what they are."""
import logging

import torch
from torch.utils._pytree import tree_map_only
from transformers import masking_utils
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface, PreTrainedModel

from attend.torch import _DTYPES, attention

_logger = logging.getLogger("attend")


# ---- masks

class Pattern(torch.Tensor):
    """A mask [batch, 1, queries, keys] of booleans that is not stored: causal, a window, and padding of keys.

    Attention reads its fields. Any other operation on it makes the tensor of booleans that "sdpa" would get."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, shape, make, **fields):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool)

    def __init__(self, shape, make, causal, start, before, after, lengths, keys):
        self.make, self.causal, self.start, self.before, self.after = make, causal, start, before, after
        self.lengths = lengths  # int64 [batch] or None: keys used, the first ones
        self.keys = keys        # bool [batch, 1, 1, keys] or None: those used, where they are not the first ones

    def dense(self):
        return self.make()

    def __repr__(self):
        return f"{type(self).__name__}({list(self.shape)}, causal={self.causal})"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(Pattern, Pattern.dense, (args, kwargs or {}))
        return function(*args, **kwargs)


_WINDOW = masking_utils.sliding_window_overlay(1).__code__
_WINDOW_BOTH = masking_utils.sliding_window_bidirectional_overlay(1).__code__
_ALL = masking_utils.and_masks().__code__


def _read(function):
    """Returns (causal, before, after) of a mask function; None: it is none of those that transformers itself makes."""
    if function is masking_utils.causal_mask_function:
        return True, -1, -1
    if function is masking_utils.bidirectional_mask_function:
        return False, -1, -1
    code = getattr(function, "__code__", None)
    if code not in (_WINDOW, _WINDOW_BOTH, _ALL):
        return None
    cells = dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__)))
    if code is not _ALL:
        window = int(cells["sliding_window"])
        return (False, window - 1, -1) if code is _WINDOW else (False, window, window)
    parts = [_read(part) for part in cells["mask_functions"]]
    if None in parts:
        return None
    narrower = lambda widths: min((n for n in widths if n >= 0), default=-1)
    return any(p[0] for p in parts), narrower(p[1] for p in parts), narrower(p[2] for p in parts)


def _read_padding(padding, kv_length, kv_offset):
    """Returns (lengths, keys) of a mask [batch, tokens] of booleans: see Pattern."""
    padding = masking_utils.prepare_padding_mask(padding, kv_length, kv_offset)
    if padding is None:
        return None, None
    padding = padding[:, kv_offset:kv_offset + kv_length]
    if padding.all():
        return None, None
    if (padding[:, 1:] <= padding[:, :-1]).all():
        return padding.sum(1), None
    return None, padding[:, None, None].contiguous()


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=masking_utils.causal_mask_function,
         attention_mask=None, local_size=None, allow_is_causal_skip=True, allow_is_bidirectional_skip=False,
         device="cpu", **kwargs):
    """As sdpa_mask: None where attention's own is_causal says all, else a Pattern, or, of functions that are not known
    and in graphs, a tensor of booleans"""
    def dense(causal_skip=False, bidirectional_skip=False):
        return sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset,
                         kv_offset=kv_offset, mask_function=mask_function, attention_mask=attention_mask,
                         local_size=local_size, allow_is_causal_skip=causal_skip,
                         allow_is_bidirectional_skip=bidirectional_skip, device=device, **kwargs)

    if (masking_utils.is_tracing(attention_mask) or torch.device(device).type != "cpu" or
            isinstance(q_offset, torch.Tensor)):  # of a static cache, whose masks go into graphs
        return dense(allow_is_causal_skip, allow_is_bidirectional_skip)
    pattern = _read(mask_function)
    if pattern is None:
        return dense(allow_is_causal_skip, allow_is_bidirectional_skip)
    causal, before, after = pattern
    start = q_offset - kv_offset
    if before >= start + q_length - 1:
        before = -1
    if after >= kv_length - start - 1:
        after = -1
    if causal and q_length == 1 and start >= kv_length - 1:
        causal = False
    lengths, keys = _read_padding(attention_mask, kv_length, kv_offset)
    if lengths is None and keys is None and before == after == -1:
        plain = not causal or (start == 0 and q_length == kv_length)
        if plain and (allow_is_causal_skip if pattern[0] else allow_is_bidirectional_skip):
            return None
    return Pattern((batch_size, 1, q_length, kv_length), dense, causal=causal, start=start, before=before, after=after,
                   lengths=lengths, keys=keys)


# ---- attention

def _refuse(kwargs):
    for name in ("s_aux", "cache"):
        if kwargs.get(name) is not None:
            raise NotImplementedError(f'attn_implementation="attend" does not know `{name}`, which this model passes: '
                                      'use "eager" or "sdpa"')


def forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, position_bias=None,
            softcap=None, **kwargs):
    """What a model calls: query [B, H, L, E], key and value [B, K, S, E] -> [B, L, H, E], no weights"""
    _refuse(kwargs)
    if query.device.type != "cpu" or query.dtype not in _DTYPES or not query.dtype == key.dtype == value.dtype:
        raise TypeError(f'attn_implementation="attend": query, key and value are {query.dtype}, {key.dtype} and '
                        f"{value.dtype} on {query.device}, but must be of one type, float32, float16 or bfloat16, on the "
                        "CPU")
    causal, start, before, after, lengths, bias, keep = False, 0, -1, -1, None, None, None
    if attention_mask is None:
        causal = bool(query.shape[2] > 1 and (getattr(module, "is_causal", True) if is_causal is None else is_causal))
    elif isinstance(attention_mask, Pattern):
        m = attention_mask
        causal, start, before, after, lengths, keep = m.causal, m.start, m.before, m.after, m.lengths, m.keys
    elif attention_mask.dtype == torch.bool:
        keep = attention_mask
    else:
        bias = attention_mask
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    if bias is not None:
        bias = bias.float()
    seed = torch.randint(2**63 - 1, (1,)) if dropout else None
    out, _ = attention(query, key, value, bias, keep, lengths, seed, causal, start, before, after, softcap or 0.0,
                       scaling or 0.0, dropout)
    return out.transpose(1, 2).contiguous(), None


# ---- models that take any name and call no attention function

_warned = set()


def _warn_if_never_called(model):
    cls = type(model)
    if cls not in _warned and not cls._can_set_attn_implementation():
        _warned.add(cls)
        _logger.warning('%s takes attn_implementation="attend" but never calls it: its attention is its own, and stays as '
                        "it is", cls.__name__)


def _check_model(original):
    def get_correct_attn_implementation(self, requested_attention, is_init_check=False):
        applicable = original(self, requested_attention, is_init_check)
        if applicable == "attend":
            _warn_if_never_called(self)
        return applicable
    return get_correct_attn_implementation


AttentionInterface.register("attend", forward)
AttentionMaskInterface.register("attend", mask)
# There is no hook for models that read the name; this method is where each of them checks it.
PreTrainedModel.get_correct_attn_implementation = _check_model(PreTrainedModel.get_correct_attn_implementation)
