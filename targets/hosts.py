"""Hosts: machines whose CPU drives a device, or is the device.

A program loads a library, `model.so`, if a compiler that links for its machine is installed. Else
there is an archive of objects, `model.tar`: a process of that machine links them when it loads the
model. Phones link such objects into an app. A page loads a program: `model.wasm`.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from typing import Any, Literal

from wherry.errors import UsageError, listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A kind of machine that can drive a device."""

    name: str  # name for --host, which also accepts the triple
    triple: str  # LLVM's triple; with a version where Apple's linker needs one
    cpu: str  # LLVM's name of the oldest CPU that the target "cpu" supports on this host
    objects: Literal["ELF", "Mach-O", "COFF", "wasm"]  # format of the host's object files
    # Prefix of the symbols of a model that is linked into a program, on hosts that link models
    # statically; "{key}" is replaced by the model's key, which is the same on all hosts.
    symbols: str | None = None
    options: tuple[tuple[str, int], ...] = ()  # further attributes of TVM's host target

    @property
    def arch(self) -> str:
        """Return LLVM's name of the CPU architecture; "aarch64" for "arm64"."""
        return self.triple.partition("-")[0].replace("arm64", "aarch64")

    @property
    def target(self) -> dict[str, Any]:
        """Return TVM's target of the host code that drives a device."""
        return {"kind": "llvm", "mtriple": self.triple, **dict(self.options)}

    def linker(self) -> str | None:
        """Return the cross-linker's command; None: the local compiler links, or none is found."""
        cross = "linux" in self.name and self.symbols is None and self != here()
        return shutil.which(f"{self.arch}-linux-gnu-g++") if cross else None

    def library(self) -> Literal["so", "tar", "wasm"]:
        """Return the kind of library that this machine can link for the host."""
        # WebAssembly has no loader, so models are linked with the engine
        if self.objects == "wasm":
            return "wasm"
        if self.symbols is not None:  # an archive, because an app's linker links the model
            return "tar"
        if self.objects == "COFF":  # ORC links for Windows, because Windows has no compiler
            return "tar"
        links = local_compiler() if self == here() else self.linker()
        return "so" if links else "tar"


# Symbol prefix of a model: each has its own, because an app or a page may contain several.
_APP = "wherry_{key}_"
HOSTS = {
    host.name: host
    for host in (
        Host(
            name="linux-x86_64", triple="x86_64-unknown-linux-gnu", cpu="x86-64-v3", objects="ELF"
        ),
        Host(
            name="linux-aarch64", triple="aarch64-unknown-linux-gnu", cpu="generic", objects="ELF"
        ),
        Host(
            name="android",
            triple="aarch64-linux-android24",
            cpu="generic",
            objects="ELF",
            symbols=_APP,
        ),
        Host(  # emulators of phones, which run on x86-64
            name="android-x86_64",
            triple="x86_64-linux-android24",
            cpu="x86-64-v2",
            objects="ELF",
            symbols=_APP,
        ),
        Host(  # embedded programs with their models linked in
            name="linux-x86_64-app",
            triple="x86_64-linux-gnu",
            cpu="x86-64-v3",
            objects="ELF",
            symbols=_APP,
        ),
        Host(
            name="linux-aarch64-app",
            triple="aarch64-linux-gnu",
            cpu="generic",
            objects="ELF",
            symbols=_APP,
        ),
        Host(
            name="ios",
            triple="arm64-apple-ios16.0",
            cpu="apple-a11",
            objects="Mach-O",
            symbols=_APP,
        ),
        Host(
            name="ios-simulator",
            triple="arm64-apple-ios16.0-simulator",
            cpu="apple-a14",  # Apple M1 has the same cores
            objects="Mach-O",
            symbols=_APP,
        ),
        Host(
            name="macabi",
            triple="arm64-apple-ios16.0-macabi",
            cpu="apple-a14",
            objects="Mach-O",
            symbols=_APP,
        ),
        Host(name="macos", triple="arm64-apple-macos13.0", cpu="apple-a14", objects="Mach-O"),
        Host(
            name="windows-x86_64", triple="x86_64-pc-windows-msvc", cpu="x86-64-v3", objects="COFF"
        ),
        Host(
            name="wasm32",
            triple="wasm32-unknown-unknown-wasm",
            cpu="generic",
            objects="wasm",
            symbols=_APP,
            options=(("vector-width", 128),),  # width of a WebAssembly vector in bits
        ),
    )
}
_COMPILERS = ("g++", "clang++", "c++", "gcc", "clang", "cc")
SERVERS = ("linux-x86_64", "linux-aarch64")
# Hosts whose programs have models linked in, and drive GPUs through drivers opened at run time.
APPS = ("android", "android-x86_64", "linux-x86_64-app", "linux-aarch64-app")
APPLE = ("macos", "macabi", "ios", "ios-simulator")


def find(text: str) -> Host:
    """Return the host with this name or triple.

    Raises:
        UsageError: no such host; the message lists the known ones.
    """
    for host in HOSTS.values():
        if text in (host.name, host.triple):
            return host
    known = listing(f"{h.name:<14} {h.triple}" for h in HOSTS.values())
    raise UsageError(f"Unknown host {text!r}; there are\n{known}\nType: --host android")


def local_compiler() -> str | None:
    """The C++ compiler that links libraries for this machine; None: there is none.

    It is the one in CXX or CC, whether it is installed or not, else the first that is found.
    """
    chosen = os.environ.get("CXX") or os.environ.get("CC")
    return chosen or next(filter(None, map(shutil.which, _COMPILERS)), None)


def require_host(target: str, host: Host, among: tuple[str, ...]) -> None:
    """Check that `host` is among the hosts of a target.

    Raises:
        UsageError: the target does not support the host; the message lists those that it supports.
    """
    if host.name not in among:
        raise UsageError(
            f"Target {target} cannot have the host {host.name}; it can have {', '.join(among)}. "
            f"Type: --target {target} --host {among[0]}"
        )


def here() -> Host:
    """Return the host entry of this machine.

    Raises:
        UsageError: this machine is none of the known hosts.
    """
    machine = platform.machine().replace("AMD64", "x86_64")  # as Windows calls it
    names = {"linux": f"linux-{machine}", "darwin": "macos", "win32": f"windows-{machine}"}
    host = HOSTS.get(names.get(sys.platform, ""))
    if host is None or host.arch not in (machine, machine.replace("arm64", "aarch64")):
        raise UsageError(
            f"This machine is {sys.platform} on {machine}; supported are {', '.join(HOSTS)}. "
            "Type: --host linux-x86_64"
        )
    return host
