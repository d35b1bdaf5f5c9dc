"""Code generation for Vulkan: TVM generates WGSL, and naga compiles it to SPIR-V.

TVM's package has no SPIR-V code generator. While a `SpirvToolchain` is active, this code generator
serves TVM's target kind "vulkan", and Wherry's Vulkan plugin loads and runs the module.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import tvm_ffi
from tvm import IRModule
from tvm.ir import Op
from tvm.target import Target

from wherry.errors import ToolchainError, WherryError
from wherry.machine.plugins import find_plugin, open_plugin

from ..toolchains.toolchain import ONE_AT_A_TIME, Requirement
from . import matrices, matrix_code, naga
from .code import (
    computes_with_halves,
    without_contraction,
    without_half_arithmetic,
    without_zeroing,
)
from .matrices import SHAPES

_BUILD = "target.build.vulkan"
_FORMAT = "wherry-spirv-2"  # format tag that engine/backends/vulkan/kernels.cc checks
_TYPES = {"handle": (3, 64), "int32": (0, 32), "uint32": (1, 32), "float32": (2, 32)}
_SIZES = {"f32": 4, "i32": 4, "u32": 4, "f16": 2}
_SHARED = re.compile(r"var<workgroup> \w+ : array<(\w+), (\d+)>")
_THREADS = re.compile(r"@workgroup_size\((\d+), (\d+), (\d+)\)")
_MARKER = re.compile(r"^// Function: ", re.MULTILINE)


class SpirvToolchain:
    """Toolchain that generates SPIR-V through WGSL; see `Toolchain` for the methods."""

    def __init__(self) -> None:
        self._wgsl = ""

    def sources(self) -> dict[str, str]:
        """Return the WGSL that TVM wrote and naga compiled to SPIR-V, by file suffix."""
        return {"wgsl": self._wgsl}

    def requirements(self) -> tuple[Requirement, ...]:
        """Return as requirements the plugin for Vulkan devices, and naga."""
        try:
            plugin, fix = str(find_plugin("vulkan")), ""
        except ToolchainError:
            plugin, fix = None, "apt-get install libvulkan-dev, then install wherry again"
        return (
            Requirement(name="libwherry_vulkan", installed=plugin, fix=fix),
            *naga.requirements(),
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make TVM's target kind "vulkan" generate SPIR-V while the context is entered."""
        with ONE_AT_A_TIME:
            yield from self._installed()

    def _installed(self) -> Iterator[None]:
        open_plugin("vulkan")
        _share_intrinsics()
        before: Callable[..., Any] | None = tvm_ffi.get_global_func(_BUILD, allow_missing=True)
        tvm_ffi.register_global_func(_BUILD, self._build, override=True)
        try:
            yield
        finally:
            if before is None:
                tvm_ffi.registry.remove_global_func(_BUILD)
            else:
                tvm_ffi.register_global_func(_BUILD, before, override=True)

    def _build(self, mod: IRModule, target: Target) -> Any:
        """Return the runtime module of lowered kernels."""
        threads = int(target.attrs["max_num_threads"])
        as_wgsl = Target({"kind": "webgpu", "max_num_threads": threads})
        built = tvm_ffi.get_global_func("target.build.webgpu")(mod, as_wgsl)
        calls = json.loads(built.inspect_source("func_info"))
        self._wgsl = str(built.inspect_source("wgsl"))
        sources = kernels_of(self._wgsl)
        blob = pack(calls, sources, code_of(sources))
        return tvm_ffi.get_global_func("ffi.Module.load_from_bytes.vulkan")(blob)


def code_of(sources: Mapping[str, str]) -> dict[str, list[bytes]]:
    """Return the SPIR-V of each kernel: a list with one code, or one code for each of SHAPES.

    Kernels with cooperative matrices have one code per shape.

    Raises:
        WherryError: a kernel computes in float16.
    """
    wgsl = {
        (name, i): matrices.written(text, SHAPES[i]) if several else text
        for name, text in sources.items()
        for several in (matrices.multiplies_matrices(text),)
        for i in range(len(SHAPES) if several else 1)
    }
    compiled = naga.compile_wgsl({f"{name}@{i}": text for (name, i), text in wgsl.items()})
    code: dict[str, list[bytes]] = {name: [] for name in sources}
    for name, i in wgsl:
        one = compiled[f"{name}@{i}"]
        if matrices.multiplies_matrices(sources[name]):
            code[name].append(with_matrices(one, SHAPES[i]))
        else:
            code[name].append(finished(name, one))
    return code


