"""SmolVLM, SmolVLM2 and Idefics 3: SigLIP, whose blocks of patches become one feature each.

Axes: n patches, s side of a block of patches, f features, v hidden of the tower, d of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.errors import ModelError

from ..config import read_config
from ..weights.rules import rename
from .settings import part_of, positive, with_defaults
from .siglip import Siglip, SiglipConfig, weights
from .tower import Patches, Tower, TowerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVlmConfig:
    """The tower's configuration, and how its rows become features."""

    vision: SiglipConfig
    scale_factor: int  # side of a block of patches
    hidden_size: int  # of the text model

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        if self.vision.side % self.scale_factor:
            yield (
                f"scale_factor: {self.scale_factor} does not divide the {self.vision.side} "
                "patches of a side"
            )


class SmolVlm(nn.Module):
    def __init__(self, cfg: SmolVlmConfig) -> None:
        width = cfg.vision.hidden_size * cfg.scale_factor**2
        self.width, self.scale = width, cfg.scale_factor
        self.vision = _Vision(cfg, width)

    def see(self, tiles: Patches) -> Tensor:
        """Compute the features of tiles: patches [n, c] -> [f, d], f = n / s^2."""
        return self.vision(tiles)


class _Vision(nn.Module):
    def __init__(self, cfg: SmolVlmConfig, width: int) -> None:
        self.width = width
        self.tower = Siglip(cfg.vision)
        self.proj = nn.Linear(width, cfg.hidden_size, bias=False)

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower, and join the patches of each block: they follow each other."""
        x = self.tower(tiles)
        y: Tensor = self.proj(op.reshape(x, [-1, self.width]))
        return y


def _read(config: Mapping[str, Any], hidden_size: int) -> SmolVlmConfig:
    own = SmolVlmConfig(
        vision=read_config(SiglipConfig, part_of(config, "vision_config")),
        scale_factor=positive(config, "scale_factor", 2),
        hidden_size=hidden_size,
    )
    for problem in own.problems():
        raise ModelError(f"config.json: {problem}")
    return own


def _shape(cfg: SmolVlmConfig) -> TowerShape:
    return TowerShape(
        patch=cfg.vision.patch,
        tile_patches=cfg.vision.side**2,
        patches_per_row=cfg.scale_factor**2,
        features=cfg.hidden_size,
    )


# Settings of the image processor, and transformers' defaults of them.
_PROCESSOR: Mapping[str, Any] = {
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"longest_edge": 4 * 364},
    "resample": 1,  # Lanczos
    "do_image_splitting": True,
    "max_image_size": {"longest_edge": 364},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def _settings(config: Mapping[str, Any], cfg: SmolVlmConfig) -> dict[str, Any]:
    return {
        "vision_config": {"image_size": cfg.vision.image_size, "patch_size": cfg.vision.patch_size},
        "scale_factor": cfg.scale_factor,
        "image_seq_len": (cfg.vision.side // cfg.scale_factor) ** 2,
        "image_token": "<image>",
        "image_token_id": config.get("image_token_id", 128257),
    }


TOWER = Tower(
    name="smolvlm",
    aliases=("idefics3",),
    read=_read,
    model=SmolVlm,
    shape=_shape,
    processor=with_defaults(_PROCESSOR),
    settings=_settings,
    sources=("model.vision_model.", "model.connector."),
    weights=(
        *weights("vision.tower", "model.vision_model"),
        rename("vision.proj.weight", "model.connector.modality_projection.proj.weight"),
    ),
)
