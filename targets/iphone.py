"""iPhones and iPads: any since A11 for "iphone", since A14 for "iphone:a14".

"iphone:simulator" is the simulator of a Mac, whose Metal promises no more than an old phone's.
"""

from __future__ import annotations

from .metal import apple_gpu
from .target import TargetPreset
from .variants import chosen

VARIANTS = {  # and the devices of each
    "a14": "iPhone 12, iPad Air 4 and later, whose GPUs multiply matrices",
    "simulator": "the simulator of a Mac",
}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a phone's GPU, which has a Mac's limits since A11.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        return apple_gpu("iphone", "ios", simdgroups=False)
    (found,) = chosen("iphone", variant, VARIANTS)
    if found == "a14":
        return apple_gpu("iphone:a14", "ios", simdgroups=True)
    return apple_gpu("iphone:simulator", "ios-simulator", simdgroups=False)
