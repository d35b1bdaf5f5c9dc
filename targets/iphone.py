"""iPhones and iPads: the GPU of "iphone", and "iphone:simulator" for the simulator of a Mac."""

from __future__ import annotations

from .metal import apple_gpu
from .target import TargetPreset
from .variants import chosen

VARIANTS = {"simulator": "the simulator of a Mac"}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a phone's GPU; since A11 its limits are those of a Mac's.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        return apple_gpu("iphone", "ios")
    (found,) = chosen("iphone", variant, VARIANTS)
    return apple_gpu(f"iphone:{found}", f"ios-{found}")
