"""Command-line options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from wherry.base.progress import shown
from wherry.hub import names
from wherry.runtime.load.options import NAMES, LoadOptions
from wherry.targets.hosts import HOSTS

from . import completion
from .text import TEXT

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine
    from wherry.runtime.load.model import LoadedModel

F = TypeVar("F", bound=Callable[..., Any])


def stack(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Combine option decorators into one, in this order."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


class _Context(click.ParamType[Any]):
    """Option type: a number of tokens, or "auto"."""

    name = "context"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto" or (isinstance(value, int) and value > 0):
            return value
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a whole number from 1 nor auto", param, ctx)
        return int(value)


class _Model(click.ParamType[str]):
    """Type of a MODEL: a wrong name is told before anything is loaded."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names.check(value)
        return str(value)


MODEL = _Model()
model = click.argument("model", type=MODEL, shell_complete=completion.models)


class _Scheme(click.Option):
    """An option whose help lists the schemes, which are imported for it alone: NumPy is slow."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from wherry.quant.scheme import DEFAULT, OF_ENCODERS, TYPES, schemes

        self.help = (
            f"How weights are stored: {', '.join(schemes())}; block types {', '.join(TYPES)}; "
            "auto:BITS, as auto:4.5: a type for each matrix, BITS bits per weight on average. "
            f"Default: {DEFAULT}, of encoders (embeddings, rerankers, classifiers) {OF_ENCODERS}. "
            "kept: as in a quantized checkpoint, for which it is the default as far as the target "
            "has kernels."
        )
        return super().get_help_record(ctx)


quant = click.option("-q", "--quant", cls=_Scheme, metavar="SCHEME")
kv_dtype = click.option(
    "--kv-dtype",
    type=click.Choice(["auto", "float32", "float16", "int8", "int4"]),
    default="auto",
    show_default=True,
    help="Dtype of the KV cache. auto: float16 where the target has it, and float32 with q4f32_1, "
    "q8f32_1 and q0f32. int8 stores values in 8 bits and keys in 12; int4 values in 4, keys in 8.",
)
activations = click.option(
    "--activations",
    type=click.Choice(["auto", "int8", "float16", "bf16", "float"]),
    default="auto",
    show_default=True,
    help="Dtype of activations. On CPUs auto is int8 for weights of 4 and 8 bits, with a scale for "
    "each group of 32; float (float32) is closer to the model, and slower; bf16 multiplies prompts "
    "in bfloat16 on CPUs with AMX, so that last bits depend on the batch. On GPUs auto is float16 "
    "in memory and float32 in kernels; with q4f32_1, q8f32_1 and q0f32 it is float.",
)
target = click.option(
    "--target",
    default="auto",
    show_default=True,
    metavar="TARGET",
    help="auto (the best device here), cpu (this machine), cuda, rocm:GPU, opencl, vulkan, metal, "
    "iphone, android, webgpu, wasm; a variant is KIND:NAME: cpu:x86-64-v3+, cuda:sm_90, "
    "rocm:gfx1100, vulkan:matrices, opencl:64.",
)
calibration = click.option(
    "--calibration",
    default="auto",
    show_default=True,
    metavar="TEXT",
    help="Round weights by what they do to the activations of a text, which loses less and takes "
    "minutes per billion weights: builtin, or a file. none: each weight by itself. auto: builtin "
    "for models of 50 million weights or more that take minutes, in at most 5 bits.",
)
context = click.option(
    "--context",
    type=_Context(),
    help="Maximum tokens of one conversation; auto: as many as fit into free memory.",
)
system = click.option("--system", type=TEXT, help="A system message before the conversation.")
host = click.option(
    "--host",
    metavar="HOST",
    help=f"The machine that drives the target: {', '.join(HOSTS)}, or the triple of one; default: "
    "the target's own.",
)
limits = stack(
    click.option("--context", type=click.IntRange(1), help="Maximum tokens of one conversation."),
    click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together."),
    click.option("--prefill-chunk", type=click.IntRange(1), help="Maximum tokens of one step."),
)
mtp = click.option(
    "--mtp",
    is_flag=True,
    help="Draft tokens with the block of multi-token prediction that comes with the checkpoint "
    "(DeepSeek V3, GLM-4.5, Qwen3.5 and others): the same text, sooner, for the memory of one more "
    "layer.",
)
draft_head = click.option(
    "--draft-head",
    type=MODEL,
    metavar="MODEL",
    help="Draft tokens with an EAGLE-3 head that was trained for the model: a folder, or "
    "hf://ORG/NAME.",
)
mmproj = click.option(
    "--mmproj",
    type=TEXT,
    metavar="FILE",
    help="The file with the vision tower of a model in GGUF, or hf://ORG/NAME/FILE.gguf; none: the "
    "model takes no images. Default: the file next to the model whose name contains mmproj.",
)
speculation = stack(
    mtp,
    draft_head,
    click.option(
        "--draft",
        type=MODEL,
        metavar="MODEL",
        help="A smaller model with the same tokenizer, for speculative decoding: the same "
        "text, sooner.",
    ),
    click.option(
        "--max-drafts",
        type=click.IntRange(0, 64),
        help="Maximum draft tokens per step, from the draft model, --mtp, --draft-head, or "
        "repetitions in the text; default: 4 with --draft, 3 with --mtp or --draft-head, else 0.",
    ),
)
# Options for loading a model; names are the fields of wherry.runtime.load.options.LoadOptions.
load = stack(
    quant,
    kv_dtype,
    activations,
    target,
    mmproj,
    context,
    click.option(
        "--threads",
        type=click.IntRange(1),
        help="CPU threads; default: WHERRY_THREADS, else all cores.",
    ),
    speculation,
    click.option(
        "--tool-format",
        metavar="NAME",
        help="Format of the model's tool calls (hermes, mistral, ...); default: from its "
        "chat template.",
    ),
    click.option(
        "--adapt-messages",
        type=click.Choice(["on", "off"]),
        callback=lambda _context, _option, typed: None if typed is None else typed == "on",
        help="Whether messages that the chat template refuses or leaves out are rewritten for it, "
        "as the header X-Wherry-Adapted then says; default: on.",
    ),
    click.option(
        "--cuda-graphs",
        type=click.Choice(["on", "off"]),
        callback=lambda _context, _option, typed: None if typed is None else typed == "on",
        help="Whether NVIDIA's GPUs replay decode steps as CUDA graphs; default: on.",
    ),
    click.option(
        "--prefix-cache-dir",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Store the prefix cache in DIR, for later runs.",
    ),
)
sampling = stack(
    click.option(
        "--temperature", type=click.FloatRange(0, 2), help="0: greedy; default: the model's own."
    ),
    click.option(
        "--top-p",
        type=click.FloatRange(0, 1, min_open=True),
        help="Sample from the smallest set of tokens with this probability (nucleus).",
    ),
    click.option(
        "--top-k", type=click.IntRange(0), help="Sample from the k most likely tokens; 0: all."
    ),
    click.option("--seed", type=int, help="Equal seeds give equal texts."),
    click.option(
        "--max-tokens",
        type=click.IntRange(1),
        help="Maximum tokens of the answer; default: no limit.",
    ),
)


def split(typed: dict[str, Any]) -> tuple[LoadOptions, dict[str, Any]]:
    """Split typed options into those for loading and all others."""
    given = {name: value for name, value in typed.items() if value is not None}
    loading = cast(LoadOptions, {name: given.pop(name) for name in NAMES & set(given)})
    return loading, given


def opened(model: str, loading: LoadOptions) -> MLCEngine:
    """Prepare and load a model with a progress display; return its engine."""
    from wherry.runtime import MLCEngine

    with shown() as progress:
        engine = MLCEngine(model, **(loading | {"progress": progress}))
    if note := _on_context(engine.loaded, loading.get("context")):
        click.echo(note, err=True)
    return engine


def _on_context(loaded: LoadedModel, requested: int | str | None) -> str | None:
    """Return a message if memory limits the context below the model's; else None."""
    if loaded.context < loaded.model_context and requested in (None, "auto"):
        return (
            f"Context: {loaded.context:,} tokens, what fits into free memory, of the model's "
            f"{loaded.model_context:,}."
        )
    return (
        f"Context: {loaded.context:,} tokens, all of the model's." if requested == "auto" else None
    )
