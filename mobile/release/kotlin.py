"""Compiles the Kotlin library for Android without Gradle: classes.jar of an AAR.

The jar has the classes of stubs that are written in Kotlin, too; `in_library` says which are not
theirs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wherry.tools import command

from .gradle import ANDROID, ROOT, kotlin

PARTS = ("main", "android", "work")  # folders of sources
STUBS = ROOT / "tests" / "mobile" / "android_stubs"
WORK_STUBS = ROOT / "tests" / "mobile" / "work_stubs"


def android_classes() -> list[Path]:
    """Return Android's classes to compile against.

    They are those of the newest platform of an SDK (ANDROID_HOME), else the signatures of the
    functions that the library calls, which tests have. WorkManager's are always the latter.
    """
    platforms = Path(os.environ.get("ANDROID_HOME", "/nowhere")) / "platforms"
    jars = {
        int(jar.parent.name.removeprefix("android-")): jar
        for jar in platforms.glob("android-*/android.jar")
        if jar.parent.name.removeprefix("android-").isdigit()
    }
    return [jars[max(jars)]] if jars else sorted(STUBS.rglob("*.java"))


def in_library(name: str) -> bool:
    """Whether a file of the jar belongs to the library."""
    return name.startswith(("dev/wherry/", "META-INF/"))


def compile_library(jars: Sequence[Path], out: Path) -> None:
    """Compile the library to the jar `out`.

    Args:
        jars: Kotlin's compiler and the libraries that the package takes.
        out: the jar.

    Raises:
        SystemExit: there is no compiler, or it failed.
    """
    if not jars:
        raise SystemExit(
            "there is no compiler of Kotlin, of PyPI's kotlin-jupyter-kernel. Type: "
            + command("kotlin")
        )
    android = android_classes()
    stubs = [path for path in android if path.suffix == ".java"]
    path = [*jars, *(jar for jar in android if jar.suffix == ".jar")]
    folders = [*(ANDROID / "src" / part / "kotlin" for part in PARTS), WORK_STUBS]
    sources = sorted(file for folder in folders for file in folder.rglob("*.kt"))
    language = ".".join(kotlin().split(".")[:2])
    # With the language's own version a compiler between two releases makes classes that every
    # Kotlin from that version on reads.
    flags = ["-language-version", language, "-api-version", language, "-jvm-target", "1.8"]
    flags += ["-no-stdlib", "-no-reflect", "-module-name", "wherry"]
    flags += ["-Werror", "-Xsuppress-version-warnings"]
    words: list[object] = ["java", "-XX:+UseSerialGC", "-cp", _joined(jars)]
    words += ["org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", *flags, "-cp", _joined(path)]
    words += ["-d", out, *sources, *stubs]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"Kotlin's compiler failed:\n{done.stdout}{done.stderr}")


def _joined(paths: Sequence[Path]) -> str:
    return ":".join(map(str, paths))
