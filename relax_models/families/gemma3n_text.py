"""Gemma 3n decoders, text: several hidden states per row (AltUp), sparse feed-forwards.

As in Gemma 4, layers have token embeddings of their own, and the last ones read the KV caches of
earlier layers. The feed-forward of a sparse layer keeps the largest elements of its gate, those
above a quantile of a normal distribution with the gate's mean and deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, RopeConfig, inv_freq, rename, unused_in
from ..blocks import per_layer_inputs, shared_kv
from ..blocks.shared_kv import SharingConfig
from ..config import Cap, Count, CountOrZero, Positions, Range, Size, VocabSize
from ..decoder import FULL, WEIGHTS, WINDOWED, Biases, ModelScales
from ..layers.activations import activate, formula
from ..layers.altup import AltUp, column_block, of_length, row_mean
from ..layers.dense import GatedMLP
from ..layers.rope_kinds import merged
from ..step import Batch

PATTERN = 5  # without layer_types every Nth layer has no sliding window
SPARSE_LAYERS, SPARSITY = 10, 0.95  # of models with more layers, if config.json has no pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3nConfig(SharingConfig):
    """Fields of Gemma3nText's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_activation": ("gelu_pytorch_tanh",)
    }
    # Fields about training; scores have no factor, whatever query_pre_attn_scalar says.
    IGNORED: ClassVar[tuple[str, ...]] = (
        "altup_coef_clip",
        "altup_lr_multiplier",
        "query_pre_attn_scalar",
    )
    # One of each layer, or one of all; what reads the base class's is overridden.
    intermediate_size: Size | tuple[Size, ...]  # type: ignore[assignment]
    head_dim: Size | None = 256
    max_position_embeddings: Positions = 32768
    tie_word_embeddings: bool = True
    sliding_window: Positions | None = 512
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    attention_bias: bool = False
    final_logit_softcapping: Cap | None = 30.0
    vocab_size_per_layer_input: VocabSize = 262144
    hidden_size_per_layer_input: Size = 256
    num_kv_shared_layers: CountOrZero = 15
    altup_active_idx: CountOrZero = 0
    altup_correct_scale: bool = True
    altup_num_inputs: Count = 4
    laurel_rank: Size = 64
    # quantile below which a layer's gate is 0; 0: the layer is dense
    activation_sparsity_pattern: tuple[Annotated[float, Range(0.0, 0.999999)], ...] = ()

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer; older files have a field for each kind."""
        given = dict(given)
        local = {"rope_type": "default", "rope_theta": given.pop("rope_local_base_freq", 10000.0)}
        full = {"rope_type": "default", "rope_theta": given.pop("rope_theta", 1000000.0)}
        both = given.get("rope_parameters")
        if isinstance(both, dict) and set(both) <= {WINDOWED, FULL}:
            local, full = merged(local, both.get(WINDOWED)), merged(full, both.get(FULL))
        elif both is not None:
            # A missing kind of layer becomes an unknown field, and so an error.
            return given | {f"rope_parameters.{kind}": "missing" for kind in (WINDOWED, FULL)}
        elif isinstance(given.get("rope_scaling"), dict):
            full |= given["rope_scaling"]
        given.pop("rope_scaling", None)
        return given | {"rope_parameters": full, "local_rope_parameters": local}

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        count = self.num_hidden_layers
        sizes, pattern = self.intermediate_size, self.activation_sparsity_pattern
        if isinstance(sizes, tuple) and len(sizes) != count:
            yield f"intermediate_size: {len(sizes)} found for the {count} of num_hidden_layers"
        if pattern and len(pattern) != count:
            yield f"activation_sparsity_pattern: {len(pattern)} found for the {count} layers"
        if self.altup_active_idx >= self.altup_num_inputs:
            yield f"altup_active_idx: {self.altup_active_idx} of {self.altup_num_inputs} states"
        kinds = [self.windowed(i) for i in range(count)]
        if self.num_kv_shared_layers and set(kinds) != set(kinds[: self.first_shared]):
            yield (
                f"num_kv_shared_layers: the {self.num_kv_shared_layers} last of {count} layers "
                "share caches, and no layer before them has one of each kind"
            )

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % PATTERN != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        e, rope, kind = self.head_size, self.rope_of(layer), self.windowed(layer)
        assert rope is not None
        table = inv_freq(rope, rope.rotary_dim(e), self.max_position_embeddings)
        earlier = [i for i in range(self.first_shared) if self.windowed(i) == kind]
        return AttentionShape(
            cache=earlier[-1] if layer in self.shared else layer,
            heads=self.num_attention_heads,
            kv_heads=self.kv_heads,
            head_dim=e,
            scale=1.0,
            inv_freq=tuple(float(f) for f in table.inv_freq),
            rope_scaling=table.attention_factor,
            qk_norm_eps=self.rms_norm_eps,
            v_norm=layer not in self.shared,
            kv="none" if layer in self.shared else "both",
            window=self.window_of(layer),
        )

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(embedding=sqrt(self.hidden_size), logit_cap=self.final_logit_softcapping)

    def size_of(self, layer: int) -> int:
        """Return the width of a layer's feed-forward."""
        sizes = self.intermediate_size
        return sizes[layer] if isinstance(sizes, tuple) else sizes

    def sparsity_of(self, layer: int) -> float:
        """Return the quantile below which the gate of `layer` is 0."""
        if self.activation_sparsity_pattern:
            return float(self.activation_sparsity_pattern[layer])
        return SPARSITY if layer < SPARSE_LAYERS < self.num_hidden_layers else 0.0


