"""Calls of everything, wrong ones too: nothing is left behind. ATTEND_TEST_CALLS=10000 makes so many calls of each."""
import array
import ctypes
import gc
import os
import pathlib
import pickle
import shutil
import sys
import tempfile

import pytest

import attend
from attend import _attend
from test_arrays import floats
from test_safetensors import write

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
CALLS = int(os.environ.get("ATTEND_TEST_CALLS", "60"))
Q, EMBEDDINGS = floats(1, 2, 3, 4), floats(5, 8)
BOOLS = memoryview(bytes([1, 0, 1] * 3)).cast("?", (3, 3))
TEXTS = ["a b c", "in water", ""]

sentence = attend.SentenceTransformer(GOLDEN / "tiny_sentence")
pairs = attend.CrossEncoder(GOLDEN / "classifiers/bert")
generator = attend.Generator(GOLDEN / "tiny_llama")
translator = attend.Translator(GOLDEN.parents[1] / "models/tatoeba-de-en")
vision = attend.ImageClassifier(GOLDEN.parents[1] / "models/fashion-mnist")
captioner = attend.Captioner(GOLDEN.parents[1] / "models/flickr8k-captions")
IMAGE = str(GOLDEN.parents[1] / "models/fashion-mnist/examples/bag.png")
PIXELS = memoryview(bytes(48)).cast("B", (4, 4, 3))
tokenizer = sentence.tokenizer
made = attend.similarity(EMBEDDINGS, EMBEDDINGS)
FRAME = {"user": ["a", "a", "a", "b", "b", "b"] * 3, "item": ["x", "y", "z", "w", "x", "v"] * 3, "time": array.array("d", range(18))}
recommender = attend.Recommender.fit(FRAME, out=tempfile.mkdtemp() + "/model", hidden=8, layers=1, steps=2)
keep = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda block: True)


def attention(**options):
    return attend.scaled_dot_product_attention(**{"query": Q, "key": Q, "value": Q, **options})


def backward():
    out, lse = attention(return_lse=True)
    return attend.attention_backward(out, Q, Q, Q, out, lse)


def step():
    session = _attend.Session(generator._model, 2)
    number = session.add(generator._ids("bdcab"), max_new_tokens=3, stop=["zz"])
    session.step()
    return session.finish(number)


def training(folder=tempfile.mkdtemp() + "/training"):
    with attend.train.Recommendation(folder, FRAME, hidden=8, layers=1, steps=3) as t:
        t.run(2, callback=lambda report: True)
        t.evaluate(k=2)
    shutil.rmtree(folder)
    with attend.train.Sentences(folder, [("a b", "c"), ("d", "e")], scores=[1, 0], model=GOLDEN / "tiny_sentence", epochs=1,
                                valid=([("a", "b"), ("c", "d")], [0, 1])) as t:
        t.run()
    shutil.rmtree(folder)


def stream():
    pieces = generator.stream("bdcab", max_new_tokens=4, temperature=0)
    next(pieces, None)


