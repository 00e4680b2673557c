"""The calls of sentence-transformers 6 that docs/PYTHON.md promises, by both packages; skipped where it is not."""
import inspect
import pathlib

import pytest

import attend

peer = pytest.importorskip("sentence_transformers", minversion="6")
util = pytest.importorskip("sentence_transformers.util")
torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

NAME = "all-MiniLM-L6-v2"
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/classifiers"
TEXTS = ["The cat sleeps on the sofa.", "A dog barks.", "", "Ünïcödé 日本語", "It rains."]
CLOSE = 2e-6  # of vectors of norm 1: what docs/BENCHMARKS-TABLES.md requires


@pytest.fixture(name="models", scope="module")
def fixture_models():
    try:
        ours = attend.SentenceTransformer(NAME, local_files_only=True)
    except FileNotFoundError:
        pytest.skip(f"attend fetch {NAME} downloads it")
    return ours, peer.SentenceTransformer(attend.find_model(NAME), device="cpu")


def parameters(function):
    """Names of arguments that are not variadic, in order, and which can be given by position"""
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


@pytest.mark.parametrize("name", [
    "SentenceTransformer.encode", "SentenceTransformer.similarity", "SentenceTransformer.similarity_pairwise",
    "CrossEncoder.predict", "CrossEncoder.rank", "semantic_search", "quantize_embeddings"])
def test_arguments_have_the_same_names_and_order(name):
    parts = name.split(".")
    ours, theirs = attend, util if parts[0] == "semantic_search" else peer
    for part in parts:
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    expected = parameters(theirs)
    assert parameters(ours)[:len(expected)] == expected
    defaults = inspect.signature(theirs).parameters
    for parameter in inspect.signature(ours).parameters.values():
        if parameter.name in defaults and parameter.name != "score_function":
            assert parameter.default == defaults[parameter.name].default, parameter.name


@pytest.mark.parametrize("name", ["SentenceTransformer", "CrossEncoder"])
def test_constructors_take_the_same_arguments(name):
    refused = {"self", "use_auth_token"}  # the latter was given up in their version 3
    assert set(parameters(getattr(peer, name).__init__)) - refused <= set(parameters(getattr(attend, name).__init__))


@pytest.mark.parametrize("call", [
    lambda m: m.encode(TEXTS), lambda m: m.encode(TEXTS[0]), lambda m: m.encode([]), lambda m: m.encode(TEXTS[:1]),
    lambda m: m.encode(TEXTS, None, "query: ", 2), lambda m: m.encode(TEXTS, convert_to_tensor=True),
    lambda m: m.encode(TEXTS, normalize_embeddings=True, truncate_dim=100, device="cpu", chunk_size=1),
    lambda m: m.encode_query(TEXTS, None, None, 4), lambda m: m.encode_document(TEXTS, prompt="a: "),
    lambda m: m.similarity(m.encode(TEXTS), m.encode(TEXTS[:2])),
    lambda m: m.similarity(list(m.encode(TEXTS)), m.encode(TEXTS[1])),
    lambda m: m.similarity_pairwise(m.encode(TEXTS[:2]), m.encode(TEXTS[1:3])),
    lambda m: m.encode(TEXTS[1], output_value="token_embeddings"),
])
def test_sentences(models, call):
    ours, theirs = (call(m) for m in models)
    assert tuple(ours.shape) == tuple(theirs.shape) or not len(ours)
    assert isinstance(ours, torch.Tensor) or isinstance(ours, numpy.ndarray)
    theirs = numpy.asarray(theirs).reshape(ours.shape)
    longest = numpy.linalg.norm(theirs, axis=-1).max(initial=1)  # vectors of tokens are not of norm 1
    numpy.testing.assert_allclose(numpy.asarray(ours), theirs, rtol=0, atol=CLOSE * longest)


