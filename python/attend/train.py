"""Trainings: objects that one steps or runs. A training of the same options as `attend train` has the same bits.

    training = attend.train.Translation("de-en", source="train.de", target="train.en", steps=1000)
    training.run(callback=lambda report: print(report["step"], report["loss"]))
"""
import json
import math
import os

from attend import _attend
from attend._training import COMMON, Training, batches_of


class Recommendation(Training):
    """Training of a model of next items: SASRec or BERT4Rec. data, items, times: as for Recommender.fit. item_texts=, texts by
    the ids of items, and text_model=, a sentence model, initialize the vectors of items, or with content="add" are projected
    and added to them; items that occur in no action can be recommended then, too"""

    _kind, _measure = "recommendation", ("ndcg", 1)
    _defaults = {**COMMON, "patience": 5}
    _network = {"block": None, "hidden": None, "layers": None, "heads": None, "intermediate": None, "max_positions": None}
    _log = {"user": None, "item": None, "time": "", "split": "leave-one-out", "min_actions": 0, "held_out_users": 0,
            "valid_share": 0.0, "test_share": 0.0, "valid_from": 0.0, "test_from": 0.0, "drop_duplicates": False, "min_count": 0,
            "skip_bad_lines": 0}
    _struct = {"batch": 128, "with_replacement": False, "loss": "softmax", "negatives": 0, "calibration": None, "mask_share": 0.0,
               "last_mask_share": 0.0, "dropout": 0.2, "model": None}
    _texts = {"item_texts": None, "text_model": None, "content": None}
    _own = {**_struct, **_network, **_log, **_texts, "arch": None, "exclude_seen": False, "validate_candidates": "all"}
    _names = {"hidden": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads",
              "intermediate": "intermediate_size", "max_positions": "max_position_embeddings"}

    def __init__(self, out, data, items=None, times=None, *, resume=False, **options):
        self._given = (data, items, times)
        super().__init__(out, resume=resume, **options)

    def _prepare(self, own):
        from attend.recommender import open_log
        arch = own["arch"] or "sasrec"
        if arch not in ("sasrec", "bert4rec"):
            raise _attend.ArgumentError(f"arch: {arch!r}, must be sasrec or bert4rec" + (
                "; attend.Recommender.fit makes models that count" if arch in ("neighbors", "ease", "popularity") else ""))
        sizes = {name: own[name] for name in ("arch", *self._network) if own[name] is not None}
        if own["model"] and sizes:
            raise _attend.ArgumentError(f"{next(iter(sizes))}: does not go with model, which has its own")
        model = None
        if own["model"]:
            model = _attend.Recommender(own["model"])
            own["model"], self._base = _attend.find_model(own["model"]), True
        texts = self._read_texts(own, model)
        known = set(model.items(False)) if model else ()
        data, self._given = self._given, None
        log = open_log(*data, model=model, first=[id for id in texts if id not in known],
                       **{name: own[name] for name in self._log})
        self._data = (log, self._embed(log, texts, len(known), own["text_model"]),
                      model.info["content_width"] > 0 if model else own["content"] == "add")
        self._batches = batches_of(log.histories, own)
        self._validates = log.info["valid_cases"] > 0
        if not self._o["epochs"]:
            self._o["epochs"] = 200 if self._validates else 20
        self._evaluation = {"part": "valid", "exclude_seen": own["exclude_seen"], "candidates": own["validate_candidates"],
                            "draws": int(own["validate_candidates"] != "all"), "seed": self._o["seed"]}
        if own["loss"] == "gbce" and own["calibration"] is None:
            own["calibration"] = 0.75
        settings = {"model_type": "attend-" + arch,
                    **{self._names.get(name, name): value for name, value in sizes.items() if name != "arch"}}
        return {**{name: own[name] for name in self._struct}, "settings": None if own["model"] else json.dumps(settings)}

    @staticmethod
    def _read_texts(own, model):
        """Texts by ids of items; {}: none are given"""
        texts = own["item_texts"]
        for name in ("text_model", "content"):
            if own[name] is not None and texts is None:
                raise _attend.ArgumentError(f"{name}: needs item_texts")
        if own["content"] not in (None, "start", "add"):
            raise _attend.ArgumentError(f"content: {own['content']!r}, must be start or add")
        if own["content"] and model:
            raise _attend.ArgumentError("content: does not go with model, which has its own")
        if texts is None:
            if model and model.info["content_width"] > 0:
                raise _attend.ArgumentError(f"item_texts: needed, as {own['model']} adds vectors of texts to those of items")
            return {}
        if own["text_model"] is None:
            raise _attend.ArgumentError("text_model: the sentence model that embeds item_texts is needed")
        return {str(id): text for id, text in dict(texts).items()}

    @staticmethod
    def _embed(log, texts, known, name):
        """Vectors of the texts of the items that the model does not have [items - known, dim], zeros without a text; or None"""
        if not texts:
            return None
        if not any(str(item) in texts for user in log.users() for item in log.history(user)):
            [item] = log.items(0)[-1:] or [None]
            raise _attend.ArgumentError(f"item_texts: no item of the log has a text; the first id is {next(iter(texts))!r}, and "
                                        f"one of the log {item!r}")
        new = log.items(known)
        from attend import _hub
        return _attend.Sentence(_hub.find(name)).encode([texts.get(id) or None for id in new], nulls_zero=True) if new else None

    def _identity(self):
        return self._data[0].valid_checksum

    def close(self):
        """Unlocks the folder. Returns the log"""
        data = self._data
        super().close()
        return data and data[0]


