"""iPhones and iPads: the GPU of "iphone", and "iphone:simulator" for the simulator of a Mac."""

from __future__ import annotations

from wherry.errors import UsageError

from .metal import apple_gpu
from .target import TargetPreset

VARIANTS = {None: "ios", "simulator": "ios-simulator"}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a phone's GPU; since A11 its limits are those of a Mac's.

    Raises:
        UsageError: there is no such variant.
    """
    if variant not in VARIANTS:
        raise UsageError(
            f"Unknown target 'iphone:{variant}'; after the colon goes simulator, or nothing. "
            "Type: --target iphone"
        )
    return apple_gpu("iphone" if variant is None else f"iphone:{variant}", VARIANTS[variant])
