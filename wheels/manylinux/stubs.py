"""Makes the libraries that a wheel's C++ is linked to: GCC's, with what manylinux_2_28 allows.

A wheel for manylinux_2_28 may use libstdc++.so.6 of GCC 8 (GLIBCXX_3.4.24). The build machine has a
newer one, so each shared library here is a stub: a library without code that has the names and the
versions of the real one up to a limit. The linker takes the other functions from libstdc++.a.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

# Of the policy manylinux_2_28 (auditwheel), the last version of each family.
LIMITS = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
# A row of `readelf --dyn-syms`: value, size, type, ..., section, name@@version.
_ROW = re.compile(
    r"^ *\d+: [0-9a-f]+ +(?:0x)?[0-9a-f]+ (?P<kind>FUNC|OBJECT|TLS|NOTYPE) +"
    r"(?:GLOBAL|WEAK|UNIQUE) +\S+ +(?!UND)\S+ (?P<name>\S+)@@(?P<version>\S+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Symbol:
    """A symbol of a shared library; kind: FUNC, OBJECT, TLS or NOTYPE, as readelf prints it."""

    name: str
    version: str
    kind: str


def allowed(version: str) -> bool:
    """Tell whether manylinux_2_28 has a version of symbols: "GLIBCXX_3.4.21"."""
    family, _, number = version.partition("_")
    limit = LIMITS.get(family)
    if limit is None or not re.fullmatch(r"[0-9.]+", number):
        return False
    return tuple(map(int, number.split("."))) <= limit


def read_symbols(table: str) -> list[Symbol]:
    """Return the allowed symbols of `readelf --wide --dyn-syms`, each in its default version."""
    rows = [Symbol(row["name"], row["version"], row["kind"]) for row in _ROW.finditer(table)]
    return [symbol for symbol in rows if allowed(symbol.version) and symbol.name != symbol.version]


def assembly(symbols: list[Symbol]) -> str:
    """Return the source of a stub: every symbol at one place."""
    sections = {
        "FUNC": ".text",
        "OBJECT": ".data",
        "NOTYPE": ".data",
        "TLS": '.section .tdata,"awT",%progbits',
    }
    types = {"FUNC": "%function", "OBJECT": "%object", "NOTYPE": "%notype", "TLS": "%tls_object"}
    lines = []
    for kind, section in sections.items():
        lines.append(section)
        of_kind = [symbol for symbol in symbols if symbol.kind == kind]
        for symbol in of_kind:
            lines += [f".globl {symbol.name}", f".type {symbol.name}, {types[kind]}"]
            lines.append(f"{symbol.name}:")
        if of_kind:
            lines.append(".long 0")
    return "\n".join(lines) + "\n"


def version_script(symbols: list[Symbol]) -> str:
    """Return the linker script that gives each symbol its version."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for symbol in symbols:
        nodes[symbol.version].append(symbol.name)
    return "".join(
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};\n"
        for version, names in sorted(nodes.items())
    )


def make_stub(library: Path, soname: str, zig: list[str], out: Path) -> None:
    """Write a stub of a shared library.

    Args:
        library: the real one, of the machine that is built for.
        soname: the name that wheels look for at run time.
        zig: the C compiler and its target.
        out: the stub; its source is next to it. Named as an object file: zig links libraries last,
            after libstdc++.a, which would then be linked in whole.
    """
    table = subprocess.run(
        ["readelf", "--wide", "--dyn-syms", library], check=True, capture_output=True, text=True
    ).stdout
    symbols = read_symbols(table)
    if not symbols:
        raise SystemExit(f"{library} has no symbols that manylinux_2_28 allows")
    source, script = out.with_suffix(".s"), out.with_suffix(".map")
    source.write_text(assembly(symbols))
    script.write_text(version_script(symbols))
    flags = [f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}"]
    subprocess.run(
        [*zig, "-shared", "-nostdlib", *flags, "-o", out, source],
        check=True,
    )