RIGHT = {
    "attention": lambda: attention(attn_mask=BOOLS, softcap=2.0, window=2, return_lse=True),
    "attention with parameters": lambda: attention(alibi=floats(2), stages=[("softcap", 1.0)], lengths=[2]),
    "attention into out": lambda: attention(out=floats(1, 2, 3, 4)),
    "attention with dropout": lambda: attention(dropout_p=0.5, seed=3),
    "a plan for each call": lambda n=[0]: (n.append(n.pop() + 1), attention(scale=1.0 + n[0] / 64)),
    "backward": backward,
    "a mask of one's own": lambda: attention(stages=[(attend.Mask(keep, user=array.array("f", [1]), params=["w"]), floats(1))]),
    "similarity": lambda: [attend.similarity(EMBEDDINGS, EMBEDDINGS, name) for name in ("cosine", "dot", "euclidean", "manhattan")],
    "quantize": lambda: [attend.quantize_embeddings(EMBEDDINGS, p) for p in ("int8", "uint8", "binary", "ubinary")],
    "search": lambda: attend.semantic_search(EMBEDDINGS, EMBEDDINGS, top_k=2),
    "array": lambda: (made.shape, made.strides, made.dtype, made.ndim, len(made), repr(made), made[0], made[0][0], made.column(1),
                      made.tolist(), list(made)),
    "buffer": lambda: memoryview(made),
    "DLPack": lambda: (made.__dlpack__(), made.__dlpack__(max_version=(1, 0)), made.__dlpack_device__(), attend.similarity(made, made)),
    "Arrow": made.__arrow_c_array__,
    "pickle": lambda: pickle.loads(pickle.dumps(made)),
    "encode": lambda: sentence.encode(TEXTS, normalize_embeddings=True, precision="int8"),
    "encode one": lambda: sentence.encode("a"),
    "encode tokens": lambda: sentence.encode(TEXTS, output_value="token_embeddings"),
    "encode nulls": lambda: sentence.encode(["a", None], nulls="zero"),
    "encode with a function": lambda: sentence._model.encode(TEXTS, progress=lambda share: None),
    "attention of a model": lambda: sentence.attention("a b")._repr_html_(),
    "info": lambda: (sentence._model.info, pairs._model.info, attend.config(), attend.find_model(GOLDEN / "tiny_llama")),
    "predict": lambda: pairs.predict([("a", "b"), ("c", "d")]),
    "rank": lambda: pairs.rank("a", ["b", "c"], return_documents=True),
    "tokenizer": lambda: (tokenizer.encode("a b").tokens, tokenizer.encode("a b").offsets, tokenizer.encode_batch(TEXTS),
                          tokenizer.decode([1, 2]), tokenizer.token_to_id("a"), tokenizer.token_to_id("none"), tokenizer.id_to_token(1)),
    "generate": lambda: generator.generate(["bdcab", "bd"], max_new_tokens=2, temperature=0, stop=["zz"]),
    "a text that is not finished": stream,
    "a step": step,
    "translate": lambda: translator.translate(["Ja.", ""], beam_size=2, num_hypotheses=2, max_length=2, return_scores=True),
    "translate with a function": lambda: translator.translate("Ja.", beam_size=1, max_length=1, progress=lambda share: None),
    "translate tokens": lambda: translator.translate_batch([["▁Ja", ".", "</s>"], []], [["▁Yes"], None], max_decoding_length=2, return_scores=True),
    "attention of a translation": lambda: (translator.attention("Ja.", "Yes.", layer=0, head=1), translator._model.info),
    "classify": lambda: (vision._model.classify([IMAGE, PIXELS]), vision._model.info),
    "embed an image": lambda: vision._model.embed([pathlib.Path(IMAGE).read_bytes()]),
    "attention of an image": lambda: vision.attention(IMAGE, layer=1, head=2).cls(),
    "caption": lambda: captioner._model.caption([PIXELS], beam=2, n_best=2, max_words=1),
    "attention of a caption": lambda: (captioner._model.attention(PIXELS, [1, 2]), captioner._model.words([1, 2]), captioner._model.info),
    "BLEU": lambda: _attend.bleu(TEXTS, [TEXTS, ["a", None, "b c"]], "13a", True),
    "open": lambda: [attend.open(GOLDEN / name) for name in ("tiny_sentence", "tiny_llama", "classifiers/bert")],
    "recommend": lambda: (recommender.recommend([["x"], ["y", "z"]], 2, deny=["v"]), recommender.recommend(users=["a"], k=2)),
    "similar items": lambda: (recommender.similar("x", 2), recommender.vectors, recommender.embed([["x", "y"]]), recommender.items),
    "a log": lambda: recommender.read(FRAME).evaluate(part="valid", k=2),
    "a log of integers": lambda: recommender.read([1, 2, 3] * 3, array.array("q", range(9)), ["2020-01-01"] * 9, split="none").users,
    "open a tokenizer": lambda: attend.Tokenizer(GOLDEN / "tiny_sentence"),
}

