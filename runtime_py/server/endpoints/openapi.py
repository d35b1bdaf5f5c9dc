"""Writes the document of GET /openapi.json from the descriptions of the handlers.

FastAPI's own generator cannot see the bodies that handlers parse themselves.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from http import HTTPStatus
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from starlette.responses import JSONResponse, Response

import wherry

from ...answers import Shape
from ..life import PROBES
from ..models import Models
from ..wire.deadlines import TIMEOUT_HEADER
from ..wire.errors import ApiError, shape_of
from .described import TEXT, Described, described, description_of, object_of
from .routes import Routes
from .shapes.openai import MODEL, REF, RequestFields, components

_REF = REF + "{model}"
_OF_ALL = (400, 403, 429, 500, 503)
_OF_BODIES = (404, 408, 413, 415, 504)
_RETRY = {429, 503}  # statuses whose responses have the header Retry-After


class OpenApi:
    """The handler of GET /openapi.json.

    Args:
        models: the models whose names are the values of the field `model`.
        has_keys: whether clients need a key.
    """

    def __init__(self, models: Models, *, has_keys: bool) -> None:
        self._models = models
        self._has_keys = has_keys
        self._routes: Routes = {}

    def routes(self) -> Routes:
        """Return the handler of each method and path; implements `Group.routes`."""
        return {("GET", "/openapi.json"): self.openapi}

    def describe(self, routes: Routes) -> None:
        """Set the routes; the document is written at the first request."""
        self._routes = routes

    @cached_property
    def _document(self) -> dict[str, Any]:
        schemas = _Schemas(self._routes.values())
        paths: dict[str, dict[str, Any]] = {}
        for (method, path), handler in self._routes.items():
            operation = self._operation(method, path, handler, schemas)
            paths.setdefault(_template(path), {})[method.lower()] = operation
        document: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": "Wherry", "version": wherry.__version__},
            "paths": paths,
            "components": {
                "schemas": schemas.components,
                "headers": {
                    "X-Request-Id": {
                        "description": "The request's name, which the log has, too.",
                        "required": True,
                        "schema": {"type": "string", "maxLength": 128},
                    }
                },
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                },
            },
        }
        if self._has_keys:
            document["security"] = [{"bearer": []}, {"x-api-key": []}]
        return document

    @described(answer={"type": "object", "required": ["openapi", "info", "paths"]})
    async def openapi(self) -> Response:
        """Describes the whole API as OpenAPI 3.1."""
        if "_document" not in vars(self):
            await asyncio.to_thread(lambda: self._document)
        names = [m.name for m in self._models.listed()]
        schemas = dict(self._document["components"]["schemas"])
        schemas["ModelName"] = {
            "type": "string",
            "enum": ["", *names],
            "description": "A model that is served here; empty: the default.",
        }
        components = self._document["components"] | {"schemas": schemas}
        return JSONResponse(self._document | {"components": components})

    def _operation(
        self, method: str, path: str, handler: Callable[..., Any], schemas: _Schemas
    ) -> dict[str, Any]:
        known = description_of(handler) or Described()
        answer = schemas.of(known.answer)
        content: dict[str, Any] = {}
        if answer is not None:
            content["application/json"] = {"schema": answer}
        if known.chunk:
            content[known.stream] = {"schema": _streamed(known, schemas.of(known.chunk))}
        content |= {
            kind: {"schema": _EVENT if kind == _EVENTS else TEXT} for kind in known.media_types
        }
        responses = {"200": _response(200, content)} | {
            str(status): _response(status, _error(path)) for status in self._statuses(path, known)
        }
        for status in known.statuses:
            responses[str(status)] = _response(status, content)
        lines = (handler.__doc__ or "").strip().splitlines()
        operation: dict[str, Any] = {
            "operationId": "_".join([method.lower(), *re.findall(r"\w+", _template(path))]),
            "summary": lines[0] if lines else "",
            "parameters": _parameters(path),
            "responses": responses,
        }
        if known.request:
            operation["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": schemas.of(known.request)}},
            }
            operation["parameters"].append(_TIMEOUT)
        if self._has_keys and path in PROBES:
            operation["security"] = []
        return operation

    def _statuses(self, path: str, known: Described) -> list[int]:
        statuses = set(_OF_ALL) - set(known.statuses)
        if known.request:
            statuses |= set(_OF_BODIES)
        if "{" in path:
            statuses.add(404)
        if self._has_keys and path not in PROBES:
            statuses.add(401)
        return sorted(statuses)


_TIMEOUT = {
    "name": TIMEOUT_HEADER,
    "in": "header",
    "description": "Seconds, after which the request is ended with a 408.",
    "required": False,
    "schema": {"type": "number", "exclusiveMinimum": 0},
}


def _streamed(known: Described, chunk: Any) -> dict[str, Any]:
    """Return the schema of one event or line: JSON in a text, as OpenAPI 3.2 describes it."""
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": chunk}
    if known.stream != _EVENTS:
        return text
    data = {"anyOf": [text, {"const": known.last}]} if known.last else text
    return {"type": "object", "properties": {"data": data}, "required": ["data"]}


_EVENTS = "text/event-stream"
_EVENT = object_of(data=TEXT)


def _template(path: str) -> str:
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _parameters(path: str) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"\{(\w+)[:}]", path)
    ]


def _response(status: int, content: Mapping[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
    if status in _RETRY:
        headers["Retry-After"] = {"schema": {"type": "integer", "minimum": 1}}
    response = {"description": HTTPStatus(status).phrase, "headers": headers}
    return response | ({"content": dict(content)} if content else {})


def _error(path: str) -> dict[str, Any]:
    """Return the content of a path's errors, from an error with all fields and one without."""
    make = shape_of(path)
    full = make(ApiError(400, "text", param="text", code="text"))
    schema = _schema_of([full, make(ApiError(500, "text"))])
    return {"application/json": {"schema": schema}}


