"""Validates the bodies of requests to Ollama's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ....errors import RequestError
from ..shapes.requests import MAX_FIELDS, request_error

Body = TypeVar("Body", bound=BaseModel)


def validated(kind: type[Body], body: Any) -> Body:
    """Return a request's body as an object of `kind`.

    Raises:
        RequestError: lists everything that is wrong.
    """
    if isinstance(body, Mapping) and len(body) > MAX_FIELDS:
        raise RequestError(f"The request has {len(body)} fields; at most {MAX_FIELDS} are read")
    try:
        return kind.model_validate(body)
    except ValidationError as e:
        raise request_error(e) from e
