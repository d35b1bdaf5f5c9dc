"""Creates an engine from a compiled folder: manifest, tokenizer, template, core."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from typing_extensions import Unpack

from wherry.artifact import integrity
from wherry.artifact.manifest import MANIFEST, SHARDS, Manifest, read_manifest
from wherry.artifact.variants import library_for, tower_for
from wherry.base import settings
from wherry.base.locks import touch
from wherry.errors import ArtifactError, UsageError
from wherry.machine.cuda_driver import require_code
from wherry.machine.tvm_runtime import open_object_linker

from ..core.interface import Core
from ..core.library import open_core, open_runtime
from ..core.native import NativeCore
from . import jit, memory
from .options import CompileOptions, LoadOptions, for_compiler

_log = logging.getLogger(__name__)
# sizes for which the compiler has planned memory
LIMITS = ("context", "max_batch", "prefill_chunk")
T = TypeVar("T")
CoreFactory = Callable[..., Core]  # called with the arguments of native_core

# Engine options that are no sizes: the names in LoadOptions, and in the core's configuration.
_SETTINGS = {
    "prefix_cache": "prefix_cache",
    "prefix_cache_dir": "cache_dir",
    "prefix_cache_bytes": "cache_bytes",
    "max_drafts": "max_drafts",
    "max_slowdown": "max_slowdown",
}


def resolve(
    model: str | Path, *, thorough: bool = False, **options: Unpack[CompileOptions]
) -> Path:
    """Return the compiled folder of `model`; compile it if it is not compiled yet.

    Damaged files in the cache are replaced; `thorough` verifies all of them.

    Raises:
        UsageError: the folder was compiled for another target, scheme, activations or KV dtype than
            requested.
    """
    folder = Path(model).expanduser()
    if not (folder / MANIFEST).is_file():
        return jit.compiled(str(model), thorough=thorough, **options)
    target, kv_dtype = options.get("target", "auto"), options.get("kv_dtype", "auto")
    quant, activations = options.get("quant"), options.get("activations", "auto")
    manifest = read_manifest(folder)
    has_target = str(manifest.target.get("name"))
    if quant is not None and quant != manifest.quantization:
        raise UsageError(
            f"{folder} is compiled with quant={manifest.quantization!r}, not {quant!r}. "
            "Leave quant out, or give the model that it was compiled from."
        )
    if kv_dtype != "auto":
        raise UsageError(
            f"{folder} is compiled, with a dtype of the KV cache chosen then; "
            f"kv_dtype={kv_dtype!r} was requested. "
            "Leave kv_dtype out, or give the model that it was compiled from."
        )
    has_activations = manifest.deployment.get("activations")
    if activations not in ("auto", has_activations):
        raise UsageError(
            f"{folder} is compiled with activations={has_activations!r}, not {activations!r}. "
            "Leave activations out, or give the model that it was compiled from."
        )
    if options.get("mtp") and "mtp" not in manifest.capabilities:
        raise UsageError(
            f"{folder} is compiled without a block of multi-token prediction; mtp=True was "
            "requested. Leave mtp out, or give the model that it was compiled from."
        )
    if options.get("draft_head") is not None:
        raise UsageError(
            f"{folder} is compiled; a draft head becomes part of a model when it is compiled. "
            "Leave draft_head out, or give the model that it was compiled from."
        )
    if options.get("mmproj") is not None:
        raise UsageError(
            f"{folder} is compiled; a projector file becomes part of a model when it is compiled. "
            "Leave mmproj out, or give the model that it was compiled from."
        )
    if target != "auto" and target.partition(":")[0] != has_target.partition(":")[0]:
        raise UsageError(
            f"{folder} is compiled for {has_target!r}, not {target!r}. "
            "Leave target out, or give the model that it was compiled from."
        )
    return folder


def with_repair(model: str | Path, resolve: Callable[..., Path], opened: Callable[[Path], T]) -> T:
    """Call `opened` with the folder that `resolve` finds.

    If the folder causes an error, such as weights that turn out to be damaged, the cache is
    verified and repaired once. A compiled folder of the user is never changed.
    """
    folder = resolve()
    try:
        return opened(folder)
    except ArtifactError as e:
        if folder == Path(model).expanduser():
            raise
        _log.warning("%s\nThe cache is read through; what is damaged is built again.", e)
    return opened(resolve(thorough=True))


def verified(folder: Path) -> Manifest:
    """Check a compiled folder and return its manifest.

    Sizes are compared at each load; a file is hashed only if it may have changed or the machine has
    restarted. The core checks packed weights where it uses them.

    Raises:
        ArtifactError: lists all problems.
    """
    packed = any(pack_dir(read_manifest(folder)).glob("packed-*.bin"))
    return integrity.verified(folder, lazily=folder_shards(folder) if packed else ())


def folder_shards(folder: Path) -> list[str]:
    """List the weight files of a compiled folder."""
    return [path.name for path in folder.glob(SHARDS)]


def pack_dir(manifest: Manifest) -> Path:
    """Return the folder of packed weights; artefacts with equal shards and library share one."""
    content = json.dumps(sorted((n, r.sha256) for n, r in manifest.files.items()))
    key = hashlib.sha256(
        f"{manifest.interface}{library_for(manifest)}{content}".encode()
    ).hexdigest()[:24]
    return settings.cache_dir() / "packed" / key


def device_of(manifest: Manifest) -> str:
    """Return the core's name of the device that a library is compiled for, such as "cuda:0"."""
    return device_name(manifest.target)


def device_name(target: Mapping[str, Any]) -> str:
    """Return the core's device name for the target in a manifest, such as "cuda:0"."""
    kind = str(target.get("kind", "llvm"))
    return "cpu" if kind in ("llvm", "c") else f"{kind}:0"


