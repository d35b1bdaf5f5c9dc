"""The Llama architecture in plain PyTorch, with a mapping to Hugging Face's names.

Axes: b batch, s tokens, d hidden, h query heads, g key/value heads, e head dimension, v vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

T = TypeVar("T")


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of the model; the names are those of Hugging Face's config.json."""

    vocab_size: int = 2048
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    max_position_embeddings: int = 1024
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    def to_hf(self, bos: int, eos: int, pad: int) -> dict[str, object]:
        """Return the content of config.json for the given special token ids."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            **asdict(self),
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": bos,
            "eos_token_id": eos,
            "pad_token_id": pad,
            "hidden_act": "silu",
            "initializer_range": 0.02,
            "mlp_bias": False,
            "pretraining_tp": 1,
            "rope_scaling": None,
            "tie_word_embeddings": True,
            "torch_dtype": "float16",
            "use_cache": True,
        }


def rope_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return cos and sin, each [max positions, e], in Llama's layout: the two halves are equal."""
    half = config.head_dim // 2
    frequency = config.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(config.max_position_embeddings, dtype=torch.float32)[:, None] * frequency
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary position embedding to x [b, s, heads, e]; cos and sin are [s, 1, e]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Past:
    """The KV cache: keys and values of all tokens so far, for each layer [b, groups, s, e]."""

    def __init__(self) -> None:
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """Return the number of tokens that each row has read."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def with_new(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens to a layer's, and return all of them."""
        if layer in self.layers:
            before = self.layers[layer]
            k, v = torch.cat([before[0], k], dim=2), torch.cat([before[1], v], dim=2)
        self.layers[layer] = k, v
        return k, v


class Block(nn.Module):
    """One decoder layer: attention, then a gated MLP, each after an RMSNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, e = config.hidden_size, config.head_dim
        self.heads, self.groups, self.e = config.num_attention_heads, config.num_key_value_heads, e
        self.norm1 = nn.RMSNorm(d, eps=config.rms_norm_eps)
        self.q = nn.Linear(d, self.heads * e, bias=False)
        self.k = nn.Linear(d, self.groups * e, bias=False)
        self.v = nn.Linear(d, self.groups * e, bias=False)
        self.o = nn.Linear(self.heads * e, d, bias=False)
        self.norm2 = nn.RMSNorm(d, eps=config.rms_norm_eps)
        self.gate = nn.Linear(d, config.intermediate_size, bias=False)
        self.up = nn.Linear(d, config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, d, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, layer: int = 0, past: Past | None = None
    ) -> Tensor:
        """Compute the layer's output for x, [b, s, d] -> [b, s, d].

        With `past`, x has the first tokens of a text, or one token more.
        """
        b, s, _ = x.shape
        y = self.norm1(x)
        q, k = self.q(y), self.k(y)
        cos, sin = cos.to(q.dtype), sin.to(q.dtype)
        q = rotate(q.view(b, s, self.heads, self.e), cos, sin).transpose(1, 2)
        k = rotate(k.view(b, s, self.groups, self.e), cos, sin).transpose(1, 2)
        v = self.v(y).view(b, s, self.groups, self.e).transpose(1, 2)
        if past is not None:
            k, v = past.with_new(layer, k, v)
        repeat = self.heads // self.groups
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=s > 1)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, -1))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A language model with tied embedding: token ids in, hidden states or logits out."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        cos, sin = rope_tables(config)
        self.register_buffer("cos", cos[:, None], persistent=False)
        self.register_buffer("sin", sin[:, None], persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.embed.weight, std=0.02)
        for block in self.blocks:
            for name in ("q", "k", "v", "gate", "up"):
                weight = getattr(block, name).weight
                nn.init.normal_(weight, std=1.0 / math.sqrt(weight.shape[1]))
            for name in ("o", "down"):
                nn.init.zeros_(getattr(block, name).weight)

    def hidden(self, ids: Tensor, past: Past | None = None) -> Tensor:
        """Compute normalised hidden states, ids [b, s] int64 -> [b, s, d].

        If `past` is not empty, s is 1: the token that follows.
        """
        start = past.length if past else 0
        x = self.embed(ids)
        cos, sin = (table[start : start + ids.shape[1]] for table in (self.cos, self.sin))
        for layer, block in enumerate(self.blocks):
            x = block(x, cos, sin, layer, past)
        return self.norm(x)

    def forward(self, ids: Tensor, past: Past | None = None) -> Tensor:
        """Compute logits, ids [b, s] int64 -> [b, s, v]."""
        return F.linear(self.hidden(ids, past), self.embed.weight)


def hf_state(state: dict[str, T]) -> dict[str, T]:
    """Rename a state dict of `Llama` to the tensor names of Hugging Face's LlamaForCausalLM."""
    inner = {
        "norm1": "input_layernorm",
        "norm2": "post_attention_layernorm",
        **{name: f"self_attn.{name}_proj" for name in "qkvo"},
        **{name: f"mlp.{name}_proj" for name in ("gate", "up", "down")},
    }
    renamed = {}
    for name, tensor in state.items():
        parts = name.split(".")
        if parts[0] == "embed":
            key = "model.embed_tokens.weight"
        elif parts[0] == "norm":
            key = "model.norm.weight"
        else:
            key = f"model.layers.{parts[1]}.{inner[parts[2]]}.weight"
        renamed[key] = tensor
    return renamed


def from_hf(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the state dict of `Llama` from the tensors of an exported model."""
    names = hf_state({name: name for name in Llama(ModelConfig()).state_dict()})
    return {own: weights[hf] for hf, own in names.items()}
