"""Records of operations on logits for sampling on a device."""

from __future__ import annotations

from dataclasses import dataclass

from .record import Record, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesSpec(Record):
    """Spec of the candidates kernel: the most likely tokens of each row of logits, and row sums."""

    vocab: int
    count: int = 128  # candidates of each row

    def __post_init__(self) -> None:
        check_positive(self, "vocab", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSpec(Record):
    """Spec of the kernel that draws a token for each row from its candidates."""

    count: int = 128  # candidates of each row

    def __post_init__(self) -> None:
        check_positive(self, "count")
