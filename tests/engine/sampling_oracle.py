"""Sampling by its definitions (engine/sampling/sampler.h), in NumPy: sorts whole rows, walks whole
histories, sums in float64.

Logits are moved in float32, as the core does: there equality is exact. Everything after that has
other roundings than the core's, so each decision reports how close it was to going the other way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

HEAD = 64  # ranks that are drawn before the tail, where no stage has cut it
MOST_EXTENSION = 64  # tokens for which a repetition counts, beyond dry_allowed_length
_WORD = 2**64 - 1


def uniform(seed: int, index: int, stream: int) -> float:
    """In [0, 1): SplitMix64 of (seed, stream), of that and the index."""

    def split(state: int, i: int) -> int:
        z = (state + (i + 1) * 0x9E3779B97F4A7C15) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return z ^ (z >> 31)

    return (split(split(seed, stream), index) >> 11) / 2**53


@dataclass
class Params:
    """The fields of wherry_params that sampling reads."""

    min_tokens: int = 0
    stop_ids: list[int] = field(default_factory=list)
    temperature: float = 1.0
    dynamic_range: float = 0.0
    dynamic_exponent: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    typical_p: float = 1.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    mirostat_tau: float = 0.0
    mirostat_eta: float = 0.1
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_range: int = 0
    dry_breakers: list[int] = field(default_factory=list)
    seed: int = 0
    bias: dict[int, float] = field(default_factory=dict)
    bad_words: list[list[int]] = field(default_factory=list)


def _single(value: float) -> float:
    """What the core gets: a float32."""
    return float(np.float32(value))


# ---- what moves logits ----


def move(
    x: Row, p: Params, tokens: list[int], prompt: int, mask: npt.NDArray[np.bool_] | None
) -> Row:
    """Bias, what is forbidden, penalties, DRY. tokens: prompt and output; mask [vocab]."""
    x = x.copy()
    output = tokens[prompt:]
    for token, bias in p.bias.items():
        x[token] += np.float32(bias)
    if mask is not None:
        x[~mask] = -np.inf
    for *before, last in p.bad_words:
        if tokens[len(tokens) - len(before) :] == before:
            x[last] = -np.inf
    if len(output) < p.min_tokens:
        without = x.copy()
        without[p.stop_ids] = -np.inf
        x = x if np.isneginf(without).all() else without
    x = _penalise(x, p, tokens, output)
    for token, n in repetitions(p, tokens).items():
        cost = _single(p.dry_multiplier) * _single(p.dry_base) ** (n - p.dry_allowed_length)
        x[token] -= np.float32(min(cost, 1e30))
    return x


def _penalise(x: Row, p: Params, tokens: list[int], output: list[int]) -> Row:
    if p.repetition_penalty != 1:
        r = np.float32(p.repetition_penalty)
        seen = sorted(set(tokens))
        x[seen] = np.where(x[seen] > 0, x[seen] / r, x[seen] * r)
    for token in sorted(set(output)):
        count = np.float32(output.count(token))
        x[token] -= np.float32(p.presence_penalty) + count * np.float32(p.frequency_penalty)
    return x


def repetitions(p: Params, tokens: list[int]) -> dict[int, int]:
    """Token -> the longest repetition that it would go on with."""
    longest: dict[int, int] = {}
    if p.dry_multiplier == 0:
        return longest
    breakers = set(p.dry_breakers)
    window = tokens[-p.dry_range :] if p.dry_range else tokens
    for place in range(len(window) - 1):
        n = 0
        while n <= place and window[place - n] == window[-1 - n] not in breakers:
            n += 1
        n = min(n, p.dry_allowed_length + MOST_EXTENSION)
        following = window[place + 1]
        if n >= p.dry_allowed_length and following not in breakers:
            longest[following] = max(longest.get(following, 0), n)
    return longest


# ---- what leaves tokens out ----


@dataclass
class Kept:
    """Tokens by rank (equal logits by id) with their weights; what is kept is begin..end.

    `margin`: the least relative distance of a number from the threshold it was compared with.
    """

    x: Row
    temperature: float
    ids: Ids = field(init=False)
    weights: Weights = field(init=False)
    logs: Weights = field(init=False)
    begin: int = 0
    end: int = field(init=False)
    margin: float = np.inf

    def __post_init__(self) -> None:
        self.ids = np.argsort(-self.x, kind="stable")
        ranked = self.x[self.ids].astype(np.float64)
        self.logs = (ranked - ranked[0]) / max(self.temperature, 1e-38)
        self.logs[np.isnan(self.logs)] = -np.inf
        self.weights = np.exp(self.logs)
        self.weights[self.logs < -87] = 0
        self.end = len(self.x)

    def _close(self, values: Weights | float, threshold: float) -> None:
        distances = np.abs(np.atleast_1d(values) - threshold) / max(abs(threshold), 1e-30)
        if distances.size:
            self.margin = min(self.margin, float(np.nanmin(distances)))

    def _tail_from(self, values: Weights, threshold: float) -> None:
        """Keep while `values` (of the kept ranks, descending) is at least the threshold."""
        self._close(values[1:], threshold)
        below = np.flatnonzero(values[1:] < threshold)
        self.end = self.begin + 1 + int(below[0]) if below.size else self.end

    @property
    def run(self) -> slice:
        return slice(self.begin, self.end)

    def shares(self) -> Weights:
        return self.weights[self.run] / self.weights[self.run].sum()

    def top_n_sigma(self, n: float) -> None:
        ranked = self.x[self.ids].astype(np.float64)
        possible = ranked[np.isfinite(ranked)]
        self._tail_from(ranked[self.run], ranked[0] - n * possible.std())

    def top_k(self, k: int) -> None:
        self.end = min(self.end, self.begin + k)

    def typical(self, p: float) -> None:
        shares = self.shares()
        with np.errstate(divide="ignore"):
            surprise = -np.log(shares)
        entropy = float((shares[shares > 0] * surprise[shares > 0]).sum())
        distance = np.abs(surprise - entropy)
        order = np.lexsort((np.arange(len(shares)), distance))
        order = order[shares[order] > 0]
        sums = np.cumsum(shares[order])
        self._close(sums, p)
        count = min(int(np.searchsorted(sums, p)) + 1, len(order))
        chosen = order[:count]
        if count < len(order):  # as near, but for rounding: which one goes is open
            gap = distance[order[count]] - distance[order[count - 1]]
            self.margin = min(self.margin, float(gap))
        self.begin, self.end = self.begin + int(chosen.min()), self.begin + int(chosen.max()) + 1

    def top_p(self, p: float) -> None:
        sums = np.cumsum(self.shares())
        self._close(sums, p)
        reached = np.flatnonzero(sums >= p)
        self.end = self.begin + int(reached[0]) + 1 if reached.size else self.end

    def min_p(self, share: float) -> None:
        self._tail_from(self.weights[self.run], share * self.weights[self.begin])

    def exclude_top(self, probability: float) -> None:
        shares = self.shares()
        self._close(shares, probability)
        likely = int((shares >= probability).sum())
        self.begin += max(likely - 1, 0)

    def surprise(self, bits: float) -> None:
        self._tail_from(self.shares(), 2.0**-bits)

    def draw(self, u: float) -> tuple[int, float]:
        """A token and its share: by rank; the tail, where it is kept, by id."""
        order = self.ids[self.run]
        if self.end == len(self.x):
            head = max(HEAD - self.begin, 0)
            order = np.concatenate([order[:head], np.sort(order[head:])])
        weights = np.zeros(len(self.x))
        weights[self.ids[self.run]] = self.shares()
        sums = np.cumsum(weights[order])
        self.margin = min(self.margin, float(np.abs(sums - u).min()))
        token = int(order[min(int(np.searchsorted(sums, u, side="right")), len(order) - 1)])
        return token, float(weights[token])


def temperature_of(p: Params, x: Row) -> float:
    """Dynamic temperature."""
    middle, reach = _single(p.temperature), _single(p.dynamic_range)
    if reach == 0:
        return middle
    possible = x[np.isfinite(x)].astype(np.float64)
    shares = np.exp(possible - possible.max())
    shares /= shares.sum()
    shares = shares[shares > 0]
    entropy = float(-(shares * np.log(shares)).sum())
    h = entropy / np.log(len(possible)) if len(possible) > 1 else 0.0
    low, high = max(0.0, middle - reach), middle + reach
    return float(low + (high - low) * h ** _single(p.dynamic_exponent))


@dataclass
class Drawn:
    """A row's token, the ids that were kept, by rank, and how close the decisions were."""

    token: int
    begin: int
    end: int
    ids: list[int]
    margin: float


