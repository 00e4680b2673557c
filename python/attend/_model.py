"""What the classes of models share: they are opened by a path or a name, and pickled as that."""
from attend import _hub


class Model:
    """An opened model; a subclass names its type of attend._attend"""

    _type = None

    def __init__(self, path, *, dtype=None, compute=None, revision=None, local_files_only=False):
        self._path = _hub.find(path, revision=revision, local_files_only=local_files_only)
        self._types = {"dtype": dtype, "compute": compute}
        self._model = self._type(self._path, **self._types)
        self._opened()

    def _opened(self):
        """What a subclass makes of the model once"""

    def __reduce__(self):
        return _reopen, (type(self), self._path, self._types)

    def __repr__(self):
        return f"attend.{type(self).__name__}({self._path!r})"


def _reopen(cls, path, types):
    return cls(path, **types)


class ScoredText(str):
    """A text that a model has made, with its ids and its score"""

    def __new__(cls, text, ids, score):
        self = super().__new__(cls, text)
        self.ids, self.score = ids, score
        return self

    def __getnewargs__(self):
        return str(self), self.ids, self.score
