"""What attn_implementation="attend" changes against "sdpa": time inside attention calls, and of whole steps; and what a call
of the operator costs. Run by a Python with torch and transformers, with the package in PYTHONPATH: bench/accept/g2 does.

Models have random numbers and few layers, as each layer takes the same time. Both sides get the same operands in turn, with
torch's default threads; a figure is the middle one of the rounds' ratios, and above 1 attend is faster."""
import argparse
import json
import statistics
import sys
import time

import attend.torch
import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

SIDES = "attend", "sdpa"


def seconds(call, least):
    """The time of one call, of as many as take a while"""
    call()
    n, start = 0, time.perf_counter()
    while n < 1 or time.perf_counter() - start < least:
        call()
        n += 1
    return (time.perf_counter() - start) / n


def compare(rounds, calls):
    """calls: {side: function}. The middle ratio, and the best time of each side in ms"""
    times = {side: [] for side in SIDES}
    for i in range(rounds):
        for side in SIDES if i % 2 else reversed(SIDES):
            times[side].append(seconds(calls[side], 0.1))
    ratio = statistics.median(b / a for a, b in zip(times["attend"], times["sdpa"]))
    return {"ratio": round(ratio, 3), **{side: round(1e3 * min(times[side]), 4) for side in SIDES}}


def show(**figure):
    print(json.dumps(figure), flush=True)


def captured(model, inputs):
    """Of one pass the arguments of each side's first attention call: (function, module, arguments, options)"""
    calls = {}
    for side in SIDES:
        function = ALL_ATTENTION_FUNCTIONS[side]

        def capture(module, *args, side=side, function=function, **options):
            calls.setdefault(side, (function, module, args, options))
            return function(module, *args, **options)

        ALL_ATTENTION_FUNCTIONS[side] = capture
        model.set_attn_implementation(side)
        with torch.no_grad():
            model(**inputs)
        ALL_ATTENTION_FUNCTIONS[side] = function
    return calls


def forward_call(function, module, args, options):
    def call():
        with torch.no_grad():
            function(module, *args, **options)
    return call


def training_call(function, module, args, options):
    operands = [x.detach().requires_grad_() for x in args[:3]]
    ones = torch.ones_like(function(module, *operands, *args[3:], **options)[0])

    def call():
        torch.autograd.grad(function(module, *operands, *args[3:], **options)[0], operands, ones)
    return call


def step_call(model, inputs, side, training):
    def forward():
        model.set_attn_implementation(side)
        with torch.no_grad():
            model(**inputs)

    def train():
        model.set_attn_implementation(side)
        model(**inputs)[0].square().mean().backward()
        model.zero_grad()
    return train if training else forward


def measure(name, model, inputs, rounds):
    calls = captured(model, inputs)
    for what, make in (("forward", forward_call), ("training", training_call)):
        show(name=name, what="attention, " + what, **compare(rounds, {side: make(*calls[side]) for side in SIDES}))
    for what in ("forward", "training"):
        found = compare(rounds, {side: step_call(model, inputs, side, what == "training") for side in SIDES})
        show(name=name, what="step, " + what, **found)


def bert(rounds):
    model = BertModel(BertConfig(num_hidden_layers=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    ids = torch.randint(1000, 2000, (8, 128))
    measure("BERT-base 8 x 128", model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, rounds)
    lengths = torch.tensor([128, 112, 96, 80, 64, 48, 32, 16])
    keep = (torch.arange(128) < lengths[:, None]).long()
    measure("BERT-base 8 x 128, padded", model, {"input_ids": ids, "attention_mask": keep}, rounds)


def llama(rounds):
    config = LlamaConfig(vocab_size=1000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=1,
                         num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048)
    model, ids = LlamaForCausalLM(config).eval(), torch.randint(1000, (1, 1024))
    measure("Llama 1 x 1,024", model, {"input_ids": ids, "use_cache": False}, rounds)
    caches = {}
    with torch.inference_mode():
        for side in SIDES:
            model.set_attn_implementation(side)
            caches[side] = model(input_ids=ids, use_cache=True).past_key_values

        def decode(side):
            model.set_attn_implementation(side)
            for i in range(16):
                model(input_ids=ids[:, i:i + 1], past_key_values=caches[side])
            caches[side].crop(-16)

        found = compare(2 * rounds, {side: lambda side=side: decode(side) for side in SIDES})
        show(name="Llama 1 x 1,024", what="decoding of 16 tokens", **found)


def overhead(rounds):
    """Of one call, in us: the least of many short runs, as others disturb some"""
    q = torch.randn(1, 1, 16, 64)
    args = (q, q, q, None, None, None, None, False, 0, -1, -1, 0.0, 0.0, 0.0)
    calls = {"operator": lambda: attend.torch.attention(*args),
             "scaled_dot_product_attention": lambda: attend.torch.scaled_dot_product_attention(q, q, q),
             "torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)}
    with torch.no_grad():
        found = {name: round(1e6 * min(seconds(call, 0.001) for _ in range(100 * rounds)), 2) for name, call in calls.items()}
    show(name="one call on [1, 1, 16, 64], us", what="overhead", **found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(1)
    for part in (overhead, bert, llama):
        part(args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
