"""Trainings: steps, runs, callbacks, resuming; with the bits of the tool."""
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import zlib

import pytest

import attend


GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
rng = random.Random(1)
WORDS = ["ba", "ko", "mi", "tu", "le", "sa"]
SOURCE = [" ".join(rng.choices(WORDS, k=rng.randint(2, 5))) for _ in range(60)]
TARGET = [line.upper() for line in SOURCE]
SIZES = {"preset": "tiny", "vocabulary": 70, "batch_tokens": 64, "warmup": 2, "steps": 6, "validate_every": 2, "save_every": 2,
         "average": 2, "seed": 4}
SHOP = {"hidden": 8, "layers": 1, "batch": 8, "epochs": 3, "seed": 4}
FRAME = {"user": [f"u{i % 20}" for i in range(160)], "item": [f"i{(i * 7 + i // 20) % 15}" for i in range(160)]}
PAIRS = [(" ".join(rng.sample(["in", "water", "the", "sea", "metal", "b"], 4)), " ".join(rng.sample(["sea", "wind", "metal", "a", "is", "of"], 4)))
         for _ in range(24)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("source", SOURCE), ("target", TARGET), ("valid_source", SOURCE[:9]), ("valid_target", TARGET[:9])):
        (folder / name).write_text("\n".join(lines) + "\n")
    return {name: folder / name for name in ("source", "target", "valid_source", "valid_target")}


@pytest.fixture(scope="module")
def translated(files, tmp_path_factory):
    """A training that was not interrupted: its folder and reports"""
    folder, reports = tmp_path_factory.mktemp("translation") / "model", []
    with attend.train.Translation(folder, **files, **SIZES) as training:
        training.run(callback=lambda report: reports.append(report))
        assert training.done and training.steps == 6
        with pytest.raises(attend.ArgumentError, match="has ended after step 6"):
            training.step()
    return folder, reports


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def tool(command, folder, *arguments):
    words = [os.environ["ATTEND_TOOL"], "train", command, "-o", folder, *arguments]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    return weights(folder)


def options(given, **renamed):
    return [word for name, value in given.items() for word in ("--" + renamed.get(name, name).replace("_", "-"), value)]


needs_tool = pytest.mark.skipif("ATTEND_TOOL" not in os.environ, reason="without the tool")


@needs_tool
def test_translations_have_the_bits_of_the_tool(files, translated, tmp_path):
    names = {"source": "src", "target": "tgt", "valid_source": "valid-src", "valid_target": "valid-tgt"}
    assert tool("translate", tmp_path / "tool", *options(files, **names), *options(SIZES)) == weights(translated[0])


@needs_tool
def test_recurrent_layers_have_the_bits_of_the_tool(files, tmp_path):
    texts, sizes = {name: files[name] for name in ("source", "target")}, {**SIZES, "steps": 2, "arch": "rnn", "attention": "dot"}
    with attend.train.Translation(tmp_path / "py", **texts, **sizes) as training:
        training.run()
    found = tool("translate", tmp_path / "tool", *options(texts, source="src", target="tgt"), *options(sizes))
    assert found == weights(tmp_path / "py")


@needs_tool
@pytest.mark.parametrize("more", [{}, {"average": 2, "save_every": 3, "schedule": "cosine", "warmup": 0.25, "clip": 1.0}])
def test_recommenders_have_the_bits_of_the_tool(more, tmp_path):
    (tmp_path / "log").write_text("".join(f"{u} {i}\n" for u, i in zip(FRAME["user"], FRAME["item"])))
    with attend.train.Recommendation(tmp_path / "py", FRAME, time=None, **SHOP, **more) as training:
        training.run()
    found = tool("recommend", tmp_path / "tool", "--data", tmp_path / "log", *options({**SHOP, **more}))
    assert found == weights(tmp_path / "py")


@needs_tool
def test_a_refit_has_the_bits_of_the_tool(tmp_path):
    (tmp_path / "log").write_text("".join(f"{u} {i}\n" for u, i in zip(FRAME["user"], FRAME["item"])))
    model = attend.Recommender.fit(FRAME, time=None, out=tmp_path / "py", refit=True, **SHOP)
    found = tool("recommend", tmp_path / "tool", "--data", tmp_path / "log", "--refit", *options(SHOP))
    assert found == weights(tmp_path / "py") and weights(tmp_path / "tool/validated") == weights(tmp_path / "py/validated")
    assert found != weights(tmp_path / "py/validated") and len(model.users) == 20


