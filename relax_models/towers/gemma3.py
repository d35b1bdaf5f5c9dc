"""Gemma 3: SigLIP, whose squares of patches are averaged, normed and multiplied by a matrix.

Axes: n patches, s side of a square of patches, f features, v hidden of the tower, d of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.errors import ModelError

from ..config import read_config
from ..layers.norms import RMSNorm
from ..weights.rules import drop, either, rename, transpose
from .settings import part_of, positive, with_defaults
from .siglip import Siglip, SiglipConfig, weights
from .tower import Patches, Tower, TowerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3Config:
    """The tower's configuration, and how its rows become features."""

    vision: SiglipConfig
    features_per_tile: int
    hidden_size: int  # of the text model

    @property
    def square(self) -> int:
        """Return the side of a square of patches, in patches."""
        return self.vision.side // isqrt(self.features_per_tile)

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        side = isqrt(self.features_per_tile)
        if side**2 != self.features_per_tile or self.vision.side % side:
            yield (
                f"mm_tokens_per_image: {self.features_per_tile} is no square that divides the "
                f"{self.vision.side} x {self.vision.side} patches of an image"
            )


class Gemma3(nn.Module):
    def __init__(self, cfg: Gemma3Config) -> None:
        self.vision = _Vision(cfg)

    def see(self, tiles: Patches) -> Tensor:
        """Compute the features of tiles: patches [n, c] -> [f, d], f = n / s^2."""
        return self.vision(tiles)


class _Vision(nn.Module):
    def __init__(self, cfg: Gemma3Config) -> None:
        v = cfg.vision.hidden_size
        self.count = cfg.square**2
        self.tower = Siglip(cfg.vision)
        self.norm = RMSNorm(v, cfg.vision.layer_norm_eps, offset=1.0)
        self.proj = nn.Linear(v, cfg.hidden_size, bias=False)

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower, and average the patches of each square: they follow each other."""
        y: Tensor = self.proj(self.norm(_averaged(self.tower(tiles), self.count)))
        return y


def _averaged(x: Tensor, count: int) -> Tensor:
    """Return the averages of each `count` rows of x [n, v]: [n / count, v]."""
    width = int(x.shape[1])
    apart = op.reshape(x, [-1, count, width])

    def compute(rows: te.Tensor) -> te.Tensor:
        row = te.reduce_axis((0, count), "row")

        def total(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            return te.sum(rows[i, row, k].astype("float32"), row)

        sums = te.compute((rows.shape[0], width), total, "sums")
        scale = tirx.const(1 / count, "float32")
        return te.compute(sums.shape, lambda i, k: (sums[i, k] * scale).astype(x.dtype), "averaged")

    return op.tensor_expr_op(compute, "averaged", [apart])


def _read(config: Mapping[str, Any], hidden_size: int) -> Gemma3Config:
    own = Gemma3Config(
        vision=read_config(SiglipConfig, part_of(config, "vision_config")),
        features_per_tile=positive(config, "mm_tokens_per_image", 256),
        hidden_size=hidden_size,
    )
    for problem in own.problems():
        raise ModelError(f"config.json: {problem}")
    return own


def _shape(cfg: Gemma3Config) -> TowerShape:
    return TowerShape(
        patch=cfg.vision.patch,
        tile_patches=cfg.vision.side**2,
        patches_per_row=cfg.square**2,
        features=cfg.hidden_size,
    )


# Settings of the image processor, and transformers' defaults of them.
_PROCESSOR: Mapping[str, Any] = {
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"height": 224, "width": 224},
    "resample": 2,  # bilinear
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "do_pan_and_scan": False,
}


def _settings(config: Mapping[str, Any], cfg: Gemma3Config) -> dict[str, Any]:
    return {
        "vision_config": {"image_size": cfg.vision.image_size, "patch_size": cfg.vision.patch_size},
        "mm_tokens_per_image": cfg.features_per_tile,
        "boi_token": "<start_of_image>",
        "image_token": "<image_soft_token>",
        "eoi_token": "<end_of_image>",
        "image_token_id": config.get("image_token_index", config.get("image_token_id", 262144)),
    }


_PARTS = ("vision_tower", "multi_modal_projector")

TOWER = Tower(
    name="gemma3",
    read=_read,
    model=Gemma3,
    shape=_shape,
    processor=with_defaults(_PROCESSOR),
    settings=_settings,
    sources=(*(f"{part}." for part in _PARTS), *(f"model.{part}." for part in _PARTS)),
    weights=(
        *weights("vision.tower", "vision_tower"),
        rename("vision.norm.weight", "multi_modal_projector.mm_soft_emb_norm.weight"),
        transpose("vision.proj.weight", "multi_modal_projector.mm_input_projection_weight"),
        # Versions of transformers have one more part in the names of the tower.
        either("vision_tower.*", "vision_tower.vision_model.*"),
        either("vision_tower.*", "model.vision_tower.*"),
        either("vision_tower.*", "model.vision_tower.vision_model.*"),
        either("multi_modal_projector.*", "model.multi_modal_projector.*"),
        *(drop(f"{p}.head.*") for p in ("vision_tower.vision_model", "model.vision_tower")),
        drop("model.vision_tower.vision_model.head.*"),
    ),
)
