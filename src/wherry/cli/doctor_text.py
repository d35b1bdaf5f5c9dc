"""Formats the report of `wherry doctor` for the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

import click

_NAME = 14  # width of names in columns, enough for android-x86_64
_MARKS = {"ok": "green", "FAIL": "red", "none": "bright_black", "lacks": "bright_black"}


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield four sections and a verdict; `report` is the output of --json."""
    yield _title("This machine")
    for name, check in report["checks"].items():
        yield _row("ok" if check["ok"] else "FAIL", name, check["found"])
    yield _title("Devices besides the CPU")
    for kind, entry in report["devices"].items():
        for device in entry["devices"]:
            yield _row("ok", kind, _device(device))
        if not entry["devices"]:
            yield _row("none", kind, entry["problem"] or "no device")
    yield _title("Targets to compile for (all but cpu are optional: what to type if you want one)")
    yield from _tools(report["targets"])
    yield _title("Systems that `wherry package` makes libraries of apps for (optional, too)")
    yield from _tools(report["apps"])
    yield _title("Verdict")
    auto = report["auto"]
    yield _row("ok" if auto["ok"] else "FAIL", "--target auto", auto["found"])
    if report["ok"]:
        yield _row("ok", "wherry run", "has all that it needs; type: wherry run demo")
    else:
        yield _row("FAIL", "wherry run", "something that it needs is missing, see above")


def _tools(all_: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield a row per target or operating system: its tools, or how to install them."""
    for kind, requirements in all_.items():
        missing = [r for r in requirements if r["found"] is None]
        present = ", ".join(f"{r['name']} {r['found']}" for r in requirements if r["found"])
        fixes = "; ".join(f"{r['name']}: {r['fix']}" for r in missing)
        yield _row("lacks" if missing else "ok", kind, fixes or present or "needs nothing else")


def _title(text: str) -> str:
    return click.style(f"\n{text}", bold=True)


def _row(mark: str, name: str, text: str) -> str:
    start = f"  {click.style(f'{mark:<5}', fg=_MARKS[mark])}  {name:<{_NAME}} "
    column = 2 + 5 + 2 + _NAME + 1
    width = max(40, shutil.get_terminal_size((100, 24)).columns - column)
    parts = [
        part
        for line in text.splitlines() or [""]
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    ]
    return start + f"\n{' ' * column}".join(parts)


def _device(device: dict[str, Any]) -> str:
    parts = [device["name"], f"{device['memory_bytes'] / 1e9:.1f} GB"]
    if device["code"]:
        parts.append(device["code"])
    if device["driver"]:
        parts.append(f"driver {device['driver']}")
    if device["software"]:
        parts.append("a CPU that emulates a GPU")
    return ", ".join(parts)
