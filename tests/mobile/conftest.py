"""What tests of the libraries for apps share: compilers, and this machine's own answers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import tvm
import tvm_ffi
from filelock import FileLock

from wherry import tools
from wherry.base import settings
from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

from ..support.java import jdk

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RUNTIME = Path(tvm.__file__).parent / "lib" / "libtvm_runtime.so"
# What takes neither Android nor Java's own classes.
CHECKS = ("Checks.kt", "SessionChecks.kt", "TypedChecks.kt")
ANDROID = ROOT / "mobile" / "android" / "src"


def lacking(what: str) -> None:
    """Skip on a person's machine; in CI, where it is to be installed, fail."""
    if os.environ.get("WHERRY_REQUIRE_JVM"):
        pytest.fail(what)
    pytest.skip(what)


def run(command: Iterable[object], **options) -> str:
    """Standard output of a program that must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def java_on(libraries: Iterable[Path], path: str, *words: object, **environment: str):
    """What a program says last, as JSON, with the native code in these libraries."""
    named = f"-Dwherry.libraries={':'.join(map(str, libraries))}"
    options = ["-Xcheck:jni", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", named]
    options += ["-Xms48m", "-Xmx48m", "-XX:+AlwaysPreTouch"]  # what grows is not Java's own memory
    # Java keeps its handler of SIGSEGV, for which tvm_ffi's wheel has another; apps have none.
    kept = {**os.environ, "LD_PRELOAD": str(jdk() / "lib" / "libjsig.so"), **environment}
    # glibc keeps a large buffer that was freed in the arena of its thread: one arena, one buffer.
    kept["MALLOC_ARENA_MAX"] = "1"
    said = run(["java", *options, "-cp", path, *words], env=kept)
    assert "FATAL ERROR in native method" not in said
    # -Xcheck:jni warns of unchecked exceptions and of leaking references.
    assert "WARNING in native method" not in said, said
    return json.loads(said.splitlines()[-1])


def java_libraries(bridge: Path) -> list[Path]:
    """The native code of a virtual machine: the library for Java, and what it needs."""
    return [Path(tvm_ffi.__file__).parent / "lib" / "libtvm_ffi.so", RUNTIME, bridge]


def digest(path: str, files: Iterable[Path]) -> str:
    """SHA-256 of files and of the path of classes that they are compiled with, 16 digits."""
    hashed = hashlib.sha256(path.encode())
    for file in files:
        hashed.update(file.name.encode() + file.read_bytes())
    return hashed.hexdigest()[:16]


@pytest.fixture(scope="session")
def demo():
    """The demo model for this machine, as other tests have it."""
    return ensure_artifact("demo", target="cpu")


@pytest.fixture(scope="session")
def engine(demo):
    """Python's engine on it."""
    with MLCEngine(demo, threads=1) as opened:
        yield opened


@pytest.fixture(scope="session")
def jars():
    """Kotlin's compiler, and the libraries that the package takes."""
    libraries = sorted((settings.toolchain_dir() / "kotlin").glob("*.jar"))
    if not libraries or not shutil.which("javac"):
        lacking(
            "no Kotlin or no JDK: apt-get install default-jdk-headless; and "
            f"{tools.command('kotlin')}"
        )
    return ":".join(map(str, libraries))


@pytest.fixture(scope="session")
def classes(jars, pytestconfig):
    """The library as any JVM runs it, and its checks in Kotlin."""
    checks = [HERE / "kotlin" / name for name in CHECKS]
    files = [*(ANDROID / "main" / "kotlin").rglob("*.kt"), *checks]
    return _compiled("kotlin", files, jars, pytestconfig.cache)


def readme_activity(folder: Path) -> Path:
    """The activity that mobile/README.md shows, as a file of Kotlin."""
    blocks = re.findall(
        r"^```kotlin\n(.*?)^```", (ROOT / "mobile" / "README.md").read_text(), re.M | re.S
    )
    (activity,) = (text for text in blocks if "ComponentActivity()" in text)
    path = folder / "ReadmeActivity.kt"
    path.write_text(activity)
    return path


@pytest.fixture(scope="session")
def all_classes(jars, classes, pytestconfig, tmp_path_factory):
    """Compile the library, its Android part, the sample and the page's activity.

    Returns the class path. Android, its WorkManager and Compose are stubs: signatures of the
    functions that are called.
    """
    files = [
        *(HERE / "android_stubs").rglob("*.java"),
        *(HERE / "work_stubs").glob("*.kt"),
        *(HERE / "compose_stubs").glob("*.kt"),
        *(ANDROID / "android").rglob("*.kt"),
        *(ANDROID / "work").rglob("*.kt"),
        *(ANDROID.parent / "sample" / "src").rglob("*.kt"),
        readme_activity(tmp_path_factory.mktemp("readme")),
        *(p for p in (HERE / "kotlin").iterdir() if p.name not in CHECKS),
    ]
    path = f"{jars}:{classes}"
    return f"{_compiled('kotlin_more', files, path, pytestconfig.cache)}:{path}"


def _compiled(kind: str, files: Iterable[Path], path: str, cache: pytest.Cache) -> Path:
    """Classes of files in Kotlin and Java, kept for the next run; made by one process."""
    files = sorted(files)
    kept = cache.mkdir(kind)
    out = kept / digest(path, files)
    with FileLock(kept.with_suffix(".lock")):
        if not out.is_dir():
            for older in kept.iterdir():
                shutil.rmtree(older)
            _compile(files, path, kept / f"{out.name}.tmp").rename(out)
    return out


def _compile(files: list[Path], path: str, making: Path) -> Path:
    making.mkdir()
    # Its warnings are errors, as in Gradle's build; the language as old devices have it.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path]
    kotlin = [*java, "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect"]
    flags = ["-Werror", "-jvm-target", "1.8", "-Xsuppress-version-warnings"]
    flags.append(f"-Xplugin={_serialization(making)}")
    # Of files in Java it reads what they are. The plugin asks the first of the jars that has the
    # library's classes for its version, and a notebook's kernel has them, too.
    library = [p for p in path.split(":") if Path(p).name.startswith("kotlinx-serialization")]
    run([*kotlin, *flags, "-cp", ":".join([*library, path]), "-d", making, *files])
    if java_files := [p for p in files if p.suffix == ".java"]:
        run(["javac", "-cp", f"{path}:{making}", "-d", making, *java_files])
    return making


def _serialization(folder: Path) -> Path:
    """A jar that names the compiler's plugin for serializable classes, which it has in itself."""
    jar = folder / "serialization.jar"
    with zipfile.ZipFile(jar, "w") as out:
        out.writestr(
            "META-INF/services/org.jetbrains.kotlin.compiler.plugin.CompilerPluginRegistrar",
            "org.jetbrains.kotlinx.serialization.compiler.extensions.SerializationComponentRegistrar",
        )
    return jar


@pytest.fixture(scope="session")
def bridge():
    """The native library for Java on the engine of this machine, as CMake builds it."""
    library = ROOT / "build" / "dev" / "libwherry_jni.so"
    if not library.is_file():
        lacking(
            f"no {library}: apt-get install default-jdk-headless, then cmake --preset dev && "
            "cmake --build --preset dev"
        )
    return library
