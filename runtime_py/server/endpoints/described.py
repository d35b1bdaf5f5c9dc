"""What the server's OpenAPI document says of a handler, beside its docstring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from ...answer.shapes import Shape

Schema = Mapping[str, Any]  # a JSON Schema
H = TypeVar("H", bound=Callable[..., Any])
_NAME = "__wherry_described__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One operation.

    Attributes:
        request: what its body is.
        answer: the JSON of a 200; None: none.
        chunk: one piece of it, where it may be streamed.
        stream: media type of a stream.
        media_types: of other answers than JSON.
        statuses: that it may have beside 200 and those of all operations.
    """

    request: type[BaseModel] | None = None
    answer: type[Shape] | Schema | None = None
    chunk: type[Shape] | Schema | None = None
    stream: str = "text/event-stream"
    media_types: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


def described(**attributes: Any) -> Callable[[H], H]:
    """Attach a `Described` to a handler."""

    def attach(handler: H) -> H:
        setattr(handler, _NAME, Described(**attributes))
        return handler

    return attach


def description_of(handler: Callable[..., Any]) -> Described | None:
    """What was attached to a handler; None: nothing."""
    found: Described | None = getattr(handler, _NAME, None)
    return found


def object_of(**properties: Schema) -> Schema:
    """The schema of an object that has all of these."""
    return {"type": "object", "properties": properties, "required": sorted(properties)}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}


def one_of(*values: str) -> Schema:
    """The schema of one of some texts."""
    return {"type": "string", "enum": list(values)}


def list_of(items: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items}
