"""Reads NVIDIA's GPUs from the driver, and opens the libraries of TVM's CUDA runtime.

It imports neither TVM nor NumPy, and creates no context: a process may call it before it uses a
GPU, without taking memory.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wherry.base import settings
from wherry.errors import ToolchainError

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
CUDART = "libcudart.so.13"  # TVM's CUDA runtime links with this version
# Name of a limit in manifests: bytes of shared memory that a block may request (cudaDeviceProp).
SHARED_MEMORY = "sharedMemPerBlockOptin"
# numbers in the enum CUdevice_attribute
_INTEGRATED, _MAJOR, _MINOR, _SHARED_MEMORY = 18, 75, 76, 97
_RESULTS = {  # common errors of the enum CUresult
    100: "there is no GPU, or CUDA_VISIBLE_DEVICES hides it",
    101: "a GPU is not usable",
    803: "the driver's library and its kernel module are of different versions",
    804: "this GPU does not take a driver of this version",
    999: "the driver's kernel module does not answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An NVIDIA GPU; its index in the list is its CUDA device number."""

    name: str
    code: str  # architecture of its machine code, "sm_90"
    memory_bytes: int
    shared_bytes: int  # bytes of shared memory that a block may request
    discrete: bool  # whether the GPU has memory of its own
    driver: str  # newest CUDA version that the driver supports, "13.0"


@cache
def _driver() -> tuple[ctypes.CDLL | None, str]:
    """Return the initialized driver, or None with the problem ("" if there is no driver)."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return None, ""
    status = int(driver.cuInit(0))
    if status:
        return None, f"NVIDIA's driver: {_RESULTS.get(status, f'cuInit fails with {status}')}"
    return driver, ""


def problem() -> str:
    """Return a problem of NVIDIA's driver; "" if there is none, or no driver."""
    return _driver()[1]


def gpus() -> list[Gpu]:
    """List NVIDIA's GPUs in CUDA's order; [] if there are none: `problem` may say why."""
    driver, _ = _driver()
    if driver is None:
        return []
    version, count = ctypes.c_int(), ctypes.c_int()
    _check(driver.cuDriverGetVersion(ctypes.byref(version)))
    _check(driver.cuDeviceGetCount(ctypes.byref(count)))
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return [_gpu(driver, number, cuda) for number in range(count.value)]


def _gpu(driver: ctypes.CDLL, number: int, cuda: str) -> Gpu:
    device, size = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGet(ctypes.byref(device), number))
    _check(driver.cuDeviceGetName(name, len(name), device))
    _check(driver.cuDeviceTotalMem_v2(ctypes.byref(size), device))

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), which, device))
        return value.value

    return Gpu(
        name=name.value.decode(errors="replace"),
        code=f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}",
        memory_bytes=size.value,
        shared_bytes=attribute(_SHARED_MEMORY),
        discrete=not attribute(_INTEGRATED),
        driver=cuda,
    )


def _check(status: int) -> None:
    if status:
        raise ToolchainError(
            f"NVIDIA's driver answers with error {status}: {_RESULTS.get(status, 'unknown')}. "
            "Type: nvidia-smi, to see whether it works"
        )


def require_code(codes: list[str], limits: Mapping[str, int]) -> None:
    """Check that the first GPU can run machine code for `codes`.

    The oldest code has PTX, so every newer GPU can run it. Blocks must have the shared memory that
    kernels request: desktop GPUs have less than server GPUs.

    Args:
        codes: GPU codes of the manifest's target.
        limits: `device_limits` of the manifest's target.

    Raises:
        ToolchainError: the GPU is older, or has less shared memory.
    """
    here, oldest = gpus()[:1], min(codes, key=_number)
    if here and _number(here[0].code) < _number(oldest):
        raise ToolchainError(
            f"The library is for GPUs from {oldest}, and {here[0].name} is {here[0].code}. "
            f"Type: wherry compile MODEL --target cuda:{here[0].code}"
        )
    required = limits.get(SHARED_MEMORY, 0)
    if here and here[0].shared_bytes < required:
        raise ToolchainError(
            f"The library's kernels need {required} bytes of shared memory a block, and "
            f"{here[0].name} has {here[0].shared_bytes}. "
            f"Type: wherry compile MODEL --target cuda:{here[0].code}"
        )


def _number(code: str) -> int:
    return int(code.removeprefix("sm_"))


@cache
def open_libraries() -> None:
    """Open the libraries of TVM's CUDA runtime, so that the loader finds them later.

    Raises:
        ToolchainError: the driver or CUDA's runtime is missing; the message says what to type.
    """
    if sys.platform != "linux":
        raise ToolchainError("TVM's package has CUDA's run time on Linux alone. Type: --target cpu")
    driver, why = _driver()
    if driver is None:
        raise ToolchainError(
            f"No GPU of NVIDIA's can be used: {why or f'{DRIVER}, its driver, is not installed'}. "
            "Type: nvidia-smi, to see whether the driver works; or --target cpu"
        )
    tried = []
    for place in _cudart_places():
        try:
            ctypes.CDLL(place, ctypes.RTLD_GLOBAL)
            return
        except OSError as e:
            tried.append(f"  {place}: {e}")
    raise ToolchainError(
        f"{CUDART}, the run time of CUDA 13, was not found; tried\n"
        + "\n".join(tried)
        + "\nType: pip install 'wherry[cuda]'"
    )


def _cudart_places() -> Iterator[str]:
    chosen = settings.cuda_path()
    if chosen:
        yield str(chosen / "lib64" / CUDART)
    yield CUDART  # the dynamic loader searches for it
    packages = importlib.util.find_spec("nvidia")
    for place in (packages.submodule_search_locations or ()) if packages else ():
        yield from sorted(map(str, Path(place).glob(f"cu13/lib/{CUDART}")))
    yield from sorted(map(str, Path("/usr/local").glob(f"cuda*/lib64/{CUDART}")), reverse=True)
