"""Multi-token prediction: a block that comes with a model, and drafts the tokens after the next.

For the token at position i it reads the hidden state of position i - 1, which the model (or, for
further draft tokens, the block itself) has kept in the pages of the KV cache:

    x = eh_proj([enorm(embedding(token_i)), hnorm(hidden_i-1)])
    y = layer(x)                    # a layer of the model's kind, with a KV cache of its own
    logits of token_i+1 = lm_head(norm(y));  hidden_i = y, or norm(y)

`hidden` of the model is what its LM head reads, after the last norm; `Wiring` has the exceptions.
The first position has no predecessor: zeros are in its place.

Whenever the model computes rows, `append` writes the block's keys and values of the same rows from
the model's own hidden states. So a page contains what its tokens alone determine, for the block as
for the model: prefix cache, forks, preemption and the disk need to know nothing of the block, and a
draft token costs one row.

Sources: DeepSeek-V3 Technical Report (arXiv 2412.19437), 2.2; names of tensors as in the published
checkpoints; which hidden states are read as in vLLM's and SGLang's loaders of these families, for
ERNIE 4.5 as in the training code that Baidu published.

Axes: n rows, m logit rows, d hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from ..arch import Drafts, rename
from ..step import Appending, Batch, keep_hidden, kept_hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How a family's block is connected to the model."""

    keeps_normed: bool = False  # whether the next draft token reads norm(y), or y
    reads_normed: bool = True  # whether it reads the model's hidden states after the last norm
    own_norm: bool = True  # whether `norm` is the block's own, or the model's last norm
    hidden_first: bool = False  # whether the hidden state comes first in the input of `eh_proj`


class DraftBlock(nn.Module):
    """The block: two norms, a linear, a layer, and a norm."""

    def __init__(self, cfg: Any, layer: nn.Module, wiring: Wiring) -> None:
        self.size, self.wiring = cfg.hidden_size, wiring
        self.enorm, self.hnorm = cfg.norm(), cfg.norm()
        self.eh_proj = nn.Linear(2 * self.size, self.size, bias=False)
        self.layer = layer
        self.norm = cfg.norm() if wiring.own_norm else None

    def append(self, decoder: Any, states: list[Tensor], batch: Batch) -> Tensor:
        """Keep hidden states of a step's rows, and append the block's keys and values.

        states: see `decoder.Decoder.states`. Returns a tensor [n, k] that depends on both; the
        caller has to use it.
        """
        x = states[-1]
        kept = keep_hidden(decoder.norm(x) if self.wiring.reads_normed else x, batch)
        rows = Appending.of(batch)
        self._layer(decoder, rows, kept)
        (last,) = rows.appended
        return last

    def drafted(self, model: Any, batch: Batch) -> Tensor:
        """Compute logits float32 [m, vocab] of the tokens after the batch's."""
        y = self._layer(model.model, batch, None)
        norm = self.norm or model.model.norm
        if self.wiring.keeps_normed:
            normed = batch.at_logit_rows(keep_hidden(norm(y), batch))
        else:
            normed = norm(batch.at_logit_rows(keep_hidden(y, batch)))
        logits: Tensor = model.logits(normed)
        return logits

    def _layer(self, decoder: Any, batch: Batch, kept: Tensor | None) -> Tensor:
        tokens = decoder.tokens(batch)
        before = kept_hidden(batch, self.size, tokens.dtype, kept)
        both = [self.enorm(tokens), self.hnorm(before)]
        if self.wiring.hidden_first:
            both.reverse()
        y: Tensor = self.layer(self.eh_proj(op.concat(both, dim=-1)), batch)
        return y


def nextn_missing(cfg: Any) -> str | None:
    """Return why a configuration without `num_nextn_predict_layers` has no block."""
    return None if cfg.num_nextn_predict_layers else "num_nextn_predict_layers: 0"


def named(
    layer: Callable[[Any], nn.Module],
    names: Callable[[Any], Mapping[str, str]],
    wiring: Wiring,
    lacks: Callable[[Any], str | None] = nextn_missing,
) -> Drafts:
    """Describe a family's block.

    Args:
        layer: makes the block's layer of a configuration.
        names: of a configuration, maps names of the block's parameters, with a star at the end and
            without "draft.", to the checkpoint's; the first that fits counts.
        wiring: how the block is connected to the model.
        lacks: see `Drafts`.
    """
    return Drafts(
        lacks=lacks,
        make=lambda cfg: DraftBlock(cfg, layer(cfg), wiring),
        names=lambda cfg: tuple(rename(f"draft.{o}", t) for o, t in names(cfg).items()),
    )


def after_layers(layer: Any) -> Drafts:
    """Describe blocks that are stored as layers after the last one (DeepSeek V3, GLM-4.5).

    Their embeddings and LM head are copies of the model's.

    Args:
        layer: class of the block's layer, made of a configuration and a layer's number.
    """

    def names(cfg: Any) -> dict[str, str]:
        prefix = f"model.layers.{cfg.num_hidden_layers}"
        return {
            "layer.*": f"{prefix}.*",
            "norm.*": f"{prefix}.shared_head.norm.*",
            "*": f"{prefix}.*",
        }

    return named(lambda cfg: layer(cfg, cfg.num_hidden_layers), names, Wiring())


def beside_layers(layer: Any, lacks: Callable[[Any], str | None]) -> Drafts:
    """Describe blocks whose tensors are called `mtp.*` (Qwen3-Next, Qwen3.5, K-EXAONE).

    Args:
        layer: class of the block's layer, made of a configuration and a layer's number.
        lacks: see `Drafts`.
    """
    names = {
        "layer.*": "mtp.layers.0.*",
        "eh_proj.*": "mtp.fc.*",
        "enorm.*": "mtp.pre_fc_norm_embedding.*",
        "hnorm.*": "mtp.pre_fc_norm_hidden.*",
        "norm.*": "mtp.norm.*",
    }
    wiring = Wiring(keeps_normed=True)
    return named(lambda cfg: layer(cfg, cfg.num_hidden_layers), lambda _cfg: names, wiring, lacks)
