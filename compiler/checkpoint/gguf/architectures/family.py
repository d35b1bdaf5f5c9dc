"""How the tensors and metadata of one GGUF architecture become a Hugging Face checkpoint.

The names are those in llama.cpp's `gguf-py/gguf/constants.py`. Changes undo what llama.cpp's
`conversion/` does to a checkpoint. `table.py` has the families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..tensors import GgufTensor

# Tensor names in GGUF -> in Llama's Hugging Face checkpoints: first those outside of layers, then
# those below "blk.N.".
_OUTER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.{}.gate_proj",
    "ffn_up_exps": "mlp.experts.{}.up_proj",
    "ffn_down_exps": "mlp.experts.{}.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
_FUSED, _HALVES = "ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps")

# Undoes what the conversion to GGUF did to a tensor; gets the fields of config.json, too.
Change = Callable[[GgufTensor, Mapping[str, Any]], GgufTensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFamily:
    """The conversion rules of one architecture."""

    model_type: str  # value of model_type in config.json
    classes: str  # name of the model class in transformers
    # Tensor names outside of layers, and below "blk.N." -> in the checkpoint, in addition to those
    # above or overriding them. A name with its suffix, "ssm_dt.bias", stands for both sides' whole.
    outer: Mapping[str, str] = field(default_factory=dict)
    layer: Mapping[str, str] = field(default_factory=dict)
    # Names of tensors in GGUF, without "blk.N." and ".weight" or ".bias" -> what undoes its change.
    changes: Mapping[str, Change] = field(default_factory=dict)
    # Metadata fields -> fields of config.json, in addition to those of every architecture.
    fields: Mapping[str, str] = field(default_factory=dict)
    # Metadata fields whose value may differ between layers; a function of `own_fields.py` reads
    # them.
    varying: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()  # metadata fields that repeat others
    # Fields of config.json that have the same value in all GGUF files of the architecture.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    # Boolean fields of config.json -> tensor of layer 0 whose presence means true.
    flags: Mapping[str, str] = field(default_factory=dict)
    # Metadata field and field of config.json for the epsilon of norms.
    epsilon: tuple[str, str] = ("attention.layer_norm_rms_epsilon", "rms_norm_eps")
    explicit_head: bool = True  # whether config.json contains head_dim
    own_heads: bool = False  # whether `own_fields.py` reads the number of dimensions of heads

    def names_of(self, stored: str) -> tuple[str, ...]:
        """Return the Hugging Face names of the tensors in a GGUF tensor; (): the family has none.

        In a tensor of all experts, "{}" stands for the expert's number. Some files have two such
        tensors in one: each expert's gate, then its up.
        """
        name = self._name_of(stored)
        if name is None and f".{_FUSED}." in stored:
            both = (self._name_of(stored.replace(_FUSED, half)) for half in _HALVES)
            return tuple(n for n in both if n is not None)
        return () if name is None else (name,)

    def _name_of(self, stored: str) -> str | None:
        """Return the Hugging Face name of a GGUF tensor."""
        if not stored.startswith("blk."):
            return _named(stored, {**_OUTER, **self.outer})
        _, number, part = (*stored.split(".", 2), "")[:3]
        if not number.isdecimal():
            return None
        name = _named(part, {**_LAYER, **self.layer})
        return None if name is None else f"model.layers.{int(number)}.{name}"


def part_of(stored: str) -> str:
    """Return a tensor's name without its layer and suffix: "blk.3.attn_q.weight" -> "attn_q"."""
    part = stored.split(".", 2)[-1] if stored.startswith("blk.") else stored
    return part.removesuffix(".weight").removesuffix(".bias")


def _named(stored: str, known: Mapping[str, str]) -> str | None:
    """Return the name that a table has for a tensor, with or without its suffix; None: no name."""
    if stored in known:
        return known[stored]
    base, dot, kind = stored.rpartition(".")
    return f"{known[base]}.{kind}" if dot and kind in ("weight", "bias") and base in known else None
