"""Gemma 4's decoder: two kinds of heads, shared KV caches, per-layer embeddings, experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, Any, ClassVar

from tvm import te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, GivenName, RouteSpec

from .. import decoder
from ..arch import RopeConfig, WeightRule, concat, inv_freq, rename, unused_in
from ..blocks import per_layer_inputs, shared_kv
from ..blocks.experts import Chosen, ExpertBank, Experts, route
from ..blocks.shared_kv import SharingConfig
from ..config import Cap, Count, Positions, Range, Size, VocabSize
from ..decoder import FULL, WINDOWED, Biases, ModelScales
from ..decoder import WEIGHTS as DECODER
from ..layers.dense import GatedMLP, Unquantized, exact
from ..layers.rope_kinds import rope_by_kind
from ..step import Batch

ROPE = {
    WINDOWED: {"rope_type": "default", "rope_theta": 10000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
}

PATTERN = 6  # without layer_types every Nth layer has no sliding window


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma4Config(SharingConfig):
    """Fields of Gemma4's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_activation": ("gelu_pytorch_tanh",),
        # bidirectional attention is for image tokens alone
        "use_bidirectional_attention": ("vision",),
    }
    head_dim: Size | None = 256
    global_head_dim: Size = 512
    # KV heads of layers without a window; None: num_key_value_heads
    num_global_key_value_heads: Count | None = None
    max_position_embeddings: Positions = 131072
    tie_word_embeddings: bool = True
    sliding_window: Positions | None = 512
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    attention_bias: bool = False
    attention_k_eq_v: bool = False  # in layers without a window, keys are also values
    final_logit_softcapping: Cap | None = None
    # layers that read a shared KV cache have a feed-forward of twice the width
    use_double_wide_mlp: bool = False
    vocab_size_per_layer_input: VocabSize = 262144
    hidden_size_per_layer_input: Annotated[int, Range(0, 2**20)] = 256
    enable_moe_block: bool = False
    num_experts: Count | None = None
    top_k_experts: Count | None = None
    moe_intermediate_size: Size | None = None

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer; read the head size of global layers under both names."""
        given = rope_by_kind(given, ROPE)
        if (fields := _full_layer_fields(given)) is not None:
            del given["per_layer_config"]
            given |= {"global_head_dim": given.get("head_dim", 256), **fields}
        elif "per_layer_config" not in given and not given.get("attention_k_eq_v"):
            # transformers ignores it without attention_k_eq_v
            given.pop("num_global_key_value_heads", None)
        return given

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        heads, few = self.num_attention_heads, self.num_global_key_value_heads
        if few and heads % few:
            yield f"num_global_key_value_heads: {few} does not divide num_attention_heads, {heads}"
        if self.global_head_dim % 2:
            yield f"global_head_dim: {self.global_head_dim} dimensions rotate; they do in pairs"
        kinds = [self.windowed(i) for i in range(self.num_hidden_layers)]
        if set(kinds) != set(kinds[: self.first_shared]):
            yield (
                f"num_kv_shared_layers: the {self.num_kv_shared_layers} last of "
                f"{self.num_hidden_layers} layers share caches, and no layer before them has one "
                "of each kind"
            )
        if self.hidden_size_per_layer_input and self.vocab_size_per_layer_input < self.vocab_size:
            yield (
                f"vocab_size_per_layer_input: {self.vocab_size_per_layer_input} is less than "
                f"vocab_size, {self.vocab_size}"
            )
        if self.enable_moe_block:
            for name in ("num_experts", "top_k_experts", "moe_intermediate_size"):
                if getattr(self, name) is None:
                    yield f"{name}: missing, with enable_moe_block"
            if (self.top_k_experts or 1) > (self.num_experts or 2**12):
                yield f"top_k_experts: {self.top_k_experts} of {self.num_experts} num_experts"

    def source_of(self, layer: int) -> int:
        """Return the layer that owns the KV cache that `layer` reads."""
        if layer not in self.shared:
            return layer
        kind = self.windowed(layer)
        return max(i for i in range(self.first_shared) if self.windowed(i) == kind)

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % PATTERN != 0

    def windowed(self, layer: int) -> bool:
        return layer + 1 < self.num_hidden_layers and decoder.WindowedConfig.windowed(self, layer)

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        windowed = self.windowed(layer)
        e = self.head_size if windowed else self.global_head_dim
        few = None if windowed else self.num_global_key_value_heads
        rope = self.rope_of(layer)
        assert rope is not None
        table = inv_freq(rope, rope.rotary_dim(e), self.max_position_embeddings)
        own: GivenName = "keys" if self.attention_k_eq_v and not windowed else "both"
        return AttentionShape(
            cache=self.source_of(layer),
            heads=self.num_attention_heads,
            kv_heads=few or self.kv_heads,
            head_dim=e,
            scale=1.0,
            inv_freq=tuple(float(f) for f in table.inv_freq),
            rope_scaling=table.attention_factor,
            qk_norm_eps=self.rms_norm_eps,
            v_norm=layer not in self.shared,
            kv="none" if layer in self.shared else own,
            window=self.window_of(layer),
        )

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(embedding=sqrt(self.hidden_size), logit_cap=self.final_logit_softcapping)

    def size_of(self, layer: int) -> int:
        """Return the width of a layer's feed-forward."""
        return self.intermediate_size * (2 if self.wide(layer) else 1)

    def wide(self, layer: int) -> bool:
        """Return whether the feed-forward of `layer` has twice the width."""
        return self.use_double_wide_mlp and layer in self.shared

    def experts(self) -> Experts:
        """Return the experts that run in parallel with the dense feed-forward of each layer."""
        assert self.num_experts and self.top_k_experts and self.moe_intermediate_size
        routing = RouteSpec(experts=self.num_experts, top_k=self.top_k_experts, normalized=True)
        return Experts(routing=routing, size=self.moe_intermediate_size, gate="gelu_tanh")


