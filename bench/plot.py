#!/usr/bin/env python3
"""plot.py - draws the speed table of results/peer.md as bars: how many times as fast as llama.cpp.

    plot.py            writes results/peer.svg
    plot.py --check    fails if that file is not what would be written
"""
import os
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
HEAD = ["file", "test", "weft", "share", "llama.cpp", "ratio"]
WIDTH, LEFT, RIGHT = 760, 178, 170   # of the picture; kept for the names; for the numbers behind the bars
BAR, THIN, STEP, GROUP = 11, 5, 25, 40  # heights: of our bar, of the peer's, of a row, above a group


def read_table(path):
    """The rows of the first table with the columns HEAD."""
    rows, inside = [], False
    for line in open(path, encoding="utf-8"):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if cells == HEAD:
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not cells[0].startswith("---"):
            rows.append(dict(zip(HEAD, cells)))
    if not rows:
        sys.exit(f"plot.py: {path} has no table with the columns {', '.join(HEAD)}")
    return rows


def draw(rows):
    tests = list(dict.fromkeys(r["test"] for r in rows))
    most = max(float(r["ratio"]) for r in rows)
    unit = (WIDTH - LEFT - RIGHT) / most  # pixels of a ratio of 1
    out, y = [], 34

    def text(kind, x, at, what):
        out.append(f'<text class="{kind}" x="{x:.1f}" y="{at:.1f}">{what}</text>')

    def bar(kind, at, x, width, high):
        out.append(f'<rect class="{kind}" x="{x}" y="{at}" width="{width:.1f}" height="{high}" rx="2"/>')

    text("title", 18, 28, "How fast, against llama.cpp")
    for i, (kind, name) in enumerate([("weft", "Weft"), ("peer", "llama.cpp")]):
        bar(kind, 18, 330 + 80 * i, 12, 12)
        text("rates", 348 + 80 * i, 28, name)
    text("rates", 520, 28, "tokens per second, two threads")
    for test in tests:
        y += GROUP
        text("test", 18, y - 11, test)
        for r in rows:
            if r["test"] != test:
                continue
            ratio = float(r["ratio"])
            text("file", LEFT - 10, y + 12, r["file"])
            bar("weft", y, LEFT, ratio * unit, BAR)
            bar("peer", y + BAR, LEFT, unit, THIN)
            end = LEFT + ratio * unit + 8
            text("ratio", end, y + 11, f"{ratio:.2f}×")
            text("rates", end + 44, y + 11, f'{r["weft"]} and {r["llama.cpp"]}')
            y += STEP
    height = y + 14
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
        "<style>",
        "text { font-family: ui-sans-serif, 'Segoe UI', Helvetica, 'DejaVu Sans', Arial, sans-serif; font-size: 12px; fill: #222; }",
        ".title { font-size: 16px; font-weight: bold; }",
        ".test { font-size: 13px; font-weight: bold; }",
        ".file { text-anchor: end; }",
        ".ratio { font-weight: bold; }",
        ".rates { font-size: 11px; fill: #777; }",
        ".weft { fill: #3a6fb0; }",
        ".peer { fill: #b5b5b5; }",
        "</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *out, "</svg>", ""])


def main():
    picture = os.path.join(HERE, "peer.svg")
    now = draw(read_table(os.path.join(HERE, "peer.md")))
    if sys.argv[1:] == ["--check"]:
        if open(picture, encoding="utf-8").read() != now:
            sys.exit("bench/results/peer.svg is not what bench/plot.py makes of peer.md: run it")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        with open(picture, "w", encoding="utf-8") as f:
            f.write(now)


main()
