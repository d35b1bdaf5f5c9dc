"""The page of the HTTP API, docs/http-api.md, from the server's own routes: `make docs` writes it.

python -m docs.reference.http_api > docs/http-api.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter

from wherry.data import read
from wherry.runtime import create_app
from wherry.runtime.server.endpoints.described import description_of
from wherry.runtime.server.endpoints.shapes.fields import SamplingFields
from wherry.runtime.server.endpoints.shapes.openai import MODEL, RequestFields

from .fields import comments_of, table

_HEAD = """\
# HTTP API

All paths of `wherry serve`, and the fields of their requests. `/openapi.json` of a running server
has the same as OpenAPI 3.1, with the shapes of all answers. [The server's page](server.md) says how
to use them. `make docs` writes this page.

A wrong request is a 400 whose message names the field. A field that Wherry does not know has no
effect and is listed in the header `X-Wherry-Ignored`; if ignoring it would change the answer, the
request is a 400.
"""
# Title of a section: how its paths begin. A path belongs to the longest beginning that fits.
_SECTIONS = {
    "OpenAI, vLLM, Jina and Cohere": ("/v1", "/v2"),
    "OpenAI's responses": ("/v1/responses", "/v1/conversations"),
    "Anthropic": ("/v1/messages",),
    "Ollama": ("/api",),
    "Tokens": ("/tokenize", "/detokenize"),
    "Operation": ("/",),
}
_ERRORS = """\
## Errors

| status | meaning |
|---|---|
| 400 | the request is wrong, or its prompt does not fit the context |
| 401 | the key is missing or wrong |
| 403 | the Host or Origin is unknown, or the key may not do this |
| 404 | there is no such model, path or stored item |
| 408 | the time of `X-Request-Timeout` is over, or the body took too long to arrive |
| 413 | the body is longer than `--max-body` |
| 415 | the body is not JSON |
| 429 | the queue or a limit of the key is full; `Retry-After` says when to send again |
| 500 | an error of Wherry's own |
| 503 | the server drains, or its engine has failed |
| 504 | the time of `--request-timeout` is over |

Each protocol has errors in its own shape, as its clients read them. OpenAI's have a code:
"""


class _NoModels:
    """A server without models: it has all paths."""

    def limit_queues(self, waiting: int) -> None:
        """Do nothing."""

    def listed(self) -> list[Any]:
        """No model."""
        return []


def page() -> str:
    """The page, in Markdown."""
    routes = [
        (sorted(route.methods)[0], route.path, route.endpoint)
        for route in create_app(_NoModels()).routes  # type: ignore[arg-type]
    ]
    paths = {path for _, path, _ in routes}
    # /v1/models answers as /models, too: the page names the longer one.
    routes = [r for r in routes if f"/v1{r[1]}" not in paths]
    parts = [_HEAD]
    kinds: dict[type | RequestFields, None] = {}
    for title in _SECTIONS:
        mine = [r for r in routes if _section(r[1]) == title]
        rows = [list(_row(method, path, handler)) for method, path, handler in mine]
        kinds |= dict.fromkeys(k for *_, handler in mine if (k := _request(handler)))
        parts.append(f"## {title}\n\n{table(['path', 'what it does', 'request'], rows)}\n")
    codes = [[f"`{row['code']}`", row["says"]] for row in read("error_codes")]
    parts.append(f"{_ERRORS}\n{table(['code', 'meaning'], codes)}\n")
    parts += [_fields(kind) for kind in (*kinds, SamplingFields)]
    return "\n".join(parts)


def _section(path: str) -> str:
    fits = [(len(b), title) for title, bs in _SECTIONS.items() for b in bs if path.startswith(b)]
    return max(fits)[1]


def _request(handler: Any) -> type[BaseModel] | RequestFields | None:
    known = description_of(handler)
    return known.request if known else None


def _row(method: str, path: str, handler: Any) -> Iterator[str]:
    yield f"`{method} {path.replace(':path', '')}`"
    yield (handler.__doc__ or "").strip().splitlines()[0]
    kind = _request(handler)
    yield f"[{_title(kind)}](#{_title(kind).lower()})" if kind else ""


def _title(kind: type | RequestFields) -> str:
    """The name of a request; classes of one name in two protocols have the protocol's, too."""
    if isinstance(kind, RequestFields):
        return kind.name
    room = kind.__module__.split(".")[-2].capitalize()
    return f"{room}{kind.__name__}" if kind.__name__ == "CountRequest" else kind.__name__


def _fields(kind: type[BaseModel] | RequestFields) -> str:
    if isinstance(kind, RequestFields):
        schema = kind.schema
        said = {row["name"]: row.get("says", "") for row in kind.rows}
        samples = "sampling" in kind.groups
    else:
        schema = TypeAdapter(kind).json_schema()
        said = comments_of(kind)
        samples = kind is not SamplingFields and issubclass(kind, SamplingFields)
    required = schema.get("required", [])
    rows = [
        [
            f"`{name}`" + (" (required)" if name in required else ""),
            _type(field),
            said.get(name, ""),
        ]
        for name, field in sorted(schema["properties"].items(), key=lambda f: f[0] not in required)
        if not samples or name not in SamplingFields.model_fields
    ]
    also = "\nIt has the [fields of sampling](#samplingfields), too.\n" if samples else ""
    return f"## {_title(kind)}\n\n{table(['field', 'type', 'meaning'], rows)}\n{also}"


def _type(schema: Any) -> str:
    """A JSON Schema in a few words."""
    if schema == MODEL:
        return "string"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2].rpartition("__")[2])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{v}`" for v in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = [_type(s) for s in schema[several] if s.get("type") != "null"]
            return " or ".join(dict.fromkeys(k for k in kinds if k))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return kind + _bounds(schema)


def _bounds(schema: Any) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is None or high is None or abs(high) >= 2**31 - 1:
        return f", at least {low}" if low is not None and abs(low) < 2**31 else ""
    before = " above" if "exclusiveMinimum" in schema else ""
    after = " below" if "exclusiveMaximum" in schema else ""
    return f",{before} {low} to{after} {high}"


if __name__ == "__main__":
    print(page(), end="")
