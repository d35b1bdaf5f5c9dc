"""A request for C++: its fields, and what the host says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from wherry.data import read
from wherry.errors import UsageError, misnamed

from ..core import host_abi as abi
from ..errors import RequestError
from .image_arguments import with_urls
from .services import error_of

Task = Literal["chat", "completion", "embed", "classify", "rerank", "score"]
_KNOWN = read("request_fields")
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "chat": ("sampling", "shared", "chat"),
    "completion": ("sampling", "shared", "completion"),
    "embed": ("embedding",),
}


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request.

    Attributes:
        task: what it asks for.
        fields: its fields, as clients of OpenAI's API send them.
        options: members of RequestOptions (app/chat/request_options.h).
        body: the fields as JSON, if they were checked; None: `Host` writes it.
        outputs: number of answers that it asks for, each a core request.
    """

    task: Task
    fields: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    outputs: int = 1

    @property
    def writes(self) -> bool:
        """Tell whether the request asks for text."""
        return self.task in ("chat", "completion")


def body_of(fields: Any) -> bytes:
    """Return the JSON of a request's fields.

    Raises:
        RequestError: a value is no JSON.
    """
    try:
        return json.dumps(fields, default=_dumped).encode()
    except (TypeError, ValueError) as e:
        raise RequestError(f"The request is not JSON: {e}", code="invalid_json") from e


def _dumped(value: Any) -> Any:
    """Return a record, as engines answer with and clients of OpenAI's API have, as plain JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    raise TypeError(f"a value is of type {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class CheckedFields:
    """What C++ says of a valid request.

    Attributes:
        json: its fields as JSON.
        outputs: number of answers that it asks for: n for each prompt, or vectors or scores.
        stream: whether it asks for them in chunks.
    """

    json: bytes
    outputs: int
    stream: bool


def checked(task: Task, fields: Any) -> CheckedFields:
    """Validate a request without a model.

    Raises:
        RequestError: a field is missing or wrong, or would change the response if it were ignored;
            the message lists all of them.
    """
    library, data = abi.open_host(), body_of(fields)
    summary = library.wherry_request_check(task.encode(), data, len(data))
    if summary is None:
        raise error_of(json.loads(library.wherry_host_last_error()))
    return CheckedFields(data, **json.loads(summary))


def of_arguments(task: Task, fields: Mapping[str, Any]) -> HostRequest:
    """Return the request of an engine's arguments.

    Raises:
        RequestError: as `checked`.
        UsageError: a name is unknown, or an image cannot be read.
    """
    own = sorted({row["name"] for group in _GROUPS[task] for row in _KNOWN[group]})
    others = {*_KNOWN["no_effect"], *(row["name"] for row in _KNOWN["refused"])}
    others |= {
        also
        for group in ("sampling", "shared")
        for row in _KNOWN[group]
        for also in row.get("also", ())
    }
    given = {name: value for name, value in fields.items() if value is not None}
    # Found before a missing field is, which may be the one that is misspelled.
    if names := sorted(given.keys() - {*own, *others}):
        raise UsageError(f"Unknown arguments {misnamed(names, own)}; accepted are {', '.join(own)}")
    if "messages" in given:
        given["messages"] = with_urls(given["messages"])
    valid = checked(task, given)
    return HostRequest(task, given, body=valid.json, outputs=valid.outputs)
