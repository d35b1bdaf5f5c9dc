"""Asks macOS and Windows for the memory that is free; Linux tells it in /proc."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

_VM_INFO = 4  # HOST_VM_INFO64, of host_statistics64


class _VmStatistics(ctypes.Structure):
    """The first fields of Mach's vm_statistics64, in pages; free_count has the speculative ones."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("free", "active", "inactive", "wired")),
        ("counters", ctypes.c_uint64 * 9),
        *((name, ctypes.c_uint32) for name in ("purgeable", "speculative")),
    )


class _MemoryStatus(ctypes.Structure):
    """Windows' MEMORYSTATUSEX, in bytes."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("total", "available", "total_file", "file")),
        *((name, ctypes.c_uint64) for name in ("total_virtual", "virtual", "extended")),
    )


def available() -> int | None:
    """Return the bytes that programs may still take; None if the system does not tell here.

    On macOS these are the free and the inactive pages, on Windows the available physical memory,
    but no more than what may still be committed.
    """
    if sys.platform == "darwin":
        return of_macos(ctypes.CDLL(None), os.sysconf("SC_PAGE_SIZE"))
    if sys.platform == "win32":
        return of_windows(ctypes.WinDLL("kernel32"))
    return None


def of_macos(system: Any, page_bytes: int) -> int | None:
    """Return the free bytes that libSystem's Mach calls tell."""
    statistics = _VmStatistics()
    count = ctypes.c_uint32(ctypes.sizeof(statistics) // 4)
    status = system.host_statistics64(
        system.mach_host_self(), _VM_INFO, ctypes.byref(statistics), ctypes.byref(count)
    )
    return (statistics.free + statistics.inactive) * page_bytes if status == 0 else None


def of_windows(kernel: Any) -> int | None:
    """Return the free bytes that kernel32 tells."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return min(int(status.available), int(status.file))
