"""Lists whose items are made when somebody looks at them.

An answer may have millions of log probabilities: as objects they take gigabytes, and as many
milliseconds in which nobody else has the interpreter's lock.
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
_PLACE = secrets.token_hex(16)  # of a lazy list, until it is written: nobody can send it


class LazyList(Sequence[T]):
    """A list of which only the sources are held.

    Args:
        sources: of each item.
        make: an item of its source.
        write: the JSON of an item, of its source; None: that of what `make` gives.
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
        """The JSON of each item."""
        return map(self._write or self._dumped, self._sources)

    def _dumped(self, source: Any) -> str:
        return _encoded(self._make(source))


def json_text(value: Any) -> str:
    """JSON of something small, which may have lazy lists."""
    encoder = _Encoder()
    between = encoder.encode(value).split(f'"{_PLACE}"')
    texts = [f"[{','.join(one.written())}]" for one in encoder.found]
    return "".join(itertools.chain(*zip(between, [*texts, ""], strict=True)))


class _Encoder(json.JSONEncoder):
    """Leaves room for lazy lists."""

    def __init__(self) -> None:
        super().__init__(**_STYLE)
        self.found: list[LazyList[Any]] = []

    def default(self, o: Any) -> Any:
        if type(o) is not LazyList:
            return super().default(o)
        self.found.append(o)
        return _PLACE


def json_parts(value: Any, depth: int) -> Iterator[str]:
    """JSON in parts: down to `depth` an item each, because the encoder holds the lock for a part.

    Raises:
        ValueError: NaN or infinity, which JSON does not have.
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
