"""CrossEncoder: scores of pairs of texts, and labels of texts, with the names of the package sentence-transformers 6."""
from attend import _attend, _hub
from attend._accepted import only_cpu, only_none, scalar
from attend.sentence_transformer import converter, progress_bar


class CrossEncoder:
    """A classifier of pairs or texts: a folder of XForSequenceClassification, or its name"""

    def __init__(self, model_name_or_path, *, modules=None, device=None, prompts=None, default_prompt_name=None,
                 cache_folder=None, trust_remote_code=False, revision=None, local_files_only=False, token=None,
                 model_kwargs=None, processor_kwargs=None, config_kwargs=None, model_card_data=None, backend="torch",
                 num_labels=None, max_length=None, activation_fn=None, keep_in_fp32_modules=None, dtype=None,
                 compute=None):
        only_cpu(device)
        only_none(modules=modules, prompts=prompts, default_prompt_name=default_prompt_name, model_kwargs=model_kwargs,
                  processor_kwargs=processor_kwargs, config_kwargs=config_kwargs)
        self._path = _hub.find(model_name_or_path, revision=revision, local_files_only=local_files_only,
                               cache_folder=cache_folder, token=token)
        self._options = {"max_length": max_length, "activation_fn": _activation(activation_fn), "dtype": dtype,
                         "compute": compute, "local_files_only": True}
        self._model = _attend.Classifier(self._path, dtype=dtype, compute=compute)
        longest = self._model.info["max_tokens"]
        self.max_length = max_length or longest
        if not 0 < self.max_length <= longest:
            raise _attend.ArgumentError(f"max_length: {max_length}, must be from 1 to {longest}, as the model has it")
        self.labels = self._model.info["labels"]
        if num_labels not in (None, len(self.labels)):
            raise _attend.ArgumentError(f"num_labels: {num_labels}, the model has {len(self.labels)}")

    def __reduce__(self):
        return _reopen, (self._path, self._options)

    def __repr__(self):
        return f"attend.CrossEncoder({self._path!r})"

    @property
    def num_labels(self):
        return len(self.labels)

    def predict(self, inputs, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None, activation_fn=None,
                apply_softmax=False, convert_to_numpy=True, convert_to_tensor=False, device=None, pool=None,
                chunk_size=None):
        """Scores of one pair (text, text), or of a sequence of pairs, or of texts alone, [(text,), ...]: [n], or
        [n, labels] where there is more than one label. activation_fn: "identity", "sigmoid", "softmax"; None: the
        model's. batch_size and chunk_size change nothing."""
        only_cpu(device)
        only_none(prompt_name=prompt_name, prompt=prompt, pool=pool)
        inputs = [(inputs,)] if isinstance(inputs, str) else list(inputs)
        single = bool(inputs) and isinstance(inputs[0], str)
        rows = [inputs] if single else inputs
        lengths = {len(row) for row in rows}
        if lengths - {1, 2} or len(lengths) > 1:
            raise _attend.DtypeError("inputs: a pair (text, text), a sequence of pairs or, of texts alone, of (text,) is "
                                     "needed")
        first = [row[0] for row in rows]
        second = None if lengths == {1} else [row[1] for row in rows]
        softmax = apply_softmax and self.num_labels > 1
        found = self._scores(first, second, "softmax" if softmax else activation_fn, show_progress_bar)
        if self.num_labels == 1:
            found = found.column(0)
        result = converter(convert_to_numpy, convert_to_tensor)(found)
        return scalar(result[0]) if single else result

    def rank(self, query, documents, top_k=None, return_documents=False, prompt_name=None, prompt=None, batch_size=32,
             show_progress_bar=None, activation_fn=None, device=None, pool=None, chunk_size=None):
        """Documents by descending score: [{"corpus_id": number, "score": score}], with "text" if asked"""
        only_cpu(device)
        only_none(prompt_name=prompt_name, prompt=prompt, pool=pool)
        if self.num_labels != 1:
            raise _attend.ArgumentError(f"the model has {self.num_labels} labels; one that ranks has 1")
        documents = list(documents)
        scores = self._scores([query] * len(documents), documents, activation_fn, show_progress_bar).tolist()
        order = sorted(range(len(documents)), key=lambda i: (-scores[i][0], i))[:top_k]
        return [{"corpus_id": i, "score": scores[i][0], **({"text": documents[i]} if return_documents else {})}
                for i in order]

    def _scores(self, first, second, activation_fn, show_progress_bar):
        activation = _activation(activation_fn) or self._options["activation_fn"] or "model"
        return self._model.scores(first, second, activation=activation, max_tokens=self.max_length,
                                  progress=progress_bar("predict") if show_progress_bar else None)


def _activation(function):
    """The name of an activation, which may be a module of torch.nn"""
    if function is None or isinstance(function, str):
        return function
    name = type(function).__name__.lower()
    if name not in ("identity", "sigmoid", "softmax"):
        raise _attend.ArgumentError(f"activation_fn: {function!r}, must be identity, sigmoid or softmax, as a name or a "
                                    "module of torch.nn")
    return name


def _reopen(path, options):
    return CrossEncoder(path, **options)
