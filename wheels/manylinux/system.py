"""Linux: what CMake is given besides the checkout, and what is checked of a finished wheel."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..machines import GLIBC, Machine
from ..sources import Part, Prepared, tvm_libraries, zig
from .libstdcxx import Libstdcxx, find_libstdcxx
from .stubs import make_stub
from .symbols import audit, check_symbols

HERE = Path(__file__).resolve().parent


def prepare(machine: Machine, work: Path) -> Prepared:
    """Make what the C++ is linked to, in `work`."""
    libstdcxx = find_libstdcxx(machine.architecture)
    _make_link_folder(machine, libstdcxx, work / "link")
    settings = {
        "WHERRY_ARCHITECTURE": machine.architecture,
        "WHERRY_LINK": work / "link",
        "WHERRY_LIBSTDCXX_A": libstdcxx.static,
        "WHERRY_LIBSTDCXX_HEADERS": ";".join(map(str, libstdcxx.headers)),
        "WHERRY_OPENCL": "ON",
        "WHERRY_VULKAN": "ON",
        "WHERRY_VULKAN_HEADERS": _vulkan_headers(work / "vulkan"),
        **tvm_libraries(machine, "lib{}.so", work / "tvm"),
    }
    licence = "GPL-3.0-or-later WITH GCC-exception-3.1"
    about = "what GCC 8's lacks, in libwherry*.so"
    return Prepared(settings, [Part("libstdc++", libstdcxx.version, licence, about)])


def check(wheel: Path, machine: Machine, work: Path) -> None:
    """Check the symbols of a finished wheel."""
    check_symbols(audit(wheel), machine.platform)


def _make_link_folder(machine: Machine, libstdcxx: Libstdcxx, out: Path) -> None:
    """Make what the C++ is linked to besides the C library: two stubs and glibc.o."""
    out.mkdir(parents=True, exist_ok=True)
    target = f"{machine.architecture}-linux-gnu.{GLIBC}"
    compiler = [str(zig()), "cc", "-target", target]
    make_stub(libstdcxx.shared, "libstdc++.so.6", compiler, out / "libstdc++.o")
    make_stub(libstdcxx.unwinder, "libgcc_s.so.1", compiler, out / "libgcc_s.o")
    flags = ["-O2", "-g0", "-fPIC", "-c", HERE / "glibc.c", "-o", out / "glibc.o"]
    subprocess.run([*compiler, *flags], check=True)


def _vulkan_headers(out: Path) -> Path:
    """Return a folder with links to Vulkan's headers, without this machine's glibc's."""
    headers = Path("/usr/include")
    if not (headers / "vulkan" / "vulkan_core.h").is_file():
        raise SystemExit("Vulkan's headers were not found. Type: apt-get install libvulkan-dev")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("vulkan", "vk_video"):
        link = out / name
        link.unlink(missing_ok=True)
        link.symlink_to(headers / name)
    return out
