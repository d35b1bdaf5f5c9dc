"""Draws a load test as an SVG picture, without a graphics library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from .outcome import Outcome
from .report import LATENCIES, PERCENTILES, latencies

_WIDTH, _HEIGHT = 420, 250  # size of a panel in pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 34, 44  # margins of a panel in pixels
_HEAD = 40
_TICKS = 5
_MOST_POINTS = 500  # points of a curve
_INK, _FAINT, _CURVE, _MARK = "#222", "#ddd", "#1f6fb2", "#c2410c"

Points = list[tuple[float, float]]


def svg(title: str, outcomes: Sequence[Outcome]) -> str:
    """Draw six panels: distributions of latencies, and running requests and tokens over time."""
    panels = [
        "".join(_distribution(f"{LATENCIES[name]}, ms", values))
        for name, values in latencies(outcomes).items()
    ]
    panels.append("".join(_curve("tokens written per second", "seconds", _written(outcomes))))
    panels.append("".join(_curve("running requests", "seconds", _in_flight(outcomes))))
    width, height = 3 * _WIDTH, 2 * _HEIGHT + _HEAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="26" font-size="16">{escape(title)}</text>',
    ]
    for i, panel in enumerate(panels):
        x, y = i % 3 * _WIDTH, i // 3 * _HEIGHT + _HEAD
        parts.append(f'<g transform="translate({x},{y})">{panel}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _distribution(title: str, values: Sequence[float]) -> Iterator[str]:
    """Draw the share of requests (or gaps) up to each latency, with percentiles."""
    if not values:
        yield from _frame(title, "none")
        return
    ascending = sorted(values)
    step = max(1, len(ascending) // _MOST_POINTS)
    points = [(v, 100 * (i + 1) / len(ascending)) for i, v in enumerate(ascending)]
    shown = [(ascending[0], 0.0), *points[::step], points[-1]]
    axes = _Axes(0, ascending[-1], 0, 100)
    yield from _frame(title, "", axes, suffix="%")
    yield axes.line(shown, stairs=True)
    for p in PERCENTILES:
        x, y = axes.place(
            ascending[min(len(ascending) - 1, math.ceil(p / 100 * len(ascending)) - 1)], p
        )
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_MARK}"/>'
        yield f'<text x="{x + 6:.1f}" y="{y + 14:.1f}" fill="{_MARK}">p{p}</text>'


def _curve(title: str, below: str, points: Points) -> Iterator[str]:
    if not points:
        yield from _frame(title, "none")
        return
    axes = _Axes(0, points[-1][0], 0, max(y for _, y in points))
    yield from _frame(title, below, axes)
    yield axes.line(points, stairs=True)


def _written(outcomes: Sequence[Outcome]) -> Points:
    """Draw tokens per second in 60 intervals; a request's tokens are spread over its pieces."""
    come = [
        (when, o.output_tokens / len(o.pieces))
        for o in outcomes
        if o.error is None
        for when in o.pieces
    ]
    if not come:
        return []
    begin, end = min(o.due for o in outcomes), max(o.ended for o in outcomes)
    length = max((end - begin) / 60, 1e-9)
    bins = [0.0] * 61
    for when, tokens in come:
        bins[int((when - begin) / length)] += tokens
    bins[59] += bins.pop()  # a piece at the very end belongs to the last interval
    return [(i * length, count / length) for i, count in enumerate(bins)] + [(60 * length, 0.0)]


def _in_flight(outcomes: Sequence[Outcome]) -> Points:
    if not outcomes:
        return []
    begin = min(o.due for o in outcomes)
    changes = sorted([(o.sent, 1) for o in outcomes] + [(o.ended, -1) for o in outcomes])
    points, now = [(0.0, 0.0)], 0
    for when, change in changes:
        now += change
        points.append((when - begin, float(now)))
    step = max(1, len(points) // _MOST_POINTS)
    return [*points[::step], points[-1]]


class _Axes:
    """Maps values to coordinates in a panel."""

    def __init__(self, left: float, right: float, bottom: float, top: float) -> None:
        self.x_ticks, self.y_ticks = _ticks(left, right), _ticks(bottom, top)
        self._left, self._right = left, max(right, self.x_ticks[-1])
        self._bottom, self._top = bottom, max(top, self.y_ticks[-1])

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self._left) / (self._right - self._left)
        up = (y - self._bottom) / (self._top - self._bottom)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM),
        )

    def line(self, points: Points, *, stairs: bool) -> str:
        """Draw a curve; with `stairs` each value lasts until the next one."""
        path = "M{:.1f} {:.1f}".format(*self.place(*points[0]))
        for x, y in points[1:]:
            to_x, to_y = self.place(x, y)
            path += f"H{to_x:.1f}V{to_y:.1f}" if stairs else f"L{to_x:.1f} {to_y:.1f}"
        return f'<path d="{path}" fill="none" stroke="{_CURVE}" stroke-width="1.8"/>'


def _frame(title: str, below: str, axes: _Axes | None = None, suffix: str = "") -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="{_TOP - 12}" font-size="13">{escape(title)}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>'
    if axes is None:
        return
    low, high = _HEIGHT - _BOTTOM, _TOP
    for value in axes.x_ticks:
        x, _ = axes.place(value, 0)
        yield f'<path d="M{x:.1f} {low}V{high}" stroke="{_FAINT}"/>'
        yield f'<text x="{x:.1f}" y="{low + 16}" text-anchor="middle">{value:,g}</text>'
    for value in axes.y_ticks:
        _, y = axes.place(0, value)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_FAINT}"/>'
        label = f"{value:,g}{suffix}"
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten) from `low` to `high` or more."""
    width = (high - low) or 1.0
    rough = width / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    return [low + i * step for i in range(math.ceil(width / step - 1e-9) + 1)]
