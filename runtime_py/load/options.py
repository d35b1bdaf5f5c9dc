"""The options of a model load: one record for both engines, the server and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from wherry.errors import misnamed

# receives the name of the phase, the units done and the units in total
Progress = Callable[[str, int, int], None]


class CompileOptions(TypedDict, total=False):
    """Options of a compilation; for a compiled folder only the last two have an effect."""

    target: str  # target to compile for; "auto", the default: the best device of this machine
    quant: str | None  # quantization scheme of the weights; None: the model's default
    # element type of the KV cache: "float32", "float16", "int8", "int4"; "auto": the default of
    # target and scheme
    kv_dtype: str
    # Type of activations: "int8" (CPUs, weights of 4 and 8 bits: activations rounded in groups of
    # 32), "bf16" (CPUs with AMX, for prompts), "float16" (GPUs), "float"; "auto": the default of
    # target and scheme
    activations: str
    # Whether the checkpoint's block of multi-token prediction becomes part of the model and drafts
    # tokens.
    mtp: bool
    # EAGLE-3 head that becomes part of the model and drafts tokens: a folder, or hf://ORG/NAME;
    # None: none
    draft_head: str | None
    # GGUF file with the vision tower of a model in GGUF, or hf://ORG/NAME/FILE.gguf; "none": the
    # model takes no images. None: the file next to the model whose name contains "mmproj", if it
    # fits.
    mmproj: str | None
    # Callback for the progress of downloads, conversions and compilations; None: no progress is
    # shown. Left out: an engine draws bars on stderr if that is a terminal, and in a notebook
    # writes a line for each step.
    progress: Progress | None
    # A larger number than the usual one compiles the model again.
    max_batch: int | None  # number of sequences decoded together; None: the compiled number
    prefill_chunk: int | None  # maximum number of tokens in one step; None: the compiled number


class LoadOptions(CompileOptions, total=False):
    """CompileOptions and the engine's options; None selects the default of an option."""

    # device, "cpu" or "<kind>:<index>"; None: index 0 of the compiled target's kind
    device: str | None
    # Maximum tokens of prompt and output together; "auto": as many as the model allows and memory
    # holds; None: the compiled context, or the whole KV cache if that is smaller.
    context: int | Literal["auto"] | None
    kv_tokens: int | None  # number of tokens in the whole KV cache; None: as memory allows
    # number of threads of the CPU kernels; None: WHERRY_THREADS, else all physical cores
    threads: int | None
    prefix_cache: bool | None  # whether equal prompt prefixes share the KV cache; None: yes
    # folder for cached prefixes that outlive the process; None: none
    prefix_cache_dir: str | Path | None
    prefix_cache_bytes: int | None  # maximum bytes in prefix_cache_dir; None: 1 GiB
    # draft model: a smaller model with the same tokenizer, for speculative decoding
    draft: str | Path | None
    # maximum number of draft tokens in a step; None: 4 with a draft model, 3 with the model's own
    # block of multi-token prediction or an EAGLE-3 head, else 0
    max_drafts: int | None
    # name of the model's tool-call format; None: its chat template determines it
    tool_format: str | None
    # Whether messages that the chat template refuses or leaves out are rewritten for it; None: yes.
    adapt_messages: bool | None
    # largest factor by which prefill may slow down running responses; None: 2
    max_slowdown: float | None
    # Whether decode steps are captured as CUDA graphs and replayed; None: yes.
    cuda_graphs: bool | None


NAMES = frozenset(LoadOptions.__annotations__)
_COMPILE_NAMES = frozenset(CompileOptions.__annotations__)
_ENGINE_NAMES = NAMES - _COMPILE_NAMES | {"max_batch", "prefill_chunk"}


def checked(options: Mapping[str, Any]) -> LoadOptions:
    """Check that all option names are known, and return the options.

    Raises:
        TypeError: an option is unknown.
    """
    if unknown := sorted(set(options) - NAMES):
        raise TypeError(
            f"unknown options {misnamed(unknown, NAMES)}; a model is loaded with "
            f"{', '.join(sorted(NAMES))}"
        )
    return cast(LoadOptions, dict(options))


def for_compiler(options: LoadOptions) -> CompileOptions:
    """Return the options that the compiler takes."""
    return cast(CompileOptions, {n: v for n, v in options.items() if n in _COMPILE_NAMES})


def for_engine(options: LoadOptions) -> LoadOptions:
    """Return the options that still apply to a model that is already compiled."""
    return cast(LoadOptions, {n: v for n, v in options.items() if n in _ENGINE_NAMES})