@pytest.mark.parametrize("message, given", [
    ("has a training already", {}), ("resume does not go", {"resume": True}), ("average does not go", {"average": 2}),
    ("schedule does not go", {"schedule": "cosine"}), ("refit: needs a validation", {"split": "none"}),
    ("refit: does not go with arch='ease'", {"arch": "ease"})])
def test_what_a_refit_refuses(message, given, tmp_path):
    if not given:
        attend.Recommender.fit(FRAME, time=None, out=tmp_path, **SHOP)
    with pytest.raises(attend.ArgumentError, match=message):
        attend.Recommender.fit(FRAME, time=None, out=tmp_path, refit=True, **given)
    assert not (tmp_path / "validated").exists()


TITLES = {f"i{i}": " ".join(WORDS[i % 5:i % 5 + 2]) + (" sea" if i % 3 else " metal") for i in (*range(12), 77)}


@needs_tool
@pytest.mark.parametrize("content", ["start", "add"])
def test_item_texts_have_the_bits_of_the_tool(content, tmp_path):
    lines = [f"{u} {i}\n" for u, i in zip(FRAME["user"], FRAME["item"])]
    (tmp_path / "log").write_text("".join(lines))
    (tmp_path / "titles.tsv").write_text("".join(f"{id}\t{title}\n" for id, title in TITLES.items()))
    words = ["--item-texts", tmp_path / "titles.tsv", "--text-model", GOLDEN / "tiny_sentence"]
    texts = {"item_texts": TITLES, "text_model": GOLDEN / "tiny_sentence"}
    model = attend.Recommender.fit(FRAME, time=None, out=tmp_path / "py", **SHOP, **texts, content=content)
    found = tool("recommend", tmp_path / "tool", "--data", tmp_path / "log", "--content", content, *words, *options(SHOP))
    assert found == weights(tmp_path / "py") and "i77" in model.items and model.items[0] == "i0"
    assert (model.info["content_width"] > 0) == (content == "add")
    # with a model, whose items stay, only the texts of new ones count
    (tmp_path / "log").write_text("".join([*lines, "u1 new\n"]))
    (tmp_path / "titles.tsv").write_text("new\tthe sea\ni3\tmetal\n")
    more = {"user": [*FRAME["user"], "u1"], "item": [*FRAME["item"], "new"]}
    shop = {name: value for name, value in SHOP.items() if name not in ("hidden", "layers")}
    attend.Recommender.fit(more, time=None, out=tmp_path / "py2", model=tmp_path / "py", **shop,
                           **{**texts, "item_texts": [("new", "the sea"), ("i3", "metal")]})
    assert tool("recommend", tmp_path / "tool2", "--data", tmp_path / "log", "-m", tmp_path / "tool", *words, *options(shop)) == weights(tmp_path / "py2")
    if content == "add":
        with pytest.raises(attend.ArgumentError, match="item_texts: needed, as .*py adds vectors of texts"):
            attend.Recommender.fit(more, time=None, out=tmp_path / "py3", model=tmp_path / "py", **shop)


@needs_tool
def test_sentences_have_the_bits_of_the_tool(tmp_path):
    gold = [str(i % 6) for i in range(len(PAIRS))]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    (tmp_path / "valid.tsv").write_text("".join(f"{a}\t{b}\t{s}\n" for (a, b), s in zip(PAIRS, gold)))
    common = {"batch": 8, "epochs": 2, "rate": 0.001, "validate_every": 2}
    valid = (PAIRS, [int(s) / 5 for s in gold])
    with attend.train.Sentences(tmp_path / "py", PAIRS, model=GOLDEN / "tiny_sentence", valid=valid, **common) as training:
        training.run()
    found = tool("embed", tmp_path / "tool", "-m", GOLDEN / "tiny_sentence", "--pairs", tmp_path / "pairs.tsv", "--valid",
                 tmp_path / "valid.tsv", "--loss", "mnr", *options(common))
    assert found == weights(tmp_path / "py")
    assert attend.SentenceTransformer(tmp_path / "py").encode("the sea").shape == attend.SentenceTransformer(GOLDEN / "tiny_sentence").encode("a").shape


RANKED = {"mnr": "multiple-negatives-ranking", "bce": "binary-cross-entropy", "mse": "mean-squared-error", "ce": "cross-entropy"}


