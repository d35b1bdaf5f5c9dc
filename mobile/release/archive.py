"""Writes archives whose bytes depend on nothing but their content, and checksums next to them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP archive can have
_MODE = 0o644 << 16
CHECKSUMS = ("md5", "sha1", "sha256", "sha512")


def files_below(folder: Path, name: str = "") -> dict[str, Path]:
    """Return all files of a folder by their names in an archive, which begin with `name`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{name}{path.relative_to(folder).as_posix()}": path for path in files}


def write_zip(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write an archive, its files in the order of their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _MODE
            if isinstance(source, bytes):
                archive.writestr(entry, source)
                continue
            entry.file_size = source.stat().st_size  # zipfile then knows whether it is a large one
            with source.open("rb") as read, archive.open(entry, "w") as written:
                while piece := read.read(1 << 20):
                    written.write(piece)


def digest(path: Path, kind: str = "sha256") -> str:
    """Return a checksum of a file, in hexadecimal."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, kind).hexdigest()


def write_checksums(paths: Iterable[Path]) -> None:
    """Write the checksums of files as Maven's tools look for them: FILE.sha1..."""
    for path in paths:
        for kind in CHECKSUMS:
            path.with_name(f"{path.name}.{kind}").write_text(digest(path, kind), encoding="ascii")
