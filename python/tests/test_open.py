"""attend.open: names of models, the cache of the Hugging Face Hub, and the class of what a folder is."""
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import pickle
import shutil
import sys
import types
import warnings

import pytest

import attend
from attend import any_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
KINDS = {"tiny_sentence": attend.SentenceTransformer, "tiny_llama": attend.Generator, "classifiers/bert": attend.CrossEncoder,
         "../../models/tatoeba-de-en": attend.Translator, "../../models/fashion-mnist": attend.ImageClassifier,
         "../../models/flickr8k-captions": attend.Captioner}


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_is_opened_in_its_class(name):
    folder = (GOLDEN / name).resolve()
    model = attend.open(folder)
    assert type(model) is KINDS[name] and str(folder) in repr(model)
    assert type(pickle.loads(pickle.dumps(model))) is KINDS[name]


def test_options_reach_the_class():
    assert attend.open(GOLDEN / "classifiers/bert", max_length=7).max_length == 7
    with pytest.raises(TypeError, match="nothing"):
        attend.open(GOLDEN / "classifiers/bert", nothing=1)


def test_a_process_opens_once(tmp_path, monkeypatch):
    folder = GOLDEN / "classifiers/bert"
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        models = set(threads.map(lambda _: attend.open_cached(folder, max_length=7), range(8)))
    assert len(models) == 1 and attend.open_cached(str(folder), max_length=7) in models
    assert attend.open_cached(folder).max_length != 7
    with pytest.raises(FileNotFoundError):
        attend.open_cached(tmp_path / "later")
    (tmp_path / "later").symlink_to(folder)  # an error is not kept
    assert type(attend.open_cached(tmp_path / "later")) is attend.CrossEncoder
    (tmp_path / "other").mkdir()
    (tmp_path / "other/later").symlink_to(GOLDEN / "tiny_sentence")
    for at, kind in ((tmp_path, attend.CrossEncoder), (tmp_path / "other", attend.SentenceTransformer)):
        monkeypatch.chdir(at)
        assert type(attend.open_cached("./later")) is kind


def test_a_fork_while_a_thread_opens():
    """The child has no thread that would make the lock free."""
    with any_model._lock:
        child = multiprocessing.get_context("fork").Process(target=attend.open_cached, args=[GOLDEN / "classifiers/bert"])
        child.start()
        child.join(60)
    found = child.exitcode
    child.kill()
    assert found == 0


def test_a_folder_of_nothing(tmp_path):
    with pytest.raises(attend.UnsupportedError, match="do not tell what kind"):
        attend.open(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "strange", "architectures": ["StrangeModel"]}')
    with pytest.raises(attend.UnsupportedError, match="strange, StrangeModel is not supported"):
        attend.open(tmp_path)


# ---- the cache of the Hub


def put(cache, name, source, revision="main", commit="0123abcd", link=True):
    """A snapshot of a folder, as huggingface_hub lays it: files are links to blobs"""
    folder = cache / f"models--{name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / revision).write_text(commit)
    (folder / "blobs").mkdir(exist_ok=True)
    for file in pathlib.Path(source).rglob("*"):
        if file.is_file():
            to = folder / "snapshots" / commit / file.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            blob = folder / "blobs" / str(file.relative_to(source)).replace("/", "-")
            shutil.copy(file, blob)
            to.symlink_to(os.path.relpath(blob, to.parent))
    return folder / "snapshots" / commit