# Sizes of a model: (of the Transformer, of recurrent layers)
_PRESETS = {"tiny": ((128, 2, 512, 4), (128, 256, 1)), "small": ((256, 3, 1024, 4), (256, 512, 1)),
            "base": ((512, 6, 2048, 8), (512, 1024, 2))}


class Translation(Training):
    """Training of a translator from two files of text, source= and target=: line i of one is the translation of line i of the
    other. valid_source= and valid_target= are for validation. arch="rnn" trains recurrent layers, with attention="none",
    "additive", "dot" or "general"; preset="tiny", "small" or "base" is the size, or config= a file, settings= a dict"""

    _kind, _measure, _keeps_best = "translation", ("loss", -1), False
    _defaults = {**COMMON, "beta2": 0.98, "warmup": 1000, "clip": 1.0, "validate_every": 500, "save_every": 500, "average": 5}
    _struct = {"source": None, "target": None, "valid_source": None, "valid_target": None, "tokenizer": None, "vocabulary": 8000,
               "character_coverage": 1.0, "byte_fallback": False, "batch_tokens": 4096, "max_tokens": 0, "dropout": 0.1,
               "label_smoothing": 0.1, "config": None, "skip_bad_lines": 0}
    _own = {**_struct, "arch": None, "attention": None, "preset": None, "settings": None}

    def _prepare(self, own):
        for name in ("source", "target"):
            if own[name] is None:
                raise _attend.ArgumentError(f"{name}: the file of the {name} texts is needed")
        if (own["valid_source"] is None) != (own["valid_target"] is None):
            raise _attend.ArgumentError("valid_source, valid_target: both are needed, or none")
        self._validates = own["valid_source"] is not None
        return {**{name: own[name] for name in self._struct}, "settings": json.dumps(self._settings(own))}

    @staticmethod
    def _settings(own):
        arch, preset, attention, config = (own[name] for name in ("arch", "preset", "attention", "config"))
        for name, words in (("arch", ("transformer", "rnn")), ("preset", tuple(_PRESETS))):
            if own[name] is not None and own[name] not in words:
                raise _attend.ArgumentError(f"{name}: {own[name]!r}, must be one of " + ", ".join(words))
        if preset and (config or own["settings"]):
            raise _attend.ArgumentError("preset: does not go with config or settings, which have the sizes")
        if attention and arch != "rnn":
            raise _attend.ArgumentError("attention: is for arch=\"rnn\"; a Transformer has its own")
        if own["settings"]:
            return own["settings"]
        made, arch = {}, arch or (None if config else "transformer")
        if arch:
            made["model_type"] = "marian" if arch == "transformer" else "attend-seq2seq"
        if attention:
            made["attention"] = attention
        if not config:
            transformer, recurrent = _PRESETS[preset or "small"]
            if arch == "rnn":
                made.update(zip(("embedding_size", "hidden_size", "num_layers"), recurrent))
            else:
                width, layers, inner, heads = transformer
                made["d_model"] = width
                for side in ("encoder", "decoder"):
                    made.update({f"{side}_layers": layers, f"{side}_ffn_dim": inner, f"{side}_attention_heads": heads})
        return made


