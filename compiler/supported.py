"""The families of models that can be compiled: a table, and the page of the docs that has it.

`python -m wherry.compiler.supported` writes the page; a test compares it. What is checked, and
where, is in checked.json, which `python -m tests.models.checked` reads off the tests.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .load import families
from .text_part import READ

CHECKED = Path(__file__).with_name("checked.json")
TARGETS = {"cpu": "CPU", "opencl": "OpenCL", "vulkan": "Vulkan", "webgpu": "WebGPU"}
PAGE = """# Models

Families by the `model_type` of their config.json; `wherry list --supported` prints the table. A
field of config.json that is not known is an error that names it.

{table}

What the columns say is read off the tests, which compare tiny random configurations that turn on
each feature of a family:

- **f32**: in float32 no logit differs from the reference by more than 2e-4, in prompts, chunks,
  single tokens and mixed batches, beyond the length of windows; and a row has the same bits in any
  batch (`tests/models/families.py`). The reference is transformers, unless the row says otherwise.
- **q4**: with 4-bit weights (q4f32_1) the tokens are those of transformers on the weights that are
  left: on the CPU with float activations, on OpenCL (PoCL) and on Vulkan (lavapipe); with int8
  activations the distribution on the CPU differs by at most 3e-4 nats
  (`tests/models/test_quantized_families.py`).
- **compiled**: all kernels pass naga and keep to WebGPU's limits. They are not run in a browser;
  the code for Vulkan comes of the same WGSL.
- "at night": by `make nightly` alone. Large models and real checkpoints are not part of the tests.

LongRoPE (Phi-3, Phi-4-mini) has the context of its short factors; compiled for a longer one
(`wherry compile --context`) it has its long factors at every length, where transformers changes
them with the length of a text. Not supported, and errors: attention in both directions, dynamic
scaling beyond the trained context.

Of folders that have other models beside the text's (vision, audio), the text model is read, and a
line says what is not: {wrappers}. Their text is compared with the whole model's
(`tests/models/test_text_part.py`). Any other such folder is an error.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """One value of `model_type`."""

    model_type: str
    about: str  # what its file says in its first line
    checked: dict[str, str]  # by target, what is compared there; "": nothing
    reference: str  # what it is compared with

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model_type": self.model_type,
            "about": self.about,
            "checked": self.checked,
            "reference": self.reference,
        }


def rows() -> list[Family]:
    """Every family."""
    known: dict[str, dict[str, Any]] = json.loads(CHECKED.read_text())
    found = []
    for name, arch in families().items():
        text = importlib.import_module(f"wherry.models.families.{arch.name}").__doc__ or ""
        first = text.strip().splitlines()[0]
        about = first if name == arch.name else f"{first} (as {arch.name})"
        checked = known.get(name, {})
        where = {target: _checked(checked, target) for target in TARGETS}
        found.append(Family(name, about, where, checked.get("reference", "")))
    return found


def _checked(known: dict[str, Any], target: str) -> str:
    """What is compared of a family on a target."""
    float32 = "f32" if target in known.get("float32", ()) else ""
    if float32 and known["nightly"]:
        float32 += " at night"
    four = "compiled" if target == "webgpu" else "q4"
    quantized = f"{four} at night" if target in known.get("q4f32_1", ()) else ""
    return ", ".join(part for part in (float32, quantized) if part)


def page() -> str:
    """The page of the docs."""
    lines = [f"| model_type | | {' | '.join(TARGETS.values())} |", "|---|---|---|---|---|---|"]
    for row in rows():
        other = row.reference not in ("", "transformers")
        about = f"{row.about} (reference: {row.reference})" if other else row.about
        lines.append(f"| `{row.model_type}` | {about} | {' | '.join(row.checked.values())} |")
    wrappers = ", ".join(f"`{name}`" for name in READ)
    return PAGE.format(table="\n".join(lines), wrappers=wrappers)


if __name__ == "__main__":
    print(page(), end="")
