"""Attaches descriptions to handlers, from which the OpenAPI document is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from ...answers import Shape
from .shapes.openai import RequestFields

Schema = Mapping[str, Any]  # a JSON Schema as a dictionary
H = TypeVar("H", bound=Callable[..., Any])
_NAME = "__wherry_described__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The description of one operation in the OpenAPI document.

    Attributes:
        request: the request's body: a class, or the fields that C++ reads.
        answer: class or schema of the JSON in a 200; None: the response is not JSON.
        chunk: class or schema of the JSON in a streamed piece.
        stream: media type of a stream.
        last: data of a stream's last event, if that is no chunk.
        media_types: media types of responses that are not JSON.
        statuses: statuses besides 200 and the common errors.
    """

    request: type[BaseModel] | RequestFields | None = None
    answer: type[Shape] | Schema | None = None
    chunk: type[Shape] | Schema | None = None
    stream: str = "text/event-stream"
    last: str | None = None
    media_types: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


def described(**attributes: Any) -> Callable[[H], H]:
    """Return a decorator that attaches a `Described` to a handler."""

    def attach(handler: H) -> H:
        setattr(handler, _NAME, Described(**attributes))
        return handler

    return attach


def description_of(handler: Callable[..., Any]) -> Described | None:
    """Return the description attached to a handler; None if it has none."""
    description: Described | None = getattr(handler, _NAME, None)
    return description


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object with these required properties."""
    return {"type": "object", "properties": properties, "required": sorted(properties)}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}


def one_of(*values: str) -> Schema:
    """Return the schema of a string that is one of these values."""
    return {"type": "string", "enum": list(values)}


def list_of(items: Schema) -> Schema:
    """Return the schema of an array of these items."""
    return {"type": "array", "items": items}
