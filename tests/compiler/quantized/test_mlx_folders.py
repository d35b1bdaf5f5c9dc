"""Folders that mlx-lm writes: every parameter is found, with the numbers of the original model.

mlx-lm comes from the package index into a folder of its own, without its dependencies.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.encoding import read_plan
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe
from wherry.errors import ModelError

from ...models.families import CASES
from ...support.tiny_models import save
from . import writing
from .formats import CASES as FORMATS

PACKAGES = ("mlx==0.32.4", "mlx-cpu==0.32.4", "mlx-lm==0.32.2")
HERE = Path(__file__).parent
NAMES = (
    *(
        "llama",
        "llama-tied",
        "mistral",
        "qwen2",
        "qwen3",
        "gemma",
        "gemma2",
        "gemma3",
        "phi3",
        "glm",
    ),
    *("olmo2", "cohere2", "starcoder2", "smollm3", "mixtral", "olmoe", "phimoe"),
    *("mamba", "mamba2", "falcon_mamba"),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """The original models, and what mlx-lm made of them."""
    tag = hashlib.sha256(" ".join((sys.version, *PACKAGES)).encode()).hexdigest()[:12]
    home = HERE.parents[2] / "build" / "clients" / f"mlx-{tag}"
    if not (home / ".made").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(home), *PACKAGES], check=True)
        (home / ".made").touch()
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("mlx")
    for name in NAMES:
        save(source / name, CASES[name].model_type, **CASES[name].config)
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(home)))
    subprocess.run(
        [sys.executable, str(HERE / "mlx_folders.py"), str(source), str(out), "8"],
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return source, out


def numbers(folder: Path) -> dict[str, np.ndarray]:
    """All parameters of the model in a folder."""
    described = describe(read_folder(folder))
    shapes = parameters(described.arch, described.config, described.entries)
    checkpoint, plan, _ = read_plan(described, shapes)
    return {
        p.name: np.concatenate([checkpoint.read(piece.name).ravel() for piece in p.pieces])
        for p in plan.parameters
        if p.pieces
    }


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_what_mlx_lm_writes_is_read(folders, name):
    source, out = folders
    written = json.loads((out / name / "config.json").read_text())
    assert written["quantization"] == written["quantization_config"]
    expected, decoded = numbers(source / name), numbers(out / name)
    assert expected.keys() == decoded.keys()
    for parameter, values in expected.items():
        difference = np.abs(decoded[parameter] - values).max()
        assert difference <= 0.01 * np.abs(values).max(), parameter


def test_convolutions_have_their_axes_in_another_order(tmp_path):
    module, case = "model.layers.0.conv.conv.", FORMATS["mlx-4"]
    arrays, _ = case.write(np.ones((64, 128), np.float32))
    tensors = {f"model.layers.0.mlp.up_proj.{k}": v for k, v in arrays.items()}
    conv = np.arange(64 * 3, dtype=np.float32).reshape(64, 1, 3)
    tensors[f"{module}weight"] = conv.transpose(0, 2, 1).copy()
    folder = writing.save(tmp_path, tensors, None, model_type="lfm2", **case.config)
    np.testing.assert_array_equal(
        open_checkpoint(read_folder(folder)).read(f"{module}weight"), conv
    )
    writing.save(tmp_path, tensors, None, model_type="qwen3_next", **case.config)
    with pytest.raises(ModelError, match="family qwen3_next, whose norms mlx-lm stores"):
        open_checkpoint(read_folder(folder))
