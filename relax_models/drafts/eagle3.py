"""EAGLE-3 heads: a small network, trained for a model by others, that drafts tokens.

In the place of a block of multi-token prediction (`mtp.py`), it reads three layers' hidden
states of the model. For the token at position i, with what is kept of position i - 1:

    kept = fc([h_a, h_b, h_c])      # of the model; of draft tokens, y
    e, h = input_layernorm(embedding(token_i)), hidden_norm(kept_i-1)
    x = kept_i-1 + attention([e, h])            # norm_before_residual: h + attention([e, h])
    y = x + mlp(post_attention_layernorm(x))
    logits of token_i+1 = lm_head(norm(y)), over the head's own vocabulary

`places` maps the model's vocabulary to the head's; a token that the head lacks is never drafted.

Sources: Li et al., "EAGLE-3" (arXiv 2503.01840); the layout of SpecForge's and speculators'
checkpoints, and which layers are read, as in SGLang's and vLLM's loaders.

Axes: n rows, m logit rows, d hidden of the head, t hidden of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.errors import UsageError

from .. import decoder
from ..arch import Architecture, Drafts, concat, drop, rename, reorder
from ..config import Size, VocabSize, read_config
from ..layers.dense import Embedding, GatedMLP, exact
from ..lineages.llama import LlamaConfig
from ..step import Appending, Batch, attention, keep_hidden, kept_hidden

PREFIX = "draft_head."  # of the names of the head's tensors
_ABSENT = -1e30  # logit of a token that the head lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3Config(LlamaConfig):
    """Fields of a head's config.json that shape the computation."""

    draft_vocab_size: VocabSize | None = None  # None: the model's vocabulary
    target_hidden_size: Size | None = None  # None: hidden_size
    norm_before_residual: bool = False
    # The layers of the model whose inputs are read; (): the third, the middle, the last but two.
    read_layers: tuple[int, ...] = ()
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "norm_before_fc": (False,),
        "use_sliding_window": (False,),
    }
    # Fields about the program that trained the head, its model, and how drafts are verified.
    IGNORED: ClassVar[tuple[str, ...]] = (
        "embed_requires_grad",
        "has_no_defaults_at_init",
        "max_window_layers",
        "sliding_window",
        "speculators_config",
        "speculators_model_type",
        "speculators_version",
        "target_model_type",
        "base_model_ep_plan",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Read the two layouts: SpecForge's, and speculators' with the layer's fields inside."""
        inside, eagle = given.get("transformer_layer_config"), given.get("eagle_config")
        config = {**inside, **given} if isinstance(inside, Mapping) else dict(given)
        config = {name: value for name, value in config.items() if value is not None}
        for name in ("transformer_layer_config", "eagle_config", "layer_types"):
            config.pop(name, None)
        named = "eagle_aux_hidden_state_layer_ids"
        # Speculators count as vLLM: a layer's input is read. SpecForge counts results of layers.
        if isinstance(inputs := config.pop(named, None), list):
            config["read_layers"] = inputs
        results = eagle.get(named) if isinstance(eagle, Mapping) else None
        if isinstance(results, list) and all(type(i) is int for i in results):
            config["read_layers"] = [i + 1 for i in results]
        return config

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and heads of other shapes."""
        yield from LlamaConfig.problems(self)
        if self.num_hidden_layers != 1:
            yield f"num_hidden_layers: found {self.num_hidden_layers}, supported is 1"
        if self.read_layers and len(self.read_layers) != 3:
            yield f"eagle_aux_hidden_state_layer_ids: {len(self.read_layers)} found, expected are 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftHead:
    """A head as the folder of a model with one describes it."""

    config: dict[str, Any]  # content of the head's config.json
    layer: str  # what the checkpoint calls the layer: "midlayer" or "layers.0"
    own_embeddings: bool  # whether the checkpoint has embeddings; else the model's are used
    vocab: int | None  # tokens of the head's own vocabulary; None: it has the model's


class Attention(nn.Module):
    """Attention whose q, k and v are made of an embedding and a hidden state."""

    def __init__(self, cfg: Eagle3Config, cache: int) -> None:
        self.shape = replace(cfg.attention_shape(), cache=cache)
        d, e, h, g = cfg.hidden_size, self.shape.head_dim, self.shape.heads, self.shape.kv_heads
        biases = cfg.biases()
        self.qkv_proj = nn.Linear(2 * d, (h + 2 * g) * e, bias=biases.qkv)
        self.o_proj = nn.Linear(h * e, d, bias=biases.out)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, 2 d] -> [n, d]."""
        return self.o_proj(attention(self.qkv_proj(x), batch, self.shape))


class Layer(nn.Module):
    def __init__(self, cfg: Eagle3Config, cache: int) -> None:
        self.normed_residual = cfg.norm_before_residual
        self.input_layernorm, self.hidden_norm = cfg.norm(), cfg.norm()
        self.self_attn = Attention(cfg, cache)
        self.post_attention_layernorm = cfg.norm()
        self.mlp = GatedMLP(cfg.hidden_size, cfg.intermediate_size, bias=cfg.biases().mlp)

    def forward(self, embedded: Tensor, kept: Tensor, batch: Batch) -> Tensor:
        """Run the layer: embedded and kept [n, d] -> [n, d]."""
        h = self.hidden_norm(kept)
        both = op.concat([self.input_layernorm(embedded), h], dim=-1)
        x = (h if self.normed_residual else kept) + self.self_attn(both, batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(nn.Module):
    """The head, which takes the place of `mtp.DraftBlock` in a model."""

    def __init__(self, cfg: Eagle3Config, head: DraftHead, target: Any) -> None:
        self.size, self.read_layers = cfg.hidden_size, layers_read(cfg, target)
        self.fc = nn.Linear(3 * target.hidden_size, self.size, bias=False)
        self.layer = Layer(cfg, target.num_hidden_layers)
        self.norm = cfg.norm()
        self.lm_head = nn.Linear(self.size, head.vocab or cfg.vocab_size, bias=False)
        self.embed_tokens = Embedding(cfg.vocab_size, self.size) if head.own_embeddings else None
        # float32 [vocab]: a token's place in the head's vocabulary, or -1
        self.places = exact((cfg.vocab_size,)) if head.vocab else None

    def append(self, decoder: Any, states: list[Tensor], batch: Batch) -> Tensor:
        """Keep what is read of a step's rows, and append the head's keys and values.

        states: see `decoder.Decoder.states`. Returns a tensor [n, k] that depends on both; the
        caller has to use it.
        """
        read = self.fc(op.concat([states[i] for i in self.read_layers], dim=-1))
        rows = Appending.of(batch)
        self._layer(decoder, rows, keep_hidden(read, batch))
        (last,) = rows.appended
        return last

    def drafted(self, model: Any, batch: Batch) -> Tensor:
        """Compute logits float32 [m, vocab] of the tokens after the batch's."""
        y = batch.at_logit_rows(keep_hidden(self._layer(model.model, batch, None), batch))
        logits = op.astype(self.lm_head(self.norm(y)), "float32")
        return logits if self.places is None else _spread(logits, self.places)

    def _layer(self, decoder: Any, batch: Batch, kept: Tensor | None) -> Tensor:
        own = self.embed_tokens
        embedded = decoder.embed_tokens(batch.tokens) if own is None else own(batch.tokens)
        before = kept_hidden(batch, self.size, embedded.dtype, kept)
        y: Tensor = self.layer(embedded, before, batch)
        return y


def layers_read(cfg: Eagle3Config, target: Any) -> tuple[int, ...]:
    """Return the layers of the model `target` whose inputs the head reads."""
    count = target.num_hidden_layers
    return cfg.read_layers or (2, count // 2, count - 3)


def _spread(logits: Tensor, places: Tensor) -> Tensor:
    """Return logits [m, vocab] of logits [m, v] of the head's tokens, by places [vocab]."""
    shape = [logits.shape[0], places.shape[0]]

    def compute(x: te.Tensor, at: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, token: tirx.Var) -> tirx.PrimExpr:
            absent = at[token] < tirx.const(0, "float32")
            place = tirx.Select(absent, tirx.const(0, "float32"), at[token]).astype("int32")
            return tirx.Select(absent, tirx.const(_ABSENT, "float32"), x[i, place])

        return te.compute(shape, element, "spread")

    return op.tensor_expr_op(compute, "spread", [logits, places])


def with_head(arch: Architecture, target: Any, head: DraftHead) -> Architecture:
    """Return the architecture of a model with a head.

    Args:
        arch: the model's architecture.
        target: the model's configuration, an instance of `arch.config`.
        head: the head.

    Raises:
        ModelError: the head's config.json is not that of a head that can be computed.
        UsageError: the head does not fit the model.
    """
    cfg = read_config(Eagle3Config, head.config)
    if problems := [*_misfits(cfg, arch, target, head)]:
        listed = "; ".join(problems)
        raise UsageError(
            f"The draft head does not fit the model ({arch.name}): {listed}. Give a head that was "
            "trained for this model, or leave out --draft-head."
        )
    return replace(
        arch,
        drafts=Drafts(
            lacks=lambda _cfg: None,
            make=lambda target: Eagle3(cfg, head, target),
            names=lambda _cfg: _names(head),
        ),
    )


def _misfits(cfg: Eagle3Config, arch: Architecture, target: Any, head: DraftHead) -> Iterator[str]:
    of = getattr(arch.model, "decoder", None)
    base = decoder.Decoder
    if of is None or (of.forward, of.states) != (base.forward, base.states):
        yield "its layers do not follow each other as Llama's do"
        return
    if cfg.vocab_size != target.vocab_size:
        yield f"vocab_size is {cfg.vocab_size}, the model has {target.vocab_size}"
    own = cfg.draft_vocab_size or head.vocab or cfg.vocab_size
    if own != (head.vocab or cfg.vocab_size):
        has = f"d2t has {head.vocab}" if head.vocab else "there is no d2t"
        yield f"draft_vocab_size is {own}, and {has}"
    if (cfg.target_hidden_size or cfg.hidden_size) != target.hidden_size:
        size = cfg.target_hidden_size or cfg.hidden_size
        yield f"it reads hidden states of {size} elements, the model has {target.hidden_size}"
    if not head.own_embeddings and cfg.hidden_size != target.hidden_size:
        yield f"it has no embeddings, and the model's have {target.hidden_size} elements"
    count = target.num_hidden_layers
    if not all(0 <= layer <= count for layer in layers_read(cfg, target)):
        read = ", ".join(map(str, layers_read(cfg, target)))
        yield f"it reads the inputs of layers {read} of {count}"


@dataclass(frozen=True, slots=True)
class AsStored:
    """The order that a checkpoint's rows have."""

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        return rows


def _names(head: DraftHead) -> tuple[Any, ...]:
    """Return the weight map of a head, which counts before the model's."""
    kinds, attends = ("weight", "bias"), "draft.layer.self_attn"
    prefix = f"{PREFIX}{head.layer}"
    return (
        *(
            concat(f"{attends}.qkv_proj.{k}", *(f"{attends}.{n}_proj.{k}" for n in "qkv"))
            for k in kinds
        ),
        # Not in the order of the model's rows, whichever that is.
        *(
            reorder(f"{prefix}.self_attn.{n}_proj.{k}", lambda _cfg: AsStored())
            for n in "qk"
            for k in kinds
        ),
        rename("draft.layer.*", f"{prefix}.*"),
        rename("draft.*", f"{PREFIX}*"),
        drop(f"{PREFIX}d2t"),
        drop(f"{PREFIX}t2d"),
    )
