"""Tells from a model folder's JSON files whether and how its weights are quantized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wherry.errors import ModelError
from wherry.hub.file_names import MODELOPT
from wherry.hub.folder import read_json

from ..tensors import Checkpoint
from .awq import read_awq
from .bitnet import METHOD as BITNET
from .bitnet import read_bitnet
from .bitsandbytes import read_bitsandbytes
from .compressed import read_compressed
from .fp8 import read_fp8, read_modelopt
from .gemma import read_gemma
from .gptq import read_gptq
from .mlx import read_mlx, spelled
from .pieces import Pieces
from .torchao import read_torchao

MLX = "mlx"
# Formats by the `quant_method` of config.json: name for messages, and reader.
READERS: Mapping[str, tuple[str, Callable[[Pieces], None]]] = {
    "gptq": ("GPTQ", read_gptq),
    "awq": ("AWQ", read_awq),
    "compressed-tensors": ("compressed-tensors", read_compressed),
    "fp8": ("FP8", read_fp8),
    "fbgemm_fp8": ("FP8", read_fp8),
    "modelopt": ("ModelOpt", read_modelopt),
    "bitsandbytes": ("bitsandbytes", read_bitsandbytes),
    "gemma": ("Gemma QAT", read_gemma),
    MLX: ("MLX", read_mlx),
    BITNET: ("BitNet", read_bitnet),
    "torchao": ("torchao", read_torchao),
}
OF_EXPERTS = "mxfp4"  # gpt-oss' method, of which `mxfp4.py` reads the experts
_MODELOPT_ALGORITHMS = ("FP8", "NVFP4", "MIXED_PRECISION", None)


@dataclass(frozen=True, slots=True)
class QuantizationSettings:
    """How the weights of a folder are quantized."""

    method: str  # a key of READERS, or OF_EXPERTS
    settings: Mapping[str, Any]  # the format's own description
    model_type: object = None  # of config.json

    @property
    def name(self) -> str:
        """Return the format's name for messages."""
        return "MXFP4" if self.method == OF_EXPERTS else READERS[self.method][0]

    @property
    def rounds_inputs(self) -> bool:
        """Return whether the model was trained with linears that round their inputs."""
        return self.method == BITNET

    def spelled(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with shapes as PyTorch has them.

        Raises:
            ModelError: the format has tensors in a form that is not read.
        """
        return spelled(checkpoint, self.model_type) if self.method == MLX else checkpoint

    def read(self, pieces: Pieces) -> None:
        """Take the tensors of quantized modules.

        Raises:
            ModelError: the layout is not supported, or tensors do not fit.
        """
        READERS[self.method][1](pieces)
        pieces.require_none_wrong(self.name)


def recognise(folder: Path, config: Mapping[str, Any]) -> QuantizationSettings | None:
    """Return how the weights of a folder with a config.json are quantized; None: they are not.

    Raises:
        ModelError: the format is not supported.
    """
    path = folder / "config.json"
    text = config.get("text_config")
    places = (config, text if isinstance(text, Mapping) else {})
    of_mlx = config.get("quantization")  # which mlx-lm repeats as `quantization_config`
    for place in places:
        for field in ("quantization_config", "compression_config"):
            if place.get(field) is not None and place[field] != of_mlx:
                return _of_settings(path, field, place[field])
    if (folder / MODELOPT).is_file():
        settings = read_json(folder / MODELOPT).get("quantization")
        return _of_settings(folder / MODELOPT, "quantization", settings, "modelopt")
    if of_mlx is not None:
        quantized = _of_settings(path, "quantization", of_mlx, MLX)
        kinds = [place["model_type"] for place in reversed(places) if "model_type" in place]
        return replace(quantized, model_type=kinds[0] if kinds else None) if quantized else None
    return None


def _of_settings(
    path: Path, field: str, settings: Any, method: str = ""
) -> QuantizationSettings | None:
    """Return the format that a field of a JSON file describes."""
    if not isinstance(settings, Mapping):
        raise ModelError(f"{path} has {field} {repr(settings)[:100]}; it is an object.")
    named = method or settings.get("quant_method")
    if named is None and "quantization_status" in settings:  # compressed-tensors before 0.5
        named = "compressed-tensors"
    if named == OF_EXPERTS:
        return QuantizationSettings(named, settings)
    algorithm = settings.get("quant_algo")
    if named == "modelopt" and algorithm not in _MODELOPT_ALGORITHMS:
        raise ModelError(_unknown(path, f"ModelOpt's {repr(algorithm)[:100]}"))
    if not isinstance(named, str) or named not in READERS:
        raise ModelError(_unknown(path, f"{field} with quant_method {repr(named)[:100]}"))
    return QuantizationSettings(named, settings)


def _unknown(path: Path, what: str) -> str:
    names = ", ".join(dict.fromkeys(name for name, _ in READERS.values()))
    return (
        f"{path} has {what}, a format of weights that Wherry does not read; it reads {names}, "
        "MXFP4 (gpt-oss) and GGUF. Take the model in one of these formats, or the original model, "
        "and type: --quant q4f16_1"
    )