WRONG = {
    "types": [lambda: attention(query=5), lambda: attention(query=array.array("d", [1])), lambda: attention(window="1"),
              lambda: attention(lengths=[1.5]), lambda: attention(stages=[5]), lambda: attention(score=5), lambda: attention(nothing=1), lambda: attend.verify_attention(5, 5, 5),
              lambda: attend.similarity(5, 5), lambda: attend.semantic_search(EMBEDDINGS, 5), lambda: sentence.encode(5),
              lambda: sentence.encode(["a", 5]), lambda: tokenizer.decode(["a"]), lambda: pairs.predict([("a", 5)]),
              lambda: generator.generate("a", top_p="x"), lambda: generator.generate("a", stop=[5]), lambda: _attend.Stage(1), lambda: _attend.bleu(TEXTS, 5), lambda: _attend.bleu(5, [TEXTS]), lambda: _attend.bleu(TEXTS, [[1]]),
              lambda: translator.translate(5), lambda: translator.translate("a", length_penalty="x"), lambda: translator.translate_batch([5]),
              lambda: translator._model.translate(ids=5), lambda: translator._model.attention(5, 5), lambda: translator._model.translate(ids=[["a"]]),
              lambda: recommender.recommend([[1.5]]), lambda: recommender.recommend(5), lambda: recommender.read(["a", 2.5], ["x", "y"]),
              lambda: attend.train.Recommendation("/no/such", FRAME, rate="x"),
              lambda: attend.train.Sentences("/no/such", [("a", 5)], model=GOLDEN / "tiny_sentence"), lambda: _attend.Log(1, (), {}, {}),
              lambda: vision._model.classify([IMAGE, 5]), lambda: vision._model.embed([array.array("f", [1])]), lambda: vision._model.classify(5),
              lambda: captioner._model.caption([IMAGE, None]),
              lambda: captioner._model.attention(IMAGE, 5), lambda: captioner.attention(IMAGE, "a"), lambda: captioner._model.words(["a"]),
              lambda: made.__dlpack__(stream=1), lambda: made.__dlpack__(max_version=(0, 9), copy=True)],
    "values": [lambda: attention(key=floats(1, 2, 3, 5)), lambda: attention(attn_mask=floats(2, 2)), lambda: attention(lengths=[9]),
               lambda: attention(out=floats(2, 2)), lambda: attention(out=Q.toreadonly()), lambda: attention(align="x"),
               lambda: attention(score="x"), lambda: attention(stages=[("x",)]), lambda: attention(dropout_p=0.5),
               lambda: attention(alibi=floats(3)), lambda: attend.similarity(EMBEDDINGS, floats(2, 2)),
               lambda: attend.similarity(EMBEDDINGS, EMBEDDINGS, "x"), lambda: attend.quantize_embeddings(EMBEDDINGS, "x"),
               lambda: attend.quantize_embeddings(EMBEDDINGS, "int8", floats(2, 2)), lambda: attend.semantic_search(EMBEDDINGS, EMBEDDINGS, top_k=0),
               lambda: sentence.encode("\ud800"), lambda: sentence.encode("a", truncate_dim=10**6), lambda: sentence.encode(["a"], out=floats(1, 1)),
               lambda: sentence.attention("a", layer=99), lambda: tokenizer.decode([-1]), lambda: generator.generate(""),
               lambda: generator.generate("a", stop=["\0"]), lambda: pairs.predict([("a", "b")], activation_fn="x"), lambda: made[9],
               lambda: recommender.recommend([["none"]]), lambda: recommender.read(["a", None], ["x", "y"]), lambda: recommender.read(["a"], ["x", "y"]),
               lambda: attend.train.Recommendation("/no/such", FRAME, loss="x"), lambda: attend.train.Recommendation("/no/such", FRAME, batch=-1),
               lambda: attend.train.Recommendation("/no/such", FRAME, nothing=1), lambda: recommender.evaluate(part="x"),
               lambda: made.column(9), lambda: _attend.array_of("x", (), b""), lambda: _attend.array_of("float32", (2,), b""),
               lambda: sentence._model.encode(TEXTS, progress=lambda share: 1 / 0), lambda: attend.Score(None), lambda: attend.set_threads(-1), lambda: _attend.bleu(TEXTS, [["a"]]), lambda: _attend.bleu(TEXTS, []), lambda: _attend.bleu(TEXTS, ["abc"]),
               lambda: translator.translate("a", num_hypotheses=9), lambda: translator.translate("a", length_penalty=float("nan")),
               lambda: translator.translate("a " * 600), lambda: translator._model.translate(ids=[[1], [0]], prefixes=[[1]]),
               lambda: translator.translate("a", beam_size=1, max_length=1, progress=lambda share: 1 / 0), lambda: translator.attention("Ja.", "Yes.", layer=9),
               lambda: translator.translate_batch([["a"]], patience=2), lambda: translator._model.translate(ids=[[10**6]]),
               lambda: vision._model.classify([IMAGE, b"no image"]), lambda: vision._model.classify([memoryview(bytes(8)).cast("B", (2, 2, 2))]),
               lambda: vision._model.attention(IMAGE, layer=9), lambda: vision._model.attention(IMAGE, head=9), lambda: captioner._model.caption([PIXELS], beam=2, n_best=3),
               lambda: captioner._model.words([10**6]), lambda: captioner._model.attention(PIXELS, [10**6])],
    "files": [lambda: attend.open("/no/such/folder"), lambda: attend.load_safetensors("/no/such/file"), lambda: attend.Tokenizer("/no/such"),
              lambda: _attend.Sentence(GOLDEN / "none"), lambda: _attend.Classifier(GOLDEN), lambda: _attend.Generator(GOLDEN), lambda: _attend.Translator(GOLDEN), lambda: _attend.ImageModel(GOLDEN), lambda: _attend.Captioner(GOLDEN), lambda: vision._model.classify(["/no/such/image"]),
              lambda: _attend.identify("/no/such"), lambda: attend.CrossEncoder(GOLDEN / "classifiers/bert", dtype="x"),
              lambda: _attend.Recommender(GOLDEN), lambda: recommender.read("/no/such"), lambda: attend.train.Images("/no/such", GOLDEN), lambda: attend.train.Captions("/no/such", "/no/such", images="."),
              lambda: _attend.CaptionSet("/no/such", {"skip": 1}), lambda: _attend.ImageSet("/no/such", False, (5,)),
              lambda: attend.train.Translation("/dev/null/x", source="/no/such", target="/no/such", steps=1), lambda: attend.train.Recommendation("/dev/null/x", FRAME)],
}


