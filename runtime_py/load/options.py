"""The options of a load: one record for both engines, the server and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

Progress = Callable[[str, int, int], None]  # what, done, total


class CompileOptions(TypedDict, total=False):
    """Options that choose a compilation; a compiled folder takes only the last two."""

    target: str  # what to compile for; "auto", the default: the best device here
    quant: str | None  # scheme of the weights; None: q4f16_1
    # "float32", "float16", "int8"; "auto": the default of target and scheme
    kv_dtype: str
    # "int8" (CPUs, weights of 4 and 8 bits: activations rounded in groups of 32), "float16" (GPUs),
    # "float"; "auto": the default of target and scheme
    activations: str
    progress: Progress | None  # called with the progress of downloads, conversions and compilations
    # A larger number than the usual one compiles the model again.
    max_batch: int | None  # sequences decoded together; None: the compiled number
    prefill_chunk: int | None  # most tokens of one step; None: the compiled number


class LoadOptions(CompileOptions, total=False):
    """CompileOptions and the engine's options. None means the default."""

    device: str | None  # "cpu" or "<kind>:<index>"; None: the compiled target's, index 0
    # Most tokens of prompt and output together; "auto": as many as the model allows and memory
    # holds; None: the compiled context, or the whole KV cache if that is smaller.
    context: int | Literal["auto"] | None
    kv_tokens: int | None  # tokens of the whole KV cache; None: as memory allows
    threads: int | None  # of the CPU kernels; None: WHERRY_THREADS, else all physical cores
    prefix_cache: bool | None  # share the KV cache of equal prompt prefixes; None: yes
    prefix_cache_dir: str | Path | None  # folder of prefixes that outlive the process; None: none
    prefix_cache_bytes: int | None  # limit of that folder; None: 1 GiB
    draft: str | Path | None  # draft model: a smaller model with the same tokenizer
    max_drafts: int | None  # draft tokens a step; None: 4 with a draft model, else 0
    tool_format: str | None  # the model's tool-call format; None: its chat template tells
    max_slowdown: float | None  # of running answers while prompts are computed; None: 2
    # Capture decode steps as CUDA graphs and replay them; None: yes.
    cuda_graphs: bool | None


NAMES = frozenset(LoadOptions.__annotations__)
_COMPILE_NAMES = frozenset(CompileOptions.__annotations__)
_ENGINE_NAMES = NAMES - _COMPILE_NAMES | {"max_batch", "prefill_chunk"}


def checked(options: Mapping[str, Any]) -> LoadOptions:
    """Check that all names are known.

    Raises:
        TypeError: an option is unknown.
    """
    if unknown := sorted(set(options) - NAMES):
        raise TypeError(
            f"unknown options {', '.join(unknown)}; a model is loaded with "
            f"{', '.join(sorted(NAMES))}"
        )
    return cast(LoadOptions, dict(options))


def for_compiler(options: LoadOptions) -> CompileOptions:
    """The options for the compiler."""
    return cast(CompileOptions, {n: v for n, v in options.items() if n in _COMPILE_NAMES})


def for_engine(options: LoadOptions) -> LoadOptions:
    """The options for a compiled model."""
    return cast(LoadOptions, {n: v for n, v in options.items() if n in _ENGINE_NAMES})
