"""GPT-Neo decoders (also TinyStories): GPT-2 with sliding windows in every other layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wherry.ops import AttentionShape

from .. import classic, decoder
from ..arch import Architecture, concat, rename
from ..config import Positions
from ..decoder import FULL, TIED, WINDOWED, Biases
from ..lineages import gpt2

_KINDS = {"global": FULL, "local": WINDOWED}


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTNeoConfig(classic.ClassicConfig):
    """Fields of GPT-Neo's config.json; `attention_types` gives the kind of each layer."""

    window_size: Positions = 256
    tie_word_embeddings: bool = True
    layer_types: tuple[str, ...] = ()
    ROTATES: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "norm_eps": "layer_norm_epsilon",
        "hidden_act": "activation_function",
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attention_layers",  # the same as `attention_types`, expanded
        "classifier_dropout",
        "resid_dropout",
        "embed_dropout",
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Expand `attention_types`: [[["global", "local"], 12]] describes 24 layers."""
        given = dict(given)
        kinds = given.pop("attention_types", [[["global", "local"], 12]])
        try:
            layers = [_KINDS.get(kind, kind) for own, times in kinds for kind in own * times]
        except (TypeError, ValueError):
            return given | {"attention_types": kinds}  # stays as an unknown field, and so an error
        return given | {"layer_types": layers}

    def problems(self) -> Iterator[str]:
        yield from classic.ClassicConfig.problems(self)
        unknown = sorted(set(self.layer_types) - {FULL, WINDOWED})
        if unknown:
            yield f"attention_types: found {', '.join(unknown)}, supported are global and local"
        if len(self.layer_types) != self.num_hidden_layers:
            yield (
                f"attention_types: {len(self.layer_types)} layers found for the "
                f"{self.num_hidden_layers} of num_layers"
            )

    def window_of(self, layer: int) -> int | None:
        """Return the window of `layer` in tokens; None also if it covers the whole context."""
        windowed = self.layer_types[layer] == WINDOWED and self.window_size < self.context
        return self.window_size if windowed else None

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        """Return the attention shape; GPT-Neo does not scale attention scores."""
        return replace(decoder.DecoderConfig.attention_shape(self, layer), scale=1.0)

    def biases(self) -> Biases:
        return Biases(out=True, mlp=True)


OWN = "attn.attention"
ARCH = Architecture(
    name="gpt_neo",
    config=GPTNeoConfig,
    model=classic.PositionedLM,
    weights=(
        concat("self_attn.qkv_proj.weight", *(f"{OWN}.{name}_proj.weight" for name in "qkv")),
        TIED,
        *(rename(f"self_attn.o_proj.{k}", f"{OWN}.out_proj.{k}") for k in ("weight", "bias")),
        *gpt2.NAMES,
    ),
    base="transformer",
)
