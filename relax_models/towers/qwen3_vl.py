"""Qwen3-VL's and Qwen3.5's vision transformer: 2-D RoPE, an interpolated table, 2 x 2 merging.

A tile is an image of any size; its patches come in blocks of merge x merge, each of which becomes a
feature. DeepStack, which Qwen3.5 lacks, makes more features of some layers' results: a feature is
wider then. Source: transformers' `modeling_qwen3_vl.py`, `modeling_qwen3_5.py`.

Axes: n patches, f features, d hidden of the tower, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Annotated, Any, ClassVar

import numpy as np
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.errors import ModelError, shown
from wherry.ops import RaggedAttentionSpec

from ..config import Count, Positions, Range, Size, read_config
from ..layers.activations import NAMES, Activation, Name, activate
from ..layers.dense import Embedding
from ..layers.norms import LayerNorm
from ..layers.ragged import attend
from ..layers.rotated import Angles, axial_angles, rotated
from ..weights.rules import rename
from .taps import with_taps
from .tower import Patches, Tower, TowerShape

_EPS = 1e-6  # of all norms
_TAPS = 4  # rows of the table between which a patch lies
# Patches of an image at most: memory is planned for as many, and attention grows with their square.
MOST_PATCHES = 8192
_WITHOUT_DEEPSTACK = ("qwen3_5", "qwen3_5_moe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3VlConfig:
    """Fields of `vision_config`; their defaults are transformers' ones."""

    depth: Count = 27
    hidden_size: Size = 1152
    intermediate_size: Size = 4304
    num_heads: Count = 16
    in_channels: Count = 3
    patch_size: Size = 16
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2
    out_hidden_size: Size = 3584
    num_position_embeddings: Positions = 2304
    hidden_act: Name = "gelu_pytorch_tanh"
    # Layers after which DeepStack merges patches into features.
    deepstack_visual_indexes: tuple[Annotated[int, Range(0, 2**12)], ...] = (8, 16, 24)
    rope_theta: Annotated[float, Range(1.0 + 1e-6, 1e15)] = 10000.0
    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "depth",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"rope_type": ("axial",)}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Move the parameters of RoPE to the other fields."""
        rope = given.get("rope_parameters")
        if not isinstance(rope, Mapping):
            return given
        return {**{n: v for n, v in given.items() if n != "rope_parameters"}, **rope}

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        if self.hidden_size % (4 * self.num_heads):
            yield (
                f"hidden_size: {self.hidden_size} is not divisible by 4 x the {self.num_heads} of "
                "num_heads; half of a head's pairs rotate by the row, half by the column"
            )
        if self.in_channels != 3:
            yield f"in_channels: found {self.in_channels}, supported is 3"
        if isqrt(self.num_position_embeddings) ** 2 != self.num_position_embeddings:
            yield f"num_position_embeddings: {self.num_position_embeddings} is no square"
        for layer in self.deepstack_visual_indexes:
            if layer >= self.depth:
                yield f"deepstack_visual_indexes: {layer}, but depth is {self.depth}"

    @property
    def patch(self) -> int:
        """Return the elements of a patch; a still image has the same in each frame."""
        return self.in_channels * self.patch_size**2

    @property
    def merged(self) -> int:
        """Return the patches of a feature."""
        return self.spatial_merge_size**2

    @property
    def spec(self) -> RaggedAttentionSpec:
        """Return the static shape of attention."""
        h, e = self.num_heads, self.hidden_size // self.num_heads
        return RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=e**-0.5)

    @property
    def inv_freq(self) -> list[float]:
        """Return radians per row of half of a head's pairs, and per column of the others."""
        half = self.spec.head_dim // 2
        each = self.rope_theta ** (-np.arange(0, half, 2, dtype=np.float64) / half)
        return [float(f) for f in each]


class _Attention(nn.Module):
    def __init__(self, cfg: Qwen3VlConfig) -> None:
        d = cfg.hidden_size
        self.spec = cfg.spec
        self.qkv = nn.Linear(d, 3 * d, bias=True)
        self.proj = nn.Linear(d, d, bias=True)

    def forward(self, x: Tensor, tiles: Patches, angles: Angles) -> Tensor:
        """Compute attention within tiles: x [n, d] -> [n, d]."""
        qkv = rotated(self.qkv(x), angles, self.spec)
        return self.proj(attend(qkv, tiles, self.spec))


