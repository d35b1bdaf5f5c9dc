"""Toolchains in two threads: what each changes of the process is as it was when both are done."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

import pytest
import tvm_ffi

from wherry.targets.target import find
from wherry.targets.toolchains.stderr_filter import without_lines
from wherry.targets.toolchains.toolchain import require

from ..support.gpu import device

pytestmark = pytest.mark.cpu
GLOBALS = (
    "codegen.codegen_blob",
    "target.build.rocm",
    "target.build.vulkan",
    "tvm_callback_rocm_link",
)
PAIRS = [
    ("cuda", "cuda"),
    ("rocm:gfx1100", "rocm:gfx1100"),
    ("vulkan", "vulkan"),
    ("cuda", "vulkan"),
]


def state():
    functions = [tvm_ffi.get_global_func(name, allow_missing=True) for name in GLOBALS]
    return [f and f.__chandle__() for f in functions], os.environ.get("TVM_COMPILE_FORCE_FALLBACK")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_threads_restore_what_was_set(pair):
    """The second comes while the first is inside, and stays when it has left."""
    toolchains = [find(name).toolchain for name in pair]
    for name, toolchain in zip(pair, toolchains, strict=True):
        if name == "vulkan":
            device(name)  # or a skip
        elif name != "cuda":
            try:
                require(name, toolchain.requirements())
            except Exception as e:
                pytest.skip(str(e))
    before = state()
    inside, entered, leave = threading.Event(), threading.Event(), threading.Event()

    def second():
        inside.wait()
        with toolchains[1].active():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=second)
    thread.start()
    with ExitStack() as stack:
        stack.enter_context(toolchains[0].active())
        assert state() != before
        inside.set()
        assert not entered.wait(0.3)  # it waits for its turn
    assert entered.wait(60)
    leave.set()
    thread.join()
    assert state() == before


def test_a_thread_may_enter_twice():
    before = state()
    toolchain = find("cuda").toolchain
    with toolchain.active(), toolchain.active():
        pass
    assert state() == before


def test_other_lines_reach_stderr(capfd):
    with without_lines("raw|noise"):
        os.write(2, b"[1] raw\nkept\n50%")
        os.write(2, b"\r100%\n[2] noi")
        os.write(2, b"se\n[3] also kept\n[4] raw")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "kept\n50%\r100%\n[3] also kept\nafter\n"
