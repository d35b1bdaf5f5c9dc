"""RWKV-7 in PyTorch, a row at a time, and tiny random models of it.

Written after the formulas of https://arxiv.org/abs/2503.14456 (section 4.1) with the names of
flash-linear-attention's checkpoints. It was compared with that package's own layers once.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.nn.functional import layer_norm, linear

Weights = dict[str, torch.Tensor]
FIELDS: dict[str, Any] = {
    "model_type": "rwkv7",
    "architectures": ["RWKV7ForCausalLM"],
    "a_low_rank_dim": 8,
    "attn": None,
    "attn_mode": "chunk",
    "decay_low_rank_dim": 12,
    "fuse_cross_entropy": True,
    "fuse_norm": False,
    "gate_low_rank_dim": 16,
    "head_dim": 16,
    "hidden_act": "sqrelu",
    "hidden_ratio": 4.0,
    "hidden_size": 64,
    "initializer_range": 0.006,
    "intermediate_size": 96,
    "max_position_embeddings": 2048,
    "norm_bias": True,
    "norm_eps": 1e-5,
    "norm_first": True,
    "num_heads": 4,
    "num_hidden_layers": 3,
    "tie_word_embeddings": False,
    "use_cache": True,
    "v_low_rank_dim": 8,
    "value_dim": [64, 64, 64],
    "vocab_size": 320,
}


def random_weights(fields: dict[str, Any], seed: int = 0) -> Weights:
    """Random float32 weights with the names and shapes of a checkpoint."""
    rng = torch.Generator().manual_seed(seed)
    d, e, f = fields["hidden_size"], fields["head_dim"], fields["intermediate_size"]
    weights: Weights = {}

    def add(name: str, *shape: int, scale: float = 0.08, mean: float = 0.0) -> None:
        weights[name] = mean + scale * torch.randn(shape, generator=rng)

    def norm(name: str, size: int = d) -> None:
        add(f"{name}.weight", size, scale=0.2, mean=1.0)
        if fields["norm_bias"] or name.endswith("g_norm"):
            add(f"{name}.bias", size, scale=0.1)

    add("model.embeddings.weight", fields["vocab_size"], d, scale=0.5)
    for i in range(fields["num_hidden_layers"]):
        at = f"model.layers.{i}"
        for name in (
            "attn_norm",
            "ffn_norm",
            *(["pre_norm"] if i == 0 and fields["norm_first"] else []),
        ):
            norm(f"{at}.{name}")
        norm(f"{at}.attn.g_norm")
        for name in "rwkvag":
            weights[f"{at}.attn.x_{name}"] = torch.rand((1, 1, d), generator=rng)
        weights[f"{at}.ffn.x_k"] = torch.rand((d,), generator=rng)
        add(f"{at}.attn.k_k", d, scale=0.2, mean=0.8)
        add(f"{at}.attn.k_a", d, scale=0.2, mean=1.0)
        add(f"{at}.attn.r_k", d // e, e, scale=0.3)
        for name in ("r_proj", "k_proj", "v_proj", "o_proj"):
            add(f"{at}.attn.{name}.weight", d, d)
        for name, rank in (("w", "decay"), ("a", "a"), ("v", "v"), ("g", "gate")):
            size = fields[f"{rank}_low_rank_dim"]
            if name == "v" and i == 0:
                continue
            add(f"{at}.attn.{name}_lora.lora.0.weight", size, d, scale=0.2)
            add(f"{at}.attn.{name}_lora.lora.2.weight", d, size, scale=0.3)
            if name != "g":
                add(f"{at}.attn.{name}_lora.lora.2.bias", d, scale=1.0)
        add(f"{at}.ffn.key.weight", f, d)
        add(f"{at}.ffn.value.weight", d, f)
    norm("model.norm")
    add("lm_head.weight", fields["vocab_size"], d, scale=0.2)
    if fields["tie_word_embeddings"]:
        del weights["lm_head.weight"]
    return weights


def save(folder: Path, weights: Weights, fields: dict[str, Any]) -> Path:
    """A model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