def native_core(
    folder: Path,
    manifest: Manifest,
    device: str,
    options: Mapping[str, Any],
    config: Mapping[str, Any],
    draft: Path | None = None,
) -> Core:
    """Open a model with the C++ core, with a draft model's compiled folder if there is one."""
    kind = device.partition(":")[0]
    open_runtime(kind)
    if kind == "cuda":
        require_code(manifest.target["codes"], manifest.target.get("device_limits", {}))
    library = folder / library_for(manifest)
    packed = pack_dir(manifest)
    try:
        packed.mkdir(parents=True, exist_ok=True)
        touch(packed)
        options = {**options, "pack_dir": str(packed)}
    except OSError as e:  # a read-only cache is no error: it costs only time and memory
        _log.warning("%s cannot be written (%s): weights are packed at each load", packed, e)
    before = _inodes(packed)
    if tower := tower_for(manifest):
        options = {**options, "vision": str((folder / tower).absolute())}
    shards = [folder / name for name in folder_shards(folder)]
    known = bool(before) and integrity.seen(packed, [*before, *shards])
    if known:  # one check of a packed file after each start of the machine is enough
        options = {**options, "check_weights": 0}
    draft_model = (draft / library_for(read_manifest(draft)), draft) if draft else None
    if ".tar" in (library.suffix, draft_model[0].suffix if draft_model else ""):
        open_object_linker()
    core = NativeCore(open_core(), library, folder, device, options, config, draft_model)
    after = _inodes(packed)
    _look_at_packed(before, after)
    if after and not known:
        integrity.see(packed, [*_inodes(packed), *shards])
    return core


def _look_at_packed(before: Mapping[Path, int], after: Mapping[Path, int]) -> None:
    """Report damaged packed weights, and remove packed files that no artefact uses any more.

    The core overwrites only a damaged packed file; after a repair of the shards it writes a file of
    another name.
    """
    for path in before.keys() & after.keys():
        if before[path] != after[path]:
            _log.warning("%s was damaged, and has been built again", path)
    if after.keys() - before.keys():
        for path in before:
            path.unlink(missing_ok=True)


def _inodes(packed: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in packed.glob("packed-*.bin")}


def draft_of(options: LoadOptions) -> Path | None:
    """Return the draft model's compiled folder after a check; None without a draft model."""
    if options.get("draft") is None:
        return None
    # A draft model drafts by itself: a block or a head of its own would be of no use.
    own = for_compiler(options)
    own |= {"mtp": False, "draft_head": None, "mmproj": None}
    folder = resolve(cast(str, options["draft"]), **own)
    verified(folder)
    return folder


def engine_config(
    manifest: memory.Declared, options: LoadOptions, device: str, draft: Path | None = None
) -> dict[str, Any]:
    """Return an engine's configuration from options, with the compiled sizes as defaults.

    The KV cache gets the memory of `device` (the core's name) that remains after the weights of the
    model and of the draft model.

    Raises:
        UsageError: a number is not positive, or exceeds the compiled library's.
        ResourceError: the weights and one page of cache do not fit into memory.
    """
    return sized(manifest, options, memory.room(device), read_manifest(draft) if draft else None)


def sized(
    manifest: memory.Declared,
    options: LoadOptions,
    there: memory.Room,
    drafts: memory.Declared | None = None,
) -> dict[str, Any]:
    """Return the configuration as `engine_config` does, for a forecast model and given memory."""
    given: dict[str, Any] = dict(options)
    if given.get("context") == "auto":
        given["context"] = memory.largest_context(manifest, there, drafts)
    config = {n: given[n] for n in (*LIMITS, "kv_tokens") if given.get(n) is not None}
    problems = [f"{n} is {v!r}" for n, v in config.items() if type(v) is not int or v < 1]
    if problems:
        raise UsageError(f"{', '.join(problems)}; each takes a whole number from 1")
    compiled = {n: manifest.deployment[n] for n in LIMITS if n in manifest.deployment}
    problems = [
        f"{n} is {config[n]}, {_limit(manifest, n, config[n])}"
        for n, limit in compiled.items()
        if config.get(n, 0) > limit
    ]
    if problems:
        raise UsageError(f"More than the compiled model allows: {'; '.join(problems)}.")
    config = compiled | config
    core_settings = {core: given[n] for n, core in _SETTINGS.items() if given.get(n) is not None}
    if "kv_tokens" not in config:
        if given.get("context"):
            memory.require(given["context"], manifest, there, drafts)
        fitting = memory.kv_tokens(manifest, config | core_settings, there, drafts)
        if fitting:
            required = -(-(given.get("context") or 0) // memory.PAGE) * memory.PAGE
            config["kv_tokens"] = max(fitting, required)
    if "cache_dir" in core_settings:
        core_settings["cache_dir"] = str(Path(core_settings["cache_dir"]).expanduser().absolute())
    return config | core_settings


def _limit(manifest: memory.Declared, name: str, requested: int) -> str:
    """Return a model's maximum for an option in LIMITS, and the command that raises it."""
    compiled, option = manifest.deployment[name], f"--{name.replace('_', '-')}"
    most = manifest.deployment.get("longest", requested) if name == "context" else requested
    if compiled >= most:
        return f"{manifest.name} ends at {most} tokens: {option} takes 1 to {most}, or auto"
    more = f"compile with {option} {min(requested, most)} to have more"
    if requested > most:
        more = f"the model itself ends at {most}: compile with {option} {most} to have all"
    return f"{manifest.name} was compiled for at most {compiled} ({more})"
