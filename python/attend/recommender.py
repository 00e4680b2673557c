"""Recommender: the next items of users, from a log of what they did."""
import glob
import json
import os

from attend import _attend, _columns
from attend._model import Model
from attend.sentence_transformer import converter, progress_bar

_SPLIT = ("kind", "min_actions", "held_out_users", "valid_share", "test_share", "valid_from", "test_from")
_READ = ("drop_duplicates", "min_count", "skip_bad_lines")


def open_log(data, items=None, times=None, *, user=None, item=None, time="", split="leave-one-out", model=None, first=(),
             **options):
    """Reads a log: a frame, the path of a file, or users, items and perhaps times, arrays of one length. first: ids that
    get the first numbers, after those of the model"""
    read = {name: options.pop(name) for name in _READ if name in options}
    held_out = {"kind": split, **{name: options.pop(name) for name in _SPLIT if name in options}}
    if options:
        raise _attend.ArgumentError(f"{next(iter(options))}: there is no option of this name")
    if items is not None:
        columns = tuple(None if c is None else _columns.column(c) for c in (data, items, times))
        return _attend.Log(columns, ("users", "items", "times"), read, held_out, model, first)
    if _columns.is_frame(data):
        columns, names = _columns.of_frame(data, user or "user", item or "item", "time" if time == "" else time)
        return _attend.Log(columns, names, read, held_out, model, first)
    if not isinstance(data, (str, os.PathLike)):
        raise _attend.DtypeError(f"data: {type(data).__name__}, must be a frame, the path of a file, or arrays of users and "
                                 "items")
    names = {"user": user, "item": item, "time": None if time == "" else "" if time is None else time}
    return _attend.Log(data, (), {**read, **names}, held_out, model, first)


# Models that count, and their settings
_COUNTING = {"neighbors": ("neighbors", "history_decay"), "ease": ("l2", "history_decay"), "popularity": ()}


def _count(data, items, times, out, callback, *, arch, dtype="float32", neighbors=None, l2=None, history_decay=None, **options):
    """Makes a model that counts, in a folder: its log"""
    given = {"neighbors": neighbors, "l2": l2, "history_decay": history_decay}
    for name, value in given.items():
        if value is not None and name not in _COUNTING[arch]:
            raise _attend.ArgumentError(f"{name}: does not go with arch={arch!r}")
    if dtype not in ("float32", "float16"):
        raise _attend.ArgumentError(f"dtype: {dtype!r}, must be float32 or float16")
    settings = {"decay" if name == "history_decay" else name: value for name, value in given.items() if value is not None}
    log = open_log(data, items, times, **options)
    _attend.recommender_fit(log, json.dumps({"model_type": "attend-" + arch, **settings}), out, dtype == "float16", callback)
    return log


def _train(data, items, times, out, callback, **options):
    """Trains a model in a folder: its log"""
    from attend.train import Recommendation
    with Recommendation(out, data, items, times, **options) as training:
        training.run(callback=callback)
        return training.close()


# Of a training on all actions: what it holds out, and where it ends
_ON_ALL = {"split": "none", "min_actions": 0, "held_out_users": 0, "valid_share": 0.0, "test_share": 0.0, "valid_from": 0.0,
           "test_from": 0.0, "steps": 0, "minutes": 0, "patience": 0}


def _train_twice(data, items, times, out, callback, **options):
    """Trains with validation in the folder `validated` of a folder, and then in that folder on all actions, for the epochs
    that were best: the log of the second training"""
    from attend.train import Recommendation

    class First(Recommendation):
        def _plan(self):  # before there is a folder
            if not self._validates:
                raise _attend.ArgumentError("refit: needs a validation, for which there are no data")
            return super()._plan()

    given = {**Recommendation._defaults, **options}
    for name, wrong in (("resume", given.get("resume")), ("average", given["average"]), ("keep=0", given["keep"] < 1),
                        ("schedule", given["schedule"] in ("cosine", "linear")), ("warmup, a share,", 0 < given["warmup"] < 1)):
        if wrong:
            raise _attend.ArgumentError(f"{name} does not go with refit=True")
    if any(glob.glob("checkpoint-*", root_dir=out)):
        raise _attend.ArgumentError(f"{os.fspath(out)}: has a training already; refit=True needs another folder")
    with First(os.path.join(out, "validated"), data, items, times, **options) as first:
        first.run(callback=callback)
        epochs = first.epochs_of(first.info["best_step"])
    if not epochs:
        raise _attend.ArgumentError(f"refit: no step was better than the model to begin with, which is in {first.folder}")
    return _train(data, items, times, out, callback, **{**options, **_ON_ALL, "epochs": epochs})


