"""The quality card of a compiled folder, `wherry-quality.json`.

`wherry quality` measures and writes it. The file is not in the manifest, because it is made after
the folder; it names the manifest's key instead, so a card of an older compilation is not shown.

    {"schema": 1, "artifact": KEY, "quantization": "q4f16_1", "target": "cpu",
     "activations": "int8", "kv_dtype": "float16",
     "reference": "Qwen3-0.6B", "reference_quantization": "q0f16",
     "text": SHA-256, "tokens": 1012,
     "kl_mean": 0.0731, "kl_p99": 0.61, "top1_agreement": 0.871,
     "perplexity": 19.4, "reference_perplexity": 18.2}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from wherry.base.json_file import read_object
from wherry.base.temporary import write_atomically

from .manifest import Manifest

CARD = "wherry-quality.json"
SCHEMA_VERSION = 1  # version of the schema of wherry-quality.json
_Text = Annotated[str, Field(max_length=1000)]
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The content of `wherry-quality.json`. KL divergences are in nats."""

    schema: int
    artifact: _Text  # `key` of the manifest of the measured folder
    quantization: _Text
    target: _Text
    activations: _Text
    kv_dtype: _Text
    reference: _Text  # name of the model that it was compared with
    reference_quantization: _Text
    text: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # SHA-256 of the text
    tokens: Annotated[int, Field(ge=1)]  # number of distributions that were compared
    kl_mean: _Number  # KL divergence of the model's next-token distribution from the reference's
    kl_p99: _Number  # 99th percentile over positions
    top1_agreement: Annotated[float, Field(ge=0, le=1)]  # share of positions with equal best token
    perplexity: _Number
    reference_perplexity: _Number
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")


_CARD = TypeAdapter(Card)


def write_card(folder: Path, card: Card) -> None:
    """Write the card of a compiled folder; raises OSError if the folder is read-only."""
    text = json.dumps(asdict(card), indent=2, sort_keys=True) + "\n"
    write_atomically(folder / CARD, text)


def read_card(folder: Path, manifest: Manifest) -> Card | None:
    """Return the card of a compiled folder.

    The result is None without a card, and if the card is damaged, of another version, or of
    another compilation than the manifest's: it can be measured again at any time.
    """
    try:
        card = _CARD.validate_json(json.dumps(read_object(folder / CARD)))
    except (OSError, ValueError, ValidationError):
        return None
    current = card.schema == SCHEMA_VERSION and card.artifact == manifest.key
    return card if current else None
