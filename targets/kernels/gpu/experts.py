"""Linears of a mixture of experts on GPUs, from portable weights.

With few slots per expert, each slot has blocks of its own, as one row of `gemv`. With many, `route`
has sorted them, and a tile of `gemm` has slots of one expert. A row's results are added in
ascending order of experts, one fused multiply-add each: by the same blocks for few slots, by
another launch for many. `linear` documents the order of sums inside a slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ExpertLinearSpec, FusedLinearSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .block_weights import matrix
from .cooperative import gemm as cooperative
from .elementwise import gated, gelu_tanh
from .gemm import ThreadTile, shape_for
from .gemv import Columns, multiply
from .limits import GpuLimits
from .linear_plan import LinearTiling, Operands, eight
from .route import gemv_slots
from .simdgroups.gemm import MatrixTile
from .simdgroups.plan import slots_tile
from .tile import Share, Tile
from .weights import ExpertMatrix, fits_float16, stored_shapes


def expert_linear(spec: ExpertLinearSpec, limits: GpuLimits) -> PrimFunc | FusedKernel:
    """Return the kernel of an expert linear; see `KernelSet.expert_linear`."""
    assert {spec.x_dtype, spec.y_dtype} == {"float32"}, "float16 is for tensor cores alone"
    func = e.prim_func(_parameters(spec), lambda b, sizes: _emit(spec, limits, b, sizes))
    if not spec.combined:
        return func
    k = spec.top_k
    shape = (lambda sizes: sizes["n"] * k, spec.out_features)
    return FusedKernel(compute=func, scratch=((shape, "float32"),))


def _parameters(spec: ExpertLinearSpec) -> list[e.Parameter]:
    count, k = spec.experts, spec.top_k
    order: list[e.Parameter] = [
        ("ids", ("n", k), "int32"),
        ("starts", (count + 1,), "int32"),
        ("slots", ("o",), "int32"),
    ]
    stored = stored_shapes(spec.linear())
    return [
        ("x", ("n" if spec.shared_rows else "s", spec.in_features), "float32"),
        *(order if spec.routed else []),
        *([("weights", ("n", k), "float32")] if spec.combined else []),
        *([("bias", (count, spec.out_features), "float32")] if spec.bias else []),
        *((f"w{i}", (count, *shape), dtype) for i, (shape, dtype) in enumerate(stored)),
        *([("residual", ("n", spec.out_features), "float32")] if spec.residual else []),
        ("y", ("n" if spec.combined else "t", spec.width), "float32"),
        *([("each", ("t", spec.out_features), "float32")] if spec.combined else []),
    ]


@dataclass(frozen=True, slots=True)
class _Linear:
    """One expert linear while its kernel is emitted."""

    spec: ExpertLinearSpec
    limits: GpuLimits
    b: dict[str, Any]

    @property
    def plan(self) -> LinearTiling:
        """Return the tiling of one expert's linear."""
        own = self.spec.linear()
        fused = FusedLinearSpec(
            out_features=own.out_features,
            in_features=own.in_features,
            scheme=own.scheme,
            scale_dtype=own.scale_dtype,
            group=own.group,
            gated=self.spec.gate is not None,
        )
        return LinearTiling.of(fused, self.limits)

    def operands(self, expert: Any) -> Operands:
        """Return the operands with the weights of one expert."""
        count = len(stored_shapes(self.spec.linear()))
        stored = tuple(ExpertMatrix(self.b[f"w{i}"], expert) for i in range(count))
        return Operands(self.b["x"], matrix(self.spec.linear(), stored), self.b["y"])

    def x_row(self, slot: Any) -> Any:
        """Return the row of x that a slot reads."""
        return e.div(slot, self.spec.top_k) if self.spec.shared_rows else slot

    def expert_of(self, slot: Any) -> Any:
        """Return the expert of a slot."""
        row, k = e.div(slot, self.spec.top_k), e.mod(slot, self.spec.top_k)
        return e.let(self.b["ids"][row, k]) if self.spec.routed else e.let(k)

    def result(self, expert: Any, column: Any, sums: list[Any]) -> Any:
        """Return a slot's result from the sums of a column (two sums with a gate)."""
        spec = self.spec
        if spec.bias:
            places = (column, column + spec.width) if spec.gate else (column,)
            sums = [s + self.b["bias"][expert, p] for s, p in zip(sums, places, strict=True)]
        if spec.gate is None:
            return sums[0]
        if spec.gate == "silu":
            return gated(*sums)
        if spec.gate == "gelu_tanh":
            return gelu_tanh(e.let(sums[0])) * sums[1]
        limit = e.number(spec.limit)
        gate = e.let(T.min(sums[0], limit))
        up = T.max(T.min(sums[1], limit), T.float32(0) - limit) + T.float32(1)
        minus = T.min(T.float32(0) - gate * e.number(spec.alpha), T.float32(87))
        return gate / (T.float32(1) + T.exp(minus)) * up


