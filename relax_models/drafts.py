"""Multi-token prediction: a block that comes with a model, and drafts the tokens after the next.

For the token at position i it reads the hidden state of position i - 1, which the model (or, for
further draft tokens, the block itself) has kept in the pages of the KV cache:

    x = eh_proj([enorm(embedding(token_i)), hnorm(hidden_i-1)])
    y = layer(x)                    # a layer of the model's kind, with a KV cache of its own
    logits of token_i+1 = lm_head(norm(y));  hidden_i = y, or norm(y) (`keeps_normed`)

`hidden` of the model is what its LM head reads, after the last norm. The first position has no
predecessor: zeros are in its place.

Whenever the model computes rows, `append` writes the block's keys and values of the same rows from
the model's own hidden states. So a page contains what its tokens alone determine, for the block as
for the model: prefix cache, forks, preemption and the disk need to know nothing of the block, and a
draft token costs one row.

Sources: DeepSeek-V3 Technical Report (arXiv 2412.19437), 2.2; names of tensors as in the published
checkpoints; which hidden states are read as in vLLM's and SGLang's loaders of these families.

Axes: n rows, m logit rows, d hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .arch import Drafts, rename
from .step import Appending, Batch, keep_hidden, kept_hidden


class DraftBlock(nn.Module):
    """The block: two norms, a linear, a layer, and a norm."""

    def __init__(self, cfg: Any, layer: nn.Module, *, keeps_normed: bool) -> None:
        self.size = cfg.hidden_size
        self.keeps_normed = keeps_normed
        self.enorm, self.hnorm = cfg.norm(), cfg.norm()
        self.eh_proj = nn.Linear(2 * self.size, self.size, bias=False)
        self.layer = layer
        self.norm = cfg.norm()

    def append(self, decoder: Any, hidden: Tensor, batch: Batch) -> Tensor:
        """Keep hidden states [n, d] of a step's rows, and append the block's keys and values.

        Returns a tensor [n, k] that depends on both; the caller has to use it.
        """
        kept = keep_hidden(hidden, batch)
        rows = Appending.of(batch)
        self._layer(decoder, rows, kept)
        (last,) = rows.appended
        return last

    def hidden(self, decoder: Any, batch: Batch) -> Tensor:
        """Run the block for each row; return what the LM head reads of the logit rows, [m, d]."""
        y = self._layer(decoder, batch, None)
        if self.keeps_normed:
            return batch.wanted(keep_hidden(self.norm(y), batch))
        return self.norm(batch.wanted(keep_hidden(y, batch)))

    def _layer(self, decoder: Any, batch: Batch, kept: Tensor | None) -> Tensor:
        tokens = decoder.tokens(batch)
        before = kept_hidden(batch, self.size, tokens.dtype, kept)
        x = self.eh_proj(op.concat([self.enorm(tokens), self.hnorm(before)], dim=-1))
        y: Tensor = self.layer(x, batch)
        return y


def after_layers(layer: Any) -> Drafts:
    """Describe blocks that are stored as layers after the last one (DeepSeek V3, GLM-4.5).

    Their embeddings and LM head are copies of the model's.

    Args:
        layer: class of the block's layer, made of a configuration and a layer's number.
    """

    def names(cfg: Any) -> tuple[Any, ...]:
        prefix = f"model.layers.{cfg.num_hidden_layers}"
        return (
            rename("draft.layer.*", f"{prefix}.*"),
            rename("draft.norm.*", f"{prefix}.shared_head.norm.*"),
            rename("draft.*", f"{prefix}.*"),
        )

    return Drafts(
        lacks=lambda cfg: None if cfg.num_nextn_predict_layers else "num_nextn_predict_layers: 0",
        make=lambda cfg: DraftBlock(cfg, layer(cfg, cfg.num_hidden_layers), keeps_normed=False),
        names=names,
    )


def beside_layers(layer: Any, lacks: Callable[[Any], str | None]) -> Drafts:
    """Describe blocks whose tensors are called `mtp.*` (Qwen3-Next, Qwen3.5).

    Args:
        layer: class of the block's layer, made of a configuration and a layer's number.
        lacks: see `Drafts`.
    """
    names = (
        rename("draft.layer.*", "mtp.layers.0.*"),
        rename("draft.eh_proj.*", "mtp.fc.*"),
        rename("draft.enorm.*", "mtp.pre_fc_norm_embedding.*"),
        rename("draft.hnorm.*", "mtp.pre_fc_norm_hidden.*"),
        rename("draft.norm.*", "mtp.norm.*"),
    )
    return Drafts(
        lacks=lacks,
        make=lambda cfg: DraftBlock(cfg, layer(cfg, cfg.num_hidden_layers), keeps_normed=True),
        names=lambda _cfg: names,
    )
