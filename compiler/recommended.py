"""Models to begin with: names to type, what they need, and what they are good at.

`python -m wherry.compiler.recommended` writes docs/which-model.md; `wherry list --fits` lists those
that this machine has memory for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CONTEXT = 4096  # tokens for which memory is counted
_STEP = 300_000_000  # bytes of a step's activations and of the program
_SHARE = 0.7  # of a machine's memory; the rest is for other programs


@dataclass(frozen=True, slots=True)
class Recommended:
    """A published model.

    Attributes:
        name: MODEL, to type.
        parameters: number of parameters, in millions.
        kv: bytes of one token's keys and values, in float16.
        good_at: what it is good at, in some words.
        bits: bits per weight as it is stored: q4f16_1, unless the checkpoint is quantized.
        on_phones: whether phones are quick enough for it.
        licence: its SPDX identifier.
    """

    name: str
    parameters: float
    kv: int
    good_at: str
    bits: float = 4.5
    on_phones: bool = False
    licence: str = "Apache-2.0"

    @property
    def weights(self) -> int:
        """Return the bytes of the weights."""
        return round(self.parameters * 1e6 * self.bits / 8)

    @property
    def memory(self) -> int:
        """Return the bytes that a conversation of CONTEXT tokens takes."""
        return self.weights + CONTEXT * self.kv + _STEP


# The smallest first.
MODELS = (
    Recommended(
        "hf://HuggingFaceTB/SmolLM2-135M-Instruct", 134.5, 23_040,
        "trying things out; short rewrites", on_phones=True,
    ),
    Recommended(
        "hf://HuggingFaceTB/SmolLM2-360M-Instruct", 361.8, 40_960,
        "short answers, summaries of a paragraph", on_phones=True,
    ),
    Recommended(
        "hf://Qwen/Qwen3-0.6B", 596.0, 114_688,
        "chat, tool calls and many languages for its size", on_phones=True,
    ),
    Recommended(
        "hf://Qwen/Qwen3-1.7B", 1720.6, 114_688,
        "chat and JSON, with fewer mistakes", on_phones=True,
    ),
    Recommended(
        "hf://HuggingFaceTB/SmolLM3-3B", 3075.1, 73_728,
        "chat in six European languages, long texts",
    ),
    Recommended(
        "hf://microsoft/Phi-4-mini-instruct", 3836.0, 131_072, "sums, logic, short code",
        licence="MIT",
    ),
    Recommended(
        "hf://Qwen/Qwen3-4B-Instruct-2507", 4022.5, 147_456, "an assistant for most things; tools",
    ),
    Recommended(
        "hf://Qwen/Qwen2.5-Coder-7B-Instruct", 7615.6, 57_344, "code, and filling gaps in it",
    ),
    Recommended("hf://Qwen/Qwen3-8B", 8190.7, 147_456, "reasoning before the answer; tools"),
    Recommended("hf://Qwen/Qwen3-14B", 14_768.3, 163_840, "reasoning, better than 8B; slower"),
    Recommended(
        "hf://openai/gpt-oss-20b", 20_914.8, 49_152,
        "reasoning and tools, fast: 3.6 billion of its weights work on a token", bits=4.6,
    ),
    Recommended(
        "hf://Qwen/Qwen3-30B-A3B-Instruct-2507", 30_532.1, 98_304,
        "a large assistant, fast: 3 billion of its weights work on a token",
    ),
    Recommended(
        "hf://Qwen/Qwen3-32B", 32_762.1, 262_144, "the best of these at reasoning; slow on CPUs",
    ),
)  # fmt: skip


def fitting(room: float) -> list[Recommended]:
    """Return the models that take at most `room` bytes; the largest first."""
    return [model for model in reversed(MODELS) if model.memory <= room]


_PAGE = """\
# Which model for my machine?

`wherry list --fits` prints the models of this page that this machine has memory for. Take the
first; a smaller one is faster. Any other model works the same way, by its name on
[huggingface.co](https://huggingface.co): `wherry show hf://ORG/NAME` says whether its family is
[supported](models.md), and `wherry plan hf://ORG/NAME` what it takes.

    wherry run {first}

{table}

- **Weights** are in `q4f16_1`. The download has 16 bits per weight, up to four times as much; only
  gpt-oss comes in 4 bits.
- **Memory** is that of a conversation of {context:,} tokens; `--context` and `--kv-dtype int8`
  change it.
- **Machine**: other programs keep 30% of its memory. A GPU with memory of its own gives 90%, so one
  of 24 GB also holds what is listed for 32 GB.
- **Phone**: an app gets about half of the phone's memory; 4 GB suffice for the models marked here.
  [Phones](../mobile/README.md) says how. Browsers hold what phones hold, as a tab has often 4 GB.

- **Names, parameters and licences** were compared in November 2026 with copies of the model cards
  and with other projects' lists; none of these models was run here yet.

For search, `wherry serve hf://sentence-transformers/all-MiniLM-L6-v2` (22.7 million parameters,
English) and `hf://Qwen/Qwen3-Embedding-0.6B` (many languages) give embeddings on all of these; the
licence of both is Apache-2.0.
"""
_MACHINES = (4, 8, 16, 24, 32)  # GB


def page() -> str:
    """Return docs/which-model.md as Markdown."""
    head = ["model", "good at", "weights", "memory", "machine", "phone", "licence"]
    rows = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *_rows())]
    return _PAGE.format(first=MODELS[2].name, table="\n".join(rows), context=CONTEXT)


def _rows() -> Iterator[list[str]]:
    for model in MODELS:
        machine = next(gb for gb in _MACHINES if model in fitting(_SHARE * gb * 1e9))
        sizes = [f"{size / 1e9:.1f} GB" for size in (model.weights, model.memory)]
        phone = "yes" if model.on_phones else ""
        cells = [f"`{model.name}`", model.good_at, *sizes, f"{machine} GB", phone]
        yield [*cells, model.licence]


if __name__ == "__main__":
    print(page(), end="")
