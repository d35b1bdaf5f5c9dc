"""Tiny random models with a block of multi-token prediction, and what the block computes, in torch.

transformers leaves the block out of its models. Its layer is a layer as the others are, so the
reference is made of transformers' own: of a model with one more layer the last is the block's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import pad

from .tiny_models import COMMON, OFFSET_NORMS, random_model, randomise

Rows = torch.Tensor


@dataclass(frozen=True)
class Names:
    """What a family calls the block's tensors, and the field of config.json that counts blocks."""

    layer: str
    embedding: str
    hidden: str
    linear: str
    norm: str
    field: str
    copies: bool = False  # whether embeddings and LM head are stored again

    @classmethod
    def of(cls, model_type: str, layers: int) -> Names:
        if model_type.startswith("qwen3_"):
            return cls(
                layer="mtp.layers.0",
                embedding="mtp.pre_fc_norm_embedding",
                hidden="mtp.pre_fc_norm_hidden",
                linear="mtp.fc",
                norm="mtp.norm",
                field="mtp_num_hidden_layers",
            )
        layer = f"model.layers.{layers}"
        return cls(
            layer=layer,
            embedding=f"{layer}.enorm",
            hidden=f"{layer}.hnorm",
            linear=f"{layer}.eh_proj",
            norm=f"{layer}.shared_head.norm",
            field="num_nextn_predict_layers",
            copies=True,
        )


class WithBlock:
    """A model of `layers` layers, and a block; in torch, whole sequences at a time."""

    def __init__(self, model_type: str, config: dict[str, Any], seed: int) -> None:
        fields = {**COMMON, **config}
        self.layers = int(fields["num_hidden_layers"])
        more: dict[str, Any] = {"num_hidden_layers": self.layers + 1}
        if model_type.startswith("qwen3_"):
            kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
            own = fields.get("layer_types") or [kinds[i % 4] for i in range(self.layers)]
            more["layer_types"] = [*own, "full_attention"]
        torch.manual_seed(seed)
        self.offset = 1 if f"{model_type}_".startswith(OFFSET_NORMS) else 0
        self.model = random_model(model_type, fields | more).float().eval()
        randomise(self.model, self.offset)
        d = int(fields["hidden_size"])
        self.norms = {
            name: 1 - self.offset + 0.2 * torch.randn(d) for name in ("embedding", "hidden", "norm")
        }
        self.linear = 0.08 * torch.randn(d, 2 * d)
        self.names = Names.of(model_type, self.layers)
        self.keeps_normed = not self.names.copies
        self.inner = self.model.model
        self.block = self.inner.layers[self.layers]
        self.inner.layers = self.inner.layers[: self.layers]
        self.model.config.num_hidden_layers = self.layers
        self.fields = fields

    def save(self, folder: Path) -> None:
        """Write the checkpoint as its publisher does."""
        whole = self.model.config
        self.inner.layers.append(self.block)
        whole.num_hidden_layers += 1  # a configuration that does not fit its layers is not saved
        self.model.save_pretrained(folder)
        whole.num_hidden_layers -= 1
        self.inner.layers = self.inner.layers[: self.layers]
        names, file = self.names, folder / "model.safetensors"
        prefix = f"model.layers.{self.layers}."
        stored = {
            name.replace(prefix, f"{names.layer}."): tensor
            for name, tensor in load_file(file).items()
        }
        for name, own in (("embedding", names.embedding), ("hidden", names.hidden)):
            stored[f"{own}.weight"] = self.norms[name]
        stored[f"{names.norm}.weight"] = self.norms["norm"]
        stored[f"{names.linear}.weight"] = self.linear
        if names.copies:
            head = self.model.get_output_embeddings().weight.detach()
            stored[f"{names.layer}.shared_head.head.weight"] = head.clone()
            stored[f"{names.layer}.embed_tokens.weight"] = stored["model.embed_tokens.weight"] + 0
        save_file(stored, file, {"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        config |= {"num_hidden_layers": self.layers, names.field: 1}
        if "layer_types" in config:
            config["layer_types"] = config["layer_types"][: self.layers]
        (folder / "config.json").write_text(json.dumps(config))

    def hidden(self, tokens: list[int]) -> Rows:
        """What the LM head reads of each token, [n, d]."""
        with torch.no_grad():
            return self.inner(torch.tensor([tokens])).last_hidden_state[0]

    def drafts(self, tokens: list[int], hidden: Rows) -> tuple[Rows, Rows]:
        """Logits [n, vocab] of the block, and what it keeps of each token, [n, d].

        hidden: what was kept of each token before the block, [n, d]; the last row is not read.
        """
        n = len(tokens)
        with torch.no_grad():
            embedded = self.inner.embed_tokens(torch.tensor(tokens))
            before = pad(hidden[: n - 1], (0, 0, 1, 0))
            both = [self._norm(embedded, "embedding"), self._norm(before, "hidden")]
            x = (torch.cat(both, -1) @ self.linear.T)[None]
            positions = torch.arange(n)[None]
            mask = torch.full((n, n), -torch.inf).triu(1)[None, None]
            y = self.block(
                x,
                attention_mask=mask,
                position_ids=positions,
                position_embeddings=self.inner.rotary_emb(x, positions),
            )
            y = (y[0] if isinstance(y, tuple) else y)[0]
            normed = self._norm(y, "norm")
            logits = self.model.get_output_embeddings()(normed)
            return logits, normed if self.keeps_normed else y

    def _norm(self, x: Rows, name: str) -> Rows:
        factor = self.norms[name] + self.offset
        eps = self.model.config.rms_norm_eps
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * factor
