"""Measures the quality card of a compiled folder against the float model of the same source."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

from wherry.artifact import integrity
from wherry.artifact.card import SCHEMA_VERSION, Card
from wherry.artifact.manifest import Manifest
from wherry.base.progress import Progress
from wherry.errors import ModelError, UsageError

from .compare import Comparison, Recorded, Seen, compare, record
from .session import WINDOW, Session
from .texts import Text, windows

# Scheme of the reference: half the memory of float32, and exact for checkpoints in float16 and for
# bfloat16 weights above 2^-14. Others are rounded to 11 bits, eight times finer than 8-bit weights.
REFERENCE_QUANT = "q0f16"


def measure(folder: Path, reference: Path, text: Text, *, progress: Progress | None = None) -> Card:
    """Return the quality card of `folder`; both models run one after the other.

    Memory: the weights of the larger model, and a step. The reference's logits are in a temporary
    file in the cache.

    Args:
        folder: the compiled folder to measure.
        reference: a compiled folder of the float model, for this machine.
        text: the text that both read.
        progress: called with "measure", the tokens done and the tokens in total, both models'.

    Raises:
        ArtifactError: a folder is damaged, or for another machine.
        ModelError: a model computes no finite numbers, or has no tokenizer.
        ToolchainError: the target does not run on this machine.
        UsageError: the models have different vocabularies, or compute no next tokens.
    """
    own, other = integrity.verified(folder), integrity.verified(reference)
    most = min(WINDOW, *(int(m.deployment["context"]) for m in (own, other)))
    texts = windows(text, folder, most)
    if not texts:
        raise UsageError("The text has fewer than two tokens: nothing can be predicted in it.")
    if texts != windows(text, reference, most):
        raise UsageError(
            f"{own.name} and {other.name} have different tokenizers, so their distributions cannot "
            "be compared. Compare with the model that it was compiled from: --against MODEL"
        )
    seen = _report(progress, 2 * sum(map(len, texts)))
    with Recorded() as recorded:
        session = Session(reference, other)
        vocab_size = session.vocab_size
        record(session, texts, recorded, seen)
        del session  # frees its weights before the other's are loaded
        session = Session(folder, own)
        if session.vocab_size != vocab_size:
            raise UsageError(
                f"{own.name} has {session.vocab_size:,} logits and {other.name} {vocab_size:,}. "
                "Compare with the model that it was compiled from: --against MODEL"
            )
        comparison = compare(session, texts, recorded, seen)
    return _card(own, other, text, comparison)


def _report(progress: Progress | None, total: int) -> Seen:
    done = 0

    def seen(tokens: int) -> None:
        nonlocal done
        done += tokens
        if progress:
            progress("measure", done, total)

    return seen


def _card(own: Manifest, other: Manifest, text: Text, comparison: Comparison) -> Card:
    if not all(map(math.isfinite, asdict(comparison).values())):
        raise ModelError(
            f"{own.name} in {own.quantization}, or {other.name} in {other.quantization}, computes "
            "infinite or undefined numbers; their weights or a kernel are wrong."
        )
    return Card(
        schema=SCHEMA_VERSION,
        artifact=own.key,
        quantization=own.quantization,
        target=str(own.target["name"]),
        activations=str(own.deployment.get("activations", "float")),
        kv_dtype=str(own.deployment.get("kv_dtype", "float32")),
        reference=other.name,
        reference_quantization=other.quantization,
        text=text.sha256,
        **asdict(comparison),
    )
