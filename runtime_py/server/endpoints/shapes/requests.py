"""Validates the requests of protocols that Python reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wherry.errors import message_of

from ....errors import RequestError

MAX_FIELDS = 256  # maximum number of fields in a request, unknown ones included
# Characters of a field's path that an error shows: the path may contain names from the client.
_MAX_WHERE = 200


V = TypeVar("V", bound=BaseModel)


def validated(kind: type[V], fields: Any) -> V:
    """Return a request of any protocol, validated.

    Raises:
        RequestError: a field is missing or out of range; the message lists all of them, and `param`
            is the first.
    """
    if isinstance(fields, Mapping) and len(fields) > MAX_FIELDS:
        raise RequestError(f"The request has {len(fields)} fields; at most {MAX_FIELDS} are read")
    if (where := _half_a_character(fields)) is not None:
        raise RequestError(
            f"{where or 'request'} holds half of a surrogate pair (as \\ud800), which is no "
            "character: a text was cut in the middle of one",
            param=where or None,
        )
    try:
        return kind.model_validate(fields)
    except ValidationError as e:
        raise request_error(e) from e


def refuse(request: BaseModel, meaningful: Mapping[str, tuple[Any, ...]]) -> None:
    """Check that no unknown field would change the response if it were ignored.

    Args:
        request: the request with its unknown fields.
        meaningful: names of fields, each with its harmless values.

    Raises:
        RequestError: the request has such fields; the message lists them.
    """
    extra = request.model_extra or {}
    refused = [
        name
        for name, harmless in meaningful.items()
        if extra.get(name) is not None and extra[name] not in harmless
    ]
    if refused:
        raise RequestError(
            "Not supported, and leaving it out would change the answer: "
            + ", ".join(map(repr, refused)),
            param=refused[0],
            code="unsupported_parameter",
        )


def _half_a_character(fields: Any) -> str | None:
    """Return the path of a text that UTF-8 cannot express; None if there is none."""
    for where, text in _texts(fields, ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            return where[:_MAX_WHERE].encode("ascii", "replace").decode()
    return None


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield all texts in a value, names of fields included, each with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(name, where)
            yield from _texts(item, f"{where}.{name}" if where else str(name))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            # Numbers are skipped, because requests contain hundreds of thousands of token ids.
            if not isinstance(item, (int, float)):
                yield from _texts(item, f"{where}[{i}]")


def request_error(error: ValidationError) -> RequestError:
    """Return one error for pydantic's list, a line each; a union gives its most specific branch."""
    lines: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        where = ""
        for part in problem["loc"]:
            if isinstance(part, int):
                where += f"[{part}]"
            elif part.isidentifier() and part not in ("str", "int"):
                where += f".{part}" if where else part
        where = where[:_MAX_WHERE]
        lines.setdefault(where, f"{where or 'request'}: {problem['msg']}")
    return RequestError(message_of(lines.values()), param=next(iter(lines)) or None)


def not_known(request: BaseModel) -> list[str]:
    """Return the names of fields that were sent but that the class does not have."""
    return sorted(n for n, value in (request.model_extra or {}).items() if value is not None)
