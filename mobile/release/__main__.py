"""Makes release artefacts of a package: `python -m mobile.release PACKAGE`.

In DIR it writes `maven/`, a Maven repository for Gradle, if the package has code for Android, and
`swift/`, a Swift package with a binary target, if it has code for Apple's systems.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import gradle, kotlin, maven, swift
from .archive import digest

_INDEX = "wherry-package.json"


def main(arguments: list[str] | None = None) -> None:
    """Make the artefacts and say where they are.

    Raises:
        SystemExit: the folder is no whole package; the message says why.
    """
    typed = _parser().parse_args(arguments)
    index = _checked(typed.package)
    systems = {library["path"].split("/")[0] for library in index["libraries"]}
    if not systems & {"jniLibs", "Wherry.xcframework"}:
        raise SystemExit(
            f"{typed.package} has no code for Android or Apple's systems. Type: wherry package "
            f"MODEL --target android --target iphone --target ios-simulator -o {typed.package}"
        )
    if "jniLibs" in systems:
        at = maven.Coordinates(typed.group, typed.name, typed.version)
        at.check()
        with tempfile.TemporaryDirectory() as work:
            classes = Path(work) / "classes.jar"
            kotlin.compile_library(sorted(typed.kotlin.glob("*.jar")), classes)
            place = typed.out / "maven"
            maven.write_artefact(place, at, typed.package, classes, assets=typed.assets)
        print(f'{place}: implementation("{at.group}:{at.name}:{at.version}")', file=sys.stderr)
    if "Wherry.xcframework" in systems:
        archive = swift.write_package(typed.out / "swift", typed.package, typed.version, typed.url)
        print(f"{archive}: checksum {digest(archive)}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mobile.release", description=__doc__)
    parser.add_argument("package", type=Path, help="the folder that `wherry package` wrote")
    parser.add_argument("--out", "-o", type=Path, default=Path("dist/apps"))
    parser.add_argument("--group", default=gradle.group(), help="of Maven (%(default)s)")
    parser.add_argument("--name", default="wherry", help="of the Maven artefact (%(default)s)")
    parser.add_argument("--version", default=gradle.version(), help="(%(default)s)")
    parser.add_argument("--url", help="the folder where the .xcframework's archive will be")
    parser.add_argument(
        "--kotlin",
        type=Path,
        default=Path("build/tools/kotlin"),
        help="folder of the jars of PyPI's kotlin-jupyter-kernel (%(default)s)",
    )
    parser.add_argument(
        "--no-assets",
        dest="assets",
        action="store_false",
        help="leave the models' weights out of the AAR: the app downloads them",
    )
    return parser


def _checked(package: Path) -> dict[str, Any]:
    """Return a package's record; raises SystemExit if a library is missing or another one."""
    file = package / _INDEX
    if not file.is_file():
        raise SystemExit(f"{package} is no package: it has no {_INDEX}. Type: wherry package")
    index: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    problems = [f"{name}: its compiler was missing" for name in index["missing"]]
    for library in index["libraries"]:
        path = package / library["path"]
        if not path.is_file():
            problems.append(f"{library['path']} is missing")
        elif digest(path) != library["sha256"]:
            problems.append(f"{library['path']} is not the file that was packaged")
    if problems:
        raise SystemExit(f"{package} is incomplete:\n" + "\n".join(f"  - {p}" for p in problems))
    return index


if __name__ == "__main__":
    main()
