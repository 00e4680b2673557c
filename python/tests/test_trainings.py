"""Trainings: steps, runs, callbacks, resuming; with the bits of the tool."""
import os
import pathlib
import random
import signal
import subprocess
import threading

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
    ("batch", lambda f: attend.train.Recommendation(f, FRAME, time=None, batch=-5)),
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
    ("valid: 1 pairs", lambda f: attend.train.Sentences(f, PAIRS, model=GOLDEN / "tiny_sentence", valid=(PAIRS[:1], []))),
])
def test_what_is_refused(message, call, tmp_path):
    with pytest.raises(attend.Error, match=message):
        call(tmp_path / "m")
    assert not (tmp_path / "m").exists()
