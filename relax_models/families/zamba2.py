"""Zamba2: Mamba-2 layers, some of which read a transformer block that several layers share.

A shared block reads a row's hidden state and its embedding side by side, and has adapters (LoRA) of
its own for each use: of the feed-forward, and in some models of attention. Its result, projected,
is added to what the layer's Mamba-2 reads. Each use has keys and values of its own. Source:
transformers' `modeling_zamba2.py`; as there, steps are no smaller than `time_step_min`.

Axes: n rows, d hidden, r adapter rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder, layer_kinds
from ..arch import Architecture, RopeConfig, concat, rename, unused_in
from ..blocks.mamba2 import MAMBA2, Mamba2, Mamba2Config, Mamba2Shape, Steps
from ..config import NOT_READ, Count, Epsilon, Positions, Range, Size
from ..decoder import TIED
from ..layer_kinds import LINEAR
from ..layers.activations import activate
from ..step import Batch, attention

HYBRID = "hybrid"
_GATED_EPS = 1e-5  # of the norm in Mamba-2 layers, whatever `rms_norm_eps` is


@dataclass(frozen=True, slots=True, kw_only=True)
class Zamba2Config(Mamba2Config, decoder.DecoderConfig):
    """Fields of Zamba2's config.json that shape the computation."""

    layer_types: tuple[str, ...]  # kind of each layer
    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    mamba_n_heads: Count = 8
    mamba_d_state: Size = 64
    time_step_limit: tuple[Steps, ...] = field(default=(), metadata=NOT_READ)
    time_step_min: Steps = 0.001
    num_mem_blocks: Count = 1  # shared blocks, which layers use in turn
    use_shared_attention_adapter: bool = False
    adapter_rank: Annotated[int, Range(1, 2**16)] = 128
    use_mem_rope: bool = False
    SPELLED: ClassVar[Mapping[str, str]] = {
        "layer_types": "layers_block_type",
        "head_dim": "attention_head_dim",
        "mamba_n_heads": "n_mamba_heads",
        "mamba_d_head": "mamba_headdim",
        "mamba_n_groups": "mamba_ngroups",
        "mamba_conv_bias": "use_conv_bias",
        "mamba_proj_bias": "add_bias_linear",
    }
    ALIASES: ClassVar[Mapping[str, str]] = {
        "layer_types": "layers_block_type",
        "head_dim": "attention_head_dim",
        "ffn_hidden_size": "intermediate_size",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu",),
        "use_long_context": (False,),
        "use_shared_mlp_adapter": (True,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        # that other fields give
        *("attention_hidden_size", "hybrid_layer_ids", "kv_channels", "num_query_groups"),
        *("chunk_size", "num_logits_to_keep", "use_mamba_kernels", "use_mem_eff_path"),
        *("time_step_floor", "time_step_limit", "time_step_max"),
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with kinds of layers as they are spelled now, and what they imply."""
        config = dict(given)
        kinds = config.get("layers_block_type")
        if isinstance(kinds, list):
            config["layers_block_type"] = layer_kinds.respelled({"layer_types": kinds})[
                "layer_types"
            ]
        d, heads = config.get("hidden_size"), config.get("num_attention_heads")
        if type(d) is int and type(heads) is int and heads > 0:
            config = {"intermediate_size": 4 * d, "attention_head_dim": 2 * d // heads, **config}
        return config

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        yield from self.mamba_problems()
        yield from layer_kinds.problems(self.layer_types, (LINEAR, HYBRID), self.num_hidden_layers)
        width = self.head_size * self.num_attention_heads
        if width != 2 * self.hidden_size:
            yield f"attention_head_dim: heads have {width} elements, expected 2 * hidden_size"
        if self.use_shared_attention_adapter and self.kv_heads != self.num_attention_heads:
            yield (
                f"num_key_value_heads: {self.kv_heads} found, and adapters of attention "
                f"(use_shared_attention_adapter) are for all {self.num_attention_heads} heads"
            )
        if not self.mamba_conv_bias:
            yield "use_conv_bias: found False, supported is True"
        if not self.tie_word_embeddings:  # transformers shares no blocks then
            yield "tie_word_embeddings: found False, supported is True"

    @property
    def hybrids(self) -> tuple[int, ...]:
        """Return the layers that use a shared block, in their order."""
        return tuple(i for i, kind in enumerate(self.layer_types) if kind == HYBRID)

    @property
    def owners(self) -> tuple[int, ...]:
        """Return the layers that come with a block: the first ones that use it."""
        return self.hybrids[: self.num_mem_blocks]

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.rope if self.use_mem_rope else None

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, scale=(self.head_size / 2) ** -0.5)

    def mamba2(self) -> Mamba2Shape:
        shape = Mamba2Config.mamba2(self)
        spec = replace(shape.spec, least_step=float(self.time_step_min))
        return replace(shape, spec=spec, eps=_GATED_EPS)


class Adapter(nn.Module):
    """Low-rank addition to the results of linears that read the same rows.

    Their first matrices are one, [parts * r, d].
    """

    def __init__(self, inputs: int, rank: int, outputs: tuple[int, ...]) -> None:
        self.rank = rank
        self.down = nn.Linear(inputs, len(outputs) * rank, bias=False)
        self.up = nn.ModuleList([nn.Linear(rank, size, bias=False) for size in outputs])

    def forward(self, x: Tensor) -> Tensor:
        """Compute the addition: x [n, d] -> [n, sum of the outputs]."""
        z = self.down(x)
        if len(self.up) == 1:
            return self.up[0](z)
        parts = op.split(z, len(self.up), axis=-1)
        return op.concat([up(part) for up, part in zip(self.up, parts, strict=True)], dim=-1)


def _adapters(cfg: Zamba2Config, owner: int, make: Any) -> nn.ModuleList:
    """Return a block's adapters by the number of the use, in checkpoints' places."""
    block, uses = cfg.owners.index(owner), range(len(cfg.hybrids))
    return nn.ModuleList(
        [make() if use % cfg.num_mem_blocks == block else nn.Module() for use in uses]
    )


class SharedBlock(nn.Module):
    """Attention and a feed-forward that several layers use, each with its adapters."""

    def __init__(self, cfg: Zamba2Config, layer: int) -> None:
        d, f, bias = cfg.hidden_size, cfg.intermediate_size, cfg.mamba_proj_bias
        shape, rank = cfg.attention_shape(layer), cfg.adapter_rank
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        adapt = partial(Adapter, 2 * d, rank, (q, kv, kv))
        self.input_layernorm = cfg.norm(2 * d)
        self.qkv_proj = nn.Linear(2 * d, q + 2 * kv, bias=False)
        self.qkv_adapters = (
            _adapters(cfg, layer, adapt) if cfg.use_shared_attention_adapter else None
        )
        self.o_proj = nn.Linear(q, d, bias=False)
        self.pre_ff_layernorm = cfg.norm()
        self.gate_up_proj = nn.Linear(d, 2 * f, bias=bias)
        self.mlp_adapters = _adapters(cfg, layer, partial(Adapter, d, rank, (2 * f,)))
        self.down_proj = nn.Linear(f, d, bias=bias)

    def used(self, x: Tensor, batch: Batch, shape: AttentionShape, use: int) -> Tensor:
        """Run the block for its `use`: x [n, 2 * d] -> [n, d]."""
        z = self.input_layernorm(x)
        qkv = self.qkv_proj(z)
        if self.qkv_adapters is not None:
            qkv = qkv + self.qkv_adapters[use](z)
        z = self.pre_ff_layernorm(self.o_proj(attention(qkv, batch, shape)))
        both = self.gate_up_proj(z) + self.mlp_adapters[use](z)
        return self.down_proj(activate(both, "gelu", gated=True))


class MambaLayer(nn.Module):
    """Pre-norm Mamba-2 layer, which may read more than its residual."""

    def __init__(self, cfg: Zamba2Config) -> None:
        self.input_layernorm = cfg.norm()
        self.mamba = Mamba2(cfg.mamba2())

    def forward(self, x: Tensor, batch: Batch, more: Tensor | None = None) -> Tensor:
        """Run the layer: x and `more` [n, d] -> [n, d]."""
        read = x if more is None else x + more
        return x + self.mamba(self.input_layernorm(read), batch)


class HybridLayer(nn.Module):
    """Mamba-2 layer that also reads a shared block's result.

    The first layer that uses a block has its parameters, as in checkpoints.
    """

    def __init__(self, cfg: Zamba2Config, layer: int) -> None:
        self.shape = cfg.attention_shape(layer)
        self.use = cfg.hybrids.index(layer)
        owns = layer in cfg.owners
        self.shared_transformer = SharedBlock(cfg, layer) if owns else None
        self.linear = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=False)
        self.mamba_decoder = MambaLayer(cfg)

    def with_block(self, x: Tensor, first: Tensor, batch: Batch, block: SharedBlock) -> Tensor:
        """Run the layer: x and embeddings `first` [n, d] -> [n, d]."""
        both = op.concat([x, first], dim=-1)
        more = self.linear(block.used(both, batch, self.shape, self.use))
        return self.mamba_decoder(x, batch, more)


def _layer(cfg: Zamba2Config, layer: int) -> nn.Module:
    return HybridLayer(cfg, layer) if layer in cfg.hybrids else MambaLayer(cfg)


class Decoder(decoder.Decoder):
    def __init__(self, cfg: Zamba2Config) -> None:
        self.owners = cfg.owners
        super().__init__(cfg)

    def block_of(self, cfg: Any) -> Any:
        return _layer

    def rows(self, batch: Batch) -> Tensor:
        """Return the results of the last layer, [n, d]."""
        x = first = self.embedded(batch)
        for layer in self.layers:
            if isinstance(layer, HybridLayer):
                owner = self.owners[layer.use % len(self.owners)]
                x = layer.with_block(x, first, batch, self.layers[owner].shared_transformer)
            else:
                x = layer(x, batch)
        return x


class CausalLM(decoder.CausalLM):
    decoder = Decoder


def _others(cfg: Zamba2Config) -> tuple[int, ...]:
    """Return the layers whose copies of a shared block are another layer's parameters."""
    return cfg.hybrids[cfg.num_mem_blocks :]


_SHARED = "model.layers.*.shared_transformer"
_ADAPTERS = f"{_SHARED}.self_attn.linear_{{}}_adapter_list.*"
ARCH = Architecture(
    name="zamba2",
    config=Zamba2Config,
    model=CausalLM,
    weights=(
        *MAMBA2,
        concat(
            f"{_SHARED}.qkv_proj.weight",
            *(f"{_SHARED}.self_attn.{n}_proj.weight" for n in "qkv"),
        ),
        concat(
            f"{_SHARED}.qkv_adapters.*.down.weight",
            *(f"{_ADAPTERS.format(n)}.0.weight" for n in "qkv"),
        ),
        *(
            rename(f"{_SHARED}.qkv_adapters.*.up.{i}.weight", f"{_ADAPTERS.format(n)}.1.weight")
            for i, n in enumerate("qkv")
        ),
        rename(f"{_SHARED}.o_proj.weight", f"{_SHARED}.self_attn.o_proj.weight"),
        rename(
            f"{_SHARED}.mlp_adapters.*.down.weight",
            f"{_SHARED}.feed_forward.gate_up_proj_adapter_list.*.0.weight",
        ),
        rename(
            f"{_SHARED}.mlp_adapters.*.up.0.weight",
            f"{_SHARED}.feed_forward.gate_up_proj_adapter_list.*.1.weight",
        ),
        *(
            rename(f"{_SHARED}.{name}.*", f"{_SHARED}.feed_forward.{name}.*")
            for name in ("gate_up_proj", "down_proj")
        ),
        unused_in(f"{_SHARED}.*", _others),
        TIED,
        rename("model.norm.weight", "model.final_layernorm.weight"),
    ),
)