class _Rows(Training):
    """Training from rows of texts, from a model"""

    _losses = ()  # of scores, of labels, of texts alone, where `loss` is not given

    def __init__(self, out, rows, *, resume=False, **options):
        self._rows = [tuple(row) for row in rows]
        super().__init__(out, resume=resume, **options)

    def _read_rows(self, own):
        """Sets _data, _batches and the loss, as the rows have scores, labels or neither. Returns the number of classes"""
        rows, self._rows = self._rows, None
        if not rows:
            raise _attend.ArgumentError("rows: there are none")
        columns = len(rows[0])
        for i, row in enumerate(rows):
            if len(row) != columns:
                raise _attend.ShapeError(f"rows[{i}]: has {len(row)} texts, but rows[0] has {columns}")
            for k, text in enumerate(row):
                if not isinstance(text, str):
                    raise _attend.DtypeError(f"rows[{i}][{k}]: a str is needed, not {type(text).__name__}")
        scores, labels = (None if own[name] is None else tuple(own[name]) for name in ("scores", "labels"))
        own["loss"] = own["loss"] or self._losses[0 if scores else 1 if labels else 2]
        names, labels = _number_labels(labels)
        self._data = ([text for row in rows for text in row], columns, scores, labels, names)
        self._batches = batches_of(len(rows), own)
        return len(names) or max((label.__index__() + 1 for label in labels or () if hasattr(label, "__index__")), default=0)

    def _read_valid(self, valid, columns, what):
        """Sets _valid: (first texts, second texts or None, what is right of each)"""
        rows, gold = ([tuple(row) for row in valid[0]], list(valid[1]))
        if len(rows) != len(gold) or any(len(row) != columns for row in rows):
            texts = "one text" if columns == 1 else "two texts"
            raise _attend.ShapeError(f"valid: {len(rows)} rows of {texts} and {len(gold)} {what}; one for each row is needed")
        self._valid = ([row[0] for row in rows], [row[1] for row in rows] if columns == 2 else None, gold)
        self._validates = True

    def _identity(self):
        import zlib
        return zlib.crc32(repr(self._valid).encode("utf-8", "surrogatepass")) if self._valid else 0

    def _need_valid(self):
        if not self._valid:
            raise _attend.ArgumentError("evaluate: there are no rows for validation, valid=")
        return self._valid


def _number_labels(labels):
    """Names of labels that are texts, in their order, and the labels as numbers"""
    if not labels or not all(isinstance(label, str) for label in labels):
        return (), labels
    names = tuple(sorted(set(labels)))
    number = {name: i for i, name in enumerate(names)}
    return names, tuple(number[label] for label in labels)


class Sentences(_Rows):
    """Training of a sentence model, model=, from rows of texts: pairs for loss="multiple-negatives-ranking", with further texts
    as hard negatives; pairs and scores=, cosines from -1 to 1, for "cosine"; triplets for "triplet"; pairs and labels=, numbers
    from 0 or texts, for "softmax". valid=: (pairs, scores) for validation, by Spearman's correlation"""

    _kind, _measure = "sentences", ("spearman", 1)
    _losses = "cosine", "softmax", "multiple-negatives-ranking"
    _defaults = {**COMMON, "epochs": 2, "rate": 2e-5, "schedule": "linear", "warmup": 0.1, "decay": 0.01, "clip": 1.0,
                 "validate_every": 100, "save_every": 200}
    _struct = {"model": None, "loss": None, "batch": 16, "distance": "euclidean", "scale": 0.0, "margin": 0.0}
    _own = {**_struct, "scores": None, "labels": None, "valid": None}

    def _prepare(self, own):
        if own["model"] is None:
            raise _attend.ArgumentError("model: the sentence model to begin with is needed")
        from attend import _hub
        classes, self._valid = self._read_rows(own), None
        own["model"] = _hub.find(own["model"])
        if own["valid"] is not None:
            self._read_valid((own["valid"][0], map(float, own["valid"][1])), 2, "scores")
            self._similarity = _attend.Sentence(own["model"]).info["similarity"]
            self._base = True
        return {**{name: own[name] for name in self._struct}, "classes": classes}

    def evaluate(self):
        """{"spearman": 100 times the correlation of similarities and scores}, or NaN if one of both does not vary"""
        first, second, gold = self._need_valid()
        vectors = [self._training.evaluate({"texts": texts}) for texts in (first, second)]
        found = _attend.similarity(*vectors, self._similarity, True).tolist()
        return {"spearman": 100 * _correlation(_ranks(found), _ranks(gold))}


