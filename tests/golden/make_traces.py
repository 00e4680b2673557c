#!/usr/bin/env python3
"""Writes traces.txt: attention weights, hidden states and logits of the tiny BERT of make_tiny_bert.py and of the folder
tiny_llama, by transformers in float64. Each line is a name and numbers:

    MODEL.CASE.attention.LAYER   [heads, tokens, tokens]
    MODEL.CASE.hidden.LAYER      [tokens, hidden]: 0 are the embeddings
    llama.CASE.logits.LAYER      [tokens, vocabulary]: of the hidden states of that layer, the logit lens

The cases: plain; hide: two tokens that none attends to; zero: a head whose columns of the output projection are 0.

    python3 make_traces.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import pathlib

import torch
from transformers import AutoModelForCausalLM

from make_tiny_bert import tiny

FOLDER = pathlib.Path(__file__).parent
BERT, LLAMA = [2, 7, 9, 11, 3], [1, 7, 9, 11, 3, 0]
HIDE = [1, 3]  # tokens
HEAD = 1, 2  # layer and head
torch.set_num_threads(1)


def line(name, x):
    return name + " " + " ".join(f"{float(v):.9g}" for v in x.detach().flatten())


def run(name, model, ids, hide):
    """Lines of a pass, and its hidden states"""
    shown = torch.tensor([[0 if i in hide else 1 for i in range(len(ids))]])
    y = model(torch.tensor([ids]), attention_mask=shown, output_attentions=True, output_hidden_states=True)
    return [line(f"{name}.attention.{i}", x[0]) for i, x in enumerate(y.attentions)], y


def without_head(weight):
    """The output projection of a layer whose head has no effect; the same with it"""
    columns = weight.shape[1] // HEADS[weight.shape[0]]
    before = weight.detach().clone()
    with torch.no_grad():
        weight[:, HEAD[1] * columns : (HEAD[1] + 1) * columns] = 0
    return before


def cases(projection):
    yield "plain", []
    yield "hide", HIDE
    before = without_head(projection)
    yield "zero", []
    with torch.no_grad():
        projection.copy_(before)


HEADS = {}  # of a model, by its hidden size


def main():
    out = []
    bert = tiny("gelu").double()
    bert.set_attn_implementation("eager")
    HEADS[bert.config.hidden_size] = bert.config.num_attention_heads
    for case, hide in cases(bert.encoder.layer[HEAD[0]].attention.output.dense.weight):
        lines, y = run(f"bert.{case}", bert, BERT, hide)
        out += lines + [line(f"bert.{case}.hidden.{i}", x) for i, x in enumerate(y.hidden_states)]
    llama = AutoModelForCausalLM.from_pretrained(FOLDER / "tiny_llama", attn_implementation="eager", dtype=torch.float64)
    HEADS[llama.config.hidden_size] = llama.config.num_attention_heads
    for case, hide in cases(llama.model.layers[HEAD[0]].self_attn.o_proj.weight):
        lines, y = run(f"llama.{case}", llama, LLAMA, hide)
        *states, last = y.hidden_states  # the last one is after the final norm
        out += lines + [line(f"llama.{case}.hidden.{i}", x) for i, x in enumerate(states)]
        logits = [llama.lm_head(llama.model.norm(x)) for x in states] + [llama.lm_head(last)]
        assert torch.equal(logits[-1], y.logits)
        out += [line(f"llama.{case}.logits.{i}", x) for i, x in enumerate(logits)]
    (FOLDER / "traces.txt").write_text("\n".join(out) + "\n")


main()
