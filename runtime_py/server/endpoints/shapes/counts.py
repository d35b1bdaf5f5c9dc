"""Counts the items of a request before anything validates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def at_most(limit: int, what: str) -> BeforeValidator:
    """Return a validator that limits a list before its items are validated.

    A million validation errors would take gigabytes.
    """

    def check(value: Any) -> Any:
        is_many = isinstance(value, (Sequence, Mapping)) and not isinstance(value, str)
        if is_many and len(value) > limit:
            raise PydanticCustomError(
                "too_many", f"{len(value)} {what}; at most {limit} are accepted"
            )
        return value

    return BeforeValidator(check)
