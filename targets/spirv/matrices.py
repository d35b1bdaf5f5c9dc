"""Cooperative matrices in kernels for Vulkan: one kernel's code for each shape of matrices.

TVM and naga have no matrices whose shape a device chooses. A kernel calls the functions of
`kernels/gpu/cooperative/intrinsics.py`, which TVM copies into its WGSL; `written` replaces them by
naga's matrix functions, with the tile divided among a block's threads as the shape needs:

    matrices_multiply(i32(threadIdx.x), (&(((f16*)x)[0i])), (&(((f16*)w)[0i])), 40i, 32i);
        let a0 = coopLoadT<coop_mat16x16<f16, A>>(&x[matrix_row * 40u + 0u], 40u); ...
        let b0 = coopLoad<coop_mat16x16<f16, B>>(&w[matrix_column * 40u + 0u], 40u); ...
        c0_0 = coopMultiplyAdd(a0, b0, c0_0); ...

naga has only square matrices, so all are 16 x 16 there; `matrix_code` sets their sizes. A
subgroup's number decides its part of the tile. The plugin uses the first shape that the device
supports, and requires subgroups of that many threads.

Sources: naga's WGSL extension wgpu_cooperative_matrix; VK_KHR_cooperative_matrix, whose
`VkCooperativeMatrixPropertiesKHR` a driver fills with its shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..kernels.gpu.cooperative.intrinsics import BEGIN, COLUMNS, MULTIPLY, ROWS, STORE, THREADS

_THREAD = r"i32\(threadIdx\.x\)"
_PLACE = r"\(&\(\(\(f\d\d\*\)(\w+)\)\[0i\]\)\)"
_PARAMETER = re.compile(r"@builtin\(local_invocation_id\) threadIdx : vec3<u32>")
_BEGIN = re.compile(rf"{BEGIN}\({_THREAD}\);")
_MULTIPLY = re.compile(rf"{MULTIPLY}\({_THREAD}, {_PLACE}, {_PLACE}, (\d+)i, (\d+)i\);")
_STORE = re.compile(rf"{STORE}\({_THREAD}, {_PLACE}, (\d+)i\);")


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """A matrix product c[m, n] += a[m, k] b[k, n] of float16, summed in float32.

    `lanes` threads share the matrices.
    """

    m: int
    n: int
    k: int
    lanes: int  # threads of a subgroup
    whose: str  # devices that support the shape

    @property
    def across(self) -> int:
        """Return the number of subgroups along the columns of a tile."""
        return {1: 1, 2: 1, 4: 2, 8: 2, 16: 4}[THREADS // self.lanes]

    @property
    def own(self) -> tuple[int, int]:
        """Return rows and columns of a subgroup's part of a tile."""
        down = THREADS // self.lanes // self.across
        return ROWS // down, COLUMNS // self.across


SHAPES = (  # the plugin uses the first that the device supports: fastest first
    MatrixShape(16, 16, 16, 32, "NVIDIA's from Turing, AMD's from RDNA 3 on"),
    MatrixShape(8, 16, 16, 16, "Intel's from Xe2 on (Arc B)"),
    MatrixShape(8, 8, 16, 8, "Intel's Xe-HPG (Arc A)"),
    MatrixShape(8, 8, 8, 32, "Apple's, through MoltenVK"),
    MatrixShape(8, 8, 8, 8, "Mesa's lavapipe, which is for tests"),
)


def multiplies_matrices(wgsl: str) -> bool:
    """Return whether a kernel in TVM's WGSL calls the matrix functions."""
    return f"{BEGIN}(" in wgsl


def written(wgsl: str, shape: MatrixShape) -> str:
    """Return the WGSL of a kernel for devices that support matrices of `shape`."""
    text = "enable wgpu_cooperative_matrix;\n" + wgsl
    for pattern, emit in (
        (_PARAMETER, _parameter),
        (_BEGIN, _begin),
        (_MULTIPLY, _multiply),
        (_STORE, _store),
    ):
        text, count = pattern.subn(_with(emit, shape), text)
        assert count == 1, f"a kernel has {pattern.pattern} {count} times"
    return text


def _with(
    emit: Callable[[re.Match[str], MatrixShape], list[str]], shape: MatrixShape
) -> Callable[[re.Match[str]], str]:
    return lambda match: "\n  ".join(emit(match, shape))


def _counts(shape: MatrixShape) -> tuple[range, range]:
    """Return the indices of a subgroup's matrices along rows and along columns."""
    rows, columns = shape.own
    return range(rows // shape.m), range(columns // shape.n)


def _parameter(match: re.Match[str], _: MatrixShape) -> list[str]:
    """Add the subgroup's number to the kernel's arguments, because the device assigns threads."""
    return [f"{match[0]},", "@builtin(subgroup_id) matrix_group : u32"]


def _begin(_: re.Match[str], shape: MatrixShape) -> list[str]:
    rows, columns = shape.own
    down, across = _counts(shape)
    return [
        f"let matrix_row : u32 = matrix_group / {shape.across}u * {rows}u;",
        f"let matrix_column : u32 = matrix_group % {shape.across}u * {columns}u;",
        *(f"var c{i}_{j} : coop_mat16x16<f32, C>;" for i in down for j in across),
    ]


def _multiply(match: re.Match[str], shape: MatrixShape) -> list[str]:
    x, w, stride, count = match[1], match[2], int(match[3]), int(match[4])
    down, across = _counts(shape)
    lines = []
    for k in range(0, count, shape.k):
        for i in down:
            at = f"matrix_row * {stride}u + {i * shape.m * stride + k}u"
            lines.append(f"let a{i}_{k} = {_load('T', 'A')}(&{x}[{at}], {stride}u);")
        for j in across:
            at = f"matrix_column * {stride}u + {j * shape.n * stride + k}u"
            lines.append(f"let b{j}_{k} = {_load('', 'B')}(&{w}[{at}], {stride}u);")
        for i in down:
            for j in across:
                lines.append(f"c{i}_{j} = coopMultiplyAdd(a{i}_{k}, b{j}_{k}, c{i}_{j});")
    return lines


def _load(transposed: str, use: str) -> str:
    """Return the WGSL function that loads a matrix: `coopLoad` reads columns, `coopLoadT` rows."""
    return f"coopLoad{transposed}<coop_mat16x16<f16, {use}>>"


def _store(match: re.Match[str], shape: MatrixShape) -> list[str]:
    into, stride = match[1], int(match[2])
    down, across = _counts(shape)
    return [
        f"coopStoreT(c{i}_{j}, &{into}[matrix_row * {stride}u + matrix_column + "
        f"{i * shape.m * stride + j * shape.n}u], {stride}u);"
        for i in down
        for j in across
    ]
