"""What may follow the colon of a target, and what to say of anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from wherry.errors import UsageError, listing


def chosen(
    kind: str, variant: str, known: Mapping[str, str], *, several: bool = False
) -> tuple[str, ...]:
    """The names that `variant` holds, in the order of `known`.

    Args:
        kind: of the target.
        variant: one name, or with `several` any number with "+" between them.
        known: all names, with what each is for.
        several: whether a variant may hold more than one.

    Raises:
        UsageError: one is not known; the message lists them all, and the closest first.
    """
    names = variant.split("+") if several else [variant]
    if wrong := [name for name in names if name not in known]:
        lines = listing(f"{name:<8} {what}" for name, what in known.items())
        more = f" Several are possible: {kind}:{'+'.join(list(known)[:2])}." if several else ""
        fix = closest(wrong[0], known) or next(iter(known))
        raise UsageError(
            f"Unknown target {kind}:{wrong[0]!s}; after the colon goes one of\n{lines}\n"
            f"{more.strip()}{' ' if more else ''}Type: --target {kind}:{fix}"
        )
    return tuple(name for name in known if name in names)


def closest(text: str, known: Iterable[str]) -> str | None:
    """The known word most like `text`, if one is."""
    return next(iter(get_close_matches(text, list(known), n=1, cutoff=0.5)), None)
