"""The families of models that can be compiled: a table, and the page of the docs that has it.

`python -m wherry.compiler.supported` writes the page; a test compares it.
"""

from __future__ import annotations

import importlib

from .load import families

PAGE = """# Models

Families by the `model_type` of their config.json; `wherry list --supported` prints the table. A
field of config.json that is not known is an error that names it.

{table}

Checked against transformers, on tiny random configurations that turn on each feature of a family,
in float32 on the CPU: prompts, chunks, single tokens, mixed batches, windows beyond their length.
No logit differs by more than 2e-4, and a row has the same bits in any batch
(`tests/models/families.py`; half of it runs with `make nightly` alone). Kernels of devices (OpenCL,
Vulkan) are checked one by one, windows and caps in the fused attention, too.

LongRoPE has the context of its short factors. Not supported, and errors: norms of q and k heads by
LayerNorm, attention in both directions, dynamic scaling beyond the trained context.
"""


def rows() -> list[tuple[str, str]]:
    """(model_type, what its file says in its first line) of every family."""
    found = []
    for name, arch in families().items():
        text = importlib.import_module(f"wherry.models.{arch.name}").__doc__ or ""
        first = text.strip().splitlines()[0]
        found.append((name, first if name == arch.name else f"{first} (as {arch.name})"))
    return found


def page() -> str:
    """The page of the docs."""
    lines = ["| model_type | |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in rows())]
    return PAGE.format(table="\n".join(lines))


if __name__ == "__main__":
    print(page(), end="")
