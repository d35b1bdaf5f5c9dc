"""SigLIP: a vision transformer with a table of positions and a norm before each part of a layer.

Axes: n patches, c elements of a patch, d hidden, h heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import RaggedAttentionSpec

from ..config import Count, Epsilon, Positions, Size
from ..layers.activations import NAMES, Name
from ..layers.dense import MLP, Embedding
from ..layers.norms import LayerNorm
from ..layers.ragged import attend
from ..weights.rules import WeightRule, concat, drop, rename
from .tower import Patches


@dataclass(frozen=True, slots=True, kw_only=True)
class SiglipConfig:
    """Fields of `vision_config`; their defaults are transformers' ones."""

    hidden_size: Size = 1152
    intermediate_size: Size = 3072
    num_hidden_layers: Count = 12
    num_attention_heads: Count = 16
    image_size: Positions = 224
    patch_size: Size = 32
    num_channels: Count = 3
    hidden_act: Name = "gelu_pytorch_tanh"
    layer_norm_eps: Epsilon = 1e-6
    # Written by older versions of transformers, without effect.
    IGNORED: ClassVar[tuple[str, ...]] = (
        *("max_image_size", "size", "tie_word_embeddings"),
        "vision_use_head",  # of what no image feature is made
    )
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"use_base_siglip": (False,)}

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        if self.hidden_size % self.num_attention_heads:
            yield (
                f"hidden_size: {self.hidden_size} is not divisible by the "
                f"{self.num_attention_heads} of num_attention_heads"
            )
        if self.patch_size > self.image_size:
            yield f"patch_size: {self.patch_size} exceeds image_size {self.image_size}"
        if self.num_channels != 3:
            yield f"num_channels: found {self.num_channels}, supported is 3"

    @property
    def side(self) -> int:
        """Return the patches of a side of a tile; pixels beyond the last one are unused."""
        return self.image_size // self.patch_size

    @property
    def places(self) -> int:
        """Return the rows of the table of positions."""
        return self.side**2

    @property
    def patch(self) -> int:
        """Return the elements of a patch."""
        return self.num_channels * self.patch_size**2


class Attention(nn.Module):
    def __init__(self, cfg: SiglipConfig) -> None:
        d, h = cfg.hidden_size, cfg.num_attention_heads
        e = d // h
        self.spec = RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=e**-0.5)
        self.qkv_proj = nn.Linear(d, 3 * d, bias=True)
        self.o_proj = nn.Linear(d, d, bias=True)

    def forward(self, x: Tensor, tiles: Patches) -> Tensor:
        """Compute attention within tiles: x [n, d] -> [n, d]."""
        return self.o_proj(attend(self.qkv_proj(x), tiles, self.spec))


class Block(nn.Module):
    def __init__(self, cfg: SiglipConfig) -> None:
        d, eps = cfg.hidden_size, cfg.layer_norm_eps
        self.attn_norm, self.attn = LayerNorm(d, eps), Attention(cfg)
        self.mlp_norm = LayerNorm(d, eps)
        self.mlp = MLP(d, cfg.intermediate_size, NAMES[cfg.hidden_act], bias=True)

    def forward(self, x: Tensor, tiles: Patches) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.attn(self.attn_norm(x), tiles)
        return x + self.mlp(self.mlp_norm(x))


class Siglip(nn.Module):
    """Patches [n, c] -> rows of the last norm [n, d]."""

    def __init__(self, cfg: SiglipConfig) -> None:
        d = cfg.hidden_size
        self.patch_proj = nn.Linear(cfg.patch, d, bias=True)
        self.positions = Embedding(cfg.places, d)
        self.layers = nn.ModuleList([Block(cfg) for _ in range(cfg.num_hidden_layers)])
        self.norm = LayerNorm(d, cfg.layer_norm_eps)

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower."""
        x = self.patch_proj(tiles.patches) + self.positions(tiles.positions)
        return self.layers_of(x, tiles)

    def layers_of(self, x: Tensor, tiles: Patches) -> Tensor:
        """Run the layers and the last norm: x [n, d] -> [n, d]."""
        for block in self.layers:
            x = block(x, tiles)
        y: Tensor = self.norm(x)
        return y


def weights(param: str, source: str) -> tuple[WeightRule, ...]:
    """Return the rules of a tower whose parameters begin with `param`, and tensors with `source`.

    The patches' linear is a convolution in the checkpoint, whose elements have the same order. The
    head that some checkpoints have pools rows to one.
    """
    kinds, own, layer = ("weight", "bias"), f"{source}.encoder.layers.*", f"{param}.layers.*"
    named = {
        f"{param}.patch_proj": f"{source}.embeddings.patch_embedding",
        f"{layer}.attn.o_proj": f"{own}.self_attn.out_proj",
        f"{layer}.attn_norm": f"{own}.layer_norm1",
        f"{layer}.mlp_norm": f"{own}.layer_norm2",
        f"{layer}.mlp.up_proj": f"{own}.mlp.fc1",
        f"{layer}.mlp.down_proj": f"{own}.mlp.fc2",
        f"{param}.norm": f"{source}.post_layernorm",
    }
    qkv = (f"{own}.self_attn.{name}_proj" for name in "qkv")
    return (
        rename(f"{param}.positions.weight", f"{source}.embeddings.position_embedding.weight"),
        *(rename(f"{to}.{k}", f"{name}.{k}") for to, name in named.items() for k in kinds),
        *_joined(f"{layer}.attn.qkv_proj", *qkv),
        drop(f"{source}.head.*"),
    )


def _joined(param: str, *sources: str) -> tuple[WeightRule, ...]:
    return tuple(concat(f"{param}.{k}", *(f"{s}.{k}" for s in sources)) for k in ("weight", "bias"))
