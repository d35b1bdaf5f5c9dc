"""What the tests of kernels share: a compiler of single PrimFuncs, random batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.artifact import cpu_features
from wherry.targets.kernels.cpu import Isa, isa_from_features

MACHINES = {
    "avx512vnni": ("cascadelake", Isa(lanes=16, registers=32, fma=True, dot="vnni512")),
    "avx2": ("haswell", Isa(lanes=8, registers=16, fma=True)),
    "sse2": ("x86-64", Isa(lanes=4, registers=16, fma=False)),
}
NEEDS = {"avx512vnni": {"avx512_vnni"}, "avx2": {"avx2", "fma"}, "sse2": {"sse2"}}


@dataclass(frozen=True)
class Machine:
    """A CPU to generate for, and to run on if this one can."""

    isa: Isa
    target: Target

    def build(self, func: PrimFunc) -> Callable[..., list[np.ndarray]]:
        """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
        module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
        kernel = tvm.compile(module, target=self.target)["kernel"]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            tensors = [tvm.runtime.tensor(a) for a in arrays]
            kernel(*tensors)
            return [t.numpy() for t in tensors]

        return call


def machine(name: str) -> Machine:
    missing = NEEDS[name] - cpu_features()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    cpu, isa = MACHINES[name]
    return Machine(isa, Target({"kind": "llvm", "mcpu": cpu}))


@pytest.fixture(params=list(MACHINES))
def any_machine(request: pytest.FixtureRequest) -> Machine:
    """Each instruction set that this CPU runs."""
    return machine(request.param)


@pytest.fixture
def here() -> Machine:
    """This CPU, with all it has."""
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    return Machine(isa_from_features(cpu_features()), Target({"kind": "llvm", "mcpu": cpu}))


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