class Laurel(nn.Module):
    """Learned augmented residual layer: x + norm(right(left(x))), of low rank."""

    def __init__(self, cfg: Gemma3nConfig) -> None:
        self.linear_left = nn.Linear(cfg.hidden_size, cfg.laurel_rank, bias=False)
        self.linear_right = nn.Linear(cfg.laurel_rank, cfg.hidden_size, bias=False)
        self.post_laurel_norm = cfg.norm()

    def forward(self, x: Tensor) -> Tensor:
        """Compute the residual: x [n, d] -> [n, d]."""
        return x + self.post_laurel_norm(self.linear_right(self.linear_left(x)))


class SparseGateMLP(GatedMLP):
    """Gated feed-forward whose gate keeps what exceeds mean + deviations * deviation of its row."""

    def __init__(self, hidden_size: int, intermediate_size: int, sparsity: float) -> None:
        super().__init__(hidden_size, intermediate_size, "gelu_tanh")
        self.size, self.deviations = intermediate_size, NormalDist().inv_cdf(sparsity)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        both = self.gate_up_proj(x)
        mean = row_mean(both, self.size, lambda e, _: e)
        variance = row_mean(both, self.size, lambda e, m: (e - m[0]) * (e - m[0]), mean)
        kept = op.tensor_expr_op(self._kept, "sparse_gate", [both, mean, variance])
        return self.down_proj(kept)

    def _kept(self, both: te.Tensor, mean: te.Tensor, variance: te.Tensor) -> te.Tensor:
        """Return gelu(the part of the gate above its row's threshold) * up."""
        size, times = self.size, tirx.const(self.deviations, "float32")

        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            above = both[i, k].astype("float32") - mean[i, 0] - tirx.sqrt(variance[i, 0]) * times
            gate = formula(tirx.max(above, tirx.const(0, "float32")), "gelu_tanh")
            return (gate * both[i, size + k].astype("float32")).astype(both.dtype)

        return te.compute((both.shape[0], size), element, "kept")


