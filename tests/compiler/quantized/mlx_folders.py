"""A program with mlx-lm: reads folders of transformers, and writes them quantized.

Usage: mlx_folders.py IN OUT BITS; for each folder IN/NAME a folder OUT/NAME.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mlx_lm.utils import load_model, quantize_model, save_config, save_model

GROUP = 32


def main(source: str, out: str, bits: str) -> None:
    for folder in sorted(Path(source).iterdir()):
        model, config = load_model(folder, lazy=False)
        model, config = quantize_model(model, config, GROUP, int(bits))
        target = Path(out) / folder.name
        target.mkdir(parents=True)
        save_model(target, model, donate_model=False)
        save_config(config, target / "config.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
