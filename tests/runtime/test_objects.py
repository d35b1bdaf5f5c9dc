"""A compiled model as objects runs where no linker is, and answers as a library does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.errors import ToolchainError, UsageError, WherryError
from wherry.machine import tvm_runtime
from wherry.machine.cpu import machine_problems
from wherry.runtime import MLCEngine
from wherry.targets import cpu, hosts
from wherry.targets.target import find

pytestmark = pytest.mark.cpu

REQUEST = {
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "max_tokens": 24,
    "seed": 3,
}


def answer(engine: MLCEngine) -> str:
    return engine.chat.completions.create(**REQUEST).choices[0].message.content


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("objects") / "demo"
    return ensure_artifact("demo", target="cpu", format="objects", out=out)


def test_objects_answer_as_a_library(folder):
    manifest = read_manifest(folder)
    assert manifest.library == "model.tar"
    assert manifest.target["objects"] == {"format": "ELF"}
    assert machine_problems(manifest.target) == []
    with MLCEngine(folder) as first, MLCEngine(folder) as second, MLCEngine("demo") as library:
        assert answer(first) == answer(second) == answer(library)


@pytest.mark.nightly
def test_a_machine_without_a_compiler(tmp_path):
    """A process that finds no program at all compiles the demo and lets it answer."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "wherry",
            "run",
            "demo",
            "--seed",
            "1",
            "--max-tokens",
            "8",
            "Hello!",
        ],
        env={
            **{k: v for k, v in os.environ.items() if k not in ("CC", "CXX")},
            "PATH": str(tmp_path),
            "WHERRY_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert [p.name for p in (tmp_path / "cache").rglob("model.*")] == ["model.tar"]


def test_which_format(monkeypatch):
    monkeypatch.setattr(hosts, "local_compiler", lambda: None)
    cpu.preset.cache_clear()
    assert find("cpu").library == "tar"
    assert find("cpu").in_format("library").library == "so"
    monkeypatch.setattr(hosts, "local_compiler", lambda: "g++")
    cpu.preset.cache_clear()
    assert find("cpu").library == "so"
    objects = find("cpu:x86-64-v3+").in_format("objects")
    assert {objects.library, *(variant.library for variant in objects.variants)} == {"tar"}
    for target in ("wasm", "webgpu", "android"):
        with pytest.raises(UsageError, match=r"one format, model\..*--format auto"):
            find(target).in_format("library")


def test_a_library_for_a_machine_that_nothing_here_links_for(monkeypatch):
    monkeypatch.setattr(hosts.shutil, "which", lambda name: None)
    other = next(name for name in hosts.SERVERS if name != hosts.here().name)
    with pytest.raises(UsageError, match=f"No compiler here .* {other}. Type: --format objects"):
        find("opencl", other).in_format("library")


@pytest.mark.parametrize(
    ("named", "compiler"),
    [
        ({"CXX": "no-such-cxx", "CC": "gcc-9"}, "no-such-cxx"),
        ({"CC": "gcc-9"}, "gcc-9"),
        ({}, "/bin/clang++"),
    ],
)
def test_which_compiler(monkeypatch, named, compiler):
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        hosts.shutil, "which", lambda name: "/bin/clang++" if name == "clang++" else None
    )
    assert hosts.local_compiler() == compiler


def test_without_the_package_that_links(monkeypatch):
    monkeypatch.setattr(tvm_runtime.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match=r"Type: pip install apache-tvm-ffi-orcjit==0\.1\.3"):
        tvm_runtime.find_object_linker()


def test_a_damaged_archive(folder, tmp_path):
    """The manifest's checksum finds it; a core that is given it anyway refuses it, too."""
    from wherry.runtime.core.library import open_core, open_runtime
    from wherry.runtime.core.native import NativeCore

    open_runtime("cpu")
    tvm_runtime.open_object_linker()
    complete = (folder / "model.tar").read_bytes()
    for name, content in {"short": complete[:2000], "empty": b""}.items():
        path = tmp_path / f"{name}.tar"
        path.write_bytes(content)
        with pytest.raises(WherryError, match="archive of objects is damaged"):
            NativeCore(open_core(), path, folder, "cpu", {}, {}, None)


@pytest.mark.nightly
def test_two_hundred_loads_keep_no_memory(folder):
    script = f"""
import gc
from wherry.runtime import MLCEngine
from wherry.runtime.load.program_memory import resident
found = []
for turn in range(220):
    with MLCEngine({str(folder)!r}) as engine:
        engine.chat.completions.create(messages=[dict(role="user", content="Hi")], max_tokens=2)
    gc.collect()  # cycles of Python's objects wait for a collection, which comes at some time
    found.append(resident())
print(max(found[200:]) - max(found[:20]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 8 << 20  # bytes; one copy of the model's code is 0.6 MB
