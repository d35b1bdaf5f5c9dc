"""From a checkpoint to a folder of portable weights, in bounded memory, resumable at any moment.

Every file is written under a temporary name and renamed. A journal names the shards that are done,
with their hashes; `wherry-weights.json` is written last, so its presence means a whole folder.
The result does not depend on interruptions: it is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wherry import integrity
from wherry.artifact import (
    INDEX,
    SHARDS,
    FileRecord,
    digest,
    record,
    record_of,
    sha256_of,
    write_atomically,
)
from wherry.errors import ModelError, ResourceError, UsageError, listing
from wherry.head import HEAD, Head, to_json
from wherry.json_file import read_object
from wherry.locks import making
from wherry.models.arch import Architecture, Shape, WeightPlan, plan, read_config
from wherry.quant.scheme import EXACT, Scheme, find, finite, store
from wherry.tokenizer_file import read_tokenizer

from .assemble import blocks
from .checkpoint import Checkpoint, open_checkpoint
from .folder import read_json, side_files
from .progress import Progress
from .text_part import others, text_names
from .tokenizer_files import TOKENIZER, fingerprint, older, tokenizer_json
from .weight_cache import Shard, index_json, lay_out

CONFIG = "config.json"
MARKER = "wherry-weights.json"
SCHEMA_VERSION = 2  # of MARKER, and of what is written for the same source
_JOURNAL = ".wherry-convert.json"
_SPARE_BYTES = 16 << 20  # that a disk has to have besides the weights

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Job:
    """All that determines the result."""

    checkpoint: Checkpoint
    plan: WeightPlan
    scheme: Scheme
    exact: frozenset[str]  # parameters that are stored in float32
    shards: tuple[Shard, ...]
    side_files: tuple[Path, ...]
    written: Mapping[str, bytes]  # side files of our own making
    key: str  # hash of all that determines the weights
    tokenizer: str  # of what its tokenizer.json was made, if it was
    skipped: Mapping[str, int]  # tensors of other models than the text's, by their parts

    def scheme_of(self, name: str) -> Scheme:
        """The scheme of one parameter."""
        return EXACT if name in self.exact else self.scheme


def convert(
    source: Path,
    out: Path,
    *,
    scheme: str,
    arch: Architecture,
    parameters: Mapping[str, Shape],
    exact: Collection[str] = (),
    head: Head | None = None,
    headless: bool = False,
    part: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    thorough: bool = False,
) -> None:
    """Write the weights of the Hugging Face folder `source` to `out`, encoded with `scheme`.

    `out` gets tensor-cache.json, params_shard_*.bin, config.json, the tokenizer's files, and last
    wherry-weights.json. Called again after an interruption it goes on; with another source or
    scheme it starts clean; if there is nothing to do it returns at once. While another process
    converts to `out`, it waits. What is damaged is made again, with a warning in the log.

    Args:
        source: folder with config.json, safetensors and tokenizer files.
        out: folder to write to, made if need be; not `source`.
        scheme: a name that `wherry.quant.scheme.find` knows.
        arch: the model's record, whose weight map is used.
        parameters: our names and unquantized shapes, in the order in which they are stored.
        exact: of these, the ones that are stored in float32 whatever the scheme.
        head: what is written to wherry-head.json.
        headless: see `wherry.models.arch.plan`.
        part: config.json of the text model, if `source` has others beside it.
        progress: called after each block of rows, for `what` = "convert".
        thorough: read all that is there, and do not trust what is known to have been whole.

    Raises:
        ModelError: the checkpoint does not fit or cannot be read, or has numbers that the scheme
            cannot hold.
        ResourceError: not enough disk.
        UsageError: an unknown scheme, or `out` is `source`.
    """
    if out.resolve() == source.resolve():
        raise UsageError(f"{out} is the model itself. Choose another folder: -o DIR")
    how = find(scheme)
    job = _prepare(source, out, how, arch, parameters, frozenset(exact), head, headless, part)
    _refuse_others(out, job)
    if not (out / _JOURNAL).exists() and _is_complete(out, job, thorough, say=False):
        return  # also where nothing can be written, not even a lock
    if (given := source / TOKENIZER).is_file():
        read_tokenizer(given)  # what is wrong with it is said now, not after minutes
    with making(out, f"the weights of {source.name}"):
        out.mkdir(parents=True, exist_ok=True)
        if _is_complete(out, job, thorough, say=True):
            (out / _JOURNAL).unlink(missing_ok=True)
        else:
            _run(out, job, progress)


def _refuse_others(out: Path, job: _Job) -> None:
    """Leave another model's folder as it is: its config.json and tokenizer would be written over.

    Raises:
        UsageError: with the files.
    """
    if any((out / name).exists() for name in (MARKER, _JOURNAL, INDEX)) or any(out.glob(SHARDS)):
        return  # a conversion, though it may have been cut anywhere
    ours = {path.name for path in job.side_files} | set(job.written)
    if taken := sorted(name for name in ours if (out / name).exists()):
        raise UsageError(
            f"{out} has files that no conversion put there:\n{listing(taken)}\n"
            "Choose another folder: -o DIR"
        )


def _run(out: Path, job: _Job, progress: Progress | None) -> None:
    if job.skipped:
        parts = ", ".join(f"{name} ({count})" for name, count in sorted(job.skipped.items()))
        logger.warning(
            "%s: only the text model is read; tensors of %s are not. Images and sound come later.",
            job.checkpoint.folder.name,
            parts,
        )
    done = _resume(out, job)
    _check_disk(out, [s for s in job.shards if s.name not in done])
    total = sum(s.nbytes for s in job.shards)
    for shard in job.shards:
        if shard.name in done:
            continue
        finished = sum(r.size for r in done.values())

        def report(written: int, finished: int = finished) -> None:
            if progress:
                progress("convert", finished + written, total)

        done[shard.name] = _write_shard(out, job, shard, report)
        _write_journal(out, job, done)
    _finish(out, job, done)


def files_of(out: Path) -> dict[str, FileRecord]:
    """The files of a folder that `convert` made, as they were when it did; {} if it is not whole.

    Their contents are not looked at.
    """
    marker = _read(out / MARKER)
    if marker.get("schema") != SCHEMA_VERSION:
        return {}
    return {name: FileRecord(**r) for name, r in marker["files"].items()}


def is_converted(out: Path) -> bool:
    """Whether `out` has a whole set of weights."""
    files = files_of(out)
    return bool(files) and not integrity.damaged(out, files)


def _prepare(
    source: Path,
    out: Path,
    scheme: Scheme,
    arch: Architecture,
    parameters: Mapping[str, Shape],
    exact: frozenset[str],
    head: Head | None,
    headless: bool,
    part: Mapping[str, Any] | None,
) -> _Job:
    raw = part or read_json(source / CONFIG)
    config = read_config(arch.config, raw)
    checkpoint = open_checkpoint(source)
    shapes = checkpoint.shapes
    names = {name: name for name in shapes} if part is None else text_names(shapes)
    alone = {name: shapes[theirs] for name, theirs in names.items()}
    made = plan(arch, parameters, alone, config, headless=headless).renamed(names)
    plain = [p for p in made.parameters if len(p.pieces) == 1 or not p.unpacked]  # not MXFP4
    read = [piece.name for p in plain for piece in p.pieces]
    checkpoint.require_floats([*read, *(name for pair in made.equal for name in pair)])
    _check_equal(checkpoint, made)
    shards = lay_out(
        [(EXACT if p.name in exact else scheme).stored(p.name, p.shape) for p in made.parameters]
    )
    text = f"{SCHEMA_VERSION} {scheme!r} {shards!r} {made!r} {checkpoint.fingerprint}"
    key = hashlib.sha256(text.encode()).hexdigest()
    written = {} if head is None else {HEAD: to_json(head).encode()}
    if part is not None:
        written[CONFIG] = (json.dumps(part, indent=2, sort_keys=True) + "\n").encode()
    tokenizer = ""
    if files := older(source):
        tokenizer = fingerprint(files)
        written[TOKENIZER] = _made_before(out, tokenizer) or tokenizer_json(source)
    return _Job(
        checkpoint=checkpoint,
        plan=made,
        scheme=scheme,
        exact=exact,
        shards=shards,
        side_files=side_files(source),
        written=written,
        key=key,
        tokenizer=tokenizer,
        skipped=others(shapes, names),
    )


def _made_before(out: Path, tokenizer: str) -> bytes | None:
    """The tokenizer.json that `out` has, if it was made of the same files."""
    marker = _read(out / MARKER)
    said = marker.get("files", {}).get(TOKENIZER)
    if marker.get("tokenizer") != tokenizer or not said or not _matches(out / TOKENIZER, said):
        return None
    return (out / TOKENIZER).read_bytes()


def _check_equal(checkpoint: Checkpoint, made: WeightPlan) -> None:
    """Stored copies of tied tensors must not differ: one of the two is not read."""
    for a, b in made.equal:
        rows = checkpoint.tensors[a].shape[0]
        step = max(1, (8 << 20) // max(1, checkpoint.tensors[a].nbytes // max(rows, 1)))
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            if not np.array_equal(checkpoint.read(a, start, stop), checkpoint.read(b, start, stop)):
                raise ModelError(
                    f"{a} and {b} differ, but config.json ties them. If they are meant to differ, "
                    'set "tie_word_embeddings": false in config.json.'
                )


def _is_complete(out: Path, job: _Job, thorough: bool, *, say: bool) -> bool:
    files = files_of(out)
    if not files or _read(out / MARKER).get("job") != job.key:
        return False
    ours = {INDEX} | {s.name for s in job.shards}
    copied = {n: r for n, r in files.items() if n not in ours}
    others = {p.name: record(p) for p in job.side_files}
    others |= {name: record_of(data) for name, data in job.written.items()}
    if copied != others:
        return False
    found = integrity.damaged(out, files, lazily=ours, thorough=thorough)
    if found and say:
        logger.warning(
            "%s is damaged:\n%s\nIt is made again from the model.", out, listing(found.values())
        )
    return not found


def _read(path: Path) -> dict[str, Any]:
    """A record of ours; an absent or damaged file is an empty one: the work is then done again."""
    try:
        found = read_object(path)
    except (OSError, ValueError):
        return {}
    return found if found.get("digest") == digest(found) else {}


def _write(path: Path, record: Mapping[str, Any]) -> None:
    whole = {**record, "digest": digest(record)}
    write_atomically(path, json.dumps(whole, indent=2, sort_keys=True) + "\n")


def _resume(out: Path, job: _Job) -> dict[str, FileRecord]:
    """Keep the shards that are whole and of this job, remove all else that we wrote."""
    kept: dict[str, FileRecord] = {}
    ours = {INDEX, MARKER, _JOURNAL}
    for name in (MARKER, _JOURNAL):
        found = _read(out / name)
        ours |= {Path(n).name for n in (*found.get("files", ()), *found.get("others", ()))}
        if found.get("job") == job.key:
            for shard in job.shards:
                said = found["files"].get(shard.name)
                if said and shard.name not in kept and _matches(out / shard.name, said):
                    kept[shard.name] = FileRecord(**said)
    (out / MARKER).unlink(missing_ok=True)  # first: the folder is not whole from here on
    stale = {out / name for name in ours} | set(out.glob(SHARDS))
    stale |= {p for name in ours for p in out.glob(f".{name}.*.tmp")}
    stale |= set(out.glob(f".{SHARDS}.partial"))
    for path in stale - {out / name for name in (*kept, _JOURNAL)}:
        path.unlink(missing_ok=True)
    _write_journal(out, job, kept)
    if kept:
        logger.info("%s: %d of %d shards are done", out, len(kept), len(job.shards))
    return kept


def _matches(path: Path, said: Mapping[str, Any]) -> bool:
    return (
        path.is_file() and path.stat().st_size == said["size"] and sha256_of(path) == said["sha256"]
    )


def _check_disk(out: Path, shards: list[Shard]) -> None:
    needed = sum(s.nbytes for s in shards) + _SPARE_BYTES
    free = shutil.disk_usage(out).free
    if free < needed:
        raise ResourceError(
            f"The weights need {needed / 1e9:.2f} GB more, {out} has {free / 1e9:.2f} GB free. "
            "Make room (wherry cache prune), or choose another disk: -o DIR, or "
            "export WHERRY_CACHE=DIR"
        )


def _write_shard(out: Path, job: _Job, shard: Shard, report: Callable[[int], None]) -> FileRecord:
    path = out / shard.name
    partial = out / f".{shard.name}.partial"
    offsets = {p.tensor.name: p.offset for p in shard.tensors}
    with partial.open("wb") as f:
        f.truncate(shard.nbytes)  # gaps between tensors are zeros
        written = 0
        for i in shard.parameters:
            written = _write_parameter(f, job, i, offsets, written, report)
        f.flush()
        os.fsync(f.fileno())
    made = record(partial)
    partial.replace(path)
    report(shard.nbytes)
    return made


def _write_parameter(
    f: BinaryIO,
    job: _Job,
    index: int,
    offsets: Mapping[str, int],
    written: int,
    report: Callable[[int], None],
) -> int:
    """Encode one parameter into its places in the shard; bytes written to the shard so far."""
    made = job.plan.parameters[index]
    for start, rows in blocks(made, job.checkpoint):
        for name, array in store(job.scheme_of(made.name), made.name, rows, made.shape).items():
            if not finite(array):
                raise ModelError(_not_finite(job, made.name, float(np.abs(rows).max())))
            row_bytes = array.nbytes // max(len(rows), 1) if made.shape else 0
            f.seek(offsets[name] + start * row_bytes)
            f.write(np.ascontiguousarray(array).data)
            written += array.nbytes
        report(written)
    return written


def _not_finite(job: _Job, name: str, largest: float) -> str:
    if np.isfinite(largest):
        return (
            f"{name} has numbers up to {largest:.6g}, which {job.scheme.name} cannot hold: its "
            "floats are float16, and end at 65504. "
            f"Type: --quant {job.scheme.name.replace('f16', 'f32')}"
        )
    return f"{name} has infinite or undefined numbers: the checkpoint is damaged."


def _write_journal(out: Path, job: _Job, done: Mapping[str, FileRecord]) -> None:
    files = {name: asdict(r) for name, r in done.items()}
    others = [*(p.name for p in job.side_files), *job.written]
    journal = {"job": job.key, "files": files, "others": others}
    _write(out / _JOURNAL, journal)


def _finish(out: Path, job: _Job, shards: Mapping[str, FileRecord]) -> None:
    """Write the index, copy what is not weights, and last say that the folder is whole."""
    numbers = sum(prod(p.shape) for p in job.plan.parameters)
    write_atomically(out / INDEX, index_json(job.shards, numbers))
    for path in job.side_files:
        write_atomically(out / path.name, path.read_bytes())
    for name, data in job.written.items():
        write_atomically(out / name, data)
    files = {INDEX: record(out / INDEX)} | dict(shards)
    files |= {n: record(out / n) for n in (*(p.name for p in job.side_files), *job.written)}
    marker = {
        "schema": SCHEMA_VERSION,
        "scheme": job.scheme.name,
        "source": job.checkpoint.fingerprint,
        "job": job.key,
        "files": {name: asdict(r) for name, r in files.items()},
        "tokenizer": job.tokenizer,
    }
    _write(out / MARKER, marker)
    (out / _JOURNAL).unlink(missing_ok=True)
