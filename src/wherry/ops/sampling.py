"""Operations on logits for sampling on a device."""

from __future__ import annotations

from dataclasses import dataclass

from .record import Record, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesSpec(Record):
    """The most likely tokens of rows of logits, and sums over these rows."""

    vocab: int
    count: int = 128  # tokens of each row

    def __post_init__(self) -> None:
        check_positive(self, "vocab", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSpec(Record):
    """A token of each row, from its candidates."""

    count: int = 128  # candidates of a row

    def __post_init__(self) -> None:
        check_positive(self, "count")
