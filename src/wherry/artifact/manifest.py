"""The compiled model: a folder with a manifest, `wherry.json`, which every runtime checks.

    wherry.json            this record
    model.so | model.tar   the compiled library, and model.LEVEL.so for faster machines;
    | model.wasm           for pages, with the core inside
    tensor-cache.json      the weights' index, and params_shard_*.bin
    config.json            the architecture, as in Hugging Face's folders
    tokenizer.json, tokenizer_config.json, chat_template.jinja, generation_config.json
    wherry-head.json       for embeddings and scores (wherry.artifact.head)
    wherry-vision.json     what a model that sees says of its images, and vision.*, the library that
                           computes their features

This module imports neither TVM nor NumPy.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, asdict, dataclass, field, fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from wherry.artifact import MANIFEST as MANIFEST
from wherry.base.json_file import parse_object
from wherry.errors import ArtifactError, listing
from wherry.machine.cpu import machine_problems

from .head import HEAD

SCHEMA_VERSION = 2  # version of the schema of wherry.json
# Side files that a compiled model copies besides the weights, as shell patterns.
SIDE_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template*",
)
# Chat templates besides the usual one, in a folder of Hugging Face's layout.
FURTHER_TEMPLATES = "additional_chat_templates/*.jinja"
INDEX, SHARDS = "tensor-cache.json", "params_shard_*.bin"
VISION = "wherry-vision.json"
# Files that a runtime reads if they exist, so they must be listed and checked.
_READ = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "chat_template.tool_use.jinja",
    HEAD,
    VISION,
    SHARDS,
)
# The contract between the engine and a compiled library: names, order, dtypes and meaning of
# the entries' arguments and of the metadata. Change the text whenever one of them changes.
INTERFACE = (
    "forward | embed | encode | draft(*inputs, *state, *params); "
    "inputs, named by the metadata, i32: "
    "tokens[n], positions[n], sequences[n], adapters[n], query_indptr[r+1], image_rows[n], "
    "rope_positions[n, 3], last_visible[n], "
    "pages.<group>: indptr[r+1] and ids[p], slots[r], source_lengths[r], logit_rows[m], "
    "and f32 image_features[f, d]"
    " -> logits[m, vocab] | embeddings[m, d] | nothing | logits[m, vocab], f32; "
    "a tower: see(*inputs, *params) -> [n / patches_per_row, d] f32; "
    "inputs, named by the metadata: "
    "patches[n, patch] f32, positions[n] | [n, taps] i32, position_weights[n, taps] f32, "
    "coordinates[n, 2] i32, sequences[n] i32, query_indptr[r+1] i32; metadata 2"
)
INTERFACE_HASH = hashlib.sha256(INTERFACE.encode()).hexdigest()[:16]

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$", max_length=255)]
Text = Annotated[str, Field(max_length=1000)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
_STRICT = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """Size and SHA-256 of one file of the folder."""

    size: Bytes
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of `wherry.json`: the model, its target, its files, and their memory."""

    schema: int
    key: Text  # hash of all inputs of the compilation: equal keys have equal folders
    interface: Text  # INTERFACE_HASH of the compiler that wrote the folder
    wherry: Text  # version of Wherry that wrote the folder
    tvm: Text  # version of TVM that compiled the library
    name: Text  # model name in `wherry list` and /v1/models
    architecture: dict[str, Any]  # {"name": "llama", "config": {...}}
    quantization: Text  # name of the quantization scheme, "q4f16_1"
    # {"name": "cpu", "host": triple, "cpu": LLVM's name, "features": [...], "variants": [...]}.
    # "variants", if there are any: {"name", "features", "library"}, from the slowest to the
    # fastest, with "symbols" where "objects" has them. "objects", if the library is an archive of
    # objects or was linked from them:
    # {"format", "symbols"}; "symbols" is the prefix by which ffi.SystemLib finds them in a program.
    # "device_features", except on CPUs: features that the device needs beyond its API's minimum,
    # ["shader-f16"]. "device_limits": {"maxStorageBufferBindingSize": bytes} of webgpu,
    # {"sharedMemPerBlockOptin": bytes} of cuda. "fast_math": a row's last bits may depend on
    # what shares its batch.
    target: dict[str, Any]
    # {"context", "max_batch", "prefill_chunk", "page_size", "longest", "kv_dtype", "activations"};
    # older folders lack the last three. "longest" is the largest possible "context"; the last two
    # are words of _WORDS.
    deployment: dict[str, Any]
    # Bytes: {"weights", "largest_weight", "kv_per_token", "workspace"}, and "kv_layers":
    # "kv_per_token" divided by the bytes of the largest layer; with recurrent layers also "slot",
    # the bytes of a sequence's recurrent state.
    memory: dict[str, Bytes]
    capabilities: tuple[Text, ...]
    library: FileName  # file name of the library that every machine of the target can load
    files: dict[FileName, FileRecord]
    # Parameters that are not stored in one scheme for all: name -> [[rows, name of the scheme]] of
    # its parts. {}: there are none, or the folder is older than the field.
    plan: dict[Text, list[list[int | Text]]] = field(default_factory=dict)
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    def to_json(self) -> str:
        """Return the manifest as sorted JSON with its own SHA-256 and a final newline."""
        values = asdict(self)
        return json.dumps(values | {"digest": digest(values)}, indent=2, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    name: Text
    features: list[Text]
    library: FileName
    symbols: Text = ""  # as in "objects", if the library is linked into a program
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The fields of Manifest.target that are validated. Each device has further fields."""

    name: Text
    kind: Text
    host: Text = ""
    cpu: Text = ""
    features: list[Text] = ()  # type: ignore[assignment]
    codes: list[Text] = ()  # type: ignore[assignment]
    variants: list[_Variant] = ()  # type: ignore[assignment]
    objects: dict[str, Text] | None = None
    device_limits: dict[str, Bytes] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="ignore")


_MANIFEST, _TARGET = TypeAdapter(Manifest), TypeAdapter(_Target)
_LIMITS = TypeAdapter(dict[str, Positive], config=ConfigDict(strict=True))
_WORDS = {
    "activations": ("int8", "float16", "bf16", "float"),
    "kv_dtype": ("int4", "int8", "float16", "float32"),
}


def digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its own field "digest"."""
    rest = {name: value for name, value in values.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Hash a file in 1 MiB pieces; `progress` is called with each piece's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
            if progress:
                progress(len(piece))
    return digest.hexdigest()


def record(path: Path) -> FileRecord:
    """Return size and hash of a file."""
    return FileRecord(size=path.stat().st_size, sha256=sha256_of(path))


def record_of(data: bytes) -> FileRecord:
    """Return size and hash of a file's intended content."""
    return FileRecord(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def read_manifest(folder: Path) -> Manifest:
    """Parse `folder/wherry.json`.

    Raises:
        ArtifactError: the manifest is missing, is not JSON, has another schema, or wrong fields.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ArtifactError(
            f"{folder} is not a compiled model: it has no {MANIFEST}.\n"
            f"Compile one: wherry compile MODEL --target cpu -o {folder}"
        )
    try:
        text = path.read_bytes()
        raw = parse_object(text)
    except (OSError, ValueError) as e:
        raise ArtifactError(f"{path} is damaged ({e}). Compile the model again.") from e
    if type(raw.get("schema")) is not int or raw["schema"] != SCHEMA_VERSION:
        raise ArtifactError(
            f"{path} has schema {raw.get('schema')!r}; this version reads schema {SCHEMA_VERSION}. "
            "Compile the model again with this version."
        )
    return _parse(raw, path)


def _parse(raw: dict[str, Any], path: Path) -> Manifest:
    stated = raw.pop("digest", None)
    known = {f.name for f in fields(Manifest)}
    optional = {f.name for f in fields(Manifest) if f.default_factory is not MISSING}
    problems = [f"missing field {n!r}" for n in sorted(known - optional - set(raw))]
    problems += [f"unknown field {n!r}" for n in sorted(set(raw) - known)]
    given = {name: raw[name] for name in known & set(raw)}
    manifest = None
    try:
        # Validated through JSON, where a tuple is an array, even for strict types.
        manifest = _MANIFEST.validate_json(json.dumps(given))
    except ValidationError as e:
        problems += [p for p in _spelled(e, "") if not p.startswith("missing")]
    if isinstance(raw.get("target"), dict):
        try:
            _TARGET.validate_json(json.dumps(raw["target"]))
        except ValidationError as e:
            problems += _spelled(e, "target.")
    if isinstance(raw.get("deployment"), dict):
        limits = dict(raw["deployment"])
        for name, accepted in _WORDS.items():
            if limits.pop(name, accepted[0]) not in accepted:
                problems.append(f"deployment.{name}: expected one of {', '.join(accepted)}")
        try:
            _LIMITS.validate_json(json.dumps(limits))
        except ValidationError as e:
            problems += _spelled(e, "deployment.")
    if manifest is not None and not problems:
        problems += _inconsistent(manifest)
    if not problems and stated != digest(raw):
        problems.append("its content has changed: its digest differs")
    if problems:
        raise ArtifactError(
            f"{path} is damaged, or not of schema {SCHEMA_VERSION}:\n{listing(problems)}\n"
            "Compile the model again: wherry compile MODEL -o DIR"
        )
    assert manifest is not None
    return manifest


def _spelled(error: ValidationError, where: str) -> Iterator[str]:
    """Yield a line for each field that fails validation."""
    for e in error.errors(include_url=False):
        if e["type"] == "missing" and not where and len(e["loc"]) == 1:
            continue  # a missing top-level field is already listed
        place = ".".join(map(str, e["loc"]))
        yield f"{where}{place}: {e['msg']}; found {_short(e['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _inconsistent(manifest: Manifest) -> Iterator[str]:
    """Yield named files that the manifest does not list: a runtime would not check them."""
    variants = [v["library"] for v in manifest.target.get("variants", [])]
    for name in dict.fromkeys([manifest.library, *variants, INDEX]):
        if name not in manifest.files:
            yield f"files: {name} is not listed"
    if MANIFEST in manifest.files:
        yield f"files: lists {MANIFEST} itself"


def verify(
    folder: Path, *, hashes: bool = True, machine: bool = True, known: Collection[str] = ()
) -> Manifest:
    """Check a compiled folder against its manifest and this machine; report all problems at once.

    Sizes are always compared, contents only with `hashes` and for files that are not in `known`.
    Without `machine` the folder may be for another machine.

    Raises:
        ArtifactError: lists the problems, and what to type.
    """
    manifest = read_manifest(folder)
    known = known if hashes else manifest.files
    raise_for(folder, manifest, file_problems(folder, manifest.files, known), machine=machine)
    return manifest


def raise_for(
    folder: Path, manifest: Manifest, damaged: Mapping[str, str], *, machine: bool = True
) -> None:
    """Raise if there are problems with the files, the interface, or this machine.

    Args:
        folder: the manifest's folder.
        manifest: the folder's manifest.
        damaged: the result of `file_problems`.
        machine: whether the folder must run on this machine.

    Raises:
        ArtifactError: lists the problems, and what to type.
    """
    problems = [*interface_problems(manifest), *damaged.values(), *unlisted(folder, manifest.files)]
    if machine:
        problems += machine_problems(manifest.target)
    if problems:
        raise ArtifactError(
            f"{folder} cannot be used here:\n{listing(problems)}\n"
            "Compile it again on this machine: wherry compile MODEL -o DIR"
        )


def interface_problems(manifest: Manifest) -> list[str]:
    """Return a problem if the library has another interface than this runtime; else []."""
    if manifest.interface == INTERFACE_HASH:
        return []
    return [f"its library speaks interface {manifest.interface}, this runtime {INTERFACE_HASH}"]


def unlisted(folder: Path, files: Mapping[str, FileRecord]) -> list[str]:
    """Return a problem for each file that a runtime would read but the manifest does not list."""
    return [
        f"{path.name} is there, but {MANIFEST} does not list it"
        for path in sorted(folder.iterdir())
        if path.name not in files and any(fnmatch(path.name, pattern) for pattern in _READ)
    ]


def file_problems(
    folder: Path, files: Mapping[str, FileRecord], known: Collection[str] = ()
) -> dict[str, str]:
    """Return problems of `files` by name; files in `known` are not hashed."""

    def problem(name: str) -> str | None:
        path, expected = folder / name, files[name]
        try:
            size = path.stat().st_size
            if not path.is_file():
                return f"{name} is not a file"
            if size != expected.size:
                return f"{name} has {size} bytes, not {expected.size}"
            if name not in known and sha256_of(path) != expected.sha256:
                return f"{name} has changed: its SHA-256 is not that of the manifest"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as e:
            return f"{name} cannot be read: {e.strerror}"
        return None

    names = sorted(files)
    # Threads help because hashing releases the interpreter's lock.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        problems = dict(zip(names, pool.map(problem, names), strict=True))
    return {name: text for name, text in problems.items() if text}
