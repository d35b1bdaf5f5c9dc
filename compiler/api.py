"""The compiler's functions: convert weights, compile a model, or find the cached result.

Results are stored in the cache (wherry/cache/entries.py). If two processes ask for the same result,
one compiles it under a lock; the other waits and reuses it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
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
from wherry.quant.mix import Mix, base_of, mix_of
from wherry.quant.scheme import DEFAULT, KEPT, TYPES, Scheme, portable
from wherry.targets.target import TargetPreset
from wherry.targets.toolchains.web import core_digest

from .calibration.choice import AUTO, NONE, calibration_of, fits
from .calibration.encode import Calibration
from .checkpoint.kept import ANY, NOTHING, AllowedSchemes, KeptSchemes
from .choices import ArtifactArguments, ArtifactSpec
from .choices import Limits as Limits
from .convert import ModelWeights, convert
from .draft_head import joined
from .encoding import Keep
from .library.build import Deployment
from .library.export import exact_parameters, parameters
from .load import Described, describe
from .model_folder import model_folder
from .package import Compilation, package, repair
from .weight_marker import content_of, files_of, label_of, own_of, scheme_of

_log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]  # arguments: phase, steps done, steps in total
_SOURCES = (".py", ".ll", ".mjs", ".cuh")  # suffixes of the compiler's own source files


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What belongs to a model's weights besides the model's own."""

    # Whether the block of multi-token prediction does, or the EAGLE-3 head that does in its place;
    # see `ArtifactSpec.draft_head`.
    drafts: bool | str = False
    mmproj: str | None = None  # the projector file of a GGUF file; see `ArtifactSpec.mmproj`


def convert_model(
    model: str,
    out: Path | None = None,
    *,
    quant: str | None = None,
    allowed: AllowedSchemes = ANY,
    calibration: str = AUTO,
    parts: ModelParts = ModelParts(),
    progress: Progress | None = None,
    thorough: bool = False,
) -> Path:
    """Write the weights of `model` in a scheme's layout; return their folder.

    Args:
        model: "demo", a folder, a GGUF file, or hf://ORG/NAME[@REVISION].
        out: the output folder; None: a folder in the cache.
        quant: name of a quantization scheme or mix; None or "kept": the encoding of a quantized
            checkpoint, else q4f16_1.
        allowed: without a scheme, the checkpoint's schemes in which weights stay, and the block
            types that a mix ("auto:4.5") may choose from.
        calibration: "auto", "none", "builtin" or a text file; see `ArtifactSpec.calibration`.
        parts: what belongs to the weights besides the model's own.
        progress: called with the phase, the steps done, and the steps in total.
        thorough: verify all existing weights, and convert damaged ones again.
    """
    return _converted(model, out, quant, allowed, calibration, parts, progress, thorough)[0]


def _converted(
    model: str,
    out: Path | None,
    quant: str | None,
    allowed: AllowedSchemes,
    calibration: str,
    parts: ModelParts,
    progress: Progress | None,
    thorough: bool,
) -> tuple[Path, Described]:
    """Convert as `convert_model`; return the folder of the weights, and their model."""
    quant = None if quant == KEPT else quant
    keep, types = allowed.keep, allowed.types
    if quant is not None:
        base_of(quant)  # reports errors now, not after a download
    mix, drafts = mix_of(quant), parts.drafts
    head = drafts if isinstance(drafts, str) else None
    described = describe(joined(model_folder(model, progress, parts.mmproj), head, progress))
    folder = described.folder
    scheme = base_of(quant or described.default_scheme)
    label = None if quant or keep == NOTHING else folder.label
    own = out is None
    if label is not None and calibration not in (AUTO, NONE):
        raise UsageError(
            f"{name_of(model)} is quantized already, as {label}, and its weights stay as they are, "
            f"so there is nothing to calibrate. To encode them again, add --quant {DEFAULT}"
        )
    described = described.with_mtp(bool(drafts))
    with Use(folder.path):
        shapes = parameters(described.arch, described.config, described.entries)
        calibrated = None
        if label is None:
            calibrated = calibration_of(described, calibration, shapes, scheme, mix)

        def place(calibrated: Calibration | None) -> Path:
            """Return the folder in the cache of a conversion."""
            key = hashlib.sha256(str(folder.path.resolve()).encode()).hexdigest()[:12]
            kind = _mixed(mix, types) if mix else _kind(scheme, label, keep)
            key += f"-{calibrated.text.sha256[:8]}" if calibrated else ""
            key += "-mtp" if drafts else ""
            return settings.cache_dir() / "weights" / f"{safe(name_of(model))}-{kind}-{key}"

        if calibrated and calibration == AUTO and not files_of(out or place(calibrated)):
            calibrated = calibrated if fits(shapes) else None
        out = out or place(calibrated)
        weights = ModelWeights(
            described=described,
            parameters=shapes,
            scheme=mix.name if mix else scheme.name,
            exact=exact_parameters(described.arch, described.config, described.entries),
            types=types,
            keep=None if label is None else Keep(label, keep),
            calibration=calibrated,
        )
        convert(weights, out, progress=progress, thorough=thorough)
    if own:
        touch(out)
    return out, described


def _kind(scheme: Scheme, label: str | None, keep: KeptSchemes | None) -> str:
    """Return the part of a weight folder's name that tells how the weights are stored."""
    if label is None:
        return scheme.name
    if keep is None:
        return KEPT
    more = [sorted(names - portable()) for names in (keep.matrices, keep.experts)]
    if not any(more):
        return f"{KEPT}-portable"
    return f"{KEPT}-{hashlib.sha256(json.dumps(more).encode()).hexdigest()[:6]}"