def _schema_of(samples: list[Any]) -> dict[str, Any]:
    """Return a schema that these sample values satisfy."""
    if all(isinstance(s, Mapping) for s in samples):
        names = dict.fromkeys(name for sample in samples for name in sample)
        properties = {n: _schema_of([s[n] for s in samples if n in s]) for n in names}
        required = [n for n in names if all(n in s for s in samples)]
        return {"type": "object", "properties": properties, "required": required}
    kinds = {type(None): "null", str: "string", bool: "boolean", int: "integer", list: "array"}
    types = list(dict.fromkeys(kinds[type(s)] for s in samples))
    return {"type": types[0] if len(types) == 1 else types}


class _Schemas:
    """Collects the schemas of all requests and responses, with shared components."""

    def __init__(self, handlers: Iterable[Callable[..., Any]]) -> None:
        known = [d for d in map(description_of, handlers) if d]
        requests = [d.request for d in known if isinstance(d.request, type)]
        shapes = [s for d in known for s in (d.answer, d.chunk) if isinstance(s, type)]
        kinds: list[Any] = list(dict.fromkeys([*requests, *shapes]))
        self._schemas, rest = TypeAdapter.json_schemas(
            [(kind, "validation", TypeAdapter(kind)) for kind in kinds],
            ref_template=_REF,
            schema_generator=_Generator,
        )
        read = {d.request for d in known if isinstance(d.request, RequestFields)}
        own = components() | {fields.name: fields.schema for fields in read}
        classes = rest.get("$defs", {})
        assert not own.keys() & classes.keys(), "names of schemas are unique"
        self.components: dict[str, Any] = {**classes, **own, "ModelName": {}}

    def of(self, kind: Any) -> Any:
        """Return the schema of a request or a Shape; a schema is returned unchanged."""
        if isinstance(kind, RequestFields):
            return {"$ref": REF + kind.name}
        if isinstance(kind, type):
            return self._schemas[kind, "validation"]
        return kind


class _Generator(GenerateJsonSchema):
    """A pydantic schema generator that knows a Shape's required fields and the models' names."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a response class."""
        generated = super().dataclass_schema(schema)
        kind = schema["cls"]
        if issubclass(kind, Shape):
            names = [f.name for f in fields(cast(Any, kind)) if f.name not in kind._optional]
            generated |= {"required": names} if names else {}
        return generated

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a request class."""
        generated = super().model_schema(schema)
        properties = generated.get("properties", {})
        if schema["cls"].__name__.endswith("Request") and "model" in properties:
            properties["model"] = MODEL
        return generated
