"""Tiny configurations of every family, which turn on each of its features.

A new architecture, or a new field of a configuration, is a row of CASES. The longest prompts of the
tests have 70 tokens: windows are shorter, and so are the lengths that scaled RoPE begins with.
"""

from __future__ import annotations

import pytest

from . import classic, dense, experts, recent, recurrent
from .case import Case

CASES: dict[str, Case] = (
    dense.CASES | experts.CASES | classic.CASES | recent.CASES | recurrent.CASES
)
PARAMETERS = [
    pytest.param(name, marks=pytest.mark.nightly if case.nightly else ())
    for name, case in CASES.items()
]

__all__ = ["CASES", "PARAMETERS", "Case"]
