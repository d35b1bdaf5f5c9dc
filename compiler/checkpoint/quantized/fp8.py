"""Reads FP8 checkpoints: DeepSeek's blocks, FBGEMM's rows, and ModelOpt's FP8 and NVFP4.

Layout of a module [out, in]; all scales multiply:

    fp8         weight F8_E4M3 [out, in], weight_scale_inv [out / 128, in / 128], of
                `weight_block_size`; or one `weight_scale`
    fbgemm_fp8  weight F8_E4M3 [out, in], weight_scale [out, 1]
    modelopt    weight F8_E4M3 and one weight_scale; or NVFP4: weight uint8 [out, in / 2],
                weight_scale F8_E4M3 [out, in / 16], one weight_scale_2

Scales of activations (`input_scale`) and of the KV cache have no effect on weights.
"""

from __future__ import annotations

from typing import Any

from wherry.errors import ModelError

from .pieces import Pieces
from .scaled import FP8, read_nvfp4, read_scaled

_ACTIVATIONS = ("input_scale", "activation_scale", "input_scale_ub", "k_scale", "v_scale")


def read_fp8(pieces: Pieces) -> None:
    """Take the modules of a checkpoint in FP8 with blocks, rows or one scale."""
    block = _block(pieces, pieces.settings.get("weight_block_size"))
    for module in pieces.modules("weight"):
        if pieces.dtype(f"{module}weight") in FP8:
            inverse = pieces.has(f"{module}weight_scale_inv")
            scale = "weight_scale_inv" if inverse else "weight_scale"
            read_scaled(pieces, module, scale, "FP8", block=block)
        _drop(pieces, module)
    _drop_cache_scales(pieces)


def read_modelopt(pieces: Pieces) -> None:
    """Take the modules of a checkpoint of NVIDIA's ModelOpt, in FP8 or NVFP4."""
    for module in pieces.modules("weight"):
        dtype = pieces.dtype(f"{module}weight")
        if dtype == "U8" and pieces.has(f"{module}weight_scale_2"):
            read_nvfp4(pieces, module, "weight", "weight_scale_2", divides=False)
        elif dtype in FP8:
            read_scaled(pieces, module, "weight_scale", "FP8", block=None)
        _drop(pieces, module)
    _drop_cache_scales(pieces)


def _drop(pieces: Pieces, module: str) -> None:
    pieces.drop(*(module + name for name in _ACTIVATIONS))


def _drop_cache_scales(pieces: Pieces) -> None:
    for suffix in ("k_scale", "v_scale"):  # modules with a KV cache have no weight of their own
        pieces.drop(*(module + suffix for module in pieces.modules(suffix)))


def _block(pieces: Pieces, given: Any) -> tuple[int, int] | None:
    """Return `weight_block_size`.

    Raises:
        ModelError: it is no pair of positive numbers.
    """
    if given is None:
        return None
    if (
        isinstance(given, list)
        and len(given) == 2
        and all(type(n) is int and 0 < n < 2**20 for n in given)
    ):
        return given[0], given[1]
    raise ModelError(
        f"{pieces.checkpoint.folder}/config.json has weight_block_size {repr(given)[:100]}; it is "
        "a pair of positive numbers, as [128, 128]."
    )
