"""Reads what the Gradle module of the Kotlin library says, so that nothing is said twice."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANDROID = ROOT / "mobile" / "android"
_KOTLIN = "org.jetbrains.kotlin:kotlin-stdlib"


def _match(pattern: str, name: str = "build.gradle.kts") -> str:
    text = (ANDROID / name).read_text(encoding="utf-8")
    match = re.search(pattern, text, re.M)
    if match is None:
        raise SystemExit(f"{ANDROID / name} has no {pattern}")
    return match[1]


def version() -> str:
    """Return the library's version."""
    return _match(r'^version = "(.+?)"')


def group() -> str:
    """Return the Maven group of the library."""
    return _match(r'^group = "(.+?)"')


def namespace() -> str:
    """Return the package of the library's resources."""
    return _match(r'namespace = "(.+?)"')


def min_sdk() -> str:
    """Return the oldest API level that the library runs on."""
    return _match(r"minSdk = (\d+)")


def kotlin() -> str:
    """Return the version of Kotlin, as "2.3.10"."""
    return _match(r'kotlin\("android"\) version "(.+?)"', "settings.gradle.kts")


def dependencies() -> list[tuple[str, str, str]]:
    """Return group, name and version of what the library takes; Gradle adds Kotlin's by itself."""
    text = (ANDROID / "build.gradle.kts").read_text(encoding="utf-8")
    declared = [f"{_KOTLIN}:{kotlin()}", *re.findall(r'^    api\("(.+?)"\)', text, re.M)]
    parts = [tuple(name.split(":")) for name in declared]
    return [(one, two, three) for one, two, three in parts]
