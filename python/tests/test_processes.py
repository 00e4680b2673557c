"""Models in other processes and threads, and the end of the interpreter."""
import multiprocessing
import pathlib
import pickle
import subprocess
import sys
import threading

import pytest

import attend
from test_arrays import floats

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
PAIRS = [("in water", "the sea"), ("wind", "metal that is liquid")] * 20


@pytest.fixture(name="model", scope="module")
def fixture_model():
    return attend.CrossEncoder(GOLDEN / "classifiers/bert")


def score(model, pairs):
    return model.predict(pairs).tolist()


def run(model, connection):
    connection.send((score(model, PAIRS), attend.config()["threads"]))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_model_in_another_process(model, method):
    expected = score(model, PAIRS)
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    child = context.Process(target=run, args=(model, theirs))  # fork: the object itself; others: its pickle
    child.start()
    assert ours.poll(60) and ours.recv() == (expected, attend.config()["threads"])
    child.join(60)
    assert child.exitcode == 0


def test_a_pool_while_threads_compute(model):
    expected, stop, wrong = score(model, PAIRS), threading.Event(), []

    def compute():
        while not stop.is_set():
            if score(model, PAIRS) != expected:
                wrong.append(1)

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.starmap(score, [(model, PAIRS)] * 4) == [expected] * 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_what_pickles(model):
    q = floats(2, 3, 4)
    for found in (attend.similarity(floats(2, 3), floats(4, 3)), attend.scaled_dot_product_attention(q, q, q)[1]):
        again = pickle.loads(pickle.dumps(found))
        assert type(again) is type(found) and again.tolist() == found.tolist() and again.dtype == found.dtype
    generator = attend.Generator(GOLDEN / "tiny_llama")
    text = generator.generate("bdcab", max_new_tokens=4, temperature=0)
    again = pickle.loads(pickle.dumps(text))
    assert again == text and again.ids == text.ids and again.end == text.end
    assert pickle.loads(pickle.dumps(generator)).generate("bdcab", max_new_tokens=4, temperature=0) == text


ENDS = {
    "a thread that computes": """
        model = attend.CrossEncoder(sys.argv[1] + "/classifiers/bert")
        def forever():
            while True:
                model.predict([("in water", "the sea")] * 50)
        threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.2)
    """,
    "a text that is not finished": """
        stream = attend.Generator(sys.argv[1] + "/tiny_llama").stream("bdcab", max_new_tokens=8, temperature=0)
        next(stream)
    """,
    "cycles of all kinds": """
        class Node: pass
        nodes = [Node() for _ in range(9)]
        kept = [attend.CrossEncoder(sys.argv[1] + "/classifiers/bert"), attend.Generator(sys.argv[1] + "/tiny_llama"),
                attend.Tokenizer(sys.argv[1] + "/tiny_sentence"), attend.open(sys.argv[1] + "/tiny_sentence"), attend.Error("x"),
                attend.similarity(q, q), attend.similarity(q, q).__dlpack__(), attend.similarity(q, q).__arrow_c_array__(), attend._attend]
        for i, node in enumerate(nodes):
            node.next, node.kept = nodes[i - 1], kept[i]
        builtins.kept = nodes
        sys.modules["kept"] = kept
    """,
    "a module that is imported twice": """
        array_of_first = attend.similarity(q, q)
        for name in [n for n in sys.modules if n.startswith("attend")]:
            del sys.modules[name]
        import attend as second
        assert second.Error is not attend.Error
        assert second.similarity(array_of_first, array_of_first).tolist() == attend.similarity(array_of_first, array_of_first).tolist()
    """,
    "work in __del__ and atexit": """
        import atexit
        atexit.register(lambda: attend.similarity(q, q))
        class Late:
            def __del__(self, f=attend.similarity, q=q):
                f(q, q)
        builtins.late = Late()
    """,
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_interpreter(name):
    frame = ("import array, builtins, sys, textwrap, threading, time\nimport attend\n"
             "q = memoryview(array.array('f', [0.1] * 12)).cast('B').cast('f', (3, 4))\n"
             f"exec(textwrap.dedent({ENDS[name]!r}), globals())\n")
    done = subprocess.run([sys.executable, "-c", frame, GOLDEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
