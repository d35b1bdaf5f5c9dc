"""Finds the C++ compiler of a platform, with its CMake options."""

from __future__ import annotations

import importlib.util
import platform as machine
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from wherry.base import settings
from wherry.targets.toolchains.toolchain import Requirement

from . import sources
from .platforms import IOS, MIN_SDK, Platform

_NDK = "27.2.12479018"
_ABIS = {"aarch64": "arm64-v8a", "x86_64": "x86_64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The C++ compiler of one platform.

    Other fields are meaningful only if no requirement is missing.
    """

    requirements: tuple[Requirement, ...]
    definitions: Mapping[str, str] = field(default_factory=dict)  # CMake variables, passed as -D
    environment: Mapping[str, str] = field(default_factory=dict)
    # whether it can link shared libraries, because the system's libraries are installed
    links: bool = True

    @property
    def missing(self) -> tuple[Requirement, ...]:
        """Return the requirements that are not installed."""
        return tuple(
            requirement for requirement in self.requirements if requirement.installed is None
        )

    @property
    def command(self) -> str:
        """Return the command of the compiler, for messages and cache keys."""
        return next(requirement.installed or requirement.name for requirement in self.requirements)


def compiler_for(platform: Platform) -> Compiler:
    """Find the platform's compiler."""
    match platform.system:
        case "linux":
            return _linux(platform)
        case "android":
            return _android(platform)
        case _:
            return _apple(platform)


def _cmake() -> tuple[Requirement, ...]:
    fix = "pip install 'wherry[apps]'"
    return tuple(
        Requirement(name=n, installed=find_program(n), fix=fix) for n in ("cmake", "ninja")
    )


def find_program(name: str) -> str | None:
    """Find a program on the path, or one that pip installed for this Python."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def _linux(platform: Platform) -> Compiler:
    here = sys.platform == "linux" and machine.machine() == platform.arch
    name = "g++" if here else f"{platform.arch}-linux-gnu-g++"
    package = "g++" if here else f"g++-{platform.arch.replace('_', '-')}-linux-gnu"
    requirement = Requirement(
        name=name, installed=shutil.which(name), fix=f"apt-get install {package}"
    )
    cross = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": platform.arch}
    return Compiler(
        requirements=(requirement, *_cmake()),
        definitions={"CMAKE_CXX_COMPILER": name, **({} if here else cross)},
    )


def _android(platform: Platform) -> Compiler:
    folder = ndk()
    fix = (
        f'sdkmanager "ndk;{_NDK}" && export ANDROID_NDK_HOME=$ANDROID_HOME/ndk/{_NDK} '
        "(or https://developer.android.com/ndk/downloads)"
    )
    return Compiler(
        requirements=(
            Requirement(name="Android NDK", installed=str(folder) if folder else None, fix=fix),
            *_cmake(),
        ),
        definitions={
            "CMAKE_TOOLCHAIN_FILE": str(_toolchain_of(folder)) if folder else "",
            "ANDROID_ABI": _ABIS[platform.arch],
            "ANDROID_PLATFORM": f"android-{MIN_SDK}",
            "ANDROID_STL": "c++_static",
        },
    )


def ndk() -> Path | None:
    """Return the NDK in ANDROID_NDK_HOME, or the newest one of the SDK; None: not found."""
    named, sdk = settings.android_ndk(), settings.android_sdk()
    if named:
        return named if _toolchain_of(named).is_file() else None
    all_ = (sdk / "ndk").glob("*") if sdk else ()
    usable = [path for path in all_ if _toolchain_of(path).is_file()]
    return max(
        usable, key=lambda p: [int(n) for n in p.name.split(".") if n.isdigit()], default=None
    )


def _toolchain_of(ndk: Path) -> Path:
    return ndk / "build" / "cmake" / "android.toolchain.cmake"


def _apple(platform: Platform) -> Compiler:
    if sys.platform == "darwin":
        return _xcode(platform)
    return _zig(platform)


def _xcode(platform: Platform) -> Compiler:
    requirement = Requirement(
        name="xcrun", installed=shutil.which("xcrun"), fix="xcode-select --install"
    )
    definitions = {
        "CMAKE_OSX_SYSROOT": platform.sdk,
        "CMAKE_OSX_ARCHITECTURES": "arm64",
    }
    if platform.name == "macabi":
        definitions["CMAKE_CXX_FLAGS"] = f"-target arm64-apple-ios{IOS}-macabi"
    else:
        definitions |= {"CMAKE_SYSTEM_NAME": "iOS", "CMAKE_OSX_DEPLOYMENT_TARGET": IOS}
    return Compiler(requirements=(requirement, *_cmake()), definitions=definitions, links=False)


def _zig(platform: Platform) -> Compiler:
    """Return zig's Clang, which has headers of libc++ and Apple's C library, but no libraries."""
    folder = zig_folder()
    requirement = Requirement(
        name="ziglang",
        installed=f"{version('ziglang')}" if folder else None,
        fix="pip install 'wherry[apps]'",
    )
    cache_ = str(settings.cache_dir() / "native" / "zig")
    return Compiler(
        requirements=(requirement, *_cmake()),
        definitions={
            "CMAKE_TOOLCHAIN_FILE": str(sources.root() / "cmake" / "apple-zig.cmake"),
            "WHERRY_ZIG": str(folder or ""),
            "WHERRY_ZIG_TARGET": platform.zig,
        },
        environment={"ZIG_GLOBAL_CACHE_DIR": cache_, "ZIG_LOCAL_CACHE_DIR": cache_},
        links=False,
    )


@cache
def zig_folder() -> Path | None:
    """Return the folder of the package `ziglang`, with program and headers; None: not installed."""
    spec = importlib.util.find_spec("ziglang")
    return Path(spec.origin).parent if spec and spec.origin else None
