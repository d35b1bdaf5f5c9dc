"""Writes the Kotlin library of an Android app: a Gradle module next to jniLibs and assets."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import sources

NAME = "android"  # folder of the module in a package
_FILES = (
    *("build.gradle.kts", "settings.gradle.kts", "gradle.properties", "consumer-rules.pro"),
    "module.md",  # for Dokka
)
_FOLDERS = ("src/main/kotlin", "src/android/kotlin", "src/work/kotlin")


def write_library(folder: Path) -> None:
    """Write the Gradle module.

    `build.gradle.kts` takes native files from the neighbouring folders.
    """
    source = sources.root() / "mobile" / "android"
    manifest = "src/main/AndroidManifest.xml"
    for name in _FOLDERS:
        shutil.copytree(source / name, folder / name)
    for name in (*_FILES, manifest):
        shutil.copyfile(source / name, folder / name)
