"""Kernels of Viterbi's algorithm for `compiled.py`.

Each lane of a vector belongs to a group of its own. A step over a column keeps for each state the
cost of the best path into it, and the branch that it came by: the lowest bits of a cost, which is
not negative, become the branch, so that the least one has its own with it. The branches of all
states are one word of 32 bits, which the way back reads.

With feedback there is for each state what makes up in each later column for the errors of its path.
A step chooses these sums from those of the states before it, a lane at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops.blocks import TRELLIS, WINDOW_BITS

from .vectors import Expr, Parameter, SimdVectors, each, function

_INFINITY = 0x7F800000  # bits of the float32
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TrellisKernels:
    """The kernels for integers of some bits in groups of some weights."""

    v: SimdVectors
    bits: int
    group: int

    @property
    def branches(self) -> int:
        """Return the number of integers."""
        return 1 << self.bits

    @property
    def states(self) -> int:
        """Return the number of states."""
        return len(TRELLIS) >> self.bits

    def path(self) -> Any:
        """Return the kernel (w [group, n], scale [n], importance [group], windows [group, n])."""

        def emit(b: dict[str, Any]) -> None:
            search = _Search(self)

            def vector(i: Expr) -> None:
                at = self.v.span(i)
                search.scaled(b["scale"][at])
                search.forward(b["importance"], lambda j: b["w"][j, at])
                search.back(lambda j, window: self._store(b["windows"], j, at, window))

            each(b["n"] // self.v.lanes, vector)

        return function(self._parameters(), emit)

    def passed(self) -> Any:
        """Return the kernel (w, scale, importance, own, ratios [group, group], windows).

        The parameters are those of `path` and the fields of `trellis.Feedback`.
        """

        def emit(b: dict[str, Any]) -> None:
            search, errors = _Search(self), _Errors(self)

            def vector(i: Expr) -> None:
                at = self.v.span(i)
                search.scaled(b["scale"][at])
                errors.clear()

                def then(j: Expr, came: list[Any]) -> None:
                    errors.step(j, came, search.table, b["own"][j, at], b["ratios"])

                search.forward(b["importance"], lambda j: b["w"][j, at], errors.sum, then)
                search.back(lambda j, window: self._store(b["windows"], j, at, window))

            each(b["n"] // self.v.lanes, vector)

        *before, windows = self._parameters()
        own = ("own", (self.group, "n"), "float32")
        ratios = ("ratios", (self.group, self.group), "float32")
        return function([*before, own, ratios, windows], emit)

    def _parameters(self) -> list[Parameter]:
        return [
            ("w", (self.group, "n"), "float32"),
            ("scale", ("n",), "float32"),
            ("importance", (self.group,), "float32"),
            ("windows", (self.group, "n"), "uint8"),
        ]

    def _store(self, windows: Any, j: Expr, at: Expr, window: Expr) -> None:
        T.buffer_store(windows, self.v.cast(window, "uint8"), [j, at])

    def ratios(self) -> Any:
        """Return the kernel (unit [group, n], tried [ways, n], importance [group], ratio [n]).

        It has one parameter more before the result, the values [64] of windows.
        """
        v = self.v

        def emit(b: dict[str, Any]) -> None:
            search, windows = _Search(self), v.buffer(self.group, "int32")
            sums = v.buffer(self.group), v.buffer(self.group)

            def vector(i: Expr) -> None:
                at = v.span(i)
                best, ratio = v.let(v.of(0.0)), v.let(v.of(0.0))

                def way(k: Expr) -> None:
                    search.scaled(b["tried"][k, at])
                    search.forward(b["importance"], lambda j: b["unit"][j, at])
                    search.back(lambda j, w: v.store(windows, v.cast(w, "int32"), j))

                    def products(j: Expr) -> None:
                        value, weight = v.buffer(1), v.of(b["importance"][j])
                        for lane in range(v.lanes):
                            index = windows[j * v.lanes + lane]
                            T.buffer_store(value, b["values"][index], [lane])
                        v.store(sums[0], b["unit"][j, at] * v.load(value) * weight, j)
                        v.store(sums[1], v.load(value) * v.load(value) * weight, j)

                    each(self.group, products)
                    self._fold(sums)
                    self._keep(v.load(sums[0]), v.load(sums[1]), best, ratio)

                each(b["ways"], way)
                T.buffer_store(b["ratio"], v.load(ratio), [at])

            each(b["n"] // v.lanes, vector)

        return function(
            [
                ("unit", (self.group, "n"), "float32"),
                ("tried", ("ways", "n"), "float32"),
                ("importance", (self.group,), "float32"),
                ("values", (len(TRELLIS),), "float32"),
                ("ratio", ("n",), "float32"),
            ],
            emit,
        )

    def _fold(self, buffers: Sequence[Any]) -> None:
        """Emit the sums of the rows in the order of `search.folded`; first rows become them."""
        rows = self.group
        while rows > 1:
            rows //= 2

            def add(i: Expr, rows: int = rows) -> None:
                for buffer in buffers:
                    total = self.v.load(buffer, i) + self.v.load(buffer, i + rows)
                    self.v.store(buffer, total, i)

            each(rows, add)

    def _keep(self, a: Expr, squares: Expr, best: Any, ratio: Any) -> None:
        """Emit the change of `best` and `ratio` where a^2 / squares is larger than `best`."""
        v, zero = self.v, self.v.of(0.0)
        gain = v.let(T.Select(squares > zero, a * a / squares, zero))
        better = v.load(gain) > v.load(best)
        quotient = T.Select(squares > zero, a / squares, zero)
        v.store(ratio, T.Select(better, quotient, v.load(ratio)))
        v.store(best, T.Select(better, v.load(gain), v.load(best)))


class _Search:
    """The best paths into each state."""

    def __init__(self, own: TrellisKernels) -> None:
        v = own.v
        self._own, self._mask = own, own.branches - 1
        self.table = v.buffer(len(TRELLIS))  # values of windows
        self._costs, self._aims = v.buffer(own.states), v.buffer(own.states)
        self._came = v.buffer(own.group, "uint32")

    def scaled(self, scale: Expr) -> None:
        """Emit the values of all windows with a scale."""
        v = self._own.v
        known = v.let(scale)
        for window, value in enumerate(TRELLIS):
            v.store(self.table, v.of(float(value)) * v.load(known), window)

    def forward(
        self,
        importance: Any,
        aim: Callable[[Expr], Expr],
        added: Callable[[int, Expr], Expr] | None = None,
        then: Callable[[Expr, list[Any]], None] | None = None,
    ) -> None:
        """Emit the steps over all columns.

        Args:
            importance: of the columns.
            aim: returns what is to be rounded in a column.
            added: returns what the paths into a state add to it.
            then: emits what follows a step, for the branches into each state, in the lowest bits.
        """
        own, v = self._own, self._own.v
        for state in range(own.states):
            start = v.of(0.0) if state == 0 else v.bits(v.of(_INFINITY, "int32"), "float32")
            v.store(self._costs, start, state)

        def step(j: Expr) -> None:
            weight, same = v.let(v.of(importance[j])), v.let(aim(j))
            for state in range(own.states if added else 0):
                assert added
                v.store(self._aims, v.load(same) + added(state, j), state)
            least = [v.let(v.of(_MOST, "int32"), "int32") for _ in range(own.states)]
            # The branches are a loop: in one block, LLVM would spill most registers.
            each(
                own.branches,
                lambda branch: self._branch(branch, None if added else same, weight, least),
            )
            self._extend(j, least)
            if then:
                then(j, least)

        each(own.group, step)

    def _branch(self, branch: Expr, same: Any, weight: Any, least: list[Any]) -> None:
        """Emit the costs of a branch into each state; `same`: what all paths have to round."""
        own, v = self._own, self._own.v
        number = v.let(v.of(T.Cast("int32", branch), "int32"), "int32")
        for state in range(own.states):
            # windows that end alike lead into one state
            origin = branch * (own.states >> own.bits) + (state >> own.bits)
            value = v.load(self.table, branch * own.states + state)
            wrong = v.let(
                (v.load(same) if same is not None else v.load(self._aims, origin)) - value
            )
            cost = v.load(wrong) * v.load(wrong) * v.load(weight) + v.load(self._costs, origin)
            cleared = v.bits(cost, "int32") & v.of(~self._mask, "int32")
            marked = v.let(cleared | v.load(number), "int32")
            v.store(least[state], T.min(v.load(least[state]), v.load(marked)))

    def _extend(self, j: Expr, least: list[Any]) -> None:
        """Emit the costs after column j, and the word of the branches."""
        own, v = self._own, self._own.v
        word: Expr = v.of(0, "uint32")
        for state, marked in enumerate(least):
            came = v.bits(v.load(marked) & v.of(self._mask, "int32"), "uint32")
            word = word | T.shift_left(came, v.of(state * own.bits, "uint32"))
            cost = v.bits(v.load(marked) & v.of(~self._mask, "int32"), "float32")
            v.store(self._costs, cost, state)
        v.store(self._came, word, j)

    def back(self, emit: Callable[[Expr, Expr], None]) -> None:
        """Emit `emit(column, window)` for the best path, from its end."""
        own, v = self._own, self._own.v
        best, at = v.let(v.load(self._costs)), v.let(v.of(0, "uint32"), "uint32")
        for state in range(1, own.states):
            cost = v.load(self._costs, state)
            better = cost < v.load(best)
            v.store(at, T.Select(better, v.of(state, "uint32"), v.load(at)))
            v.store(best, T.Select(better, cost, v.load(best)))

        def step(i: Expr) -> None:
            j = own.group - 1 - i
            shift = v.load(at) * v.of(own.bits, "uint32")
            branch = T.shift_right(v.load(self._came, j), shift) & v.of(self._mask, "uint32")
            window = v.let(branch * v.of(own.states, "uint32") | v.load(at), "uint32")
            emit(j, v.load(window))
            v.store(at, T.shift_right(v.load(window), v.of(own.bits, "uint32")))

        each(own.group, step)


class _Errors:
    """What makes up in each column for the errors of the path into each state."""

    def __init__(self, own: TrellisKernels) -> None:
        self._own = own
        self._sums = own.v.buffer(own.group * own.states)

    def clear(self) -> None:
        """Emit the start, where there are no errors."""
        v = self._own.v
        each(self._own.group * self._own.states, lambda i: v.store(self._sums, v.of(0.0), i))

    def sum(self, state: int, column: Expr) -> Expr:
        """Return what the path into a state adds to a column."""
        return self._own.v.load(self._sums, column * self._own.states + state)

    def step(self, j: Expr, came: list[Any], table: Any, target: Expr, ratios: Any) -> None:
        """Emit the sums of the columns after j, whose branches into each state are `came`."""
        own, v = self._own, self._own.v
        aim = v.let(target)

        def chosen_value(state: int) -> Expr:  # the value of the window that leads into a state
            windows = [v.load(table, n * own.states + state) for n in range(own.branches)]
            return self._chosen(came[state], windows)

        errors = [v.let(v.load(aim) - chosen_value(state)) for state in range(own.states)]

        def column(i: Expr) -> None:
            k = j + 1 + i
            ratio = v.let(v.of(ratios[j, k]))
            before = [v.let(self.sum(state, k)) for state in range(own.states)]
            for state, error in enumerate(errors):
                origins = [(n * own.states + state) >> own.bits for n in range(own.branches)]
                path = self._chosen(came[state], [v.load(before[origin]) for origin in origins])
                total = path + v.load(ratio) * v.load(error)
                v.store(self._sums, total, k * own.states + state)

        each(own.group - 1 - j, column)

    def _chosen(self, branch: Any, among: list[Expr]) -> Expr:
        """Return of some vectors, in each lane, that of its branch."""
        v, bit = self._own.v, len(among) // 2
        if not bit:
            return among[0]
        low, high = self._chosen(branch, among[:bit]), self._chosen(branch, among[bit:])
        known = v.load(branch) & v.of(bit, "int32")
        return T.Select(known != v.of(0, "int32"), high, low)


assert WINDOW_BITS == 6, "the branches of all states are 32 bits at most"
