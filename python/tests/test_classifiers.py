"""CrossEncoder against folders of tests/golden, whose scores transformers has computed in float64."""
import json
import pathlib
import pickle

import pytest

import attend

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/classifiers"


def cases(name):
    head, *rows = (json.loads(line) for line in (GOLDEN / name / "expected.jsonl").read_text("utf-8").splitlines())
    return head, rows


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.iterdir()))
def test_scores_are_those_of_transformers(name):
    head, rows = cases(name)
    model = attend.CrossEncoder(GOLDEN / name, max_length=head["max_tokens"])
    assert model.num_labels == head["labels"] == len(model.labels)
    pairs = [(row["text"], row["pair"]) for row in rows if row["pair"] is not None]
    alone = [(row["text"],) for row in rows if row["pair"] is None]
    found = iter([*map(tuple, _rows(model.predict(pairs))), *map(tuple, _rows(model.predict(alone)))])
    expected = [r["scores"] for r in rows if r["pair"] is not None] + [r["scores"] for r in rows if r["pair"] is None]
    for theirs in expected:
        assert all(abs(a - b) <= 8 * max(head["f32"], 1e-7) for a, b in zip(next(found), theirs))


def _rows(scores):
    return [row if isinstance(row, list) else [row] for row in scores.tolist()]


def test_rank():
    model = attend.CrossEncoder(GOLDEN / "bert")
    documents = ["the sea", "Wind blows", "", "metal that is liquid"]
    found = model.rank("in water", documents, return_documents=True)
    scores = model.predict([("in water", d) for d in documents]).tolist()
    assert [hit["corpus_id"] for hit in found] == sorted(range(4), key=lambda i: -scores[i])
    assert all(hit["score"] == scores[hit["corpus_id"]] and hit["text"] == documents[hit["corpus_id"]] for hit in found)
    assert model.rank("in water", documents, top_k=2) == [{k: h[k] for k in ("corpus_id", "score")} for h in found[:2]]
    assert model.predict(("in water", "the sea")) == scores[0]
    assert model.rank("in water", []) == [] and len(model.predict([])) == 0
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(("in water", "the sea")) == scores[0]


def test_activations():
    model = attend.CrossEncoder(GOLDEN / "roberta")
    plain = model.predict([("a", "b")]).tolist()[0]
    softmax = model.predict([("a", "b")], apply_softmax=True).tolist()[0]
    assert abs(sum(softmax) - 1) < 1e-6 and softmax.index(max(softmax)) == plain.index(max(plain))
    assert model.predict("ab").tolist() == model.predict([("ab",)]).tolist()
    assert model.predict([("a", "b")], activation_fn="identity").tolist()[0] == plain


@pytest.mark.parametrize("error, call", [
    (TypeError, lambda m: m.predict([("a", 5)])),
    (TypeError, lambda m: m.predict(["a", "b", "c"])),
    (TypeError, lambda m: m.predict([("a", "b"), ("c",)])),
    (ValueError, lambda m: m.predict([("a", "b")], activation_fn="none")),
    (ValueError, lambda m: m.rank("a", ["b"])),
    (ValueError, lambda m: attend.CrossEncoder(GOLDEN / "roberta", max_length=10**6).predict([("a", "b")])),
])
def test_what_is_refused(error, call):
    with pytest.raises(error):
        call(attend.CrossEncoder(GOLDEN / "roberta"))


def test_an_encoder_is_not_a_classifier():
    with pytest.raises(attend.Error):
        attend.CrossEncoder("all-MiniLM-L6-v2", local_files_only=True)
