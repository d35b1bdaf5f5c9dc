"""The pictures of the terminal in README, docs/assets/terminal-light.svg and -dark.svg.

python -m docs.reference.terminal_picture

asks the demo model, and draws what `wherry run` and `wherry serve` show for it.
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from wherry.cli import markdown, serving_lines
from wherry.runtime import MLCEngine

ASSETS = Path(__file__).parents[1] / "assets"
QUESTION = "Tell me a story about a fox."
_WIDTH = 84  # columns
_ANSI = [(0, 0, 0), (179, 38, 30), (20, 108, 46), (130, 90, 0), (42, 91, 208), (138, 63, 181)]
_BRIGHT = [(90, 90, 90), (242, 139, 130), (129, 201, 149), (253, 214, 99), (138, 180, 248)]
THEMES = {
    "light": TerminalTheme(
        (250, 252, 252), (28, 43, 42), [*_ANSI, (0, 105, 92), (90, 107, 115)], None
    ),
    "dark": TerminalTheme(
        (22, 33, 31), (230, 239, 237), [*_BRIGHT, (197, 138, 249), (90, 209, 192), (200, 200, 200)]
    ),
}
# Rich's own format fetches a font from another server.
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<title>wherry run and wherry serve at a terminal</title>
<style>{styles}
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""  # noqa: E501


def main() -> None:
    """Write both files."""
    console = Console(
        file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, theme=markdown.THEME,
        highlight=False,
    )  # fmt: skip

    def typed(command: str) -> None:
        console.print(Text.assemble(("$ ", "bold cyan"), (command, "bold")))

    with MLCEngine("demo") as engine:
        typed(f'wherry run demo "{QUESTION}"')
        messages = [{"role": "user", "content": QUESTION}]
        answer = engine.chat.completions.create(messages=messages, temperature=0.7, seed=1)
        console.print(markdown.Markdown(answer.choices[0].message.content or ""))
        typed("wherry serve demo")
        for line in serving_lines.lines("http://127.0.0.1:8000", "demo", engine):
            console.print(Text(line))
    for name, theme in THEMES.items():
        text = console.export_svg(
            title="", theme=theme, code_format=_FORMAT, clear=False, unique_id=f"terminal-{name}"
        )
        (ASSETS / f"terminal-{name}.svg").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
