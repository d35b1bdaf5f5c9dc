"""What the tests of kernels share: a compiler of single PrimFuncs, random batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.compiler.library.build import code_generation
from wherry.machine.cpu import cpu_features
from wherry.targets.kernels.cpu import Isa, isa_from_features
from wherry.targets.target import find

from ..support.builders import KINDS, Build, builder

AVX512 = Isa(lanes=16, registers=32, fma=True)
AVX2 = Isa(lanes=8, registers=16, fma=True)
SSE = Isa(lanes=4, registers=16, fma=False)
# LLVM's CPU, what kernels are generated for, what this CPU must have to run them.
MACHINES = {
    "avx512vnni": ("cascadelake", replace(AVX512, dot="vnni512"), {"avx512_vnni"}),
    "avx512vbmi": (
        "icelake-server",
        replace(AVX512, dot="vnni512", vbmi=True),
        {"avx512_vnni", "avx512vbmi"},
    ),
    "avx512": ("skylake-avx512", replace(AVX512, dot="avx2"), {"avx512bw", "avx512vl"}),
    # 256-bit vectors of AVX512-VNNI: the intrinsic is the one of AVX-VNNI.
    "avxvnni": ("cascadelake", replace(AVX2, dot="avxvnni"), {"avx512_vnni", "avx512vl"}),
    "avx2": ("haswell", replace(AVX2, dot="avx2"), {"avx2", "fma"}),
    "avx512float": ("skylake-avx512", AVX512, {"avx512bw", "avx512vl"}),
    "avx2float": ("haswell", AVX2, {"avx2", "fma"}),
    "ssse3": ("x86-64-v2", replace(SSE, dot="ssse3"), {"ssse3", "sse4_1"}),
    "sse2": ("x86-64", SSE, {"sse2"}),
}
FAMILIES = ("avx512vnni", "avx2", "sse2")  # that differ in every kernel


@dataclass(frozen=True)
class Machine:
    """A CPU to generate for, and to run on if this one can."""

    isa: Isa
    target: Target

    def build(self, func: PrimFunc) -> Callable[..., list[np.ndarray]]:
        """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
        module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
        with code_generation(self.target):
            kernel = tvm.compile(module, target=self.target)["kernel"]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            tensors = [tvm.runtime.tensor(a) for a in arrays]
            kernel(*tensors)
            return [t.numpy() for t in tensors]

        return call


def machine(name: str) -> Machine:
    cpu, isa, needs = MACHINES[name]
    if missing := needs - cpu_features():
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    return Machine(isa, Target({"kind": "llvm", "mcpu": cpu}))


NIGHTLY = ("sse2",)  # every wasm kernel has its four lanes, and runs by day


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """By day each case runs on one device or instruction set, the next case on the next one.

    What compiles for them is the same kernel; the nightly tests run each case on all, and all are
    recorded for another machine.
    """
    if config.getoption("--record-kernels"):
        return
    runs = [m for m in FAMILIES if m not in NIGHTLY and MACHINES[m][2] <= cpu_features()]
    by_day = {"build": list(KINDS), "any_machine": runs or list(FAMILIES)}
    turns: dict[str, dict[Any, int]] = {fixture: {} for fixture in by_day}
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        for fixture in [fixture for fixture in by_day if fixture in params]:
            place = params.pop(fixture)
            case = (item.nodeid.partition("[")[0], *map(repr, params.items()))
            turn = turns[fixture].setdefault(case, len(turns[fixture]))
            if place != by_day[fixture][turn % len(by_day[fixture])]:
                item.add_marker(pytest.mark.nightly)


@pytest.fixture(params=FAMILIES)
def any_machine(request: pytest.FixtureRequest) -> Machine:
    """Each instruction set that this CPU runs."""
    return machine(request.param)


@pytest.fixture(params=[m for m in MACHINES if m not in FAMILIES])
def more_machines(request: pytest.FixtureRequest) -> Machine:
    """Instruction sets whose 4-bit linear is of their own."""
    return machine(request.param)


@pytest.fixture
def int8_machines() -> list[Machine]:
    """Those that this CPU runs, with int8 dot products and FMA."""
    kinds = [k for k, (_, isa, _) in MACHINES.items() if isa.dot != "none" and isa.fma]
    runs = [k for k in kinds if MACHINES[k][2] <= cpu_features()]
    if len(runs) < 2:
        pytest.skip(f"this CPU runs {runs or 'none'} of {kinds}: nothing to compare")
    return [machine(k) for k in runs]


@pytest.fixture
def here() -> Machine:
    """This CPU, with all it has."""
    preset = find("cpu")  # LLVM's guess of the model may have what a hypervisor hides
    return Machine(isa_from_features(preset.features), Target(dict(preset.device)))


@dataclass(frozen=True)
class Batch:
    """The int32 arguments of a step; sequences own pages that are scattered."""

    positions: np.ndarray
    sequences: np.ndarray
    query_indptr: np.ndarray
    page_indptr: np.ndarray
    page_ids: np.ndarray

    @classmethod
    def of(cls, rows: list[tuple[int, int, list[int]]]) -> Batch:
        """Sequences as (first position, rows, pages)."""
        counts = [n for _, n, _ in rows]
        return cls(
            np.concatenate([np.arange(p, p + n) for p, n, _ in rows]).astype("int32"),
            np.repeat(np.arange(len(rows)), counts).astype("int32"),
            np.cumsum([0, *counts]).astype("int32"),
            np.cumsum([0, *(len(pages) for *_, pages in rows)]).astype("int32"),
            np.array([i for *_, pages in rows for i in pages], "int32"),
        )


@pytest.fixture
def make_batch() -> Callable[[list[tuple[int, int, list[int]]]], Batch]:
    return Batch.of


@pytest.fixture(scope="module", params=KINDS)
def build(request: pytest.FixtureRequest) -> Build:
    """Compiles a kernel for each kind of devices."""
    return builder(request.param)