class Oracle:
    """One request, row by row."""

    def __init__(self, params: Params, prompt: list[int], output: list[int]) -> None:
        self.params = params
        self.prompt = len(prompt)
        self.tokens = [*prompt, *output]
        self.mu = 2 * _single(params.mirostat_tau)

    def sample(self, logits: Row, mask: npt.NDArray[np.bool_] | None = None) -> Drawn:
        """Sample, and accept the token."""
        p = self.params
        x = move(logits, p, self.tokens, self.prompt, mask)
        index = len(self.tokens) - self.prompt
        if p.temperature == 0:
            token = int(np.argmax(x))
            self.tokens.append(token)
            return Drawn(token, 0, 1, [token], np.inf)
        kept = Kept(x, temperature_of(p, x))
        self._truncate(kept, index)
        token, share = kept.draw(uniform(p.seed, index, 0))
        self.tokens.append(token)
        if p.mirostat_tau:
            error = -np.log2(share) - _single(p.mirostat_tau)
            self.mu -= _single(p.mirostat_eta) * error
        ids = [int(i) for i in kept.ids[kept.run]]
        return Drawn(token, kept.begin, kept.end, ids, kept.margin)

    def _truncate(self, kept: Kept, index: int) -> None:
        p = self.params
        if p.mirostat_tau:
            return kept.surprise(self.mu)
        if p.top_n_sigma:
            kept.top_n_sigma(_single(p.top_n_sigma))
        if p.top_k:
            kept.top_k(p.top_k)
        if p.typical_p < 1:
            kept.typical(_single(p.typical_p))
        if p.top_p < 1:
            kept.top_p(_single(p.top_p))
        if p.min_p:
            kept.min_p(_single(p.min_p))
        if p.xtc_probability and uniform(p.seed, index, 1) < _single(p.xtc_probability):
            kept.exclude_top(_single(p.xtc_threshold))
        return None
