"""Llama 4 decoders, text: attention in chunks, layers without RoPE, few experts and a shared one.

The input of an expert is multiplied by the sigmoid of its logit. In most layers a token attends to
the tokens of its own chunk alone; up to the end of the first chunk this is attention to all tokens,
and a model runs no further: its context is one chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, RouteSpec

from .. import decoder
from ..arch import Architecture, InverseFrequencies, RopeConfig, constant, inv_freq, rename, unpack
from ..blocks import experts
from ..blocks.experts import DOWN, EXPERT, GATE_UP, Experts, route
from ..blocks.temperature import Temperature, tempered
from ..config import Count, CountOrZero, Epsilon, Positions, Range, Size
from ..decoder import FULL, PAIRED, WEIGHTS, Biases
from ..layers.dense import GatedMLP
from ..step import Batch, attention

CHUNKED = "chunked_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama4Config(decoder.DecoderConfig):
    """Fields of Llama4Text's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_theta": 500000.0}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "for_llm_compressor": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("router_jitter_noise", "cache_implementation")
    head_dim: Size | None = 128
    intermediate_size_mlp: Size = 16384  # width of dense layers; intermediate_size is an expert's
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    use_qk_norm: bool = True  # whether layers with RoPE normalize q and k heads
    num_experts_per_tok: CountOrZero = 1
    num_local_experts: CountOrZero = 16
    moe_layers: tuple[CountOrZero, ...] | None = (
        None  # None: every interleave_moe_layer_step-th layer
    )
    interleave_moe_layer_step: CountOrZero = 1
    # 1 for each layer with RoPE, 0 without; (): every no_rope_layer_interval-th has none
    no_rope_layers: tuple[Annotated[int, Range(0, 1)], ...] = ()
    no_rope_layer_interval: Count = 4
    layer_types: tuple[str, ...] = ()  # (): layers with RoPE attend to their chunk
    attention_chunk_size: Positions | None = 8192  # tokens
    attn_temperature_tuning: bool | CountOrZero = (
        True  # of layers without RoPE; a number is a switch, too
    )
    floor_scale: Positions = 8192  # tokens
    attn_scale: Annotated[float, Range(0.0, 1e3)] = 0.1

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        count = self.num_hidden_layers
        unknown = sorted(set(self.layer_types) - {CHUNKED, FULL})
        if unknown:
            yield f"layer_types: found {', '.join(unknown)}, supported are {FULL} and {CHUNKED}"
        for name in ("layer_types", "no_rope_layers"):
            if 0 < len(getattr(self, name)) < count:
                yield f"{name}: {len(getattr(self, name))} found for num_hidden_layers, {count}"
                return
        if self.attention_chunk_size is None and self.chunked:
            yield f"attention_chunk_size: missing, with layers of {CHUNKED}"
        if any(map(self.sparse, range(count))):
            if not self.num_local_experts:
                yield "num_local_experts: found 0, with layers of experts"
            elif not 1 <= self.num_experts_per_tok <= self.num_local_experts:
                yield (
                    f"num_experts_per_tok: found {self.num_experts_per_tok}, for the "
                    f"{self.num_local_experts} of num_local_experts"
                )
        if self.use_qk_norm and self.table.attention_factor != 1.0:
            kind = self.rope.kind
            yield f"use_qk_norm: found True, supported is False with the scaling of RoPE {kind!r}"

    @property
    def table(self) -> InverseFrequencies:
        """Return RoPE's table."""
        return inv_freq(self.rope, self.head_size, self.max_position_embeddings)

    @property
    def chunked(self) -> bool:
        """Return whether a layer's attention ends at the borders of chunks."""
        kinds = self.layer_types or [
            CHUNKED if self.rotates(i) else FULL for i in range(self.num_hidden_layers)
        ]
        return CHUNKED in kinds[: self.num_hidden_layers]

    @property
    def context(self) -> int:
        most = self.table.max_context or self.max_position_embeddings
        return min(most, self.attention_chunk_size or most) if self.chunked else most

    @property
    def longest(self) -> int:
        return self.context

    @property
    def ends(self) -> str:
        if self.chunked and self.context == self.attention_chunk_size:
            return "attention is in chunks, of which only the first is supported; it ends"
        return "positions end"

    def rotates(self, layer: int) -> bool:
        """Return whether `layer` has RoPE."""
        if self.no_rope_layers:
            return bool(self.no_rope_layers[layer])
        return (layer + 1) % self.no_rope_layer_interval != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.rope if self.rotates(layer) else None

    def sparse(self, layer: int) -> bool:
        """Return whether `layer` has experts."""
        if self.moe_layers is not None:
            return layer in self.moe_layers
        step = self.interleave_moe_layer_step
        return step > 0 and (layer + 1) % step == 0

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        normed = self.use_qk_norm and self.rotates(layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps if normed else None)

    def temperature_of(self, layer: int) -> Temperature | None:
        """Return how the queries of `layer` grow with their position; None: they do not."""
        if self.rotates(layer) or not self.attn_temperature_tuning or not self.attn_scale:
            return None
        return Temperature(float(self.attn_scale), self.floor_scale, ahead=1)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def experts_of(self, layer: int) -> Experts | None:
        if not self.sparse(layer):
            return None
        # The softmax chooses as the logits do; a slot has one expert, whose weight becomes 1.
        routing = RouteSpec(
            experts=self.num_local_experts, top_k=self.num_experts_per_tok, normalized=True
        )
        return Experts(routing=routing, size=self.intermediate_size, shared=self.intermediate_size)


