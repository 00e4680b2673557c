"""What the programs of acceptance share: the report, the machine it is about, the command line, the document."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import document
from common import BUILD, CACHE, ROOT

TOOL = BUILD / "attend"
DATA = pathlib.Path(os.environ.get("ATTEND_DATA", ROOT / "../shared/data"))
GAMES = DATA / "sasrec/sasrec_orig/Video.txt"
RESULTS = ROOT / "bench/results"  # MACHINE.json: what --update has written, of each program the last run

STATED = "stated"  # a figure that is required of another processor


def is_zen4():
    """The processor of which shares of the peak are required; on others they are stated."""
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    return bool(re.search(r"^vendor_id\s*: AuthenticAMD$", cpu, re.M) and re.search(r"^cpu family\s*: 25$", cpu, re.M)
                and "avx512f" in cpu)


class Report:
    """The lines of acceptance, tables that go with them, and works of users beside peers."""

    def __init__(self):
        self.lines, self.tables, self.works = [], [], {}

    def line(self, figure, required, measured, holds):
        """holds: True, False, None for what was not measured, or STATED."""
        word = {True: "yes", False: "NO", None: "not measured"}.get(holds, holds)
        self.lines.append([figure, required, measured, word])
        print(f"  {word:12}  {figure}: {measured} (required: {required})", file=sys.stderr)

    def table(self, title, head, rows):
        self.tables.append((title, head, [[str(cell) for cell in row] for row in rows]))

    def work(self, key, unit, attend, peers, **more):
        """unit: "ms", of which less is better, or a rate. peers: {name and version: figure}"""
        rounded = lambda x: float(f"{x:.5g}")
        self.works[key] = {"unit": unit, "attend": rounded(attend), **more,
                           "peers": {name: rounded(figure) for name, figure in peers.items()}}
        print(f"  {key}: attend {attend:.5g} {unit}; {self.works[key]['peers']}", file=sys.stderr)

    def code(self):
        words = [line[-1] for line in self.lines]
        return 1 if "NO" in words else 3 if "not measured" in words else 0

    def result(self):
        """Of which an entry of bench/results/MACHINE.json is made"""
        return {name: value for name, value in vars(self).items() if value}


def quiet(*command, **options):
    """Runs a command without showing what it says, unless it fails. Seconds that it took."""
    start = time.perf_counter()
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{' '.join(map(str, command))}: exit code {done.returncode}")
    return time.perf_counter() - start


def peers_python():
    python = os.environ.get("ATTEND_PEERS_PYTHON") or BUILD / "peers-venv/bin/python"
    if not shutil.which(python):
        sys.exit(f"{python} is not there: ./dev bench --peers makes it")
    return python


def build(gemm_peers):
    quiet("cmake", "-S", ROOT, "-B", BUILD, *([] if (BUILD / "CMakeCache.txt").exists() else ["-G", "Ninja"]),
          "-DATT_BENCH=ON")
    quiet("cmake", "--build", BUILD, "--target", "attend", "attend_shared", "attend_static", "bench/all")
    if gemm_peers and not (BUILD / "bench/bench_peers_gemm").exists():
        sys.exit("bench_peers_gemm needs OpenBLAS, oneDNN and OpenMP: ./dev bench --peers installs them")


def folder_of(model):
    said = subprocess.run([TOOL, "info", "-m", model], stdout=subprocess.PIPE, text=True, check=True).stdout
    return pathlib.Path(re.search(r"^folder +(.*)$", said, re.M)[1])


def smollm2_file(dtype):
    """A .gguf file of SmolLM2-135M-Instruct with this --dtype of attend convert, None: as fetched; made once"""
    name = "SmolLM2-135M-Instruct"
    quiet(TOOL, "fetch", name)
    out = CACHE / f"smollm2-{dtype}.gguf"
    if dtype is None:
        return next(folder_of(name).glob("*.gguf"))
    if not out.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        quiet(TOOL, "convert", name, "-o", out, "--dtype", dtype)
    return out


def attention_table(report, title, found):
    """Rows of bench/peers/attention.py as a table: times the other's, and shares of the peak or of the bandwidth."""
    rows = []
    for f in found:
        if "not_measured" in f:
            rows.append([f["name"], f["shape"], "not measured", "", ""])
            continue
        what = "bandwidth_share" if "bandwidth_share" in f else "peak_share"
        unit = " % of bandwidth" if what == "bandwidth_share" else " %"
        rows.append([f["name"], f["shape"], f"{100 * f[what]:.1f}{unit}", f"{100 * f['torch_' + what]:.1f}{unit}",
                     f"{f['ratio']:.2f} x"])
    report.table(title, ["attention", "shape", "attend", "PyTorch", "attend is as fast"], rows)


