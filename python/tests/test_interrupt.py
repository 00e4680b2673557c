"""Ctrl-C ends long calls at once, and only those; the GIL is free meanwhile."""
import os
import subprocess
import sys
import textwrap

import pytest

# A thread sends SIGINT a moment after `long` has begun, and at the end counts how far another one came meanwhile.
FRAME = """
import array, os, signal, sys, threading, time
import attend

def floats(*shape):
    n = 1
    for d in shape:
        n *= d
    return memoryview(array.array("f", [0.01]) * n).cast("B").cast("f", shape)

attend.set_threads(1)  # so that long calls are long on any machine

def interrupt(after=0.3):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()

q = floats(1, 16, 16384, 64)
def long():
    return attend.scaled_dot_product_attention(q, q, q)

"""


def run(code):
    done = subprocess.run([sys.executable, "-c", FRAME + textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


LONG = {
    "attention": "long()",
    "backward": "attend.attention_backward(q, q, q, q, floats(1, 16, 16384, 64), floats(1, 16, 16384))",
    "search": "attend.semantic_search(floats(6000, 512), floats(100000, 512))",
    "similarity": "attend.similarity(floats(8000, 2048), floats(20000, 2048))",
    "distances": "attend.similarity(floats(6000, 256), floats(6000, 256), 'manhattan')",
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_call_is_ended(name):
    [seconds] = run(f"""
        began = time.perf_counter()
        interrupt()
        try:
            {LONG[name]}
        except KeyboardInterrupt:
            print(time.perf_counter() - began)
    """)
    assert 0.25 < float(seconds) < (30 if "libasan" in os.environ.get("LD_PRELOAD", "") else 3)  # of many


def test_a_handler_that_raises_nothing_lets_the_call_end():
    assert run("""
        q = floats(1, 4, 2048, 64)
        expected = long().tolist()
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        interrupt(0.01)
        while not seen:
            assert long().tolist() == expected
        print(len(seen), signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
    """) == ["1", "True"]


def test_handlers_are_as_before_after_a_call():
    assert run("""
        small = floats(1, 1, 256, 64)
        for handler in (signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signal.SIGINT, handler)
            attend.attention_backward(small, small, small, small, floats(1, 1, 256, 64), floats(1, 1, 256))
            print(signal.getsignal(signal.SIGINT) is handler or signal.getsignal(signal.SIGINT) == handler)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("raised")
    """) == ["True", "True", "True", "raised"]


def test_another_thread_runs_on_during_a_call():
    counted, at_start = map(int, run("""
        q = floats(1, 8, 4096, 64)
        count, stop = 0, False

        def counts():
            global count
            while not stop:
                count += 1
                time.sleep(0.001)

        thread = threading.Thread(target=counts)
        thread.start()
        time.sleep(0.01)
        before = count
        long()
        print(count - before, before)
        stop = True
        thread.join()
    """))
    assert counted > 5
