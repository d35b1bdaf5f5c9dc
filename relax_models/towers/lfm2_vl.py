"""LFM2-VL and LFM2.5-VL: SigLIP 2, whose squares of patches become one feature each.

Axes: n patches, s side of a square of patches, f features, v hidden of the tower, d of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from ..config import read_config
from ..layers.activations import Activation, activate
from ..layers.norms import LayerNorm
from ..weights.rules import drop, either, rename
from .settings import activation, flag, part_of, positive, with_defaults
from .siglip import weights
from .siglip2 import Siglip2, Siglip2Config, taps
from .tower import Patches, Tower, TowerShape

_EPSILON = 1e-5  # of the projector's norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm2VlConfig:
    """The tower's configuration, and how its rows become features."""

    vision: Siglip2Config
    square: int  # side of a square of patches, in patches
    projector_size: int
    normed: bool
    activation: Activation  # between the two linears
    bias: bool
    hidden_size: int  # of the text model


class Lfm2Vl(nn.Module):
    def __init__(self, cfg: Lfm2VlConfig) -> None:
        self.vision = _Vision(cfg)

    def see(self, tiles: Patches) -> Tensor:
        """Compute the features of tiles: patches [n, c] -> [f, d], f = n / s^2."""
        return self.vision(tiles)


class _Vision(nn.Module):
    def __init__(self, cfg: Lfm2VlConfig) -> None:
        self.width, self.activation = cfg.vision.hidden_size * cfg.square**2, cfg.activation
        self.tower = Siglip2(cfg.vision)
        self.norm = LayerNorm(self.width, _EPSILON) if cfg.normed else None
        self.linear_1 = nn.Linear(self.width, cfg.projector_size, bias=cfg.bias)
        self.linear_2 = nn.Linear(cfg.projector_size, cfg.hidden_size, bias=cfg.bias)

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower, and join the patches of each square: they follow each other."""
        x = op.reshape(self.tower(tiles), [-1, self.width])
        x = x if self.norm is None else self.norm(x)
        y: Tensor = self.linear_2(activate(self.linear_1(x), self.activation, gated=False))
        return y


def _read(config: Mapping[str, Any], hidden_size: int) -> Lfm2VlConfig:
    return Lfm2VlConfig(
        vision=read_config(Siglip2Config, part_of(config, "vision_config")),
        square=positive(config, "downsample_factor", 2),
        projector_size=positive(config, "projector_hidden_size", 2560),
        normed=flag(config, "projector_use_layernorm", True),
        activation=activation(config, "projector_hidden_act"),
        bias=flag(config, "projector_bias", True),
        hidden_size=hidden_size,
    )


def _shape(cfg: Lfm2VlConfig) -> TowerShape:
    return TowerShape(
        patch=cfg.vision.patch,
        tile_patches=1024,  # see `_bounded`
        patches_per_row=cfg.square**2,
        features=cfg.hidden_size,
        inputs=("patches", "positions", "position_weights", "sequences", "query_indptr"),
    )


def _bounded(cfg: Lfm2VlConfig, shape: TowerShape, processor: Mapping[str, Any]) -> TowerShape:
    """Return the sizes for the largest tile of the processor, and the taps of all of its tiles.

    A tile has at least half of the smallest number of patches, or an eighth of the largest: its
    sides are rounded.
    """
    square, side = cfg.square, cfg.vision.side
    tokens = processor["max_image_tokens"]
    of_tile = (processor["tile_size"] // processor["encoder_patch_size"]) ** 2
    splits = processor["do_image_splitting"]
    maximum = max(tokens * square**2, of_tile if splits else 0)
    patches = min(processor["min_image_tokens"], tokens // 4) * square**2
    minimum: int = max(min(patches, of_tile if splits else patches) // 2, 1)
    # The longer a line of patches, the fewer taps it has, until it is as long as the table's.
    longest = 2 * max(side, square)
    sides = range(square, longest + 1, square)

    def other(rows: int) -> int:
        return max(-(-min(-(-minimum // rows), longest) // square), 1) * square

    most = max(taps(rows, side) * taps(other(rows), side) for rows in sides)
    return replace(shape, tile_patches=maximum, taps=most)


# Settings of the image processor, and transformers' defaults of them.
_PROCESSOR: Mapping[str, Any] = {
    "do_convert_rgb": True,
    "do_resize": True,
    "resample": 2,  # bilinear
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "downsample_factor": 2,
    "do_image_splitting": True,
    "min_tiles": 2,
    "max_tiles": 10,
    "use_thumbnail": True,
    "min_image_tokens": 64,
    "max_image_tokens": 256,
    "encoder_patch_size": 16,
    "tile_size": 512,
    "max_pixels_tolerance": 2.0,
}


def _settings(config: Mapping[str, Any], cfg: Lfm2VlConfig) -> dict[str, Any]:
    return {
        "vision_config": {
            "patch_size": cfg.vision.patch_size,
            "num_patches": cfg.vision.num_patches,
        },
        "downsample_factor": cfg.square,
        "image_token": "<image>",
        "image_start_token": "<|image_start|>",
        "image_end_token": "<|image_end|>",
        "image_thumbnail_token": "<|img_thumbnail|>",
        "image_token_id": config.get("image_token_id", 396),
    }


_PARTS = ("vision_tower", "multi_modal_projector")

TOWER = Tower(
    name="lfm2_vl",
    read=_read,
    model=Lfm2Vl,
    shape=_shape,
    bounded=_bounded,
    processor=with_defaults(_PROCESSOR),
    settings=_settings,
    sources=tuple(f"model.{part}." for part in _PARTS),
    weights=(
        *weights("vision.tower", "model.vision_tower"),
        rename("vision.norm.*", "model.multi_modal_projector.layer_norm.*"),
        rename("vision.linear_1.*", "model.multi_modal_projector.linear_1.*"),
        rename("vision.linear_2.*", "model.multi_modal_projector.linear_2.*"),
        either("model.vision_tower.*", "model.vision_tower.vision_model.*"),
        drop("model.vision_tower.vision_model.head.*"),
    ),
)
