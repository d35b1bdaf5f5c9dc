"""From a compiled folder to a model that runs: manifest, tokenizer, template, core."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wherry import settings
from wherry.artifact import (
    MANIFEST,
    Manifest,
    library_for,
    read_manifest,
    verify,
    write_atomically,
)
from wherry.cuda_driver import require_code
from wherry.errors import UsageError

from . import chat_template, jit, memory
from .core import Core
from .core_library import open_core, open_runtime
from .core_native import NativeCore
from .tokenizer import Tokenizer, read_json

_log = logging.getLogger(__name__)
LIMITS = ("context", "max_batch", "prefill_chunk")  # what memory was planned for at compile time
CoreFactory = Callable[[Path, Manifest, str, Mapping[str, Any], Mapping[str, int]], Core]


def resolve(
    model: str | Path,
    *,
    target: str = "auto",
    quant: str | None = None,
    kv_dtype: str = "auto",
    activations: str = "auto",
    progress: Any = None,
) -> Path:
    """The compiled folder of `model`, compiled now if it is not one yet.

    Raises:
        UsageError: it is compiled already, for another target or scheme than asked for, or other
            activations, or a dtype of the cache is asked for.
    """
    folder = Path(model).expanduser()
    if not (folder / MANIFEST).is_file():
        return jit.compiled(
            str(model),
            target=target,
            quant=quant,
            kv_dtype=kv_dtype,
            activations=activations,
            progress=progress,
        )
    manifest = read_manifest(folder)
    has_target = str(manifest.target.get("name"))
    if quant is not None and quant != manifest.quantization:
        raise UsageError(
            f"{folder} is compiled with quant={manifest.quantization!r}, not {quant!r}. "
            "Leave quant out, or give the model that it was compiled from."
        )
    if kv_dtype != "auto":
        raise UsageError(
            f"{folder} is compiled, and keeps keys and values as it was told to then; "
            f"kv_dtype={kv_dtype!r} was asked for. "
            "Leave kv_dtype out, or give the model that it was compiled from."
        )
    has_activations = manifest.deployment.get("activations")
    if activations not in ("auto", has_activations):
        raise UsageError(
            f"{folder} is compiled with activations={has_activations!r}, not {activations!r}. "
            "Leave activations out, or give the model that it was compiled from."
        )
    if target != "auto" and target.partition(":")[0] != has_target.partition(":")[0]:
        raise UsageError(
            f"{folder} is compiled for {has_target!r}, not {target!r}. "
            "Leave target out, or give the model that it was compiled from."
        )
    return folder


def verified(folder: Path) -> Manifest:
    """Check a compiled folder; its contents are hashed only if they are not known yet.

    Sizes are compared each time. Hashes once for each path, time of change and size of the files:
    reading gigabytes at every start would cost more than it finds.

    Raises:
        ArtifactError: with all that is wrong.
    """
    manifest = read_manifest(folder)
    stats = {n: (folder / n).stat() for n in manifest.files if (folder / n).is_file()}
    seen = {n: [s.st_mtime_ns, s.st_size, manifest.files[n].sha256] for n, s in stats.items()}
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    stamp = settings.cache_dir() / "verified" / f"{name}.json"
    known = stamp.is_file() and stamp.read_text() == json.dumps(seen)
    manifest = verify(folder, hashes=not known)
    if not known:
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(stamp, json.dumps(seen))
        except OSError as e:  # a read-only cache costs time, nothing else
            _log.warning("%s cannot be written (%s): %s is hashed at each load", stamp, e, folder)
    return manifest


def pack_dir(manifest: Manifest) -> Path:
    """Where the packed weights of this artefact belong: the same files and library, one folder."""
    content = json.dumps(sorted((n, r.sha256) for n, r in manifest.files.items()))
    key = hashlib.sha256(
        f"{manifest.interface}{library_for(manifest)}{content}".encode()
    ).hexdigest()[:24]
    return settings.cache_dir() / "packed" / key


def device_of(manifest: Manifest) -> str:
    """The core's name of the device that a library was compiled for."""
    kind = str(manifest.target.get("kind", "llvm"))
    return "cpu" if kind in ("llvm", "c") else f"{kind}:0"


def native_core(
    folder: Path,
    manifest: Manifest,
    device: str,
    options: Mapping[str, Any],
    config: Mapping[str, int],
) -> Core:
    """Open the real core; see NativeCore."""
    kind = device.partition(":")[0]
    open_runtime(kind)
    if kind == "cuda":
        require_code(manifest.target["codes"])
    packed = pack_dir(manifest)
    packed.mkdir(parents=True, exist_ok=True)
    options = {**options, "pack_dir": str(packed)}
    library = folder / library_for(manifest)
    return NativeCore(open_core(), library, folder, device, options, config)


def engine_config(
    manifest: Manifest, asked: Mapping[str, int | None], device: str
) -> dict[str, int]:
    """An engine's configuration: what was asked for, else what the model was compiled with.

    The cache gets what the memory of `device`, the core's name of it, leaves.

    Raises:
        UsageError: a number is not positive, or larger than the compiled library allows.
        ResourceError: the weights and a page of cache do not fit into memory.
    """
    config = {n: v for n, v in asked.items() if v is not None}
    problems = [f"{n} is {v!r}" for n, v in config.items() if type(v) is not int or v < 1]
    if problems:
        raise UsageError(f"{', '.join(problems)}; each takes a whole number from 1")
    compiled = {n: manifest.deployment[n] for n in LIMITS if n in manifest.deployment}
    problems = [
        f"{n} is {config[n]}, {manifest.name} was compiled for at most {limit} (compile with "
        f"--{n.replace('_', '-')} {config[n]} to have more)"
        for n, limit in compiled.items()
        if config.get(n, 0) > limit
    ]
    if problems:
        raise UsageError(f"Too much asked of the compiled model: {'; '.join(problems)}.")
    config = compiled | config
    if "kv_tokens" not in config:
        fitting = memory.kv_tokens(manifest, config, memory.room(device))
        if fitting:
            config["kv_tokens"] = fitting
    return config


def tokenizer_of(
    folder: Path,
) -> tuple[Tokenizer, chat_template.ChatTemplate | None, dict[str, Any]]:
    """Tokenizer, chat template (None if there is none) and generation_config.json of a folder.

    Raises:
        ModelError: a file is missing or damaged.
    """
    tokenizer = Tokenizer.from_folder(folder)
    template = chat_template.from_folder(folder, tokenizer.special_tokens)
    return tokenizer, template, read_json(folder / "generation_config.json")
