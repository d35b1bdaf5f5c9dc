"""Decode steps as CUDA graphs, and launched before the last one was read: a whole model on the
emulated device, whose driver captures them.

Tokens and logarithms have the bits of a run without either, whatever joins, leaves or goes wrong.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from benchmarks.gpu.record import record_models

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import CoreStats, Finish, Records, SamplingParams
from wherry.runtime.core.native import NativeCore, events_of
from wherry.runtime.load.loading import native_core
from wherry.targets.toolchains import cuda as cuda_toolchain

from ..support import cuda
from .test_cuda import nvcc as nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # a minute

MODEL = ("llama-tied", "q4f16_1")
ALLOCATE = "vm.builtin.alloc_storage"
POOL = tvm_ffi.get_global_func(ALLOCATE)  # before the core has put its own in the place
# Requests as (step at which it comes, prompt, answer): up to four at a time, whose tables grow
# from one size of graphs to the next.
REQUESTS = ((0, 61, 40), (4, 9, 12), (5, 62, 30), (8, 61, 9), (22, 30, 14), (24, 47, 9))
GREEDY = SamplingParams(temperature=0)
FULL_ROWS = SamplingParams(temperature=0, bias={7: 0.0})  # reads rows, and changes nothing
PARAMS = {  # a request that needs whole rows, and one whose tokens are sampled
    4: SamplingParams(temperature=0, top_logprobs=2),
    2: SamplingParams(temperature=0.9, top_k=5, seed=3),
}
NO_COPIES = "host memory"  # a fault: without what steps ahead are read by, there are none
Tokens = dict[int, list[tuple[int, float]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, nvcc) -> Iterator[Path]:
    """The compiled model; the device is there."""
    place = tmp_path_factory.mktemp("graphs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_toolchain, "compile_cuda", lambda code, codes, nvcc: code)
        patch.setenv("WHERRY_CACHE", str(place / "cache"))
        patch.setattr("wherry.runtime.load.loading.open_runtime", lambda kind: None)
        record_models(place, "cuda:sm_80", [MODEL[0]], MODEL[1])
        cuda.device()
        with cuda.loaded_by_emulator():
            yield place / "-".join(MODEL) / "model"


@pytest.fixture
def driver(folder) -> Iterator[Driver]:
    """The emulated driver; nothing of graphs is left after a test."""
    emulated = Driver()
    yield emulated
    emulated.fault("")
    emulated.late(False)
    assert emulated.counts()[1:4:2] == (0, 0), "graphs, streams, events or memory are left"


class Driver:
    """The further functions of driver.cc, which a real driver does not have."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(cuda.folder() / "libcuda_device.so"))

    def fault(self, name: str) -> None:
        """See driver.cc."""
        self.library.emulated_cuda_fault(name.encode())

    def late(self, late: bool) -> None:
        """Whether the device executes calls at a synchronization, or at once."""
        self.library.emulated_cuda_late(int(late))

    def counts(self) -> tuple[int, ...]:
        """Graphs that were played, that there are; kernels that were captured; other handles;
        how often a copy of the run time's made the host wait.
        """
        counts = (ctypes.c_uint64 * 5)()
        self.library.emulated_cuda_counts(counts)
        return tuple(counts)


def answers(
    folder: Path,
    graphs: bool,
    between: Any = lambda: None,
    run: Callable[[Callable[[], None]], None] = lambda call: call(),
    only: Sequence[int] = range(len(REQUESTS)),
    params: dict[int, SamplingParams] = PARAMS,
) -> tuple[Tokens, CoreStats]:
    """Tokens of `only` these `REQUESTS` with their logarithms; `between` is called after each step,
    which `run` makes.
    """
    config = {"context": 128, "max_batch": 4, "prefill_chunk": 64, "prefix_cache": False}
    config["max_slowdown"] = 1e6  # a row costs much here: prompts would come token by token
    options = {"cuda_graphs": int(graphs)}
    core = native_core(folder, read_manifest(folder), "cuda:0", options, config)
    assert isinstance(core, NativeCore)
    tokens: Tokens = {i: [] for i in only}
    count = ctypes.c_size_t()
    step, left = 0, len(only)
    while left:
        for i, (at, prompt, answer) in enumerate(REQUESTS):
            if at == step and i in only:
                ids = [(7 * i + 3 * k + k * k) % 320 for k in range(prompt)]
                core.add(i, ids, replace(params.get(i, GREEDY), max_tokens=answer))
        room = core._engine, core._events, 64, ctypes.byref(count)
        run(lambda room=room: core._call("wherry_engine_step", *room))
        for event in events_of(Records(core._events, count.value, b"")):
            assert event.finish != Finish.ERROR
            if event.token >= 0:
                tokens[event.id].append((event.token, event.logprob))
            left -= event.finish != 0
        between()
        step += 1
    stats = core.stats()
    core.close()
    return tokens, stats


@pytest.fixture(scope="module")
def expected(folder) -> Tokens:
    """Without graphs, one step after the other."""
    driver = Driver()
    driver.fault(NO_COPIES)
    try:
        tokens, stats = answers(folder, graphs=False)
    finally:
        driver.fault("")
    assert stats.graph_steps == 0 and not stats.graphs_given_up
    assert stats.chained_steps == 0
    assert "cuMemHostAlloc failed with CUDA_ERROR_OUT_OF_MEMORY" in stats.chains_given_up
    assert [len(v) for v in tokens.values()] == [answer for _, _, answer in REQUESTS]
    return tokens


