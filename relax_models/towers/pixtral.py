"""Pixtral's vision transformer: RMSNorm, SwiGLU, no biases, and RoPE by row and column.

Even frequencies of a head turn by the patch's row, odd ones by its column. Axes: n patches, c
elements of a patch, d hidden, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import RaggedAttentionSpec

from ..config import Count, Positions, Range, Size
from ..layers.activations import NAMES, Name
from ..layers.dense import GatedMLP
from ..layers.norms import RMSNorm
from ..layers.ragged import attend
from ..layers.rotated import Angles, axial_angles, rotated
from ..weights.rules import WeightRule, concat, rename
from .tower import Patches

_EPSILON = 1e-5  # of all norms
_ROPE_KINDS = ("axial", "default")  # what versions of transformers call it


@dataclass(frozen=True, slots=True, kw_only=True)
class PixtralConfig:
    """Fields of `vision_config`; their defaults are transformers' ones."""

    hidden_size: Size = 1024
    intermediate_size: Size = 4096
    num_hidden_layers: Count = 24
    num_attention_heads: Count = 16
    head_dim: Size | None = None
    num_channels: Count = 3
    image_size: Positions = 1024
    patch_size: Size = 16
    hidden_act: Name = "gelu"
    rope_theta: Annotated[float, Range(1.001, 1e15)] = 10000.0
    IGNORED: ClassVar[tuple[str, ...]] = ("tie_word_embeddings", "vocab_size")

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Take the base of the rotation out of `rope_parameters`; others stay, and are refused."""
        rope = given.get("rope_parameters")
        if not isinstance(rope, Mapping) or rope.get("rope_type", "axial") not in _ROPE_KINDS:
            return given
        if not set(rope) <= {"rope_type", "rope_theta"}:
            return given
        rest = {name: value for name, value in given.items() if name != "rope_parameters"}
        own = {"rope_theta": rope["rope_theta"]} if "rope_theta" in rope else {}
        return rest | own

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        d, h = self.hidden_size, self.num_attention_heads
        if d % h or d // h % 4:
            yield f"hidden_size: {d} has no heads of a multiple of 4 elements; there are {h} heads"
        elif self.head_dim not in (None, d // h):
            yield f"head_dim: found {self.head_dim}, of {d} / {h} elements {d // h} is expected"
        if self.patch_size > self.image_size:
            yield f"patch_size: {self.patch_size} exceeds image_size {self.image_size}"
        if self.num_channels != 3:
            yield f"num_channels: found {self.num_channels}, supported is 3"

    @property
    def frequencies(self) -> list[float]:
        """Return the radians per patch of each rotated pair of a head."""
        e = self.hidden_size // self.num_attention_heads
        return [self.rope_theta ** (-k / e) for k in range(0, e, 2)]

    @property
    def patch(self) -> int:
        """Return the elements of a patch."""
        return self.num_channels * self.patch_size**2


class Attention(nn.Module):
    def __init__(self, cfg: PixtralConfig) -> None:
        d, h = cfg.hidden_size, cfg.num_attention_heads
        e = d // h
        self.spec = RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=e**-0.5)
        self.qkv_proj = nn.Linear(d, 3 * d, bias=False)
        self.o_proj = nn.Linear(d, d, bias=False)

    def forward(self, x: Tensor, tiles: Patches, by: Angles) -> Tensor:
        """Compute attention within tiles: x [n, d] -> [n, d]."""
        return self.o_proj(attend(rotated(self.qkv_proj(x), by, self.spec), tiles, self.spec))


class Block(nn.Module):
    def __init__(self, cfg: PixtralConfig) -> None:
        d = cfg.hidden_size
        self.attn_norm, self.attn = RMSNorm(d, _EPSILON), Attention(cfg)
        self.mlp_norm = RMSNorm(d, _EPSILON)
        self.mlp = GatedMLP(d, cfg.intermediate_size, NAMES[cfg.hidden_act])

    def forward(self, x: Tensor, tiles: Patches, by: Angles) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.attn(self.attn_norm(x), tiles, by)
        return x + self.mlp(self.mlp_norm(x))


class Pixtral(nn.Module):
    """Patches [n, c] -> rows of the last layer [n, d]."""

    def __init__(self, cfg: PixtralConfig) -> None:
        self.frequencies = cfg.frequencies
        self.patch_proj = nn.Linear(cfg.patch, cfg.hidden_size, bias=False)
        self.norm = RMSNorm(cfg.hidden_size, _EPSILON)
        self.layers = nn.ModuleList([Block(cfg) for _ in range(cfg.num_hidden_layers)])

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower."""
        x = self.norm(self.patch_proj(tiles.patches))
        by = axial_angles(tiles.coordinates, self.frequencies[::2], self.frequencies[1::2])
        for block in self.layers:
            x = block(x, tiles, by)
        return x


def weights(param: str, source: str) -> tuple[WeightRule, ...]:
    """Return the rules of a tower: parameters begin with `param`, and tensors with `source`."""
    own, layer = f"{source}.transformer.layers.*", f"{param}.layers.*"
    named = {
        f"{param}.patch_proj": f"{source}.patch_conv",
        f"{param}.norm": f"{source}.ln_pre",
        f"{layer}.attn.o_proj": f"{own}.attention.o_proj",
        f"{layer}.attn_norm": f"{own}.attention_norm",
        f"{layer}.mlp_norm": f"{own}.ffn_norm",
        f"{layer}.mlp.down_proj": f"{own}.feed_forward.down_proj",
    }
    joined = {
        f"{layer}.attn.qkv_proj": [f"{own}.attention.{name}_proj" for name in "qkv"],
        f"{layer}.mlp.gate_up_proj": [f"{own}.feed_forward.{n}_proj" for n in ("gate", "up")],
    }
    return (
        *(rename(f"{to}.weight", f"{name}.weight") for to, name in named.items()),
        *(concat(f"{to}.weight", *(f"{n}.weight" for n in names)) for to, names in joined.items()),
    )
