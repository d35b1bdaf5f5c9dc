"""What is C++'s own on macOS, and what keeps a library from being loaded there."""

from __future__ import annotations

import pytest
from wheels.macos.link import is_libcxx, stub

CXX = (
    "__ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE6resizeEmc",
    "__ZNKSt3__14__fs10filesystem4path10__filenameEv",
    "__ZNSt13runtime_errorC2EPKc",
    "__ZSt9terminatev",
    "__ZTISt9exception",
    "__ZTVNSt3__115basic_streambufIcNS_11char_traitsIcEEEE",
    "__ZTTNSt3__119basic_istringstreamIcNS_11char_traitsIcEENS_9allocatorIcEEEE",
    "__ZTVN10__cxxabiv120__si_class_type_infoE",
    "__ZTIDi",
    "__ZTIPKc",
    "__Znwm",
    "__ZdlPvSt11align_val_t",
    "___cxa_throw",
    "___gxx_personality_v0",
    "___dynamic_cast",
)
OTHERS = (
    "_TVMFFIFunctionCall",
    "__ZN3tvm3ffi6Module12LoadFromFileE",
    "__ZTIN6wherry5ErrorE",
    "_malloc",
)


def test_names_of_the_c_plus_plus_library():
    assert [name for name in CXX if not is_libcxx(name)] == []
    assert [name for name in OTHERS if is_libcxx(name)] == []
    assert "symbols: [ '__Znwm', '___cxa_throw' ]" in stub(["___cxa_throw", "__Znwm"])


TVM = "int TVMFFIFunctionCall(void) { return 0; }"
USER = "int TVMFFIFunctionCall(void); int wherry_one(void) { return TVMFFIFunctionCall(); }"
RPATH = "-Wl,-rpath,@loader_path/../tvm_ffi/lib"


@pytest.fixture
def link(link_shared, tmp_path):
    """Link a library from C for a version of macOS; returns its file."""

    def make(name: str, source: str, *flags: str, version: str = "14.0"):
        library = tmp_path / name
        target = ["-target", f"aarch64-macos.{version}", f"-Wl,-install_name,@rpath/{library.name}"]
        return link_shared(library, source, *target, *flags)

    return make


@pytest.mark.nightly
def test_what_dyld_would_refuse(link):
    from wheels.macos.symbols import problems

    tvm = link("tvm_ffi/lib/libtvm_ffi.dylib", TVM)
    packages = tvm.parents[2]
    assert problems(link("wherry/good.dylib", USER, RPATH, str(tvm)), packages) == []
    (new,) = problems(link("wherry/new.dylib", USER, RPATH, str(tvm), version="15.0"), packages)
    assert "MACOS 15.0, not for MACOS 14.0" in new
    (lost,) = problems(link("wherry/lost.dylib", USER, str(tvm)), packages)
    assert "libtvm_ffi.dylib is not in []" in lost
    other = link("other/libother.dylib", TVM)
    (unknown,) = problems(link("wherry/unknown.dylib", USER, RPATH, str(other)), packages)
    assert "libother.dylib'], which nothing brings" in unknown
    loose = link("wherry/loose.dylib", USER, "-Wl,-undefined,dynamic_lookup")
    (flat,) = problems(loose, packages)
    assert "_TVMFFIFunctionCall is taken from whatever library is there" in flat
    tvm.unlink()
    link("tvm_ffi/lib/libtvm_ffi.dylib", "int other;")
    from wheels.macos import symbols

    symbols._parse.cache_clear()
    (gone,) = problems(packages / "wherry" / "good.dylib", packages)
    assert gone == "@rpath/libtvm_ffi.dylib has no _TVMFFIFunctionCall"
