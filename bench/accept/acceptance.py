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
from common import BUILD, ROOT, table

TOOL = BUILD / "attend"
DOCUMENT = ROOT / "docs/BENCHMARKS.md"


STATED = "stated"  # a figure that is required of another processor


def is_zen4():
    """The processor of which shares of the peak are required; on others they are stated."""
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    return bool(re.search(r"^vendor_id\s*: AuthenticAMD$", cpu, re.M) and re.search(r"^cpu family\s*: 25$", cpu, re.M)
                and "avx512f" in cpu)


class Report:
    """The lines of acceptance, and tables that go with them."""

    def __init__(self):
        self.lines, self.tables = [], []

    def line(self, figure, required, measured, holds):
        """holds: True, False, None for what was not measured, or STATED."""
        word = {True: "yes", False: "NO", None: "not measured"}.get(holds, holds)
        self.lines.append([figure, required, measured, word])
        print(f"  {word:12}  {figure}: {measured} (required: {required})", file=sys.stderr)

    def table(self, title, head, rows):
        self.tables.append((title, head, rows))

    def code(self):
        words = [line[-1] for line in self.lines]
        return 1 if "NO" in words else 3 if "not measured" in words else 0

    def text(self, markdown):
        out = [table(["figure", "required", "measured", "holds"], self.lines, markdown)]
        for title, head, rows in self.tables:
            out += ["", f"**{title}**" if markdown else title, "", table(head, rows, markdown)]
        return "\n".join(out)


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


def main(name, purpose, parts, quick, gemm_peers=False, update=None, untimed=()):
    """parts: functions of (report, args), of which the untimed ones measure no time. update(report): what --update
    writes beside the document's section."""
    begin, end = f"<!-- measured: bench/accept/{name} --update writes from here -->", f"<!-- to here: {name} -->"
    named = {f.__name__.replace("_", "-"): f for f in parts}
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="of every timed comparison; 5, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", action="append", choices=named, help="this part; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print as Markdown")
    parser.add_argument("--update", action="store_true", help="write the result into docs/, too")
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 5)
    if args.update and args.only:
        parser.error("--update needs all parts")
    build(gemm_peers)
    report, where, taken = Report(), machine(), 0.0
    for part_name, part in named.items():
        if not args.only or part_name in args.only:
            print(part_name, file=sys.stderr)
            others = Others()
            part(report, args)
            taken = max(taken, 0.0 if part in untimed else others.share())
    where["measured"] = (f"{datetime.date.today()}, best of {args.rounds} rounds; "
                         f"others took at most {100 * taken:.0f} % of the processors' time while a part was timed")
    noisy = "\nToo much else ran beside this: not figures to quote.\n" if taken > 0.03 else ""

    def text(markdown):
        return "\n".join([table(["machine", ""], where.items(), markdown), noisy, report.text(markdown)])

    print(text(args.markdown))
    if args.update:
        before, rest = DOCUMENT.read_text("utf-8").split(begin)
        DOCUMENT.write_text(f"{before}{begin}\n{text(True)}\n{end}{rest.split(end)[1]}", "utf-8")
        if update:
            update(report)
    return report.code()
