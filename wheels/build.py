"""Builds wheels that need no compiler: `python -m wheels.build`, which `make wheels` runs.

    dist/wherry-VERSION-py3-none-manylinux_2_28_ARCH.whl    for every supported Python
    dist/SHA256SUMS

Zig's Clang compiles the C++ (manylinux/zig.cmake). The same sources make the
same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from .finish import finish
from .link_libraries import make_stub
from .machines import MACHINES, Libstdcxx, Machine, find_libstdcxx

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
_PIP = (sys.executable, "-m", "pip")
LARGEST = 25 * 1000**2  # bytes of a wheel


def _zig() -> Path:
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def _site_packages() -> Path:
    import tvm_ffi

    return Path(tvm_ffi.__file__).parent.parent


def make_link_folder(machine: Machine, libstdcxx: Libstdcxx, out: Path) -> None:
    """Make what the C++ is linked to besides the C library: two stubs and glibc.o."""
    out.mkdir(parents=True, exist_ok=True)
    zig = [str(_zig()), "cc", "-target", machine.target]
    make_stub(libstdcxx.shared, "libstdc++.so.6", zig, out / "libstdc++.o")
    make_stub(libstdcxx.unwinder, "libgcc_s.so.1", zig, out / "libgcc_s.o")
    source = HERE / "manylinux" / "glibc.c"
    subprocess.run([*zig, "-O2", "-g0", "-fPIC", "-c", source, "-o", out / "glibc.o"], check=True)


def vulkan_headers(out: Path) -> Path:
    """Return a folder with links to Vulkan's headers, without this machine's glibc's."""
    found = Path("/usr/include")
    if not (found / "vulkan" / "vulkan_core.h").is_file():
        raise SystemExit("Vulkan's headers were not found. Type: apt-get install libvulkan-dev")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("vulkan", "vk_video"):
        link = out / name
        link.unlink(missing_ok=True)
        link.symlink_to(found / name)
    return out


def tvm_libraries(machine: Machine, out: Path) -> dict[str, str]:
    """Return CMake's settings for TVM's libraries of a machine that is not this one."""
    if machine.architecture == os.uname().machine:
        return {}
    pins = [pin for pin in build_requirements() if pin.startswith("apache-tvm")]
    wheels = ["--only-binary=:all:", "--platform", machine.platform, *pins]
    subprocess.run([*_PIP, "download", "--quiet", "--no-deps", "--dest", out, *wheels], check=True)
    for wheel in out.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name in ("tvm_ffi/lib/libtvm_ffi.so", "tvm/lib/libtvm_runtime.so"):
                    archive.extract(name, out)
    return {
        "WHERRY_TVM_FFI_LIBRARY": str(out / "tvm_ffi/lib/libtvm_ffi.so"),
        "WHERRY_TVM_RUNTIME": str(out / "tvm/lib/libtvm_runtime.so"),
    }


def build_requirements() -> list[str]:
    """Return what pyproject.toml's build-system asks for."""
    line = next(
        line
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith("requires = ")
    )
    return [part for part in line.split('"')[1::2]]


def settings(machine: Machine, libstdcxx: Libstdcxx, work: Path, browser: Path | None) -> list[str]:
    """Return pip's configuration settings for scikit-build-core."""
    values = {
        "CMAKE_TOOLCHAIN_FILE": HERE / "manylinux" / "zig.cmake",
        "CMAKE_UNITY_BUILD": "ON",
        "Python_EXECUTABLE": sys.executable,
        "WHERRY_ZIG": _zig(),
        "WHERRY_ARCHITECTURE": machine.architecture,
        "WHERRY_LINK": work / "link",
        "WHERRY_LIBSTDCXX_A": libstdcxx.static,
        "WHERRY_LIBSTDCXX_HEADERS": ";".join(map(str, libstdcxx.headers)),
        "WHERRY_PREFIXES": f"{ROOT};{_site_packages()}",
        "WHERRY_OPENCL": "ON",
        "WHERRY_VULKAN": "ON",
        "WHERRY_VULKAN_HEADERS": vulkan_headers(work / "vulkan"),
        "WHERRY_WEB": "OFF",
        "WHERRY_PAGE": "OFF",
        "WHERRY_WEB_BUILT": browser or "",
        **tvm_libraries(machine, work / "tvm"),
    }
    given = [f"cmake.define.{name}={value}" for name, value in values.items()]
    given += [f"build-dir={work / 'cmake'}", "cmake.build-type=Release", "install.strip=false"]
    return [argument for value in given for argument in ("-C", value)]


def build(machine: Machine, browser: Path | None, work: Path, out: Path) -> Path:
    """Build one wheel; return it.

    Args:
        machine: what to build for.
        browser: a build's folder with the core for browsers and the page; None: without them.
        work: for what is made on the way; kept, so that the next build is short.
        out: the folder of the wheel.
    """
    work = work.resolve()
    libstdcxx = find_libstdcxx(machine)
    make_link_folder(machine, libstdcxx, work / "link")
    raw = work / "raw"
    for old in raw.glob("*.whl"):
        old.unlink()
    given = settings(machine, libstdcxx, work, browser)
    tools = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CMAKE_GENERATOR": "Ninja",
        # Zig has a cache of its own, and other caches take `cc` for a file to compile.
        "CMAKE_C_COMPILER_LAUNCHER": "",
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
        "ZIG_LOCAL_CACHE_DIR": str(work / "zig"),
    }
    subprocess.run(
        [*_PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", raw, *given, ROOT],
        check=True,
        env=environment,
    )
    (made,) = raw.glob("*.whl")
    wheel = finish(made, machine, libstdcxx, browser, work / "finish", out)
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel} has {wheel.stat().st_size} bytes; {LARGEST} are accepted")
    return wheel


def write_sums(out: Path) -> None:
    """Write SHA256SUMS of a folder's wheels, as sha256sum reads them."""
    lines = [
        f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n"
        for wheel in sorted(out.glob("*.whl"))
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    """Build the wheels that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architecture", action="append", choices=MACHINES, help="default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "wheels")
    core = parser.add_mutually_exclusive_group(required=True)
    core.add_argument("--browser", type=Path, help="a build with the core for browsers: build/dev")
    core.add_argument("--no-browser", action="store_true", help="without the core for browsers")
    options = parser.parse_args()
    browser = options.browser.resolve() if options.browser else None
    if browser and not (browser / "web" / "wherry-core.o").is_file():
        raise SystemExit(f"{browser} has no web/wherry-core.o. Type: make native, or --no-browser")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.architecture or MACHINES:
        wheel = build(MACHINES[name], browser, options.work / name, options.out)
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    write_sums(options.out)


if __name__ == "__main__":
    main()
