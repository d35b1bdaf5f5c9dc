"""Thousands of tokens a second, of a model that costs nothing, and what others see of them."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import quantiles

import pytest

from wherry.runtime.text.tokenizer import Tokenizer

from ...support import scripted_model as scripted
from .. import small_tokenizers
from ..conftest import TEMPLATE
from ..served import served

SERVE = """
from wherry.runtime import serve
serve({folder!r}, port=0, max_queue=1024, kv_tokens=32 * 2048, threads=1,
      model_name="m", on_ready=lambda url: print(url, flush=True))
"""
# Sends the requests of its standard input at once, each as often as it says, and counts bytes.
ASK = """
import asyncio, json, sys

async def ask(host, port, path, body):
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST {path} HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Type: application/json\\r\\n"
    head += f"Content-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n"
    writer.write(head.encode() + body)
    first, size, tail = b"", 0, b""
    while piece := await reader.read(2**18):
        first, tail = first or piece[:12], (tail + piece)[-100:]
        size += len(piece)
    writer.close()
    assert first == b"HTTP/1.1 200", first + tail
    return size

async def main():
    host, port, requests = json.load(sys.stdin)
    asked = [ask(host, port, path, json.dumps(body).encode())
             for path, body, times in requests for _ in range(times)]
    print(sum(await asyncio.gather(*asked)))

asyncio.run(main())
"""
PAUSE = 6000  # microseconds a step: 32 sequences have 5,000 tokens a second
CHAT = "/v1/chat/completions"
TOKENS = 1500
SAID = {"messages": [{"role": "user", "content": "go"}], "max_tokens": TOKENS, "ignore_eos": True}
TOP = {"logprobs": True, "top_logprobs": 20}
MIXES = {  # path, body, how many at once
    "streams": [(CHAT, {**SAID, "stream": True}, 32)],
    "streams with logprobs": [(CHAT, {**SAID, **TOP, "stream": True, "max_tokens": 400}, 32)],
    "all sorts": [
        (CHAT, {**SAID, "stream": True}, 16),
        (CHAT, {**SAID, **TOP, "stream": True, "max_tokens": 300}, 8),
        (CHAT, {**SAID, **TOP, "max_tokens": 500}, 4),
        ("/v1/completions", {"prompt": "a b c " * 300, "max_tokens": 16, "prompt_logprobs": 20}, 8),
        ("/v1/messages", {**SAID, "stream": True}, 4),
    ],
    "many choices": [(CHAT, {**SAID, **TOP, "n": 128, "max_tokens": 200}, 1)],
    "long bad words": [
        (CHAT, {**SAID, "n": 64, "max_tokens": 50, "bad_words": ["wo rd" * 12] * 1000}, 4)
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripted")
    backend = small_tokenizers.byte_level()
    tokenizer = Tokenizer(backend, {"eos_token": "</s>"})
    library = scripted.build(folder / "model.so", "m", PAUSE)
    scripted_text = scripted.ScriptedText(
        tokenizer=backend,
        template=TEMPLATE,
        special={"eos_token": "</s>"},
        eos=tokenizer.eos_ids[0],
        said=tokenizer.encode("one two three " * 1000)[:3000],
        prompt=1,
        max_batch=32,
    )
    model_folder = scripted.write(folder / "m", library, "m", scripted_text)
    with served(folder, script=SERVE.format(folder=str(model_folder))) as server:
        yield server


def ask(server, requests) -> int:
    """Bytes of all answers."""
    message = json.dumps([server.host, server.port, requests])
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=message, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """The latency of an idle server, which depends on this machine alone."""
    with served(tmp_path_factory.mktemp("idle")) as server:
        yield server


@pytest.mark.nightly
@pytest.mark.parametrize("mix", MIXES)
def test_others_are_answered_at_once(server, idle, mix):
    """The bar: 99 of 100 within 50 ms, all within half a second, beyond what the machine takes."""
    before, waits_of_runs = server.peak, []
    for _ in range(3):
        waits: list[float] = []
        own = idle.waits(lambda w=waits: w.extend(server.waits(lambda: ask(server, MIXES[mix]))))
        p99, idle_p99 = (quantiles(times, n=100)[98] for times in (waits, own))
        waits_of_runs.append((p99, max(waits), idle_p99, max(own)))
        if p99 <= 0.05 + 2 * idle_p99 and max(waits) <= 0.5 + 2 * max(own):
            break
    else:
        pytest.fail(f"p99 and worst, and those of an idle server, of three runs: {waits_of_runs}")
    print(mix, waits_of_runs[-1])
    assert server.peak - before < 400 * 2**20


@pytest.mark.nightly
def test_five_thousand_tokens_a_second(server):
    """Of one core's time: the machine may have others for the model, and for the clients."""
    load = MIXES["streams"]
    ask(server, load)
    best = 0.0
    for _ in range(3):
        begin = server.cpu_seconds
        ask(server, load)
        best = max(best, 32 * TOKENS / (server.cpu_seconds - begin))
    assert best >= 5000