def _emit(
    spec: ExpertLinearSpec, limits: GpuLimits, b: dict[str, Any], sizes: dict[str, Any]
) -> None:
    linear = _Linear(spec, limits, b)
    if not spec.routed:
        _launch_gemv(linear, sizes["s"])
        return
    n = sizes["n"]
    few = (
        partial(_launch_combined, linear, n)
        if spec.combined
        else partial(_launch_gemv, linear, n * spec.top_k)
    )
    e.choose(gemv_slots(n, spec.experts, spec.top_k), few, lambda: _launch_gemm(linear, n))


def _launch_gemv(linear: _Linear, slots: Any) -> None:
    """Emit a GEMV launch whose blocks compute one slot each."""
    plan = linear.plan
    threads = plan.gemv_threads
    columns = threads // plan.lanes * plan.outputs

    def block(block: Any, slot: Any, thread: Any) -> None:
        expert = linear.expert_of(slot)
        tensors = linear.operands(expert)
        row = e.let(linear.x_row(slot))

        def store(_: int, column: Any, sums: list[Any]) -> None:
            e.when(
                column < plan.spec.width,
                lambda: e.store(linear.b["y"], linear.result(expert, column, sums), slot, column),
            )

        load = partial(eight, plan, tensors, row, None)
        own = Columns(e.let(block * columns), plan.outputs, thread, threads)
        multiply(plan, tensors, [load], own, store)

    e.launch((-(-plan.spec.width // columns), slots), threads, block)


def _launch_combined(linear: _Linear, n: Any) -> None:
    """Emit a GEMV launch whose blocks compute one row each, visiting the row's slots in turn."""
    plan, b, k = linear.plan, linear.b, linear.spec.top_k
    threads = plan.gemv_threads
    columns = threads // plan.lanes * plan.outputs

    def block(block: Any, row: Any, thread: Any) -> None:
        in_registers = plan.limits.simdgroups
        partial_sums = None if in_registers else e.shared((plan.outputs * threads,))
        own = Columns(e.let(block * columns), plan.outputs, thread, threads)
        with T.serial(k) as turn:
            slot = e.let(row * k + turn)
            expert = linear.expert_of(slot)
            tensors = linear.operands(expert)
            weight = e.let(b["weights"][row, turn])

            def store(_: int, column: Any, sums: list[Any]) -> None:
                def add() -> None:
                    start = before(linear.spec, b, row, column)
                    so_far = T.if_then_else(turn == 0, start, b["y"][row, column])
                    value = linear.result(expert, column, sums)
                    e.store(b["y"], e.fma(weight, value, e.let(so_far)), row, column)

                e.when(column < plan.spec.width, add)

            load = partial(eight, plan, tensors, slot, None)
            multiply(plan, tensors, [load], own, store, partial_sums)
            if not in_registers:
                e.barrier()

    e.launch((-(-plan.spec.width // columns), n), threads, block)


def _launch_gemm(linear: _Linear, n: Any) -> None:
    """Emit a GEMM launch whose tiles have slots of one expert, and a launch that sums rows."""
    spec, plan = linear.spec, linear.plan
    cut = slots_tile()
    together = linear.limits.cooperative_matrices and fits_float16(plan.spec)
    if linear.limits.simdgroups:
        shape = cut.shape
    else:
        shape = cooperative.SHAPE if together else shape_for(linear.limits)
    rows, columns, threads = shape
    slots = n * spec.top_k

    def block(block: Any, tile: Any, thread: Any) -> None:
        place = _Place.of(linear, rows, tile)
        if linear.limits.simdgroups:
            _ExpertMatrixTile(linear, place, cut, block, thread).emit()
        elif together:
            _ExpertCooperativeTile(linear, place, shape, block, thread).emit()
        else:
            _ExpertThreadTile(linear, place, shape, block, thread).emit()

    tiles = T.truncdiv(slots + rows - 1, rows) + T.min(slots, T.int32(spec.experts))
    e.launch((-(-plan.spec.out_features // columns), tiles), threads, block)
    if spec.combined:
        launch_sums(spec, linear.limits.block_for(spec.out_features), linear.b, n)


@dataclass(frozen=True, slots=True)
class _Place:
    """The slots of a tile; blocks beyond the last tile have none."""

    expert: Any
    begin: Any  # index in `slots` of the tile's first slot
    count: Any

    @staticmethod
    def of(linear: _Linear, rows: int, tile: Any) -> _Place:
        """Emit the search for the slots of tile number `tile`."""
        starts = linear.b["starts"]
        expert, begin, count, seen = (e.Variable(T.int32(0)) for _ in range(4))
        with T.serial(linear.spec.experts) as i:
            first = e.let(starts[i])
            own = e.let(starts[i + 1] - first)
            before = e.let(seen.value)
            seen.set(before + T.truncdiv(own + rows - 1, rows))
            skipped = e.let((tile - before) * rows)
            here = e.let(T.And(tile >= before, tile < seen.value))
            expert.set(T.if_then_else(here, i, expert.value))
            begin.set(T.if_then_else(here, first + skipped, begin.value))
            count.set(T.if_then_else(here, T.min(own - skipped, rows), count.value))
        return _Place(expert.value, begin.value, count.value)


class _ExpertTile(Tile):
    """A GEMM tile whose rows are slots of one expert.

    Its operands fill the guaranteed shared memory, so slot indices are loaded again for each use.
    """

    def __init__(self, linear: _Linear, place: _Place, cut: Any, block: Any, thread: Any) -> None:
        """Initialize; `cut` is the base tile's `shape` argument."""
        self.linear, self.place = linear, place
        tensors = linear.operands(place.expert)
        share = Share(linear.plan, tensors, place.count, block, T.int32(0), thread)
        super().__init__(share, cut)
        per_row = linear.spec.top_k if linear.spec.shared_rows else 1
        self.last = T.Cast("int32", linear.b["x"].shape[0] * per_row) - 1

    def slot(self, tile_row: Any) -> Any:
        """Emit the slot of a row of the tile; any valid slot for padding rows."""
        inside = T.min(tile_row, T.max(self.m - 1, 0))
        at = T.min(self.place.begin + inside, self.last)
        return e.let(self.linear.b["slots"][e.let(at)])

    def x_row(self, tile_row: Any) -> Any:
        """Return the row of x that the slot in a row of the tile reads."""
        return self.linear.x_row(self.slot(tile_row))

    def put(self, tile_row: Any, column: Any, sums: list[Any]) -> None:
        """Emit the store of a slot's result."""
        linear = self.linear
        out = linear.b["each" if linear.spec.combined else "y"]

        def store() -> None:
            value = linear.result(self.place.expert, column, sums)
            e.store(out, value, self.slot(tile_row), column)

        e.when(tile_row < self.m, store)


class _ExpertThreadTile(_ExpertTile, ThreadTile):
    pass


class _ExpertMatrixTile(_ExpertTile, MatrixTile):
    pass


class _ExpertCooperativeTile(_ExpertTile, cooperative.CooperativeTile):
    pass


def launch_sums(spec: ExpertLinearSpec, threads: int, b: dict[str, Any], n: Any) -> None:
    """Emit a launch that sums each row's slots, whose results are in the buffer "each"."""

    def block(block: Any, row: Any, thread: Any) -> None:
        column = e.let(block * threads + thread)

        def add() -> None:
            total = e.Variable(before(spec, b, row, column))
            with T.serial(spec.top_k) as k:
                each = e.let(b["each"][row * spec.top_k + k, column])
                total.set(e.fma(b["weights"][row, k], each, total.value))
            e.store(b["y"], total.value, row, column)

        e.when(column < spec.out_features, add)

    e.launch((-(-spec.out_features // threads), n), threads, block)


def before(spec: ExpertLinearSpec, b: dict[str, Any], row: Any, column: Any) -> Any:
    """Return the initial value of a row's sum over its experts: the residual, or 0."""
    return b["residual"][row, column] if spec.residual else T.float32(0)
