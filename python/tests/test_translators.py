"""Translator: texts, tokens as ctranslate2 has them, attention; with the model that comes with attend."""
import inspect
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess

import pytest

import attend
from attend import translator

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "models/tatoeba-de-en"
TEXTS = ["Wo ist der Bahnhof?", "Das Wetter ist heute sehr schön.", "", "Ich weiß nicht."]


@pytest.fixture(scope="module")
def model():
    return attend.Translator(FOLDER)


@pytest.fixture(scope="module")
def tokens(model):
    return [model.tokenizer.encode(text).tokens for text in TEXTS]


def test_translations_do_not_depend_on_the_batch(model):
    together = model.translate(TEXTS, return_scores=True)
    assert together[0] == "Where is the station?" and together[2] == "" and model.translate([]) == []
    for text, found in zip(TEXTS, together):
        alone = model.translate(text, return_scores=True)
        assert (alone, alone.ids, alone.score) == (found, found.ids, found.score)
        assert model.translate(text).score is None
    assert model.translate(iter(TEXTS)) == together


def test_translations_are_those_of_the_tool(model):
    tool = os.environ.get("ATTEND_TOOL") or shutil.which("attend")
    if not tool:
        pytest.skip("ATTEND_TOOL names no tool")
    printed = subprocess.run([tool, "translate", "-m", FOLDER, "--beam", "4", "--nbest", "3", "--json"], input="\n".join(TEXTS[:2]), text=True,
                             capture_output=True, check=True).stdout
    theirs = [[t["text"] for t in json.loads(line)["translations"]] for line in printed.splitlines()]
    assert theirs == model.translate(TEXTS[:2], num_hypotheses=3)


def test_options_of_translate(model):
    three = model.translate(TEXTS[0], beam_size=4, num_hypotheses=3, return_scores=True)
    assert len(set(three)) == 3 and three[0].score >= three[1].score >= three[2].score
    assert len(model.translate(TEXTS[1], max_length=4).ids) == 3  # and the end
    long = " ".join(TEXTS[:2] * 80)
    with pytest.raises(ValueError, match="positions|tokens"):
        model.translate(long)
    assert model.translate(long, split=True, beam_size=1).count("weather") > 1
    shares = []
    model.translate(TEXTS, progress=shares.append)
    assert shares[-1] == 1 and shares == sorted(shares)
    assert pickle.loads(pickle.dumps(three[0])).score == three[0].score


def test_lists_of_tokens(model, tokens):
    found = model.translate_batch(tokens, beam_size=1, return_scores=True, return_attention=True)
    assert found[0].hypotheses == [["▁Where", "▁is", "▁the", "▁station", "?"]]
    assert [len(row) for row in found[0].attention[0]] == [len(tokens[0])] * 5
    assert all(abs(sum(row) - 1) < 1e-5 for one in found for row in one.attention[0])
    assert (found[2].hypotheses, found[2].scores, found[2].attention) == ([[]], [0.0], [[]])
    plain = model.translate_batch(tokens, beam_size=1)
    assert [one.hypotheses for one in plain] == [one.hypotheses for one in found] and plain[0].scores == plain[0].attention == []
    [ended] = model.translate_batch(tokens[:1], return_end_token=True)
    assert ended.hypotheses == [found[0].hypotheses[0] + ["</s>"]]
    [forced] = model.translate_batch(tokens[:1], [["▁At"]])
    assert forced.hypotheses[0][0] == "▁At"
    assert model.translate_batch([["no-such-token", "</s>"]])[0].hypotheses == model.translate_batch([["<unk>", "</s>"]])[0].hypotheses


# Of ctranslate2 4.8.5 with the converted model, float32; TEXTS without the empty one, each alone
PEER = [
    ({"beam_size": 1}, [-0.2279367, -0.1555901, -0.0861846]),
    ({"beam_size": 2}, [-0.2279367, -0.1555901, -0.0861846]),
    ({"beam_size": 1, "max_decoding_length": 3}, None),
    ({"beam_size": 1, "min_decoding_length": 9}, None),
    ({"beam_size": 2, "length_penalty": 0.5}, None),
    ({"beam_size": 1, "max_input_length": 4}, None),
    ({"beam_size": 2, "return_end_token": True}, None),
    ({"beam_size": 2, "target_prefix": [["▁It"]]}, None),
]


