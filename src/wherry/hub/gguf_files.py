"""Which GGUF file of a repository is meant: by its name, or by that of its quantization.

Quantizations are named in the names of files, as in `Qwen3-8B-Q4_K_M.gguf`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wherry.errors import ModelError, listing

SUFFIX = ".gguf"
SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.I | re.DOTALL)
_SAFE = re.compile(r"(?:[\w][\w.+ -]{0,200}/)?[\w][\w.+ -]{0,200}\.gguf", re.ASCII | re.I)


def chosen(names: Iterable[str], name: str, where: str) -> list[str]:
    """The files of the model that is `name`, in order; several if it is split.

    Args:
        names: of all files of the repository.
        name: a file's name, or a quantization's.
        where: the repository, for errors.

    Raises:
        ModelError: there is no such file, or more than one; lists what there is.
    """
    files = [n for n in sorted(names) if _SAFE.fullmatch(n)]
    if not is_projector(name):
        files = [n for n in files if not is_projector(n)]
    if name.lower().endswith(SUFFIX):
        matches = [n for n in files if n == name or stem(n) == stem(name)]
    else:
        ending = re.compile(rf"(?:.*[-._/])?{re.escape(name)}", re.I | re.DOTALL)
        matches = [n for n in files if ending.fullmatch(stem(n))]
    models = sorted({stem(n) for n in matches})
    if len(models) == 1:
        return matches
    what = "more than one file" if models else "no file"
    others = models or sorted({stem(n) for n in files})
    raise ModelError(
        f"{where} has {what} for {name!r}. "
        + (
            f"Type one of these:\n{listing(f'{where}/{n}{SUFFIX}' for n in others)}"
            if others
            else "It has no GGUF at all."
        )
    )


def is_projector(name: str) -> bool:
    """Return whether a file is the part of a model for images or sound, by its name."""
    return "mmproj" in name.lower()


def stem(name: str) -> str:
    """A model's name, from that of one of its files."""
    match = SPLIT.fullmatch(name)
    return match["stem"] if match else name[: -len(SUFFIX)]
