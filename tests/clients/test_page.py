"""The page at "/": its script, run by node with as much of a browser as it needs."""
import json
import pathlib
import shutil
import subprocess

import pytest

from conftest import CHAT, ROOT, SENTENCE

if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

PAGE = pathlib.Path(__file__).with_name("page.js")
SHOE = str(ROOT / "models/fashion-mnist/examples/sneaker.png")


def use(server, key, orders):
    """Types these texts into the boxes of models. Returns what the page shows, by model, and the routes it asked."""
    done = subprocess.run(["node", str(PAGE), server.url, key, json.dumps(orders)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return result["shown"], result["requests"]


def test_each_kind_of_model_has_a_box(small):
    shown, requests = use(small, "", {
        "tatoeba-de-en": "Kannst du mir helfen?", "fashion-mnist": {"file": SHOE}, "flickr8k-captions": {"file": SHOE},
        "bert": "a b\na b c\nx", "distilbert": "a b", "tiny_llama": "ab"})
    assert shown["external"] == 0 and shown["page"] == ""
    assert all(shown[m][0] == "" and shown[m][1] for m in shown if isinstance(shown[m], list)), shown
    assert "help" in shown["tatoeba-de-en"][1] and "Sneaker" in shown["fashion-mnist"][1]
    assert shown["bert"][1].count("\n") == 1 and shown["tiny_llama"][1].startswith("ab")
    assert requests == ["/v1/models", "/translate", "/classify", "/caption", "/rerank", "/classify", "/v1/completions"]


def test_sentences_and_conversations(texts):
    shown, _ = use(texts, "", {SENTENCE: "A cat sleeps.", CHAT: "What is the capital of France?"})
    assert shown[SENTENCE][1].startswith("384 numbers: ") and "Paris" in shown[CHAT][1]
    shown, _ = use(texts, "", {SENTENCE: "A cat sleeps.\nA kitten naps.\nStocks fell."})
    assert [line[8:] for line in shown[SENTENCE][1].split("\n")] == ["A kitten naps.", "Stocks fell."]


def test_errors_are_shown(small, locked):
    assert "a key is needed" in use(locked, "", {})[0]["page"]
    assert "Hello" in use(locked, "secret", {"tatoeba-de-en": "Hallo!"})[0]["tatoeba-de-en"][1]
    shown, _ = use(small, "", {"fashion-mnist": {"file": ""}, "bert": "only a query", "flickr8k-captions": {"file": str(PAGE)}})
    assert all(shown[m][0] == "error" and len(shown[m][1]) > 10 for m in ("fashion-mnist", "bert", "flickr8k-captions"))
