"""curl: JSON, forms with files, errors, and what the documents have it do."""
import base64
import json
import shutil
import subprocess

import pytest

from conftest import ROOT

if not shutil.which("curl"):
    pytest.skip("curl is not installed", allow_module_level=True)

SHOE = ROOT / "models/fashion-mnist/examples/sneaker.png"
PHOTO = ROOT / "models/flickr8k-captions/examples/astronaut.png"


def curl(*arguments):
    """Returns the status and the answer."""
    out = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", *map(str, arguments)], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    body, status = out.stdout.rsplit("\n", 1)
    return int(status), json.loads(body)


def test_images_of_forms_and_of_json_have_the_same_labels(small):
    status, form = curl(small.url + "/classify", "-F", f"image=@{SHOE}", "-F", "top_k=2")
    assert status == 200 and form["data"][0][0]["label"] == "Sneaker" and len(form["data"][0]) == 2
    text = base64.b64encode(SHOE.read_bytes()).decode()
    assert curl(small.url + "/classify", "-d", json.dumps({"image": text, "top_k": 2})) == (200, form)
    assert curl(small.url + "/classify", "-d", json.dumps({"image": ["data:image/png;base64," + text], "top_k": 2})) == \
        (200, form)


def test_captions(small):
    status, a = curl(small.url + "/caption", "-F", f"image=@{PHOTO}", "-F", f"image=@{SHOE}", "-F", "n=2")
    assert status == 200 and [len(d["captions"]) for d in a["data"]] == [2, 2]
    assert a["data"][0]["caption"] == a["data"][0]["captions"][0]["text"]
    status, a = curl(small.url + "/caption", "-F", "image=no image")
    assert status == 400 and "image" in a["error"]["message"]


def test_labels_of_texts(small):
    status, a = curl(small.url + "/classify", "-d", '{"model": "distilbert", "input": ["a b", "c"], "top_k": 1}')
    assert status == 200 and len(a["data"]) == 2 and a["usage"]["truncated"] == 0


def test_texts_and_tokens(small):
    status, tokens = curl(small.url + "/tokenize", "-d", '{"model": "bert", "inputs": "a b"}')
    assert status == 200
    ids = [t["id"] for t in tokens[0]]
    assert curl(small.url + "/decode", "-d", json.dumps({"model": "bert", "ids": ids})) == (200, ["a b"])


def test_reranking_as_tei_s(small):
    status, a = curl(small.url + "/rerank", "-d", '{"query": "a", "texts": ["a b", "x"], "return_text": true}')
    assert status == 200 and {r["text"] for r in a} == {"a b", "x"} and a[0]["score"] >= a[1]["score"]


@pytest.mark.parametrize("status, arguments", [
    (400, ["/classify", "-d", "{"]), (400, ["/classify", "-d", "[1]"]), (400, ["/classify", "-d", '{"input": 1}']),
    (404, ["/no/such/path"]), (405, ["/classify"]), (405, ["/v1/models", "-X", "DELETE"]),
    (404, ["/classify", "-d", '{"input": "a", "model": "x"}']), (403, ["/v1/models", "-H", "Host: example.com"])])
def test_errors_are_json(small, status, arguments):
    got, a = curl(small.url + arguments[0], *arguments[1:])
    assert got == status and len(a["error"]["message"]) > 10


def test_every_get_route_answers(small):
    _, described = curl(small.url + "/openapi.json")
    for path, methods in described["paths"].items():
        if "get" in methods and "{" not in path:
            assert subprocess.run(["curl", "-sSf", "-o", "/dev/null", small.url + path]).returncode == 0, path
