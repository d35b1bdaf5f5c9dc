"""Tiny random models with a block of multi-token prediction, and what the block computes, in torch.

transformers leaves the block out of its models. Its layers are layers as the others are, so the
reference is made of transformers' own: of a model with more layers the last are the block's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import pad

from .tiny_models import COMMON, OFFSET_NORMS, compiled, random_model, randomise

Rows = torch.Tensor
FULL = "full_attention"
LISTS = ("layer_types", "layers_block_type", "mlp_layer_types")  # fields with an item per layer


@dataclass(frozen=True, kw_only=True)
class Block:
    """What a family calls the block's tensors, and how it connects them."""

    layers: tuple[str, ...] = ("mtp.layers.0",)  # "{}": the number of layers of the model
    embedding: str = "mtp.pre_fc_norm_embedding"
    hidden: str = "mtp.pre_fc_norm_hidden"
    linear: str = "mtp.fc"
    norm: str | None = "mtp.norm"  # None: the model's own last norm
    count: str | None = None  # field of config.json that counts blocks
    copies: bool = False  # whether embeddings and LM head are stored again
    keeps_normed: bool = True
    reads_normed: bool = True
    hidden_first: bool = False
    # of the model with the block's layers: items after those of LISTS, and other fields
    more: dict[str, list[str]] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    like: str | None = None  # the family of transformers that computes the same
    windowed: bool = False  # whether the block has the sliding window


_NEXT = "model.layers.{}"
AFTER = Block(
    layers=(_NEXT,),
    embedding=f"{_NEXT}.enorm",
    hidden=f"{_NEXT}.hnorm",
    linear=f"{_NEXT}.eh_proj",
    norm=f"{_NEXT}.shared_head.norm",
    count="num_nextn_predict_layers",
    copies=True,
    keeps_normed=False,
)
HYBRID = Block(count="mtp_num_hidden_layers", more={"layer_types": [FULL]})
_MIMO = "model.mtp_layers.0"
BLOCKS = {
    "deepseek_v3": AFTER,
    "glm4_moe": AFTER,
    "glm4_moe_lite": AFTER,
    "qwen3_next": HYBRID,
    "qwen3_5_text": HYBRID,
    "qwen3_5_moe_text": HYBRID,
    "exaone4": Block(more={"layer_types": ["sliding_attention"]}, windowed=True),
    "exaone_moe": Block(
        more={"layer_types": ["sliding_attention"], "mlp_layer_types": ["dense"]}, windowed=True
    ),
    "nemotron_h": Block(
        layers=("mtp.layers.0", "mtp.layers.1"),
        embedding="mtp.layers.0.enorm",
        hidden="mtp.layers.0.hnorm",
        linear="mtp.layers.0.eh_proj",
        norm="mtp.layers.1.final_layernorm",
        count="num_nextn_predict_layers",
        more={"layers_block_type": ["attention", "moe"]},
    ),
    "ernie4_5_moe": Block(
        layers=("model.mtp_block.0",),
        embedding="model.mtp_emb_norm.0",
        hidden="model.mtp_hidden_norm.0",
        linear="model.mtp_linear_proj.0",
        norm=None,
        count="num_nextn_predict_layers",
        keeps_normed=False,
        reads_normed=False,
        fields={"moe_layer_end_index": 2},
    ),
    "mimo": Block(
        layers=(_MIMO,),
        embedding=f"{_MIMO}.token_layernorm",
        hidden=f"{_MIMO}.hidden_layernorm",
        linear=f"{_MIMO}.input_proj",
        norm=f"{_MIMO}.final_layernorm",
        count="num_nextn_predict_layers",
        hidden_first=True,
        like="qwen2",
    ),
}


