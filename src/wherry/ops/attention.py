"""Records of RoPE, of the append to the paged KV cache, and of attention over it.

Axes: n rows of a batch, h query heads, g KV heads, e head dimension.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, get_args

from .linear import FusedLinearSpec
from .record import FloatName, Record, check_floats, check_positive

CacheName = Literal["float16", "float32", "int8", "int4"]
_EIGHTS = "heads of a multiple of 8 elements are expected, found head_dim {}"
# Caches of integers with scales, keys and values in one plane: bits of an element of each.
INTEGER_BITS = {"int8": (12, 8), "int4": (8, 4)}
INTEGERS = tuple(INTEGER_BITS)
# What follows the queries in qkv: "both" keys and values; "keys", which are also the values, before
# norm and rotation; or "none", because another layer has written the pages.
GivenName = Literal["both", "keys", "none"]


def page_shape(
    kv_heads: int,
    page_size: int,
    head_dim: int,
    kv_dtype: str,
    planes: int = 2,
    *,
    words: bool = False,
) -> tuple[int, int, int, int]:
    """Return the shape of a page: [2 (k, v), g, page_size, e]; integers: [1, g, page_size, bytes].

    With one plane [1, g, page_size, e], where the keys are also the values. With `words`, integers
    are in words of four bytes.

    An int8 page has, in bytes, for each token and head: the upper eight bits of the key's 12, the
    lower four of two neighbours in a byte, and the float32 scale max|k| / 2047; then the value and
    its scale max|v| / 127.

    An int4 page has the key in 8 bits and the float32 scale max|k| / 127; then the value in 4 bits,
    x = q * scale + minimum, of each group (`value_group`) first half in the lower bits of bytes;
    and of each group an int32: the upper halves of two float32, minimum and scale, the former in
    the upper bits.

    Raises:
        ValueError: `kv_dtype` cannot keep heads of this size.
    """
    if kv_dtype not in INTEGERS:
        return (planes, kv_heads, page_size, head_dim)
    width = head_dim * 5 // 2 + 8
    if kv_dtype == "int4":
        width = head_dim * 3 // 2 + 4 + 4 * (head_dim // value_group(head_dim))
    if words and head_dim % 8:
        raise ValueError(_EIGHTS.format(head_dim))
    return (1, kv_heads, page_size, width // 4 if words else width)


def value_group(head_dim: int) -> int:
    """Return how many elements of an int4 value share a scale and a minimum: 32, 16 or 8.

    Raises:
        ValueError: the head does not consist of such groups.
    """
    if head_dim % 8:
        raise ValueError(_EIGHTS.format(head_dim))
    return next(size for size in (32, 16, 8) if head_dim % size == 0)


def page_dtype(kv_dtype: str, *, words: bool = False) -> str:
    """Return the dtype of a page's elements, of which `page_shape` is the shape."""
    if kv_dtype not in INTEGERS:
        return kv_dtype
    return "uint32" if words else "uint8" if kv_dtype == "int4" else "int8"


def qkv_heads(heads: int, kv_heads: int, kv: GivenName) -> int:
    """Return the number of heads in qkv."""
    return heads + {"both": 2, "keys": 1, "none": 0}[kv] * kv_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape(Record):
    """One layer's attention over a KV cache, as a model states it: RoPE, append, attend.

    It contains no pages: `passes/paged_kv.py` turns it into a `RopeAppendSpec` and an
    `AttentionSpec`.
    """

    cache: int  # layer that owns the KV cache; with `kv` "none", an earlier one
    heads: int
    kv_heads: int
    head_dim: int
    scale: float  # factor of attention scores
    inv_freq: tuple[float, ...]  # radians per position, one for each rotated pair; (): no RoPE
    axes: tuple[int, ...] = ()  # as `RopeAppendSpec` has them
    rope_scaling: float = 1.0  # factor of cosine and sine
    qk_norm_eps: float | None = None  # if set, Q and K heads are RMS-normalized before RoPE
    norm_last: bool = False  # whether norm weights are applied after RoPE
    v_norm: bool = False  # whether V heads are RMS-normalized, too, without weights
    kv: GivenName = "both"  # which of K and V follow Q in qkv
    window: int | None = None  # tokens that a row attends to, its own included; None: all before it
    softcap: float | None = None  # if set, scores become cap * tanh(score / cap)
    latent: bool = False  # whether keys are also the values (MLA): see models/blocks/latent.py
    # ALiBi, one per query head: slope * distance is subtracted from a score
    slopes: tuple[float, ...] = ()
    reach: int | None = None  # as `AttentionSpec` has it
    # Whether the cache has keys and values of the source (cross-attention), which a call with
    # `appends` writes, once; a row's position is then the last one that it attends to.
    cross: bool = False
    # Whether K and V are appended and nothing attends: the result is the rotated Q. Another call of
    # the same layer, in another entry, attends to them.
    appends: bool = False
    last_visible: bool = False  # as `AttentionSpec` has it


