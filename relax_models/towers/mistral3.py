"""Mistral Small 3, Ministral 3 and Pixtral 12B: Pixtral's tower, whose squares of patches merge.

Axes: n patches, s side of a square of patches, f features, v hidden of the tower, d of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.errors import ModelError, shown

from ..config import read_config
from ..layers.activations import Activation, activate
from ..layers.norms import RMSNorm
from ..weights.rules import either, rename
from .pixtral import Pixtral, PixtralConfig, weights
from .settings import activation, flag, part_of, positive, require, with_defaults
from .tower import Patches, Tower, TowerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistral3Config:
    """The tower's configuration, and how its rows become features."""

    vision: PixtralConfig
    merge: int  # side of a square of patches; 1 without `norm_eps`
    norm_eps: float | None  # of the norm before the patches merge; None: none do
    activation: Activation  # between the two linears
    bias: bool
    hidden_size: int  # of the text model

    @property
    def merges(self) -> bool:
        """Return whether patches are normed and merged."""
        return self.norm_eps is not None


class Mistral3(nn.Module):
    def __init__(self, cfg: Mistral3Config) -> None:
        self.vision = _Vision(cfg)

    def see(self, tiles: Patches) -> Tensor:
        """Compute the features of tiles: patches [n, c] -> [f, d], f = n / s^2."""
        return self.vision(tiles)


class _Vision(nn.Module):
    def __init__(self, cfg: Mistral3Config) -> None:
        v, d = cfg.vision.hidden_size, cfg.hidden_size
        self.size, self.square, self.activation = v, cfg.merge**2, cfg.activation
        self.tower = Pixtral(cfg.vision)
        self.norm = RMSNorm(v, cfg.norm_eps) if cfg.norm_eps is not None else None
        self.merge = nn.Linear(v * self.square, v, bias=False) if cfg.merges else None
        self.linear_1 = nn.Linear(v, d, bias=cfg.bias)
        self.linear_2 = nn.Linear(d, d, bias=cfg.bias)

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower, and merge the patches of each square: they follow each other."""
        x = self.tower(tiles)
        if self.norm is not None and self.merge is not None:
            squares = op.reshape(self.norm(x), [-1, self.square, self.size])
            # the merging linear has the patches of an element of the rows next to each other
            by_element = op.permute_dims(squares, [0, 2, 1])
            x = self.merge(op.reshape(by_element, [-1, self.size * self.square]))
        y: Tensor = self.linear_2(activate(self.linear_1(x), self.activation, gated=False))
        return y


def _read(config: Mapping[str, Any], hidden_size: int) -> Mistral3Config:
    merges = config.get("model_type") == "mistral3"
    require(config, {"vision_feature_layer": (-1,) if merges else (-2, -1)})
    if not merges:
        # LLaVA's defaults are another tower's: the layer before the last, and no first row.
        given = (config.get("vision_feature_layer"), config.get("vision_feature_select_strategy"))
        if given != (-1, "full"):
            raise ModelError(
                "config.json: vision_feature_layer and vision_feature_select_strategy are "
                f"{shown(given[0])} and {shown(given[1])}, supported with Pixtral's tower are -1 "
                "and 'full'"
            )
    return Mistral3Config(
        vision=read_config(PixtralConfig, part_of(config, "vision_config")),
        merge=positive(config, "spatial_merge_size", 2) if merges else 1,
        norm_eps=_epsilon(part_of(config, "text_config")) if merges else None,
        activation=activation(config, "projector_hidden_act"),
        bias=flag(config, "multimodal_projector_bias", not merges),
        hidden_size=hidden_size,
    )


def _epsilon(text: Mapping[str, Any]) -> float:
    given = text.get("rms_norm_eps")
    if type(given) is not float or not 1e-12 <= given <= 0.1:
        raise ModelError(
            f"config.json: text_config.rms_norm_eps is {shown(given)}, a number from 1e-12 to 0.1 "
            "is expected; the norm before the patches merge has it"
        )
    return given


def _shape(cfg: Mistral3Config) -> TowerShape:
    return TowerShape(
        patch=cfg.vision.patch,
        tile_patches=_patches(cfg.vision.image_size, cfg.vision.patch_size * cfg.merge, cfg.merge),
        patches_per_row=cfg.merge**2,
        features=cfg.hidden_size,
        inputs=("patches", "coordinates", "sequences", "query_indptr"),
    )


def _patches(edge: int, square: int, merge: int) -> int:
    """Return the most patches of an image, whose sides of at most `edge` are rounded up."""
    return int((-(-edge // square) * merge) ** 2)


def _bounded(cfg: Mistral3Config, shape: TowerShape, processor: Mapping[str, Any]) -> TowerShape:
    """Return the sizes for the largest image of the processor, instead of the training's."""
    edge = processor["size"].get("longest_edge")
    if type(edge) is not int or edge < 1:
        return shape
    most = _patches(edge, cfg.vision.patch_size * cfg.merge, cfg.merge)
    return replace(shape, tile_patches=most)


# Settings of the image processor, and transformers' defaults of them.
_PROCESSOR: Mapping[str, Any] = {
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"longest_edge": 1024},
    "patch_size": {"height": 16, "width": 16},
    "resample": 3,  # bicubic
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}


def _settings(config: Mapping[str, Any], cfg: Mistral3Config) -> dict[str, Any]:
    side = cfg.vision.patch_size
    return {
        # transformers' processor takes its own, too, not the image processor's
        "processor": {"patch_size": {"height": side, "width": side}},
        "vision_config": {"patch_size": side},
        "spatial_merge_size": cfg.merge,
        "image_token": "[IMG]",
        "image_break_token": "[IMG_BREAK]",
        "image_end_token": "[IMG_END]",
        "image_token_id": config.get("image_token_index", config.get("image_token_id", 10)),
    }


def _fits(config: Mapping[str, Any]) -> bool:
    known = "pixtral" if config.get("model_type") == "mistral3" else None
    return bool(part_of(config, "vision_config").get("model_type", known) == "pixtral")


_PARTS = ("vision_tower", "multi_modal_projector")

TOWER = Tower(
    name="mistral3",
    aliases=("llava",),
    kind="pixtral",
    fits=_fits,
    read=_read,
    model=Mistral3,
    shape=_shape,
    bounded=_bounded,
    processor=with_defaults(_PROCESSOR),
    settings=_settings,
    sources=(*(f"{part}." for part in _PARTS), *(f"model.{part}." for part in _PARTS)),
    weights=(
        *weights("vision.tower", "vision_tower"),
        rename("vision.norm.weight", "multi_modal_projector.norm.weight"),
        rename("vision.merge.weight", "multi_modal_projector.patch_merger.merging_layer.weight"),
        rename("vision.linear_1.*", "multi_modal_projector.linear_1.*"),
        rename("vision.linear_2.*", "multi_modal_projector.linear_2.*"),
        *(either(f"{part}.*", f"model.{part}.*") for part in _PARTS),
    ),
)
