"""What an operation is, statically: the record that travels with a reference PrimFunc.

A spec is written as a JSON string into an attribute of the PrimFunc; `SelectKernels` reads it back
and asks a `KernelSet` for a kernel. Axes: n rows of a batch, h query heads, g key-value heads,
e head dimension, r sequences, p page-table entries, P pages.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from typing_extensions import Self

Scheme = Literal["f32", "f16", "q4", "q8"]
FloatName = Literal["float16", "float32"]
CacheName = Literal["float16", "float32", "int8"]
ActivationName = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]
# What of keys and values stands behind the queries of qkv: both; keys, which are the values, too
# (as they are before norm and rotation); or nothing, because another layer has written the pages.
GivenName = Literal["both", "keys", "none"]

_SCHEMES = ("f32", "f16", "q4", "q8")
_INTEGERS = ("q4", "q8")
_FLOATS = ("float16", "float32")
_CACHES = ("float16", "float32", "int8")


class _Record:
    """JSON form of the specs below: an object with the fields and nothing else."""

    __slots__ = ()

    def to_json(self) -> str:
        """One line, keys sorted: equal specs have equal strings."""
        return json.dumps(asdict(self), sort_keys=True)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; lists become tuples.

        Raises:
            ValueError: missing or unknown fields, or a value that the record refuses.
        """
        raw: dict[str, Any] = json.loads(text)
        names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        if names != set(raw):
            raise ValueError(
                f"{cls.__name__}: fields {sorted(raw)} found, {sorted(names)} expected"
            )
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()})


def _check_positive(record: Any, *names: str) -> None:
    bad = {name: getattr(record, name) for name in names if getattr(record, name) <= 0}
    if bad:
        raise ValueError(f"{type(record).__name__}: {bad} must be positive")


def _check_floats(record: Any, *names: str) -> None:
    bad = {name: getattr(record, name) for name in names if getattr(record, name) not in _FLOATS}
    if bad:
        raise ValueError(f"{type(record).__name__}: {bad} must be one of {_FLOATS}")


def _check_cache(spec: RopeAppendSpec | AttentionSpec) -> None:
    _check_positive(spec, "heads", "kv_heads", "head_dim", "page_size")
    if spec.heads % spec.kv_heads:
        raise ValueError(f"{spec.heads} query heads do not share {spec.kv_heads} kv heads")
    if spec.kv_dtype not in _CACHES:
        raise ValueError(f"kv_dtype {spec.kv_dtype!r} is not one of {_CACHES}")
    if spec.planes not in (1, 2) or (spec.kv_dtype == "int8" and spec.planes == 1):
        raise ValueError(f"{spec.planes} planes of {spec.kv_dtype}; there are two, of floats one")
    if spec.kv_dtype == "int8" and spec.head_dim % 2:
        raise ValueError(f"int8 keeps elements of keys in pairs, found head_dim {spec.head_dim}")


