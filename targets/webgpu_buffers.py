"""Sizes of a page's GPU buffers: the limits that a model needs beyond WebGPU's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from wherry.errors import UsageError, listing

# Defaults of the WebGPU specification, section "Limits"; a page may request more from its adapter.
BINDING_BYTES = 128 << 20  # bytes of a binding, maxStorageBufferBindingSize
BUFFER_BYTES = 256 << 20  # bytes of a buffer, maxBufferSize
MOST_BYTES = (1 << 31) - 4  # bytes that a browser binds at most, on any machine


def limits_for(tensors: Mapping[str, int]) -> dict[str, int]:
    """Return the limits that a page must request, by WebGPU's names; {} if the defaults suffice.

    Args:
        tensors: name -> bytes; each tensor is one buffer.

    Raises:
        UsageError: some tensors are too large for any browser; the message lists them.
    """
    too_large = {name: size for name, size in tensors.items() if size > MOST_BYTES}
    if too_large:
        lines = listing(f"{name}: {size:,} bytes" for name, size in too_large.items())
        raise UsageError(
            f"Browsers bind buffers of {MOST_BYTES:,} bytes at most; this model has\n{lines}\n"
            "Type: --quant q4f16_1, or a smaller --prefill-chunk, or take a smaller model"
        )
    largest = max(tensors.values(), default=0)
    limits = {}
    if largest > BINDING_BYTES:
        limits["maxStorageBufferBindingSize"] = largest
    if largest > BUFFER_BYTES:
        limits["maxBufferSize"] = largest
    return limits