@needs_tool
@pytest.mark.parametrize("word", RANKED)
def test_rerankers_have_the_bits_of_the_tool(word, tmp_path):
    gold = {"mnr": None, "ce": ["yes", "no", "so"] * 8}.get(word, [i % 6 / 5 for i in range(24)])
    rows = [(a,) for a, _ in PAIRS] if word == "ce" else PAIRS
    scored = gold or [i % 6 / 5 for i in range(24)]
    lines = ["\t".join((*row, *([str(gold[i])] if gold else []))) + "\n" for i, row in enumerate(rows)]
    (tmp_path / "rows.tsv").write_text("".join(lines))
    (tmp_path / "valid.tsv").write_text("".join("\t".join((*row, str(value))) + "\n" for row, value in zip(rows, scored)))
    common = {"batch": 8, "epochs": 2, "rate": 0.001, "validate_every": 2}
    given = {} if not gold else {"labels": gold} if word == "ce" else {"scores": gold}
    with attend.train.Reranking(tmp_path / "py", rows, model=GOLDEN / "tiny_sentence", loss=RANKED[word], valid=(rows, scored),
                                **given, **common) as training:
        training.run()
        best = training.info["best"]
        assert -100 <= best <= 100 and training.report["validation"].keys() == {"accuracy" if word == "ce" else "spearman"}
    found = tool("rerank", tmp_path / "tool", "-m", GOLDEN / "tiny_sentence", "--pairs", tmp_path / "rows.tsv", "--valid",
                 tmp_path / "valid.tsv", "--loss", word, *options(common))
    assert found == weights(tmp_path / "py")
    model = attend.CrossEncoder(tmp_path / "py")
    assert model.labels == (["no", "so", "yes"] if word == "ce" else ["LABEL_0"]) and len(model.predict(rows)) == 24
    if word == "ce":
        right = sum(model.labels[max(range(3), key=row.__getitem__)] == label for row, label in zip(model.predict(rows).tolist(), gold))
        assert abs(100 * right / 24 - best) < 1e-9


def test_rerankers_read_labels_that_are_numbers(tmp_path):
    labels = [i % 3 for i in range(24)]
    numbers, words = [], []
    for folder, given, found in (("numbers", labels, numbers), ("words", [f"LABEL_{i}" for i in labels], words)):
        with attend.train.Reranking(tmp_path / folder, PAIRS, model=GOLDEN / "tiny_sentence", labels=given, batch=8, rate=0.001,
                                    valid=(PAIRS, given), validate_every=1) as training:
            training.run(callback=lambda report: found.append(report["validation"]))
    assert numbers == words and len(numbers) == 3
    assert weights(tmp_path / "numbers") == weights(tmp_path / "words")


def test_reports(translated):
    reports = translated[1]
    assert [r["step"] for r in reports] == [1, 2, 3, 4, 5, 6] and all(r["loss"] > 0 and r["targets"] > 0 for r in reports)
    assert [r["validation"] is not None for r in reports] == [False, True] * 3
    assert reports[-1]["validation"]["loss"] < reports[1]["validation"]["loss"]


def test_steps_are_those_of_a_run(files, translated, tmp_path):
    with attend.train.Translation(tmp_path / "m", **files, **SIZES) as training:
        losses = []
        while not training.done:
            losses.append(training.step())
    assert losses == [r["loss"] for r in translated[1]] and weights(tmp_path / "m") == weights(translated[0])


def test_a_callback_stops_and_resuming_has_the_same_bits(files, translated, tmp_path):
    with attend.train.Translation(tmp_path / "m", **files, **SIZES) as training:
        report = training.run(callback=lambda r: r["step"] < 3)
        assert report["step"] == 3 and not training.done
    assert attend.open(tmp_path / "m")  # the model so far
    with attend.train.Translation(tmp_path / "m", resume=True, **files, **SIZES) as training:
        with pytest.raises(ZeroDivisionError):
            training.run(callback=lambda r: 1 / (r["step"] - 5))
    with attend.train.Translation(tmp_path / "m", resume=True, **files, **SIZES) as training:
        assert training.steps == 5
        training.run()
    assert weights(tmp_path / "m") == weights(translated[0])