def page_shape(
    kv_heads: int, page_size: int, head_dim: int, kv_dtype: str, planes: int = 2
) -> tuple[int, int, int, int]:
    """Shape of a page: [2 (k, v), g, page_size, e]; of int8 [1, g, page_size, 2.5 e + 8].

    Of one plane [1, g, page_size, e]: keys are the values, too.

    Int8 holds, in bytes, a key of 12 bits an element and its float32 scale, then a value of 8 bits
    and its scale.
    """
    if kv_dtype == "int8":
        return (1, kv_heads, page_size, head_dim * 5 // 2 + 8)
    return (planes, kv_heads, page_size, head_dim)


def qkv_heads(heads: int, kv_heads: int, kv: GivenName) -> int:
    """Heads of qkv."""
    return heads + {"both": 2, "keys": 1, "none": 0}[kv] * kv_heads


def _check_weight(scheme: str, scale_dtype: str | None, group: int) -> None:
    if scheme not in _SCHEMES:
        raise ValueError(f"scheme {scheme!r} is not one of {_SCHEMES}")
    if scheme in _INTEGERS and (scale_dtype not in _FLOATS or group != 32):
        raise ValueError(
            f"{scheme} needs scale_dtype in {_FLOATS} and group 32, "
            f"found {scale_dtype!r} and {group}"
        )
    if scheme not in _INTEGERS and scale_dtype is not None:
        raise ValueError(f"scheme {scheme} has no scales, found scale_dtype {scale_dtype!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSpec(_Record):
    """y[m, n] = sum over k of x[m, k] * w[n, k]; x and y float32.

    Portable weights: "f32", "f16": one tensor [N, K]. "q4": uint32 [N, ceil(K/32) * 4], eight
    nibbles a word, lowest bits first, value = (nibble - 7) * scale, and scales [N, ceil(K/32)].
    "q8": uint32 [N, ceil(K/32) * 8], four bytes a word, value = (byte - 127) * scale, bytes at
    most 254. Nibbles and bytes beyond K are ignored.
    """

    out_features: int  # N
    in_features: int  # K
    scheme: Scheme
    scale_dtype: FloatName | None = None  # of "q4" and "q8"
    group: int = 32  # weights along K that share a scale

    def __post_init__(self) -> None:
        _check_positive(self, "out_features", "in_features", "group")
        _check_weight(self.scheme, self.scale_dtype, self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedLinearSpec(_Record):
    """A linear together with what is computed before and after it, row by row.

    With `norm_eps` x is RMS-normalised first: z = x / sqrt(mean(x^2) + eps) * norm [K].
    `gated`: y[m, N / 2] = silu(left half) * right half of the linear's result.
    `residual`: a tensor of y's shape is added to y. It, the norm and all sums are float32; x and y
    may be kept in float16, y not where it has a residual: such a sum goes through all layers, and
    has numbers of tens of thousands beside those of hundredths in many models.
    """

    out_features: int  # N, of the stored weight
    in_features: int  # K
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
        _check_floats(self, "x_dtype", "y_dtype")
        if self.residual and self.y_dtype != "float32":
            raise ValueError(f"what has a residual is float32, found y_dtype {self.y_dtype!r}")
        if self.gated and self.out_features % 2:
            raise ValueError(f"gated needs an even out_features, found {self.out_features}")

    def linear(self) -> LinearSpec:
        """The linear alone."""
        return LinearSpec(
            out_features=self.out_features,
            in_features=self.in_features,
            scheme=self.scheme,
            scale_dtype=self.scale_dtype,
            group=self.group,
        )

    @property
    def width(self) -> int:
        """Columns of y."""
        return self.out_features // 2 if self.gated else self.out_features


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec(_Record):
    """y[i] = table[tokens[i]], float32 [n, dim]; the table is stored as a LinearSpec's weight."""

    vocab: int
    dim: int
    scheme: Scheme
    scale_dtype: FloatName | None = None
    group: int = 32

    def __post_init__(self) -> None:
        _check_positive(self, "vocab", "dim", "group")
        _check_weight(self.scheme, self.scale_dtype, self.group)

    def as_linear(self) -> LinearSpec:
        """The linear that shares the stored table: N = vocab, K = dim."""
        return LinearSpec(
            out_features=self.vocab,
            in_features=self.dim,
            scheme=self.scheme,
            scale_dtype=self.scale_dtype,
            group=self.group,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RMSNormSpec(_Record):
    """y = x / sqrt(mean(x^2) + eps) * w over the last axis of [n, dim]."""

    dim: int
    eps: float

    def __post_init__(self) -> None:
        _check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNormSpec(_Record):
    """y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + b over the last axis of [n, dim].

    Without `bias` there is no b.
    """

    dim: int
    eps: float
    bias: bool

    def __post_init__(self) -> None:
        _check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwiGLUSpec(_Record):
    """y[n, dim] = silu(x[n, :dim]) * x[n, dim:] of x [n, 2 * dim]."""

    dim: int

    def __post_init__(self) -> None:
        _check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationSpec(_Record):
    """y[n, dim] = f(x[n, dim]); gated: f(x[n, :dim]) * x[n, dim:] of x [n, 2 * dim].

    "gelu" has the error function, "gelu_tanh" its approximation, "relu2" is max(x, 0)^2.
    """

    dim: int
    kind: ActivationName
    gated: bool = False

    def __post_init__(self) -> None:
        _check_positive(self, "dim")
        if self.kind not in get_args(ActivationName):
            raise ValueError(f"kind {self.kind!r} is not one of {get_args(ActivationName)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeAppendSpec(_Record):
    """Rotate q and k, write k and v into the paged cache, return q.

    Half-split rotation (Hugging Face's rotate_half) of the first `rotary_dim` elements of a head,
    by the float32 angle position * inv_freq[j]; the rest of the head passes, or all of it. With
    `norm_last` heads are multiplied by the weights of their norm after the rotation. With `v_norm`
    heads of v are RMS-normed, too, without weights. With `kv` "none" nothing is written, and the
    weights of k's norm, which are there all the same, are not read.
    """

    heads: int  # h
    kv_heads: int  # g
    head_dim: int  # e
    rotary_dim: int
    inv_freq: tuple[float, ...]  # [rotary_dim / 2], radians a token
    scaling: float = 1.0  # multiplies cos and sin (YaRN's attention factor)
    qk_norm_eps: float | None = None  # RMSNorm of q and k heads before the rotation
    norm_last: bool = False
    v_norm: bool = False
    kv: GivenName = "both"
    page_size: int = 16  # tokens
    kv_dtype: CacheName = "float32"
    planes: int = 2  # of a page: keys and values, or 1: what a token has is both

    def __post_init__(self) -> None:
        _check_cache(self)
        if self.kv not in get_args(GivenName):
            raise ValueError(f"kv {self.kv!r} is not one of {get_args(GivenName)}")
        if self.v_norm and (self.qk_norm_eps is None or self.kv == "none" or self.planes == 1):
            raise ValueError("v_norm needs the norms of q and k, and values of their own")
        if self.norm_last and (self.qk_norm_eps is None or self.scaling != 1.0):
            raise ValueError("norm_last needs a norm, and no scaling, which it would undo")
        if self.rotary_dim % 2 or not 0 <= self.rotary_dim <= self.head_dim:
            raise ValueError(f"rotary_dim {self.rotary_dim} does not fit head_dim {self.head_dim}")
        if len(self.inv_freq) * 2 != self.rotary_dim:
            raise ValueError(
                f"{len(self.inv_freq)} frequencies found, rotary_dim / 2 = "
                f"{self.rotary_dim // 2} expected"
            )

    @property
    def page_shape(self) -> tuple[int, int, int, int]:
        """Shape of a page of the KV cache."""
        return page_shape(self.kv_heads, self.page_size, self.head_dim, self.kv_dtype, self.planes)

    @property
    def qkv_heads(self) -> int:
        """Heads of qkv."""
        return qkv_heads(self.heads, self.kv_heads, self.kv)

    @property
    def first_value(self) -> int:
        """The head of qkv that is the first one's value."""
        return self.heads + (self.kv_heads if self.kv == "both" else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec(_Record):
    """Causal attention of n rows over the paged cache; row i sees positions 0..positions[i].

    With a `window` it sees the last so many of these; ids of pages that no row sees may be -1. With
    a `softcap` a score s = scale * q . k becomes softcap * tanh(s / softcap). With `slopes`, one a
    query head, slope * (position of the key - that of the row) is added to it (ALiBi,
    https://arxiv.org/abs/2108.12409). With `sinks` a head has one more score, sinks[head], whose
    weight goes to nothing.
    """

    heads: int  # h
    kv_heads: int  # g
    head_dim: int  # e
    scale: float  # multiplies q . k
    window: int | None = None  # tokens, the row's own included
    softcap: float | None = None
    slopes: tuple[float, ...] = ()
    page_size: int = 16  # tokens
    kv_dtype: CacheName = "float32"
    planes: int = 2  # of a page: keys and values, or 1: what a token has is both
    sinks: bool = False

    def __post_init__(self) -> None:
        _check_cache(self)
        if self.slopes and len(self.slopes) != self.heads:
            raise ValueError(f"{len(self.slopes)} slopes found for {self.heads} query heads")
        if self.window is not None:
            _check_positive(self, "window")
        if self.softcap is not None:
            _check_positive(self, "softcap")

    @property
    def page_shape(self) -> tuple[int, int, int, int]:
        """Shape of a page of the KV cache."""
        return page_shape(self.kv_heads, self.page_size, self.head_dim, self.kv_dtype, self.planes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedAttentionSpec(_Record):
    """Rotate, append, attend: a `RopeAppendSpec` and the `AttentionSpec` after it."""

    heads: int  # h
    kv_heads: int  # g
    head_dim: int  # e
    rotary_dim: int
    inv_freq: tuple[float, ...]
    scale: float
    scaling: float = 1.0
    qk_norm_eps: float | None = None
    norm_last: bool = False
    v_norm: bool = False
    kv: GivenName = "both"
    window: int | None = None
    softcap: float | None = None
    slopes: tuple[float, ...] = ()
    page_size: int = 16  # tokens
    kv_dtype: FloatName = "float32"
    planes: int = 2  # of a page: keys and values, or 1: what a token has is both
    qkv_dtype: FloatName = "float32"
    out_dtype: FloatName = "float32"
    sinks: bool = False

    def __post_init__(self) -> None:
        _check_floats(self, "kv_dtype", "qkv_dtype", "out_dtype")
        self.rope()
        self.attention()

    def rope(self) -> RopeAppendSpec:
        """The first part."""
        return RopeAppendSpec(
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            rotary_dim=self.rotary_dim,
            inv_freq=self.inv_freq,
            scaling=self.scaling,
            qk_norm_eps=self.qk_norm_eps,
            norm_last=self.norm_last,
            v_norm=self.v_norm,
            kv=self.kv,
            page_size=self.page_size,
            kv_dtype=self.kv_dtype,
            planes=self.planes,
        )

    def attention(self) -> AttentionSpec:
        """The second part."""
        return AttentionSpec(
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            scale=self.scale,
            window=self.window,
            softcap=self.softcap,
            slopes=self.slopes,
            page_size=self.page_size,
            kv_dtype=self.kv_dtype,
            planes=self.planes,
            sinks=self.sinks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTableSpec(_Record):
    """The positions and pages of a step's rows, in one array; the kernel set's own layout."""

    page_size: int = 16  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesSpec(_Record):
    """The most likely tokens of rows of logits, and sums over these rows, for sampling."""

    vocab: int
    count: int = 128  # tokens of a row that are named

    def __post_init__(self) -> None:
        _check_positive(self, "vocab", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSpec(_Record):
    """A token of each row, from its candidates."""

    count: int = 128  # candidates of a row

    def __post_init__(self) -> None:
        _check_positive(self, "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class QkvAttentionSpec(_Record):
    """A linear whose result is qkv, and the attention over it."""

    linear: FusedLinearSpec
    attention: PagedAttentionSpec

    def __post_init__(self) -> None:
        if self.linear.y_dtype != self.attention.qkv_dtype:
            raise ValueError(
                f"the linear gives {self.linear.y_dtype}, the attention takes "
                f"{self.attention.qkv_dtype}"
            )

    @classmethod
    def from_json(cls, text: str) -> QkvAttentionSpec:
        """Read {"linear": ..., "attention": ...}; errors as for other records."""
        raw = json.loads(text)
        return cls(
            linear=FusedLinearSpec.from_json(json.dumps(raw["linear"])),
            attention=PagedAttentionSpec.from_json(json.dumps(raw["attention"])),
        )
