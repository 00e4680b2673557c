"""Trainings: objects that one steps or runs. A training of the same options as `attend train` has the same bits.

    training = attend.train.Translation("de-en", source="train.de", target="train.en", steps=1000)
    training.run(callback=lambda report: print(report["step"], report["loss"]))
"""
import json
import math
import os

from attend import _attend

# Options of the loop and of the optimizer, with their defaults: those of `attend train`
_COMMON = {"steps": 0, "epochs": 0, "patience": 0, "rate": 1e-3, "schedule": "constant", "warmup": 0, "beta2": 0.999, "decay": 0.0,
           "clip": 0.0, "freeze": (), "accumulate": 1, "shards": 0, "validate_every": 0, "save_every": 0, "average": 0, "keep": 1,
           "dtype": "float32", "compute": "float32", "seed": 1}


class Training:
    """What all trainings have: a folder, checkpoints, the loop. Use a subclass."""

    _kind = None  # of _attend.Training
    _defaults = _COMMON
    _own = {}  # options of the subject, with their defaults
    _keeps_best = True  # the model is the one with the best validation, without `average`
    _measure = None  # (name in evaluate(), sign) of the score

    def __init__(self, out, *, resume=False, **options):
        unknown = [name for name in options if name not in self._defaults and name not in self._own]
        if unknown:
            raise _attend.ArgumentError(f"{unknown[0]}: there is no option of this name; these are: "
                                        + ", ".join(sorted([*self._defaults, *self._own])))
        self.folder, self._o = os.fspath(out), {**self._defaults, **self._own, **options}
        self._evaluation, self._validates, self._batches, self._base, self._data = {}, False, 0, False, None
        own = self._prepare({name: self._o[name] for name in self._own})
        if self._o["dtype"] not in ("float32", "float16"):
            raise _attend.ArgumentError(f"dtype: {self._o['dtype']!r}, must be float32 or float16")
        if options.get("patience") and not self._validates:
            raise _attend.ArgumentError("patience: needs a validation, for which there are no data")
        if options.get("steps") and options.get("epochs"):
            raise _attend.ArgumentError("steps does not go with epochs: both state where the training ends")
        self._half = self._o["dtype"] == "float16"
        schedule = self._plan()
        common = {name: self._o[name] for name in ("beta2", "clip", "accumulate", "shards", "seed", "compute")}
        freeze = self._o["freeze"]
        self._training = _attend.Training(
            self._kind, self.folder,
            {**common, "weight_decay": self._o["decay"], "resume": resume, "keep": max(self._o["average"], self._o["keep"], 1),
             "evaluation_id": self._identity()},
            schedule, (freeze,) if isinstance(freeze, str) else tuple(freeze), own, self._data)
        self._begin(resume)

    # ---- what a subclass has

    def _prepare(self, own):
        """Reads data; sets _batches, _validates and the like; returns the options of the library's struct"""
        return own

    def _identity(self):
        """A number that other data for validation would change"""
        return 0

    # ---- the plan

    def _plan(self):
        o, parts = self._o, self._o["accumulate"]
        if not self._batches and not (o["validate_every"] and o["save_every"]):
            raise _attend.ArgumentError("validate_every and save_every: numbers of steps are needed, as there are no epochs")
        epoch = math.ceil(self._batches / parts)
        self._limit = o["steps"] or math.ceil(o["epochs"] * self._batches / parts)
        self._validate_every, self._save_every = o["validate_every"] or epoch, o["save_every"] or epoch
        falls, share = o["schedule"] in ("cosine", "linear"), 0 < o["warmup"] < 1
        if (falls or share) and not self._limit:
            raise _attend.ArgumentError(f"steps: needed by {'schedule' if falls else 'warmup'}, to know the last step")
        warmup = int(o["warmup"] * self._limit) if share else int(o["warmup"])
        if falls and self._limit <= warmup:
            raise _attend.ArgumentError(f"steps: {self._limit}, must be more than warmup, {warmup}")
        return {"kind": o["schedule"], "max_rate": o["rate"], "warmup": warmup, "steps": self._limit if falls else 0}

    def _begin(self, resume):
        # Steps since the last validation; the best score; validations since; is a validation or checkpoint due?
        self._state = {"n": 0, "best": None, "worse": 0, "due": False}
        self._unsaved, self._finished, self.report = not resume, False, None
        if resume and self._training.note:
            try:
                self._state.update(json.loads(self._training.note))
            except ValueError:
                pass  # of the tool, whose note has another form
        if self._limit and self.steps > self._limit:
            raise _attend.ArgumentError(f"steps: {self._limit}, but {self.folder} is at step {self.steps}")
        if resume and (self._state["due"] or self._is_last(self.steps)):
            self._after_step(self.steps)

    # ---- what it is

    @property
    def steps(self):
        """Steps so far"""
        return self._training.info["steps"]

    @property
    def info(self):
        """What is trained on what: parameters, examples, vocabulary, the best score and its step"""
        return self._training.info

    @property
    def done(self):
        """Has it reached its last step, or `patience`? Then the folder has the model."""
        return self._finished

    def __repr__(self):
        return f"attend.train.{type(self).__name__}({self.folder!r})"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # ---- steps

    def step(self):
        """Makes a step, then validates and saves, if these are due: the loss. After the last step the model is written.
        `report` has more of the step."""
        if self._finished:
            raise _attend.ArgumentError(f"the training has ended after step {self.steps}; with more steps=, resume=True continues")
        if self._base and self._validates and self.steps == 0 and self._state["best"] is None:
            self._validate(first=True)
        self.report = self._training.step()
        self._state["n"] += 1
        self._unsaved = self._state["due"] = True
        self.report["validation"] = self._after_step(self.report["step"])
        return self.report["loss"]

    def _is_last(self, step):
        patience = self._o["patience"] if self._validates else 0
        return bool(self._limit and step >= self._limit) or bool(patience and self._state["worse"] >= patience)

    def _after_step(self, step):
        """Validates and saves, where these are due, and ends the training after its last step."""
        state, measures = self._state, None
        if state["n"] and (self._is_last(step) or step % self._validate_every == 0):
            measures = self._validate()
        state["due"] = False
        if step and step % self._save_every == 0 and self._unsaved:
            self.save()
        if self._is_last(step):
            self._finish()
        return measures

    def run(self, steps=None, callback=None):
        """Makes steps until the last one, or so many. callback(report) is called after each, with {"step": ..., "loss": ...,
        "epoch", "norm", "rate", "examples", "sources", "targets", "steps_left", "validation": measures or None}; if it returns
        False, the training stops: a checkpoint is saved, and the model so far is written. If it raises, or Ctrl-C is
        pressed, a checkpoint is saved."""
        if steps is None and not self._limit and not self._o["patience"]:
            raise _attend.ArgumentError("steps: needed, as the training has no last step")
        end = None if steps is None else self.steps + steps
        try:
            while not self._finished and (end is None or self.steps < end):
                self.step()
                if callback is not None and callback(self.report) is False:
                    self._pause()
                    self._write()
                    break
        except BaseException:
            self._pause()
            raise
        return self.report

    def evaluate(self, **options):
        """Measures of the current weights on the data for validation"""
        return self._training.evaluate({**self._evaluation, **options})

    def _validate(self, first=False):
        state = self._state
        measures = self.evaluate() if self._validates else None
        state["n"] = 0
        if measures is None:
            return None
        name, sign = self._measure
        if name not in measures:  # the measure of another loss, which neither is better nor worse
            return measures
        score = sign * measures[name]
        if math.isnan(score):
            state["worse"] += 1
            return measures
        if self._keeps_best and not self._o["average"]:
            self._training.keep_best(score, self._half)
        better = state["best"] is None or score > state["best"]
        if better:
            state["best"] = score
        state["worse"] = 0 if better or first else state["worse"] + 1
        return measures

    # ---- files

    def save(self):
        """Saves a checkpoint, from which resume=True continues with the bits of an uninterrupted training"""
        self._training.save(json.dumps(self._state))
        self._unsaved = False

    def write(self, average=0):
        """Writes the model of the current weights to the folder, or the mean of the newest checkpoints"""
        self._training.write(average, self._half)

    def close(self):
        """Unlocks the folder. Returns the log of a recommender, else None"""
        self._training.close()
        data, self._data = self._data, None
        return data

    def _pause(self):
        if self._unsaved and not self._finished:
            self._training.pause(json.dumps(self._state))
            self._unsaved = False

    def _write(self):
        best = self._keeps_best and self._validates and not self._o["average"]
        if not (best and math.isfinite(self.info["best"])):
            self.write(self._o["average"])

    def _finish(self):
        self._pause()
        self._write()
        self._training.keep(self._o["keep"])
        self._finished = True


