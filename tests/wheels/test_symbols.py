"""What auditwheel says of a wheel: symbols that are too new and unknown libraries are errors."""

from __future__ import annotations

import pytest
from wheels.manylinux.symbols import check_symbols

PLATFORM = "manylinux_2_28_x86_64"


def report(sym_tag: str, *libraries: str) -> dict:
    return {
        "sym_tag": sym_tag,
        "external_libs": dict.fromkeys(libraries),
        "versioned_symbols": {"libc.so.6": ["GLIBC_2.34"]},
    }


@pytest.mark.parametrize("sym_tag", ["manylinux_2_5_x86_64", "manylinux_2_17_x86_64", PLATFORM])
def test_older_platforms_do(sym_tag):
    check_symbols(report(sym_tag, "libtvm_ffi.so", "libtvm_runtime.so"), PLATFORM)


@pytest.mark.parametrize(
    "sym_tag", ["manylinux_2_34_x86_64", "linux_x86_64", "manylinux_2_28_aarch64"]
)
def test_newer_and_other_platforms_do_not(sym_tag):
    with pytest.raises(SystemExit, match=r"GLIBC_2\.34"):
        check_symbols(report(sym_tag), PLATFORM)


def test_a_library_that_no_dependency_brings_is_named():
    with pytest.raises(SystemExit, match=r"libvulkan\.so\.1"):
        check_symbols(report(PLATFORM, "libtvm_ffi.so", "libvulkan.so.1"), PLATFORM)
