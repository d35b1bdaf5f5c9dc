"""The WebSocket of /v1/responses: turns, what a connection keeps, errors, and its guards."""

from __future__ import annotations

import json
import logging
import random
import time

import pytest

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.endpoints.responses import socket as sockets
from wherry.runtime.server.guard.keys import KeyRing

from ...support.waiting import until
from ..conftest import core_of
from ..live_server import live
from ..test_fuzz_requests import mutate, spoil
from ..tools.test_history import SYSTEM_FIRST
from .asking import bearer, client_of, get, post
from .socket_client import PATH, Refused, SocketClient
from .sse import events
from .talking import TEMPLATE
from .test_fuzz_protocols import ANSWERED

TEXT = "hello there"
KEY = "key-0123456789abcdef"
LOCALHOST = f"ws://localhost{PATH}"  # the client's own host is one that no server knows
LONG = {"context": 1_000_000, "pages": 100_000, "step_seconds": 0.01}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "one"}


@pytest.fixture
def model(make):
    return make(TEXT, template=TEMPLATE, context=8192)


@pytest.fixture
def url(model):
    with live(model) as url:
        yield url


def prompt(model, at=-1):
    return model.tokenizer.decode(core_of(model).added[at][0], skip_special_tokens=False)


def code_of(answer):
    """Of an error in the shape that the specification gives it."""
    assert answer.keys() == {"type", "status", "error"} and answer["type"] == "error"
    assert isinstance(answer["error"]["code"], str) and isinstance(answer["error"]["message"], str)
    return answer["status"], answer["error"]["code"]


def refused(url, **headers):
    with pytest.raises(Refused) as e:
        SocketClient(url, **headers)
    return e.value.status, json.loads(e.value.body)["error"]["code"]


def freed(model):
    end = time.monotonic() + 10
    while model.dispatcher.active or model.stats().pages_free < LONG["pages"]:
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- turns ----


def test_how_messages_were_adapted_is_named(make):
    late = [{"role": "user", "content": "hi"}, {"role": "system", "content": "needle"}]
    with live(make(TEXT, template=SYSTEM_FIRST, context=8192)) as url, SocketClient(url) as client:
        client.send(input=late)
        assert client.turn()[0]["headers"] == {"X-Wherry-Adapted": "system-reminders"}
        client.send(input="hi")
        assert "headers" not in client.turn()[0]


def test_events_are_those_of_a_stream(url):
    _, _, text = post(url, PATH, {"model": "small", "input": "hi", "stream": True})
    kinds = list(dict.fromkeys(kind for kind, _ in events(text)))  # deltas come as they may
    with SocketClient(url) as client:
        for _ in range(2):  # numbers begin anew with each response
            client.send(input="hi")
            turn = client.turn()
            assert list(dict.fromkeys(event["type"] for event in turn)) == kinds
            assert [event["sequence_number"] for event in turn] == list(range(len(turn)))
            assert turn[-1]["response"]["output"][0]["content"][0]["text"] == TEXT


def test_messages_are_answered_one_after_the_other(url, model):
    with SocketClient(url) as client:
        for text in "abc":
            client.send(input=text)
        for _ in "abc":
            turn = client.turn()
            assert turn[0]["type"] == "response.created"
            assert len({e["response"]["id"] for e in turn if "response" in e}) == 1
        assert [prompt(model, i) for i in (-3, -2, -1)] == [
            f"<|user|>{text}<|assistant|>" for text in "abc"
        ]