def _batches(examples, own):
    """Batches of an epoch"""
    batch = own["batch"]
    if not hasattr(batch, "__index__") or not 0 < batch.__index__() <= 2**20:
        raise _attend.ArgumentError(f"batch: {batch!r}, must be an integer from 1 to {2**20}")
    return -(-examples // batch.__index__())


class Recommendation(Training):
    """Training of a model of next items: SASRec or BERT4Rec; or models that count and need no steps: "neighbors", "ease",
    "popularity". data, items, times: as for Recommender.fit"""

    _kind, _measure = "recommendation", ("ndcg", 1)
    _defaults = {**_COMMON, "patience": 5}
    _network = {"block": None, "hidden": None, "layers": None, "heads": None, "intermediate": None, "max_positions": None}
    _log = {"user": None, "item": None, "time": "", "split": "leave-one-out", "min_actions": 0, "held_out_users": 0,
            "valid_share": 0.0, "test_share": 0.0, "valid_from": 0.0, "test_from": 0.0, "drop_duplicates": False, "min_count": 0,
            "skip_bad_lines": 0}
    _struct = {"batch": 128, "with_replacement": False, "loss": "softmax", "negatives": 0, "calibration": None, "mask_share": 0.0,
               "last_mask_share": 0.0, "dropout": 0.2, "model": None}
    _own = {**_struct, **_network, **_log, "arch": None, "exclude_seen": False, "validate_candidates": "all"}
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
        data, self._given = self._given, None
        self._data = open_log(*data, model=model, **{name: own[name] for name in self._log})
        self._batches = _batches(self._data.histories, own)
        self._validates = self._data.info["valid_cases"] > 0
        if not self._o["epochs"]:
            self._o["epochs"] = 200 if self._validates else 20
        self._evaluation = {"part": "valid", "exclude_seen": own["exclude_seen"], "candidates": own["validate_candidates"],
                            "draws": int(own["validate_candidates"] != "all"), "seed": self._o["seed"]}
        if own["loss"] == "gbce" and own["calibration"] is None:
            own["calibration"] = 0.75
        settings = {"model_type": "attend-" + arch,
                    **{self._names.get(name, name): value for name, value in sizes.items() if name != "arch"}}
        return {**{name: own[name] for name in self._struct}, "settings": None if own["model"] else json.dumps(settings)}

    def _identity(self):
        return self._data.valid_checksum


# Sizes of a model: (of the Transformer, of recurrent layers)
_PRESETS = {"tiny": ((128, 2, 512, 4), (128, 256, 1)), "small": ((256, 3, 1024, 4), (256, 512, 1)),
            "base": ((512, 6, 2048, 8), (512, 1024, 2))}


class Translation(Training):
    """Training of a translator from two files of text, source= and target=: line i of one is the translation of line i of the
    other. valid_source= and valid_target= are for validation. arch="rnn" trains recurrent layers, with attention="none",
    "additive", "dot" or "general"; preset="tiny", "small" or "base" is the size, or config= a file, settings= a dict"""

    _kind, _measure, _keeps_best = "translation", ("loss", -1), False
    _defaults = {**_COMMON, "beta2": 0.98, "warmup": 1000, "clip": 1.0, "validate_every": 500, "save_every": 500, "average": 5}
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


class Sentences(Training):
    """Training of a sentence model, model=, from rows of texts: pairs for loss="multiple-negatives-ranking", with further texts
    as hard negatives; pairs and scores=, cosines from -1 to 1, for "cosine"; triplets for "triplet"; pairs and labels=, numbers
    from 0, for "softmax". valid=: (pairs, scores) for validation, by Spearman's correlation"""

    _kind, _measure = "sentences", ("spearman", 1)
    _defaults = {**_COMMON, "epochs": 2, "rate": 2e-5, "schedule": "linear", "warmup": 0.1, "decay": 0.01, "clip": 1.0,
                 "validate_every": 100, "save_every": 200}
    _struct = {"model": None, "loss": None, "batch": 16, "distance": "euclidean", "scale": 0.0, "margin": 0.0}
    _own = {**_struct, "scores": None, "labels": None, "valid": None}

    def __init__(self, out, rows, *, resume=False, **options):
        self._rows = [tuple(row) for row in rows]
        super().__init__(out, resume=resume, **options)

    def _prepare(self, own):
        if own["model"] is None:
            raise _attend.ArgumentError("model: the sentence model to begin with is needed")
        from attend import _hub
        rows, self._rows = self._rows, None
        columns = len(rows[0]) if rows else 0
        for i, row in enumerate(rows):
            if len(row) != columns:
                raise _attend.ShapeError(f"rows[{i}]: has {len(row)} texts, but rows[0] has {columns}")
        scores, labels = (None if own[name] is None else tuple(own[name]) for name in ("scores", "labels"))
        own["loss"] = own["loss"] or ("cosine" if scores else "softmax" if labels else "multiple-negatives-ranking")
        own["model"] = _hub.find(own["model"])
        self._data = ([text for row in rows for text in row], columns, scores, labels)
        self._batches, self._valid = _batches(len(rows), own), None
        if own["valid"] is not None:
            pairs, gold = own["valid"]
            pairs, gold = [tuple(pair) for pair in pairs], [float(score) for score in gold]
            if len(pairs) != len(gold) or any(len(pair) != 2 for pair in pairs):
                raise _attend.ShapeError(f"valid: {len(pairs)} pairs of two texts and {len(gold)} scores; a score for each is needed")
            self._valid = ([pair[0] for pair in pairs], [pair[1] for pair in pairs], gold)
            self._similarity = _attend.Sentence(own["model"]).info["similarity"]
            self._validates = self._base = True
        return {**{name: own[name] for name in self._struct}, "classes": max(labels) + 1 if labels else 0}

    def _identity(self):
        import zlib
        return zlib.crc32(repr(self._valid).encode("utf-8", "surrogatepass")) if self._valid else 0

    def evaluate(self):
        """{"spearman": 100 times the correlation of similarities and scores}, or NaN if one of both does not vary"""
        if not self._valid:
            raise _attend.ArgumentError("evaluate: there are no rows for validation, valid=")
        first, second, gold = self._valid
        vectors = [self._training.evaluate({"texts": texts}) for texts in (first, second)]
        found = _attend.similarity(*vectors, self._similarity, True).tolist()
        return {"spearman": 100 * _correlation(_ranks(found), _ranks(gold))}

    def close(self):
        """Unlocks the folder."""
        super().close()


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
    _defaults = {**_COMMON, "epochs": 20, "schedule": "cosine", "warmup": 0.05, "decay": 0.05, "clip": 1.0}
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
        self._batches = _batches(images.info["images"], own)
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

    def close(self):
        """Unlocks the folder."""
        super().close()


class Captions(Training):
    """Training of a captioner from a file of captions, and images=, the folder of their images; train_list= and valid_list= are
    files that name the images for training and validation. decoder="gru", "lstm" or "transformer"; encoder=, a vision
    Transformer that encodes the images, else a CNN of channels= is trained"""

    _kind, _measure = "captions", ("loss", -1)
    _defaults = {**_COMMON, "epochs": 25, "schedule": "cosine", "warmup": 0.05, "decay": 0.01, "clip": 5.0}
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
        self._batches = _batches(train.info["images"], own)
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

    def close(self):
        """Unlocks the folder."""
        super().close()


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
