"""The compiler's functions: convert weights, compile a model, or find the cached result.

What is made lies in the cache, see wherry/cache/entries.py. Two processes that want the same wait
for each other, and the second uses what the first has made.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import cache as remembered
from importlib.metadata import version
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

import wherry
from wherry.artifact import integrity
from wherry.artifact.manifest import (
    INTERFACE_HASH,
    MANIFEST,
    Manifest,
    interface_problems,
    read_manifest,
    unlisted,
)
from wherry.base import settings
from wherry.base.locks import Use, making, touch
from wherry.cache import pruning
from wherry.cache.entries import key_of, safe
from wherry.errors import ArtifactError, UsageError, listing
from wherry.hub.gguf_files import SUFFIX, stem
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import TargetPreset
from wherry.targets.web_toolchain import core_digest

from .choices import Choice, Choices
from .choices import Limits as Limits
from .convert import MARKER, ModelWeights, convert, files_of, scheme_of
from .library.build import Deployment
from .library.export import exact_parameters, parameters
from .load import describe
from .model_folder import default_scheme, model_folder
from .package import Compilation, package, repair

_log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]  # what, done, total
_SOURCES = (".py", ".ll", ".mjs", ".cuh")  # suffixes of the compiler's own source files


def convert_model(
    model: str,
    out: Path | None = None,
    *,
    quant: str | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
) -> Path:
    """Write the weights of `model` in a scheme's layout; return their folder.

    Args:
        model: "demo", a folder, a GGUF file, or hf://ORG/NAME[@REVISION].
        out: the output folder; None: the cache.
        quant: a scheme's name; None: q4f16_1, of GGUF the nearest.
        progress: called with what is done, how much of it, and the total.
        thorough: verify all existing weights, and make damaged ones again.
    """
    if quant is not None:
        find_scheme(quant)  # reports errors now, not after a download
    folder = model_folder(model, progress)
    scheme = find_scheme(quant or default_scheme(folder))
    own = out is None
    if out is None:
        place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        out = settings.cache_dir() / "weights" / f"{safe(name_of(model))}-{scheme.name}-{place}"
    with Use(folder):
        described = describe(folder)
        wanted = ModelWeights(
            arch=described.arch,
            parameters=parameters(described.arch, described.config, described.entries),
            exact=exact_parameters(described.arch, described.config, described.entries),
            head=described.head,
            headless="forward" not in described.entries,
            part=described.raw if described.is_part else None,
        )
        convert(folder, out, wanted, scheme=scheme.name, progress=progress, thorough=thorough)
    if own:
        touch(out)
    return out


def ensure_artifact(
    model: str,
    *,
    out: Path | None = None,
    dump: Path | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
    **choices: Unpack[Choices],
) -> Path:
    """Return the compiled folder of `model`; compile it if there is none of the same inputs.

    Damaged files are made again, with a warning in the log.

    Args:
        model: "demo", a folder, a GGUF file, or hf://ORG/NAME[@REVISION].
        out: a folder for the result; None: the cache.
        dump: a folder for the module after each phase and the source of the device's code;
            compiles even if the cache has the result.
        progress: called with what is done, how much of it, and the total.
        thorough: verify all existing files, whatever is known about them.
        choices: see Choice.
    """
    choice = Choice(**choices)
    _ = choice.preset  # reports errors now, not after a conversion
    weights = convert_model(model, quant=choice.quant, progress=progress, thorough=thorough)
    choice = choice.in_scheme(scheme_of(weights))
    scheme, preset = choice.scheme, choice.preset
    described = describe(weights)
    deployment = choice.deployment(described)
    described = described.at(deployment.context)
    key = _key(weights, _inputs_of(preset), scheme.name, deployment)
    # An app has one folder of weights for all systems, and the model has one name in all of them.
    linked = _key(weights, {"kind": preset.device["kind"]}, scheme.name, deployment)
    name = f"{safe(name_of(model))}-{scheme.name}-{safe(preset.name)}-{key}"
    folder = out or settings.cache_dir() / "models" / name
    if out and out.exists() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise UsageError(f"{out} has files and is no compiled model; choose another folder: -o DIR")
    if dump is None and _is_made(folder, key, weights, thorough):
        if out is None:
            touch(folder)
        return folder
    pruning.sweep(_own_code())
    with Use(weights), making(folder, f"{name_of(model)} for {preset.name}"):
        # The other process has made it, or only a repair is needed.
        if dump is None and _is_repaired(folder, key, weights, thorough):
            return folder
        made = Compilation(
            described=described,
            weights=weights,
            scheme=scheme,
            target=preset,
            deployment=deployment,
            name=name_of(model),
            key=key,
            linked=linked,
        )
        package(folder, made, dump=dump, progress=progress)
        # Linking has changed a time of the weights, nothing else. Copies are not known yet.
        taken, files = files_of(weights), read_manifest(folder).files
        integrity.keep(weights, taken)
        whole = [n for n in files if n not in taken or (folder / n).samefile(weights / n)]
        integrity.keep(folder, {n: files[n] for n in whole})
    return folder


def name_of(model: str) -> str:
    """A name for the model: demo, the folder's name, ORG/NAME."""
    if model.startswith("hf://"):
        return model.removeprefix("hf://").removesuffix(SUFFIX).partition("@")[0]
    if model == "demo":
        return model
    path = Path(model).expanduser().resolve()
    return stem(path.name) if path.suffix.lower() == SUFFIX and path.is_file() else path.name


