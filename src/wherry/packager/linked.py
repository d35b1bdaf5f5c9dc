"""Unpacks compiled models for an app's linker, and writes the tables by which the app finds them.

A model may have several libraries in one app: one for each kind of device, and on CPUs one for each
level. `models.cc` lists them as JSON, which app/load/codes.h reads when a model is loaded.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wherry.artifact.manifest import Manifest
from wherry.artifact.variants import MODEL, TOWER

# Kinds of devices, the preferred ones first. Of Android's two OpenCL is the older and faster.
PREFERRED = ("metal", "opencl", "vulkan", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A compiled folder of a model for one kind of device."""

    folder: Path
    manifest: Manifest


# Kind of device -> compiled folder; every model has one for "cpu".
Model = Mapping[str, Compiled]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One library of a model, as the app's table lists it."""

    device: str  # kind of device
    name: str  # name of the target: "cpu:armv8-a+dotprod"
    symbols: str  # prefix of its symbols
    tower: str  # prefix of the symbols of its vision tower's library; "": it takes no images
    features: tuple[str, ...]  # features that CPUs need, in Linux's names


def codes_of(model: Model) -> list[Code]:
    """Return the libraries of a model in the order in which a load tries them.

    The last one runs on every machine of the platform.
    """
    devices = sorted(model, key=PREFERRED.index)
    return [code for device in devices for code, _ in reversed(list(_libraries(device, model)))]


def sees(model: Model) -> bool:
    """Return whether a model has a vision tower."""
    return any(code.tower for code in codes_of(model))


def files_of(manifest: Manifest) -> frozenset[str]:
    """Return the names of a folder's libraries."""
    names = [name for name, *_ in _records(manifest)]
    return frozenset([*names, *map(_tower_of, names)]) & frozenset(manifest.files)


def write_models(folder: Path, models: Sequence[Model], drivers: Collection[str]) -> None:
    """Unpack the objects of compiled models, and write models.cc, which refers to each of them.

    Args:
        folder: an empty output folder.
        models: compiled folders of each model.
        drivers: kinds of devices whose plugins are linked in.
    """
    symbols: list[str] = []
    for model in models:
        for device, compiled in model.items():
            for code, library in _libraries(device, model):
                prefixes = {code.symbols: library, code.tower: _tower_of(library)}
                for prefix, file in prefixes.items():
                    if not prefix:
                        continue
                    ends = ("__tvm_ffi__library_bin", "__tvm_ffi__library_ctx")
                    symbols += [f"{prefix}{end}" for end in ends]
                    _unpack(compiled.folder / file, folder, f"{prefix}{{}}")
    table = {
        model["cpu"].manifest.target["objects"]["symbols"]: [asdict(c) for c in codes_of(model)]
        for model in models
    }
    (folder / "models.cc").write_text(_source(symbols, json.dumps(table), sorted(drivers)))


def _records(manifest: Manifest) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Yield file, target, symbols and CPU features of each library, ascending by level."""
    target = manifest.target
    name = str(target["name"]).rstrip("+")
    yield manifest.library, name, target["objects"]["symbols"], target["features"]
    for one in target.get("variants", ()):
        yield one["library"], one["name"], one["symbols"], one["features"]


def _libraries(device: str, model: Model) -> Iterator[tuple[Code, str]]:
    manifest = model[device].manifest
    base = manifest.target["objects"]["symbols"]
    for file, name, symbols, features in _records(manifest):
        # as compiler/package.py names them
        own = f"{base}{TOWER}_{symbols.removeprefix(base)}"
        tower = own if _tower_of(file) in manifest.files else ""
        code = Code(
            device=device, name=name, symbols=symbols, tower=tower, features=tuple(features)
        )
        yield code, file


def _tower_of(library: str) -> str:
    return TOWER + library.removeprefix(MODEL)


def _unpack(library: Path, folder: Path, name: str) -> None:
    with tarfile.open(library) as archive:
        for member in archive.getmembers():
            if content := archive.extractfile(member):
                file = folder / name.format(Path(member.name).name)
                file.write_bytes(content.read())


def _source(symbols: Sequence[str], table: str, drivers: Sequence[str]) -> str:
    declared = "".join(f"extern const char {name}[];\n" for name in symbols)
    listed = "".join(f"    {name},\n" for name in symbols)
    functions = "".join(
        f"const char* wherry_{kind}_open(const char* tvm_version, const char* cache_folder);\n"
        f"const char* wherry_{kind}_devices();\n"
        for kind in drivers
    )
    rows = "".join(
        f'    {{"{kind}", wherry_{kind}_open, wherry_{kind}_devices}},\n' for kind in drivers
    )
    return (
        "// What is linked in: a symbol of each object file of the models, their table, and the\n"
        "// plugins of devices; see runtime.cc.\n"
        f'extern "C" {{\n{declared}{functions}'
        "struct WherryDriver {\n"
        "  const char* kind;\n"
        "  const char* (*open)(const char* tvm_version, const char* cache_folder);\n"
        "  const char* (*devices)();\n"
        "};\n"
        "extern const void* const wherry_linked_models[];\n"
        "extern const char wherry_linked_codes[];\n"
        "extern const WherryDriver wherry_linked_drivers[];\n"
        f"const void* const wherry_linked_models[] = {{\n{listed}    nullptr,\n}};\n"
        f'const char wherry_linked_codes[] = R"json({table})json";\n'
        f"const WherryDriver wherry_linked_drivers[] = {{\n{rows}"
        "    {nullptr, nullptr, nullptr},\n};\n}\n"
    )
