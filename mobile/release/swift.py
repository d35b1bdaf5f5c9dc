"""Writes a Swift package whose binary target is an archive: the .xcframework of a package.

    Package.swift                   names the archive by its path, or by a URL and its checksum
    Sources, Tests                  the Swift sources
    Wherry-VERSION.xcframework.zip  the libraries and headers
    Wherry-VERSION.xcframework.zip.sha256

The checksum is that of `swift package compute-checksum`: the archive's SHA-256.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .archive import digest, files_below, write_zip

_FRAMEWORK = "Wherry.xcframework"
_TARGET = f'.binaryTarget(name: "CWherry", path: "{_FRAMEWORK}")'
_FOLDERS = ("Sources", "Tests", "Linux")


def write_package(folder: Path, package: Path, version: str, url: str | None) -> Path:
    """Write the Swift package of a release; return its archive.

    Args:
        folder: the Swift package, which replaces an older one.
        package: the folder that `wherry package` wrote.
        version: the release's version.
        url: where the archive will be, a folder; None: next to Package.swift.
    """
    shutil.rmtree(folder, ignore_errors=True)
    archive = folder / f"Wherry-{version}.xcframework.zip"
    write_zip(archive, files_below(package / _FRAMEWORK, f"{_FRAMEWORK}/"))
    checksum = digest(archive)
    archive.with_name(f"{archive.name}.sha256").write_text(
        f"{checksum}  {archive.name}\n", encoding="ascii"
    )
    for name in _FOLDERS:
        shutil.copytree(package / name, folder / name)
    manifest = (package / "Package.swift").read_text(encoding="utf-8")
    if manifest.count(_TARGET) != 1:
        raise SystemExit(f"{package / 'Package.swift'} has not once: {_TARGET}")
    (folder / "Package.swift").write_text(
        manifest.replace(_TARGET, _target(archive.name, checksum, url)), encoding="utf-8"
    )
    return archive


def _target(name: str, checksum: str, url: str | None) -> str:
    if url is None:
        return f'.binaryTarget(name: "CWherry", path: {json.dumps(name)})'
    where = json.dumps(f"{url.rstrip('/')}/{name}")
    return f'.binaryTarget(\n    name: "CWherry", url: {where},\n    checksum: "{checksum}")'
