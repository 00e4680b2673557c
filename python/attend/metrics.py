"""BLEU and chrF of translations, with the names, numbers and texts of the package sacrebleu 2.6."""
import json

from attend import _attend
from attend._accepted import only_defaults

_ABBREVIATIONS = {"nrefs": "#", "case": "c", "eff": "e", "smooth": "s", "space": "s", "version": "v"}


class Signature:
    """What a score depends on: "nrefs:1|case:mixed|..." """

    def __init__(self, info):
        self.info = info

    def format(self, short=False):
        return "|".join(f"{_ABBREVIATIONS.get(name, name) if short else name}:{value}" for name, value in self.info.items())

    __str__ = __repr__ = format


class Score:
    """A score in [0, 100], which str() prints as sacrebleu does"""

    def __init__(self, name, score, verbose=""):
        self.name, self.score, self._verbose = name, score, verbose

    def format(self, width=2, score_only=False, signature="", is_json=False):
        number = f"{self.score:.{width}f}"
        if score_only:
            return number
        if is_json:
            fields = {"name": self.name, "score": float(number), "signature": str(signature)}
            if self._verbose:
                fields["verbose_score"] = self._verbose
            fields.update(pair.split(":", 1) for pair in str(signature).split("|") if pair)
            return json.dumps(fields, indent=1, ensure_ascii=False)
        name = f"{self.name}|{signature}" if signature else self.name
        return " ".join(filter(None, (f"{name} = {number}", self._verbose)))

    def __str__(self):
        return self.format()

    def __repr__(self):
        return self.format()


class BLEUScore(Score):
    """score, and what it comes from: counts of matches and totals of n-grams, precisions, bp, sys_len, ref_len"""

    def __init__(self, score, found, order):
        self.counts, self.totals, self.precisions = (found[name][:order] for name in ("counts", "totals", "precisions"))
        self.bp, self.sys_len, self.ref_len = found["bp"], found["sys_len"], found["ref_len"]
        self.ratio = self.sys_len / self.ref_len if self.ref_len else 0
        self.prec_str = "/".join(f"{p:.1f}" for p in self.precisions)
        super().__init__("BLEU", score, f"{self.prec_str} (BP = {self.bp:.3f} ratio = {self.ratio:.3f} "
                                        f"hyp_len = {self.sys_len} ref_len = {self.ref_len})")


class CHRFScore(Score):
    """score, and the settings of chrF2"""

    def __init__(self, score):
        self.char_order, self.word_order, self.beta = 6, 0, 2
        super().__init__("chrF2", score)


class _Metric:
    def __init__(self, lowercase, references):
        self.lowercase, self._references, self.num_refs = lowercase, references, None

    def corpus_score(self, hypotheses, references, n_bootstrap=1):
        """The score of hypotheses, a list of str, with references, lists of as many str or None: references[k] has the
        k-th reference of each"""
        only_defaults("corpus_score", {"n_bootstrap": n_bootstrap}, {"n_bootstrap": 1}, ())
        references = self._references if references is None else references
        if references is None:
            raise _attend.ArgumentError("references: None, and the metric was made without any")
        if isinstance(hypotheses, str) or isinstance(references, str):
            raise _attend.DtypeError("hypotheses, references: lists are needed, not a str: sentence_score() takes one sentence")
        hypotheses, references = list(hypotheses), [list(some) for some in references]
        if self.lowercase:
            hypotheses = [text.lower() for text in hypotheses]
            references = [[text and text.lower() for text in some] for some in references]
        found = _attend.bleu(hypotheses, references, self._tokenize, self.effective_order)
        self.num_refs = found["references"]
        return self._score(found)

    def sentence_score(self, hypothesis, references):
        """The score of a str with its references, a list of str"""
        if isinstance(references, str):
            raise _attend.DtypeError("references: a list of str is needed, not a str")
        return self.corpus_score([hypothesis], [[text] for text in references])

    def get_signature(self):
        """The Signature of the last score"""
        if self.num_refs is None:
            raise _attend.ArgumentError("the number of references is not known before a score")
        return Signature({"nrefs": "var" if self.num_refs < 0 else self.num_refs, "case": "lc" if self.lowercase else "mixed",
                          **self._settings(), "version": f"attend-{_attend.__version__}"})


class BLEU(_Metric):
    """BLEU with exponential smoothing; tokenize: "13a", "char" or "none" """

    def __init__(self, lowercase=False, force=False, tokenize=None, smooth_method="exp", smooth_value=None, max_ngram_order=4,
                 effective_order=False, trg_lang="", references=None):
        only_defaults("BLEU", {"smooth_method": smooth_method}, {"smooth_method": "exp"}, ())
        if max_ngram_order not in (1, 2, 3, 4):
            raise _attend.ArgumentError(f"max_ngram_order: {max_ngram_order!r}, must be from 1 to 4")
        if tokenize is None and trg_lang in ("zh", "ja", "ko"):
            raise _attend.ArgumentError(f"trg_lang: {trg_lang!r} has a tokenizer that attend does not have; tokenize=\"char\" "
                                        "counts characters")
        if tokenize not in (None, "13a", "char", "none"):
            raise _attend.ArgumentError(f"tokenize: {tokenize!r}, must be 13a, char or none")
        super().__init__(lowercase, references)
        self.max_ngram_order, self.effective_order, self._tokenize = max_ngram_order, effective_order, tokenize or "13a"

    def _score(self, found):
        return BLEUScore(found["bleu_of"][self.max_ngram_order - 1], found, self.max_ngram_order)

    def _settings(self):
        return {"eff": "yes" if self.effective_order else "no", "tok": self._tokenize, "smooth": "exp"}


class CHRF(_Metric):
    """chrF2: the F-score of characters, orders 1 to 6"""

    effective_order, _tokenize = False, "none"

    def __init__(self, char_order=6, word_order=0, beta=2, lowercase=False, whitespace=False, eps_smoothing=False, references=None):
        only = {"char_order": 6, "word_order": 0, "beta": 2, "whitespace": False, "eps_smoothing": False}
        only_defaults("CHRF", {"char_order": char_order, "word_order": word_order, "beta": beta, "whitespace": whitespace,
                               "eps_smoothing": eps_smoothing}, only, ())
        super().__init__(lowercase, references)

    def _score(self, found):
        return CHRFScore(found["chrf"])

    def _settings(self):
        return {"eff": "yes", "nc": 6, "nw": 0, "space": "no"}


def corpus_score(hypotheses, references, metric="bleu", **options):
    """The score of a corpus by metric, "bleu" or "chrf", with the options of BLEU or CHRF"""
    known = {"bleu": BLEU, "chrf": CHRF}
    if metric not in known:
        raise _attend.ArgumentError(f"metric: {metric!r}, must be bleu or chrf")
    return known[metric](**options).corpus_score(hypotheses, references)


def corpus_bleu(hypotheses, references, smooth_method="exp", smooth_value=None, force=False, lowercase=False, tokenize="13a",
                use_effective_order=False):
    return BLEU(lowercase, force, tokenize, smooth_method, smooth_value,
                effective_order=use_effective_order).corpus_score(hypotheses, references)


def corpus_chrf(hypotheses, references, **options):
    return CHRF(**options).corpus_score(hypotheses, references)