class Block(nn.Module):
    def __init__(self, cfg: Gemma3nConfig, layer: int) -> None:
        d, p = cfg.hidden_size, cfg.hidden_size_per_layer_input
        self.layer, self.inputs = layer, p
        self.altup = AltUp(
            cfg, cfg.altup_num_inputs, cfg.altup_active_idx, scaled=cfg.altup_correct_scale
        )
        self.laurel = Laurel(cfg)
        self.input_layernorm = cfg.norm()
        self.self_attn = shared_kv.Attention(cfg, layer)
        self.post_attention_layernorm = cfg.norm()
        self.pre_feedforward_layernorm = cfg.norm()
        size, sparsity = cfg.size_of(layer), cfg.sparsity_of(layer)
        self.mlp = (
            SparseGateMLP(d, size, sparsity) if sparsity > 0 else GatedMLP(d, size, "gelu_tanh")
        )
        self.post_feedforward_layernorm = cfg.norm()
        self.per_layer_input_gate = nn.Linear(d, p, bias=False)
        self.per_layer_projection = nn.Linear(p, d, bias=False)
        self.post_per_layer_input_norm = cfg.norm()

    def forward(self, states: Tensor, batch: Batch, inputs: Tensor) -> Tensor:
        """Run the layer: states [n, T * d], inputs [n, layers * p] -> [n, T * d]."""
        predicted = self.altup.predict(states)
        x = self.altup.one(predicted, self.altup.active)
        z = self.input_layernorm(x)
        y = x + self.post_attention_layernorm(self.self_attn(z, batch))
        y = (y + self.laurel(z)) * sqrt(0.5)
        mixed = self.mlp(self.pre_feedforward_layernorm(y))
        y = y + self.post_feedforward_layernorm(mixed)
        corrected = self.altup.correct(predicted, y)
        gate = activate(
            self.per_layer_input_gate(self.altup.result(corrected)), "gelu_tanh", gated=False
        )
        own = column_block(inputs, self.layer, self.inputs)
        projected = self.post_per_layer_input_norm(self.per_layer_projection(gate * own))
        return self.altup.added(corrected, projected)


class LayerTables(per_layer_inputs.LayerTables):
    """Per-layer inputs whose table ends before the vocabulary: later tokens have row 0."""

    def __init__(self, cfg: Gemma3nConfig) -> None:
        super().__init__(cfg)
        self.rows = cfg.vocab_size_per_layer_input

    def forward(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Return inputs [n, layers * p] for tokens int32 [n] with embeddings x [n, d]."""
        rows = self.rows
        inside = op.tensor_expr_op(
            lambda t: te.compute(
                t.shape,
                lambda i: tirx.if_then_else(t[i] < rows, t[i], tirx.const(0, t.dtype)),
                "inside",
            ),
            "inside",
            [tokens],
        )
        return super().forward(inside, x)


class Decoder(decoder.Decoder):
    block = Block

    def __init__(self, cfg: Gemma3nConfig) -> None:
        super().__init__(cfg)
        self.size, others = cfg.hidden_size, range(1, cfg.altup_num_inputs)
        self.per_layer = LayerTables(cfg)

        def projections() -> nn.ModuleList:
            return nn.ModuleList([nn.Linear(self.size, self.size, bias=False) for _ in others])

        self.altup_projections = projections()
        self.altup_unembed_projections = projections()

    def forward(self, batch: Batch) -> Tensor:
        """Return the normalized hidden states of the logit rows, [m, d]."""
        x = self.embedded(batch)
        inputs = self.per_layer(batch.tokens, x)
        parts = [x, *(of_length(linear(x), x) for linear in self.altup_projections)]
        states = op.concat(parts, dim=-1) if len(parts) > 1 else x
        for block in self.layers:
            states = block(states, batch, inputs)
        return self.norm(self._merged(batch.at_logit_rows(states)))

    def _merged(self, states: Tensor) -> Tensor:
        """Return the mean of the states, all as long as the first: [m, T * d] -> [m, d]."""
        first = column_block(states, 0, self.size)
        total = first
        for i, linear in enumerate(self.altup_unembed_projections, start=1):
            total = total + of_length(linear(column_block(states, i, self.size)), first)
        return total * (1 / (len(self.altup_unembed_projections) + 1))


class CausalLM(decoder.CausalLM):
    decoder = Decoder


_ATTENTION = "model.layers.*.self_attn"
ARCH = Architecture(
    name="gemma3n_text",
    config=Gemma3nConfig,
    model=CausalLM,
    weights=(
        *WEIGHTS,
        rename("model.per_layer.table.weight", "model.embed_tokens_per_layer.weight"),
        rename("model.per_layer.projection.weight", "model.per_layer_model_projection.weight"),
        rename("model.per_layer.norm.weight", "model.per_layer_projection_norm.weight"),
        *(
            unused_in(f"{_ATTENTION}.{name}", lambda cfg: cfg.shared)
            for name in ("k_proj.*", "v_proj.*", "k_norm.weight", "v_norm.weight")
        ),
        unused_in(
            "model.layers.*.altup.correct_output_scale",
            lambda cfg: range(0 if cfg.altup_correct_scale else cfg.num_hidden_layers),
        ),
    ),
)