class Recommender(Model):
    """A model of next items: a folder of `attend train recommend`, or of Recommender.fit"""

    _type = _attend.Recommender

    def _opened(self):
        self._log = None

    @classmethod
    def fit(cls, data, items=None, times=None, *, out, refit=False, callback=None, **options):
        """Trains a model on actions, writes it to the folder `out`, and opens it. data: a frame (pandas, polars, pyarrow,
        a dict) whose columns user=, item= and time= name ("user", "item", "time"; time=None: rows are in order), or the
        path of a log; or users, with items and times. Options are those of attend.train.Recommendation. arch="neighbors",
        "ease" and "popularity" count the actions once, with neighbors=, l2= and history_decay=; their callback gets the share
        that is done. refit=True trains twice: with validation, in the folder `validated` of `out`, then from the start on all
        actions, also those held out, for as many epochs as were best."""
        if options.get("arch") not in _COUNTING:
            log = (_train_twice if refit else _train)(data, items, times, out, callback, **options)
        elif refit:
            raise _attend.ArgumentError(f"refit: does not go with arch={options['arch']!r}; split=\"none\" counts all actions")
        else:
            log = _count(data, items, times, out, callback, **options)
        model = cls(os.path.abspath(out))
        model._log = log
        return model

    @property
    def items(self):
        """Ids of all items: integers, if those of the log are, else texts"""
        return self._model.items(self._log is not None and self._log.integer_items)

    @property
    def info(self):
        """Type and sizes: {"type": "attend-sasrec", "items": ..., "hidden": ...}"""
        return self._model.info

    def read(self, data, items=None, times=None, **options):
        """Reads a log, as fit does, for recommend(users=...) and evaluate. A model that fit returns has that of the
        training."""
        self._log = open_log(data, items, times, model=self._model, **options)
        return self

    @property
    def users(self):
        """Ids of the users of the log: integers, if the log has integers"""
        return self._need_log().users()

    def history(self, user):
        """Ids of the items of a user of the log, oldest first"""
        return self._need_log().history(user)

    def recommend(self, histories=None, k=10, exclude_seen=True, *, users=None, allow=None, deny=None, skip_unknown=False,
                  diversity=0.0, diversity_pool=0, new_share=0.0, show_progress_bar=False):
        """The next k items of a history, a sequence of ids, oldest first, or of each of a sequence of histories, or of users
        of the log: ids and scores, the best first. The ids are integers where those of the histories are, else texts. Where fewer than k may be listed, the ids end and scores are NaN.
        allow, deny: ids of items that alone, or never, are recommended. skip_unknown: leave out ids that the model does not
        have, instead of an error."""
        if (histories is None) == (users is None):
            raise _attend.ArgumentError("histories or users: one of both is needed")
        single = _is_id(users) if histories is None else _is_history(histories)
        if users is not None:
            histories = [self.history(user) for user in ([users] if single else users)]
        elif single:
            histories = [histories]
        options = {"k": _whole("k", k), "exclude_seen": bool(exclude_seen), "diversity": diversity,
                   "diversity_pool": diversity_pool, "new_share": new_share}
        ids, scores = self._model.recommend(histories, options, allow=allow, deny=deny, skip_unknown=skip_unknown,
                                            progress=progress_bar("recommend") if show_progress_bar else None)
        return _lists(ids, scores, single)

    def similar(self, items, k=10, *, allow=None, deny=None, show_progress_bar=False):
        """The k most similar items of an id, or of each of a sequence of ids: ids and cosines"""
        single = _is_id(items)
        ids, scores = self._model.similar([items] if single else items, {"k": _whole("k", k)}, allow=allow, deny=deny,
                                          progress=progress_bar("similar") if show_progress_bar else None)
        return _lists(ids, scores, single)

    @property
    def vectors(self):
        """Vectors of all items [items, hidden], in the order of `items`"""
        return converter(True, False)(self._model.vectors())

    def embed(self, histories, *, skip_unknown=False):
        """Vectors of histories [n, hidden]: their products with those of items are the scores"""
        single = _is_history(histories)
        found = converter(True, False)(self._model.embed([histories] if single else histories, skip_unknown))
        return found[0] if single else found

    def evaluate(self, data=None, items=None, times=None, *, part="test", k=10, exclude_seen=False, candidates="all",
                 negatives=0, draws=0, seed=1, leave_out_unseen=False, **options):
        """How well held-out actions are predicted: {"ndcg": mean, "ndcg_interval": (low, high), "hr": ...}, of a log, or of
        that which `fit` or `read` has read"""
        log = self._need_log() if data is None else open_log(data, items, times, model=self._model, **options)
        if data is None and options:
            raise _attend.ArgumentError(f"{next(iter(options))}: is an option of a log, which is not given")
        return self._model.evaluate(log, {"part": part, "k": k, "exclude_seen": exclude_seen, "candidates": candidates,
                                          "negatives": negatives, "draws": draws, "seed": seed,
                                          "leave_out_unseen": leave_out_unseen})

    def _need_log(self):
        if self._log is None:
            raise _attend.ArgumentError("the model has no log of users: model.read(frame) reads one")
        return self._log


def _is_id(value):
    return isinstance(value, str) or hasattr(value, "__index__")


def _is_history(histories):
    """Is it one history, a sequence of ids, and not a sequence of histories?"""
    if isinstance(histories, str):
        raise _attend.DtypeError(f"histories: {histories!r}, must be a sequence of ids, or of such sequences")
    first = next(iter(histories), None)
    return first is not None and _is_id(first)


def _whole(name, value):
    if not hasattr(value, "__index__") or not 0 < value.__index__() < 2**31:
        raise _attend.ArgumentError(f"{name}: {value!r}, must be an integer from 1 on")
    return value.__index__()


def _lists(ids, scores, single):
    scores = converter(True, False)(scores)
    return (ids[0], scores[0]) if single else (ids, scores)
