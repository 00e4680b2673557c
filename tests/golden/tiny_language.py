"""What the goldens of tiny language models have in common (make_tiny_gpt2.py, make_tiny_llama.py)."""
import torch

from tiny_weights import numbers

SEQUENCES = [[1, 7, 9, 11, 3], [5], [2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 3]]
PROMPT, GREEDY = 5, 50
torch.set_num_threads(1)  # more of them wait for one another


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


def greedy(model, ids):
    """ids, the most probable tokens after them, and the smallest difference between the two largest logits, relative to
    the largest in absolute value"""
    margin = 1.0
    for _ in range(GREEDY):
        y = logits(model, ids)[-1]
        best = y.topk(2)
        margin = min(margin, float((best.values[0] - best.values[1]) / y.abs().max()))
        ids = ids + [int(best.indices[0])]
    return ids, margin


def lines(name, model):
    """The name; 20 logits for each token of each sequence; 5 tokens and 50 that are the most probable ones after them,
    with a margin that f32 does not decide otherwise: of 40 prompts that with the most different tokens"""
    out = [name]
    for ids in SEQUENCES:
        out += [" ".join(f"{float(x):.9g}" for x in row) for row in logits(model, ids)]
    prompts = [[(a + b * i) % 20 for i in range(PROMPT)] for a in range(10) for b in (1, 3, 7, 9)]
    tried = [greedy(model, p) for p in prompts]
    ids, margin = max((t for t in tried if t[1] > 1e-3), key=lambda t: len(set(t[0][PROMPT:])))
    print(f"{name}: {len(set(ids[PROMPT:]))} different tokens, margin {margin:.2g}")
    return out + [" ".join(map(str, ids)), f"{margin:.3g}"]
