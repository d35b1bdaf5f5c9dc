"""What the tests of the server ask with."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from fastapi.testclient import TestClient

HI = {"messages": [{"role": "user", "content": "the cat"}]}
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def client_of(app) -> TestClient:
    """Starlette's own host is "testserver", which no server knows itself as."""
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def error(response, status: int):
    assert response.status_code == status, response.text
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    return response.json()["error"]


def post(url: str, path: str, body, timeout=20, context=None, **headers):
    """Status, headers and text of a POST to a live server."""
    sent = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), sent)
    return _answer(request, timeout, context)


def get(url: str, path: str, timeout=20, context=None, **headers):
    return _answer(urllib.request.Request(url + path, headers=headers), timeout, context)


def _answer(request, timeout, context):
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read().decode()
