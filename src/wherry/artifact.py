"""The compiled model: a folder with a manifest, `wherry.json`, that every runtime checks.

    wherry.json            this record
    model.so | model.tar   the compiled library; beside it model.LEVEL.so for faster machines
    tensor-cache.json      the weights' index, and params_shard_*.bin
    config.json            the architecture, as Hugging Face has it
    tokenizer.json, tokenizer_config.json, chat_template.jinja, generation_config.json

This module imports neither TVM nor NumPy.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wherry.errors import ArtifactError, listing

MANIFEST = "wherry.json"
SCHEMA_VERSION = 1  # of this file
# What the core and a compiled library agree on: names, order, dtypes and meaning of `forward`'s
# arguments and of the metadata. Change the text whenever one of them changes.
INTERFACE = (
    "forward | embed | encode(*inputs, *state, *params); inputs, named by the metadata, i32: "
    "tokens[n], positions[n], sequences[n], adapters[n], query_indptr[r+1], "
    "pages.<group>: indptr[r+1] and ids[p], slots[r], source_lengths[r], logit_rows[m]"
    " -> logits[m, vocab] | embeddings[m, d] | nothing, f32; metadata 2"
)
INTERFACE_HASH = hashlib.sha256(INTERFACE.encode()).hexdigest()[:16]

# Words of LLVM's triples, and sys.platform there; the first that fits counts.
_SYSTEMS = {
    "linux-android": "android",
    "linux": "linux",
    "apple-ios": "ios",
    "apple-macos": "darwin",
    "pc-windows": "win32",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file of the folder."""

    size: int  # bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of `wherry.json`. Four records that are never mixed, and what binds them."""

    schema: int
    key: str  # hash of all inputs of the compilation: equal keys, equal folders
    interface: str  # INTERFACE_HASH of the compiler that wrote it
    wherry: str  # version
    tvm: str  # version
    name: str  # what `wherry list` and /v1/models show
    architecture: dict[str, Any]  # {"name": "llama", "config": {...}}
    quantization: str  # scheme, "q4f16_1"
    # {"name": "cpu", "host": triple, "cpu": LLVM's name, "features": [...], "variants": [...]};
    # variants, where there are any: {"name", "features", "library"}, from least to most;
    # objects, where the library is an archive of them: {"format", "symbols" if they find each other
    # in a program: what ffi.SystemLib is called with}; device_features, of targets that are not
    # CPUs: what the device needs beyond the least of its API, ["shader-f16"]; fast_math, if what
    # compiles the kernels there may add in another order than is written
    target: dict[str, Any]
    # {"context", "max_batch", "prefill_chunk", "page_size"}, and "activations": "int8" or "float"
    deployment: dict[str, Any]
    # bytes: {"weights", "largest_weight", "kv_per_token", "workspace"}, and "kv_layers"
    memory: dict[str, int]
    capabilities: tuple[str, ...]
    library: str  # file name; see library_for
    files: dict[str, FileRecord]

    def to_json(self) -> str:
        """Readable, sorted, with a final newline."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"


def sha256_of(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Hash a file in 1 MiB pieces; `progress` is called with the bytes of each."""
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
            if progress:
                progress(len(piece))
    return digest.hexdigest()


def record(path: Path) -> FileRecord:
    """Size and hash of a file."""
    return FileRecord(size=path.stat().st_size, sha256=sha256_of(path))


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write under a temporary name in the same folder, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_manifest(folder: Path) -> Manifest:
    """Parse `folder/wherry.json`.

    Raises:
        ArtifactError: no manifest, not JSON, another schema, missing or unknown fields.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ArtifactError(
            f"{folder} is not a compiled model: it has no {MANIFEST}.\n"
            f"Compile one: wherry compile MODEL --target cpu -o {folder}"
        )
    try:
        raw = json.loads(path.read_text())
    except ValueError as e:
        raise ArtifactError(f"{path} is damaged ({e}). Compile the model again.") from e
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA_VERSION:
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise ArtifactError(
            f"{path} has schema {found!r}; this version reads schema {SCHEMA_VERSION}. "
            "Compile the model again with this version."
        )
    return _parse(raw, path)


def _parse(raw: Mapping[str, Any], path: Path) -> Manifest:
    known = {f.name for f in fields(Manifest)}
    problems = [f"missing field {n!r}" for n in sorted(known - set(raw))]
    problems += [f"unknown field {n!r}" for n in sorted(set(raw) - known)]
    if problems:
        raise ArtifactError(f"{path} does not fit schema {SCHEMA_VERSION}:\n{listing(problems)}")
    values = dict(raw)
    values["files"] = {n: FileRecord(**r) for n, r in raw["files"].items()}
    values["capabilities"] = tuple(raw["capabilities"])
    return Manifest(**values)


def verify(folder: Path, *, hashes: bool = True, machine: bool = True) -> Manifest:
    """Check a compiled folder against its manifest and this machine; all mismatches at once.

    Sizes are always compared, contents too unless `hashes` is false. With `machine` false the
    folder may be for another machine.

    Raises:
        ArtifactError: with the list of what is wrong, and what to type.
    """
    manifest = read_manifest(folder)
    problems: list[str] = []
    if manifest.interface != INTERFACE_HASH:
        problems.append(
            f"its library speaks interface {manifest.interface}, this runtime {INTERFACE_HASH}"
        )
    for name, expected in sorted(manifest.files.items()):
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif path.stat().st_size != expected.size:
            problems.append(f"{name} has {path.stat().st_size} bytes, not {expected.size}")
        elif hashes and sha256_of(path) != expected.sha256:
            problems.append(f"{name} has changed: its SHA-256 is not the one in {MANIFEST}")
    if machine:
        problems += machine_problems(manifest.target)
    if problems:
        raise ArtifactError(
            f"{folder} cannot be used here:\n{listing(problems)}\n"
            "Compile it again on this machine: wherry compile MODEL -o DIR"
        )
    return manifest


def machine_problems(target: Mapping[str, Any]) -> list[str]:
    """What this machine lacks to run a library built for `target`; [] if nothing."""
    triple = str(target.get("host", ""))
    arch = triple.partition("-")[0].replace("arm64", "aarch64")
    here = platform.machine().replace("AMD64", "x86_64").replace("arm64", "aarch64")
    system = next((s for word, s in _SYSTEMS.items() if f"-{word}" in triple), sys.platform)
    if (arch and arch != here) or system != sys.platform:
        return [f"it was compiled for {triple}, this machine is {here} with {sys.platform}"]
    problems: list[str] = []
    if "objects" in target:
        problems.append("its library is an archive of objects, which wait for a linker")
    if str(target.get("kind", "")) != "llvm":
        return problems  # a device's limits are checked by the code that opens the device
    missing = sorted(set(target.get("features", ())) - cpu_features())
    if missing and cpu_features():
        problems.append(
            f"it needs the CPU features {', '.join(missing)} of {target.get('cpu')}, "
            "which this machine lacks"
        )
    return problems


def library_for(manifest: Manifest, features: frozenset[str] | None = None) -> str:
    """File name of the best of a model's libraries that a machine can run.

    Args:
        manifest: of the compiled folder.
        features: of the machine's CPU, in Linux's names; None: of this one.
    """
    has = cpu_features() if features is None else features
    variants: list[dict[str, Any]] = manifest.target.get("variants", [])
    names = [str(v["library"]) for v in variants if has.issuperset(v["features"])]
    return names[-1] if names else manifest.library


def cpu_features() -> frozenset[str]:
    """Feature flags as Linux names them ("avx512_vnni"); empty where they cannot be read."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return frozenset()
    for line in info.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
