"""Attention of prompts in bfloat16, by the tiles of `bf16_tiles`.

A task has up to 16 rows of a sequence and all query heads of a KV head, whose queries are the rows
of A: query head s of row r is 16 s + r. In each block of tokens the pages of keys are panels of B,
then its values are, with tokens along K: what weights are multiplied by. The softmax between the
two is that of attention_block.py, in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import AttentionSpec

from . import vector as v
from .attention_block import as_float, softmax
from .attention_state import BLOCK, PAGE, Cache, QueryGroup, Span, Sums, joined
from .bf16_tiles import BLOCK as QUERIES
from .bf16_tiles import ROWS, Bf16Rows, Strip, rounded
from .int_layout import GROUP
from .isa import Isa
from .tiles import PANEL

LEAST_STEP = 64  # rows of a step that has prompts
LEAST = 4  # rows of a sequence that pay for the conversion of keys and values


def supported(spec: AttentionSpec, isa: Isa) -> bool:
    """Return whether the CPU has matrix units, and heads and cache fit them."""
    return isa.amx and spec.head_dim % GROUP == 0 and not spec.kv_dtype.startswith("int")


@dataclass(frozen=True, slots=True)
class Bf16Tile:
    """Buffers of a task."""

    spec: AttentionSpec
    isa: Isa
    cache: Cache
    queries: Bf16Rows
    weights: Bf16Rows  # of the softmax, over the tokens of a block
    keys: Strip  # a panel for each page of a block; its sums are scores
    values: Strip
    scores: Any  # float32 [16, 256], of the rows of a query head
    factors: Any  # float32 [2, 16], of these rows, see `softmax`
    all_factors: Any  # float32 [2, queries]

    @classmethod
    def of(cls, spec: AttentionSpec, isa: Isa, cache: Cache) -> Bf16Tile:
        """Allocate the buffers."""
        e, queries = spec.head_dim, spec.heads // spec.kv_heads * ROWS
        blocks = -(-queries // QUERIES)
        return cls(
            spec=spec,
            isa=isa,
            cache=cache,
            queries=Bf16Rows.of(blocks, e),
            weights=Bf16Rows.of(blocks, BLOCK),
            keys=Strip.of(BLOCK // PAGE, e // GROUP, blocks),
            values=Strip.of(e // PANEL, BLOCK // GROUP, blocks),
            scores=T.sblock_alloc_buffer((ROWS, BLOCK), "float32"),
            factors=T.sblock_alloc_buffer((2, ROWS), "float32"),
            all_factors=T.sblock_alloc_buffer((2, queries), "float32"),
        )

    @property
    def shared(self) -> int:
        """Return the number of query heads."""
        return self.spec.heads // self.spec.kv_heads

    def place(self, slot: Any, first: Any, kv_head: Any) -> tuple[Any, Any]:
        """Return row and query head of a slot of the sums; `first`: the first row."""
        return first + slot % ROWS, kv_head * self.shared + slot // ROWS

    def take(self, first: Any, rows: Any, kv_head: Any) -> None:
        """Emit the rounding of the queries of `rows` rows."""
        with T.serial(self.shared) as s, T.serial(rows) as r, T.sblock("query"):
            T.reads()
            T.writes()
            row, head = self.place(s * ROWS + r, first, kv_head)
            query = self.cache.Q
            self.queries.store_row(
                lambda at: query[row, head, at], self.spec.head_dim, s * ROWS + r
            )

    def visit(self, sums: Sums, group: QueryGroup, block: Any, table: Any) -> None:
        """Emit the update of `sums` by a block; `group` has the rows and the first query head."""
        with T.sblock("visit"):
            T.reads()
            T.writes()
            pages = v.let(table + T.Cast("int32", block) * (BLOCK // PAGE))
            seen = Span.of(self.spec, self.cache, group, block)
            blocks = self.queries.blocks

            def page(number: Any) -> Any:
                within = T.max(T.min(number, seen.pages - 1), seen.page)
                return v.let(self.cache.Ids[pages + within])

            def unpack_keys(p: Any, g: Any, store: Any) -> None:
                place = page(p)
                for i in range(ROWS):
                    store(i, *(self._key(place, group, g * GROUP + 2 * i + odd) for odd in (0, 1)))

            def unpack_values(p: Any, g: Any, store: Any) -> None:
                for half in (0, 1):
                    place = page(2 * g + half)
                    for i in range(ROWS // 2):
                        token = (2 * g + half) * PAGE + 2 * i
                        both = (self._value(place, group, p, token + odd, seen) for odd in (0, 1))
                        store(half * ROWS // 2 + i, *both)

            self.keys.multiply(self.queries, 0, blocks, unpack_keys)
            with T.serial(self.shared) as s, T.sblock("head"):
                T.reads()
                T.writes()
                self._weights(sums, group, s, seen)
            self.values.multiply(self.weights, 0, blocks, unpack_values)
            with T.serial(self.shared) as s, T.serial(group.rows) as r, T.sblock("merge"):
                T.reads()
                T.writes()
                slot = s * ROWS + r
                before, here = (self.all_factors[i, slot] for i in (0, 1))
                for p in range(self.values.panels):
                    span, own = v.span(p * PANEL, PANEL), self.values.sum(slot, p)
                    merged = joined(sums.out[slot, span], before, own, here, PANEL, self.isa)
                    T.buffer_store(sums.out, merged, [slot, span])

    def _weights(self, sums: Sums, group: QueryGroup, s: Any, seen: Span) -> None:
        """Emit the softmax of the scores of a query head, and the rounding of its weights."""
        with T.serial(group.rows) as r, T.serial(BLOCK // PAGE) as p:
            inside = T.broadcast(T.And(p >= seen.page, p < seen.pages), PAGE)
            score = T.Select(inside, self.keys.sum(s * ROWS + r, p), v.splat(0.0, PAGE))
            T.buffer_store(self.scores, score, [r, v.span(p * PAGE, PAGE)])
        own = QueryGroup(
            rows=group.rows,
            heads=1,
            row=group.row,
            head=group.head + s,
            kv_head=group.kv_head,
            slot=s * ROWS,
            stride=1,
        )
        softmax(self.spec, self.isa, self.cache, sums, own, seen, self.scores, self.factors)
        with T.serial(group.rows) as r, T.sblock("round"):
            T.reads()
            T.writes()
            slot = s * ROWS + r
            self.weights.store_row(lambda at: self.scores[r, at], BLOCK, slot)
            for i in (0, 1):
                T.buffer_store(self.all_factors, self.factors[i, r], [i, slot])

    def _key(self, page: Any, group: QueryGroup, element: Any) -> Any:
        stored = self.cache.Pages[page, 0, group.kv_head, 0, v.span(element * PAGE, PAGE)]
        return rounded(as_float(stored, PAGE, self.isa))

    def _value(self, page: Any, group: QueryGroup, panel: Any, token: Any, seen: Span) -> Any:
        """Emit a token's value; zeros for one that no row attends to: it may be infinite."""
        at = v.span(T.floormod(token, PAGE) * self.spec.head_dim + panel * PANEL, PANEL)
        value = as_float(self.cache.Pages[page, 1, group.kv_head, 0, at], PANEL, self.isa)
        inside = T.And(token >= seen.start, token < seen.seen)
        return rounded(v.let(T.Select(T.broadcast(inside, PANEL), value, v.splat(0.0, PANEL))))
