"""Records of linears and embeddings. Axes: n, m rows; N out features, K in features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from .elementwise import ActivationName
from .record import FloatName, Record, Scheme, check_floats, check_positive, check_weight


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSpec(Record):
    """Spec of a linear: y[m, n] = sum over k of x[m, k] * w[n, k]; x and y float32.

    Portable weights: "f32", "f16": one tensor [N, K]. "q4": uint32 [N, ceil(K/32) * 4], eight
    nibbles a word, lowest bits first, value = (nibble - 7) * scale, and scales [N, ceil(K/32)].
    "q8": uint32 [N, ceil(K/32) * 8], four bytes a word, value = (byte - 127) * scale, bytes at most
    254. Nibbles and bytes beyond K are ignored.
    """

    out_features: int  # rows N of the weight
    in_features: int  # columns K of the weight
    scheme: Scheme
    scale_dtype: FloatName | None = None  # dtype of the scales of "q4" and "q8"
    group: int = 32  # weights along K that share a scale

    def __post_init__(self) -> None:
        check_positive(self, "out_features", "in_features", "group")
        check_weight(self.scheme, self.scale_dtype, self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasedLinearSpec(LinearSpec):
    """Spec of a linear with a bias and an activation: y = f(x w^T + b), b float32 [N]."""

    activation: ActivationName | None = None

    def __post_init__(self) -> None:
        LinearSpec.__post_init__(self)
        if self.activation not in (None, *get_args(ActivationName)):
            raise ValueError(f"activation {self.activation!r} is not one of {ActivationName}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedLinearSpec(Record):
    """Spec of a linear with fused operations before and after it, row by row.

    With `norm_eps` x is RMS-normalized first: z = x / sqrt(mean(x^2) + eps) * norm [K]. `gated`:
    y[m, N / 2] = silu(left half) * right half of the linear's result. `residual`: a tensor of y's
    shape is added to y. The residual, the norm and all sums are float32. x and y may be stored in
    float16, but not a y with a residual: the residual stream goes through all layers, and in many
    models it has values of tens of thousands and of hundredths.
    """

    out_features: int  # rows N of the stored weight
    in_features: int  # columns K of the stored weight
    scheme: Scheme
    scale_dtype: FloatName | None = None
    group: int = 32
    norm_eps: float | None = None
    gated: bool = False
    residual: bool = False
    x_dtype: FloatName = "float32"
    y_dtype: FloatName = "float32"

    def __post_init__(self) -> None:
        self.linear()
        check_floats(self, "x_dtype", "y_dtype")
        if self.residual and self.y_dtype != "float32":
            raise ValueError(f"what has a residual is float32, found y_dtype {self.y_dtype!r}")
        if self.gated and self.out_features % 2:
            raise ValueError(f"gated needs an even out_features, found {self.out_features}")

    def linear(self) -> LinearSpec:
        """Return the spec of the linear without fused operations."""
        return LinearSpec(
            out_features=self.out_features,
            in_features=self.in_features,
            scheme=self.scheme,
            scale_dtype=self.scale_dtype,
            group=self.group,
        )

    @property
    def width(self) -> int:
        """Return the number of columns of y."""
        return self.out_features // 2 if self.gated else self.out_features


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec(Record):
    """Spec of an embedding lookup: y[i] = table[tokens[i]], float32 [n, dim].

    The table is stored as a LinearSpec's weight.
    """

    vocab: int
    dim: int
    scheme: Scheme
    scale_dtype: FloatName | None = None
    group: int = 32

    def __post_init__(self) -> None:
        check_positive(self, "vocab", "dim", "group")
        check_weight(self.scheme, self.scale_dtype, self.group)

    def as_linear(self) -> LinearSpec:
        """Return the spec of the linear that shares the stored table: N = vocab, K = dim."""
        return LinearSpec(
            out_features=self.vocab,
            in_features=self.dim,
            scheme=self.scheme,
            scale_dtype=self.scale_dtype,
            group=self.group,
        )
