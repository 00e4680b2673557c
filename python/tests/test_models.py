"""Models: sentences and tokenizers, where all-MiniLM-L6-v2 has been fetched."""
import mmap
import pathlib
import pickle
import shutil

import pytest

import attend
from test_arrays import floats

NAME = "all-MiniLM-L6-v2"
TEXTS = ["The cat sleeps on the sofa.", "", "Ünïcödé 日本語", "word " * 400]


@pytest.fixture(scope="module")
def model():
    try:
        return attend.SentenceTransformer(NAME, local_files_only=True)
    except FileNotFoundError as error:
        pytest.skip(f"attend fetch {NAME} downloads it: {error}")


@pytest.mark.parametrize("name", ["no-such-model", "/no/such/folder", "no-owner/no-model"])
def test_a_model_that_is_not_there(name):
    with pytest.raises(FileNotFoundError) as error:
        attend.SentenceTransformer(name, local_files_only=True)
    assert error.value.status == "ERR_IO" or "no-owner" in name
    assert name in str(error.value)


def rows(found):
    return found.tolist()


def test_embeddings_do_not_depend_on_the_batch(model):
    together = model.encode(TEXTS)
    assert tuple(together.shape) == (4, 384)
    for text, row in zip(TEXTS, rows(together)):
        assert rows(model.encode(text)) == row
    assert tuple(model.encode([]).shape) == (0, 384)


def test_options_of_encode(model):
    short = model.encode(TEXTS[0], truncate_dim=100)
    assert len(short) == 100 and abs(sum(x * x for x in rows(short)) - 1) < 1e-6
    prompted = model.encode(TEXTS[0], prompt="query: ")
    assert rows(prompted) == rows(model.encode("query: " + TEXTS[0]))
    out = floats(1, 384)
    assert model.encode([TEXTS[0]], out=out) is out and out.tolist()[0] == rows(model.encode(TEXTS[0]))
    tokens = model.encode(TEXTS[0], output_value="token_embeddings")
    assert tuple(tokens.shape) == (9, 384)


@pytest.mark.parametrize("error, options", [
    (TypeError, {"inputs": 5}), (TypeError, {"inputs": [5]}), (TypeError, {"inputs": b"bytes"}),
    (ValueError, {"inputs": "\ud800"}), (ValueError, {"prompt_name": "nothing"}), (ValueError, {"truncate_dim": 385}),
    (ValueError, {"truncate_dim": -1}), (ValueError, {"device": "cuda"}), (ValueError, {"precision": "float8"}),
    (ValueError, {"output_value": "nothing"}), (ValueError, {"out": floats(1, 383)}), (ValueError, {"nulls": "drop"}),
])
def test_what_is_refused(model, error, options):
    with pytest.raises(error):
        model.encode(**{"inputs": ["text"], **options})


def test_a_function_that_raises_ends_the_call(model):
    with pytest.raises(ZeroDivisionError):
        model._model.encode(TEXTS, progress=lambda share: 1 / 0)


def test_similarity(model):
    e = model.encode(TEXTS)
    found = rows(model.similarity(e, e))
    assert all(abs(found[i][i] - 1) < 1e-6 for i in range(4))
    dot = rows(attend.similarity(e, e, "dot"))
    distance = rows(attend.similarity(e, e, "euclidean"))
    assert abs(dot[0][1] - found[0][1]) < 1e-6 and abs(distance[0][1] + (2 - 2 * dot[0][1]) ** 0.5) < 1e-5
    with pytest.raises(ValueError):
        attend.similarity(e, floats(2, 3))


def test_attention(model):
    found = model.attention(TEXTS[0], layer=3, head=1)
    rows_ = found.weights.tolist()
    assert found.tokens[:3] == ["[CLS]", "the", "cat"] and len(rows_) == len(found.tokens) == 9
    assert all(abs(sum(row) - 1) < 1e-5 for row in rows_)
    heads = [model.attention(TEXTS[0], 3, h).weights.tolist()[0][1] for h in range(12)]
    assert abs(model.attention(TEXTS[0], 3).weights.tolist()[0][1] - sum(heads) / 12) < 1e-6
    picture = found._repr_html_()
    assert picture.count("<rect") == 82 and "http://www.w3.org/2000/svg" in picture and "<script" not in picture
    for bad in ({"layer": 6}, {"head": 12}, {"head": -2}):
        with pytest.raises(ValueError):
            model.attention(TEXTS[0], **bad)


