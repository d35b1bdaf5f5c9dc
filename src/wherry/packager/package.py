"""Writes a package for an app: all model files and libraries that it needs, in one folder.

    wherry-package.json           the package's record: models, libraries, programs, sizes, SHA-256
    assets/NAME/                  a model's weights, tokenizer and manifest, for wherry_app_open
    jniLibs/ABI/libwherry.so      Android: core, runtime and models in one library, for Java
    lib/PLATFORM/libwherry.{a,so} Linux
    bin/PLATFORM/wherry-lite      Linux, Termux: a program with the models, for terminals and HTTP
    Wherry.xcframework/           Apple: static libraries and headers
    Package.swift, Sources/       Apple: the Swift package
    android/                      Android: the Kotlin library, a Gradle module
    include/                      headers, with a module map
    objects/PLATFORM/             models' code for platforms whose compiler is missing

A model's manifest here is the compiled folder's without the library, because the app's library has
the model's objects.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wherry
from wherry.artifact.manifest import MANIFEST, Manifest, read_manifest, record
from wherry.base.locks import making
from wherry.base.temporary import require_own, temporary_folder
from wherry.errors import ToolchainError, UsageError, listing
from wherry.targets.toolchains.toolchain import Requirement

from . import drivers, kotlin_library, sources, swift_package, wuffs, xcframework
from .build import PROGRAM, Progress, build
from .check import check_library, check_objects
from .compilers import Compiler, compiler_for
from .linked import Compiled, Model, codes_of, files_of, sees, write_models
from .platforms import Platform

INDEX = "wherry-package.json"
_SCHEMA = 1
# Model name -> platform -> kind of device -> compiled folder.
Folders = Mapping[str, Mapping[str, Mapping[str, Path]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFile:
    """A library or program of a package."""

    platform: str
    path: str  # path inside of the package
    size: int  # bytes of the file
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that was written."""

    libraries: tuple[BuiltFile, ...]
    programs: tuple[BuiltFile, ...]
    # Platform without libraries -> requirements that are missing for them.
    missing: Mapping[str, tuple[Requirement, ...]]


def check_new(out: Path) -> None:
    """Raise if `out` has other files, which a package would overwrite.

    Raises:
        UsageError: the folder has files and is no package.
    """
    require_own(out, INDEX, "package")


def write_package(
    out: Path,
    compiled: Folders,
    platforms: Sequence[Platform],
    progress: Progress | None = None,
    *,
    grammar: bool = False,
) -> Package:
    """Write the package `out`, replacing an older package.

    Args:
        out: the output folder.
        compiled: model name -> platform -> kind of device -> compiled folder; a kind other than
            "cpu" gets its plugin.
        platforms: the platforms.
        progress: as for `build`.
        grammar: whether structured output is compiled in.

    Raises:
        ToolchainError: a compiler failed, or a library needs a symbol that the system lacks.
        UsageError: a model's devices need different weights.
    """
    check_new(out)
    with making(out, f"the package {out.name}"), temporary_folder(out) as folder:
        missing: dict[str, tuple[Requirement, ...]] = {}
        libraries: list[BuiltFile] = []
        programs: list[BuiltFile] = []
        _write_headers(folder / "include")
        for platform in platforms:
            models = [_model(all_[platform.name]) for all_ in compiled.values()]
            if missing_here := lacking(platform, _plugins(models), images=any(map(sees, models))):
                missing[platform.name] = missing_here
            usable = None if missing_here else compiler_for(platform)
            for built_file in _write_code(
                folder, platform, usable, models, progress, grammar=grammar
            ):
                (programs if Path(built_file.path).name == PROGRAM else libraries).append(
                    built_file
                )
        linked = {p.folder: p for p in platforms if p.system == "apple" and p.name not in missing}
        if linked:
            xcframework.write_info(folder / xcframework.NAME, linked)
            swift_package.write_package(folder)
        if any(p.system == "android" for p in platforms):
            kotlin_library.write_library(folder / kotlin_library.NAME)
        records = [_write_assets(folder, name, all_) for name, all_ in compiled.items()]
        index = {
            "schema": _SCHEMA,
            "wherry": wherry.__version__,
            "tvm": version("apache-tvm"),
            "grammar": grammar,
            "models": records,
            "libraries": [asdict(built_file) for built_file in libraries],
            "programs": [asdict(built_file) for built_file in programs],
            "missing": {
                name: [asdict(t) for t in requirements] for name, requirements in missing.items()
            },
        }
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        folder.rename(out)
    return Package(libraries=tuple(libraries), programs=tuple(programs), missing=missing)


def lacking(
    platform: Platform, devices: Collection[str], *, images: bool = False
) -> tuple[Requirement, ...]:
    """Return what a platform's library takes and this machine lacks.

    Args:
        platform: the platform.
        devices: kinds of devices, besides CPUs, for which models have code.
        images: whether a model has a vision tower.
    """
    decoder = wuffs.requirement()
    return (
        *compiler_for(platform).missing,
        *drivers.missing(platform, devices),
        *([decoder] if images and not decoder.installed else []),
    )


def require_all(out: Path, package: Package) -> None:
    """Raise if a platform has no libraries.

    Raises:
        ToolchainError: a platform has none; the message says what to type.
    """
    if not package.missing:
        return
    lines = [
        f"{name}: models' code is in {out / 'objects' / name}; its library takes "
        f"{needed.name}. Type: {needed.fix}"
        for name, requirements in package.missing.items()
        for needed in requirements
        if needed.installed is None
    ]
    raise ToolchainError(
        f"{out} is written, but libraries are missing in it:\n{listing(lines)}\n"
        "Then type the same again: what is compiled is kept."
    )


