"""Measures each kernel's share of this CPU's peak and bandwidth: `benchmarks.cpu --roofline`.

Kernels have the sizes of Llama 3.2 1B. Weights, pages and activations come from memory: calls go
through copies that no cache holds together. The bandwidth is that of reads (bandwidth.py), and a
store also reads its cache line, so kernels that store as much as they read end at two thirds of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.tirx import PrimFunc

from wherry.ops import (
    AttentionSpec,
    EmbeddingSpec,
    LinearSpec,
    RMSNormSpec,
    SwiGLUSpec,
)
from wherry.targets.kernels.cpu import CpuKernels, isa_from_features
from wherry.targets.kernels.cpu.bf16_linear import LEAST
from wherry.targets.target import TargetPreset, find

from .bandwidth import read_bandwidth
from .busy import busy_cores, warning
from .peaks import compiled, peak
from .rows import machine, versions, write_row

SHAPE = "llama-3.2-1b"
HIDDEN, FFN, HEADS, KV_HEADS, HEAD, VOCAB = 2048, 8192, 32, 8, 64, 128256
PAGE = 16  # tokens
MEMORY = 1 << 28  # bytes of the copies that calls go through
SECONDS, LEAST_CALLS = 0.6, 4  # of a kernel's measurement
BATCHES = (1, 8, 16, 32, 64, 512)  # rows of linears
SCHEMES = {"q4": "q4f16_1", "q8": "q8f16_1", "f16": "q0f16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel with arguments."""

    name: str
    quant: str
    rows: int
    unit: str  # of `peaks.UNITS`: what it multiplies by; "": it moves data
    bytes: int  # read and written by a call
    operations: int
    calls: list[Callable[[], None]]  # the same work on different copies


