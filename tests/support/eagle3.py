"""Tiny random models with an EAGLE-3 head, and what the head computes, in torch.

Written from the layout of the published checkpoints: SpecForge's, with a vocabulary of its own, and
speculators', with embeddings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.nn.functional import linear, pad, scaled_dot_product_attention, silu

from .tiny_models import COMMON, compiled, save

Rows = torch.Tensor
EPS, HEADS, KV_HEADS, HEAD_DIM, SIZE = 1e-5, 4, 2, 24, COMMON["hidden_size"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A head, and the model that it is for."""

    model_type: str
    layers: int  # of the model
    read: tuple[int, ...]  # the layers whose inputs are read
    config: dict[str, Any]  # of the head's config.json, besides the sizes
    inside: str | None = None  # field of config.json that has the layer's fields
    layer: str = "midlayer"
    vocab: int | None = None  # of the head; None: the model's
    own_embeddings: bool = False
    normed_residual: bool = False
    theta: float = 10000.0
    model: dict[str, Any] = field(default_factory=dict)  # fields of the model's config.json


HEADED = {
    "llama with a head": Kind(
        model_type="llama",
        layers=4,
        read=(1, 2, 3),
        config={
            "architectures": ["LlamaForCausalLMEagle3"],
            "eagle_config": {
                "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
                "use_aux_hidden_state": True,
            },
        },
        vocab=100,
        model={"tie_word_embeddings": True},
    ),
    "qwen3 with a head": Kind(
        model_type="qwen3",
        layers=6,
        read=(2, 3, 3),
        config={
            "architectures": ["Eagle3Speculator"],
            "norm_before_residual": True,
            "speculators_config": {"algorithm": "eagle3"},
            "speculators_model_type": "eagle3",
        },
        inside="transformer_layer_config",
        layer="layers.0",
        own_embeddings=True,
        normed_residual=True,
        theta=500.0,
        model={"head_dim": 32},
    ),
}


