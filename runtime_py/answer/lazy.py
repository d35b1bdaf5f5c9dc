"""Lists whose items are computed when they are read.

An answer may have millions of log probabilities. As objects they take gigabytes, and building them
would hold the interpreter's lock for as many milliseconds.
"""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")
_STYLE: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
_ENCODER = json.JSONEncoder(**_STYLE)
# The placeholder of a lazy list in JSON text is secret, so that no client can send it.
_PLACE = secrets.token_hex(16)


class LazyList(Sequence[T]):
    """A list that stores the sources of its items and computes an item when it is read.

    Args:
        sources: one for each item.
        make: makes an item from its source.
        write: writes an item's JSON from its source; None: write the item that `make` returns.
    """

    __slots__ = ("_make", "_sources", "_write")

    def __init__(
        self,
        sources: Sequence[Any],
        make: Callable[[Any], T],
        write: Callable[[Any], str] | None = None,
    ) -> None:
        self._sources = sources
        self._make = make
        self._write = write

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self._make(source) for source in self._sources[at]]
        return self._make(self._sources[at])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._sources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, LazyList)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __repr__(self) -> str:
        return repr(list(self))

    def written(self) -> Iterator[str]:
        """Yield the JSON text of each item."""
        return map(self._write or self._dumped, self._sources)

    def _dumped(self, source: Any) -> str:
        return _encoded(self._make(source))


def json_text(value: Any) -> str:
    """Return the JSON text of a small value that may contain lazy lists."""
    encoder = _Encoder()
    between = encoder.encode(value).split(f'"{_PLACE}"')
    texts = [f"[{','.join(one.written())}]" for one in encoder.found]
    return "".join(itertools.chain(*zip(between, [*texts, ""], strict=True)))


class _Encoder(json.JSONEncoder):
    """A JSON encoder that writes a placeholder for each lazy list."""

    def __init__(self) -> None:
        super().__init__(**_STYLE)
        self.found: list[LazyList[Any]] = []

    def default(self, o: Any) -> Any:
        if type(o) is not LazyList:
            return super().default(o)
        self.found.append(o)
        return _PLACE


def json_parts(value: Any, depth: int) -> Iterator[str]:
    """Yield a value's JSON in parts, because the encoder holds the GIL while it writes a part.

    Down to nesting depth `depth`, each item is a part of its own.

    Raises:
        ValueError: the value has NaN or infinity, which JSON cannot express.
    """
    if type(value) is LazyList:
        yield "["
        comma = ""
        for item in value.written():
            yield comma + item
            comma = ","
        yield "]"
    elif depth and value and isinstance(value, (dict, list)):
        yield from _container_parts(value, depth)
    else:
        yield _encoded(value)


def _container_parts(value: dict[str, Any] | list[Any], depth: int) -> Iterator[str]:
    comma, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    for item in value.items() if isinstance(value, dict) else value:
        if isinstance(value, dict):
            yield f"{comma}{_encoded(item[0])}:"
            yield from json_parts(item[1], depth - 1)
        else:
            yield comma
            yield from json_parts(item, depth - 1)
        comma = ","
    yield end


def _encoded(value: Any) -> str:
    return "null" if value is None else _ENCODER.encode(value)
