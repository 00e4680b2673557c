"""Tokenizer: ids of texts, with the names of the package tokenizers."""
from attend import _attend, _hub


class Encoding:
    """ids, tokens and offsets, in characters, of a text"""

    def __init__(self, tokenizer, ids, offsets):
        self._tokenizer, self.ids, self.offsets = tokenizer, ids, offsets

    @property
    def tokens(self):
        return [self._tokenizer.token(id) for id in self.ids]

    def __len__(self):
        return len(self.ids)

    def __repr__(self):
        return f"attend.Encoding({len(self.ids)} tokens)"


class Tokenizer:
    """The tokenizer of a model folder, or of a file: tokenizer.json, SentencePiece, .gguf. target: texts are translations, for
    which Marian models have a second one"""

    def __init__(self, path, *, target=False, revision=None, local_files_only=False):
        self._target = target
        self._path = _hub.find(path, revision=revision, local_files_only=local_files_only, weights=False)
        self._tokenizer = _attend.Tokenizer(self._path)

    def __reduce__(self):
        return _reopen, (self._path, self._target)

    def __len__(self):
        return len(self._tokenizer)

    def encode(self, text, add_special_tokens=True):
        [(ids, offsets)] = self._tokenizer.encode([text], add_special_tokens, 0, True, self._target)
        return Encoding(self._tokenizer, ids, offsets)

    def encode_batch(self, texts, add_special_tokens=True, max_tokens=0):
        """Lists of ids of texts, on all threads"""
        return self._tokenizer.encode(texts, add_special_tokens, max_tokens, False, self._target)

    def decode(self, ids):
        return self._tokenizer.decode(ids)

    def token_to_id(self, token):
        return self._tokenizer.id(token)

    def id_to_token(self, id):
        return self._tokenizer.token(id)

    def get_vocab_size(self):
        return len(self._tokenizer)


def _reopen(path, target):
    return Tokenizer(path, target=target)