# ---- where it was measured ----

def machine():
    cpu = dict(re.findall(r"^(.+?)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    model = f"{cpu.get('model name', platform.machine())} (family {cpu.get('cpu family')}, model {cpu.get('model')})"
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())[1]
    compiler = re.search(r"CMAKE_C_COMPILER:.*?=(.*)", (BUILD / "CMakeCache.txt").read_text())[1]
    compiler = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    info = json.loads(subprocess.run([TOOL, "info", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    return {"processor": model, "cores": str(len(os.sched_getaffinity(0))), "instruction set": info["isa"],
            "compiler": compiler.splitlines()[0], "system": system, "attend": info["version"]}


class Others:
    """How much of the processors others took, from now on."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        """Seconds: of all processors, busy ones, and those that this program and what it started were busy."""
        cpu = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        ticks = [int(n) / os.sysconf("SC_CLK_TCK") for n in cpu]  # user nice system idle iowait irq softirq steal
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4], sum(os.times()[:4])

    def share(self):
        everything, busy, own = (b - a for a, b in zip(self.start, self.now()))
        return max(0.0, busy - own) / max(everything, 0.01)


def machine_name(where):
    """Of the file of its results: intel-6-207-avx512"""
    cpu = dict(re.findall(r"^(.+?)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    vendor = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(cpu.get("vendor_id"), platform.machine())
    return "-".join([vendor, cpu.get("cpu family", "0"), cpu.get("model", "0"), where["instruction set"]])


def measured(rounds, others, counts="best"):
    return (f"{datetime.date.today()}, {counts} of {rounds} rounds; "
            f"others took at most {100 * others:.0f} % of the processors' time while a part was timed")


def write_result(name, where, rounds, result):
    """Into the machine's file, in place of what the last run of this program had there, works one by one"""
    path = RESULTS / f"{machine_name(where)}.json"
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if "works" in result:
        result["works"] = {**found.get(name, {}).get("works", {}), **result["works"]}
        where["measured"] = measured(rounds, max(work["others"] for work in result["works"].values()))
    found[name] = {"machine": where, **result}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def main(name, purpose, parts, quick, gemm_peers=False, untimed=(), works=False, counts="best"):
    """parts: functions of (report, args), of which the untimed ones measure no time. works: they report works alone.
    counts: which of the rounds counts, best or middle."""
    named = {f.__name__.replace("_", "-"): f for f in parts}
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="of every timed comparison; 5, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", action="append", choices=named, help="this part; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print as Markdown")
    parser.add_argument("--update", action="store_true",
                        help="write the result into bench/results/MACHINE.json, and documents from it")
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 5)
    if args.update and args.only and not works:
        parser.error("--update needs all parts")
    build(gemm_peers)
    report, where, taken = Report(), machine(), 0.0
    for part_name, part in named.items():
        if not args.only or part_name in args.only:
            print(part_name, file=sys.stderr)
            others = Others()
            part(report, args)
            share = 0.0 if part in untimed else others.share()
            taken = max(taken, share)
            for work in report.works.values():
                work.setdefault("others", round(share, 3))
    where["measured"] = measured(args.rounds, taken, counts)
    result = report.result()
    print(document.section({"machine": where, **result}, args.markdown))
    if taken > 0.03:
        print("\nToo much else ran beside this: not figures to quote.")
    if args.update:
        write_result(name, where, args.rounds, result)
        document.update()
    return report.code()