class Attention(decoder.HeadNormAttention):
    """Attention whose norms precede RoPE: they have no weights, so the order does not matter."""

    def __init__(self, cfg: Llama4Config, layer: int) -> None:
        super().__init__(cfg, layer)
        self.temperature = cfg.temperature_of(layer)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        if self.temperature is None:
            return super().forward(x, batch)
        width = self.shape.heads * self.shape.head_dim
        qkv = tempered(self.qkv_proj(x), batch.positions, width, self.temperature)
        return self.o_proj(attention(qkv, batch, self.shape))


class SparseMLP(experts.SparseMLP):
    """Sparse feed-forward that multiplies the input of an expert, not its result."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        logits = self.router(x)
        chosen = route(logits, None, self.routing)
        slots = _scaled(x, logits, chosen.ids)
        if self.routing.top_k > 1:  # a slot's input is its own, so each becomes a row
            one = replace(self.routing, top_k=1)
            y = _added(
                self.experts(slots, route(_one_hot(chosen.ids, one.experts), None, one)),
                self.routing.top_k,
            )
        else:
            y = self.experts(slots, chosen)
        assert self.shared_experts is not None
        return y + self.shared_experts(x)


def _scaled(x: Tensor, logits: Tensor, ids: Tensor) -> Tensor:
    """Multiply rows by sigmoids of logits: x [n, d], [n, E], ids int32 [n, K] -> [n * K, d]."""

    def compute(t: te.Tensor, s: te.Tensor, chosen: te.Tensor) -> te.Tensor:
        n, each = chosen.shape

        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            row = i // each
            factor = tirx.sigmoid(s[row, chosen[row, i % each]].astype("float32"))
            return (t[row, k].astype("float32") * factor).astype(t.dtype)

        return te.compute((n * each, t.shape[1]), element, "scaled")

    return op.tensor_expr_op(compute, "scaled", [x, logits, ids])


def _one_hot(ids: Tensor, experts: int) -> Tensor:
    """Return logits [n * K, E] that choose a slot's expert: ids int32 [n, K]."""

    def compute(chosen: te.Tensor) -> te.Tensor:
        n, each = chosen.shape

        def element(i: tirx.Var, e: tirx.Var) -> tirx.PrimExpr:
            own = chosen[i // each, i % each] == e
            return tirx.Select(own, tirx.const(1, "float32"), tirx.const(0, "float32"))

        return te.compute((n * each, experts), element, "one_hot")

    return op.tensor_expr_op(compute, "one_hot", [ids])


def _added(y: Tensor, each: int) -> Tensor:
    """Add the results of a row's slots in order: y [n * K, d] -> [n, d]."""

    def compute(t: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            parts = [t[i * each + slot, k].astype("float32") for slot in range(each)]
            return sum(parts[1:], parts[0]).astype(t.dtype)

        return te.compute((t.shape[0] // each, t.shape[1]), element, "added")

    return op.tensor_expr_op(compute, "added", [y])


class Block(experts.Block):
    attention = Attention

    def feed_forward(self, cfg: Llama4Config, layer: int) -> nn.Module:
        spec = cfg.experts_of(layer)
        if spec is None:
            return GatedMLP(cfg.hidden_size, cfg.intermediate_size_mlp)
        return SparseMLP(cfg.hidden_size, spec)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="llama4_text",
    config=Llama4Config,
    model=CausalLM,
    weights=(
        unpack(
            GATE_UP,
            "feed_forward.experts.gate_up_proj",
            each=(f"{EXPERT}.gate_proj.weight", f"{EXPERT}.up_proj.weight"),
        ),
        unpack(DOWN, "feed_forward.experts.down_proj", each=(f"{EXPERT}.down_proj.weight",)),
        constant("self_attn.q_norm.weight", 1.0),
        constant("self_attn.k_norm.weight", 1.0),
        *WEIGHTS,
        *PAIRED,
        rename("*.mlp.shared_experts.*", "*.feed_forward.shared_expert.*"),
        rename("*.mlp.*", "*.feed_forward.*"),
    ),
)
