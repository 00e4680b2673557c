"""attn_implementation="attend" of transformers, compared with "sdpa": ./dev python --torch runs it."""
import copy
import logging
import pathlib
import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: ./dev python --torch installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: ./dev python --torch installs it")

import attend
import attend._transformers
import attend.torch
from attend._transformers import Pattern

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXT = {"vocab_size": 60, "max_position_embeddings": 64, **SIZES}
DECODER = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MARIAN = {"vocab_size": 60, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
          "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0, "forced_eos_token_id": 2, "dropout": 0.0,
          "attention_dropout": 0.0}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MODELS = {
    "bert": ("BertModel", "BertConfig", {**TEXT, **NO_DROPOUT}),
    "modernbert": ("ModernBertModel", "ModernBertConfig",
                   {**TEXT, "num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0, "embedding_dropout": 0.0,
                    "attention_dropout": 0.0, "mlp_dropout": 0.0}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", DECODER),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**DECODER, "sliding_window": 6}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                                              "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "pad_token_id": 0,
                                              "bos_token_id": 1, "eos_token_id": 2}),
    "marian": ("MarianMTModel", "MarianConfig", MARIAN),
    "vit": ("ViTModel", "ViTConfig", {**SIZES, **NO_DROPOUT, "image_size": 16, "patch_size": 4}),
}


def pair(name):
    """A model with random numbers by attend and by sdpa"""
    model, config, values = MODELS[name]
    torch.manual_seed(1)
    config = getattr(transformers, config)(**values)
    config._attn_implementation = "sdpa"
    theirs = getattr(transformers, model)(config).eval()
    ours = copy.deepcopy(theirs)
    ours.set_attn_implementation("attend")
    assert ours.config._attn_implementation == "attend" and theirs.config._attn_implementation == "sdpa"
    return ours, theirs


def text(padding=None, rows=3, length=14):
    ids = torch.randint(3, 60, (rows, length), generator=torch.Generator().manual_seed(2))
    keep = torch.ones_like(ids)
    for row, n in enumerate((0, 5, 9)):
        if padding == "right" and n:
            keep[row, -n:] = 0
        elif padding == "left":
            keep[row, :n] = 0
        elif padding == "holes" and n:
            keep[row, 2:n:2] = 0
    return {"input_ids": ids * keep, **({"attention_mask": keep} if padding else {})}


def inputs_of(name, padding):
    if name == "vit":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(3))}
    inputs = text(padding)
    if name == "marian":
        inputs["decoder_input_ids"] = text(length=9)["input_ids"]
    return inputs


def first_tensor(output):
    return output.logits if "logits" in output else output.last_hidden_state


CASES = [(name, padding) for name in MODELS for padding in (None, "right", "left", "holes") if name != "vit" or not padding]


@pytest.mark.parametrize("name, padding", CASES)
def test_forward_and_training_step_are_those_of_sdpa(name, padding, monkeypatch):
    ours, theirs = pair(name)
    inputs = inputs_of(name, padding)
    calls = []
    monkeypatch.setattr(attend._transformers, "attention", lambda *args: calls.append(1) or attend.torch.attention(*args))
    outputs = []
    for model in (ours, theirs):
        out = first_tensor(model(**inputs))
        out.float().square().mean().backward()
        torch.optim.SGD(model.parameters(), 0.5).step()
        outputs.append([out.detach(), *(p.detach() for p in model.parameters())])
    assert calls
    for a, b in zip(*outputs):
        assert torch.allclose(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "marian"])
@pytest.mark.parametrize("padding", [None, "left"])
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"cache_implementation": "static"}], ids=["greedy", "beams", "static"])
def test_generation_is_that_of_sdpa(name, padding, options):
    if "cache_implementation" in options:
        if name in ("gpt2", "marian"):
            pytest.skip("another kind of cache")
        options = {**options, "disable_compile": True}
    ours, theirs = pair(name)
    inputs = text("right" if padding and name == "marian" else padding)
    results = [model.generate(**inputs, max_new_tokens=8, do_sample=False, output_scores=True,
                              return_dict_in_generate=True, **options) for model in (ours, theirs)]
    assert torch.equal(results[0].sequences, results[1].sequences)
    for a, b in zip(results[0].scores, results[1].scores):
        assert torch.allclose(a, b, atol=1e-5, rtol=1e-5)


def test_a_prompt_in_two_parts():
    """Queries that begin after keys of a cache"""
    ours, theirs = pair("llama")
    for padding in (None, "left"):
        inputs, logits = text(padding), []
        for model in (ours, theirs):
            mask = inputs.get("attention_mask")
            first = model(inputs["input_ids"][:, :9], attention_mask=None if mask is None else mask[:, :9], use_cache=True)
            second = model(inputs["input_ids"][:, 9:], attention_mask=mask, past_key_values=first.past_key_values)
            logits.append(second.logits)
        assert torch.allclose(*logits, atol=1e-5, rtol=1e-5)


def test_bfloat16():
    ours, theirs = (model.bfloat16() for model in pair("llama"))
    a, b = (model(**text("left")).logits.float() for model in (ours, theirs))
    assert (a - b).abs().max() <= 0.02 * b.abs().max()


def test_dropout_of_a_model_in_training():
    config = transformers.BertConfig(**TEXT, attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.0)
    config._attn_implementation = "attend"
    model = transformers.BertModel(config).train()
    a, b = (model(**text("right")).last_hidden_state for _ in range(2))
    a.sum().backward()
    assert not torch.equal(a, b)