def next_steps(out: Path, package: Package) -> list[str]:
    """Return what a person does with a package: a line for each kind of app."""
    place = out.absolute()
    steps = []
    if (out / kotlin_library.NAME).is_dir():
        project = f'file("{place / kotlin_library.NAME}")'
        steps.append(
            f'in settings.gradle.kts, include(":wherry"); project(":wherry").projectDir = {project}'
        )
    if (out / xcframework.NAME).is_dir():
        steps.append(f"in Xcode, File > Add Package Dependencies > Add Local: {place}")
    model = min((out / "assets").iterdir())
    steps += [f"{out / built_file.path} chat {model}" for built_file in package.programs]
    return [*steps, "mobile/README.md in Wherry's sources has the lines that load and stream"]


def _write_code(
    folder: Path,
    platform: Platform,
    compiler: Compiler | None,
    models: Sequence[Model],
    progress: Progress | None,
    *,
    grammar: bool,
) -> list[BuiltFile]:
    plugins = _plugins(models)
    objects = folder / "objects" / platform.name
    objects.mkdir(parents=True)
    write_models(objects, models, plugins)
    check_objects(platform, sorted(objects.glob("*.o")))
    if compiler is None:  # or something else that the build takes is missing
        return [_built_file(folder, platform, path) for path in sorted(objects.glob("*.o"))]
    staged = folder / "staged"
    built = build(
        platform,
        compiler,
        objects,
        staged,
        progress,
        grammar=grammar,
        images=any(map(sees, models)),
        devices=plugins,
    )
    for library in built:
        if library.suffix == ".a":
            check_library(platform, library)
    place = folder / platform.folder
    if platform.system == "apple":
        place = folder / xcframework.NAME / platform.folder
        _write_headers(place / xcframework.HEADERS, drivers.libraries(plugins))
    # An Android app needs only the shared library.
    taken = [p for p in built if platform.system != "android" or p.suffix != ".a"]
    places = [folder / platform.programs if p.name == PROGRAM else place for p in taken]
    for path, to in zip(taken, places, strict=True):
        to.mkdir(parents=True, exist_ok=True)
        path.rename(to / path.name)
    shutil.rmtree(staged)
    shutil.rmtree(objects)
    if not any(objects.parent.iterdir()):
        objects.parent.rmdir()
    return [
        _built_file(folder, platform, to / path.name)
        for path, to in zip(taken, places, strict=True)
    ]


def _built_file(folder: Path, platform: Platform, path: Path) -> BuiltFile:
    content = record(path)
    name = path.relative_to(folder).as_posix()
    return BuiltFile(platform=platform.name, path=name, size=content.size, sha256=content.sha256)


def _write_headers(folder: Path, libraries: Sequence[str] = ()) -> None:
    """Write the headers and a module map, by which an app links the system's libraries, too."""
    folder.mkdir(parents=True)
    headers = sorted(
        path
        for part in ("engine", "app")
        for path in (sources.root() / part / "include").glob("*.h")
    )
    for header in headers:
        shutil.copyfile(header, folder / header.name)
    lines = [f'header "{header.name}"' for header in headers]
    lines += [f"link {library}" for library in ('"c++"', *libraries)] + ["export *"]
    body = "".join(f"    {line}\n" for line in lines)
    (folder / "module.modulemap").write_text(f"module CWherry {{\n{body}}}\n")


def _model(folders: Mapping[str, Path]) -> Model:
    return {
        device: Compiled(folder=place, manifest=read_manifest(place))
        for device, place in folders.items()
    }


def _plugins(models: Sequence[Model]) -> tuple[str, ...]:
    """Return the kinds of devices, besides CPUs, for which a model has code."""
    return tuple(sorted({device for model in models for device in model} - {"cpu"}))


def _write_assets(
    folder: Path, name: str, compiled: Mapping[str, Mapping[str, Path]]
) -> dict[str, Any]:
    """Copy the model's files that all platforms share; return their record for the index."""
    models = {platform: _model(folders) for platform, folders in compiled.items()}
    all_ = [one for model in models.values() for one in model.values()]
    first = next(iter(models.values()))["cpu"]
    manifest, files = first.manifest, _without_library(first.manifest)
    # Libraries of all platforms find the model's table by one symbol prefix.
    bases = {model["cpu"].manifest.target["objects"]["symbols"] for model in models.values()}
    assert len(bases) == 1
    if any(_without_library(one.manifest) != files for one in all_):
        raise UsageError(
            f"{name}: its devices read weights in different encodings, and an app has one. "
            "Type the same with --quant q4f16_1"
        )
    to = folder / "assets" / name
    to.mkdir(parents=True)
    for file in files:
        try:
            os.link(first.folder / file, to / file)
        except OSError:  # another disk, or a file system without hard links
            shutil.copyfile(first.folder / file, to / file)
    (to / MANIFEST).write_text(replace(manifest, files=files).to_json(), encoding="utf-8")
    return {
        "name": manifest.name,
        "folder": f"assets/{name}",
        "symbols": manifest.target["objects"]["symbols"],
        "codes": {
            platform: [asdict(code) for code in codes_of(model)]
            for platform, model in models.items()
        },
        "quantization": manifest.quantization,
        "memory": manifest.memory,
        "bytes": sum(file.size for file in files.values()),
    }


def _without_library(manifest: Manifest) -> dict[str, Any]:
    libraries = files_of(manifest)
    return {name: file for name, file in manifest.files.items() if name not in libraries}
