"""Of every Python that is started with this folder in PYTHONPATH: SIGKILL to the first process that has computed a batch after
another batch was computed, before it gives the result. ATTEND_KILLED_ONCE: a file, which gets a byte for each batch, and
beside it one with the id of the killed process."""
import functools
import os
import signal

import attend

COUNT = os.environ["ATTEND_KILLED_ONCE"]


def counted(method):
    @functools.wraps(method)
    def call(*args, **options):
        found = method(*args, **options)
        with open(COUNT, "ab", buffering=0) as file:
            file.write(b".")
            batches = file.tell()
        if batches > 1:
            kill_once()
        return found
    return call


def kill_once():
    try:
        with open(COUNT + ".pid", "x", encoding="ascii") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


for kind, name in ((attend.SentenceTransformer, "encode"), (attend.ImageClassifier, "predict"),
                   (attend.ImageClassifier, "classify"), (attend.Translator, "translate"), (attend.Recommender, "recommend")):
    setattr(kind, name, counted(getattr(kind, name)))
