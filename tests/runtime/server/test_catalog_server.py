"""A server of several models, through every protocol's door."""

from __future__ import annotations

import threading
import time

import openai
import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.errors import ModelError, ResourceError
from wherry.runtime import create_app

from ..conftest import core_of
from ..live_server import live
from .small_catalog import MB, Loads, catalog

HI = [{"role": "user", "content": "the cat"}]
ASK = {"messages": HI}


@pytest.fixture
def loads():
    return Loads()


@pytest.fixture
def models(tmp_path, loads):
    with catalog(tmp_path, loads, {"a": {"aliases": ("gpt",)}, "b": {}}, free=150 * MB) as opened:
        yield opened


@pytest.fixture
def client(models):
    return AnyClient(create_app(models), base_url="http://localhost")


def test_openai(models, loads):
    with (
        live(models) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        listed = {m.id: (m.root, m.max_model_len) for m in client.models.list()}
        assert listed == {"a": ("a", 512), "gpt": ("a", 512), "b": ("b", 512)}
        assert loads.begun == []
        for name, answers in (("gpt", "a"), ("b", "b"), ("a", "a")):
            answer = client.chat.completions.create(model=name, messages=HI)
            assert (answer.model, answer.choices[0].message.content) == (answers, f"I am {answers}")
        stream = client.chat.completions.create(model="b", messages=HI, stream=True)
        assert "".join(c.choices[0].delta.content or "" for c in stream) == "I am b"
        with pytest.raises(openai.NotFoundError, match="'a', 'gpt', 'b' are"):
            client.chat.completions.create(model="c", messages=HI)
    assert loads.begun == ["a", "b", "a", "b"]  # 150 MB hold one of them


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelError("torn"), 500, "model_load_failed"),
        (ResourceError("full"), 503, "model_unavailable"),
    ],
)
def test_a_load_that_fails_is_an_error_of_each_protocol(client, loads, error, status, code):
    loads.fails["a"] = error
    answer = client.post("/v1/chat/completions", json=ASK)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert str(error) in answer.json()["error"]["message"]
    assert ("retry-after" in answer.headers) == (status == 503)
    answer = client.post("/api/chat", json=ASK)
    assert answer.status_code == status and str(error) in answer.json()["error"]
    assert client.post("/v1/chat/completions", json=ASK | {"model": "b"}).status_code == 200
    assert client.get("/health").json() == {"status": "ok"}
    del loads.fails["a"]
    assert client.post("/v1/chat/completions", json=ASK).status_code == 200


def test_stats_are_of_the_models_in_memory(client):
    assert client.get("/stats").json()["models"] == {}
    client.post("/v1/chat/completions", json=ASK)
    assert list(client.get("/stats").json()["models"]) == ["a"]
    assert client.get("/").json()["models"] == ["a", "gpt", "b"]


def test_an_engine_that_fails_is_reported_and_then_replaced(client, loads):
    client.post("/v1/chat/completions", json=ASK)
    core_of(loads.open["a"][0]).break_with = "the device is lost"
    assert "the device is lost" in client.post("/v1/chat/completions", json=ASK).text
    end = time.monotonic() + 5
    while client.get("/health").status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    assert loads.begun == ["a", "a"]


def test_a_key_for_one_model_has_its_aliases_and_no_other(models, loads, tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys: [{name: ann, key: k-0123456789abcdef, models: [a]}]")
    client = AnyClient(create_app(models, keys=keys), base_url="http://localhost")
    client.headers["Authorization"] = "Bearer k-0123456789abcdef"
    assert [m["id"] for m in client.get("/v1/models").json()["data"]] == ["a", "gpt"]
    for name, status in (("", 200), ("a", 200), ("gpt", 200), ("gpt:latest", 200), ("b", 404)):
        answer = client.post("/api/chat", json=ASK | {"model": name, "stream": False})
        assert answer.status_code == status, name
        unload = client.post("/api/chat", json={"model": name, "keep_alive": 0})
        assert unload.status_code == status, name
    assert "'b'" not in client.post("/api/show", json={"model": "b"}).text.partition("here;")[2]
    assert set(loads.begun) == {"a"}


def test_a_client_that_goes_away_while_its_model_loads(models, loads):
    loads.gates["a"] = threading.Event()
    with (
        live(models) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="a", messages=HI, timeout=0.3)
        loads.gates["a"].set()
        answer = client.chat.completions.create(model="a", messages=HI)
        assert answer.choices[0].message.content == "I am a"
    assert loads.begun == ["a"]
    assert models._slots()[0].resident.leases == 0
