"""Which symbols a static library may leave to the system's C++ library."""

from __future__ import annotations

import pytest

from wherry.packager.check import in_cpp_library


@pytest.mark.parametrize(
    "name", ["_ZTIi", "_ZTIDi", "_ZTIb", "_ZTIPKc", "_ZSt9terminatev", "_Znwm", "__cxa_throw"]
)
def test_the_library_has(name):
    assert in_cpp_library(name)


@pytest.mark.parametrize(
    "name", ["_ZTIN6wherry7ScannerE", "_ZTI7Scanner", "_ZN6wherry3runEv", "TVM"]
)
def test_symbols_of_this_project_are_not_there(name):
    assert not in_cpp_library(name)