def test_interrupted_by_ctrl_c(tmp_path):
    training = attend.train.Recommendation(tmp_path / "m", FRAME, time=None, **{**SHOP, "epochs": 10**5, "patience": 10**6})
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        training.run()
    timer.join()
    step = training.steps
    training.close()
    again = attend.train.Recommendation(tmp_path / "m", FRAME, time=None, resume=True, **{**SHOP, "epochs": 10**5, "patience": 10**6})
    assert step > 0 and again.steps == step
    with pytest.raises(attend.ArgumentError, match="closed"):
        training._training.step()


def test_a_run_of_some_steps(tmp_path):
    with attend.train.Recommendation(tmp_path / "m", FRAME, time=None, **SHOP) as training:
        assert training.run(steps=2)["step"] == 2 and not training.done
        assert training.evaluate(k=3)["k"] == 3
        training.save()
        training.write()
        assert attend.Recommender(tmp_path / "m").info["hidden"] == 8
        assert training.info["parameters"] > 0 and training.info["examples"] == 20


def test_minutes_count_those_of_earlier_runs(tmp_path, monkeypatch):
    """Each step takes 20 seconds of this clock; time between two processes does not count."""
    clock, validations = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def tick(report):
        clock[0] += 20
        validations.append(report["validation"])

    given = {"time": None, **SHOP, "epochs": 0, "steps": 10**6, "minutes": 1.5, "patience": 0, "validate_every": 1000}
    with attend.train.Recommendation(tmp_path / "m", FRAME, **given) as training:
        training.run(2, callback=tick)
        assert training.steps == 2 and not training.done
        training.save()
    clock[0] += 10**6
    with attend.train.Recommendation(tmp_path / "m", FRAME, **given, resume=True) as training:
        training.run(callback=tick)
        assert training.done and training.steps == 6
    assert [found is not None for found in validations] == [False] * 5 + [True]
    folder = tmp_path / "m"
    assert len(attend.Recommender(folder).recommend(["i1"], k=3)[0]) == 3


def test_other_threads_run_meanwhile(tmp_path):
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1
    thread = threading.Thread(target=count)
    with attend.train.Recommendation(tmp_path / "m", FRAME, time=None, **SHOP) as training:
        thread.start()
        training.run()
        ended.set()
        thread.join()
    assert counted[0] > 10


def test_a_model_goes_on_with_new_items(tmp_path):
    attend.Recommender.fit(FRAME, time=None, out=tmp_path / "old", **SHOP)
    more = {"user": FRAME["user"] + ["u1"], "item": FRAME["item"] + ["new"]}
    model = attend.Recommender.fit(more, time=None, out=tmp_path / "new", model=tmp_path / "old", epochs=2, rate=0.01)
    assert model.items[:15] == attend.Recommender(tmp_path / "old").items and "new" in model.items


