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

from .known_models import KNOWN, Known
from .load import families
from .text_part import READ

CHECKED = Path(__file__).with_name("checked.json")
TARGETS = {"cpu": "CPU", "opencl": "OpenCL", "vulkan": "Vulkan", "webgpu": "WebGPU"}
PAGE = """# Models

A family is the `model_type` in a model's config.json; `wherry list --supported` prints this table.
A field of config.json that Wherry does not know is an error that names it.

{table}

- **Runs on**: every family compiles for every target. The targets named here run it in the tests:
  tiny random configurations that turn on each feature, against transformers. In float32 no logit
  differs by more than 2e-4 in prompts, chunks, single tokens and mixed batches, and a row has the
  same bits in any batch. In 4 bits the tokens equal the reference's on the dequantized weights.
  WebGPU's kernels are validated within every browser's limits, and compiled from the same source
  as Vulkan's. Families that transformers does not have are compared with a renamed one of it.
- **Context**: of the published configurations; a model's own config.json counts.
- **Tool calls**: the format that its instruct models write, found from the chat template; empty:
  the model is told of tools in words and answers in JSON. See [the server's page](server.md).

LongRoPE (Phi-3, Phi-4-mini) has the context of its short factors; compiled for a longer one
(`wherry compile --context`) it uses its long factors at every length, where transformers switches
by the length of a text. Not supported, and errors: bidirectional attention, dynamic scaling beyond
the trained context.

Of folders with other models beside the text's (vision, audio), the text model is read, and a line
says what is not: {wrappers}. Any other such folder is an error.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """One value of `model_type`."""

    model_type: str
    about: str  # what its file says in its first line
    known: Known
    checked: dict[str, str]  # by target, what is compared there; "": nothing
    reference: str  # what it is compared with

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model_type": self.model_type,
            "about": self.about,
            "models": self.known.models,
            "context": self.known.context,
            "tool_format": self.known.tools,
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
        found.append(Family(name, about, KNOWN[name], where, checked.get("reference", "")))
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
    lines = ["| model_type | models | context | tool calls | runs on |", "|---|---|---|---|---|"]
    for row in rows():
        targets = ", ".join(TARGETS[name] for name, how in row.checked.items() if how)
        tools = f"`{row.known.tools}`" if row.known.tools else ""
        cells = [f"`{row.model_type}`", row.known.models, row.known.context, tools, targets]
        lines.append(f"| {' | '.join(cells)} |")
    wrappers = ", ".join(f"`{name}`" for name in READ)
    return PAGE.format(table="\n".join(lines), wrappers=wrappers)


if __name__ == "__main__":
    print(page(), end="")