def fails(call):
    with pytest.raises(Exception):
        call()


def anonymous():
    """kB of memory that is the process's own; a sanitizer keeps what has been freed"""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return 0
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))


def grown(call, calls):
    """[blocks, references, kB] that so many calls leave"""
    counters = [sys.getallocatedblocks, getattr(sys, "gettotalrefcount", lambda: 0), anonymous]  # references: in a debug build
    gc.collect()
    before = [count() for count in counters]
    for _ in range(calls):
        call()
    gc.collect()
    return [count() - b for count, b in zip(counters, before)]


def watch(call, calls=CALLS):
    call()
    rounds = []
    for _ in range(9):  # caches fill, a leak grows each time
        rounds.append(grown(call, calls))
        if max(rounds[-1][:2]) < 20 + calls / 2 and rounds[-1][2] < 2000:  # counting itself takes some
            return
    raise AssertionError(f"{calls} calls have left these blocks, references and kB: {rounds}")


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_left_of(name):
    watch(RIGHT[name])


@pytest.mark.parametrize("name", WRONG)
def test_nothing_is_left_of_wrong(name):
    def call():
        for one in WRONG[name]:
            try:
                one()
            except Exception:  # which one is tested elsewhere
                continue
            raise AssertionError("nothing was raised")
    watch(call)


@pytest.mark.skipif(CALLS < 1000, reason="takes long")
def test_nothing_is_left_of_verify_attention():
    watch(lambda: attend.verify_attention(Q, Q, Q, is_causal=True), 100)


def test_nothing_is_left_of_trainings():  # few calls: each waits for the disk
    watch(training, 5)
    watch(lambda: attend.Recommender.fit(FRAME, out=recommender._path + "-counted", arch="neighbors"), 5)


def test_nothing_is_left_of_safetensors(tmp_path):
    path = write(tmp_path / "a.safetensors", {"a": ("F32", [2], bytes(8)), "b": ("BF16", [1], bytes(2))}, {"format": "pt"})
    watch(lambda: attend.load_safetensors(path)["a"].tolist())


def test_nothing_is_left_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    arrays = [pyarrow.array(TEXTS), pyarrow.chunked_array([TEXTS, TEXTS]), pyarrow.array(TEXTS).dictionary_encode()]
    watch(lambda: [tokenizer.encode_batch(a) for a in arrays])
    watch(lambda: pyarrow.array(made))
    wrong = [pyarrow.array([1]), pyarrow.array(["a", None]), pyarrow.chunked_array([[1], [2]])]
    watch(lambda: [fails(lambda a=a: tokenizer.encode_batch(a)) for a in wrong])
