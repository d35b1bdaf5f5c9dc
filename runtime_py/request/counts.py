"""Counting what a request holds before anything of it is validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def at_most(limit: int, what: str) -> BeforeValidator:
    """Counts before anything is validated: an error for each of a million items takes gigabytes."""

    def check(value: Any) -> Any:
        is_many = isinstance(value, (Sequence, Mapping)) and not isinstance(value, str)
        if is_many and len(value) > limit:
            raise PydanticCustomError(
                "too_many", f"{len(value)} {what}; at most {limit} are accepted"
            )
        return value

    return BeforeValidator(check)
