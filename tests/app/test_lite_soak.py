"""wherry-lite at length: many clients that leave when they like, OpenAI's client, 64-bit Arm."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact

from ..support.command import wherry
from .answers import fixed
from .lite import Server, cache, command
from .request_cases import ASK, GREEDY

pytestmark = pytest.mark.nightly
CLIENTS, REQUESTS, WARM_UP = 32, 200, 20
GROWTH = 1.05  # of resident memory after the warm-up
WORDS = "fox spider moon river cat bread seven night story king".split()
SYSROOT = "/usr/aarch64-linux-gnu"


def a_request(rng: random.Random) -> tuple[str, dict]:
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 60)))
    fields = {"seed": rng.randint(0, 99), "max_tokens": rng.randint(1, 48)}
    fields |= {"stream": rng.random() < 0.5, "n": rng.choice([1, 1, 1, 3])}
    if rng.random() < 0.05:
        fields["temperature"] = 9
    if rng.random() < 0.6:
        return "/v1/chat/completions", fields | {"messages": [{"role": "user", "content": text}]}
    return "/v1/completions", fields | {"prompt": [text, "once"], "logprobs": 1}


class Client(threading.Thread):
    """Sends its requests, and treats each answer in a way of its own."""

    def __init__(self, server: Server, seed: int, count: int, outcomes: Counter) -> None:
        super().__init__(daemon=True)
        self._server, self._rng = server, random.Random(seed)
        self._count, self._outcomes = count, outcomes
        self.problems: list[str] = []

    def run(self) -> None:
        connection = self._server.connection()
        for _ in range(self._count):
            try:
                stays, outcome = self._send(connection)
            except (http.client.HTTPException, OSError) as e:
                self.problems.append(repr(e))
                stays = False
                outcome = "failed"
            self._outcomes[outcome] += 1
            if not stays:
                connection.close()
                connection = self._server.connection()
        connection.close()

    def _send(self, connection: http.client.HTTPConnection) -> tuple[bool, str]:
        path, fields = a_request(self._rng)
        manner = self._rng.choices(["read", "leave", "leave in the middle"], [6, 2, 2])[0]
        body = json.dumps(fields).encode()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        if manner == "leave":
            return False, manner
        answer = connection.getresponse()
        if manner == "leave in the middle":
            answer.read(self._rng.randint(1, 400))
            return False, manner
        text = answer.read()
        if answer.status >= 500 or (fields["stream"] and answer.status == 200) != (
            b"[DONE]" in text[-20:]
        ):
            self.problems.append(f"{answer.status} {text[-200:]!r}")
        return not answer.will_close, f"read: {answer.status}"


def send(server: Server, count: int, seed: int) -> Counter:
    outcomes: Counter = Counter()
    clients = [Client(server, seed * CLIENTS + i, count, outcomes) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(900)
        assert not client.is_alive(), "a request is stuck"
        assert not client.problems, client.problems[:10]
    return outcomes


def fill_the_cache(server: Server) -> None:
    """Touch the memory of all pages: the system counts it from then on."""
    rng = random.Random(7)
    for _ in range(300):
        stats = server.stats()
        if stats["pages_cached"] > 0.95 * stats["pages_total"]:
            return
        prompt = " ".join(rng.choices(WORDS, k=300))
        status, _, _ = server.ask("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1})
        assert status == 200
    raise AssertionError(server.stats())


def resident(server: Server) -> int:
    """Bytes."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


@pytest.mark.cpu
def test_memory_is_flat_and_all_pages_come_back(tmp_path):
    folder = Path(ensure_artifact("demo", target="cpu"))
    with cache(tmp_path), Server(command("serve", folder, "--quiet"), tmp_path) as server:
        fill_the_cache(server)
        send(server, WARM_UP, seed=0)
        server.wait_until_idle()
        before = resident(server)
        outcomes = send(server, REQUESTS, seed=1)
        server.wait_until_idle()
        after = resident(server)
        print(dict(outcomes), f"{before / 1e6:.1f} MB -> {after / 1e6:.1f} MB")
        assert outcomes["read: 200"] > CLIENTS * REQUESTS / 3
        assert after < before * GROWTH
        threads = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
        assert server.end() == 0
        assert threads < 160


@pytest.mark.cpu
def test_openai_s_client(tmp_path):
    openai = pytest.importorskip("openai")
    folder = Path(ensure_artifact("demo", target="cpu"))
    with (
        cache(tmp_path),
        Server(command("serve", folder, "--api-key", "k" * 20), tmp_path) as server,
    ):
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k" * 20)
        complete = client.chat.completions.create(model="demo", messages=ASK, **GREEDY)
        chunks = client.chat.completions.create(model="demo", messages=ASK, stream=True, **GREEDY)
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert text == complete.choices[0].message.content
        assert [m.id for m in client.models.list()] == ["demo"]
        with pytest.raises(openai.BadRequestError):
            client.completions.create(model="demo", prompt="x", temperature=9)
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="gpt-4", prompt="x")


@pytest.mark.aarch64
def test_a_package_for_a_board_chats_and_serves(tmp_path):
    """The program with the model linked in, under an emulator, says what it says here."""
    if shutil.which("qemu-aarch64") is None or shutil.which("aarch64-linux-gnu-g++") is None:
        if os.environ.get("CI"):
            pytest.fail("no qemu-aarch64, or no aarch64-linux-gnu-g++")
        pytest.skip("apt install g++-aarch64-linux-gnu qemu-user")
    out = tmp_path / "out"
    targets = ("--target", "linux-aarch64", "--target", "linux-x86_64")
    done = wherry("package", "demo", *targets, "-o", str(out), timeout=1800)
    assert done.returncode == 0, done.stderr
    index = json.loads((out / "wherry-package.json").read_text())
    programs = {entry["platform"]: out / entry["path"] for entry in index["programs"]}
    assert {p.relative_to(out).as_posix() for p in programs.values()} == {
        "bin/linux-aarch64/wherry-lite",
        "bin/linux-x86_64/wherry-lite",
    }
    emulated = ["qemu-aarch64", "-L", SYSROOT, str(programs["linux-aarch64"])]
    said, answers = [], []
    with cache(tmp_path):
        for program in (emulated, [str(programs["linux-x86_64"])]):
            words = ["run", str(out / "assets/demo"), "Tell me a story.", "--temperature", "0"]
            done = subprocess.run(
                [*program, *words, "--max-tokens", "24"],
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            said.append(done.stdout)
            with Server([*program, "serve", str(out / "assets/demo")], tmp_path) as server:
                answers.append(
                    server.ask("POST", "/v1/chat/completions", {"messages": ASK, **GREEDY})
                )
    assert said[0] == said[1] and len(said[0].split()) > 4
    assert fixed(answers[0][1]) == fixed(answers[1][1]) and answers[0][0] == 200
