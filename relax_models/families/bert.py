"""BERT encoders (MiniLM, BGE, E5, GTE): learned positions, segments, a norm after each addition."""

from __future__ import annotations

from .. import encoder
from ..arch import Architecture, rename
from ..encoder import dropped, named
from ..lineages import bert
from ..lineages.bert import BertConfig


class BertModel(encoder.EncoderModel):
    pass


ARCH = Architecture(
    name="bert",
    config=BertConfig,
    model=BertModel,
    weights=(
        *bert.LAYERS,
        *named({"head.dense": "bert.pooler.dense", "head.out": "classifier"}),
        *dropped("pooler.dense"),
        rename("model.embeddings.*", "bert.embeddings.*"),
        rename("model.layers.*", "bert.encoder.layer.*"),
    ),
    base="bert",
)
