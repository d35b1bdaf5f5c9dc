"""Explains why the system refuses to write: a full disk, a folder of another user."""

from __future__ import annotations

import errno
from pathlib import Path

from wherry.base import settings
from wherry.errors import ResourceError, UsageError, WherryError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def explained(error: OSError, *, of_output: bool = False) -> WherryError | None:
    """Convert an OSError into an error that says what to do; None for other causes.

    Args:
        error: the error; it has the file's name, except for a write to an open file.
        of_output: whether it is the command's output that could not be written.
    """
    if error.errno not in (*_FULL, *_FORBIDDEN) and not _no_cache(error):
        return None
    if of_output:
        return ResourceError(f"The output cannot be written: {error.strerror}.")
    cache = settings.cache_dir()
    about = f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}"
    if error.errno in _FULL:
        return ResourceError(
            f"{about}. Make room (wherry cache prune), or choose another disk: -o DIR, or "
            f"export WHERRY_CACHE=DIR for the cache, which is {cache}"
        )
    if _in_cache(error):
        return UsageError(
            f"{about}. That is in the cache, {cache}. Choose one that you may write to: "
            "export WHERRY_CACHE=DIR"
        )
    return UsageError(f"{about}. Choose a place that you may write to: -o DIR")


def _in_cache(error: OSError) -> bool:
    cache = settings.cache_dir().absolute()
    return bool(error.filename) and Path(error.filename).absolute().is_relative_to(cache)


def _no_cache(error: OSError) -> bool:
    """Tell whether the cache is a file, or below one, or where no folder can be (/proc)."""
    return _in_cache(error) and not settings.cache_dir().is_dir()
