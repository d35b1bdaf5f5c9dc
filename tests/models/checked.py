"""What the tests compare of each family, and where: read off the cases and their marks.

`python -m tests.models.checked` writes the record that `wherry list --supported` prints from; a
test compares it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wherry.compiler.supported import CHECKED
from wherry.machine.plugins import PLUGINS

from . import (
    test_encoder_decoders,
    test_outside_transformers,
    test_quantized_families,
    test_rwkv7,
)
from .encoder_decoders import CASES as ENCODER_DECODERS
from .encoders import CASES as ENCODERS
from .encoders import parameters
from .families import CASES, PARAMETERS
from .outside import OUTSIDE


def _nightly(marks: object) -> bool:
    """Whether one of some marks is the nightly one."""
    listed = marks if isinstance(marks, list | tuple) else [marks]
    return any(getattr(mark, "name", "") == "nightly" for mark in listed)


def _parameters(function: object) -> dict[str, bool]:
    """Map each case of a parametrised test to whether it is nightly."""
    (mark,) = [m for m in function.pytestmark if m.name == "parametrize"]  # type: ignore[attr-defined]
    values = {}
    for value in mark.args[1]:
        is_set = isinstance(value, type(pytest.param()))
        values[value.values[0] if is_set else value] = is_set and _nightly(value.marks)
    return values


def table() -> dict[str, dict[str, object]]:
    """By model_type: the reference, targets in float32 and in 4 bits, and whether only at night."""
    rows: dict[str, dict[str, object]] = {}
    nightly = {p.values[0]: _nightly(p.marks) for p in PARAMETERS}
    nightly |= {p.values[0]: _nightly(p.marks) for p in parameters(ENCODERS)}
    nightly |= {p.values[0]: _nightly(p.marks) for p in test_encoder_decoders.NAMES}
    nightly |= _parameters(test_outside_transformers.test_prompts_chunks_and_decoding)
    for name, case in {**CASES, **ENCODERS, **ENCODER_DECODERS, **OUTSIDE}.items():
        row = rows.setdefault(
            getattr(case, "named", case.model_type),
            {"reference": "transformers", "float32": ["cpu"], "q4f32_1": [], "nightly": True},
        )
        row["nightly"] = bool(row["nightly"]) and nightly[name]
        if name in OUTSIDE:
            row["reference"] = f"transformers' {OUTSIDE[name].like}, renamed"
        if name in test_quantized_families.FAMILIES:
            row["q4f32_1"] = ["cpu", *PLUGINS, "webgpu"]
        if name in ENCODER_DECODERS:
            row["q4f32_1"] = list(test_encoder_decoders.FOUR_BITS)
    rows["rwkv7"] = {
        "reference": "its formulas in PyTorch",
        "float32": ["cpu"],
        "q4f32_1": ["cpu", *PLUGINS, "webgpu"],
        "nightly": _parameters(test_rwkv7.test_logits)["published"],
    }
    return dict(sorted(rows.items()))


def text() -> str:
    """The record's."""
    return json.dumps(table(), indent=2) + "\n"


if __name__ == "__main__":
    Path(CHECKED).write_text(text())
