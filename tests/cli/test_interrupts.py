"""Ctrl-C in every phase: one line, exit code 130, at once, and nothing half-made is left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import termios
import time
from pathlib import Path

import pytest

from wherry.base.temporary import leftovers
from wherry.compiler.api import ensure_artifact

from ..compiler.hub_stand_in import Hub
from ..support.command import cpu_seconds, interrupt, python, started, wait_for, wherry

# CPU time after the signal: what the wall has depends on who else is at work.
AT_ONCE = 1.0  # seconds


def ends_at_once(process):
    """Interrupt it; what it has written to stdout."""
    before = cpu_seconds(process)
    interrupt(process)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert usage.ru_utime + usage.ru_stime - before < AT_ONCE
    assert (process.returncode, process.stderr.read()) == (130, b"Interrupted.\n")
    return process.stdout.read()


def temporary_folders(cache):
    return [p for p in cache.rglob(".*") if p.is_dir()]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def sparse_llama(folder, vocab=1_000_000, d=128):
    """A checkpoint of zeros, that takes a while to convert and no room on disk."""
    folder.mkdir()
    config = {
        "model_type": "llama",
        "vocab_size": vocab,
        "hidden_size": d,
        "intermediate_size": d,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
    }
    (folder / "config.json").write_text(json.dumps(config))
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [vocab, d], "lm_head.weight": [vocab, d]}
    shapes |= {"model.norm.weight": [d]}
    shapes |= {f"{layer}{n}_layernorm.weight": [d] for n in ("input", "post_attention")}
    shapes |= {f"{layer}self_attn.{n}_proj.weight": [d, d] for n in "qkvo"}
    shapes |= {f"{layer}mlp.{n}_proj.weight": [d, d] for n in ("gate", "up", "down")}
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + end)
    return folder


@pytest.mark.parametrize("library", ["_multiarray_umath", "libtvm"])
def test_while_it_imports(cache, library):
    process = started("compile", "demo", WHERRY_CACHE=str(cache))
    maps = Path(f"/proc/{process.pid}/maps")
    wait_for(process, lambda: library in maps.read_text())
    assert ends_at_once(process) == b""


def test_while_it_downloads(cache):
    name = "model.safetensors"
    files = {"config.json": b"{}", "tokenizer.json": b"{}", name: b"x" * 1_000_000}
    hub = Hub("people/boat", files, large={name}).start()
    hub.breaks[name] = [500_000]
    hub.hangs = True
    try:
        process = started(
            "run", "hf://people/boat", "x", WHERRY_CACHE=str(cache), HF_ENDPOINT=hub.url
        )
        wait_for(process, lambda: list(cache.rglob(f".{name}.part")))
        assert ends_at_once(process) == b""
        assert [p.name for p in cache.rglob("*.part")] == [f".{name}.part"]  # to be continued
    finally:
        hub.stop()


def test_while_it_converts(cache, tmp_path):
    model = sparse_llama(tmp_path / "zeros")
    process = started("convert", str(model), WHERRY_CACHE=str(cache))
    wait_for(process, lambda: list(cache.rglob(".params_shard_*.partial")))
    assert ends_at_once(process) == b""


@pytest.mark.cpu
@pytest.mark.parametrize("phase", ["1_export", "5_lower", "7_link"])
@pytest.mark.by_day("5_lower")
def test_while_it_compiles(cache, tmp_path, phase):
    """After each of these phases, TVM or LLVM is at work for seconds."""
    out, dump = tmp_path / "out", tmp_path / "dump"
    arguments = ("compile", "demo", "-o", str(out), "--debug-dump", str(dump))
    process = started(*arguments, WHERRY_CACHE=str(cache))
    wait_for(process, (dump / f"{phase}.py").exists)
    assert leftovers(out)
    assert ends_at_once(process) == b""
    assert not out.exists() and leftovers(out) == []
    assert temporary_folders(cache) == []


@pytest.mark.cpu
def test_on_a_terminal_the_line_takes_the_place_of_the_bar(cache):
    controller, terminal = os.openpty()
    process = started("compile", "demo", stderr=terminal, WHERRY_CACHE=str(cache), TERM="xterm")
    os.close(terminal)
    seen = b""
    while b"Compiling" not in seen:
        seen += os.read(controller, 4096)
    interrupt(process)
    with contextlib.suppress(OSError):  # how the end of a terminal looks
        while piece := os.read(controller, 4096):
            seen += piece
    os.close(controller)
    assert process.wait() == 130
    assert b"\x1b[?25l" in seen  # the bar has hidden the cursor
    assert seen.endswith(b"\r\x1b[2K\x1b[?25hInterrupted.\r\n")


@pytest.fixture(scope="module")
def demo():
    return ensure_artifact("demo")


@pytest.mark.cpu
def test_while_it_loads(demo):
    """The core opens a file of packed weights to write; here that is a pipe without a reader."""
    assert wherry("run", str(demo), "--max-tokens", "1", "x").returncode == 0
    files = demo.parents[1].glob("packed/*/packed-*.bin")
    packed = max(files, key=lambda path: path.parent.stat().st_mtime_ns)  # of the last run
    packed.unlink()
    process = started("run", str(demo), "x")
    pipe = packed.with_name(f".{packed.name}.{process.pid}.0.tmp")
    os.mkfifo(pipe)
    try:
        wait_for(process, lambda: idle(process))
        assert ends_at_once(process) == b""
    finally:
        pipe.unlink()


def idle(process):
    before = cpu_seconds(process)
    time.sleep(1)
    return before > 0.1 and cpu_seconds(process) == before


class Narrow:
    """A process whose stdout takes one piece, of any size: an answer takes until it is read.

    A pipe would take a number of bytes, and of a piece that is longer nothing.
    """

    def __init__(self, *arguments):
        near, far = socket.socketpair()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least that there is
        far.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                far.send(b".")
        near.recv(1)
        far.setblocking(True)
        self.before = blocked(near)
        self.process = started(*arguments, stdout=far.fileno())
        self.process.stdout = near.makefile("rb")
        far.close()

    def waits(self):
        """Whether it has begun to write, and cannot go on."""
        return blocked(self.process.stdout) > self.before and idle(self.process)


def blocked(pipe):
    """Bytes that have not been read."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


@pytest.mark.cpu
def test_while_it_answers(demo):
    narrow = Narrow("run", str(demo), "--temperature", "0", "Tell me a story about a fox.")
    wait_for(narrow.process, narrow.waits)
    assert len(ends_at_once(narrow.process)) > narrow.before


@pytest.mark.cpu
def test_in_a_chat_it_stops_the_answer_alone(demo):
    narrow = Narrow("chat", str(demo), "--temperature", "0")
    process = narrow.process
    process.stdin.write(b"Tell me a story about a fox.\n")
    process.stdin.flush()
    wait_for(process, narrow.waits)
    interrupt(process)
    out, err = process.communicate(b"What is 2 plus 3?\n", timeout=60)
    assert process.returncode == 0, err
    assert b" [stopped]" in err and b"Traceback" not in err
    assert b"5" in out


@pytest.mark.cpu
def test_a_server_drains(demo):
    process = started("serve", str(demo), "--port", "0")
    for line in process.stderr:
        if b"Serving" in line:
            break
    interrupt(process)
    assert process.wait(timeout=60) == 0


def test_a_process_of_the_background_keeps_ignoring_it():
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "from wherry.cli import interrupts; interrupts.exit_at_once();"
        "signal.raise_signal(signal.SIGINT); print('goes on')"
    )
    assert python(script) == "goes on\n"
