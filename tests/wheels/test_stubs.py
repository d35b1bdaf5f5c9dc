"""The stubs that wheels are linked to have what manylinux_2_28 allows, and nothing newer."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from wheels.manylinux.stubs import Symbol, allowed, assembly, read_symbols, version_script

# As readelf prints them; of libstdc++ and libgcc_s.
TABLE = """
Symbol table '.dynsym' contains 7 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND free@GLIBC_2.2.5 (2)
     2: 00000000000b1c10    33 FUNC    GLOBAL DEFAULT   13 _ZSt17__throw_bad_allocv@@GLIBCXX_3.4
     3: 0000000000145e10    87 FUNC    WEAK   DEFAULT   13 _ZNSt10filesystem4newEv@@GLIBCXX_3.4.26
     4: 000000000021cd20    16 OBJECT  WEAK   DEFAULT   21 _ZTISt9exception@@GLIBCXX_3.4
     5: 0000000000000000     0 OBJECT  GLOBAL DEFAULT  ABS GLIBCXX_3.4
     6: 00000000000d8a10    61 FUNC    GLOBAL DEFAULT   13 _ZNSt3tr14hashEv@GLIBCXX_3.4
     7: 0000000000000010     8 TLS     GLOBAL DEFAULT   19 _ZSt15__once_callable@@GLIBCXX_3.4.11
"""


@pytest.mark.parametrize(
    ("version", "allowed_there"),
    [
        ("GLIBCXX_3.4", True),
        ("GLIBCXX_3.4.9", True),
        ("GLIBCXX_3.4.24", True),
        ("GLIBCXX_3.4.25", False),
        ("CXXABI_1.3.11", True),
        ("CXXABI_1.3.13", False),
        ("CXXABI_TM_1", False),
        ("GCC_4.2.0", True),
        ("GCC_12.0.0", False),
        ("GLIBC_2.2.5", False),
    ],
)
def test_versions(version, allowed_there):
    assert allowed(version) is allowed_there


def test_symbols_of_a_library():
    assert read_symbols(TABLE) == [
        Symbol("_ZSt17__throw_bad_allocv", "GLIBCXX_3.4", "FUNC"),
        Symbol("_ZTISt9exception", "GLIBCXX_3.4", "OBJECT"),
        Symbol("_ZSt15__once_callable", "GLIBCXX_3.4.11", "TLS"),
    ]


def test_version_script():
    script = version_script(read_symbols(TABLE))
    assert script.splitlines() == [
        "GLIBCXX_3.4 { global: _ZSt17__throw_bad_allocv; _ZTISt9exception; };",
        "GLIBCXX_3.4.11 { global: _ZSt15__once_callable; };",
    ]


@pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("readelf") is None,
    reason="needs gcc and readelf (Debian: apt-get install gcc)",
)
def test_a_stub_has_the_symbols_and_their_versions(tmp_path):
    symbols = read_symbols(TABLE)
    (tmp_path / "stub.s").write_text(assembly(symbols))
    (tmp_path / "stub.map").write_text(version_script(symbols))
    flags = ["-shared", "-nostdlib", f"-Wl,--version-script,{tmp_path / 'stub.map'}"]
    stub = tmp_path / "stub.so"
    subprocess.run(["gcc", *flags, "-o", stub, tmp_path / "stub.s"], check=True)
    table = subprocess.run(
        ["readelf", "--wide", "--dyn-syms", stub], check=True, capture_output=True, text=True
    ).stdout
    assert sorted(read_symbols(table), key=str) == sorted(symbols, key=str)