class Reranking(_Rows):
    """Training of a cross-encoder or text classifier, from one or, with a new classifier, from a sentence model or encoder,
    model=, and rows of texts: pairs and scores=, from 0 to 1, for loss="binary-cross-entropy", or of a teacher for
    "mean-squared-error"; pairs or single texts, [(text,), ...], and labels=, texts or numbers from 0, for "cross-entropy"; pairs
    for "multiple-negatives-ranking", with further texts as hard negatives. valid=: (pairs, scores), by Spearman's correlation,
    or (rows, labels), by accuracy"""

    _kind, _measure = "reranking", ("spearman", 1)
    _losses = "binary-cross-entropy", "cross-entropy", "multiple-negatives-ranking"
    _defaults = {**COMMON, "epochs": 1, "rate": 2e-5, "schedule": "linear", "warmup": 0.1, "decay": 0.01, "clip": 1.0,
                 "validate_every": 100, "save_every": 200}
    _struct = {"model": None, "loss": None, "batch": 16, "max_tokens": 0, "negatives": 4, "scale": 10.0, "activation": "loss"}
    _own = {**_struct, "scores": None, "labels": None, "valid": None}

    def _prepare(self, own):
        if own["model"] is None:
            raise _attend.ArgumentError("model: the text classifier, sentence model or encoder to begin with is needed")
        from attend import _hub
        classes, self._valid = self._read_rows(own), None
        self._check(own, self._data[1])
        own["model"] = _hub.find(own["model"])
        if own["valid"] is not None and own["loss"] == "cross-entropy":
            self._measure = ("accuracy", 1)
            self._read_valid(own["valid"], self._data[1], "labels")
            known = set(self._data[4] or range(classes))
            for label in self._valid[2]:
                if label not in known:
                    raise _attend.ArgumentError(f"valid: the label {label!r} is not one of those of the rows")
        elif own["valid"] is not None:
            self._read_valid((own["valid"][0], map(float, own["valid"][1])), 2, "scores")
        self._base = self._validates and _attend.identify(own["model"])[0] != "sentence model"
        return {**{name: own[name] for name in self._struct}, "classes": classes}

    def _check(self, own, columns):
        ranking = own["loss"] == "multiple-negatives-ranking"
        for name in ("scale", "negatives"):
            if own[name] != self._own[name] and not ranking:
                raise _attend.ArgumentError(f"{name}: does not go with loss={own['loss']!r}")
        if own["activation"] != "loss" and not ranking and own["loss"] != "mean-squared-error":
            raise _attend.ArgumentError(f"activation: does not go with loss={own['loss']!r}")
        if ranking and columns == 2 and own["batch"] == 1:
            raise _attend.ArgumentError("batch: 1, but the negatives of a pair are the other pairs of its batch; 2 or more are needed")

    def evaluate(self):
        """{"spearman": 100 times the correlation of logits and scores}, or NaN if one of both does not vary; of labels
        {"accuracy": percent}"""
        first, second, gold = self._need_valid()
        found, names = self._training.evaluate({"texts": first, "pairs": second, "max_tokens": self._o["max_tokens"]})
        found = found.tolist()
        if self._measure[0] == "spearman":
            return {"spearman": 100 * _correlation(_ranks([row[0] for row in found]), _ranks(gold))}
        answers = [row.index(max(row)) for row in found]
        right = sum(names[answer] == label if isinstance(label, str) else answer == label for answer, label in zip(answers, gold))
        return {"accuracy": 100 * right / len(gold)}


_IMAGE_PRESETS = {
    "tiny": {"model_type": "vit", "hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 256,
             "patch_size": 4},
    "small": {"model_type": "vit", "hidden_size": 192, "num_hidden_layers": 9, "num_attention_heads": 3, "intermediate_size": 384,
              "patch_size": 4},
    "hybrid": {"model_type": "attend-vit", "stem": [64, 128], "pooling": "mean", "hidden_size": 128, "num_hidden_layers": 6,
               "num_attention_heads": 4, "intermediate_size": 256}}


