"""The requests that the server accepts in OpenAI's shapes.

Validation happens once for each request, never for each token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wherry.data import read
from wherry.errors import told

from ..errors import RequestError
from .fields import ChatFields, CompletionFields, SharedFields
from .kinds import RequestShape

MAX_FIELDS = 256  # maximum number of fields in a request, unknown ones included
# Characters of a field's path that an error shows: the path may contain names from the client.
_MAX_WHERE = 200


class SamplingRequest(SharedFields):
    """Fields of chats and completions; None: generation_config.json, else OpenAI's default.

    The constraints of the output (`wherry.runtime.grammar.fields`) are OpenAI's response_format,
    vLLM's structured_outputs and guided_*, and llama.cpp's grammar and json_schema.
    """

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the stop strings as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


class ChatRequest(ChatFields, SamplingRequest):
    """The body of POST /v1/chat/completions."""


class CompletionRequest(CompletionFields, SamplingRequest):
    """The body of POST /v1/completions."""


_KNOWN = read("request_fields")
# Fields that clients send but that cannot change a response of this server.
_NO_EFFECT = frozenset(_KNOWN["no_effect"])
# Fields that would change the response if they were ignored, each with its harmless values.
_MEANINGFUL: dict[str, tuple[Any, ...]] = {
    row["name"]: tuple(row.get("nothing", ())) for row in _KNOWN["refused"]
}
_INSTEAD = {
    row["name"]: f" (send {row['instead']!r})" for row in _KNOWN["refused"] if "instead" in row
}

# Other servers' names of fields.
_ALSO: dict[str, tuple[str, Sequence[Any]]] = {
    also: (row["name"], row.get("none", ()))
    for group in ("sampling", "shared")
    for row in _KNOWN[group]
    for also in row.get("also", ())
}
# Names that clients of OpenAI's API send besides the fields of a request.
OF_CLIENTS = _NO_EFFECT | _MEANINGFUL.keys() | _ALSO.keys()

R = TypeVar("R", bound=RequestShape)
V = TypeVar("V", bound=BaseModel)


def parse(kind: type[R], fields: Any) -> R:
    """Return a request of class `kind`, validated.

    Raises:
        RequestError: the fields are wrong, as in `validated` and `refuse`.
    """
    request = validated(kind, _renamed(fields))
    refuse(request, _MEANINGFUL)
    return request


def _renamed(fields: Any) -> Any:
    """Return a request's fields with other servers' names of fields replaced.

    Raises:
        RequestError: two names of one field have different values.
    """
    if not isinstance(fields, Mapping) or not fields.keys() & _ALSO.keys():
        return fields
    made = {name: value for name, value in fields.items() if name not in _ALSO}
    for also, value in fields.items():
        name, none = _ALSO.get(also, ("", ()))
        if not name or value is None or value in none:
            continue
        if made.get(name) not in (None, value):
            raise RequestError(
                f"{name} and {also} are two names of one field, and have different values",
                param=also,
            )
        made[name] = value
    return made


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
            + ", ".join(f"{name!r}{_INSTEAD.get(name, '')}" for name in refused),
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
    return RequestError(told(lines.values()), param=next(iter(lines)) or None)


def ignored(request: RequestShape) -> list[str]:
    """Return the names of fields that were sent but have no effect."""
    inner: set[str] = set()
    if isinstance(request, ChatRequest):
        contents = [m.content for m in request.messages if isinstance(m.content, list)]
        parts = (part for content in contents for part in content)
        inner = {f"messages.content.{name}" for part in parts for name in not_known(part)}
    return sorted([*not_known(request), *inner, *request.unused])


def not_known(request: BaseModel) -> list[str]:
    """Return the names of fields that were sent but that the class does not have."""
    return sorted(n for n, value in (request.model_extra or {}).items() if value is not None)