def _key(weights: Path, target: dict[str, Any], scheme: str, deployment: Deployment) -> str:
    """Hash everything that determines a compiled folder; `target` must be complete."""
    inputs: dict[str, Any] = {
        "weights": json.loads((weights / MARKER).read_text()),
        "target": target,
        "scheme": scheme,
        "deployment": asdict(deployment),
        "interface": INTERFACE_HASH,
        "tvm": version("apache-tvm"),
        "compiler": _own_code(),
    }
    digest = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode())
    return key_of(_own_code(), digest.hexdigest())


def _inputs_of(preset: TargetPreset) -> dict[str, Any]:
    """The parts of a target that determine its libraries."""
    return preset.record() | {
        "device": dict(preset.device),
        "library": preset.library,
        "kv_dtype": preset.kv_dtype,
        "activations": preset.activations,
        "variants": [_inputs_of(variant) for variant in preset.variants],
        # It is linked into the library.
        **({"core": core_digest(preset.interface)} if preset.library == "wasm" else {}),
    }


@remembered
def _own_code() -> str:
    """Hash the compiler's own sources, so that every change of them counts."""
    digest = hashlib.sha256()
    root = Path(wherry.__path__[0])
    for package_name in ("compiler", "models", "ops", "passes", "quant", "targets"):
        for path in sorted((root / package_name).rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _is_made(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """Whether `folder` was compiled from the inputs of `key` and is complete."""
    try:
        manifest = read_manifest(folder)
    except ArtifactError:
        return False
    if manifest.key != key:
        return False
    return not any(_problems(folder, manifest, weights, thorough))


def _is_repaired(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """Like `_is_made`; it also reports damage, and repairs it if that needs no compilation."""
    if not (folder / MANIFEST).exists():
        return False
    try:
        manifest = read_manifest(folder)
    except ArtifactError as e:
        _log.warning("%s", e)
        return False
    if manifest.key != key:
        return False
    damaged, others = _problems(folder, manifest, weights, thorough)
    if damaged or others:
        problems = listing([*damaged.values(), *others])
        _log.warning("%s is damaged:\n%s\nIt is made again.", folder, problems)
    return not others and repair(folder, manifest, weights, damaged)


def _problems(
    folder: Path, manifest: Manifest, weights: Path, thorough: bool
) -> tuple[dict[str, str], list[str]]:
    """Problems of files by name, and other problems. The core checks weights where it uses them."""
    lazily = files_of(weights)
    damaged = integrity.damaged(folder, manifest.files, lazily=lazily, thorough=thorough)
    return damaged, [*unlisted(folder, manifest.files), *interface_problems(manifest)]
