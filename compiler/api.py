"""The compiler's front door: convert weights, compile a model, or find it compiled already.

What is made lies in the cache, see wherry/cache.py. Two processes that want the same wait for each
other, and the second uses what the first has made.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache as remembered
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wherry
from wherry import cache, integrity, pruning, settings
from wherry.artifact import (
    INTERFACE_HASH,
    MANIFEST,
    Manifest,
    interface_problems,
    read_manifest,
    unlisted,
)
from wherry.errors import ArtifactError, UsageError, listing
from wherry.locks import Use, making, touch
from wherry.quant.scheme import DEFAULT as DEFAULT_QUANT
from wherry.quant.scheme import Scheme
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import TargetPreset
from wherry.targets.target import find as find_target
from wherry.targets.web_toolchain import core_digest

from . import source
from .build import Deployment
from .convert import MARKER, convert, files_of
from .export import exact_parameters, parameters
from .load import Described, describe
from .package import package, repair

_log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]  # what, done, in all
_SOURCES = (".py", ".ll", ".mjs", ".cuh")  # suffixes of files that take part in a compilation


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a person may ask of a deployment; None: the default."""

    context: int | None = None  # tokens of one sequence; the model's own maximum
    max_batch: int | None = None  # sequences in one step
    prefill_chunk: int | None = None  # rows of one step

    @classmethod
    def holding(cls, max_batch: int | None = None, prefill_chunk: int | None = None) -> Limits:
        """Those that a deployment has without a word, and more of what it has too little of."""
        usual = Deployment(context=1)
        rows = max(max_batch or 0, prefill_chunk or 0)
        return cls(
            max_batch=max_batch if (max_batch or 0) > usual.max_batch else None,
            prefill_chunk=rows if rows > usual.prefill_chunk else None,
        )

    def deployment(self, described: Described) -> Deployment:
        """The record, checked against the model.

        Raises:
            UsageError: a limit is not positive, or more than the model can.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        deployment = Deployment(**{"context": described.config.context} | given)
        problems = [f"{n} is {v}, at least 1 is needed" for n, v in given.items() if v < 1]
        if deployment.context > described.config.longest:
            problems.append(
                f"context is {deployment.context}, the model's positions end at "
                f"{described.config.longest}: --context takes 1 to {described.config.longest}"
            )
        if deployment.prefill_chunk < deployment.max_batch:
            problems.append(
                f"prefill_chunk is {deployment.prefill_chunk}, it has to hold a row for each of "
                f"the {deployment.max_batch} sequences of max_batch"
            )
        if problems:
            raise UsageError("Limits that do not fit: " + "; ".join(problems) + ".")
        return deployment


def convert_model(
    model: str,
    out: Path | None = None,
    *,
    quant: str | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
) -> Path:
    """Write the weights of `model` in a scheme's layout; the folder of them.

    Args:
        model: "demo", a folder, or hf://ORG/NAME[@REVISION].
        out: where to; None: the cache.
        quant: a scheme's name; None: q4f16_1.
        progress: called with what is done, how much of it, and how much there is.
        thorough: read all weights that are there, and make again what is damaged.
    """
    scheme = find_scheme(quant or DEFAULT_QUANT)
    folder = _resolve(model, progress)
    own = out is None
    if out is None:
        place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        out = (
            settings.cache_dir() / "weights" / f"{cache.safe(name_of(model))}-{scheme.name}-{place}"
        )
    with Use(folder):
        described = describe(folder)
        convert(
            folder,
            out,
            scheme=scheme.name,
            arch=described.arch,
            parameters=parameters(described.arch, described.config, described.entries),
            exact=exact_parameters(described.arch, described.config, described.entries),
            head=described.head,
            headless="forward" not in described.entries,
            part=described.raw if described.is_part else None,
            progress=progress,
            thorough=thorough,
        )
    if own:
        touch(out)
    return out


def ensure_artifact(
    model: str,
    *,
    target: str = "auto",
    host: str | None = None,
    quant: str | None = None,
    kv_dtype: str = "auto",
    activations: str = "auto",
    limits: Limits | None = None,
    max_batch: int | None = None,
    prefill_chunk: int | None = None,
    out: Path | None = None,
    dump: Path | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
) -> Path:
    """The compiled folder of `model`, made now if there is none of these very inputs.

    What is damaged of it is made again, with a warning in the log.

    Args:
        model: "demo", a folder, or hf://ORG/NAME[@REVISION].
        target: a preset's name, or "auto" for the best of this machine.
        host: the machine that drives it, by name or triple; None: the target's own.
        quant: a scheme's name; None: q4f16_1.
        kv_dtype: of the cache: "float32", "float16", "int8", or "auto" for the target's own.
        activations: what weights are multiplied by: "int8" (of 4 and 8 bits, on CPUs), "float16"
            (on GPUs), "float", or "auto" for what suits target and scheme.
        limits: of the deployment.
        max_batch: what an engine will ask for: without `limits` the deployment has no less.
        prefill_chunk: the same.
        out: a folder to have it in; None: the cache's own.
        dump: a folder for the module after each phase and the source of the device's code;
            compiles even if the cache has the result.
        progress: called with what is done, how much of it, and how much there is.
        thorough: read all that is there, and do not trust what is known to have been whole.
    """
    scheme = find_scheme(quant or DEFAULT_QUANT)
    preset = with_dtypes(find_target(target, host), scheme, kv_dtype, activations)
    weights = convert_model(model, quant=quant, progress=progress, thorough=thorough)
    described = describe(weights)
    deployment = (limits or Limits.holding(max_batch, prefill_chunk)).deployment(described)
    described = described.at(deployment.context)
    key = _key(weights, _inputs_of(preset), scheme.name, deployment)
    # An app has one folder of a model's weights on all of its systems, and in each the same name.
    linked = _key(weights, {"kind": preset.device["kind"]}, scheme.name, deployment)
    name = f"{cache.safe(name_of(model))}-{scheme.name}-{cache.safe(preset.name)}-{key}"
    folder = out or settings.cache_dir() / "models" / name
    if out and out.exists() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise UsageError(f"{out} has files and is no compiled model; choose another folder: -o DIR")
    if dump is None and _is_made(folder, key, weights, thorough):
        if out is None:
            touch(folder)
        return folder
    pruning.sweep(_own_code())
    with Use(weights), making(folder, f"{name_of(model)} for {preset.name}"):
        # By the process that we waited for, or all but what is put right now.
        if dump is None and _is_repaired(folder, key, weights, thorough):
            return folder
        package(
            folder,
            described=described,
            weights=weights,
            scheme=scheme,
            target=preset,
            deployment=deployment,
            name=name_of(model),
            key=key,
            linked=linked,
            dump=dump,
            progress=progress,
        )
        # Linking has changed a time of the weights, nothing else. Copies are not known yet.
        taken, files = files_of(weights), read_manifest(folder).files
        integrity.keep(weights, taken)
        whole = [n for n in files if n not in taken or (folder / n).samefile(weights / n)]
        integrity.keep(folder, {n: files[n] for n in whole})
    return folder


def name_of(model: str) -> str:
    """What a model is called: demo, the folder's name, ORG/NAME."""
    if model.startswith("hf://"):
        return model.removeprefix("hf://").partition("@")[0]
    return model if model == "demo" else Path(model).expanduser().resolve().name


