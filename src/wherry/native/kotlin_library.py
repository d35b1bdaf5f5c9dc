"""The Kotlin library of an app for Android: a module of Gradle beside jniLibs and assets."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import sources

NAME = "android"  # its folder in a package
_FILES = ("build.gradle.kts", "settings.gradle.kts", "gradle.properties", "consumer-rules.pro")
_FOLDERS = ("src/main/kotlin", "src/android/kotlin")


def write_library(folder: Path) -> None:
    """Write the module; `build.gradle.kts` takes what is native of the folders beside `folder`."""
    ours = sources.root() / "mobile" / "android"
    manifest = "src/main/AndroidManifest.xml"
    for name in _FOLDERS:
        shutil.copytree(ours / name, folder / name)
    for name in (*_FILES, manifest):
        shutil.copyfile(ours / name, folder / name)
