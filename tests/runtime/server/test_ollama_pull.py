"""/api/pull: who may, what is said meanwhile, and that its process ends with its client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request

import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.errors import ModelError
from wherry.runtime import MLCEngine, create_app
from wherry.runtime.errors import RequestError
from wherry.runtime.server.catalog.catalog import Catalog
from wherry.runtime.server.endpoints.ollama.pull import PullSpec, _Statuses, spec_of

from ...support import artifacts
from .. import small_tokenizers as small
from ..live_server import live
from .small_catalog import Loads, catalog

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a").mkdir()
    with catalog(tmp_path / "a", Loads(), {"a": {}}, keep_alive=7.0) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path):
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    small.byte_level().save(str(compiled / "tokenizer.json"))
    artifacts.write(compiled, target={"name": "cpu", "kind": "llvm"})
    return compiled


@pytest.fixture
def process(monkeypatch):
    """Lets a program stand for the process that downloads and compiles."""

    def use(program):
        async def start(self, spec):
            return await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
            )

        monkeypatch.setattr(_Statuses, "_start", start)

    return use


def asking(url, **body):
    request = urllib.request.Request(f"{url}/api/pull", json.dumps(body).encode(), JSON)
    return urllib.request.urlopen(request, timeout=10)


def client_of(models, **options):
    return AnyClient(create_app(models, **options), base_url="http://localhost")


@pytest.mark.parametrize(
    ("requested", "model", "name", "quant", "aliases"),
    [
        ("demo", "demo", "demo", None, ()),
        ("demo:latest", "demo", "demo", None, ()),
        ("Qwen/Qwen3-0.6B", "hf://Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", None, ()),
        ("a/b:q8f16_1", "hf://a/b", "a/b:q8f16_1", "q8f16_1", ()),
        ("hf.co/a/b:latest", "hf://a/b", "a/b", None, ("hf.co/a/b",)),
        ("https://huggingface.co/a/b", "hf://a/b", "a/b", None, ("https://huggingface.co/a/b",)),
        ("hf://a/b@main", "hf://a/b@main", "a/b", None, ("hf://a/b@main",)),
    ],
)
def test_what_is_meant(requested, model, name, quant, aliases):
    assert spec_of(requested) == PullSpec(model, name, quant, aliases)


@pytest.mark.parametrize(
    "requested",
    ["", "llama3.2", "/etc", "../x", "./a/b", "~/a", "a/b/c", "a/..", "../a:q", "a/b c"],
)
def test_what_cannot_be_pulled(requested):
    with pytest.raises(RequestError, match="cannot be pulled"):
        spec_of(requested)


def test_only_where_it_is_allowed(models, make):
    for app, said in (
        (client_of(models), "--allow-pull"),
        (client_of(models, api_key="k"), "--allow-pull"),  # a key is not enough
        (client_of(MLCEngine.of(make()), allow_pull=True), "--models"),
    ):
        headers = {"Authorization": "Bearer k"}
        answer = app.post("/api/pull", json={"model": "demo"}, headers=headers)
        assert answer.status_code == 403 and said in answer.json()["error"]
    assert client_of(models, allow_pull=True).post("/api/pull", json={}).status_code == 400


def test_what_is_there_already(models):
    client = client_of(models, allow_pull=True)
    assert client.post("/api/pull", json={"model": "a"}).text == '{"status":"success"}\n'
    answer = client.post("/api/pull", json={"name": "a:latest", "stream": False})
    assert answer.json() == {"status": "success"}


async def test_a_process_makes_it_and_the_catalog_has_it(models, folder):
    """The real process, over a folder that is compiled already."""
    statuses = _Statuses(
        models, PullSpec(str(folder), "org/x", None, ("hf.co/org/x",)), asyncio.Lock()
    )
    try:
        assert [s["status"] for s in await statuses.batch()] == ["pulling org/x"]
        assert [s["status"] for s in await statuses.batch()] == ["success"]
        assert await statuses.batch() == []
    finally:
        await statuses.end()
    assert [m.name for m in models.listed()] == ["a", "org/x", "hf.co/org/x"]
    pulled = models._slots()[1].prepared
    assert (pulled.folder, pulled.spec.keep_alive) == (folder, 7.0)
    missing = _Statuses(models, PullSpec("/nowhere", "y", None), asyncio.Lock())
    try:
        with pytest.raises(ModelError, match="There is no folder '/nowhere'"):
            await missing.all()
    finally:
        await missing.end()


def test_what_is_said_meanwhile(models, folder, process):
    lines_written = [
        {"what": "download", "done": 5, "total": 10},
        {"what": "compile", "done": 1, "total": 7},
        {"folder": str(folder)},
    ]
    process(f"for line in {[json.dumps(t) for t in lines_written]!r}: print(line)")
    client = client_of(models, allow_pull=True)
    answer = client.post("/api/pull", json={"model": "org/x"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.text.splitlines()] == [
        {"status": "pulling org/x"},
        {"status": "downloading", "total": 10, "completed": 5},
        {"status": "compiling", "total": 7, "completed": 1},
        {"status": "success"},
    ]
    assert "org/x:latest" in [m["name"] for m in client.get("/api/tags").json()["models"]]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('print(\'{"error": "no such model"}\')', "no such model"),
        ("raise SystemExit(3)", "its process ended with 3"),
    ],
)
def test_what_fails_is_said(models, process, program, said):
    process(program)
    with live(models, allow_pull=True) as url:
        with asking(url, model="org/x") as answer:
            assert said in json.loads(answer.read().splitlines()[-1])["error"]
        with pytest.raises(urllib.error.HTTPError) as e:
            asking(url, model="org/x", stream=False)
        assert e.value.code == 500 and said in json.load(e.value)["error"]
    assert [m.name for m in models.listed()] == ["a"]


def test_its_process_ends_with_its_client(models, process, tmp_path):
    pid_file = tmp_path / "pid"
    process(
        "import os, time, pathlib\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\n"
        'print(\'{"what": "download", "done": 1, "total": 9}\', flush=True)\n'
        "time.sleep(60)"
    )
    with live(models, allow_pull=True) as url:
        with asking(url, model="org/x") as first:
            while b"downloading" not in first.readline():
                pass
            with asking(url, model="org/x") as second:  # one at a time
                assert b"waiting for another pull" in second.readline()
                pid = int(pid_file.read_text())
                os.kill(pid, 0)
                first.close()
                assert b"pulling org/x" in second.readline()
                end = time.monotonic() + 5
                while _is_alive(pid):
                    assert time.monotonic() < end
                    time.sleep(0.01)
                while b"downloading" not in second.readline():
                    pass
        pid = int(pid_file.read_text())
        end = time.monotonic() + 5
        while _is_alive(pid):
            assert time.monotonic() < end
            time.sleep(0.01)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_catalog_that_was_empty(process, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    process(f"print({json.dumps({'folder': str(folder)})!r})")
    with Catalog([], load=Loads()) as models:
        client = client_of(models, allow_pull=True)
        answer = client.post("/api/chat", json={"messages": [{"role": "user", "content": "a"}]})
        assert (answer.status_code, "nothing is" in answer.json()["error"]) == (404, True)
        assert client.post("/api/pull", json={"model": "x/y", "stream": False}).status_code == 200
        answer = client.post("/api/generate", json={"prompt": "a", "stream": False})
        assert answer.json()["response"] == "I am x/y"
