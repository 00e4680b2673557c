#!/usr/bin/env python3
"""Writes translator_trace.txt: what transformers makes in fp64 of the first tiny model of make_tiny_marian.py, of its
first source and target: attention weights of all layers and heads, encoder.0.2 (layer, head), decoder..., cross...,
hidden states of all layers, encoder.hidden.0, ..., and the logits; weights of the last cross-attention and logits once
more where nothing attends to the second source token, hide..., and logits where the last head of the second
cross-attention makes zeros, zero.logits. A line is a name and its numbers.

    python3 make_translator_trace.py

Made with transformers 5.23.0, torch 2.15.0 on a CPU.
"""
import pathlib

import torch

from make_tiny_marian import MODELS, SOURCES, TARGETS, make_model

lines = []


def store(name, values):
    lines.append(f"{name} {' '.join(f'{float(v):.8g}' for v in values.flatten())}\n")


def heads(name, layers):
    for layer, weights in layers:
        for head, rows in enumerate(weights[0]):
            store(f"{name}.{layer}.{head}", rows)


def main():
    config, model = make_model(*MODELS[0])
    model.double().set_attn_implementation("eager")
    source = torch.tensor(SOURCES[:1])
    before = torch.tensor([[config["decoder_start_token_id"], *TARGETS[0]]])

    def apply(mask=None):
        with torch.no_grad():
            return model(source, attention_mask=mask, decoder_input_ids=before, output_attentions=True,
                         output_hidden_states=True)

    y = apply()
    for side in "encoder", "decoder", "cross":
        heads(side, enumerate(y[f"{side}_attentions"]))
    for side in "encoder", "decoder":
        for layer, states in enumerate(y[f"{side}_hidden_states"]):
            store(f"{side}.hidden.{layer}", states)
    store("logits", y.logits)
    hidden = apply(torch.tensor([[1, 0] + [1] * (len(SOURCES[0]) - 2)]))
    heads("hide.cross", list(enumerate(hidden.cross_attentions))[-1:])
    store("hide.logits", hidden.logits)
    cross = model.model.decoder.layers[1].encoder_attn
    with torch.no_grad():
        cross.out_proj.weight[:, -cross.head_dim:] = 0
    store("zero.logits", apply().logits)
    (pathlib.Path(__file__).parent / "translator_trace.txt").write_text("".join(lines))


main()
