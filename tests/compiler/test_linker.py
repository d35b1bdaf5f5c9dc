"""A machine without a compiler hears of it before a compilation, not at its end."""

from __future__ import annotations

import pytest

from wherry.compiler.library import build
from wherry.compiler.library.build import Deployment, build_library
from wherry.errors import ToolchainError
from wherry.targets.target import find


@pytest.mark.parametrize(
    ("compiler", "said"),
    [(None, "C\\+\\+ compiler, which"), ("no-such-cxx", "no-such-cxx is not installed")],
)
def test_what_to_type_is_said_first(tmp_path, monkeypatch, compiler, said):
    monkeypatch.setattr(build, "local_compiler", lambda: compiler)
    with pytest.raises(ToolchainError, match=f"{said}.* Type: apt-get install g\\+\\+"):
        build_library(
            None,  # it is not looked at
            find("cpu").in_format("library"),
            Deployment(context=16),
            tmp_path / "model.so",
        )
