"""Interface of tools beyond TVM that generate a target's code: programs, libraries, callbacks."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from wherry.errors import ToolchainError, listing

# Lock that is held while a toolchain is active. TVM finds code generators in global functions and
# the environment; two threads would restore each other's values.
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A program, library or package that compilation needs, and where this machine has it."""

    name: str  # name such as "ld.lld"
    installed: str | None  # path or version; None: not installed
    fix: str  # command that installs it


class Toolchain(Protocol):
    """Interface of the tools that compile code for one target."""

    def requirements(self) -> tuple[Requirement, ...]:
        """Search for all required tools, now."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """Return a context in which TVM generates code with these tools.

        It restores former settings.

        No requirement may be missing; it waits until another thread leaves its context.
        """
        ...

    def sources(self) -> dict[str, str]:
        """Return the code generated last, by file suffix; {} if the module stores it."""
        ...


def require(target: str, requirements: Iterable[Requirement]) -> None:
    """Check that all requirements are installed.

    Raises:
        ToolchainError: some are not; the message has the command that installs each.
    """
    missing = [f"{r.name}. Type: {r.fix}" for r in requirements if r.installed is None]
    if missing:
        raise ToolchainError(
            f"Target {target} needs tools that are not installed:\n{listing(missing)}"
        )
