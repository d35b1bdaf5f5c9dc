"""The server's own rules: errors, key, limits, headers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.errors import UsageError
from wherry.runtime import AsyncMLCEngine, MLCEngine, create_app, serve

from ..support.waiting import until
from .conftest import core_of
from .live_server import live
from .server.asking import client_of

JSON = {"Content-Type": "application/json"}
HI = {"messages": [{"role": "user", "content": "the cat"}]}


def TestClient(app, **options):  # Starlette's has the host "testserver"
    return AnyClient(app, base_url="http://localhost", **options)


@pytest.fixture
def client(make):
    return TestClient(create_app(MLCEngine.of(make())), raise_server_exceptions=False)


def asking(url, body):
    return urllib.request.Request(f"{url}/v1/chat/completions", body, JSON)


def error(response, status):
    assert response.status_code == status, response.text
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    return response.json()["error"]


def test_index_and_health(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert "POST /v1/chat/completions" in client.get("/").json()["endpoints"]


def test_health_says_when_the_engine_has_failed(make):
    model = make(None)
    client = TestClient(create_app(AsyncMLCEngine.of(model)), raise_server_exceptions=False)
    core_of(model).break_with = "broken"
    assert "broken" in error(client.post("/v1/completions", json={"prompt": "a"}), 500)["message"]
    assert client.get("/health").status_code == 503


def test_health_says_when_steps_fail(make):
    model = make("one")
    client = TestClient(create_app(AsyncMLCEngine.of(model)))
    ask = {"prompt": "a", "max_tokens": 1}

    def health(expected):
        end = time.monotonic() + 10
        while (status := client.get("/health").json()["status"]) != expected:
            assert time.monotonic() < end, status

    core_of(model).fail_with = "the device is lost"
    assert client.post("/v1/completions", json=ask).status_code == 500
    health("failing")
    assert client.get("/stats").json()["failed_steps"] == 1
    assert client.post("/v1/completions", json=ask).status_code == 200
    client.get("/stats")  # looks at once
    health("ok")


def test_health_says_when_the_engine_is_stuck(make):
    go_on = threading.Event()

    def script(prompt, params, n):
        go_on.wait(30)
        return 7

    model = make(script=script)
    with live(model, stuck_seconds=0.3) as url:

        def get(path):
            try:
                with urllib.request.urlopen(url + path, timeout=5) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as e:
                return e.code, json.load(e)

        body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
        request = urllib.request.Request(f"{url}/v1/completions", body, JSON)
        clients = [
            threading.Thread(target=urllib.request.urlopen, args=[request]) for _ in "x" * 41
        ]  # more than the event loop has threads
        assert get("/health") == (200, {"status": "ok"})
        clients[0].start()
        time.sleep(0.1)
        for client in clients[1:]:
            client.start()
        with socket.create_connection(url.removeprefix("http://").split(":")) as gone:
            head = "Host: localhost\r\nContent-Type: application/json\r\n"
            length = f"Content-Length: {len(body)}\r\n\r\n"
            gone.sendall(f"POST /v1/completions HTTP/1.1\r\n{head}{length}".encode() + body)
            time.sleep(0.1)
        end = time.monotonic() + 10
        while get("/health") != (503, {"status": "stuck"}):
            assert time.monotonic() < end
            time.sleep(0.05)
        status, stats = get("/stats")
        assert (status, stats["status"], stats["state"]) == (200, "stuck", "busy")
        assert stats["stalled_seconds"] > 0.3
        go_on.set()
        for client in clients:
            client.join()
        assert get("/health") == (200, {"status": "ok"})


def test_stats(make):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    client = TestClient(create_app(MLCEngine.of(model), max_queue=3))
    idle = client.get("/stats").json()
    assert idle["state"] == "idle"
    assert idle["requests"] == {
        **dict.fromkeys(["active", "waiting", "prefilling", "running", "finished"], 0),
        "limit": 19,
    }
    assert idle["kv_cache"] == {
        "pages_total": 100_000,
        "pages_free": 100_000,
        "pages_cached": 0,
        "page_size": 16,
    }
    with MLCEngine.of(model).chat.completions.create(**HI, stream=True) as stream:
        next(stream)
        next(stream)
        busy = client.get("/stats").json()
        assert busy["state"] == "busy"
        assert busy["requests"]["running"] == busy["requests"]["active"] == 1
        assert busy["kv_cache"]["pages_free"] < 100_000
        assert busy["steps"] > 0
    until(lambda: client.get("/stats").json()["kv_cache"]["pages_free"] == 100_000)


def test_stats_ask_for_the_key(make):
    client = TestClient(create_app(MLCEngine.of(make()), api_key="k"))
    assert client.get("/stats").status_code == 401
    assert client.get("/health").json() == {"status": "ok"}


def test_errors_have_openais_shape(client):
    chat = "/v1/chat/completions"
    assert "GET /v2/x" in error(client.get("/v2/x"), 404)["message"]
    assert "POST" in error(client.get(chat), 405)["message"]
    assert error(client.post(chat, content="{", headers=JSON), 400)["code"] == "invalid_json"
    assert (
        error(client.post(chat, content="[" * 100_000, headers=JSON), 400)["code"] == "invalid_json"
    )
    assert error(client.post(chat, json=[1]), 400)["type"] == "invalid_request_error"
    assert error(client.post(chat, json={}), 400)["param"] == "messages"
    bad = {"messages": [{"role": "king", "content": "x"}], "n": 0}
    problem = error(client.post(chat, json=bad), 400)
    assert problem["param"] in ("n", "messages[0].role")
    assert "messages[0].role: " in problem["message"]
    assert "n: " in problem["message"]
    assert error(client.post(chat, json={**HI, "model": "other"}), 404)["param"] == "model"


def test_our_own_bugs_are_a_500_without_details(client, make, monkeypatch):
    model = make()
    client = TestClient(create_app(MLCEngine.of(model)), raise_server_exceptions=False)
    monkeypatch.setattr(core_of(model), "add", lambda *_: 1 / 0)
    problem = error(client.post("/v1/chat/completions", json=HI), 500)
    assert "division" not in problem["message"]
    assert model.dispatcher.active == 0


def test_context_overflow_names_the_numbers(client):
    body = {"prompt": [5] * 10, "max_tokens": 510}
    problem = error(client.post("/v1/completions", json=body), 400)
    assert problem["code"] == "context_length_exceeded"
    assert "512" in problem["message"]
    assert "520" in problem["message"]


def test_fields_without_effect_are_named(client):
    fields = {**HI, "service_tier": "auto", "store": True, "colour": 1, "seed": 3, "metadata": None}
    response = client.post("/v1/chat/completions", json={**fields, "functions": []})
    assert response.headers["x-wherry-ignored"] == "colour, functions, service_tier, store"
    assert "x-wherry-ignored" not in client.post("/v1/chat/completions", json=HI).headers
    strange = client.post("/v1/chat/completions", json={**HI, "ü\r\nX: y": 1})
    assert strange.status_code == 200
    assert "x" not in strange.headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("function_call", {"name": "f"}),
        ("tool_choice", "required"),
        ("functions", [{}]),
        ("audio", {"voice": "x"}),
        ("modalities", ["text", "audio"]),
    ],
)
def test_fields_whose_neglect_would_change_the_answer(client, name, value):
    problem = error(client.post("/v1/chat/completions", json={**HI, name: value}), 400)
    assert problem["param"] == name
    harmless = {"response_format": {"type": "text"}, "tool_choice": "none", "modalities": ["text"]}
    assert client.post("/v1/chat/completions", json={**HI, **harmless}).status_code == 200


def test_key(make):
    client = TestClient(create_app(MLCEngine.of(make()), api_key="söcret"))
    assert client.get("/health").status_code == 200
    for path in ("/", "/v1/models", "/nowhere"):
        assert error(client.get(path), 401)["code"] == "invalid_api_key"
    wrong = {"Authorization": "Bearer x"}
    assert client.get("/v1/models", headers=wrong).status_code == 401
    key = "söcret".encode()
    assert client.get("/v1/models", headers={b"Authorization": b"Bearer " + key}).status_code == 200
    assert client.get("/v1/models", headers={b"x-api-key": key}).status_code == 200


def test_body_limit(make):
    client = TestClient(create_app(MLCEngine.of(make()), max_body=1000))
    assert error(client.post("/v1/completions", content=b" " * 1001), 413)["code"]

    def pieces():  # without Content-Length
        for _ in range(20):
            yield b" " * 100

    assert error(client.post("/v1/completions", content=pieces(), headers=JSON), 413)["code"]
    assert client.post("/v1/completions", json={"prompt": "a"}).status_code == 200


def test_a_full_queue_is_429(make):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    client = TestClient(create_app(MLCEngine.of(model), max_queue=0))
    streams = [MLCEngine.of(model).chat.completions.create(**HI, stream=True) for _ in range(16)]
    response = client.post("/v1/chat/completions", json=HI)
    assert error(response, 429)["code"] == "queue_full"
    assert response.headers["retry-after"] == "1"
    assert error(client.post("/v1/completions", json={"prompt": "a", "n": 17}), 400)["param"] == "n"
    streams[0].close()
    short = {"prompt": "a", "max_tokens": 1}
    assert client.post("/v1/completions", json=short).status_code == 200
    for stream in streams:
        stream.close()


def test_cors_is_off_by_default(make):
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    name = "access-control-allow-origin"
    off = TestClient(create_app(MLCEngine.of(make()), api_key="k"))
    assert name not in off.options("/v1/models", headers=preflight).headers
    on = TestClient(create_app(MLCEngine.of(make()), api_key="k", cors=["https://a.example"]))
    response = on.options("/v1/models", headers=preflight)
    assert response.status_code == 200
    assert response.headers[name] == "https://a.example"


def test_sse_bytes(make):
    with live(make("a")) as url:
        body = json.dumps({**HI, "stream": True, "user": "me", "store": True}).encode()
        with urllib.request.urlopen(asking(url, body)) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["x-wherry-ignored"] == "store"
            text = answer.read().decode()
    assert text.endswith("data: [DONE]\n\n")
    events = [json.loads(e.removeprefix("data: ")) for e in text.split("\n\n")[:-2]]
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert events[0]["object"] == "chat.completion.chunk"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.com", "192.168.1.2"])
def test_serve_refuses_other_machines_without_a_key(host):
    with pytest.raises(UsageError, match="API key"):
        serve("no such model", host)


SERVE = """
import sys
from tests.runtime.conftest import make_model
from wherry.runtime import MLCEngine, serve
model = make_model("one two " * 50, step_seconds=0.01)
serve(MLCEngine.of(model), port=0, on_ready=lambda url: print(url, flush=True))
print("drained", model.stats().finished, flush=True)
"""


def test_sigterm_drains():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip()
        texts = []

        def ask():
            body = json.dumps(HI).encode()
            with urllib.request.urlopen(asking(url, body)) as answer:
                texts.append(json.load(answer)["choices"][0]["message"]["content"])

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: json.load(urllib.request.urlopen(f"{url}/stats"))["requests"]["active"])
        process.send_signal(signal.SIGTERM)
        thread.join(20)
        assert process.wait(20) == 0
        assert process.stdout.read() == "drained 1\n"
    assert texts == ["one two " * 50]
    host, port = url.removeprefix("http://").split(":")
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), timeout=1).close()


CUT = """
from tests.runtime.conftest import make_model
from wherry.runtime import MLCEngine, serve
model = make_model(None, context=1_000_000, pages=100_000, step_seconds=0.01)
options = {"drain_seconds": 1, "on_ready": lambda url: print(url, flush=True)}
serve(MLCEngine.of(model), port=0, **options)
model.close()
"""


def test_what_outlasts_the_drain_is_cut_with_an_error():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    with subprocess.Popen(
        [sys.executable, "-c", CUT],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        url = process.stdout.readline().strip()
        body = json.dumps({**HI, "stream": True}).encode()
        with urllib.request.urlopen(asking(url, body)) as answer:
            answer.readline()
            process.send_signal(signal.SIGTERM)
            text = answer.read().decode()
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    assert json.loads(text.strip().split("data: ")[-1])["error"]["code"] == "shutting_down"
    assert "Traceback" not in log


def test_a_taken_port_is_a_usage_error(make):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}"):
            serve(MLCEngine.of(make()), port=port)


@pytest.mark.parametrize("stream", ["false", "off", 0])
def test_numbers_and_truths_may_be_texts(make, stream):
    client = client_of(create_app(MLCEngine.of(make())))
    body = {"prompt": ["a", "b"], "n": "2", "max_tokens": "3", "stream": stream}
    answer = client.post("/v1/completions", json=body)
    assert answer.status_code == 200
    assert len(answer.json()["choices"]) == 4
