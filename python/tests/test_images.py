"""ImageClassifier and Captioner: images of all kinds, classes, captions, attention; with models that come with attend."""
import json
import os
import pathlib
import pickle
import shutil
import subprocess

import pytest

import attend

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
EXAMPLES = sorted((MODELS / "fashion-mnist/examples").glob("*.png"))
ASTRONAUT = MODELS / "flickr8k-captions/examples/astronaut.png"


@pytest.fixture(scope="module")
def classifier():
    return attend.ImageClassifier(MODELS / "fashion-mnist")


@pytest.fixture(scope="module")
def captioner():
    return attend.Captioner(MODELS / "flickr8k-captions")


def tool(*arguments):
    found = os.environ.get("ATTEND_TOOL") or shutil.which("attend")
    if not found:
        pytest.skip("ATTEND_TOOL names no tool")
    printed = subprocess.run([found, *map(str, arguments), "--json"], text=True, capture_output=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def test_classes(classifier):
    found = classifier.classify(EXAMPLES, top_k=2)
    assert sum(file.stem.replace("-", " ") in best[0]["label"].lower().replace("-", " ") for file, best in zip(EXAMPLES, found)) >= 8
    assert [len(best) for best in found] == [2] * 10 and all(best[0]["score"] >= best[1]["score"] for best in found)
    assert classifier(str(EXAMPLES[0]), top_k=2) == found[0] and classifier.classify([]) == []
    everything = classifier.classify(EXAMPLES[0], top_k=None)
    assert {one["label"] for one in everything} == set(classifier.labels) and abs(sum(one["score"] for one in everything) - 1) < 1e-5


def test_classes_are_those_of_the_tool(classifier):
    found = tool("classify", "-m", MODELS / "fashion-mnist", "--top", 3, *EXAMPLES[:2])
    for theirs, ours in zip(found, classifier.classify(EXAMPLES[:2], top_k=3)):
        [classes] = [value for value in theirs.values() if isinstance(value, list)]
        assert [one["label"] for one in classes] == [one["label"] for one in ours]


def test_all_kinds_of_images_are_the_same(classifier):
    data = ASTRONAUT.read_bytes()
    expected = classifier.classify(ASTRONAUT)
    kinds = [str(ASTRONAUT), data, bytearray(data), memoryview(data)]
    try:
        import PIL.Image
        kinds.append(PIL.Image.open(ASTRONAUT))
        import numpy
        pixels = numpy.asarray(PIL.Image.open(ASTRONAUT).convert("RGB"))
        kinds += [pixels, numpy.asfortranarray(pixels), pixels[None], [pixels, data]]
    except ImportError:
        pass
    for kind in kinds:
        found = classifier.classify(kind)
        assert found == expected or found == [expected] * len(found)


def test_arrays(classifier):
    pixels = memoryview(bytes(range(48))).cast("B", (4, 4, 3))
    gray = memoryview(bytes(16)).cast("B", (4, 4))
    assert classifier.classify(memoryview(bytes(48)).cast("B", (4, 4, 3))) == classifier.classify(gray)
    rows, alone = classifier.predict([pixels] * 40), classifier.predict(pixels)
    assert tuple(rows.shape) == (40, 10) and rows.tolist() == [alone.tolist()] * 40
    assert tuple(classifier.embed([pixels] * 2).shape) == (2, 128) and tuple(classifier.embed([]).shape) == (0, 128)
    shares = []
    classifier.predict([pixels] * 40, progress=shares.append)
    assert shares == [0.8, 1.0]


@pytest.mark.parametrize("error, match, image", [
    (TypeError, r"images\[1\]: a path", 5), (ValueError, r"images\[1\]", b"no image"), (FileNotFoundError, "/no/such", "/no/such.png"),
    (ValueError, r"images\[1\]: has 2 channels", memoryview(bytes(8)).cast("B", (2, 2, 2))),
    (TypeError, r"images\[1\]: .*uint8", memoryview(bytes(16)).cast("f", (2, 2))),
    (ValueError, r"images\[1\]: has 4 dimensions", memoryview(bytes(12)).cast("B", (1, 2, 2, 3))),
])
def test_what_is_refused(classifier, captioner, error, match, image):
    for call in (classifier.classify, captioner.caption):
        with pytest.raises(error, match=match):
            call([EXAMPLES[0], image])


def test_attention_of_an_image(classifier):
    found = classifier.attention(EXAMPLES[0], layer=2, head=1)
    assert found.weights.shape == (50, 50) and found.grid == (7, 7) and found.tokens[:2] == ["[CLS]", "0,0"]
    patches = found.cls()
    assert len(patches) == 7 and abs(sum(map(sum, patches)) + found.weights[0].tolist()[0] - 1) < 1e-5
    heads = [classifier.attention(EXAMPLES[0], layer=2, head=h).cls()[3][3] for h in range(4)]
    assert abs(classifier.attention(EXAMPLES[0], layer=2).cls()[3][3] - sum(heads) / 4) < 1e-6


def test_captions(captioner):
    found = captioner.caption(ASTRONAUT, num_captions=3)
    assert found[0].startswith("a man in a red shirt") and found[0].score >= found[1].score >= found[2].score
    [theirs] = tool("caption", "-m", MODELS / "flickr8k-captions", "--nbest", 3, ASTRONAUT)
    assert [one["text"] for one in theirs["captions"]] == found
    assert captioner.caption([ASTRONAUT, str(ASTRONAUT)]) == [found[0]] * 2
    assert len(captioner.caption(ASTRONAUT, beam_size=1, max_length=3).split()) == 3
    with pytest.raises(ValueError, match="beam"):
        captioner.caption(ASTRONAUT, beam_size=2, num_captions=3)
    assert pickle.loads(pickle.dumps(found[0])).ids == found[0].ids


def test_attention_of_a_caption(captioner):
    caption = captioner.caption(ASTRONAUT)
    found = captioner.attention(ASTRONAUT, caption)
    assert found.queries == caption.split() and found.weights.shape == (len(found.queries), 36) and found.grid == (6, 6)
    assert abs(sum(map(sum, found.word(1))) - 1) < 1e-5 and found._repr_html_().count("<rect") == 1 + 36 * len(found.queries)
    assert captioner.attention(ASTRONAUT).weights.tolist() == found.weights.tolist()


def test_pickles_open_the_same_models(classifier, captioner):
    again = pickle.loads(pickle.dumps(attend.ImageClassifier(MODELS / "fashion-mnist", dtype="bfloat16")))
    assert again._types["dtype"] == "bfloat16" and again.classify(EXAMPLES[0])[0]["label"] == classifier.classify(EXAMPLES[0])[0]["label"]
    assert pickle.loads(pickle.dumps(captioner)).caption(ASTRONAUT, beam_size=1) == captioner.caption(ASTRONAUT, beam_size=1)


def test_against_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    torch.manual_seed(1)
    config = transformers.ViTConfig(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                    intermediate_size=64, id2label={i: f"class {i}" for i in range(7)})
    model = transformers.ViTForImageClassification(config)
    model.classifier.weight.data *= 100  # probabilities that differ
    model.save_pretrained(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    theirs = transformers.pipeline("image-classification", model=str(tmp_path), device="cpu")(str(ASTRONAUT), top_k=3)
    ours = attend.ImageClassifier(tmp_path).classify(ASTRONAUT, top_k=3)
    assert [one["label"] for one in theirs] == [one["label"] for one in ours] and ours[0]["score"] > 0.2
    assert all(abs(a["score"] - b["score"]) < 1e-5 for a, b in zip(theirs, ours))