def _resolve(model: str, progress: Progress | None) -> Path:
    return source.resolve(model, cache=settings.cache_dir() / "hub", progress=progress)


def with_dtypes(
    preset: TargetPreset, scheme: Scheme, kv_dtype: str, activations: str
) -> TargetPreset:
    """The preset with the cache and the activations that were asked for, or that suit the scheme.

    Raises:
        UsageError: the target has no such kernels, or int8 was asked for with float weights.
    """
    suited = preset.suited_to(scheme.float_dtype)
    kv_dtype = suited.kv_dtype if kv_dtype == "auto" else kv_dtype
    if scheme.kernel_spec()["scheme"] not in ("q4", "q8"):
        if activations == "int8":
            raise UsageError(
                f"Activations 'int8' were asked for; weights in {scheme.name} are floats, and are "
                "multiplied by floats. Type: --activations auto, or --quant q8f16_1"
            )
        if activations == "auto" and suited.activations == "int8":
            activations = "float"
    if activations == "auto":
        activations = suited.activations
    return preset.with_kv_dtype(kv_dtype).with_activations(activations)


def _key(weights: Path, target: dict[str, Any], scheme: str, deployment: Deployment) -> str:
    """Hash of all that determines a compiled folder, if `target` says all of the target."""
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
    return cache.key(_own_code(), digest.hexdigest())


def _inputs_of(preset: TargetPreset) -> dict[str, Any]:
    """What of a target determines the libraries that are made for it."""
    return preset.record() | {
        "device": dict(preset.device),
        "library": preset.library,
        "kv_dtype": preset.kv_dtype,
        "activations": preset.activations,
        "variants": [_inputs_of(variant) for variant in preset.variants],
        # A part of the library.
        **({"core": core_digest(preset.interface)} if preset.library == "wasm" else {}),
    }


@remembered
def _own_code() -> str:
    """Hash of the sources that take part in a compilation, so that a change is never overlooked."""
    digest = hashlib.sha256()
    root = Path(wherry.__path__[0])
    for package_name in ("compiler", "models", "passes", "quant", "targets"):
        for path in sorted((root / package_name).rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _is_made(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """Whether `folder` was compiled from the inputs of `key` and is whole."""
    try:
        manifest = read_manifest(folder)
    except ArtifactError:
        return False
    if manifest.key != key:
        return False
    return not any(_problems(folder, manifest, weights, thorough))


def _is_repaired(folder: Path, key: str, weights: Path, thorough: bool) -> bool:
    """`_is_made` that also reports damage, and repairs it if no compilation is needed."""
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
    """What is wrong with files, by name, and what else is. Weights the core checks in use."""
    lazily = files_of(weights)
    damaged = integrity.damaged(folder, manifest.files, lazily=lazily, thorough=thorough)
    return damaged, [*unlisted(folder, manifest.files), *interface_problems(manifest)]
