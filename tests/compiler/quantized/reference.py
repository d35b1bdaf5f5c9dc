"""A program with the packages that define formats: quantizes, and dequantizes what they read.

Writes a folder per case with model.safetensors, config.json and expected.npy: float32 weights as
the package dequantizes them, with scales as float32, so that it rounds nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.compiler.quantized import writing
from tests.compiler.quantized.formats import CASES

MODULE = "model.layers.0.mlp.down_proj."
OUT, IN = 256, 384


def weights() -> torch.Tensor:
    return torch.randn((OUT, IN), generator=torch.Generator().manual_seed(3)) * 0.05


def save(home: Path, name: str, tensors: dict, settings: dict, expected: torch.Tensor) -> None:
    arrays = {MODULE + suffix: _array(t) for suffix, t in tensors.items()}
    field = "quantization" if name.startswith("mlx") else "quantization_config"
    folder = writing.save(home / name, arrays, None, **{field: settings})
    np.save(folder / "expected.npy", np.asarray(expected, np.float32))


def _array(tensor) -> np.ndarray:
    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor)
    import ml_dtypes

    views = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.int8}
    if tensor.dtype not in views:
        return tensor.detach().numpy()
    numpy_types = {torch.bfloat16: ml_dtypes.bfloat16, torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn}
    return tensor.detach().view(views[tensor.dtype]).numpy().view(numpy_types[tensor.dtype])


def awq(home: Path) -> None:
    spec = importlib.util.find_spec("awq")
    path = Path(spec.submodule_search_locations[0]) / "utils" / "packing_utils.py"
    spec = importlib.util.spec_from_file_location("packing_utils", path)
    packing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packing)
    for group in (32, 128):
        arrays, _ = writing.awq(weights().numpy(), group=group)
        q, z, s = (torch.from_numpy(arrays[n].copy()) for n in ("qweight", "qzeros", "scales"))
        expected = packing.dequantize_gemm(q, z, s.float(), 4, group).T
        save(home, f"awq-{group}", arrays, CASES["awq"].settings, expected)


def compressed(home: Path) -> None:
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    def case(name: str, format: str, count: int, **given) -> None:
        args = QuantizationArgs(**given)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        w = weights()
        apart = w.reshape(OUT, count, -1)
        most = 448 if given["type"] == "float" else 2 ** given["num_bits"] - 1
        zero = None
        if given["type"] == "float":
            scale = apart.abs().amax(-1) / most
        elif given["symmetric"]:
            scale = apart.abs().amax(-1) * 2 / most
        else:
            high, low = apart.amax(-1).clamp(min=0), apart.amin(-1).clamp(max=0)
            scale = (high - low) / most
            zero = (-low / scale).round() - 2 ** (given["num_bits"] - 1)
            zero = zero.to(torch.int8)
        state = {"weight": w, "weight_scale": scale.float()}
        if zero is not None:
            state["weight_zero_point"] = zero
        compressor = BaseCompressor.get_value_from_registry(format)
        packed = compressor.compress(state, scheme)
        expected = compressor.decompress(packed, scheme)["weight"]
        assert expected.dtype == torch.float32
        group = {"targets": ["Linear"], "weights": args.model_dump(mode="json")}
        settings = {"quant_method": "compressed-tensors", "format": format}
        settings["config_groups"] = {"group_0": group}
        save(home, name, packed, settings, expected)

    group = {"strategy": "group", "group_size": 128, "type": "int"}
    row = {"strategy": "channel", "symmetric": True}
    pack = "pack-quantized"
    for bits in (2, 3, 4, 5, 6, 8):
        case(f"compressed-{bits}", pack, 3, num_bits=bits, symmetric=True, **group)
    case("compressed-4-zeros", pack, 3, num_bits=4, symmetric=False, **group)
    case("compressed-8-zeros", pack, 3, num_bits=8, symmetric=False, **group)
    case("compressed-int8", "int-quantized", 1, num_bits=8, type="int", **row)
    case("compressed-fp8", "float-quantized", 1, num_bits=8, type="float", **row)


def mlx(home: Path) -> None:
    import mlx.core as mx

    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            parts = mx.quantize(mx.array(weights().numpy()), group_size=group, bits=bits)
            w, s, b = (np.array(part) for part in parts)
            arrays = {"weight": w, "scales": s, "biases": b}
            expected = mx.dequantize(*parts, group_size=group, bits=bits)
            settings = {"bits": bits, "group_size": group}
            save(home, f"mlx-{bits}-{group}", arrays, settings, np.array(expected))


def mlx_floats(home: Path) -> None:
    import mlx.core as mx

    for mode, bits, group in (("mxfp4", 4, 32), ("nvfp4", 4, 16), ("mxfp8", 8, 32)):
        given = {"group_size": group, "bits": bits, "mode": mode}
        w, s = mx.quantize(mx.array(weights().numpy()), **given)
        expected = mx.dequantize(w, s, **given).astype(mx.float32)
        arrays = {"weight": np.array(w), "scales": np.array(s)}
        save(home, f"mlx-{mode}", arrays, given, np.array(expected))


def bitsandbytes(home: Path) -> None:
    from bitsandbytes import functional

    settings = {"quant_method": "bitsandbytes"}
    for kind in ("nf4", "fp4"):
        for nested in (False, True):
            packed, state = functional.quantize_4bit(
                weights(), blocksize=64, quant_type=kind, compress_statistics=nested
            )
            arrays = {f"weight.{n}": t for n, t in state.as_dict(packed=True).items()}
            expected = functional.dequantize_4bit(packed, state)
            name = f"bitsandbytes-{kind}{'-nested' if nested else ''}"
            save(home, name, arrays | {"weight": packed}, settings, expected)
    w = weights()
    scale = w.abs().amax(1)
    q = (w * 127 / scale[:, None]).round().to(torch.int8)
    arrays = {"weight": q, "SCB": scale, "weight_format": np.array(0, np.uint8)}
    save(home, "bitsandbytes-8", arrays, settings, functional.int8_vectorwise_dequant(q, scale))


def fp8(home: Path) -> None:
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    arrays, _ = writing.fp8(weights().numpy(), block=(128, 128))
    codes = torch.from_numpy(arrays["weight"].view(np.uint8)).view(torch.float8_e4m3fn)
    scale = torch.from_numpy(arrays["weight_scale_inv"])
    expected = Fp8Dequantize(None)._dequantize_one(codes, scale)
    save(home, "fp8", arrays, CASES["fp8-blocks"].settings, expected)


def torchao(home: Path) -> None:
    from torchao import quantization
    from torchao.quantization.granularity import PerGroup
    from transformers import TorchAoConfig

    def case(name: str, config) -> None:
        linear = torch.nn.Sequential(torch.nn.Linear(IN, OUT, bias=False))
        linear[0].weight = torch.nn.Parameter(weights())
        quantization.quantize_(linear, config)
        weight = linear[0].weight
        tensors = {f"_weight_{n}": getattr(weight, n) for n in weight.tensor_data_names}
        for optional in getattr(weight, "optional_tensor_data_names", ()):
            if getattr(weight, optional) is not None:
                tensors[f"_weight_{optional}"] = getattr(weight, optional)
        settings = TorchAoConfig(config).to_dict()
        save(home, name, tensors, settings, weight.dequantize().float())

    case("torchao-int8", quantization.Int8WeightOnlyConfig(version=2))
    groups = PerGroup(32)
    case("torchao-int4-bytes", quantization.IntxWeightOnlyConfig(torch.int4, groups))
    case("torchao-float8", quantization.Float8WeightOnlyConfig())
    case("torchao-int3", quantization.IntxWeightOnlyConfig(torch.int3, PerGroup(128)))


if __name__ == "__main__":
    for make in (awq, compressed, mlx, mlx_floats, bitsandbytes, fp8, torchao):
        make(Path(sys.argv[1]))
