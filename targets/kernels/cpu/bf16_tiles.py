"""Products in bfloat16 by the matrix units of x86 CPUs (AMX), with float32 sums in tiles.

A tile register holds 16 rows of 64 bytes. `tdpbf16ps` adds to a tile of float32 [16 rows, 16
columns] the products of A, 16 rows of 32 bfloat16, and B, whose row i has the elements 2i and
2i + 1 of K for each of 16 columns: Intel's Architecture Instruction Set Extensions Programming
Reference, chapter 3. So a group of 32 of K and a panel of 16 columns are one tile of B. Four sums
of two tiles of rows and two panels share their loads.

A task has a strip of panels. For each chunk of K it dequantizes two of them at a time, 16 KiB that
stay in L1, multiplies up to `TOGETHER` blocks of rows by these, and keeps the sums in L2 from chunk
to chunk. The rows' next chunk is prefetched into L2: a core reads tiles from L3 at a sixth of the
speed. Rows are rounded to bfloat16 once for all tasks.

On an Emerald Rapids, products reach 2.3 TFLOP/s of 2.9 with rows in L2 and these 16 KiB in L1; 0.7
with 32 KiB, which L1 cannot keep along with the rows; 0.45 with rows in L3.
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
WIDTH = 16  # panels of a strip
CHUNK = 8  # groups of K that are dequantized together: 16 KiB of two panels
TOGETHER = 16  # blocks of rows whose chunk and sums stay in L2: 256 and 512 KiB
_BYTES = 64  # of a tile's row
_SUMS = ((0, 0), (0, 1), (1, 0), (1, 1))  # tile of rows, panel: the registers 0 to 3
_TERNARY = "llvm.x86.avx512.pternlog.d.512"  # any function of three bits, by its table
_A, _B = 4, 6  # first registers of rows and of weights
# function (panel, group, store): emits `store(i, even, odd)` for each pair i of a group's weights,
# int32x16 whose upper halves are the elements 2i and 2i + 1 in bfloat16, see `rounded`
Unpack = Callable[[Any, Any, Callable[[int, Any, Any], None]], None]


def instruction(name: str, *arguments: Any) -> None:
    """Emit an instruction of the matrix unit; tests replace it by a call of an emulator."""
    T.evaluate(T.call_llvm_intrin("void", f"llvm.x86.{name}", *arguments))


@dataclass(frozen=True, slots=True)
class Bf16Rows:
    """Rows of activations in bfloat16, as tiles of A.

    A chunk of all blocks is contiguous: at a stride of a power of two, as whole rows have, blocks
    would evict each other from L2.
    """

    tiles: Any  # int16 [chunks, blocks, CHUNK, 2, 16, 32]
    groups: int  # of K

    @classmethod
    def of(cls, blocks: Any, columns: int) -> Bf16Rows:
        """Allocate the tiles of blocks of 32 rows of `columns` elements."""
        total = groups(columns)
        shape = (-(-total // CHUNK), blocks, min(CHUNK, total), 2, ROWS, GROUP)
        return cls(T.sblock_alloc_buffer(shape, "int16"), total)

    @property
    def blocks(self) -> Any:
        """Return the number of blocks of 32 rows."""
        return self.tiles.shape[1]

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
        bits = T.Cast("int16x16", T.shift_right(rounded(values), _each(16)))
        half, place = T.floormod(T.floordiv(row, ROWS), 2), T.floormod(row, ROWS)
        at = [T.floordiv(g, CHUNK), T.floordiv(row, BLOCK), T.floormod(g, CHUNK), half, place]
        T.buffer_store(self.tiles, bits, [*at, v.span(first, PANEL)])


@dataclass(frozen=True, slots=True)
class Strip:
    """The buffers of a task: a chunk of two panels' weights, and the sums of its rows."""

    weights: Any  # int32 [CHUNK, 2, 16, 16]: tiles of B
    sums: Any  # float32 [panels / 2, blocks of rows, 4, 16, 16]

    @classmethod
    def of(cls, panels: int, total: int, blocks: Any) -> Strip:
        """Allocate the buffers of `panels` panels, an even number, with `total` groups of K."""
        weights = (min(CHUNK, total), 2, ROWS, PANEL)
        sums = (panels // 2, blocks, len(_SUMS), ROWS, PANEL)
        return cls(T.sblock_alloc_buffer(weights, "int32"), T.sblock_alloc_buffer(sums, "float32"))

    @property
    def panels(self) -> int:
        """Return the number of panels."""
        return 2 * int(self.sums.shape[0])

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
            with T.serial(self.panels // 2) as q, T.sblock("panels"):
                T.reads()
                T.writes()
                with T.serial(2) as p, T.serial(count) as g, T.sblock("unpack"):
                    T.reads()
                    T.writes()
                    unpack(2 * q + p, chunk * CHUNK + g, partial(self._store, p, g))
                with T.serial(blocks) as i, T.sblock("block"):
                    T.reads()
                    T.writes()
                    self._block((q, i), rows.tiles, [chunk, first + i], count)
        instruction("tilerelease")

    def _store(self, p: Any, g: Any, i: int, even: Any, odd: Any) -> None:
        """Emit the store of row i of the tile of a panel and group."""
        # of 32 bits without a sign: a shift fills them with zeros
        shifted = T.shift_right(T.reinterpret("uint32x16", even), T.broadcast(T.uint32(16), PANEL))
        low = T.reinterpret("int32x16", shifted)
        # low | odd & mask; of the three operations LLVM makes a shuffle of three instructions
        both = T.call_llvm_pure_intrin(
            "int32x16", _TERNARY, low, odd, _each(-(2**16)), T.int32(0xF8)
        )
        T.buffer_store(self.weights, both, [g, p, i, v.span(0, PANEL)])

    def _block(self, at: tuple[Any, Any], A: Any, tiles: list[Any], count: Any) -> None:
        """Emit the sums of 32 rows and two panels over a chunk of `count` groups.

        `at`: place of the sums, two panels and block; `tiles`: chunk and block of the tiles A.
        """
        chunk, block = tiles
        chunks = int(A.shape[0])
        with T.If(chunk == 0):
            with T.Then():
                for i in range(len(_SUMS)):
                    instruction("tilezero", T.int8(i))
            with T.Else():
                for i in range(len(_SUMS)):
                    _tile("tileloadd64", i, self.sums, [*at, i])
        share = 2 * ROWS // (self.panels // 2)  # lines of the next chunk that a group prefetches
        following = T.floormod(chunk + 1, chunks)
        with T.serial(count) as g:
            for i in range(share if chunks > 1 else 0):
                line = (at[0] * CHUNK + g) * share + i
                v.prefetch(T.address_of(A[following, block, 0, 0, line, 0]), v.L2)
            for half in (0, 1):
                _tile("tileloadd64", _A + half, A, [*tiles, g, half])
                _tile("tileloadd64", _B + half, self.weights, [g, half])
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


def rounded(values: Any) -> Any:
    """Emit the bits of float32x16 whose upper halves are the nearest bfloat16, halves away."""
    return T.reinterpret("int32x16", values) + _each(0x8000)


def _each(n: int) -> Any:
    return T.broadcast(T.int32(n), PANEL)