class Reference:
    """The model's logits, without the tricks of kernels."""

    def __init__(self, weights: Weights, fields: dict[str, Any]) -> None:
        self.w = {name: tensor.double() for name, tensor in weights.items()}
        self.fields = fields

    def logits(self, prompt: list[int]) -> Any:
        """Return float64 logits [n, vocab] of a prompt."""
        x, first = self.w["model.embeddings.weight"][torch.tensor(prompt)], None
        for i in range(self.fields["num_hidden_layers"]):
            at = f"model.layers.{i}"
            if i == 0 and self.fields["norm_first"]:
                x = self.norm(f"{at}.pre_norm", x)
            y, values = self.attention(f"{at}.attn", self.norm(f"{at}.attn_norm", x), first)
            first = values if first is None else first
            x = x + y
            x = x + self.feed_forward(f"{at}.ffn", self.norm(f"{at}.ffn_norm", x))
        head = self.w.get("lm_head.weight", self.w["model.embeddings.weight"])
        return linear(self.norm("model.norm", x), head).numpy()

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        bias = self.w.get(f"{name}.bias")
        return layer_norm(x, x.shape[-1:], self.w[f"{name}.weight"], bias, self.fields["norm_eps"])

    def mixed(self, x: torch.Tensor, name: str) -> torch.Tensor:
        before = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
        return torch.lerp(x, before, self.w[name].reshape(-1))

    def lora(self, name: str, x: torch.Tensor, activation: Any = lambda y: y) -> torch.Tensor:
        low = activation(linear(x, self.w[f"{name}.lora.0.weight"]))
        return linear(low, self.w[f"{name}.lora.2.weight"], self.w.get(f"{name}.lora.2.bias"))

    def feed_forward(self, at: str, x: torch.Tensor) -> torch.Tensor:
        keys = linear(self.mixed(x, f"{at}.x_k"), self.w[f"{at}.key.weight"])
        return linear(torch.relu(keys) ** 2, self.w[f"{at}.value.weight"])

    def attention(self, at: str, x: torch.Tensor, first: Any) -> tuple[torch.Tensor, torch.Tensor]:
        e, w = self.fields["head_dim"], self.w
        xr, xw, xk, xv, xa, xg = (self.mixed(x, f"{at}.x_{name}") for name in "rwkvag")
        r, k, v = (
            linear(y, w[f"{at}.{name}_proj.weight"])
            for y, name in ((xr, "r"), (xk, "k"), (xv, "v"))
        )
        decays = torch.exp(
            -math.exp(-0.5) * torch.sigmoid(self.lora(f"{at}.w_lora", xw, torch.tanh))
        )
        if first is not None:
            v = v + (first - v) * torch.sigmoid(self.lora(f"{at}.v_lora", xv))
        a = torch.sigmoid(self.lora(f"{at}.a_lora", xa))
        g = self.lora(f"{at}.g_lora", xg, torch.sigmoid)
        removed = (k * w[f"{at}.k_k"]).unflatten(-1, (-1, e))
        squares = (removed**2).sum(-1, keepdim=True)
        if self.fields["fuse_norm"]:
            removed = removed / torch.sqrt(squares + 1e-6)
        else:
            removed = removed / torch.sqrt(squares).clamp(min=1e-12)
        k = k * (1 + (a - 1) * w[f"{at}.k_a"])
        heads = [y.unflatten(-1, (-1, e)) for y in (r, decays, k, v, a)]
        y = self.recurrence(*heads, removed)
        y = torch.nn.functional.group_norm(
            y.flatten(1),
            y.shape[1],
            w[f"{at}.g_norm.weight"],
            w[f"{at}.g_norm.bias"],
            e * self.fields["norm_eps"],
        )
        r, _, k, v_heads, _ = heads
        bonus = (r * k * w[f"{at}.r_k"]).sum(-1, keepdim=True) * v_heads
        return linear((y + bonus.flatten(1)) * g, w[f"{at}.o_proj.weight"]), v

    @staticmethod
    def recurrence(r: Any, decays: Any, k: Any, v: Any, a: Any, removed: Any) -> torch.Tensor:
        """The state as the paper has it, [value, key]: S (diag(w) - kk^T (a * kk)) + v^T k."""
        state = torch.zeros(r.shape[1], v.shape[-1], r.shape[-1], dtype=r.dtype)
        out = []
        for t in range(len(r)):
            transition = torch.diag_embed(decays[t])
            transition = transition - removed[t][:, :, None] * (a[t] * removed[t])[:, None]
            state = state @ transition + v[t][:, :, None] * k[t][:, None]
            out.append((state @ r[t][:, :, None])[..., 0])
        return torch.stack(out)