def with_matrices(code: bytes, shape: matrices.MatrixShape) -> bytes:
    """Return final SPIR-V for one matrix shape, from naga's SPIR-V of `matrices.written`."""
    code = without_contraction(without_zeroing(code))
    code = matrix_code.with_shape(code, shape.m, shape.n, shape.k)
    return matrix_code.for_vulkan(code)


def finished(name: str, code: bytes) -> bytes:
    """Return final SPIR-V, from naga's SPIR-V of a kernel without matrices.

    Raises:
        WherryError: the kernel computes in float16, a feature that the plugin does not enable.
    """
    code = without_half_arithmetic(without_contraction(without_zeroing(code)))
    if computes_with_halves(code):
        raise WherryError(
            f"Kernel {name} computes with float16; on Vulkan kernels may only load and store it. "
            "Type: --quant q4f32_1"
        )
    return code


@cache
def _share_intrinsics() -> None:
    """Let TVM lower functions like `exp` for Vulkan as for WGSL: its package has no such rules.

    It runs once: an attribute of an operator cannot be registered twice, and may stay.
    """
    level = 11  # a level above TVM's own rules
    for name in Op.list_op_names():
        op = Op.get(name)
        if rule := op.get_attr("webgpu.FLowerIntrinsic"):
            op.set_attr("vulkan.FLowerIntrinsic", rule, level)


def kernels_of(wgsl: str) -> dict[str, str]:
    """Return the text of each kernel in TVM's output; a part begins with `// Function: NAME`."""
    kernels: dict[str, str] = {}
    for part in _MARKER.split(wgsl)[1:]:
        name, _, text = part.partition("\n")
        kernels[name.strip()] = kernels.get(name.strip(), "") + text
    return kernels


def pack(
    calls: Mapping[str, Mapping[str, Any]],
    sources: Mapping[str, str],
    code: Mapping[str, list[bytes]],
) -> bytes:
    """Return the bytes of a library's Vulkan module.

    Args:
        calls: kernel name -> TVM's types of arguments and launch parameters.
        sources: kernel name -> WGSL, from which limits are read.
        code: kernel name -> SPIR-V from `code_of`.

    Raises:
        WherryError: a kernel has a scalar argument that is not 32 bits wide.
    """
    parts = [_text(_FORMAT), struct.pack("<Q", len(calls))]
    for name, call in calls.items():
        types, tags = call["arg_types"], call["launch_param_tags"]
        if unknown := [t for t in types if t not in _TYPES]:
            raise WherryError(
                f"Kernel {name} takes an argument of type {unknown[0]}; on Vulkan there are "
                f"{', '.join(_TYPES)}. Type: --target opencl"
            )
        parts += [_text(name), struct.pack("<Q", len(types))]
        parts += [struct.pack("<BBH", *_TYPES[t], 1) for t in types]
        parts += [struct.pack("<Q", len(tags)), *(_text(tag) for tag in tags)]
        numbers = demands(sources[name])
        if matrices.multiplies_matrices(sources[name]):
            numbers += editions(code[name])
        content = b"".join(code[name])
        parts += [struct.pack(f"<Q{len(numbers)}i", len(numbers), *numbers), _text(content)]
    return b"".join(parts)


def demands(wgsl: str) -> tuple[int, ...]:
    """Return bytes of shared memory, whether buffers are float16, and threads along x, y, z."""
    shared = sum(_SIZES[kind] * int(count) for kind, count in _SHARED.findall(wgsl))
    threads = _THREADS.search(wgsl)
    assert threads, "TVM writes a workgroup size into each kernel"
    return (shared, int("enable f16;" in wgsl), *map(int, threads.groups()))


def editions(codes: list[bytes]) -> tuple[int, ...]:
    """Return for each of SHAPES: matrix sizes, subgroup size, and bytes of its SPIR-V."""
    return tuple(
        number
        for shape, code in zip(SHAPES, codes, strict=True)
        for number in (shape.m, shape.n, shape.k, shape.lanes, len(code))
    )


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data
