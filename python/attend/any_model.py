"""attend.open: a model of any kind, in the class of what its files are; attend.open_cached: once in a process."""
import os
import threading

from attend import _attend, _hub
from attend.captioner import Captioner
from attend.cross_encoder import CrossEncoder
from attend.generator import Generator
from attend.image_classifier import ImageClassifier
from attend.recommender import Recommender
from attend.sentence_transformer import SentenceTransformer
from attend.translator import Translator

_CLASSES = {"sentence model": SentenceTransformer, "language model": Generator, "text classifier": CrossEncoder,
            "translator": Translator, "vision model": ImageClassifier, "captioner": Captioner, "recommender": Recommender}

_opened, _lock = {}, threading.Lock()


def open(name, *, revision=None, local_files_only=False, **options):
    """Opens a model: the path of a folder or .gguf file, a name of attend's models, or OWNER/NAME of the Hugging Face Hub.
    Sentence models and text encoders are a SentenceTransformer, language models a Generator, classifiers of texts or
    pairs a CrossEncoder, translators a Translator, vision models an ImageClassifier, captioners a Captioner, recommenders a
    Recommender, which get the options."""
    path = _hub.find(name, revision=revision, local_files_only=local_files_only)
    kind, model_type, architecture = _attend.identify(path)
    if kind in _CLASSES:
        return _CLASSES[kind](path, **options)
    about = ", ".join(filter(None, (model_type, architecture)))
    raise _attend.UnsupportedError(f"{path}: its files do not tell what kind of model it is"
                                   + (f" ({about} is not supported)" if about else ""))


def open_cached(name, **options):
    """The model that open(name, **options) gives, opened by the first call of the process that asks for it, and kept until the
    process ends; files that change meanwhile are not read again. For functions that an engine calls for each batch."""
    key = os.getcwd(), os.fspath(name), repr(sorted(options.items()))  # a relative path depends on the folder
    with _lock:
        if key not in _opened:
            _opened[key] = open(name, **options)
        return _opened[key]


def _after_fork():
    """Makes the lock free in a child: of the threads, it has only the one that forked."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
