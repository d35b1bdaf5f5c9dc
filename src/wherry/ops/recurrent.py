"""Records of operations with a recurrent state, which a sequence has in a slot.

The state of a slot has a fixed size, whatever the sequence's length. An operation updates it row by
row, in the order of a sequence's rows, so results have the same bits however a prompt is cut.

Axes: n rows of a batch, c channels, h value heads, g key heads, dk and dv elements of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .record import Record, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvSpec(Record):
    """Spec of a causal convolution of each channel over the last `taps` rows of a sequence.

    y[i, c] = activation(bias[c] + sum over j of weight[j, c] * x[i - taps + 1 + j, c]). The state
    has the last taps - 1 inputs of the sequence, the oldest first; before the first row it is zero.
    """

    channels: int
    taps: int  # inputs that a result depends on
    activation: Literal["silu", "none"] = "silu"
    bias: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "channels")
        if self.taps < 2:
            raise ValueError(f"{self.taps} taps found; with fewer than 2 there is no state")

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Return the shape of a slot's float32 state."""
        return (self.taps - 1, self.channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaSpec(Record):
    """Spec of the gated delta rule (Gated DeltaNet, https://arxiv.org/abs/2412.06464).

    A row has q and k of each key head, which become unit vectors, v of each value head, and the
    numbers a and b of each value head. With decay = exp(-exp(a_log) * softplus(a + dt_bias)) and
    beta = sigmoid(b) the state S [dk, dv] of a value head becomes

        S = decay * S;  S = S + k (x) beta (v - S^T k);  out = S^T q / sqrt(dk)

    Value head j reads q and k of the key head j // (heads / key_heads). With `channel_decay` (Kimi
    Delta Attention, https://arxiv.org/abs/2510.26692) each of the dk rows of the state has a decay
    of its own; a row of the batch has all of them, computed before, in the place of a.
    """

    heads: int  # value heads h
    key_heads: int  # g
    key_dim: int  # dk
    value_dim: int  # dv
    channel_decay: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "heads", "key_heads", "key_dim", "value_dim")
        if self.heads % self.key_heads:
            raise ValueError(f"{self.heads} value heads do not share {self.key_heads} key heads")

    @property
    def width(self) -> int:
        """Return the elements of a row: q [g, dk], k [g, dk], v [h, dv]."""
        return 2 * self.key_heads * self.key_dim + self.heads * self.value_dim

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Return the shape of a slot's float32 state; its layout belongs to the kernel."""
        return (self.heads, self.key_dim, self.value_dim)

    def buffers(self) -> list[tuple[str, tuple[int | str, ...], str]]:
        """Return name, shape and dtype of a kernel's buffers, `out` last.

        n is the rows, r the sequences, r1 = r + 1, and count the slots.
        """
        of_head: list[tuple[str, tuple[int | str, ...], str]] = [
            ("a_log", (self.heads,), "float32"),
            ("dt_bias", (self.heads,), "float32"),
        ]
        decays = [("decays", ("n", self.heads * self.key_dim), "float32")]
        return [
            ("qkv", ("n", self.width), "float32"),
            ("gates", ("n", self.heads * (1 if self.channel_decay else 2)), "float32"),
            *(decays if self.channel_decay else ()),
            ("query_indptr", ("r1",), "int32"),
            *(() if self.channel_decay else of_head),
            ("slots", ("r",), "int32"),
            ("state", ("count", *self.state_shape), "float32"),
            ("out", ("n", self.heads * self.value_dim), "float32"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaSpec(Record):
    """Spec of Mamba's selective scan (https://arxiv.org/abs/2312.00752).

    A row has x and a step of each channel, and B and C for all channels. A channel has a rate for
    each element of its state, -exp(A_log), and D. With step = softplus(step) the state s [d] of a
    channel becomes

        s = exp(rate * step) * s + B * step * x;  out = sum(s * C) + D * x
    """

    channels: int  # c
    state_dim: int  # d, elements of a channel's state

    def __post_init__(self) -> None:
        check_positive(self, "channels", "state_dim")

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Return the shape of a slot's float32 state; its layout belongs to the kernel."""
        return (1, self.state_dim, self.channels)

    def buffers(self) -> list[tuple[str, tuple[int | str, ...], str]]:
        """Return name, shape and dtype of a kernel's buffers, as `GatedDeltaSpec.buffers`.

        `constants` has the rates [d, c], then D.
        """
        return [
            ("x", ("n", self.channels), "float32"),
            ("steps", ("n", self.channels), "float32"),
            ("bc", ("n", 2 * self.state_dim), "float32"),
            ("query_indptr", ("r1",), "int32"),
            ("constants", (self.state_dim + 1, self.channels), "float32"),
            ("slots", ("r",), "int32"),
            ("state", ("count", *self.state_shape), "float32"),
            ("out", ("n", self.channels), "float32"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Spec(Record):
    """Spec of Mamba-2's state space (SSD, https://arxiv.org/abs/2405.21060).

    A row has x of each head, B and C of each group, and a step of each head. A head has three
    constants: rate = -exp(A_log), dt_bias and D. With step = clamp(softplus(step + dt_bias)) the
    state S [n, p] of a head becomes

        S = exp(rate * step) * S + B (x) step * x;  out = S^T C + D * x

    Head j reads B and C of the group j // (heads / groups).
    """

    heads: int  # h
    head_dim: int  # p
    groups: int  # g
    state_dim: int  # n of a head, the elements of B and of C
    least_step: float = 0.0
    most_step: float | None = None  # None: any

    def __post_init__(self) -> None:
        check_positive(self, "heads", "head_dim", "groups", "state_dim")
        if self.heads % self.groups:
            raise ValueError(f"{self.heads} heads do not share {self.groups} groups")
        if self.least_step < 0 or (self.most_step or 1) <= 0:
            raise ValueError(f"steps of {self.least_step} to {self.most_step} are not positive")

    @property
    def inner(self) -> int:
        """Return the elements of x, and of a result: h * p."""
        return self.heads * self.head_dim

    @property
    def width(self) -> int:
        """Return the elements of a row: x [h, p], B [g, n], C [g, n]."""
        return self.inner + 2 * self.groups * self.state_dim

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Return the shape of a slot's float32 state; its layout belongs to the kernel."""
        return (self.heads, self.state_dim, self.head_dim)

    def buffers(self) -> list[tuple[str, tuple[int | str, ...], str]]:
        """Return name, shape and dtype of a kernel's buffers, as `GatedDeltaSpec.buffers`."""
        return [
            ("xbc", ("n", self.width), "float32"),
            ("steps", ("n", self.heads), "float32"),
            ("query_indptr", ("r1",), "int32"),
            ("constants", (3, self.heads), "float32"),
            ("slots", ("r",), "int32"),
            ("state", ("count", *self.state_shape), "float32"),
            ("out", ("n", self.inner), "float32"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRecurrenceSpec(Record):
    """Spec of a linear recurrence of each channel (RG-LRU, https://arxiv.org/abs/2402.19427).

    A row has x and a decay of each channel, and the state s of a channel becomes s = decay * s + x,
    which is the result, too.
    """

    channels: int  # c

    def __post_init__(self) -> None:
        check_positive(self, "channels")

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Return the shape of a slot's float32 state."""
        return (1, 1, self.channels)

    def buffers(self) -> list[tuple[str, tuple[int | str, ...], str]]:
        """Return name, shape and dtype of a kernel's buffers, as `GatedDeltaSpec.buffers`."""
        return [
            ("x", ("n", self.channels), "float32"),
            ("decays", ("n", self.channels), "float32"),
            ("query_indptr", ("r1",), "int32"),
            ("slots", ("r",), "int32"),
            ("state", ("count", *self.state_shape), "float32"),
            ("out", ("n", self.channels), "float32"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DplrSpec(Record):
    """Spec of a transition that is diagonal plus low rank (RWKV-7, https://arxiv.org/abs/2503.14456).

    A row has r, decays, k, a and b of each head, [dk] each, and v [dv]. The state S [dk, dv] of a
    head becomes

        S = decays * S + b (x) S^T a + k (x) v;  out = S^T r

    The right side has the state before the row. Unlike in the gated delta rule, what is read (a)
    and where the difference is written (b) are vectors of their own.
    """

    heads: int  # h
    key_dim: int  # dk
    value_dim: int  # dv

    def __post_init__(self) -> None:
        check_positive(self, "heads", "key_dim", "value_dim")

    @property
    def width(self) -> int:
        """Return the elements of a row: r, decays, k, a, b [h, dk] and v [h, dv]."""
        return self.heads * (5 * self.key_dim + self.value_dim)

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Return the shape of a slot's float32 state; its layout belongs to the kernel."""
        return (self.heads, self.key_dim, self.value_dim)

    def buffers(self) -> list[tuple[str, tuple[int | str, ...], str]]:
        """Return name, shape and dtype of a kernel's buffers, as `GatedDeltaSpec.buffers`."""
        return [
            ("rows", ("n", self.width), "float32"),
            ("query_indptr", ("r1",), "int32"),
            ("slots", ("r",), "int32"),
            ("state", ("count", *self.state_shape), "float32"),
            ("out", ("n", self.heads * self.value_dim), "float32"),
        ]


# sum of u^(2k) / (2k + 1), highest power first: log(1 + x) = 2 u * this, u = x / (2 + x). Its error
# is below 2e-8 for 0 <= x <= 1, and needs no logarithm, whose precision differs between devices.
LOG1P = tuple(1.0 / (2 * k + 1) for k in reversed(range(8)))
L2_EPS = 1e-6  # added to the squared length of q and k

# Operations that own a state in a slot: name -> class of the spec.
RECURRENT: dict[
    str,
    type[ShortConvSpec | GatedDeltaSpec | MambaSpec | Mamba2Spec | LinearRecurrenceSpec | DplrSpec],
] = {
    "short_conv": ShortConvSpec,
    "gated_delta": GatedDeltaSpec,
    "mamba": MambaSpec,
    "mamba2": Mamba2Spec,
    "linear_recurrence": LinearRecurrenceSpec,
    "dplr": DplrSpec,
}
