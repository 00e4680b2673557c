"""CrossEncoder: scores of pairs of texts, and labels of texts, with the names of the package sentence-transformers 6."""
from attend import _attend, _hub
from attend.sentence_transformer import converter


class CrossEncoder:
    """A classifier of pairs or texts: a folder of XForSequenceClassification, or its name"""

    def __init__(self, model_name_or_path, *, device=None, max_length=None, revision=None, local_files_only=False,
                 dtype=None):
        if device not in (None, "cpu"):
            raise _attend.ArgumentError(f"device: {device!r}, attend computes on the CPU")
        self._path = _hub.find(model_name_or_path, revision=revision, local_files_only=local_files_only)
        self._options = {"max_length": max_length, "dtype": dtype, "local_files_only": True}
        self._model = _attend.Classifier(self._path, dtype=dtype)
        self.max_length = max_length or self._model.info["max_tokens"]
        self.labels = self._model.info["labels"]

    def __reduce__(self):
        return _reopen, (self._path, self._options)

    def __repr__(self):
        return f"attend.CrossEncoder({self._path!r})"

    @property
    def num_labels(self):
        return len(self.labels)

    def predict(self, inputs, batch_size=32, *, activation_fn=None, apply_softmax=False, convert_to_numpy=True,
                convert_to_tensor=False):
        """Scores of one pair (text, text), or of a sequence of pairs, or of texts alone, [(text,), ...]: [n], or
        [n, labels] where there is more than one label. activation_fn: "identity", "sigmoid", "softmax"; None: the
        model's."""
        inputs = [(inputs,)] if isinstance(inputs, str) else list(inputs)
        single = bool(inputs) and isinstance(inputs[0], str)
        rows = [inputs] if single else inputs
        lengths = {len(row) for row in rows}
        if lengths - {1, 2} or len(lengths) > 1:
            raise _attend.DtypeError("inputs: a pair (text, text), a sequence of pairs or, of texts alone, of (text,) is "
                                     "needed")
        first = [row[0] for row in rows]
        second = None if lengths == {1} else [row[1] for row in rows]
        found = self._model.scores(first, second, activation="softmax" if apply_softmax else activation_fn or "model",
                                   max_tokens=self.max_length)
        if self.num_labels == 1:
            found = found.column(0)
        result = converter(convert_to_numpy, convert_to_tensor)(found)
        return result[0] if single else result

    def rank(self, query, documents, top_k=None, return_documents=False, batch_size=32, *, activation_fn=None):
        """Documents by descending score: [{"corpus_id": number, "score": score}], with "text" if asked"""
        if self.num_labels != 1:
            raise _attend.ArgumentError(f"the model has {self.num_labels} labels; one that ranks has 1")
        documents = list(documents)
        scores = self._model.scores([query] * len(documents), documents, activation=activation_fn or "model",
                                    max_tokens=self.max_length).tolist()
        order = sorted(range(len(documents)), key=lambda i: (-scores[i][0], i))[:top_k]
        return [{"corpus_id": i, "score": scores[i][0], **({"text": documents[i]} if return_documents else {})}
                for i in order]


def _reopen(path, options):
    return CrossEncoder(path, **options)