def _check_cache(spec: RopeAppendSpec | AttentionSpec) -> None:
    check_positive(spec, "heads", "kv_heads", "head_dim", "page_size")
    if spec.heads % spec.kv_heads:
        raise ValueError(f"{spec.heads} query heads do not share {spec.kv_heads} kv heads")
    if spec.kv_dtype not in get_args(CacheName):
        raise ValueError(f"kv_dtype {spec.kv_dtype!r} is not one of {get_args(CacheName)}")
    if spec.planes not in (1, 2) or (spec.kv_dtype in INTEGERS and spec.planes == 1):
        raise ValueError(f"{spec.planes} planes of {spec.kv_dtype}; there are two, of floats one")
    if spec.kv_dtype == "int8" and spec.head_dim % 2:
        raise ValueError(f"int8 keeps elements of keys in pairs, found head_dim {spec.head_dim}")
    if spec.kv_dtype == "int4" or spec.words:
        value_group(spec.head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeAppendSpec(Record):
    """Spec of RoPE with cache append: rotate q and k, write k and v into the paged cache, return q.

    Half-split rotation (Hugging Face's rotate_half) of the first `rotary_dim` elements of a head by
    the float32 angle position * inv_freq[j]; the other elements stay. With `axes` (M-RoPE,
    https://arxiv.org/abs/2409.12191) a row has three positions, int32 [n, 3], of which frequency j
    takes number axes[j]. With `norm_last` the weights of the heads' norm are applied after the
    rotation. With `v_norm` the heads of v get RMSNorm without weights. With `kv` "none" nothing is
    written, and the weights of k's norm, an argument all the same, are not read.
    """

    heads: int  # query heads h
    kv_heads: int  # KV heads g
    head_dim: int  # elements e of a head
    rotary_dim: int
    inv_freq: tuple[float, ...]  # [rotary_dim / 2], radians per token
    # [rotary_dim / 2], time 0, height 1 or width 2 of the rows' positions; (): a row has one
    axes: tuple[int, ...] = ()
    scaling: float = 1.0  # factor of cos and sin (YaRN's attention factor)
    qk_norm_eps: float | None = None  # RMSNorm of q and k heads before the rotation; None: no norm
    norm_last: bool = False
    v_norm: bool = False
    kv: GivenName = "both"
    page_size: int = 16  # tokens of a page
    kv_dtype: CacheName = "float32"
    planes: int = 2  # planes of a page: keys and values, or 1 if the keys are also the values
    words: bool = False  # whether integers are in words of four bytes, as on GPUs, not in bytes

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
        if self.axes and (len(self.axes) != len(self.inv_freq) or not {*self.axes} <= {0, 1, 2}):
            raise ValueError(
                f"axes {self.axes}: 0, 1 or 2 of each of {len(self.inv_freq)} frequencies expected"
            )

    @property
    def page_shape(self) -> tuple[int, int, int, int]:
        """Return the shape of a page of the KV cache."""
        sizes = (self.kv_heads, self.page_size, self.head_dim)
        return page_shape(*sizes, self.kv_dtype, self.planes, words=self.words)

    @property
    def page_dtype(self) -> str:
        """Return the dtype of a page's elements."""
        return page_dtype(self.kv_dtype, words=self.words)

    @property
    def qkv_heads(self) -> int:
        """Return the number of heads in qkv."""
        return qkv_heads(self.heads, self.kv_heads, self.kv)

    @property
    def first_value(self) -> int:
        """Return the index of the first value head in qkv."""
        return self.heads + (self.kv_heads if self.kv == "both" else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec(Record):
    """Spec of causal attention of n rows over the paged cache; row i attends to 0..positions[i].

    The positions of a sequence's rows ascend by one, or are equal (cross-attention). With a
    `window` a row attends to the last `window` of these positions; ids of pages that no row
    needs may be -1. With a `softcap` a score s = scale * q . k becomes softcap * tanh(s / softcap).
    `slopes`, one for each query head, add slope * (position of the key - position of the row)
    (ALiBi, https://arxiv.org/abs/2108.12409). With `reach`, an element of a bias float32
    [h, reach + 1] is added to the scores: that of the key's distance before the row, or of `reach`,
    if the distance is larger (T5, https://arxiv.org/abs/1910.10683). `sinks` give each head one
    more score, sinks[head], whose weight has no value.

    With `last_visible`, an argument int32 [n] of that name, row i attends to 0..last_visible[i],
    of which a window takes those from positions[i] + 1 - window on. It is at least positions[i],
    never less than that of the row before, and equal to positions[i] where a step has no other row
    of the sequence. Images that see themselves from both sides need it (Gemma 3).
    """

    heads: int  # query heads h
    kv_heads: int  # KV heads g
    head_dim: int  # elements e of a head
    scale: float  # factor of q . k
    window: int | None = None  # tokens of the sliding window, including the row's own
    softcap: float | None = None
    slopes: tuple[float, ...] = ()
    reach: int | None = None  # largest distance that has a bias of its own; None: no bias
    page_size: int = 16  # tokens of a page
    kv_dtype: CacheName = "float32"
    planes: int = 2  # planes of a page: keys and values, or 1 if the keys are also the values
    words: bool = False  # whether integers are in words of four bytes, as on GPUs, not in bytes
    sinks: bool = False
    last_visible: bool = False  # whether rows attend to some positions after their own

    def __post_init__(self) -> None:
        _check_cache(self)
        if self.last_visible and (self.slopes or self.reach is not None):
            raise ValueError(
                "last_visible has no distance from a key to a row: no slopes, no reach"
            )
        if self.slopes and len(self.slopes) != self.heads:
            raise ValueError(f"{len(self.slopes)} slopes found for {self.heads} query heads")
        if self.window is not None:
            check_positive(self, "window")
        for name in ("softcap", "reach"):
            if getattr(self, name) is not None:
                check_positive(self, name)

    @property
    def page_shape(self) -> tuple[int, int, int, int]:
        """Return the shape of a page of the KV cache."""
        sizes = (self.kv_heads, self.page_size, self.head_dim)
        return page_shape(*sizes, self.kv_dtype, self.planes, words=self.words)

    @property
    def page_dtype(self) -> str:
        """Return the dtype of a page's elements."""
        return page_dtype(self.kv_dtype, words=self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedAttentionSpec(Record):
    """Spec of RoPE, append and attention in one: a `RopeAppendSpec` and its `AttentionSpec`."""

    heads: int  # query heads h
    kv_heads: int  # KV heads g
    head_dim: int  # elements e of a head
    rotary_dim: int
    inv_freq: tuple[float, ...]
    scale: float
    axes: tuple[int, ...] = ()
    scaling: float = 1.0
    qk_norm_eps: float | None = None
    norm_last: bool = False
    v_norm: bool = False
    kv: GivenName = "both"
    window: int | None = None
    softcap: float | None = None
    slopes: tuple[float, ...] = ()
    reach: int | None = None
    page_size: int = 16  # tokens of a page
    kv_dtype: CacheName = "float32"
    planes: int = 2  # planes of a page: keys and values, or 1 if the keys are also the values
    words: bool = False  # whether integers are in words of four bytes, as on GPUs, not in bytes
    qkv_dtype: FloatName = "float32"
    out_dtype: FloatName = "float32"
    sinks: bool = False
    last_visible: bool = False

    def __post_init__(self) -> None:
        check_floats(self, "qkv_dtype", "out_dtype")
        self.rope()
        self.attention()

    def rope(self) -> RopeAppendSpec:
        """Return the spec of RoPE and append alone."""
        return RopeAppendSpec(
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            rotary_dim=self.rotary_dim,
            inv_freq=self.inv_freq,
            axes=self.axes,
            scaling=self.scaling,
            qk_norm_eps=self.qk_norm_eps,
            norm_last=self.norm_last,
            v_norm=self.v_norm,
            kv=self.kv,
            page_size=self.page_size,
            kv_dtype=self.kv_dtype,
            planes=self.planes,
            words=self.words,
        )

    def attention(self) -> AttentionSpec:
        """Return the spec of attention alone."""
        return AttentionSpec(
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            scale=self.scale,
            window=self.window,
            softcap=self.softcap,
            slopes=self.slopes,
            reach=self.reach,
            page_size=self.page_size,
            kv_dtype=self.kv_dtype,
            planes=self.planes,
            words=self.words,
            sinks=self.sinks,
            last_visible=self.last_visible,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTableSpec(Record):
    """Spec of the batch table: positions and pages of a step's rows in one array.

    The kernel set defines the table's layout.
    """

    page_size: int = 16  # tokens of a page


@dataclass(frozen=True, slots=True, kw_only=True)
class QkvAttentionSpec(Record):
    """Spec of a linear whose result is qkv, and of the attention over it."""

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
        """Read {"linear": ..., "attention": ...}; raises as other records do."""
        raw = json.loads(text)
        return cls(
            linear=FusedLinearSpec.from_json(json.dumps(raw["linear"])),
            attention=PagedAttentionSpec.from_json(json.dumps(raw["attention"])),
        )