class Images(Training):
    """Training of an image classifier, a vision Transformer, from a folder of images: one folder for each class, IDX files, or
    CIFAR-10's batches. valid= is such a folder for validation, else valid_share= of the images of each class is.
    preset="tiny", "small" or "hybrid" with size=, the side of images, or settings= a dict; or model=, one to fine-tune"""

    _kind, _measure = "images", ("accuracy", 1)
    _defaults = {**COMMON, "epochs": 20, "schedule": "cosine", "warmup": 0.05, "decay": 0.05, "clip": 1.0}
    _struct = {"batch": 128, "label_smoothing": 0.1, "dropout": 0.0, "crop": 0, "flip": False, "mixup": 0.0, "cutout": 0, "model": None,
               "balance": False}
    _own = {**_struct, "labels": (), "valid": None, "valid_share": 0.05, "group": None, "preset": None, "size": 0, "settings": None}

    def __init__(self, out, data, *, resume=False, **options):
        self._path = data
        super().__init__(out, resume=resume, **options)

    def _prepare(self, own):
        if own["preset"] not in (None, *_IMAGE_PRESETS):
            raise _attend.ArgumentError(f"preset: {own['preset']!r}, must be one of " + ", ".join(_IMAGE_PRESETS))
        images = _attend.ImageSet(self._path, False, tuple(own["labels"]))
        if images.info["classes"] < 2:
            raise _attend.ArgumentError(f"{os.fspath(self._path)} has only one class; a training needs two")
        if own["group"]:
            images.group(own["group"])
        valid = None
        if own["valid"]:
            valid = _attend.ImageSet(own["valid"], True, tuple(images.info["labels"]))
        elif own["valid_share"]:
            valid = images.hold_out(own["valid_share"], self._o["seed"])
        self._data, self._validates = (images, valid), valid is not None
        self._batches = batches_of(images.info["images"], own)
        if own["balance"]:
            self._measure = ("balanced_accuracy", 1)
        settings = self._settings(own, images.info["height"])
        if own["model"]:
            own["model"] = _attend.find_model(own["model"])
        return {**{name: own[name] for name in self._struct}, "settings": settings and json.dumps(settings)}

    @staticmethod
    def _settings(own, height):
        given = own["settings"] or own["model"]
        if own["settings"] and own["model"]:
            raise _attend.ArgumentError("settings: does not go with model, which has its own")
        for name in ("preset", "size"):
            if given and own[name]:
                raise _attend.ArgumentError(f"{name}: does not go with model or settings, which have the sizes")
        if given:
            return own["settings"]
        side = own["size"] or (0 if height else 32)
        if side % 4:
            raise _attend.ArgumentError(f"size: {side}, must be a multiple of 4, the side of a patch")
        return {**_IMAGE_PRESETS[own["preset"] or "tiny"], **({"image_size": side} if side else {})}

    def _identity(self):
        return 0 if self._data[1] is None else self._data[1].info["images"]


