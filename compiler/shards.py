"""The shards of a conversion: writes them, and finds those that an interrupted one has finished."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from wherry.artifact.manifest import INDEX, SHARDS, FileRecord, record, sha256_of
from wherry.errors import ModelError
from wherry.models.arch import WeightPlan
from wherry.quant.plan import to_json as own_to_json
from wherry.quant.scheme import finite

from .checkpoint.tensors import Checkpoint
from .encoding import Encoding
from .weight_cache import Shard
from .weight_marker import MARKER, read_record, write_record

if TYPE_CHECKING:
    from .calibration.encode import Calibration
    from .calibration.encoded import Encoded

JOURNAL = ".wherry-convert.json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConversionJob:
    """A conversion: everything that determines its result."""

    checkpoint: Checkpoint
    plan: WeightPlan
    encoding: Encoding
    label: str  # name of the encoding that users see
    allocation: str  # hash of what determines the plan of a mix, or ""
    shards: tuple[Shard, ...]
    side_files: tuple[Path, ...]
    written: Mapping[str, bytes]  # contents of generated side files, by name
    key: str  # hash of everything that determines the stored weights
    tokenizer: str  # fingerprint of the source files of a generated tokenizer.json, or ""
    skipped: Mapping[str, int]  # numbers of tensors outside of the text model, by name prefix
    calibration: Calibration | None = None  # encodes linears by a text; None: search alone
    encoded: Encoded | None = None  # what it has encoded


def resume(out: Path, job: ConversionJob) -> dict[str, FileRecord]:
    """Return the complete shards of this job by name, after removing all other converted files.

    The removed files are those of other jobs, and partial files of this one.
    """
    kept: dict[str, FileRecord] = {}
    own_names = {INDEX, MARKER, JOURNAL}
    for name in (MARKER, JOURNAL):
        journal = read_record(out / name)
        own_names |= {Path(n).name for n in (*journal.get("files", ()), *journal.get("others", ()))}
        if journal.get("job") == job.key:
            for shard in job.shards:
                said = journal["files"].get(shard.name)
                if said and shard.name not in kept and matches(out / shard.name, said):
                    kept[shard.name] = FileRecord(**said)
    (out / MARKER).unlink(missing_ok=True)  # removed first, as the folder is now incomplete
    stale = {out / name for name in own_names} | set(out.glob(SHARDS))
    stale |= {p for name in own_names for p in out.glob(f".{name}.*.tmp")}
    stale |= set(out.glob(f".{SHARDS}.partial"))
    for path in stale - {out / name for name in (*kept, JOURNAL)}:
        path.unlink(missing_ok=True)
    write_journal(out, job, kept)
    if kept:
        logger.info("%s: %d of %d shards are done", out, len(kept), len(job.shards))
    return kept


def matches(path: Path, said: Mapping[str, Any]) -> bool:
    """Return whether a file has the recorded size and SHA-256."""
    return (
        path.is_file() and path.stat().st_size == said["size"] and sha256_of(path) == said["sha256"]
    )


def write_shard(
    out: Path, job: ConversionJob, shard: Shard, report: Callable[[int], None]
) -> FileRecord:
    """Write one shard; `report` receives the number of bytes written so far."""
    path = out / shard.name
    partial = out / f".{shard.name}.partial"
    offsets = {p.tensor.name: p.offset for p in shard.tensors}
    with partial.open("wb") as f:
        f.truncate(shard.nbytes)  # gaps between tensors become zeros
        written = 0
        for i in shard.parameters:
            written = _write_parameter(f, job, i, offsets, written, report)
        f.flush()
        os.fsync(f.fileno())
    file_record = record(partial)
    partial.replace(path)
    report(shard.nbytes)
    return file_record


def _write_parameter(
    f: BinaryIO,
    job: ConversionJob,
    index: int,
    offsets: Mapping[str, int],
    written: int,
    report: Callable[[int], None],
) -> int:
    """Encode one parameter and write it to its shard.

    Args:
        f: the open shard.
        job: the conversion.
        index: the parameter's index in the plan.
        offsets: byte offset in the shard of each stored tensor.
        written: number of bytes that have been written to the shard.
        report: callback for progress; receives the updated number.

    Returns:
        the updated number.

    Raises:
        ModelError: the parameter has values that the scheme cannot represent.
    """
    parameter = job.plan.parameters[index]
    if job.encoded and job.encoded.has(parameter.name):
        for name, array in job.encoded.read(parameter.name).items():
            if not finite(array):
                raise ModelError(_not_finite(job, parameter.name, np.inf))
            f.seek(offsets[name])
            f.write(np.ascontiguousarray(array).data)
            written += array.nbytes
        report(written)
        return written
    for start, rows, stored in job.encoding.blocks(parameter, job.checkpoint):
        for name, array in stored.items():
            if not finite(array):
                largest = np.nan if rows is None else float(np.abs(rows).max())
                raise ModelError(_not_finite(job, parameter.name, largest))
            row_bytes = array.nbytes // max(len(array), 1) if parameter.shape else 0
            f.seek(offsets[name] + start * row_bytes)
            f.write(np.ascontiguousarray(array).data)
            written += array.nbytes
        report(written)
    return written


def _not_finite(job: ConversionJob, name: str, largest: float) -> str:
    if np.isfinite(largest):
        scheme = job.encoding.scheme.name
        return (
            f"{name} has numbers up to {largest:.6g}, which {scheme} cannot hold: its "
            "floats are float16, and end at 65504. "
            f"Type: --quant {scheme.replace('f16', 'f32')}"
        )
    return f"{name} has infinite or undefined numbers: the checkpoint is damaged."


def write_journal(out: Path, job: ConversionJob, done: Mapping[str, FileRecord]) -> None:
    """Record the finished shards, which a later run keeps."""
    files = {name: asdict(r) for name, r in done.items()}
    others = [*(p.name for p in job.side_files), *job.written]
    journal = {"job": job.key, "files": files, "others": others, **own_fields(job)}
    write_record(out / JOURNAL, journal)


def own_fields(job: ConversionJob) -> dict[str, Any]:
    """Return the marker's fields of a conversion that keeps the checkpoint's bits, or of a mix."""
    own = job.encoding.own
    if not own and not job.allocation:
        return {}
    mixed = {"allocation": job.allocation} if job.allocation else {}
    return {"label": job.label, "own": own_to_json(own), **mixed}
