"""Gemma 3 decoders, text: Gemma 2 with norms of q and k, and separate RoPE in windowed layers.

With `use_bidirectional_attention` it is an encoder (EmbeddingGemma): rows attend to both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, RaggedAttentionSpec

from .. import decoder
from ..arch import Architecture, RopeConfig, inv_freq
from ..config import NOT_READ, Cap, Positions, Range
from ..decoder import FULL, WEIGHTS, WINDOWED
from ..encoder import Dense, output_of
from ..layers.ragged import attend
from ..layers.rope_kinds import merged
from ..layers.rotated import Angles, angles, rotated
from ..lineages import gemma
from ..lineages.gemma import Gemma2Config
from ..output import Output
from ..step import Batch

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3Config(Gemma2Config):
    """Fields of Gemma3's config.json that shape the computation."""

    max_position_embeddings: Positions = 131072
    final_logit_softcapping: Cap | None = None
    attn_logit_softcapping: Cap | None = None  # stored, and used neither by transformers nor here
    sliding_window_pattern: Annotated[int, Range(1, 2**12)] = 6  # every Nth layer has no window
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    use_bidirectional_attention: bool = False
    output: Output = field(default=Output(), metadata=NOT_READ)
    # Gemma 3 4B's values; config.json contains only the text model's differences from these.
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "rope_theta": 1000000.0,
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("_sliding_window_pattern", "cache_implementation")
    # Rows of an image attend to all of it. What a library that takes images gets, see `WithImages`.
    image_inputs: ClassVar[tuple[str, ...]] = ("last_visible",)

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer.

        Checkpoints have one object for both, or separate fields.
        """
        given = dict(given)
        local = {"rope_type": "default", "rope_theta": given.pop("rope_local_base_freq", 10000.0)}
        both = given.get("rope_parameters")
        if isinstance(both, dict) and set(both) <= {WINDOWED, FULL}:
            local = merged(local, both.get(WINDOWED))
            given["rope_parameters"] = both.get(FULL)
        return given | {"local_rope_parameters": local}

    @property
    def bidirectional(self) -> bool:
        """Return whether a step has to hold whole texts, because rows attend to later ones."""
        return self.use_bidirectional_attention

    @property
    def embedding_size(self) -> int:
        """Return the number of elements of a text's vector."""
        return self.output.width(self.hidden_size)

    def giving(self, output: Output) -> Self:
        """Return the configuration of an encoder with this output."""
        return replace(self, output=output)

    def ragged(self, layer: int) -> RaggedAttentionSpec:
        """Return the static shape of a layer's attention to both sides.

        The window is that of both sides together.
        """
        shape = self.attention_shape(layer)
        window = self.sliding_window // 2 if self.windowed(layer) and self.sliding_window else None
        return RaggedAttentionSpec(
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            scale=shape.scale,
            window=window,
        )

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = Gemma2Config.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps, softcap=None)


class Block(gemma.SandwichBlock):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


@dataclass(frozen=True, slots=True)
class _Step(Batch):
    """A batch with the angles of layers without a window, and of those with one."""

    full: Angles
    local: Angles


class BothSides(nn.Module):
    """Attention to both sides, with norms of q and k heads."""

    def __init__(self, cfg: Gemma3Config, layer: int) -> None:
        self.spec, self.is_local = cfg.ragged(layer), cfg.windowed(layer)
        d, e, h = cfg.hidden_size, self.spec.head_dim, self.spec.heads
        self.qkv_proj = nn.Linear(d, self.spec.width, bias=cfg.biases().qkv)
        self.o_proj = nn.Linear(h * e, d, bias=cfg.biases().out)
        self.q_norm = cfg.norm(e)
        self.k_norm = cfg.norm(e)

    def forward(self, x: Tensor, batch: _Step) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        spec, n = self.spec, x.shape[0]
        h, g, e = spec.heads, spec.kv_heads, spec.head_dim
        q, k, v = op.split(self.qkv_proj(x), [h * e, (h + g) * e], axis=-1)
        q = op.reshape(self.q_norm(op.reshape(q, [n * h, e])), [n, h * e])
        k = op.reshape(self.k_norm(op.reshape(k, [n * g, e])), [n, g * e])
        by = batch.local if self.is_local else batch.full
        qkv = rotated(op.concat([q, k, v], dim=-1), by, spec)
        return self.o_proj(attend(qkv, batch, spec))


class EncoderBlock(gemma.SandwichBlock):
    attention = BothSides


class Encoder(decoder.Decoder):
    block = EncoderBlock

    def __init__(self, cfg: Gemma3Config) -> None:
        super().__init__(cfg)
        size, longest = cfg.head_size, cfg.max_position_embeddings
        self.tables = [inv_freq(rope, size, longest) for rope in (cfg.rope, cfg.local_rope)]

    def forward(self, batch: Batch) -> Tensor:
        """Return the normalized rows, [n, d]."""
        full, local = (
            angles(batch, [float(f) for f in table.inv_freq], table.attention_factor)
            for table in self.tables
        )
        arrays = (batch.tokens, batch.positions, batch.sequences, batch.query_indptr)
        step = _Step(*arrays, batch.logit_rows, full, local)
        x = self.embedded(batch)
        for block in self.layers:
            x = block(x, step)
        y: Tensor = self.norm(x)
        return y


class EmbeddingModel(nn.Module):
    """EmbeddingGemma: an encoder, pooling, linears."""

    def __init__(self, cfg: Gemma3Config) -> None:
        self.lm_head = None
        self.modes = cfg.output.pooling
        self.model = Encoder(cfg)
        self.dense = nn.ModuleList([Dense(layer) for layer in cfg.output.dense])

    def hidden(self, batch: Batch) -> Tensor:
        """Return the vectors of the result rows' texts, [m, embedding_size]."""
        return output_of(self.model(batch), batch, self.modes, self.dense)


def model_of(cfg: Gemma3Config) -> nn.Module:
    """Return the decoder, or the encoder if rows attend to both sides."""
    return EmbeddingModel(cfg) if cfg.bidirectional else CausalLM(cfg)


ARCH = Architecture(name="gemma3_text", config=Gemma3Config, model=model_of, weights=WEIGHTS)
