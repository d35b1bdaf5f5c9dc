"""gpt-oss as it is published: experts in MXFP4, with transformers' numbers of the same bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from wherry.compiler.api import convert_model
from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.kept import NOTHING, AllowedSchemes
from wherry.compiler.encoding import read_plan
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe
from wherry.compiler.weight_marker import own_of
from wherry.errors import ModelError

from ...models.families import CASES
from ...support import gpu
from ...support.tiny_models import Runner, compiled, save
from . import writing

PROMPT = np.random.default_rng(4).integers(0, 320, 40).tolist()
EXPERTS = ("gate_up_proj", "down_proj")


def published(folder):
    """A tiny gpt-oss in the published layout; the logits of transformers."""
    with torch.no_grad():
        return published_model(folder)(torch.tensor([PROMPT])).logits[0].numpy()


def published_model(folder, **config):
    """A tiny gpt-oss in the published layout; transformers' model."""
    model = save(folder, "gpt_oss", **{**CASES["gpt_oss"].config, **config})
    rng = np.random.default_rng(1)
    tensors = {}
    for name, p in model.state_dict().items():
        if not name.endswith(EXPERTS):
            tensors[name] = p.numpy().astype(np.float16) if p.ndim == 2 else p.numpy()
            p.copy_(torch.from_numpy(tensors[name].astype(np.float32)))
            continue
        count, columns, rows = p.shape
        blocks = rng.integers(0, 256, (count, rows, columns // 32, 16), np.uint8)
        scales = rng.integers(121, 124, (count, rows, columns // 32), np.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        packed = (torch.tensor(blocks), torch.tensor(scales))
        p.copy_(convert_moe_packed_tensors(*packed, dtype=torch.float32))
    writing.write(folder / "model.safetensors", tensors)
    config = json.loads((folder / "config.json").read_text())
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": settings}))
    return model


def logits(folder, target="cpu", **choices):
    run = Runner(compiled(folder, target=target, **choices), device=target)
    return np.concatenate([run.step({0: PROMPT[a:b]})[0] for a, b in ((0, 9), (9, 10), (10, 40))])


def schemes(weights):
    return {part.scheme.name for parts in own_of(weights).values() for part in parts}


@pytest.mark.cpu
@pytest.mark.nightly
def test_bits_stay(tmp_path, caplog):
    expected = published(tmp_path)
    got = logits(tmp_path, quant=None)
    assert not caplog.messages
    error = np.sqrt(np.mean((got - expected) ** 2) / np.mean(expected**2))
    assert error < 0.02  # of activations in int8
    assert schemes(convert_model(str(tmp_path))) == {"MXFP4", "q0f16", "exact"}


@pytest.mark.cpu
@pytest.mark.nightly
@pytest.mark.parametrize("quant", ["kept", "q0f32"])
def test_without_kernels(quant, tmp_path):
    expected = published(tmp_path)
    got = logits(tmp_path, quant=quant, activations="float")
    assert np.abs(got - expected).max() <= 2e-4


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", gpu.KINDS)
def test_devices(kind, tmp_path):
    gpu.device(kind)
    expected = published(tmp_path)
    got = logits(tmp_path, kind, quant=None, activations="float")
    assert np.abs(got - expected).max() <= 1e-3 * np.abs(expected).max()


def test_where_there_are_no_kernels_a_note_says_so(tmp_path, caplog):
    published(tmp_path)
    weights = convert_model(str(tmp_path), tmp_path / "out", allowed=AllowedSchemes(NOTHING))
    assert own_of(weights) == {}
    text = "MXFP4 (100%) of the quantized weights are re-encoded as q4f16_1."
    assert caplog.messages[0] == f"{tmp_path.name}: {text}"


def test_tensors_that_are_no_bytes(tmp_path):
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "mxfp4"}}')
    writing.write(tmp_path / "model.safetensors", {"a.up_blocks": np.zeros((2, 3), np.float32)})
    with pytest.raises(ModelError, match=r"a\.up_blocks is F32 \[2, 3\] in 24 bytes"):
        open_checkpoint(read_folder(tmp_path))


def test_rows_in_the_parameters_order(tmp_path):
    """Blocks of rows at any place, and what a scale that is no number leaves."""
    published(tmp_path)
    checkpoint = open_checkpoint(read_folder(tmp_path))
    described = describe(read_folder(tmp_path))
    shapes = parameters(described.arch, described.config)
    _, plan, _ = read_plan(described, shapes)
    experts = next(
        p for p in plan.parameters if p.name.endswith("0.mlp.experts.gate_up_proj.weight")
    )
    (rows,) = checkpoint.kept(experts)
    expected = np.concatenate([some for _, some in blocks(experts, checkpoint)])
    assert rows.rows == len(expected)
    for start, stop in ((0, len(expected)), (90, 97), (191, 400)):
        decoded = rows.scheme.decode(rows.stored(start, stop))
        np.testing.assert_array_equal(decoded, expected[start:stop])