def _mixed(mix: Mix, types: Collection[str]) -> str:
    """Return the part of a weight folder's name for a mix of some types."""
    name = mix.name.replace(":", "-")
    if mix.type or set(types) == set(TYPES):
        return name
    return f"{name}-{hashlib.sha256(' '.join(sorted(types)).encode()).hexdigest()[:6]}"


def ensure_artifact(
    model: str,
    *,
    out: Path | None = None,
    dump: Path | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
    **choices: Unpack[ArtifactArguments],
) -> Path:
    """Return the compiled folder of `model`; compile it if the cache has none for the same inputs.

    Damaged files are written again, with a warning in the log.

    Args:
        model: "demo", a folder, a GGUF file, or hf://ORG/NAME[@REVISION].
        out: the output folder; None: a folder in the cache.
        dump: a folder for the module after each phase and the generated device code; forces a
            compilation.
        progress: called with the phase, the steps done, and the steps in total.
        thorough: verify the hashes of all existing files, even of files verified before.
        choices: the fields of `ArtifactSpec`.
    """
    choice = ArtifactSpec(**choices)
    _ = choice.preset, choice.mix, choice.drafts  # report errors now, not after a conversion
    weights, described = _converted(
        model,
        None,
        choice.quant,
        AllowedSchemes(choice.kept_schemes, choice.types),
        choice.calibration,
        ModelParts(choice.draft_head or choice.mtp, choice.mmproj),
        progress,
        thorough,
    )
    label = label_of(weights)
    choice = choice.in_scheme(scheme_of(weights))
    scheme, preset = choice.scheme, choice.preset
    deployment = choice.deployment(described)
    described = described.at(deployment.context)
    key = _key(weights, _inputs_of(preset), scheme.name, deployment)
    # All libraries of an app share one folder of weights, so the model has one name on every
    # target.
    linked = _key(weights, {"kind": preset.device["kind"]}, scheme.name, deployment)
    name = f"{safe(name_of(model))}-{label}-{safe(preset.name)}-{key}"
    folder = out or settings.cache_dir() / "models" / name
    if out and out.exists() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise UsageError(
            f"{out} has files and is not a compiled model; choose another folder: -o DIR"
        )
    if dump is None and _is_current(folder, key, weights, thorough):
        if out is None:
            touch(folder)
        return folder
    pruning.sweep(_own_code())
    with Use(weights), making(folder, f"{name_of(model)} for {preset.name}"):
        # Another process may have compiled the folder while this one waited for the lock, or a
        # repair suffices.
        if dump is None and _is_repaired(folder, key, weights, thorough):
            return folder
        compilation = Compilation(
            described=described,
            weights=weights,
            scheme=scheme,
            own=own_of(weights),
            label=label,
            target=preset,
            deployment=deployment,
            name=name_of(model),
            key=key,
            linked=linked,
        )
        package(folder, compilation, dump=dump, progress=progress)
        # Linking a weight file changes only its ctime. A copied file is new: its record is not
        # known yet.
        taken, files = files_of(weights), read_manifest(folder).files
        integrity.keep(weights, taken)
        unchanged = [n for n in files if n not in taken or (folder / n).samefile(weights / n)]
        integrity.keep(folder, {n: files[n] for n in unchanged})
    return folder


def name_of(model: str) -> str:
    """Return the model's display name: "demo", the folder's name, or ORG/NAME on the Hub."""
    if model.startswith("hf://"):
        return model.removeprefix("hf://").removesuffix(SUFFIX).partition("@")[0]
    if model == "demo":
        return model
    path = Path(model).expanduser().resolve()
    return stem(path.name) if path.suffix.lower() == SUFFIX and path.is_file() else path.name


def _key(weights: Path, target: dict[str, Any], scheme: str, deployment: Deployment) -> str:
    """Return a hash of everything that determines a compiled folder; `target` must be complete."""
    inputs: dict[str, Any] = {
        "weights": content_of(weights),
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
    """Return the fields of a target that determine its libraries, as JSON values."""
    return preset.record() | {
        "device": dict(preset.device),
        "library": preset.library,
        "kv_dtype": preset.kv_dtype,
        "activations": preset.activations,
        "variants": [_inputs_of(variant) for variant in preset.variants],
        # A WebAssembly library contains the engine, so a change of the engine's sources must
        # recompile it.
        **({"core": core_digest(preset.interface)} if preset.library == "wasm" else {}),
    }


@remembered
def _own_code() -> str:
    """Hash the compiler's own sources, so that a change of any of them recompiles models."""
    digest = hashlib.sha256()
    root = Path(wherry.__path__[0])
    for package_name in ("compiler", "models", "ops", "passes", "quant", "targets"):
        for path in sorted((root / package_name).rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _is_current(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """Return whether `folder` was compiled from the inputs of `key` and is complete."""
    try:
        manifest = read_manifest(folder)
    except ArtifactError:
        return False
    if manifest.key != key:
        return False
    return not any(_problems(folder, manifest, weights, thorough))


def _is_repaired(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """Return whether `folder` is current, as `_is_current` does, after repairs without compilation.

    Damage is reported in the log.
    """
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
        _log.warning("%s is damaged:\n%s\nIt is built again.", folder, problems)
    return not others and repair(folder, manifest, weights, damaged)


def _problems(
    folder: Path, manifest: Manifest, weights: Path, thorough: bool
) -> tuple[dict[str, str], list[str]]:
    """Return problems by file name, and problems that belong to no file.

    Weights are not hashed here: the engine checks each shard when it maps it.
    """
    lazily = files_of(weights)
    damaged = integrity.damaged(folder, manifest.files, lazily=lazily, thorough=thorough)
    return damaged, [*unlisted(folder, manifest.files), *interface_problems(manifest)]
