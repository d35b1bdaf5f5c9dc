"""Answers at a terminal: wrapped at words, in colours, the same text however it arrives."""

from __future__ import annotations

import io
import random
import re
import sys
from itertools import pairwise

import pytest
from rich.console import Console
from rich.text import Text

from wherry.cli import answers, markdown

WIDTH, HEIGHT = 40, 12
TEXT = """\
# A fox and the storm

Once upon a time there was a little fox who lived near the **old mill**, and when the storm came he
hid under `the bridge`.
A second line, <b>not HTML</b> and List<int>.

1. First, he looked at the [river](https://example.com).
2. Then he slept.
   - deeply

```python
def fib(n):
    return n if n < 2 else fib(n - 1)  # slow
```

| animal | legs |
|---|---|
| fox | 4 |

The end.
"""
SHOWN = """\
A fox and the storm

Once upon a time there was a little fox
who lived near the old mill, and when
the storm came he
hid under the bridge.
A second line, <b>not HTML</b> and
List<int>.

 1. First, he looked at the river
    (https://example.com).
 2. Then he slept.
     • deeply

def fib(n):
    return n if n < 2 else fib(n - 1)  #
slow

 animal  legs
 ────────────
 fox     4

The end.
"""


class Screen:
    """As much of a terminal as answers ask for: it scrolls, and draws over its lines."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0

    def write(self, text):
        for part in re.findall(r"\x1b\[\d*[A-Za-z]|\x1b\[[\d;]*m|\n|\r|[^\x1b\n\r]+", text):
            if part == "\n":
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif part == "\r":
                self.column = 0
            elif part.endswith("A") and part.startswith("\x1b"):
                self.row -= int(part[2:-1])
                assert len(self.lines) - self.row <= HEIGHT, "that line has left the screen"
            elif part in ("\x1b[K", "\x1b[J"):
                self.lines[self.row] = self.lines[self.row][: self.column]
                if part == "\x1b[J":
                    del self.lines[self.row + 1 :]
            elif not part.startswith("\x1b"):
                line = self.lines[self.row].ljust(self.column)
                assert len(line[: self.column]) + len(part) <= WIDTH, "the terminal would break it"
                self.lines[self.row] = line[: self.column] + part
                self.column += len(part)

    def flush(self):
        pass

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.lines)


def painted(pieces, *, raw=False, height=HEIGHT):
    screen = Screen()
    console = Console(
        file=screen, force_terminal=True, width=WIDTH, height=height, theme=markdown.THEME,
        highlight=False, color_system="standard", _environ={},
    )  # fmt: skip
    painter = (
        answers.Painter(console, Text, answers._lines_of)
        if raw
        else answers.Painter(console, markdown.Markdown, markdown.blocks, gap=True)
    )
    for piece in pieces:
        painter._next = 0.0  # each piece is drawn
        painter.add(piece)
    painter.close()
    return screen.text


def cut(text, seed):
    """A text in pieces of random lengths."""
    drawn, places = random.Random(seed), [0]
    while places[-1] < len(text):
        places.append(places[-1] + drawn.choice((1, 1, 2, 3, 5, 8, 40)))
    return [text[a:b] for a, b in pairwise(places)]


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_is_shown_as_markdown_however_it_arrives(seed):
    assert painted(cut(TEXT, seed)) == SHOWN


def test_a_block_higher_than_the_screen():
    """What has left the screen is not drawn again, and nothing is lost or comes twice."""
    words = [f"word{i}" for i in range(120)]
    pieces = [f"{word} " for word in words]
    assert painted(pieces).split() == words
    code = ["```\n", *(f"line{i}\n" for i in range(50)), "```\n", "The end."]
    assert painted(code).split() == [*(f"line{i}" for i in range(50)), "The", "end."]


def test_raw_text_is_only_wrapped():
    text = "# One **two** three four five six seven eight nine\n\n  ten\n"
    shown = "# One **two** three four five six seven\neight nine\n\n  ten\n"
    for seed in range(3):
        assert painted(cut(text, seed), raw=True) == shown
    assert painted(["one\n", "two"], raw=True) == "one\ntwo\n"


@pytest.mark.parametrize("pieces", [[], [""], ["\n\n", "Hello."], ["Hello.", "\n\n\n"]])
def test_empty_lines_around_an_answer(pieces):
    assert painted(pieces) == ("Hello.\n" if "Hello." in pieces else "\n")


def test_a_model_cannot_command_the_terminal():
    assert painted(["a\x1b[31mb\x07\x9b", "\r\nc"]) == "a␛[31mb␇�\nc\n"


def test_elsewhere_the_text_is_as_the_model_wrote_it(monkeypatch):
    for text in (TEXT, "a\x1b[31m **b**"):
        monkeypatch.setattr(sys, "stdout", out := io.StringIO())
        assert answers.write(cut(text, 0)) == text
        assert out.getvalue() == text if text.endswith("\n") else f"{text}\n"


def test_ctrl_c_keeps_what_was_said(monkeypatch):
    def pieces():
        yield from ("Once ", "upon ")
        raise KeyboardInterrupt

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    with pytest.raises(KeyboardInterrupt):
        answers.write(pieces())
    assert out.getvalue().endswith("Once upon\n")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    answers.write(["**a**"])
    assert out.getvalue() == "**a**\n"