# ---- masks

def mask_of(**options):
    return attend._transformers.mask(batch_size=2, q_length=5, kv_length=5, **options)


def test_masks_say_what_they_are():
    from transformers import masking_utils as m
    right, left = torch.tensor([[1, 1, 1, 0, 0], [1] * 5]).bool(), torch.tensor([[0, 0, 1, 1, 1], [1] * 5]).bool()
    assert mask_of() is None
    p = mask_of(attention_mask=right)
    assert type(p) is Pattern and p.causal and p.lengths.tolist() == [3, 5] and p.keys is None
    p = mask_of(attention_mask=left, mask_function=m.bidirectional_mask_function)
    assert not p.causal and p.lengths is None and p.keys.shape == (2, 1, 1, 5)
    p = mask_of(mask_function=m.sliding_window_causal_mask_function(3), local_size=3)
    assert (p.causal, p.before, p.after) == (True, 2, -1)
    p = mask_of(mask_function=m.sliding_window_bidirectional_mask_function(2), local_size=2)
    assert (p.causal, p.before, p.after) == (False, 2, 2)
    assert mask_of(mask_function=m.sliding_window_causal_mask_function(8), local_size=8) is None
    assert type(mask_of(mask_function=m.chunked_causal_mask_function(3, torch.zeros(2, dtype=int)), local_size=3)) is torch.Tensor


def test_any_operation_on_a_mask_sees_its_booleans():
    from transformers import masking_utils as m
    keep = torch.tensor([[0, 1, 1, 1, 0], [1] * 5]).bool()
    options = {"attention_mask": keep, "mask_function": m.sliding_window_causal_mask_function(3), "local_size": 3}
    p, dense = mask_of(**options), m.sdpa_mask(batch_size=2, q_length=5, kv_length=5, **options)
    assert type(p) is Pattern and isinstance(p, torch.Tensor) and p.shape == dense.shape and p.dtype == torch.bool
    for changed in (p & True, p[:, :, :, :5], p.clone(), p.to("cpu").detach(), torch.where(p, True, False)):
        assert type(changed) is torch.Tensor and torch.equal(changed, dense)
    assert torch.equal(p[:, :, 1:3], dense[:, :, 1:3])


# ---- what is refused, and what is said

def test_a_model_that_never_calls_it_is_warned_of_once(caplog):
    config = transformers.MPNetConfig(**TEXT)
    with caplog.at_level(logging.WARNING, "attend"):
        for _ in range(2):
            transformers.AutoModel.from_config(config, attn_implementation="attend")
    said = [r.getMessage() for r in caplog.records if r.name == "attend"]
    assert len(said) == 1 and said[0].startswith('MPNetModel takes attn_implementation="attend" but never calls it')
    with caplog.at_level(logging.WARNING, "attend"):
        transformers.AutoModel.from_config(transformers.BertConfig(**TEXT), attn_implementation="attend")
    assert len([r for r in caplog.records if r.name == "attend"]) == 1


def test_what_attention_does_not_know_is_an_error():
    q = torch.randn(1, 2, 3, 8)
    with pytest.raises(NotImplementedError, match="`s_aux`"):
        attend._transformers.forward(None, q, q, q, None, is_causal=False, s_aux=torch.zeros(2))
    with pytest.raises(TypeError, match="float64"):
        attend._transformers.forward(None, q.double(), q.double(), q.double(), None, is_causal=False)


def test_softcap_is_that_of_eager():
    config = transformers.Gemma2Config(**{**DECODER, "head_dim": 8, "attn_logit_softcapping": 0.5})
    config._attn_implementation = "eager"
    torch.manual_seed(1)
    theirs = transformers.Gemma2ForCausalLM(config).eval()
    ours = copy.deepcopy(theirs)
    ours.set_attn_implementation("attend")
    a, b = (model(**text()).logits for model in (ours, theirs))
    assert torch.allclose(a, b, atol=1e-5, rtol=1e-5)


def test_position_bias_is_that_of_sdpa():
    config = transformers.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0,
                                   decoder_start_token_id=0)
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    theirs = transformers.T5ForConditionalGeneration(config)
    ours = copy.deepcopy(theirs)
    ours.set_attn_implementation("attend")
    results = []
    for model in (ours, theirs):
        logits = model(**text("right"), decoder_input_ids=text(length=9)["input_ids"]).logits
        logits.square().mean().backward()
        results.append([logits, *(p.grad for p in model.parameters())])
    assert all(torch.allclose(a, b, atol=1e-5, rtol=1e-4) for a, b in zip(*results))


def test_a_published_model():
    try:
        folder = attend.find_model("all-MiniLM-L6-v2")
    except attend.Error:
        pytest.skip("all-MiniLM-L6-v2 is not there: `attend fetch all-MiniLM-L6-v2`")
    ours, theirs = (transformers.AutoModel.from_pretrained(folder, attn_implementation=name) for name in ("attend", "sdpa"))
    inputs = text("right")
    assert torch.allclose(ours(**inputs).last_hidden_state, theirs(**inputs).last_hidden_state, atol=1e-5, rtol=1e-5)


PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/PYTHON.md"


@pytest.mark.parametrize("block, printed", re.findall(r"```python torch\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE.read_text(), re.DOTALL))
def test_the_page_shows_what_is_printed(block, printed, capsys):
    exec(block, {})
    assert capsys.readouterr().out.split() == (printed or " ".join(re.findall(r"print.*# (.*)", block))).split()