class WithBlock:
    """A model of `layers` layers, and a block; in torch, whole sequences at a time."""

    def __init__(self, model_type: str, config: dict[str, Any], seed: int = 0) -> None:
        self.model_type, self.wiring = model_type, BLOCKS[model_type]
        like = self.wiring.like or model_type
        fields = {**COMMON, **config}
        items = [len(fields[name]) for name in LISTS if name in fields]
        self.layers = items[0] if items else int(fields["num_hidden_layers"])
        torch.manual_seed(seed)
        offset_norms = f"{like}_".startswith(OFFSET_NORMS) and like != "nemotron_h"
        self.offset = 1 if offset_norms else 0
        self.model = random_model(like, self._longer(like, fields)).float().eval()
        randomise(self.model, self.offset)
        d = int(fields["hidden_size"])
        self.norms = {
            name: 1 - self.offset + 0.2 * torch.randn(d) for name in ("embedding", "hidden", "norm")
        }
        self.linear = 0.08 * torch.randn(d, 2 * d)
        self.inner = self.model.model
        self.embed = self.model.get_input_embeddings()
        self.last_norm = getattr(self.inner, "norm", None) or self.inner.norm_f
        self.block = self.inner.layers[self.layers :]
        self.inner.layers = self.inner.layers[: self.layers]

    def _longer(self, like: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a model with the block's layers after the others."""
        config = {**fields, **self.wiring.fields}
        config["num_hidden_layers"] = self.layers + len(self.wiring.layers)
        for name, more in self.wiring.more.items():
            own = fields.get(name)
            config[name] = [*(own or self._usual(like, fields, name)), *more]
        for name in ("mlp_layer_types",):
            if name in fields and name not in self.wiring.more:
                config[name] = [*fields[name], "sparse"]
        return config

    def _usual(self, like: str, fields: dict[str, Any], name: str) -> list[str]:
        """A list that a configuration has by default."""
        config = random_model(like, {**fields, "num_hidden_layers": self.layers}).config
        return list(getattr(config, name))

    def named(self, name: str) -> str:
        """A name of `Block`, of this model."""
        return name.format(self.layers)

    def save(self, folder: Path) -> None:
        """Write the checkpoint as its publisher does."""
        self.inner.layers.extend(self.block)  # a config that does not fit its layers is not saved
        self.model.save_pretrained(folder)
        self.inner.layers = self.inner.layers[: self.layers]
        own, file = self.wiring, folder / "model.safetensors"
        stored = {self._stored(name): tensor for name, tensor in load_file(file).items()}
        norms = {"embedding": own.embedding, "hidden": own.hidden, "norm": own.norm}
        for name, source in norms.items():
            if source is not None:
                stored[f"{self.named(source)}.weight"] = self.norms[name]
        stored[f"{self.named(own.linear)}.weight"] = self.linear
        if own.copies:
            first = self.named(own.layers[0])
            head = self.model.get_output_embeddings().weight.detach()
            stored[f"{first}.shared_head.head.weight"] = head.clone()
            stored[f"{first}.embed_tokens.weight"] = stored["model.embed_tokens.weight"] + 0
        save_file(stored, file, {"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        config["model_type"] = self.model_type
        if "num_hidden_layers" in config:
            config["num_hidden_layers"] = self.layers
        if own.count:
            config[own.count] = 1
        for name in LISTS:
            if isinstance(config.get(name), list):
                config[name] = config[name][: self.layers]
        (folder / "config.json").write_text(json.dumps(config))

    def compiled(self, folder: Path) -> Path:
        """The compiled folder of a saved model with its block."""
        return compiled(folder, mtp=True)

    def _stored(self, name: str) -> str:
        """The publisher's name of a tensor of the longer model."""
        match = re.match(r"(?:model|backbone)\.layers\.(\d+)\.(.*)", name)
        if match is None or int(match[1]) < self.layers:
            return name
        return f"{self.named(self.wiring.layers[int(match[1]) - self.layers])}.{match[2]}"

    def hidden(self, tokens: list[int]) -> Rows:
        """What the block reads of each token: the input or the result of the last norm, [n, d]."""
        before: list[Rows] = []
        hook = self.last_norm.register_forward_pre_hook(lambda _m, args: before.append(args[0][0]))
        with torch.no_grad():
            normed = self.inner(torch.tensor([tokens])).last_hidden_state[0]
        hook.remove()
        return normed if self.wiring.reads_normed else before[0]

    def drafts(self, tokens: list[int], hidden: Rows) -> tuple[Rows, Rows]:
        """Logits [n, vocab] of the block, and what it keeps of each token, [n, d].

        hidden: what was kept of each token before the block, [n, d]; the last row is not read.
        """
        n = len(tokens)
        with torch.no_grad():
            before = pad(hidden[: n - 1], (0, 0, 1, 0))
            both = [
                self._norm(self.embed(torch.tensor(tokens)), "embedding"),
                self._norm(before, "hidden"),
            ]
            if self.wiring.hidden_first:
                both.reverse()
            y = self._layers((torch.cat(both, -1) @ self.linear.T)[None])[0]
            normed = self.last_norm(y) if self.wiring.norm is None else self._norm(y, "norm")
            logits = self.model.get_output_embeddings()(normed)
            return logits, normed if self.wiring.keeps_normed else y

    def _layers(self, x: Rows) -> Rows:
        """Run the block's layers: x [1, n, d] -> [1, n, d]."""
        n = x.shape[1]
        positions = torch.arange(n)[None]
        mask = torch.full((n, n), -torch.inf).triu(1)
        if self.wiring.windowed:
            mask += torch.full((n, n), -torch.inf).tril(-self.model.config.sliding_window)
        more = {"attention_mask": mask[None, None], "position_ids": positions}
        if hasattr(self.inner, "rotary_emb"):
            more["position_embeddings"] = self.inner.rotary_emb(x, positions)
        for layer in self.block:
            y = layer(x, **more)
            x = y[0] if isinstance(y, tuple) else y
        return x

    def _norm(self, x: Rows, name: str) -> Rows:
        factor = self.norms[name] + self.offset
        config = self.model.config
        eps = getattr(config, "rms_norm_eps", None) or config.layer_norm_epsilon
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * factor
