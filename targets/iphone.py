"""Targets for iPhones and iPads: "iphone" (A11 and later), "iphone:a14" (A14 and later).

"iphone:simulator" is the simulator on a Mac, whose Metal supports no more than an old phone's.
"""

from __future__ import annotations

from .metal import apple_gpu
from .target import TargetPreset
from .variants import chosen

VARIANTS = {  # variant -> description of its devices
    "a14": "iPhone 12, iPad Air 4 and later, whose GPUs multiply matrices",
    "simulator": "the simulator of a Mac",
}


def preset(variant: str | None) -> TargetPreset:
    """Return the preset of a phone's GPU, which has the limits of a Mac's GPU since A11.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        return apple_gpu("iphone", "ios", simdgroups=False)
    (chip,) = chosen("iphone", variant, VARIANTS)
    if chip == "a14":
        return apple_gpu("iphone:a14", "ios", simdgroups=True)
    return apple_gpu("iphone:simulator", "ios-simulator", simdgroups=False)
