"""The errors that Wherry raises on bad input. Assertions mean bugs of Wherry.

Each says what happened, the value found, what is accepted, and what to type.
"""

from __future__ import annotations

from collections.abc import Iterable


class WherryError(Exception):
    """Base of all. `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(WherryError):
    """An argument or a configuration field is wrong."""

    exit_code = 2


class ModelError(WherryError):
    """A model folder cannot be read: a file is missing, a field unknown, a tensor does not fit."""

    exit_code = 3


class ArtifactError(WherryError):
    """A compiled folder cannot be used: damaged, of another version, or for another machine."""

    exit_code = 4


class ToolchainError(WherryError):
    """A tool or library that a target needs is not installed on this machine."""

    exit_code = 5


class ResourceError(WherryError):
    """Memory, disk or context is too small for what was asked."""

    exit_code = 6


def shown(value: object) -> str:
    """A value for an error; what is long is cut."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def misnamed(names: Iterable[str], known: Iterable[str]) -> str:
    """Quote names that are not known, each with the known one that it is probably meant to be."""
    from difflib import get_close_matches  # slow to import

    texts, accepted = [], list(known)
    for name in names:
        close = get_close_matches(name, accepted, n=1)
        texts.append(f"{name!r} (did you mean {close[0]!r}?)" if close else repr(name))
    return ", ".join(texts)


def listing(problems: Iterable[str], limit: int = 40) -> str:
    """Join problems, one a line, up to a limit: errors list all problems, not the first."""
    lines = list(problems)
    texts = [f"  - {line}" for line in lines[:limit]]
    if len(lines) > limit:
        texts.append(f"  ... and {len(lines) - limit} more")
    return "\n".join(texts)


def message_of(problems: Iterable[str], limit: int = 20) -> str:
    """Write a message of problems: a single one as it is, several under their number."""
    lines = list(problems)
    return lines[0] if len(lines) == 1 else f"{len(lines)} problems:\n{listing(lines, limit)}"