@pytest.mark.parametrize("message, call", [
    ("nothing: there is no option", lambda f: attend.train.Recommendation(f, FRAME, time=None, nothing=1)),
    ("steps does not go with epochs", lambda f: attend.train.Recommendation(f, FRAME, time=None, steps=1, epochs=1)),
    ("patience: needs a validation", lambda f: attend.train.Recommendation(f, FRAME, time=None, split="none", patience=1)),
    ("loss: 'x', must be one of softmax", lambda f: attend.train.Recommendation(f, FRAME, time=None, loss="x")),
    ("batch: -5, must be", lambda f: attend.train.Recommendation(f, FRAME, time=None, batch=-5)),
    ("batch: 0, must be", lambda f: attend.train.Sentences(f, PAIRS, model=GOLDEN / "tiny_sentence", batch=0)),
    ("arch: 'ease'.*fit makes", lambda f: attend.train.Recommendation(f, FRAME, time=None, arch="ease")),
    ("rate: 'x', must be a number|max_rate", lambda f: attend.train.Recommendation(f, FRAME, time=None, rate="x")),
    ("steps: needed by schedule", lambda f: attend.train.Translation(f, source="a", target="b", schedule="linear")),
    ("target: the file", lambda f: attend.train.Translation(f, source="a")),
    ("valid_source, valid_target", lambda f: attend.train.Translation(f, source="a", target="b", valid_source="c")),
    ("attention: is for arch", lambda f: attend.train.Translation(f, source="a", target="b", attention="dot")),
    ("preset: 'x'", lambda f: attend.train.Translation(f, source="a", target="b", preset="x")),
    ("/no/such", lambda f: attend.train.Translation(f, source="/no/such", target="/no/such", steps=1)),
    (r"rows\[1\]: has 1 texts", lambda f: attend.train.Sentences(f, [("a", "b"), ("c",)], model=GOLDEN / "tiny_sentence")),
    ("scores has 1 numbers, but there are 2 rows", lambda f: attend.train.Sentences(f, PAIRS[:2], model=GOLDEN / "tiny_sentence", scores=[1])),
    (r"scores\[0\]: 'x'", lambda f: attend.train.Sentences(f, PAIRS[:1], model=GOLDEN / "tiny_sentence", scores=["x"])),
    ("model: the sentence model", lambda f: attend.train.Sentences(f, PAIRS)),
    ("/no/such", lambda f: attend.train.Images(f, "/no/such")),
    ("preset: 'x', must be", lambda f: attend.train.Images(f, GOLDEN, preset="x")),
    ("images: the folder", lambda f: attend.train.Captions(f, "captions.txt")),
    ("valid_list: needs train_list", lambda f: attend.train.Captions(f, "captions.txt", images=".", valid_list="x")),
    ("heads: does not go with decoder='gru'", lambda f: attend.train.Captions(f, "captions.txt", images=".", heads=2)),
    ("/no/such", lambda f: attend.train.Captions(f, "/no/such", images=".")),
    ("model: the text classifier", lambda f: attend.train.Reranking(f, PAIRS)),
    ("scale: does not go with loss='binary-cross-entropy'", lambda f: attend.train.Reranking(f, PAIRS, model=GOLDEN / "tiny_sentence", scores=[1] * 24, scale=2)),
    ("activation: does not go", lambda f: attend.train.Reranking(f, PAIRS, model=GOLDEN / "tiny_sentence", scores=[1] * 24, activation="sigmoid")),
    ("batch: 1, but the negatives", lambda f: attend.train.Reranking(f, PAIRS, model=GOLDEN / "tiny_sentence", batch=1)),
    ("scores.*1.5|1.5.*score", lambda f: attend.train.Reranking(f, PAIRS[:1], model=GOLDEN / "tiny_sentence", scores=[1.5])),
    (r"labels\[1\]: 'x'", lambda f: attend.train.Reranking(f, PAIRS[:2], model=GOLDEN / "tiny_sentence", labels=[0, "x"])),
    ("valid: the label 'x'", lambda f: attend.train.Reranking(f, PAIRS[:2], model=GOLDEN / "tiny_sentence", labels=["a", "b"], valid=(PAIRS[:1], ["x"]))),
    ("valid: 1 rows of two texts and 0", lambda f: attend.train.Reranking(f, PAIRS, model=GOLDEN / "tiny_sentence", valid=(PAIRS[:1], []))),
    ("loss: 'x', must be one of binary", lambda f: attend.train.Reranking(f, PAIRS, model=GOLDEN / "tiny_sentence", loss="x")),
    ("text_model: needs item_texts", lambda f: attend.train.Recommendation(f, FRAME, time=None, text_model="x")),
    ("content: needs item_texts", lambda f: attend.train.Recommendation(f, FRAME, time=None, content="add")),
    ("content: 'x', must be", lambda f: attend.train.Recommendation(f, FRAME, time=None, item_texts=TITLES, content="x")),
    ("text_model: the sentence model", lambda f: attend.train.Recommendation(f, FRAME, time=None, item_texts=TITLES)),
    ("item_texts: no item of the log has a text; the first id is 'x', and one of the log 'i", lambda f: attend.train.Recommendation(
        f, FRAME, time=None, item_texts={"x": "sea"}, text_model=GOLDEN / "tiny_sentence")),
    ("rate: nan, must be a number", lambda f: attend.train.Recommendation(f, FRAME, time=None, rate=float("nan"))),
    ("steps: 2.5, must be a whole number", lambda f: attend.train.Recommendation(f, FRAME, time=None, steps=2.5)),
    ("accumulate: 0, must be a whole number from 1", lambda f: attend.train.Recommendation(f, FRAME, time=None, accumulate=0)),
    ("save_every: -1, must be a whole number", lambda f: attend.train.Recommendation(f, FRAME, time=None, save_every=-1)),
    ("warmup: nan, must be a number", lambda f: attend.train.Recommendation(f, FRAME, time=None, warmup=float("nan"))),
    ("epochs: '2', must be a number", lambda f: attend.train.Recommendation(f, FRAME, time=None, epochs="2")),
    ("rows: there are none", lambda f: attend.train.Sentences(f, [], model=GOLDEN / "tiny_sentence")),
    (r"rows\[1\]\[0\]: a str is needed, not NoneType", lambda f: attend.train.Sentences(f, [("a", "b"), (None, "c")], model=GOLDEN / "tiny_sentence")),
    ("minutes: -1, must be", lambda f: attend.train.Recommendation(f, FRAME, time=None, minutes=-1)),
    ("valid: 1 rows", lambda f: attend.train.Sentences(f, PAIRS, model=GOLDEN / "tiny_sentence", valid=(PAIRS[:1], []))),
])
def test_what_is_refused(message, call, tmp_path):
    with pytest.raises(attend.Error, match=message):
        call(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def idx(folder, name, dims, numbers):
    folder.mkdir(exist_ok=True)
    head = bytes([0, 0, 8, len(dims)]) + b"".join(d.to_bytes(4, "big") for d in dims)
    (folder / name).write_bytes(head + bytes(numbers))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """48 images of 8 x 8, whose classes are which half is bright"""
    folder, labels = tmp_path_factory.mktemp("digits"), [i % 2 for i in range(48)]
    pixels = [rng.randint(0, 90) + 150 * (x < 4 if label else x >= 4) for label in labels for _ in range(8) for x in range(8)]
    for part in ("train", "t10k"):
        idx(folder, f"{part}-images-idx3-ubyte", (48, 8, 8), pixels)
        idx(folder, f"{part}-labels-idx1-ubyte", (48,), labels)
    return folder


VIT = {"model_type": "vit", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "patch_size": 4}


@needs_tool
@pytest.mark.parametrize("more", [{}, {"balance": True, "valid_share": 0.25, "crop": 1}])
def test_images_have_the_bits_of_the_tool(digits, more, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(VIT))
    common = {"batch": 8, "epochs": 2}
    with attend.train.Images(tmp_path / "py", digits, settings=VIT, **common, **more) as training:
        training.run()
        measures = training.evaluate()
    words = [word for word in options({**common, **more}) if word is not True]
    found = tool("classify", tmp_path / "tool", "--data", digits, "--config", tmp_path / "config.json", *words)
    assert found == weights(tmp_path / "py") and 0 <= measures["accuracy"] <= 100
    assert measures["images"] == (12 if more else 2)


def test_images_of_another_folder_are_for_validation(digits, tmp_path):
    with attend.train.Images(tmp_path / "m", digits, settings=VIT, valid=digits, epochs=1, labels=["right", "left"]) as training:
        training.run()
        assert training.evaluate()["images"] == 48
    assert json.loads((tmp_path / "m/config.json").read_text())["id2label"] == {"0": "right", "1": "left"}


def png(path, color, side=16):
    """A picture of one color"""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    rows = (b"\0" + bytes(color) * side) * side
    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captions")
    (folder / "images").mkdir()
    colors = [("red", (250, 9, 9)), ("green", (9, 250, 9)), ("blue", (9, 9, 250))] * 4
    for i, (_, color) in enumerate(colors):
        png(folder / f"images/{i}.png", color)
    (folder / "captions.txt").write_text("".join(f"{i}.png\ta {name} square\n{i}.png\tit is {name}\n" for i, (name, _) in enumerate(colors)))
    (folder / "train.txt").write_text("".join(f"{i}.png\n" for i in range(8)))
    (folder / "valid.txt").write_text("".join(f"{i}.png\n" for i in range(8, 12)))
    return folder


@needs_tool
@pytest.mark.parametrize("more", [{}, {"decoder": "transformer", "heads": 2, "epochs": 2, "presence": 0, "crop": 1}])
def test_captions_have_the_bits_of_the_tool(pictures, more, tmp_path):
    files = {"images": pictures / "images", "train_list": pictures / "train.txt", "valid_list": pictures / "valid.txt"}
    sizes = {"image_size": 16, "hidden": 12, "min_count": 1, "batch": 3, "rate": 0.01, "epochs": 5, **more}
    reports = []
    with attend.train.Captions(tmp_path / "py", pictures / "captions.txt", channels=[4, 6], **files, **sizes) as training:
        training.run(callback=reports.append)
    found = tool("caption", tmp_path / "tool", "--data", pictures / "captions.txt", "--channels", "4,6", *options(files), *options(sizes))
    assert found == weights(tmp_path / "py")
    measures = [set(r["validation"]) for r in reports if r["validation"]]
    assert measures == ([{"presence"}] * 2 + [{"loss"}] * 3 if not more else [{"loss"}] * 2)
