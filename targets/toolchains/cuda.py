"""Compiles CUDA kernels with nvcc (the system's or PyPI's) into libraries with machine code.

Without a CUDA driver, TVM would pack CUDA source, to be compiled at run time. While a
`CudaToolchain` is active, libraries contain a fatbin instead: machine code for each requested GPU,
and PTX, which drivers compile for future GPUs. The build needs neither a GPU nor a driver.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from wherry.base import settings
from wherry.errors import ToolchainError

from .device_code import DeviceCode, packed_with
from .toolchain import ONE_AT_A_TIME, Requirement

NVCC_FIX = "pip install 'wherry[cuda]'"
# TVM's environment variable that skips compilation of CUDA modules, as on machines without a
# driver.
_WITHOUT_DRIVER = "TVM_COMPILE_FORCE_FALLBACK"
_FORMAT = "fatbin"
_OVERLAPPING = 90  # first GPU code whose kernels can overlap (programmatic dependent launch)
OVERLAP = "tirx.use_programtic_dependent_launch"  # TVM's tag of such launches
_KERNEL = re.compile(r'(extern "C" __global__ void[^;{]*\{)')
_WAITS_ITSELF = re.compile("wherry::gemv(_stream)?<")
WAIT = ' asm volatile("griddepcontrol.launch_dependents;\\ngriddepcontrol.wait;" ::: "memory");'


@dataclass(frozen=True, slots=True)
class CudaToolchain:
    """Toolchain that compiles CUDA source with nvcc; see `Toolchain` for the methods.

    Args:
        codes: GPU codes ("sm_80"), ascending; the kernels are written for the first one.
    """

    codes: tuple[str, ...]

    def sources(self) -> dict[str, str]:
        """Return {}: the runtime module already stores the CUDA source."""
        return {}

    def requirements(self) -> tuple[Requirement, ...]:
        """Return as requirements the first nvcc that knows all the GPUs, and its C++ compiler."""
        nvcc = find_nvcc(self.codes)
        return (
            Requirement(
                name="nvcc", installed=None if nvcc is None else _described(nvcc), fix=NVCC_FIX
            ),
            Requirement(name="g++", installed=shutil.which("g++"), fix="apt-get install g++"),
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make TVM pack machine code into libraries while the context is entered."""
        nvcc = find_nvcc(self.codes)
        assert nvcc, "entered when no requirement is missing"

        def compiled(source: DeviceCode) -> DeviceCode:
            assert source.format == "cuda", source.format
            if _number(self.codes[0]) >= _OVERLAPPING:
                source = overlapped(source)
            return replace(source, format=_FORMAT, code=compile_cuda(source.code, self.codes, nvcc))

        with ONE_AT_A_TIME, _environment(_WITHOUT_DRIVER, "1"), packed_with("cuda", compiled):
            yield


def overlapped(source: DeviceCode) -> DeviceCode:
    """Return CUDA source whose kernels begin while those before them end."""
    code = waiting(source.code.decode())
    return replace(source, code=code.encode()).with_tag(OVERLAP)


def waiting(source: str) -> str:
    """Return CUDA source whose kernels wait for their inputs.

    Each does so before anything else, unless it waits itself: `gemv` loads weights meanwhile.
    Without `__restrict__` no compiler may move loads before that.
    """
    parts = _KERNEL.split(source.replace("__restrict__ ", ""))
    text = [parts[0]]
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        text += [head, "" if _WAITS_ITSELF.search(body) else WAIT, body]
    return "".join(text)


def _number(code: str) -> int:
    return int(code.removeprefix("sm_"))


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def compile_cuda(source: bytes, codes: tuple[str, ...], nvcc: Path) -> bytes:
    """Compile CUDA source to a fatbin: machine code for each of `codes`, and PTX of the first.

    All machine code comes from one PTX, so results do not depend on the GPU. sm_90 alone has its
    own, whose instructions give the same bits.

    Raises:
        ToolchainError: nvcc rejects the source; the message has its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cu"
        path.write_bytes(source)
        binary = path.with_suffix(".fatbin")
        command = [*fatbin_command(codes, nvcc), "-o", str(binary), str(path)]
        done = subprocess.run(command, capture_output=True)
        if done.returncode:
            words = (done.stderr + done.stdout).decode(errors="replace").strip()[-2000:]
            raise ToolchainError(
                f"{nvcc} cannot compile the kernels:\n{words}\nIf it is an old one, type: "
                f"{NVCC_FIX}"
            )
        return binary.read_bytes()


def fatbin_command(codes: tuple[str, ...], nvcc: Path) -> list[str]:
    """Return the nvcc command line of `compile_cuda`, without the file names."""
    virtual = codes[0].replace("sm_", "compute_")
    command = [str(nvcc), "--fatbin", "-O3", "-std=c++17", "--disable-warnings"]
    # Kernels call fma where a product and a sum are fused. The compiler must not contract others:
    # it could decide differently in two kernels whose results must agree.
    command += ["--fmad=false", "--threads", "0"]
    if codes == ("sm_90",):  # with wgmma, which newer GPUs lack
        command += ["-gencode", "arch=compute_90a,code=sm_90a"]
        return [*command, "-gencode", "arch=compute_90,code=compute_90"]
    return [*command, "-gencode", f"arch={virtual},code=[{','.join((virtual, *codes))}]"]


def find_nvcc(codes: tuple[str, ...] = ()) -> Path | None:
    """Return the first nvcc that knows all of `codes`: in CUDA_PATH, PATH, PyPI, /usr/local."""
    for path in _candidates():
        if path.is_file() and known_codes(path).issuperset(codes):
            return path
    return None


def known_codes(nvcc: Path) -> frozenset[str]:
    """Return the GPU codes ({"sm_80", ...}) that `nvcc` can compile for.

    The set is empty if nvcc does not run.
    """
    try:
        done = subprocess.run([str(nvcc), "--list-gpu-code"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(done.stdout.decode(errors="replace").split())


def _candidates() -> Iterator[Path]:
    chosen = settings.cuda_path()
    if chosen:  # CUDA_PATH is the user's choice: no other nvcc is tried
        yield chosen / "bin" / "nvcc"
        return
    on_path = shutil.which("nvcc")
    if on_path:
        yield Path(on_path)
    packages = importlib.util.find_spec("nvidia")
    for place in (packages.submodule_search_locations or ()) if packages else ():
        yield from sorted(Path(place).glob("cu*/bin/nvcc"), reverse=True)
    yield from sorted(Path("/usr/local").glob("cuda*/bin/nvcc"), reverse=True)


def _described(nvcc: Path) -> str:
    done = subprocess.run([str(nvcc), "--version"], capture_output=True, timeout=60)
    versions = [w for w in done.stdout.decode(errors="replace").split() if w.startswith("V")]
    return f"{versions[-1][1:]}, {nvcc}" if versions else str(nvcc)