def test_a_connection_goes_on_from_what_it_keeps(url, model):
    with SocketClient(url) as client, SocketClient(url) as other:
        first = client.ask(input="a", store=False)
        assert first["store"] is False
        second = client.ask(input="b", store=False, previous_response_id=first["id"])
        assert prompt(model) == f"<|user|>a<|assistant|>{TEXT}<|user|>b<|assistant|>"
        assert second["previous_response_id"] == first["id"]
        missing = (400, "previous_response_not_found")
        assert code_of(other.ask(input="c", previous_response_id=second["id"])) == missing
        assert post(url, PATH, {"input": "c", "previous_response_id": second["id"]})[0] == 400
        assert get(url, f"{PATH}/{second['id']}")[0] == 404
        assert code_of(client.ask(input="c", previous_response_id=first["id"])) == missing
        client.ask(input="c", store=False, previous_response_id=second["id"])
        assert prompt(model).count(TEXT) == 2
    with SocketClient(url) as client:  # what it kept has ended with it
        assert code_of(client.ask(input="d", previous_response_id=second["id"])) == missing
        assert client.ask(input="d", previous_response_id=None)["status"] == "completed"


def test_what_is_stored_outlives_the_connection(url, model):
    with SocketClient(url) as client:
        first = client.ask(input="a")
    with SocketClient(url) as client:
        client.ask(input="b", previous_response_id=first["id"], store=False)
        client.ask(input="c", previous_response_id=first["id"])
        assert prompt(model) == f"<|user|>a<|assistant|>{TEXT}<|user|>c<|assistant|>"


def test_a_turn_that_fails_ends_what_it_went_on_from(url):
    with SocketClient(url) as client:
        for wrong in ({"input": [RESULT]}, {"temperature": 9}, {"model": "b"}, {"stream": False}):
            first = client.ask(input="a", store=False)
            failed = client.ask(**{"input": "b", "previous_response_id": first["id"], **wrong})
            assert failed["type"] == "error"
            again = client.ask(input="b", previous_response_id=first["id"])
            assert code_of(again) == (400, "previous_response_not_found")


def test_so_does_one_that_fails_amid(url, model):
    with SocketClient(url) as client:
        first = client.ask(input="a", store=False)
        core_of(model).fail_with = "the device is gone"
        failed = client.ask(input="b", previous_response_id=first["id"], store=False)
        assert (failed["status"], failed["error"]["message"]) == ("failed", "the device is gone")
        core_of(model).fail_with = None
        again = client.ask(input="b", previous_response_id=first["id"])
        assert code_of(again) == (400, "previous_response_not_found")


def test_a_failure_elsewhere_ends_nothing(url):
    with SocketClient(url) as client:
        first = client.ask(input="a", store=False)
        client.text("{")
        client.event()
        assert client.ask(input="b", temperature=9)["type"] == "error"
        answer = client.ask(input="b", previous_response_id=first["id"], store=False)
        assert answer["status"] == "completed"


REFUSED = [
    ("{", "invalid_json"),
    ("[]", "unknown_message"),
    ("{}", "unknown_message"),
    ('{"type": "response.cancel"}', "unknown_message"),
    ('{"type": "response.create", "input": "a", "stream": false}', "unsupported_parameter"),
    ('{"type": "response.create", "input": "a", "background": true}', "unsupported_parameter"),
    ('{"type": "response.create", "input": "a", "stream_options": {}}', "unsupported_parameter"),
    ('{"type": "response.create", "input": "a", "model": "b"}', "model_not_found"),
    (b'{"type": "response.create", "input": []}', "invalid_request_error"),
]


def test_what_is_refused_leaves_the_connection(url):
    with SocketClient(url) as client:
        for message, code in REFUSED:
            client.text(message)
            status, error_code = code_of(client.event())
            assert 400 <= status < 500 and error_code == code, message
        assert client.ask(input="a", stream=True)["status"] == "completed"


