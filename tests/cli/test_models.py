"""`wherry show`, `pull` and `ps`: what a model is, having it ahead, and who serves it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from wherry.base import settings
from wherry.cache import running
from wherry.cli.description import licence_of
from wherry.compiler.api import ensure_artifact

from ..compiler.hub_stand_in import Hub
from ..support.command import SRC, here, started, wherry

DEMO = SRC / "wherry" / "demo"


@pytest.mark.cpu
class TestShow:
    def test_for_people(self):
        folder = ensure_artifact("demo")
        done = here("show", "demo")
        assert (done.returncode, done.stderr) == (0, "")
        text = done.stdout
        assert text.startswith("demo\n  architecture  llama, 4,066,560 parameters\n")
        assert "  licence       apache-2.0\n" in text and "  context       1,024 tokens\n" in text
        assert "  compiled      q4f16_1 for cpu" in text
        assert all(len(line) <= 100 for line in text.splitlines())
        again = here("show", str(folder)).stdout
        assert "4,066,560 parameters" in again and "q4f16_1" in again

    def test_for_programs(self):
        described = json.loads(here("show", "demo", "--json", "--quant", "q8f16_1").stdout)
        assert described["shape"]["layers"] == 6 and described["quantization"] == "q8f16_1"
        assert described["memory"]["weights"] > 4_000_000 and "chat" in described["capabilities"]
        assert described["tools"] is None and described["thinking"] is False
        template = here("show", "demo", "--template").stdout
        assert template == described["template"] + "\n" and "<|assistant|>" in template

    @pytest.mark.nightly
    def test_a_model_of_the_hub_is_not_downloaded_for_it(self, tmp_path):
        names = ("config.json", "tokenizer.json", "tokenizer_config.json", "README.md")
        files = {name: (DEMO / name).read_bytes() for name in names}
        hub = Hub("people/boat", {**files, "model.safetensors": b"x"}).start()
        try:
            env = {"HF_ENDPOINT": hub.url, "WHERRY_CACHE": str(tmp_path / "cache")}
            shown = wherry("show", "hf://people/boat", "--json", **env)
            planned = wherry("plan", "hf://people/boat", "--json", **env)
        finally:
            hub.stop()
        assert shown.returncode == planned.returncode == 0, shown.stderr + planned.stderr
        described = json.loads(shown.stdout)
        assert (described["name"], described["licence"]) == ("people/boat", "apache-2.0")
        assert json.loads(planned.stdout)["weights"] == described["memory"]["weights"]
        assert not list((tmp_path / "cache").rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("name", "text", "licence"),
    [
        ("README.md", "---\nlicense: mit\n---\n", "mit"),
        ("README.md", "---\nlicense: other\nlicense_name: boats-1\n---\n", "boats-1"),
        ("README.md", "# A boat\n", None),
        ("README.md", "---\n[\n---\n", None),
        ("LICENSE.txt", "\n  Boat Licence 2.0\n\nMore.", "Boat Licence 2.0"),
        ("other", "", None),
    ],
)
def test_licences(tmp_path, name, text, licence):
    (tmp_path / name).write_text(text)
    assert licence_of(tmp_path) == licence


@pytest.mark.cpu
def test_pull_makes_what_run_needs():
    done = wherry("pull", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{ensure_artifact('demo')}\n"
    source = here("pull", "demo", "--only-download").stdout.strip()
    assert (Path(source) / "model.safetensors").is_file()


@pytest.mark.cpu
def test_ps_lists_a_server_while_it_lives():
    folder = ensure_artifact("demo")
    assert "No server is running" in here("ps").stderr
    process = started("serve", str(folder), "--port", "0")
    try:
        for line in process.stderr:
            if b"Serving" in line:
                break
        url = line.decode().split()[-1].removesuffix("/v1")
        lines = [process.stderr.readline().decode().split(maxsplit=2) for _ in range(4)]
        assert [words[0] for words in lines] == ["chat", "model", "device", "memory"]
        assert lines[0][1:] == ["page", f"{url}/\n"] and "KV cache " in lines[3][-1]
        assert lines[1][1:] == ["demo,", "context of 1,024 tokens\n"]
        (server,) = json.loads(here("ps", "--json").stdout)
        assert (server["pid"], server["url"], server["models"]) == (process.pid, url, ["demo"])
        assert server["problem"] is None and server["memory"] > 50e6
        assert url in here("ps").stdout
        os.kill(process.pid, signal.SIGKILL)  # it cannot tidy up
        process.wait()
        assert list((settings.cache_dir() / "running").iterdir())
        assert json.loads(here("ps", "--json").stdout) == []
        assert not list((settings.cache_dir() / "running").iterdir())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_server_that_ends_takes_its_file_along(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path))
    with running.announced("http://127.0.0.1:1", "demo"):
        (server,) = running.servers()
        assert (server.url, server.model, server.pid) == ("http://127.0.0.1:1", "demo", os.getpid())
        done = here("ps")
        assert "127.0.0.1:1/v1 cannot be reached" in done.stdout and done.returncode == 0
    assert running.servers() == [] and list((tmp_path / "running").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch, caplog):
    (tmp_path / "running").write_text("in the way")
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path))
    with running.announced("http://127.0.0.1:1", "demo"):
        assert "will not find this server" in caplog.text
