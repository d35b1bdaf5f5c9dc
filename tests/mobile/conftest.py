"""What tests of the libraries for apps share: compilers, and this machine's own answers."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from wherry import settings
from wherry.compiler.api import ensure_artifact
from wherry.runtime.core.library import find_core

from ..support.tiny_models import Runner

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CPP = ROOT / "mobile" / "android" / "src" / "main" / "cpp"
NEW_TOKENS = 24
PROMPTS = 16


def lacking(what: str) -> None:
    """Skip on a person's machine; in CI, where it is to be installed, fail."""
    if os.environ.get("WHERRY_REQUIRE_JVM"):
        pytest.fail(what)
    pytest.skip(what)


def prompt(i: int) -> list[int]:
    """As kotlin/Checks.kt has them."""
    return [3 + (7 * i + 3 * place) % 400 for place in range(8)]


def run(command: Iterable[object], **options) -> str:
    """Standard output of a program that must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def digest(*folders: Path) -> str:
    """SHA-256 of all files in folders, 16 digits."""
    found = hashlib.sha256()
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.is_file()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


@pytest.fixture(scope="session")
def demo():
    """The demo model for this machine, as other tests have it."""
    return ensure_artifact("demo", target="cpu")


@pytest.fixture(scope="session")
def greedy(demo):
    """The likeliest tokens of each prompt, by TVM's own virtual machine."""

    def tokens(i: int) -> list[int]:
        runner, found, new = Runner(demo), [], prompt(i)
        for _ in range(NEW_TOKENS):
            found.append(int(np.argmax(runner.step({0: new})[0][-1])))
            new = found[-1:]
        return found

    return tokens


@pytest.fixture(scope="session")
def jars():
    """Kotlin's compiler, and the libraries that the package takes."""
    found = sorted((settings.tools_dir() / "kotlin").glob("*.jar"))
    if not found or not shutil.which("javac"):
        lacking(
            "no Kotlin or no JDK: apt-get install default-jdk-headless; and unzip the jars of "
            f"PyPI's kotlin-jupyter-kernel to {settings.tools_dir() / 'kotlin'} (.ci/run)"
        )
    return ":".join(map(str, found))


@pytest.fixture(scope="session")
def classes(jars, pytestconfig):
    """The library and its checks, compiled; kept for the next run."""
    sources = [ROOT / "mobile" / "android" / "src", HERE / "kotlin", HERE / "android_stubs"]
    kept = pytestconfig.cache.mkdir("kotlin")
    out = kept / digest(*sources)
    if out.is_dir():
        return out
    for older in kept.iterdir():
        shutil.rmtree(older)
    making = kept / f"{out.name}.tmp"
    making.mkdir()
    # Its warnings are errors, as in Gradle's build; the language as old devices have it.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars]
    kotlin = [*java, "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect"]
    stubs = sorted((HERE / "android_stubs").rglob("*.java"))
    run(["javac", "-d", making, *stubs])
    path = f"{jars}:{making}"
    own = [str(p) for p in sorted((ROOT / "mobile/android/src").rglob("*.kt"))]
    flags = ["-Werror", "-jvm-target", "1.8", "-Xsuppress-version-warnings"]
    checks = sorted((HERE / "kotlin").iterdir())
    run([*kotlin, *flags, "-cp", path, "-d", making, *own, *checks])
    run(["javac", "-cp", path, "-d", making, *(p for p in checks if p.suffix == ".java")])
    making.rename(out)
    return out


@pytest.fixture(scope="session")
def bridge(jars, tmp_path_factory):
    """The native library for Java on the core of this machine; texts are numbers of tokens."""
    core = find_core()
    import tvm_ffi

    ffi = Path(tvm_ffi.__file__).parent
    javac = Path(shutil.which("javac") or "").resolve()
    headers = javac.parents[1] / "include"
    out = tmp_path_factory.mktemp("bridge") / "libwherry_test.so"
    include = [ROOT / "engine" / "include", headers, headers / "linux", ffi / "include"]
    folders = f"{core.parent}:{ffi / 'lib'}"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-o", out]
    command += [*sorted(CPP.glob("*.cc")), HERE / "stand_in_app.cc", *(f"-I{p}" for p in include)]
    command += [core, f"-L{ffi / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{folders}"]
    run(command)
    return out
