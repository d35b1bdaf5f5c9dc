"""Reads what the Gradle module of the Kotlin library says, so that nothing is said twice."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANDROID = ROOT / "mobile" / "android"
_KOTLIN = "org.jetbrains.kotlin:kotlin-stdlib"


def _found(pattern: str, name: str = "build.gradle.kts") -> str:
    text = (ANDROID / name).read_text(encoding="utf-8")
    match = re.search(pattern, text, re.M)
    if match is None:
        raise SystemExit(f"{ANDROID / name} has no {pattern}")
    return match[1]


def version() -> str:
    """Return the library's version."""
    return _found(r'^version = "(.+?)"')


def group() -> str:
    """Return the Maven group of the library."""
    return _found(r'^group = "(.+?)"')


def namespace() -> str:
    """Return the package of the library's resources."""
    return _found(r'namespace = "(.+?)"')


def min_sdk() -> str:
    """Return the oldest API level that the library runs on."""
    return _found(r"minSdk = (\d+)")


def kotlin() -> str:
    """Return the version of Kotlin, as "2.3.10"."""
    return _found(r'kotlin\("android"\) version "(.+?)"', "settings.gradle.kts")


def dependencies() -> list[tuple[str, str, str]]:
    """Return group, name and version of what the library takes; Gradle adds Kotlin's by itself."""
    text = (ANDROID / "build.gradle.kts").read_text(encoding="utf-8")
    found = [f"{_KOTLIN}:{kotlin()}", *re.findall(r'^    api\("(.+?)"\)', text, re.M)]
    made = [tuple(name.split(":")) for name in found]
    return [(one, two, three) for one, two, three in made]