def test_pickles_open_the_same_model(model):
    again = pickle.loads(pickle.dumps(model))
    assert rows(again.encode(TEXTS[0])) == rows(model.encode(TEXTS[0]))
    assert pickle.loads(pickle.dumps(model.tokenizer)).encode("a").ids == model.tokenizer.encode("a").ids


def test_arrow_texts(model):
    pyarrow = pytest.importorskip("pyarrow")
    expected = rows(model.encode(["a", "b", "c"]))
    for texts in (pyarrow.array(["a", "b", "c"]), pyarrow.array(["x", "a", "b", "c"])[1:],
                  pyarrow.chunked_array([["a"], ["b", "c"]]), pyarrow.array(["a", "b", "c"], pyarrow.large_string())):
        assert rows(model.encode(texts)) == expected
    nulls = pyarrow.array(["a", None])
    with pytest.raises(ValueError, match=r"inputs\[1\]: is null"):
        model.encode(nulls)
    assert not any(rows(model.encode(nulls, nulls="zero"))[1])
    with pytest.raises(TypeError, match="strings"):
        model.encode(pyarrow.array([1, 2]))


def test_tokenizer(model):
    t = model.tokenizer
    found = t.encode("Ünïcödé cats")
    assert found.tokens[0] == "[CLS]" and found.tokens[-1] == "[SEP]" and len(found) == len(found.ids)
    assert [("Ünïcödé cats"[a:b]) for a, b in found.offsets[1:-1]][-1] == "cats"
    assert t.decode(found.ids) == "unicode cats" and t.id_to_token(t.token_to_id("cats")) == "cats"
    assert t.token_to_id("no such token") is None and len(t) == t.get_vocab_size() == 30522
    assert t.encode("cats", add_special_tokens=False).tokens == ["cats"]
    assert model.tokenize(["word " * 400])[0][-1] == t.token_to_id("[SEP]")
    with pytest.raises(IndexError):
        t.id_to_token(30522)
    with pytest.raises(ValueError):
        t.decode([-1])


def test_against_sentence_transformers(model):
    peer = pytest.importorskip("sentence_transformers")
    theirs = peer.SentenceTransformer(str(attend.find_model(NAME)), device="cpu").encode(TEXTS)
    assert abs(theirs - model.encode(TEXTS)).max() < 2e-6


def test_products_of_bfloat16():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/classifiers/bert"

    def scores(model):
        return rows(model.predict([("a b", "c"), ("d", "e a")], convert_to_numpy=False))

    exact = scores(attend.CrossEncoder(folder))
    assert scores(attend.CrossEncoder(folder, compute="float32")) == exact
    for wrong in ("half", "bf16", 1):
        with pytest.raises(ValueError, match="compute: .*, must be None or one of float32, bfloat16, auto"):
            attend.CrossEncoder(folder, compute=wrong)
    if attend.config()["isa"] not in ("avx512bf16", "amx"):
        assert scores(attend.CrossEncoder(folder, compute="auto")) == exact
        with pytest.raises(attend.UnsupportedError):
            attend.CrossEncoder(folder, compute="bfloat16")
        return
    model = attend.CrossEncoder(folder, compute="bfloat16")
    found = scores(model)
    # eight products, whose factors are rounded by up to 2^-9, of a probability
    assert found != exact and all(abs(x - y) < 0.05 for x, y in zip(found, exact))
    assert scores(pickle.loads(pickle.dumps(model))) == found


def test_precisions():
    numpy = pytest.importorskip("numpy")
    x = numpy.random.default_rng(3).standard_normal((20, 13)).astype("f")
    ranges = numpy.array([x.min(0), x.max(0)])
    steps = (ranges[1] - ranges[0]) / numpy.float32(255)
    expected = numpy.floor((x - ranges[0]) / steps)
    for precision, shift in (("uint8", 0), ("int8", -128)):
        found = attend.quantize_embeddings(x, precision)
        assert found.dtype == precision and (found == expected + shift).all()
    bits = numpy.packbits(x > 0, axis=-1)
    assert (attend.quantize_embeddings(x, "ubinary") == bits).all()
    assert (attend.quantize_embeddings(x, "binary") == (bits - 128).astype("int8")).all()
    with pytest.raises(ValueError, match="ranges"):
        attend.quantize_embeddings(x, "int8", ranges[:, :5].copy())


