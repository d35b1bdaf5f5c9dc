"""Keys from a file: who they let in, to what, and how much."""

from __future__ import annotations

import hashlib
import os
import signal
import time

import pytest
from fastapi.testclient import TestClient

from wherry.errors import UsageError
from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.guard import quota
from wherry.runtime.server.guard.keys import KeyRing

from ..conftest import core_of
from ..served import served
from .asking import CHAT, COMPLETIONS, HI, bearer, client_of, error

ANN, BOB, OP = "ann-0123456789abcdef", "bob-0123456789abcdef", "op-0123456789abcdef"


def file_of(tmp_path, text):
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def entry(name, key, **limits):
    lines = [f"  - name: {name}", f"    key: {key}"]
    return "\n".join([*lines, *(f"    {n}: {v}" for n, v in limits.items())]) + "\n"


@pytest.fixture
def serving(make, tmp_path):
    def build(text, model=None, **options):
        path = file_of(tmp_path, "keys:\n" + text)
        return client_of(create_app(MLCEngine.of(model or make()), keys=path, **options))

    return build


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to."""
    now = [1000.0]
    monkeypatch.setattr(quota.time, "monotonic", lambda: now[0])
    return now


def test_keys_and_hashes_let_in(serving):
    digest = hashlib.sha256(BOB.encode()).hexdigest()
    client = serving(entry("ann", ANN) + f"  - name: bob\n    sha256: {digest.upper()}\n")
    for key, status in ((ANN, 200), (BOB, 200), (digest, 401), ("", 401), (ANN + "x", 401)):
        assert client.get("/v1/models", headers=bearer(key)).status_code == status
    assert client.get("/v1/models", headers={"x-api-key": BOB}).status_code == 200
    assert client.get("/health").status_code == client.get("/ready").status_code == 200
    assert error(client.get("/metrics"), 401)


def test_beside_the_key_of_the_command_line(tmp_path):
    ring = KeyRing("k", file_of(tmp_path, "keys:\n" + entry("ann", ANN)))
    assert ring.find(b"k").name == "default"
    assert ring.find(ANN.encode()).name == "ann"
    assert ring.find(b"") is None


def test_requests_a_minute(serving, clock):
    client = serving(entry("ann", ANN, requests_per_minute=3) + entry("bob", BOB))
    for left in (2, 1, 0):
        answer = client.post(CHAT, json=HI, headers=bearer(ANN))
        assert answer.headers["x-ratelimit-remaining-requests"] == str(left)
        assert answer.headers["x-ratelimit-limit-requests"] == "3"
    refused = client.post(CHAT, json=HI, headers=bearer(ANN))
    assert error(refused, 429)["code"] == "rate_limit_exceeded"
    assert refused.headers["retry-after"] == "20"
    assert client.get("/v1/models", headers=bearer(ANN)).status_code == 200  # costs nothing
    assert client.post(CHAT, json=HI, headers=bearer(BOB)).status_code == 200
    clock[0] += 20
    assert client.post(CHAT, json=HI, headers=bearer(ANN)).status_code == 200
    assert client.post(CHAT, json=HI, headers=bearer(ANN)).status_code == 429


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_a_minute_are_paid_afterwards(serving, make, clock, stream):
    client = serving(entry("ann", ANN, tokens_per_minute=60), make(None))
    body = {"prompt": [5] * 20, "max_tokens": 100, "stream": stream}
    assert client.post(COMPLETIONS, json=body, headers=bearer(ANN)).status_code == 200
    refused = client.post(COMPLETIONS, json=body, headers=bearer(ANN))  # 60 - 120, one a second
    assert refused.headers["retry-after"] == "61"
    assert "60 tokens per minute" in error(refused, 429)["message"]
    assert refused.json()["error"]["type"] == "rate_limit_error"
    clock[0] += 61
    assert client.post(COMPLETIONS, json=body, headers=bearer(ANN)).status_code == 200


def test_requests_at_one_time(serving, make):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    client = serving(entry("ann", ANN, concurrent=1), model)
    ask = {"prompt": "a", "max_tokens": 1}
    (key,) = client.app.user_middleware[-1].kwargs["keys"]._keys
    with key.quota.request():
        assert error(client.post(COMPLETIONS, json=ask, headers=bearer(ANN)), 429)
    assert client.post(COMPLETIONS, json=ask, headers=bearer(ANN)).status_code == 200
    assert client.post(COMPLETIONS, json={}, headers=bearer(ANN)).status_code == 400
    assert client.post(COMPLETIONS, json=ask, headers=bearer(ANN)).status_code == 200


def test_models_that_a_key_may_not_use_are_not_there(serving):
    client = serving(
        entry("ann", ANN, models="[small]") + entry("bob", BOB, models="[other]"),
        model_name="small",
    )
    assert client.post(CHAT, json=HI, headers=bearer(ANN)).status_code == 200
    assert error(client.post(CHAT, json=HI, headers=bearer(BOB)), 404)["code"] == "model_not_found"
    named = {**HI, "model": "small"}
    problem = error(client.post(CHAT, json=named, headers=bearer(BOB)), 404)
    assert problem["message"].count("small") == 1  # what was asked for, and no list with it
    assert client.get("/v1/models", headers=bearer(BOB)).json()["data"] == []
    assert len(client.get("/v1/models", headers=bearer(ANN)).json()["data"]) == 1


def test_other_models_and_keys_are_nowhere(serving):
    """Before, /api/ps, /stats and /metrics had all models, and /metrics the names of all keys."""
    client = serving(
        entry("ann", ANN, models="[small]") + entry("bob", BOB, models="[other]") + entry("op", OP),
        model_name="small",
    )
    for key in (ANN, BOB):
        client.post(CHAT, json=HI, headers=bearer(key))

    def seen(path, key):
        answer = client.get(path, headers=bearer(key))
        assert answer.status_code == 200
        return answer.text

    for path in ("/api/ps", "/stats", "/metrics"):
        assert "small" in seen(path, ANN) and "small" in seen(path, OP)
        assert "small" not in seen(path, BOB)
    assert '{key="ann"}' in seen("/metrics", OP) and '{key="bob"}' in seen("/metrics", OP)
    assert '{key="ann"}' not in seen("/metrics", BOB) and '{key="bob"}' in seen("/metrics", BOB)
    assert "vllm:" in seen("/metrics", ANN) and "vllm:num_requests_running{" not in seen(
        "/metrics", BOB
    )
    assert client.get("/health").json() == {"status": "ok"}


WRONG = {
    "": "the file",
    "keys: []": "keys",
    "keys: {": "line 1 is not YAML",
    "keys:\n  - name: a": "either key or sha256",
    f"keys:\n  - name: a\n    key: {ANN}\n    sha256: {'a' * 64}": "either key or sha256",
    "keys:\n  - name: a\n    key: short": "at least 16",
    f"keys:\n  - name: a\n    key: {ANN}\n    requests_per_minut: 3": "requests_per_minut",
    f"keys:\n  - name: a\n    key: {ANN}\n    concurrent: 0": "greater than or equal to 1",
    f"keys:\n  - name: a\n    key: {ANN}\n    concurrent: yes": "valid integer",
    f"keys:\n  - name: 'a\\nb'\n    key: {ANN}": "name",
    f"keys:\n  - name: a\n    key: {ANN}\n  - name: a\n    key: {BOB}": "are named 'a'",
    f"keys:\n  - name: a\n    key: {ANN}\n  - name: b\n    key: {ANN}": "the same key",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_file(tmp_path, text):
    with pytest.raises(UsageError) as raised:
        KeyRing(path=file_of(tmp_path, text))
    assert WRONG[text] in str(raised.value)
    assert ANN not in str(raised.value) and "short" not in str(raised.value).replace("shorter", "")


def test_all_that_is_wrong_at_once(tmp_path):
    text = "keys:\n  - name: a\n    key: x\n  - key: y\n    colour: red\n"
    with pytest.raises(UsageError) as raised:
        KeyRing(path=file_of(tmp_path, text))
    assert all(f"  - keys.{where}: " in str(raised.value) for where in ("0.key", "1.colour"))


def test_a_file_that_others_read_is_warned_of(tmp_path, caplog):
    path = file_of(tmp_path, "keys:\n" + entry("a", ANN))
    KeyRing(path=path)
    assert not caplog.records
    path.chmod(0o644)
    KeyRing(path=path)
    assert "chmod 600" in caplog.text


def test_reload_keeps_what_was_used(tmp_path, clock):
    path = file_of(tmp_path, "keys:\n" + entry("ann", ANN, requests_per_minute=1))
    ring = KeyRing(path=path)
    with ring.find(ANN.encode()).quota.request():
        pass
    path.write_text(path.read_text().replace(ANN, BOB))
    ring.reload()
    assert ring.find(ANN.encode()) is None
    with (
        pytest.raises(Exception, match="1 requests per minute"),
        ring.find(BOB.encode()).quota.request(),
    ):
        pass
    path.write_text("keys: 5")
    with pytest.raises(UsageError):
        ring.reload()
    assert ring.find(BOB.encode())


def test_sighup_reads_the_file_again(tmp_path):
    path = file_of(tmp_path, "keys:\n" + entry("ann", ANN))
    with served(tmp_path, options=f"keys={str(path)!r}") as server:
        body = b'{"prompt": "a", "max_tokens": 1}'
        assert server.post(COMPLETIONS, body, **bearer(ANN))[0] == 200
        for text, says in (("keys: 5", "nothing has changed"), (entry("b", BOB), "read again")):
            path.write_text(text if "5" in text[:7] else "keys:\n" + text)
            os.kill(server.process.pid, signal.SIGHUP)
            end = time.monotonic() + 10
            while says not in server.log:
                assert time.monotonic() < end
                time.sleep(0.02)
            expected = 200 if "5" in text[:7] else 401
            assert server.post(COMPLETIONS, body, **bearer(ANN))[0] == expected
        assert server.post(COMPLETIONS, body, **bearer(BOB))[0] == 200
        assert ANN not in server.log and BOB not in server.log


def tenants_of(model):
    """User and salt of each request that the core was given."""
    return [(params.user, params.salt) for _, params in core_of(model).added]


def test_a_key_is_a_tenant(serving, make):
    """Whatever a client names, it stays within its key's share and its key's prefixes."""
    model = make("one")
    client = serving(entry("ann", ANN) + entry("bob", BOB), model)
    fields = [{}, {"user": "u"}, {"cache_salt": "s"}, {"user": "v", "cache_salt": "s"}]
    for key in (ANN, BOB):
        for more in fields:
            assert client.post(CHAT, json={**HI, **more}, headers=bearer(key)).status_code == 200
    tenants = tenants_of(model)
    ann, bob = tenants[:4], tenants[4:]
    for mine in (ann, bob):
        assert len({user >> 32 for user, _ in mine}) == 1
        assert len({user for user, _ in mine}) == 3  # none, u and v
        assert len({salt for _, salt in mine}) == 2 and 0 not in {salt for _, salt in mine}
    assert ann[0][0] >> 32 != bob[0][0] >> 32
    assert not {salt for _, salt in ann} & {salt for _, salt in bob}


def test_in_every_protocol(serving, make):
    model = make("one")
    client = serving(entry("ann", ANN), model)
    client.post(CHAT, json=HI, headers=bearer(ANN))
    bodies = {
        COMPLETIONS: {"prompt": "a", "n": 2},
        "/v1/messages": {"max_tokens": 5, **HI},
        "/v1/responses": {"input": "a"},
        "/api/chat": {"stream": False, **HI},
        "/api/generate": {"prompt": "a", "stream": False},
    }
    for path, body in bodies.items():
        answer = client.post(path, json=body, headers={"x-api-key": ANN})
        assert answer.status_code == 200, answer.text
    assert len(tenants_of(model)) == 7
    assert len(set(tenants_of(model))) == 1


def test_without_keys_the_address_is_the_user(make):
    model = make("one")
    app = create_app(MLCEngine.of(model))
    for peer, more in (("10.0.0.1", {}), ("10.0.0.2", {}), ("10.0.0.1", {"user": "u"})):
        client = TestClient(app, base_url="http://localhost", client=(peer, 5))
        assert client.post(CHAT, json={**HI, **more}).status_code == 200
    assert len({user >> 32 for user, _ in tenants_of(model)}) == 3
    assert {salt for _, salt in tenants_of(model)} == {0}
