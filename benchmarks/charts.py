"""Draws the README's chart from rows: `python -m benchmarks.charts`, which `make charts` calls.

A bar for each workload has the length of the ratio to the peer, in the newest row of a quiet
machine. There are two files, because an image in a README cannot know the page's colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from wherry.base.temporary import write_atomically

from .rows import ROWS, read_rows

FOLDER = Path(__file__).parents[1] / "docs" / "assets"
MODEL = "llama-3.2-1b"
# Bars from top to bottom: (label, shape, workload, field of the ratio); two threads each.
BARS = (
    ("Prefill, 512 tokens", MODEL, "prefill", "ratio_wall"),
    ("Decode, one sequence", MODEL, "decode", "ratio_wall"),
    ("Decode, batch of 8", MODEL, "batch8", "ratio_wall"),
    ("Server, 32 clients", "smollm2-135m", "server-clients32", "ratio_tokens_per_second"),
)
WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 720, 190, 60, 64, 40, 20  # pixels


@dataclass(frozen=True, slots=True)
class Colours:
    """CSS colours of one version (light or dark) of the chart."""

    text: str
    quiet: str  # colour of the peer's line and the footnote
    bar: str


THEMES = {
    "light": Colours(text="#1f2328", quiet="#59636e", bar="#0a7d5c"),
    "dark": Colours(text="#f0f6fc", quiet="#9198a1", bar="#2fbf8f"),
}


def newest(rows: list[dict[str, Any]], shape: str, what: str) -> dict[str, Any]:
    """Return the newest row of a workload on an idle machine with two threads."""
    measured = [
        row
        for row in rows
        if (row["shape"], row["what"], row["threads"]) == (shape, what, 2)
        and row["quant"] == "q4f16_1"
        and not row.get("warning")
    ]
    if not measured:
        raise LookupError(f"no quiet row of {what} with {shape}: run its benchmark first")
    return measured[-1]


def svg(rows: list[dict[str, Any]], colours: Colours) -> str:
    """Return the newest rows as an SVG chart."""
    bars = [(label, float(newest(rows, shape, what)[field])) for label, shape, what, field in BARS]
    scale = (WIDTH - LEFT - RIGHT) / max(ratio for _, ratio in bars)
    height = TOP + STEP * len(bars) + 34
    machine = newest(rows, MODEL, "decode")["machine"]["cpu"].partition(" (")[0]
    peer = LEFT + scale
    title = "Throughput relative to llama.cpp (= 1), 4-bit weights, 2 CPU threads"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" role="img" '
        f'aria-label="{escape(_described(bars))}">',
        _text(0, 20, title, colours.text, size=15, weight=600),
        _text(peer, 48, "llama.cpp", colours.quiet, anchor="middle"),
    ]
    for i, (label, ratio) in enumerate(bars):
        y = TOP + STEP * i
        lines += [
            _text(LEFT - 12, y + 15, label, colours.text, anchor="end"),
            f'<rect x="{LEFT}" y="{y}" width="{ratio * scale:.1f}" height="{BAR}" rx="3" '
            f'fill="{colours.bar}"/>',
            _text(LEFT + ratio * scale + 8, y + 15, f"{ratio:.1f}x", colours.text, weight=600),
        ]
    end = TOP + STEP * len(bars) - 8
    lines += [
        f'<line x1="{peer:.1f}" y1="54" x2="{peer:.1f}" y2="{end}" stroke="{colours.quiet}" '
        'stroke-dasharray="4 3"/>',
        _text(0, height - 8, f"{MODEL}; server: smollm2-135m. {machine}.", colours.quiet, size=12),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _described(bars: list[tuple[str, float]]) -> str:
    said = ", ".join(f"{label}: {ratio:.1f} times" for label, ratio in bars)
    return f"Throughput of Wherry over llama.cpp's. {said}."


def _text(
    x: float, y: float, text: str, colour: str, *, anchor: str = "start", size: int = 13,
    weight: int = 400,
) -> str:  # fmt: skip
    """Return an SVG text element; x and y are its baseline in pixels."""
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def main() -> None:
    """Write `docs/assets/speed-light.svg` and `speed-dark.svg`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = read_rows(ROWS)
    for name, colours in THEMES.items():
        write_atomically(FOLDER / f"speed-{name}.svg", svg(rows, colours))


if __name__ == "__main__":
    main()
