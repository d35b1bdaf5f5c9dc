"""Checks the threads and shared memory of a model's kernels against the device's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import DataType, IRModule, tirx

from wherry.errors import UsageError, listing
from wherry.targets.target import TargetPreset

# Fields of TIR statements that contain other statements.
_PARTS = ("body", "block", "then_case", "else_case", "init")


@dataclass(frozen=True, slots=True)
class Demand:
    """The resources that one thread block of a kernel needs."""

    threads: int
    shared_bytes: int
    dynamic_bytes: int = 0  # bytes of dynamic shared memory among `shared_bytes`


def require_limits(mod: IRModule, target: TargetPreset) -> int:
    """Check every scheduled PrimFunc against the target's limits.

    Returns:
        Returns the most dynamic shared memory that a launch asks for, bytes; 0: none.

    Raises:
        UsageError: lists all kernels that exceed the target's blocks.
    """
    limits: Mapping[str, Any] = target.device
    if "max_shared_memory_per_block" not in limits:
        return 0  # CPU targets have no thread blocks to check
    threads = int(limits["max_num_threads"])
    shared = int(limits["max_shared_memory_per_block"])
    most = max(shared, target.optin_shared_bytes)
    problems: list[str] = []
    dynamic = 0
    for var, func in mod.functions_items():
        for demand in demands(func.body) if isinstance(func, tirx.PrimFunc) else ():
            if demand.threads > threads:
                problems.append(f"{var.name_hint}: {demand.threads} threads, not {threads}")
            if demand.dynamic_bytes:
                dynamic = max(dynamic, demand.shared_bytes)
            has = most if demand.dynamic_bytes else shared
            if demand.shared_bytes > has:
                problems.append(
                    f"{var.name_hint}: {demand.shared_bytes} bytes of shared memory, not {has}"
                )
    if problems:
        kind = target.name.partition(":")[0]
        smaller = "" if kind == target.name else f"--target {kind}, whose blocks are larger, or "
        raise UsageError(
            f"This model's kernels take more than a block of target {target.name} has:\n"
            f"{listing(problems)}\nType: {smaller}--target cpu"
        )
    return dynamic


def demands(stmt: Any, shared: int = 0, dynamic: int = 0) -> Iterator[Demand]:
    """Yield the block resources of each kernel that a scheduled statement launches.

    Args:
        stmt: body of a PrimFunc.
        shared: bytes of shared memory that enclosing statements allocate.
        dynamic: bytes of dynamic shared memory among `shared`.
    """
    if _tag(stmt):
        threads, own, own_dynamic = _block(stmt, 1)
        yield Demand(threads, shared + own, dynamic + own_dynamic)
        return
    # An allocation outside of the thread loops belongs to every kernel inside of them.
    own, own_dynamic = _allocated(stmt)
    for part in _parts(stmt):
        yield from demands(part, shared + own, dynamic + own_dynamic)


def _block(stmt: Any, threads: int) -> tuple[int, int, int]:
    """Return (threads, shared bytes, dynamic shared bytes) of a thread block below `stmt`.

    `threads` is the number of threads that enclosing loops bind.
    """
    tag = _tag(stmt)
    if tag.startswith("threadIdx") and isinstance(stmt.extent, tirx.IntImm):
        threads *= int(stmt.extent)
    below = [_block(part, threads) for part in _parts(stmt)]
    most = max((t for t, _, _ in below), default=threads)
    own, dynamic = _allocated(stmt)
    return most, own + sum(s for _, s, _ in below), dynamic + sum(a for _, _, a in below)


def _tag(stmt: Any) -> str:
    binding = getattr(stmt, "thread_binding", None)
    return "" if binding is None else str(binding.thread_tag)


def _allocated(stmt: Any) -> tuple[int, int]:
    """Return (shared bytes, dynamic shared bytes) that this one statement allocates."""
    total = dynamic = 0
    for buffer in getattr(stmt, "alloc_buffers", ()):
        scope = str(buffer.scope())
        if scope.startswith("shared"):
            extents = prod(int(extent) for extent in buffer.shape)
            size = extents * DataType(str(buffer.dtype)).itemsize
            total += size
            dynamic += size if scope == "shared.dyn" else 0
    return total, dynamic


def _parts(stmt: Any) -> list[Any]:
    parts = [getattr(stmt, name, None) for name in _PARTS]
    return [*(p for p in parts if p is not None), *getattr(stmt, "seq", ())]
