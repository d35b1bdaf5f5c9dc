"""Every format of quantized checkpoints that is read: its settings, writer, and scheme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import writing


@dataclass(frozen=True)
class Case:
    """A format."""

    settings: dict[str, Any]  # quantization_config
    write: Callable[[np.ndarray], writing.Written]
    scheme: str | None  # that stores the bits; None: they are encoded again
    fields: tuple[str, ...] = ("quantization_config",)  # of config.json, that hold the settings
    # of the scheme's numbers: a second scale that divides becomes a reciprocal
    rtol: float = 0.0
    rounds_rows: bool = False  # whether linears round their inputs to 8 bits a row

    @property
    def config(self) -> dict[str, Any]:
        """The fields of config.json that describe the weights."""
        return dict.fromkeys(self.fields, self.settings)


def _compressed(format: str, bits: int = 4, **weights: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": {"num_bits": bits, **weights}}
    settings = {"quant_method": "compressed-tensors", "format": format}
    return settings | {"config_groups": {"group_0": group}, "ignore": ["lm_head"]}


_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}
_V2 = {**_GPTQ, "checkpoint_format": "gptq_v2"}
_FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
_MLX = ("quantization", "quantization_config")  # mlx-lm writes one object under both names
_BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True}
_GEMMA = {"quant_method": "gemma", "num_bits": 2, "quantize_embeddings": True}


def torchao(kind: str, **data: Any) -> dict[str, Any]:
    fields = {name: {"_data": value} for name, value in data.items()}
    config = {"_type": kind, "_version": 2, "_data": fields}
    return {"quant_method": "torchao", "quant_type": {"default": config}}


_PACK = partial(_compressed, "pack-quantized")

CASES = {
    "gptq": Case(_GPTQ, writing.gptq, "q4f16_1"),
    "gptq-act-order": Case(
        {**_GPTQ, "desc_act": True}, partial(writing.gptq, order=1), "q4f16_1_ordered"
    ),
    "gptq-v2-32": Case(_V2, partial(writing.gptq, group=32, version=2), "q4f16_1"),
    "gptq-row": Case(_GPTQ, partial(writing.gptq, group=1024), "q4f16_1"),
    "gptq-asymmetric": Case(_GPTQ, partial(writing.gptq, symmetric=False), "affine4f16_g128"),
    "gptq-asymmetric-order": Case(
        _GPTQ, partial(writing.gptq, symmetric=False, order=2), "affine4f16_g128_ordered"
    ),
    "gptq-2": Case({**_GPTQ, "bits": 2}, partial(writing.gptq, bits=2, symmetric=False), "q4f16_1"),
    "gptq-3": Case({**_GPTQ, "bits": 3}, partial(writing.gptq, bits=3), "q4f16_1"),
    "gptq-8-asymmetric": Case(
        {**_GPTQ, "bits": 8},
        partial(writing.gptq, bits=8, symmetric=False),
        "affine8f16_g128",
    ),
    "gptq-tiny-scales": Case(_GPTQ, partial(writing.gptq, dtype=np.float32), "q4f32_1"),
    "awq": Case({"quant_method": "awq", "version": "gemm"}, writing.awq, "affine4f16_g128"),
    "awq-64": Case({"quant_method": "awq"}, partial(writing.awq, group=64), "affine4f16_g64"),
    "compressed-4": Case(_PACK(), writing.compressed, "q4f16_1"),
    "compressed-4-row": Case(_PACK(), partial(writing.compressed, group=1024), "q4f16_1"),
    "compressed-4-asymmetric": Case(
        _PACK(symmetric=False), partial(writing.compressed, symmetric=False), "affine4f16_g128"
    ),
    "compressed-3": Case(_PACK(3), partial(writing.compressed, bits=3), "q4f16_1"),
    "compressed-int8": Case(
        _compressed("int-quantized", 8),
        partial(writing.compressed, bits=8, group=1024, packed=False),
        None,  # q8f16_1 or affine8f16_row, by whether there is a -128
    ),
    "compressed-int8-asymmetric": Case(
        _compressed("int-quantized", 8, symmetric=False),
        partial(writing.compressed, bits=8, group=1024, packed=False, symmetric=False),
        "affine8f16_row",
    ),
    "compressed-fp8": Case(
        _compressed("float-quantized", 8, type="float"),
        partial(writing.fp8, block=(1, 1024), suffix="weight_scale"),
        "FP8_ROW",
    ),
    "compressed-nvfp4": Case(
        _compressed("nvfp4-pack-quantized", 4, type="float"),
        partial(writing.nvfp4, divides=True),
        "NVFP4",
        rtol=2.0**-22,
    ),
    "fp8-blocks": Case(_FP8, partial(writing.fp8, block=(128, 128)), "FP8_G128"),
    "fp8-whole": Case(
        {"quant_method": "fp8"},
        partial(writing.fp8, block=(4096, 4096), suffix="weight_scale"),
        "FP8_ROW",
    ),
    "modelopt-nvfp4": Case(
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        partial(writing.nvfp4, divides=False),
        "NVFP4",
    ),
    "mlx-4": Case({"bits": 4, "group_size": 64}, writing.mlx, "affine4f16_g64_min", fields=_MLX),
    "mlx-6": Case(
        {"bits": 6, "group_size": 64},
        partial(writing.mlx, bits=6),
        "affine8f16_g64_min",
        fields=_MLX,
    ),
    **{
        f"mlx-{mode}": Case(
            {"bits": bits, "group_size": group, "mode": mode},
            partial(writing.mlx_floats, mode=mode),
            scheme,
            fields=_MLX,
        )
        for mode, bits, group, scheme in (
            ("mxfp4", 4, 32, "MXFP4"),
            ("nvfp4", 4, 16, "NVFP4"),
            ("mxfp8", 8, 32, "MXFP8"),
        )
    },
    **{
        f"gemma-{bits}": Case(
            {
                **_GEMMA,
                "module_quant_configs": {r"layers\.\d+\.(mlp|self_)": {"num_bits": bits}},
            },
            partial(writing.gemma, bits=bits),
            scheme,
        )
        for bits, scheme in ((2, "q4f32_1"), (4, "q4f32_1"), (8, "q8f32_1"))
    },
    **{
        f"bitnet-{name}": Case(
            {"quant_method": "bitnet", "linear_class": name, "quantization_mode": "offline"},
            partial(writing.bitnet, divides=name == "bitlinear"),
            "TERNARY",
            rounds_rows=True,
        )
        for name in ("bitlinear", "autobitlinear")
    },
    "torchao-int8": Case(torchao("Int8WeightOnlyConfig"), writing.torchao, None),
    "torchao-int4-bytes": Case(
        torchao("IntxWeightOnlyConfig", weight_dtype="int4"),
        partial(writing.torchao, bits=4, group=32, dtype=np.float16),
        "q4f16_1",
    ),
    "torchao-float8": Case(
        torchao("Float8WeightOnlyConfig", weight_dtype="float8_e4m3fn"),
        writing.torchao_float8,
        "FP8_ROW",
    ),
    "torchao-int4": Case(
        torchao("Int4WeightOnlyConfig", int4_packing_format="PLAIN"),
        writing.torchao_int4,
        None,
    ),
    "nf4": Case(_BNB, writing.nf4, None),
    "nf4-simple": Case(_BNB, partial(writing.nf4, nested=False), None),
    "int8": Case({"quant_method": "bitsandbytes"}, writing.int8, None),
}
