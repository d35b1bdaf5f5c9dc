"""What generating a target's code takes beyond TVM: programs, libraries, callbacks."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from wherry.errors import ToolchainError, listing

# Held while a toolchain is active. TVM finds what generates code among global functions, and in the
# environment: of two threads, each would restore what it found, which is the other's.
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program, library or package, as it was found on this machine."""

    name: str  # "ld.lld"
    found: str | None  # its path or version; None: not here
    fix: str  # what to type to get it


class Toolchain(Protocol):
    """The tools of one target."""

    def tools(self) -> tuple[Tool, ...]:
        """Look for all of them, now."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """While it is entered, TVM generates code with these tools; what was set before comes back.

        Only entered when no tool is missing; waits until another thread has left its own.
        """
        ...

    def sources(self) -> dict[str, str]:
        """Source of the code generated last that its module does not keep, by suffix of a file."""
        ...


def require(target: str, tools: Iterable[Tool]) -> None:
    """Check that all tools are here.

    Raises:
        ToolchainError: some are not; the message has what to type for each.
    """
    missing = [f"{tool.name}. Type: {tool.fix}" for tool in tools if tool.found is None]
    if missing:
        raise ToolchainError(f"Target {target} needs what is not here:\n{listing(missing)}")
