"""What the goldens of tiny language models have in common (make_tiny_gpt2.py, make_tiny_llama.py)."""
import torch

from tiny_weights import numbers

SEQUENCES = [[1, 7, 9, 11, 3], [5], [2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 3]]
GREEDY = 50


def set_weights(model, without=""):
    """Weights by their names in the file, less a prefix"""
    names = {k: v for k, v in model.state_dict().items() if v.is_floating_point()}
    if model.config.tie_word_embeddings:
        names.pop("lm_head.weight", None)
    values = {k: numbers(k.removeprefix(without), v.shape).double() for k, v in names.items()}
    missing = model.load_state_dict(values, strict=False)
    assert set(missing.missing_keys) <= {"lm_head.weight"}, missing
    model.tie_weights()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def lines(name, model):
    """The name; 20 logits for each token of each sequence; the tokens after the first sequence, the most probable one
    each time, and the smallest difference between the two largest logits, relative to the largest in absolute value"""
    out = [name]
    for ids in SEQUENCES:
        out += [" ".join(f"{float(x):.9g}" for x in row) for row in logits(model, ids)]
    ids, margin = list(SEQUENCES[0]), 1.0
    for _ in range(GREEDY):
        y = logits(model, ids)[-1]
        best = y.topk(2)
        margin = min(margin, float((best.values[0] - best.values[1]) / y.abs().max()))
        ids.append(int(best.indices[0]))
    new = ids[-GREEDY:]
    print(f"{name}: {len(set(new))} different tokens, margin {margin:.2g}")
    assert margin > 1e-3, "float32 may decide otherwise"
    return out + [" ".join(map(str, new)), f"{margin:.3g}"]
