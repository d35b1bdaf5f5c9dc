"""Products in bfloat16 by the matrix units of x86 CPUs (AMX), with float32 sums in tiles.

A tile register holds 16 rows of 64 bytes. `tdpbf16ps` adds to a tile of float32 [16 rows, 16
columns] the products of A, 16 rows of 32 bfloat16, and B, whose row i has the elements 2i and
2i + 1 of K for each of 16 columns: Intel's Architecture Instruction Set Extensions Programming
Reference, chapter 3. So a group of 32 of K and a panel of 16 columns are one tile of B. Four sums
of two tiles of rows and two panels share their loads.

A task has a strip of panels: it dequantizes a chunk of K for all of them once, multiplies all rows
by it, and keeps the sums in memory from chunk to chunk: weights and rows stay in L2 that way, and
the two panels that are multiplied in L1. Rows are rounded to bfloat16 once for all tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .int_layout import GROUP, groups
from .tiles import PANEL

ROWS = 16  # of a tile register
BLOCK = 2 * ROWS  # rows that share the loads of B
WIDTH = 8  # panels of a strip
CHUNK = 16  # groups of K that are dequantized together: 32 KiB of two panels
TOGETHER = 8  # blocks of rows whose chunk stays in L2
_BYTES = 64  # of a tile's row
_SUMS = ((0, 0), (0, 1), (1, 0), (1, 1))  # tile of rows, panel: the registers 0 to 3
_A, _B = 4, 6  # first registers of rows and of weights
# function (panel, group, store): emits `store(i, even, odd)` for each pair i of a group's weights,
# float32x16 of the elements 2i and 2i + 1
Unpack = Callable[[Any, Any, Callable[[int, Any, Any], None]], None]


def instruction(name: str, *arguments: Any) -> None:
    """Emit an instruction of the matrix unit; tests replace it by a call of an emulator."""
    T.evaluate(T.call_llvm_intrin("void", f"llvm.x86.{name}", *arguments))


@dataclass(frozen=True, slots=True)
class Bf16Rows:
    """Rows of activations in bfloat16, as tiles of A."""

    tiles: Any  # int16 [blocks, G, 2, 16, 32]

    @classmethod
    def of(cls, blocks: Any, columns: int) -> Bf16Rows:
        """Allocate the tiles of blocks of 32 rows of `columns` elements."""
        shape = (blocks, groups(columns), 2, ROWS, GROUP)
        return cls(T.sblock_alloc_buffer(shape, "int16"))

    @property
    def groups(self) -> int:
        """Return the number of groups of K."""
        return int(self.tiles.shape[1])

    def store_row(self, read: Callable[[Any], Any], k: int, row: Any) -> None:
        """Emit the rounding of a row of `k` float32, with zeros beyond; `read(index)` reads it."""
        if k >= GROUP:
            with T.serial(k // GROUP) as g, T.sblock("round"):
                T.reads()
                T.writes()
                for half in (0, PANEL):
                    self._store(row, g, half, read(v.span(g * GROUP + half, PANEL)))
        if k % GROUP:
            rest = T.sblock_alloc_buffer((GROUP,), "float32")
            T.buffer_store(rest, v.splat(0.0, GROUP), [v.span(0, GROUP)])
            with T.serial(k % GROUP) as i:
                T.buffer_store(rest, read(k // GROUP * GROUP + i), [i])
            for half in (0, PANEL):
                self._store(row, k // GROUP, half, rest[v.span(half, PANEL)])

    def _store(self, row: Any, g: Any, first: int, values: Any) -> None:
        bits = T.Cast("int16x16", T.shift_right(_rounded(values), _each(16)))
        half, place = T.floormod(T.floordiv(row, ROWS), 2), T.floormod(row, ROWS)
        at = [T.floordiv(row, BLOCK), g, half, place, v.span(first, PANEL)]
        T.buffer_store(self.tiles, bits, at)


@dataclass(frozen=True, slots=True)
class Strip:
    """The buffers of a task: a chunk of its panels' weights, and the sums of its rows."""

    weights: Any  # int32 [panels / 2, CHUNK, 2, 16, 16]: tiles of B
    sums: Any  # float32 [panels / 2, blocks of rows, 4, 16, 16]

    @classmethod
    def of(cls, panels: int, total: int, blocks: Any) -> Strip:
        """Allocate the buffers of `panels` panels, an even number, with `total` groups of K."""
        weights = (panels // 2, min(CHUNK, total), 2, ROWS, PANEL)
        sums = (panels // 2, blocks, len(_SUMS), ROWS, PANEL)
        return cls(T.sblock_alloc_buffer(weights, "int32"), T.sblock_alloc_buffer(sums, "float32"))

    @property
    def panels(self) -> int:
        """Return the number of panels."""
        return 2 * int(self.weights.shape[0])

    def sum(self, row: Any, panel: Any) -> Any:
        """Return the sums of a row, counted from the first of `multiply`: float32x16."""
        half = T.floormod(T.floordiv(row, ROWS), 2)
        at = [T.floordiv(panel, 2), T.floordiv(row, BLOCK), 2 * half + T.floormod(panel, 2)]
        return self.sums[(*at, T.floormod(row, ROWS), v.span(0, PANEL))]

    def multiply(self, rows: Bf16Rows, first: Any, blocks: Any, unpack: Unpack) -> None:
        """Emit the sums of blocks of rows from `first` on; `unpack` counts panels of the strip."""
        total = rows.groups
        configure()
        with T.serial(-(-total // CHUNK)) as chunk:
            count = T.min(total - chunk * CHUNK, CHUNK)
            with T.serial(self.panels) as p, T.serial(count) as g, T.sblock("unpack"):
                T.reads()
                T.writes()
                unpack(p, chunk * CHUNK + g, partial(self._store, p, g))
            with T.serial(T.ceildiv(blocks, TOGETHER)) as some, T.serial(self.panels // 2) as q:
                here = T.min(blocks - some * TOGETHER, TOGETHER)
                with T.serial(here) as i, T.sblock("block"):
                    T.reads()
                    T.writes()
                    block = some * TOGETHER + i
                    tiles = (rows.tiles, [first + block, chunk * CHUNK])
                    self._block((q, block), tiles, chunk, count)
        instruction("tilerelease")

    def _store(self, p: Any, g: Any, i: int, even: Any, odd: Any) -> None:
        """Emit the store of row i of the tile of a panel and group."""
        low = v.let(T.shift_right(v.let(_rounded(even)), _each(16)))
        low = T.bitwise_and(low, _each(0xFFFF))
        high = T.bitwise_and(_rounded(odd), _each(-(2**16)))
        at = [T.floordiv(p, 2), g, T.floormod(p, 2), i, v.span(0, PANEL)]
        T.buffer_store(self.weights, T.bitwise_or(low, high), at)

    def _block(
        self, at: tuple[Any, Any], tiles: tuple[Any, list[Any]], chunk: Any, count: Any
    ) -> None:
        """Emit the sums of 32 rows and two panels over a chunk.

        `at`: place of the sums, two panels and block; `tiles`: buffer, block and first group of A.
        """
        A, (block, group) = tiles
        with T.If(chunk == 0):
            with T.Then():
                for i in range(len(_SUMS)):
                    instruction("tilezero", T.int8(i))
            with T.Else():
                for i in range(len(_SUMS)):
                    _tile("tileloadd64", i, self.sums, [*at, i])
        with T.serial(count) as g:
            for half in (0, 1):
                _tile("tileloadd64", _A + half, A, [block, group + g, half])
                _tile("tileloadd64", _B + half, self.weights, [at[0], g, half])
            for i, (row, panel) in enumerate(_SUMS):
                instruction("tdpbf16ps", T.int8(i), T.int8(_A + row), T.int8(_B + panel))
        for i in range(len(_SUMS)):
            _tile("tilestored64", i, self.sums, [*at, i])


def configure() -> None:
    """Emit the configuration of this thread's tiles: palette 1, eight of 16 rows of 64 bytes.

    Its 64 bytes are the palette, at 16 two bytes for each register's row, at 48 one for its rows.
    """
    layout = T.sblock_alloc_buffer((16,), "int32")
    T.buffer_store(layout, _each(0), [v.span(0, 16)])
    T.buffer_store(layout, T.int32(1), [0])
    T.buffer_store(layout, T.broadcast(T.int32(_BYTES << 16 | _BYTES), 4), [v.span(4, 4)])
    T.buffer_store(layout, T.broadcast(T.int32(ROWS * 0x01010101), 2), [v.span(12, 2)])
    instruction("ldtilecfg", T.address_of(layout[0]))


def _tile(name: str, register: int, buffer: Any, at: list[Any]) -> None:
    """Emit a load or a store of a tile of consecutive rows of 64 bytes."""
    instruction(name, T.int8(register), T.address_of(buffer[(*at, 0, 0)]), T.int64(_BYTES))


def _rounded(values: Any) -> Any:
    """Emit the bits of float32x16 whose upper halves are the nearest bfloat16, halves away."""
    return T.reinterpret("int32x16", values) + _each(0x8000)


def _each(n: int) -> Any:
    return T.broadcast(T.int32(n), PANEL)