def test_steps_are_played(folder, expected, driver):
    """Most of them, and the tokens are the same while TVM's pool is emptied at each step."""
    driver.fault(NO_COPIES)
    empty = tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")
    graphs: list[int] = []

    def between() -> None:
        empty()
        graphs.append(driver.counts()[1])

    tokens, stats = answers(folder, graphs=True, between=between)
    assert tokens == expected
    assert stats.graphs_given_up == ""
    assert stats.graph_steps > 0.4 * stats.steps, stats
    assert driver.counts()[0] > stats.graph_steps  # each is compared before it counts
    assert max(graphs) >= 4  # of several numbers of rows and pages


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("graphs", [True, False])
def test_steps_that_are_launched_ahead(folder, expected, driver, graphs, late):
    """Each of two has its own memory and graphs; the device draws the tokens of the next one.

    A late device reads and writes the host's memory when the host waits.
    """
    driver.late(late)
    waits: list[int] = []
    tokens, stats = answers(folder, graphs=graphs, between=lambda: waits.append(driver.counts()[4]))
    assert tokens == expected
    compared = waits[-1] - waits[0]
    assert compared == 0 if not (graphs and late) else compared > 0  # the run time's copies wait
    assert (stats.graphs_given_up, stats.chains_given_up) == ("", "")
    assert stats.chained_steps > 0.4 * stats.steps, stats
    assert (stats.graph_steps > 0) == graphs, stats


def test_steps_of_any_thread(folder, expected, driver):
    """What the last one has made its own, the next one has not: a driver's context."""

    def apart(call: Callable[[], None]) -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    driver.late(True)
    tokens, stats = answers(folder, graphs=True, run=apart)
    assert tokens == expected
    assert (stats.graphs_given_up, stats.chains_given_up) == ("", "")
    assert stats.chained_steps > 0 and stats.graph_steps > 0, stats
    # Nor has it one by a copy of tokens between two steps, where whole rows are read.
    tokens, stats = answers(folder, graphs=True, run=apart, only=[1], params={1: FULL_ROWS})
    assert [token for token, _ in tokens[1]] == [token for token, _ in expected[1]]
    assert (stats.graphs_given_up, stats.chained_steps) == ("", 0)
    assert stats.graph_steps > 0, stats


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("event", "cuEventCreate failed"),
        ("upload", "cuMemcpyHtoDAsync failed"),
        ("readback", "cuMemcpyDtoHAsync failed"),
        ("record", "cuEventRecord failed"),
        ("wait", "cuEventSynchronize failed"),
    ],
)
def test_copies_that_go_wrong_cost_no_token(folder, expected, driver, fault, words):
    """From the start, or while two steps are under way: then no step is launched ahead."""
    for first in (0, 12):
        driver.late(True)
        driver.fault(fault if first == 0 else "")
        steps = iter(range(1000))

        def between(steps: Iterator[int] = steps, first: int = first) -> None:
            driver.fault(fault if next(steps) >= first else "")

        tokens, stats = answers(folder, graphs=True, between=between, only=[1])
        assert tokens[1] == expected[1]
        if fault == "event" and first > 0:  # they are made once
            assert stats.chains_given_up == ""
            continue
        assert f"{words} with CUDA_ERROR_OUT_OF_MEMORY" in stats.chains_given_up
        assert bool(stats.chained_steps) == (first > 0)
        assert stats.graph_steps > 0 and stats.graphs_given_up == ""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("begin", "cuStreamBeginCapture failed with CUDA_ERROR_OUT_OF_MEMORY"),
        ("capture", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        ("instantiate", "cuGraphInstantiateWithFlags failed with CUDA_ERROR_OUT_OF_MEMORY"),
        ("launch", "cuGraphLaunch failed with CUDA_ERROR_OUT_OF_MEMORY"),
        ("baked", "gave other bits"),
    ],
)
def test_what_goes_wrong_costs_no_token(folder, expected, driver, fault, words):
    """The step is launched kernel by kernel, and so are all that follow."""
    driver.fault(fault)
    tokens, stats = answers(folder, graphs=True)
    assert tokens == expected
    assert words in stats.graphs_given_up
    assert stats.graph_steps == 0


def test_a_driver_that_fails_later(folder, expected, driver):
    """A graph that was compared and played before."""
    driver.fault(NO_COPIES)  # so it is played sooner
    steps = iter(range(1000))
    tokens, stats = answers(
        folder, graphs=True, between=lambda: driver.fault("launch" if next(steps) > 20 else "")
    )
    assert tokens == expected
    assert stats.graph_steps > 0 and "cuGraphLaunch" in stats.graphs_given_up


def test_memory_that_others_get_is_noticed(folder, expected, driver):
    """Graphs whose memory is not kept for them, by a mistake made on purpose."""
    answers(folder, graphs=True)  # the core has put its function in the place of the pool's
    driver.fault(NO_COPIES)  # one graph a size, not another one for steps ahead
    allocate = tvm_ffi.get_global_func(ALLOCATE)

    calls = iter(range(10**6))

    def forgetful(*arguments: Any) -> Any:
        allocate(*arguments)
        # At first the pool gets more than is asked for: while a stream is captured it has enough.
        blocks = [POOL(*arguments) for _ in range(8 if next(calls) < 30 else 1)]
        return blocks[0]

    tvm_ffi.register_global_func(ALLOCATE, forgetful, override=True)
    try:
        empty = tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")
        tokens, stats = answers(
            folder,
            graphs=True,
            between=lambda: driver.counts()[1] and empty(),
            only=[1],  # of one size: the capture of a second one would find an empty pool
        )
    finally:
        tvm_ffi.register_global_func(ALLOCATE, allocate, override=True)
    assert tokens == {1: expected[1]}
    assert "memory that was freed" in stats.graphs_given_up
