"""Symbols and platforms of object files, and what is said of those that cannot be linked."""

from __future__ import annotations

import subprocess

import pytest

from wherry.errors import ToolchainError
from wherry.packager import object_files
from wherry.packager.check import check_objects
from wherry.packager.platforms import PLATFORMS

from ..support.metal import clang

SOURCE = """
extern int other(int);
int mine(int x) { return other(x) + 1; }
static int hidden(int x) { return x; }
__attribute__((weak)) int replaced(int x) { return hidden(x); }
extern __attribute__((weak)) int optional(int);
int asks(int x) { return optional ? optional(x) : replaced(x); }
"""
FORMATS = {
    "x86_64-linux-gnu": ("ELF", "x86_64", ""),
    "aarch64-linux-android26": ("ELF", "aarch64", ""),
    "arm64-apple-ios16.0": ("Mach-O", "aarch64", "ios 16.0"),
    "arm64-apple-ios16.0-simulator": ("Mach-O", "aarch64", "ios-simulator 16.0"),
    "arm64-apple-ios16.0-macabi": ("Mach-O", "aarch64", "macabi 16.0"),
}


def compiled(folder, triple, source=SOURCE, name="it"):
    (folder / f"{name}.c").write_text(source)
    out = folder / f"{name}-{triple}.o"
    command = [clang(), "-x", "c", "-target", triple, "-O1", "-c", str(folder / f"{name}.c")]
    subprocess.run([*command, "-o", str(out)], check=True)
    return out


@pytest.mark.parametrize("triple", FORMATS)
def test_symbols_of_an_object_file(tmp_path, triple):
    (file,) = object_files.read(compiled(tmp_path, triple))
    assert (file.format, file.arch, file.platform) == FORMATS[triple]
    assert file.defined == {"mine", "replaced", "asks"}
    assert file.undefined == {"other"}  # without a definition, `optional` is null


@pytest.mark.parametrize("tool", ["ar", "llvm-ar"])
def test_a_library_needs_what_none_of_its_files_has(tmp_path, tool):
    triple = "x86_64-linux-gnu"
    long_name = "a_name_that_does_not_fit_into_the_header_of_a_member"
    first = compiled(tmp_path, triple)
    second = compiled(
        tmp_path, triple, "int last(int); int other(int x) { return last(x); }", long_name
    )
    library = tmp_path / "lib.a"
    subprocess.run([tool, "qcs", str(library), str(first), str(second)], check=True)
    files = object_files.read(library)
    assert [file.name for file in files] == [first.name, second.name]
    assert object_files.undefined(files) == {"last"}


def test_what_is_no_library_is_said(tmp_path):
    path = tmp_path / "text.o"
    for content in (
        b"hello",
        b"",
        b"\x7fELF",
        b"\x7fELF\x02\x01" + bytes(30),
        b"!<arch>\n" + b"x" * 70,
    ):
        path.write_bytes(content)
        with pytest.raises(ToolchainError, match=r"text\.o is not a library of ELF or Mach-O"):
            object_files.read(path)


def test_all_that_is_wrong_with_objects_is_listed(tmp_path):
    foreign = compiled(tmp_path, "arm64-apple-ios16.0-simulator")
    with pytest.raises(ToolchainError) as raised:
        check_objects(PLATFORMS["iphone"], [foreign])
    said = str(raised.value)
    assert "is Mach-O for aarch64 ios-simulator 16.0" in said
    assert "other is called, and nowhere defined" in said
