"""The page of the Python API, docs/python-api.md, from signatures and docstrings.

python -m docs.reference.python_api > docs/python-api.md
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from wherry import errors
from wherry.runtime import (
    AsyncMLCEngine,
    MLCEngine,
    answers,
    arguments,
    async_engine,
    create_app,
    engine,
    serve,
    vector_answers,
)
from wherry.runtime.core.interface import CoreStats, Event, SamplingParams
from wherry.runtime.errors import BusyError, RequestError
from wherry.runtime.load.options import CompileOptions, LoadOptions
from wherry.runtime.server.options import AppOptions, ServeOptions

from .fields import comments_of, table
from .python_examples import EXAMPLES

_HEAD = """\
# Python API

```python
from wherry import AsyncMLCEngine, MLCEngine
from wherry.runtime import RequestError, create_app, serve
```

Importing these loads neither TVM nor the compiler. Editors and type checkers know the arguments of
`create`; an unknown one is a `UsageError` that names the nearest. `make docs` writes this page from
the docstrings, and tests run its examples.
"""
# Title of a section: its classes and functions.
_SECTIONS: dict[str, tuple[Any, ...]] = {
    "The engine": (
        MLCEngine,
        engine.ChatCompletions,
        engine.Completions,
        engine.Embeddings,
        engine.Stream,
    ),
    "The asynchronous engine": (AsyncMLCEngine, async_engine.AsyncStream),
    "The server": (serve, create_app),
}
_RECORDS: dict[str, tuple[type, ...]] = {
    "Arguments of `create`": (
        *(arguments.ChatArguments, arguments.CompletionArguments, arguments.SharedArguments),
        *(arguments.SamplingArguments, arguments.EmbeddingArguments),
    ),
    "Options of a load": (CompileOptions, LoadOptions),
    "Options of the server": (AppOptions, ServeOptions),
    "Answers": (
        *(answers.ChatCompletion, answers.ChatCompletionChunk, answers.ChatChoice),
        *(answers.ChatMessage, answers.ToolCall, answers.Completion, answers.CompletionChoice),
        *(answers.Usage, answers.Timings),
        *(vector_answers.EmbeddingAnswer, vector_answers.Embedding),
    ),
    "Without a tokenizer": (SamplingParams, Event, CoreStats),
}
# Arguments of streams, which only engines construct.
_INTERNAL = ("running", "sink", "opening", "ready", "chunks")
_ERRORS = (
    *(errors.WherryError, errors.UsageError, RequestError, errors.ModelError, errors.ArtifactError),
    *(errors.ToolchainError, errors.ResourceError, BusyError),
)


def page() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for title, things in _SECTIONS.items():
        parts += [f"## {title}\n", *(_described(thing) for thing in things)]
    for title, kinds in _RECORDS.items():
        parts += [f"## {title}\n", *(_record(kind) for kind in kinds)]
    rows = [
        [f"`{e.__name__}`", f"`{e.__base__.__name__}`", str(getattr(e, "exit_code", "")), _first(e)]
        for e in _ERRORS
        if e.__base__
    ]
    head = ["class", "base", "exit code of the CLI", "meaning"]
    parts.append(
        f"## Errors\n\nAll are in `wherry.errors` or `wherry.runtime`.\n\n{table(head, rows)}\n"
    )
    return "\n".join(parts)


def _described(thing: Any) -> str:
    lines = [f"### {thing.__name__}\n"]
    if not inspect.isclass(thing):
        name = thing.__name__
        return "\n".join([*lines, _code(name, thing), _prose(thing), _example(name)])
    if not thing.__name__.startswith(("Chat", "Completions", "Embeddings")):
        lines.append(_code(thing.__name__, thing.__init__))
    lines.append(_prose(thing))
    if thing.__name__ in EXAMPLES:
        lines.append(_example(thing.__name__))
    for name, method in _methods(thing):
        full = f"{thing.__name__}.{name}"
        lines += [f"#### {full}\n", _code(name, method), _prose(method), _example(full)]
    return "\n".join(lines)


def named() -> list[str]:
    """The names of all that has an example: engines, methods and functions."""
    names = []
    for thing in (thing for things in _SECTIONS.values() for thing in things):
        methods = _methods(thing) if inspect.isclass(thing) else []
        if not methods or thing.__name__.endswith("Engine"):
            names.append(thing.__name__)
        names += [f"{thing.__name__}.{name}" for name, _ in methods]
    return names


def _example(name: str) -> str:
    return f"```python\n{EXAMPLES[name].strip()}\n```\n"


def _methods(kind: type) -> list[tuple[str, Any]]:
    own = [c for c in reversed(kind.__mro__) if c.__module__.startswith("wherry")]
    members = {name: value for c in own for name, value in vars(c).items()}
    return [
        (name, getattr(kind, name))
        for name, value in members.items()
        if not name.startswith("_") and inspect.isroutine(value)
    ]


def _code(name: str, function: Any) -> str:
    """A signature with one argument a line where it is long."""
    signature = inspect.signature(function)
    arguments = [
        a for a in signature.parameters.values() if a.name not in ("self", "cls", *_INTERNAL)
    ]
    signature = signature.replace(parameters=arguments)
    before = "async def" if inspect.iscoroutinefunction(function) else "def"
    line = _plain(f"{before} {name}{signature}")
    line = line.replace(" -> None", "") if name[0].isupper() else line
    line = line.removeprefix("def ") if name[0].isupper() else line
    if len(line) > 96:
        texts = [_plain(str(a)) for a in arguments]
        stars = [i for i, a in enumerate(arguments) if a.kind is a.KEYWORD_ONLY]
        if stars:
            texts.insert(stars[0], "*")
        end = line[line.rindex(")") :]
        line = line[: line.index("(") + 1] + "\n" + "".join(f"    {t},\n" for t in texts) + end
    return f"```text\n{line}\n```\n"


def _plain(text: str) -> str:
    """Annotations without their quotes: modules here keep them as texts."""
    return re.sub(r"(: |-> )(['\"])(.*?)\2", r"\1\3", text)


def _prose(thing: Any) -> str:
    """A docstring in Markdown: its sections become lists."""
    text = inspect.getdoc(thing) or ""
    lines, listed = [], False
    for line in text.splitlines():
        if re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", line):
            lines, listed = [*lines, f"**{line[:-1].replace('Args', 'Arguments')}**", ""], True
        elif listed and (entry := re.match(r"    (\w+): (.*)", line)):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif listed and line.startswith("    "):
            lines.append(f"  {line.strip()}" if lines[-1] else line.strip())
        else:
            listed = listed and not line
            lines.append(line)
    return "\n".join(lines).strip() + "\n"


def _record(kind: type) -> str:
    said = comments_of(kind)
    names = [n for n in said if not n.startswith("_")]
    hints = {
        n: t for c in reversed(kind.__mro__) for n, t in getattr(c, "__annotations__", {}).items()
    }
    defaults = getattr(kind, "_field_defaults", {})
    if dataclasses.is_dataclass(kind):
        names = [f.name for f in dataclasses.fields(kind) if not f.name.startswith("_")]
        defaults = {f.name: f.default for f in dataclasses.fields(kind)}
    rows = [
        [f"`{n}`", f"`{_hint(hints[n])}`", said.get(n, "") + _default(defaults.get(n))]
        for n in names
    ]
    return f"### {kind.__name__}\n\n{_first(kind)}\n\n{table(['field', 'type', 'meaning'], rows)}\n"


def _hint(hint: Any) -> str:
    return str(getattr(hint, "__forward_arg__", hint))


def _default(value: Any) -> str:
    shown = isinstance(value, (int, float, str)) and not isinstance(value, bool) and value
    return f" (default {value})" if shown else ""


def _first(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    print(page(), end="")
