"""The table of supported model families, and the page docs/models.md with it.

`python -m wherry.compiler.supported` writes the page, and a test compares it. `python -m
tests.models.checked` writes checked.json: what the tests check for each family on each target.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkpoint.gguf.projector_kinds import PROJECTORS
from .checkpoint.text_part import READ
from .known_models import KNOWN, NAMES, UNNAMED, Known
from .load import families
from .towers import towers

CHECKED = Path(__file__).with_name("checked.json")
TARGETS = {"cpu": "CPU", "opencl": "OpenCL", "vulkan": "Vulkan", "webgpu": "WebGPU"}
PAGE = """# Models

Wherry runs models by their family, the `model_type` in config.json. Find your model by its name,
or ask: `wherry show hf://ORG/NAME` says whether it runs, and `wherry plan hf://ORG/NAME` how much
memory it takes. `wherry list --supported` prints this table. [Which model for my
machine?](which-model.md) names some to begin with, and `wherry list --fits` those that fit.

{table}

- **Context** is that of the published configurations; a model's own config.json counts.
- **Tool calls**: the format of the family's instruct models. Without one the prompt describes the
  tools and the model answers in JSON. See [the server's page](server.md#tool-calls).
- **To type**: a model of the family; of some you accept the terms on its page first.
- **Compared on**: every family compiles for every [target](targets.md): CPUs, CUDA, ROCm, Metal,
  Vulkan, OpenCL, WebGPU, WebAssembly. On those named here tests compare it with transformers, on
  tiny random configurations with each feature of the family: float32 logits differ by less than
  2e-4, and 4-bit models give the tokens of the dequantized weights; WebGPU's kernels are compiled
  and checked. Each night a configuration takes its turn on one device. Families that transformers
  does not have are compared with a family of equal structure, or with their formulas in PyTorch
  (RWKV-7).

## What is not supported

An unknown field in config.json is an error that names it, because it may change the result.
Dynamic RoPE scaling beyond the trained context is an error, too. Encoders give embeddings, scores
and classes and write no text.

Encoder-decoders (T5, BART) answer completions: the prompt is the source, the output a text of its
own, on the server and in apps and pages. They have no chats, no embeddings, no prefix cache, no
beams, and no quality card or calibration.
Source and output have a context each; T5's is 512 tokens unless compiled for more (`--context`).
Activations in float16, the default of GPUs for `q4f16_1`, may overflow in T5, whose authors trained
in bfloat16: `--activations float`.

Of jina-embeddings-v3-hf Wherry runs the model without its task adapters, which are folders of their
own. For a task, merge its adapter first: transformers' `load_adapter`, PEFT's `merge_and_unload`,
`save_pretrained`.

A folder or repository in Mistral's own layout (`params.json`, `consolidated.safetensors`) is read
where it has no config.json: Mistral, Mixtral and Ministral 3 in floats; not FP8, and not pickled
weights. Its tokenizer is `tekken.json` or `tokenizer.model.v*`; there is no chat template among
these files, so put a `chat_template.jinja` next to them. Where params.json says no context, it is
32,768 tokens. Adapters and ONNX are refused by name.

LongRoPE (Phi-3, Phi-4-mini) has the context of its short factors. Compiled for a longer context
(`wherry compile --context`) it uses its long factors at every length; transformers switches by the
length of a text.

The layers of Llama 4 attend within chunks of the text (`attention_chunk_size`, 8192 tokens in
Scout and Maverick). Wherry runs the first chunk, which is the model's context.

Models that see: {towers} (`llava` with Pixtral's tower, as Pixtral 12B). They take
[images](server.md#images) in chats. So do files in GGUF with [a projector](quantization.md#gguf) of
a kind that is read: {projectors}. An image of Qwen's has at most 8,192 patches, which are 2,048
tokens (2 megapixels with patches of 16 x 16): a larger one is made smaller.
Of others with vision or audio Wherry runs the text model and says which parts it leaves out:
{wrappers}. Any other such folder is an error.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """A supported value of `model_type`, with what the tests check for it."""

    model_type: str
    about: str  # first line of the family file's docstring
    known: Known
    checked: dict[str, str]  # target -> what the tests compare there; "": nothing
    reference: str  # the implementation that tests compare with

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "model_type": self.model_type,
            "about": self.about,
            "models": self.known.models,
            "name": NAMES.get(self.model_type),
            "context": self.known.context,
            "tool_format": self.known.tools,
            "checked": self.checked,
            "reference": self.reference,
        }


def rows() -> list[Family]:
    """Return all supported families."""
    known: dict[str, dict[str, Any]] = json.loads(CHECKED.read_text())
    listed = []
    for name, arch in families().items():
        text = importlib.import_module(f"wherry.models.families.{arch.name}").__doc__ or ""
        first = text.strip().splitlines()[0]
        about = first if name == arch.name else f"{first} (as {arch.name})"
        checked = known.get(name, {})
        where = {target: _checked(checked, target) for target in TARGETS}
        listed.append(
            Family(name, about, KNOWN.get(name, UNNAMED), where, checked.get("reference", ""))
        )
    return listed


def _checked(known: dict[str, Any], target: str) -> str:
    """Return what the tests compare for a family on a target, as text."""
    float32 = "f32" if target in known.get("float32", ()) else ""
    if float32 and known["nightly"]:
        float32 += " at night"
    four = "compiled" if target == "webgpu" else "q4"
    quantized = f"{four} at night" if target in known.get("q4f32_1", ()) else ""
    return ", ".join(part for part in (float32, quantized) if part)


def page() -> str:
    """Return docs/models.md as Markdown."""
    head = ["model_type", "models", "to type", "context", "tool calls", "compared on"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows():
        targets = ", ".join(TARGETS[name] for name, how in row.checked.items() if how)
        tools = f"`{row.known.tools}`" if row.known.tools else ""
        name = f"`hf://{NAMES[row.model_type]}`" if row.model_type in NAMES else ""
        known = row.known
        cells = [f"`{row.model_type}`", known.models, name, known.context, tools, targets]
        lines.append(f"| {' | '.join(cells)} |")
    seeing, wrappers = (
        ", ".join(f"`{name}`" for name in names)
        for names in (sorted(towers()), (name for name in READ if name not in towers()))
    )
    projectors = ", ".join(f"`{name}`" for name in PROJECTORS)
    return PAGE.format(
        table="\n".join(lines), towers=seeing, projectors=projectors, wrappers=wrappers
    )


if __name__ == "__main__":
    print(page(), end="")
