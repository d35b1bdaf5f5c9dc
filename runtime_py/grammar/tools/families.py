"""The families of tool-call formats, and the search for a model's family.

A model's chat template tells its family, never its name: it is the first row of
app/data/tool_families.json whose `signs` are all in the template's text. A new family is a row
there, and a file in formats/ if its format is new. A row's `format` has the fields of its kind's
class, and some that only the readers in app/tools know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wherry.data import read
from wherry.errors import UsageError

from .format import Format
from .formats.braces import Braces
from .formats.harmony import Harmony
from .formats.headed import Headed
from .formats.llama import Bare
from .formats.markup import Markup
from .formats.mistral import Mistral
from .formats.pythonic import Pythonic
from .formats.tagged import Tagged

_KINDS: Mapping[str, Callable[..., Format]] = {
    kind.__name__.lower(): kind
    for kind in (Bare, Braces, Harmony, Headed, Markup, Mistral, Pythonic, Tagged)
}
_OF_READERS = ("amid", "form", "unclosed", "wrappers")  # fields that the grammars do not need


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models that share a tool-call format.

    Attributes:
        name: the value of `--tool-format`.
        format: the format of the family's calls.
        stops: special tokens that end a response.
        channels: whether all text comes in the format, with or without calls.
    """

    name: str
    format: Format
    stops: tuple[str, ...] = ()
    channels: bool = False


def _format(kind: str, **fields: Any) -> Format:
    return _KINDS[kind](**{k: _tuples(v) for k, v in fields.items() if k not in _OF_READERS})


def _tuples(value: Any) -> Any:
    """Return a JSON value with tuples instead of lists."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


FAMILIES = tuple(
    Family(
        row["name"],
        _format(**row["format"]),
        tuple(row.get("stops", ())),
        row.get("channels", False),
    )
    for row in read("tool_families")
)
NAMES = tuple(dict.fromkeys(family.name for family in FAMILIES))


def named(name: str) -> Family:
    """Return the family of this name.

    Raises:
        UsageError: no family has this name.
    """
    for family in FAMILIES:
        if family.name == name:
            return family
    raise UsageError(f"tool_format is {name!r}; it takes one of {', '.join(NAMES)}")
