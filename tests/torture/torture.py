#!/usr/bin/env python3
"""Runs each command of the tool while something goes wrong beneath it, and looks at what it leaves.

    tests/torture/torture.py build/attend build/libfail_malloc.so [--seconds 600] [--seed 1]

What goes wrong: the n-th allocation, or the n-th call of a kind to the system, fails; descriptors are closed, or are few;
files are links, FIFOs, folders, devices, cut short or damaged; the disk is full; numbers are extreme; a signal comes.
Each run must end, by itself and not by a crash. With exit code 0 it has written what an undisturbed run writes. With
another one there is a sentence on standard error, and each file is as it was, or whole. Nothing else is left behind.
All runs that there are come in an order by the seed, as many as there is time for.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HANGS = 30  # seconds after which a run is said to hang; none takes a tenth of that
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

# ---- the files that commands read

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "rot": "red", "blau": "blue", "neu": "new", "Haus": "house",
         "Hund": "dog", "Tag": "day"}


def write_sentence_model(folder):
    """A sentence-transformers folder with a tiny BERT whose weights are random."""
    r, hidden, inner, tokens, positions = random.Random(1), 12, 20, 40, 16
    shapes = {"embeddings.word_embeddings.weight": [tokens, hidden],
              "embeddings.position_embeddings.weight": [positions, hidden],
              "embeddings.token_type_embeddings.weight": [2, hidden],
              "embeddings.LayerNorm.weight": [hidden], "embeddings.LayerNorm.bias": [hidden]}
    for name, rows, columns in (("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)):
        shapes[f"encoder.layer.0.{name}.weight"] = [rows, columns]
        shapes[f"encoder.layer.0.{name}.bias"] = [rows]
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes[f"encoder.layer.0.{name}.weight"] = shapes[f"encoder.layer.0.{name}.bias"] = [hidden]
    header, data = {}, b""
    for name, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
        data += struct.pack(f"<{n}f", *(r.uniform(-1, 1) for _ in range(n)))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    letters = "abcdefghijklmnopqrstuvwxyz"
    files = {
        "model.safetensors": struct.pack("<Q", len(text)) + text + data,
        "vocab.txt": "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters,
                                *("##" + c for c in letters[:9])]) + "\n",
        "config.json": {"model_type": "bert", "vocab_size": tokens, "hidden_size": hidden, "num_hidden_layers": 1,
                        "num_attention_heads": 3, "intermediate_size": inner, "hidden_act": "gelu",
                        "max_position_embeddings": positions, "type_vocab_size": 2, "layer_norm_eps": 1e-5,
                        "position_embedding_type": "absolute"},
        "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 14},
        "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                         {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                         {"idx": 2, "name": "2", "path": "2_Normalize",
                          "type": "sentence_transformers.models.Normalize"}],
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode_cls_token": False,
                                  "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
                                  "pooling_mode_mean_sqrt_len_tokens": False},
        "sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": False},
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(content) if not isinstance(content, (str, bytes)) else content
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_inputs(tool, folder):
    """Everything that the commands below read."""
    r = random.Random(1)
    pairs = [[r.choice(list(WORDS)) for _ in range(r.randrange(1, 6))] for _ in range(40)]
    (folder / "t.de").write_text("".join(" ".join(p) + "\n" for p in pairs))
    (folder / "t.en").write_text("".join(" ".join(WORDS[w] for w in reversed(p)) + "\n" for p in pairs))
    (folder / "in").write_text("a b c\nhello\n\nzwei drei\n")
    (folder / "pairs.tsv").write_text("a b\tb a\nhello\tworld\n")
    (folder / "scored.tsv").write_text("a b\tb a\t4.5\nhello\tworld\t1\nab\tabc\t3\nx y\ty x\t5\n")
    (folder / "log").write_text("".join(f'{{"step": {i}, "loss": {5 / i:.3f}}}\n' for i in range(1, 9)))
    (folder / "vectors").write_text("0.34 0.22 0.54\n0.53 0.34 0.98\n")
    (folder / "small.json").write_text(json.dumps(
        {"model_type": "marian", "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 1,
         "decoder_attention_heads": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}))
    write_sentence_model(folder / "m")
    for line in ("vocab -s 40 -n identity -o p.spm t.de t.en", "embed -m m --format npy -o v.npy in",
                 "train translate --src t.de --tgt t.en --config small.json --tokenizer p.spm --steps 2 -o mt",
                 "train translate --src t.de --tgt t.en --config small.json --tokenizer p.spm --steps 2 --save-every 1 "
                 "--average 2 -o going"):
        subprocess.run([tool, *line.split()], cwd=folder, check=True, capture_output=True)


# A command, what it reads, and the files that it writes; none: standard output.
COMMANDS = [(line.split(), reads.split(), writes.split()) for line, reads, writes in (
    ("embed -m m in", "in m/model.safetensors m/config.json m/vocab.txt m/modules.json", ""),
    ("embed -m m --format npy -o out.npy in", "in m/model.safetensors m/tokenizer_config.json", "out.npy"),
    ("tokenize -m m in", "in m/vocab.txt", ""),
    ("tokenize -m p.spm --json in", "in p.spm", ""),
    ("similarity -m m hello world", "m/model.safetensors", ""),
    ("similarity -m m --pairs pairs.tsv --json", "pairs.tsv", ""),
    ("search -m m -c in -k 2 hello", "in m/model.safetensors", ""),
    ("search -m m -c in -i v.npy -k 2 hello", "in v.npy", ""),
    ("attention -m m --layer 0 --head 1 --svg out.svg hello", "m/model.safetensors", "out.svg"),
    ("attention -m mt --side encoder --heads --svg out.svg hello", "mt/model.safetensors", "out.svg"),
    ("attention -m mt --hide 0 --zero 0.0 --json hello", "mt/model.safetensors mt/config.json", ""),
    ("vocab -s 40 -o out.spm t.de", "t.de", "out.spm"),
    ("translate -m mt in", "in mt/model.safetensors mt/vocab.json mt/source.spm mt/config.json", ""),
    ("translate -m mt -b 3 -n 2 --json -a out.json in", "in mt/generation_config.json", "out.json"),
    ("bleu --confidence t.en t.en", "t.en", ""),
    ("plot log", "log", ""),
    ("plot -o out.svg log", "log", "out.svg"),
    ("explain simplified", "", ""),
    ("explain softmax --input vectors", "vectors", ""),
    ("info", "", ""),
    ("help train", "", ""),
    ("train translate --src t.de --tgt t.en --config small.json --vocabulary 64 --steps 3 --save-every 1 "
     "--validate-every 2 --valid-src t.de --valid-tgt t.en -o new", "t.de t.en small.json", "new/"),
    ("train translate --src t.de --tgt t.en --config small.json --tokenizer p.spm --steps 4 --save-every 1 "
     "--average 2 --resume -o going",
     "t.de going/checkpoint-0000000002.safetensors going/log.jsonl going/vocab.json", "going/"),
    ("train embed -m m --pairs scored.tsv --batch 2 --epochs 1 -o newm", "scored.tsv m/config.json", "newm/"),
)]

# ---- one run

Run = collections.namedtuple("Run", "command kind value")  # command: its number


class Place:
    """A copy of the files for one run after another; whatever a run changes is put back."""

    def __init__(self, original):
        self.original = original
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attend-torture-"))
        self.refresh()

    def refresh(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.original, self.folder, symlinks=True)

    def files(self):
        """All files by their names: their bytes, or what else they are."""
        found = {}
        for base, folders, names in os.walk(self.folder):
            for name in names + [f for f in folders if os.path.islink(os.path.join(base, f))]:
                path = os.path.join(base, name)
                key = os.path.relpath(path, self.folder)
                found[key] = (f"link {os.readlink(path)}" if os.path.islink(path) else
                              pathlib.Path(path).read_bytes() if os.path.isfile(path) else "special")
        return found


def forgets(name, data):
    """What two undisturbed runs may write differently."""
    if name.endswith("lock"):
        return b""
    if name.endswith("log.jsonl"):
        return re.sub(rb'"seconds": [0-9.]+', b"", data)
    if "checkpoint-" in name:
        return re.sub(rb"seconds [0-9.]{15}", b"", data)
    if name.endswith("training.json"):  # the folder of the files
        return re.sub(rb'"/[^"]*/', b'"', data)
    return data


class Torture:
    def __init__(self, tool, preload, original):
        self.tool, self.preload, self.original = tool, preload, original
        self.calm = [self.undisturbed(i) for i in range(len(COMMANDS))]
        self.local = threading.local()

    def start(self, command, folder, wrap=(), **options):
        words = [*wrap, self.tool, *command]
        environment = {**os.environ, "LC_ALL": "C", "ATTEND_THREADS": "2", "ATTEND_MODELS": "models",
                       **options.pop("env", {})}
        environment.pop("ATTEND_MODEL", None)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(words, cwd=folder, env=environment, start_new_session=True, **options)

    def finish(self, process, seconds=HANGS):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, b"", b""
        code = process.returncode
        return (128 - code if code < 0 else code), out or b"", err or b""

    def undisturbed(self, i):
        """What a command prints, and the files that are there behind it."""
        place = Place(self.original)
        code, out, err = self.finish(self.start(COMMANDS[i][0], place.folder))
        if code != 0:
            sys.exit(f"{' '.join(COMMANDS[i][0])}: exit code {code}: {err.decode()}")
        files = place.files()
        shutil.rmtree(place.folder)
        return out, files

    def place(self):
        if not hasattr(self.local, "place"):
            self.local.place = Place(self.original)
        return self.local.place

    # -- what goes wrong

    def disturbed(self, run, place):
        """Starts the run; its exit code, output, messages, and files that were spoilt on purpose."""
        command, value = COMMANDS[run.command][0], run.value
        return getattr(self, "run_" + run.kind)(command, value, place)

    def run_malloc(self, command, n, place):
        environment = {"LD_PRELOAD": self.preload, "FAIL_MALLOC_AT": str(n), "FAIL_MALLOC_HIT": "/dev/null"}
        return *self.finish(self.start(command, place.folder, env=environment)), set()

    def run_call(self, command, value, place):
        call, error, n = value
        wrap = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                f"inject={call}:error={error}:when={n}"]
        return *self.finish(self.start(command, place.folder, wrap)), set()

    def run_closed(self, command, which, place):
        def close():
            for fd in which:
                os.close(fd)
        return *self.finish(self.start(command, place.folder, preexec_fn=close)), set()

    def run_limit(self, command, value, place):
        name, most = value

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(getattr(resource, name), (most, most))
        return *self.finish(self.start(command, place.folder, preexec_fn=limit)), set()

    def run_full(self, command, _, place):
        with open("/dev/full", "wb") as full:
            return *self.finish(self.start(command, place.folder, stdout=full)), set()

    def run_signal(self, command, value, place):
        number, seconds = value
        process = self.start(command, place.folder)
        time.sleep(seconds)
        if process.poll() is None:
            process.send_signal(number)
        return *self.finish(process), set()

    def run_input(self, command, value, place):
        name, how = value
        path = place.folder / name
        data = path.read_bytes()
        path.unlink()
        if how == "fifo":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir()
        elif how == "loop":
            path.symlink_to(path.name)
        elif how == "device":
            path.symlink_to("/dev/zero")
        elif how == "null":
            path.symlink_to("/dev/null")
        elif how == "empty":
            path.write_bytes(b"")
        else:
            kind, at = how
            at = int(at * len(data))
            path.write_bytes(data[:at] if kind == "cut" else data[:at] + bytes([data[at % len(data)] ^ 0x55]) +
                             data[at + 1:])
        process = self.start(command, place.folder)
        if how == "fifo":  # nobody writes to it: the tool may wait, but not against a signal
            for _ in range(50):
                if process.poll() is not None:
                    break
                time.sleep(0.02)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        elif how == "device":  # zeros without end: the tool may read them, but not against a signal
            try:
                process.wait(1)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
        return *self.finish(process), {name}

    def run_output(self, command, how, place):
        """The file that is written is there already, as something else."""
        name = next(w for w in COMMANDS_BY_LINE[tuple(command)][2])
        path = place.folder / name.rstrip("/")
        spoilt = {name}
        if name.endswith("/"):
            if path.exists():
                return None
            if how == "link":
                (place.folder / "elsewhere").mkdir()
                path.symlink_to("elsewhere")
            elif how == "folder":
                path.mkdir()
                (path / "lock").symlink_to("../in")
                (path / "log.jsonl").symlink_to("../t.de")
            else:
                path.write_bytes(b"precious")
        elif how == "link":
            (place.folder / "elsewhere").write_bytes(b"precious")
            path.symlink_to("elsewhere")
        elif how == "folder":
            path.mkdir()
        else:
            path.write_bytes(b"precious")
        return *self.finish(self.start(command, place.folder)), spoilt

    def run_number(self, command, value, place):
        option, number = value
        process = self.start([*command, option + "=" + number], place.folder)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        return *self.finish(process), None

    # -- what is looked at

    def wrong(self, run, code, out, err, spoilt, files):
        """What is wrong with a run, or None."""
        calm_out, calm_files = self.calm[run.command]
        command, _, writes = COMMANDS[run.command]
        before = Torture.before
        ended = run.kind in ("signal",) or (run.kind in ("input", "number"))
        if code is None:
            return "hangs"
        if code == 127 and b"error while loading shared libraries" in err:
            return None  # it was not the tool that failed
        if code not in (0, 1, 2) and not (ended and code in SIGNALS.values()):
            return f"exit code {code}"
        stderr_there = not (run.kind == "closed" and 2 in run.value) and not (
            run.kind == "call" and run.value[0] == "write")
        if code in (1, 2) and stderr_there and not re.search(rb"(^|\n|\r[^\n]*)attend: .", err):
            return "no sentence"
        if code in (1, 2) and re.search(rb"Sanitizer|Assertion|\(null\)", err):
            return "a sentence that is none"
        leftovers = [f for f in files if f not in calm_files and f not in before and "unfinished" in f]
        # The next training in a folder removes what a signal left in it; other files go with the signal.
        if run.kind == "signal":
            leftovers = [f for f in leftovers if not any(w.endswith("/") and f.startswith(w) for w in writes)]
        if leftovers and not (run.kind == "call" and run.value[0].startswith("unlink")):
            return f"left behind: {leftovers}"
        if spoilt is None:
            return None
        for name, data in before.items():
            mine = any(name == w or (w.endswith("/") and name.startswith(w)) for w in writes)
            if not mine and name not in spoilt and files.get(name) != data:
                return f"{name} has changed"
        if spoilt:
            return self.wrong_output(run, code, files)
        forgiven = run.kind == "call" and command[0] == "info"  # it tells what it can find out of the machine and models
        if code == 0 and run.kind != "closed" and run.kind != "full" and out != calm_out and not forgiven:
            return "exit code 0 with another output"
        if code == 0 and (run.kind == "full" and calm_out or
                          run.kind == "closed" and 1 in run.value and calm_out):
            return "exit code 0, but its output is lost"
        for w in writes:
            for name, data in calm_files.items():
                if (name == w or (w.endswith("/") and name.startswith(w))) and code == 0 and \
                        forgets(name, files.get(name)) != forgets(name, data):
                    return f"exit code 0, but {name} is another"
            if not w.endswith("/") and w in files and files[w] not in (calm_files.get(w), before.get(w)):
                return f"{w} is not whole"
        return None

    def wrong_output(self, run, code, files):
        """Where the output was something else before: precious, or replaced by what is whole."""
        if run.kind != "output":
            return None
        _, calm_files = self.calm[run.command]
        name = COMMANDS[run.command][2][0]
        for path in ("elsewhere", name):
            data = files.get(path)
            if isinstance(data, bytes) and data != b"precious" and data != calm_files.get(name):
                return f"{path} is not whole"
        return None

    def one(self, run):
        place = self.place()
        result = self.disturbed(run, place)
        if result is None:
            return run, None, b""
        code, out, err, spoilt = result
        files = place.files()
        problem = self.wrong(run, code, out, err, spoilt, files)
        if files != Torture.before or any(p.is_fifo() for p in place.folder.rglob("*")):
            place.refresh()
        return run, problem, err


COMMANDS_BY_LINE = {tuple(c[0]): c for c in COMMANDS}

# ---- all runs

CALLS = {"openat": ("EMFILE", "EACCES", "EIO"), "write": ("ENOSPC", "EIO"), "pwrite64": ("ENOSPC",), "read": ("EIO",),
         "pread64": ("EIO",), "mmap": ("ENOMEM",), "fstat,newfstatat": ("EIO",), "fsync": ("EIO",),
         "rename,renameat,renameat2": ("ENOSPC", "EACCES"), "unlink,unlinkat": ("EACCES",), "mkdir": ("ENOSPC",),
         "ftruncate": ("EIO",), "lseek": ("EIO",), "clone,clone3": ("EAGAIN",), "flock,fcntl": ("ENOLCK",),
         "linkat": ("EACCES",)}
NUMBERS = "0 -0 -1 1 2147483647 2147483648 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808 " \
    "1e308 -1e308 1e309 5e-324 1e-320 nan inf -inf 0x10 1e 1.5 99999999999999999999999 --".split() + ["", " 1", "1 "]


def count_mallocs(torture, i, folder):
    """How often a command allocates: the first n at which nothing fails any more, by halving."""
    low, high = 1, 1 << 20
    with tempfile.TemporaryDirectory() as marks:
        while low < high:
            n, mark = (low + high) // 2, pathlib.Path(marks) / "hit"
            mark.unlink(missing_ok=True)
            place = Place(torture.original)
            torture.finish(torture.start(COMMANDS[i][0], place.folder, env={
                "LD_PRELOAD": torture.preload, "FAIL_MALLOC_AT": str(n), "FAIL_MALLOC_HIT": str(mark)}))
            shutil.rmtree(place.folder)
            low, high = (n + 1, high) if mark.exists() else (low, n)
    return low - 1


def count_calls(torture, i, *options):
    """How often a command makes each call; and how often before it becomes another program, if it does."""
    place = Place(torture.original)
    counts, before, programs = collections.Counter(), collections.Counter(), collections.Counter()
    with tempfile.NamedTemporaryFile("r") as trace:
        torture.finish(torture.start(COMMANDS[i][0], place.folder, [
            "strace", *options, "-f", "-qqq", "-o", trace.name, "-e", "trace=" + ",".join([*CALLS, "execve"])]))
        for line in trace:
            match = re.match(r"(\d+) +(\w+)\(", line)
            if match and match[2] == "execve":
                programs[match[1]] += 1
                before = counts.copy() if programs[match[1]] == 2 else before
            for calls in CALLS:
                counts[calls] += bool(match) and match[2] in calls.split(",")
    shutil.rmtree(place.folder)
    if not counts["openat"]:
        print("strace cannot watch a process here: calls to the system are not made to fail", flush=True)
    return counts, before


def numeric_options(tool, command):
    words = command[:2] if command[0] == "train" else command[:1]
    text = subprocess.run([tool, "help", *words], capture_output=True, text=True).stdout
    return re.findall(r"^ +(?:-\w, )?(--[a-z-]+) (?:N|P|X|RATIO|RATE|NORM)\b", text, re.M)


def all_runs(torture, r):
    runs = []
    loader, _ = count_calls(torture, 0, "-E", "LD_TRACE_LOADED_OBJECTS=1")  # the system's, before a program begins
    for i, (command, reads, writes) in enumerate(COMMANDS):
        add = lambda kind, values: runs.extend(Run(i, kind, v) for v in values)
        add("malloc", range(1, count_mallocs(torture, i, None) + 1))
        all_calls, before = count_calls(torture, i) if loader["openat"] else (loader, {})
        for calls, n in all_calls.items():
            first, second = 1 if calls == "write" else loader.get(calls, 0) + 1, before.get(calls, 0)
            add("call", [(calls, error, k) for error in CALLS[calls] for k in range(first, n + 1)
                         if not second < k < second + first])
        add("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
        add("limit", [("RLIMIT_FSIZE", n) for n in (0, 1, 100, 1000, 4096, 10000)] +
            [("RLIMIT_NOFILE", n) for n in range(3, 12)] + [("RLIMIT_AS", n << 20) for n in (8, 16, 32, 64, 128)] +
            [("RLIMIT_STACK", 64 << 10), ("RLIMIT_NPROC", 1)])
        add("full", [None])
        add("signal", [(s, r.uniform(0, 0.08)) for s in SIGNALS for _ in range(4)])
        add("input", [(name, how) for name in reads for how in (
            "fifo", "folder", "loop", "device", "null", "empty",
            *((kind, r.random()) for kind in ("cut", "flip") for _ in range(6)))])
        add("output", ["link", "folder", "file"] if writes else [])
        add("number", [(option, number) for option in numeric_options(torture.tool, command) for number in NUMBERS])
    r.shuffle(runs)
    return runs


def describe(run):
    return f"{' '.join(COMMANDS[run.command][0])}  [{run.kind} {run.value}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("preload")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="runs whose description matches this regular expression")
    o = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attend-torture-") as folder:
        original = pathlib.Path(folder)
        tool = os.path.abspath(o.tool)
        write_inputs(tool, original)
        torture = Torture(tool, os.path.abspath(o.preload), original)
        Torture.before = Place(original).files()
        runs = all_runs(torture, random.Random(o.seed))
        runs = [x for x in runs if not o.only or re.search(o.only, describe(x))]
        done = failed = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            waiting = iter(runs)
            going = set()
            while True:
                while len(going) < 2 * os.cpu_count() and time.monotonic() - begun < o.seconds:
                    run = next(waiting, None)
                    if run is None:
                        break
                    going.add(pool.submit(torture.one, run))
                if not going:
                    break
                ready, going = concurrent.futures.wait(going, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in ready:
                    run, problem, err = future.result()
                    done += 1
                    if problem:
                        failed += 1
                        print(f"{describe(run)}: {problem}\n    {err.decode(errors='replace')[-300:]!r}", flush=True)
    print(f"seed {o.seed}: {done} of {len(runs)} runs, {failed} wrong, {time.monotonic() - begun:.0f} s")
    sys.exit(failed > 0)


main()
