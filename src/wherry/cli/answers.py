"""Writes answers to stdout as they arrive, at a terminal wrapped at words and in colours."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Control characters could command the terminal. They are shown as their pictures, as ␛.
_CONTROLS: dict[int, int | None] = {c: 0x2400 + c for c in range(32) if chr(c) not in "\n\t"}
_CONTROLS |= {ord("\r"): None, 0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_STYLE = re.compile("\x1b\\[[0-9;]*m")
_SHARE = 10  # the pause after a drawing is this many times as long as it took
_SECONDS = 1 / 30  # between two drawings at least


def write(pieces: Iterable[str], *, markdown: bool = True) -> str:
    """Write a text to stdout piece by piece, and a final newline; return the whole text.

    Args:
        pieces: the text.
        markdown: whether a terminal shows it as Markdown; else lines are only wrapped.
    """
    if painter := _painter(markdown):
        return _painted(pieces, painter)
    written = []
    for piece in pieces:
        written.append(piece)
        sys.stdout.write(piece)
        sys.stdout.flush()
    text = "".join(written)
    if not text.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()
    return text


def _painter(markdown: bool) -> Painter | None:
    """Return what paints answers on the terminal; None: stdout is none that can be painted on."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    from . import markdown as rendering

    console = Console(theme=rendering.THEME, highlight=False)
    if console.is_dumb_terminal or console.legacy_windows:
        return None
    if markdown:
        return Painter(console, rendering.Markdown, rendering.blocks, gap=True)
    from rich.text import Text

    return Painter(console, Text, _lines_of)


def _lines_of(text: str) -> list[int]:
    """Return where the lines of a text begin."""
    return [0, *(i + 1 for i, letter in enumerate(text) if letter == "\n")]


def _painted(pieces: Iterable[str], painter: Painter) -> str:
    written = []
    try:
        for piece in pieces:
            written.append(piece)
            painter.add(piece)
    finally:  # Ctrl-C ends an answer, and its text stays
        painter.close()
    return "".join(written)


class Painter:
    """Draws a growing text: its last block anew with each piece, and blocks before it once.

    Only lines that differ are written again, so that nothing flickers. Lines of a block that have
    left the screen at its top stay as they are.

    Args:
        console: the terminal.
        render: makes of a block what Rich prints.
        blocks: returns where the blocks of a text begin; the first at 0.
        gap: whether blocks are as high as what is visible of them, and an empty line is between.
    """

    def __init__(
        self,
        console: Console,
        render: Callable[[str], RenderableType],
        blocks: Callable[[str], list[int]],
        *,
        gap: bool = False,
    ) -> None:
        self._console = console
        self._render = render
        self._blocks = blocks
        self._gap = gap
        self._text = ""  # from the beginning of the first block that may still change
        self._drawn: list[str] = []  # its lines on the screen
        self._gone = 0  # number of its lines above the screen
        self._is_first = True  # whether no block is before it
        self._next = 0.0  # time of the next drawing

    def add(self, piece: str) -> None:
        """Add a piece, and draw if it is time."""
        self._text += piece.translate(_CONTROLS)
        start = time.perf_counter()
        if start >= self._next:
            self._draw()
            end = time.perf_counter()
            self._next = end + max(_SECONDS, (end - start) * _SHARE)

    def close(self) -> None:
        """Draw the rest, and end the line."""
        self._draw()
        if self._drawn[-1:] != [""]:
            self._console.file.write("\n")
        self._console.file.flush()

    def _draw(self) -> None:
        text, starts = self._text, self._blocks(self._text)
        # Until its first line is complete, a block may turn out to belong to the one before it.
        known = text.rfind("\n") + 1
        final = max((i for i, start in enumerate(starts) if start < known), default=0)
        parts = [self._lines(text[a:b]) for a, b in pairwise([*starts, len(text)])]
        if self._gap:
            parts = [
                ["", *part] if i or not self._is_first else part for i, part in enumerate(parts)
            ]
        lines = [line for part in parts for line in part]
        self._change(lines[self._gone :])
        self._gone += max(0, len(lines) - self._gone - self._room)
        if final:
            passed = sum(map(len, parts[:final]))
            self._drawn = lines[max(passed, self._gone) :]
            self._gone = max(0, self._gone - passed)
            self._text, self._is_first = text[starts[final] :], False

    def _lines(self, text: str) -> list[str]:
        """Return the lines of a block with their colours."""
        with self._console.capture() as captured:
            self._console.print(self._render(text.removesuffix("\n")))
        lines = [line.rstrip(" ") for line in captured.get().removesuffix("\n").split("\n")]
        if not self._gap:
            return lines
        shown = [i for i, line in enumerate(lines) if _STYLE.sub("", line).strip()]
        return lines[shown[0] : shown[-1] + 1] if shown else []

    @property
    def _room(self) -> int:
        """The number of lines that can be drawn again."""
        return max(1, self._console.height - 1)

    def _change(self, lines: list[str]) -> None:
        """Replace the lines on the screen by others; the cursor is at the end of the last one."""
        drawn, written = self._drawn, []
        same = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(drawn, lines, strict=False))
        )
        if same < len(drawn):
            same = max(0, min(same, len(lines) - 1))
            up = len(drawn) - 1 - same
            written.append("\r" + (f"\x1b[{up}A" if up else ""))
        elif drawn and len(lines) > len(drawn):
            written.append("\n")
        # A line is erased before it is written: at its end the cursor may be on the last letter.
        rest = [f"\x1b[K{line}" for line in lines[same:]]
        if len(lines) < len(drawn):
            rest[-1:] = [f"\x1b[J{line}" for line in lines[-1:] or [""]]
        self._console.file.write("".join([*written, "\n".join(rest)]))
        self._console.file.flush()
        self._drawn = lines[-self._room :]
