"""Translator: translations of texts, and of tokens with the names of the package ctranslate2."""
import json
import os

from attend import _attend
from attend._accepted import only_defaults, positive
from attend._model import Model, ScoredText
from attend.attention import Attention
from attend.tokenizer import Tokenizer


class Translation(ScoredText):
    """A translated text, with its ids and its score, which is None if none was asked for"""


class TranslationResult:
    """Of one text: hypotheses, lists of tokens, the best first; scores and attention [target][source] of each, or []"""

    def __init__(self, hypotheses, scores, attention):
        self.hypotheses, self.scores, self.attention = hypotheses, scores, attention

    def __repr__(self):
        return f"attend.TranslationResult(hypotheses={self.hypotheses!r}, scores={self.scores!r}, attention={self.attention!r})"


# Arguments of translate_batch whose other values attend does not have
_ONLY = {"asynchronous": False, "patience": 1, "coverage_penalty": 0, "repetition_penalty": 1, "no_repeat_ngram_size": 0,
         "disable_unk": False, "suppress_sequences": None, "end_token": None,
         "prefix_bias_beta": 0, "use_vmap": False, "return_logits_vocab": False, "return_alternatives": False,
         "sampling_topk": 1, "replace_unknowns": False, "callback": None}
_NO_EFFECT = {"max_batch_size", "batch_type", "min_alternative_expansion_prob", "sampling_topp", "sampling_temperature"}


