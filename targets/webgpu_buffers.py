"""Buffers of a page: what a model needs beyond the limits that WebGPU grants to everybody."""

from __future__ import annotations

from collections.abc import Mapping

from wherry.errors import UsageError, listing

# Defaults of the specification, section "Limits"; an adapter may have more, and gives it if asked.
BINDING_BYTES = 128 << 20  # maxStorageBufferBindingSize: of a buffer that a kernel binds
BUFFER_BYTES = 256 << 20  # maxBufferSize
MOST_BYTES = (1 << 31) - 4  # that browsers give on any machine


def limits_for(tensors: Mapping[str, int]) -> dict[str, int]:
    """The limits that a page asks its adapter for, in WebGPU's names; {} if the defaults do.

    Args:
        tensors: bytes, by name; each is one buffer.

    Raises:
        UsageError: with all tensors that no browser binds.
    """
    too_large = {name: size for name, size in tensors.items() if size > MOST_BYTES}
    if too_large:
        lines = listing(f"{name}: {size:,} bytes" for name, size in too_large.items())
        raise UsageError(
            f"Browsers bind buffers of {MOST_BYTES:,} bytes at most; this model has\n{lines}\n"
            "Type: --quant q4f16_1, or a smaller --prefill-chunk, or take a smaller model"
        )
    largest = max(tensors.values(), default=0)
    asked = {}
    if largest > BINDING_BYTES:
        asked["maxStorageBufferBindingSize"] = largest
    if largest > BUFFER_BYTES:
        asked["maxBufferSize"] = largest
    return asked
