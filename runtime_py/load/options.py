"""What a model may be loaded with: one record for both engines, the server and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

Progress = Callable[[str, int, int], None]  # what, done, in all


class CompileOptions(TypedDict, total=False):
    """Which compilation of a model is loaded; none of it is for a folder that is compiled."""

    target: str  # what to compile for; "auto", the default, is the best of this machine
    quant: str | None  # scheme of the weights; None: the default, q4f16_1
    # Of keys and values: "float32", "float16", "int8"; "auto": what suits target and scheme.
    kv_dtype: str
    # What weights are multiplied by: "int8" (of 4 and 8 bits, on CPUs: rounded, with a scale for
    # each 32), "float16" (on GPUs), "float"; "auto": what suits target and scheme.
    activations: str
    progress: Progress | None  # what a download, a conversion and a compilation report to
    # Also the engine's. A model is compiled for more than usual if it takes that.
    max_batch: int | None  # requests decoded together; None: as compiled
    prefill_chunk: int | None  # tokens of one step at most; None: as compiled


class LoadOptions(CompileOptions, total=False):
    """CompileOptions, and how the engine is set up. None is as good as nothing."""

    device: str | None  # "cpu" or "<kind>:<index>"; None: the compiled target's, index 0
    # Tokens of prompt and output together; "auto": as many as the model has and memory allows;
    # None: as compiled, or the whole cache if that is less.
    context: int | Literal["auto"] | None
    kv_tokens: int | None  # tokens of the KV cache in all; None: what memory allows
    threads: int | None  # of the CPU kernels; None: WHERRY_THREADS, else the core's choice
    prefix_cache: bool | None  # whether prompts share what earlier ones computed; None: they do
    prefix_cache_dir: str | Path | None  # folder where it outlives the process; None: nowhere
    prefix_cache_bytes: int | None  # that the folder may take; None: 1 GiB
    draft: str | Path | None  # a smaller model of the same tokenizer that proposes draft tokens
    max_drafts: int | None  # draft tokens a step; None: none, with a draft model 4
    tool_format: str | None  # how the model calls tools; None: its chat template tells
    max_slowdown: float | None  # of running answers by prompts that arrive; None: 2
    # Whether a CUDA device is asked for a decode step at once, not kernel by kernel; None: it is.
    cuda_graphs: bool | None


NAMES = frozenset(LoadOptions.__annotations__)
_COMPILE_NAMES = frozenset(CompileOptions.__annotations__)
_ENGINE_NAMES = NAMES - _COMPILE_NAMES | {"max_batch", "prefill_chunk"}


def checked(options: Mapping[str, Any]) -> LoadOptions:
    """The options, if all their names are known.

    Raises:
        TypeError: as Python raises it for an argument that a function does not have.
    """
    if unknown := sorted(set(options) - NAMES):
        raise TypeError(
            f"unknown options {', '.join(unknown)}; a model is loaded with "
            f"{', '.join(sorted(NAMES))}"
        )
    return cast(LoadOptions, dict(options))


def for_compiler(options: LoadOptions) -> CompileOptions:
    """The part that the compiler is given."""
    return cast(CompileOptions, {n: v for n, v in options.items() if n in _COMPILE_NAMES})


def for_engine(options: LoadOptions) -> LoadOptions:
    """What is left to say of a model that is compiled."""
    return cast(LoadOptions, {n: v for n, v in options.items() if n in _ENGINE_NAMES})