def test_messages_that_are_almost_right(model, url):
    core_of(model).script.accept = lambda params, token: False  # some ask for a grammar
    message = {"type": "response.create", **ANSWERED, "store": False}
    ends = {"error": 0, "response.completed": 0}
    with SocketClient(url) as client:
        for seed in range(150):
            rng = random.Random(seed)
            body = json.dumps(mutate(rng, message), ensure_ascii=rng.random() < 0.7)
            data = body.encode(errors="surrogatepass")
            client.text(spoil(rng, data) if rng.random() < 0.2 else data)
            last = client.turn()[-1]
            if last["type"] == "error":
                assert code_of(last)[0] < 500, (seed, last)
            else:
                assert last["type"] in ("response.completed", "response.incomplete"), (seed, last)
            ends["error" if last["type"] == "error" else "response.completed"] += 1
    assert min(ends.values()) > 10


def test_a_connection_lasts_an_hour(model, monkeypatch):
    assert sockets.SECONDS == 3600
    monkeypatch.setattr(sockets, "SECONDS", 0.3)
    with live(model) as url, SocketClient(url) as client:
        client.ask(input="a")
        assert code_of(client.event()) == (400, "websocket_connection_limit_reached")
        assert client.event() is None and client.code == 1000
    core_of(model).step_seconds = 0.1
    with live(model) as url, SocketClient(url) as client:  # a response under way may end
        assert client.ask(input="a")["status"] == "completed"
        assert code_of(client.event()) == (400, "websocket_connection_limit_reached")


def test_too_many_messages_end_the_connection(make):
    model = make(None, **LONG)
    with live(model) as url, SocketClient(url) as client:
        for _ in range(sockets.MAX_WAITING + 3):
            client.send(input="a")
        while (event := client.event())["type"] != "error":
            pass
        assert code_of(event) == (429, "too_many_messages")
        assert client.event() is None and client.code == 1008
        freed(model)


def test_a_summary_begins_a_new_chain(url, model):
    body = {"model": "small", "input": [{"role": "user", "content": "a"}]}
    summary = json.loads(post(url, f"{PATH}/compact", body)[2])["output"]
    with SocketClient(url) as client:
        client.ask(input=[*summary, {"role": "user", "content": "b"}], store=False)
        assert TEXT in prompt(model) and prompt(model).endswith("b<|assistant|>")


# ---- guards ----


def keyed(tmp_path, **limits):
    lines = "".join(f"\n  {name}: {value}" for name, value in limits.items())
    path = tmp_path / "keys.yaml"
    path.write_text(f"keys:\n- name: ann\n  key: {KEY}{lines}\n")
    path.chmod(0o600)
    return path


def test_keys(model, tmp_path):
    path = keyed(tmp_path)
    ring = KeyRing(path=path)
    with live(model, keys=ring) as url:
        assert (
            refused(url) == refused(url, Authorization="Bearer other") == (401, "invalid_api_key")
        )
        with (
            SocketClient(url, Authorization=f"Bearer {KEY}") as client,
            SocketClient(url, x_api_key=KEY) as other,
        ):
            assert other.ask(input="a")["status"] == "completed"
            path.write_text(path.read_text().replace(KEY, "another-" + KEY))
            ring.reload()  # a key that is gone is gone for connections, too
            assert code_of(client.ask(input="a")) == (401, "invalid_api_key")


def test_pages_of_others(model):
    with live(model, cors=["https://a.example"]) as url:
        assert refused(url, Origin="https://b.example") == (403, "origin_not_allowed")
        for origin in ("https://a.example", url):
            with SocketClient(url, Origin=origin) as client:
                assert client.ask(input="a")["status"] == "completed"
    client = client_of(create_app(MLCEngine.of(model)))
    with pytest.raises(Exception) as e, client.websocket_connect(f"ws://evil.example{PATH}"):
        pass
    assert e.value.status_code == 403 and e.value.json()["error"]["code"] == "host_not_allowed"


