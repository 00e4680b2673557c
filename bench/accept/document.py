#!/usr/bin/env python3
"""Makes the measured parts of documents from bench/results: what stands between

    <!-- bench/results: FILE SECTION --> and <!-- to here -->

FILE.json has the results of a machine, SECTION is the program of bench/accept that measured them, and is followed by
" page" or " readme" for a table of what users do. docs/benchmarks-FILE.svg is the chart of that, and
docs/benchmarks-attention-FILE.svg that of attention's share of the peak.

    document.py           writes the documents and charts
    document.py --check   fails if one of them is not what it would write
"""
import functools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
from common import ROOT, table
from plot import bars, beside

RESULTS = ROOT / "bench/results"
REGION = re.compile(r"(<!-- bench/results: (\S+) (\S+)( page| readme)? -->\n).*?(<!-- to here -->)", re.S)

# What users do: key of bench/accept/users: English, Japanese
WORKS = {
    "attention-forward": ("attention, f32, forward", "注意、f32、順伝播"),
    "attention-backward": ("attention, f32, backward", "注意、f32、逆伝播"),
    "sentences": ("sentence embeddings, all-MiniLM-L6-v2, f32", "文の埋め込み、all-MiniLM-L6-v2、f32"),
    "cold-start": ("one sentence from a cold start, the whole process", "一文の埋め込み、プロセスの起動から終了まで"),
    "translation-one": ("translation, 6 + 6 layers, f32, one sentence", "翻訳、6 + 6層、f32、一文"),
    "translation": ("translation, 6 + 6 layers, f32, 32 sentences", "翻訳、6 + 6層、f32、32文"),
    "decoding-f16": ("decoding, SmolLM2-135M, F16", "デコード、SmolLM2-135M、F16"),
    "decoding-q8-0": ("decoding, SmolLM2-135M, Q8_0", "デコード、SmolLM2-135M、Q8_0"),
    "prompt-f16": ("prompt of 1,024 tokens, F16", "1,024トークンのプロンプト、F16"),
    "prompt-q8-0": ("prompt of 1,024 tokens, Q8_0", "1,024トークンのプロンプト、Q8_0"),
    "training": ("training step of a translator, 3 + 3 layers, d 512", "翻訳モデルの学習ステップ、3 + 3層、次元512"),
    "recommendation": ("the best 100 of a million items", "100万アイテムの上位100件"),
    "recommendation-training": ("epoch of SASRec, Games", "SASRecの1エポック、Games"),
}
README = ["attention-forward", "attention-backward", "sentences", "cold-start", "translation", "decoding-f16", "training"]


@functools.cache
def results(file):
    return json.loads((RESULTS / f"{file}.json").read_text("utf-8"))


def times_as_fast(work, name):
    """How many times as fast attend is as a peer"""
    ours, theirs = work["attend"], work["peers"][name]
    return theirs / ours if work["unit"] == "ms" else ours / theirs


def fastest(work):
    return min(work["peers"], key=lambda name: times_as_fast(work, name))


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


# ---- what users do

def page(file, works, measured):
    """A chart, and a row for each work and peer"""
    rows = []
    for key, (name, _) in WORKS.items():
        work = works.get(key)
        for peer, figure in sorted((work or {"peers": {}})["peers"].items(), key=lambda p: times_as_fast(work, p[0])):
            shapes = f" (mean of {work['shapes']} shapes)" if "shapes" in work else ""
            rows.append([name + shapes if peer == fastest(work) else "", peer, f"{number(work['attend'])} {work['unit']}",
                         f"{number(figure)} {work['unit']}", f"{times_as_fast(work, peer):.2f} x"])
    return (f"![attend beside its peers: the table below as bars](benchmarks-{file}.svg)\n\n"
            + table(["work", "peer", "attend", "peer's", "attend is"], rows, True) + f"\n\nMeasured on {measured}.")