@pytest.mark.parametrize("options, scores", PEER[:2])
def test_scores_of_ctranslate2(model, tokens, options, scores):
    found = [model.translate_batch([t], return_scores=True, **options)[0].scores[0] for t in tokens if len(t) > 1]
    assert all(abs(a - b) < 2e-6 for a, b in zip(found, scores))


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    ctranslate2 = pytest.importorskip("ctranslate2")
    pytest.importorskip("sentencepiece")
    converters = pytest.importorskip("ctranslate2.converters")
    pytest.importorskip("transformers")
    folder = str(tmp_path_factory.mktemp("ctranslate2") / "model")
    converters.TransformersConverter(str(FOLDER)).convert(folder)
    return ctranslate2.Translator(folder, compute_type="float32", intra_threads=1)


@pytest.mark.parametrize("options", [options for options, _ in PEER])
def test_against_ctranslate2(model, tokens, peer, options):
    """One at a time: in a batch, ctranslate2 4.8 gives attention of other sentences after one has ended."""
    for one in tokens:
        ours, theirs = (m.translate_batch([one], return_scores=True, return_attention=True, **options)[0] for m in (model, peer))
        assert ours.hypotheses == theirs.hypotheses
        assert all(abs(a - b) < 1e-5 for a, b in zip(ours.scores, theirs.scores))
        assert [len(a) for a in ours.attention] == [len(a) for a in theirs.attention]
        assert all(abs(x - y) < 1e-5 for a, b in zip(ours.attention, theirs.attention) for p, q in zip(a, b) for x, y in zip(p, q))


@pytest.mark.parametrize("error, match, options", [
    (ValueError, "patience", {"patience": 2}), (ValueError, "callback", {"callback": print}), (TypeError, "nothing", {"nothing": 1}),
    (ValueError, "sampling_topk", {"sampling_topk": 10}), (ValueError, "beam_size: 0", {"beam_size": 0}),
    (ValueError, "num_hypotheses: 3", {"num_hypotheses": 3}), (ValueError, "2 prefixes for 1", {"target_prefix": [["▁a"], ["▁b"]]}),
    (ValueError, "max_decoding_length", {"max_decoding_length": 0}), (TypeError, "lists of tokens", {"source": ["Ja."]}),
])
def test_what_is_refused(model, error, match, options):
    with pytest.raises(error, match=match):
        model.translate_batch(**{"source": [["▁Ja", ".", "</s>"]], **options})


def test_arguments_of_ctranslate2(model, tokens):
    assert model.translate_batch(tokens, max_batch_size=2, batch_type="tokens", sampling_topp=0.5, patience=1)[0].hypotheses
    ctranslate2 = pytest.importorskip("ctranslate2")
    signature = ctranslate2.Translator.translate_batch.__doc__.split(" -> ")[0]
    theirs = set(re.findall(r"[(,] (\w+): ", signature.replace("(self", "( self")))
    ours = set(inspect.signature(attend.Translator.translate_batch).parameters) - {"others"}
    assert len(theirs) > 25 and theirs - ours == translator._ONLY.keys() | translator._NO_EFFECT


def test_attention(model):
    found = model.attention(TEXTS[0])
    assert found.tokens[-1] == "</s>" and found.queries == ["▁Where", "▁is", "▁the", "▁station", "?", "</s>"]
    assert found.weights.shape == (6, len(found.tokens)) and found._repr_html_().count("<rect") == 1 + 6 * len(found.tokens)
    heads = [model.attention(TEXTS[0], "Where is the station?", head=h).weights.tolist()[0][1] for h in range(4)]
    assert abs(found.weights.tolist()[0][1] - sum(heads) / 4) < 1e-6
    for bad in ({"layer": 3}, {"head": 4}):
        with pytest.raises(ValueError):
            model.attention(TEXTS[0], **bad)


def test_pickles_open_the_same_model(model):
    again = pickle.loads(pickle.dumps(attend.Translator(FOLDER, dtype="bfloat16")))
    assert again._types == {"dtype": "bfloat16", "compute": None} and again.translate(TEXTS[0]) == model.translate(TEXTS[0])
    target = pickle.loads(pickle.dumps(model.target_tokenizer))
    assert target.encode("Where is the station?").tokens == ["▁Where", "▁is", "▁the", "▁station", "?", "</s>"]
