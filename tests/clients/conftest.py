"""A server for the clients that programs have: `attend serve` in a process of its own, with models of each kind."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTEND = os.environ.get("ATTEND", str(ROOT / "build" / "attend"))
SENTENCE, CHAT = "all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"


class Server:
    """Starts `attend serve` with these options, and waits until it is ready."""

    def __init__(self, *options):
        self.errors = tempfile.TemporaryFile("w+")  # not a pipe, which its log would fill
        self.process = subprocess.Popen([ATTEND, "serve", "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            reason = self.log().strip()
            if "libmicrohttpd" in reason:
                pytest.skip(reason)
            raise RuntimeError(reason)
        self.url = re.search(r"http://\S+", line).group()

    def log(self):
        """Returns what the server has written to its standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def stop(self):
        """Ends the server, which must succeed."""
        self.process.terminate()
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.log()


def folder_of(name):
    """Returns the folder of a model that `attend fetch` downloads; None: it was not."""
    known = json.loads(subprocess.run([ATTEND, "fetch", "--json"], capture_output=True, check=True).stdout)
    return next(m["folder"] for m in known if m["name"] == name)


def models(*names):
    """Returns the options for these models, of those that come with attend, of tests/golden, or downloaded ones."""
    options = []
    for name in names:
        folder = ROOT / name
        if not folder.exists():
            folder = folder_of(name)
            if folder is None:
                pytest.skip(f"{name} is not on this machine: attend fetch {name}")
        options += ["-m", str(folder)]
    return options


def serve(*options):
    server = Server(*options)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def texts():
    """A server of the models of texts."""
    yield from serve(*models(SENTENCE, CHAT), "--alias", "text-embedding-3-small=" + SENTENCE,
                     "--alias", "gpt-4o-mini=" + CHAT)


@pytest.fixture(scope="session")
def small():
    """A server of models that come with attend, and of those of tests: "bert" is a cross-encoder, "distilbert" has two
    labels, "tiny_llama" continues texts."""
    yield from serve(*models("models/tatoeba-de-en", "models/fashion-mnist", "models/flickr8k-captions",
                             "tests/golden/classifiers/bert", "tests/golden/classifiers/distilbert",
                             "tests/golden/tiny_llama"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A server of small models for all routes but /recommend; "chat" is tiny_llama with a template. It demands a key."""
    chat = tmp_path_factory.mktemp("models") / "chat"
    shutil.copytree(ROOT / "tests/golden/tiny_llama", chat)
    shutil.copy(ROOT / "tests/golden/chat/mistral-nemo.jinja", chat / "chat_template.jinja")
    (chat / "tokenizer_config.json").write_text('{"eos_token": "</>"}')
    yield from serve(*models("tests/golden/tiny_sentence", "tests/golden/classifiers/bert", "models/tatoeba-de-en",
                             "models/fashion-mnist", "models/flickr8k-captions"), "-m", str(chat), "--api-key", "secret",
                     "--timeout", "20")


@pytest.fixture(scope="session")
def locked():
    """A server that demands a key, and where 64 tokens may wait."""
    yield from serve(*models("models/tatoeba-de-en", "tests/golden/classifiers/bert", SENTENCE), "--api-key", "secret",
                     "--max-waiting", "64")