def test_a_key_has_its_models_and_rates(model, tmp_path):
    path = keyed(tmp_path, requests_per_minute=3, tokens_per_minute=10_000, models="[other]")
    with live(model, keys=path) as url:
        with SocketClient(url, Authorization=f"Bearer {KEY}") as client:
            assert code_of(client.ask(input="a")) == (404, "model_not_found")
            path.write_text(path.read_text().replace("[other]", "[small]"))
    with live(model, keys=path) as url:
        with SocketClient(url, Authorization=f"Bearer {KEY}") as client:
            for _ in range(3):
                assert client.ask(input="a")["status"] == "completed"
            limited = client.ask(input="a")
            assert code_of(limited) == (429, "rate_limit_exceeded")
            assert int(limited["error"]["headers"]["Retry-After"]) >= 1
        left = get(url, "/v1/models", **bearer(KEY))[1]["X-RateLimit-Remaining-tokens"]
        assert int(left) < 10_000


def test_a_full_queue(make):
    model = make(None, **LONG)
    with live(model, max_queue=1) as url, SocketClient(url) as client:
        others = [SocketClient(url) for _ in range(18)]  # of which 16 run, and one waits
        for other in others[:17]:
            other.send(input="a")
            if other is not others[16]:
                assert other.event()["type"] == "response.created"
        until(lambda: model.dispatcher.active == 17)
        full = client.ask(input="a")
        assert code_of(full) == (429, "queue_full") and full["error"]["headers"]["Retry-After"]
        for other in others:
            other.socket.close()
        freed(model)


def test_a_turn_has_the_time_of_a_request(make):
    model = make(None, **LONG)
    with live(model) as url, SocketClient(url, X_Request_Timeout="0.3") as client:
        for _ in range(2):
            answer = client.ask(input="a")
            assert answer["status"] == "failed" and "0.3 s" in answer["error"]["message"]
        freed(model)


def test_a_client_that_goes_frees_its_request(make):
    model = make(None, **LONG)
    with live(model) as url:
        with SocketClient(url) as client:
            client.send(input="a")
            while not client.event()["type"].endswith(".delta"):
                pass
            assert model.stats().pages_free < LONG["pages"]
        freed(model)


def test_a_draining_server_takes_no_turns(model):
    app = create_app(MLCEngine.of(model))
    with client_of(app) as client, client.websocket_connect(LOCALHOST) as ws:
        app.state.life.drain(30)
        ws.send_json({"type": "response.create", "input": "a"})
        assert code_of(ws.receive_json()) == (503, "shutting_down")
        with pytest.raises(Exception) as e, client.websocket_connect(LOCALHOST):
            pass
        assert e.value.status_code == 503


def test_log_and_metrics_have_each_turn(model, caplog):
    caplog.set_level(logging.INFO, "wherry.access")
    with live(model) as url:
        with SocketClient(url, X_Request_Id="mine") as client:
            assert client.headers["x-request-id"] == "mine"
            client.ask(input="a")
            failed = client.ask(input=[])
            assert "wherry_websocket_connections 1.0" in get(url, "/metrics")[2]
        end = time.monotonic() + 5
        while "wherry_websocket_connections 0.0" not in (page := get(url, "/metrics")[2]):
            assert time.monotonic() < end
    for method, status in (("GET", 101), ("POST", 200), ("POST", 400)):
        labels = f'method="{method}",path="{PATH}",status="{status}"'
        assert f"wherry_http_requests_total{{{labels}}} 1.0" in page
    records = [r.fields for r in caplog.records if getattr(r, "fields", {}).get("path") == PATH]
    assert [line["status"] for line in records] == [101, 200, 400]
    assert records[0]["request_id"] == "mine" and records[1]["output_tokens"] > 0
    assert len({line["request_id"] for line in records}) == 3
    assert failed["error"]["headers"]["X-Request-Id"] == records[2]["request_id"]


def test_other_paths_have_no_sockets(url):
    with pytest.raises(Refused) as e:
        SocketClient(url, "/v1/models")
    assert e.value.status == 200
    status, headers, text = get(url, PATH)
    assert status == 426 and headers["Upgrade"] == "websocket"
    assert json.loads(text)["error"]["code"] == "upgrade_required"
