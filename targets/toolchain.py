"""Tools beyond TVM that generate a target's code: programs, libraries, callbacks."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from wherry.errors import ToolchainError, listing

# Locked while a toolchain is active. TVM finds code generators in global functions and the
# environment; two threads would restore each other's values.
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One program, library or package, and where this machine has it."""

    name: str  # "ld.lld"
    found: str | None  # its path or version; None: not here
    fix: str  # what to type to get it


class Toolchain(Protocol):
    """What one target needs to be compiled for."""

    def requirements(self) -> tuple[Requirement, ...]:
        """Look for all of them, now."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """A context in which TVM generates code with these programs; it restores former settings.

        No requirement may be missing; it waits until another thread leaves its context.
        """
        ...

    def sources(self) -> dict[str, str]:
        """Source of the code generated last, by file suffix, unless the module stores it."""
        ...


def require(target: str, requirements: Iterable[Requirement]) -> None:
    """Check that all requirements are here.

    Raises:
        ToolchainError: some are not; the message has what to type for each.
    """
    missing = [f"{r.name}. Type: {r.fix}" for r in requirements if r.found is None]
    if missing:
        raise ToolchainError(f"Target {target} needs what is not here:\n{listing(missing)}")