class WithHead:
    """A model and a head; in torch, whole sequences at a time."""

    def __init__(self, kind: Kind, seed: int = 0) -> None:
        self.kind = kind
        torch.manual_seed(seed + 1)
        vocab = COMMON["vocab_size"]
        own, d, width = kind.vocab or vocab, SIZE, COMMON["intermediate_size"]
        self.stored: dict[str, Rows] = {
            f"{kind.layer}.self_attn.q_proj.weight": torch.randn(HEADS * HEAD_DIM, 2 * d),
            f"{kind.layer}.self_attn.k_proj.weight": torch.randn(KV_HEADS * HEAD_DIM, 2 * d),
            f"{kind.layer}.self_attn.v_proj.weight": torch.randn(KV_HEADS * HEAD_DIM, 2 * d),
            f"{kind.layer}.self_attn.o_proj.weight": torch.randn(d, HEADS * HEAD_DIM),
            f"{kind.layer}.mlp.gate_proj.weight": torch.randn(width, d),
            f"{kind.layer}.mlp.up_proj.weight": torch.randn(width, d),
            f"{kind.layer}.mlp.down_proj.weight": torch.randn(d, width),
            "fc.weight": torch.randn(d, 3 * d),
            "lm_head.weight": torch.randn(own, d),
        }
        self.stored = {name: 0.08 * tensor for name, tensor in self.stored.items()}
        norms = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
        for name in (*(f"{kind.layer}.{norm}" for norm in norms), "norm"):
            self.stored[f"{name}.weight"] = 1 + 0.2 * torch.randn(d)
        if kind.own_embeddings:
            self.stored["embed_tokens.weight"] = 0.08 * torch.randn(vocab, d)
        self.tokens = torch.arange(vocab)  # of the model, by the head's tokens
        if kind.vocab:
            self.tokens = torch.randperm(vocab)[:own].sort().values
            self.stored["d2t"] = self.tokens - torch.arange(own)
            self.stored["t2d"] = torch.isin(torch.arange(vocab), self.tokens)

    def save(self, folder: Path) -> None:
        """Write the model's checkpoint to `folder`, and the head's to the folder beside it."""
        kind = self.kind
        self.model = save(folder, kind.model_type, num_hidden_layers=kind.layers, **kind.model)
        self.head = folder.with_name(folder.name + "-head")
        self.head.mkdir()
        save_file(self.stored, self.head / "model.safetensors")
        fields = {
            **{name: COMMON[name] for name in ("vocab_size", "hidden_size", "intermediate_size")},
            "model_type": "llama",
            "num_hidden_layers": 1,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_DIM,
            "max_position_embeddings": 256,
            "rms_norm_eps": EPS,
            "rope_theta": kind.theta,
        }
        config = {kind.inside: fields} if kind.inside else fields
        config = {**config, **kind.config, "draft_vocab_size": len(self.tokens)}
        (self.head / "config.json").write_text(json.dumps(config))

    def compiled(self, folder: Path) -> Path:
        """The compiled folder of a saved model with its head."""
        return compiled(folder, draft_head=str(self.head))

    def hidden(self, tokens: list[int]) -> Rows:
        """What the head keeps of each of the model's tokens, [n, d]."""
        with torch.no_grad():
            states = self.model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
            both = torch.cat([states[i][0] for i in self.kind.read], -1)
            return linear(both, self.stored["fc.weight"])

    def drafts(self, tokens: list[int], hidden: Rows) -> tuple[Rows, Rows]:
        """Logits [n, vocab] of the head, and what it keeps of each token, [n, d].

        hidden: what was kept of each token before the head, [n, d]; the last row is not read.
        """
        layer, n = self.kind.layer, len(tokens)
        with torch.no_grad():
            own = self.stored.get("embed_tokens.weight")
            table = self.model.get_input_embeddings().weight if own is None else own
            kept = pad(hidden[: n - 1], (0, 0, 1, 0))
            h = self._norm(kept, f"{layer}.hidden_norm")
            embedded = self._norm(table[torch.tensor(tokens)], f"{layer}.input_layernorm")
            x = h if self.kind.normed_residual else kept
            x = x + self._attention(torch.cat([embedded, h], -1))
            z = self._norm(x, f"{layer}.post_attention_layernorm")
            gate, up = (linear(z, self.stored[f"{layer}.mlp.{m}_proj.weight"]) for m in GATED)
            y = x + linear(silu(gate) * up, self.stored[f"{layer}.mlp.down_proj.weight"])
            few = linear(self._norm(y, "norm"), self.stored["lm_head.weight"])
            logits = torch.full((n, COMMON["vocab_size"]), -1e30)
            logits[:, self.tokens] = few
            return logits, y

    def _attention(self, x: Rows) -> Rows:
        """Causal attention: x [n, 2 d] -> [n, d]."""
        own, n = f"{self.kind.layer}.self_attn", len(x)
        q, k, v = (
            linear(x, self.stored[f"{own}.{m}_proj.weight"]).view(n, -1, HEAD_DIM).transpose(0, 1)
            for m in "qkv"
        )
        angles = torch.arange(0, HEAD_DIM, 2) / HEAD_DIM
        angles = torch.arange(n)[:, None] * self.kind.theta**-angles
        k = _rotated(k, angles).repeat_interleave(HEADS // KV_HEADS, 0)
        v = v.repeat_interleave(HEADS // KV_HEADS, 0)
        y = scaled_dot_product_attention(_rotated(q, angles), k, v, is_causal=True)
        return linear(y.transpose(0, 1).reshape(n, -1), self.stored[f"{own}.o_proj.weight"])

    def _norm(self, x: Rows, name: str) -> Rows:
        factor = self.stored[f"{name}.weight"]
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * factor


GATED = ("gate", "up")


def _rotated(x: Rows, angles: Rows) -> Rows:
    """RoPE of halves: x [h, n, e], angles [n, e / 2]."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
