"""What all trainings have: options, the loop, checkpoints. train.py has those that one uses."""
import json
import math
import numbers
import os
import time

from attend import _attend

# Options of the loop and of the optimizer, with their defaults: those of `attend train`
COMMON = {"steps": 0, "epochs": 0, "minutes": 0, "patience": 0, "rate": 1e-3, "schedule": "constant", "warmup": 0, "beta2": 0.999,
          "decay": 0.0, "clip": 0.0, "freeze": (), "accumulate": 1, "shards": 0, "validate_every": 0, "save_every": 0, "average": 0,
          "keep": 1, "dtype": "float32", "compute": "float32", "seed": 1}
# Types of those that are numbers here, and the least and the most that each may be; the library checks the others
RANGES = {**dict.fromkeys(("epochs", "minutes", "rate"), (numbers.Real, 0, 1000000)), "warmup": (numbers.Real, 0, 2**53),
          **dict.fromkeys(("steps", "patience", "validate_every", "save_every", "average", "keep"), (numbers.Integral, 0, 2**53)),
          "accumulate": (numbers.Integral, 1, 2**53)}


class Training:
    """What all trainings have: a folder, checkpoints, the loop. Use a subclass."""

    _kind = None  # of _attend.Training
    _defaults = COMMON
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
        for name, (kind, least, most) in RANGES.items():
            if not isinstance(self._o[name], kind) or not least <= self._o[name] <= most:
                whole = "whole " if kind is numbers.Integral else ""
                raise _attend.ArgumentError(f"{name}: {self._o[name]!r}, must be a {whole}number from {least} to {most}")
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
        # Steps since the last validation; the best score; validations since; is a validation or checkpoint due? Seconds of
        # earlier processes
        self._state = {"n": 0, "best": None, "worse": 0, "due": False, "seconds": 0.0}
        self._opened = time.monotonic()
        self._unsaved, self._finished, self.report = not resume, False, None
        if resume and self._training.note:
            try:
                self._state.update(json.loads(self._training.note))
            except ValueError:
                pass  # of the tool, whose note has another form
        if self._limit and self.steps > self._limit:
            raise _attend.ArgumentError(f"steps: {self._limit}, but {self.folder} is at step {self.steps}")
        if resume and (self._state["due"] or self._is_last(self.steps) or self._is_out_of_patience()):
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
        """Has it reached its last step, `minutes` or `patience`? Then the folder has the model."""
        return self._finished

    def epochs_of(self, steps):
        """The epochs of a number of steps"""
        return steps * self._o["accumulate"] / self._batches

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
        """Has the training reached a limit of steps or time?"""
        return bool(self._limit and step >= self._limit) or 0 < self._o["minutes"] <= self._seconds() / 60

    def _is_out_of_patience(self):
        return self._validates and 0 < self._o["patience"] <= self._state["worse"]

    def _seconds(self):
        """Seconds that the training has been open, in all processes"""
        return self._state["seconds"] + time.monotonic() - self._opened

    def _note(self):
        """The state as a checkpoint has it"""
        return json.dumps({**self._state, "seconds": round(self._seconds(), 3)})

    def _after_step(self, step):
        """Validates and saves, where these are due, and ends the training after its last step."""
        state, measures, last = self._state, None, self._is_last(step)
        if state["n"] and (last or step % self._validate_every == 0):
            measures = self._validate()
        state["due"] = False
        if step and step % self._save_every == 0 and self._unsaved:
            self.save()
        if last or self._is_out_of_patience():
            self._finish()
        return measures

    def run(self, steps=None, callback=None):
        """Makes steps until the last one, or so many. callback(report) is called after each, with {"step": ..., "loss": ...,
        "epoch", "norm", "rate", "examples", "sources", "targets", "steps_left", "validation": measures or None}; if it returns
        False, the training stops: a checkpoint is saved, and the model so far is written. If it raises, or Ctrl-C is
        pressed, a checkpoint is saved."""
        if steps is None and not (self._limit or self._o["patience"] or self._o["minutes"]):
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
        self._training.save(self._note())
        self._unsaved = False

    def write(self, average=0):
        """Writes the model of the current weights to the folder, or the mean of the newest checkpoints"""
        self._training.write(average, self._half)

    def close(self):
        """Unlocks the folder."""
        self._training.close()
        self._data = None

    def _pause(self):
        if self._unsaved and not self._finished:
            self._training.pause(self._note())
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


def batches_of(examples, own):
    """Batches of an epoch"""
    batch = own["batch"]
    if not hasattr(batch, "__index__") or not 0 < batch.__index__() <= 2**20:
        raise _attend.ArgumentError(f"batch: {batch!r}, must be an integer from 1 to {2**20}")
    return -(-examples // batch.__index__())