class Translator(Model):
    """A model that translates: a folder of MarianMTModel, such as OPUS-MT's, or of attend's; or its name"""

    _type = _attend.Translator

    def _opened(self):
        self._info, self._forces_end = self._model.info, _forces_end(self._path)
        self._tokenizers, self._ids = {}, {}

    @property
    def tokenizer(self):
        """Of texts that are translated"""
        return self._tokenizer(False)

    @property
    def target_tokenizer(self):
        """Of translations: its ids are of the same vocabulary"""
        return self._tokenizer(True)

    def _tokenizer(self, target):
        if target not in self._tokenizers:
            self._tokenizers[target] = Tokenizer(self._path, target=target)
        return self._tokenizers[target]

    def translate(self, texts, *, beam_size=None, num_hypotheses=1, max_length=None, length_penalty=None, return_scores=False,
                  split=False, progress=None):
        """Translates a str, or each str of a sequence or Arrow array: a Translation, or a list of them; with
        num_hypotheses above 1, of each text the list of its translations, the best first. max_length is in tokens, the end
        included. What is None is as in the model's generation_config.json. split: translate texts that are too long for the
        model in parts. progress is called with the share that is done."""
        found = self._model.translate(texts, beam=positive(beam_size, "beam_size"), n_best=num_hypotheses,
                                      max_tokens=positive(max_length, "max_length"), length_penalty=length_penalty, split=split,
                                      scores=return_scores or num_hypotheses > 1 or beam_size != 1, progress=progress)
        found = [[Translation(text, ids, score if return_scores else None) for text, ids, score in one] for one in found]
        if num_hypotheses == 1:
            found = [one[0] for one in found]
        return found[0] if isinstance(texts, str) else found

    def translate_batch(self, source, target_prefix=None, *, beam_size=2, num_hypotheses=1, length_penalty=1,
                        max_input_length=1024, max_decoding_length=256, min_decoding_length=1, return_end_token=False,
                        return_scores=False, return_attention=False, **others):
        """Translates lists of tokens, such as those of tokenizer.encode(text).tokens, as ctranslate2 does: of each a
        TranslationResult. others: those of ctranslate2's arguments that have one value here, or no effect."""
        only_defaults("translate_batch", others, _ONLY, _NO_EFFECT)
        source = [_truncated(self._ids_of(tokens), max_input_length) for tokens in source]
        prefixes = [self._ids_of(tokens or []) for tokens in target_prefix] if target_prefix is not None else [[]] * len(source)
        if len(prefixes) != len(source):
            raise _attend.ShapeError(f"target_prefix: {len(prefixes)} prefixes for {len(source)} texts")
        if not 0 <= min_decoding_length <= max_decoding_length or max_decoding_length < 1:
            raise _attend.ArgumentError(f"max_decoding_length: {max_decoding_length}, must be 1 or more and at least "
                                        f"min_decoding_length, {min_decoding_length}")
        longest = min(max_decoding_length, self._info["max_tokens"] - self._forces_end)  # of a translation without eos
        # An empty text has nothing that could be translated.
        full = [i for i, ids in enumerate(source) if any(id != self._info["eos"] for id in ids)]
        found = self._model.translate(
            ids=[source[i] for i in full], prefixes=[prefixes[i] for i in full], beam=positive(beam_size, "beam_size"),
            n_best=num_hypotheses, length_penalty=length_penalty, max_tokens=longest + self._forces_end,
            min_tokens=min(min_decoding_length + 1, longest), scores=return_scores or beam_size != 1)
        results = [_empty(self._tokens_of(prefix), num_hypotheses, return_scores, return_attention) for prefix in prefixes]
        for i, hypotheses in zip(full, found):
            rows = [ids for _, ids, _ in hypotheses]
            ended = [len(ids) < longest for ids in rows]
            results[i] = TranslationResult(
                [self._tokens_of(ids + [self._info["eos"]] * (return_end_token and end)) for ids, end in zip(rows, ended)],
                [_score(score, length_penalty, len(ids), len(prefixes[i]), end, self._forces_end)
                 for (_, ids, score), end in zip(hypotheses, ended)] if return_scores else [],
                [self._model.attention(source[i], ids, -1, 0).tolist()[:len(ids) + (return_end_token and end)]
                 for ids, end in zip(rows, ended)] if return_attention else [])
        return results

    def attention(self, text, translation=None, *, layer=-1, head=-1):
        """What each token of a translation looked at: an Attention whose rows are the tokens of the translation and the
        end, and whose columns are those of the text. translation: a str, or None: the model's. head -1: the mean of
        all."""
        source = self.tokenizer.encode(text).ids
        if translation is None:
            translation = self.translate(text)
        ids = translation.ids if isinstance(translation, Translation) else self.target_tokenizer.encode(translation, False).ids
        weights = self._model.attention(source, ids, layer, head)
        return Attention(weights, self._tokens_of(source), self._tokens_of(ids) + [self.tokenizer.id_to_token(self._info["eos"])])

    def _tokens_of(self, ids):
        return [self.tokenizer.id_to_token(id) for id in ids]

    def _ids_of(self, tokens):
        """Ids of tokens; one that the vocabulary does not have is the unknown one, as in ctranslate2"""
        if isinstance(tokens, str):
            raise _attend.DtypeError("source: lists of tokens are needed, not str: translate() takes texts")
        known = self._ids
        for token in tokens:
            if token not in known:
                id = self.tokenizer.token_to_id(token)
                known[token] = self._info["unk"] if id is None else id
        return [known[token] for token in tokens]


def _forces_end(path):
    """Whether the model's settings end a translation of the longest length by eos, whatever its probability"""
    for name in ("generation_config.json", "config.json"):
        if os.path.exists(os.path.join(path, name)):
            with open(os.path.join(path, name), encoding="utf-8") as f:
                return json.load(f).get("forced_eos_token_id") is not None
    return False


def _empty(prefix, hypotheses, scores, attention):
    """The result of an empty text, whose translation is the prefix"""
    return TranslationResult([prefix] * hypotheses, [0.0] * hypotheses * scores, [[[0.0]] * len(prefix)] * hypotheses * attention)


def _truncated(ids, longest):
    """The first ids of a text, and its last one, the end, as in ctranslate2"""
    return ids if not longest or len(ids) <= longest else ids[:longest - 1] + ids[-1:]


def _score(score, penalty, tokens, prefix, ended, forced):
    """A score as ctranslate2 has it: its length counts the prefix, but not an end that was forced"""
    ours, theirs = tokens - prefix + (ended or forced), tokens + ended
    return score * (ours / theirs) ** penalty if theirs else score
