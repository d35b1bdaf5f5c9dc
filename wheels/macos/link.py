"""Links a macOS library: `python link.py ZIG LIBRARY ARGUMENT ...`, as CMake calls it.

Zig has the list of libSystem's symbols, and none of libc++'s, which the system brings, too. So this
program links twice: first all unknown names may be found when the library is loaded; then those of
them that are C++'s own are listed as libc++'s, and the linker finds every other one, or fails. That
macOS 14 has the listed ones is said by libc++'s headers (zig.cmake).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

LIBCXX = "/usr/lib/libc++.1.dylib"
# Mangled names of namespace std and their tables, tables of the built-in types, operators new and
# delete, and the run time of exceptions and casts.
_NAMES = re.compile(
    r"__Z(?:T[VTIS])?(?:N[KO]?)?St\w+|__ZTVN10__cxxabiv1\w+|__ZT[IS]P?K?D?[a-z]"
    r"|__Z(?:nw|na|dl|da)\w+|___cxa_\w+|___gxx_personality_v0|___dynamic_cast"
)


def is_libcxx(name: str) -> bool:
    """Tell whether a symbol is of the C++ library or of its run time."""
    return _NAMES.fullmatch(name) is not None


def stub(names: Iterable[str]) -> str:
    """Return a text-based stub of libc++ (Apple's .tbd) that has these symbols."""
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return (
        "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\n"
        f"install-name: '{LIBCXX}'\n"
        f"exports:\n  - targets: [ arm64-macos ]\n    symbols: [ {listed} ]\n...\n"
    )


def main() -> None:
    """Link as the command line says."""
    import lief

    zig, library, *arguments = sys.argv[1:]
    command = [zig, "cc", "-shared", *arguments, "-o", library]
    subprocess.run([*command, "-Wl,-undefined,dynamic_lookup"], check=True)
    lief.logging.disable()  # it reports a table that is not there
    fat = lief.MachO.parse(library)
    assert fat is not None
    needed = {str(symbol.name) for symbol in fat.at(0).imported_symbols}
    listed = Path(f"{library}.libc++.tbd")
    listed.write_text(stub(filter(is_libcxx, needed)))
    subprocess.run([*command, listed], check=True)


if __name__ == "__main__":
    main()