def readme(works, japanese):
    rows = []
    for key in README:
        work, peer = works[key], fastest(works[key])
        ratio = f"{times_as_fast(work, peer):.2f}"
        peer = re.sub(r" \(.*\)", "", peer).replace(", tuned", "（調整済み）" if japanese else ", tuned")
        shapes = works[key].get("shapes")
        name = WORKS[key][japanese] + ("" if not shapes else f"、{shapes}通りの平均" if japanese else f", mean of {shapes} shapes")
        rows.append([name, peer, f"{ratio}倍" if japanese else f"{ratio} x"])
    head = ["処理", "比較対象（最速のライブラリ）", "attendの速さ"] if japanese else ["work", "beside the fastest peer", "times as fast"]
    lines = [head, ["---", "---", "---:"], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def chart(file, works):
    """The SVG of a machine"""
    bars = []
    for key, (name, _) in WORKS.items():
        if key in works:
            work, unit = works[key], works[key]["unit"]
            bars.append((name, [("attend", 1.0, f"{number(work['attend'])} {unit}")] + [
                (peer, 1 / times_as_fast(work, peer), f"{number(figure)} {unit}")
                for peer, figure in sorted(work["peers"].items(), key=lambda p: times_as_fast(work, p[0]))]))
    machine = results(file)["users"]["machine"]
    return beside(bars, f"{machine['processor']}, {machine['cores']} cores, {machine['instruction set']}")


# ---- required and measured

def section(result, markdown):
    """Of a program of acceptance: where it was measured, lines, tables"""
    out = [table(["machine", ""], result["machine"].items(), markdown)]
    if "works" in result:
        out += ["", page("", result["works"], "").split("\n\n")[1]]
    if "lines" in result:
        out += ["", table(["figure", "required", "measured", "holds"], result["lines"], markdown)]
    for title, head, rows in result.get("tables", []):
        out += ["", f"**{title}**" if markdown else title, "", table(head, rows, markdown)]
    return "\n".join(out)


def attention_chart(result):
    """The SVG of a section's tables of attention, without the shapes that multiplications do not bound"""
    found = []
    for title, _, rows in result.get("tables", []):
        side = re.match("Attention (for|back)ward, two threads", title)
        for name, _, ours, theirs, _ in rows if side else []:
            if re.fullmatch(r"[\d.]+ %", ours) and not name.startswith("additive"):
                found.append({"name": name, "pass": {"for": "fwd", "back": "bwd"}[side[1]],
                              "peak_share": float(ours[:-2]) / 100, "torch_peak_share": float(theirs[:-2]) / 100})
    return bars(found)


def region(path):
    def made(match):
        start, file, name, kind, end = match.groups()
        result = results(file)[name]
        if kind == " page":
            text = page(file, result["works"], result["machine"]["measured"])
        elif kind == " readme":
            text = readme(result["works"], path.name == "README.ja.md")
        else:
            text = section(result, True)
            if name == "b":
                text = f"![the tables of attention as bars](benchmarks-attention-{file}.svg)\n\n{text}"
        return f"{start}{text}\n{end}"

    return made


def documents():
    """(path, text) of all that is made"""
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]):
        text = path.read_text("utf-8")
        if REGION.search(text):
            yield path, REGION.sub(region(path), text)
    for path in sorted(RESULTS.glob("*.json")):
        if "b" in results(path.stem):
            yield ROOT / f"docs/benchmarks-attention-{path.stem}.svg", attention_chart(results(path.stem)["b"])
        if "users" in results(path.stem):
            yield ROOT / f"docs/benchmarks-{path.stem}.svg", chart(path.stem, results(path.stem)["users"]["works"])


def update():
    results.cache_clear()
    for path, text in documents():
        path.write_text(text, "utf-8")


def check():
    stale = [path for path, text in documents() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what bench/accept/document.py makes from bench/results: run that")
    return 1 if stale else 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(check() if sys.argv[1:] else update())