class _MLP(nn.Module):
    def __init__(self, sizes: tuple[int, int, int], activation: Activation) -> None:
        first, inner, last = sizes
        self.activation = activation
        self.linear_fc1 = nn.Linear(first, inner, bias=True)
        self.linear_fc2 = nn.Linear(inner, last, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward of rows."""
        return self.linear_fc2(activate(self.linear_fc1(x), self.activation, gated=False))


class _Block(nn.Module):
    def __init__(self, cfg: Qwen3VlConfig) -> None:
        d = cfg.hidden_size
        self.norm1, self.attn = LayerNorm(d, _EPS), _Attention(cfg)
        self.norm2 = LayerNorm(d, _EPS)
        self.mlp = _MLP((d, cfg.intermediate_size, d), NAMES[cfg.hidden_act])

    def forward(self, x: Tensor, tiles: Patches, angles: Angles) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.attn(self.norm1(x), tiles, angles)
        return x + self.mlp(self.norm2(x))


class _Merger(_MLP):
    """Makes a feature of each block of patches."""

    def __init__(self, cfg: Qwen3VlConfig, *, norm_last: bool) -> None:
        self.width, self.norm_last = cfg.hidden_size * cfg.merged, norm_last
        self.norm = LayerNorm(self.width if norm_last else cfg.hidden_size, _EPS)
        super().__init__((self.width, self.width, cfg.out_hidden_size), "gelu")

    def forward(self, x: Tensor) -> Tensor:
        """Compute features: x [n, d] -> [f, out]; the patches of a feature follow each other."""
        if not self.norm_last:
            x = self.norm(x)
        x = op.reshape(x, [-1, self.width])
        return super().forward(self.norm(x) if self.norm_last else x)


class _PatchEmbed(nn.Module):
    def __init__(self, cfg: Qwen3VlConfig) -> None:
        self.proj = nn.Linear(cfg.patch, cfg.hidden_size, bias=True)


class _Vision(nn.Module):
    """The tower; its parameters have the checkpoint's names."""

    def __init__(self, cfg: Qwen3VlConfig) -> None:
        self.inv_freq, self.deep = cfg.inv_freq, cfg.deepstack_visual_indexes
        self.patch_embed = _PatchEmbed(cfg)
        self.pos_embed = Embedding(cfg.num_position_embeddings, cfg.hidden_size)
        self.blocks = nn.ModuleList([_Block(cfg) for _ in range(cfg.depth)])
        self.merger = _Merger(cfg, norm_last=False)
        self.deepstack_merger_list = nn.ModuleList(
            [_Merger(cfg, norm_last=True) for _ in self.deep]
        )

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower: patches [n, c] -> [f, out * (1 + mergers of DeepStack)]."""
        x = with_taps(self.patch_embed.proj(tiles.patches), self.pos_embed.weight, tiles)
        angles = axial_angles(tiles.coordinates, self.inv_freq, self.inv_freq)
        deeper = []
        for i, block in enumerate(self.blocks):
            x = block(x, tiles, angles)
            if i in self.deep:
                deeper.append(self.deepstack_merger_list[self.deep.index(i)](x))
        features: Tensor = self.merger(x)
        return op.concat([features, *deeper], dim=-1) if deeper else features


class Qwen3Vl(nn.Module):
    def __init__(self, cfg: Qwen3VlConfig) -> None:
        self.vision = _Vision(cfg)

    def see(self, tiles: Patches) -> Tensor:
        """Compute the features of tiles: patches [n, c] -> [f, features]."""
        return self.vision(tiles)


def _read(config: Mapping[str, Any], hidden_size: int) -> Qwen3VlConfig:
    vision = config.get("vision_config") or {}
    if not isinstance(vision, Mapping):
        raise ModelError(f"config.json: vision_config is {shown(vision)}, not an object")
    if config.get("model_type") in _WITHOUT_DEEPSTACK:
        vision = {**vision, "deepstack_visual_indexes": []}
    own = read_config(Qwen3VlConfig, vision)
    if own.out_hidden_size != hidden_size:
        raise ModelError(
            f"config.json: out_hidden_size of vision_config is {own.out_hidden_size}, but "
            f"hidden_size of the text model {hidden_size}"
        )
    return own


def _shape(cfg: Qwen3VlConfig) -> TowerShape:
    rows = ("positions", "position_weights", "coordinates", "sequences", "query_indptr")
    return TowerShape(
        patch=cfg.patch,
        tile_patches=MOST_PATCHES,
        patches_per_row=cfg.merged,
        features=cfg.out_hidden_size * (1 + len(cfg.deepstack_visual_indexes)),
        inputs=("patches", *rows),
        taps=_TAPS,
    )


# Settings of the image processor, and transformers' defaults of them.
_PROCESSOR: Mapping[str, Any] = {
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},  # areas in pixels
    "resample": 3,  # bicubic
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
}
_OLDER = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}


def _processor(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings; images are at most as large as the tower's memory is planned for."""
    known = {name: given[name] for name in _PROCESSOR if given.get(name) is not None}
    own = {**_PROCESSOR, **known}
    older = {name: given[old] for old, name in _OLDER.items() if given.get(old) is not None}
    size = {**own["size"], **older} if isinstance(own["size"], Mapping) else {}
    bounds = [size.get(name) for name in ("shortest_edge", "longest_edge")]
    side = own["patch_size"]
    if not all(type(number) is int and number > 0 for number in (*bounds, side)):
        raise ModelError(
            f"preprocessor_config.json: size is {shown(own['size'])} and patch_size {shown(side)}; "
            "accepted are areas in pixels, shortest_edge and longest_edge, and a side"
        )
    least, most = bounds
    most = min(most, MOST_PATCHES * side**2)
    return {**own, "size": {"shortest_edge": min(least, most), "longest_edge": most}}


def _settings(config: Mapping[str, Any], cfg: Qwen3VlConfig) -> dict[str, Any]:
    fields = ("patch_size", "spatial_merge_size", "num_position_embeddings")
    default = 248056 if config.get("model_type") in _WITHOUT_DEEPSTACK else 151655
    return {
        "vision_config": {name: getattr(cfg, name) for name in fields},
        "image_token": "<|image_pad|>",
        "image_token_id": config.get("image_token_id", default),
    }


TOWER = Tower(
    name="qwen3_vl",
    aliases=("qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"),
    read=_read,
    model=Qwen3Vl,
    shape=_shape,
    processor=_processor,
    settings=_settings,
    sources=("model.visual.",),
    weights=(rename("vision.*", "model.visual.*"),),
)
