"""The OpenAPI document says what is there, and what is there is as it says."""

from __future__ import annotations

import inspect
import re

import pytest
from jsonschema import Draft202012Validator

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.endpoints.described import description_of

from .asking import CHAT, COMPLETIONS, HI, bearer, client_of


@pytest.fixture
def client(make):
    return client_of(create_app(MLCEngine.of(make("one two")), model_name="m"))


def document_of(client, **headers):
    answer = client.get("/openapi.json", headers=headers)
    assert answer.status_code == 200
    return answer.json()


def validator(document, schema):
    return Draft202012Validator({**schema, "components": document["components"]})


def holds(document, path, method, answer):
    """Whether an answer is as the document says."""
    operation = document["paths"][path][method]
    response = operation["responses"][str(answer.status_code)]
    kind = answer.headers["content-type"].partition(";")[0]
    content = response["content"][kind]
    assert answer.headers["x-request-id"]
    if kind == "application/json":
        validator(document, content["schema"]).validate(answer.json())


def test_every_route_is_described(client):
    routes = {
        (method.lower(), re.sub(r":\w+}", "}", route.path))
        for route in client.app.routes
        for method in route.methods
    }
    document = document_of(client)
    listed = {(m, path) for path, methods in document["paths"].items() for m in methods}
    assert listed == routes
    bare = [r.path for r in client.app.routes if description_of(r.endpoint) is None]
    assert not bare, "give their handlers @described"
    assert all(o["summary"] for methods in document["paths"].values() for o in methods.values())


def test_handlers_with_a_body_say_which(client):
    for route in client.app.routes:
        known = description_of(route.endpoint)
        if "POST" in route.methods and "Request" in str(inspect.signature(route.endpoint)):
            assert known and known.request is not None, route.path


def test_its_schemas_are_schemas_and_its_references_lead_somewhere(client):
    document = document_of(client)
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    text = client.get("/openapi.json").text
    assert set(re.findall(r'"\$ref":"#/components/schemas/([^"]+)"', text)) <= set(schemas)
    assert "#/$defs/" not in text
    ids = [o["operationId"] for ms in document["paths"].values() for o in ms.values()]
    assert len(set(ids)) == len(ids)


def test_answers_are_as_it_says(client):
    document = document_of(client)
    for path in ("/api/version", "/api/tags", "/api/ps"):
        holds(document, path, "get", client.get(path))
    holds(document, "/api/show", "post", client.post("/api/show", json={"model": "m"}))
    for body in ({**HI, "stream": False}, HI, {"messages": 5}, {}):
        holds(document, "/api/chat", "post", client.post("/api/chat", json=body))
    holds(document, "/v1/embeddings", "post", client.post("/v1/embeddings", json={"input": "a"}))
    for path in ("/", "/health", "/ready", "/version", "/stats", "/v1/models", "/openapi.json"):
        holds(document, path, "get", client.get(path))
    holds(document, "/metrics", "get", client.get("/metrics"))
    holds(document, "/v1/models/{name}", "get", client.get("/v1/models/m"))
    holds(document, "/v1/models/{name}", "get", client.get("/v1/models/x"))
    logs = {"logprobs": True, "top_logprobs": 2}
    for body in (HI, {**HI, **logs, "n": 2}, {**HI, "max_tokens": 1}, {**HI, "n": 0}, {}):
        holds(document, CHAT, "post", client.post(CHAT, json=body))
    for body in ({"prompt": "a"}, {"prompt": [5], "logprobs": 2, "echo": True}, {"prompt": []}):
        holds(document, COMPLETIONS, "post", client.post(COMPLETIONS, json=body))
    holds(document, CHAT, "post", client.post(CHAT, json={**HI, "stream": True}))
    holds(document, CHAT, "post", client.post(CHAT, content=b"x"))


def test_chunks_are_as_it_says(client):
    import json

    document = document_of(client)
    for path, body in ((CHAT, HI), (COMPLETIONS, {"prompt": "a"})):
        content = document["paths"][path]["post"]["responses"]["200"]["content"]
        schema = content["text/event-stream"]["schema"]["properties"]["data"]["anyOf"][0][
            "contentSchema"
        ]
        sent = {**body, "stream": True, "stream_options": {"include_usage": True}}
        events = client.post(path, json=sent).text.split("\n\n")[:-2]
        assert len(events) >= 2
        for event in events:
            validator(document, schema).validate(json.loads(event.removeprefix("data: ")))


def test_wrong_bodies_are_wrong_by_the_document_too(client):
    document = document_of(client)
    schema = document["paths"][CHAT]["post"]["requestBody"]["content"]["application/json"]["schema"]
    check = validator(document, schema)
    check.validate({**HI, "model": "m", "unknown": 1})
    check.validate(HI)
    for wrong in ({}, {"messages": []}, {**HI, "n": 0}, {**HI, "model": "x"}, {"messages": 5}):
        assert not check.is_valid(wrong), wrong
        assert client.post(CHAT, json=wrong).status_code in (400, 404)


def test_a_path_tells_all_its_methods(client):
    for path, methods in document_of(client)["paths"].items():
        answer = client.request("PATCH", path.replace("{name}", "m").translate({123: "", 125: ""}))
        assert answer.status_code == 405, path
        assert set(answer.headers["allow"].lower().split(", ")) == set(methods)


def test_keys(make):
    client = client_of(create_app(MLCEngine.of(make()), api_key="k"))
    assert client.get("/openapi.json").status_code == 401
    document = document_of(client, **bearer("k"))
    assert {"bearer": []} in document["security"]
    assert document["paths"]["/health"]["get"]["security"] == []
    assert "401" in document["paths"]["/stats"]["get"]["responses"]
    assert "security" not in document_of(client_of(create_app(MLCEngine.of(make()))))
