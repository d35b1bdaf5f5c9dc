"""Pages in a browser do not reach a server without a key."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient

from wherry.runtime import MLCEngine, create_app

JSON = {"Content-Type": "application/json"}
BODY = json.dumps({"prompt": "a", "max_tokens": 1})
PATH = "/v1/completions"


@pytest.fixture
def app(make):
    def build(**options):
        return create_app(MLCEngine.of(make()), **options)

    return build


def post(app, base="http://localhost:8000", **headers):
    client = TestClient(app, base_url=base)
    answer = client.post(PATH, content=BODY, headers={**JSON, **headers})
    return answer.status_code, answer.json().get("error", {}).get("code"), answer


@pytest.mark.parametrize(
    "host",
    [
        "localhost:1",
        "LOCALHOST",
        "127.0.0.1:8000",
        "127.9.9.9",
        "[::1]:8000",
        "a.localhost",
        "10.1.2.3",
    ],
)
def test_own_names(app, host):
    assert post(app(), f"http://{host}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "[",
        "a@b",
        "evil@127.0.0.1",
        "127.0.0.1/x",
        "localhost?x",
    ],
)
def test_a_rebound_name_is_refused(app, host):
    client = TestClient(app(), base_url="http://localhost")
    for path in ("/", "/v1/models", "/health", "/stats"):
        assert client.get(path, headers={"Host": host}).status_code == 403
    status, code, answer = post(app(), Host=host)
    assert (status, code) == (403, "host_not_allowed")
    assert "--allow-host" in answer.text


def test_names_that_are_given(app):
    given = app(hosts=["GPU-box.lan"])
    assert post(given, Host="gpu-box.lan:8000")[0] == 200
    assert post(given, Host="other.lan")[0] == 403
    assert post(app(hosts=["*"]), Host="other.lan")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
def test_pages_of_others_are_refused(app, origin):
    assert post(app(), Origin=origin)[:2] == (403, "origin_not_allowed")
    assert post(app(), **{"Origin": origin, "Content-Type": "text/plain"})[0] == 403


def test_own_pages_and_those_of_cors_are_served(app):
    assert post(app(), Origin="http://localhost:8000")[0] == 200
    allowed = app(cors=["https://a.example"])
    status, _, answer = post(allowed, Origin="https://a.example")
    assert status == 200
    assert answer.headers["access-control-allow-origin"] == "https://a.example"
    assert post(allowed, Origin="https://b.example")[0] == 403
    status, _, answer = post(app(cors=["*"]), Origin="https://b.example")
    assert (status, answer.headers["access-control-allow-origin"]) == (200, "*")


def test_a_public_page_that_is_allowed_may_come_in(app):
    client = TestClient(app(cors=["https://a.example"]), base_url="http://localhost")
    preflight = {
        "Origin": "https://a.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
    }
    answer = client.options(PATH, headers=preflight)
    assert answer.headers["access-control-allow-private-network"] == "true"
    strange = client.options(PATH, headers={**preflight, "Origin": "https://b.example"})
    assert "access-control-allow-origin" not in strange.headers


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_bodies_that_a_page_may_send_unasked_are_refused(app, kind):
    assert post(app(), **{"Content-Type": kind})[:2] == (415, "unsupported_media_type")


OLLAMA = json.dumps({"model": "small", "prompt": "a", "stream": False})
KINDS = [{"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "text/plain"}, {}]


def generate(app, headers):
    """As `curl -d` does it in Ollama's documents; `Content-Type` only where it is given."""
    client = TestClient(app, base_url="http://localhost:8000")
    return client.post("/api/generate", content=OLLAMA, headers=headers)


@pytest.mark.parametrize("kind", KINDS)
def test_clients_of_ollama_need_no_type(app, kind):
    answer = generate(app(), kind)
    assert answer.status_code == 200, answer.text
    assert answer.json()["response"]
    keyed = {"Authorization": "Bearer k", **kind}
    assert generate(app(api_key="k"), keyed).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "said",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Mode": "no-cors"}, {"Referer": "https://b.x/"}],
)
@pytest.mark.by_day("said0-kind0", "said1-kind1", "said2-kind2")
def test_pages_need_a_type_for_ollama_too(app, said, kind):
    """Browsers leave `Origin` out of some requests, and these in."""
    answer = generate(app(), {**said, **kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]
    assert generate(app(), {**said, **JSON}).status_code == 200
    for origin in ("https://evil.example", "null"):
        assert generate(app(), {"Origin": origin, **kind}).status_code == 403
    assert generate(app(cors=["*"]), {"Origin": "https://b.x", **kind}).status_code == 415


def test_json_has_many_names(app):
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/x+json"):
        assert post(app(), **{"Content-Type": kind})[0] == 200


def test_with_a_key_names_do_not_matter(app):
    keyed = app(api_key="k")
    headers = {"Authorization": "Bearer k", "Host": "any.example", "Origin": "https://b.example"}
    assert post(keyed, **headers)[0] == 200
    assert post(keyed, Host="any.example")[0] == 401
