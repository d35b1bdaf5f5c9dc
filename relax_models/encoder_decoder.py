"""What models with an encoder and a decoder share."""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from .step import Batch, WithSource


class EncoderDecoder(nn.Module):
    """Encoder and decoder over one token table: a part of the interface of `Architecture.model`.

    Axes: n rows, m logit rows, d hidden. A subclass has the sides and the logits.
    """

    shared: Any  # the token table
    encoder: Any  # (token embeddings [n, d], batch) -> encoded rows [n, d]
    decoder: Any  # the same -> hidden states of the logit rows [m, d]; `layers`: blocks with `keep`

    def encoded(self, batch: Batch) -> Tensor:
        """Encode sources, and write what the decoder's layers read of them; see `keep_source`."""
        x, kept = self.encoder(self.shared(batch.tokens), batch), None
        for block in self.decoder.layers:
            kept = block.keep(x, batch, kept)
        return kept

    def hidden(self, batch: WithSource) -> Tensor:
        """Return the hidden states of the logit rows, [m, d], as `logits` takes them."""
        return self.decoder(self.shared(batch.tokens), batch)
