"""Names of requests, and the line that each leaves in the log."""

from __future__ import annotations

import json
import logging
import re

import pytest

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.core.interface import NO_TOKEN_LEFT
from wherry.runtime.server.observing import access_log

from ..conftest import core_of
from ..served import served
from .asking import CHAT, COMPLETIONS, HI, bearer, client_of, error


@pytest.fixture
def lines(caplog):
    """The fields of what was logged since it was last asked."""
    caplog.set_level(logging.INFO, access_log.NAME)

    def take():
        records = [r.fields for r in caplog.records if r.name == access_log.NAME]
        caplog.clear()
        return records

    return take


@pytest.fixture
def client(make):
    return client_of(create_app(MLCEngine.of(make("one two")), model_name="m"))


def test_a_clients_id_comes_back(client, lines):
    for path, send in (("/health", client.get), (CHAT, client.post), ("/nowhere", client.get)):
        answer = send(path, headers={"X-Request-Id": "my-id/7"})
        assert answer.headers["x-request-id"] == "my-id/7"
    assert [line["request_id"] for line in lines()] == ["my-id/7"] * 2  # probes are not logged


@pytest.mark.parametrize("request_id", ["", "a b", "x" * 129, "a\tb", "é", '"'])
def test_ids_that_no_log_should_hold_are_replaced(client, request_id):
    answer = client.get("/health", headers={"X-Request-Id": request_id.encode("latin-1")})
    assert re.fullmatch(r"req-[0-9a-f]{24}", answer.headers["x-request-id"])


def test_ids_differ(client):
    assert len({client.get("/health").headers["x-request-id"] for _ in range(20)}) == 20


def test_a_line_says_what_a_request_took(client, lines):
    body = client.post(CHAT, json=HI).json()
    (line,) = lines()
    assert line["method"] == "POST" and line["path"] == CHAT and line["status"] == 200
    assert line["model"] == "m" and line["outcome"] == "stop" and line["stream"] is False
    assert line["prompt_tokens"] == body["usage"]["prompt_tokens"]
    assert line["output_tokens"] == body["usage"]["completion_tokens"]
    assert 0 <= line["ttft"] <= line["duration"]
    assert "the cat" not in json.dumps(line) and "one two" not in json.dumps(line)


def test_a_stream_is_logged_when_it_ends(client, lines):
    client.post(CHAT, json={**HI, "stream": True})
    (line,) = lines()
    assert line["stream"] is True
    assert line["output_tokens"] > 0


def test_errors_have_their_code(client, lines):
    client.post(CHAT, json={**HI, "n": 0})
    client.post(CHAT, content="{", headers={"Content-Type": "application/json"})
    client.get("/nowhere")
    client.post(COMPLETIONS, json={"prompt": [5] * 600})
    codes = [(line["status"], line["error"]) for line in lines()]
    assert codes == [
        (400, "http_400"),
        (400, "invalid_json"),
        (404, "not_found"),
        (400, "context_length_exceeded"),
    ]


def test_an_error_in_a_stream_is_the_outcome(make, lines):
    model = make("one")
    client = client_of(create_app(MLCEngine.of(model)))
    core_of(model).fail_with = "lost"
    assert "lost" in client.post(CHAT, json={**HI, "stream": True}).text
    (line,) = lines()
    assert (line["status"], line["error"], line["outcome"]) == (200, "engine_error", "engine_error")


def test_contradictions_of_the_client_are_not_our_failure(make, lines):
    """The real core's words: tests/runtime/test_engine_features.py."""
    model = make("one")
    client = client_of(create_app(MLCEngine.of(model)))
    core_of(model).fail_with = f"mask and bias {NO_TOKEN_LEFT} after 0 tokens"
    assert error(client.post(CHAT, json=HI), 400)["code"] == "no_token_possible"
    assert lines()[0]["error"] == "no_token_possible"


def test_our_own_bugs_name_the_request(make, monkeypatch, lines):
    model = make()
    client = client_of(create_app(MLCEngine.of(model)))
    monkeypatch.setattr(core_of(model), "add", lambda *_: 1 / 0)
    answer = client.post(CHAT, json=HI, headers={"X-Request-Id": "seven"})
    assert "seven" in error(answer, 500)["message"]
    assert answer.headers["x-request-id"] == "seven"
    (line,) = lines()
    assert (line["status"], line["error"]) == (500, "internal_error")


def test_the_key_is_logged_by_its_name(make, lines):
    client = client_of(create_app(MLCEngine.of(make()), api_key="very secret key"))
    client.post(CHAT, json=HI, headers=bearer("very secret key"))
    client.post(CHAT, json=HI, headers=bearer("a guess"))
    right, wrong = lines()
    assert right["key"] == "default"
    assert "key" not in wrong and wrong["error"] == "invalid_api_key"
    assert "secret" not in json.dumps(right) and "guess" not in json.dumps(wrong)


def test_paths_forge_no_lines(client, caplog):
    caplog.set_level(logging.INFO, access_log.NAME)
    client.get("/a%0a127.0.0.1%20GET%20/forged%1b[31m")
    (line,) = [r.getMessage() for r in caplog.records if r.name == access_log.NAME]
    assert "\n" not in line and "\x1b" not in line


def test_both_formats_of_a_running_server(tmp_path):
    body = json.dumps({**HI, "max_tokens": 2}).encode()
    for log_format in access_log.FORMATS:
        folder = tmp_path / log_format
        folder.mkdir()
        with served(folder, options=f"log_format={log_format!r}") as server:
            assert server.post(CHAT, body, **{"X-Request-Id": "seven"})[0] == 200
            server.health()
            server.process.terminate()
            server.process.wait(20)
            lines = server.log.splitlines()
        (line,) = [line for line in lines if "seven" in line]
        assert not [line for line in lines if "/health" in line]
        if log_format == "text":
            assert re.search(rf"127\.0\.0\.1  POST {CHAT}  200  \d\.\d+ s  small \d+\+2 ", line)
        else:
            records = [json.loads(line) for line in lines]  # all of them
            (mine,) = [f for f in records if f.get("request_id") == "seven"]
            assert mine["output_tokens"] == 2 and mine["client"] == "127.0.0.1"
            assert mine["level"] == "info" and mine["time"].endswith("Z")