def test_semantic_search():
    numpy = pytest.importorskip("numpy")
    corpus, queries = (numpy.random.default_rng(s).standard_normal((n, 16)).astype("f") for s, n in ((1, 50), (2, 3)))
    found = attend.semantic_search(queries, corpus, top_k=5)
    cosines = queries @ corpus.T / numpy.linalg.norm(queries, axis=1)[:, None] / numpy.linalg.norm(corpus, axis=1)
    for hits, row in zip(found, cosines):
        assert [hit["corpus_id"] for hit in hits] == list(numpy.argsort(-row)[:5])
        assert abs(hits[0]["score"] - row.max()) < 1e-6
    assert len(attend.semantic_search(queries, corpus[:2], top_k=5)[0]) == 2
    for bad in ({"top_k": 0}, {"score_function": "none"}):
        with pytest.raises(ValueError):
            attend.semantic_search(queries, corpus, **bad)


@pytest.fixture(scope="module")
def generator():
    try:
        return attend.Generator("SmolLM2-135M-Instruct", local_files_only=True)
    except FileNotFoundError as error:
        pytest.skip(f"attend fetch SmolLM2-135M-Instruct downloads it: {error}")


def test_texts_are_generated_side_by_side(generator):
    prompts = ["The capital of France is", "One, two, three,"]
    together = generator.generate(prompts, 6, temperature=0)
    assert [generator.generate(p, 6, temperature=0) for p in prompts] == together
    assert "".join(generator.stream(prompts[0], 6, temperature=0)) == together[0]
    assert generator.generate(iter(prompts), 6, temperature=0) == together and generator.generate([]) == []
    assert together[0].end == "length" and len(together[0].ids) == 6
    assert generator.generate(prompts[0], 6, seed=1, temperature=1.5) == generator.generate(prompts[0], 6, seed=1, temperature=1.5)
    assert generator.generate(prompts[0], 20, temperature=0, stop=["Paris"]) .end == "stop"


def test_a_chat(generator):
    answer = generator.chat("What is the capital of Japan?", temperature=0)
    assert answer == "The capital of Japan is Tokyo." and answer.end in ("eos", "stop")
    assert "".join(generator.chat("What is the capital of Japan?", temperature=0, stream=True)) == answer
    assert generator.chat("What is the capital of Japan?", temperature=0, stop="Tokyo") == "The capital of Japan is "
    for bad in ([{"role": "nobody", "content": "x"}], []):
        with pytest.raises(ValueError):
            generator.chat(bad)


def test_tools_reach_the_chat_template(tmp_path):
    shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "tests/golden/tiny_llama", tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").write_text(
        "{% if tools %}{{ tools[0].name }}{% endif %}{% if documents %}{{ documents[0].text }}{% endif %}{% if x %}{{ x }}{% endif %}"
        "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.name }}{% endfor %}{% endfor %}")
    model = attend.Generator(tmp_path)
    messages = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": None, "tool_calls": [{"name": "c"}]},
                {"role": "tool", "content": "d"}]
    want = model.generate("efgabcd", 5, temperature=0)
    assert model.chat(messages, 5, tools=[{"name": "e"}], documents=[{"text": "f"}], template_variables={"x": "g"}, temperature=0) == want
    for message in {"content": "ab"}, "ab":
        with pytest.raises(attend.Error, match="^messages: each is a dict with a role"):
            model.chat([message])
    assert model.chat("ab", 5, temperature=0) == model.generate("ab", 5, temperature=0)


def test_a_model_without_a_chat_template(generator, tmp_path):
    [original] = pathlib.Path(generator._path).glob("*.gguf")
    file = shutil.copyfile(original, tmp_path / "model.gguf")
    with open(file, "r+b") as f, mmap.mmap(f.fileno(), 0) as bytes_:
        key = b"tokenizer.chat_template"
        at = bytes_.find(key)
        bytes_[at:at + len(key)] = key[::-1]
    other = attend.Generator(file)
    assert len(other.generate("One, two,", 2, temperature=0).ids) == 2
    with pytest.raises(attend.Error, match="model.gguf.*chat template"):
        other.chat("Hello")


@pytest.mark.parametrize("error, options", [
    (ValueError, {"prompts": ""}), (TypeError, {"prompts": 5}), (ValueError, {"temperature": -1}), (ValueError, {"top_k": -1}),
    (TypeError, {"top_p": "x"}), (ValueError, {"stop": ["a\0"]}), (TypeError, {"stop": [5]}), (ValueError, {"max_new_tokens": -1}),
])
def test_what_generators_refuse(generator, error, options):
    with pytest.raises(error):
        generator.generate(**{"prompts": "text", **options})