def measured(case: Case, peaks: dict[str, float], bandwidth: float) -> dict[str, Any]:
    """Return what a row says of a case; its time is the 20th percentile of its calls'."""
    case.calls[0]()
    times: list[float] = []
    for call in cycle(case.calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if len(times) >= LEAST_CALLS and sum(times) > SECONDS:
            break
    seconds = float(np.quantile(times, 0.2))
    of_peak = case.operations / seconds / peaks[case.unit] if case.unit else None
    return {
        "kernel": case.name,
        "quant": case.quant,
        "rows": case.rows,
        "unit": case.unit,
        "seconds": seconds,
        "share_of_peak": of_peak,
        "share_of_bandwidth": case.bytes / seconds / bandwidth,
    }


class Machine:
    """This CPU: its kernels, compiled and given random arguments."""

    def __init__(self) -> None:
        self.preset = find("cpu")
        self.bf16 = self.preset.bf16
        self.kernels = _kernels(self.preset)
        self.unit = "float32" if self.kernels.isa.dot == "none" else "int8"
        self.rng = np.random.default_rng(0)

    @property
    def units(self) -> list[str]:
        """Return the units that the kernels use."""
        names = dict.fromkeys(("float32", self.unit))
        return [*names, "bf16"] if self.bf16 else [*names]

    def peaks(self) -> dict[str, float]:
        """Return operations per second by unit."""
        preset = self.bf16 or self.preset
        return {name: peak(name, _kernels(preset).isa, preset.device) for name in self.units}

    def cases(self) -> Iterator[Case]:
        """Yield all cases; each has its arguments while it is measured."""
        for scheme in SCHEMES:
            for n, k in ((2 * FFN, HIDDEN), (HIDDEN, FFN)):
                yield from self.linear(scheme, n, k, self.preset, BATCHES)
                if self.bf16:
                    many = tuple(m for m in BATCHES if m >= LEAST)
                    yield from self.linear(scheme, n, k, self.bf16, many)
        for context in (1024, 8192):
            yield self.attention(1, context)
        for rows in (512, 2048):
            yield self.attention(rows, rows)
            if self.bf16:
                yield self.attention(rows, rows, self.bf16)
        yield from self.others()

    def linear(
        self, scheme: Any, n: int, k: int, preset: TargetPreset, batches: tuple[int, ...]
    ) -> Iterator[Case]:
        """Yield a linear's cases, one for each number of rows."""
        floats = scheme == "f16"
        spec = LinearSpec(
            out_features=n, in_features=k, scheme=scheme, scale_dtype=None if floats else "float16"
        )
        kernel = _kernels(preset).linear(spec)
        assert kernel is not None, "CPUs have kernels for these schemes"
        run = compiled(kernel.compute, preset.device)
        weights = [self.values(shape, dtype) for shape, dtype in kernel.weights]
        size = sum(w.nbytes for w in weights)
        copies = [[tvm.runtime.tensor(w) for w in weights] for _ in range(-(-MEMORY // size))]
        unit = "bf16" if preset is self.bf16 else "float32" if floats else self.unit
        for m in batches:
            x, y = self.tensor((m, k)), self.tensor((m, n))
            yield Case(
                name=f"linear {k} x {n}",
                quant=SCHEMES[scheme],
                rows=m,
                unit=unit,
                bytes=size + 4 * m * (n + k),
                operations=2 * m * n * k,
                calls=[_call(run, x, *own, y) for own in copies],
            )

    def attention(self, rows: int, context: int, preset: TargetPreset | None = None) -> Case:
        """Return attention of a sequence's last `rows` tokens; preset: None is the usual one."""
        preset = preset or self.preset
        spec = AttentionSpec(
            heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD, scale=HEAD**-0.5, kv_dtype="float16"
        )
        func = _kernels(preset).attention(spec)
        assert func is not None, "pages and heads have the usual sizes"
        run = compiled(func, preset.device)
        used = context // PAGE
        size = used * 2 * KV_HEADS * PAGE * HEAD * 2
        copies = -(-MEMORY // size)
        pages = self.tensor((copies * used, *spec.page_shape), "float16")
        q, out = (self.tensor((rows, HEADS, HEAD)) for _ in range(2))
        given = [
            np.arange(context - rows, context),
            np.zeros(rows),
            np.array([0, rows]),
            np.array([0, used]),
        ]
        indices = [tvm.runtime.tensor(a.astype("int32")) for a in given]
        tables = [np.arange(i * used, (i + 1) * used, dtype="int32") for i in range(copies)]
        seen = rows * (2 * context - rows + 1) // 2  # pairs of a row and a token
        return Case(
            name=f"attention at {context}",
            quant="float16",
            rows=rows,
            unit="bf16" if preset is self.bf16 else "float32",
            bytes=size + 8 * rows * HEADS * HEAD,
            operations=4 * seen * HEADS * HEAD,
            calls=[_call(run, q, *indices, tvm.runtime.tensor(t), pages, out) for t in tables],
        )

    def others(self) -> Iterator[Case]:
        """Yield kernels that move data, of 512 rows."""
        m = 512
        spec = EmbeddingSpec(vocab=VOCAB, dim=HIDDEN, scheme="q4", scale_dtype="float16")
        table = self.kernels.linear(spec.as_linear())
        lookup = self.kernels.embedding(spec)
        assert table is not None and lookup is not None, "CPUs have kernels for 4 bits"
        weights = [self.tensor(shape, dtype) for shape, dtype in table.weights]
        tokens = self.rng.permutation(VOCAB)[: 64 * m].reshape(-1, m).astype("int32")
        run, out = compiled(lookup, self.preset.device), self.tensor((m, HIDDEN))
        yield Case(
            name="embedding",
            quant="q4f16_1",
            rows=m,
            unit="",
            bytes=m * HIDDEN * 9 // 16 + 4 * m * HIDDEN,
            operations=0,
            calls=[_call(run, tvm.runtime.tensor(t), *weights, out) for t in tokens],
        )
        del weights
        norm = self.kernels.rms_norm(RMSNormSpec(dim=HIDDEN, eps=1e-5))
        yield self.element_wise("rms_norm", norm, m, HIDDEN, [self.tensor((HIDDEN,))])
        yield self.element_wise("swiglu", self.kernels.swiglu(SwiGLUSpec(dim=FFN)), m, 2 * FFN, [])

    def element_wise(
        self, name: str, func: PrimFunc | None, m: int, width: int, more: list[Any]
    ) -> Case:
        """Return a kernel that reads x [m, width], then `more`, and writes the last argument."""
        assert func is not None, "CPUs have it"
        run = compiled(func, self.preset.device)
        out = HIDDEN if name == "rms_norm" else FFN
        size = 4 * m * (width + out)
        copies = [
            (self.tensor((m, width)), self.tensor((m, out))) for _ in range(-(-MEMORY // size))
        ]
        calls = [_call(run, x, *more, y) for x, y in copies]
        return Case(
            name=name, quant="float32", rows=m, unit="", bytes=size, operations=0, calls=calls
        )

    def tensor(self, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        """Return a tensor of random values."""
        return tvm.runtime.tensor(self.values(shape, dtype))

    def values(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return random values: integers of all bits, or floats from 0.5 to 1."""
        if dtype == "int32":
            return self.rng.integers(0, 2**31, shape, dtype="int32") & 0x7E7E7E7E
        some = self.rng.uniform(0.5, 1, 4096).astype(dtype)
        return np.resize(some, shape)


def _kernels(preset: TargetPreset) -> CpuKernels:
    isa = isa_from_features(preset.features)
    return CpuKernels(isa, activations="bf16" if isa.amx else "int8")


def _call(run: Any, *arguments: Any) -> Callable[[], None]:
    return lambda: run(*arguments)


def measure(threads: int) -> dict[str, Any]:
    """Return a row: all kernels with some threads.

    Bandwidth and peaks are the best of two measurements, before and after the kernels, because
    other work on the machine lowers them.
    """
    bandwidth = read_bandwidth(threads)  # it sets the number of threads
    here = Machine()
    peaks = here.peaks()
    busy = busy_cores()
    cases = [measured(case, peaks, bandwidth) for case in here.cases()]
    after, bandwidth_after = here.peaks(), read_bandwidth(threads)
    for own in cases:
        own["share_of_bandwidth"] *= bandwidth / max(bandwidth, bandwidth_after)
        if unit := own["unit"]:
            own["share_of_peak"] *= peaks[unit] / max(peaks[unit], after[unit])
    return {
        "what": "roofline",
        "shape": SHAPE,
        "threads": threads,
        "quant": "all",
        "machine": machine(),
        "versions": versions(),
        "warning": warning(busy),
        "bandwidth": max(bandwidth, bandwidth_after),
        "peaks": {name: max(peaks[name], after[name]) for name in peaks},
        "roofline": cases,
    }


def main(threads: int, folder: Path) -> None:
    """Write a row to `folder` for a number of threads; print shares of peak and bandwidth."""
    row = measure(threads)
    print(write_row(folder, row), row["warning"])
    for own in row["roofline"]:
        shares = [own["share_of_peak"], own["share_of_bandwidth"]]
        cells = ["" if s is None else f"{s:.0%}" for s in shares]
        cells = [own["kernel"], own["quant"], str(own["rows"]), *cells, own["unit"]]
        widths = (22, 8, 5, 5, 5, 8)
        print("  ".join(f"{c:<{w}}" for c, w in zip(cells, widths, strict=True)))
