"""Converts a checkpoint to a folder of portable weights, in bounded memory and resumably.

Every file is written under a temporary name and then renamed. A journal lists the finished shards
with their hashes. `wherry-weights.json` is written last, so its presence means that the folder is
complete. The result of a resumed conversion is identical to that of an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wherry.artifact import integrity
from wherry.artifact.head import HEAD, to_json
from wherry.artifact.manifest import INDEX, SHARDS, VISION, FileRecord, record, record_of
from wherry.artifact.tokenizer_file import read_tokenizer
from wherry.base.locks import making
from wherry.base.progress import Progress
from wherry.base.temporary import write_atomically
from wherry.errors import ModelError, ResourceError, UsageError, listing
from wherry.hub.folder import further_templates, side_files
from wherry.models.arch import Shape, WeightPlan
from wherry.quant.block_encoder import VERSION as BLOCK_ENCODER
from wherry.quant.mix import Mix, base_of, mix_of
from wherry.quant.plan import Own
from wherry.quant.plan import from_json as own_from_json
from wherry.quant.plan import to_json as own_to_json
from wherry.quant.scheme import TYPES
from wherry.quant.stored import StoredTensor

from .allocation import VERSION as ALLOCATION
from .allocation import of_checkpoint
from .checkpoint.folder import CONFIG, TOKENIZER
from .checkpoint.kept import NOTHING
from .checkpoint.tensors import Checkpoint
from .checkpoint.text_part import others
from .encoding import Keep, encoding_of, read_plan
from .load import Described
from .shards import JOURNAL, ConversionJob, matches, own_fields, resume, write_journal, write_shard
from .tokenizer_files import fingerprint, tokenizer_json
from .weight_cache import Shard, index_json, lay_out
from .weight_marker import MARKER, SCHEMA_VERSION, files_of, read_record, write_record

if TYPE_CHECKING:
    from .calibration.encode import Calibration

_SPARE_BYTES = 16 << 20  # bytes of disk space that must be free besides the weights

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """The parameters that a model needs from a checkpoint, and how to store them."""

    described: Described  # its architecture's weight map finds the parameters in the checkpoint
    parameters: Mapping[str, Shape]  # unquantized shapes by name, in the order of storage
    scheme: str  # a name that `wherry.quant.scheme.find` or `wherry.quant.mix.mix_of` knows
    exact: frozenset[str] = frozenset()  # parameters to store in float32, whatever the scheme
    types: Collection[str] = tuple(TYPES)  # names of the block types that a mix may choose from
    keep: Keep | None = None  # which weights of a quantized checkpoint stay; None: none
    calibration: Calibration | None = None  # encodes linears; None: all weights by search


def convert(
    weights: ModelWeights,
    out: Path,
    *,
    progress: Progress | None = None,
    thorough: bool = False,
) -> None:
    """Write the weights of a model's folder to `out`.

    The files in `out` are tensor-cache.json, params_shard_*.bin, config.json, the tokenizer's
    files, and wherry-weights.json, which is written last. A call after an interruption resumes the
    conversion; with another source or scheme, it starts from the beginning; if the folder is
    complete, it returns at once. It waits while another process converts to `out`. It converts
    damaged files again and logs a warning.

    Args:
        weights: the model, its parameters, and how they are stored.
        out: output folder, created if it does not exist; not the model's.
        progress: called after each block of rows, for `what` = "convert"; before, with a mix, after
            each matrix, for "measure".
        thorough: verify all existing files, whatever is known about them.

    Raises:
        ModelError: the checkpoint does not match or cannot be read, or has numbers that the scheme
            cannot express.
        ResourceError: not enough disk.
        UsageError: the scheme is unknown, or `out` is the model's folder.
    """
    source = weights.described.folder.path
    if out.resolve() == source.resolve():
        raise UsageError(f"{out} is the model itself. Choose another folder: -o DIR")
    job = _prepare(weights, out, progress)
    _refuse_others(out, job)
    if not (out / JOURNAL).exists() and _is_complete(out, job, thorough, say=False):
        return  # before the lock, because the folder may be read-only
    if (given := source / TOKENIZER).is_file():
        read_tokenizer(given)  # reports a damaged tokenizer before a conversion of minutes
    with making(out, f"the weights of {source.name}"):
        out.mkdir(parents=True, exist_ok=True)
        if _is_complete(out, job, thorough, say=True):
            (out / JOURNAL).unlink(missing_ok=True)
        else:
            _run(out, job, progress)


def _refuse_others(out: Path, job: ConversionJob) -> None:
    """Refuse to overwrite the config.json and tokenizer of another model's folder.

    Raises:
        UsageError: lists the files.
    """
    if any((out / name).exists() for name in (MARKER, JOURNAL, INDEX)) or any(out.glob(SHARDS)):
        return  # `out` contains a conversion, which may be incomplete
    names = {path.name for path in job.side_files} | set(job.written)
    if taken := sorted(name for name in names if (out / name).exists()):
        raise UsageError(
            f"{out} has files that no conversion put there:\n{listing(taken)}\n"
            "Choose another folder: -o DIR"
        )


def _run(out: Path, job: ConversionJob, progress: Progress | None) -> None:
    """Write all shards that are not complete yet, then the other files."""
    if job.skipped:
        parts = ", ".join(f"{name} ({count})" for name, count in sorted(job.skipped.items()))
        logger.warning(
            "%s: only the text model is read; tensors of %s are not, so it takes no media.",
            job.checkpoint.folder.name,
            parts,
        )
    if job.plan.unused:
        logger.warning(
            "%s: the output of this model does not use these tensors:\n%s",
            job.checkpoint.folder.name,
            listing(job.plan.unused, limit=8),
        )
    exact = {*job.encoding.kept, *job.encoding.exact}
    same = {piece.name for p in job.plan.parameters if p.name in exact for piece in p.pieces}
    if text := job.checkpoint.precision_note(job.encoding.scheme.name, same):
        logger.warning("%s", text)
    done = resume(out, job)
    _check_disk(out, [s for s in job.shards if s.name not in done])
    if job.calibration:
        if TOKENIZER in job.written:  # the source has none that reads the calibration text
            write_atomically(out / TOKENIZER, job.written[TOKENIZER])
        plans = {p.name: p for p in job.plan.parameters}
        encoded = job.calibration.encode(
            out, job.key, plans, job.checkpoint, job.encoding, progress
        )
        job = replace(job, encoded=encoded)
    total = sum(s.nbytes for s in job.shards)
    for shard in job.shards:
        if shard.name in done:
            continue
        finished = sum(r.size for r in done.values())

        def report(written: int, finished: int = finished) -> None:
            if progress:
                progress("convert", finished + written, total)

        done[shard.name] = write_shard(out, job, shard, report)
        write_journal(out, job, done)
    if changed := job.encoding.rounding.relative:
        logger.warning(
            "%s: re-encoding changed these weights by %.2g%% (root mean square; the larger the "
            "worse).",
            job.checkpoint.folder.name,
            100 * changed,
        )
    _finish(out, job, done)


def _prepare(weights: ModelWeights, out: Path, progress: Progress | None) -> ConversionJob:
    """Plan a conversion and check the checkpoint.

    Raises:
        ModelError: the checkpoint does not match the model, or cannot be read.
    """
    described, folder = weights.described, weights.described.folder
    checkpoint, plan, names = read_plan(described, weights.parameters)
    scheme, keep = base_of(weights.scheme), weights.keep
    # Parameters in MXFP4 have two pieces, blocks and scales, which are not floats.
    plain = [p for p in plan.parameters if len(p.pieces) == 1 or not p.unpacked]
    encoding = encoding_of(
        checkpoint, plan, scheme, weights.exact, keep=keep.schemes if keep else NOTHING
    )
    read = [piece.name for p in plain if p.name not in encoding.kept for piece in p.pieces]
    checkpoint.require_floats([*read, *(name for pair in plan.equal for name in pair)])
    mix = mix_of(weights.scheme)
    allocation = _allocation_key(mix, weights.types, plan, checkpoint) if mix else ""
    if mix:
        own = _allocated_before(out, allocation)
        if own is None:
            own = of_checkpoint(mix, plan, checkpoint, weights.exact, weights.types, progress)
        encoding = replace(encoding, own=own)
    _check_equal(checkpoint, plan)
    tower = described.tower
    of_text = [encoding.tensors(p.name, p.shape) for p in plan.parameters]
    of_tower: list[Sequence[StoredTensor]] = []
    if tower is not None:
        tower_names = [name for name in checkpoint.shapes if tower.owns(name)]
        own_plan = tower.plan({name: checkpoint.shapes[name] for name in tower_names})
        checkpoint.require_floats(tower_names)
        names |= {name: name for name in tower_names}
        plan = plan.followed_by(own_plan)
        encoding = replace(encoding, tower=frozenset(p.name for p in own_plan.parameters))
        of_tower = [encoding.tensors(p.name, p.shape) for p in own_plan.parameters]
    shards = lay_out(of_text, of_tower)
    text = f"{SCHEMA_VERSION} {encoding.scheme!r} {shards!r} {plan!r} {checkpoint.fingerprint}"
    if encoding.kept:
        text += f" {own_to_json(encoding.own)} {keep.label if keep else None}"
    text += f" {allocation}" if mix else ""
    text += f" {weights.calibration.key}" if weights.calibration else ""
    key = hashlib.sha256(text.encode()).hexdigest()
    written = {} if described.head is None else {HEAD: to_json(described.head).encode()}
    written |= {} if tower is None else {VISION: tower.record()}
    written |= further_templates(folder.path)
    if folder.text is not None:
        written[CONFIG] = (json.dumps(folder.text, indent=2, sort_keys=True) + "\n").encode()
    tokenizer = ""
    if folder.older_tokenizer:
        tokenizer = fingerprint(folder.older_tokenizer)
        written[TOKENIZER] = _tokenizer_before(out, tokenizer) or tokenizer_json(folder)
    return ConversionJob(
        checkpoint=checkpoint,
        plan=plan,
        encoding=encoding,
        label=keep.label if keep and encoding.kept else mix.name if mix else scheme.name,
        allocation=allocation,
        shards=shards,
        side_files=side_files(folder.path),
        written=written,
        key=key,
        tokenizer=tokenizer,
        skipped=others(checkpoint.shapes, names),
        calibration=weights.calibration,
    )


def _allocation_key(
    mix: Mix, types: Collection[str], plan: WeightPlan, checkpoint: Checkpoint
) -> str:
    """Return a hash of everything that determines the plan of a mix."""
    text = f"{ALLOCATION} {BLOCK_ENCODER} {mix!r} {sorted(types)} {plan!r} {checkpoint.fingerprint}"
    return hashlib.sha256(text.encode()).hexdigest()


def _allocated_before(out: Path, key: str) -> Own | None:
    """Return the plan with a key that a conversion to `out` has recorded; None: there is none."""
    for name in (MARKER, JOURNAL):
        marker = read_record(out / name)
        if marker.get("allocation") == key:
            return own_from_json(marker.get("own", {}))
    return None


def _tokenizer_before(out: Path, tokenizer: str) -> bytes | None:
    """Return the tokenizer.json in `out` if a conversion generated it from the same files."""
    marker = read_record(out / MARKER)
    said = marker.get("files", {}).get(TOKENIZER)
    if marker.get("tokenizer") != tokenizer or not said or not matches(out / TOKENIZER, said):
        return None
    return (out / TOKENIZER).read_bytes()


def _check_equal(checkpoint: Checkpoint, plan: WeightPlan) -> None:
    """Check that the checkpoint's copies of tied tensors are equal, because only one is converted.

    Raises:
        ModelError: two copies differ.
    """
    for a, b in plan.equal:
        rows = checkpoint.tensors[a].shape[0]
        step = max(1, (8 << 20) // max(1, checkpoint.tensors[a].nbytes // max(rows, 1)))
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            if not np.array_equal(checkpoint.read(a, start, stop), checkpoint.read(b, start, stop)):
                raise ModelError(
                    f"{a} and {b} differ, but config.json ties them. If they are meant to differ, "
                    'set "tie_word_embeddings": false in config.json.'
                )


def _is_complete(out: Path, job: ConversionJob, thorough: bool, *, say: bool) -> bool:
    """Return whether `out` contains the undamaged result of this job; `say`: log damaged files."""
    files = files_of(out)
    if not files or read_record(out / MARKER).get("job") != job.key:
        return False
    shards = {INDEX} | {s.name for s in job.shards}
    copied = {n: r for n, r in files.items() if n not in shards}
    others = {p.name: record(p) for p in job.side_files}
    others |= {name: record_of(data) for name, data in job.written.items()}
    if copied != others:
        return False
    damaged = integrity.damaged(out, files, lazily=shards, thorough=thorough)
    if damaged and say:
        logger.warning(
            "%s is damaged:\n%s\nIt is built again from the model.", out, listing(damaged.values())
        )
    return not damaged


def _check_disk(out: Path, shards: list[Shard]) -> None:
    """Check that the remaining shards fit on the disk.

    Raises:
        ResourceError: they do not fit.
    """
    needed = sum(s.nbytes for s in shards) + _SPARE_BYTES
    free = shutil.disk_usage(out).free
    if free < needed:
        raise ResourceError(
            f"The weights need {needed / 1e9:.2f} GB more, {out} has {free / 1e9:.2f} GB free. "
            "Make room (wherry cache prune), or choose another disk: -o DIR, or "
            "export WHERRY_CACHE=DIR"
        )


def _finish(out: Path, job: ConversionJob, shards: Mapping[str, FileRecord]) -> None:
    """Write the index, copy the other files, and write the marker last."""
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
        "scheme": job.encoding.scheme.name,
        **own_fields(job),
        "source": job.checkpoint.fingerprint,
        "job": job.key,
        "files": {name: asdict(r) for name, r in files.items()},
        "tokenizer": job.tokenizer,
    }
    write_record(out / MARKER, marker)
    (out / JOURNAL).unlink(missing_ok=True)
    if job.encoded:
        job.encoded.remove()
