"""BLEU and chrF: the numbers, texts and signatures of sacrebleu 2.6, from golden files, and from the package where it is."""
import json
import pathlib

import pytest

import attend
from attend import metrics

CASES = [json.loads(line) for line in open(pathlib.Path(__file__).resolve().parents[2] / "tests/golden/bleu.jsonl", encoding="utf-8")]
HYPOTHESES = ["The cat sat on the mat.", "He reads a long book about the sea.", "It rains today"]
LAST = 3e-14  # two units in the last place of 100: exp and log of another libm, and sum() of Python 3.12, differ by one
REFERENCES = [["The cat is sitting on the mat.", "He is reading a thick book about the sea.", "It is raining today."],
              ["A cat sat on a mat.", None, "Today it rains"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_scores_are_those_of_sacrebleu(case):
    for one in case["results"]:
        for effective, key in ((False, "bleu"), (True, "bleu_effective")):
            bleu = metrics.BLEU(tokenize=one["words"], effective_order=effective)
            found = bleu.corpus_score(case["translation"], case["references"])
            assert abs(found.score - one[key]) <= LAST and abs(found.bp - one["brevity"]) <= LAST
            if not effective:
                assert found.precisions == one["precision"]
        orders = [metrics.BLEU(tokenize=one["words"], max_ngram_order=n).corpus_score(case["translation"], case["references"]).score
                  for n in range(1, 5)]
        assert all(abs(a - b) <= LAST for a, b in zip(orders, one["bleu_of"]))
        assert metrics.CHRF().corpus_score(case["translation"], case["references"]).score == one["chrf"]


def test_texts():
    bleu = metrics.BLEU()
    found = bleu.corpus_score(HYPOTHESES, REFERENCES[:1])
    assert str(found) == repr(found) == "BLEU = 37.43 78.9/50.0/38.5/30.0 (BP = 0.810 ratio = 0.826 hyp_len = 19 ref_len = 23)"
    assert (found.counts, found.totals) == ([15, 8, 5, 3], [19, 16, 13, 10])
    version = f"version:attend-{attend.__version__}"
    assert str(bleu.get_signature()) == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|" + version
    assert found.format(width=4, score_only=True) == "37.4269" and found.format(signature="a:b").startswith("BLEU|a:b = 37.43 78.9")
    assert json.loads(found.format(is_json=True, signature="a:b"))["a"] == "b"
    chrf = metrics.CHRF(lowercase=True)
    assert str(chrf.corpus_score(HYPOTHESES, REFERENCES)).startswith("chrF2 = ")
    assert str(chrf.get_signature()) == "nrefs:var|case:lc|eff:yes|nc:6|nw:0|space:no|" + version
    assert attend.corpus_score(HYPOTHESES, REFERENCES[:1]).score == found.score == metrics.corpus_bleu(HYPOTHESES, REFERENCES[:1]).score
    assert bleu.sentence_score(HYPOTHESES[0], [REFERENCES[0][0]]).sys_len == 7


@pytest.mark.parametrize("error, match, call", [
    (ValueError, r"references\[0\]: 2 references for 3", lambda: attend.corpus_score(HYPOTHESES, [["a", "b"]])),
    (ValueError, "references: is empty", lambda: attend.corpus_score(HYPOTHESES, [])),
    (TypeError, "str is needed", lambda: attend.corpus_score([5], [["a"]])),
    (TypeError, "lists are needed", lambda: attend.corpus_score("a", [["a"]])),
    (ValueError, "metric: 'ter'", lambda: attend.corpus_score(["a"], [["a"]], metric="ter")),
    (ValueError, "tokenize: 'zh'", lambda: metrics.BLEU(tokenize="zh")),
    (ValueError, "trg_lang: 'ja'", lambda: metrics.BLEU(trg_lang="ja")),
    (ValueError, "smooth_method", lambda: metrics.BLEU(smooth_method="floor")),
    (ValueError, "word_order: 2", lambda: metrics.CHRF(word_order=2)),
    (ValueError, "n_bootstrap: 100", lambda: metrics.BLEU().corpus_score(["a"], [["a"]], n_bootstrap=100)),
    (ValueError, "number of references", lambda: metrics.BLEU().get_signature()),
])
def test_what_is_refused(error, match, call):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("references", [REFERENCES, REFERENCES[:1], [["", "x y", "It rains today"]]])
@pytest.mark.parametrize("lowercase", [False, True])
def test_against_sacrebleu(references, lowercase):
    peer = pytest.importorskip("sacrebleu", minversion="2.6")
    for name, options in (("BLEU", {}), ("BLEU", {"tokenize": "char", "max_ngram_order": 2}), ("CHRF", {})):
        ours, theirs = (getattr(module, name)(lowercase=lowercase, **options) for module in (metrics, peer))
        a, b = ours.corpus_score(HYPOTHESES, references), theirs.corpus_score(HYPOTHESES, references)
        assert abs(a.score - b.score) <= LAST and str(a) == str(b)
        for short in (False, True):
            assert ours.get_signature().format(short).rsplit(":", 1)[0] == theirs.get_signature().format(short).rsplit(":", 1)[0]
        signature = str(theirs.get_signature())
        assert json.loads(a.format(is_json=True, signature=signature)) == json.loads(b.format(is_json=True, signature=signature))
        assert a.format(signature=signature) == b.format(signature=signature)
