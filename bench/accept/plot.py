"""Charts of bench/results, as SVG: shares of the FMA peak, and speeds beside other libraries."""
import html

NAMES, BAR, GAP, PANEL, SPACE, TOP = 190, 9, 9, 330, 40, 100  # px
ATTEND, PYTORCH, INK, GRAY, GRID = "#1b6ca8", "#c9a66b", "#1a1a1a", "#666666", "#dddddd"
FONT = "system-ui, sans-serif"


def text(x, y, words, size=11, fill=INK, anchor="start", bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>'
            f"{html.escape(words)}</text>")


def rect(x, y, width, height, fill, tooltip=""):
    tooltip = f"<title>{html.escape(tooltip)}</title>" if tooltip else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" fill="{fill}">{tooltip}</rect>'


def panel(x, height, title, rows, found):
    """Grid and bars of one pass; rows: names in order."""
    out = [text(x, TOP - 24, title, 13, bold=True)]
    for percent in range(0, 101, 20):
        at = x + PANEL * percent / 100
        out += [f'<path d="M{at:g} {TOP - 4}V{height - 12}" stroke="{GRID}"/>',
                text(at, TOP - 9, f"{percent} %", 9, GRAY, "middle")]
    for i, name in enumerate(rows):
        y = TOP + i * (2 * BAR + GAP)
        f = found.get(name)
        if not f:
            continue
        sides = [(BAR, "torch_peak_share", PYTORCH, "PyTorch")] if "torch_peak_share" in f else []
        sides += [(0, "peak_share", ATTEND, "attend")] if "peak_share" in f else []
        for down, key, fill, who in sides:
            share = f[key]
            out += [rect(x, y + down, PANEL * min(share, 1), BAR - 1, fill, f"{name}: {who} {100 * share:.1f} %"),
                    text(x + PANEL * min(share, 1) + 3, y + down + BAR - 2, f"{100 * share:.0f}", 8, GRAY)]
        if not sides:
            out.append(text(x + 3, y + BAR + 3, "not measured", 9, GRAY))
    return out


def bars(found):
    """An SVG of attention's shapes. found: name, pass and shares of each, as bench/accept/document.py has them"""
    rows = list(dict.fromkeys(f["name"] for f in found))
    height, width = TOP + len(rows) * (2 * BAR + GAP) + 16, NAMES + 2 * PANEL + SPACE + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           f'font-family="{FONT}">', "<title>Attention: share of the multiply-add peak, attend and PyTorch</title>",
           rect(0, 0, width, height, "#ffffff"),
           text(12, 24, "Attention: share of this machine's multiply-add peak (causal counts as half)", 15, bold=True),
           rect(NAMES, 34, 10, 10, ATTEND), text(NAMES + 15, 43, "attend"),
           rect(NAMES + 75, 34, 10, 10, PYTORCH), text(NAMES + 90, 43, "PyTorch")]
    for i, name in enumerate(rows):
        out.append(text(NAMES - 10, TOP + i * (2 * BAR + GAP) + BAR + 3, name, anchor="end"))
    for x, side, title in ((NAMES, "fwd", "forward"), (NAMES + PANEL + SPACE, "bwd", "backward")):
        out += panel(x, height, title, rows, {f["name"]: f for f in found if f["pass"] == side})
    return "\n".join(out + ["</svg>", ""])


# ---- attend beside its peers ----

WORK, SPEED, LINE, FIRST = 330, 360, 15, 84  # px: names of works, a bar of 1.0, a line, the first line
PEERS = ["#c9a66b", "#a9a9a9", "#8c9a5b"]


def beside(works, machine):
    """An SVG of speeds relative to attend's. works: (name, [(who, speed, figure)], attend first)"""
    longest = max(speed for _, sides in works for _, speed, _ in sides)
    scale = SPEED / max(longest, 1)
    height = FIRST + sum(LINE * len(sides) + 12 for _, sides in works) + 4
    width = WORK + SPEED + 250
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           f'font-family="{FONT}">', "<title>Speed beside other libraries; longer bars are faster</title>",
           rect(0, 0, width, height, "#ffffff"),
           text(12, 24, "Speed beside other libraries: longer bars are faster", 15, bold=True),
           text(12, 44, machine, 11, GRAY),
           f'<path d="M{WORK + scale:g} {FIRST - 12}V{height - 8}" stroke="{GRID}"/>',
           text(WORK + scale, FIRST - 16, "attend = 1", 9, GRAY, "middle")]
    y = FIRST
    for name, sides in works:
        out.append(text(WORK - 10, y + 10, name, anchor="end"))
        for i, (who, speed, figure) in enumerate(sides):
            fill, end = PEERS[i - 1] if i else ATTEND, WORK + max(scale * speed, 1)
            out += [rect(WORK, y, end - WORK, LINE - 3, fill, f"{name}: {who}, {figure}"),
                    text(end + 5, y + 10, f"{who}: {figure}", 10, INK if i == 0 else GRAY)]
            y += LINE
        y += 12
    return "\n".join(out + ["</svg>", ""])