class Captions(Training):
    """Training of a captioner from a file of captions, and images=, the folder of their images; train_list= and valid_list= are
    files that name the images for training and validation. decoder="gru", "lstm" or "transformer"; encoder=, a vision
    Transformer that encodes the images, else a CNN of channels= is trained"""

    _kind, _measure = "captions", ("loss", -1)
    _defaults = {**COMMON, "epochs": 25, "schedule": "cosine", "warmup": 0.05, "decay": 0.01, "clip": 5.0}
    _struct = {"batch": 32, "captions_per_image": 0, "label_smoothing": 0.0, "dropout": 0.3, "doubly_stochastic": 0.0, "crop": 0,
               "flip": False, "presence_weight": 0.0, "encoder_memory": 4 * 10**9, "min_count": 5, "max_words": 0, "encoder": None}
    _files = {"images": None, "image_column": None, "caption_column": None, "skip_bad_lines": 0}
    _own = {**_struct, **_files, "train_list": None, "valid_list": None, "decoder": "gru", "attention": None, "gate": False,
            "hidden": 320, "embedding": None, "layers": 1, "heads": None, "intermediate": None, "channels": None,
            "image_size": None, "presence": None, "presence_epochs": None}

    def __init__(self, out, data, *, resume=False, **options):
        self._path = data
        super().__init__(out, resume=resume, **options)

    def _prepare(self, own):
        if own["images"] is None:
            raise _attend.ArgumentError("images: the folder of the images is needed")
        if own["valid_list"] and not own["train_list"]:
            raise _attend.ArgumentError("valid_list: needs train_list, or its images would be trained on")
        self._check(own)
        files = {name: own[name] for name in self._files}
        train, valid = (_attend.CaptionSet(self._path, {**files, "list": own[name]}) if own[name] or name == "train_list" else None
                        for name in ("train_list", "valid_list"))
        both = set(train.paths) & set(valid.paths) if valid else None
        if both:
            raise _attend.ArgumentError(f"{min(both)} is in both lists, train_list and valid_list")
        self._data, self._validates = (train, valid), valid is not None
        self._batches = batches_of(train.info["images"], own)
        if own["encoder"]:
            own["encoder"] = _attend.find_model(own["encoder"])
        settings = self._settings(own)
        return {**{name: own[name] for name in self._struct}, "presence_epochs": self._presence_epochs(own, settings),
                "settings": json.dumps(settings)}

    @staticmethod
    def _check(own):
        transformer, decoder = own["decoder"] == "transformer", own["decoder"]
        if decoder not in ("gru", "lstm", "transformer"):
            raise _attend.ArgumentError(f"decoder: {decoder!r}, must be gru, lstm or transformer")
        for name in ("attention", "gate", "embedding", "doubly_stochastic") if transformer else ("heads", "intermediate"):
            if own[name]:
                raise _attend.ArgumentError(f"{name}: does not go with decoder={decoder!r}")
        for name in ("channels", "image_size", "crop", "flip", "presence_epochs") if own["encoder"] else ():
            if own[name]:
                raise _attend.ArgumentError(f"{name}: does not go with encoder")
        if own["attention"] not in (None, "additive", "none"):
            raise _attend.ArgumentError(f"attention: {own['attention']!r}, must be additive or none")

    @staticmethod
    def _settings(own):
        hidden, made = own["hidden"], {"decoder": own["decoder"], "hidden_size": own["hidden"], "num_layers": own["layers"]}
        if own["decoder"] == "transformer":
            made.update(num_attention_heads=own["heads"] or 4, intermediate_size=own["intermediate"] or 4 * hidden)
        else:
            made.update(attention=own["attention"] or "additive", gate=bool(own["gate"]), embedding_size=own["embedding"] or hidden)
        presence = own["presence"] if own["presence"] is not None else 0 if own["encoder"] else 300
        if presence:
            made["presence"] = presence
        if not own["encoder"]:
            made.update(image_size=own["image_size"] or 96, channels=list(own["channels"] or (32, 64, 128, 256)))
        return made

    def _presence_epochs(self, own, settings):
        """Epochs of word prediction, which leave some for captions"""
        o = self._o
        steps = o["steps"] or math.ceil(o["epochs"] * self._batches / o["accumulate"])
        epochs = steps * o["accumulate"] / self._batches
        given = own["presence_epochs"]
        found = given if given is not None else int(epochs * 2 / 5) if "presence" in settings and not own["encoder"] else 0
        if found and "presence" not in settings:
            raise _attend.ArgumentError("presence_epochs: does not go with presence=0")
        if found >= epochs:
            raise _attend.ArgumentError(f"presence_epochs: {found} of {epochs:g} epochs leave none in which captions are trained")
        return found

    def _identity(self):
        return 0 if self._data[1] is None else self._data[1].info["captions"]


def _ranks(values):
    """Ranks of values, of equal ones their mean"""
    order, ranks, i = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j < len(order) and values[order[j]] == values[order[i]]:
            j += 1
        for k in order[i:j]:
            ranks[k] = (i + j - 1) / 2
        i = j
    return ranks


def _correlation(a, b):
    """Pearson's"""
    means = [math.fsum(x) / len(x) if x else 0 for x in (a, b)]
    a, b = ([value - mean for value in x] for x, mean in zip((a, b), means))
    squares = math.fsum(x * x for x in a) * math.fsum(x * x for x in b)
    return math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(squares) if squares else math.nan