def _full_layer_fields(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the entry of `per_layer_config` for layers without a window; None: there is none."""
    each, layers = given.get("per_layer_config"), given.get("num_hidden_layers")
    names = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
    listed = given.get("layer_types") or []
    if not isinstance(each, dict) or type(layers) is not int or not isinstance(listed, list):
        return None
    kinds = listed or [
        FULL if (i + 1) % PATTERN == 0 else WINDOWED for i in range(min(layers, 2**12))
    ]
    full = {i for i, kind in enumerate(kinds) if kind == FULL or i + 1 == len(kinds)}
    said = list(each.values())
    known = all(isinstance(own, dict) and set(own) <= set(names) for own in said)
    where = {int(name) if name.isdecimal() else -1 for name in each}
    if not known or (said and where != full) or any(own != said[0] for own in said):
        return None
    return {names[name]: value for name, value in (said[0] if said else {}).items()}


class Router(nn.Module):
    """Router that normalizes its input; each expert's weight has a learned factor."""

    def __init__(self, cfg: Gemma4Config, routing: RouteSpec) -> None:
        self.routing, self.scale = routing, cfg.hidden_size**-0.5
        self.norm = cfg.norm()
        self.proj = Unquantized(cfg.hidden_size, routing.experts, bias=False)
        self.per_expert_scale = exact((routing.experts,))

    def forward(self, x: Tensor) -> Chosen:
        """Choose experts: x [n, d] -> ids and weights of each row."""
        chosen = route(self.proj(self.norm(x) * self.scale), None, self.routing)
        factors = op.astype(self.per_expert_scale, "float32")
        weights = op.tensor_expr_op(
            lambda w, ids, s: te.compute(w.shape, lambda i, k: w[i, k] * s[ids[i, k]], "weighted"),
            "weighted",
            [chosen.weights, chosen.ids, factors],
        )
        return replace(chosen, weights=weights)


class Block(nn.Module):
    def __init__(self, cfg: Gemma4Config, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        self.self_attn = shared_kv.Attention(cfg, layer)
        self.post_attention_layernorm = cfg.norm()
        self.pre_feedforward_layernorm = cfg.norm()
        self.mlp = GatedMLP(cfg.hidden_size, cfg.size_of(layer), "gelu_tanh")
        self.post_feedforward_layernorm = cfg.norm()
        if cfg.enable_moe_block:
            spec = cfg.experts()
            self.router = Router(cfg, spec.routing)
            self.experts = ExpertBank(cfg.hidden_size, spec)
            self.post_feedforward_layernorm_1 = cfg.norm()
            self.pre_feedforward_layernorm_2 = cfg.norm()
            self.post_feedforward_layernorm_2 = cfg.norm()
        self.mixed = cfg.enable_moe_block
        self.layer_input = (
            per_layer_inputs.LayerInput(cfg, layer) if cfg.hidden_size_per_layer_input else None
        )
        self.layer_scalar = exact((1,))

    def forward(self, x: Tensor, batch: Batch, inputs: Tensor | None) -> Tensor:
        """Run the layer: x [n, d], inputs [n, layers * p] if any -> [n, d]."""
        y = self.self_attn(self.input_layernorm(x), batch)
        x = x + self.post_attention_layernorm(y)
        y = self.mlp(self.pre_feedforward_layernorm(x))
        if self.mixed:
            mixed = self.experts(self.pre_feedforward_layernorm_2(x), self.router(x))
            y = self.post_feedforward_layernorm_1(y) + self.post_feedforward_layernorm_2(mixed)
        x = x + self.post_feedforward_layernorm(y)
        if self.layer_input is not None:
            x = self.layer_input(x, inputs)
        return x * self.layer_scalar


class Decoder(decoder.Decoder):
    block = Block

    def __init__(self, cfg: Gemma4Config) -> None:
        super().__init__(cfg)
        self.per_layer = (
            per_layer_inputs.LayerTables(cfg) if cfg.hidden_size_per_layer_input else None
        )

    def forward(self, batch: Batch) -> Tensor:
        """Return the normalized hidden states of the logit rows, [m, d]."""
        x = self.embedded(batch)
        inputs = None if self.per_layer is None else self.per_layer(batch.tokens, x)
        for block in self.layers:
            x = block(x, batch, inputs)
        return self.norm(batch.at_logit_rows(x))


class CausalLM(decoder.CausalLM):
    decoder = Decoder


_BLOCK = "model.layers.*"

_ATTENTION = f"{_BLOCK}.self_attn"

WEIGHTS: tuple[WeightRule, ...] = (
    concat(f"{_BLOCK}.experts.gate_up_proj.weight", f"{_BLOCK}.experts.gate_up_proj"),
    concat(f"{_BLOCK}.experts.down_proj.weight", f"{_BLOCK}.experts.down_proj"),
    *DECODER,
    concat("qk_proj.weight", "q_proj.weight", "k_proj.weight"),
    concat("qk_proj.bias", "q_proj.bias", "k_proj.bias"),
    rename("model.per_layer.table.weight", "model.embed_tokens_per_layer.weight"),
    rename("model.per_layer.projection.weight", "model.per_layer_model_projection.weight"),
    rename("model.per_layer.norm.weight", "model.per_layer_projection_norm.weight"),
    rename(f"{_BLOCK}.layer_input.gate.weight", f"{_BLOCK}.per_layer_input_gate.weight"),
    rename(f"{_BLOCK}.layer_input.projection.weight", f"{_BLOCK}.per_layer_projection.weight"),
    rename(f"{_BLOCK}.layer_input.norm.weight", f"{_BLOCK}.post_per_layer_input_norm.weight"),
    rename(f"{_BLOCK}.router.norm.weight", f"{_BLOCK}.router.scale"),
    *(
        unused_in(f"{_ATTENTION}.{name}", lambda cfg: cfg.shared)
        for name in ("k_proj.*", "v_proj.*", "k_norm.weight", "v_norm.weight")
    ),
)