@pytest.fixture(name="cache")
def fixture_cache(tmp_path, monkeypatch):
    for name in ("HF_HOME", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # cannot be imported
    monkeypatch.setenv("ATTEND_MODELS", str(tmp_path / "models"))
    return tmp_path / "hub"


def test_a_snapshot_of_the_cache(cache):
    at = put(cache, "somebody/some-model", GOLDEN / "classifiers/bert")
    assert repr(attend.open("somebody/some-model")) == f"attend.CrossEncoder('{at}')"
    put(cache, "somebody/some-model", GOLDEN / "tiny_llama", revision="v2", commit="ffff")
    assert type(attend.open("somebody/some-model", revision="v2")) is attend.Generator
    assert type(attend.open("somebody/some-model", revision="ffff", local_files_only=True)) is attend.Generator
    assert type(attend.open("somebody/some-model@v2")) is attend.Generator
    with pytest.raises(FileNotFoundError):
        attend.open("somebody/some-model", revision="v3")


def test_where_the_cache_is(cache, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE")
    put(tmp_path / "home/hub", "a/b", GOLDEN / "tiny_llama")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    attend.open("a/b")
    monkeypatch.delenv("HF_HOME")
    put(tmp_path / "xdg/huggingface/hub", "c/d", GOLDEN / "tiny_llama")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    attend.open("c/d")


def test_a_bare_name(cache, tmp_path):
    put(cache, "sentence-transformers/tiny", GOLDEN / "classifiers/roberta")
    put(cache, "old", GOLDEN / "tiny_llama")
    assert attend.open("tiny").num_labels > 1 and type(attend.open("old")) is attend.Generator
    shutil.copytree(GOLDEN / "classifiers/bert", tmp_path / "models/tiny")
    assert attend.open("tiny").num_labels == 1  # attend's own come first
    with pytest.raises(FileNotFoundError, match="attend fetch.*hf download OWNER/nothing"):
        attend.open("nothing")


def test_a_snapshot_of_which_files_are_missing(cache):
    at = put(cache, "a/b", GOLDEN / "tiny_llama")
    weights = at / "model.safetensors"
    weights.resolve().unlink()
    with pytest.raises(FileNotFoundError, match="hf download a/b"):
        attend.open("a/b")
    assert attend.Tokenizer("a/b").encode("bdcab").ids  # does not need them
    weights.unlink()
    (at / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "one.safetensors", "y": "two.safetensors"}}))
    (at / "one.safetensors").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="hf download a/b"):
        attend.open("a/b")


def test_a_snapshot_of_an_encoder_that_may_lack_its_modules(cache):
    at = put(cache, "a/b", GOLDEN / "tiny_sentence")  # an encoder without modules.json
    with pytest.warns(UserWarning, match="no modules.json.*hf download a/b"):
        attend.open("a/b")
    marker = at.parents[1] / ".no_exist" / at.name
    marker.mkdir(parents=True)
    (marker / "modules.json").touch()  # who downloaded it has asked for it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attend.open("a/b")
        attend.open(GOLDEN / "tiny_sentence")


def test_a_tokenizer_s_file(cache, tmp_path, monkeypatch):
    expected = attend.Tokenizer(GOLDEN / "tiny_llama").encode("bdcab").ids
    assert attend.Tokenizer(GOLDEN / "tiny_llama/tokenizer.json").encode("bdcab").ids == expected
    monkeypatch.chdir(GOLDEN / "tiny_llama")
    tokenizer = attend.Tokenizer("tokenizer.json")
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(tokenizer)).encode("bdcab").ids == expected
    with pytest.raises(attend.FormatError, match="words.txt"):
        (tmp_path / "words.txt").write_text("no tokenizer")
        attend.Tokenizer("words.txt")


def test_what_is_not_in_the_cache_is_downloaded(cache, monkeypatch):
    asked = []

    def snapshot_download(name, **options):
        asked.append((name, options["revision"]))
        if name == "a/none":
            raise RuntimeError("404\nmore")
        return str(put(cache, name, GOLDEN / "tiny_llama"))

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(snapshot_download=snapshot_download))
    assert type(attend.open("a/b", revision="v1")) is attend.Generator and asked == [("a/b", "v1")]
    attend.open("a/b")
    assert len(asked) == 1  # it is there
    attend.open("a/d@v1")
    assert asked[1] == ("a/d", "v1")
    with pytest.raises(FileNotFoundError, match="cannot be downloaded: 404$"):
        attend.open("a/none")
    with pytest.raises(FileNotFoundError, match="hf download a/c\\) puts it there; local_files_only is set"):
        attend.open("a/c", local_files_only=True)


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./a/b", "a/b/c", "a/b.gguf", "none.gguf", "~/a"])
def test_names_that_are_no_names_of_the_hub(cache, name):
    with pytest.raises(FileNotFoundError):
        attend.open(name)
