"""Variants of targets (after the colon in their names), and the errors for unknown ones.

This module does not import TVM, because a target is chosen earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from wherry.errors import UsageError, listing

CUDA_CODES = {
    "sm_75": "T4, RTX 20",
    "sm_80": "A100",
    "sm_86": "RTX 30, A10",
    "sm_87": "Jetson Orin",
    "sm_89": "RTX 40, L4, L40",
    "sm_90": "H100, H200, GH200",
    "sm_100": "B200, GB200",
    "sm_103": "B300, GB300",
    "sm_110": "Jetson Thor",
    "sm_120": "RTX 50",
    "sm_121": "DGX Spark",
}
ROCM_CODES = {
    "gfx90a": "MI210, MI250",
    "gfx942": "MI300, MI325",
    "gfx1030": "RX 6800, RX 6900",
    "gfx1100": "RX 7900",
    "gfx1101": "RX 7700, RX 7800",
    "gfx1151": "Ryzen AI Max",
    "gfx1200": "RX 9060",
    "gfx1201": "RX 9070",
}
GROUP_SIZES = ("64", "128", "256")  # threads of a group, for any GPU; the last is the default
MATRICES = "matrices"  # variant of "vulkan" for GPUs with VK_KHR_cooperative_matrix


def chosen(
    kind: str, variant: str, known: Mapping[str, str], *, several: bool = False
) -> tuple[str, ...]:
    """Return the names that `variant` contains, in the order of `known`.

    Args:
        kind: kind of the target.
        variant: one name, or with `several` any number with "+" between them.
        known: all names and their descriptions.
        several: whether a variant may contain more than one name.

    Raises:
        UsageError: a name is unknown; the message lists all, and suggests the closest.
    """
    names = variant.split("+") if several else [variant]
    if wrong := [name for name in names if name not in known]:
        lines = listing(f"{name:<8} {what}" for name, what in known.items())
        more = f" Several are possible: {kind}:{'+'.join(list(known)[:2])}." if several else ""
        fix = closest(wrong[0], known) or next(iter(known))
        raise UsageError(
            f"Unknown target {kind}:{wrong[0]!s}; after the colon stands one of\n{lines}\n"
            f"{more.strip()}{' ' if more else ''}Type: --target {kind}:{fix}"
        )
    return tuple(name for name in known if name in names)


def closest(text: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `text`; None: none is close."""
    return next(iter(get_close_matches(text, list(known), n=1, cutoff=0.5)), None)