def test_properties(models):
    ours, theirs = models
    for name in ("max_seq_length", "similarity_fn_name", "truncate_dim", "default_prompt_name"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("get_embedding_dimension", "get_max_seq_length"):
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    assert ours.prompts == theirs.prompts


@pytest.mark.parametrize("fn", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities(fn):
    a, b = (numpy.random.default_rng(s).standard_normal((n, 24)).astype("f") for s, n in ((1, 7), (2, 7)))
    theirs = util.SimilarityFunction if hasattr(util, "SimilarityFunction") else peer.SimilarityFunction
    # sums of 24 products of a few units, each rounded to 2^-24 of them
    close = {"rtol": 1e-5, "atol": 1e-5}
    numpy.testing.assert_allclose(attend.similarity(a, b, fn), theirs.to_similarity_fn(fn)(a, b), **close)
    numpy.testing.assert_allclose(attend.similarity(a, b, fn, True), theirs.to_similarity_pairwise_fn(fn)(a, b), **close)


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"score_function": util.dot_score}, {"query_chunk_size": 2}])
def test_semantic_search(options):
    corpus, queries = (numpy.random.default_rng(s).standard_normal((n, 16)).astype("f") for s, n in ((1, 50), (2, 3)))
    for given in (queries, queries[0], list(queries), torch.from_numpy(queries)):
        of_corpus = torch.from_numpy(corpus) if isinstance(given, torch.Tensor) else corpus
        ours, theirs = (f(given, of_corpus, **options) for f in (attend.semantic_search, util.semantic_search))
        assert [[h["corpus_id"] for h in hits] for hits in ours] == [[h["corpus_id"] for h in hits] for hits in theirs]
        for hits, expected in zip(ours, theirs):
            numpy.testing.assert_allclose([h["score"] for h in hits], [h["score"] for h in expected], rtol=1e-5)


def classifiers(name):
    """A folder by both packages, in float32 where theirs would compute in the type of the file"""
    folder = str(GOLDEN / name)
    return (attend.CrossEncoder(folder, device="cpu", max_length=16),
            peer.CrossEncoder(folder, device="cpu", max_length=16, model_kwargs={"dtype": torch.float32}))


PAIRS = [("in water", "the sea"), ("in water", "Wind blows"), ("metal", "metal that is liquid")]


@pytest.mark.parametrize("name, call", [
    ("bert", lambda m: m.predict(PAIRS)), ("bert", lambda m: m.predict(PAIRS[0])),
    ("bert", lambda m: m.predict(PAIRS, None, None, 2, False, torch.nn.Identity())),
    ("bert", lambda m: m.predict(PAIRS, apply_softmax=True, activation_fn=torch.nn.Sigmoid())),
    ("bert", lambda m: m.predict(PAIRS, convert_to_tensor=True)),
    ("roberta", lambda m: m.predict(PAIRS)), ("roberta", lambda m: m.predict(PAIRS, apply_softmax=True)),
    ("roberta", lambda m: m.predict(PAIRS[:1], chunk_size=1)),
])
def test_predict(name, call):
    ours, theirs = (call(model) for model in classifiers(name))
    assert numpy.shape(ours) == numpy.shape(theirs) and isinstance(ours, torch.Tensor) == isinstance(theirs, torch.Tensor)
    numpy.testing.assert_allclose(numpy.asarray(ours), numpy.asarray(theirs), rtol=1e-5, atol=1e-5)


def test_rank():
    documents = [b for _, b in PAIRS]
    for options in ({}, {"top_k": 2, "return_documents": True}):
        ours, theirs = (model.rank("in water", documents, **options) for model in classifiers("bert"))
        assert [(h["corpus_id"], h.get("text"), list(h)) for h in ours] == \
            [(h["corpus_id"], h.get("text"), list(h)) for h in theirs]
        assert all(abs(a["score"] - b["score"]) < 1e-5 for a, b in zip(ours, theirs))


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda m: m.encode("a", device="cuda")), (ValueError, lambda m: m.encode("a", device=["cpu", "cuda:0"])),
    (ValueError, lambda m: m.encode("a", pool={"input": 1})), (ValueError, lambda m: m.encode("a", output_value=None)),
    (ValueError, lambda m: attend.SentenceTransformer(NAME, model_kwargs={"dtype": "float16"})),
    (ValueError, lambda m: attend.CrossEncoder(str(GOLDEN / "bert"), num_labels=3)),
    (ValueError, lambda m: attend.CrossEncoder(str(GOLDEN / "bert")).predict(PAIRS, activation_fn=torch.nn.ReLU())),
    (ValueError, lambda m: attend.CrossEncoder(str(GOLDEN / "bert")).predict(PAIRS, prompt="a")),
    (AttributeError, lambda m: setattr(m, "max_seq_length", 5)),
])
def test_what_has_no_meaning_here_is_refused(models, error, call):
    with pytest.raises(error):
        call(models[0])
