"""Renders Markdown for the terminal, and tells where its blocks begin.

Rich's renderer with what answers of language models take: line breaks stay, nothing of the text is
lost (HTML and pictures are text), and colours are the terminal's own, on light and dark ones.
"""

from __future__ import annotations

from itertools import accumulate

from markdown_it import MarkdownIt
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.syntax import Syntax
from rich.theme import Theme

THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.code": "cyan",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.block_quote": "italic",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable(["image", "reference"])


class _Code(markdown.CodeBlock):
    """Code in colours, as wide as the terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code, lexer = str(self.text).rstrip(), self.lexer_name
        yield Syntax(code, lexer, theme="ansi_dark", background_color="default", word_wrap=True)


class _Heading(markdown.Heading):
    """A heading at the left."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Item(markdown.ListItem):
    """An item of a list; its number has a point, as the model has written it."""

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        width = len(str(last_number)) + 3
        style = console.get_style("markdown.item.number", default="none")
        before = Segment(f"{number}. ".rjust(width), style)
        lines = console.render_lines(
            self.elements, options.update(width=options.max_width - width), style=self.style
        )
        for line in lines:
            yield before
            yield from line
            yield Segment.line()
            before = Segment(" " * width)


class Markdown(markdown.Markdown):
    """A text in Markdown as something that Rich prints."""

    elements = markdown.Markdown.elements | {
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "list_item_open": _Item,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = _PARSER.parse(text)
        for token in self.parsed:
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"


def blocks(text: str) -> list[int]:
    """Return where the blocks of a text begin, as paragraphs and lists; the first at 0."""
    starts = [t.map[0] for t in _PARSER.parse(text) if t.level == 0 and t.map and t.nesting >= 0]
    ends = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    return [0, *(ends[start] for start in starts[1:])]
