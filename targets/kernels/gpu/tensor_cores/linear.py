"""y = x W^T on tensor cores, with fused prologue (norm) and epilogue (gate, residual).

x is rounded to float16, and so is an integer times its scale; products are exact, sums float32. The
error is up to 4e-4 of the root mean square of y, half of that for float16 weights: as large as the
error of storing y as float16. Every kernel adds in one order that depends on K alone, so a row has
the same bits in a batch of any size. Other shapes and schemes use `gpu/linear.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from tvm.script import tirx as T

from wherry.ops import FusedLinearSpec, LinearSpec
from wherry.ops.blocks import FORMATS

from ...kernel_set import FusedKernel
from .. import emit as e
from . import layout
from .call import FLOATS, call, joined, shared, templated
from .packing import pack
from .plan import (
    GROUP_TOKENS,
    GROUP_WARPS,
    PREPARE_THREADS,
    TOKENS,
    Gemm,
    Gemv,
    StreamGemv,
    TensorCoreLinearPlan,
    WarpgroupGemm,
)

# Scheme -> the class of its weights: in weights.cuh, or by `weights_of_blocks`.
STORED = {scheme: scheme.upper() for scheme in sorted(layout.STORED)}


@cache
def weights_of_blocks() -> str:
    """Return the C++ of the classes of block formats: names for templates of weights.cuh."""

    def class_of(name: str) -> str:
        own, stored = FORMATS[name], layout.BLOCKS[name]
        sizes = f"kN, kK, {stored.scales}"
        if stored.factors:
            return f"Floats{stored.bits}<{sizes}>"
        if own.codebook:
            numbers = ", ".join(map(str, (own.offset, *own.codebook)))
            return f"Indexes<{sizes}, Codebook<{numbers}>>"
        offset = "kMinimum" if own.minimum else "kZero" if own.zeros else "kNone"
        kind = "Nibbles" if stored.bits == 4 else "Bytes"
        return f"{kind}<{sizes}, Offset::{offset}, {own.zero}>"

    lines = [
        f"template <int kN, int kK>\nusing {STORED[name]} = {class_of(name)};"
        for name in sorted(layout.BLOCKS)
    ]
    return "\n".join(["namespace wherry {", *lines, "}  // namespace wherry"])


def source() -> str:
    """Return the CUDA C++ source of all kernels of linears."""
    names = "instructions group_instructions rows weights gemv gemv_stream gemm groups"
    return joined(*names.split()) + weights_of_blocks()


def fits_fused(spec: FusedLinearSpec) -> bool:
    """Return whether `fused_linear` supports the spec, a narrower condition than `layout.fits`."""
    return layout.fits(spec.linear()) and (not spec.gated or spec.width % layout.ROWS == 0)


def linear(spec: LinearSpec, optin_bytes: int = 0, warpgroups: bool = False) -> FusedKernel:
    """Return the kernel (x float32 [m, K], packed, y float32 [m, N], scratch), without fusion."""
    return fused_linear(
        FusedLinearSpec(
            out_features=spec.out_features,
            in_features=spec.in_features,
            scheme=spec.scheme,
            scale_dtype=spec.scale_dtype,
            group=spec.group,
        ),
        optin_bytes,
        warpgroups,
    )


def fused_linear(
    spec: FusedLinearSpec,
    optin_bytes: int = 0,
    warpgroups: bool = False,
    plan: TensorCoreLinearPlan | None = None,
) -> FusedKernel:
    """Return the kernel of a linear with fused norm and epilogue.

    (x, norm if any, packed, residual if any, y, rows of x as float16)

    Args:
        spec: shapes and fused operations of the linear.
        optin_bytes: bytes of shared memory that a launch may request for a block.
        warpgroups: whether the device has `GpuLimits.warpgroups`.
        plan: tile sizes; None: those of the default plan.
    """
    plan = plan or TensorCoreLinearPlan.of(spec, optin_bytes, warpgroups)
    weight, k = spec.linear(), spec.in_features
    normed, residual = spec.norm_eps is not None, spec.residual
    prepared = normed or spec.x_dtype != "float16"
    rows: tuple[str | int, ...] = ("m", k) if prepared or plan.groups else (1,)
    y = ("m", spec.width)
    parameters: list[e.Parameter] = [
        ("x", ("m", k), spec.x_dtype),
        *([("norm", (k,), "float32")] if normed else []),
        ("packed", (layout.size(weight),), "uint32"),
        *([("residual", y, "float32")] if residual else []),
        ("y", y, spec.y_dtype),
        ("rows", rows, "float16"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        own = _Linear(spec, plan, b, sizes["m"])
        if plan.groups is None:
            own.emit(plan.gemv, prepared)
            return
        most, groups = plan.groups
        others = partial(own.emit, plan.gemv, prepared)
        e.choose(sizes["m"] <= most, others, lambda: own.launch_groups(groups))

    return FusedKernel(
        compute=e.prim_func(parameters, emit),
        scratch=((rows, "float16"),),
        packed=((layout.size(weight),), "uint32"),
        pack=pack(weight),
    )


class _Linear:
    """Emits the launches of one linear."""

    def __init__(
        self, spec: FusedLinearSpec, plan: TensorCoreLinearPlan, b: dict[str, Any], m: Any
    ) -> None:
        self.spec, self.plan, self.m = spec, plan, m
        self.buffers = b
        self.x = b["x"]  # activations, which the kernel multiplies by the weights

    def emit(self, gemvs: Sequence[tuple[int, Gemv]], prepare: bool) -> None:
        """Emit the launches; the host chooses among them by the number of rows.

        Args:
            gemvs: GEMV kernels that are still to be emitted, ascending by rows.
            prepare: whether x must still be normalized and converted to float16 for them.
        """
        if prepare and not (gemvs and gemvs[0][1].normed):
            self._prepare()
            self.x, prepare = self.buffers["rows"], False
        if not gemvs:
            self._choose_gemm()
            return
        (most, first), *rest = gemvs
        if not rest and self.plan.groups:  # more rows do not come here
            self._launch_gemv(first)
            return
        e.choose(self.m <= most, lambda: self._launch_gemv(first), lambda: self.emit(rest, prepare))

    def _prepare(self) -> None:
        spec, b = self.spec, self.buffers
        normed = spec.norm_eps is not None
        name = templated("prepare_rows", spec.in_features, normed, FLOATS[spec.x_dtype])

        def block(_row: Any, _thread: Any) -> None:
            memory = shared(PREPARE_THREADS * 4)
            call(source(), name, b["x"].data, self._norm(), b["rows"].data, memory, self._eps())

        e.launch((self.m,), PREPARE_THREADS, block)

    def _launch_gemv(self, gemv: Gemv) -> None:
        spec, b, slices = self.spec, self.buffers, self.plan.slices
        x = b["x"] if gemv.normed else self.x
        tiles, across = (gemv.row_tiles, gemv.token_tiles), gemv.blocks(spec)
        sizes: tuple[int, ...]
        if isinstance(gemv, StreamGemv):
            sizes = (*tiles, gemv.unit, gemv.stages, across, gemv.normed)
            name = templated("gemv_stream", *_weight(spec), *sizes, *_result(spec))
        else:
            sizes = (*tiles, gemv.ahead, gemv.normed)
            name = templated("gemv", *_weight(spec), *sizes, *_result(spec))

        def block(_rows: Any, _tokens: Any, _thread: Any) -> None:
            memory = shared(gemv.shared_bytes(spec, slices))
            tail = self._residual(), b["y"].data, memory, T.Cast("int32", self.m), self._eps()
            call(source(), name, x.data, self._norm(), b["packed"].data, *tail)

        tokens = gemv.token_tiles * TOKENS
        grid, together = (across, (self.m + tokens - 1) // tokens), gemv.blocks_at_a_time
        e.launch(grid, slices * layout.LANES, block, together)

    def _choose_gemm(self) -> None:
        gemm, wide = self.plan.gemm, self.plan.wide
        if wide is None:
            self._launch_gemm(gemm)
            return
        most, other = wide
        e.choose(self.m <= most, lambda: self._launch_gemm(gemm), lambda: self._launch_gemm(other))

    def _launch_gemm(self, gemm: Gemm) -> None:
        spec, b, x = self.spec, self.buffers, self.x
        sizes = (
            gemm.row_tiles,
            gemm.token_tiles,
            gemm.warps,
            gemm.stages,
            gemm.patch,
            gemm.shared_totals,
        )
        name = templated("gemm", *_weight(spec), *sizes, *_result(spec))

        def block(_tokens: Any, _rows: Any, _thread: Any) -> None:
            tail = self._residual(), b["y"].data, shared(gemm.shared_bytes())
            call(source(), name, x.data, b["packed"].data, *tail, T.Cast("int32", self.m))

        across = -(-layout.tiles(spec.linear()) // (gemm.row_tiles * gemm.warps))
        tokens = gemm.token_tiles * TOKENS
        tiles = (self.m + tokens - 1) // tokens
        patches = (tiles + gemm.patch - 1) // gemm.patch
        grid = T.min(tiles, gemm.patch), patches * across
        e.launch(grid, gemm.warps * layout.LANES, block)

    def launch_groups(self, groups: WarpgroupGemm) -> None:
        """Emit the launches that prepare the rows of x as tiles and multiply them."""
        spec, b = self.spec, self.buffers
        normed = spec.norm_eps is not None
        name = templated("prepare_tiles", spec.in_features, normed, FLOATS[spec.x_dtype])

        def prepare(_row: Any, _thread: Any) -> None:
            memory, m = shared(PREPARE_THREADS * 4), T.Cast("int32", self.m)
            tensors = b["x"].data, self._norm(), b["rows"].data
            call(source(), name, *tensors, memory, m, self._eps())

        e.launch((self.m,), PREPARE_THREADS, prepare)
        sizes = groups.stages, groups.patch, *_result(spec)
        multiply = templated("gemm_groups", *_weight(spec), *sizes)

        def block(_tokens: Any, _rows: Any, _thread: Any) -> None:
            tail = self._residual(), b["y"].data, shared(groups.shared_bytes(spec))
            tensors = b["rows"].data, b["packed"].data
            call(source(), multiply, *tensors, *tail, T.Cast("int32", self.m))

        across = -(-layout.tiles(spec.linear()) // GROUP_WARPS)
        tiles = (self.m + GROUP_TOKENS - 1) // GROUP_TOKENS
        patches = (tiles + groups.patch - 1) // groups.patch
        e.launch((T.min(tiles, groups.patch), patches * across), groups.threads, block, 1)

    # For an absent operand the kernel gets another tensor, which it does not read.
    def _norm(self) -> Any:
        return self.buffers["norm" if self.spec.norm_eps is not None else "x"].data

    def _residual(self) -> Any:
        return self.buffers["residual" if self.spec.residual else "packed"].data

    def _eps(self) -> Any:
        return e.number(self.spec.norm_eps) if self.spec.norm_eps is not None else T.float32(0)


def _weight(spec: FusedLinearSpec) -> tuple[Any, ...]:
    return f"wherry::{STORED[spec.scheme]}", spec.out_features, spec.in_features


def _result(spec: FusedLinearSpec) -> tuple[Any, ...]:
    return spec.gated, spec.residual, FLOATS[spec.y_dtype]
