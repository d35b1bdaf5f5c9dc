"""RWKV-7 "Goose": attention-free, with a state whose transition is diagonal plus low rank.

Every linear of a layer reads its row mixed with the row before, by a factor for each element: a
convolution of two taps. Layers mix their values with those of the first. Source: the checkpoints'
own code, `fla/models/rwkv7` of flash-linear-attention, and https://arxiv.org/abs/2503.14456.

Axes: n rows, d hidden, h heads, e elements of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import DplrSpec, ShortConvSpec
from wherry.ops.tags import PACK, RECURRENCE, tag

from .. import decoder
from ..arch import Architecture, constant, rename
from ..blocks.recurrent import RecurrentConfig
from ..config import Count, Range, Size
from ..decoder import TIED
from ..layers.activations import activate
from ..layers.dense import Unquantized, exact
from ..layers.norms import LayerNorm
from ..step import Batch

_SLOWEST = -0.6065306597126334  # -e^-0.5: the logarithm of a decay is at least this
_EPS_FUSED, _EPS = 1e-6, 1e-24  # added to the squared length of a removed key


@dataclass(frozen=True, slots=True, kw_only=True)
class Rwkv7Config(RecurrentConfig):
    """Fields of RWKV-7's config.json that shape the computation."""

    decay_low_rank_dim: Size
    gate_low_rank_dim: Size
    a_low_rank_dim: Size
    v_low_rank_dim: Size
    head_dim: Size = 64
    num_heads: Count | None = None  # None: hidden_size / head_dim
    intermediate_size: Size | None = None  # None: hidden_ratio * hidden_size, a multiple of 32
    hidden_ratio: Annotated[float, Range(0.01, 64)] = 4.0
    norm_first: bool = True  # whether the embeddings have a norm
    norm_bias: bool = True
    fuse_norm: bool = True  # whose norm of keys has another epsilon
    value_dim: tuple[Size, ...] | Size | None = None  # of each layer; None: hidden_size
    SPELLED: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("sqrelu",), "attn": ()}
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attn_mode",
        "fuse_cross_entropy",
        "fuse_linear_cross_entropy",
        "max_position_embeddings",
        "use_l2warp",
    )

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the fields."""
        d, e = self.hidden_size, self.head_dim
        if d % e or self.num_heads not in (None, d // e):
            yield f"head_dim: {self.num_heads or 'any'} heads of {e} found, for the {d} of a row"
        values = self.value_dim if isinstance(self.value_dim, tuple) else (self.value_dim or d,)
        if any(value != d for value in values):
            yield f"value_dim: found {list(values)}, supported is hidden_size, {d}"

    @property
    def size(self) -> int:
        """Return the width of the feed-forward."""
        return self.intermediate_size or -(-int(self.hidden_ratio * self.hidden_size) // 32) * 32

    def norm(self, size: int | None = None) -> nn.Module:
        """Return a LayerNorm over `size` elements; None: over hidden_size."""
        return LayerNorm(size or self.hidden_size, self.rms_norm_eps, bias=self.norm_bias)

    def state(self) -> DplrSpec:
        """Return the static shape of a layer's state."""
        e = self.head_dim
        return DplrSpec(heads=self.hidden_size // e, key_dim=e, value_dim=e)


class TokenShift(nn.Module):
    """Mixes rows with the rows before them: x + (before - x) * factor; factor `shape` [..., d]."""

    def __init__(self, *shape: int) -> None:
        self.factor = exact(shape)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """x [n, d] -> [n, d]."""
        shape = tuple(int(size) for size in self.factor.shape)
        out = Tensor.placeholder([2, shape[-1]], "float32")
        taps = op.tensor_ir_op(mixing_taps(shape), "mixing_taps", [self.factor], out)
        spec = ShortConvSpec(channels=shape[-1], taps=2, activation="none")
        args = ["short_conv", spec.to_json(), x, batch.sequences, batch.query_indptr, taps]
        return op.extern(RECURRENCE, args, Tensor.placeholder(list(x.shape), x.dtype))


@cache
def mixing_taps(shape: tuple[int, ...]) -> tirx.PrimFunc:
    """Return the PrimFunc (factor float32 [1, 1, d] or [d]) -> taps [2, d], run at the load."""
    factor = te.placeholder(shape, "float32", "factor")
    before = (0,) * (len(shape) - 1)

    def element(j: tirx.Var, c: tirx.Var) -> tirx.PrimExpr:
        own = factor[(*before, c)]
        return tirx.Select(j == 0, own, tirx.const(1, "float32") - own)

    taps = te.compute((2, shape[-1]), element, "taps")
    func = te.create_prim_func([factor, taps]).without_attr("global_symbol")
    return tag(func, "mixing_taps", {"shape": list(shape)}).with_attr(PACK, True)


def _each(name: str, f: Callable[..., Any], x: Tensor, *others: Tensor) -> Tensor:
    """Compute f(element of x, column, *others as functions of the column): [n, w] -> [n, w]."""

    def compute(t: te.Tensor, *more: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, c: tirx.Var) -> tirx.PrimExpr:
            return f(t[i, c], c, *(_reader(m, i) for m in more))

        return te.compute(t.shape, element, name)

    return op.tensor_expr_op(compute, name, [x, *others])


def _reader(tensor: te.Tensor, row: tirx.Var) -> Callable[[Any], Any]:
    """Return the function from a column to an element of the row, or of a vector."""
    return lambda c: tensor[row, c] if len(tensor.shape) == 2 else tensor[c]


def _head_sum(name: str, e: int, f: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Sum f(elements of the tensors) over each head: [n, h * e], or vectors, -> [n, h]."""

    def compute(x: te.Tensor, *more: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, e), "k")

        def element(i: tirx.Var, head: tirx.Var) -> tirx.PrimExpr:
            return te.sum(f(*(_reader(t, i)(head * e + k) for t in (x, *more))), k)

        return te.compute((x.shape[0], tirx.floordiv(x.shape[1], e)), element, name)

    return op.tensor_expr_op(compute, name, list(tensors))


class LoRA(nn.Module):
    """Linear of low rank, with an activation between its two matrices."""

    def __init__(
        self, linear: type[nn.Linear], sizes: tuple[int, int], activation: Any, bias: bool = True
    ) -> None:
        d, rank = sizes
        self.down = linear(d, rank, bias=False)
        self.up = linear(rank, d, bias=bias)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Compute the result: x [n, d] -> [n, d]."""
        z = self.down(x)
        return self.up(z if self.activation is None else self.activation(z))


class TimeMix(nn.Module):
    """A layer's state.

    The linears of decays and of a, which decide how much of the state is kept over thousands of
    rows, stay float32 in every scheme, as do the factors.
    """

    def __init__(self, cfg: Rwkv7Config, layer: int) -> None:
        d, e = cfg.hidden_size, cfg.head_dim
        self.spec, self.eps = cfg.state(), _EPS_FUSED if cfg.fuse_norm else _EPS
        self.x_r, self.x_w, self.x_k, self.x_v, self.x_a, self.x_g = (
            TokenShift(1, 1, d) for _ in range(6)
        )
        self.k_k, self.k_a, self.r_k = exact((d,)), exact((d,)), exact((d // e, e))
        self.r_proj = nn.Linear(d, d, bias=False)
        self.k_proj = nn.Linear(d, d, bias=False)
        self.v_proj = nn.Linear(d, d, bias=False)
        self.o_proj = nn.Linear(d, d, bias=False)
        self.w_lora = LoRA(Unquantized, (d, cfg.decay_low_rank_dim), op.tanh)
        self.a_lora = LoRA(Unquantized, (d, cfg.a_low_rank_dim), None)
        self.g_lora = LoRA(nn.Linear, (d, cfg.gate_low_rank_dim), op.sigmoid, bias=False)
        self.v_lora = LoRA(nn.Linear, (d, cfg.v_low_rank_dim), None) if layer else None
        self.unit_norm = LayerNorm(e, e * cfg.rms_norm_eps, bias=False)  # multiplies by ones
        self.g_norm = _Affine(d)

    def forward(self, x: Tensor, batch: Batch, first: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute the result and the values of the first layer: x, first [n, d] -> twice [n, d]."""
        r, w, k, v, a, g = (
            mix(x, batch) for mix in (self.x_r, self.x_w, self.x_k, self.x_v, self.x_a, self.x_g)
        )
        values = self.v_proj(v)
        if self.v_lora is not None and first is not None:
            values = values + (first - values) * op.sigmoid(self.v_lora(v))
        rates, steps = self.w_lora(w), op.sigmoid(self.a_lora(a))
        r, k = self.r_proj(r), self.k_proj(k)
        keys, rows = self._rows(r, rates, k, steps, values)
        out = Tensor.placeholder(list(x.shape), x.dtype)
        args = ["dplr", self.spec.to_json(), rows, batch.query_indptr]
        y = self.g_norm(self._normed(op.extern(RECURRENCE, args, out)))
        return self.o_proj(self._corrected(y, r, keys, values) * self.g_lora(g)), (
            values if first is None else first
        )

    def _rows(
        self, r: Tensor, rates: Tensor, k: Tensor, steps: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the keys [n, d] that are added, and the rows of the recurrence [n, width]."""
        e, eps, one = self.spec.key_dim, tirx.const(self.eps, "float32"), tirx.const(1, "float32")
        squares = _head_sum("lengths", e, lambda x, m: x * m * (x * m), k, self.k_k)

        def removed(x: Any, c: Any, m: Any, total: Any) -> Any:
            return x * m(c) * tirx.rsqrt(total(tirx.floordiv(c, e)) + eps)

        kept = _each("kept", lambda x, _c: _decay(x), rates)
        keys = _each("keys", lambda x, c, a, m: x + x * (a(c) - one) * m(c), k, steps, self.k_a)
        unit = _each("removed", removed, k, self.k_k, squares)
        return keys, op.concat([r, kept, keys, unit * -1.0, unit * steps, values], dim=-1)

    def _normed(self, y: Tensor) -> Tensor:
        """Normalize each head: y [n, d] -> [n, d]."""
        n, d = y.shape
        heads = op.reshape(y, (n * self.spec.heads, self.spec.value_dim))
        return op.reshape(self.unit_norm(heads), (n, d))

    def _corrected(self, y: Tensor, r: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Add to each head its values times the weighted product of r and keys: all [n, d]."""
        e = self.spec.key_dim
        weights = op.reshape(self.r_k, (self.spec.heads * e,))
        bonus = _head_sum("bonus", e, lambda a, b, m: a * b * m, r, keys, weights)

        def added(x: Any, c: Any, value: Any, total: Any) -> Any:
            return x + value(c) * total(tirx.floordiv(c, e))

        return _each("added", added, y, values, bonus)


def _decay(x: Any) -> Any:
    """Return exp(-e^-0.5 * sigmoid(x))."""
    return tirx.exp(tirx.const(_SLOWEST, "float32") * tirx.sigmoid(x))


class _Affine(nn.Module):
    """A factor and an addend of each element, after a norm of the heads."""

    def __init__(self, size: int) -> None:
        self.weight, self.bias = nn.Parameter((size,)), nn.Parameter((size,))

    def forward(self, x: Tensor) -> Tensor:
        """x [n, d] -> [n, d]."""
        return x * self.weight + self.bias


class ChannelMix(nn.Module):
    """Feed-forward with a squared ReLU, of rows that are mixed with those before them."""

    def __init__(self, cfg: Rwkv7Config) -> None:
        self.x_k = TokenShift(cfg.hidden_size)
        self.key = nn.Linear(cfg.hidden_size, cfg.size, bias=False)
        self.value = nn.Linear(cfg.size, cfg.hidden_size, bias=False)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        return self.value(activate(self.key(self.x_k(x, batch)), "relu2", gated=False))


class Block(nn.Module):
    def __init__(self, cfg: Rwkv7Config, layer: int) -> None:
        self.pre_norm = cfg.norm() if cfg.norm_first and layer == 0 else None
        self.attn_norm = cfg.norm()
        self.attn = TimeMix(cfg, layer)
        self.ffn_norm = cfg.norm()
        self.ffn = ChannelMix(cfg)

    def with_first(self, x: Tensor, first: Tensor | None, batch: Batch) -> tuple[Tensor, Tensor]:
        """Run the layer; `first` has the values of the first layer: [n, d] -> twice [n, d]."""
        x = x if self.pre_norm is None else self.pre_norm(x)
        y, first = self.attn(self.attn_norm(x), batch, first)
        x = x + y
        return x + self.ffn(self.ffn_norm(x), batch), first


class Decoder(decoder.Decoder):
    block = Block

    def rows(self, batch: Batch) -> Tensor:
        """Return the results of the last layer, [n, d]."""
        x, first = self.embedded(batch), None
        for block in self.layers:
            x, first = block.with_first(x, first, batch)
        return x


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="rwkv7",
    config=Rwkv7Config,
    model=CausalLM,
    weights=(
        constant("attn.unit_norm.weight", 1.0),
        TIED,
        rename("model.embed_tokens.weight", "model.embeddings.weight"),
        rename("model.layers.*.x_*.factor", "model.layers.*.x_*"),
        rename("model.layers.*_lora.down.*", "model.layers.*_lora.lora.0.*"),
        rename("model.layers.*_lora.up.*", "model.layers.*_lora.lora.2.*"),
    ),
)
