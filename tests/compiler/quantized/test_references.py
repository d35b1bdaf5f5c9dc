"""Against the packages that define the formats: what they write, dequantized bit for bit.

The packages come from the package index into a folder of their own, without their dependencies.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint

from .test_formats import MODULE

pytestmark = pytest.mark.nightly
PACKAGES = (
    "autoawq==0.2.7.post3",
    "bitsandbytes==0.50.2",
    "compressed-tensors==0.20.0",
    "loguru==0.7.3",
    "mlx==0.32.4",
    "mlx-cpu==0.32.4",
    "psutil==7.2.2",
    "torchao==0.18.0",
)
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """A folder per case, with what the package dequantizes in expected.npy."""
    tag = hashlib.sha256(" ".join((sys.version, *PACKAGES)).encode()).hexdigest()[:12]
    home = HERE.parents[2] / "build" / "clients" / f"quantized-{tag}"
    if not (home / ".made").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(home), *PACKAGES], check=True)
        (home / ".made").touch()
    out = tmp_path_factory.mktemp("reference")
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(home)))
    subprocess.run(
        [sys.executable, str(HERE / "reference.py"), str(out)],
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return sorted(out.iterdir())


def test_bit_for_bit(folders):
    assert len(folders) == 43
    wrong = []
    for folder in folders:
        expected = np.load(folder / "expected.npy")
        weights = open_checkpoint(read_folder(folder)).read(f"{MODULE}weight")
        if weights.shape != expected.shape or not np.array_equal(weights, expected):
            wrong.append(f"{folder.name}: {np.abs(weights - expected).max():.3g}")
    assert not wrong, "\n".join(wrong)
