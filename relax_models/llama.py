"""Llama decoders (Llama 2, 3, 3.x, SmolLM and all that share `model_type: llama`).

Axes: n rows, m logit rows, d hidden, h query heads, g kv heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .arch import Architecture, InverseFrequencies, RopeConfig, concat, drop, inv_freq, tie
from .config import Count, Epsilon, Positions, Size, VocabSize
from .layers import Embedding, SwiGLU, rms_norm
from .state import AttentionShape, Batch, PagedKV


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig:
    """Fields of config.json that shape the computation."""

    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Count
    num_attention_heads: Count
    vocab_size: VocabSize
    rope: RopeConfig
    num_key_value_heads: Count | None = None  # None: as many as query heads
    head_dim: Size | None = None  # None: hidden_size / num_attention_heads
    max_position_embeddings: Positions = 2048
    rms_norm_eps: Epsilon = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}

    def problems(self) -> Iterator[str]:
        """What the heads cannot be."""
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        if self.head_dim is None and self.hidden_size % heads:
            yield (
                f"hidden_size: {self.hidden_size} is not divisible by the {heads} of "
                "num_attention_heads, and there is no head_dim"
            )
            return
        if kv_heads and heads % kv_heads:
            yield f"num_key_value_heads: {kv_heads} does not divide num_attention_heads, {heads}"
        head_dim = self.head_dim or self.hidden_size // heads
        rotary = self.rope.rotary_dim(head_dim)
        if rotary < 2 or rotary % 2:
            yield f"head_dim: {rotary} of {head_dim} dimensions rotate; they rotate in pairs"

    @property
    def context(self) -> int:
        """Tokens of one sequence that the rotary table is right for."""
        return self._rotary_table().max_context or self.max_position_embeddings

    def _rotary_table(self) -> InverseFrequencies:
        head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        rotary_dim = self.rope.rotary_dim(head_dim)
        return inv_freq(self.rope, rotary_dim, self.max_position_embeddings)

    def attention_shape(self) -> AttentionShape:
        """The same for every layer."""
        head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        table = self._rotary_table()
        return AttentionShape(
            heads=self.num_attention_heads,
            kv_heads=self.num_key_value_heads or self.num_attention_heads,
            head_dim=head_dim,
            scale=head_dim**-0.5,
            inv_freq=tuple(float(f) for f in table.inv_freq),
            rope_scaling=table.attention_factor,
        )


class Attention(nn.Module):
    def __init__(self, cfg: LlamaConfig, shape: AttentionShape) -> None:
        d, e, h, g = cfg.hidden_size, shape.head_dim, shape.heads, shape.kv_heads
        self.shape = shape
        self.qkv_proj = nn.Linear(d, (h + 2 * g) * e, bias=cfg.attention_bias)
        self.o_proj = nn.Linear(h * e, d, bias=cfg.attention_bias)

    def forward(self, x: Tensor, cache: PagedKV, layer: int) -> Tensor:
        """X [n, d] -> [n, d]."""
        return self.o_proj(cache.attend(layer, self.qkv_proj(x), self.shape))


class Block(nn.Module):
    attention: type[nn.Module] = Attention

    def __init__(self, cfg: LlamaConfig, shape: AttentionShape) -> None:
        self.input_layernorm = rms_norm(cfg.hidden_size, cfg.rms_norm_eps)
        self.self_attn = self.attention(cfg, shape)
        self.post_attention_layernorm = rms_norm(cfg.hidden_size, cfg.rms_norm_eps)
        self.mlp = SwiGLU(cfg.hidden_size, cfg.intermediate_size, cfg.mlp_bias)

    def forward(self, x: Tensor, cache: PagedKV, layer: int) -> Tensor:
        """X [n, d] -> [n, d]."""
        x = x + self.self_attn(self.input_layernorm(x), cache, layer)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    block: type[nn.Module] = Block

    def __init__(self, cfg: LlamaConfig) -> None:
        shape = cfg.attention_shape()
        self.embed_tokens = Embedding(cfg.vocab_size, cfg.hidden_size)
        self.layers = nn.ModuleList([self.block(cfg, shape) for _ in range(cfg.num_hidden_layers)])
        self.norm = rms_norm(cfg.hidden_size, cfg.rms_norm_eps)

    def forward(self, batch: Batch, cache: PagedKV) -> Tensor:
        """-> [m, d], the normalised hidden states of the logit rows."""
        x = self.embed_tokens(batch.tokens)
        for i, block in enumerate(self.layers):
            x = block(x, cache, i)
        return self.norm(batch.wanted(x))


class CausalLM(nn.Module):
    decoder: type[nn.Module] = Decoder

    def __init__(self, cfg: LlamaConfig) -> None:
        self.model = self.decoder(cfg)
        self.lm_head = (
            None
            if cfg.tie_word_embeddings
            else nn.Linear(cfg.hidden_size, cfg.vocab_size, bias=False)
        )

    def hidden(self, batch: Batch, cache: PagedKV) -> Tensor:
        """-> [m, d], the normalised hidden states of the logit rows."""
        return self.model(batch, cache)

    def logits(self, x: Tensor) -> Tensor:
        """What `hidden` gave -> logits float32 [m, vocab]."""
        logits = self.lm_head(x) if self.lm_head else self.model.embed_tokens.logits(x)
        return op.astype(logits, "float32")


WEIGHTS = (
    concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight"),
    concat("qkv_proj.bias", "q_proj.bias", "k_proj.bias", "v_proj.bias"),
    concat("gate_up_proj.weight", "gate_proj.weight", "up_proj.weight"),
    concat("gate_up_proj.bias", "gate_proj.bias", "up_proj.bias"),
    tie("lm_head.weight", "model.embed_tokens.weight"),
    drop("rotary_emb.inv_freq"),
)

ARCH = Architecture(name="llama", config=LlamaConfig, model=CausalLM, weights=WEIGHTS)
