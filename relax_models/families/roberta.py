"""RoBERTa and XLM-RoBERTa encoders (BGE-M3, multilingual E5, rerankers): BERT, positions from 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.errors import ModelError, shown

from .. import encoder
from ..arch import Architecture, drop, rename
from ..encoder import dropped, named
from ..lineages import bert
from ..lineages.bert import BertConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RobertaConfig(BertConfig):
    """Fields of RoBERTa's config.json that shape the computation."""

    BEFORE: ClassVar[int] = 2  # the padding token's position, 1, and the one before it

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Refuse what has another family's weights under this family's name."""
        if given.get("position_embedding_type") == "rotary":
            raise ModelError(
                f"config.json has model_type {shown(given.get('model_type'))} with "
                'position_embedding_type "rotary": jina-embeddings-v3 as its own code has it, '
                "whose checkpoint holds adapters of several tasks. Supported is the same model as "
                "transformers has it: jinaai/jina-embeddings-v3-hf, without adapters or with one "
                "merged into its weights."
            )
        return given


class RobertaModel(encoder.EncoderModel):
    pass


ARCH = Architecture(
    name="roberta",
    config=RobertaConfig,
    model=RobertaModel,
    weights=(
        *bert.LAYERS,
        *named({"head.dense": "classifier.dense", "head.out": "classifier.out_proj"}),
        *dropped("pooler.dense"),
        drop("lm_head.*"),
        rename("model.embeddings.*", "roberta.embeddings.*"),
        rename("model.layers.*", "roberta.encoder.layer.*"),
    ),
    aliases=("xlm-roberta", "camembert"),
    base="roberta",
)
