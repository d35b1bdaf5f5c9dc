"""What models for pages are linked with: the system's linker, or the one of the package ziglang."""

from __future__ import annotations

import pytest

from wherry.errors import ToolchainError
from wherry.targets.toolchains import web as web_toolchain

SAYS_ITS_ARGUMENTS = '#!/bin/sh\necho "$@" >&2\nexit 1\n'


@pytest.fixture
def zig(monkeypatch, tmp_path):
    """A package ziglang whose program fails with its arguments, and nothing on PATH."""
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    program = package / "zig"
    program.write_text(SAYS_ITS_ARGUMENTS)
    program.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    return program


@pytest.fixture
def core(monkeypatch, tmp_path):
    path = tmp_path / "core.o"
    path.write_bytes(b"")
    monkeypatch.setenv("WHERRY_WEB_CORE", str(path))
    return path


def test_ziglang_has_a_linker(zig):
    assert web_toolchain.find_linker() == [str(zig), "wasm-ld"]
    linker = web_toolchain.WebToolchain().requirements()[-1]
    assert linker.installed == f"{zig} wasm-ld" and "wherry[browser]" in linker.fix


def test_the_system_s_linker_comes_first(zig, monkeypatch):
    own = zig.with_name("wasm-ld-15")
    own.write_text(SAYS_ITS_ARGUMENTS)
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(own.parent))
    assert web_toolchain.find_linker() == [str(own)]


def test_what_the_linker_is_given(zig, core, tmp_path):
    words = rf"could not link the model to {core}:\nwasm-ld --no-entry .*{core} a\.o -o model\.wasm"
    with pytest.raises(ToolchainError, match=words):
        web_toolchain.Linker()("model.wasm", ["a.o"])


def test_without_a_linker(zig, core):
    zig.unlink()
    with pytest.raises(ToolchainError, match=r"wasm-ld\. Type: pip install 'wherry\[browser\]'"):
        web_toolchain.Linker()("model.wasm", ["a.o"])
