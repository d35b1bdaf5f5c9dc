"""What keeps a library from being loaded on Windows."""

from __future__ import annotations

import pytest

TVM = "__declspec(dllexport) int TVMFFIFunctionCall(void) { return 0; }"
USER = (
    "__declspec(dllimport) int TVMFFIFunctionCall(void);\n"
    "__declspec(dllexport) int wherry_one(void) { return TVMFFIFunctionCall(); }"
)


@pytest.mark.nightly
def test_what_windows_would_refuse(link_shared, tmp_path):
    from wheels.windows import symbols

    def link(name: str, source: str, *flags: object):
        return link_shared(tmp_path / name, source, "-target", "x86_64-windows-gnu", *flags)

    tvm = link("tvm_ffi/lib/tvm_ffi.dll", TVM)
    good = link("wherry/good.dll", USER, tvm.with_suffix(".lib"))
    assert symbols.problems(good, tmp_path) == []
    other = link("other/other.dll", TVM)
    unknown = link("wherry/unknown.dll", USER, other.with_suffix(".lib"))
    assert symbols.problems(unknown, tmp_path) == ["it needs other.dll, which nothing brings"]
    header = bytearray(good.read_bytes())
    machine = int.from_bytes(header[0x3C:0x40], "little") + 4
    header[machine : machine + 2] = b"\x64\xaa"  # 64-bit Arm's number
    arm = tmp_path / "wherry" / "arm.dll"
    arm.write_bytes(header)
    assert symbols.problems(arm, tmp_path) == ["it is for ARM64, not for AMD64"]
    link("tvm_ffi/lib/tvm_ffi.dll", "__declspec(dllexport) int other;")
    symbols.open_library.cache_clear()
    assert symbols.problems(good, tmp_path) == ["tvm_ffi.dll has no TVMFFIFunctionCall"]
