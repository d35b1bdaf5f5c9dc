"""Linears of a mixture of experts on tensor cores.

GEMV: unsorted slots have blocks of their own, and a row's block adds the results of its experts.
GEMM: slots are sorted by expert (`route`), each tile has slots of one expert, with a size that
leaves few tiles half empty, and another launch adds the results. Both add a row's experts in
ascending order, one fused multiply-add each. `linear` documents rounding and the order of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.script import tirx as T

from wherry.ops import ExpertLinearSpec

from ...kernel_set import FusedKernel
from .. import emit as e
from ..experts import launch_sums
from ..route import gemv_slots_on_tensor_cores
from . import layout
from .call import FLOATS, call, joined, shared, templated
from .expert_plan import ExpertPlan
from .linear import STORED, weights_of_blocks
from .linear import source as source_of_linears
from .packing import pack
from .plan import PREPARE_THREADS, TOKENS, Gemv

_GATES = {None: "kNoGate", "silu": "kSilu", "gelu_tanh": "kGeluTanh", "clamped": "kClamped"}
_SUM_THREADS = 256


def source() -> str:
    """Return the CUDA C++ source of all kernels of expert linears."""
    names = "instructions rows weights gemv gemm experts expert_row"
    return joined(*names.split()) + weights_of_blocks()


def fits(spec: ExpertLinearSpec) -> bool:
    """Return whether `expert_linear` supports the spec."""
    return layout.fits(spec.linear()) and (spec.gate is None or spec.width % layout.ROWS == 0)


def expert_linear(spec: ExpertLinearSpec, plan: ExpertPlan | None = None) -> FusedKernel:
    """Return the kernel of `KernelSet.expert_linear`.

    Its scratch memory holds x as float16 if x is not float16, and the slots' results if they are
    combined.
    """
    plan = plan or ExpertPlan.of(spec)
    count, k, d = spec.experts, spec.top_k, spec.in_features
    packed = ((layout.size(spec.linear(), count),), "uint32")
    rows: tuple[str | int, ...] = ("x", d) if spec.x_dtype != "float16" else (1,)
    order: list[e.Parameter] = [
        ("ids", ("n", k), "int32"),
        ("starts", (count + 1,), "int32"),
        ("slots", ("o",), "int32"),
    ]
    parameters: list[e.Parameter] = [
        ("x", ("n" if spec.shared_rows else "s", d), spec.x_dtype),
        *(order if spec.routed else []),
        *([("weights", ("n", k), "float32")] if spec.combined else []),
        *([("bias", (count, spec.out_features), "float32")] if spec.bias else []),
        ("packed", *packed),
        *([("residual", ("n", spec.out_features), "float32")] if spec.residual else []),
        ("y", ("n" if spec.combined else "t", spec.width), spec.y_dtype),
        ("rows", ("r", d) if rows[0] == "x" else rows, "float16"),
        *([("each", ("t", spec.out_features), "float32")] if spec.combined else []),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        n = sizes["n"] if spec.routed else T.truncdiv(sizes["s"], T.int32(k))
        _Experts(spec, plan, b, n).emit()

    each = (lambda sizes: sizes["n"] * k, spec.out_features)
    return FusedKernel(
        compute=e.prim_func(parameters, emit),
        scratch=((rows, "float16"), *([(each, "float32")] if spec.combined else [])),
        packed=packed,
        pack=pack(spec.linear(), count),
        inputs=spec.inputs,
    )


class _Experts:
    """Emits the launches of one expert linear."""

    def __init__(
        self, spec: ExpertLinearSpec, plan: ExpertPlan, buffers: dict[str, Any], n: Any
    ) -> None:
        self.spec, self.plan, self.b, self.n = spec, plan, buffers, n
        flags = spec.shared_rows, spec.routed, spec.bias
        self.experts = templated(
            "Experts",
            f"wherry::{STORED[spec.scheme]}",
            *(spec.experts, spec.top_k, spec.out_features, spec.in_features),
            *flags,
            f"wherry::{_GATES[spec.gate]}",
        )

    def emit(self) -> None:
        """Emit all launches; the host chooses among them by the number of slots."""
        spec = self.spec
        if spec.routed:
            alone = gemv_slots_on_tensor_cores(self.n, spec.experts, spec.top_k)
        else:
            alone = self.n <= 1
        e.choose(alone, self._launch_alone, self._launch_tiles)

    def _launch_alone(self) -> None:
        """Emit GEMV blocks that compute slots of one row each."""
        spec, b, plan = self.spec, self.b, self.plan
        complete = plan.turns > 1 or (spec.combined and spec.top_k == 1)
        out = "each" if spec.combined and not complete else "y"
        residual = spec.residual and complete
        x, y = FLOATS[spec.x_dtype], FLOATS[str(b[out].dtype)]
        name = templated(
            "expert_row", self.experts, plan.row_tiles, plan.ahead, complete, residual, x, y
        )

        def block(_rows: Any, _slot: Any, _thread: Any) -> None:
            tensors = [self._data(key) for key in ("ids", "weights", "bias", "packed", "residual")]
            memory = shared(plan.row_bytes(spec))
            call(source(), name, b["x"].data, *tensors, b[out].data, memory, *self._clamp())

        across = -(-layout.tiles(spec.linear()) // plan.row_tiles)
        slots = self.n * spec.top_k
        e.launch((across, self.n if complete else slots), plan.slices * layout.LANES, block)
        if out == "each":
            launch_sums(spec, _SUM_THREADS, b, self.n)

    def _launch_tiles(self) -> None:
        """Emit tiles of slots of one expert, and the launch that sums a row's slots."""
        if self.spec.x_dtype != "float16":
            self._prepare()
        self._choose_tiles(self.plan.gemv)
        if self.spec.combined:
            launch_sums(self.spec, _SUM_THREADS, self.b, self.n)

    def _prepare(self) -> None:
        spec, b = self.spec, self.b
        name = templated("prepare_rows", spec.in_features, False, FLOATS[spec.x_dtype])
        rows = self.n if spec.shared_rows else self.n * spec.top_k

        def block(_row: Any, _thread: Any) -> None:
            memory = shared(PREPARE_THREADS * 4)
            tensors = [b[key].data for key in ("x", "x", "rows")]
            # Linears call this function, too, and TVM requires one source per function.
            call(source_of_linears(), name, *tensors, memory, T.float32(0))

        e.launch((rows,), PREPARE_THREADS, block)

    def _choose_tiles(self, gemvs: Sequence[tuple[int, Gemv]]) -> None:
        if not gemvs:
            self._launch_gemm()
            return
        (most, first), *rest = gemvs
        fits = self.n * self.spec.top_k <= most * self.spec.experts
        e.choose(fits, lambda: self._launch_gemv(first), lambda: self._choose_tiles(rest))

    def _launch_gemv(self, gemv: Gemv) -> None:
        plan = self.plan
        sizes = (gemv.row_tiles, gemv.token_tiles, gemv.ahead)
        threads = plan.slices * layout.LANES
        memory = gemv.sums_bytes(plan.slices)
        self._launch("gemv_slots", sizes, gemv.row_tiles, gemv.token_tiles, threads, memory)

    def _launch_gemm(self) -> None:
        gemm = self.plan.gemm
        sizes = (gemm.row_tiles, gemm.token_tiles, gemm.warps, gemm.stages)
        threads, memory = gemm.warps * layout.LANES, gemm.shared_bytes()
        row_tiles = gemm.row_tiles * gemm.warps
        self._launch("gemm_slots", sizes, row_tiles, gemm.token_tiles, threads, memory)

    def _launch(
        self,
        function: str,
        sizes: tuple[int, ...],
        row_tiles: int,
        token_tiles: int,
        threads: int,
        memory: int,
    ) -> None:
        spec, b = self.spec, self.b
        out = b["each" if spec.combined else "y"]
        x = b["rows" if spec.x_dtype != "float16" else "x"].data
        name = templated(function, self.experts, *sizes, FLOATS[str(out.dtype)])

        def block(_rows: Any, _tile: Any, _thread: Any) -> None:
            tensors = [self._data(key) for key in ("starts", "slots", "bias", "packed")]
            tail = out.data, shared(memory), T.Cast("int32", self.n), *self._clamp()
            call(source(), name, x, *tensors, *tail)

        size = token_tiles * TOKENS
        across = -(-layout.tiles(spec.linear()) // row_tiles)
        e.launch((across, self._tiles(size)), threads, block)

    def _tiles(self, size: int) -> Any:
        """Return the number of tiles of `size` slots; an upper bound if slots are routed."""
        spec, n = self.spec, self.n
        if spec.routed:
            return T.truncdiv(n * spec.top_k, T.int32(size)) + spec.experts
        return T.truncdiv(n + (size - 1), T.int32(size)) * spec.experts

    def _data(self, name: str) -> Any:
        """Return the pointer to a tensor.

        An absent tensor is replaced by a pointer that the kernel does not read.
        """
        return self.b.get(name, self.b["packed"]).data

    def _clamp(self) -> tuple[Any, Any]:
        return e.number(self.spec.alpha), e.number(self.spec.limit)
